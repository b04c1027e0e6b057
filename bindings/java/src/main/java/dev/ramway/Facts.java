// Generated from format/facts.toml by `make facts`: edit that, not this.
package dev.ramway;

/** The facts of the format and the tuning constants: docs/ABI.md as numbers. */
final class Facts {
    // The segment header's values.

    /** The first eight bytes of every segment. As a little-endian number. */
    static final long MAGIC = 0x0A0D5941574D4152L;
    /** Written in the creator's byte order, so that a reader of the other order sees it swapped. */
    static final int BYTE_ORDER = 0x0A0B0C0D;
    /** What a reader of the other byte order sees. */
    static final int BYTE_ORDER_SWAPPED = 0x0D0C0B0A;
    /** A reader refuses another major version. */
    static final int VERSION_MAJOR = 1;
    /**
     * What the creator of a region, ring, bus or listener writes. A reader accepts any minor version: it adds only what an older
     * reader may ignore.
     */
    static final int VERSION_MINOR = 0;
    /** What the creator of a topic writes: the minor version that brought topics. */
    static final int VERSION_MINOR_TOPIC = 1;
    /** The required feature bits of everything but an RPC's bus. Any other set bit is AbiMismatch. */
    static final int FEATURES_KNOWN = 0;
    /**
     * A required feature bit, of a bus's segment and in its handshake: the bus carries RPC frames only. Who opens a plain bus
     * does not know it.
     */
    static final int FEATURE_RPC = 1;
    /** In the segment's flags: the last one out leaves the name in place. */
    static final int FLAG_PERSISTENT = 1;

    // The header page.

    /** The length of the header page in bytes: a segment's data begins here or later. */
    static final int HEADER_SIZE = 4096;
    /** Where block 0 begins in the header page. */
    static final int BLOCK0 = 0x400;
    /** Where block 1 begins in the header page. */
    static final int BLOCK1 = 0x800;
    /** A topic's part of the header page, in bytes. */
    static final int TOPIC_BLOCK_SIZE = 0x280;

    // Frames.

    /** The length of what precedes every payload: len u32, type id u32, tag u64. */
    static final int FRAME_HEADER = 16;
    /** The smallest and default alignment of payloads. */
    static final int ALIGN_MIN = 16;
    /** The largest alignment of payloads. */
    static final int ALIGN_MAX = 4096;
    /** No message is longer, whatever the capacity: with its header it stays below 2^31. */
    static final int MESSAGE_MAX = 2_147_483_631;
    /** Type ids from here up are Ramway's own. */
    static final int TYPE_ID_RESERVED = 0xFFFF0000;
    /** The type id of a message that is a tensor frame. */
    static final int TYPE_ID_TENSOR = 0xFFFF0001;
    /** In the {@code end} of a last-tag record: no frame ends here, because positions are multiples of 16. */
    static final long NO_POSITION = 1L;

    // Frames of a topic.

    /** The length of what precedes every payload of a topic: a ring's header, then seq u64 and time u64. */
    static final int TOPIC_FRAME_HEADER = 32;
    /** The smallest and default alignment of a topic's payloads. */
    static final int TOPIC_ALIGN_MIN = 32;
    /** No message of a topic is longer, whatever the capacity: with its header it stays below 2^31. */
    static final int TOPIC_MESSAGE_MAX = 2_147_483_615;

    // A topic's parts.

    /**
     * Parts of a topic's data area that have an entry in {@code starts} each. The publisher announces in advance, in whole parts,
     * what it will overwrite.
     */
    static final int TOPIC_CHUNKS = 16;
    /** A topic has at most this many slots for subscribers. */
    static final int TOPIC_SLOTS_MAX = 1024;
    /** In the creator's flags: no subscriber may hold the publisher back. */
    static final int TOPIC_LOSSY_ONLY = 1;
    /** In the creator's flags: a publisher may eject a subscriber that holds it back, so subscribers copy what they receive. */
    static final int TOPIC_MAY_EJECT = 2;
    /** The creator's flags that this version knows. Any other set bit is AbiMismatch. */
    static final int TOPIC_FLAGS_KNOWN = 3;

