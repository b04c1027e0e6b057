using System;
using System.Collections.Generic;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>A thread that waits for its call while another one receives. Each thread has one, and uses it again.</summary>
    internal sealed class Follower : IWaker
    {
        [ThreadStatic]
        private static Follower? own;

        private bool woken;

        /// <summary>Under the client's lock: it is to receive now, and passes that on if it need not.</summary>
        internal bool Leads;

        /// <summary>Under the client's lock: its place among those that wait.</summary>
        internal readonly LinkedListNode<Follower> Node;

        private Follower() => Node = new LinkedListNode<Follower>(this);

        internal static Follower Own => own ??= new Follower();

        /// <summary>Before it is registered.</summary>
        internal void Reset()
        {
            lock (this)
            {
                woken = false;
            }
        }

        public void Wake()
        {
            lock (this)
            {
                woken = true;
                Monitor.Pulse(this);
            }
        }

        /// <summary>Waits until it is woken, or the time has come.</summary>
        internal void Sleep(long until)
        {
            lock (this)
            {
                while (!woken)
                {
                    long left = until == long.MaxValue ? long.MaxValue : until - Clock.Nanoseconds;
                    if (left <= 0)
                    {
                        return;
                    }
                    // Rounded up: too early would be a loop.
                    Monitor.Wait(this, (int)Math.Min(left / 1_000_000 + 1, 3_600_000));
                }
            }
        }
    }

    /// <summary>A task that waits for its call.</summary>
    internal sealed class TaskWaker : System.Threading.Tasks.TaskCompletionSource<bool>, IWaker
    {
        // Continuations run elsewhere: the pump serves others.
        internal TaskWaker()
            : base(System.Threading.Tasks.TaskCreationOptions.RunContinuationsAsynchronously)
        {
        }

        public void Wake() => TrySetResult(true);
    }
}
