using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>A moment that does not move, however often a wait begins anew.</summary>
    internal readonly struct Deadline
    {
        internal static readonly Deadline Never = new Deadline(long.MaxValue);

        private readonly long _at;

        private Deadline(long at) => _at = at;

        internal bool Passed => _at != long.MaxValue && Clock.Nanoseconds >= _at;

        /// <summary>What is left, at least 0; -1 if it never comes: as <see cref="Sockets.Poll"/> takes it.</summary>
        internal long Left => _at == long.MaxValue ? -1 : Math.Max(_at - Clock.Nanoseconds, 0);

        internal static Deadline In(TimeSpan time)
        {
            if (time == Timeout.InfiniteTimeSpan || time.Ticks > long.MaxValue / 200)
            {
                return Never;
            }
            long now = Clock.Nanoseconds, span = time.Ticks * 100;
            return span > long.MaxValue - now ? Never : new Deadline(now + span);
        }

        /// <summary>Whichever comes first.</summary>
        internal static Deadline First(Deadline a, Deadline b) => a._at <= b._at ? a : b;

        /// <summary>Refuses what is no time to wait.</summary>
        internal static void Check(TimeSpan time, string what)
        {
            if (time < TimeSpan.Zero && time != Timeout.InfiniteTimeSpan)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    $"a {what} of {time}: expected zero, a positive one, or Timeout.InfiniteTimeSpan");
            }
        }
    }
}
