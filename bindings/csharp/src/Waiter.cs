using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>How a handle waits, and how its wait is called off from another thread.</summary>
    internal sealed unsafe class Waiter
    {
        /// <summary>Looks at 26 ns that are about what a sleep costs, and those that are left where waits have been long.</summary>
        internal const int SpinMax = 3000, SpinMin = 32;
        /// <summary>A receiver's looks before it enters the general wait: more than a round trip takes.</summary>
        private const int NearLooks = 32;

        private WaitMode mode;
        private CancellationTokenRegistration registration;
        private readonly object wordLock = new object();
        // The handle's own word; null once it is unmapped. Under the lock.
        private uint* word;

        internal Waiter(WaitMode mode, uint* word)
        {
            Mode = mode;
            this.word = word;
        }

        /// <summary>How many looks a receiver spends before it waits in earnest.</summary>
        internal int Near { get; private set; }

        /// <summary>How many looks to spend before sleeping; it follows how long waits have lasted.</summary>
        internal int Budget { get; private set; } = SpinMax;

        /// <summary>The ring had ended at the last look, so look again at once.</summary>
        internal bool Suspect { get; set; }

        internal WaitMode Mode
        {
            get => mode;
            set
            {
                mode = value;
                Near = value == WaitMode.Block || Cpu.Alone ? 0 : NearLooks;
            }
        }

        internal bool Spins => mode == WaitMode.Spin || mode == WaitMode.Hybrid && !Cpu.Alone;

        /// <summary>Spinning was worth it.</summary>
        internal void SpinMore() => Budget = System.Math.Min(2 * Budget, SpinMax);

        /// <summary>It was not.</summary>
        internal void SpinLess() => Budget = System.Math.Max(Budget / 2, SpinMin);

        /// <summary>
        /// Ends a sleep that has begun or is about to. The sleeper is told by something else (the gate, a token) before, and asks
        /// for it after it has armed, so it does not matter if it arms right after this.
        /// </summary>
        internal void Interrupt()
        {
            lock (wordLock)
            {
                if (word != null)
                {
                    Volatile.Write(ref *word, 0);
                    Futex.WakeAll(word);
                }
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