    // A subscriber's slot.

    /** The length of a slot in bytes. */
    static final int SLOT_SIZE = 128;
    /** The longest label of a subscriber, in bytes of UTF-8. */
    static final int LABEL_MAX = 64;

    // The bits of a slot's state; its epoch is the upper half.

    /** A subscriber has the slot. */
    static final int SLOT_ACTIVE = 1;
    /** The publisher does not overwrite what lies at the slot's cursor or after it. */
    static final int SLOT_GATING = 2;
    /** The slot, its label and its cursor stay when its subscriber goes. */
    static final int SLOT_DURABLE = 4;
    /** The publisher has ejected the subscriber: it does not gate any more. */
    static final int SLOT_EJECTED = 8;

    // The bits of a slot's flags, which its subscriber writes.

    /** As of a role: a real membarrier succeeded in the subscriber's process. */
    static final int SLOT_FLAG_MEMBARRIER_CAPABLE = 1;
    /** As of a role: the subscriber does not fence before it wakes the publisher. */
    static final int SLOT_FLAG_FENCE_FREE = 2;
    /** The subscriber reads the newest message only: for people who look at the topic. */
    static final int SLOT_FLAG_LATEST = 8;

    // The subscribers' shared word, which is accessed as one u64 only.

    /** A subscriber sleeps, or is about to. A sleeper sets it; the publisher adds this, which clears it and counts a wake-up. */
    static final long WORD_ASLEEP = 1L;
    /**
     * Who has to wake all subscribers whether or not one says that it sleeps adds this: it changes what they wait for, and keeps
     * the bit.
     */
    static final long WORD_WAKE = 2L;
    /** A subscriber that joins or leaves adds this: the upper half counts changes of the slots. */
    static final long WORD_CHANGE = 4_294_967_296L;

    // The bits of a role's flags.

    /** A real membarrier succeeded in the holder's process. */
    static final int ROLE_MEMBARRIER_CAPABLE = 1;
    /** As a waker, the holder does not fence. */
    static final int ROLE_FENCE_FREE = 2;
    /** The holder closed in an orderly way. */
    static final int ROLE_CLOSED = 4;

    // A region's notification word.

    /** The bit that says that somebody waits. */
    static final int NOTIFY_WAITING = 1;
    /** What one notification adds: the bits above the first one count. */
    static final int NOTIFY_ONE = 2;

    // The bytes of a segment's file that are locked.

    /** Shared: in use by a handle. Exclusive: the last one out, or a cleaner, decides about the name. */
    static final int BYTE_IN_USE = 0;
    /** Exclusive: the producer's role is held. */
    static final int BYTE_PRODUCER = 1;
    /** Exclusive: the consumer's role is held. */
    static final int BYTE_CONSUMER = 2;
    /** Exclusive, of a listener's segment: somebody listens. */
    static final int BYTE_LISTENER = 1;
    /** Exclusive, of a topic: the publisher's role is held. */
    static final int BYTE_PUBLISHER = 1;
    /** Exclusive, of a topic: a subscriber with a label looks for its slot. */
    static final int BYTE_JOIN = 2;
    /** Exclusive, of a topic: this byte and the slot's number is the life of the slot's subscriber. */
    static final int BYTE_SLOT = 16;

    // Names and directories.

    /** The longest name in the Ramway directory, in bytes. */
    static final int NAME_MAX = 80;
    /** The characters of a name, as error texts show them. A name does not begin with a dot. */
    static final String NAME_CHARACTERS = "A-Z a-z 0-9 . _ -";
    /** A listener's socket is NAME and this; no other name ends so. */
    static final String SOCKET_SUFFIX = ".sock";
    /** Where a path is the socket, its listener's segment is PATH and this. */
    static final String LOCK_SUFFIX = ".lock";
    /** How the file of a segment begins that has no name yet, where the file system has no nameless files. */
    static final String STAGED_PREFIX = ".ramway-";
    /** How such a file ends; 16 hexadecimal digits are in between. */
    static final String STAGED_SUFFIX = ".new";
    /** The environment variable that names the Ramway directory. */
    static final String DIRECTORY_VARIABLE = "RAMWAY_DIR";
    /** Where that is unset or empty, the directory on Linux: this and the effective user id. */
    static final String DIRECTORY_PREFIX = "/dev/shm/ramway-";

