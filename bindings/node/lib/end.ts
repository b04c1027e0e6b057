// What the two ends of a ring have in common: the native half, how they wait, who is at the other side.
import { EventEmitter } from 'node:events';
import { call, RamwayError } from './errors.js';
import { Idle } from './idle.js';
import type { WaitPolicy } from './options.js';

/** Milliseconds of looking once a turn before the loop sleeps: about what being woken would cost both sides. */
const SPIN = 0.05;
/** Looks of a blocking call before it asks the native half to block, 5 to 10 ns each. */
export const LOOKS = 4000;

/** What the native halves have in common. */
interface Native {
  readonly name: string | null;
  readonly peerAlive: boolean;
  readonly peerEpoch: number;
  readonly epoch: number;
  descriptor(): number;
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
