// How a sender sends: its frames, the queue of sends that wait for room or for those before them, and slots.
import type { Memory, NativeEndpoint } from '../../native.cjs';
import { Endpoint } from '../endpoint/endpoint.js';
import { invalid, isEnd, isTimeOut, RamwayError } from '../errors.js';
import { BLOCKING_POLLS, TYPE_ID_RESERVED } from '../facts.js';
import { checkNames, type WaitPolicy } from '../options.js';
import { TENSOR_TYPE_ID, TensorPlan, type TensorShape, type TypedArray } from '../tensor.js';
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
import { checkedFill, checkSize } from './data.js';
import type { Producer } from './producer.js';
import { SharedView } from './view.js';

/** What a message carries besides its bytes. */
export interface FrameOptions {
  /** The application's, from 0 (the default) to 0xFFFEFFFF. */
  typeId?: number | undefined;
  /** 64 bits, 0 by default: a whole number from 0 to 2^53 - 1, or a bigint. */
  tag?: number | bigint | undefined;
  /** false: visible at the next flush, flushed message, wait or close. Default true. */
  flush?: boolean | undefined;
}

/** What a tensor carries besides its elements. */
export interface TensorOptions {
  /** 64 bits, 0 by default: a whole number from 0 to 2^53 - 1, or a bigint. */
  tag?: number | bigint | undefined;
}

/** What a fill function gives back: how many bytes it wrote (nothing: all), or false for "send nothing". */
export type Filled = number | false | undefined | void;

/** What a function gives back that fills a tensor: false for "send nothing". */
export type TensorFilled = false | undefined | void;

/** Writes the elements of a tensor, which are what was there before. */
export type TensorFill<T extends TypedArray> = (data: T) => TensorFilled | Promise<TensorFilled>;

/** What a {@link Sender} tells. */
export interface SenderEvents {
  /** There is room again after a `trySend` or `tryReserve` that gave false. */
  drain: [];
  /** The sender was closed, or the receiver was while a 'drain' was due. Once. */
  close: [];
  /** What keeps a 'drain' from ever coming: ERR_RAMWAY_PEER_DEAD, say. */
  error: [error: unknown];
}

const FRAME = ['typeId', 'tag', 'flush'] as const;
/** @internal Names of the options of each kind of call. */
export const names = {
  frame: FRAME,
  frameWait: [...FRAME, ...WAIT_NAMES],
  frameSync: [...FRAME, ...SYNC_NAMES],
  tensor: ['tag'],
  tensorWait: ['tag', ...WAIT_NAMES],
  tensorSync: ['tag', ...SYNC_NAMES],
} as const;

/** A send that waits for room, or for those before it. */
interface Queued {
  /** Bytes that it needs. */
  readonly length: number;
  /** Sends it: there is room. A promise: of a slot that is being filled. */
  run(): undefined | Promise<void>;
  fail(reason: unknown): void;
}

/** A slot that is being filled. */
interface Opened {
  /** Ends its views. */
  end(): void;
  /** Rejects the promise of an asynchronous `fill`, which may never settle. */
  fail(reason: unknown): void;
}

/** @internal What is to be sent once there is room for it. */
export interface Outgoing {
  /** Bytes to reserve. */
  readonly room: number;
  /** Sends it: there is room, and the tag is set aside. A promise: of a slot that is being filled. */
  put(typeId: number, flush: boolean): undefined | Promise<void>;
}

/** What is to be written in place. */
interface Slot<V> {
  readonly room: number;
  /** What `fill` gets, of the slot's bytes. */
  view(slot: Uint8Array): V;
  readonly fill: (view: V) => unknown;
  /** How many bytes to send of what `fill` gave back, which is not false. Throws if it is none of what it may be. */
  length(filled: unknown): number;
}

/** @internal */
export const DONE = Promise.resolve();

/** What {@link Sender} is made of. */
export abstract class Sending extends Endpoint<Producer, SenderEvents> {
  /** Bytes of the longest message. */
  readonly maxMessageLength: number;
  private readonly queue: Queued[] = [];
  /** A slot is being filled. */
  private open = false;
  private opened: Opened | null = null;
  /** Bytes that a `trySend` had no room for: 'drain' is due. -1: none. */
  private wanted = -1;
  private finished: (() => void) | null = null;
  // The tag of the frame that is being made.
  /** @internal */
  protected tagLow = 0;
  /** @internal */
  protected tagHigh = 0;

  /** @internal */
  constructor(
    native: NativeEndpoint,
    policy: WaitPolicy,
    of: string | undefined,
    role: 'sender' | 'publisher',
    make: new (native: NativeEndpoint, memory: Memory) => Producer,
  ) {
    // The half is made first, and says how long a message may be.
    super(native, policy, role, of, make);
    this.maxMessageLength = this.half.maxMessageLength;
  }

  /** @internal */
  protected override checkOpen(): void {
    super.checkOpen();
    if (this.finished !== null) {
      throw new RamwayError('Detached', `${this.what} was ended: it sends only what waited then`);
    }
  }

  /** Whether others are first. */
  private isTaken(): boolean {
    return this.open || this.queue.length !== 0;
  }

