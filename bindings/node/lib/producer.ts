// The producer's half of the ring protocol, on typed arrays: the counterpart of core/src/ring/producer.rs, and the mirror
// image of consumer.ts.
import type { Memory, NativeSender, Positions } from '../native.cjs';
import { call } from './errors.js';
import {
  CLOSED,
  CONSUMER,
  FLAGS,
  FRAME_HEADER,
  HEAD,
  highDiffers,
  LAST_TAGS,
  storePosition,
  TAIL,
  WAIT,
} from './layout.js';

export class Producer {
  readonly capacity: number;
  readonly align: number;
  /** Whether the receiver's close is the end for good. */
  readonly final: boolean;
  private readonly header: Int32Array;
  private readonly wide: BigInt64Array;
  /** The data, mapped twice back to back. */
  words: Int32Array;
  bytes: Uint8Array;
  /** End of the last committed frame, published or not. */
  tail: number;
  /** What the shared position holds. Invariant: head <= published <= tail <= head + capacity. */
  published: number;
  /** High half of `published`. */
  private high: number;
  /** The shared `head` as last seen: can be stale, is never ahead of the real one. */
  head: number;
  /** High half of `head`. */
  private headHigh: number;
  /** The ring was found corrupt: every call is told. */
  private broken = false;
  /** The receiver's flags as last acted upon. */
  private peerFlags: number;
  /** Which of the two last-tag records is written next. */
  private nextLastTag: number;
  /** Tag of the last committed frame, for the last-tag record. */
  private tagLow = 0;
  private tagHigh = 0;

  constructor(
    private readonly native: NativeSender,
    memory: Memory,
  ) {
    this.capacity = memory.capacity;
    this.align = memory.align;
    this.final = memory.final;
    this.header = new Int32Array(memory.header);
    this.wide = new BigInt64Array(memory.header);
    this.words = new Int32Array(memory.data);
    this.bytes = new Uint8Array(memory.data);
    this.tail = this.published = Number(BigInt.asIntN(32, memory.position));
    this.high = Number(BigInt.asUintN(64, memory.position) >> 32n);
    this.head = Number(BigInt.asIntN(32, memory.peer));
    this.headHigh = Number(BigInt.asUintN(64, memory.peer) >> 32n);
    // As if not acted upon: the first call is told of a receiver that has closed already.
    this.peerFlags = ~memory.peerFlags;
    this.nextLastTag = native.nextLastTag & 1;
  }

  /** Whether a payload of `length` bytes, at most the ring's longest, fits. If not, what is committed is published. */
  fits(length: number): boolean {
    // A plain load: what it misses, the next publication sees.
    if (this.header[CONSUMER + FLAGS] !== this.peerFlags) this.peerChanged();
    const size = this.sizeOf(length);
    if (size <= this.capacity - ((this.tail - this.head) >>> 0)) return true;
    return this.look(size) || (this.flush(), false);
  }

  /** The receiver's position is checked here, once, before it is believed: it may only move forward, up to what was
   * published, in whole alignment steps. */
  private look(size: number): boolean {
    const head = Atomics.load(this.header, HEAD);
    const moved = (head - this.head) >>> 0;
    const high = head >>> 0 < this.head >>> 0 ? (this.headHigh + 1) >>> 0 : this.headHigh;
    const far = moved > (this.published - this.head) >>> 0 || highDiffers(this.header, HEAD, head, high);
    if (far || (moved & (this.align - 1)) !== 0) this.corrupt();
    this.head = head;
    this.headHigh = high;
    return size <= this.capacity - ((this.tail - head) >>> 0);
  }

  /** Whether a payload of `length` bytes fits now: a look that changes nothing but what is known of the receiver. */
  hasRoom(length: number): boolean {
    return this.look(this.sizeOf(length));
  }

  private sizeOf(length: number): number {
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
    if (this.tail !== this.published) this.publish();
  }

  private publish(): void {
    const { header, tail, tagLow, tagHigh } = this;
    let high = this.high;
    if ((tagLow | tagHigh) !== 0) {
      // Read by a later producer alone. A kill between any of these stores leaves this record not matching the position,
      // and the other one matching if it did: the halves of `end` differ from the last position's in the low one.
      if (tail >>> 0 < this.published >>> 0) high = (high + 1) >>> 0;
      const record = LAST_TAGS + 4 * this.nextLastTag;
      header[record] = tail;
      header[record + 1] = high;
      header[record + 2] = tagLow;
      header[record + 3] = tagHigh;
      this.nextLastTag ^= 1;
    }
    this.high = storePosition(header, this.wide, TAIL, this.high, this.published, tail);
    this.published = tail;
    // Sequentially consistent after the store of the position: the receiver either sees that or is seen to wait. The
    // flags are a hint, for which a plain load does (a third of the cost).
    if (Atomics.load(header, CONSUMER + WAIT) !== 0 || header[CONSUMER + FLAGS] !== this.peerFlags) {
      this.wakeReceiver();
    }
  }

  private wakeReceiver(): void {
    this.peerFlags = call(() => this.native.wake());
  }

  /** Acts on the receiver's flags, which may say that it is gone for good. */
  private peerChanged(): void {
    this.wakeReceiver();
    if (!this.broken && (!this.final || (this.peerFlags & CLOSED) === 0)) return;
    // Never seen as acted upon: every call is told.
    this.peerFlags = ~this.peerFlags;
    call(() => this.native.check());
  }

  /** Bytes published and not released, by a look at the shared position; can be stale. */
  get used(): number {
    return Math.min((this.published - Atomics.load(this.header, HEAD)) >>> 0, this.capacity);
  }

  /** Both positions whole, for the native half: it may not have been told for any number of laps. */
  get positions(): Positions {
    const { published, high, head, headHigh } = this;
    return { low: published >>> 0, high, peerLow: head >>> 0, peerHigh: headHigh };
  }

  /** The data, for the close to detach. */
  get data(): ArrayBuffer {
    return this.bytes.buffer as ArrayBuffer;
  }

  /** Works on another mapping of the data from now on. */
  move(data: ArrayBuffer): void {
    this.words = new Int32Array(data);
    this.bytes = new Uint8Array(data);
  }

  private corrupt(): never {
    this.broken = true;
    this.peerFlags = ~this.peerFlags;
    call(() => this.native.corrupt());
    throw new Error('unreachable');
  }
}
