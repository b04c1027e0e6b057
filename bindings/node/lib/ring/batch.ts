import type { NativeEndpoint } from '../../native.cjs';
import { invalid, RamwayError } from '../errors.js';
import type { Consumer } from './consumer.js';
import { Message, type Place } from './message.js';
import { SharedView } from './view.js';

/** Frames that were taken from the ring together and go back together. */
export class Taken<M extends Message = Message> implements Place {
  /** False once the bytes may be the sender's again. */
  alive = true;
  /** How many `next` gave. */
  handedOut = 0;
  /** How many of those are done with: all but the last one, of a batch none. */
  handled = 0;
  private shared: SharedView | null = null;

  constructor(
    protected readonly consumer: Consumer,
    private readonly native: NativeEndpoint,
    readonly count: number,
    /** Gives back what was handed out. */
    readonly giveBack: () => void,
    /** The longest message, in bytes, whose `data` is a copy: that costs less than a view. */
    private readonly copied = 0,
  ) {}

  /** The next message, once each. */
  next(): M | null {
    if (this.handedOut === this.count) return null;
    this.handled = this.handedOut;
    return this.message(this.handedOut++);
  }

  /** All of them at once, as a batch. */
  handOutAll(): void {
    this.handedOut = this.count;
  }

  message(index: number): M {
    const { consumer } = this;
    const at = consumer.start(index);
    const word = at >> 2;
    const { words } = consumer;
    return new Message(
      this,
      at,
      consumer.length(index),
      words[word - 3]! >>> 0,
      words[word - 2]!,
      words[word - 1]!,
      consumer.after(index),
    ) as M;
  }

  copy(at: number, length: number): Uint8Array {
    return this.consumer.bytes.slice(at, at + length);
  }

  /** What the user gets: a view, which ends with the release, or a short message's copy, which lasts. A copy is not
   * detached: that would free memory which a thread of the runtime may still use (`fs.write`). A tensor is never copied: its
   * elements lie on a multiple of 64 bytes in the ring, and a copy's anywhere. */
  view(at: number, length: number, isTensor = false): Uint8Array {
    if (length <= this.copied && !isTensor) return this.copy(at, length);
    const place = this.unwrapped(at);
    if (this.shared !== null) {
      try {
        return this.shared.view(place, length);
      } catch (error) {
        if (!this.shared.moved) throw error;
      }
    }
    return this.sharedView().view(place, length);
  }

  /** The payload of the first message and everything up to the end of the last one. */
  all(): Uint8Array {
    return this.sharedView().all();
  }

  private sharedView(): SharedView {
    // The messages that are still in use lie in the new memory then.
    if (this.shared?.moved) this.endViews();
    if (this.shared === null) {
      const { consumer, count } = this;
      this.shared = new SharedView(this.native, consumer.start(0), consumer.span(count), consumer.ahead);
    }
    return this.shared;
  }

  private endViews(): void {
    const moved = this.shared?.end();
    this.shared = null;
    if (moved) this.consumer.move(moved);
  }

  /** Frames follow each other in the doubled data, but each is recorded where it begins in the first half. */
  protected unwrapped(at: number): number {
    return at < this.consumer.start(0) ? at + this.consumer.capacity : at;
  }

  /** Where message `index` begins in `all()`. */
  offset(index: number): number {
    return this.unwrapped(this.consumer.start(index)) - this.consumer.start(0);
  }

  size(index: number): number {
    return this.consumer.length(index);
  }

  /** The newest message that a loop handed out takes those before it along; one of several in a batch does nothing. */
  done(message: Message): void {
    const { handedOut } = this;
    if (handedOut > 0 && message.after === this.consumer.after(handedOut - 1)) this.giveBack();
  }

  /** Ends all views and gives the first `count` frames back; the others are received again. */
  release(count: number, closing = false): void {
    if (!this.alive) return;
    this.alive = false;
    const { consumer } = this;
    const large = this.count === 1 && !closing ? (this.shared?.large ?? 0) : 0;
    this.endViews();
    consumer.release(count > 0 ? consumer.after(count - 1) : consumer.position);
    // The sender has the room by now.
    if (large !== 0) consumer.makeAhead(large);
  }
}

/** Several messages that are released together, at the latest by the next receive. */
export class Batch<M extends Message = Message> implements Iterable<M> {
  /** How many. At least 1. */
  readonly length: number;

  /** @internal */
  constructor(private readonly taken: Taken<M>) {
    this.length = taken.count;
  }

  /** All messages in one view, for loops that are to make no objects: message `i` is the `size(i)` bytes from
   * `offset(i)`, a multiple of the ring's align. What lies between them is not the messages'. */
  get bytes(): Uint8Array {
    this.check();
    return this.taken.all();
  }

  /** Where message `index` begins in `bytes`. */
  offset(index: number): number {
    return this.taken.offset(this.inside(index));
  }

  /** Bytes of message `index`. */
  size(index: number): number {
    return this.taken.size(this.inside(index));
  }

  /** The message at this place, counted from 0; undefined where there is none. */
  at(index: number): M | undefined {
    this.check();
    return Number.isInteger(index) && index >= 0 && index < this.length ? this.taken.message(index) : undefined;
  }

  [Symbol.iterator](): IterableIterator<M> {
    this.check();
    return new Messages(this, this.taken);
  }

  /** Whether it was released, and its messages with it. */
  get released(): boolean {
    return !this.taken.alive;
  }

  /** Gives the places of all messages back. Again: nothing happens. */
  release(): void {
    if (this.taken.alive) this.taken.giveBack();
  }

  [Symbol.dispose](): void {
    this.release();
  }

  private inside(index: number): number {
    this.check();
    if (index >= 0 && index < this.length) return index;
    throw invalid(`index: ${String(index)} is not from 0 to ${this.length - 1}`);
  }

  private check(): void {
    if (!this.taken.alive) {
      throw new RamwayError('Detached', 'this batch was released (by release() or the next receive)');
    }
  }
}

class Messages<M extends Message> implements IterableIterator<M> {
  private index = 0;

  constructor(
    private readonly batch: Batch<M>,
    private readonly taken: Taken<M>,
  ) {}

  next(): IteratorResult<M> {
    if (this.index === this.batch.length || !this.taken.alive) return { done: true, value: undefined };
    return { done: false, value: this.taken.message(this.index++) };
  }

  [Symbol.iterator](): this {
    return this;
  }
}
