// The subscriber's half of a topic's protocol, under each policy: the counterpart of core/src/topic/subscriber.rs. Joining, and
// beginning anew after an ejection, are the native half's.
//
// The data is mapped read-only and never handed out, because JavaScript has no read-only views: what is received is copied. A
// reliable subscriber's slot keeps a message where it is until it is released, so it is copied when it is asked for. Otherwise it
// is copied when it is taken, and what says that it was overwritten meanwhile is loaded after that.
import type { Memory, NativeEndpoint, Positions } from '../../native.cjs';
import { storePosition } from '../endpoint/half.js';
import { call } from '../errors.js';
import {
  FLAGS,
  OVERTAKEN_MAX,
  RESUME_FRACTION,
  ROLE_CLOSED,
  SLOT_CURSOR,
  SLOT_EJECTED,
  SLOT_LOST,
  SLOT_STATE,
  SUBS_WAIT,
  TOPIC_CHUNKS,
  TOPIC_CLAIM,
  TOPIC_FRAME_HEADER,
  TOPIC_LAST,
  TOPIC_MESSAGE_MAX,
  TOPIC_PUBLISHER,
  TOPIC_STARTS,
  TOPIC_TAIL,
} from '../facts.js';
import { Consumer, grown } from '../ring/consumer.js';
import { wide as joined, type Place } from '../ring/message.js';
import { Newest, type TopicFrameInfo, TopicInfo, TopicMessage } from './message.js';
import { NOTES } from './notes.js';

/** How a subscriber reads. */
export type Policy = 'reliable' | 'lossy' | 'latest';

/** Numbers of a frame in {@link TopicConsumer.stamps}: type id, tag, seq, time. */
const STRIDE = 7;
/** Bytes that are copied together, unless one message is longer: they stay as long as one of the messages does. */
const TOGETHER = 1 << 14;
/** Whether the processor keeps a load before an earlier one of its own. */
const LOADS_IN_ORDER = process.arch === 'x64';
const LOADS_BY_ADDING = 'bun' in process.versions;
/** Nobody else's: operations on it keep others in order. */
const fence = new Int32Array(1);

/** Of a message of which only the header is asked for. */
const NOWHERE = new Newest(new Uint8Array(0));

const difference = (a: bigint, b: bigint) => BigInt.asUintN(64, a - b);

/** `position` is what is released, `peer` the publisher's tail as last seen; under `latest` the first is where the message begins
 * that was read last, and the other says nothing. */
export class TopicConsumer extends Consumer {
  readonly policy: Policy;
  /** Messages are copied when they are taken: they can be overwritten. */
  readonly copies: boolean;
  /** The payloads that were taken together. */
  chunk: Uint8Array = new Uint8Array(0);
  /** Messages that were lost so far, before those that are taken. */
  private lostBefore = 0;
  private readonly gates: boolean;
  private readonly area: Int32Array;
  private readonly wideArea: BigInt64Array;
  private readonly notes: Int32Array;
  private readonly wideNotes: BigInt64Array;
  /** The slot's words, if it may be written to; -1: it has none. */
  private readonly slot: number;
  /** An ejection is still to be told. */
  private lagged: boolean;
  /** The number that the next message should have. */
  private expectedLow = 0;
  private expectedHigh = 0;
  /** The same before the first of the frames that were taken. Kept apart, because a frame that is overwritten while it is read can
   * say any number, and a `number` of lost ones made from it is not exact. */
  private firstLow = 0;
  private firstHigh = 0;
  /** Where the frame begins that is being read. */
  private from = 0;
  private fromHigh = 0;
  /** Of the frames that were taken. */
  private stamps = new Int32Array(64 * STRIDE);
  private losses: number[] = [];
  private count = 0;
  /** One of them says that others were lost. */
  private gaps = false;
  /** Where the message begins that `newest` has copied last; no position before the first. */
  private keptLow = 1;
  private keptHigh = 0;
  // What `load` has loaded.
  private low = 0;
  private upper = 0;

