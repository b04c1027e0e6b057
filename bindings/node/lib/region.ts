// Regions: named bytes that any number of processes have mapped, and their notifications.
import { clearTimeout, setTimeout } from 'node:timers';
import * as native from '../native.cjs';
import { call, invalid, RamwayError } from './errors.js';
import { ITERATION_SPIN_MS, REGION_POLL_INTERVAL_MS } from './facts.js';
import {
  bytesOf,
  nameOf,
  REGION,
  REGION_OPEN,
  REGION_OPEN_SYNC,
  REGION_SYNC,
  REGION_WAIT,
  REGION_WAIT_SYNC,
  type Read,
  type RegionOpenOptions,
  type RegionOptions,
  read,
  refuseIdle,
  type SYNC,
  type WaitPolicy,
} from './options.js';
import { bytesOf as dataBytes } from './ring/data.js';
import { Idle } from './waiting/idle.js';
import { opening } from './waiting/opening.js';
import {
  blockUntil,
  checkWait,
  type SyncOptions,
  sleepUntil,
  timedOut,
  Waiter,
  type WaitOptions,
} from './waiting/waiting.js';

/** One of this many polls asks whether the region's name is still there, which is a system call. */
const POLLS_PER_NAME = 100;
const SPINS = { spin: Infinity, hybrid: ITERATION_SPIN_MS, block: 0 };

/** A wait for another number of notifications than `since`. */
class Since extends Waiter<number> {
  constructor(
    readonly since: number,
    ...wait: ConstructorParameters<typeof Waiter<number>>
  ) {
    super(...wait);
  }
}

/**
 * Named bytes that any number of processes have mapped, with a notification that costs nothing when nobody waits.
 *
 * `buffer` is the shared bytes themselves: what one process stores another one sees. Ramway brings no order into that:
 * use `Atomics`, or what was written before a `notify` is seen after the `waitAsync` that it ended. A region lives until
 * its last handle is gone, in any process.
 */
export class Region implements Disposable, AsyncDisposable {
  /** The name that it was made or opened by. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** Whether this handle may not write. */
  readonly readOnly: boolean;
  readonly #native: native.NativeRegion;
  readonly #policy: WaitPolicy;
  #idle: Idle | null = null;
  #buffer: ArrayBuffer | null = null;
  /** A buffer was transferred away. */
  #moved = false;
  #closed = false;
  #held = true;
  /** The count that the last wait without `since` resolved with. */
  #seen: number;
  /** The count when waiting began: every waiter's `since` is this. */
  #known = 0;
  readonly #waiters = new Set<Since>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #polls = 0;
  /** Why no wait will ever end well again. The native half says it once. */
  #gone: unknown = null;

  /** @internal */
  constructor(region: native.NativeRegion, name: string, policy: WaitPolicy = 'hybrid') {
    this.#native = region;
    this.#policy = policy;
    this.name = name;
    this.size = region.size;
    this.readOnly = region.readOnly;
    this.#seen = this.#count();
  }

  /**
   * Makes a region of `size` bytes, all zero. ERR_RAMWAY_ALREADY_EXISTS if the name is taken,
   * ERR_RAMWAY_INVALID_ARGUMENT for a size of 0 or an impossible name, ERR_RAMWAY_NO_SPACE.
   */
  static async create(
    name: string,
    size: number,
    options?: RegionOptions & { signal?: AbortSignal | undefined },
  ): Promise<Region> {
    return open('create', name, size, REGION, options);
  }

  /** Opens the region of that name. ERR_RAMWAY_NOT_FOUND if there is none within `timeout` (default 0). */
  static async open(name: string, options?: RegionOpenOptions & { signal?: AbortSignal | undefined }): Promise<Region> {
    return open('open', name, undefined, REGION_OPEN, options);
  }

  /** Opens the region of that name, or makes it. ERR_RAMWAY_INVALID_ARGUMENT if it is there with another size. */
  static async openOrCreate(
    name: string,
    size: number,
    options?: RegionOptions & { signal?: AbortSignal | undefined },
  ): Promise<Region> {
    return open('openOrCreate', name, size, REGION, options);
  }

  /** {@link Region.create}, blocking. */
  static createSync(name: string, size: number, options?: RegionOptions): Region {
    return openSync('create', name, size, REGION_SYNC, options);
  }

  /** {@link Region.open}, blocking. On the main thread it does not wait unless it is allowed to. */
  static openSync(name: string, options?: RegionOpenOptions & SyncOptions): Region {
    return openSync('open', name, undefined, REGION_OPEN_SYNC, options);
  }

