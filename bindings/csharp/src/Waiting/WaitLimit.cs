using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>How long a call waits: a moment that is fixed when the call begins, and a token.</summary>
    internal readonly struct WaitLimit
    {
        private const long Never = long.MaxValue;

        /// <summary>A call that does not wait.</summary>
        internal static readonly WaitLimit None = new WaitLimit(long.MinValue, default);

        /// <summary>A call that waits until it succeeds, or there is nothing to wait for any more.</summary>
        internal static readonly WaitLimit Forever = new WaitLimit(Never, default);

        /// <summary>When to stop, in nanoseconds of <see cref="Clock"/>.</summary>
        private readonly long deadline;

        /// <summary>Cancels the wait.</summary>
        internal readonly CancellationToken Token;

        private WaitLimit(long deadline, CancellationToken token)
        {
            this.deadline = deadline;
            Token = token;
        }

        /// <summary>From now on. null and Timeout.InfiniteTimeSpan: forever.</summary>
        internal static WaitLimit Of(TimeSpan? timeout, CancellationToken token = default)
        {
            TimeSpan time = timeout ?? Timeout.InfiniteTimeSpan;
            if (time == Timeout.InfiniteTimeSpan)
            {
                return new WaitLimit(Never, token);
            }
            long now = Clock.Nanoseconds;
            // A tick is 100 ns; the longest TimeSpans are forever.
            return new WaitLimit(time.Ticks >= (Never - now) / 100 ? Never : now + time.Ticks * 100, token);
        }

        /// <summary>This many nanoseconds from now on.</summary>
        internal static WaitLimit In(long nanoseconds) => new WaitLimit(Clock.Nanoseconds + nanoseconds, default);

        /// <summary>Refuses a time-out that is negative, before anything is done.</summary>
        internal static void Check(TimeSpan? timeout, string what = "time-out")
        {
            if (timeout is TimeSpan time && time < TimeSpan.Zero && time != Timeout.InfiniteTimeSpan)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    $"a {what} of {time}: expected zero, a positive time, or Timeout.InfiniteTimeSpan");
            }
        }

        /// <summary>The limit that passes first.</summary>
        internal static WaitLimit First(WaitLimit a, WaitLimit b) => a.deadline <= b.deadline ? a : b;

        internal bool IsNone => deadline == long.MinValue;

        internal bool IsForever => deadline == Never;

        internal bool Passed => Left <= 0;

        /// <summary>Nanoseconds that are left; 0 or less when the time is over, long.MaxValue: without a limit.</summary>
        internal long Left => IsForever ? Never : IsNone ? 0 : deadline - Clock.Nanoseconds;
    }
}