  constructor(native: NativeEndpoint, memory: Memory) {
    super(native, memory);
    const topic = memory.topic!;
    this.policy = topic.policy as Policy;
    this.gates = this.policy === 'reliable';
    this.copies = topic.copies;
    this.area = new Int32Array(topic.area);
    this.wideArea = new BigInt64Array(topic.area);
    this.notes = new Int32Array(topic.notes);
    this.wideNotes = new BigInt64Array(topic.notes);
    this.slot = topic.slot < 0 ? -1 : topic.slot >> 2;
    this.lagged = topic.lagged;
    this.heed();
  }

  /** Whether there may be a message. */
  override poll(): boolean {
    if (this.policy === 'latest') {
      this.load(TOPIC_LAST);
      if (this.low === this.position && this.upper === this.high) return false;
      const { low, upper } = this;
      this.load(TOPIC_TAIL);
      return this.low !== low || this.upper !== upper;
    }
    return this.hasMore || this.pollTail();
  }

  private pollTail(): boolean {
    const { header, peer, peerHigh, gates } = this;
    if (load(header, TOPIC_TAIL) === peer && header[TOPIC_TAIL + 1]! >>> 0 === peerHigh) return false;
    this.load(TOPIC_TAIL);
    const { low, upper } = this;
    if (low === peer && upper === peerHigh) return false;
    if (gates && (this.lagged || this.isEjected())) return this.tellLagged();
    const moved = (low - peer) >>> 0;
    const laps = (upper - peerHigh - (low >>> 0 < peer >>> 0 ? 1 : 0)) | 0;
    // A subscriber that nobody waits for may be lapped any number of times.
    const far = gates ? laps !== 0 || moved > this.capacity - ((peer - this.position) >>> 0) : laps < 0;
    if (far || (moved & (this.align - 1)) !== 0) this.corrupt();
    this.peer = low;
    this.peerHigh = upper;
    return true;
  }

  override get hasMore(): boolean {
    if (this.gates) return this.head !== this.peer;
    // Of a subscriber that reads the newest message nothing is known before it looks.
    return this.policy === 'lossy' && (this.head !== this.peer || this.highOf(this.head) !== this.peerHigh);
  }

  /** Takes up to `max` frames that lie within `most` bytes, but at least the first. 0: what was there is gone. */
  override take(max: number, most: number): number {
    if (!this.copies) return this.walk(max, most);
    for (let tries = OVERTAKEN_MAX; tries > 0; tries--) {
      if (!this.findIntact(max, Math.min(most, TOGETHER))) return 0;
      const begin = this.start(0);
      this.chunk = this.bytes.slice(begin, begin + this.span(this.count));
      if (this.confirm()) return this.count;
    }
    return 0;
  }

  override find(): boolean {
    return this.findIntact(1, this.capacity);
  }

  override confirm(): boolean {
    if (!this.copies || !this.isGone()) return true;
    this.unread(0);
    this.head = this.position;
    if (this.gates) this.tellLagged();
    else if (this.policy === 'lossy') this.skip();
    return false;
  }

  override span(count: number): number {
    // To its end alone where there is one.
    if (count === 1) return this.length(0);
    return ((this.after(count - 1) - this.position) >>> 0) - TOPIC_FRAME_HEADER;
  }

  override info(): TopicFrameInfo {
    return new TopicInfo(this.message(NOWHERE, 0));
  }

  /** Frame `index` of those taken. */
  message(place: Place, index: number): TopicMessage {
    const { frames, stamps } = this;
    const frame = index * 3;
    const stamp = index * STRIDE;
    return new TopicMessage(
      place,
      frames[frame]!,
      frames[frame + 1]!,
      frames[frame + 2]!,
      stamps[stamp]! >>> 0,
      stamps[stamp + 1]!,
      stamps[stamp + 2]!,
      stamps[stamp + 3]!,
      stamps[stamp + 4]!,
      stamps[stamp + 5]!,
      stamps[stamp + 6]!,
      this.losses[index]!,
    );
  }

