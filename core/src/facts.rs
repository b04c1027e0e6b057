//! Generated from format/facts.toml by `make facts`: edit that, not this.
//!
//! The facts of the format and the tuning constants.

use std::time::Duration;

// The segment header's values.
/// The first eight bytes of every segment.
pub const MAGIC: [u8; 8] = *b"RAMWAY\r\n";
/// Written in the creator's byte order, so that a reader of the other order sees it swapped.
pub const BYTE_ORDER: u32 = 0x0A0B_0C0D;
/// A reader refuses another major version.
pub const VERSION_MAJOR: u16 = 1;
/// What the creator of a region, ring, bus or listener writes. A reader accepts any minor version: it adds only what an
/// older reader may ignore.
pub const VERSION_MINOR: u16 = 0;
/// What the creator of a topic writes: the minor version that brought topics.
pub const VERSION_MINOR_TOPIC: u16 = 1;
/// The required feature bits of everything but an RPC's bus. Any other set bit is AbiMismatch.
pub const FEATURES_KNOWN: u32 = 0;
/// A required feature bit, of a bus's segment and in its handshake: the bus carries RPC frames only. Who opens a plain
/// bus does not know it.
pub const FEATURE_RPC: u32 = 1;
/// In the segment's flags: the last one out leaves the name in place.
pub const FLAG_PERSISTENT: u32 = 1;

// The header page.
/// The length of the header page in bytes: a segment's data begins here or later.
pub const HEADER_SIZE: usize = 4096;
/// Where block 0 begins in the header page.
pub const BLOCK0: usize = 0x400;
/// Where block 1 begins in the header page.
pub const BLOCK1: usize = 0x800;
/// A line of a block: two cache lines, which processors fetch in pairs.
pub const LINE_SIZE: usize = 128;
/// A ring's part of the header page, in bytes.
pub const RING_BLOCK_SIZE: usize = 0x280;
/// A region's part of the header page, in bytes.
pub const REGION_BLOCK_SIZE: usize = 0x100;
/// A topic's part of the header page, in bytes.
pub const TOPIC_BLOCK_SIZE: usize = 0x280;

// Frames.
/// The length of what precedes every payload: len u32, type id u32, tag u64.
pub const FRAME_HEADER: u64 = 16;
/// The smallest and default alignment of payloads.
pub const ALIGN_MIN: u32 = 16;
/// The largest alignment of payloads.
pub const ALIGN_MAX: u32 = 4096;
/// No message is longer, whatever the capacity: with its header it stays below 2^31.
pub const MESSAGE_MAX: u64 = 2_147_483_631;
/// Type ids from here up are Ramway's own.
pub const TYPE_ID_RESERVED: u32 = 0xFFFF_0000;
/// The type id of a message that is a tensor frame.
pub const TYPE_ID_TENSOR: u32 = 0xFFFF_0001;
/// In the `end` of a last-tag record: no frame ends here, because positions are multiples of 16.
pub const NO_POSITION: u64 = 1;

// Frames of a topic.
/// The length of what precedes every payload of a topic: a ring's header, then seq u64 and time u64.
pub const TOPIC_FRAME_HEADER: u64 = 32;
/// The smallest and default alignment of a topic's payloads.
pub const TOPIC_ALIGN_MIN: u32 = 32;
/// No message of a topic is longer, whatever the capacity: with its header it stays below 2^31.
pub const TOPIC_MESSAGE_MAX: u64 = 2_147_483_615;

// A topic's parts.
/// Parts of a topic's data area that have an entry in `starts` each. The publisher announces in advance, in whole
/// parts, what it will overwrite.
pub const TOPIC_CHUNKS: u64 = 16;
/// A topic has at most this many slots for subscribers.
pub const TOPIC_SLOTS_MAX: u32 = 1024;
/// In the creator's flags: no subscriber may hold the publisher back.
pub const TOPIC_LOSSY_ONLY: u32 = 1;
/// In the creator's flags: a publisher may eject a subscriber that holds it back, so subscribers copy what they
/// receive.
pub const TOPIC_MAY_EJECT: u32 = 2;
/// The creator's flags that this version knows. Any other set bit is AbiMismatch.
pub const TOPIC_FLAGS_KNOWN: u32 = 3;

