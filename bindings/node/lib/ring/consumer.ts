// The consumer's half of the ring protocol: the counterpart of core/src/ring/consumer.rs.
import type { Memory, NativeEndpoint } from '../../native.cjs';
import { Half, storePosition } from '../endpoint/half.js';
import { call } from '../errors.js';
import { FLAGS, FRAME_HEADER, HEAD, MESSAGE_MAX, PRODUCER, ROLE_CLOSED, TAIL, WAIT, WAKE_FRACTION } from '../facts.js';
import { type FrameInfo, wide } from './message.js';
import { Ahead } from './view.js';

/** Numbers of a frame in {@link Consumer.frames}. */
const STRIDE = 3;

/** `position` is what is released, `peer` the sender's tail: everything from `position` to `head` is handed out. */
export class Consumer extends Half {
  /** Start of the next frame to read. Invariant: position <= head <= peer <= position + capacity. */
  head: number;
  /** Of the frames handed out: where the payload begins in `bytes`, its length, the position after the frame. */
  frames = new Int32Array(64 * STRIDE);
  readonly ahead: Ahead;

  constructor(native: NativeEndpoint, memory: Memory) {
    super(native, memory);
    this.head = this.position;
    this.ahead = new Ahead(native);
  }

  /** Makes the buffer for the next message, if that is as long as the last one. */
  makeAhead(length: number): void {
    this.ahead.make((this.position & (this.capacity - 1)) + FRAME_HEADER, length);
  }

  override move(data: ArrayBuffer): void {
    this.ahead.drop();
    super.move(data);
  }

  /** Whether a frame is there. The tail may move up to `position + capacity`. */
  poll(): boolean {
    if (this.head !== this.peer) return true;
    const tail = Atomics.load(this.header, TAIL);
    if (tail === this.peer) return false;
    this.accept(TAIL, tail, this.capacity - ((this.peer - this.position) >>> 0));
    return true;
  }

  /** Takes up to `max` frames that are published, as long as they lie within `most` bytes, but at least the first. */
  take(max: number, most: number): number {
    const { words, peer } = this;
    const step = this.align - 1;
    const mask = this.capacity - 1;
    let head = this.head;
    let left = (peer - head) >>> 0;
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

  /** Bytes from the first of `count` frames' payload to the end of the last one. */
  span(count: number): number {
    return ((this.after(count - 1) - this.position) >>> 0) - FRAME_HEADER;
  }

  /** Takes one frame whose bytes are to be copied at once: false if there is none now. */
  find(): boolean {
    return this.take(1, this.capacity) !== 0;
  }

  /** Whether what was copied since `find` was whole until now. */
  confirm(): boolean {
    return true;
  }

  /** What the frame says that `find` has found. */
  info(): FrameInfo {
    const word = this.start(0) >> 2;
    const { words } = this;
    return new Info(this.length(0), words[word - 3]! >>> 0, words[word - 2]!, words[word - 1]!);
  }

  /** Whether a frame is there by the native half, which tells of it from now on if not. Throws how the stream ended. */
  ask(): boolean {
    return call(() => this.native.ready(this.positions, 0)) && this.poll();
  }

  /** The same, waiting for so long. */
  wait(milliseconds: number): boolean {
    return call(() => this.native.wait(this.positions, 0, milliseconds)) && this.poll();
  }

  /** Whether there is more to take by what is known. */
  get hasMore(): boolean {
    return this.head !== this.peer;
  }

  /** Gives the frames before `position` back; those after it are received again. */
  release(position: number): void {
    this.head = position;
    if (position === this.position) return;
    this.high = storePosition(this.header, this.wide, HEAD, this.high, this.position, position);
    this.position = position;
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
  protected wakeSender(): void {
    const used = (this.peer - this.position) >>> 0;
    if (used > this.capacity - this.capacity / WAKE_FRACTION) return;
    this.wakePeer();
  }

  /** Whether there may be an end to throw: the sender has closed (what it sent before is still to be received), or the
   * ring was found corrupt. */
  hasEnded(): boolean {
    return this.broken || (Atomics.load(this.header, PRODUCER + FLAGS) & ROLE_CLOSED) !== 0;
  }

  override get used(): number {
    return Math.min((Atomics.load(this.header, TAIL) - this.position) >>> 0, this.capacity);
  }

  private grow(): void {
    this.frames = grown(this.frames);
  }
}

/** A longer array with the same beginning. */
export function grown(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const more = new Int32Array(2 * array.length);
  more.set(array);
  return more;
}

class Info implements FrameInfo {
  constructor(
    readonly length: number,
    readonly typeId: number,
    private readonly low: number,
    private readonly high: number,
  ) {}

  get tag(): bigint {
    return wide(this.low, this.high);
  }
}
