// The publisher's half of a topic's protocol: the counterpart of core/src/topic/publisher.rs. How far it may write is decided
// by the native half, some 16 times a lap; everything else is loads and stores.
import type { Memory, NativeEndpoint, Positions } from '../../native.cjs';
import { storePosition } from '../endpoint/half.js';
import { call } from '../errors.js';
import {
  SLOT_CURSOR,
  SLOT_GATING,
  SLOT_SIZE,
  SLOT_STATE,
  SUBS_SLOTS,
  SUBS_WORD,
  TOPIC_FRAME_HEADER,
  TOPIC_LAST,
  TOPIC_TAIL,
} from '../facts.js';
import { Producer } from '../ring/producer.js';
import { NOTES } from './notes.js';

const STORES_IN_ORDER = process.arch === 'x64';

/** `peer` is how far it may write, less the capacity. */
export class TopicProducer extends Producer {
  private readonly area: Int32Array;
  private readonly notes: Int32Array;
  /** The number of the next message. */
  private seqLow = 0;
  private seqHigh = 0;
  /** The subscribers' word as last acted upon. */
  private wordLow = 0;
  private wordHigh = 0;
  /** Where the last committed frame begins, and the last published one. */
  private start: number;
  private last: number;
  private lastHigh: number;
  /** Every message says when it was sent. */
  timestamps = false;

  constructor(native: NativeEndpoint, memory: Memory) {
    super(native, memory);
    const topic = memory.topic!;
    this.area = new Int32Array(topic.area);
    this.notes = new Int32Array(topic.notes);
    this.start = this.last = this.notes[NOTES.last]!;
    this.lastHigh = this.notes[NOTES.last + 1]! >>> 0;
    this.heed();
  }

  /** Whether a payload of this length fits. If not, what is committed is published. */
  override fits(length: number): boolean {
    if (this.sizeOf(length) <= this.room) return true;
    return this.mayFit(length) && this.advance(length);
  }

  /** A poll that asks the native half only if the slots say that it may. */
  override hasRoom(length: number): boolean {
    return this.sizeOf(length) <= this.room || (this.mayFit(length) && this.askNative(length));
  }

  override ask(length: number): boolean {
    return this.askNative(length);
  }

  override wait(length: number, milliseconds: number): boolean {
    const there = call(() => this.native.wait(this.positions, length, milliseconds));
    this.heed();
    return there;
  }

  /** Has the limit moved so that it fits, if it may. What is committed is published where that is in the way. */
  private advance(length: number): boolean {
    if (this.askNative(length)) return true;
    if (this.tail === this.position) return false;
    this.publish();
    return this.askNative(length);
  }

  private askNative(length: number): boolean {
    const there = call(() => this.native.ready(this.positions, length));
    this.heed();
    return there;
  }

  private get room(): number {
    return this.capacity - ((this.tail - this.peer) >>> 0);
  }

  /** Whether no slot keeps it from fitting: a hint. What is committed is published if one does. */
  private mayFit(length: number): boolean {
    if (this.behind(this.tail) + this.sizeOf(length) <= this.capacity) return true;
    this.flush();
    // Now and then the native half has to look for the dead, and for those that block for too long.
    return false;
  }

  /** How far the slowest gating subscriber is behind a position. */
  private behind(position: number): number {
    const { area, capacity } = this;
    let most = 0;
    for (let slot = SUBS_SLOTS; slot < area.length; slot += SLOT_SIZE >> 2) {
      if ((Atomics.load(area, slot + SLOT_STATE) & SLOT_GATING) === 0) continue;
      const behind = (position - Atomics.load(area, slot + SLOT_CURSOR)) >>> 0;
      // More than the capacity does not gate: its subscriber is choosing again, or has scribbled.
      if (behind > most && behind <= capacity) most = behind;
    }
    return most;
  }

  protected override sizeOf(length: number): number {
    const step = this.align - 1;
    return (TOPIC_FRAME_HEADER + length + step) & ~step;
  }

  override get at(): number {
    return (this.tail & (this.capacity - 1)) + TOPIC_FRAME_HEADER;
  }

  override commit(length: number, typeId: number, tagLow: number, tagHigh: number, flush: boolean): void {
    const { words, tail, notes } = this;
    const word = (tail & (this.capacity - 1)) >> 2;
    words[word] = length;
    words[word + 1] = typeId;
    words[word + 2] = tagLow;
    words[word + 3] = tagHigh;
    words[word + 4] = this.seqLow;
    words[word + 5] = this.seqHigh;
    if (this.timestamps) {
      this.native.stamp();
      words[word + 6] = notes[NOTES.time]!;
      words[word + 7] = notes[NOTES.time + 1]!;
    } else {
      words[word + 6] = words[word + 7] = 0;
    }
    this.start = tail;
    this.tail = (tail + this.sizeOf(length)) | 0;
    this.seqLow = (this.seqLow + 1) | 0;
    if (this.seqLow === 0) this.seqHigh = (this.seqHigh + 1) | 0;
    if (flush) this.publish();
  }

  protected override publish(): void {
    const { header, wide, area, tail, start } = this;
    // The store of `last` comes after it, and is the one that is sequentially consistent; where processors keep stores in order
    // a plain one does here.
    if (STORES_IN_ORDER && tail >>> 0 >= this.position >>> 0) header[TOPIC_TAIL] = tail;
    else this.high = storePosition(header, wide, TOPIC_TAIL, this.high, this.position, tail);
    this.position = tail;
    this.lastHigh = storePosition(header, wide, TOPIC_LAST, this.lastHigh, this.last, start);
    this.last = start;
    // Sequentially consistent after the stores: a subscriber either sees them or is seen to sleep. Who comes and goes is a
    // hint, for which a plain load does.
    if (Atomics.load(area, SUBS_WORD) !== this.wordLow || area[SUBS_WORD + 1] !== this.wordHigh) this.wakeSubscribers();
  }

  private wakeSubscribers(): void {
    this.tell();
    call(() => this.native.wake());
    this.heed();
  }

  /** With the end of the last committed frame as the position: from there on the native half reckons. */
  override get positions(): Positions {
    this.tell();
    const { tail, peer, peerHigh } = this;
    const high = tail >>> 0 < this.position >>> 0 ? (this.high + 1) >>> 0 : this.high;
    return { low: tail >>> 0, high, peerLow: peer >>> 0, peerHigh };
  }

  /** Notes for the native half where this is. */
  private tell(): void {
    const { notes } = this;
    notes[NOTES.seq] = this.seqLow;
    notes[NOTES.seq + 1] = this.seqHigh;
    notes[NOTES.last] = this.last;
    notes[NOTES.last + 1] = this.lastHigh;
  }

  /** Takes over what the native half has changed. */
  heed(): void {
    const { notes } = this;
    this.peer = notes[NOTES.limit]!;
    this.peerHigh = notes[NOTES.limit + 1]! >>> 0;
    this.wordLow = notes[NOTES.word]!;
    this.wordHigh = notes[NOTES.word + 1]!;
    this.seqLow = notes[NOTES.seq]!;
    this.seqHigh = notes[NOTES.seq + 1]!;
  }

  /** Whether nothing was ever published. */
  get isEmpty(): boolean {
    return this.last === this.position;
  }

  /** Of the slowest gating subscriber. */
  override get used(): number {
    return this.behind(this.position);
  }

  override get mapped(): ArrayBuffer[] {
    return [...super.mapped, this.area.buffer as ArrayBuffer];
  }
}