// A subscriber's slot.
/// The length of a slot in bytes.
pub const SLOT_SIZE: usize = 128;
/// The longest label of a subscriber, in bytes of UTF-8.
pub const LABEL_MAX: usize = 64;

// The bits of a slot's state; its epoch is the upper half.
/// A subscriber has the slot.
pub const SLOT_ACTIVE: u64 = 1;
/// The publisher does not overwrite what lies at the slot's cursor or after it.
pub const SLOT_GATING: u64 = 2;
/// The slot, its label and its cursor stay when its subscriber goes.
pub const SLOT_DURABLE: u64 = 4;
/// The publisher has ejected the subscriber: it does not gate any more.
pub const SLOT_EJECTED: u64 = 8;

// The bits of a slot's flags, which its subscriber writes.
/// As of a role: a real membarrier succeeded in the subscriber's process.
pub const SLOT_FLAG_MEMBARRIER_CAPABLE: u32 = 1;
/// As of a role: the subscriber does not fence before it wakes the publisher.
pub const SLOT_FLAG_FENCE_FREE: u32 = 2;
/// The subscriber reads the newest message only: for people who look at the topic.
pub const SLOT_FLAG_LATEST: u32 = 8;

// The subscribers' shared word, which is accessed as one u64 only.
/// A subscriber sleeps, or is about to. A sleeper sets it; the publisher adds this, which clears it and counts a
/// wake-up.
pub const WORD_ASLEEP: u64 = 1;
/// Who has to wake all subscribers whether or not one says that it sleeps adds this: it changes what they wait for, and
/// keeps the bit.
pub const WORD_WAKE: u64 = 2;
/// A subscriber that joins or leaves adds this: the upper half counts changes of the slots.
pub const WORD_CHANGE: u64 = 4_294_967_296;

// The bits of a role's flags.
/// A real membarrier succeeded in the holder's process.
pub const ROLE_MEMBARRIER_CAPABLE: u32 = 1;
/// As a waker, the holder does not fence.
pub const ROLE_FENCE_FREE: u32 = 2;
/// The holder closed in an orderly way.
pub const ROLE_CLOSED: u32 = 4;

// A region's notification word.
/// The bit that says that somebody waits.
pub const NOTIFY_WAITING: u32 = 1;
/// What one notification adds: the bits above the first one count.
pub const NOTIFY_ONE: u32 = 2;

// The bytes of a segment's file that are locked.
/// Shared: in use by a handle. Exclusive: the last one out, or a cleaner, decides about the name.
pub const BYTE_IN_USE: u64 = 0;
/// Exclusive: the producer's role is held.
pub const BYTE_PRODUCER: u64 = 1;
/// Exclusive: the consumer's role is held.
pub const BYTE_CONSUMER: u64 = 2;
/// Exclusive, of a listener's segment: somebody listens.
pub const BYTE_LISTENER: u64 = 1;
/// Exclusive, of a topic: the publisher's role is held.
pub const BYTE_PUBLISHER: u64 = 1;
/// Exclusive, of a topic: a subscriber with a label looks for its slot.
pub const BYTE_JOIN: u64 = 2;
/// Exclusive, of a topic: this byte and the slot's number is the life of the slot's subscriber.
pub const BYTE_SLOT: u64 = 16;

