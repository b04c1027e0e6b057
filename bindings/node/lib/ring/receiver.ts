import type { EventEmitter } from 'node:events';
import type { Memory, NativeEndpoint } from '../../native.cjs';
import { readableOf } from '../bus/streams.js';
import { Endpoint } from '../endpoint/endpoint.js';
import { invalid, isEnd, isTimeOut, RamwayError } from '../errors.js';
import { BATCH_DEFAULT, BLOCKING_POLLS, FIRST_POLLS, POLL_INTERVAL_MS } from '../facts.js';
import { checkNames, type WaitPolicy } from '../options.js';
import * as iteration from '../waiting/iteration.js';
import {
  blockUntil,
  checkCall,
  SYNC_NAMES,
  type SyncOptions,
  sleepUntil,
  timedOut,
  WAIT_NAMES,
  Waiter,
  type WaitOptions,
} from '../waiting/waiting.js';
import { Batch, Taken } from './batch.js';
import { Consumer } from './consumer.js';
import { BatchLoop, MessageLoop } from './loops.js';
import type { FrameInfo, Message } from './message.js';

export type { FrameInfo } from './message.js';

/** Messages that one step of a loop over messages takes from the ring: they are given back together. */
const TOGETHER = 64;
/** Bytes up to which the `data` of a message that is of no batch is a copy: V8 makes an array of its own of so few in a tenth of the
 * time that a buffer over the ring takes, and has no finalizer to run for it (docs/adr/0035). */
const COPIED = 64;
const BATCH_TRY = ['max'];
const BATCH_WAIT = ['max', ...WAIT_NAMES];
const BATCH_SYNC = ['max', ...SYNC_NAMES];
const LOOP = ['signal'];
const BATCH_LOOP = ['max', 'signal'];

/** @internal */
export interface Pending {
  /** Gives the wait up. */
  reject(reason: unknown): void;
}

/** What a {@link Receiver} tells. */
export interface ReceiverEvents<M extends Message = Message> {
  /** A message, valid until the listeners return. Messages flow while there are listeners; see `pause`. */
  message: [message: M];
  /** The receiver was closed, or the flow of messages has ended. Once. */
  close: [];
  /** What ended the flow of messages: ERR_RAMWAY_PEER_DEAD, say. */
  error: [error: unknown];
}

/** The receiving end of a ring. One per ring, in the whole system; used by one thread.
 *
 * A message or batch lies in shared memory until it is released, at the latest by the next receive; its views then have
 * length 0 (the `data` of a message of up to 64 bytes is a copy, but in a batch). One receive waits at a time (`ERR_RAMWAY_BUSY`). `Closed` comes after the sender's last message, `PeerDead`
 * too: what it sent before is received first. */
export class Receiver<M extends Message = Message, I extends FrameInfo = FrameInfo> extends Endpoint<
  Consumer,
  ReceiverEvents<M>
