// Generated from format/facts.toml by `make facts`: edit that, not this.
namespace Ramway
{
    /// <summary>What a segment holds.</summary>
    public enum SegmentKind
    {
        /// <summary>Shared bytes with notify and wait; block 0 is the region's.</summary>
        Region = 1,
        /// <summary>One ring, in block 0.</summary>
        Ring = 2,
        /// <summary>Two rings: block 0 from the listener to the connector, block 1 back.</summary>
        Bus = 3,
        /// <summary>The lock of a listening socket; no block.</summary>
        Listener = 4,
        /// <summary>One log with one publisher and many subscribers; block 0 is the topic's.</summary>
        Topic = 5,
    }

    /// <summary>What a message of the handshake is.</summary>
    internal enum HandshakeType : uint
    {
        /// <summary>The connector's first message.</summary>
        Hello = 1,
        /// <summary>The listener's answer, with the memory.</summary>
        Welcome = 2,
        /// <summary>The listener's answer, with the reason.</summary>
        Refuse = 3,
        /// <summary>The connector's last message: what it found in the memory.</summary>
        Ack = 4,
    }

    /// <summary>
    /// What went wrong. The numbers are part of the format and never change; every language has the same ones.
    /// </summary>
    public enum ErrorKind
    {
        /// <summary>Nothing has this name.</summary>
        NotFound = 1,
        /// <summary>
        /// The name is taken: by a live segment, by undelivered messages, or by something that is not Ramway's.
        /// </summary>
        AlreadyExists = 2,
        /// <summary>An argument cannot be right; the message says which and what was expected.</summary>
        InvalidArgument = 3,
        /// <summary>The role, slot or view is taken.</summary>
        Busy = 4,
        /// <summary>The ring or topic has no room for this message now.</summary>
        Full = 5,
        /// <summary>The ring has no message now.</summary>
        Empty = 6,
        /// <summary>The message can never fit into this ring.</summary>
        TooLarge = 7,
        /// <summary>The deadline passed.</summary>
        TimedOut = 8,
        /// <summary>The peer closed, and everything that it had sent has been received; or the name has vanished.</summary>
        Closed = 9,
        /// <summary>This handle is closed, or it belongs to the parent of a forked process.</summary>
        Detached = 10,
        /// <summary>
        /// The peer's process died without closing, and everything that it had committed has been received.
        /// </summary>
        PeerDead = 11,
        /// <summary>The shared memory holds what no correct peer writes; the handle stays dead.</summary>
        Corrupt = 12,
        /// <summary>Not Ramway's, or a version, byte order, feature or page size that this side cannot use.</summary>
        AbiMismatch = 13,
        /// <summary>The operating system, or a check of the peer's user, refuses.</summary>
        PermissionDenied = 14,
        /// <summary>Not enough memory or file system space.</summary>
        NoSpace = 15,
        /// <summary>The wait was interrupted: by a signal whose handler asked for it, or by the program.</summary>
        Interrupted = 16,
        /// <summary>This kernel, file system or setting cannot do what was asked.</summary>
        Unsupported = 17,
        /// <summary>Any other error of the operating system, with its number.</summary>
        Os = 18,
        /// <summary>
        /// The publisher of a topic ejected this subscriber, which was too slow; the error says how many messages were lost.
        /// </summary>
        Lagged = 19,
    }