// Names and directories.
/// The longest name in the Ramway directory, in bytes.
pub const NAME_MAX: usize = 80;
/// The characters of a name, as error texts show them. A name does not begin with a dot.
pub const NAME_CHARACTERS: &str = "A-Z a-z 0-9 . _ -";
/// A listener's socket is NAME and this; no other name ends so.
pub const SOCKET_SUFFIX: &str = ".sock";
/// Where a path is the socket, its listener's segment is PATH and this.
pub const LOCK_SUFFIX: &str = ".lock";
/// How the file of a segment begins that has no name yet, where the file system has no nameless files.
pub const STAGED_PREFIX: &str = ".ramway-";
/// How such a file ends; 16 hexadecimal digits are in between.
pub const STAGED_SUFFIX: &str = ".new";
/// The environment variable that names the Ramway directory.
pub const DIRECTORY_VARIABLE: &str = "RAMWAY_DIR";
/// Where that is unset or empty, the directory on Linux: this and the effective user id.
pub const DIRECTORY_PREFIX: &str = "/dev/shm/ramway-";

// The handshake of a bus.
/// The length of every message, in every version.
pub const HANDSHAKE_SIZE: usize = 64;
/// The first eight bytes of every message.
pub const HANDSHAKE_MAGIC: [u8; 8] = *b"RAMBUS\r\n";
/// Another major version is refused with AbiMismatch.
pub const HANDSHAKE_MAJOR: u16 = 1;
/// Any minor version is accepted.
pub const HANDSHAKE_MINOR: u16 = 0;
/// The required features of a plain bus's handshake. Any other set bit is AbiMismatch.
pub const HANDSHAKE_FEATURES: u32 = 0;

// RPC: type ids and methods of Ramway's own.
/// The type id of a CALL: client to server.
pub const TYPE_ID_CALL: u32 = 0xFFFF_0010;
/// The type id of a REPLY: server to client.
pub const TYPE_ID_REPLY: u32 = 0xFFFF_0011;
/// The type id of a CANCEL: client to server.
pub const TYPE_ID_CANCEL: u32 = 0xFFFF_0012;
/// The type id of a CREDIT: client to server.
pub const TYPE_ID_CREDIT: u32 = 0xFFFF_0013;
/// Bytes of a CALL's and a REPLY's header. Metadata and body follow, each from a multiple of this.
pub const RPC_HEADER: usize = 16;
/// In a REPLY's flags: an element of a stream, more follow.
pub const RPC_ELEMENT: u32 = 1;
/// Methods from here up are Ramway's own.
pub const METHOD_RESERVED: u32 = 0xFFFF_0000;
/// The method that replies with nothing: the server is there and reads.
pub const METHOD_PING: u32 = 0xFFFF_0000;
/// The method that replies with the numbers and names of the server's methods.
pub const METHOD_DESCRIBE: u32 = 0xFFFF_0001;
/// The most calls in flight that a server can allow a client.
pub const RPC_IN_FLIGHT_MAX: u32 = 1_048_576;
/// The required features of an RPC's bus, in HELLO, WELCOME and the segment: exactly these.
pub const RPC_FEATURES: u32 = 1;

// How a call ended, in a final REPLY.
/// The call succeeded.
pub const RPC_OK: u32 = 0;
/// The handler replied with an error of its own: a number and a text.
pub const RPC_APPLICATION: u32 = 1;
/// The server has no such method. The call was not run.
pub const RPC_NO_SUCH_METHOD: u32 = 2;
/// The call's time was over before it was begun. It was not run.
pub const RPC_TIMED_OUT: u32 = 3;
/// The call was cancelled.
pub const RPC_CANCELLED: u32 = 4;
/// A limit of the server was reached. The call was not run.
pub const RPC_OVERLOADED: u32 = 5;
/// The call was run, but its reply is longer than the ring or than the server's limit of bytes.
pub const RPC_REPLY_TOO_LARGE: u32 = 6;
/// The server is shutting down. The call was not run.
pub const RPC_DRAINING: u32 = 7;
/// The handler failed in a way that it did not mean to: a panic, an exception.
pub const RPC_HANDLER_FAILED: u32 = 8;

// Tensor frames.
/// A tensor has at most this many dimensions.
pub const NDIM_MAX: usize = 32;
/// The elements begin on an address that is a multiple of this.
pub const TENSOR_ALIGN: usize = 64;
/// Bytes of a tensor's header before the shape.
pub const TENSOR_HEADER: usize = 8;

