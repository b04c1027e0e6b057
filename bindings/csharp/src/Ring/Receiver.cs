using System;
using System.Buffers;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Ramway
{
    /// <summary>The receiving end of a ring; one per ring, in the whole system.</summary>
    /// <remarks>
    /// A received message is a view of the shared memory, and one message or batch is out at a time: its Dispose gives it back,
    /// and the next receive before that is Busy. If this process is killed before the release, the next receiver gets the message
    /// again.
    /// <para>
    /// A peer that is not trusted can change what a view shows while it is read. <see cref="RecvInto(Span{byte}, out MessageInfo,
    /// TimeSpan?, CancellationToken)"/> copies first.
    /// </para>
    /// <para>
    /// One thread at a time may use it, see <see cref="RingEnd"/>. No call allocates or enters the kernel unless it waits, wakes
    /// a peer that does, or fails. A Receiver that becomes garbage without Dispose is closed.
    /// </para>
    /// <code>
    /// using var receiver = Receiver.Open("ticks");
    /// foreach (Message message in receiver.ReadAll())
    /// {
    ///     total += message.Length;
    /// }
    /// </code>
    /// </remarks>
    public unsafe partial class Receiver : RingEnd
    {
        // A topic's subscriber is a receiver that reads another header, and by the rules of its policy: `this is Subscriber`, which is
        // one comparison, chooses how a frame is read. All else is the same, through the three pointers to the words below.

        /// <summary>A message as it lies in the ring, its numbers read once and checked.</summary>
        internal struct Frame
        {
            internal byte* Data;
            internal ulong Tag;
            internal int Length;
            internal uint TypeId;
            /// <summary>What a topic's message says besides; in a ring all zero, and not touched.</summary>
            internal MessageStamp Stamp;
        }

        /// <summary>Bytes that the last poll found; 0 once they were waited for.</summary>
        private protected ulong burst;
        private BackOff backOff = BackOff.New;

        // head is where the next frame begins; from released, which the shared word holds, to head is out.
        // Invariant: released <= head <= tail and tail - released <= capacity, wrapping.
        private protected ulong head, released;
        /// <summary>The shared one as last seen.</summary>
        private protected ulong tail;
        /// <summary>The shared words: where what is published ends, and what this side has released. The close that it has met.</summary>
        private protected ulong* tailWord, headWord;
        private protected uint* closeSeen;
        /// <summary>Where the ring is so empty that a waiting sender is woken.</summary>
        private readonly ulong wakeBelow;
        /// <summary>What is out: one message, or those of the batch.</summary>
        private protected Frame[] frames = new Frame[1];

        /// <summary>
        /// Takes the consumer's role of an attachment (ABI.md, section 6). After an exception the attachment is still the
        /// caller's.
        /// </summary>
        private Receiver(Attachment attachment, RingOptions options)
            : base(attachment, Role.Consumer, options)
        {
            wakeBelow = capacity - capacity / Facts.WakeFraction;
            tailWord = &ring->Tail;
            headWord = &ring->Head;
            closeSeen = &mine->CloseSeen;
            // Acquire: pairs with the producer's publish, and with the last consumer's release.
            released = head = Volatile.Read(ref *headWord);
            tail = Volatile.Read(ref *tailWord);
            if (!Layout.PositionsAgree(tail, head, capacity, align))
            {
                throw Fail(ErrorKind.Corrupt);
            }
            attachment.CloseFile();
            uint seen = Volatile.Read(ref *closeSeen);
            if (SenderClosed(out uint closer) && closer == seen)
            {
                delivered = closer;
            }
            Announce(attachment);
        }

        /// <summary>For a topic's subscriber, which joins by itself.</summary>
        private protected Receiver(Attachment attachment, TopicOptions options)
            : base(attachment, Role.Consumer, options) => wakeBelow = capacity - capacity / Facts.WakeFraction;

        /// <summary>Makes a ring that must be new, and is its receiver.</summary>
        /// <remarks>
        /// The name ([A-Za-z0-9._-]{1,80}, not starting with a dot, not ending in ".sock") stands in the Ramway directory:
        /// RAMWAY_DIR, else /dev/shm/ramway-UID. With a "/" in it, it is a path. The name goes when the last handle does, unless
        /// messages (or an orderly close) are undelivered: then it stays for the next receiver. What dead processes left empty is
        /// replaced.
        /// </remarks>
        /// <exception cref="RamwayException">
        /// AlreadyExists if a live process uses the name, if it holds what was never delivered (unless Discard), or if something
        /// else has it; NoSpace; InvalidArgument for a bad name or option; Unsupported for a file system without shared mappings
        /// or locks; PermissionDenied; TimedOut if others create and remove the same name all the time.
        /// </exception>
        public static Receiver Create(string name, RingOptions? options = null) => Named(name, How.Create, options);

        /// <summary>
        /// The receiver of a ring that exists, also of one that dead processes left: it starts with what is undelivered. Waits as
        /// Timeout of the options says.
        /// </summary>
        /// <exception cref="RamwayException">
        /// NotFound if no ring has the name, Busy if it has a receiver; AbiMismatch or Corrupt if the name leads to something that
        /// is not a ring of this version, which is left alone.
        /// </exception>
        public static Receiver Open(string name, RingOptions? options = null) => Named(name, How.Open, options);

        /// <summary>Opens a ring if it exists, and makes it if not.</summary>
        /// <exception cref="RamwayException">
        /// As for the other two; InvalidArgument if it exists with another capacity or alignment than was asked for.
        /// </exception>
        public static Receiver OpenOrCreate(string name, RingOptions? options = null) => Named(name, How.OpenOrCreate, options);

        /// <summary>
        /// The receiver of the ring behind a descriptor of <see cref="Ring.Unnamed"/>, inherited or received by a socket. The
        /// descriptor stays the caller's, and may be closed after this. Of the options Discard, Persistent and Mode are refused.
        /// </summary>
        /// <exception cref="RamwayException">
        /// Busy if the role is taken; InvalidArgument, AbiMismatch or Corrupt for a descriptor of something else; Os for a
        /// descriptor that is not open.
        /// </exception>
        public static Receiver FromFd(int fd, RingOptions? options = null) =>
            Over(Unnamed.Attach(fd, options ?? RingOptions.Default, Role.Consumer), options);

        private static Receiver Named(string name, How how, RingOptions? options) =>
            Over(Attachment.Named(name, how, options ?? RingOptions.Default, Role.Consumer), options);

        /// <summary>The receiver of an attachment, which is released if that fails.</summary>
        internal static Receiver Over(Attachment attachment, RingOptions? options) =>
            Over(attachment, options ?? RingOptions.Default, (at, o) => new Receiver(at, o));

        /// <summary>Gives the next message, and waits for it without a limit.</summary>
        /// <exception cref="RamwayException">
        /// After the last message: Closed if the sender closed, PeerDead if it died (within 200 ms after the kernel has released
        /// its files). On a named ring both end when a successor attaches, so calling again is meaningful; a sender that never
        /// attached is waited for. Busy, Corrupt, Detached.
        /// </exception>
        public Message Recv()
        {
            uint ticket = EnterOut();
            if (!guard.IsShut && HasFrame())
            {
                return new Message(this, ticket, 0);
            }
            return RecvSlow(null, default);
        }

        /// <summary>
        /// The same, and waits no longer than the time-out (null: without a limit) and until the token is cancelled, which is
        /// checked only if the call has to wait.
        /// </summary>
        /// <exception cref="RamwayException">As above, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public Message Recv(TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            uint ticket = EnterOut();
            if (!guard.IsShut && HasFrame())
            {
                return new Message(this, ticket, 0);
            }
            return RecvSlow(timeout, cancellationToken);
        }

        /// <summary>Receives without waiting; false if there is no message now.</summary>
        /// <exception cref="RamwayException">As for <see cref="Recv()"/>.</exception>
        public bool TryRecv(out Message message)
        {
            uint ticket = EnterOut();
            if (!guard.IsShut && HasFrameNow())
            {
                message = new Message(this, ticket, 0);
                return true;
            }
            if (TryNext())
            {
                message = new Message(this, guard.LeaveOut(), 0);
                return true;
            }
            message = default;
            return false;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private Message RecvSlow(TimeSpan? timeout, CancellationToken token)
        {
            Next(timeout, token);
            return new Message(this, guard.LeaveOut(), 0);
        }

        /// <summary>
        /// Gives up to max messages, those that are there, and waits for the first one without a limit. The receiver keeps 48
        /// bytes for each message, which the next batch uses again.
        /// </summary>
        /// <exception cref="RamwayException">As for Recv, and InvalidArgument for a max below 1.</exception>
        public Batch RecvBatch(int max)
        {
            CheckMax(max);
            EnterOut();
            if (guard.IsShut || !HasFrame())
            {
                Next(null, default);
            }
            return Gather(max);
        }

        /// <summary>
        /// The same, and waits no longer than the time-out (null: without a limit) and until the token is cancelled, which is
        /// checked only if the call has to wait.
        /// </summary>
        /// <exception cref="RamwayException">As above, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public Batch RecvBatch(int max = Facts.BatchDefault, TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            CheckMax(max);
            EnterOut();
            if (guard.IsShut || !HasFrame())
            {
                Next(timeout, cancellationToken);
            }
            return Gather(max);
        }

        /// <summary>The same without waiting; false if there is no message now.</summary>
        /// <exception cref="RamwayException">As for RecvBatch.</exception>
        public bool TryRecvBatch(int max, out Batch batch)
        {
            CheckMax(max);
            EnterOut();
            if ((guard.IsShut || !HasFrameNow()) && !TryNext())
            {
                batch = default;
                return false;
            }
            batch = Gather(max);
            return true;
        }

        /// <summary>The same of up to 1024 messages.</summary>
        /// <exception cref="RamwayException">As for RecvBatch.</exception>
        public bool TryRecvBatch(out Batch batch) => TryRecvBatch(Facts.BatchDefault, out batch);

        private void CheckMax(int max)
        {
            if (max < 1)
            {
                throw Fail(ErrorKind.InvalidArgument, "a batch of at most " + max + " messages: ask for at least 1");
            }
        }

        /// <summary>More room for frames. If there is none, nothing is out.</summary>
        private protected void Grow(int max)
        {
            try
            {
                Array.Resize(ref frames, (int)Math.Min(Math.Max(16, 2L * frames.Length), max));
            }
            catch
            {
                StepBack(frames.Length);
                LeaveEmpty();
                throw;
            }
        }

        /// <summary>This many messages, which were taken and not released, can be received again.</summary>
        private protected virtual void StepBack(int count) => head = released;

        /// <summary>
        /// Copies the next message and releases it, and gives its length. Each byte in the ring is read once, by the copy: the one
        /// way to receive that a peer cannot disturb by rewriting what it sent. Waits, and fails, like <see
        /// cref="Recv(TimeSpan?, CancellationToken)"/>; a message that is longer than the buffer (TooLarge, info tells)
        /// stays where it is.
        /// </summary>
        /// <exception cref="RamwayException">As for Recv, and TooLarge.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public int RecvInto(Span<byte> buffer, out MessageInfo info, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            bool there = false;
            if (this is Subscriber { CopiesOut: true } topic)
            {
                info = default;
                topic.TakeTo(buffer, WaitLimit.Of(timeout, cancellationToken), out there);
            }
            else if (!Enter() || !HasFrame())
            {
                info = default;
                Next(timeout, cancellationToken);
            }
            Copy(buffer, there, out info);
            return info.Length;
        }

        /// <summary>The same without waiting; false if there is no message now.</summary>
        /// <exception cref="RamwayException">As for Recv, and TooLarge.</exception>
        public bool TryRecvInto(Span<byte> buffer, out MessageInfo info)
        {
            bool there = false;
            if (this is Subscriber { CopiesOut: true } topic
                ? !topic.TakeTo(buffer, WaitLimit.None, out there)
                : (!Enter() || !HasFrameNow()) && !TryNext())
            {
                info = default;
                return false;
            }
            Copy(buffer, there, out info);
            return true;
        }

        /// <summary>The same for a message of any length: the writer is asked for room for the whole of it at once. If the
        /// writer throws, the message is still there.</summary>
        /// <exception cref="RamwayException">As for Recv.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public MessageInfo RecvAppend(IBufferWriter<byte> writer, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            if (writer == null)
            {
                throw new ArgumentNullException(nameof(writer));
            }
            bool there = false;
            using Message message = this is Subscriber { CopiesOut: true } topic
                ? topic.RecvTo(writer, WaitLimit.Of(timeout, cancellationToken), out there)
                : Recv(timeout, cancellationToken);
            try
            {
                // Outside of the guard, because the writer is the caller's code.
                if (message.Length > 0)
                {
                    if (!there)
                    {
                        message.Data.CopyTo(writer.GetSpan(message.Length));
                    }
                    writer.Advance(message.Length);
                }
                return message.Info;
            }
            catch
            {
                message.PutBack();
                throw;
            }
        }

        /// <summary>Copies the frame that was taken, unless it is there, releases it and leaves the guard.</summary>
        private void Copy(Span<byte> buffer, bool there, out MessageInfo info)
        {
            ref readonly Frame frame = ref frames[0];
            if (this is Subscriber)
            {
                MessageInfo.Of(frame, out info);
            }
            else
            {
                MessageInfo.OfRing(frame, out info);
            }
            if (frame.Length > buffer.Length)
            {
                StepBack(1);
                RamwayException e = Fail(ErrorKind.TooLarge, "a message of " + frame.Length + " bytes does not fit into a " +
                    "buffer of " + buffer.Length + "; it is still there");
                guard.Leave();
                throw e;
            }
            if (!there)
            {
                new ReadOnlySpan<byte>(frame.Data, frame.Length).CopyTo(buffer);
            }
            GiveBack();
            guard.Leave();
        }

        /// <summary>
        /// Receives a message as memory that can be kept, passed to other threads and awaited with; until its Dispose nothing
        /// else can be received. Allocates the object. Waits, and fails, like <see cref="Recv(TimeSpan?, CancellationToken)"/>.
        /// </summary>
        /// <exception cref="RamwayException">As for Recv.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public OwnedMessage RecvMemory(TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
            new OwnedMessage(Recv(timeout, cancellationToken).ToLease());

        /// <summary>
        /// Why a frame that is there could not be taken; null: it can be tried again. In a ring: no correct sender wrote it.
        /// </summary>
        private protected virtual Exception? Untaken() => Corrupt();

        /// <summary>Takes the next frame out of the ring, inside the guard, or leaves it and throws.</summary>
        private void Next(TimeSpan? timeout, CancellationToken token) => TakeSlow(WaitLimit.Of(timeout, token));

        /// <summary>Likewise without waiting; false, outside of the guard: there is no message now.</summary>
        private bool TryNext() => TakeSlow(WaitLimit.None);

        private protected override Exception? Take(in WaitLimit limit) =>
            Obtain(limit) ?? (ParseFirst() ? null : Corrupt());

        /// <summary>Takes a frame that is there, or comes at once. False: the slow way says why not.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected bool HasFrame() => (head != tail || Poll()) && ParseFirst();

        /// <summary>Likewise by one check.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected bool HasFrameNow() => (head != tail || CheckTail()) && ParseFirst();

        /// <summary>
        /// The first polls of a wait, which cost less than the general wait: an answer that comes within a microsecond is found
        /// here. False: nothing came, or what came is wrong.
        /// </summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private bool Poll()
        {
            ulong found = burst;
            burst = 0;
            if (found <= capacity / 4 && wait.FirstPolls != 0)
            {
                backOff.BeforePoll(found, (frameExtra + (uint)frames[0].Length) & ~alignMask);
            }
            ulong now = Volatile.Read(ref *tailWord);
            if (now == tail && (wait.FirstPolls == 0 || !Waiter.Changes(tailWord, tail, wait.FirstPolls)))
            {
                return false;
            }
            return CheckTail();
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected bool CheckTail()
        {
            ulong now = Volatile.Read(ref *tailWord);
            return now != tail && Accept(now);
        }

        /// <summary>
        /// Checks a shared tail that moved, once, and takes it: it may only move forward, up to released + capacity, in whole
        /// alignment steps.
        /// </summary>
        private bool Accept(ulong now) => this is Subscriber topic ? topic.AcceptTopic(now) : AcceptTail(now);

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected bool AcceptTail(ulong now)
        {
            ulong moved = now - tail;
            if (moved > capacity - (tail - released) || (moved & alignMask) != 0)
            {
                return false;
            }
            tail = now;
            burst = moved;
            return true;
        }

        /// <summary>Takes the frame at head, which lies before tail, as the one that is out.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private bool ParseFirst() => this is Subscriber topic ? topic.TakeFirst() : ParseRing(ref frames[0]);

        /// <summary>
        /// Reads the frame at head, which lies before tail, and steps over it. False: no correct sender wrote it.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private bool ParseRing(ref Frame frame)
        {
            // A frame's first 16 bytes are within the published bytes, which are a positive multiple of align; and aligned.
            byte* at = data + (head & wrap);
            // Each number is read exactly once, so that a peer that rewrites it cannot pass the check with one value and be used
            // with another.
            ulong word = Volatile.Read(ref *(ulong*)at), tag = Volatile.Read(ref *(ulong*)(at + 8));
            ulong length = (uint)word, size = (frameExtra + length) & ~alignMask;
            if (size > tail - head || length > Facts.MessageMax)
            {
                return false;
            }
            head += size;
            frame.Data = at + Facts.FrameHeader;
            frame.Tag = tag;
            frame.Length = (int)length;
            frame.TypeId = (uint)(word >> 32);
            return true;
        }

        /// <summary>A frame that is out; the caller has asked <see cref="RingEnd.Holds"/>.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal ref readonly Frame FrameAt(int index) => ref frames[index];

        /// <summary>
        /// Releases every frame that is out, and wakes the sender if it sleeps and a quarter of the ring is free or the ring is
        /// drained. (Otherwise the wake-up is put off, not dropped: one of the two comes true before this side can find the ring
        /// empty, and a close wakes in any case.)
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected void GiveBack()
        {
            ulong end = head;
            // Release: our reads of the frames go before the position that lets the sender overwrite them.
            Publish(headWord, end);
            released = end;
            // By the tail last seen, which may be behind: then this says "free" too often, never too rarely.
            if (tail - end <= wakeBelow && PeerSleepsOrChanged())
            {
                ServePeer();
            }
        }

        /// <summary>Ends what is out by this ticket, in any state of the handle; once, then it does nothing.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void Release(uint ticket)
        {
            if (!guard.Holds(ticket))
            {
                return;
            }
            // Nobody unmaps while something is out.
            if (guard.IsShut)
            {
                ReleaseShut();
            }
            else
            {
                GiveBack();
            }
            guard.End(ticket);
            if (guard.IsShut)
            {
                FinishClose();
            }
        }

        /// <summary>Ends what is out by this ticket without releasing it: the next receive gives it again.</summary>
        internal void PutBack(uint ticket)
        {
            if (guard.Holds(ticket))
            {
                StepBack(1);
                guard.End(ticket);
                if (guard.IsShut)
                {
                    FinishClose();
                }
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private void ReleaseShut()
        {
            if (guard.IsDead)
            {
                // Not published by a dead handle.
                head = released;
            }
            else
            {
                GiveBack();
            }
        }

        private protected override ulong* Position(out ulong seen)
        {
            seen = tail;
            return tailWord;
        }

        internal override void ReadAhead() => Sys.Cpu.ReadAhead(data + (head & wrap));

        private protected override Exception? Ready()
        {
            if (head != tail)
            {
                return null;
            }
            ulong now = Volatile.Read(ref *tailWord);
            return now == tail ? NotNow : Accept(now) ? null : Corrupt();
        }

        private protected override void CloseMet()
        {
            if (SenderClosed(out uint epoch))
            {
                // Release: a receiver that sees this close as delivered sees head where it was when it was.
                Volatile.Write(ref *closeSeen, epoch);
            }
        }

        /// <summary>
        /// Whether the sender has closed, and its epoch: the closer's only if it is the same before and after its flag was seen.
        /// </summary>
        private bool SenderClosed(out uint epoch)
        {
            epoch = Volatile.Read(ref peer->Epoch);
            return (Volatile.Read(ref peer->Flags) & Facts.RoleClosed) != 0 && Volatile.Read(ref peer->Epoch) == epoch;
        }

        /// <summary>
        /// How many bytes, frame headers and padding included, are published and not released. It may have changed when it
        /// returns. 0 once the handle is closed.
        /// </summary>
        public long PendingBytes
        {
            get
            {
                bool wasOut = EnterBeside();
                // Clamped, because the peer could write anything.
                long bytes = guard.IsClosed ? 0 : (long)Math.Min(Unread(), capacity);
                LeaveBeside(wasOut);
                return bytes;
            }
        }

        private protected virtual ulong Unread() => Volatile.Read(ref *tailWord) - released;

        /// <summary>Where a message lies that is to be kept as memory that can be written.</summary>
        internal virtual byte* WritableAt(int index) => frames[index].Data;

        /// <summary>
        /// Nothing more will be received: a sender that waits for room must not wait for the end of a message that is kept.
        /// </summary>
        private protected override void CloseBeside() => AnnounceClose();
    }
}
