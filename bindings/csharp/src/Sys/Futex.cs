using System.Threading;

namespace Ramway.Sys
{
    /// <summary>
    /// Sleeping on a word in shared memory. Always the shared kind: a private futex is keyed by address space and would not be
    /// woken from another process.
    /// </summary>
    internal static unsafe class Futex
    {
        private const int WaitOperation = 0;
        private const int WakeOperation = 1;

        private static readonly long Number = Libc.IsArm64 ? 98 : 202;

        /// <summary>
        /// Sleeps while the word holds a value, for at most this many nanoseconds (more than 0), and says whether the word was
        /// woken or held something else. False: the time passed, or a signal handler ran.
        /// </summary>
        internal static bool Wait(uint* word, uint expected, long nanoseconds)
        {
            long* time = stackalloc long[2];
            time[0] = nanoseconds / 1_000_000_000;
            time[1] = nanoseconds % 1_000_000_000;
            long result = Libc.syscall(Number, (long)word, WaitOperation, expected, (long)time, 0, 0);
            switch (Libc.Result(result))
            {
                case 0:
                case -Errno.EAGAIN:
                    return true;
                case -Errno.EINTR:
                case -Errno.ETIMEDOUT:
                    return false;
                default:
                    // Anything else (a seccomp filter, say) must not become a busy loop.
                    Thread.Sleep(1);
                    return false;
            }
        }

        /// <summary>Wakes everyone who sleeps on a word. Costs 260 ns even if nobody does: ask the word first.</summary>
        internal static void WakeAll(uint* word)
        {
            // All rather than one: a waiter that was killed may still be queued and would swallow a single wake-up.
            Libc.syscall(Number, (long)word, WakeOperation, int.MaxValue, 0, 0, 0);
        }

        /// <summary>Sleeps this many nanoseconds, more than 0, or a little less where a signal arrives.</summary>
        internal static void Sleep(long nanoseconds)
        {
            uint never = 0;
            Wait(&never, 0, nanoseconds);
        }

        /// <summary>A word to sleep on, as futex_waitv has it.</summary>
        internal struct Waiter
        {
            /// <summary>What the word holds while nothing happens.</summary>
            internal ulong Expected;
            /// <summary>The word's address.</summary>
            internal ulong Address;
            /// <summary>2: 32 bits, shared.</summary>
            internal uint Flags;
            internal uint Reserved;
        }

        /// <summary>The flags of a <see cref="Waiter"/>: a word of 32 bits, shared between processes.</summary>
        internal const uint WaitShared = 2;

        /// <summary>The most words that <see cref="WaitMany"/> takes.</summary>
        internal const int WaitManyMax = 128;

        /// <summary>
        /// Sleeps until one of the words (at most <see cref="WaitManyMax"/>) is woken, and gives its index; a negated errno
        /// otherwise: EAGAIN where one held something else already, ETIMEDOUT, EINTR, and ENOSYS or EPERM where this cannot be
        /// had (Linux before 5.16, a seccomp filter). The time is in nanoseconds from now, more than 0.
        /// </summary>
        internal static int WaitMany(Waiter* words, int count, long nanoseconds)
        {
            // An absolute time on CLOCK_MONOTONIC is what this call takes.
            long* time = stackalloc long[2];
            Clock.Monotonic(time);
            long at = time[1] + nanoseconds % 1_000_000_000;
            time[0] += nanoseconds / 1_000_000_000 + at / 1_000_000_000;
            time[1] = at % 1_000_000_000;
            const long waitv = 449;
            return (int)Libc.Result(Libc.syscall(waitv, (long)words, count, 0, (long)time, Clock.MonotonicId, 0));
        }
    }
}