  /** @internal Whether a frame of this many bytes can be sent at once. */
  protected isFree(length: number): boolean {
    return !this.isTaken() && !iteration.isOver() && this.half.fits(length);
  }

  /** @internal */
  protected checkLength(length: number): void {
    if (length > this.maxMessageLength) {
      throw new RamwayError(
        'TooLarge',
        `${this.what}: a message of ${length} bytes can never fit: this ${this.log} of ${this.capacity} bytes takes at most ${this.maxMessageLength}; create it with a larger capacity or cut the message`,
      );
    }
  }

  /** @internal Checks the frame's options, their names too where `what` says of which call; the tag is kept aside. */
  protected frame(options: FrameOptions | undefined, what?: string, known: readonly string[] = names.frame): number {
    if (options === undefined) {
      this.tagLow = this.tagHigh = 0;
      return 0;
    }
    if (what !== undefined) checkNames(what, options, known);
    const tag = options.tag;
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
    const { flush } = options;
    if (flush !== undefined && typeof flush !== 'boolean') {
      throw invalid(`flush: ${String(flush)} is neither true nor false`);
    }
    const typeId = options.typeId ?? 0;
    if (!(Number.isInteger(typeId) && typeId >= 0 && typeId < TYPE_ID_RESERVED)) {
      throw invalid(
        `typeId: ${String(typeId)} is not a whole number from 0 to 0xFFFEFFFF (those above are Ramway's own)`,
      );
    }
    return typeId;
  }

  /** @internal */
  protected put(bytes: Uint8Array, typeId: number, flush: boolean): void {
    this.half.copy(bytes);
    this.half.commit(bytes.length, typeId, this.tagLow, this.tagHigh, flush);
  }

  /** @internal Whether a `try` may go on; if not, 'drain' is due. */
  protected hasRoom(length: number): boolean {
    this.checkOpen();
    this.checkLength(length);
    const free = !this.isTaken();
    // A receiver that is gone for good makes no room: asking throws that.
    if (free && (this.half.fits(length) || this.ask(length))) return true;
    // Once a 'drain' is due, the smallest message that waits for it decides.
    this.wanted = this.wanted < 0 ? length : Math.min(this.wanted, length);
    if (free) this.waitForRoom();
    return false;
  }

  /** @internal */
  protected override poll(): boolean {
    return this.half.hasRoom(this.needed());
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
    this.half.flush();
    return this.half.ask(length);
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
        if (!this.half.fits(length) && !this.ask(length)) return this.waitForRoom();
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
      if (iteration.isOver()) {
        iteration.over().then(this.advance);
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
      // A program that does not listen for room polls for it, and gets the error then.
      else if (this.listenerCount('drain') !== 0 || this.listenerCount('error') !== 0) this.emit('error', error);
    }
  }

  private finish(): void {
    if (this.finished !== null) this.shut(false);
  }

  private noRoom(length: number): string {
    return `${this.what} got no room for ${length} bytes`;
  }

