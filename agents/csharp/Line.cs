using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Text;
using System.Threading;

namespace Ramway.Agents
{
    /// <summary>A command that is not understood.</summary>
    internal sealed class RefusedException : Exception
    {
        internal RefusedException(string text)
            : base(text)
        {
        }
    }

    /// <summary>A command, <c>word key=value key=value ...</c>. What a command does not take out of it is refused.</summary>
    internal sealed class Line
    {
        // Not Console.In, which sets the terminal up and listens to signals.
        private static readonly StreamReader Input = new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false));

        private readonly Dictionary<string, string> fields = new Dictionary<string, string>();

        private Line(string text)
        {
            string[] words = text.Split(' ');
            Word = words[0];
            for (int i = 1; i < words.Length; i++)
            {
                int equals = Math.Max(words[i].IndexOf('='), 0);
                fields[words[i].Substring(0, equals)] = words[i].Substring(equals + 1);
            }
        }

        internal string Word { get; }

        /// <summary>The next line of standard input; null when that ends.</summary>
        internal static Line? Next() => Input.ReadLine() is string text ? new Line(text) : null;

        internal string? Maybe(string key) => fields.Remove(key, out string? text) ? text : null;

        /// <summary>Whether a key that is taken later has this value.</summary>
        internal bool Is(string key, string value) => fields.TryGetValue(key, out string? text) && text == value;

        internal string Text(string key) => Maybe(key) ?? "";

        internal bool Has(string key) => fields.ContainsKey(key);

        internal long Number(string key, long otherwise)
        {
            string? text = Maybe(key);
            if (text == null)
            {
                return otherwise;
            }
            // A tag needs all 64 bits.
            return ulong.TryParse(text, out ulong number) ? (long)number : throw new RefusedException($"{key}={text} is no number");
        }

        internal bool Yes(string key) => Text(key) == "yes";

        internal WaitMode Wait() => Enum.TryParse(Maybe("wait") ?? "hybrid", true, out WaitMode wait)
            ? wait
            : throw new RefusedException("wait is spin, block or hybrid");

        internal Limits Limits()
        {
            long ms = Number("timeout", 20_000), us = Number("poll", -1);
            return new Limits(ms == 0 ? (TimeSpan?)null : TimeSpan.FromMilliseconds(ms),
                us < 0 ? (TimeSpan?)null : TimeSpan.FromTicks(us * 10));
        }

        /// <summary>Nothing else was said.</summary>
        internal void End()
        {
            if (fields.Count > 0)
            {
                throw new RefusedException($"{Word} does not know {string.Join(", ", fields.Keys)}");
            }
        }
    }

    /// <summary>How long a wait may last.</summary>
    internal sealed class Limits
    {
        internal Limits(TimeSpan? whole, TimeSpan? poll)
        {
            Whole = whole;
            Poll = poll;
        }

        /// <summary>Null for no limit.</summary>
        internal TimeSpan? Whole { get; }

        /// <summary>How long each call of a wait lasts that is made of many; null for a wait that is one call.</summary>
        internal TimeSpan? Poll { get; }

        /// <summary>The time-out of each call.</summary>
        internal TimeSpan? Each => Poll ?? Whole;

        /// <summary>Whether another call of the wait that began then follows after this.</summary>
        internal bool GoesOn(RamwayException e, long began) => Poll != null && e.Kind == ErrorKind.TimedOut &&
            (Whole == null || Clock.MsSince(began) < Whole.Value.TotalMilliseconds);

        internal Message Receive(Receiver rx)
        {
            for (long began = Clock.Now; ;)
            {
                try
                {
                    return rx.Recv(Each);
                }
                catch (RamwayException e) when (GoesOn(e, began))
                {
                }
            }
        }

        internal Batch ReceiveBatch(Receiver rx, int most)
        {
            for (long began = Clock.Now; ;)
            {
                try
                {
                    return rx.RecvBatch(most, Each);
                }
                catch (RamwayException e) when (GoesOn(e, began))
                {
                }
            }
        }

        internal Slot Reserve(Sender tx, int length)
        {
            for (long began = Clock.Now; ;)
            {
                try
                {
                    return tx.Reserve(length, Each);
                }
                catch (RamwayException e) when (GoesOn(e, began))
                {
                }
            }
        }

        internal void Send(Sender tx, in Made m)
        {
            for (long began = Clock.Now; ;)
            {
                try
                {
                    tx.Send(m.TypeId, m.Tag, m.Payload, Each);
                    return;
                }
                catch (RamwayException e) when (GoesOn(e, began))
                {
                }
            }
        }

        /// <summary>Any other call that takes a time-out, and gives what outlives it.</summary>
        internal T Within<T>(Func<TimeSpan?, T> call)
        {
            for (long began = Clock.Now; ;)
            {
                try
                {
                    return call(Each);
                }
                catch (RamwayException e) when (GoesOn(e, began))
                {
                }
            }
        }
    }

    /// <summary>
    /// A token that is cancelled when a time is over, and not before: the runtime's own timers, CancelAfter's too, count by a clock
    /// that ticks every few milliseconds, and come that much too early.
    /// </summary>
    internal sealed class Deadline : IDisposable
    {
        private readonly CancellationTokenSource source = new CancellationTokenSource();
        private readonly Timer? timer;
        private readonly long end;

        /// <summary>null: never.</summary>
        internal Deadline(TimeSpan? time)
        {
            if (time is TimeSpan some)
            {
                end = Clock.Now + (long)(some.TotalSeconds * Stopwatch.Frequency);
                // Started once the field has it.
                timer = new Timer(_ => Tick(), null, Timeout.Infinite, Timeout.Infinite);
                Tick();
            }
        }

        internal CancellationToken Token => source.Token;

        private void Tick()
        {
            long left = end - Clock.Now;
            if (left <= 0)
            {
                source.Cancel();
                return;
            }
            try
            {
                timer!.Change(left * 1000 / Stopwatch.Frequency + 1, Timeout.Infinite);
            }
            catch (ObjectDisposedException)
            {
                // The call has ended meanwhile.
            }
        }

        /// <summary>A tick that is under way may still cancel the source, so that is left to the garbage collector.</summary>
        public void Dispose() => timer?.Dispose();
    }

    /// <summary>Stopwatch's time stamps, which are those of CLOCK_MONOTONIC: the same in all processes.</summary>
    internal static class Clock
    {
        internal static long Now => Stopwatch.GetTimestamp();

        internal static long Ns => (long)(Now * (1e9 / Stopwatch.Frequency));

        internal static long MsSince(long began) => (Now - began) * 1000 / Stopwatch.Frequency;
    }
}
