// What a sender and a receiver share: the native half, the memory, how they wait, who is at the other side.
import { EventEmitter } from 'node:events';
import { clearTimeout, setTimeout } from 'node:timers';
import type { Memory, NativeEndpoint } from '../../native.cjs';
import { call, RamwayError } from '../errors.js';
import { ITERATION_SPIN_MS, PEER_PAUSE_MAX_MS } from '../facts.js';
import { checkNames, type WaitPolicy } from '../options.js';
import { Idle } from '../waiting/idle.js';
import {
  blockUntil,
  checkCall,
  SYNC_NAMES,
  type SyncOptions,
  sleepUntil,
  timedOut,
  WAIT_NAMES,
  type WaitOptions,
} from '../waiting/waiting.js';
import type { Half } from './half.js';

/** A sender or a receiver. */
export abstract class Endpoint<H extends Half, Events extends Record<keyof Events, unknown[]>>
  extends EventEmitter<Events>
  implements Disposable, AsyncDisposable
{
  /** @internal The half of the protocol that works on the memory. */
  protected readonly half: H;
  /** @internal The address of the data, modulo 4096. */
  protected readonly address: number;
  /** @internal */
  protected readonly idle: Idle;
  /** @internal Whether a blocking wait begins with polling. */
  protected polls: boolean;
  /** @internal */
  protected isClosed = false;
  private announced = false;
  private readonly pauses = new Set<() => void>();
  /** @internal What errors call it. */
  protected readonly what: string;
  /** @internal What errors call what it is an end of. */
  protected readonly log: 'ring' | 'topic';

  /** @internal `of`: what it belongs to, where that is no named ring or topic. */
  constructor(
    /** @internal */
    protected readonly native: NativeEndpoint,
    /** @internal */
    protected waitPolicy: WaitPolicy,
    role: 'sender' | 'receiver' | 'publisher' | 'subscriber',
    of: string | undefined,
    make: new (native: NativeEndpoint, memory: Memory) => H,
  ) {
    super();
    this.log = role === 'sender' || role === 'receiver' ? 'ring' : 'topic';
    const owner = of ?? (native.name === null ? 'a ring without a name' : `the ${this.log} '${native.name}'`);
    this.what = `the ${role} of ${owner}`;
    this.polls = call(() => native.polls());
    const memory = call(() => native.memory());
    this.address = memory.address;
    this.half = new make(native, memory);
    const end = this;
    this.idle = new Idle({
      poll: () => this.poll(),
      arm: () => this.arm(),
      descriptor: () => this.descriptor(),
      get spin() {
        return end.waitPolicy === 'spin' ? Infinity : end.polls ? ITERATION_SPIN_MS : 0;
      },
    });
  }

  /** @internal Whether what is waited for is there: cheap, in JavaScript. */
  protected abstract poll(): boolean;

  /** @internal The same by the native half, which tells of it from now on if it is not. */
  protected abstract arm(): boolean;

  /** @internal The readiness descriptor; -1: it has none, and is asked every millisecond. */
  protected descriptor(): number {
    return this.native.descriptor();
  }

  /** The ring's or topic's name; undefined on a bus or a pair. */
  get name(): string | undefined {
    return this.native.name ?? undefined;
  }

  /** Bytes of the data area. */
  get capacity(): number {
    return this.half.capacity;
  }

  /** Every payload begins on a multiple of this many bytes. */
  get align(): number {
    return this.half.align;
  }

  /** Bytes of the ring that are sent and not released, frame headers included. Can be stale. */
  get used(): number {
    this.checkOpen();
    return this.half.used;
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return this.isClosed;
  }

  /** Whether the other side is attached and its process lives. A stopped process is alive. */
  get peerAlive(): boolean {
    return call(() => this.native.peerAlive);
  }

  /** Waits until the other side is attached, has not closed, and its process lives: at once if it is so now. One that
   * came during the wait and went again ends it too: its messages may be there. Resolves with the `peerEpoch`. After
   * ERR_RAMWAY_PEER_DEAD or ERR_RAMWAY_CLOSED of a named ring, which every call says until then,
   * this waits for the successor. It polls up to 20 times a second.
   *
   * ERR_RAMWAY_TIMED_OUT; ERR_RAMWAY_CLOSED if the ring's name was removed, so that nobody can come; on a bus or a pair,
   * where an end is final, ERR_RAMWAY_PEER_DEAD or ERR_RAMWAY_CLOSED at once; ERR_RAMWAY_DETACHED. */
  async waitForPeer(options?: WaitOptions): Promise<number> {
    const before = this.isClosed ? 0 : this.peerEpoch;
    return this.await('waitForPeer', options, this.nobody, () => this.findPeer(0, before));
  }

  /** @internal Waits by polls until somebody is found. */
  protected async await<T>(
    what: string,
    options: WaitOptions | undefined,
    missing: string,
    find: () => T | null,
  ): Promise<T> {
    if (options !== undefined) checkCall(what, options, WAIT_NAMES);
    const { timeout, signal } = options ?? {};
    const until = timeout === undefined ? Infinity : performance.now() + timeout;
    for (let pause = 1; ; pause = Math.min(2 * pause, PEER_PAUSE_MAX_MS)) {
      const found = find();
      if (found !== null) return found;
      const left = until - performance.now();
      if (left <= 0) throw timedOut(missing);
      await this.pauseForPeer(Math.min(pause, left), signal);
    }
  }

  /** `waitForPeer`, blocking the thread. In a worker, unless `allowMainThread`. */
  waitForPeerSync(options?: SyncOptions): number {
    const before = this.isClosed ? 0 : this.peerEpoch;
    return this.awaitSync('waitForPeerSync', options, this.nobody, (milliseconds) =>
      this.findPeer(milliseconds, before),
    );
  }

  /** @internal The same, blocking: `find` waits for so long. */
  protected awaitSync<T>(
    what: string,
    options: SyncOptions | undefined,
    missing: string,
    find: (milliseconds: number) => T | null,
  ): T {
    if (options !== undefined) checkNames(what, options, SYNC_NAMES);
    const deadline = blockUntil(what, options);
    for (;;) {
      const milliseconds = sleepUntil(deadline);
      const found = find(milliseconds);
      if (found !== null) return found;
      if (milliseconds === 0) throw timedOut(missing);
    }
  }

  private get nobody(): string {
    return `${this.what} has no living peer`;
  }

  private findPeer(milliseconds: number, before: number): number | null {
    if (this.isClosed) throw this.detached();
    const epoch = call(() => this.native.waitForPeer(milliseconds));
    if (epoch !== null) return epoch;
    const now = this.peerEpoch;
    return now === before ? null : now;
  }

  /** A pause of {@link waitForPeer}; an abort rejects, a close ends it. */
  private pauseForPeer(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        this.pauses.delete(end);
        signal?.removeEventListener('abort', end);
        if (signal?.aborted) reject(signal.reason);
        else resolve();
      };
      const timer = setTimeout(end, milliseconds);
      if (!this.idle.holds) timer.unref();
      this.pauses.add(end);
      signal?.addEventListener('abort', end, { once: true });
    });
  }

  /** @internal A wait for a peer ends, and sees that this is closed. */
  protected endPauses(): void {
    for (const end of [...this.pauses]) end();
  }

  /** How often the other side has attached; 0: never yet. */
  get peerEpoch(): number {
    return call(() => this.native.peerEpoch);
  }

  /** How often this side has attached, this handle included. */
  get epoch(): number {
    return call(() => this.native.epoch);
  }

  /** How it waits: 'spin' polls in every iteration of the loop (a blocking call: all the time), 'hybrid' for a while, 'block'
   * not at all, before it sleeps. */
  get wait(): WaitPolicy {
    return this.waitPolicy;
  }

  set wait(policy: WaitPolicy) {
    call(() => this.native.setWait(policy));
    this.waitPolicy = policy;
    this.polls = call(() => this.native.polls());
  }

  /** @internal How often the loop had to be woken. */
  get wakes(): number {
    return this.idle.wakes;
  }

  /** A wait keeps the process running (the default). */
  ref(): this {
    this.idle.hold(true);
    return this;
  }

  /** The process may end while this waits. */
  unref(): this {
    this.idle.hold(false);
    return this;
  }

  /** Gives the role up, at once. Again: nothing happens. */
  abstract close(): void;

  /** `close`, once what waits was sent. */
  abstract end(): Promise<void>;

  [Symbol.dispose](): void {
    this.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }

  /** @internal */
  protected checkOpen(): void {
    if (this.isClosed) throw this.detached();
  }

  /** @internal Gives the role up; views of the data are gone by now. `otherwise`: as the native half says. */
  protected giveRoleUp(otherwise: boolean): void {
    this.isClosed = true;
    this.idle.forget();
    const { half } = this;
    const { mapped, positions } = half;
    call(() => this.native.close(mapped, positions, otherwise));
  }

  /** @internal */
  protected detached(): RamwayError {
    return new RamwayError('Detached', `${this.what} is closed`);
  }

  /** @internal 'close', once. */
  protected announce(): void {
    if (this.announced) return;
    this.announced = true;
    process.nextTick(() => (this as EventEmitter).emit('close'));
  }
}
