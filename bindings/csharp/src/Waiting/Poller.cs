using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// Sleeps for all asynchronous waits of the process: one background thread for each 127 of them, by futex_waitv on their
    /// words, or, where the kernel refuses that (before Linux 5.16, or a policy; RAMWAY_READINESS=thread says so too), one for
    /// each by futex.
    /// </summary>
    internal sealed unsafe class Poller
    {
        /// <summary>Waits of one thread: one word is its own.</summary>
        private const int Most = Futex.WaitManyMax - 1;
        /// <summary>An hour.</summary>
        private const long Idle = 3_600_000_000_000;

        private static readonly List<Poller> All = new List<Poller>();
        private static volatile bool refused = Environment.GetEnvironmentVariable("RAMWAY_READINESS") == "thread";

        private readonly List<AsyncWait> arrived = new List<AsyncWait>();
        private readonly List<AsyncWait> waits = new List<AsyncWait>();
        // Of this process only, but the call takes shared words beside it. Changes with each arrival; never freed.
        private readonly uint* arrivals = (uint*)Marshal.AllocHGlobal(sizeof(uint));
        // How many waits are here or on their way. Under the lock of All.
        private int load;

        private Poller() => *arrivals = 0;

        /// <summary>Whether this kernel lets a thread sleep for several words at once. Asked once.</summary>
        internal static bool CanWaitForMany => !refused && Probed.Value;

        private static readonly Lazy<bool> Probed = new Lazy<bool>(() =>
        {
            uint word = 0;
            Futex.Waiter waiter = Word(&word, 1);
            // The word holds something else, so a kernel that knows the call says so at once.
            int result = Futex.WaitMany(&waiter, 1, 1);
            return result != -Errno.ENOSYS && result != -Errno.EPERM;
        });

        /// <summary>For tests: one thread for each wait from now on.</summary>
        internal static bool Refused
        {
            get => refused;
            set => refused = value;
        }

        /// <summary>Has a wait that has begun and is not over slept for.</summary>
        internal static void Add(AsyncWait wait)
        {
            if (refused)
            {
                Helpers.Run(wait);
                return;
            }
            lock (All)
            {
                Poller? poller = All.Find(p => p.load < Most);
                if (poller == null)
                {
                    poller = new Poller();
                    new Thread(poller.Run) { IsBackground = true, Name = "ramway poller" }.Start();
                    All.Add(poller);
                }
                poller.load++;
                poller.arrived.Add(wait);
                Volatile.Write(ref *poller.arrivals, *poller.arrivals + 1);
                Futex.WakeAll(poller.arrivals);
            }
        }

        private void Run()
        {
            Futex.Waiter* words = stackalloc Futex.Waiter[Futex.WaitManyMax];
            for (;;)
            {
                uint seen = Volatile.Read(ref *arrivals);
                TakeArrived();
                long next = CheckAll();
                for (int i = 0; i < waits.Count; i++)
                {
                    words[i] = Word(waits[i].Word, waits[i].Armed);
                }
                words[waits.Count] = Word(arrivals, seen);
                int result = Futex.WaitMany(words, waits.Count + 1, Math.Max(1, next - Clock.Nanoseconds));
                if (result == -Errno.ENOSYS || result == -Errno.EPERM)
                {
                    refused = true;
                    HandOver();
                    return;
                }
                if (result < 0 && result != -Errno.EAGAIN && result != -Errno.EINTR && result != -Errno.ETIMEDOUT)
                {
                    // Out of kernel memory, say: it must not become a busy loop.
                    Thread.Sleep(1);
                }
            }
        }

        internal static Futex.Waiter Word(uint* word, uint expected) => new Futex.Waiter
        {
            Address = (ulong)word,
            Expected = expected,
            Flags = Futex.WaitShared,
        };

        private void TakeArrived()
        {
            lock (All)
            {
                waits.AddRange(arrived);
                arrived.Clear();
            }
        }

        /// <summary>Checks the waits whose word has changed or whose time has come. When to check again.</summary>
        private long CheckAll()
        {
            int kept = 0, count = waits.Count;
            // Without waits only an arrival ends the sleep.
            long now = Clock.Nanoseconds, next = now + (count == 0 ? Idle : Facts.PollIntervalNanos);
            for (int i = 0; i < count; i++)
            {
                AsyncWait wait = waits[i];
                bool woken = Volatile.Read(ref *wait.Word) != wait.Armed;
                // Those that are nearly due are checked along with them, so that many waits make few sleeps.
                if ((woken || wait.Next - now < (wait.Next - wait.Checked) / 4) && wait.Check(woken, now))
                {
                    continue;
                }
                next = Math.Min(next, wait.Next);
                waits[kept++] = wait;
            }
            if (kept != count)
            {
                waits.RemoveRange(kept, count - kept);
                lock (All)
                {
                    load -= count - kept;
                }
            }
            return next;
        }

        private void HandOver()
        {
            lock (All)
            {
                // A wait that is added now has seen that this one is refused, or is in arrived.
                All.Remove(this);
                waits.AddRange(arrived);
            }
            waits.ForEach(Helpers.Run);
        }

        /// <summary>Threads that each sleep for one wait after another, and end when there was none for a while.</summary>
        private static class Helpers
        {
            private const int IdleMilliseconds = 10_000;

            // The waits that no thread has taken yet; there is a thread, resting or new, for each.
            private static readonly Queue<AsyncWait> Waits = new Queue<AsyncWait>();
            private static int resting;

            internal static void Run(AsyncWait wait)
            {
                lock (Waits)
                {
                    Waits.Enqueue(wait);
                    if (resting >= Waits.Count)
                    {
                        Monitor.Pulse(Waits);
                        return;
                    }
                }
                new Thread(Serve) { IsBackground = true, Name = "ramway waiter" }.Start();
            }

            private static void Serve()
            {
                while (Next() is AsyncWait wait)
                {
                    wait.Sleep();
                }
            }

            private static AsyncWait? Next()
            {
                lock (Waits)
                {
                    resting++;
                    bool inTime = true;
                    while (Waits.Count == 0 && inTime)
                    {
                        inTime = Monitor.Wait(Waits, IdleMilliseconds);
                    }
                    resting--;
                    Waits.TryDequeue(out AsyncWait? wait);
                    return wait;
                }
            }
        }
    }
}