    /// <summary>
    /// What a tensor's elements are: DLPack's type code in the upper byte, the bits of one element in the lower. In the
    /// order of the format's table, with the names of NumPy and ml_dtypes.
    /// </summary>
    public enum ElementType : ushort
    {
        /// <summary>Signed, 8 bits.</summary>
        Int8 = (0 << 8) | 8,
        /// <summary>Signed, 16 bits.</summary>
        Int16 = (0 << 8) | 16,
        /// <summary>Signed, 32 bits.</summary>
        Int32 = (0 << 8) | 32,
        /// <summary>Signed, 64 bits.</summary>
        Int64 = (0 << 8) | 64,
        /// <summary>Unsigned, 8 bits.</summary>
        UInt8 = (1 << 8) | 8,
        /// <summary>Unsigned, 16 bits.</summary>
        UInt16 = (1 << 8) | 16,
        /// <summary>Unsigned, 32 bits.</summary>
        UInt32 = (1 << 8) | 32,
        /// <summary>Unsigned, 64 bits.</summary>
        UInt64 = (1 << 8) | 64,
        /// <summary>IEEE 754 binary16.</summary>
        Float16 = (2 << 8) | 16,
        /// <summary>IEEE 754 binary32.</summary>
        Float32 = (2 << 8) | 32,
        /// <summary>IEEE 754 binary64.</summary>
        Float64 = (2 << 8) | 64,
        /// <summary>The upper half of a binary32.</summary>
        BFloat16 = (4 << 8) | 16,
        /// <summary>Two binary32: real part, imaginary part.</summary>
        Complex64 = (5 << 8) | 64,
        /// <summary>Two binary64: real part, imaginary part.</summary>
        Complex128 = (5 << 8) | 128,
        /// <summary>One byte, 0 or 1; a peer can send any byte.</summary>
        Bool = (6 << 8) | 8,
        /// <summary>8 bits: 3 of exponent, 4 of mantissa.</summary>
        Float8E3M4 = (7 << 8) | 8,
        /// <summary>8 bits: 4 of exponent, 3 of mantissa, with infinities.</summary>
        Float8E4M3 = (8 << 8) | 8,
        /// <summary>8 bits: 4 of exponent with a bias of 11, 3 of mantissa, one NaN.</summary>
        Float8E4M3B11Fnuz = (9 << 8) | 8,
        /// <summary>8 bits: 4 of exponent, 3 of mantissa, no infinities.</summary>
        Float8E4M3Fn = (10 << 8) | 8,
        /// <summary>8 bits: 4 of exponent, 3 of mantissa, one NaN.</summary>
        Float8E4M3Fnuz = (11 << 8) | 8,
        /// <summary>8 bits: 5 of exponent, 2 of mantissa, with infinities.</summary>
        Float8E5M2 = (12 << 8) | 8,
        /// <summary>8 bits: 5 of exponent, 2 of mantissa, one NaN.</summary>
        Float8E5M2Fnuz = (13 << 8) | 8,
        /// <summary>8 bits of exponent: a power of two.</summary>
        Float8E8M0Fnu = (14 << 8) | 8,
    }

    /// <summary>The facts of the format and the tuning constants: docs/ABI.md as numbers.</summary>
    internal static class Facts
    {
        // The segment header's values.

        /// <summary>The first eight bytes of every segment. As a little-endian number.</summary>
        internal const ulong Magic = 0x0A0D5941574D4152;
        /// <summary>Written in the creator's byte order, so that a reader of the other order sees it swapped.</summary>
        internal const uint ByteOrder = 0x0A0B0C0D;
        /// <summary>What a reader of the other byte order sees.</summary>
        internal const uint ByteOrderSwapped = 0x0D0C0B0A;
        /// <summary>A reader refuses another major version.</summary>
        internal const ushort VersionMajor = 1;
        /// <summary>
        /// What the creator of a region, ring, bus or listener writes. A reader accepts any minor version: it adds only what
        /// an older reader may ignore.
        /// </summary>
        internal const ushort VersionMinor = 0;
        /// <summary>What the creator of a topic writes: the minor version that brought topics.</summary>
        internal const ushort VersionMinorTopic = 1;
        /// <summary>The required feature bits of everything but an RPC's bus. Any other set bit is AbiMismatch.</summary>
        internal const uint FeaturesKnown = 0;
        /// <summary>
        /// A required feature bit, of a bus's segment and in its handshake: the bus carries RPC frames only. Who opens a
        /// plain bus does not know it.
        /// </summary>
        internal const uint FeatureRpc = 1;
        /// <summary>In the segment's flags: the last one out leaves the name in place.</summary>
        internal const uint FlagPersistent = 1;

        // The header page.

        /// <summary>The length of the header page in bytes: a segment's data begins here or later.</summary>
        internal const int HeaderSize = 4096;
        /// <summary>Where block 0 begins in the header page.</summary>
        internal const int Block0 = 0x400;
        /// <summary>Where block 1 begins in the header page.</summary>
        internal const int Block1 = 0x800;
        /// <summary>A line of a block: two cache lines, which processors fetch in pairs.</summary>
        internal const int LineSize = 128;
        /// <summary>A ring's part of the header page, in bytes.</summary>
        internal const int RingBlockSize = 0x280;
        /// <summary>A region's part of the header page, in bytes.</summary>
        internal const int RegionBlockSize = 0x100;
        /// <summary>A topic's part of the header page, in bytes.</summary>
        internal const int TopicBlockSize = 0x280;

        // Frames.

        /// <summary>The length of what precedes every payload: len u32, type id u32, tag u64.</summary>
        internal const int FrameHeader = 16;
        /// <summary>The smallest and default alignment of payloads.</summary>
        internal const uint AlignMin = 16;
        /// <summary>The largest alignment of payloads.</summary>
        internal const uint AlignMax = 4096;
        /// <summary>No message is longer, whatever the capacity: with its header it stays below 2^31.</summary>
        internal const uint MessageMax = 2_147_483_631;
        /// <summary>Type ids from here up are Ramway's own.</summary>
        internal const uint TypeIdReserved = 0xFFFF0000;
        /// <summary>The type id of a message that is a tensor frame.</summary>
        internal const uint TypeIdTensor = 0xFFFF0001;
        /// <summary>
        /// In the <c>end</c> of a last-tag record: no frame ends here, because positions are multiples of 16.
        /// </summary>
        internal const ulong NoPosition = 1;