    // The handshake of a bus.

    /** The length of every message, in every version. */
    static final int HANDSHAKE_SIZE = 64;
    /** The first eight bytes of every message. As a little-endian number. */
    static final long HANDSHAKE_MAGIC = 0x0A0D5355424D4152L;
    /** Another major version is refused with AbiMismatch. */
    static final int HANDSHAKE_MAJOR = 1;
    /** Any minor version is accepted. */
    static final int HANDSHAKE_MINOR = 0;
    /** The required features of a plain bus's handshake. Any other set bit is AbiMismatch. */
    static final int HANDSHAKE_FEATURES = 0;

    // RPC: type ids and methods of Ramway's own.

    /** The type id of a CALL: client to server. */
    static final int TYPE_ID_CALL = 0xFFFF0010;
    /** The type id of a REPLY: server to client. */
    static final int TYPE_ID_REPLY = 0xFFFF0011;
    /** The type id of a CANCEL: client to server. */
    static final int TYPE_ID_CANCEL = 0xFFFF0012;
    /** The type id of a CREDIT: client to server. */
    static final int TYPE_ID_CREDIT = 0xFFFF0013;
    /** Bytes of a CALL's and a REPLY's header. Metadata and body follow, each from a multiple of this. */
    static final int RPC_HEADER = 16;
    /** In a REPLY's flags: an element of a stream, more follow. */
    static final int RPC_ELEMENT = 1;
    /** Methods from here up are Ramway's own. */
    static final int METHOD_RESERVED = 0xFFFF0000;
    /** The method that replies with nothing: the server is there and reads. */
    static final int METHOD_PING = 0xFFFF0000;
    /** The method that replies with the numbers and names of the server's methods. */
    static final int METHOD_DESCRIBE = 0xFFFF0001;
    /** The most calls in flight that a server can allow a client. */
    static final int RPC_IN_FLIGHT_MAX = 1_048_576;
    /** The required features of an RPC's bus, in HELLO, WELCOME and the segment: exactly these. */
    static final int RPC_FEATURES = 1;

    // How a call ended, in a final REPLY.

    /** The call succeeded. */
    static final int RPC_OK = 0;
    /** The handler replied with an error of its own: a number and a text. */
    static final int RPC_APPLICATION = 1;
    /** The server has no such method. The call was not run. */
    static final int RPC_NO_SUCH_METHOD = 2;
    /** The call's time was over before it was begun. It was not run. */
    static final int RPC_TIMED_OUT = 3;
    /** The call was cancelled. */
    static final int RPC_CANCELLED = 4;
    /** A limit of the server was reached. The call was not run. */
    static final int RPC_OVERLOADED = 5;
    /** The call was run, but its reply is longer than the ring or than the server's limit of bytes. */
    static final int RPC_REPLY_TOO_LARGE = 6;
    /** The server is shutting down. The call was not run. */
    static final int RPC_DRAINING = 7;
    /** The handler failed in a way that it did not mean to: a panic, an exception. */
    static final int RPC_HANDLER_FAILED = 8;

    // Tensor frames.

    /** A tensor has at most this many dimensions. */
    static final int NDIM_MAX = 32;
    /** The elements begin on an address that is a multiple of this. */
    static final int TENSOR_ALIGN = 64;

    // How a call waits. A poll takes 25 ns: a load and a PAUSE.

