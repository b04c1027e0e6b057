using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    // How far a publisher may write, and what it does about the subscribers that are in its way (ABI.md, section 19).
    public sealed unsafe partial class Publisher
    {
        // Invariant: tail <= limit <= claimed <= newest + capacity, wrapping.
        /// <summary>What the shared claim holds.</summary>
        private ulong claimed;
        /// <summary>How far the slots let it write, if gated; scanned: a scan stands, before which changes was seen.</summary>
        private ulong gate;
        private bool gated, scanned;
        private uint changesSeen;
        /// <summary>The slot that the gate is of.</summary>
        private int blocker;

        /// <summary>In nanoseconds; 0: nobody is ejected.</summary>
        private readonly long ejectAfter;
        /// <summary>By slot, since when it is in the way, in which state and at which cursor; empty where no subscriber can be.</summary>
        private readonly Blocking[] blocking;
        /// <summary>When the system was last asked for the locks; 0: not since this side could go on.</summary>
        private long locksAsked;

        private struct Blocking
        {
            internal ulong Cursor;
            internal long State;
            /// <summary>By <see cref="Clock"/>; 0: it is not in the way.</summary>
            internal long Since;
        }

        /// <summary>What is polled while waiting: the cursor that is in the way.</summary>
        private protected override ulong* Position(out ulong seen)
        {
            if (!gated)
            {
                seen = wordSeen;
                return word;
            }
            seen = gate - capacity;
            return &log.Slots[blocker].Cursor;
        }

        /// <summary>
        /// Whether the bytes needed may be written, after what can be done about those that are in the way.
        /// </summary>
        private protected override Exception? Ready()
        {
            while (need > limit - tail)
            {
                if (Advance())
                {
                    GoOn();
                    break;
                }
                if (tail != published)
                {
                    // The last published message moves on, and with it how far this side may write.
                    FlushCommitted();
                }
                else if (!Patrol())
                {
                    return NotNow;
                }
                else
                {
                    // A dead subscriber was removed, or one was ejected.
                    scanned = false;
                }
            }
            return null;
        }

        /// <summary>
        /// Moves the limit so that the bytes needed fit at tail, if it may: reads the slots, announces in claim what is about to be
        /// overwritten, and then makes sure that no subscriber joined meanwhile.
        /// </summary>
        private bool Advance()
        {
            // All positions from here on as distances from tail: none of them lies before it.
            ulong chunk = capacity / Facts.TopicChunks;
            ulong want = ((tail + need + chunk - 1) & ~(chunk - 1)) - tail;
            if (!scanned || gated && gate - tail < want)
            {
                Scan(log.Changes);
            }
            ulong keepLast = newest + capacity - tail, far = FarFrom(keepLast);
            if (need > far)
            {
                return false;
            }
            // The first frame that is noted in a part of the data stays noted for the lap: a later one would put intact history out
            // of reach.
            ref ulong entry = ref log.Block->Starts[(int)((tail & wrap) / chunk)];
            if ((Volatile.Read(ref entry) & ~(chunk - 1)) != (tail & ~(chunk - 1)))
            {
                Volatile.Write(ref entry, tail);
            }
            ulong claim = Math.Max(claimed - tail, Math.Min(want, keepLast));
            if (tail + claim != claimed)
            {
                claimed = tail + claim;
                Volatile.Write(ref log.Block->Claim, claimed);
                // A subscriber that joins stores its slot, fences, and loads the claim. Either it sees this claim, or the load below
                // sees its change.
                Interlocked.MemoryBarrier();
                uint now = log.Changes;
                if (now != changesSeen && !log.LossyOnly)
                {
                    Scan(now);
                    far = FarFrom(keepLast);
                }
            }
            claim = Math.Min(claim, far);
            limit = tail + claim;
            return need <= claim;
        }

        /// <summary>How far beyond tail this side may write.</summary>
        private ulong FarFrom(ulong keepLast) => gated ? Math.Min(keepLast, gate - tail) : keepLast;

        /// <summary>Reads how far the slots let this side write. changes was loaded before.</summary>
        private void Scan(uint changes)
        {
            gated = false;
            scanned = true;
            changesSeen = changes;
            ulong most = 0;
            for (int i = 0; !log.LossyOnly && i < log.Geometry.Slots; i++)
            {
                if (!Gates(i))
                {
                    continue;
                }
                // Acquire: the subscriber's last reads of what it gave back come before our writes to it. More than the capacity: it
                // is choosing anew, and finds out by the claim; or its words are wrong.
                ulong behind = limit - Volatile.Read(ref log.Slots[i].Cursor);
                if (behind <= capacity && (!gated || behind > most))
                {
                    gated = true;
                    most = behind;
                    blocker = i;
                }
            }
            gate = limit - most + capacity;
        }

        /// <summary>The publisher is not blocked.</summary>
        private void GoOn()
        {
            if (locksAsked != 0)
            {
                locksAsked = 0;
                Array.Clear(blocking, 0, blocking.Length);
            }
        }

        /// <summary>
        /// Reads every slot that is in the way: removes the dead subscribers, and ejects those that have been in the way for too long.
        /// True: one of them no longer is.
        /// </summary>
        private bool Patrol()
        {
            long now = Clock.Nanoseconds;
            // A subscriber that was killed is found after an interval, as a ring's peer is.
            bool ask = locksAsked != 0 && now - locksAsked >= Facts.PollIntervalNanos, freed = false;
            locksAsked = ask || locksAsked == 0 ? now : locksAsked;
            for (int i = 0; i < blocking.Length; i++)
            {
                SubscriberSlot* slot = log.Slots + i;
                // The state first, then the lock: a slot that was taken anew since has another epoch, and the exchange fails.
                long state = Volatile.Read(ref slot->State);
                ulong cursor = Volatile.Read(ref slot->Cursor);
                if ((state & Facts.SlotGating) == 0 || limit - cursor > capacity || tail + need - cursor <= capacity)
                {
                    blocking[i] = default;
                    continue;
                }
                // An exchange is a full fence: a subscriber that joins this slot now sees the change before it sees what this side
                // writes next.
                if (ask && (state & Facts.SlotDurable) == 0 && !log.LivesIn(i))
                {
                    freed |= Interlocked.CompareExchange(ref slot->State, Joining.Left(state, false), state) == state;
                }
                else if (IsOverdue(ref blocking[i], state, cursor, now))
                {
                    Volatile.Write(ref slot->EjectSeq, log.SeqAt(cursor, published));
                    long ejected = state & ~(long)Facts.SlotGating | Facts.SlotEjected;
                    freed |= Interlocked.CompareExchange(ref slot->State, ejected, state) == state;
                }
            }
            return freed;
        }

        /// <summary>Whether a slot has been in the way for too long at its cursor; notes since when it is.</summary>
        private bool IsOverdue(ref Blocking b, long state, ulong cursor, long now)
        {
            if (b.Since == 0 || b.Cursor != cursor || b.State != state)
            {
                b = new Blocking { Cursor = cursor, State = state, Since = now };
                return false;
            }
            return ejectAfter != 0 && now - b.Since >= ejectAfter;
        }

        /// <summary>
        /// For how long a slot has been in the way at its cursor; zero if its subscriber has read something since, or is another one.
        /// </summary>
        private TimeSpan BlocksFor(int slot)
        {
            if (slot >= blocking.Length)
            {
                return TimeSpan.Zero;
            }
            Blocking b = blocking[slot];
            SubscriberSlot* now = log.Slots + slot;
            return b.Since == 0 || b.Cursor != Volatile.Read(ref now->Cursor) || b.State != Volatile.Read(ref now->State)
                ? TimeSpan.Zero
                : TimeSpan.FromTicks((Clock.Nanoseconds - b.Since) / 100);
        }
    }
}