// How a call waits. A poll takes 25 ns: a load and a PAUSE.
/// What one poll takes: a load and a PAUSE.
pub const POLL_TIME: Duration = Duration::from_nanos(25);
/// Polls before a call sleeps, at most: 75 µs, about what a sleep and the wake-up from it cost (decision 18).
pub const SPIN_MAX: u32 = 3000;
/// Polls that are left where waits have been long.
pub const SPIN_MIN: u32 = 32;
/// Polls of a receiver before it enters the general wait: more than a round trip takes.
pub const FIRST_POLLS: u32 = 32;
/// Polls of a receiver in Python before it gives the interpreter lock up: 2 µs, less than giving it up and taking it
/// back costs.
pub const INTERPRETER_POLLS: u32 = 80;
/// Polls of a side that never sleeps between two checks of the clock, the deadline and the peer: 50 µs.
pub const POLLS_PER_CHECK: u32 = 2000;
/// A wait that was over before this, the spinning and the wake-up included, would have been better spent spinning to
/// the end.
pub const SHORT_WAIT: Duration = Duration::from_micros(110);
/// The longest sleep before another check of the deadline and of whether the peer lives. A blocked side learns of a
/// death within two intervals.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The longest sleep where the waker does not fence and this side cannot make it: the wake-up may be missed, so it is
/// short.
pub const UNORDERED_INTERVAL: Duration = Duration::from_millis(1);
/// Between two polls of a region's handle that cannot write, and so cannot say that it waits.
pub const REGION_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// The wake-up of a waiting producer is put off until this fraction of the capacity is free (a quarter), or the ring is
/// drained.
pub const WAKE_FRACTION: u64 = 4;

// Topics.
/// A topic's slots for subscribers, by default.
pub const TOPIC_SLOTS_DEFAULT: u32 = 32;
/// How often a call that does not wait lets the publisher overtake it before it gives up and says Empty.
pub const OVERTAKEN_MAX: u32 = 16;
/// A lossy subscriber that was overtaken resumes at the oldest known frame that is at most this fraction of the
/// capacity (a half) behind `claim`: farther back it would be overtaken again.
pub const RESUME_FRACTION: u64 = 2;

// Listeners and connectors.
/// Handshakes under way at a time: the oldest silent one makes room for the next connector.
pub const HANDSHAKES_MAX: usize = 64;
/// Connectors that one accept turns away for want of descriptors before it reports the failure.
pub const TURNED_AWAY_MAX: u32 = 1024;
/// How long the listening socket is left alone after accepting has failed for want of descriptors.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The default of a listener's deadline for each message of a connector.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(1);
/// Connectors that the system lets wait for an accept, by default.
pub const BACKLOG_DEFAULT: u32 = 128;
/// How long a connector tries, by default.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The first pause between two attempts to connect; each is twice the one before.
pub const CONNECT_PAUSE_MIN: Duration = Duration::from_micros(500);
/// The longest pause between two attempts to connect.
pub const CONNECT_PAUSE_MAX: Duration = Duration::from_millis(10);
/// A socket gets its mode just after its name: a refused permission is final only after this.
pub const PERMISSION_GRACE: Duration = Duration::from_millis(200);

// RPC.
/// Calls in flight that a server allows a client, by default.
pub const RPC_IN_FLIGHT_DEFAULT: u32 = 1024;
/// Clients that a server takes at a time, by default.
pub const RPC_CLIENTS_DEFAULT: usize = 128;
/// A server copies at most this many times its capacity for one client, by default, and a client buffers at most this
/// many times the capacity of replies.
pub const RPC_BYTES_FACTOR: u32 = 4;
/// Elements of a stream that may be under way, by default.
pub const RPC_WINDOW_DEFAULT: u32 = 16;
/// Frames that a server takes from one client before it serves the next one, and looks at deadlines.
pub const RPC_FRAMES_PER_ROUND: u32 = 64;

