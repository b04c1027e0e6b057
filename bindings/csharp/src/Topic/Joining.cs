using System;
using System.Collections.Generic;
using System.Threading;

namespace Ramway
{
    /// <summary>
    /// How a subscriber comes: which slot it takes, where it begins, and how it makes sure that nothing from there on is overwritten
    /// before the publisher knows of it (ABI.md, section 19).
    /// </summary>
    internal sealed unsafe class Joining
    {
        private const long Active = Facts.SlotActive, Gating = Facts.SlotGating, Durable = Facts.SlotDurable, Ejected = Facts.SlotEjected;
        private const long Flags = 0xFFFF_FFFF;
        /// <summary>
        /// For how long a slot or a label is tried again that is taken, however short the time-out is: another subscriber that looks
        /// for its slot has a lock for an instant.
        /// </summary>
        private static readonly TimeSpan Instant = TimeSpan.FromMilliseconds(5);

        private readonly TopicLog log;
        private readonly TopicOptions options;
        private readonly SlotLabel label;
        // Those of the slot.
        private readonly uint flags;

        internal Joining(TopicLog log, TopicOptions options, bool membarrierCapable)
        {
            this.log = log;
            this.options = options;
            label = new SlotLabel(options.LabelBytes);
            flags = (membarrierCapable ? Facts.SlotFlagMembarrierCapable : 0) |
                (options.Policy == Policy.Latest ? Facts.SlotFlagLatest : 0);
        }

        // What the subscriber begins with.

        /// <summary>Null for one that shows itself to nobody.</summary>
        internal SubscriberSlot* Slot { get; private set; }

        /// <summary>How often the slot was taken; 1 without one.</summary>
        internal uint Epoch { get; private set; } = 1;

        /// <summary>The publisher's epoch whose close a durable predecessor has met, or 0.</summary>
        internal uint CloseSeen { get; private set; }

        internal ulong Cursor { get; private set; }

        /// <summary>The number of the message at the cursor.</summary>
        internal ulong Expected { get; private set; }

        /// <summary>A durable predecessor was ejected, and lost this many messages.</summary>
        internal bool Lagged { get; private set; }

        /// <summary>See <see cref="Lagged"/>.</summary>
        internal ulong Lost { get; private set; }

        /// <summary>
        /// Joins. While that is Busy it is tried again as long as the options' Timeout says: a predecessor that was killed has its label
        /// and its slot until the kernel has closed its files.
        /// </summary>
        internal Joining Join()
        {
            TimeSpan timeout = options.Timeout;
            bool forever = timeout == Timeout.InfiniteTimeSpan;
            return Again.Try(forever || timeout > Instant ? timeout : Instant, () =>
            {
                try
                {
                    JoinOnce();
                    return this;
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.Busy)
                {
                    throw new Again(e);
                }
            });
        }

        private void JoinOnce()
        {
            if (options.Policy != Policy.Reliable)
            {
                Begin(options.Start.Or(Start.Place.Now));
                if (!options.ReadOnly)
                {
                    Show();
                }
                return;
            }
            if (label.IsNone)
            {
                JoinGating();
                return;
            }
            if (!log.Link.TryJoin())
            {
                throw Errors.Fail(ErrorKind.Busy,
                    "another subscriber with a label was joining, at each attempt until the deadline: try again");
            }
            try
            {
                JoinGating();
            }
            finally
            {
                log.Link.EndJoin();
            }
        }

        /// <summary>Where a subscriber begins that nobody waits for.</summary>
        private void Begin(Start from)
        {
            for (int i = 0; i < TopicLog.Attempts; i++)
            {
                if (log.Settle(log.Choose(from), false, out ulong cursor, out ulong expected))
                {
                    Cursor = cursor;
                    Expected = expected;
                    return;
                }
            }
            throw Errors.Fail(ErrorKind.Corrupt, null);
        }

        private void JoinGating()
        {
            SubscriberSlot* slot = Find(out bool resumed);
            Slot = slot;
            Volatile.Write(ref slot->Flags, flags);
            if (!resumed)
            {
                label.WriteTo(slot);
                Volatile.Write(ref slot->CloseSeen, 0);
                Volatile.Write(ref slot->Lost, 0);
                Volatile.Write(ref slot->EjectSeq, 0);
                Gate(options.Start.Or(Start.Place.Oldest), options.Durable);
                return;
            }
            uint closeSeen = Volatile.Read(ref slot->CloseSeen);
            long state = Volatile.Read(ref slot->State);
            if ((state & Ejected) != 0 && !log.MayEject)
            {
                throw Errors.Fail(ErrorKind.Corrupt, null);
            }
            CloseSeen = closeSeen;
            if ((state & Gating) != 0 && Resume(state))
            {
                if (!options.Durable)
                {
                    // It takes the cursor up, and lets it go at its end.
                    Change(slot, s => s & ~Durable);
                }
                return;
            }
            // The publisher has ejected the predecessor.
            ulong first = Volatile.Read(ref slot->EjectSeq);
            Gate(new Start(Start.Place.Again, first), options.Durable);
            Lagged = true;
            Lost = first != 0 && Expected > first ? Expected - first : 0;
        }