  /** Finds frames that are intact at first: where they are overwritten, it goes on at those that are not. */
  private findIntact(max: number, most: number): boolean {
    for (let tries = OVERTAKEN_MAX; tries > 0; tries--) {
      if (this.walk(max, most) !== 0) return true;
      if (this.policy === 'latest') continue;
      if (this.gates) return false;
      this.skip();
      if (!this.hasMore) return false;
    }
    return false;
  }

  /** Reads the headers of up to `max` frames. 0: the first one is overwritten. */
  private walk(max: number, most: number): number {
    const { words, capacity } = this;
    const step = this.align - 1;
    let left = 0;
    if (this.policy === 'latest') {
      max = 1;
      this.load(TOPIC_LAST);
      this.from = this.low;
      this.fromHigh = this.upper;
      this.load(TOPIC_TAIL);
      left = this.leftTo(this.low, this.upper);
      if (((this.from + TOPIC_FRAME_HEADER) & step) !== 0) this.corrupt();
    } else {
      this.from = this.head;
      this.fromHigh = this.highOf(this.head);
      left = this.leftTo(this.peer, this.peerHigh);
    }
    this.count = 0;
    this.firstLow = this.expectedLow;
    this.firstHigh = this.expectedHigh;
    if (!this.gates && this.isOvertaken()) return 0;
    if (left < 0 || left > capacity) return this.implausible();
    let at = this.from;
    const enough = left > most ? left - most : 0;
    let count = 0;
    while (count < max && left > enough) {
      const word = (at & (capacity - 1)) >> 2;
      // Each number is read once: what was checked is what is used.
      const length = words[word]! >>> 0;
      const seqLow = words[word + 4]!;
      const seqHigh = words[word + 5]!;
      const size = ((TOPIC_FRAME_HEADER + length + step) & ~step) >>> 0;
      if (length > TOPIC_MESSAGE_MAX || size > left) return this.implausible();
      if (count !== 0 && left - size < enough) break;
      let lost = 0;
      if (seqLow !== this.expectedLow || seqHigh !== this.expectedHigh) {
        lost = this.gapBefore(seqLow, seqHigh);
        if (lost < 0) return this.implausible();
        if (lost !== 0) this.gaps = true;
      }
      if ((count + 1) * STRIDE > this.stamps.length) this.growAll();
      at = (at + size) | 0;
      left -= size;
      const frame = count * 3;
      this.frames[frame] = (word << 2) + TOPIC_FRAME_HEADER;
      this.frames[frame + 1] = length;
      this.frames[frame + 2] = this.policy === 'latest' ? this.from : at;
      const stamp = count * STRIDE;
      const { stamps } = this;
      stamps[stamp] = words[word + 1]!;
      stamps[stamp + 1] = words[word + 2]!;
      stamps[stamp + 2] = words[word + 3]!;
      stamps[stamp + 3] = seqLow;
      stamps[stamp + 4] = seqHigh;
      stamps[stamp + 5] = words[word + 6]!;
      stamps[stamp + 6] = words[word + 7]!;
      this.losses[count] = lost;
      this.count = ++count;
      this.expect(seqLow, seqHigh);
    }
    this.head = this.policy === 'latest' ? this.from : at;
    return count;
  }

  /** What was read is no frame: it was overwritten, or is damaged. */
  private implausible(): 0 {
    this.unread(0);
    if (!this.isGone()) this.corrupt();
    if (this.gates) this.tellLagged();
    return 0;
  }

  /** Whether what was read since the frame's begin was noted may be of other messages. */
  private isGone(): boolean {
    return this.gates ? this.isEjected() : this.isOvertaken();
  }

  private isEjected(): boolean {
    if (!this.copies) return false;
    inOrder();
    return (Atomics.load(this.area, this.slot + SLOT_STATE) & SLOT_EJECTED) !== 0;
  }