// Opening and creating.
/// How long a race with another process (a segment that is just going away) is tried again, at least.
pub const RACE_TIMEOUT: Duration = Duration::from_secs(1);
/// The first pause between two such attempts; each is twice the one before.
pub const RACE_PAUSE_MIN: Duration = Duration::from_micros(100);
/// The longest pause between two such attempts.
pub const RACE_PAUSE_MAX: Duration = Duration::from_millis(10);
/// A ring's capacity in bytes, by default.
pub const CAPACITY_DEFAULT: u64 = 1_048_576;

// Where the fields of the segment header are, from the segment's start.
/// 8 bytes.
pub const OFF_MAGIC: usize = 0x00;
/// u32: `0x0A0B0C0D`, so the bytes are `0D 0C 0B 0A`.
pub const OFF_BYTE_ORDER: usize = 0x08;
/// u16: 1.
pub const OFF_VERSION_MAJOR: usize = 0x0C;
/// u16: 0, of a topic 1 (section 15).
pub const OFF_VERSION_MINOR: usize = 0x0E;
/// u32.
pub const OFF_KIND: usize = 0x10;
/// u32: bit 0 `PERSISTENT`: the last one out leaves the name in place.
pub const OFF_FLAGS: usize = 0x14;
/// u32: 0, of an RPC's bus 1 (\[section 20](#20-rpc)).
pub const OFF_FEATURES_REQUIRED: usize = 0x18;
/// u32: 0.
pub const OFF_FEATURES_OPTIONAL: usize = 0x1C;
/// u64: length of the whole segment in bytes, header page included.
pub const OFF_SIZE: usize = 0x20;
/// u64: wall clock at creation, nanoseconds since 1970.
pub const OFF_CREATED_NS: usize = 0x28;
/// 16 bytes: the kernel's boot id (`/proc/sys/kernel/random/boot_id`) as 16 raw bytes in the order in which they are
/// printed.
pub const OFF_BOOT_ID: usize = 0x30;

// Where the fields of a block's geometry are, from the block's start.
/// u64: segment offset of the data area.
pub const OFF_DATA_OFFSET: usize = 0x000;
/// u64: bytes of data. Ring: a power of two, ≥ that page, ≥ `align`.
pub const OFF_CAPACITY: usize = 0x008;
/// u64: region: the length that was asked for.
pub const OFF_LEN: usize = 0x010;
/// u32: ring: alignment of payloads, a power of two from 16 to 4096.
pub const OFF_ALIGN: usize = 0x018;

// Where a ring's words are, from the block's start.
/// u64: end of the last published frame.
pub const OFF_TAIL: usize = 0x080;
/// Two last-tag records: the end and the tag of a published frame.
pub const OFF_LAST_TAGS: usize = 0x088;
/// u64: start of the first frame that is not released.
pub const OFF_HEAD: usize = 0x100;
/// The producer's role line.
pub const OFF_PRODUCER: usize = 0x180;
/// The consumer's role line.
pub const OFF_CONSUMER: usize = 0x200;

// A last-tag record, from its start.
/// The value of `tail` after the frame.
pub const LAST_TAG_END: usize = 0x0;
/// The frame's tag.
pub const LAST_TAG_TAG: usize = 0x8;
/// The length of a record.
pub const LAST_TAG_SIZE: usize = 0x10;

// A role's words, from the start of its line.
/// The futex: 1 while the holder sleeps or is about to.
pub const OFF_ROLE_WAIT: usize = 0x0;
/// The role's flags, written anew at each attach.
pub const OFF_ROLE_FLAGS: usize = 0x4;
/// How often the role was attached; 0 = never.
pub const OFF_ROLE_EPOCH: usize = 0x8;
/// Of the consumer: the producer's epoch whose orderly close was delivered; 0 = none.
pub const OFF_ROLE_CLOSE_SEEN: usize = 0xC;

// A region's only word, from the block's start.
/// Bit 0: somebody waits; the rest counts notifications.
pub const OFF_NOTIFY: usize = 0x080;

