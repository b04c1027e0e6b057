using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// The one publisher of a topic, in the whole system: a <see cref="Sender"/> whose log many read. Sending waits for the slowest
    /// reliable subscriber when the log is full, and for nobody where there is none.
    /// </summary>
    /// <remarks>
    /// A subscriber never ends it: no call throws Closed or PeerDead because of one. <see cref="RingEnd.WaitForPeer"/> waits for a reliable
    /// subscriber, and <see cref="RingEnd.PeerEpoch"/> counts the subscribers that came, went, or began anew.
    /// <code>
    /// using var publisher = Publisher.OpenOrCreate("ticks");
    /// publisher.Send(7, payload);
    /// </code>
    /// </remarks>
    // All but the topic's own rules is the Sender's; how far it may write is in Publisher.Gate.cs.
    public sealed unsafe partial class Publisher : Sender
    {
        private readonly TopicLog log;
        private readonly bool timestamps;
        /// <summary>The shared words that each message touches.</summary>
        private readonly ulong* tailWord, lastWord, word;
        /// <summary>The number of the next message.</summary>
        private ulong seq;
        /// <summary>Where the last committed frame begins, and the last published one, which stays intact.</summary>
        private ulong start, newest;
        /// <summary>The subscribers' word as last acted upon, always even.</summary>
        private ulong wordSeen;
        /// <summary>How many subscribers the next wait for a peer is for, and the present one.</summary>
        private int asked = 1, wanted;

        private Publisher(Attachment attachment, TopicOptions options)
            : base(attachment, options)
        {
            log = new TopicLog(attachment);
            timestamps = options.Timestamps;
            ejectAfter = options.EjectAfter.Ticks >= long.MaxValue / 100 ? long.MaxValue : options.EjectAfter.Ticks * 100;
            blocking = log.LossyOnly ? Array.Empty<Blocking>() : new Blocking[log.Geometry.Slots];
            tailWord = &log.Block->Tail;
            lastWord = &log.Block->Last;
            word = (ulong*)&log.Area->Word;
            if (!Resume())
            {
                throw Fail(ErrorKind.Corrupt);
            }
            attachment.CloseFile();
            Announce(attachment);
        }

        /// <summary>
        /// Makes a topic that must be new, and is its publisher. Names are as for <see cref="Sender.Create"/>. The name goes when the last
        /// handle does, unless a durable subscriber has not received everything, or the topic is persistent: history alone keeps no topic.
        /// </summary>
        /// <exception cref="RamwayException">
        /// AlreadyExists if somebody uses the name, if it holds what a durable subscriber has not received (unless Discard), or if
        /// something else has it; otherwise as for <see cref="Sender.Create"/>.
        /// </exception>
        public static Publisher Create(string name, TopicOptions? options = null) => Named(name, How.Create, options);

        /// <summary>
        /// The publisher of a topic that exists, also of one that dead processes left: it goes on after what an earlier one published.
        /// Waits as Timeout of the options says.
        /// </summary>
        /// <exception cref="RamwayException">
        /// NotFound if there is none, Busy if it has a publisher; otherwise as for <see cref="Sender.Open"/>.
        /// </exception>
        public static Publisher Open(string name, TopicOptions? options = null) => Named(name, How.Open, options);

        /// <summary>Opens a topic if it exists, and makes it if not.</summary>
        /// <exception cref="RamwayException">
        /// As for the other two; InvalidArgument if it exists with another capacity, alignment or number of slots than was asked for, or
        /// without a property that was asked for.
        /// </exception>
        public static Publisher OpenOrCreate(string name, TopicOptions? options = null) => Named(name, How.OpenOrCreate, options);

        private static Publisher Named(string name, How how, TopicOptions? options)
        {
            TopicOptions o = options ?? TopicOptions.Default;
            return Over(Attachment.NamedTopic(name, how, o, true), o, (at, with) => new Publisher(at, with));
        }

        /// <summary>Goes on after what an earlier publisher has published. False: no correct publisher left this.</summary>
        private bool Resume()
        {
            // The role's lock orders these after the last publisher's stores, and nobody else writes them.
            ulong last = log.LastAndTail(out ulong end), claim = Volatile.Read(ref log.Block->Claim);
            if (!TopicWords.Agree(end, last, claim, log.Geometry))
            {
                return false;
            }
            // A predecessor that was killed between its stores of tail and last leaves more than one frame.
            newest = last;
            for (ulong at = last; at != end;)
            {
                FrameHead head = log.HeadAt(at);
                if (!log.IsPlausible(head, end - at) || head.Seq <= seq || head.Seq >= 1ul << 63)
                {
                    return false;
                }
                newest = at;
                seq = head.Seq;
                at += log.SizeOf(head);
            }
            seq++;
            for (int i = 0; i < Facts.TopicChunks; i++)
            {
                // An entry beyond tail is of a frame that was never published.
                if (end - Volatile.Read(ref log.Block->Starts[i]) > capacity)
                {
                    Volatile.Write(ref log.Block->Starts[i], end);
                }
            }
            if (newest != last)
            {
                Volatile.Write(ref log.Block->Last, newest);
            }
            start = newest;
            published = tail = limit = end;
            claimed = claim;
            wordSeen = log.Word & ~Facts.WordAsleep;
            // Nobody gates on such a topic: there is nothing to scan.
            scanned = log.LossyOnly;
            return true;
        }

        /// <summary>Makes the next length bytes a message, with its number, not yet visible.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void CommitNumbered(uint length, uint typeId, ulong tag)
        {
            ulong* payload = (ulong*)Payload;
            start = tail;
            // Plain stores: nobody reads them before tail is published.
            payload[-4] = length | (ulong)typeId << 32;
            payload[-3] = tag;
            payload[-2] = seq++;
            payload[-1] = timestamps ? TimeToStamp : 0;
            tail += FrameSize(length);
        }

        /// <summary>The same, and makes it visible.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void CommitAndPublish(uint length, uint typeId, ulong tag)
        {
            CommitNumbered(length, typeId, tag);
            PublishCommitted();
        }

        /// <summary>The same as a call: what a send is made of stays short enough to become part of the loop around it.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal void Deliver(uint length, uint typeId, ulong tag) => CommitAndPublish(length, typeId, tag);

        /// <summary>Wall clock, nanoseconds since 1970; 0 if this publisher does not stamp.</summary>
        internal override ulong TimeToStamp => timestamps ? (ulong)(DateTime.UtcNow - DateTime.UnixEpoch).Ticks * 100 : 0;

        private protected override ulong SeqToWrite => seq;

        private protected override void Renumber(ulong start, ulong seq)
        {
            this.start = start;
            this.seq = seq;
        }

        /// <summary>Makes everything committed visible, up to where it ends, and wakes who sleeps.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void PublishCommitted()
        {
            ulong end = tail;
            // Release, in this order: who reads at last sees the frame there, and a tail behind it.
            Volatile.Write(ref *tailWord, end);
            Publish(lastWord, start);
            published = end;
            newest = start;
            if (Volatile.Read(ref *word) != wordSeen)
            {
                WordMoved();
            }
        }

        /// <summary>Acts on a word that is not the one seen last: somebody sleeps, or subscribers came or went.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private void WordMoved()
        {
            if (!WakeSleepers())
            {
                return;
            }
            scanned = log.LossyOnly;
            // Fences; what is agreed on now holds for this publish too.
            PeerChanged();
            if (WakeSleepers())
            {
                // Once more, whoever changes it all the time: at the next publish.
                wordSeen -= Facts.WordChange;
            }
        }

        /// <summary>Wakes those who sleep. Whether subscribers came or went.</summary>
        private bool WakeSleepers()
        {
            ulong now = log.Word;
            if ((now & Facts.WordAsleep) != 0)
            {
                // Clears the bit and counts in one step, so that no other sleeper can undo it.
                now = (ulong)Interlocked.Add(ref log.Area->Word, (long)Facts.WordAsleep);
                Futex.WakeAll((uint*)word);
            }
            bool changed = now >> 32 != wordSeen >> 32;
            // Even, whatever a hostile subscriber stores.
            wordSeen = now & ~Facts.WordAsleep;
            return changed;
        }

        private protected override ulong? TagOfLast() => newest == published ? (ulong?)null : log.HeadAt(newest).Tag;

        private ulong PublishedSeq => newest == published ? 0 : log.HeadAt(newest).Seq;

        /// <summary>What the slowest reliable subscriber has not released.</summary>
        private protected override ulong Unreleased()
        {
            ulong most = 0;
            for (int i = 0; i < log.Geometry.Slots; i++)
            {
                ulong lag = tail - Volatile.Read(ref log.Slots[i].Cursor);
                // More than the capacity is a slot that does not gate.
                if (Gates(i) && lag <= capacity)
                {
                    most = Math.Max(most, lag);
                }
            }
            return most;
        }

        private bool Gates(int slot) => (Volatile.Read(ref log.Slots[slot].State) & Facts.SlotGating) != 0;

        // How a publisher comes, sleeps and goes.

        private protected override uint AnnounceSelf()
        {
            Volatile.Write(ref log.Block->EjectAfter, (ulong)ejectAfter);
            return base.AnnounceSelf();
        }

        /// <summary>Changes the count, so that a subscriber that is about to sleep does not.</summary>
        private protected override void WakePeer()
        {
            Interlocked.Add(ref log.Area->Word, (long)Facts.WordWake);
            Futex.WakeAll((uint*)word);
        }

        /// <summary>
        /// Every subscriber that has a slot must be able to make up for a fence that is left out. One without a slot that cannot sleeps
        /// for short intervals.
        /// </summary>
        private protected override void PeerChanged()
        {
            bool can = true;
            for (int i = 0; i < log.Geometry.Slots; i++)
            {
                can &= (Volatile.Read(ref log.Slots[i].State) & Facts.SlotActive) == 0 ||
                    (Volatile.Read(ref log.Slots[i].Flags) & Facts.SlotFlagMembarrierCapable) != 0;
            }
            Agree(can);
        }

        private protected override uint SayAsleep(out long longest)
        {
            uint armed = base.SayAsleep(out longest);
            // Nobody tells when a subscriber is to be ejected.
            longest = ejectAfter == 0 ? longest : Math.Min(longest, Math.Max(ejectAfter, Facts.UnorderedIntervalNanos));
            return armed;
        }

        private protected override bool WakersDoNotFence
        {
            get
            {
                bool any = false;
                for (int i = 0; i < log.Geometry.Slots; i++)
                {
                    any |= Gates(i) && (Volatile.Read(ref log.Slots[i].Flags) & Facts.SlotFlagFenceFree) != 0;
                }
                return any;
            }
        }

        /// <summary>Subscribers come and go, and none of them ends a publisher.</summary>
        private protected override RamwayException? Ended(bool askKernel) => askKernel && log.Link.Vanished() ? NameGone() : null;

        private protected override uint EpochOfPeer => log.Changes;

        private protected override bool PeerLives => Living() != 0;

        /// <summary>How many reliable subscribers live. A system call for each.</summary>
        private int Living()
        {
            int living = 0;
            for (int i = 0; i < log.Geometry.Slots; i++)
            {
                living += Gates(i) && log.LivesIn(i) ? 1 : 0;
            }
            return living;
        }

        private protected override Exception? SeekPeer()
        {
            wanted = asked;
            BeforeWait();
            seeksPeer = true;
            return PeerFound();
        }

        private protected override Exception? PeerFound()
        {
            if (wanted != 0 && Living() < wanted)
            {
                return NotNow;
            }
            found = log.Changes;
            return null;
        }

        /// <summary>
        /// Waits until so many reliable subscribers are attached and their processes live; at once if they are there. (Others do not
        /// count: the publisher does not wait for them.) What was committed unflushed is flushed.
        /// </summary>
        /// <param name="count">How many, from 0 to the topic's slots.</param>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">
        /// InvalidArgument if the topic has fewer slots than that; Unsupported if it takes no reliable subscribers; TimedOut; Closed if
        /// the topic's name was removed, so that nobody can come; Busy, Detached, Corrupt.
        /// </exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void WaitForSubscribers(int count, TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            Ask(count);
            try
            {
                Seek(timeout, cancellationToken);
            }
            finally
            {
                asked = 1;
            }
        }

        private void Ask(int count)
        {
            if (count < 0 || count > log.Geometry.Slots)
            {
                throw Fail(ErrorKind.InvalidArgument, "waiting for " + count + " subscribers: the topic has " + log.Geometry.Slots +
                    " slots; create it with more");
            }
            if (count > 0 && log.LossyOnly)
            {
                throw Fail(ErrorKind.Unsupported, "waiting for " + count + " subscribers: the topic takes no reliable ones (its creator " +
                    "said LossyOnly), and others do not count");
            }
            asked = count;
        }

        /// <summary>
        /// Those who have a slot: every reliable subscriber, and of the others those that could take one. A system call for each. Empty
        /// once the handle is closed.
        /// </summary>
        public IReadOnlyList<SubscriberInfo> Subscribers()
        {
            bool wasOut = EnterBeside();
            var all = new List<SubscriberInfo>();
            try
            {
                if (guard.IsClosed)
                {
                    return all;
                }
                ulong last = PublishedSeq;
                for (int i = 0; i < log.Geometry.Slots; i++)
                {
                    SubscriberInfo? one = TopicSurvey.Of(log.Slots + i, i, published, last, log.Geometry, p => log.SeqAt(p, published));
                    if (one != null)
                    {
                        one.Alive = log.LivesIn(i);
                        one.BlocksFor = BlocksFor(i);
                        all.Add(one);
                    }
                }
                return all;
            }
            finally
            {
                LeaveBeside(wasOut);
            }
        }

        /// <summary>The number of the last published message; 0 before the first, and once the handle is closed.</summary>
        public ulong Seq
        {
            get
            {
                bool wasOut = EnterBeside();
                ulong last = guard.IsClosed ? 0 : PublishedSeq;
                LeaveBeside(wasOut);
                return last;
            }
        }

        /// <summary>
        /// Lets the next message's number be lost higher than it would be: every subscriber then counts that many messages as lost before
        /// it. For bridges and replays, whose own source has a gap.
        /// </summary>
        /// <exception cref="RamwayException">InvalidArgument if no number would be left; Busy, Detached, Corrupt.</exception>
        public void SkipSeq(ulong lost)
        {
            bool open = Enter();
            RamwayException? e = !open ? Refused() : lost < (1ul << 63) - seq ? null : Fail(ErrorKind.InvalidArgument,
                lost + " messages lost after number " + (seq - 1) + ": no such numbers");
            seq += e == null ? lost : 0;
            guard.Leave();
            if (e != null)
            {
                throw e;
            }
        }
    }

    // No await in an unsafe context.
    public sealed partial class Publisher
    {
        /// <summary><see cref="WaitForSubscribers"/> without holding a thread.</summary>
        /// <param name="count">How many, from 0 to the topic's slots.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <remarks>Until it is over, this is a call in progress: no other may be made, but for Dispose.</remarks>
        /// <exception cref="RamwayException">As for WaitForSubscribers, but for TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask WaitForSubscribersAsync(int count, CancellationToken cancellationToken = default)
        {
            Ask(count);
            ValueTask<uint> wait;
            try
            {
                wait = SeekAsync(cancellationToken);
            }
            finally
            {
                asked = 1;
            }
            return wait.IsCompletedSuccessfully ? default : new ValueTask(wait.AsTask());
        }
    }
}