    /** Polls before a call sleeps, at most: 75 µs, about what a sleep and the wake-up from it cost (decision 18). */
    static final int SPIN_MAX = 3000;
    /** Polls that are left where waits have been long. */
    static final int SPIN_MIN = 32;
    /** Polls of a receiver before it enters the general wait: more than a round trip takes. */
    static final int FIRST_POLLS = 32;
    /**
     * Found by one poll: a receiver that has taken them backs off before it polls again. To poll at once would take the line of
     * tail away from a sender that is writing (decision 39).
     */
    static final int BACK_OFF_FEW = 8;
    /**
     * Found by one poll: it backs off for twice as long. Not at all where more than a quarter of the capacity was found: that
     * receiver is behind.
     */
    static final int BACK_OFF_MANY = 32;
    /** The same in Java and Go, where nothing is as long on every processor. */
    static final int BACK_OFF_PAUSES = 32;
    /**
     * Polls that found fewer messages until it backs off for once, to see whether more come then; twice as many after each time.
     */
    static final int BACK_OFF_TRIAL_MIN = 16;
    /** The most of them. */
    static final int BACK_OFF_TRIAL_MAX = 1024;
    /** Polls of a side that never sleeps between two checks of the clock, the deadline and the peer: 50 µs. */
    static final int POLLS_PER_CHECK = 2000;
    /** Polls between two checks whether the wait was cancelled: 1 µs. */
    static final int POLLS_PER_CANCEL_CHECK = 40;
    /**
     * A wait that was over before this, the spinning and the wake-up included, would have been better spent spinning to the end.
     * In nanoseconds.
     */
    static final long SHORT_WAIT_NANOS = 110_000L;
    /**
     * The longest sleep before another check of the deadline and of whether the peer lives. A blocked side learns of a death
     * within two intervals. In nanoseconds.
     */
    static final long POLL_INTERVAL_NANOS = 100_000_000L;
    /**
     * The longest sleep where the waker does not fence and this side cannot make it: the wake-up may be missed, so it is short.
     * In nanoseconds.
     */
    static final long UNORDERED_INTERVAL_NANOS = 1_000_000L;
    /** How long a hybrid wait for a region's notification polls before it sleeps. In nanoseconds. */
    static final long REGION_SPIN_NANOS = 20_000L;
    /** Between two polls of a region's handle that cannot write, and so cannot say that it waits. In nanoseconds. */
    static final long REGION_POLL_INTERVAL_NANOS = 1_000_000L;
    /**
     * The wake-up of a waiting producer is put off until this fraction of the capacity is free (a quarter), or the ring is
     * drained.
     */
    static final int WAKE_FRACTION = 4;

    // Topics.

    /** A topic's slots for subscribers, by default. */
    static final int TOPIC_SLOTS_DEFAULT = 32;
    /** How often a call that does not wait lets the publisher overtake it before it gives up and says Empty. */
    static final int OVERTAKEN_MAX = 16;
    /**
     * A lossy subscriber that was overtaken resumes at the oldest known frame that is at most this fraction of the capacity (a
     * half) behind {@code claim}: farther back it would be overtaken again.
     */
    static final int RESUME_FRACTION = 2;

    // Listeners and connectors.

    /** Handshakes under way at a time: the oldest silent one makes room for the next connector. */
    static final int HANDSHAKES_MAX = 64;
    /** Connectors that one accept turns away for want of descriptors before it reports the failure. */
    static final int TURNED_AWAY_MAX = 1024;
    /** How long the listening socket is left alone after accepting has failed for want of descriptors. In nanoseconds. */
    static final long ACCEPT_PAUSE_NANOS = 100_000_000L;
    /** The default of a listener's deadline for each message of a connector. In nanoseconds. */
    static final long HANDSHAKE_TIMEOUT_NANOS = 1_000_000_000L;
    /** Connectors that the system lets wait for an accept, by default. */
    static final int BACKLOG_DEFAULT = 128;
    /** How long a connector tries, by default. In nanoseconds. */
    static final long CONNECT_TIMEOUT_NANOS = 10_000_000_000L;
    /** The first pause between two attempts to connect; each is twice the one before. In nanoseconds. */
    static final long CONNECT_PAUSE_MIN_NANOS = 500_000L;
    /** The longest pause between two attempts to connect. In nanoseconds. */
    static final long CONNECT_PAUSE_MAX_NANOS = 10_000_000L;
    /** A socket gets its mode just after its name: a refused permission is final only after this. In nanoseconds. */
    static final long PERMISSION_GRACE_NANOS = 200_000_000L;

