using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// How a thread waits that serves several ends of rings at once: it polls for a bounded time, then sleeps on all of their words and
    /// on one of its own, by which other threads wake it. One thread at a time waits; any may <see cref="Nudge"/>.
    /// </summary>
    /// <remarks>
    /// Where the kernel cannot sleep on several words, it sleeps on the first end's word, for at most a millisecond if there are others,
    /// and a nudge goes to that end: then there is one thread for each connection.
    /// </remarks>
    internal sealed unsafe class PumpWait
    {
        private const long Millisecond = 1_000_000;
        private const int PausesOfYield = 16;

        /// <summary>How many ends one thread serves.</summary>
        internal static int MostEnds => Poller.CanWaitForMany ? Futex.WaitManyMax - 1 : 2;

        // Of this process only, but the call takes shared words beside it. Freed with this object, which whoever nudges has.
        private readonly uint* word = (uint*)Marshal.AllocHGlobal(sizeof(uint));
        // It knows how long to poll. It has no word: nothing interrupts it.
        private readonly Waiter budget;
        private readonly bool many = Poller.CanWaitForMany;
        // A sleeper stores the first and loads the second, a nudge the other way round, each with a fence in between.
        private int sleeping;
        private int nudged;
        private RingEnd? slept;

        internal PumpWait(WaitMode mode)
        {
            *word = 0;
            budget = new Waiter(mode, null);
        }

        ~PumpWait() => Marshal.FreeHGlobal((IntPtr)word);

        /// <summary>Ends the sleep that goes on or is about to begin, until <see cref="Clear"/>.</summary>
        internal void Nudge()
        {
            Volatile.Write(ref nudged, 1);
            Interlocked.MemoryBarrier();
            if (Volatile.Read(ref sleeping) == 0)
            {
                return;
            }
            Volatile.Write(ref *word, 0);
            Futex.WakeAll(word);
            if (!many)
            {
                Volatile.Read(ref slept)?.Interrupt();
            }
        }

        /// <summary>Before a check of what the nudges are about.</summary>
        internal void Clear()
        {
            Volatile.Write(ref nudged, 0);
            // What is looked at is loaded after that store.
            Interlocked.MemoryBarrier();
        }

        /// <summary>
        /// Waits until one of the ends may proceed, somebody nudges, or the time has come; it may end before. The ends are this
        /// thread's.
        /// </summary>
        /// <param name="ends">What is waited for.</param>
        /// <param name="until">When to stop, by <see cref="Clock"/>.</param>
        /// <param name="working">Other threads of this process are at work for what is waited for: where it has one processor, polling
        /// lets them have it. For a handler of the thread pool a call takes 4 to 12 µs with that, and 85 to 140 without.</param>
        internal void Idle(List<RingEnd> ends, long until, bool working = false)
        {
            if (budget.Spins && Spin(ends, until, working && Cpu.Bound))
            {
                return;
            }
            long began = Clock.Nanoseconds;
            Arm(ends, out long longest);
            if (Volatile.Read(ref nudged) == 0 && !MayProceed(ends) && until > began)
            {
                Sleep(ends, Math.Min(longest, until - began));
            }
            Volatile.Write(ref sleeping, 0);
            foreach (RingEnd end in ends)
            {
                end.EndSleep();
            }
            budget.Learn(Clock.Nanoseconds - began);
        }

        /// <summary>True: there may be something.</summary>
        private bool Spin(List<RingEnd> ends, long until, bool yields)
        {
            // A system call takes about as long as this number of pauses.
            int step = yields ? PausesOfYield : 1;
            for (int spent = 0; ; spent += step)
            {
                // What comes is read at once: its line is asked for together with that of the position, as the core does it.
                if (MayProceed(ends) || Volatile.Read(ref nudged) != 0)
                {
                    budget.SpinMore();
                    return true;
                }
                foreach (RingEnd end in ends)
                {
                    end.ReadAhead();
                }
                if (budget.Mode == WaitMode.Spin ? spent >= Facts.PollsPerCheck : spent >= budget.Budget)
                {
                    break;
                }
                if (yields)
                {
                    Thread.Yield();
                }
                else
                {
                    Cpu.Pause();
                }
            }
            if (budget.Mode == WaitMode.Spin)
            {
                // A peer may be bound to this processor.
                Thread.Yield();
                return true;
            }
            return Clock.Nanoseconds >= until;
        }

        private static bool MayProceed(List<RingEnd> ends)
        {
            foreach (RingEnd end in ends)
            {
                if (end.MayProceed)
                {
                    return true;
                }
            }
            return false;
        }

        /// <summary>Says that all are about to sleep, and orders that before the checks that follow.</summary>
        private void Arm(List<RingEnd> ends, out long longest)
        {
            Volatile.Write(ref slept, ends.Count == 0 ? null : ends[0]);
            Volatile.Write(ref *word, 1);
            Volatile.Write(ref sleeping, 1);
            bool membarrier = false;
            foreach (RingEnd end in ends)
            {
                end.BeginSleep();
                membarrier |= end.NeedsMembarrier;
            }
            if (membarrier && !Membarrier.Now())
            {
                // It worked once and does not now: a policy was installed since.
                foreach (RingEnd end in ends)
                {
                    if (end.NeedsMembarrier)
                    {
                        end.LoseMembarrier();
                    }
                }
            }
            Interlocked.MemoryBarrier();
            longest = ends.Count == 0 ? long.MaxValue : Facts.PollIntervalNanos;
            foreach (RingEnd end in ends)
            {
                longest = Math.Min(longest, end.LongestSleep);
            }
        }

        private void Sleep(List<RingEnd> ends, long nanoseconds)
        {
            // An hour: the kernel takes no more than it can add to its clock.
            nanoseconds = Math.Min(nanoseconds, 3_600_000 * Millisecond);
            if (!many && ends.Count == 0)
            {
                Futex.Wait(word, 1, nanoseconds);
                return;
            }
            if (!many)
            {
                RingEnd end = ends[0];
                Futex.Wait(end.WaitWord, end.Armed, ends.Count == 1 ? nanoseconds : Math.Min(nanoseconds, Millisecond));
                return;
            }
            Futex.Waiter* words = stackalloc Futex.Waiter[Futex.WaitManyMax];
            int count = 0;
            foreach (RingEnd end in ends)
            {
                words[count++] = Poller.Word(end.WaitWord, end.Armed);
            }
            words[count++] = Poller.Word(word, 1);
            int result = Futex.WaitMany(words, count, nanoseconds);
            if (result < 0 && result != -Errno.EAGAIN && result != -Errno.EINTR && result != -Errno.ETIMEDOUT)
            {
                // Out of kernel memory, say: it must not become a busy loop.
                Thread.Sleep(1);
            }
        }
    }
}
