// How long a call waits: time-outs and abort signals, for the calls that return promises and for those that block.
import { isMainThread } from 'node:worker_threads';
import { invalid, RamwayError } from './errors.js';

/** How long a call that returns a promise waits. */
export interface WaitOptions {
  /** Milliseconds; none: as long as it takes; 0: one look. */
  timeout?: number | undefined;
  /** Gives the wait up: the promise rejects with the signal's reason, and nothing was sent or taken. */
  signal?: AbortSignal | undefined;
}

/** How long a blocking call waits, and where. */
export interface SyncOptions {
  /** Milliseconds; none: as long as it takes; 0: one look. */
  timeout?: number | undefined;
  /** Blocks the main thread too, whose event loop stands still meanwhile. */
  allowMainThread?: boolean | undefined;
}

/** What setTimeout takes at most; a time beyond it is as good as none. */
const TIMER_MAX = 0x7fffffff;
/** Milliseconds that the native half blocks at a time: a worker can be terminated in between. */
export const ROUND = 100;

function checkTimeout(timeout: number | undefined): void {
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout >= 0)) {
    throw invalid(`timeout: ${String(timeout)} is not a number of milliseconds from 0 up`);
  }
}

/** Throws if the options are wrong or the signal was aborted already. */
export function checkWait(options: WaitOptions): void {
  checkTimeout(options.timeout);
  const signal = options.signal;
  if (signal == null) return;
  if (!(signal instanceof AbortSignal)) throw invalid('signal: expected an AbortSignal');
  signal.throwIfAborted();
}

export function timedOut(): RamwayError {
  return new RamwayError('TimedOut', 'the time was up');
}

/** Calls `expire` with the reason once the time is up or the signal aborts, unless what it returns was called before. */
export function limit(options: WaitOptions | undefined, expire: (reason: unknown) => void): () => void {
  if (options == null) return nothing;
  const { timeout, signal } = options;
  if ((timeout === undefined || timeout > TIMER_MAX) && signal == null) return nothing;
  let timer: ReturnType<typeof setTimeout> | undefined;
  if (timeout !== undefined && timeout <= TIMER_MAX) {
    const until = performance.now() + timeout;
    const ring = () => {
      // A timer counts from the beginning of the loop's turn: it can be early by as long as that has lasted.
      const left = until - performance.now();
      if (left > 0) timer = setTimeout(ring, left);
      else expire(timedOut());
    };
    timer = setTimeout(ring, timeout);
  }
  const aborted = () => expire(signal?.reason);
  signal?.addEventListener('abort', aborted, { once: true });
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', aborted);
  };
}

function nothing(): void {}

/** Throws where blocking is not allowed; else gives when the time is up, on performance.now()'s clock. */
export function blockUntil(what: string, options: SyncOptions | undefined): number {
  checkTimeout(options?.timeout);
  if (isMainThread && options?.allowMainThread !== true) {
    throw new RamwayError(
      'Unsupported',
      `${what} would block the main thread's event loop: call it in a worker, use ${what.replace('Sync', '')}, or say allowMainThread: true`,
    );
  }
  return options?.timeout === undefined ? Infinity : performance.now() + options.timeout;
}

/** Milliseconds to block now; 0: the time is up. */
export function roundUntil(deadline: number): number {
  return Math.max(0, Math.min(ROUND, deadline - performance.now()));
}
