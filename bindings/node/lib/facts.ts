// Generated from format/facts.toml by `make facts`: edit that, not this.
//
// The facts of the format and the tuning constants. All numbers of shared memory are little-endian, as are all
// machines that Ramway runs on.

// Frames.

/** The length of what precedes every payload: len u32, type id u32, tag u64. */
export const FRAME_HEADER = 16;
/** No message is longer, whatever the capacity: with its header it stays below 2^31. */
export const MESSAGE_MAX = 2_147_483_631;
/** Type ids from here up are Ramway's own. */
export const TYPE_ID_RESERVED = 0xffff0000;
/** The type id of a message that is a tensor frame. */
export const TYPE_ID_TENSOR = 0xffff0001;

// Frames of a topic.

/** The length of what precedes every payload of a topic: a ring's header, then seq u64 and time u64. */
export const TOPIC_FRAME_HEADER = 32;
/** The smallest and default alignment of a topic's payloads. */
export const TOPIC_ALIGN_MIN = 32;
/** No message of a topic is longer, whatever the capacity: with its header it stays below 2^31. */
export const TOPIC_MESSAGE_MAX = 2_147_483_615;

// A topic's parts.

/**
 * Parts of a topic's data area that have an entry in `starts` each. The publisher announces in advance, in whole parts,
 * what it will overwrite.
 */
export const TOPIC_CHUNKS = 16;
/** A topic has at most this many slots for subscribers. */
export const TOPIC_SLOTS_MAX = 1024;
/** In the creator's flags: no subscriber may hold the publisher back. */
export const TOPIC_LOSSY_ONLY = 1;
/**
 * In the creator's flags: a publisher may eject a subscriber that holds it back, so subscribers copy what they receive.
 */
export const TOPIC_MAY_EJECT = 2;
/** The creator's flags that this version knows. Any other set bit is AbiMismatch. */
export const TOPIC_FLAGS_KNOWN = 3;

// A subscriber's slot.

/** The length of a slot in bytes. */
export const SLOT_SIZE = 128;
/** The longest label of a subscriber, in bytes of UTF-8. */
export const LABEL_MAX = 64;

// The bits of a slot's state; its epoch is the upper half.

/** A subscriber has the slot. */
export const SLOT_ACTIVE = 1;
/** The publisher does not overwrite what lies at the slot's cursor or after it. */
export const SLOT_GATING = 2;
/** The slot, its label and its cursor stay when its subscriber goes. */
export const SLOT_DURABLE = 4;
/** The publisher has ejected the subscriber: it does not gate any more. */
export const SLOT_EJECTED = 8;

// The bits of a slot's flags, which its subscriber writes.

/** As of a role: a real membarrier succeeded in the subscriber's process. */
export const SLOT_FLAG_MEMBARRIER_CAPABLE = 1;
/** As of a role: the subscriber does not fence before it wakes the publisher. */
export const SLOT_FLAG_FENCE_FREE = 2;
/** The subscriber reads the newest message only: for people who look at the topic. */
export const SLOT_FLAG_LATEST = 8;

// The subscribers' shared word, which is accessed as one u64 only.

/**
 * A subscriber sleeps, or is about to. A sleeper sets it; the publisher adds this, which clears it and counts a
 * wake-up.
 */
export const WORD_ASLEEP = 1;
/**
 * Who has to wake all subscribers whether or not one says that it sleeps adds this: it changes what they wait for, and
 * keeps the bit.
 */
export const WORD_WAKE = 2;

// The bits of a role's flags.

/** A real membarrier succeeded in the holder's process. */
export const ROLE_MEMBARRIER_CAPABLE = 1;
/** As a waker, the holder does not fence. */
export const ROLE_FENCE_FREE = 2;
/** The holder closed in an orderly way. */
export const ROLE_CLOSED = 4;

// RPC: type ids and methods of Ramway's own.

/** Methods from here up are Ramway's own. */
export const METHOD_RESERVED = 0xffff0000;
/** The method that replies with nothing: the server is there and reads. */
export const METHOD_PING = 0xffff0000;
/** The method that replies with the numbers and names of the server's methods. */
export const METHOD_DESCRIBE = 0xffff0001;

// How a call ended, in a final REPLY.

/** The call succeeded. */
export const RPC_OK = 0;
/** The handler replied with an error of its own: a number and a text. */
export const RPC_APPLICATION = 1;
/** The server has no such method. The call was not run. */
export const RPC_NO_SUCH_METHOD = 2;
/** The call's time was over before it was begun. It was not run. */
export const RPC_TIMED_OUT = 3;
/** The call was cancelled. */
export const RPC_CANCELLED = 4;
/** A limit of the server was reached. The call was not run. */
export const RPC_OVERLOADED = 5;
/** The call was run, but its reply is longer than the ring or than the server's limit of bytes. */
export const RPC_REPLY_TOO_LARGE = 6;
/** The server is shutting down. The call was not run. */
export const RPC_DRAINING = 7;
/** The handler failed in a way that it did not mean to: a panic, an exception. */
export const RPC_HANDLER_FAILED = 8;