    // RPC.

    /** Calls in flight that a server allows a client, by default. */
    static final int RPC_IN_FLIGHT_DEFAULT = 1024;
    /** Clients that a server takes at a time, by default. */
    static final int RPC_CLIENTS_DEFAULT = 128;
    /**
     * A server copies at most this many times its capacity for one client, by default, and a client buffers at most this many
     * times the capacity of replies.
     */
    static final int RPC_BYTES_FACTOR = 4;
    /** Elements of a stream that may be under way, by default. */
    static final int RPC_WINDOW_DEFAULT = 16;
    /** Frames that a server takes from one client before it serves the next one, and looks at deadlines. */
    static final int RPC_FRAMES_PER_ROUND = 64;

    // Opening and creating.

    /** How long a race with another process (a segment that is just going away) is tried again, at least. In nanoseconds. */
    static final long RACE_TIMEOUT_NANOS = 1_000_000_000L;
    /** The first pause between two such attempts; each is twice the one before. In nanoseconds. */
    static final long RACE_PAUSE_MIN_NANOS = 100_000L;
    /** The longest pause between two such attempts. In nanoseconds. */
    static final long RACE_PAUSE_MAX_NANOS = 10_000_000L;
    /** A ring's capacity in bytes, by default. */
    static final long CAPACITY_DEFAULT = 1_048_576L;
    /** Messages of a batch at most, by default. */
    static final int BATCH_DEFAULT = 1024;

    // Where the fields of the segment header are, from the segment's start.

    /** 8 bytes. */
    static final int OFF_MAGIC = 0x00;
    /** u32: {@code 0x0A0B0C0D}, so the bytes are {@code 0D 0C 0B 0A}. */
    static final int OFF_BYTE_ORDER = 0x08;
    /** u16: 1. */
    static final int OFF_VERSION_MAJOR = 0x0C;
    /** u16: 0, of a topic 1 (section 15). */
    static final int OFF_VERSION_MINOR = 0x0E;
    /** u32. */
    static final int OFF_KIND = 0x10;
    /** u32: bit 0 {@code PERSISTENT}: the last one out leaves the name in place. */
    static final int OFF_FLAGS = 0x14;
    /** u32: 0, of an RPC's bus 1 ([section 20](#20-rpc)). */
    static final int OFF_FEATURES_REQUIRED = 0x18;
    /** u32: 0. */
    static final int OFF_FEATURES_OPTIONAL = 0x1C;
    /** u64: length of the whole segment in bytes, header page included. */
    static final int OFF_SIZE = 0x20;
    /** u64: wall clock at creation, nanoseconds since 1970. */
    static final int OFF_CREATED_NS = 0x28;
    /**
     * 16 bytes: the kernel's boot id ({@code /proc/sys/kernel/random/boot_id}) as 16 raw bytes in the order in which they are
     * printed.
     */
    static final int OFF_BOOT_ID = 0x30;

    // Where the fields of a block's geometry are, from the block's start.

    /** u64: segment offset of the data area. */
    static final int OFF_DATA_OFFSET = 0x000;
    /** u64: bytes of data. Ring: a power of two, ≥ that page, ≥ {@code align}. */
    static final int OFF_CAPACITY = 0x008;
    /** u64: region: the length that was asked for. */
    static final int OFF_LEN = 0x010;
    /** u32: ring: alignment of payloads, a power of two from 16 to 4096. */
    static final int OFF_ALIGN = 0x018;

    // Where a ring's words are, from the block's start.

    /** u64: end of the last published frame. */
    static final int OFF_TAIL = 0x080;
    /** Two last-tag records: the end and the tag of a published frame. */
    static final int OFF_LAST_TAGS = 0x088;
    /** u64: start of the first frame that is not released. */
    static final int OFF_HEAD = 0x100;
    /** The producer's role line. */
    static final int OFF_PRODUCER = 0x180;
    /** The consumer's role line. */
    static final int OFF_CONSUMER = 0x200;