        // Frames of a topic.

        /// <summary>
        /// The length of what precedes every payload of a topic: a ring's header, then seq u64 and time u64.
        /// </summary>
        internal const int TopicFrameHeader = 32;
        /// <summary>The smallest and default alignment of a topic's payloads.</summary>
        internal const uint TopicAlignMin = 32;
        /// <summary>No message of a topic is longer, whatever the capacity: with its header it stays below 2^31.</summary>
        internal const uint TopicMessageMax = 2_147_483_615;

        // A topic's parts.

        /// <summary>
        /// Parts of a topic's data area that have an entry in <c>starts</c> each. The publisher announces in advance, in
        /// whole parts, what it will overwrite.
        /// </summary>
        internal const int TopicChunks = 16;
        /// <summary>A topic has at most this many slots for subscribers.</summary>
        internal const uint TopicSlotsMax = 1024;
        /// <summary>In the creator's flags: no subscriber may hold the publisher back.</summary>
        internal const uint TopicLossyOnly = 1;
        /// <summary>
        /// In the creator's flags: a publisher may eject a subscriber that holds it back, so subscribers copy what they
        /// receive.
        /// </summary>
        internal const uint TopicMayEject = 2;
        /// <summary>The creator's flags that this version knows. Any other set bit is AbiMismatch.</summary>
        internal const uint TopicFlagsKnown = 3;

        // A subscriber's slot.

        /// <summary>The length of a slot in bytes.</summary>
        internal const int SlotSize = 128;
        /// <summary>The longest label of a subscriber, in bytes of UTF-8.</summary>
        internal const int LabelMax = 64;

        // The bits of a slot's state; its epoch is the upper half.

        /// <summary>A subscriber has the slot.</summary>
        internal const uint SlotActive = 1;
        /// <summary>The publisher does not overwrite what lies at the slot's cursor or after it.</summary>
        internal const uint SlotGating = 2;
        /// <summary>The slot, its label and its cursor stay when its subscriber goes.</summary>
        internal const uint SlotDurable = 4;
        /// <summary>The publisher has ejected the subscriber: it does not gate any more.</summary>
        internal const uint SlotEjected = 8;

        // The bits of a slot's flags, which its subscriber writes.

        /// <summary>As of a role: a real membarrier succeeded in the subscriber's process.</summary>
        internal const uint SlotFlagMembarrierCapable = 1;
        /// <summary>As of a role: the subscriber does not fence before it wakes the publisher.</summary>
        internal const uint SlotFlagFenceFree = 2;
        /// <summary>The subscriber reads the newest message only: for people who look at the topic.</summary>
        internal const uint SlotFlagLatest = 8;

        // The subscribers' shared word, which is accessed as one u64 only.

        /// <summary>
        /// A subscriber sleeps, or is about to. A sleeper sets it; the publisher adds this, which clears it and counts a
        /// wake-up.
        /// </summary>
        internal const ulong WordAsleep = 1;
        /// <summary>
        /// Who has to wake all subscribers whether or not one says that it sleeps adds this: it changes what they wait for,
        /// and keeps the bit.
        /// </summary>
        internal const ulong WordWake = 2;
        /// <summary>A subscriber that joins or leaves adds this: the upper half counts changes of the slots.</summary>
        internal const ulong WordChange = 4_294_967_296;

        // The bits of a role's flags.

        /// <summary>A real membarrier succeeded in the holder's process.</summary>
        internal const uint RoleMembarrierCapable = 1;
        /// <summary>As a waker, the holder does not fence.</summary>
        internal const uint RoleFenceFree = 2;
        /// <summary>The holder closed in an orderly way.</summary>
        internal const uint RoleClosed = 4;

        // A region's notification word.

        /// <summary>The bit that says that somebody waits.</summary>
        internal const uint NotifyWaiting = 1;
        /// <summary>What one notification adds: the bits above the first one count.</summary>
        internal const uint NotifyOne = 2;

        // The bytes of a segment's file that are locked.

        /// <summary>Shared: in use by a handle. Exclusive: the last one out, or a cleaner, decides about the name.</summary>
        internal const int ByteInUse = 0;
        /// <summary>Exclusive: the producer's role is held.</summary>
        internal const int ByteProducer = 1;
        /// <summary>Exclusive: the consumer's role is held.</summary>
        internal const int ByteConsumer = 2;
        /// <summary>Exclusive, of a listener's segment: somebody listens.</summary>
        internal const int ByteListener = 1;
        /// <summary>Exclusive, of a topic: the publisher's role is held.</summary>
        internal const int BytePublisher = 1;
        /// <summary>Exclusive, of a topic: a subscriber with a label looks for its slot.</summary>
        internal const int ByteJoin = 2;
        /// <summary>Exclusive, of a topic: this byte and the slot's number is the life of the slot's subscriber.</summary>
        internal const int ByteSlot = 16;

