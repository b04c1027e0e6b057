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

// The bits of a role's flags.

/** A real membarrier succeeded in the holder's process. */
export const ROLE_MEMBARRIER_CAPABLE = 1;
/** As a waker, the holder does not fence. */
export const ROLE_FENCE_FREE = 2;
/** The holder closed in an orderly way. */
export const ROLE_CLOSED = 4;

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

// Listeners and connectors.

/** How long the listening socket is left alone after accepting has failed for want of descriptors. In milliseconds. */
export const ACCEPT_PAUSE_MS = 100;

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
  | 'Os';

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
