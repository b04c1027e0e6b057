// What the two ends of a ring have in common: the native half, how they wait, who is at the other side.
import { EventEmitter } from 'node:events';
import { clearTimeout, setTimeout } from 'node:timers';
import { call, RamwayError } from './errors.js';
import { Idle } from './idle.js';
import { checkNames, type WaitPolicy } from './options.js';
import {
  blockUntil,
  checkCall,
  roundUntil,
  SYNC_NAMES,
  type SyncOptions,
  timedOut,
  WAIT_NAMES,
  type WaitOptions,
} from './waiting.js';

/** Milliseconds of looking once a turn before the loop sleeps: about what being woken would cost both sides. */
const SPIN = 0.05;
/** The longest pause between two looks for the other side, in milliseconds. */
const PEER_PAUSE = 50;
/** Looks of a blocking call before it asks the native half to block, 5 to 10 ns each. */
export const LOOKS = 4000;

/** What the native halves have in common. */
interface Native {
  readonly name: string | null;
  readonly peerAlive: boolean;
  readonly peerEpoch: number;
  readonly epoch: number;
  descriptor(): number;
  waitForPeer(milliseconds: number): number | null;
  polls(): boolean;
  setWait(policy: string): void;
}

/** A sender or a receiver. */
export abstract class End<Events extends Record<keyof Events, unknown[]>> extends EventEmitter<Events> {
  /** @internal */
  protected readonly idle: Idle;
  /** @internal Whether a blocking wait begins with looking. */
  protected polls: boolean;
  /** @internal */
  protected isClosed = false;
  private announced = false;
  private readonly pauses = new Set<() => void>();
  /** @internal What errors call it. */
  protected readonly what: string;

  /** @internal `role`: sender or receiver. `of`: what it belongs to, where that is no named ring. */
  constructor(
    private readonly half: Native,
    /** @internal */
    protected policy: WaitPolicy,
    role: string,
    of: string | undefined,
  ) {
    super();
    const owner = of ?? (half.name === null ? 'a ring without a name' : `the ring '${half.name}'`);
    this.what = `the ${role} of ${owner}`;
    this.polls = call(() => half.polls());
    const end = this;
    this.idle = new Idle({
      look: () => this.look(),
      arm: () => this.arm(),
      descriptor: () => half.descriptor(),
      get spin() {
        return end.policy === 'spin' ? Infinity : end.polls ? SPIN : 0;
      },
    });
  }

  /** @internal Whether what is waited for is there: cheap, in JavaScript. */
  protected abstract look(): boolean;

  /** @internal The same by the native half, which tells of it from now on if it is not. */
  protected abstract arm(): boolean;

  /** The ring's name; undefined on a bus or a pair. */
  get name(): string | undefined {
    return this.half.name ?? undefined;
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return this.isClosed;
  }

  /** Whether the other side is attached and its process lives. A stopped process is alive. */
  get peerAlive(): boolean {
    return call(() => this.half.peerAlive);
  }

  /** Waits until the other side is attached, has not closed, and its process lives: at once if it is so now. One that
   * came during the wait and went again ends it too: its messages may be there. Resolves with the `peerEpoch`. After ERR_RAMWAY_PEER_DEAD or ERR_RAMWAY_CLOSED of a named ring, which every call says until then,
   * this waits for the successor. It looks up to 20 times a second.
   *
   * ERR_RAMWAY_TIMED_OUT; ERR_RAMWAY_CLOSED if the ring's name was removed, so that nobody can come; on a bus or a pair,
   * where an end is final, ERR_RAMWAY_PEER_DEAD or ERR_RAMWAY_CLOSED at once; ERR_RAMWAY_DETACHED. */
  async waitForPeer(options?: WaitOptions): Promise<number> {
    if (options !== undefined) checkCall('waitForPeer', options, WAIT_NAMES);
    const { timeout, signal } = options ?? {};
    const until = timeout === undefined ? Infinity : performance.now() + timeout;
    const before = this.isClosed ? 0 : this.peerEpoch;
    for (let pause = 1; ; pause = Math.min(2 * pause, PEER_PAUSE)) {
      const epoch = this.lookForPeer(0, before);
      if (epoch !== null) return epoch;
      const left = until - performance.now();
      if (left <= 0) throw timedOut(this.nobody());
      await this.pauseForPeer(Math.min(pause, left), signal);
    }
  }

  /** `waitForPeer`, blocking the thread. In a worker, unless `allowMainThread`. */
  waitForPeerSync(options?: SyncOptions): number {
    if (options !== undefined) checkNames('waitForPeerSync', options, SYNC_NAMES);
    const deadline = blockUntil('waitForPeerSync', options);
    const before = this.isClosed ? 0 : this.peerEpoch;
    for (;;) {
      const round = roundUntil(deadline);
      const epoch = this.lookForPeer(round, before);
      if (epoch !== null) return epoch;
      if (round === 0) throw timedOut(this.nobody());
    }
  }

  private nobody(): string {
    return `${this.what} has no living peer`;
  }

  private lookForPeer(milliseconds: number, before: number): number | null {
    if (this.isClosed) throw this.detached();
    const epoch = call(() => this.half.waitForPeer(milliseconds));
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

  /** @internal Whoever waits for a peer sees that this is closed. */
  protected endPauses(): void {
    for (const end of [...this.pauses]) end();
  }

  /** How often the other side has attached; 0: never yet. */
  get peerEpoch(): number {
    return call(() => this.half.peerEpoch);
  }

  /** How often this side has attached, this handle included. */
  get epoch(): number {
    return call(() => this.half.epoch);
  }

  /** How it waits: 'spin' looks in every turn of the loop (a blocking call: all the time), 'hybrid' for a while, 'block'
   * not at all, before it sleeps. */
  get wait(): WaitPolicy {
    return this.policy;
  }

  set wait(policy: WaitPolicy) {
    call(() => this.half.setWait(policy));
    this.policy = policy;
    this.polls = call(() => this.half.polls());
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