        // Names and directories.

        /// <summary>The longest name in the Ramway directory, in bytes.</summary>
        internal const int NameMax = 80;
        /// <summary>The characters of a name, as error texts show them. A name does not begin with a dot.</summary>
        internal const string NameCharacters = "A-Z a-z 0-9 . _ -";
        /// <summary>A listener's socket is NAME and this; no other name ends so.</summary>
        internal const string SocketSuffix = ".sock";
        /// <summary>Where a path is the socket, its listener's segment is PATH and this.</summary>
        internal const string LockSuffix = ".lock";
        /// <summary>
        /// How the file of a segment begins that has no name yet, where the file system has no nameless files.
        /// </summary>
        internal const string StagedPrefix = ".ramway-";
        /// <summary>How such a file ends; 16 hexadecimal digits are in between.</summary>
        internal const string StagedSuffix = ".new";
        /// <summary>The environment variable that names the Ramway directory.</summary>
        internal const string DirectoryVariable = "RAMWAY_DIR";
        /// <summary>Where that is unset or empty, the directory on Linux: this and the effective user id.</summary>
        internal const string DirectoryPrefix = "/dev/shm/ramway-";

        // The handshake of a bus.

        /// <summary>The length of every message, in every version.</summary>
        internal const int HandshakeSize = 64;
        /// <summary>The first eight bytes of every message. As a little-endian number.</summary>
        internal const ulong HandshakeMagic = 0x0A0D5355424D4152;
        /// <summary>Another major version is refused with AbiMismatch.</summary>
        internal const ushort HandshakeMajor = 1;
        /// <summary>Any minor version is accepted.</summary>
        internal const ushort HandshakeMinor = 0;
        /// <summary>The required features of a plain bus's handshake. Any other set bit is AbiMismatch.</summary>
        internal const uint HandshakeFeatures = 0;

        // RPC: type ids and methods of Ramway's own.

        /// <summary>The type id of a CALL: client to server.</summary>
        internal const uint TypeIdCall = 0xFFFF0010;
        /// <summary>The type id of a REPLY: server to client.</summary>
        internal const uint TypeIdReply = 0xFFFF0011;
        /// <summary>The type id of a CANCEL: client to server.</summary>
        internal const uint TypeIdCancel = 0xFFFF0012;
        /// <summary>The type id of a CREDIT: client to server.</summary>
        internal const uint TypeIdCredit = 0xFFFF0013;
        /// <summary>
        /// Bytes of a CALL's and a REPLY's header. Metadata and body follow, each from a multiple of this.
        /// </summary>
        internal const int RpcHeader = 16;
        /// <summary>In a REPLY's flags: an element of a stream, more follow.</summary>
        internal const uint RpcElement = 1;
        /// <summary>Methods from here up are Ramway's own.</summary>
        internal const uint MethodReserved = 0xFFFF0000;
        /// <summary>The method that replies with nothing: the server is there and reads.</summary>
        internal const uint MethodPing = 0xFFFF0000;
        /// <summary>The method that replies with the numbers and names of the server's methods.</summary>
        internal const uint MethodDescribe = 0xFFFF0001;
        /// <summary>The most calls in flight that a server can allow a client.</summary>
        internal const uint RpcInFlightMax = 1_048_576;
        /// <summary>The required features of an RPC's bus, in HELLO, WELCOME and the segment: exactly these.</summary>
        internal const uint RpcFeatures = 1;

        // How a call ended, in a final REPLY.

        /// <summary>The call succeeded.</summary>
        internal const uint RpcOk = 0;
        /// <summary>The handler replied with an error of its own: a number and a text.</summary>
        internal const uint RpcApplication = 1;
        /// <summary>The server has no such method. The call was not run.</summary>
        internal const uint RpcNoSuchMethod = 2;
        /// <summary>The call's time was over before it was begun. It was not run.</summary>
        internal const uint RpcTimedOut = 3;
        /// <summary>The call was cancelled.</summary>
        internal const uint RpcCancelled = 4;
        /// <summary>A limit of the server was reached. The call was not run.</summary>
        internal const uint RpcOverloaded = 5;
        /// <summary>The call was run, but its reply is longer than the ring or than the server's limit of bytes.</summary>
        internal const uint RpcReplyTooLarge = 6;
        /// <summary>The server is shutting down. The call was not run.</summary>
        internal const uint RpcDraining = 7;
        /// <summary>The handler failed in a way that it did not mean to: a panic, an exception.</summary>
        internal const uint RpcHandlerFailed = 8;

        // Tensor frames.