  private isOvertaken(): boolean {
    const { header, from } = this;
    inOrder();
    for (let tries = OVERTAKEN_MAX; tries > 0; tries--) {
      const claim = load(header, TOPIC_CLAIM);
      if ((claim - from) >>> 0 > this.capacity) return true;
      const high = claim >>> 0 < from >>> 0 ? (this.fromHigh + 1) >>> 0 : this.fromHigh;
      if (load(header, TOPIC_CLAIM + 1) >>> 0 === high) return false;
      // A lap of 4 GiB or more ahead; or the halves are of two claims.
      if (load(header, TOPIC_CLAIM) === claim) return true;
    }
    return true;
  }

  /** Goes on at a frame that is intact, with half of the capacity to spare: at the very oldest it would be overtaken again at
   * once. What lies before it is lost; its number tells how many. */
  private skip(): void {
    const { wide } = this;
    const capacity = BigInt(this.capacity);
    const read = (index: number) => BigInt.asUintN(64, loadWide(wide, index >> 1));
    const first = BigInt(this.align - TOPIC_FRAME_HEADER);
    const begins = (position: bigint) => (position & BigInt(this.align - 1)) === first;
    let tail = read(TOPIC_TAIL);
    const entries = [read(TOPIC_LAST)];
    for (let chunk = 0; chunk < TOPIC_CHUNKS; chunk++) entries.push(read(TOPIC_STARTS + 2 * chunk));
    const claim = read(TOPIC_CLAIM);
    const spare = capacity / BigInt(RESUME_FRACTION);
    let next = tail;
    for (const entry of entries) {
      const behind = difference(tail, entry);
      if (behind > capacity || difference(claim, entry) > spare || !begins(entry)) continue;
      if (behind > difference(tail, next)) next = entry;
    }
    if (next === tail) {
      // In this order: with an older `tail` a message would be passed over that was published meanwhile.
      const last = read(TOPIC_LAST);
      tail = read(TOPIC_TAIL);
      next = difference(tail, last) <= capacity ? last : tail;
    }
    const seen = joined(this.peer, this.peerHigh);
    if (!begins(tail) || !begins(next) || difference(tail, seen) >> 63n !== 0n) this.corrupt();
    const here = joined(this.head, this.highOf(this.head));
    // Never back.
    if (difference(next, here) >> 63n !== 0n) next = here;
    this.moveTo(next, tail);
  }

  private moveTo(here: bigint, tail: bigint): void {
    this.head = this.position = Number(BigInt.asIntN(32, here));
    this.high = Number(here >> 32n);
    this.peer = Number(BigInt.asIntN(32, tail));
    this.peerHigh = Number(tail >> 32n);
  }

  /** How many were lost before the message with this number, which is not the one that was expected; -1: no message has it. */
  private gapBefore(low: number, high: number): number {
    const seq = joined(low, high);
    const expected = joined(this.expectedLow, this.expectedHigh);
    return seq < expected || seq === 0n || seq === 0xffff_ffff_ffff_ffffn ? -1 : Number(seq - expected);
  }

  /** The message after the one with this number is to come. */
  private expect(low: number, high: number): void {
    this.expectedLow = (low + 1) | 0;
    this.expectedHigh = this.expectedLow === 0 ? (high + 1) | 0 : high;
  }

  /** Frame `index` of those taken, and those after it, are received again. */
  private unread(index: number): void {
    if (index >= this.count) return;
    if (index === 0) {
      this.expectedLow = this.firstLow;
      this.expectedHigh = this.firstHigh;
    } else {
      const before = (index - 1) * STRIDE;
      this.expect(this.stamps[before + 3]!, this.stamps[before + 4]!);
    }
    this.count = index;
  }

  /** Messages that were lost so far, by the first `count` messages of those taken. */
  lost(count: number): number {
    let lost = this.lostBefore;
    for (let index = 0; index < count; index++) lost += this.losses[index]!;
    return lost;
  }

