// How a handle waits without blocking: for a little while it polls once an iteration of the event loop, then has the
// native half tell it. So a burst costs no wake-up, and the loop is woken once when an idle handle has something to do.
import { clearImmediate, clearTimeout, setImmediate, setInterval, setTimeout } from 'node:timers';
import * as native from '../../native.cjs';
import { call } from '../errors.js';
import { REGION_POLL_INTERVAL_MS } from '../facts.js';
import { begin } from './iteration.js';

/** What is waited for. */
export interface Source {
  /** Whether it is there: cheap, in JavaScript. */
  poll(): boolean;
  /** The same by the native half, which from now on tells it by the descriptor if it is not. Throws if it never will be. */
  arm(): boolean;
  /** The descriptor. Never changes. -1: there is none, and `arm` is called every millisecond. */
  descriptor(): number;
  /** Milliseconds for which polling once an iteration is worth it. */
  readonly spin: number;
}

/** Where polling never found anything in time, one wait in this many begins with it all the same. */
const PROBE = 16;

// Bun and Deno have libuv's names, but not its loop.
const isNode = !('bun' in process.versions) && !('deno' in process.versions);

let lastToken = 0;
// Only handles that wait: one that is not used any more can be collected.
const waiting = new Map<number, Idle>();
const wakeups = new native.Wakeups(isNode, (tokens) => {
  begin();
  for (const token of tokens) waiting.get(token)?.woken();
});

/** Those that poll once an iteration. */
const polling = new Set<Idle>();
let immediate: ReturnType<typeof setImmediate> | null = null;

function pollAll(): void {
  immediate = null;
  begin();
  const now = performance.now();
  // A copy: a handle that is called may wait again, for the next iteration.
  for (const idle of [...polling]) idle.pollOnce(now);
  pollAgain();
}

function pollAgain(): void {
  if (polling.size !== 0) immediate ??= setImmediate(pollAll);
}

// A timer that never fires keeps the runtime running while a handle waits; the descriptors do not, in any of them.
const keeper = setInterval(() => {}, 0x7fffffff);
keeper.unref();
let kept = 0;

function keep(by: 1 | -1): void {
  kept += by;
  if (kept === 0) keeper.unref();
  else if (kept === by) keeper.ref();
}

/** The waiting of one handle, for one thing at a time. */
export class Idle {
  /** How often the native half had to tell. */
  wakes = 0;
  private done: (() => void) | null = null;
  private until = 0;
  /** Waits in a row that polling did not end. */
  private missed = 0;
  private token = 0;
  private watched = -1;
  private held = true;
  private keeps = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly source: Source) {}

  /** Calls `done` once, from the event loop, when there is something: what was waited for, or an error to meet. */
  wait(done: () => void): void {
    this.done = done;
    this.keepIf(this.held);
    const { spin } = this.source;
    const worth = spin !== 0 && (this.missed < 3 || this.missed % PROBE === 0 || spin === Infinity);
    this.until = worth ? performance.now() + spin : 0;
    polling.add(this);
    pollAgain();
  }

  get waits(): boolean {
    return this.done !== null;
  }

  /** Nobody waits any more. */
  cancel(): void {
    this.done = null;
    this.keepIf(false);
    clearTimeout(this.timer);
    waiting.delete(this.token);
    polling.delete(this);
    if (polling.size === 0 && immediate !== null) {
      clearImmediate(immediate);
      immediate = null;
    }
  }

  /** Whether a wait keeps the runtime running. */
  hold(yes: boolean): void {
    this.held = yes;
    if (this.done !== null) this.keepIf(yes);
  }

  get holds(): boolean {
    return this.held;
  }

  /** Before the descriptor is closed. */
  forget(): void {
    this.cancel();
    if (this.token === 0) return;
    if (this.watched >= 0) call(() => wakeups.forget(this.token, this.watched));
    this.token = 0;
  }

  /** @internal One poll, in an iteration of the loop. */
  pollOnce(now: number): void {
    let there = true;
    try {
      there = this.source.poll();
    } catch {
      // The wait is tried again, and meets the same.
    }
    if (there) {
      this.missed = 0;
      this.finish();
    } else if (now >= this.until) {
      this.missed++;
      this.arm();
    }
  }

  /** @internal The descriptor became readable. */
  woken(): void {
    if (this.done === null) return;
    this.wakes++;
    this.arm();
  }

  private arm(): void {
    polling.delete(this);
    let there = true;
    try {
      there = this.source.arm();
      if (!there) {
        if (this.token === 0) {
          // Asked once: an end whose other side is gone refuses every call.
          this.watched = this.source.descriptor();
          this.token = ++lastToken;
        }
        if (this.watched >= 0) {
          waiting.set(this.token, this);
          wakeups.watch(this.token, this.watched);
        } else {
          // What keeps the runtime running is not this timer.
          this.timer = setTimeout(() => this.arm(), REGION_POLL_INTERVAL_MS).unref();
        }
      }
    } catch {
      // The wait is tried again, and meets the same.
      there = true;
    }
    if (there) this.finish();
  }

  private finish(): void {
    const done = this.done;
    this.cancel();
    try {
      done?.();
    } catch (error) {
      // A listener's: it reaches the process, but does not keep other handles from theirs.
      process.nextTick(() => {
        throw error;
      });
    }
  }

  private keepIf(yes: boolean): void {
    if (yes !== this.keeps) keep(yes ? 1 : -1);
    this.keeps = yes;
  }
}