// Tensor frames.

/** A tensor has at most this many dimensions. */
export const NDIM_MAX = 32;
/** The elements begin on an address that is a multiple of this. */
export const TENSOR_ALIGN = 64;
/** Bytes of a tensor's header before the shape. */
export const TENSOR_HEADER = 8;

// How a call waits. A poll takes 25 ns: a load and a PAUSE.

/** Polls of a receiver before it enters the general wait: more than a round trip takes. */
export const FIRST_POLLS = 32;
/**
 * How long a hybrid wait polls, once in each iteration of the event loop, before the loop sleeps: about what being
 * woken costs both sides. In milliseconds.
 */
export const ITERATION_SPIN_MS = 0.05;
/** Polls of a blocking call in JavaScript, 5 to 10 ns each, before it blocks in native code. */
export const BLOCKING_POLLS = 4000;
/** The longest pause between two polls whether a peer has come. In milliseconds. */
export const PEER_PAUSE_MAX_MS = 50;
/**
 * The longest sleep before another check of the deadline and of whether the peer lives. A blocked side learns of a
 * death within two intervals. In milliseconds.
 */
export const POLL_INTERVAL_MS = 100;
/** Between two polls of a region's handle that cannot write, and so cannot say that it waits. In milliseconds. */
export const REGION_POLL_INTERVAL_MS = 1;
/**
 * The wake-up of a waiting producer is put off until this fraction of the capacity is free (a quarter), or the ring is
 * drained.
 */
export const WAKE_FRACTION = 4;

// Topics.

/** A topic's slots for subscribers, by default. */
export const TOPIC_SLOTS_DEFAULT = 32;
/** How often a call that does not wait lets the publisher overtake it before it gives up and says Empty. */
export const OVERTAKEN_MAX = 16;
/**
 * A lossy subscriber that was overtaken resumes at the oldest known frame that is at most this fraction of the capacity
 * (a half) behind `claim`: farther back it would be overtaken again.
 */
export const RESUME_FRACTION = 2;

// Listeners and connectors.

/** How long the listening socket is left alone after accepting has failed for want of descriptors. In milliseconds. */
export const ACCEPT_PAUSE_MS = 100;

// RPC.

/** Elements of a stream that may be under way, by default. */
export const RPC_WINDOW_DEFAULT = 16;

// Opening and creating.

/** Messages of a batch at most, by default. */
export const BATCH_DEFAULT = 1024;

// Where a ring's words are, from the block's start.

/** u64: end of the last published frame. As an index of words. */
export const TAIL = 0x080 >> 2;
/** Two last-tag records: the end and the tag of a published frame. As an index of words. */
export const LAST_TAGS = 0x088 >> 2;
/** u64: start of the first frame that is not released. As an index of words. */
export const HEAD = 0x100 >> 2;
/** The producer's role line. As an index of words. */
export const PRODUCER = 0x180 >> 2;
/** The consumer's role line. As an index of words. */
export const CONSUMER = 0x200 >> 2;

// A role's words, from the start of its line.

/** The futex: 1 while the holder sleeps or is about to. As an index of words. */
export const WAIT = 0x0 >> 2;
/** The role's flags, written anew at each attach. As an index of words. */
export const FLAGS = 0x4 >> 2;
/** How often the role was attached; 0 = never. As an index of words. */
export const EPOCH = 0x8 >> 2;
/** Of the consumer: the producer's epoch whose orderly close was delivered; 0 = none. As an index of words. */
export const CLOSE_SEEN = 0xc >> 2;

// Where a topic's words are, from the block's start. Its data offset, capacity and alignment are where a ring's are.

/** u32: how many slots there are, 1 to 1024. As an index of words. */
export const TOPIC_SLOTS = 0x020 >> 2;
/** u32: bit 0 `LOSSY_ONLY`, bit 1 `MAY_EJECT`. As an index of words. */
export const TOPIC_FLAGS = 0x024 >> 2;
/** u64: segment offset of the subscribers' area. As an index of words. */
export const TOPIC_SUBS_OFFSET = 0x028 >> 2;
/** u64: end of the last published frame. As an index of words. */
export const TOPIC_TAIL = 0x080 >> 2;
/** u64: start of the last published frame. As an index of words. */
export const TOPIC_LAST = 0x088 >> 2;
/** u64: everything below `claim − capacity` is overwritten, or may be at any moment. As an index of words. */
export const TOPIC_CLAIM = 0x100 >> 2;
/** u64[16]: for each sixteenth of the data area a position where a frame begins in it. As an index of words. */
export const TOPIC_STARTS = 0x180 >> 2;
/** The publisher's role line. Its futex word is in the subscribers' area. As an index of words. */
export const TOPIC_PUBLISHER = 0x200 >> 2;
/** u64: nanoseconds after which a subscriber that holds the publisher back is ejected. As an index of words. */
export const TOPIC_EJECT_AFTER = 0x210 >> 2;

