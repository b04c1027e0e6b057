using System;
using System.Collections.Generic;

namespace Ramway.Conformance
{
    /// <summary>Wrong flags.</summary>
    internal sealed class UsageException : Exception
    {
        internal UsageException(string text)
            : base(text)
        {
        }
    }

    /// <summary>The flags, the same for every command; ../README.md says what each means.</summary>
    internal sealed class Args
    {
        private static readonly HashSet<string> Flags = new HashSet<string>
        {
            "ring", "back", "listen", "connect", "region", "create", "capacity", "align", "wait", "timeout", "cpu", "sizes",
            "start", "count", "until", "resume", "batch", "how", "endings", "progress", "linger", "oversize", "pace", "work",
            "group", "check", "role", "size", "pause", "warm-up", "poll",
        };

        private readonly Dictionary<string, string> given = new Dictionary<string, string>();

        internal Args(string[] words)
        {
            if (words.Length == 0)
            {
                throw new UsageException("a command is missing");
            }
            Command = words[0];
            for (int i = 1; i < words.Length; i += 2)
            {
                string word = words[i];
                if (!word.StartsWith("--", StringComparison.Ordinal) || !Flags.Contains(word.Substring(2)) || i + 1 == words.Length)
                {
                    throw new UsageException("not a flag with a value: " + word);
                }
                given[word.Substring(2)] = words[i + 1];
            }
            Create = Yes("create", "no");
            Resume = Yes("resume", "no");
            Progress = Yes("progress", "no");
            Oversize = Yes("oversize", "no");
            Check = Yes("check", "yes");
            Pause = Yes("pause", "no");
            Capacity = Number("capacity", 65536);
            Align = (int)Number("align", 16);
            if (!Enum.TryParse(Text("wait", "hybrid"), true, out WaitMode wait))
            {
                throw new UsageException("--wait is spin, block or hybrid");
            }
            Wait = wait;
            long limit = Number("timeout", 20_000);
            Timeout = limit == 0 ? (TimeSpan?)null : TimeSpan.FromMilliseconds(limit);
            string? calls = Environment.GetEnvironmentVariable("RAMWAY_CONFORMANCE_CALLS");
            long poll = Number("poll", -1);
            Poll = poll < 0 ? (TimeSpan?)null : TimeSpan.FromTicks(poll * 10);
            Asynchronous = Poll == null && (calls == "async" || (calls != "sync" && Wait == WaitMode.Block));
            Cpu = (int)Number("cpu", -1);
            Sizes = new Sizes(Text("sizes", "mixed"));
            Size = Number("size", 0);
            Start = Number("start", -1);
            Count = Number("count", -1);
            Until = Number("until", -1);
            Batch = (int)Number("batch", -1);
            Endings = Number("endings", 1);
            Group = Math.Max(Number("group", 1), 1);
            WarmUp = Number("warm-up", Count / 10);
            Linger = Number("linger", -1);
            Pace = Number("pace", 0);
            Work = Number("work", 0);
        }

        internal string Command { get; }

        internal string? Ring => Maybe("ring");

        internal string? Back => Maybe("back");

        internal string? Listen => Maybe("listen");

        internal string? Connect => Maybe("connect");

        internal string? Region => Maybe("region");

        internal string How => Text("how", "");

        internal string Role => Text("role", "");

        internal bool Create { get; }

        internal bool Resume { get; }

        internal bool Progress { get; }

        internal bool Oversize { get; }

        internal bool Check { get; }

        internal bool Pause { get; }

        internal long Capacity { get; }

        internal int Align { get; }

        internal WaitMode Wait { get; }

        /// <summary>The longest single wait; null for no limit.</summary>
        internal TimeSpan? Timeout { get; }

        /// <summary>How long each call of a wait lasts that is made of many; null for a wait that is one call.</summary>
        internal TimeSpan? Poll { get; }

        /// <summary>Whether no flag says how long a wait may last, and a loop over all messages will do.</summary>
        internal bool Patient => Maybe("timeout") == null;

        /// <summary>
        /// Whether to use the calls that wait without a thread: where sleeping is asked for, unless RAMWAY_CONFORMANCE_CALLS says
        /// sync or async for all.
        /// </summary>
        internal bool Asynchronous { get; }

        internal int Cpu { get; }

        internal Sizes Sizes { get; }

        internal long Size { get; }

        internal long Start { get; }

        internal long Count { get; }

        internal long Until { get; }

        internal int Batch { get; }

        internal long Endings { get; }

        internal long Group { get; }

        /// <summary>How many of the first messages are not measured.</summary>
        internal long WarmUp { get; }

        internal long Linger { get; }

        internal long Pace { get; }

        internal long Work { get; }

        private string? Maybe(string flag) => given.TryGetValue(flag, out string? text) ? text : null;

        private string Text(string flag, string otherwise) => Maybe(flag) ?? otherwise;

        private long Number(string flag, long otherwise)
        {
            string? text = Maybe(flag);
            if (text == null)
            {
                return otherwise;
            }
            return long.TryParse(text, out long number) ? number : throw new UsageException($"--{flag} {text} is no number");
        }

        private bool Yes(string flag, string otherwise)
        {
            string text = Text(flag, otherwise);
            return text == "yes" || (text == "no" ? false : throw new UsageException($"--{flag} is yes or no"));
        }

        /// <summary>Says no where a command needs another value of --how or --role.</summary>
        internal static void OneOf(string flag, string value, params string[] values)
        {
            if (Array.IndexOf(values, value) < 0)
            {
                throw new UsageException($"--{flag} is one of {string.Join(", ", values)}");
            }
        }

        /// <summary>--count, where a command cannot do without.</summary>
        internal long Counted() => Count >= 0 ? Count : throw new UsageException("--count is missing");

        /// <summary>The first message's number.</summary>
        internal long First => Math.Max(Start, 0);
    }

    /// <summary>One wait: a call, or with --poll many short ones, until one of them gives something else than a time-out.</summary>
    internal readonly struct Waiting
    {
        private readonly Args args;
        private readonly long began;

        internal Waiting(Args args)
        {
            this.args = args;
            began = args.Poll == null ? 0 : Clock.Now;
        }

        /// <summary>The time-out of each call.</summary>
        internal TimeSpan? Each => args.Poll ?? args.Timeout;

        /// <summary>Whether another call follows after this.</summary>
        internal bool GoesOn(RamwayException e) => args.Poll != null && e.Kind == ErrorKind.TimedOut &&
            (args.Timeout == null || Clock.MsSince(began) < args.Timeout.Value.TotalMilliseconds);
    }

    /// <summary>How long each message is.</summary>
    internal readonly struct Sizes
    {
        private readonly bool ramp;

        internal Sizes(string text)
        {
            ramp = text == "ramp";
            Fixed = -1;
            if (text != "mixed" && !ramp)
            {
                Fixed = long.TryParse(text, out long number) && number >= 0
                    ? number
                    : throw new UsageException("--sizes is mixed, ramp or a number");
            }
        }

        internal Sizes(long length)
        {
            ramp = false;
            Fixed = length;
        }

        /// <summary>The length of all, or -1.</summary>
        internal long Fixed { get; }

        internal long Length(long seq, long longest)
        {
            if (Fixed >= 0)
            {
                return Fixed;
            }
            if (ramp)
            {
                return seq % (longest + 1);
            }
            if (seq % 1000 == 999)
            {
                return longest;
            }
            if (seq % 100 == 0)
            {
                return 0;
            }
            long x = unchecked((uint)seq * 2_654_435_761u);
            return seq % 50 == 1 ? x % (longest + 1) : x % 257;
        }
    }
}