        /// <summary>A tensor has at most this many dimensions.</summary>
        internal const int NdimMax = 32;
        /// <summary>The elements begin on an address that is a multiple of this.</summary>
        internal const int TensorAlign = 64;
        /// <summary>Bytes of a tensor's header before the shape.</summary>
        internal const int TensorHeader = 8;

        // How a call waits. A poll takes 25 ns: a load and a PAUSE.

        /// <summary>
        /// Polls before a call sleeps, at most: 75 µs, about what a sleep and the wake-up from it cost (decision 18).
        /// </summary>
        internal const int SpinMax = 3000;
        /// <summary>Polls that are left where waits have been long.</summary>
        internal const int SpinMin = 32;
        /// <summary>Polls of a receiver before it enters the general wait: more than a round trip takes.</summary>
        internal const int FirstPolls = 32;
        /// <summary>
        /// Found by one poll: a receiver that has taken them backs off before it polls again. To poll at once would take the
        /// line of tail away from a sender that is writing (decision 39).
        /// </summary>
        internal const int BackOffFew = 8;
        /// <summary>
        /// Found by one poll: it backs off for twice as long. Not at all where more than a quarter of the capacity was
        /// found: that receiver is behind.
        /// </summary>
        internal const int BackOffMany = 32;
        /// <summary>
        /// How long it backs off: iterations of Thread.SpinWait, which the runtime makes 30 to 60 ns long on every
        /// processor.
        /// </summary>
        internal const int BackOffSpins = 16;
        /// <summary>
        /// Polls that found fewer messages until it backs off for once, to see whether more come then; twice as many after
        /// each time.
        /// </summary>
        internal const int BackOffTrialMin = 16;
        /// <summary>The most of them.</summary>
        internal const int BackOffTrialMax = 1024;
        /// <summary>
        /// Polls of a side that never sleeps between two checks of the clock, the deadline and the peer: 50 µs.
        /// </summary>
        internal const int PollsPerCheck = 2000;
        /// <summary>Polls between two checks whether the wait was cancelled: 1 µs.</summary>
        internal const int PollsPerCancelCheck = 40;
        /// <summary>
        /// A wait that was over before this, the spinning and the wake-up included, would have been better spent spinning to
        /// the end. In nanoseconds.
        /// </summary>
        internal const long ShortWaitNanos = 110_000;
        /// <summary>
        /// The longest sleep before another check of the deadline and of whether the peer lives. A blocked side learns of a
        /// death within two intervals. In nanoseconds.
        /// </summary>
        internal const long PollIntervalNanos = 100_000_000;
        /// <summary>
        /// The longest sleep where the waker does not fence and this side cannot make it: the wake-up may be missed, so it
        /// is short. In nanoseconds.
        /// </summary>
        internal const long UnorderedIntervalNanos = 1_000_000;
        /// <summary>How long a hybrid wait for a region's notification polls before it sleeps. In nanoseconds.</summary>
        internal const long RegionSpinNanos = 20_000;
        /// <summary>
        /// Between two polls of a region's handle that cannot write, and so cannot say that it waits. In nanoseconds.
        /// </summary>
        internal const long RegionPollIntervalNanos = 1_000_000;
        /// <summary>
        /// The wake-up of a waiting producer is put off until this fraction of the capacity is free (a quarter), or the ring
        /// is drained.
        /// </summary>
        internal const int WakeFraction = 4;

        // Topics.

        /// <summary>A topic's slots for subscribers, by default.</summary>
        internal const uint TopicSlotsDefault = 32;
        /// <summary>
        /// How often a call that does not wait lets the publisher overtake it before it gives up and says Empty.
        /// </summary>
        internal const int OvertakenMax = 16;
        /// <summary>
        /// A lossy subscriber that was overtaken resumes at the oldest known frame that is at most this fraction of the
        /// capacity (a half) behind <c>claim</c>: farther back it would be overtaken again.
        /// </summary>
        internal const int ResumeFraction = 2;

        // Listeners and connectors.

        /// <summary>Handshakes under way at a time: the oldest silent one makes room for the next connector.</summary>
        internal const int HandshakesMax = 64;
        /// <summary>Connectors that one accept turns away for want of descriptors before it reports the failure.</summary>
        internal const int TurnedAwayMax = 1024;
        /// <summary>
        /// How long the listening socket is left alone after accepting has failed for want of descriptors. In nanoseconds.
        /// </summary>
        internal const long AcceptPauseNanos = 100_000_000;
        /// <summary>The default of a listener's deadline for each message of a connector. In nanoseconds.</summary>
        internal const long HandshakeTimeoutNanos = 1_000_000_000;
        /// <summary>Connectors that the system lets wait for an accept, by default.</summary>
        internal const int BacklogDefault = 128;
        /// <summary>How long a connector tries, by default. In nanoseconds.</summary>
        internal const long ConnectTimeoutNanos = 10_000_000_000;
        /// <summary>The first pause between two attempts to connect; each is twice the one before. In nanoseconds.</summary>
        internal const long ConnectPauseMinNanos = 500_000;
        /// <summary>The longest pause between two attempts to connect. In nanoseconds.</summary>
        internal const long ConnectPauseMaxNanos = 10_000_000;
        /// <summary>
        /// A socket gets its mode just after its name: a refused permission is final only after this. In nanoseconds.
        /// </summary>
        internal const long PermissionGraceNanos = 200_000_000;

