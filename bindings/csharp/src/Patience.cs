using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>How long a call waits.</summary>
    internal readonly struct Patience
    {
        /// <summary>Forever.</summary>
        internal static readonly Patience Endless = new Patience(long.MaxValue, default);

        /// <summary>When to stop, by <see cref="Clock"/>; long.MaxValue: never. Fixed when the call begins.</summary>
        internal readonly long Deadline;
        /// <summary>What calls the wait off.</summary>
        internal readonly CancellationToken Token;

        private Patience(long deadline, CancellationToken token)
        {
            Deadline = deadline;
            Token = token;
        }

        /// <summary>From now on. null and Timeout.InfiniteTimeSpan: forever.</summary>
        internal static Patience Of(TimeSpan? timeout, CancellationToken token)
        {
            if (!timeout.HasValue || timeout.GetValueOrDefault() == Timeout.InfiniteTimeSpan)
            {
                return new Patience(long.MaxValue, token);
            }
            long ticks = timeout.GetValueOrDefault().Ticks, now = Clock.Nanoseconds;
            // A tick is 100 ns; the longest TimeSpans are forever.
            return new Patience(ticks >= (long.MaxValue - now) / 100 ? long.MaxValue : now + ticks * 100, token);
        }

        /// <summary>Refuses a time-out that cannot be one. Before anything is done.</summary>
        internal static void Check(TimeSpan? timeout)
        {
            if (timeout.HasValue)
            {
                Ramway.Deadline.Check(timeout.GetValueOrDefault(), "time-out");
            }
        }

        /// <summary>Nanoseconds left, 0 or less when the time is over.</summary>
        internal long Left => Deadline == long.MaxValue ? long.MaxValue : Deadline - Clock.Nanoseconds;
    }
}
