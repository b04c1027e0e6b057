using System;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    /// <summary>
    /// A subscriber of a topic: a <see cref="Receiver"/> that is one of many. Under the policy Reliable its messages lie in the log until
    /// they are released; under the others, or where the publisher may eject it, they are copies.
    /// </summary>
    /// <remarks>
    /// No message allocates: copies lie in memory that the next ones use again. What is written through <see cref="OwnedMessage"/> is
    /// always a copy, because the log is mapped read-only.
    /// <code>
    /// using var subscriber = Subscriber.Open("ticks", new TopicOptions { Policy = Policy.Lossy });
    /// await foreach (MessageLease message in subscriber.ReadAllAsync(token))
    /// {
    ///     Show(message.Seq, message.Lost, message.Data);
    /// }
    /// </code>
    /// </remarks>
    // All but the topic's own rules is the Receiver's; how it reads under each policy is in Subscriber.Reading.cs.
    public sealed unsafe partial class Subscriber : Receiver
    {
        private readonly TopicLog log;
        private readonly Joining join;
        private readonly Policy policy;
        private readonly string label;
        /// <summary>The publisher waits for it. This side may write to the subscribers' area. Messages are copied as they come.</summary>
        private readonly bool gates, writable, copiesOut;
        /// <summary>Null for one that shows itself to nobody.</summary>
        private readonly SubscriberSlot* slot;
        /// <summary>Words of this process that stand for those of a slot that has no such meaning: nobody else reads them.</summary>
        private SubscriberSlot* own;
        /// <summary>Its cursor stays when it goes.</summary>
        private bool durable;
        /// <summary>The number that the next message should have.</summary>
        private ulong expected;
        /// <summary>How many messages were lost so far.</summary>
        private ulong lost;
        /// <summary>It was ejected, and lost laggedBy, which is still to be told.</summary>
        private bool lagged;
        private ulong laggedBy;

        private Subscriber(Attachment attachment, TopicOptions options)
            : base(attachment, options)
        {
            log = new TopicLog(attachment);
            policy = options.Policy;
            label = options.Label ?? "";
            gates = policy == Policy.Reliable;
            writable = !options.ReadOnly;
            copiesOut = !gates || log.MayEject;
            durable = options.Durable;
            try
            {
                join = new Joining(log, options, membarrierCapable).Join();
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.Corrupt && e.Text == null)
            {
                throw Fail(ErrorKind.Corrupt);
            }
            slot = join.Slot;
            own = (SubscriberSlot*)Sys.Native.Zeroed(Facts.SlotSize);
            ownFlags = slot != null ? &slot->Flags : &own->Flags;
            headWord = gates ? &slot->Cursor : &own->Cursor;
            closeSeen = gates ? &slot->CloseSeen : &own->CloseSeen;
            tailWord = policy == Policy.Latest ? &log.Block->Last : &log.Block->Tail;
            delivered = join.CloseSeen;
            expected = join.Expected;
            lagged = join.Lagged;
            lost = laggedBy = join.Lost;
            // One that reads the newest message has in all three where the one begins that it read last.
            head = released = tail = policy == Policy.Latest ? Facts.NoPosition : join.Cursor;
            if (policy == Policy.Latest)
            {
                // It begins with the newest message, not after it; the first of all has the number 1.
                expected = Math.Max(expected, 2) - 1;
            }
            attachment.CloseFile();
            Announce(attachment);
        }

        /// <summary><see cref="Publisher.Create"/> for the other side: either may create the topic.</summary>
        /// <exception cref="RamwayException">As there.</exception>
        public static Subscriber Create(string name, TopicOptions? options = null) => Named(name, How.Create, options);

        /// <summary>A subscriber of a topic that exists. Waits as Timeout of the options says.</summary>
        /// <exception cref="RamwayException">
        /// NotFound if there is none; Busy if every slot is taken, or a live subscriber has the label; Unsupported for a reliable one
        /// where the topic is LossyOnly; PermissionDenied for one that may not write the file and is not ReadOnly; otherwise as for <see
        /// cref="Receiver.Open"/>.
        /// </exception>
        public static Subscriber Open(string name, TopicOptions? options = null) => Named(name, How.Open, options);

        /// <summary><see cref="Publisher.OpenOrCreate"/> for the other side.</summary>
        /// <exception cref="RamwayException">As there, and for Open.</exception>
        public static Subscriber OpenOrCreate(string name, TopicOptions? options = null) => Named(name, How.OpenOrCreate, options);

        private static Subscriber Named(string name, How how, TopicOptions? options)
        {
            TopicOptions o = options ?? TopicOptions.Default;
            return Errors.During(how.Verb() + " the topic", name,
                () => Over(Attachment.NamedTopic(name, how, o, false), o, (at, with) => new Subscriber(at, with)));
        }

        /// <summary>How it reads.</summary>
        public Policy Policy => policy;

        /// <summary>The label that it was opened with; empty without one.</summary>
        public string Label => label;

        /// <summary>How many messages this handle has lost so far.</summary>
        public ulong Lost => Volatile.Read(ref lost);

        /// <summary>How far it is behind. It may have changed when it returns. Zero once the handle is closed.</summary>
        /// <exception cref="RamwayException">Corrupt.</exception>
        public Lag Lag
        {
            get
            {
                bool wasOut = EnterBeside();
                try
                {
                    if (guard.IsClosed)
                    {
                        return default;
                    }
                    bool some = log.Newest(out FrameHead newest, out _) && newest.Seq >= expected;
                    return new Lag((long)Unread(), some ? newest.Seq + 1 - expected : 0);
                }
                finally
                {
                    LeaveBeside(wasOut);
                }
            }
        }

        /// <summary>
        /// Moves on so that the next message is the newest one, and gives how many it leaves out. They do not count as lost.
        /// </summary>
        /// <exception cref="RamwayException">
        /// Unsupported under the policy Latest, which reads the newest one anyway; Busy while a message is out; Lagged if the publisher
        /// has ejected this subscriber; Corrupt, Detached.
        /// </exception>
        public ulong SkipToNewest()
        {
            bool open = Enter();
            Exception? e;
            ulong skipped = 0;
            try
            {
                e = open ? Skip(out skipped) : Refused();
            }
            finally
            {
                guard.Leave();
            }
            return e == null ? skipped : throw e;
        }

        private Exception? Skip(out ulong skipped)
        {
            skipped = 0;
            if (policy == Policy.Latest)
            {
                return Fail(ErrorKind.Unsupported, "SkipToNewest under the policy Latest, which reads the newest message anyway");
            }
            Exception? e = Ready();
            if (e != null && e != NotNow)
            {
                return e;
            }
            try
            {
                if (!log.Newest(out FrameHead newest, out ulong end) || newest.Seq < expected)
                {
                    // It was received.
                    return null;
                }
                skipped = newest.Seq - expected;
                head = end - log.SizeOf(newest);
                tail = end;
                expected = newest.Seq;
                GiveBack();
                return null;
            }
            catch (RamwayException)
            {
                return Corrupt();
            }
        }

        /// <summary>
        /// Gives the newest message, whatever was received before: the same one again if there is no newer one. Never waits; false before
        /// the first, or where the publisher overtakes this call again and again. Under every policy it is a copy; what <see
        /// cref="Receiver.Recv()"/> gives next stays as it was, but under the policy Latest that waits for a message newer than this one.
        /// </summary>
        /// <exception cref="RamwayException">Busy while a message is out; Corrupt, Detached.</exception>
        public bool TryLatest(out Message message)
        {
            uint ticket = EnterOut();
            Outcome o = guard.IsShut ? Outcome.None : ReadNewest(null, 0, out _);
            if (o == Outcome.Whole)
            {
                message = new Message(this, ticket, 0);
                return true;
            }
            RamwayException? e = o == Outcome.None ? Refused() : o == Outcome.Overtaken ? null : Untakeable(o);
            LeaveEmpty();
            message = default;
            return e == null ? false : throw e;
        }

        /// <summary>
        /// Copies the newest message; its length is in info. Otherwise as <see cref="TryLatest"/>. It takes no memory, makes no system
        /// call and writes nothing that another process reads, so that readers do not slow each other.
        /// </summary>
        /// <exception cref="RamwayException">
        /// TooLarge for a message that is longer than the buffer (info says what it is); Busy while a message is out; Corrupt, Detached.
        /// </exception>
        public bool TryReadLatest(Span<byte> buffer, out MessageInfo info)
        {
            bool open = Enter();
            Outcome o = Outcome.None;
            info = default;
            fixed (byte* to = buffer)
            {
                // An empty span has no address, and takes an empty message.
                byte none;
                if (open)
                {
                    o = ReadNewest(to != null ? to : &none, (ulong)buffer.Length, out info);
                }
            }
            if (o == Outcome.Whole)
            {
                guard.Leave();
                return true;
            }
            RamwayException? e = o == Outcome.None ? Refused() : o == Outcome.Overtaken ? null : Untakeable(o);
            guard.Leave();
            return e == null ? false : throw e;
        }

        /// <summary>
        /// Waits for a message that is newer than the one that this or <see cref="TryLatest"/> gave last: the newest one then. It is <see
        /// cref="Receiver.Recv(TimeSpan?, CancellationToken)"/> in the words of a value that changes.
        /// </summary>
        /// <exception cref="RamwayException">Unsupported under another policy, which receives in order; else as for Recv.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public Message WaitNewer(TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            CheckNewer();
            return Recv(timeout, cancellationToken);
        }

        private void CheckNewer()
        {
            if (policy != Policy.Latest)
            {
                throw Fail(ErrorKind.Unsupported,
                    "WaitNewer on a subscriber that receives in order: use Recv, or open it with the policy Latest");
            }
        }

        /// <summary>
        /// Closes a durable subscriber for good: its label and cursor are forgotten, and the publisher no longer waits for it. For any
        /// other it is Dispose.
        /// </summary>
        public void Unsubscribe()
        {
            if (!IsClosed)
            {
                // Before a close that another thread begins now, or after it and without effect, as if this had come later.
                bool wasOut = EnterBeside();
                durable = false;
                LeaveBeside(wasOut);
            }
            Dispose();
        }

        // How a subscriber comes, sleeps and goes. What it sees of the publisher is a role's.

        /// <summary>The join has said so.</summary>
        private protected override uint AnnounceSelf() => join.Epoch;

        private protected override void WakePeer()
        {
            if (writable)
            {
                log.WakePublisher();
            }
        }

        /// <summary>One that does not gate wakes nobody, so there is nothing to agree on, and no fence to make.</summary>
        private protected override void PeerChanged()
        {
            if (gates)
            {
                base.PeerChanged();
                return;
            }
            peerFlags = Volatile.Read(ref peer->Flags);
            fenceFree = true;
        }

        /// <summary>The publisher reads the slots when the count has changed.</summary>
        private protected override void FlagsChanged()
        {
            if (slot != null)
            {
                log.CountChange();
            }
        }

        /// <summary>Without write access the publisher cannot be told, and the sleep is short.</summary>
        private protected override uint SayAsleep(out long longest)
        {
            longest = writable ? Facts.PollIntervalNanos : Facts.UnorderedIntervalNanos;
            ref long word = ref log.Area->Word;
            long seen = Volatile.Read(ref word);
            while (writable)
            {
                long before = Interlocked.CompareExchange(ref word, seen | (long)Facts.WordAsleep, seen);
                if (before == seen)
                {
                    return (uint)seen | (uint)Facts.WordAsleep;
                }
                seen = before;
            }
            return (uint)seen;
        }

        /// <summary>The bit stays, because another subscriber may sleep by it. It costs the publisher one wake-up call.</summary>
        private protected override void SayAwake()
        {
        }

        /// <summary>The slot no longer gates, unless its cursor is to stay.</summary>
        private protected override void SayClosed()
        {
            if (slot != null)
            {
                bool stays = durable;
                Joining.Change(slot, state => Joining.Left(state, stays));
                log.CountChange();
            }
        }

        /// <summary>A message that is out stays intact: the publisher waits for its end.</summary>
        private protected override void CloseBeside()
        {
        }

        private protected override void Forget(bool keepMapped)
        {
            if (!keepMapped)
            {
                copies.Free();
            }
            Sys.Native.Free(own);
            own = null;
            headWord = tailWord = null;
            closeSeen = null;
        }
    }

    // No await in an unsafe context.
    public sealed partial class Subscriber
    {
        /// <summary><see cref="WaitNewer"/> without holding a thread: as <see cref="Receiver.RecvAsync"/>.</summary>
        /// <exception cref="RamwayException">As for WaitNewer.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask<MessageLease> WaitNewerAsync(CancellationToken cancellationToken = default)
        {
            CheckNewer();
            return RecvAsync(cancellationToken);
        }
    }
}
