// The consumer's half of the ring protocol, on typed arrays: the counterpart of core/src/ring/consumer.rs. Positions are
// the low halves of the format's 64 bits, as int32; a capacity is at most 2^30 bytes, so differences are exact.
import type { Memory, NativeReceiver, Positions } from '../native.cjs';
import { call } from './errors.js';
import {
  CLOSED,
  FLAGS,
  FRAME_HEADER,
  HEAD,
  highDiffers,
  MESSAGE_MAX,
  PRODUCER,
  storePosition,
  TAIL,
  WAIT,
} from './layout.js';

/** Numbers of a frame in {@link Consumer.frames}. */
const STRIDE = 3;

export class Consumer {
  readonly capacity: number;
  readonly align: number;
  /** Whether the sender's close is the end for good. */
  readonly final: boolean;
  readonly header: Int32Array;
  private readonly wide: BigInt64Array;
  /** The data, mapped twice back to back. */
  words: Int32Array;
  bytes: Uint8Array;
  /** Start of the next frame to read. Invariant: released <= head <= tail <= released + capacity. */
  head: number;
  /** What the shared position holds: everything from here to `head` is lent out. */
  released: number;
  /** High half of `released`. */
  private high: number;
  /** The shared `tail` as last seen: can be stale, is never ahead of the real one. */
  tail: number;
  /** High half of `tail`. */
  private tailHigh: number;
  /** The ring was found corrupt: every call is told. */
  private broken = false;
  /** The sender's flags as last acted upon. */
  private peerFlags: number;
  /** Of the frames lent out: where the payload begins in `bytes`, its length, the position after the frame. */
  frames = new Int32Array(64 * STRIDE);

  constructor(
    private readonly native: NativeReceiver,
    memory: Memory,
  ) {
    this.capacity = memory.capacity;
    this.align = memory.align;
    this.final = memory.final;
    this.header = new Int32Array(memory.header);
    this.wide = new BigInt64Array(memory.header);
    this.words = new Int32Array(memory.data);
    this.bytes = new Uint8Array(memory.data);
    this.head = this.released = Number(BigInt.asIntN(32, memory.position));
    this.high = Number(BigInt.asUintN(64, memory.position) >> 32n);
    this.tail = Number(BigInt.asIntN(32, memory.peer));
    this.tailHigh = Number(BigInt.asUintN(64, memory.peer) >> 32n);
    this.peerFlags = memory.peerFlags;
  }

  /** Whether a frame is there. The sender's position is checked here, once, before it is believed: it may only move
   * forward, up to `released + capacity`, in whole alignment steps. */
  look(): boolean {
    if (this.head !== this.tail) return true;
    const tail = Atomics.load(this.header, TAIL);
    if (tail === this.tail) return false;
    const moved = (tail - this.tail) >>> 0;
    const room = this.capacity - ((this.tail - this.released) >>> 0);
    const high = tail >>> 0 < this.tail >>> 0 ? (this.tailHigh + 1) >>> 0 : this.tailHigh;
    if (moved > room || (moved & (this.align - 1)) !== 0 || highDiffers(this.header, TAIL, tail, high)) this.corrupt();
    this.tail = tail;
    this.tailHigh = high;
    return true;
  }

  /** Takes up to `max` frames that are published, as long as they lie within `most` bytes, but at least the first. */
  take(max: number, most: number): number {
    const { words, tail } = this;
    const step = this.align - 1;
    const mask = this.capacity - 1;
    let head = this.head;
    let left = (tail - head) >>> 0;
    const enough = left > most ? left - most : 0;
    let count = 0;
    while (count < max && left > enough) {
      const at = head & mask;
      // Each number is read once: what was checked is what is used.
      const length = words[at >> 2]! >>> 0;
      // Unsigned, and exact for any length up to the longest message.
      const size = ((FRAME_HEADER + length + step) & ~step) >>> 0;
      if (length > MESSAGE_MAX || size > left) this.corrupt();
      if (count !== 0 && left - size < enough) break;
      head = (head + size) | 0;
      left -= size;
      if ((count + 1) * STRIDE > this.frames.length) this.grow();
      const frame = count * STRIDE;
      this.frames[frame] = at + FRAME_HEADER;
      this.frames[frame + 1] = length;
      this.frames[frame + 2] = head;
      count++;
    }
    this.head = head;
    return count;
  }

  /** Where frame `index` of those taken begins, its length, and the position after it. */
  start(index: number): number {
    return this.frames[index * STRIDE]!;
  }

  length(index: number): number {
    return this.frames[index * STRIDE + 1]!;
  }

  after(index: number): number {
    return this.frames[index * STRIDE + 2]!;
  }

  /** Gives the frames before `position` back; those after it are received again. */
  release(position: number): void {
    this.head = position;
    if (position === this.released) return;
    this.high = storePosition(this.header, this.wide, HEAD, this.high, this.released, position);
    this.released = position;
    // Sequentially consistent after the store of the position, as in producer.ts.
    const waits = Atomics.load(this.header, PRODUCER + WAIT) !== 0;
    if (waits || this.header[PRODUCER + FLAGS] !== this.peerFlags) this.wakeSender();
  }

  /** Whether the sender waits for room, by a plain load: a hint that may be late. */
  senderWaits(): boolean {
    return this.header[PRODUCER + WAIT] !== 0;
  }

  /** Put off until a quarter of the ring is free or the ring is drained; one of the two comes true before this side can
   * find the ring empty. */
  private wakeSender(): void {
    const used = (this.tail - this.released) >>> 0;
    if (used > this.capacity - (this.capacity >> 2)) return;
    this.peerFlags = call(() => this.native.wake());
  }

  /** Whether there is an end to be told of: the sender has closed (what it sent before is still to be received), or the
   * ring was found corrupt. */
  hasEnded(): boolean {
    return this.broken || (Atomics.load(this.header, PRODUCER + FLAGS) & CLOSED) !== 0;
  }

  /** Bytes published and not released; can be stale. */
  get used(): number {
    return Math.min((Atomics.load(this.header, TAIL) - this.released) >>> 0, this.capacity);
  }

  /** Both positions whole, for the native half: it may not have been told for any number of laps. */
  get positions(): Positions {
    const { released, high, tail, tailHigh } = this;
    return { low: released >>> 0, high, peerLow: tail >>> 0, peerHigh: tailHigh };
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

  private grow(): void {
    const more = new Int32Array(2 * this.frames.length);
    more.set(this.frames);
    this.frames = more;
  }

  private corrupt(): never {
    this.broken = true;
    call(() => this.native.corrupt());
    throw new Error('unreachable');
  }
}
