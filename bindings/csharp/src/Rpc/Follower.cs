using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using System.Threading.Tasks.Sources;
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

        public void Wake(bool here)
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
    internal sealed class TaskWaker : IValueTaskSource<bool>, IWaker
    {
        // Not read-only: it is a structure that changes.
        private ManualResetValueTaskSourceCore<bool> core;
        private int over;

        /// <summary>What is awaited, once.</summary>
        internal ValueTask<bool> Task => new ValueTask<bool>(this, core.Version);

        public void Wake(bool here)
        {
            if (Interlocked.Exchange(ref over, 1) == 0)
            {
                core.RunContinuationsAsynchronously = !here;
                core.SetResult(true);
            }
        }

        /// <summary>Nobody waits any more, because a token was cancelled.</summary>
        internal void Cancel(CancellationToken token)
        {
            if (Interlocked.Exchange(ref over, 1) == 0)
            {
                core.RunContinuationsAsynchronously = true;
                core.SetException(new OperationCanceledException(token));
            }
        }

        bool IValueTaskSource<bool>.GetResult(short token) => core.GetResult(token);

        ValueTaskSourceStatus IValueTaskSource<bool>.GetStatus(short token) => core.GetStatus(token);

        void IValueTaskSource<bool>.OnCompleted(Action<object?> continuation, object? state, short token,
            ValueTaskSourceOnCompletedFlags flags) => core.OnCompleted(continuation, state, token, flags);
    }
}