> {
  /** @internal */
  protected taken: Taken<M> | null = null;
  private pending: Pending | null = null;
  private flowing = false;
  private paused = false;
  /** When the native half was last asked and knew of no end. */
  private asked = -Infinity;
  /** @internal What part of a loop iteration handling the last step's messages is, each or as the batch that they are. */
  work = 1;
  private stream: ReadableStream<Uint8Array> | null = null;
  /** @internal */
  protected readonly giveBack = () => this.giveUp();

  /** @internal */
  constructor(
    native: NativeEndpoint,
    policy: WaitPolicy = 'hybrid',
    of?: string,
    role: 'receiver' | 'subscriber' = 'receiver',
    make: new (native: NativeEndpoint, memory: Memory) => Consumer = Consumer,
  ) {
    super(native, policy, role, of, make);
    (this as EventEmitter).on('newListener', (event) => {
      if (event === 'message') queueMicrotask(() => this.flow());
    });
    (this as EventEmitter).on('removeListener', () => this.ebb());
  }

  // ---- one message

  /** The next message; the one before is released (not `Busy`: nothing tells when JavaScript drops it). */
  recv(options?: WaitOptions): Promise<M> {
    return this.receive('recv', WAIT_NAMES, () => this.takeOne(), options);
  }

  /** The next message, or null if there is none now; the one before is released. */
  tryRecv(): M | null {
    this.begin();
    return this.thereIs() ? this.takeOne() : null;
  }

  /** The next message, blocking the thread until it comes; the one before is released. In a worker, unless
   * `allowMainThread`. */
  recvSync(options?: SyncOptions): M {
    return this.block('recvSync', SYNC_NAMES, options, () => this.takeOne());
  }

  // ---- several

  /** Up to `max` (1024) messages: waits for the first one and takes what is there then. */
  recvBatch(options?: { max?: number | undefined } & WaitOptions): Promise<Batch<M>> {
    let max = BATCH_DEFAULT;
    try {
      max = checkMax(options?.max);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.receive('recvBatch', BATCH_WAIT, () => this.takeBatch(max), options);
  }

  /** Up to `max` (1024) messages, or null if there is none now. */
  tryRecvBatch(options?: { max?: number | undefined }): Batch<M> | null {
    if (options !== undefined) checkNames('tryRecvBatch', options, BATCH_TRY);
    const max = checkMax(options?.max);
    this.begin();
    return this.thereIs() ? this.takeBatch(max) : null;
  }

  /** Up to `max` (1024) messages, blocking the thread until there is one. In a worker, unless `allowMainThread`. */
  recvBatchSync(options?: { max?: number | undefined } & SyncOptions): Batch<M> {
    const max = checkMax(options?.max);
    return this.block('recvBatchSync', BATCH_SYNC, options, () => this.takeBatch(max));
  }

  // ---- copies

  /** Copies the next message to the start of `target`, each byte once: a sender that writes on changes nothing after. A
   * target that is too short is `ERR_RAMWAY_TOO_LARGE`, and the message stays for the next receive. */
  recvInto(target: Uint8Array, options?: WaitOptions): Promise<I> {
    try {
      checkTarget(target);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.receive('recvInto', WAIT_NAMES, () => this.copyInto(target), options);
  }

  /** `recvInto` that gives null if there is no message now. */
  tryRecvInto(target: Uint8Array): I | null {
    checkTarget(target);
    this.begin();
    return this.thereIs() ? this.copyInto(target) : null;
  }

  /** `recvInto`, blocking the thread until a message comes. In a worker, unless `allowMainThread`. */
  recvIntoSync(target: Uint8Array, options?: SyncOptions): I {
    checkTarget(target);
    return this.block('recvIntoSync', SYNC_NAMES, options, () => this.copyInto(target));
  }

  // ---- loops

  /** The messages until the sender closes. Each is valid until the next one is asked for. What else ends the loop is an
   * error: the sender's death, an abort (with the signal's reason), and `close()` of this receiver
   * (`ERR_RAMWAY_DETACHED`). `break` and `return` end it quietly, and leave the receiver open. */
  messages(options?: { signal?: AbortSignal | undefined }): AsyncIterableIterator<M> {
    if (options !== undefined) checkNames('messages', options, LOOP);
    return new MessageLoop(this, options?.signal);
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<M> {
    return this.messages();
  }

  /** Batches of up to `max` (1024) messages until the sender closes. Each is valid until the next one is asked for; it
   * ends as `messages` does. */
  batches(options?: { max?: number | undefined; signal?: AbortSignal | undefined }): AsyncIterableIterator<Batch<M>> {
    if (options !== undefined) checkNames('batches', options, BATCH_LOOP);
    return new BatchLoop(this, checkMax(options?.max), options?.signal);
  }

  /** Copies of the messages as a web stream, which asks for one when the program reads. Cancelling it closes the receiver. */
  get readable(): ReadableStream<Uint8Array> {
    this.stream ??= readableOf(this);
    return this.stream;
  }

  // ---- 'message' events

  /** No 'message' events until `resume`. */
  pause(): this {
    this.paused = true;
    this.ebb();
    return this;
  }

  resume(): this {
    this.paused = false;
    queueMicrotask(() => this.flow());
    return this;
  }

  // ---- the handle

  /** Gives the role up, at once. What was not released stays in a named ring for the next receiver; a receive that waits
   * and a loop are `ERR_RAMWAY_DETACHED`. Again: nothing happens. */
  override close(): void {
    this.shut(false);
  }

  /** @internal `forGood`, of a subscriber: also if it is durable. */
  protected shut(forGood: boolean): void {
    if (this.isClosed) return;
    this.taken?.release(this.taken.handled, true);
    this.taken = null;
    this.half.ahead.drop();
    this.giveRoleUp(forGood);
    this.pending?.reject(this.detached());
    this.endPauses();
    this.announce();
  }

  /** `close`, for symmetry with a sender. */
  override end(): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  // ---- how it works

  /** @internal */
  protected override poll(): boolean {
    return this.half.poll();
  }

  /** @internal */
  protected override arm(): boolean {
    return this.half.ask();
  }

  /** A receive begins: what the last one gave goes back. */
  private begin(): void {
    if (this.isClosed || this.pending !== null || this.flowing) this.cannot();
    this.giveUp();
  }

  private cannot(): never {
    this.checkOpen();
    const who = this.flowing ? "'message' listeners have" : 'another receive waits for';
    throw new RamwayError('Busy', `${this.what}: ${who} its messages, and one at a time may`);
  }

  /** Whether a message is there. Throws how the stream ended. */
  private thereIs(): boolean {
    if (this.half.poll()) return true;
    if (!this.half.hasEnded() && performance.now() - this.asked < POLL_INTERVAL_MS) return false;
    // One that throws is asked again at the next call.
    this.asked = -Infinity;
    const there = this.half.ask();
    this.asked = performance.now();
    return there;
  }

  /** @internal What is there; null if it is gone: a topic's subscriber that nobody waits for can be overtaken. */
  protected take(max: number, most: number, copied: number): Taken<M> | null {
    const consumer = this.half;
    const count = consumer.take(max, most);
    if (count === 0) return null;
    const taken = this.took(count, copied);
    this.taken = taken;
    this.work = iteration.workOf(((consumer.head - consumer.position) >>> 0) / count);
    return taken;
  }

  /** @internal */
  protected took(count: number, copied: number): Taken<M> {
    return new Taken<M>(this.half, this.native, count, this.giveBack, copied);
  }

  /** @internal */
  protected takeOne(): M | null {
    const taken = this.take(1, this.half.capacity, COPIED);
    return taken === null ? null : taken.next();
  }

  private takeBatch(max: number): Batch<M> | null {
    const taken = this.take(max, this.half.capacity, 0);
    if (taken === null) return null;
    taken.handOutAll();
    this.work *= taken.count;
    return new Batch<M>(taken);
  }

  private copyInto(target: Uint8Array): I | null {
    const consumer = this.half;
    if (!consumer.find()) return null;
    const at = consumer.start(0);
    const length = consumer.length(0);
    if (length > target.length) {
      consumer.release(consumer.position);
      const text = `${this.what}: the next message has ${length} bytes, and the target ${target.length}`;
      throw new RamwayError('TooLarge', `${text}: it stays for a longer one`);
    }
    const { bytes } = consumer;
    const info = consumer.info() as I;
    try {
      // subarray costs as much as copying 100 bytes.
      if (length <= 32) for (let i = 0; i < length; i++) target[i] = bytes[at + i]!;
      else target.set(bytes.subarray(at, at + length));
    } catch (error) {
      // A target that is not as long as it says.
      consumer.release(consumer.position);
      throw error;
    }
    if (!consumer.confirm()) return null;
    consumer.release(consumer.head);
    this.work = iteration.workOf(length);
    return info;
  }

  private receive<T>(
    what: string,
    names: readonly string[],
    take: () => T | null,
    options: WaitOptions | undefined,
  ): Promise<T> {
    try {
      if (options !== undefined) checkCall(what, options, names);
      this.begin();
      for (let polls = FIRST_POLLS; polls > 0; polls--) {
        if (this.half.poll()) {
          if (iteration.isOver(this.work)) break;
          const value = take();
          if (value !== null) return Promise.resolve(value);
        }
      }
      if (options?.timeout === 0) {
        const value = this.thereIs() ? take() : null;
        if (value !== null) return Promise.resolve(value);
        throw timedOut(this.nothing());
      }
    } catch (error) {
      return Promise.reject(error);
    }
    return this.waitFor(take, options);
  }

  private waitFor<T>(take: () => T | null, options: WaitOptions | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const left = () => {
        this.pending = null;
        this.idle.cancel();
      };
      const waiter = new Waiter(
        resolve,
        reject,
        options,
        () => this.nothing(),
        left,
        (reason) => {
          // What ended at the same time says more than that the time is up.
          if (isTimeOut(reason)) step(() => waiter.reject(reason));
          else waiter.reject(reason);
        },
      );
      this.pending = waiter;
      const step = (nothing: () => void) => {
        try {
          if (!this.half.poll() && !this.half.ask()) return nothing();
          const value = take();
          if (value === null) return nothing();
          waiter.resolve(value);
        } catch (error) {
          waiter.reject(error);
        }
      };
      const again = () => this.idle.wait(() => step(again));
      again();
    });
  }

  private nothing(): string {
    return `no message came to ${this.what}`;
  }

  /** Blocks until a message is there, and takes it. */
  private block<T>(what: string, names: readonly string[], options: SyncOptions | undefined, take: () => T | null): T {
    if (options !== undefined) checkNames(what, options, names);
    const deadline = blockUntil(what, options);
    this.begin();
    let there = this.half.poll() || (options?.timeout === 0 && this.thereIs());
    for (;;) {
      const value = there ? take() : null;
      if (value !== null) return value;
      // Where a message was overtaken each time, no wait finds out that the time is up.
      if (options?.timeout === 0 || (there && performance.now() >= deadline)) throw timedOut(this.nothing());
      there = this.blockOnce(deadline);
    }
  }

  /** Whether a message is there, after blocking for a while at most. */
  private blockOnce(deadline: number): boolean {
    const consumer = this.half;
    if (this.polls) for (let polls = BLOCKING_POLLS; polls > 0; polls--) if (consumer.poll()) return true;
    const milliseconds = sleepUntil(deadline);
    // Not asleep, but now and then it asks whether the sender has ended: each time by a system call.
    if (this.waitPolicy === 'spin' && milliseconds > 0) return this.thereIs();
    if (milliseconds === 0) {
      if (this.thereIs()) return true;
      throw timedOut(this.nothing());
    }
    const { asked } = this;
    // If the wait throws an end, the next call asks for it again.
    this.asked = -Infinity;
    const there = consumer.wait(milliseconds);
    this.asked = asked;
    return there;
  }

  // ---- for the loops

  /** @internal The next message of a loop, the one before being done with; null: none now. */
  nextMessage(): M | null {
    const { taken, half: consumer } = this;
    if (taken !== null) {
      // A sender that waits for room gets it before this loop goes on.
      const next = consumer.senderWaits() ? null : taken.next();
      if (next !== null) return next;
      this.giveUp();
    }
    if (!consumer.poll()) return null;
    const more = this.take(TOGETHER, consumer.capacity >> 2, COPIED);
    return more === null ? null : more.next();
  }

  /** @internal The next batch of a loop; null: none now. */
  nextBatch(max: number): Batch<M> | null {
    this.giveUp();
    return this.half.poll() ? this.takeBatch(max) : null;
  }

  /** @internal Gives back what was handed out; what a loop took beyond that is received again. */
  giveUp(): void {
    const { taken } = this;
    this.taken = null;
    taken?.release(taken.handedOut);
  }

  /** @internal A step of a loop: refuses what `begin` refuses. */
  checkLoop(): void {
    if (this.isClosed || this.pending !== null || this.flowing) this.cannot();
  }

  /** @internal The next item of a loop, when there is one. */
  later<T>(next: () => T | null, signal: AbortSignal | undefined): Promise<T> {
    const { taken, half: consumer } = this;
    if (consumer.hasMore || (taken !== null && taken.handedOut < taken.count)) {
      return iteration.over().then(() => {
        this.checkOpen();
        return next() ?? this.later(next, signal);
      });
    }
    // Before a wait, all of what the last step gave: the sender may wait for just that room.
    this.giveUp();
    return this.waitFor(next, { signal });
  }

  /** @internal Whoever else receives is refused, until null is given; `lead` is told of a close. */
  lead(lead: Pending | null): void {
    if (lead !== null) this.checkLoop();
    else if (!this.isClosed) this.giveUp();
    this.pending = lead;
    if (lead === null) this.idle.cancel();
  }

  /** @internal Calls `there` once there may be a message, or an end to meet by {@link askForMore}. */
  park(there: () => void): void {
    this.giveUp();
    this.idle.wait(there);
  }

  /** @internal Whether there is a message by the native half. Throws how the stream ended. */
  askForMore(): boolean {
    return this.half.ask();
  }

  /** Hands messages to the listeners, as long as there are some of both. */
  private flow(): void {
    if (this.flowing || this.paused || this.isClosed || this.pending !== null) return;
    if (this.listenerCount('message') === 0) return;
    this.giveUp();
    this.flowing = true;
    this.pump();
  }

  private readonly pump = (): void => {
    while (this.flowing && !this.isClosed) {
      if (this.paused || this.listenerCount('message') === 0) return this.stopFlowing();
      let message: M | null = null;
      try {
        message = this.nextMessage();
        if (message === null && !this.half.ask()) return this.idle.wait(this.pump);
      } catch (error) {
        this.stopFlowing();
        if (!isEnd(error)) process.nextTick(() => (this as EventEmitter).emit('error', error));
        return this.announce();
      }
      if (message !== null) this.hand(message);
      if (iteration.isOver(this.work)) {
        iteration.over().then(this.pump);
        return;
      }
    }
  };

  private hand(message: M): void {
    try {
      (this as EventEmitter).emit('message', message);
    } catch (error) {
      // The listener's own: it reaches the process as from any other event, and the messages flow on.
      process.nextTick(() => {
        throw error;
      });
    }
  }

  /** Ends a flow that waits, once no one listens. */
  private ebb(): void {
    if (!this.flowing || !this.idle.waits) return;
    if (this.paused || this.listenerCount('message') === 0) {
      this.idle.cancel();
      this.stopFlowing();
    }
  }

  private stopFlowing(): void {
    this.flowing = false;
    if (!this.isClosed) this.giveUp();
  }
}

function checkMax(max: number | undefined): number {
  if (max === undefined) return BATCH_DEFAULT;
  if (!Number.isInteger(max) || max < 1)
    throw invalid(`max: ${String(max)} is not a whole number of messages from 1 up`);
  return max;
}

function checkTarget(target: Uint8Array): void {
  if (!(target instanceof Uint8Array)) throw invalid('target: expected a Uint8Array');
}
