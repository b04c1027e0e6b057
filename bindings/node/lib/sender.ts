import type { NativeSender } from '../native.cjs';
import { bytesOf, changed, checkFill, checkSize } from './data.js';
import { End, LOOKS } from './end.js';
import { call, invalid, isEnd, RamwayError } from './errors.js';
import { TYPE_ID_RESERVED } from './layout.js';
import { Loan } from './lent.js';
import type { WaitPolicy } from './options.js';
import { Producer } from './producer.js';
import { type Data, writableOf } from './streams.js';
import { TENSOR_TYPE_ID, type TensorLike, TensorPlan } from './tensor.js';
import * as turn from './turn.js';
import { blockUntil, checkWait, limit, roundUntil, type SyncOptions, timedOut, type WaitOptions } from './waiting.js';

/** What a message carries besides its bytes. */
export interface FrameOptions {
  /** The application's, from 0 (the default) to 0xFFFEFFFF. */
  typeId?: number | undefined;
  /** 64 bits, 0 by default: a whole number from 0 to 2^53 - 1, or a bigint. */
  tag?: number | bigint | undefined;
  /** false: visible at the next flush, flushed message, wait or close. Default true. */
  flush?: boolean | undefined;
}

/** What a fill function gives back: how many bytes it wrote (nothing: all), or false for "send nothing". */
export type Filled = number | false | undefined | void;

/** A send that waits for its turn or for room. */
interface Queued {
  /** Bytes that it needs. */
  readonly length: number;
  /** Sends it: there is room. A promise: of a slot that is being filled. */
  run(): undefined | Promise<void>;
  fail(reason: unknown): void;
}

/** A slot that is being filled. */
interface Slot {
  /** Ends its views. */
  end(): void;
  /** Rejects the promise of an asynchronous `fill`, which may never settle. */
  fail(reason: unknown): void;
}

const DONE = Promise.resolve();

/** What a {@link Sender} tells. */
export interface SenderEvents {
  /** There is room again after a `trySend` or `tryReserve` that gave false. */
  drain: [];
  /** The sender was closed, or the receiver was while a 'drain' was due. Once. */
  close: [];
  /** What keeps a 'drain' from ever coming: ERR_RAMWAY_PEER_DEAD, say. */
  error: [error: unknown];
}

/** The sending end of a ring. One per ring, in the whole system; used by one thread.
 *
 * A message is visible to the receiver as soon as it is sent, and is delivered even if this process is killed right
 * after. Sends that find no room wait in the order of their calls. */
export class Sender extends End<SenderEvents> {
  /** Bytes of the longest message. */
  readonly maxMessageLength: number;
  private readonly producer: Producer;
  private readonly header: ArrayBuffer;
  private readonly address: number;
  private readonly queue: Queued[] = [];
  /** A slot is being filled. */
  private open = false;
  /** Bytes that a `trySend` had no room for: 'drain' is due. -1: none. */
  private wanted = -1;
  private finished: (() => void) | null = null;
  private stream: WritableStream<Data> | null = null;
  // The tag of the frame that is being made.
  private tagLow = 0;
  private tagHigh = 0;

  /** @internal */
  constructor(
    private readonly native: NativeSender,
    policy: WaitPolicy = 'hybrid',
  ) {
    super(native, policy);
    const memory = call(() => native.memory());
    this.header = memory.header;
    this.address = memory.address;
    this.maxMessageLength = native.maxMessageLength;
    this.producer = new Producer(native, memory);
  }

  // ---- whole messages