        /// <summary>Begins anew after an ejection, with the slot and its lock, at the first message with this number or more.</summary>
        internal void Rejoin(ulong expected)
        {
            bool durable = (Volatile.Read(ref Slot->State) & Durable) != 0;
            Gate(new Start(Start.Place.Again, expected), durable);
            Lost = Expected > expected ? Expected - expected : 0;
        }

        /// <summary>Begins with the slot, which gates then; durable: its cursor is to stay.</summary>
        private void Gate(Start from, bool durable)
        {
            try
            {
                for (int i = 0; i < TopicLog.Attempts; i++)
                {
                    if (TryGate(from, durable))
                    {
                        Epoch = (uint)(Volatile.Read(ref Slot->State) >> 32);
                        return;
                    }
                }
                throw Errors.Fail(ErrorKind.Corrupt, null);
            }
            catch
            {
                // Back to no subscriber.
                Change(Slot, s => s & ~Flags);
                log.CountChange();
                throw;
            }
        }

        // The state that the last attempt wrote, while it stands: the next choice is of the same epoch.
        private long standing;

        /// <summary>One choice. False: it was overtaken, or the subscriber was ejected meanwhile; choose again.</summary>
        private bool TryGate(Start from, bool durable)
        {
            TopicLog.Choice choice = log.Choose(from);
            Volatile.Write(ref Slot->Cursor, choice.Cursor);
            if (standing == 0)
            {
                standing = Next(Volatile.Read(ref Slot->State), Active | Gating);
                // Release: the cursor and the flags go first. No exchange: nobody else changes the state of a slot that does not gate.
                Volatile.Write(ref Slot->State, standing);
            }
            // Each time: the publisher may have taken the choice before for one that it need not wait for. A full fence as well: it
            // pairs with the publisher's between its claim and its load of the count.
            log.CountChange();
            ulong claim = Volatile.Read(ref log.Block->Claim);
            // The publisher may be blocked by what this slot has said before.
            log.WakePublisher();
            if (unchecked(claim - choice.Cursor) > log.Geometry.Capacity)
            {
                return false;
            }
            bool settled;
            ulong cursor = 0, expected = 0;
            try
            {
                settled = log.Settle(choice, true, out cursor, out expected);
            }
            catch (RamwayException) when (IsEjected)
            {
                settled = false;
            }
            if (!settled || IsEjected)
            {
                // Nothing has kept what was read there.
                standing = 0;
                return false;
            }
            if (cursor != choice.Cursor)
            {
                // Forward only, so the publisher needs no count.
                Volatile.Write(ref Slot->Cursor, cursor);
            }
            long state = standing;
            standing = 0;
            // Last, so that a join that is cut off by a kill leaves nothing that gates. It fails where it was ejected just now.
            if (durable && Interlocked.CompareExchange(ref Slot->State, state | Durable, state) != state)
            {
                return false;
            }
            Cursor = cursor;
            Expected = expected;
            return true;
        }

        /// <summary>Whether the publisher has ejected the subscriber of the slot. What was read before is from before.</summary>
        private bool IsEjected
        {
            get
            {
                Sys.Cpu.LoadFence();
                return (Volatile.Read(ref Slot->State) & Ejected) != 0;
            }
        }

        /// <summary>Takes up the cursor of a durable predecessor, whose slot's lock is held now. False: it was ejected.</summary>
        private bool Resume(long state)
        {
            ulong cursor = Volatile.Read(ref Slot->Cursor), tail = Volatile.Read(ref log.Block->Tail);
            if (!Layout.IsTopicPosition(cursor, log.Geometry.Align) || unchecked(tail - cursor) > log.Geometry.Capacity)
            {
                throw Errors.Fail(ErrorKind.Corrupt, null);
            }
            long next = Next(state, Active | Gating | Durable);
            if (Interlocked.CompareExchange(ref Slot->State, next, state) != state)
            {
                return false;
            }
            log.CountChange();
            log.WakePublisher();
            try
            {
                log.Settle(new TopicLog.Choice(cursor), true, out cursor, out ulong expected);
                Cursor = cursor;
                Expected = expected;
            }
            catch (RamwayException) when (IsEjected)
            {
            }
            Epoch = (uint)(next >> 32);
            return !IsEjected;
        }

        /// <summary>The state of a slot that is taken anew, with these flags.</summary>
        private static long Next(long state, long flags) => (long)Math.Max((uint)(state >> 32) + 1u, 1u) << 32 | flags;

