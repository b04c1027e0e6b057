using System;
using System.Threading;
using System.Threading.Tasks;
using System.Threading.Tasks.Sources;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// An asynchronous wait of a handle. Between its beginning and its end its call is in progress: the handle's gate stays
    /// taken, so that the memory stays mapped. Continuations run in the thread pool, never on the poller's thread.
    /// </summary>
    internal sealed unsafe class AsyncWait : IValueTaskSource<bool>
    {
        private readonly RingEnd end;
        private ManualResetValueTaskSourceCore<bool> core;
        private Patience patience;
        private long began;
        private int free = 1;

        internal AsyncWait(RingEnd end)
        {
            this.end = end;
            core.RunContinuationsAsynchronously = true;
        }

        /// <summary>Nobody is going to ask for the result of a wait by this object any more.</summary>
        internal bool IsFree => Volatile.Read(ref free) != 0;

        /// <summary>The word that wakes it: 1 while it sleeps.</summary>
        internal uint* Word => end.WaitWord;

        /// <summary>When to look again even if nothing wakes it, by <see cref="Clock"/>.</summary>
        internal long Next { get; private set; }

        /// <summary>When it was looked at last.</summary>
        internal long Looked { get; private set; }

        internal ValueTask<bool> Task => new ValueTask<bool>(this, core.Version);

        /// <summary>Begins. To be followed by <see cref="Look"/>.</summary>
        internal void Begin(CancellationToken token)
        {
            free = 0;
            core.Reset();
            patience = Patience.Of(null, token);
            began = Clock.Nanoseconds;
        }

        /// <summary>
        /// Arms and looks, and ends the wait if it is over, which it says. woken: what it waits for is nearly always there, and
        /// only to sleep again must it arm first.
        /// </summary>
        internal bool Look(bool woken, long now)
        {
            Exception? e;
            bool over;
            try
            {
                over = end.LookAgain(woken, patience, out long longest, out e);
                Looked = now;
                Next = now + longest;
            }
            catch (Exception unexpected)
            {
                over = true;
                e = unexpected;
            }
            if (!over && e == null)
            {
                return false;
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
                woken = Futex.Wait(Word, 1, Math.Max(1, Next - Clock.Nanoseconds));
            }
            while (!Look(woken, Clock.Nanoseconds));
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