        // RPC.

        /// <summary>Calls in flight that a server allows a client, by default.</summary>
        internal const uint RpcInFlightDefault = 1024;
        /// <summary>Clients that a server takes at a time, by default.</summary>
        internal const int RpcClientsDefault = 128;
        /// <summary>
        /// A server copies at most this many times its capacity for one client, by default, and a client buffers at most
        /// this many times the capacity of replies.
        /// </summary>
        internal const int RpcBytesFactor = 4;
        /// <summary>Elements of a stream that may be under way, by default.</summary>
        internal const uint RpcWindowDefault = 16;
        /// <summary>
        /// Frames that a server takes from one client before it serves the next one, and looks at deadlines.
        /// </summary>
        internal const int RpcFramesPerRound = 64;

        // Opening and creating.

        /// <summary>
        /// How long a race with another process (a segment that is just going away) is tried again, at least. In
        /// nanoseconds.
        /// </summary>
        internal const long RaceTimeoutNanos = 1_000_000_000;
        /// <summary>The first pause between two such attempts; each is twice the one before. In nanoseconds.</summary>
        internal const long RacePauseMinNanos = 100_000;
        /// <summary>The longest pause between two such attempts. In nanoseconds.</summary>
        internal const long RacePauseMaxNanos = 10_000_000;
        /// <summary>A ring's capacity in bytes, by default.</summary>
        internal const ulong CapacityDefault = 1_048_576;
        /// <summary>Messages of a batch at most, by default.</summary>
        internal const int BatchDefault = 1024;

        // Where the fields of the segment header are, from the segment's start.

        /// <summary>8 bytes.</summary>
        internal const int OffMagic = 0x00;
        /// <summary>u32: <c>0x0A0B0C0D</c>, so the bytes are <c>0D 0C 0B 0A</c>.</summary>
        internal const int OffByteOrder = 0x08;
        /// <summary>u16: 1.</summary>
        internal const int OffVersionMajor = 0x0C;
        /// <summary>u16: 0, of a topic 1 (section 15).</summary>
        internal const int OffVersionMinor = 0x0E;
        /// <summary>u32.</summary>
        internal const int OffKind = 0x10;
        /// <summary>u32: bit 0 <c>PERSISTENT</c>: the last one out leaves the name in place.</summary>
        internal const int OffFlags = 0x14;
        /// <summary>u32: 0, of an RPC's bus 1 ([section 20](#20-rpc)).</summary>
        internal const int OffFeaturesRequired = 0x18;
        /// <summary>u32: 0.</summary>
        internal const int OffFeaturesOptional = 0x1C;
        /// <summary>u64: length of the whole segment in bytes, header page included.</summary>
        internal const int OffSize = 0x20;
        /// <summary>u64: wall clock at creation, nanoseconds since 1970.</summary>
        internal const int OffCreatedNs = 0x28;
        /// <summary>
        /// 16 bytes: the kernel's boot id (<c>/proc/sys/kernel/random/boot_id</c>) as 16 raw bytes in the order in which
        /// they are printed.
        /// </summary>
        internal const int OffBootId = 0x30;

        // Where the fields of a block's geometry are, from the block's start.

        /// <summary>u64: segment offset of the data area.</summary>
        internal const int OffDataOffset = 0x000;
        /// <summary>u64: bytes of data. Ring: a power of two, ≥ that page, ≥ <c>align</c>.</summary>
        internal const int OffCapacity = 0x008;
        /// <summary>u64: region: the length that was asked for.</summary>
        internal const int OffLen = 0x010;
        /// <summary>u32: ring: alignment of payloads, a power of two from 16 to 4096.</summary>
        internal const int OffAlign = 0x018;

        // Where a ring's words are, from the block's start.

        /// <summary>u64: end of the last published frame.</summary>
        internal const int OffTail = 0x080;
        /// <summary>Two last-tag records: the end and the tag of a published frame.</summary>
        internal const int OffLastTags = 0x088;
        /// <summary>u64: start of the first frame that is not released.</summary>
        internal const int OffHead = 0x100;
        /// <summary>The producer's role line.</summary>
        internal const int OffProducer = 0x180;
        /// <summary>The consumer's role line.</summary>
        internal const int OffConsumer = 0x200;

        // A last-tag record, from its start.

