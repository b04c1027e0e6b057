using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    // Waiting: spin for a bounded time, then sleep, without ever missing a wake-up and without a fence on the waker's hot path
    // (ABI.md, section 7).
    public abstract unsafe partial class RingEnd
    {
        /// <summary>
        /// The longest sleep before another look at whether the peer lives, in nanoseconds. A blocked side learns of a death
        /// within two rounds.
        /// </summary>
        internal const long Round = 100_000_000;
        /// <summary>The longest sleep where the waker does not fence and this side cannot make it.</summary>
        private const long UnorderedRound = 1_000_000;
        /// <summary>A wait with a sleep that was over so soon after it began would have been better spent spinning.</summary>
        private const long ShortWait = 110_000;
        /// <summary>So many looks go by before the spin asks whether it was called off: about 1 µs.</summary>
        private const int Chunk = 40;

        private protected readonly Waiter wait;

        /// <summary>The peer's position, and what was last seen in it.</summary>
        private protected abstract ulong* Position(out ulong seen);

        /// <summary>Whether the wait is over, after a look at the shared position; or an error, and then false.</summary>
        private protected abstract bool Ready(out Exception? e);

        /// <summary>
        /// Asked while <see cref="Ready"/> says false: how the ring has ended, if it has. look: system calls may be spent on
        /// whether the peer lives.
        /// </summary>
        private protected abstract RamwayException? Ended(bool look);

        /// <summary>Whether the peer that this side waits for has closed in an orderly way.</summary>
        private protected abstract bool PeerClosed();

        /// <summary>Blocks until it is ready, with null, or there is nothing to wait for any more.</summary>
        private protected Exception? Until(in Patience patience)
        {
            Exception? e = Await(patience);
            if (e is RamwayException late && late.Kind == ErrorKind.TimedOut)
            {
                // However short the time is, an end is told before a time-out: who polls by time-outs must learn of it too.
                return Decide(Moment(), out Exception? end) ? null : end ?? e;
            }
            return e;
        }

        private Exception? Await(in Patience patience)
        {
            Exception? e = CalledOff(patience);
            long began = Clock.Nanoseconds;
            if (e != null || Spin(patience, out e) || e != null)
            {
                return e;
            }
            return Sleep(patience, began);
        }

        /// <summary>Why a wait must not go on, if there is a reason.</summary>
        private protected Exception? CalledOff(in Patience patience)
        {
            if (gate.IsClosed)
            {
                return Fail(ErrorKind.Detached);
            }
            if (patience.Token.IsCancellationRequested)
            {
                return new OperationCanceledException(patience.Token);
            }
            return patience.Left <= 0 ? Fail(ErrorKind.TimedOut) : null;
        }

        /// <summary>Looks for a bounded time, and forever in mode Spin. True: ready.</summary>
        private bool Spin(in Patience patience, out Exception? e)
        {
            if (Ready(out e) || e != null)
            {
                return e == null;
            }
            if (!wait.Spins)
            {
                return false;
            }
            for (int spent = Chunk; ; spent += Chunk)
            {
                ulong* word = Position(out ulong seen);
                if (Await(word, seen) && (Ready(out e) || e != null))
                {
                    wait.SpinMore();
                    return e == null;
                }
                e = CalledOff(patience);
                if (e != null)
                {
                    return false;
                }
                if (wait.Mode == WaitMode.Hybrid)
                {
                    if (spent >= wait.Budget)
                    {
                        return false;
                    }
                }
                else if (spent >= Waiter.SpinMax)
                {
                    spent = 0;
                    if (Decide(Moment(), out e) || e != null)
                    {
                        return e == null;
                    }
                    // The peer may be bound to this processor, and would not run before the end of our time slice.
                    Thread.Yield();
                }
            }
        }

        /// <summary>Looks at a word until it is not seen any more, true, or <see cref="Chunk"/> times. Acquire.</summary>
        private static bool Await(ulong* word, ulong seen)
        {
            Cpu.Pauses();
            for (int looks = Chunk; ; looks--)
            {
                if (Volatile.Read(ref *word) != seen)
                {
                    return true;
                }
                if (looks == 0)
                {
                    return false;
                }
                Cpu.Pause();
            }
        }

        /// <summary>The rest of the wait.</summary>
        private Exception? Sleep(in Patience patience, long began)
        {
            wait.Watch(patience.Token);
            try
            {
                for (;;)
                {
                    long longest = Arm();
                    if (Decide(Moment(), out Exception? e) || e != null)
                    {
                        return e;
                    }
                    e = CalledOff(patience);
                    if (e != null)
                    {
                        return e;
                    }
                    // What it was woken for is nearly always there. Only to sleep again must it arm first, which costs a
                    // membarrier.
                    if (Futex.Wait(&mine->Wait, 1, Math.Max(1, Math.Min(longest, patience.Left))) && (Ready(out e) || e != null))
                    {
                        return e;
                    }
                }
            }
            finally
            {
                Disarm(began);
            }
        }

        /// <summary>
        /// One look: true for ready, or how it ended. What was committed before the end is delivered before the end is.
        /// </summary>
        private protected bool Decide(bool look, out Exception? e)
        {
            if (Ready(out e) || e != null)
            {
                return e == null;
            }
            RamwayException? end = Ended(look);
            if (end == null)
            {
                if (look)
                {
                    wait.Suspect = false;
                }
                return false;
            }
            // A dead peer is still dead at the next call, and a vanished name still gone.
            wait.Suspect = true;
            // The second look: the flag or the free lock was seen after Ready had looked.
            if (Ready(out e) || e != null)
            {
                return e == null;
            }
            e = end;
            return false;
        }

        /// <summary>
        /// Steps 1 and 2 of the sleep: store 1, then order that store before the look that follows. How long the sleep may last.
        /// </summary>
        private protected long Arm()
        {
            Volatile.Write(ref mine->Wait, 1);
            if (can)
            {
                if (Membarrier.Now())
                {
                    return Round;
                }
                // It worked once and does not now (a seccomp filter was installed since): tell the waker to fence again.
                can = false;
                Volatile.Write(ref mine->Flags, Volatile.Read(ref mine->Flags) & ~Layout.RoleCan);
            }
            Interlocked.MemoryBarrier();
            return (Volatile.Read(ref peer->Flags) & Layout.RolePlain) != 0 ? UnorderedRound : Round;
        }

        /// <summary>
        /// Leaves the wait, and learns from how long it took. A waker that still sees 1 makes one call too many.
        /// </summary>
        private protected void Disarm(long began)
        {
            Volatile.Write(ref mine->Wait, 0);
            if (Clock.Nanoseconds - began < ShortWait)
            {
                wait.SpinMore();
            }
            else
            {
                wait.SpinLess();
            }
        }
    }
}
