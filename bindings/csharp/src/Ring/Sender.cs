using System;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    /// <summary>The sending end of a ring; one per ring, in the whole system.</summary>
    /// <remarks>
    /// A message is visible to the receiver when the call that sends it returns, and is delivered even if this process is killed
    /// right after. No call allocates or enters the kernel unless it waits, wakes a peer that does, or fails.
    /// <para>
    /// One thread at a time may use it, see <see cref="RingEnd"/>. A Sender that becomes garbage without Dispose is closed, after
    /// what was committed has been flushed; at the end of the process it is not: then the receiver is told PeerDead.
    /// </para>
    /// <code>
    /// using var sender = Sender.Create("ticks", new RingOptions { Capacity = 1 &lt;&lt; 20 });
    /// sender.Send(7, payload);
    /// </code>
    /// </remarks>
    public unsafe partial class Sender : RingEnd
    {
        // A topic's publisher is a sender that writes another header, and has other rules for how far it may write and whom it wakes:
        // `this is Publisher`, which is one comparison, chooses where a message is written and published. All else is the same.

        // tail is the end of the last committed frame, published the shared word: what was flushed.
        // Invariant: published <= tail and tail - head <= capacity, wrapping.
        private protected ulong tail, published;
        /// <summary>How far tail may go: the shared head as last seen, and a capacity.</summary>
        private protected ulong limit;
        /// <summary>The last committed frame's.</summary>
        private ulong lastTag;
        /// <summary>The message that a slow call wants room for, and that room in bytes.</summary>
        private uint wantedType;
        private int wantedLength;
        private protected ulong need;
        /// <summary>Which of the two last-tag records is written next.</summary>
        private int nextRecord;

        /// <summary>
        /// Takes the producer's role of an attachment (ABI.md, section 6). After an exception the attachment is still the
        /// caller's.
        /// </summary>
        private Sender(Attachment attachment, RingOptions options)
            : base(attachment, Role.Producer, options)
        {
            // Acquire: pairs with the last producer's publish and the consumer's release.
            published = tail = Volatile.Read(ref ring->Tail);
            ulong head = Volatile.Read(ref ring->Head);
            limit = head + capacity;
            if (!Layout.PositionsAgree(tail, head, capacity, align))
            {
                throw Fail(ErrorKind.Corrupt);
            }
            // Overwrite the record that is not the last frame's, and forget one that a kill left ahead of tail: the next frame may
            // end right there.
            for (int i = 0; i < 2; i++)
            {
                if (Volatile.Read(ref RecordAt(i)->End) != tail)
                {
                    Volatile.Write(ref RecordAt(i)->End, Facts.NoPosition);
                }
                else if (i == 0)
                {
                    nextRecord = 1;
                }
            }
            attachment.CloseFile();
            Announce(attachment);
        }

        /// <summary>For a topic's publisher, which takes its role itself.</summary>
        private protected Sender(Attachment attachment, TopicOptions options)
            : base(attachment, Role.Producer, options)
        {
        }

        /// <summary>Makes a ring that must be new, and is its sender.</summary>
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
        public static Sender Create(string name, RingOptions? options = null) => Named(name, How.Create, options);

        /// <summary>
        /// The sender of a ring that exists, also of one that dead processes left: its messages are still there. Waits as
        /// Timeout of the options says.
        /// </summary>
        /// <exception cref="RamwayException">
        /// NotFound if no ring has the name, Busy if it has a sender; AbiMismatch or Corrupt if the name leads to something that is
        /// not a ring of this version, which is left alone.
        /// </exception>
        public static Sender Open(string name, RingOptions? options = null) => Named(name, How.Open, options);

        /// <summary>Opens a ring if it exists, and makes it if not.</summary>
        /// <exception cref="RamwayException">
        /// As for the other two; InvalidArgument if it exists with another capacity or alignment than was asked for.
        /// </exception>
        public static Sender OpenOrCreate(string name, RingOptions? options = null) => Named(name, How.OpenOrCreate, options);

        /// <summary>
        /// The sender of the ring behind a descriptor of <see cref="Ring.Unnamed"/>, inherited or received by a socket. The
        /// descriptor stays the caller's, and may be closed after this. Of the options Discard, Persistent and Mode are refused.
        /// </summary>
        /// <exception cref="RamwayException">
        /// Busy if the role is taken; InvalidArgument, AbiMismatch or Corrupt for a descriptor of something else; Os for a
        /// descriptor that is not open.
        /// </exception>
        public static Sender FromFd(int fd, RingOptions? options = null) =>
            Over(Unnamed.Attach(fd, options ?? RingOptions.Default, Role.Producer), options);

        private static Sender Named(string name, How how, RingOptions? options) =>
            Over(Attachment.Named(name, how, options ?? RingOptions.Default, Role.Producer), options);

        /// <summary>The sender of an attachment, which is released if that fails.</summary>
        internal static Sender Over(Attachment attachment, RingOptions? options) =>
            Over(attachment, options ?? RingOptions.Default, (at, o) => new Sender(at, o));

        /// <summary>
        /// Sends a message, and waits for room without a limit. typeId is the application's, below 0xFFFF0000. What was
        /// committed unflushed goes first. After an exception nothing of this message was sent.
        /// </summary>
        /// <exception cref="RamwayException">
        /// TooLarge for more than <see cref="RingEnd.MaxMessageLength"/> bytes, InvalidArgument for a reserved typeId, Closed or
        /// PeerDead if there is no room and nobody left to make any (on a bus Closed as soon as the peer closed), Busy while a
        /// slot is open, Corrupt, Detached.
        /// </exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void Send(uint typeId, ReadOnlySpan<byte> data) => Send(typeId, 0, data);

        /// <summary>
        /// The same with a tag: a correlation id, a time stamp, a key. <see cref="LastTag"/> gives the last one back after a
        /// restart.
        /// </summary>
        public void Send(uint typeId, ulong tag, ReadOnlySpan<byte> data)
        {
            if (!Enter() || typeId >= Facts.TypeIdReserved || !Fits((uint)data.Length))
            {
                MakeRoom(typeId, data.Length, null, default);
            }
            Put(typeId, data, tag);
        }

        /// <summary>
        /// The same, and waits for room no longer than the time-out (null: without a limit) and until the token is cancelled,
        /// which is checked only if the call has to wait.
        /// </summary>
        /// <exception cref="RamwayException">As above, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void Send(uint typeId, ReadOnlySpan<byte> data, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default) => Send(typeId, 0, data, timeout, cancellationToken);

        /// <summary>The same with a tag.</summary>
        /// <exception cref="RamwayException">As above, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void Send(uint typeId, ulong tag, ReadOnlySpan<byte> data, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            if (!Enter() || typeId >= Facts.TypeIdReserved || !Fits((uint)data.Length))
            {
                MakeRoom(typeId, data.Length, timeout, cancellationToken);
            }
            Put(typeId, data, tag);
        }

        /// <summary>
        /// Sends without waiting; false if there is no room now. Closed and PeerDead where there never will be any, as for Send.
        /// </summary>
        /// <exception cref="RamwayException">As for Send.</exception>
        public bool TrySend(uint typeId, ReadOnlySpan<byte> data) => TrySend(typeId, 0, data);

        /// <summary>The same with a tag.</summary>
        /// <exception cref="RamwayException">As for Send.</exception>
        public bool TrySend(uint typeId, ulong tag, ReadOnlySpan<byte> data)
        {
            if ((!Enter() || typeId >= Facts.TypeIdReserved || !Fits((uint)data.Length)) &&
                !TryMakeRoom(typeId, data.Length))
            {
                return false;
            }
            Put(typeId, data, tag);
            return true;
        }

        /// <summary>
        /// Sends a message, and waits for room without holding a thread. If there is room it is sent when this returns, and
        /// nothing is allocated. The token is checked only if there is none.
        /// </summary>
        /// <remarks>
        /// Until it is over, this is a call in progress: no other may be made, but for Dispose, which ends it with Detached.
        /// </remarks>
        /// <exception cref="RamwayException">As for Send.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask SendAsync(uint typeId, ReadOnlyMemory<byte> data, CancellationToken cancellationToken = default) =>
            SendAsync(typeId, 0, data, cancellationToken);

        /// <summary>The same with a tag.</summary>
        /// <exception cref="RamwayException">As for Send.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask SendAsync(uint typeId, ulong tag, ReadOnlyMemory<byte> data, CancellationToken cancellationToken = default)
        {
            ReadOnlySpan<byte> bytes = data.Span;
            if (guard.IsTaken)
            {
                return new ValueTask(Task.FromException(Taken()));
            }
            if (Enter() && typeId < Facts.TypeIdReserved && Fits((uint)bytes.Length))
            {
                Put(typeId, bytes, tag);
                return default;
            }
            guard.Leave();
            return SendLater(this, typeId, data, tag, cancellationToken);
        }

        /// <summary>
        /// Waits without holding a thread until a message of length bytes can be sent: true; false if the receiver has closed and
        /// there is no room. What was committed unflushed is flushed if there is none.
        /// </summary>
        /// <exception cref="RamwayException">As for Send, but for Closed.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask<bool> WaitToWriteAsync(int length, CancellationToken cancellationToken = default)
        {
            if (guard.IsTaken)
            {
                return Failed(Taken());
            }
            if (Enter() && Fits((uint)length))
            {
                guard.Leave();
                return new ValueTask<bool>(true);
            }
            Want(0, length);
            return WaitLater(cancellationToken);
        }

        /// <summary>
        /// Sends messages and publishes them together, or earlier where the ring fills up: then it waits for room. Says how many
        /// were sent: fewer than all if it could not go on after at least one. The next call, which has nothing sent before,
        /// throws the reason.
        /// </summary>
        /// <exception cref="RamwayException">As for Send, if none was sent.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled, and none was sent.</exception>
        public int SendBatch(uint typeId, ReadOnlySpan<ReadOnlyMemory<byte>> messages, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default) => SendBatch(typeId, 0, messages, timeout, cancellationToken);

        /// <summary>The same with a tag, the same for all.</summary>
        /// <exception cref="RamwayException">As above.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled, and none was sent.</exception>
        public int SendBatch(uint typeId, ulong tag, ReadOnlySpan<ReadOnlyMemory<byte>> messages, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            Exception? e = null;
            int sent = 0;
            bool open = Enter();
            try
            {
                // Of all waits of the call together; it begins with the first.
                WaitLimit limit = WaitLimit.None;
                if (!open && messages.IsEmpty)
                {
                    e = Refused();
                }
                try
                {
                    for (; sent < messages.Length; sent++)
                    {
                        ReadOnlySpan<byte> data = messages[sent].Span;
                        if (guard.IsShut || typeId >= Facts.TypeIdReserved || !Fits((uint)data.Length))
                        {
                            limit = limit.IsNone ? WaitLimit.Of(timeout, cancellationToken) : limit;
                            e = RoomFor(typeId, data.Length, limit);
                            if (e != null)
                            {
                                break;
                            }
                        }
                        data.CopyTo(new Span<byte>(Payload, data.Length));
                        Commit((uint)data.Length, typeId, tag);
                    }
                }
                catch when (sent > 0)
                {
                    // A message's own memory threw, and will again at the next call, for which this is left.
                }
                // Closed meanwhile: the close flushes once this call has left, and may be unmapping already if it came first.
                if (!guard.IsShut)
                {
                    FlushCommitted();
                }
            }
            finally
            {
                guard.Leave();
            }
            return e == null || sent > 0 ? sent : throw e;
        }

        /// <summary>
        /// Sends one message gathered from several pieces. Waits for room no longer than the time-out (null: without a limit) and
        /// until the token is cancelled.
        /// </summary>
        /// <exception cref="RamwayException">As for Send, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void SendVectored(uint typeId, ReadOnlySpan<ReadOnlyMemory<byte>> parts, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default) => SendVectored(typeId, 0, parts, timeout, cancellationToken);

        /// <summary>The same with a tag.</summary>
        /// <exception cref="RamwayException">As for Send, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void SendVectored(uint typeId, ulong tag, ReadOnlySpan<ReadOnlyMemory<byte>> parts, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            long length = 0;
            foreach (ReadOnlyMemory<byte> part in parts)
            {
                length += part.Length;
            }
            if (length > int.MaxValue)
            {
                throw Fail(ErrorKind.TooLarge, "a message of " + length + " bytes can never fit into any ring");
            }
            if (!Enter() || typeId >= Facts.TypeIdReserved || !Fits((uint)length))
            {
                MakeRoom(typeId, (int)length, timeout, cancellationToken);
            }
            try
            {
                var to = new Span<byte>(Payload, (int)length);
                foreach (ReadOnlyMemory<byte> part in parts)
                {
                    part.Span.CopyTo(to);
                    to = to.Slice(part.Length);
                }
                Commit((uint)length, typeId, tag);
                FlushCommitted();
            }
            finally
            {
                // A piece's own memory may throw.
                guard.Leave();
            }
        }

        /// <summary>Sends what there is room for, and leaves the guard.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void Put(uint typeId, ReadOnlySpan<byte> data, ulong tag)
        {
            data.CopyTo(new Span<byte>(Payload, data.Length));
            if (this is Publisher topic)
            {
                topic.Deliver((uint)data.Length, typeId, tag);
            }
            else
            {
                CommitToRing((uint)data.Length, typeId, tag);
                FlushRing();
            }
            guard.Leave();
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void CommitAndFlush(uint length, uint typeId, ulong tag)
        {
            if (this is Publisher topic)
            {
                topic.CommitAndPublish(length, typeId, tag);
                return;
            }
            CommitToRing(length, typeId, tag);
            FlushRing();
        }

        /// <summary>
        /// Whether a payload of length bytes can be written right now: the peer's flags are as last acted upon, and there is room
        /// by the position last seen. A negative length is a huge one here.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal bool Fits(uint length) =>
            length <= maxLength && FrameSize(length) <= limit - tail && Volatile.Read(ref peer->Flags) == peerFlags;

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected ulong FrameSize(ulong length) => (frameExtra + length) & ~alignMask;

        /// <summary>Makes room inside the guard, or leaves it and throws.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private void MakeRoom(uint typeId, int length, TimeSpan? timeout, CancellationToken token)
        {
            Want(typeId, length);
            TakeSlow(WaitLimit.Of(timeout, token));
        }

        /// <summary>Likewise without waiting; false, outside of the guard: there is no room now.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private bool TryMakeRoom(uint typeId, int length)
        {
            Want(typeId, length);
            return TakeSlow(WaitLimit.None);
        }

        /// <summary>Likewise for a call that stays inside the guard whatever comes of it.</summary>
        private Exception? RoomFor(uint typeId, int length, in WaitLimit limit)
        {
            Want(typeId, length);
            return Obtain(limit);
        }

        private void Want(uint typeId, int length)
        {
            wantedType = typeId;
            wantedLength = length;
        }

        private protected override Exception? Prepare()
        {
            if (wantedLength < 0)
            {
                return Fail(ErrorKind.InvalidArgument, "a message of " + wantedLength + " bytes: expected 0 or more");
            }
            if (wantedType >= Facts.TypeIdReserved)
            {
                return ReservedType(wantedType);
            }
            if (Volatile.Read(ref peer->Flags) != peerFlags)
            {
                PeerChanged();
                if (guard.IsShut)
                {
                    return Refused();
                }
            }
            if ((uint)wantedLength > maxLength)
            {
                return Fail(ErrorKind.TooLarge, "a message of " + wantedLength + " bytes can never fit: this " + Kind + " of " + capacity +
                    " bytes takes at most " + maxLength + "; create it with a larger capacity or cut the message");
            }
            need = FrameSize((uint)wantedLength);
            return null;
        }

        private RamwayException ReservedType(uint typeId) => Fail(ErrorKind.InvalidArgument,
            "type id 0x" + typeId.ToString("x") + " is Ramway's own: applications use ids below 0xffff0000");

        /// <summary>
        /// Where the next frame's payload goes, which fits: inside the mirrored 2 * capacity bytes, and nobody else's before they
        /// are published.
        /// </summary>
        internal byte* Payload
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get => payloads + (tail & wrap);
        }

        /// <summary>Makes the next length bytes a message, not yet visible to the receiver.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void Commit(uint length, uint typeId, ulong tag)
        {
            if (this is Publisher topic)
            {
                topic.CommitNumbered(length, typeId, tag);
                return;
            }
            CommitToRing(length, typeId, tag);
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void CommitToRing(uint length, uint typeId, ulong tag)
        {
            ulong* payload = (ulong*)Payload;
            // Plain stores: nobody reads them before tail is published.
            payload[-2] = length | (ulong)typeId << 32;
            payload[-1] = tag;
            if (lastTag != tag)
            {
                lastTag = tag;
            }
            tail += FrameSize(length);
        }

        /// <summary>Makes everything committed visible, and wakes the receiver if it sleeps.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected void FlushCommitted()
        {
            if (tail == published)
            {
                return;
            }
            if (this is Publisher topic)
            {
                topic.PublishCommitted();
                return;
            }
            FlushRing();
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void FlushRing()
        {
            ulong end = tail;
            if (lastTag != 0)
            {
                // No record says "0".
                RecordTag();
            }
            Publish(&ring->Tail, end);
            published = end;
            if (PeerSleepsOrChanged())
            {
                ServePeer();
            }
        }

        /// <summary>
        /// A kill between any two of the stores leaves this record not matching tail, and the other one matching if it did. Only a
        /// later sender reads records, after the role has passed to it. Volatile: in this order.
        /// </summary>
        private void RecordTag()
        {
            TagRecord* at = RecordAt(nextRecord);
            nextRecord ^= 1;
            Volatile.Write(ref at->End, tail);
            Volatile.Write(ref at->Tag, lastTag);
        }

        private TagRecord* RecordAt(int i) => i == 0 ? &ring->LastTag0 : &ring->LastTag1;

        private protected override ulong* Position(out ulong seen)
        {
            seen = limit - capacity;
            return &ring->Head;
        }

        /// <summary>
        /// Whether the bytes needed are free, by the shared position. It is checked here, once, before it is used: it may only move
        /// forward, up to what was published, in whole alignment steps.
        /// </summary>
        private protected override Exception? Ready()
        {
            // Acquire: the consumer's last reads of the space it gave back come before our writes to it.
            ulong now = Volatile.Read(ref ring->Head), head = limit - capacity, moved = now - head;
            if (moved > published - head || (moved & alignMask) != 0)
            {
                return Corrupt();
            }
            limit = now + capacity;
            return need <= limit - tail ? null : NotNow;
        }

        private protected override void BeforeWait() => FlushCommitted();

        /// <summary>Makes every <see cref="Slot.CommitUnflushed(uint, ulong)"/> so far visible. Never waits.</summary>
        /// <exception cref="RamwayException">Detached, or what the handle is dead of.</exception>
        public void Flush()
        {
            bool wasOut = EnterBeside();
            RamwayException? e = guard.IsShut ? Refused() : null;
            if (e == null)
            {
                FlushCommitted();
            }
            LeaveBeside(wasOut);
            if (e != null)
            {
                throw e;
            }
        }

        /// <summary>
        /// The tag of the last message that is visible to receivers (0 if it was sent without one), by whichever sender of this
        /// ring; null before the first, and once the handle is closed. A restarted producer asks this where to go on.
        /// </summary>
        public ulong? LastTag
        {
            get
            {
                bool wasOut = EnterBeside();
                ulong? found = guard.IsClosed ? null : TagOfLast();
                LeaveBeside(wasOut);
                return found;
            }
        }

        private protected virtual ulong? TagOfLast()
        {
            // Whatever a record says, nothing ends there.
            bool any = published != Layout.FirstPosition(align);
            for (int i = 0; any && i < 2; i++)
            {
                if (Volatile.Read(ref RecordAt(i)->End) == published)
                {
                    return Volatile.Read(ref RecordAt(i)->Tag);
                }
            }
            return any ? 0 : (ulong?)null;
        }

        /// <summary>
        /// How many bytes, frame headers and padding included, the receiver has not released; what is committed but not flushed
        /// counts. Of a topic, what the slowest reliable subscriber has not released. It may have changed when it returns. 0 once the
        /// handle is closed.
        /// </summary>
        public long PendingBytes
        {
            get
            {
                bool wasOut = EnterBeside();
                // Clamped, because the peer could write anything.
                long bytes = guard.IsClosed ? 0 : (long)Math.Min(Unreleased(), capacity);
                LeaveBeside(wasOut);
                return bytes;
            }
        }

        private protected virtual ulong Unreleased() => tail - Volatile.Read(ref ring->Head);

        /// <summary>
        /// Gives the role up without telling the receiver that this was all: it is told PeerDead, as if this process had been
        /// killed, so that half a stream does not pass for a whole one. What was committed is delivered; an open slot is not. On
        /// a pair (<see cref="Ring.Pair"/>) this is Dispose, because there only a close tells. Unlike Dispose it is for the thread that
        /// uses the sender: a slot of another thread would lose its memory.
        /// </summary>
        public void Abandon() => ShutDown(false, true);
    }

    // No await in an unsafe context.
    public partial class Sender
    {
        private static async ValueTask SendLater(Sender sender, uint typeId, ReadOnlyMemory<byte> data, ulong tag,
            CancellationToken token)
        {
            while (!sender.TrySend(typeId, tag, data.Span))
            {
                if (!await sender.WaitToWriteAsync(data.Length, token).ConfigureAwait(false))
                {
                    throw sender.Fail(ErrorKind.Closed);
                }
            }
        }
    }
}
