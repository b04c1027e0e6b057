using System;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    // Waiting without holding a thread.
    public abstract unsafe partial class RingEnd
    {
        private AsyncWait? asyncWait;

        /// <summary>This role's wait word; the caller is inside the gate.</summary>
        internal uint* WaitWord => &mine->Wait;

        /// <summary>
        /// Begins to wait, inside the gate, after a look has found nothing. The gate is left when the wait is over: true for ready.
        /// </summary>
        private protected ValueTask<bool> BeginWait(CancellationToken token)
        {
            AsyncWait? pending = asyncWait;
            if (pending == null || !pending.IsFree)
            {
                asyncWait = pending = new AsyncWait(this);
            }
            wait.Watch(token);
            pending.Begin(token);
            ValueTask<bool> task = pending.Task;
            if (!pending.Look(false, Sys.Clock.Nanoseconds))
            {
                Poller.Add(pending);
            }
            return task;
        }

        /// <summary>
        /// One look of an asynchronous wait: true for ready, or why it is over. longest: how long to sleep before the next one.
        /// </summary>
        internal bool LookAgain(bool woken, in Patience patience, out long longest, out Exception? e)
        {
            longest = 0;
            e = null;
            if (seeking)
            {
                longest = Arm();
                if (FindPeer(out e) != 0 || e != null)
                {
                    return e == null;
                }
                e = CalledOff(patience);
                return false;
            }
            if (woken && (Ready(out e) || e != null))
            {
                return e == null;
            }
            longest = Arm();
            if (Decide(Moment(), out e) || e != null)
            {
                return e == null;
            }
            e = CalledOff(patience);
            return false;
        }

        /// <summary>
        /// Ends an asynchronous wait and leaves the gate. Gives what its task gives, or leaves the error to be thrown instead.
        /// </summary>
        internal bool Leave(long began, ref Exception? e)
        {
            Disarm(began);
            bool result = seeking ? e == null : Conclude(ref e);
            seeking = false;
            gate.Leave();
            return result;
        }

        /// <summary>The result of a wait that is over; an end of the stream is no error here.</summary>
        private protected abstract bool Conclude(ref Exception? e);

        private protected static ValueTask<bool> Failed(Exception e) => new ValueTask<bool>(
            e is OperationCanceledException cancelled && cancelled.CancellationToken.IsCancellationRequested
                ? Task.FromCanceled<bool>(cancelled.CancellationToken)
                : Task.FromException<bool>(e));
    }
}
