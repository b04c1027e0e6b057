// The producer's half of the ring protocol: the counterpart of core/src/ring/producer.rs, and the mirror image of
// consumer.ts.
import type { Memory, NativeEndpoint } from '../../native.cjs';
import { Half, storePosition } from '../endpoint/half.js';
import { call } from '../errors.js';
import { CONSUMER, FLAGS, FRAME_HEADER, HEAD, LAST_TAGS, ROLE_CLOSED, TAIL, WAIT } from '../facts.js';

/** `position` is what is published, `peer` the receiver's head. */
export class Producer extends Half {
  /** End of the last committed frame, published or not. Invariant: peer <= position <= tail <= peer + capacity. */
  tail: number;
  /** Bytes of the longest message. */
  readonly maxMessageLength: number;
  /** Which of the two last-tag records is written next. */
  private nextLastTag: number;
  /** Tag of the last committed frame, for the record. */
  private tagLow = 0;
  private tagHigh = 0;

  constructor(native: NativeEndpoint, memory: Memory) {
    super(native, memory);
    this.tail = this.position;
    // As if not acted upon: the first call throws if the receiver has closed already.
    this.peerFlags = ~memory.peerFlags;
    this.nextLastTag = memory.nextLastTag & 1;
    this.maxMessageLength = memory.maxMessageLength;
  }

  /** Whether a payload of `length` bytes, at most the ring's longest, fits. If not, what is committed is published. */
  fits(length: number): boolean {
    // A plain load: what it misses, the next publication sees.
    if (this.header[CONSUMER + FLAGS] !== this.peerFlags) this.peerChanged();
    const size = this.sizeOf(length);
    if (size <= this.capacity - ((this.tail - this.peer) >>> 0)) return true;
    return this.refresh(size) || (this.flush(), false);
  }

  /** Whether `size` bytes are free by the receiver's position as it is now, which moves up to what was published. */
  private refresh(size: number): boolean {
    this.accept(HEAD, Atomics.load(this.header, HEAD), (this.position - this.peer) >>> 0);
    return size <= this.capacity - ((this.tail - this.peer) >>> 0);
  }

  /** Whether a payload of `length` bytes fits now: a poll that changes nothing but what is known of the receiver. */
  hasRoom(length: number): boolean {
    return this.refresh(this.sizeOf(length));
  }

  /** Whether it fits by the native half, which tells of it from now on if not. Everything is published. */
  ask(length: number): boolean {
    return call(() => this.native.ready(this.positions, length)) && this.hasRoom(length);
  }

  /** The same, waiting for so long. */
  wait(length: number, milliseconds: number): boolean {
    return call(() => this.native.wait(this.positions, length, milliseconds)) && this.hasRoom(length);
  }

  protected sizeOf(length: number): number {
    const step = this.align - 1;
    return (FRAME_HEADER + length + step) & ~step;
  }

  /** Where the payload of the next frame begins in `bytes`. */
  get at(): number {
    return (this.tail & (this.capacity - 1)) + FRAME_HEADER;
  }

  /** Copies bytes to where the next frame's payload begins. They fit. */
  copy(data: Uint8Array): void {
    // Faster than a loop from 8 bytes on (docs/adr/0021).
    this.bytes.set(data, this.at);
  }

  /** Makes the `length` bytes of payload a message; without `flush` it is visible at the next publication. */
  commit(length: number, typeId: number, tagLow: number, tagHigh: number, flush: boolean): void {
    const word = (this.at - FRAME_HEADER) >> 2;
    const { words } = this;
    words[word] = length;
    words[word + 1] = typeId;
    words[word + 2] = tagLow;
    words[word + 3] = tagHigh;
    this.tail = (this.tail + this.sizeOf(length)) | 0;
    this.tagLow = tagLow;
    this.tagHigh = tagHigh;
    if (flush) this.publish();
  }

  /** Makes everything committed visible, and wakes the receiver if it says it sleeps. */
  flush(): void {
    if (this.tail !== this.position) this.publish();
  }

  protected publish(): void {
    const { header, tail, tagLow, tagHigh } = this;
    let high = this.high;
    if ((tagLow | tagHigh) !== 0) {
      // Read by a later producer alone. A kill between any of these stores leaves this record not matching the position,
      // and the other one matching if it did: the halves of `end` differ from the last position's in the low one.
      if (tail >>> 0 < this.position >>> 0) high = (high + 1) >>> 0;
      const record = LAST_TAGS + 4 * this.nextLastTag;
      header[record] = tail;
      header[record + 1] = high;
      header[record + 2] = tagLow;
      header[record + 3] = tagHigh;
      this.nextLastTag ^= 1;
    }
    this.high = storePosition(header, this.wide, TAIL, this.high, this.position, tail);
    this.position = tail;
    // Sequentially consistent after the store of the position: the receiver either sees that or is seen to wait. The
    // flags are a hint, for which a plain load does (a third of the cost).
    if (Atomics.load(header, CONSUMER + WAIT) !== 0 || header[CONSUMER + FLAGS] !== this.peerFlags) {
      this.wakePeer();
    }
  }

  /** Acts on the receiver's flags, which may say that it is gone for good. */
  private peerChanged(): void {
    this.wakePeer();
    if (!this.broken && (!this.final || (this.peerFlags & ROLE_CLOSED) === 0)) return;
    // Never taken for acted upon: every call throws.
    this.peerFlags = ~this.peerFlags;
    call(() => this.native.check());
  }

  override get used(): number {
    return Math.min((this.position - Atomics.load(this.header, HEAD)) >>> 0, this.capacity);
  }

  protected override corrupt(): never {
    // Never taken for acted upon: every call throws.
    this.peerFlags = ~this.peerFlags;
    return super.corrupt();
  }
}