  override release(position: number): void {
    if (position !== this.head) {
      let index = 0;
      while (index < this.count && position !== this.position && this.after(index) !== position) index++;
      this.unread(position === this.position ? 0 : index + 1);
    }
    if (this.gaps) this.countLost();
    this.count = 0;
    this.head = position;
    if (this.policy === 'latest') {
      if (position !== this.position) this.high = this.fromHigh;
      this.position = position;
      return;
    }
    if (position === this.position) return;
    if (!this.gates) {
      this.high = this.highOf(position);
      this.position = position;
      return;
    }
    const { area, slot } = this;
    this.high = storePosition(area, this.wideArea, slot + SLOT_CURSOR, this.high, this.position, position);
    this.position = position;
    // Sequentially consistent after the store of the position, as in consumer.ts.
    const waits = Atomics.load(area, SUBS_WAIT) !== 0;
    if (waits || this.header[TOPIC_PUBLISHER + FLAGS] !== this.peerFlags) this.wakeSender();
  }

  private countLost(): void {
    const lost = this.lost(this.count);
    this.gaps = false;
    if (lost === this.lostBefore) return;
    this.lostBefore = lost;
    // For those who look at the topic.
    if (this.slot >= 0) Atomics.store(this.wideArea, (this.slot + SLOT_LOST) >> 1, BigInt(lost));
  }

  override senderWaits(): boolean {
    return this.gates && this.area[SUBS_WAIT] !== 0;
  }

  override hasEnded(): boolean {
    return this.broken || (load(this.header, TOPIC_PUBLISHER + FLAGS) & ROLE_CLOSED) !== 0;
  }

  override ask(): boolean {
    this.following(() => this.native.ready(this.positions, 0));
    return this.poll();
  }

  override wait(milliseconds: number): boolean {
    return this.following(() => this.native.wait(this.positions, 0, milliseconds)) && this.poll();
  }

  /** The publisher has ejected this subscriber: the native half begins anew, and tells how many were lost. */
  private tellLagged(): false {
    // With nothing taken, so that it looks again.
    const { low, high } = this.positions;
    this.following(() => this.native.ready({ low, high, peerLow: low, peerHigh: high }, 0));
    return false;
  }

  /** Calls the native half, and goes on where that is. */
  private following<T>(native: () => T): T {
    try {
      return call(native);
    } catch (error) {
      if (this.gates) {
        this.lagged = false;
        this.heed();
      }
      throw error;
    }
  }

  /** Moves on so that the next message is the newest; gives how many that leaves out. Nothing is taken. */
  skipToNewest(): number {
    const skipped = call(() => this.native.skipToNewest(this.positions));
    this.heed();
    return skipped;
  }

  /** A copy of the newest message, whatever was received before; null before the first, and where each is overwritten while it
   * is copied. */
  newest(): TopicMessage | null {
    const { words, capacity, align } = this;
    for (let tries = OVERTAKEN_MAX; tries > 0; tries--) {
      this.load(TOPIC_LAST);
      this.from = this.low;
      this.fromHigh = this.upper;
      this.load(TOPIC_TAIL);
      const left = this.leftTo(this.low, this.upper);
      if (left === 0) return null;
      if (this.isOvertaken()) continue;
      const word = (this.from & (capacity - 1)) >> 2;
      const length = words[word]! >>> 0;
      const [seqLow, seqHigh] = [words[word + 4]!, words[word + 5]!];
      const numbered = (seqLow | seqHigh) !== 0 && (seqLow & seqHigh) !== -1;
      const begins = ((this.from + TOPIC_FRAME_HEADER) & (align - 1)) === 0;
      if (!begins || left < 0 || left > capacity || length > left - TOPIC_FRAME_HEADER || !numbered) {
        if (this.isOvertaken()) continue;
        this.corrupt();
      }
      const at = (word << 2) + TOPIC_FRAME_HEADER;
      const data = this.bytes.slice(at, at + length);
      const message = new TopicMessage(
        new Newest(data),
        0,
        length,
        0,
        words[word + 1]! >>> 0,
        words[word + 2]!,
        words[word + 3]!,
        seqLow,
        seqHigh,
        words[word + 6]!,
        words[word + 7]!,
        0,
      );
      if (this.isOvertaken()) continue;
      this.keptLow = this.from;
      this.keptHigh = this.fromHigh;
      if (this.policy === 'latest') {
        // It was seen: a wait is for a newer one.
        this.head = this.position = this.from;
        this.high = this.fromHigh;
        if (this.gapBefore(seqLow, seqHigh) >= 0) this.expect(seqLow, seqHigh);
      }
      return message;
    }
    return null;
  }

