// What the two halves of the ring protocol share, on typed arrays: the ring's memory, this side's position, and the other
// side's, checked. Positions are the low halves of the format's 64 bits, as int32; a capacity is at most 2^30 bytes, so
// differences are exact.
import type { Memory, NativeEndpoint, Positions } from '../../native.cjs';
import { call } from '../errors.js';

/** One side of the ring protocol. */
export abstract class Half {
  readonly capacity: number;
  readonly align: number;
  /** Whether the other side's close is the end for good. */
  readonly final: boolean;
  readonly header: Int32Array;
  protected readonly wide: BigInt64Array;
  /** The data, mapped twice back to back. */
  words: Int32Array;
  bytes: Uint8Array;
  /** What the shared position of this side holds. */
  position: number;
  /** High half of `position`. */
  protected high: number;
  /** The shared position of the other side as last loaded: can be stale, is never ahead of the real one. */
  peer: number;
  /** High half of `peer`. */
  protected peerHigh: number;
  /** The other side's flags as last acted upon. */
  protected peerFlags: number;
  /** The ring was found corrupt: every call throws. */
  protected broken = false;

  constructor(
    protected readonly native: NativeEndpoint,
    memory: Memory,
  ) {
    this.capacity = memory.capacity;
    this.align = memory.align;
    this.final = memory.final;
    this.header = new Int32Array(memory.header);
    this.wide = new BigInt64Array(memory.header);
    this.words = new Int32Array(memory.data);
    this.bytes = new Uint8Array(memory.data);
    this.position = Number(BigInt.asIntN(32, memory.position));
    this.high = Number(BigInt.asUintN(64, memory.position) >> 32n);
    this.peer = Number(BigInt.asIntN(32, memory.peer));
    this.peerHigh = Number(BigInt.asUintN(64, memory.peer) >> 32n);
    this.peerFlags = memory.peerFlags;
  }

  /** Takes over the other side's position, whose low half at `index` was just loaded. It is checked here, once, before
   * it is used: it may only move forward, by at most `most` bytes, in whole alignment steps. */
  protected accept(index: number, now: number, most: number): void {
    const moved = (now - this.peer) >>> 0;
    const high = now >>> 0 < this.peer >>> 0 ? (this.peerHigh + 1) >>> 0 : this.peerHigh;
    if (moved > most || (moved & (this.align - 1)) !== 0 || highDiffers(this.header, index, now, high)) this.corrupt();
    this.peer = now;
    this.peerHigh = high;
  }

  /** Wakes the other side, and takes over its flags. */
  protected wakePeer(): void {
    this.peerFlags = call(() => this.native.wake());
  }

  /** Both positions whole, for the native half: it may not have been told for any number of laps. */
  get positions(): Positions {
    const { position, high, peer, peerHigh } = this;
    return { low: position >>> 0, high, peerLow: peer >>> 0, peerHigh };
  }

  /** What is mapped, for the close to detach. */
  get mapped(): ArrayBuffer[] {
    return [this.header.buffer as ArrayBuffer, this.bytes.buffer as ArrayBuffer];
  }

  /** Works on another mapping of the data from now on. */
  move(data: ArrayBuffer): void {
    this.words = new Int32Array(data);
    this.bytes = new Uint8Array(data);
  }

  /** Bytes published and not released, by the other side's shared position; can be stale. */
  abstract get used(): number;

  protected corrupt(): never {
    this.broken = true;
    call(() => this.native.corrupt());
    throw new Error('unreachable');
  }
}

/** Stores a position of 64 bits whose low half goes from `before` to `low`. */
export function storePosition(
  words: Int32Array,
  wide: BigInt64Array,
  index: number,
  high: number,
  before: number,
  low: number,
): number {
  if (low >>> 0 >= before >>> 0) {
    // The high half stays: so this is the store of all eight bytes, and makes no BigInt. Atomics: sequentially
    // consistent, so everything before is visible first, and the wait word is read after it.
    Atomics.store(words, index, low);
    return high;
  }
  const next = (high + 1) >>> 0;
  Atomics.store(wide, index >> 1, BigInt.asIntN(64, (BigInt(next) << 32n) | BigInt(low >>> 0)));
  return next;
}

/** Whether the high half of the position at `index` is not the one that goes with the low half that was just loaded: it
 * jumped by 4 GiB or more. Not if the low half is another by now: then the peer may have passed such a border since. */
export function highDiffers(words: Int32Array, index: number, low: number, high: number): boolean {
  if (words[index + 1]! >>> 0 === high) return false;
  // Atomics: in this order.
  return Atomics.load(words, index + 1) >>> 0 !== high && Atomics.load(words, index) === low;
}
