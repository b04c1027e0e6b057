using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>How a handle waits, and how its wait is called off from another thread.</summary>
    internal sealed unsafe class Waiter
    {
        private WaitMode mode;
        private readonly Sharing sharing;
        private CancellationTokenRegistration registration;
        private readonly object wordLock = new object();
        // The word that the handle sleeps on; null once it is unmapped. Under the lock.
        private uint* word;

        /// <summary>Who else sleeps on the word.</summary>
        internal enum Sharing
        {
            /// <summary>Nobody: a role's own.</summary>
            Own,
            /// <summary>All subscribers of a topic: a u64, which counts wake-ups.</summary>
            Counted,
            /// <summary>The same, by a handle that cannot write there: its sleeps are short.</summary>
            ReadOnly,
        }

        internal Waiter(WaitMode mode, uint* word, Sharing sharing = Sharing.Own)
        {
            Mode = mode;
            this.word = word;
            this.sharing = sharing;
        }

        /// <summary>How many polls a receiver spends before it enters the general wait.</summary>
        internal int FirstPolls { get; private set; }

        /// <summary>How many polls to spend before sleeping; it follows how long waits have lasted.</summary>
        internal int Budget { get; private set; } = Facts.SpinMax;

        /// <summary>The ring had ended at the last check, so ask the kernel at once.</summary>
        internal bool CheckAgain { get; set; }

        internal WaitMode Mode
        {
            get => mode;
            set
            {
                mode = value;
                FirstPolls = value == WaitMode.Block || Cpu.Alone ? 0 : Facts.FirstPolls;
            }
        }

        internal bool Spins => ShouldSpin(mode);

        /// <summary>Whether a wait of this mode polls before it sleeps.</summary>
        internal static bool ShouldSpin(WaitMode mode) => mode == WaitMode.Spin || mode == WaitMode.Hybrid && !Cpu.Alone;

        /// <summary>Why a value is not a wait mode; null: it is one.</summary>
        internal static string? Refusal(WaitMode mode) => mode >= WaitMode.Hybrid && mode <= WaitMode.Block
            ? null
            : (int)mode + " is not a wait mode: expected Hybrid, Spin or Block";

        internal static void Check(WaitMode mode)
        {
            if (Refusal(mode) is string refusal)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, refusal);
            }
        }

        /// <summary>Spinning was worth it.</summary>
        internal void SpinMore() => Budget = Math.Min(2 * Budget, Facts.SpinMax);

        /// <summary>Learns from a wait with a sleep that took this many nanoseconds.</summary>
        internal void Learn(long took)
        {
            if (took < Facts.ShortWaitNanos)
            {
                SpinMore();
            }
            else
            {
                Budget = Math.Max(Budget / 2, Facts.SpinMin);
            }
        }

        /// <summary>Polls a word this many times; true as soon as it differs from what was seen. Acquire.</summary>
        internal static bool Changes(ulong* word, ulong seen, int polls)
        {
            for (; ; polls--)
            {
                if (Volatile.Read(ref *word) != seen)
                {
                    return true;
                }
                if (polls == 0)
                {
                    return false;
                }
                Cpu.Pause();
            }
        }

        /// <summary>
        /// Ends a sleep that has begun or is about to. The sleeper is told by something else (the guard, a token) before, and asks
        /// for it after it has armed, so it does not matter if it arms right after this.
        /// </summary>
        internal void Interrupt()
        {
            lock (wordLock)
            {
                if (word == null || sharing == Sharing.ReadOnly)
                {
                    return;
                }
                if (sharing == Sharing.Own)
                {
                    Volatile.Write(ref *word, 0);
                }
                else
                {
                    Interlocked.Add(ref *(long*)word, (long)Facts.WordWake);
                }
                Futex.WakeAll(word);
            }
        }

        /// <summary>
        /// Has the end of a token interrupt sleeps from now on. It is registered for each wait anew, even with the token of the
        /// last one: a source that was reset (CancellationTokenSource.TryReset) has forgotten it. The registration keeps this
        /// object, not the handle.
        /// </summary>
        internal void Watch(CancellationToken token)
        {
            Unwatch();
            if (token.CanBeCanceled)
            {
                registration = token.Register(state => ((Waiter)state!).Interrupt(), this, false);
            }
        }

        /// <summary>Ends the watch, and no interrupt touches the word after it.</summary>
        internal void Close()
        {
            lock (wordLock)
            {
                word = null;
            }
            Unwatch();
        }

        private void Unwatch()
        {
            // Waits for a callback that runs now, unless it runs on this thread: so not under the lock that it takes.
            registration.Dispose();
            registration = default;
        }
    }
}