  /** Whether the newest message is the one that `newest` has copied last. */
  isNewest(): boolean {
    const { header } = this;
    return load(header, TOPIC_LAST) === this.keptLow && header[TOPIC_LAST + 1]! >>> 0 === this.keptHigh;
  }

  /** Loads a position of 64 bits, which only grows. */
  private load(index: number): void {
    const { header } = this;
    for (;;) {
      const high = load(header, index + 1);
      this.low = load(header, index);
      this.upper = high >>> 0;
      if (load(header, index + 1) === high) return;
    }
  }

  /** Bytes from the frame that is being read to a position after it; -1: 4 GiB or more, or before it. */
  private leftTo(low: number, high: number): number {
    const carried = low >>> 0 < this.from >>> 0 ? (this.fromHigh + 1) >>> 0 : this.fromHigh;
    return high === carried ? (low - this.from) >>> 0 : -1;
  }

  /** The high half of a position that is less than 4 GiB after what is released. */
  private highOf(low: number): number {
    return low >>> 0 < this.position >>> 0 ? (this.high + 1) >>> 0 : this.high;
  }

  override get positions(): Positions {
    const { notes } = this;
    notes[NOTES.expected] = this.expectedLow;
    notes[NOTES.expected + 1] = this.expectedHigh;
    this.wideNotes[NOTES.lost >> 1] = BigInt(this.lostBefore);
    if (this.policy !== 'latest') return super.positions;
    const { position, high } = this;
    return { low: position >>> 0, high, peerLow: position >>> 0, peerHigh: high };
  }

  /** Takes over where the native half is. */
  private heed(): void {
    const { notes, wideNotes } = this;
    const note = (at: number) => BigInt.asUintN(64, wideNotes[at >> 1]!);
    this.moveTo(note(NOTES.position), note(NOTES.peer));
    this.expectedLow = notes[NOTES.expected]!;
    this.expectedHigh = notes[NOTES.expected + 1]!;
    this.lostBefore = Number(note(NOTES.lost));
    this.count = 0;
  }

  private growAll(): void {
    this.frames = grown(this.frames);
    this.stamps = grown(this.stamps);
  }

  override get used(): number {
    const { wide } = this;
    const [last, tail] = [loadWide(wide, TOPIC_LAST >> 1), loadWide(wide, TOPIC_TAIL >> 1)];
    const here = joined(this.position, this.high);
    const from = this.policy !== 'latest' ? here : BigInt.asUintN(64, last) === here ? tail : last;
    return Math.min(Number(difference(tail, from)), this.capacity);
  }

  override get mapped(): ArrayBuffer[] {
    return [...super.mapped, this.area.buffer as ArrayBuffer];
  }
}

/** Loads a word of the header page, which is mapped read-only. JavaScriptCore compiles `Atomics.load` to an addition of 0, which
 * read-only memory refuses: there it is a plain load between two atomic operations, which neither compiler nor processor moves it
 * across. */
function load(words: Int32Array, index: number): number {
  if (!LOADS_BY_ADDING) return Atomics.load(words, index);
  Atomics.add(fence, 0, 0);
  const value = words[index]!;
  Atomics.add(fence, 0, 0);
  return value;
}

/** The same of 64 bits. */
function loadWide(words: BigInt64Array, index: number): bigint {
  if (!LOADS_BY_ADDING) return Atomics.load(words, index);
  Atomics.add(fence, 0, 0);
  const value = words[index]!;
  Atomics.add(fence, 0, 0);
  return value;
}

/** What follows is loaded after what came before. */
function inOrder(): void {
  if (!LOADS_IN_ORDER) Atomics.store(fence, 0, 0);
}