    // A last-tag record, from its start.

    /** The value of {@code tail} after the frame. */
    static final int LAST_TAG_END = 0x0;
    /** The frame's tag. */
    static final int LAST_TAG_TAG = 0x8;
    /** The length of a record. */
    static final int LAST_TAG_SIZE = 0x10;

    // A role's words, from the start of its line.

    /** The futex: 1 while the holder sleeps or is about to. */
    static final int OFF_ROLE_WAIT = 0x0;
    /** The role's flags, written anew at each attach. */
    static final int OFF_ROLE_FLAGS = 0x4;
    /** How often the role was attached; 0 = never. */
    static final int OFF_ROLE_EPOCH = 0x8;
    /** Of the consumer: the producer's epoch whose orderly close was delivered; 0 = none. */
    static final int OFF_ROLE_CLOSE_SEEN = 0xC;

    // A region's only word, from the block's start.

    /** Bit 0: somebody waits; the rest counts notifications. */
    static final int OFF_NOTIFY = 0x080;

    // Where a topic's words are, from the block's start. Its data offset, capacity and alignment are where a ring's are.

    /** u32: how many slots there are, 1 to 1024. */
    static final int OFF_TOPIC_SLOTS = 0x020;
    /** u32: bit 0 {@code LOSSY_ONLY}, bit 1 {@code MAY_EJECT}. */
    static final int OFF_TOPIC_FLAGS = 0x024;
    /** u64: segment offset of the subscribers' area. */
    static final int OFF_TOPIC_SUBS_OFFSET = 0x028;
    /** u64: end of the last published frame. */
    static final int OFF_TOPIC_TAIL = 0x080;
    /** u64: start of the last published frame. */
    static final int OFF_TOPIC_LAST = 0x088;
    /** u64: everything below {@code claim − capacity} is overwritten, or may be at any moment. */
    static final int OFF_TOPIC_CLAIM = 0x100;
    /** u64[16]: for each sixteenth of the data area a position where a frame begins in it. */
    static final int OFF_TOPIC_STARTS = 0x180;
    /** The publisher's role line. Its futex word is in the subscribers' area. */
    static final int OFF_TOPIC_PUBLISHER = 0x200;
    /** u64: nanoseconds after which a subscriber that holds the publisher back is ejected. */
    static final int OFF_TOPIC_EJECT_AFTER = 0x210;

    // Where the words of a topic's subscribers' area are, from its start.

    /** The publisher's futex word. */
    static final int OFF_SUBS_WAIT = 0x0000;
    /** u64: low half: the subscribers' futex word (bit 0 = somebody sleeps, the rest counts). */
    static final int OFF_SUBS_WORD = 0x0080;
    /** Slot 0; the others follow. */
    static final int OFF_SUBS_SLOTS = 0x1000;

    // Where the words of a subscriber's slot are, from its start.

    /** u64: start of the first frame that is not released. */
    static final int OFF_SLOT_CURSOR = 0x00;
    /** u64: high half: epoch. */
    static final int OFF_SLOT_STATE = 0x08;
    /** u32: bit 0 {@code MEMBARRIER_CAPABLE}, bit 1 {@code FENCE_FREE}, bit 3 {@code LATEST}. */
    static final int OFF_SLOT_FLAGS = 0x10;
    /** u32: the publisher's epoch whose orderly close was delivered, 0 = none. */
    static final int OFF_SLOT_CLOSE_SEEN = 0x14;
    /** u64: how many messages this subscriber has lost. */
    static final int OFF_SLOT_LOST = 0x18;
    /** u64: {@code seq} of the frame at the cursor when the subscriber was ejected. */
    static final int OFF_SLOT_EJECT_SEQ = 0x20;
    /** 64 bytes: UTF-8, padded with zeros, compared whole. */
    static final int OFF_SLOT_LABEL = 0x40;

