using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>Why an attempt to open or create is to be made again, and what to say when there is no time left.</summary>
    internal sealed class Again : Exception
    {
        // How long races with others (a segment that is just going away) are retried at least.
        private static readonly TimeSpan RaceTime = TimeSpan.FromSeconds(1);
        // Nanoseconds between two attempts.
        private const long PauseFirst = 100_000, PauseMax = 10_000_000;

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
            new Again(Errors.Fail(ErrorKind.TimedOut, why + ", over and over until the deadline"), race: true);

        internal static Again Missing(string text) => new Again(Errors.Fail(ErrorKind.NotFound, text), absent: true);

        /// <summary>Makes attempts until one succeeds: for as long as the options' Timeout, and in races for up to a second.</summary>
        internal static T Try<T>(TimeSpan timeout, Func<T> attempt)
        {
            WaitLimit limit = WaitLimit.Of(timeout), race = WaitLimit.Of(RaceTime);
            for (long pause = PauseFirst; ; pause = Math.Min(2 * pause, PauseMax))
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
