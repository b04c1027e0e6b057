using System;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    // Waiting: spin for a bounded time, then sleep, without ever missing a wake-up and without a fence on the waker's hot path
    // (ABI.md, section 7). null is "ready", NotNow "not yet", anything else how the wait fails.
    public abstract unsafe partial class RingEnd
    {
        private protected readonly Waiter wait;

        /// <summary>
        /// When a call of this handle last asked the kernel whether the peer lives. The handle's, not the call's: a program that
        /// polls by calls that are shorter than a poll interval must learn of a death too.
        /// </summary>
        private long kernelAsked;

        private AsyncWait? asyncWait;

        /// <summary>How blocking calls of this handle wait from now on.</summary>
        public WaitMode WaitMode
        {
            get => wait.Mode;
            set
            {
                if (Waiter.Refusal(value) is string refusal)
                {
                    throw Fail(ErrorKind.InvalidArgument, refusal);
                }
                bool wasOut = EnterBeside();
                wait.Mode = value;
                LeaveBeside(wasOut);
            }
        }

        /// <summary>The peer's position, and what was last seen in it.</summary>
        private protected abstract ulong* Position(out ulong seen);

        /// <summary>Checks the shared position once for what the call is about: messages, or room.</summary>
        private protected abstract Exception? Ready();

        /// <summary>What a call wants is fixed, or refused, before anything is waited for.</summary>
        private protected virtual Exception? Prepare() => null;

        /// <summary>The general way to what a call is about, inside the guard.</summary>
        private protected Exception? Obtain(in WaitLimit limit)
        {
            if (guard.IsShut)
            {
                return Refused();
            }
            Exception? e = Prepare() ?? Ready();
            if (e != NotNow)
            {
                return e;
            }
            BeforeWait();
            e = limit.IsNone ? NotNow : Wait(limit);
            if (e == NotNow || e is RamwayException late && late.Kind == ErrorKind.TimedOut)
            {
                // However short the time is, an end is told before a time-out: who polls by time-outs must learn of it too. The
                // closed flag is checked every time, system calls for the peer's life are made every 100 ms.
                Exception? end = Decide(IsTimeToAskKernel());
                e = end != NotNow ? end : e;
            }
            return RecordEnd(e);
        }

        /// <summary><see cref="Obtain"/>, and what a role does with it.</summary>
        private protected virtual Exception? Take(in WaitLimit limit) => Obtain(limit);

        /// <summary>
        /// What a call does that has not succeeded at once: true, and inside the guard, if it succeeds after all. Otherwise it has
        /// left: false where it does not wait and there is nothing now.
        /// </summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private protected bool TakeSlow(in WaitLimit limit)
        {
            Exception? e;
            guard.Enter();
            try
            {
                e = Take(limit);
            }
            catch
            {
                LeaveEmpty();
                throw;
            }
            if (e == null)
            {
                return true;
            }
            LeaveEmpty();
            return e == NotNow ? false : throw e;
        }

        /// <summary>Blocks until it is ready, or there is nothing to wait for any more.</summary>
        private Exception? Wait(in WaitLimit limit)
        {
            Exception? e = CalledOff(limit);
            if (e != null)
            {
                return e;
            }
            long began = Clock.Nanoseconds;
            e = Spin(limit);
            return e == NotNow ? Sleep(limit, began) : e;
        }

        /// <summary>Why a wait must not go on; null: it may.</summary>
        private protected Exception? CalledOff(in WaitLimit limit)
        {
            if (guard.IsClosed)
            {
                return Fail(ErrorKind.Detached);
            }
            if (limit.Token.IsCancellationRequested)
            {
                return new OperationCanceledException(limit.Token);
            }
            return limit.Passed ? Fail(ErrorKind.TimedOut) : null;
        }

        /// <summary>Polls for a bounded time, and without a bound in mode Spin.</summary>
        private Exception? Spin(in WaitLimit limit)
        {
            Exception? e = Ready();
            if (e != NotNow || !wait.Spins)
            {
                return e;
            }
            for (int spent = Facts.PollsPerCancelCheck; ; spent += Facts.PollsPerCancelCheck)
            {
                ulong* word = Position(out ulong seen);
                if (Waiter.Changes(word, seen, Facts.PollsPerCancelCheck) && (e = Ready()) != NotNow)
                {
                    wait.SpinMore();
                    return e;
                }
                e = CalledOff(limit);
                if (e != null)
                {
                    return e;
                }
                if (wait.Mode == WaitMode.Hybrid)
                {
                    if (spent >= wait.Budget)
                    {
                        return NotNow;
                    }
                }
                else if (spent >= Facts.PollsPerCheck)
                {
                    spent = 0;
                    e = Decide(IsTimeToAskKernel());
                    if (e != NotNow)
                    {
                        return e;
                    }
                    // The peer may be bound to this processor, and would not run before the end of our time slice.
                    Thread.Yield();
                }
            }
        }

        /// <summary>Sleeps in turns until the wait is over. It is the loop of every wait that holds a thread.</summary>
        private Exception? Sleep(in WaitLimit limit, long began)
        {
            wait.Watch(limit.Token);
            try
            {
                for (bool woken = false; ;)
                {
                    Exception? e = Turn(woken, limit, out long longest);
                    if (e != NotNow)
                    {
                        return e;
                    }
                    woken = Futex.Wait(ownWait, Armed, Math.Max(1, Math.Min(longest, limit.Left)));
                }
            }
            finally
            {
                Disarm(began);
            }
        }

        /// <summary>
        /// What every wait does between two sleeps, with or without a thread: arm, then check again. NotNow: sleep on the armed
        /// word, for at most longest nanoseconds. woken: what it waits for is nearly always there, and only to sleep again must it
        /// arm first, which costs a membarrier.
        /// </summary>
        internal Exception? Turn(bool woken, in WaitLimit limit, out long longest)
        {
            longest = 0;
            Exception? e = woken ? Reached() : NotNow;
            if (e != NotNow)
            {
                return e;
            }
            longest = Arm();
            e = Decide(seeksPeer || IsTimeToAskKernel());
            return e == NotNow ? CalledOff(limit) ?? NotNow : e;
        }

        /// <summary>Whether a turn has said that the wait goes on.</summary>
        internal static bool IsPending(Exception? e) => e == NotNow;

        /// <summary>Whether that is there which the call waits for.</summary>
        private Exception? Reached() => seeksPeer ? PeerFound() : Ready();

        /// <summary>
        /// One check of what the call waits for, and of how the ring has ended. What was committed before the end is delivered before
        /// the end is.
        /// </summary>
        private protected Exception? Decide(bool askKernel)
        {
            Exception? e = Reached();
            if (e != NotNow)
            {
                return e;
            }
            RamwayException? end = seeksPeer ? NoPeerCan() : Ended(askKernel);
            if (end == null)
            {
                wait.CheckAgain &= seeksPeer || !askKernel;
                return NotNow;
            }
            // A dead peer is still dead at the next call, and a vanished name still gone.
            wait.CheckAgain = true;
            // The second check: the flag or the free lock was seen after the first.
            e = Reached();
            return e != NotNow ? e : end;
        }

        /// <summary>
        /// Whether it is time again to ask the kernel whether the peer lives: after a poll interval, and at once where the ring had
        /// ended at the last check.
        /// </summary>
        private bool IsTimeToAskKernel()
        {
            long now = Clock.Nanoseconds;
            if (now - kernelAsked < Facts.PollIntervalNanos && !wait.CheckAgain)
            {
                return false;
            }
            kernelAsked = now;
            return true;
        }

        /// <summary>
        /// Steps 1 and 2 of the sleep: say so, then order that store before the check that follows. How long the sleep may last.
        /// </summary>
        private long Arm()
        {
            Armed = SayAsleep(out long longest);
            if (membarrierCapable)
            {
                if (Membarrier.Now())
                {
                    return longest;
                }
                // It worked once and does not now (a seccomp filter was installed since): tell the waker to fence again.
                membarrierCapable = false;
                Volatile.Write(ref *ownFlags, Volatile.Read(ref *ownFlags) & ~Facts.RoleMembarrierCapable);
                FlagsChanged();
            }
            Interlocked.MemoryBarrier();
            return WakersDoNotFence ? Math.Min(longest, Facts.UnorderedIntervalNanos) : longest;
        }

        /// <summary>What the armed word holds until somebody wakes: a sleep is on this value.</summary>
        internal uint Armed { get; private set; } = 1;

        /// <summary>Says that this side is about to sleep, and gives the value to sleep on. longest: at most so long, in ns.</summary>
        private protected virtual uint SayAsleep(out long longest)
        {
            longest = Facts.PollIntervalNanos;
            Volatile.Write(ref *ownWait, 1);
            return 1;
        }

        /// <summary>Says that it sleeps no more. A waker that still sees the word armed makes one call too many.</summary>
        private protected virtual void SayAwake() => Volatile.Write(ref *ownWait, 0);

        /// <summary>Makes the other side load this side's flags, where it does not do so each time.</summary>
        private protected virtual void FlagsChanged()
        {
        }

        /// <summary>Whether a side that cannot make up for a fence that its waker leaves out may miss a wake-up.</summary>
        private protected virtual bool WakersDoNotFence => (Volatile.Read(ref peer->Flags) & Facts.RoleFenceFree) != 0;

        /// <summary>Leaves the wait, and learns from how long it took.</summary>
        private void Disarm(long began)
        {
            SayAwake();
            if (!seeksPeer)
            {
                wait.Learn(Clock.Nanoseconds - began);
            }
        }

        /// <summary>This role's wait word; the caller is inside the guard.</summary>
        internal uint* WaitWord => ownWait;

        /// <summary>
        /// Waits without holding a thread, inside the guard, which is left when the wait is over: true for ready, false for closed.
        /// </summary>
        private protected ValueTask<bool> WaitLater(CancellationToken token)
        {
            Exception? e;
            try
            {
                e = Obtain(WaitLimit.None);
                if (e == NotNow)
                {
                    return BeginWait(token);
                }
            }
            catch
            {
                guard.Leave();
                throw;
            }
            guard.Leave();
            return IsClose(e) ? new ValueTask<bool>(false) : e == null ? new ValueTask<bool>(true) : Failed(e);
        }

        /// <summary>Begins to wait, inside the guard, after a check has found nothing.</summary>
        private ValueTask<bool> BeginWait(CancellationToken token)
        {
            AsyncWait? pending = asyncWait;
            if (pending == null || !pending.IsFree)
            {
                asyncWait = pending = new AsyncWait(this);
            }
            wait.Watch(token);
            pending.Begin(token);
            ValueTask<bool> task = pending.Task;
            if (!pending.Check(false, Clock.Nanoseconds))
            {
                Poller.Add(pending);
            }
            return task;
        }

        /// <summary>
        /// Ends an asynchronous wait and leaves the guard. Gives what its task gives, or leaves the error to be thrown instead.
        /// </summary>
        internal bool Leave(long began, ref Exception? e)
        {
            Disarm(began);
            if (seeksPeer)
            {
                LeaveSeek();
                return e == null;
            }
            e = RecordEnd(e);
            bool ready = e == null;
            if (IsClose(e))
            {
                e = null;
            }
            guard.Leave();
            return ready;
        }

        /// <summary>The end of a stream, which is no error for an asynchronous wait.</summary>
        private static bool IsClose(Exception? e) => e is RamwayException end && end.Kind == ErrorKind.Closed;

        private protected static ValueTask<bool> Failed(Exception e) => new ValueTask<bool>(
            e is OperationCanceledException cancelled && cancelled.CancellationToken.IsCancellationRequested
                ? Task.FromCanceled<bool>(cancelled.CancellationToken)
                : Task.FromException<bool>(e));
    }
}