        /// <summary>The value of <c>tail</c> after the frame.</summary>
        internal const int LastTagEnd = 0x0;
        /// <summary>The frame's tag.</summary>
        internal const int LastTagTag = 0x8;
        /// <summary>The length of a record.</summary>
        internal const int LastTagSize = 0x10;

        // A role's words, from the start of its line.

        /// <summary>The futex: 1 while the holder sleeps or is about to.</summary>
        internal const int OffRoleWait = 0x0;
        /// <summary>The role's flags, written anew at each attach.</summary>
        internal const int OffRoleFlags = 0x4;
        /// <summary>How often the role was attached; 0 = never.</summary>
        internal const int OffRoleEpoch = 0x8;
        /// <summary>Of the consumer: the producer's epoch whose orderly close was delivered; 0 = none.</summary>
        internal const int OffRoleCloseSeen = 0xC;

        // A region's only word, from the block's start.

        /// <summary>Bit 0: somebody waits; the rest counts notifications.</summary>
        internal const int OffNotify = 0x080;

        // Where a topic's words are, from the block's start. Its data offset, capacity and alignment are where a ring's are.

        /// <summary>u32: how many slots there are, 1 to 1024.</summary>
        internal const int OffTopicSlots = 0x020;
        /// <summary>u32: bit 0 <c>LOSSY_ONLY</c>, bit 1 <c>MAY_EJECT</c>.</summary>
        internal const int OffTopicFlags = 0x024;
        /// <summary>u64: segment offset of the subscribers' area.</summary>
        internal const int OffTopicSubsOffset = 0x028;
        /// <summary>u64: end of the last published frame.</summary>
        internal const int OffTopicTail = 0x080;
        /// <summary>u64: start of the last published frame.</summary>
        internal const int OffTopicLast = 0x088;
        /// <summary>u64: everything below <c>claim − capacity</c> is overwritten, or may be at any moment.</summary>
        internal const int OffTopicClaim = 0x100;
        /// <summary>u64[16]: for each sixteenth of the data area a position where a frame begins in it.</summary>
        internal const int OffTopicStarts = 0x180;
        /// <summary>The publisher's role line. Its futex word is in the subscribers' area.</summary>
        internal const int OffTopicPublisher = 0x200;
        /// <summary>u64: nanoseconds after which a subscriber that holds the publisher back is ejected.</summary>
        internal const int OffTopicEjectAfter = 0x210;

        // Where the words of a topic's subscribers' area are, from its start.

        /// <summary>The publisher's futex word.</summary>
        internal const int OffSubsWait = 0x0000;
        /// <summary>u64: low half: the subscribers' futex word (bit 0 = somebody sleeps, the rest counts).</summary>
        internal const int OffSubsWord = 0x0080;
        /// <summary>Slot 0; the others follow.</summary>
        internal const int OffSubsSlots = 0x1000;

        // Where the words of a subscriber's slot are, from its start.

        /// <summary>u64: start of the first frame that is not released.</summary>
        internal const int OffSlotCursor = 0x00;
        /// <summary>u64: high half: epoch.</summary>
        internal const int OffSlotState = 0x08;
        /// <summary>u32: bit 0 <c>MEMBARRIER_CAPABLE</c>, bit 1 <c>FENCE_FREE</c>, bit 3 <c>LATEST</c>.</summary>
        internal const int OffSlotFlags = 0x10;
        /// <summary>u32: the publisher's epoch whose orderly close was delivered, 0 = none.</summary>
        internal const int OffSlotCloseSeen = 0x14;
        /// <summary>u64: how many messages this subscriber has lost.</summary>
        internal const int OffSlotLost = 0x18;
        /// <summary>u64: <c>seq</c> of the frame at the cursor when the subscriber was ejected.</summary>
        internal const int OffSlotEjectSeq = 0x20;
        /// <summary>64 bytes: UTF-8, padded with zeros, compared whole.</summary>
        internal const int OffSlotLabel = 0x40;

        // A topic's frame's fields, from its start. `len`, `type_id` and `tag` are where a ring's are; the payload follows.

        /// <summary>The message's number: the first has 1, and it rises.</summary>
        internal const int TopicFrameSeq = 0x10;
        /// <summary>When it was published, or 0.</summary>
        internal const int TopicFrameTime = 0x18;

        // Where the fields of a message of the handshake are.