// Where the words of a topic's subscribers' area are, from its start.

/** The publisher's futex word. As an index of words. */
export const SUBS_WAIT = 0x0000 >> 2;
/** u64: low half: the subscribers' futex word (bit 0 = somebody sleeps, the rest counts). As an index of words. */
export const SUBS_WORD = 0x0080 >> 2;
/** Slot 0; the others follow. As an index of words. */
export const SUBS_SLOTS = 0x1000 >> 2;

// Where the words of a subscriber's slot are, from its start.

/** u64: start of the first frame that is not released. As an index of words. */
export const SLOT_CURSOR = 0x00 >> 2;
/** u64: high half: epoch. As an index of words. */
export const SLOT_STATE = 0x08 >> 2;
/** u32: bit 0 `MEMBARRIER_CAPABLE`, bit 1 `FENCE_FREE`, bit 3 `LATEST`. As an index of words. */
export const SLOT_FLAGS = 0x10 >> 2;
/** u32: the publisher's epoch whose orderly close was delivered, 0 = none. As an index of words. */
export const SLOT_CLOSE_SEEN = 0x14 >> 2;
/** u64: how many messages this subscriber has lost. As an index of words. */
export const SLOT_LOST = 0x18 >> 2;
/** u64: `seq` of the frame at the cursor when the subscriber was ejected. As an index of words. */
export const SLOT_EJECT_SEQ = 0x20 >> 2;
/** 64 bytes: UTF-8, padded with zeros, compared whole. As an index of words. */
export const SLOT_LABEL = 0x40 >> 2;

// A topic's frame's fields, from its start. `len`, `type_id` and `tag` are where a ring's are; the payload follows.

/** The message's number: the first has 1, and it rises. */
export const TOPIC_FRAME_SEQ = 0x10;
/** When it was published, or 0. */
export const TOPIC_FRAME_TIME = 0x18;

// Where the fields of a tensor's header are, from the payload's start.

/** u8: DLPack's `DLDataTypeCode`, see below. */
export const TENSOR_OFF_DTYPE_CODE = 0x00;
/** u8: bits of one element. */
export const TENSOR_OFF_DTYPE_BITS = 0x01;
/** u8: 0 … 32. */
export const TENSOR_OFF_NDIM = 0x02;
/** u8: 0. */
export const TENSOR_OFF_ZERO = 0x03;
/** u32: payload offset of the first element. */
export const TENSOR_OFF_ELEMENTS_OFFSET = 0x04;
/** u64[ndim]: the outermost dimension first. */
export const TENSOR_OFF_SHAPE = 0x08;

/** The kinds of errors, the same in every language (docs/ABI.md). */
export type ErrorKind =
  | 'NotFound'
  | 'AlreadyExists'
  | 'InvalidArgument'
  | 'Busy'
  | 'Full'
  | 'Empty'
  | 'TooLarge'
  | 'TimedOut'
  | 'Closed'
  | 'Detached'
  | 'PeerDead'
  | 'Corrupt'
  | 'AbiMismatch'
  | 'PermissionDenied'
  | 'NoSpace'
  | 'Interrupted'
  | 'Unsupported'
  | 'Os'
  | 'Lagged';

/** The types of a tensor's elements, by NumPy's or ml_dtypes' name: DLPack's code and the bits of one element. */
export const ELEMENT_TYPES = {
  int8: [0, 8],
  int16: [0, 16],
  int32: [0, 32],
  int64: [0, 64],
  uint8: [1, 8],
  uint16: [1, 16],
  uint32: [1, 32],
  uint64: [1, 64],
  float16: [2, 16],
  float32: [2, 32],
  float64: [2, 64],
  bfloat16: [4, 16],
  complex64: [5, 64],
  complex128: [5, 128],
  bool: [6, 8],
  float8_e3m4: [7, 8],
  float8_e4m3: [8, 8],
  float8_e4m3b11fnuz: [9, 8],
  float8_e4m3fn: [10, 8],
  float8_e4m3fnuz: [11, 8],
  float8_e5m2: [12, 8],
  float8_e5m2fnuz: [13, 8],
  float8_e8m0fnu: [14, 8],
} as const;