  /** {@link Region.openOrCreate}, blocking. */
  static openOrCreateSync(name: string, size: number, options?: RegionOptions): Region {
    return openSync('openOrCreate', name, size, REGION_SYNC, options);
  }

  /**
   * The region's bytes. `close` detaches it; where it was transferred away, it goes on leading to the region's memory,
   * and this is a new one. ERR_RAMWAY_UNSUPPORTED for a read-only region.
   */
  get buffer(): ArrayBuffer {
    // A region has no length of 0, so a buffer with one is detached.
    if (this.#buffer === null || this.#isMoved()) this.#buffer = call(() => this.#native.buffer());
    return this.#buffer;
  }

  /**
   * A copy of `length` bytes, from `offset` on. Others may write meanwhile: each aligned 8-byte word comes out whole,
   * but one word may be new and the next one old.
   */
  readAt(offset: number, length: number): Uint8Array {
    this.#check('Region.readAt', offset, length);
    const bytes = new Uint8Array(length);
    call(() => this.#native.readAt(offset, bytes));
    return bytes;
  }

  /** Copies bytes in, from `offset` on (a string as UTF-8). ERR_RAMWAY_PERMISSION_DENIED for a read-only region. */
  writeAt(offset: number, data: string | ArrayBufferView | ArrayBufferLike): void {
    const bytes = dataBytes(data);
    this.#check('Region.writeAt', offset, bytes.length);
    call(() => this.#native.writeAt(offset, bytes));
  }

  /**
   * Tells all handles that wait that something has changed, after everything that this thread wrote before. Never blocks.
   * ERR_RAMWAY_PERMISSION_DENIED for a read-only region.
   */
  notify(): void {
    call(() => this.#native.notify());
  }

  /** How many notifications there have been, modulo 2^31. */
  get notifications(): number {
    return this.#count();
  }

  /**
   * Resolves with the number of notifications once it is another one than `since`. Without `since`: once there is a
   * notification since the last such wait, or since the region was opened, also if it came before this call.
   *
   * ERR_RAMWAY_CLOSED if the region's name was removed meanwhile, so that nobody can join any more.
   */
  async waitAsync(options?: { since?: number | undefined } & WaitOptions): Promise<number> {
    const { since, ...limits } = read('Region.waitAsync', REGION_WAIT, options);
    checkWait(limits);
    const count = await this.#wait(since ?? this.#seen, limits);
    if (since === undefined) this.#seen = count;
    return count;
  }

  /** {@link Region.waitAsync}, blocking. */
  waitSync(options?: { since?: number | undefined } & SyncOptions): number {
    const { since, ...limits } = read('Region.waitSync', REGION_WAIT_SYNC, options);
    const deadline = blockUntil('Region.waitSync', limits);
    for (;;) {
      const milliseconds = sleepUntil(deadline);
      const word = call(() => this.#native.waitSince(2 * (since ?? this.#seen), milliseconds));
      if (word !== null) {
        const count = word >>> 1;
        if (since === undefined) this.#seen = count;
        return count;
      }
      if (milliseconds === 0) throw timedOut(this.#silent());
    }
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Releases the region: `buffer` is detached, a wait is ERR_RAMWAY_DETACHED. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#buffer !== null && !this.#isMoved()) native.detach(this.#buffer);
    this.#buffer = null;
    clearTimeout(this.#timer);
    this.#idle?.forget();
    this.#native.close(this.#moved);
    this.#fail(new RamwayError('Detached', `the region '${this.name}' is closed`));
  }

  /** Waiting keeps the runtime running (the default). */
  ref(): this {
    return this.#hold(true);
  }

  /** Waiting does not keep the runtime running. */
  unref(): this {
    return this.#hold(false);
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /** Whether the buffer was transferred away, now or before. */
  #isMoved(): boolean {
    if (this.#buffer?.byteLength !== 0) return false;
    this.#moved = true;
    return true;
  }

  #silent(): string {
    return `nobody notified the region '${this.name}'`;
  }

  #hold(yes: boolean): this {
    this.#held = yes;
    this.#idle?.hold(yes);
    if (yes) this.#timer?.ref();
    else this.#timer?.unref();
    return this;
  }

  #count(): number {
    return call(() => this.#native.notifications) >>> 1;
  }

  #check(what: string, offset: number, length: number): void {
    bytesOf(what, 'offset', offset);
    bytesOf(what, 'length', length);
    if (offset + length > this.size) {
      throw invalid(`${what}: ${length} bytes at offset ${offset} of a region of ${this.size} bytes`);
    }
  }

  #wait(since: number, limits: WaitOptions): Promise<number> {
    const now = this.#count();
    if (now !== since) return Promise.resolve(now);
    if (this.#gone !== null) return Promise.reject(this.#gone);
    if (limits.timeout === 0) return Promise.reject(timedOut(this.#silent()));
    return new Promise((resolve, reject) => {
      const left = () => {
        this.#waiters.delete(waiter);
        if (this.#waiters.size === 0) this.#rest();
      };
      const waiter = new Since(since, resolve, reject, limits, () => this.#silent(), left);
      this.#waiters.add(waiter);
      if (this.#waiters.size === 1) this.#watch(now);
    });
  }

  /** Nobody waits any more. */
  #rest(): void {
    this.#idle?.cancel();
    clearTimeout(this.#timer);
  }

  /** Has `#pollWaiters` called when the number is not `known` any more. */
  #watch(known: number): void {
    this.#known = known;
    if (this.readOnly) {
      this.#timer = setTimeout(() => this.#pollByTimer(), REGION_POLL_INTERVAL_MS);
      if (!this.#held) this.#timer.unref();
      return;
    }
    this.#idle ??= this.#newIdle();
    this.#idle.wait(() => this.#pollWaiters());
  }

  #newIdle(): Idle {
    const idle = new Idle({
      poll: () => this.#count() !== this.#known,
      arm: () => this.#arm(this.#known),
      descriptor: () => this.#native.fd,
      spin: SPINS[this.#policy],
    });
    idle.hold(this.#held);
    return idle;
  }

  #pollWaiters(): void {
    try {
      const count = this.#count();
      for (const waiter of this.#waiters) {
        if (waiter.since !== count) waiter.resolve(count);
      }
      if (this.#waiters.size === 0) return;
      if (this.#gone !== null) this.#fail(this.#gone);
      else this.#watch(count);
    } catch (error) {
      this.#fail(error);
    }
  }

  #pollByTimer(): void {
    if (++this.#polls % POLLS_PER_NAME === 0) {
      try {
        call(() => this.#native.waitSince(2 * this.#known, 0));
      } catch (error) {
        this.#gone = error;
      }
    }
    this.#pollWaiters();
  }

  /** Whether the number is not `known` any more; if not, the descriptor tells of it. */
  #arm(known: number): boolean {
    try {
      return call(() => this.#native.arm(2 * known));
    } catch (error) {
      this.#gone = error;
      throw error;
    }
  }

  #fail(error: unknown): void {
    for (const waiter of [...this.#waiters]) waiter.reject(error);
  }
}

type Intent = 'create' | 'open' | 'openOrCreate';
type Shapes = typeof REGION | typeof REGION_SYNC | typeof REGION_OPEN | typeof REGION_OPEN_SYNC;

/** What the call `what` was given, checked; without a size it takes what is there. */
function checked(
  what: string,
  intent: Intent,
  name: string,
  size: number | undefined,
  shape: Shapes,
  options: unknown,
) {
  const { signal, allowMainThread, ...settings }: Read<typeof REGION & typeof REGION_OPEN & typeof SYNC> = read(
    what,
    shape,
    options,
  );
  if (intent === 'openOrCreate') refuseIdle(what, settings, true);
  const bytes = intent === 'open' ? 0 : bytesOf(what, 'size', size);
  return { at: nameOf(what, name), bytes, settings, signal, allowMainThread };
}

async function open(
  intent: Intent,
  name: string,
  size: number | undefined,
  shape: Shapes,
  options: unknown,
): Promise<Region> {
  const { at, bytes, settings, signal } = checked(`Region.${intent}`, intent, name, size, shape, options);
  return opening(signal, async (attempt) => {
    return new Region(await native.openRegion(attempt, intent, at, bytes, settings), at, settings.wait);
  });
}

function openSync(intent: Intent, name: string, size: number | undefined, shape: Shapes, options: unknown): Region {
  const what = `Region.${intent}Sync`;
  const { at, bytes, settings, allowMainThread } = checked(what, intent, name, size, shape, options);
  if (settings.timeout) blockUntil(what, { allowMainThread });
  return new Region(
    call(() => native.openRegionSync(intent, at, bytes, settings)),
    at,
    settings.wait,
  );
}
