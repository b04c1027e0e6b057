using System.Runtime.InteropServices;

namespace Ramway.Sys
{
    /// <summary>Time that nobody sets.</summary>
    internal static unsafe class Clock
    {
        /// <summary>CLOCK_MONOTONIC.</summary>
        internal const int MonotonicId = 1;

        private static readonly double Ticks = 1e9 / System.Diagnostics.Stopwatch.Frequency;

        /// <summary>Nanoseconds of monotonic time since some moment.</summary>
        internal static long Nanoseconds
        {
            get
            {
                long now = System.Diagnostics.Stopwatch.GetTimestamp();
                // Frequency is 10^9 on Linux: no rounding.
                return Ticks == 1 ? now : (long)(now * Ticks);
            }
        }

        /// <summary>The kernel's clock as a timespec.</summary>
        internal static void Monotonic(long* time) => clock_gettime(MonotonicId, time);

        [DllImport("libc")]
        private static extern int clock_gettime(int clock, long* time);
    }
}
