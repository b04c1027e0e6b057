using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>Why an attempt to open or create is to be made again, and what to say when there is no time left.</summary>
    internal sealed class Again : Exception
    {
        internal Again(RamwayException error, bool race = false, bool absent = false)
            : base(null, error)
        {
            Error = error;
            Race = race;
            Absent = absent;
        }

        internal RamwayException Error { get; }

        /// <summary>
        /// Another process was in the middle of something, which is waited for in any case. Else nothing is there to open, or
        /// the role is taken.
        /// </summary>
        internal bool Race { get; }

        /// <summary>Nothing is there to open.</summary>
        internal bool Absent { get; }

        internal static Again Raced(string why) =>
            new Again(Errors.Fail(ErrorKind.TimedOut,
                why + ", at each attempt until the deadline; try again, or pick another name"), race: true);

        internal static Again NameChanged(string during) =>
            Raced("the name was removed, or given to another file, while " + during);

        internal static Again Missing(string text) => new Again(Errors.Fail(ErrorKind.NotFound, text), absent: true);

        /// <summary>Makes attempts until one succeeds: for as long as the options' Timeout, and in races for up to a second.</summary>
        internal static T Try<T>(TimeSpan timeout, Func<T> attempt)
        {
            WaitLimit limit = WaitLimit.Of(timeout), race = WaitLimit.In(Facts.RaceTimeoutNanos);
            for (long pause = Facts.RacePauseMinNanos; ; pause = Math.Min(2 * pause, Facts.RacePauseMaxNanos))
            {
                try
                {
                    return attempt();
                }
                catch (Again again)
                {
                    long left = again.Race ? Math.Max(limit.Left, race.Left) : limit.Left;
                    if (left <= 0)
                    {
                        throw again.Error;
                    }
                    Sleep(Math.Min(pause, left));
                }
            }
        }

        /// <summary>The runtime's own sleep can be interrupted, and knows whole milliseconds only.</summary>
        private static void Sleep(long nanoseconds)
        {
            if (nanoseconds < 1_000_000)
            {
                Futex.Sleep(nanoseconds);
            }
            else
            {
                Thread.Sleep((int)(nanoseconds / 1_000_000));
            }
        }
    }
}