        /// <summary>8 bytes.</summary>
        internal const int HandshakeOffMagic = 0x00;
        /// <summary>u32: <c>0x0A0B0C0D</c>.</summary>
        internal const int HandshakeOffByteOrder = 0x08;
        /// <summary>u16: 1.</summary>
        internal const int HandshakeOffMajor = 0x0C;
        /// <summary>u16: 0.</summary>
        internal const int HandshakeOffMinor = 0x0E;
        /// <summary>u32.</summary>
        internal const int HandshakeOffType = 0x10;
        /// <summary>u32: REFUSE and ACK: an error number, 0 = success.</summary>
        internal const int HandshakeOffStatus = 0x14;
        /// <summary>u32: HELLO and WELCOME: 0, of an RPC's bus 1 ([section 20](#20-rpc)).</summary>
        internal const int HandshakeOffFeaturesRequired = 0x18;
        /// <summary>u32: unknown bits are ignored.</summary>
        internal const int HandshakeOffFeaturesOptional = 0x1C;
        /// <summary>u64: WELCOME: bytes of the memory that comes with it.</summary>
        internal const int HandshakeOffSize = 0x20;
        /// <summary>u32: WELCOME of an RPC's bus: how many calls this client may have in flight, ≥ 1.</summary>
        internal const int HandshakeOffMaxInFlight = 0x28;

        // Where the fields of a tensor's header are, from the payload's start.

        /// <summary>u8: DLPack's <c>DLDataTypeCode</c>, see below.</summary>
        internal const int TensorOffDtypeCode = 0x00;
        /// <summary>u8: bits of one element.</summary>
        internal const int TensorOffDtypeBits = 0x01;
        /// <summary>u8: 0 … 32.</summary>
        internal const int TensorOffNdim = 0x02;
        /// <summary>u8: 0.</summary>
        internal const int TensorOffZero = 0x03;
        /// <summary>u32: payload offset of the first element.</summary>
        internal const int TensorOffElementsOffset = 0x04;
        /// <summary>u64[ndim]: the outermost dimension first.</summary>
        internal const int TensorOffShape = 0x08;

        // Where the fields of a CALL's header are, from the payload's start.

        /// <summary>u32: microseconds that the call has left at commit.</summary>
        internal const int CallOffTimeoutUs = 0x00;
        /// <summary>u32: bytes of metadata.</summary>
        internal const int CallOffMetaLen = 0x04;
        /// <summary>u32: which method.</summary>
        internal const int CallOffMethod = 0x08;
        /// <summary>u32: 0: one reply.</summary>
        internal const int CallOffWindow = 0x0C;

        // Where the fields of a REPLY's header are, from the payload's start.

        /// <summary>u32: of a final REPLY how the call ended.</summary>
        internal const int ReplyOffStatus = 0x00;
        /// <summary>u32: bit 0 <c>ELEMENT</c>: an element of a stream, more follow.</summary>
        internal const int ReplyOffFlags = 0x04;
        /// <summary>u32: with status 1 the application's number.</summary>
        internal const int ReplyOffCode = 0x08;
        /// <summary>u32: bytes of metadata.</summary>
        internal const int ReplyOffMetaLen = 0x0C;

        /// <summary>What is said where there is nothing more to say about an error; the first is number 1's.</summary>
        internal static readonly string[] ErrorTexts =
        {
            "nothing has this name",
            "the name is taken",
            "invalid argument",
            "taken: by another handle, an open slot or a message not yet released",
            "there is no room for this message now",
            "nothing is there now",
            "the message is longer than this ring can ever hold",
            "the deadline passed",
            "the peer closed",
            "this handle is closed or was inherited across a fork",
            "the peer died without closing",
            "the shared memory is corrupt",
            "not a segment that this version can use",
            "permission denied",
            "not enough memory or space",
            "interrupted",
            "not supported here",
            "operating system error",
            "messages were lost: the publisher ejected this subscriber",
        };

        /// <summary>Every type of a tensor's elements and its name, in the order of the format's table.</summary>
        internal static readonly (ElementType Type, string Name)[] ElementTypes =
        {
            (ElementType.Int8, "int8"),
            (ElementType.Int16, "int16"),
            (ElementType.Int32, "int32"),
            (ElementType.Int64, "int64"),
            (ElementType.UInt8, "uint8"),
            (ElementType.UInt16, "uint16"),
            (ElementType.UInt32, "uint32"),
            (ElementType.UInt64, "uint64"),
            (ElementType.Float16, "float16"),
            (ElementType.Float32, "float32"),
            (ElementType.Float64, "float64"),
            (ElementType.BFloat16, "bfloat16"),
            (ElementType.Complex64, "complex64"),
            (ElementType.Complex128, "complex128"),
            (ElementType.Bool, "bool"),
            (ElementType.Float8E3M4, "float8_e3m4"),
            (ElementType.Float8E4M3, "float8_e4m3"),
            (ElementType.Float8E4M3B11Fnuz, "float8_e4m3b11fnuz"),
            (ElementType.Float8E4M3Fn, "float8_e4m3fn"),
            (ElementType.Float8E4M3Fnuz, "float8_e4m3fnuz"),
            (ElementType.Float8E5M2, "float8_e5m2"),
            (ElementType.Float8E5M2Fnuz, "float8_e5m2fnuz"),
            (ElementType.Float8E8M0Fnu, "float8_e8m0fnu"),
        };
    }
}