// Where a topic's words are, from the block's start. Its data offset, capacity and alignment are where a ring's are.
/// u32: how many slots there are, 1 to 1024.
pub const OFF_TOPIC_SLOTS: usize = 0x020;
/// u32: bit 0 `LOSSY_ONLY`, bit 1 `MAY_EJECT`.
pub const OFF_TOPIC_FLAGS: usize = 0x024;
/// u64: segment offset of the subscribers' area.
pub const OFF_TOPIC_SUBS_OFFSET: usize = 0x028;
/// u64: end of the last published frame.
pub const OFF_TOPIC_TAIL: usize = 0x080;
/// u64: start of the last published frame.
pub const OFF_TOPIC_LAST: usize = 0x088;
/// u64: everything below `claim − capacity` is overwritten, or may be at any moment.
pub const OFF_TOPIC_CLAIM: usize = 0x100;
/// u64\[16]: for each sixteenth of the data area a position where a frame begins in it.
pub const OFF_TOPIC_STARTS: usize = 0x180;
/// The publisher's role line. Its futex word is in the subscribers' area.
pub const OFF_TOPIC_PUBLISHER: usize = 0x200;
/// u64: nanoseconds after which a subscriber that holds the publisher back is ejected.
pub const OFF_TOPIC_EJECT_AFTER: usize = 0x210;

// Where the words of a topic's subscribers' area are, from its start.
/// The publisher's futex word.
pub const OFF_SUBS_WAIT: usize = 0x0000;
/// u64: low half: the subscribers' futex word (bit 0 = somebody sleeps, the rest counts).
pub const OFF_SUBS_WORD: usize = 0x0080;
/// Slot 0; the others follow.
pub const OFF_SUBS_SLOTS: usize = 0x1000;

// Where the words of a subscriber's slot are, from its start.
/// u64: start of the first frame that is not released.
pub const OFF_SLOT_CURSOR: usize = 0x00;
/// u64: high half: epoch.
pub const OFF_SLOT_STATE: usize = 0x08;
/// u32: bit 0 `MEMBARRIER_CAPABLE`, bit 1 `FENCE_FREE`, bit 3 `LATEST`.
pub const OFF_SLOT_FLAGS: usize = 0x10;
/// u32: the publisher's epoch whose orderly close was delivered, 0 = none.
pub const OFF_SLOT_CLOSE_SEEN: usize = 0x14;
/// u64: how many messages this subscriber has lost.
pub const OFF_SLOT_LOST: usize = 0x18;
/// u64: `seq` of the frame at the cursor when the subscriber was ejected.
pub const OFF_SLOT_EJECT_SEQ: usize = 0x20;
/// 64 bytes: UTF-8, padded with zeros, compared whole.
pub const OFF_SLOT_LABEL: usize = 0x40;

// A topic's frame's fields, from its start. `len`, `type_id` and `tag` are where a ring's are; the payload follows.
/// The message's number: the first has 1, and it rises.
pub const TOPIC_FRAME_SEQ: usize = 0x10;
/// When it was published, or 0.
pub const TOPIC_FRAME_TIME: usize = 0x18;

// Where the fields of a message of the handshake are.
/// 8 bytes.
pub const HANDSHAKE_OFF_MAGIC: usize = 0x00;
/// u32: `0x0A0B0C0D`.
pub const HANDSHAKE_OFF_BYTE_ORDER: usize = 0x08;
/// u16: 1.
pub const HANDSHAKE_OFF_MAJOR: usize = 0x0C;
/// u16: 0.
pub const HANDSHAKE_OFF_MINOR: usize = 0x0E;
/// u32.
pub const HANDSHAKE_OFF_TYPE: usize = 0x10;
/// u32: REFUSE and ACK: an error number, 0 = success.
pub const HANDSHAKE_OFF_STATUS: usize = 0x14;
/// u32: HELLO and WELCOME: 0, of an RPC's bus 1 (\[section 20](#20-rpc)).
pub const HANDSHAKE_OFF_FEATURES_REQUIRED: usize = 0x18;
/// u32: unknown bits are ignored.
pub const HANDSHAKE_OFF_FEATURES_OPTIONAL: usize = 0x1C;
/// u64: WELCOME: bytes of the memory that comes with it.
pub const HANDSHAKE_OFF_SIZE: usize = 0x20;
/// u32: WELCOME of an RPC's bus: how many calls this client may have in flight, ≥ 1.
pub const HANDSHAKE_OFF_MAX_IN_FLIGHT: usize = 0x28;

