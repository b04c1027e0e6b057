using System;
using System.Collections.Generic;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    // Notifications (ABI.md, section 9). The word: bit 0: a handle sleeps on it, the rest counts.
    public sealed unsafe partial class Region
    {
        // The word is an int, for Interlocked.
        private const int Waiting = (int)Facts.NotifyWaiting, One = (int)Facts.NotifyOne;

        private readonly List<Sleeper> sleepers = new List<Sleeper>();
        // The count that the last Wait or TryWait without an argument returned for; an int for Interlocked.
        private int seen;

        private ref int NotifyWord => ref mapping.Region->Notify;

        /// <summary>A call that waits.</summary>
        private sealed class Sleeper
        {
            /// <summary>Whether it may be asleep, or about to be.</summary>
            internal volatile bool Asleep;
        }

        /// <summary>
        /// A number that changes with each notification, for <see cref="Wait(uint, TimeSpan?, CancellationToken)"/>.
        /// </summary>
        /// <exception cref="RamwayException">Detached after Dispose.</exception>
        public uint Count
        {
            get
            {
                Enter(nameof(Count));
                uint count = Now();
                Leave();
                return count;
            }
        }

        /// <summary>
        /// The notifications so far (an even number, wrapping), and all that their senders wrote before them: acquire, which pairs
        /// with the full fence in Notify. The caller keeps the mapping.
        /// </summary>
        private uint Now() => (uint)Volatile.Read(ref NotifyWord) & ~(uint)Waiting;

        /// <summary>
        /// Tells everyone who waits that something has changed, after everything that this thread wrote before. It never blocks, and
        /// makes a system call only if a handle sleeps.
        /// </summary>
        /// <exception cref="RamwayException">PermissionDenied on a read-only handle, Detached after Dispose.</exception>
        public void Notify()
        {
            EnterWriting(nameof(Notify));
            // A full fence: a handle that acquires the count sees what was written before.
            if ((Interlocked.Add(ref NotifyWord, One) & Waiting) != 0)
            {
                // The bit goes first: a waiter that sets it again from now on sleeps on a value that has this notification in it.
                for (;;)
                {
                    int value = Volatile.Read(ref NotifyWord);
                    if (Interlocked.CompareExchange(ref NotifyWord, value & ~Waiting, value) == value)
                    {
                        break;
                    }
                }
                WakeAll();
            }
            Leave();
        }

        private void WakeAll() => Futex.WakeAll((uint*)&mapping.Region->Notify);

        /// <summary>
        /// Blocks until a notification: returns if there was a notification since the last call of this handle that returned for
        /// one, or since the handle was opened, even if it came before this call; any number of them count as one. Threads that must
        /// each see every notification open a handle each, or use the Wait that is given a count. A read-only handle cannot be woken
        /// and checks every millisecond instead.
        /// </summary>
        /// <param name="timeout">How long to wait at most; null: forever.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">
        /// TimedOut; Closed if the region's name was removed while this waited (no one can join any more); Detached when the handle
        /// is closed.
        /// </exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void Wait(TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            uint count = Wait((uint)Volatile.Read(ref seen), timeout, cancellationToken);
            Volatile.Write(ref seen, (int)count);
        }

        /// <summary>
        /// <see cref="Wait(TimeSpan?, CancellationToken)"/> without waiting: whether there was a notification.
        /// </summary>
        /// <exception cref="RamwayException">Detached after Dispose.</exception>
        public bool TryWait()
        {
            int count = (int)Count;
            return Interlocked.Exchange(ref seen, count) != count;
        }

        /// <summary>
        /// Blocks until <see cref="Count"/> differs from what was seen, and returns it. For several threads on one handle; 2^31
        /// notifications meanwhile look like none.
        /// </summary>
        /// <param name="seen">What <see cref="Count"/>, or an earlier Wait, returned.</param>
        /// <param name="timeout">How long to wait at most; null: forever.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">As for <see cref="Wait(TimeSpan?, CancellationToken)"/>.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public uint Wait(uint seen, TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            using Use use = Enter(nameof(Wait));
            uint now = Now();
            if (now != seen)
            {
                return now;
            }
            WaitLimit limit = WaitLimit.Of(timeout, cancellationToken);
            if (Spin(seen, limit, out now))
            {
                return now;
            }
            Exception? e = Sleep(seen, limit, out now);
            return e == null ? now : throw e;
        }

        /// <summary>Why a wait must not go on; null: it may. gone: the name has been seen gone.</summary>
        private Exception? CalledOff(bool gone, in WaitLimit limit)
        {
            if (gone)
            {
                return Errors.Fail(ErrorKind.Closed, "waiting for the region", Name,
                    "the region's name was removed while this handle waited; nobody can open it any more");
            }
            if (IsClosing)
            {
                return Closed(nameof(Wait));
            }
            if (limit.Token.IsCancellationRequested)
            {
                return new OperationCanceledException(limit.Token);
            }
            return limit.Passed ? Errors.Fail(ErrorKind.TimedOut, "waiting for the region", Name, null) : null;
        }

        /// <summary>
        /// Polls for as long as the handle's mode says. False: what ends the wait, if anything does, is told by the sleep that
        /// follows.
        /// </summary>
        private bool Spin(uint seen, in WaitLimit limit, out uint now)
        {
            now = seen;
            if (!Waiter.ShouldSpin(mode))
            {
                return false;
            }
            long start = Clock.Nanoseconds;
            for (int polls = 1; ; polls++)
            {
                Cpu.Pause();
                now = Now();
                if (now != seen)
                {
                    return true;
                }
                if (polls % 16 != 0)
                {
                    continue;
                }
                long passed = Clock.Nanoseconds - start;
                if (mode == WaitMode.Hybrid && passed >= Facts.RegionSpinNanos || CalledOff(false, limit) != null)
                {
                    return false;
                }
                if (passed >= Facts.PollIntervalNanos)
                {
                    if (mapping.Link.Vanished())
                    {
                        return false;
                    }
                    start = Clock.Nanoseconds;
                }
            }
        }

        private bool IsClosing => Interlocked.Read(ref users) < 0;

        /// <summary>Sleeps until the count differs from what was seen: null; or gives why the wait ended without that.</summary>
        private Exception? Sleep(uint seen, in WaitLimit limit, out uint now)
        {
            var me = new Sleeper();
            lock (sleepers)
            {
                sleepers.Add(me);
            }
            CancellationTokenRegistration registration = default;
            try
            {
                registration = limit.Token.Register(Interrupt, me);
                long checkedName = Clock.Nanoseconds;
                bool gone = mapping.Link.Vanished();
                for (;;)
                {
                    // Before the reasons to stop are checked, a full fence between: an interrupt gives the reason first, and
                    // wakes the word until this says no.
                    me.Asleep = true;
                    Interlocked.MemoryBarrier();
                    now = Now();
                    if (now != seen)
                    {
                        return null;
                    }
                    // The count was loaded again after the name was seen gone.
                    Exception? e = CalledOff(gone, limit);
                    if (e != null)
                    {
                        return e;
                    }
                    SleepOnce(seen, limit);
                    me.Asleep = false;
                    if (Clock.Nanoseconds - checkedName >= Facts.PollIntervalNanos)
                    {
                        checkedName = Clock.Nanoseconds;
                        gone = mapping.Link.Vanished();
                    }
                }
            }
            finally
            {
                me.Asleep = false;
                // Waits for an interrupt under way, which touches the word.
                registration.Dispose();
                lock (sleepers)
                {
                    sleepers.Remove(me);
                }
            }
        }

        /// <summary>Sleeps once, for at most an interval; returns at once where the word has changed.</summary>
        private void SleepOnce(uint seen, in WaitLimit limit)
        {
            if (ReadOnly)
            {
                Thread.Sleep((int)(Facts.RegionPollIntervalNanos / 1_000_000));
                return;
            }
            int value = Volatile.Read(ref NotifyWord);
            if (((uint)value & ~(uint)Waiting) != seen)
            {
                return;
            }
            if ((value & Waiting) == 0)
            {
                // The count was compared in value, and this fails if it has changed since.
                if (Interlocked.CompareExchange(ref NotifyWord, value | Waiting, value) != value)
                {
                    return;
                }
                value |= Waiting;
            }
            // A deadline that has just passed still wants a time that is not 0.
            Futex.Wait((uint*)&mapping.Region->Notify, (uint)value, Math.Max(Math.Min(limit.Left, Facts.PollIntervalNanos), 1));
        }

        /// <summary>Gets a call out of its sleep; the reason was given before.</summary>
        private void Interrupt(object? sleeper)
        {
            var s = (Sleeper)sleeper!;
            // It may be just before its sleep: then it is to be woken again. One that cannot be woken checks by itself.
            while (s.Asleep && !ReadOnly)
            {
                WakeAll();
                Thread.Sleep(0);
            }
        }

        /// <summary>Gets all calls out that wait: the region is closing.</summary>
        private void InterruptWaiters()
        {
            Sleeper[] all;
            lock (sleepers)
            {
                all = sleepers.ToArray();
            }
            foreach (Sleeper s in all)
            {
                Interrupt(s);
            }
        }
    }
}