        /// <summary>Changes a slot's state by exchanges only: again where the publisher changes it meanwhile.</summary>
        internal static void Change(SubscriberSlot* slot, Func<long, long> how)
        {
            long state;
            do
            {
                state = Volatile.Read(ref slot->State);
            }
            while (Interlocked.CompareExchange(ref slot->State, how(state), state) != state);
        }

        /// <summary>What leaving does to a state: no flag stays, or of a durable slot all but that somebody has it.</summary>
        internal static long Left(long state, bool durable) => state & ~(durable ? Active : Flags);

        private int Count => (int)log.Geometry.Slots;

        /// <summary>Locks the slot of the label, or a free one; resumed: a durable predecessor's.</summary>
        private SubscriberSlot* Find(out bool resumed)
        {
            resumed = false;
            for (int i = 0; !label.IsNone && i < Count; i++)
            {
                SubscriberSlot* slot = log.Slots + i;
                // Of the others a label does not count: of one that nobody waits for, and of one that has left, whose slot somebody
                // may be taking just now who has not written its own label yet.
                long state = Volatile.Read(ref slot->State);
                if ((state & (Gating | Durable | Ejected)) == 0 || !SlotLabel.Of(slot).Equals(label))
                {
                    continue;
                }
                if ((state & Durable) == 0)
                {
                    if (!log.LivesIn(i))
                    {
                        continue;
                    }
                }
                else if (log.Link.TryTakeSlot(i))
                {
                    // It may have been given up before the lock was taken.
                    if ((Volatile.Read(ref slot->State) & Durable) != 0 && SlotLabel.Of(slot).Equals(label))
                    {
                        resumed = true;
                        return slot;
                    }
                    log.Link.LetSlotGo();
                    continue;
                }
                throw Errors.Fail(ErrorKind.Busy, "a reliable subscriber with the label '" + label.Text() +
                    "' is attached already: close it, or take another label");
            }
            SubscriberSlot* free = TakeFree(0);
            return free != null ? free : throw NoSlot();
        }

        /// <summary>Locks the first free slot from a number on; null: there is none.</summary>
        private SubscriberSlot* TakeFree(int from)
        {
            for (int i = from; i < Count; i++)
            {
                SubscriberSlot* slot = log.Slots + i;
                if ((Volatile.Read(ref slot->State) & Durable) != 0 || !log.Link.TryTakeSlot(i))
                {
                    continue;
                }
                // It may have become durable before the lock was taken.
                if ((Volatile.Read(ref slot->State) & Durable) == 0)
                {
                    return slot;
                }
                log.Link.LetSlotGo();
            }
            return null;
        }

        /// <summary>
        /// Takes a free slot for a subscriber that nobody waits for, so that others see it. Without one it goes on unseen: only the upper
        /// half is for such subscribers, so that they keep no reliable one out.
        /// </summary>
        private void Show()
        {
            SubscriberSlot* slot = TakeFree((Count + 1) / 2);
            if (slot == null)
            {
                return;
            }
            Volatile.Write(ref slot->Flags, flags);
            label.WriteTo(slot);
            Volatile.Write(ref slot->CloseSeen, 0);
            Volatile.Write(ref slot->Lost, 0);
            Volatile.Write(ref slot->Cursor, Cursor);
            long state = Next(Volatile.Read(ref slot->State), Active);
            Volatile.Write(ref slot->State, state);
            Slot = slot;
            Epoch = (uint)(state >> 32);
            log.CountChange();
        }

        /// <summary>What to say where every slot is taken: by whom. Of the labels, of which there can be 1024, a few.</summary>
        private RamwayException NoSlot()
        {
            const int most = 8;
            int reliable = 0, away = 0, others = 0;
            var labels = new List<string>();
            for (int i = 0; i < Count; i++)
            {
                SubscriberSlot* slot = log.Slots + i;
                long state = Volatile.Read(ref slot->State);
                if ((state & Durable) != 0 && !log.LivesIn(i))
                {
                    away++;
                }
                else if ((state & (Gating | Durable | Ejected)) != 0)
                {
                    reliable++;
                }
                else
                {
                    others++;
                }
                SlotLabel its = SlotLabel.Of(slot);
                if (!its.IsNone)
                {
                    labels.Add("'" + its.Text() + "'");
                }
            }
            if (labels.Count > most)
            {
                labels[most] = labels.Count - most + " more";
                labels.RemoveRange(most + 1, labels.Count - most - 1);
            }
            return Errors.Fail(ErrorKind.Busy, $"all {Count} slots of the topic are taken: {reliable} by reliable subscribers, " +
                $"{away} for durable subscribers that are away, {others} by lossy or latest subscribers" +
                (labels.Count == 0 ? "" : " (labels: " + string.Join(", ", labels) + ")") + ". Close a subscriber, unsubscribe a durable " +
                "one, or create the topic with more slots; ramway inspect shows the processes");
        }
    }
}