  /** Sends a copy of the bytes (a string as UTF-8), when there is room. The data must not change until then. */
  send(data: Data, options?: FrameOptions & WaitOptions): Promise<void> {
    try {
      if (options != null) checkWait(options);
      const bytes = bytesOf(data);
      const typeId = this.frame(options);
      const flush = options?.flush !== false;
      this.checkLength(bytes.length);
      this.checkOpen();
      if (!this.isTaken() && !turn.isOver() && this.producer.fits(bytes.length)) {
        this.put(bytes, typeId, flush);
        return DONE;
      }
      const { tagLow, tagHigh } = this;
      const { length } = bytes;
      return this.later(length, options, () => {
        // There is room for what it was. A view of a message that was released since has length 0.
        if (bytes.length !== length) throw changed(length, bytes.length);
        this.tagLow = tagLow;
        this.tagHigh = tagHigh;
        this.put(bytes, typeId, flush);
        return undefined;
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Sends a copy of the bytes if there is room now. If not: false, nothing was sent, and 'drain' comes once there is. */
  trySend(data: Data, options?: FrameOptions): boolean {
    const bytes = bytesOf(data);
    const typeId = this.frame(options);
    if (!this.hasRoom(bytes.length)) return false;
    this.put(bytes, typeId, options?.flush !== false);
    return true;
  }

  /** Sends a copy of the bytes, blocking the thread until there is room. In a worker, unless `allowMainThread`. */
  sendSync(data: Data, options?: FrameOptions & SyncOptions): void {
    const bytes = bytesOf(data);
    const typeId = this.frame(options);
    this.block('sendSync', bytes.length, options);
    this.put(bytes, typeId, options?.flush !== false);
  }

  /** Sends the messages in order, each when there is room, and makes those that fit at once visible together. Resolves
   * with how many there were. An abort or time-out leaves those sent that were. */
  async sendBatch(messages: Iterable<Data>, options?: FrameOptions & WaitOptions): Promise<number> {
    let count = 0;
    const rest = { ...options, flush: false };
    try {
      for (const data of messages) {
        // What is not flushed is published before any wait.
        const sent = this.send(data, rest);
        if (sent !== DONE) await sent;
        count++;
      }
    } finally {
      if (!this.isClosed) this.flush();
    }
    return count;
  }

  // ---- slots

  /** Has `fill` write a message of up to `length` bytes in place, when there is room. The slot is shared memory with
   * whatever was there before; its views have length 0 afterwards. What `fill` gives back is the length; `false`, an
   * exception or a rejection sends nothing. While an asynchronous `fill` runs, other sends wait. */
  reserve(
    length: number,
    fill: (slot: Uint8Array) => Filled | Promise<Filled>,
    options?: FrameOptions & WaitOptions,
  ): Promise<void> {
    try {
      if (options != null) checkWait(options);
      return this.reserveFrame(length, fill, this.frame(options), options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** `reserve` if there is room now; if not: false, and 'drain' comes once there is. */
  tryReserve(length: number, fill: (slot: Uint8Array) => Filled, options?: FrameOptions): boolean {
    checkFill(fill);
    const typeId = this.frame(options);
    if (!this.hasRoom(checkSize(length))) return false;
    this.fillNow(length, fill, typeId, options?.flush !== false);
    return true;
  }

  /** `reserve`, blocking the thread until there is room. In a worker, unless `allowMainThread`. */
  reserveSync(length: number, fill: (slot: Uint8Array) => Filled, options?: FrameOptions & SyncOptions): void {
    checkFill(fill);
    const typeId = this.frame(options);
    this.block('reserveSync', checkSize(length), options);
    this.fillNow(length, fill, typeId, options?.flush !== false);
  }

  // ---- tensors

  /** Sends a typed array with its shape and element type, as every language reads it (`Message.tensor()`). */
  sendTensor(tensor: TensorLike, options?: { tag?: number | bigint | undefined } & WaitOptions): Promise<void> {
    try {
      if (options != null) checkWait(options);
      const plan = new TensorPlan(tensor);
      this.frame(options);
      this.checkLength(plan.room);
      this.checkOpen();
      if (!this.isTaken() && !turn.isOver() && this.producer.fits(plan.room)) {
        this.putTensor(plan);
        return DONE;
      }
      const { tagLow, tagHigh } = this;
      return this.later(plan.room, options, () => {
        this.tagLow = tagLow;
        this.tagHigh = tagHigh;
        this.putTensor(plan);
        return undefined;
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** `sendTensor` if there is room now; if not: false, and 'drain' comes once there is. */
  trySendTensor(tensor: TensorLike, options?: { tag?: number | bigint | undefined }): boolean {
    const plan = new TensorPlan(tensor);
    this.frame(options);
    if (!this.hasRoom(plan.room)) return false;
    this.putTensor(plan);
    return true;
  }

  // ----

  /** Makes visible what was sent with `flush: false`. */
  flush(): void {
    this.checkOpen();
    this.producer.flush();
  }

  /** A web stream whose writes wait for room. Closing it ends this sender. */
  get writable(): WritableStream<Data> {
    this.stream ??= writableOf(this);
    return this.stream;
  }

  /** Bytes of the data area. */
  get capacity(): number {
    return this.producer.capacity;
  }

  /** Every payload begins on a multiple of this many bytes. */
  get align(): number {
    return this.producer.align;
  }

  /** Bytes of the ring that are sent and not released, frame headers included. Can be stale. */
  get used(): number {
    this.checkOpen();
    return this.producer.used;
  }

  /** The tag of the last message that was made visible, also by an earlier sender; null before the first. */
  get lastTag(): bigint | null {
    const { producer } = this;
    return call(() => this.native.lastTag(producer.positions));
  }

  /** Closes at once: the receiver gets what was sent and then the end. Sends that still wait, and a slot that is still
   * being filled, are `ERR_RAMWAY_DETACHED` and not sent. Again: nothing happens. */
  close(): void {
    this.shut(false);
  }

  /** Gives the role up without telling the receiver, as if the process had died. */
  abandon(): void {
    this.shut(true);
  }

  /** Sends what waits, then closes. No further sends are taken. */
  end(): Promise<void> {
    if (this.isClosed) return DONE;
    if (!this.isTaken()) {
      this.close();
      return DONE;
    }
    return new Promise((resolve) => {
      const others = this.finished;
      this.finished = () => {
        others?.();
        resolve();
      };
    });
  }

  [Symbol.dispose](): void {
    this.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }

  // ---- how it works

  private checkOpen(): void {
    if (this.isClosed) throw detached();
    if (this.finished !== null)
      throw new RamwayError('Detached', 'this sender was ended: it sends only what waited then');
  }

  /** Whether others are first. */
  private isTaken(): boolean {
    return this.open || this.queue.length !== 0;
  }

  private checkLength(length: number): void {
    if (length > this.maxMessageLength) {
      throw new RamwayError(
        'TooLarge',
        `a message of ${length} bytes can never fit: this ring of ${this.capacity} bytes takes at most ${this.maxMessageLength}; create it with a larger capacity or cut the message`,
      );
    }
  }

  /** Checks the frame's options; the tag is kept aside. */
  private frame(options: FrameOptions | undefined): number {
    const tag = options?.tag;
    if (tag === undefined) {
      this.tagLow = this.tagHigh = 0;
    } else if (typeof tag === 'number' && Number.isSafeInteger(tag) && tag >= 0) {
      this.tagLow = tag | 0;
      this.tagHigh = (tag / 2 ** 32) | 0;
    } else if (typeof tag === 'bigint' && BigInt.asUintN(64, tag) === tag) {
      this.tagLow = Number(BigInt.asIntN(32, tag));
      this.tagHigh = Number(BigInt.asIntN(32, tag >> 32n));
    } else {
      throw invalid(`tag: ${String(tag)} is neither a whole number from 0 to 2^53 - 1 nor a bigint of 64 bits`);
    }
    const typeId = options?.typeId ?? 0;
    if (!(Number.isInteger(typeId) && typeId >= 0 && typeId < TYPE_ID_RESERVED)) {
      throw invalid(
        `typeId: ${String(typeId)} is not a whole number from 0 to 0xFFFEFFFF (those above are Ramway's own)`,
      );
    }
    return typeId;
  }

  private put(bytes: Uint8Array, typeId: number, flush: boolean): void {
    this.producer.copy(bytes);
    this.producer.commit(bytes.length, typeId, this.tagLow, this.tagHigh, flush);
  }

  private putTensor(plan: TensorPlan): void {
    const { producer } = this;
    const { at } = producer;
    const length = plan.write(producer.bytes.subarray(at, at + plan.room), (this.address + at) % 64);
    producer.commit(length, TENSOR_TYPE_ID, this.tagLow, this.tagHigh, true);
  }

  /** Whether a `try` may go on; if not, 'drain' is due. */
  private hasRoom(length: number): boolean {
    this.checkOpen();
    this.checkLength(length);
    const free = !this.isTaken();
    // Who is gone for good makes no room: asking throws that.
    if (free && (this.producer.fits(length) || this.ask(length))) return true;
    // Once a 'drain' is due, the smallest message that waits for it decides.
    this.wanted = this.wanted < 0 ? length : Math.min(this.wanted, length);
    if (free) this.waitForRoom();
    return false;
  }

  /** @internal */
  protected override look(): boolean {
    return this.producer.hasRoom(this.needed());
  }

  /** @internal */
  protected override arm(): boolean {
    return this.ask(this.needed());
  }

  /** Bytes that are waited for. */
  private needed(): number {
    return this.queue[0]?.length ?? Math.max(this.wanted, 0);
  }

  /** Whether there is room, by the native half, which arms the descriptor if not. Throws what keeps it from coming. */
  private ask(length: number): boolean {
    const { producer } = this;
    producer.flush();
    return call(() => this.native.ready(producer.positions, length)) && producer.hasRoom(length);
  }

  private waitForRoom(): void {
    if (!this.idle.waits) this.idle.wait(this.advance);
  }

  /** There may be room: sends what waits, and says 'drain' when nothing does. */
  private readonly advance = (): void => {
    while (!this.isClosed && !this.open) {
      const first = this.queue[0];
      if (first === undefined && this.wanted < 0) break;
      try {
        const length = this.needed();
        if (!this.producer.fits(length) && !this.ask(length)) return this.waitForRoom();
      } catch (error) {
        this.fail(error);
        break;
      }
      if (first === undefined) {
        this.wanted = -1;
        this.emit('drain');
        break;
      }
      this.queue.shift();
      // A slot that is being filled goes on from here itself.
      if (first.run() !== undefined) return;
      if (turn.isOver()) {
        turn.over().then(this.advance);
        return;
      }
    }
    if (!this.isTaken()) this.finish();
  };

  /** Nobody can send any more, for now or for good. */
  private fail(error: unknown): void {
    for (const queued of this.queue.splice(0)) queued.fail(error);
    if (this.wanted >= 0) {
      this.wanted = -1;
      if (isEnd(error)) this.announce();
      // Whoever does not listen for room looks for it, and is told then.
      else if (this.listenerCount('drain') !== 0 || this.listenerCount('error') !== 0) this.emit('error', error);
    }
  }

  private finish(): void {
    if (this.finished !== null) this.close();
  }

  private later(length: number, options: WaitOptions | undefined, run: () => undefined | Promise<void>): Promise<void> {
    if (options?.timeout === 0) {
      if (this.isTaken() || !(this.producer.fits(length) || this.ask(length))) throw timedOut();
      return run() ?? DONE;
    }
    return new Promise((resolve, reject) => {
      const queued: Queued = {
        length,
        run: () => {
          stop();
          try {
            const filling = run();
            if (filling === undefined) resolve();
            return filling?.then(resolve, reject);
          } catch (error) {
            reject(error);
            return undefined;
          }
        },
        fail: (reason) => {
          stop();
          reject(reason);
        },
      };
      const stop = limit(options, (reason) => this.giveUp(queued, reason));
      this.queue.push(queued);
      if (this.queue.length === 1 && !this.open) {
        // It may wait only because the turn is over, or behind a 'drain'.
        this.idle.cancel();
        this.idle.wait(this.advance);
      }
    });
  }

  private giveUp(queued: Queued, reason: unknown): void {
    const index = this.queue.indexOf(queued);
    if (index < 0) return;
    this.queue.splice(index, 1);
    queued.fail(reason);
    if (index !== 0) return;
    // What is waited for is another thing now, or nothing.
    this.idle.cancel();
    if (this.queue.length !== 0 || this.wanted >= 0) this.waitForRoom();
    else if (!this.open) this.finish();
  }

  /** Blocks until a message of this length fits. */
  private block(what: string, length: number, options: SyncOptions | undefined): void {
    const deadline = blockUntil(what, options);
    this.checkOpen();
    this.checkLength(length);
    const { producer } = this;
    if (this.isTaken()) throw new RamwayError('Busy', `${what}: sends of this sender wait, or a slot is being filled`);
    if (producer.fits(length)) return;
    for (;;) {
      if (this.polls) for (let looks = LOOKS; looks > 0; looks--) if (producer.hasRoom(length)) return;
      const round = this.policy === 'spin' ? 0 : roundUntil(deadline);
      const there = call(() => this.native.wait(producer.positions, length, round));
      if (there && producer.hasRoom(length)) return;
      if (roundUntil(deadline) === 0) throw timedOut();
    }
  }

  // ---- slots

  private reserveFrame(
    length: number,
    fill: (slot: Uint8Array) => Filled | Promise<Filled>,
    typeId: number,
    options: (FrameOptions & WaitOptions) | undefined,
  ): Promise<void> {
    checkFill(fill);
    this.checkLength(checkSize(length));
    this.checkOpen();
    const { tagLow, tagHigh } = this;
    const flush = options?.flush !== false;
    const run = () => this.fillSlot(length, fill, typeId, tagLow, tagHigh, flush);
    if (this.isTaken() || turn.isOver() || !this.producer.fits(length)) return this.later(length, options, run);
    return run() ?? DONE;
  }

  private fillNow(length: number, fill: (slot: Uint8Array) => Filled, typeId: number, flush: boolean): void {
    const now = (slot: Uint8Array) => {
      const filled: unknown = fill(slot);
      if (!(filled instanceof Promise)) return filled as Filled;
      // What it goes on writing to is gone, and how it ends is nobody's concern.
      filled.catch(() => {});
      throw invalid('fill: gave back a promise, which only reserve can wait for');
    };
    this.fillSlot(length, now, typeId, this.tagLow, this.tagHigh, flush);
  }

  /** Fills a slot and commits it. A promise only if `fill` gives one. */
  private fillSlot(
    length: number,
    fill: (slot: Uint8Array) => Filled | Promise<Filled>,
    typeId: number,
    tagLow: number,
    tagHigh: number,
    flush: boolean,
  ): undefined | Promise<void> {
    const { producer } = this;
    const { at } = producer;
    const loan = new Loan(this.native, at, length);
    const slot = length === 0 ? new Uint8Array(0) : loan.all();
    const end = () => {
      const moved = loan.end();
      if (moved) producer.move(moved);
    };
    const opened: Slot = { end, fail: () => {} };
    this.slot = opened;
    const commit = (filled: Filled) => {
      if (this.isClosed) throw detached();
      end();
      if (filled === false) return;
      const written = filled ?? length;
      if (!(Number.isInteger(written) && written >= 0 && written <= length)) {
        throw invalid(
          `fill: gave back ${String(written)}, not a number of bytes from 0 to ${length}, false or nothing`,
        );
      }
      producer.commit(written, typeId, tagLow, tagHigh, flush);
    };
    const abort = (error: unknown): never => {
      if (!this.isClosed) end();
      throw error;
    };
    const over = () => {
      this.open = false;
      this.slot = null;
    };
    let filled: Filled | Promise<Filled>;
    this.open = true;
    try {
      filled = fill(slot);
      if (!(filled instanceof Promise)) commit(filled);
    } catch (error) {
      if (!this.isClosed) end();
      over();
      this.goOn();
      throw error;
    }
    if (filled instanceof Promise) {
      const committed = filled.then(commit, abort).finally(over);
      return new Promise((resolve, reject) => {
        opened.fail = reject;
        committed.then(resolve, reject).then(this.advance);
      });
    }
    over();
    this.goOn();
    return undefined;
  }

  /** What `fill` itself asked for has its turn. */
  private goOn(): void {
    if (this.isClosed) return;
    if (this.wanted >= 0 || this.queue.length !== 0) this.waitForRoom();
    else this.finish();
  }

  private slot: Slot | null = null;

  private shut(abandon: boolean): void {
    if (this.isClosed) return;
    this.producer.flush();
    this.slot?.end();
    this.isClosed = true;
    this.idle.forget();
    const { producer } = this;
    call(() => this.native.close(this.header, producer.positions, abandon));
    this.slot?.fail(detached());
    for (const queued of this.queue.splice(0)) queued.fail(detached());
    this.finished?.();
    this.announce();
  }
}

function detached(): RamwayError {
  return new RamwayError('Detached', 'this sender is closed');
}