  /** @internal Sends now, or when there is room: with the tag of now. `make` checks what is to be sent. */
  protected post(
    what: string,
    known: readonly string[],
    options: (FrameOptions & WaitOptions) | undefined,
    make: () => Outgoing,
  ): Promise<void> {
    try {
      if (options !== undefined) checkCall(what, options, known);
      const { room, put } = make();
      const typeId = this.frame(options);
      const flush = options?.flush !== false;
      this.checkLength(room);
      this.checkOpen();
      if (this.isFree(room)) return put(typeId, flush) ?? DONE;
      const { tagLow, tagHigh } = this;
      return this.later(room, options, () => {
        this.tagLow = tagLow;
        this.tagHigh = tagHigh;
        return put(typeId, flush);
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @internal Sends if there is room now. */
  protected tryPost(
    what: string,
    known: readonly string[],
    options: FrameOptions | undefined,
    outgoing: Outgoing,
  ): boolean {
    const typeId = this.frame(options, what, known);
    if (!this.hasRoom(outgoing.room)) return false;
    outgoing.put(typeId, options?.flush !== false);
    return true;
  }

  /** @internal Blocks until there is room, and sends. */
  protected postSync(
    what: string,
    known: readonly string[],
    options: (FrameOptions & SyncOptions) | undefined,
    outgoing: Outgoing,
  ): void {
    const typeId = this.frame(options, what, known);
    this.block(what, outgoing.room, options);
    outgoing.put(typeId, options?.flush !== false);
  }

  /** @internal Sends by `run` when there is room for `length` bytes. */
  protected later(
    length: number,
    options: WaitOptions | undefined,
    run: () => undefined | Promise<void>,
  ): Promise<void> {
    if (options?.timeout === 0) {
      if (this.isTaken() || !(this.half.fits(length) || this.ask(length))) throw timedOut(this.noRoom(length));
      return run() ?? DONE;
    }
    return new Promise((resolve, reject) => {
      const late = () => this.noRoom(length);
      const waiter = new Waiter(
        resolve,
        reject,
        options,
        late,
        () => {},
        (reason) => {
          // What ended at the same time says more than that the time is up: the first send meets it, and the rest with it.
          if (isTimeOut(reason) && this.queue.includes(queued) && !this.open) {
            this.idle.cancel();
            this.advance();
          }
          this.giveUp(queued, reason);
        },
      );
      const queued: Queued = {
        length,
        run: () => {
          // A slot may be filled for longer.
          waiter.stop();
          try {
            const filling = run();
            if (filling === undefined) resolve();
            return filling?.then(resolve, reject);
          } catch (error) {
            reject(error);
            return undefined;
          }
        },
        fail: (reason) => waiter.reject(reason),
      };
      this.queue.push(queued);
      if (this.queue.length === 1 && !this.open) {
        // It may wait only because the loop iteration is over, or behind a 'drain'.
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

  /** @internal Blocks until a message of this length fits. */
  protected block(what: string, length: number, options: SyncOptions | undefined): void {
    const deadline = blockUntil(what, options);
    this.checkOpen();
    this.checkLength(length);
    const producer = this.half;
    if (this.isTaken()) {
      throw new RamwayError('Busy', `${what}: other sends of ${this.what} wait, or a slot is being filled`);
    }
    if (producer.fits(length)) return;
    for (;;) {
      if (this.polls) for (let polls = BLOCKING_POLLS; polls > 0; polls--) if (producer.hasRoom(length)) return;
      const left = sleepUntil(deadline);
      const milliseconds = this.waitPolicy === 'spin' ? 0 : left;
      if (producer.wait(length, milliseconds)) return;
      if (left > 0) continue;
      // Asks whether the receiver is still there.
      if (this.ask(length)) return;
      throw timedOut(this.noRoom(length));
    }
  }

  // ---- slots

  /** @internal A slot of bytes. `blocking`: `fill` may not give a promise. */
  protected bytesSlot(length: number, fill: (slot: Uint8Array) => unknown, blocking: boolean): Outgoing {
    const slot = {
      room: checkSize(length),
      view: (slot: Uint8Array) => slot,
      fill: checkedFill(fill, blocking),
      length: (filled: unknown) => {
        const written = filled ?? length;
        if (Number.isInteger(written) && (written as number) >= 0 && (written as number) <= length) {
          return written as number;
        }
        const text = `not a number of bytes from 0 to ${length}, false or nothing`;
        throw invalid(`fill: gave back ${String(filled)}, ${text}`);
      },
    };
    return { room: slot.room, put: (typeId, flush) => this.fillSlot(slot, typeId, flush) };
  }

  /** @internal A slot of a tensor. */
  protected tensorSlot<T extends TypedArray>(
    tensor: TensorShape,
    fill: (data: T) => unknown,
    blocking: boolean,
  ): Outgoing {
    const plan = TensorPlan.for(tensor);
    let offset = 0;
    const slot = {
      room: plan.room,
      view: (slot: Uint8Array) => {
        offset = plan.begin(slot, (this.address + this.half.at) % 64);
        return plan.elements(slot, offset) as T;
      },
      fill: checkedFill(fill, blocking),
      length: (filled: unknown) => {
        if (filled === undefined) return plan.length(offset);
        throw invalid(`fill: gave back ${String(filled)}, neither false nor nothing`);
      },
    };
    return { room: plan.room, put: () => this.fillSlot(slot, TENSOR_TYPE_ID, true) };
  }

  /** Fills a slot and commits it. A promise only if `fill` gives one. */
  private fillSlot<V>(slot: Slot<V>, typeId: number, flush: boolean): undefined | Promise<void> {
    const { half: producer, tagLow, tagHigh } = this;
    const shared = new SharedView(this.native, producer.at, slot.room);
    const view = slot.view(slot.room === 0 ? new Uint8Array(0) : shared.all());
    const end = () => {
      const moved = shared.end();
      if (moved) producer.move(moved);
    };
    const opened: Opened = { end, fail: () => {} };
    this.opened = opened;
    const commit = (filled: unknown) => {
      if (this.isClosed) throw this.detached();
      end();
      if (filled === false) return;
      producer.commit(slot.length(filled), typeId, tagLow, tagHigh, flush);
    };
    const abort = (error: unknown): never => {
      if (!this.isClosed) end();
      throw error;
    };
    const over = () => {
      this.open = false;
      this.opened = null;
    };
    let filled: unknown;
    this.open = true;
    try {
      filled = slot.fill(view);
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

  /** Goes on with what `fill` itself asked for. */
  private goOn(): void {
    if (this.isClosed) return;
    if (this.wanted >= 0 || this.queue.length !== 0) this.waitForRoom();
    else this.finish();
  }

  // ---- the end

  /** @internal Sends what waits, then closes. */
  protected finishing(): Promise<void> {
    if (this.isClosed) return DONE;
    if (!this.isTaken()) {
      this.shut(false);
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

  /** @internal */
  protected shut(abandon: boolean): void {
    if (this.isClosed) return;
    this.half.flush();
    this.opened?.end();
    this.giveRoleUp(abandon);
    this.opened?.fail(this.detached());
    for (const queued of this.queue.splice(0)) queued.fail(this.detached());
    this.finished?.();
    this.endPauses();
    this.announce();
  }
}