// Where the fields of a CALL's header are, from the payload's start.
/// u32: microseconds that the call has left at commit.
pub const CALL_OFF_TIMEOUT_US: usize = 0x00;
/// u32: bytes of metadata.
pub const CALL_OFF_META_LEN: usize = 0x04;
/// u32: which method.
pub const CALL_OFF_METHOD: usize = 0x08;
/// u32: 0: one reply.
pub const CALL_OFF_WINDOW: usize = 0x0C;

// Where the fields of a REPLY's header are, from the payload's start.
/// u32: of a final REPLY how the call ended.
pub const REPLY_OFF_STATUS: usize = 0x00;
/// u32: bit 0 `ELEMENT`: an element of a stream, more follow.
pub const REPLY_OFF_FLAGS: usize = 0x04;
/// u32: with status 1 the application's number.
pub const REPLY_OFF_CODE: usize = 0x08;
/// u32: bytes of metadata.
pub const REPLY_OFF_META_LEN: usize = 0x0C;

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    /// Shared bytes with notify and wait; block 0 is the region's.
    Region = 1,
    /// One ring, in block 0.
    Ring = 2,
    /// Two rings: block 0 from the listener to the connector, block 1 back.
    Bus = 3,
    /// The lock of a listening socket; no block.
    Listener = 4,
    /// One log with one publisher and many subscribers; block 0 is the topic's.
    Topic = 5,
}

impl Kind {
    /// The one with this number, if there is one.
    pub const fn from_u32(value: u32) -> Option<Self> {
        match value {
            1 => Some(Self::Region),
            2 => Some(Self::Ring),
            3 => Some(Self::Bus),
            4 => Some(Self::Listener),
            5 => Some(Self::Topic),
            _ => None,
        }
    }

    /// As people read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Ring => "ring",
            Self::Bus => "bus",
            Self::Listener => "listener",
            Self::Topic => "topic",
        }
    }
}

/// What a message of the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum HandshakeType {
    /// The connector's first message.
    Hello = 1,
    /// The listener's answer, with the memory.
    Welcome = 2,
    /// The listener's answer, with the reason.
    Refuse = 3,
    /// The connector's last message: what it found in the memory.
    Ack = 4,
}

impl HandshakeType {
    /// The one with this number, if there is one.
    pub const fn from_u32(value: u32) -> Option<Self> {
        match value {
            1 => Some(Self::Hello),
            2 => Some(Self::Welcome),
            3 => Some(Self::Refuse),
            4 => Some(Self::Ack),
            _ => None,
        }
    }

    /// As people read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hello => "HELLO",
            Self::Welcome => "WELCOME",
            Self::Refuse => "REFUSE",
            Self::Ack => "ACK",
        }
    }
}

