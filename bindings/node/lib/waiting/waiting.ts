// How long a call waits: time-outs and abort signals, for the calls that return promises and for those that block.
import { isMainThread } from 'node:worker_threads';
import { invalid, RamwayError } from '../errors.js';
import { POLL_INTERVAL_MS } from '../facts.js';
import { checkNames } from '../options.js';

/** How long a call that returns a promise waits. */
export interface WaitOptions {
  /** Milliseconds; none: as long as it takes; 0: one poll. */
  timeout?: number | undefined;
  /** Gives the wait up: the promise rejects with the signal's reason, and nothing was sent or taken. */
  signal?: AbortSignal | undefined;
}

/** How long a blocking call waits, and where. */
export interface SyncOptions {
  /** Milliseconds; none: as long as it takes; 0: one poll. */
  timeout?: number | undefined;
  /** Blocks the main thread too, whose event loop stands still meanwhile. */
  allowMainThread?: boolean | undefined;
}

/** What setTimeout takes at most; a time beyond it is as good as none. */
export const TIMER_MAX = 0x7fffffff;

/** Options of calls: their names. What is called often gets its options checked here, the rest by `read`. */
export const WAIT_NAMES = ['timeout', 'signal'] as const;
export const SYNC_NAMES = ['timeout', 'allowMainThread'] as const;

function checkTimeout(timeout: number | undefined): void {
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout >= 0)) {
    throw invalid(`timeout: ${String(timeout)} is not a number of milliseconds from 0 up`);
  }
}

/** Throws if an option is not one of `names`, if a wait's are wrong, or if the signal was aborted already. */
export function checkCall(what: string, options: object, names: readonly string[]): void {
  checkNames(what, options, names);
  checkWait(options);
}

/** Throws if the options are wrong or the signal was aborted already. */
export function checkWait(options: WaitOptions): void {
  checkTimeout(options.timeout);
  const signal = options.signal;
  if (signal === undefined) return;
  if (!(signal instanceof AbortSignal)) throw invalid('signal: expected an AbortSignal');
  signal.throwIfAborted();
}

/** `what` says which handle waited, and what did not come. */
export function timedOut(what: string): RamwayError {
  return new RamwayError('TimedOut', `the time was up: ${what}`);
}

/** Calls `expire` with the reason once the time is up or the signal aborts, unless what it returns was called before. */
function limit(options: WaitOptions | undefined, what: () => string, expire: (reason: unknown) => void): () => void {
  if (options === undefined) return nothing;
  const { timeout, signal } = options;
  if ((timeout === undefined || timeout > TIMER_MAX) && signal === undefined) return nothing;
  let timer: ReturnType<typeof setTimeout> | undefined;
  if (timeout !== undefined && timeout <= TIMER_MAX) {
    const until = performance.now() + timeout;
    const expired = () => {
      // A timer counts from the beginning of the loop's iteration: it can be early by as long as that has lasted.
      const left = until - performance.now();
      if (left > 0) timer = setTimeout(expired, left);
      else expire(timedOut(what()));
    };
    timer = setTimeout(expired, timeout);
  }
  const aborted = () => expire(signal?.reason);
  signal?.addEventListener('abort', aborted, { once: true });
  return () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', aborted);
  };
}

function nothing(): void {}

/** One call that waits. It ends once: by its value, by a reason not to go on, or by its time-out or signal. */
export class Waiter<T> {
  /** Ends the time-out and the signal alone. */
  readonly stop: () => void;

  /** `late` is for {@link timedOut}, `left` is called before it ends. `expire`: in place of rejecting once the time is up
   * or the signal aborts. */
  constructor(
    private readonly resolved: (value: T) => void,
    private readonly rejected: (reason: unknown) => void,
    options: WaitOptions | undefined,
    late: () => string,
    private readonly left: () => void,
    expire: (reason: unknown) => void = (reason) => this.reject(reason),
  ) {
    this.stop = limit(options, late, expire);
  }

  resolve(value: T): void {
    this.stop();
    this.left();
    this.resolved(value);
  }

  reject(reason: unknown): void {
    this.stop();
    this.left();
    this.rejected(reason);
  }
}

/** Throws where blocking is not allowed; else gives when the time is up, on performance.now()'s clock. */
export function blockUntil(what: string, options: SyncOptions | undefined): number {
  checkTimeout(options?.timeout);
  const allowed = options?.allowMainThread;
  if (allowed !== undefined && typeof allowed !== 'boolean') {
    throw invalid(`${what}: the option 'allowMainThread' is ${String(allowed)}, expected true or false`);
  }
  if (isMainThread && allowed !== true) {
    throw new RamwayError(
      'Unsupported',
      `${what} would block the main thread's event loop: call it in a worker, use ${what.replace('Sync', '')}, or say allowMainThread: true`,
    );
  }
  return options?.timeout === undefined ? Infinity : performance.now() + options.timeout;
}

/** Milliseconds to block now; 0: the time is up. */
export function sleepUntil(deadline: number): number {
  // A worker can be terminated between two sleeps of native code.
  return Math.max(0, Math.min(POLL_INTERVAL_MS, deadline - performance.now()));
}
