using System;
using System.Collections.Generic;
using System.Diagnostics.CodeAnalysis;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// Between a listener's thread and the calls that ask it for a bus. Each bus, and each failure of this side, goes to exactly
    /// one of them. For any number of threads.
    /// </summary>
    internal sealed class AcceptQueue
    {
        private readonly string path;
        private readonly Signal signal;

        // All of it under the lock of the object.
        private readonly List<AcceptCall> calls = new List<AcceptCall>();
        private readonly Queue<Bus> buses = new Queue<Bus>();
        private readonly Queue<RamwayException> failures = new Queue<RamwayException>();
        private bool nudged;
        private volatile bool closed;

        /// <summary>The signal is raised whenever the thread has something to do.</summary>
        internal AcceptQueue(string path, Signal signal)
        {
            this.path = path;
            this.signal = signal;
        }

        /// <summary>For the thread: whether the listener is closed.</summary>
        internal bool Closed => closed;

        /// <summary>
        /// For the thread: whether a call waits for a bus or, once, has asked without waiting; ready is how many buses nobody has
        /// taken yet.
        /// </summary>
        internal bool Wanted(out bool nudged, out int ready)
        {
            lock (calls)
            {
                nudged = this.nudged;
                this.nudged = false;
                ready = buses.Count;
                // Those that were cancelled or have timed out.
                calls.RemoveAll(call => call.Task.IsCompleted);
                return calls.Count != 0;
            }
        }

        /// <summary>For the thread: as if a call had asked once more without waiting.</summary>
        internal void Nudge()
        {
            lock (calls)
            {
                nudged = true;
            }
            signal.Raise();
        }

        /// <summary>Hands a bus to a call, now or later.</summary>
        internal void Deliver(Bus bus)
        {
            lock (calls)
            {
                if (Give(call => call.TrySetResult(bus)))
                {
                    return;
                }
                if (!closed)
                {
                    buses.Enqueue(bus);
                    return;
                }
            }
            // Nobody will take it: the peer is told that we closed.
            bus.Dispose();
        }

        /// <summary>Tells one call, now or later, of a failure of this side.</summary>
        internal void Report(RamwayException e)
        {
            e = Errors.About(e, "accepting at", path);
            lock (calls)
            {
                if (!Give(call => call.TrySetException(e)))
                {
                    failures.Enqueue(e);
                }
            }
        }

        /// <summary>Under the lock: gives something to the first call that still takes it.</summary>
        private bool Give(Func<AcceptCall, bool> give)
        {
            while (calls.Count != 0)
            {
                AcceptCall call = calls[0];
                calls.RemoveAt(0);
                if (give(call))
                {
                    return true;
                }
            }
            return false;
        }

        /// <summary>Asks for the next bus, and waits for it unless it is there already.</summary>
        internal AcceptCall Ask(CancellationToken token)
        {
            var call = new AcceptCall(this);
            try
            {
                token.ThrowIfCancellationRequested();
                lock (calls)
                {
                    if (Next(out Bus? bus))
                    {
                        call.TrySetResult(bus);
                        return call;
                    }
                    calls.Add(call);
                    nudged = true;
                }
            }
            catch (OperationCanceledException)
            {
                call.TrySetCanceled(token);
                return call;
            }
            catch (RamwayException e)
            {
                call.TrySetException(e);
                return call;
            }
            signal.Raise();
            call.CancelWith(token);
            return call;
        }

        /// <summary>The next bus if it is there already. If not, those who have connected are served.</summary>
        internal bool TryTake([NotNullWhen(true)] out Bus? bus)
        {
            lock (calls)
            {
                if (Next(out bus))
                {
                    return true;
                }
                nudged = true;
            }
            signal.Raise();
            return false;
        }

        /// <summary>Ends every call. Later ones find that it is closed.</summary>
        internal void Close()
        {
            AcceptCall[] calls;
            Bus[] buses;
            lock (this.calls)
            {
                closed = true;
                calls = this.calls.ToArray();
                this.calls.Clear();
                buses = this.buses.ToArray();
                this.buses.Clear();
            }
            signal.Raise();
            foreach (AcceptCall call in calls)
            {
                call.TrySetException(Detached());
            }
            foreach (Bus bus in buses)
            {
                bus.Dispose();
            }
        }

        internal RamwayException TimedOut() => Errors.Fail(ErrorKind.TimedOut, "accepting at", path, null);

        private RamwayException Detached() => Errors.Fail(ErrorKind.Detached, "accepting at", path, "the listener is closed");

        /// <summary>Under the lock: what is there already.</summary>
        private bool Next([NotNullWhen(true)] out Bus? bus)
        {
            bus = null;
            if (closed)
            {
                throw Detached();
            }
            if (failures.Count != 0)
            {
                throw failures.Dequeue();
            }
            if (buses.Count == 0)
            {
                return false;
            }
            bus = buses.Dequeue();
            // There may be room for one more handshake.
            signal.Raise();
            return true;
        }
    }

    /// <summary>A call that asks for a bus. Exactly one of what can end its wait does.</summary>
    internal sealed class AcceptCall : TaskCompletionSource<Bus>
    {
        private readonly AcceptQueue queue;

        // Continuations run elsewhere: the listener's thread serves others, and holds the lock.
        internal AcceptCall(AcceptQueue queue)
            : base(TaskCreationOptions.RunContinuationsAsynchronously) => this.queue = queue;

        internal void CancelWith(CancellationToken token)
        {
            if (!token.CanBeCanceled)
            {
                return;
            }
            CancellationTokenRegistration registration = token.Register(() => TrySetCanceled(token));
            // A token that outlives many calls must not keep them all.
            Task.ContinueWith((_, kept) => ((CancellationTokenRegistration)kept!).Dispose(), registration,
                CancellationToken.None, TaskContinuationOptions.ExecuteSynchronously, TaskScheduler.Default);
        }

        /// <summary>Blocks for the result. A bus that comes when nobody waits for it any more is another call's.</summary>
        internal Bus Wait(WaitLimit deadline)
        {
            try
            {
                while (!Task.IsCompleted)
                {
                    long left = Math.Max(deadline.Left, 0);
                    int milliseconds = deadline.IsForever ? -1 : (int)Math.Min((left + 999_999) / 1_000_000, int.MaxValue);
                    if (System.Threading.Tasks.Task.WaitAny(new Task[] { Task }, milliseconds) < 0 && deadline.Passed)
                    {
                        TrySetException(queue.TimedOut());
                    }
                }
            }
            catch (ThreadInterruptedException)
            {
                if (!TrySetCanceled() && Task.Status == TaskStatus.RanToCompletion)
                {
                    queue.Deliver(Task.Result);
                }
                throw;
            }
            return Task.GetAwaiter().GetResult();
        }
    }
}
