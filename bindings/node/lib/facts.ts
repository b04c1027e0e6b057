// A ring's block in the header page (docs/ABI.md, "Ring block"), as indices of 32-bit words, and what is in it. All
// numbers are little-endian, as are all machines that Ramway runs on.

/** The sender's position, low half; the high half follows. */
export const TAIL = 0x80 >> 2;
/** Two last-tag records of 16 bytes: where a frame ended, and its tag. */
export const LAST_TAGS = 0x88 >> 2;
/** The receiver's position, low half; the high half follows. */
export const HEAD = 0x100 >> 2;
/** The role words of each side: waits, flags, epoch, close_seen. */
export const PRODUCER = 0x180 >> 2;
export const CONSUMER = 0x200 >> 2;
/** Within the role words. */
export const WAIT = 0;
export const FLAGS = 1;
export const EPOCH = 2;

/** A flag: the side closed in an orderly way. */
export const CLOSED = 4;

/** Bytes before each payload: `len: u32, type_id: u32, tag: u64`. */
export const FRAME_HEADER = 16;
/** No message is longer. */
export const MESSAGE_MAX = 2 ** 31 - 17;
/** Type ids from here up are Ramway's own. */
export const TYPE_ID_RESERVED = 0xffff0000;