/// Gives a macro every kind of error: documentation, name, number, and the text of an error that says nothing more.
macro_rules! error_kinds {
    ($to:ident) => {
        $to! {
            /// Nothing has this name.
            NotFound = 1, "nothing has this name";
            /// The name is taken: by a live segment, by undelivered messages, or by something that is not Ramway's.
            AlreadyExists = 2, "the name is taken";
            /// An argument cannot be right; the message says which and what was expected.
            InvalidArgument = 3, "invalid argument";
            /// The role, slot or view is taken.
            Busy = 4, "taken: by another handle, an open slot or a message not yet released";
            /// The ring or topic has no room for this message now.
            Full = 5, "there is no room for this message now";
            /// The ring has no message now.
            Empty = 6, "nothing is there now";
            /// The message can never fit into this ring.
            TooLarge = 7, "the message is longer than this ring can ever hold";
            /// The deadline passed.
            TimedOut = 8, "the deadline passed";
            /// The peer closed, and everything that it had sent has been received; or the name has vanished.
            Closed = 9, "the peer closed";
            /// This handle is closed, or it belongs to the parent of a forked process.
            Detached = 10, "this handle is closed or was inherited across a fork";
            /// The peer's process died without closing, and everything that it had committed has been received.
            PeerDead = 11, "the peer died without closing";
            /// The shared memory holds what no correct peer writes; the handle stays dead.
            Corrupt = 12, "the shared memory is corrupt";
            /// Not Ramway's, or a version, byte order, feature or page size that this side cannot use.
            AbiMismatch = 13, "not a segment that this version can use";
            /// The operating system, or a check of the peer's user, refuses.
            PermissionDenied = 14, "permission denied";
            /// Not enough memory or file system space.
            NoSpace = 15, "not enough memory or space";
            /// The wait was interrupted: by a signal whose handler asked for it, or by the program.
            Interrupted = 16, "interrupted";
            /// This kernel, file system or setting cannot do what was asked.
            Unsupported = 17, "not supported here";
            /// Any other error of the operating system, with its number.
            Os = 18, "operating system error";
            /// The publisher of a topic ejected this subscriber, which was too slow; the error says how many messages
            /// were lost.
            Lagged = 19, "messages were lost: the publisher ejected this subscriber";
        }
    };
}
pub(crate) use error_kinds;

/// Gives a macro every type of a tensor's elements: constant, DLPack's code, bits, name, documentation.
macro_rules! element_types {
    ($to:ident) => {
        $to! {
            I8 = 0, 8, "int8", "Signed, 8 bits.";
            I16 = 0, 16, "int16", "Signed, 16 bits.";
            I32 = 0, 32, "int32", "Signed, 32 bits.";
            I64 = 0, 64, "int64", "Signed, 64 bits.";
            U8 = 1, 8, "uint8", "Unsigned, 8 bits.";
            U16 = 1, 16, "uint16", "Unsigned, 16 bits.";
            U32 = 1, 32, "uint32", "Unsigned, 32 bits.";
            U64 = 1, 64, "uint64", "Unsigned, 64 bits.";
            F16 = 2, 16, "float16", "IEEE 754 binary16.";
            F32 = 2, 32, "float32", "IEEE 754 binary32.";
            F64 = 2, 64, "float64", "IEEE 754 binary64.";
            BF16 = 4, 16, "bfloat16", "The upper half of a binary32.";
            C64 = 5, 64, "complex64", "Two binary32: real part, imaginary part.";
            C128 = 5, 128, "complex128", "Two binary64: real part, imaginary part.";
            BOOL = 6, 8, "bool", "One byte, 0 or 1; a peer can send any byte.";
            F8_E3M4 = 7, 8, "float8_e3m4", "8 bits: 3 of exponent, 4 of mantissa.";
            F8_E4M3 = 8, 8, "float8_e4m3", "8 bits: 4 of exponent, 3 of mantissa, with infinities.";
            F8_E4M3B11FNUZ = 9, 8, "float8_e4m3b11fnuz", "8 bits: 4 of exponent with a bias of 11, 3 of mantissa, one NaN.";
            F8_E4M3FN = 10, 8, "float8_e4m3fn", "8 bits: 4 of exponent, 3 of mantissa, no infinities.";
            F8_E4M3FNUZ = 11, 8, "float8_e4m3fnuz", "8 bits: 4 of exponent, 3 of mantissa, one NaN.";
            F8_E5M2 = 12, 8, "float8_e5m2", "8 bits: 5 of exponent, 2 of mantissa, with infinities.";
            F8_E5M2FNUZ = 13, 8, "float8_e5m2fnuz", "8 bits: 5 of exponent, 2 of mantissa, one NaN.";
            F8_E8M0FNU = 14, 8, "float8_e8m0fnu", "8 bits of exponent: a power of two.";
        }
    };
}
pub(crate) use element_types;
