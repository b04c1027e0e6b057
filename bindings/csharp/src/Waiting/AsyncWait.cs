using System;
using System.Threading;
using System.Threading.Tasks;
using System.Threading.Tasks.Sources;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// An asynchronous wait of a handle. Between its beginning and its end its call is in progress: the handle's guard stays
    /// taken, so that the memory stays mapped. Continuations run in the thread pool, never on the poller's thread.
    /// </summary>
    internal sealed unsafe class AsyncWait : IValueTaskSource<bool>
    {
        private readonly RingEnd end;
        private ManualResetValueTaskSourceCore<bool> core;
        private WaitLimit limit;
        private long began;
        private int free = 1;

        internal AsyncWait(RingEnd end)
        {
            this.end = end;
            core.RunContinuationsAsynchronously = true;
        }

        /// <summary>Nobody is going to ask for the result of a wait by this object any more.</summary>
        internal bool IsFree => Volatile.Read(ref free) != 0;

        /// <summary>The word that wakes it, and what that holds while it sleeps.</summary>
        internal uint* Word => end.WaitWord;

        /// <summary>See <see cref="Word"/>.</summary>
        internal uint Armed => end.Armed;

        /// <summary>When to check again even if nothing wakes it, by <see cref="Clock"/>.</summary>
        internal long Next { get; private set; }

        /// <summary>When it was checked last.</summary>
        internal long Checked { get; private set; }

        internal ValueTask<bool> Task => new ValueTask<bool>(this, core.Version);

        /// <summary>Begins. To be followed by <see cref="Check"/>.</summary>
        internal void Begin(CancellationToken token)
        {
            free = 0;
            core.Reset();
            limit = WaitLimit.Of(null, token);
            began = Clock.Nanoseconds;
        }

        /// <summary>
        /// Takes one <see cref="RingEnd.Turn"/>, and ends the wait if it is over, which it says.
        /// </summary>
        internal bool Check(bool woken, long now)
        {
            Exception? e;
            try
            {
                e = end.Turn(woken, limit, out long longest);
                Checked = now;
                Next = now + longest;
                if (RingEnd.IsPending(e))
                {
                    return false;
                }
            }
            catch (Exception unexpected)
            {
                e = unexpected;
            }
            bool result = end.Leave(began, ref e);
            // From here on another call may use the handle, and with another object than this one until its result was asked for.
            if (e == null)
            {
                core.SetResult(result);
            }
            else
            {
                core.SetException(e);
            }
            return true;
        }

        /// <summary>Blocks this thread until the wait is over.</summary>
        internal void Sleep()
        {
            bool woken;
            do
            {
                woken = Futex.Wait(Word, Armed, Math.Max(1, Next - Clock.Nanoseconds));
            }
            while (!Check(woken, Clock.Nanoseconds));
        }

        bool IValueTaskSource<bool>.GetResult(short token)
        {
            bool ended = core.GetStatus(token) != ValueTaskSourceStatus.Pending;
            try
            {
                return core.GetResult(token);
            }
            finally
            {
                Volatile.Write(ref free, ended ? 1 : 0);
            }
        }

        ValueTaskSourceStatus IValueTaskSource<bool>.GetStatus(short token) => core.GetStatus(token);

        void IValueTaskSource<bool>.OnCompleted(Action<object?> continuation, object? state, short token,
            ValueTaskSourceOnCompletedFlags flags) => core.OnCompleted(continuation, state, token, flags);
    }
}