    // A frame's fields, from its start. The payload follows.

    /** Bytes of payload. */
    static final int FRAME_LEN = 0x00;
    /** The user's type id, or one of Ramway's own. */
    static final int FRAME_TYPE_ID = 0x04;
    /** The user's tag. */
    static final int FRAME_TAG = 0x08;

    // A topic's frame's fields, from its start. `len`, `type_id` and `tag` are where a ring's are; the payload follows.

    /** The message's number: the first has 1, and it rises. */
    static final int TOPIC_FRAME_SEQ = 0x10;
    /** When it was published, or 0. */
    static final int TOPIC_FRAME_TIME = 0x18;

    // Where the fields of a message of the handshake are.

    /** 8 bytes. */
    static final int HANDSHAKE_OFF_MAGIC = 0x00;
    /** u32: {@code 0x0A0B0C0D}. */
    static final int HANDSHAKE_OFF_BYTE_ORDER = 0x08;
    /** u16: 1. */
    static final int HANDSHAKE_OFF_MAJOR = 0x0C;
    /** u16: 0. */
    static final int HANDSHAKE_OFF_MINOR = 0x0E;
    /** u32. */
    static final int HANDSHAKE_OFF_TYPE = 0x10;
    /** u32: REFUSE and ACK: an error number, 0 = success. */
    static final int HANDSHAKE_OFF_STATUS = 0x14;
    /** u32: HELLO and WELCOME: 0, of an RPC's bus 1 ([section 20](#20-rpc)). */
    static final int HANDSHAKE_OFF_FEATURES_REQUIRED = 0x18;
    /** u32: unknown bits are ignored. */
    static final int HANDSHAKE_OFF_FEATURES_OPTIONAL = 0x1C;
    /** u64: WELCOME: bytes of the memory that comes with it. */
    static final int HANDSHAKE_OFF_SIZE = 0x20;
    /** u32: WELCOME of an RPC's bus: how many calls this client may have in flight, ≥ 1. */
    static final int HANDSHAKE_OFF_MAX_IN_FLIGHT = 0x28;

    // Where the fields of a CALL's header are, from the payload's start.

    /** u32: microseconds that the call has left at commit. */
    static final int CALL_OFF_TIMEOUT_US = 0x00;
    /** u32: bytes of metadata. */
    static final int CALL_OFF_META_LEN = 0x04;
    /** u32: which method. */
    static final int CALL_OFF_METHOD = 0x08;
    /** u32: 0: one reply. */
    static final int CALL_OFF_WINDOW = 0x0C;

    // Where the fields of a REPLY's header are, from the payload's start.

    /** u32: of a final REPLY how the call ended. */
    static final int REPLY_OFF_STATUS = 0x00;
    /** u32: bit 0 {@code ELEMENT}: an element of a stream, more follow. */
    static final int REPLY_OFF_FLAGS = 0x04;
    /** u32: with status 1 the application's number. */
    static final int REPLY_OFF_CODE = 0x08;
    /** u32: bytes of metadata. */
    static final int REPLY_OFF_META_LEN = 0x0C;

    // What a segment holds.

    /** Shared bytes with notify and wait; block 0 is the region's. */
    static final int KIND_REGION = 1;
    /** One ring, in block 0. */
    static final int KIND_RING = 2;
    /** Two rings: block 0 from the listener to the connector, block 1 back. */
    static final int KIND_BUS = 3;
    /** The lock of a listening socket; no block. */
    static final int KIND_LISTENER = 4;
    /** One log with one publisher and many subscribers; block 0 is the topic's. */
    static final int KIND_TOPIC = 5;

    // What a message of the handshake is.

    /** The connector's first message. */
    static final int HANDSHAKE_HELLO = 1;
    /** The listener's answer, with the memory. */
    static final int HANDSHAKE_WELCOME = 2;
    /** The listener's answer, with the reason. */
    static final int HANDSHAKE_REFUSE = 3;
    /** The connector's last message: what it found in the memory. */
    static final int HANDSHAKE_ACK = 4;

    private Facts() {}
}
