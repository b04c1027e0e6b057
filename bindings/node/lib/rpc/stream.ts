// Calls whose reply is a stream.
import { isTimeOut, RamwayError } from '../errors.js';
import { checkCall, timedOut, WAIT_NAMES, Waiter, type WaitOptions } from '../waiting/waiting.js';
import { cancelled, onAbort, ownedBy, type UnderWay } from './call.js';
import type { RpcClient } from './client.js';
import type { Reply } from './reply.js';

type Result = IteratorResult<Reply, undefined>;
const OVER: Result = { done: true, value: undefined };

/** @internal What its client knows of a {@link RpcStream}: so that one that is forgotten can be collected. */
export class Elements implements UnderWay {
  /** There may be something to take. */
  private ready = false;
  /** How it ended. */
  over: { reason: unknown } | { complete: true } | null = null;
  private waiter: Waiter<Result> | null = null;
  private readonly stop: (() => void) | null;

  constructor(
    readonly client: RpcClient,
    private readonly place: number,
    signal: AbortSignal | undefined,
  ) {
    this.stop = onAbort(signal, (reason) => this.giveUp(reason));
  }

  checkAlone(): void {
    if (this.waiter !== null) throw new RamwayError('Busy', 'another call waits for the next element of this stream');
  }

  wait(options: WaitOptions | undefined): Promise<Result> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter<Result> = new Waiter(
        resolve,
        reject,
        options,
        () => this.nothing,
        () => {
          this.waiter = null;
          this.client.streamWaits(false);
        },
        (reason) => {
          // What has come at the same time says more than that the time is up.
          if (isTimeOut(reason)) this.client.look();
          if (this.waiter === waiter) waiter.reject(reason);
        },
      );
      this.waiter = waiter;
      this.client.streamWaits(true);
    });
  }

  changed(): void {
    this.ready = true;
    if (this.waiter === null) return;
    try {
      const result = this.take();
      if (result !== null) this.waiter?.resolve(result);
    } catch (error) {
      // Whoever waits may have been told.
      this.waiter?.reject(error);
    }
  }

  end(_: Reply): void {
    this.finish({ complete: true });
  }

  fail(reason: unknown): void {
    this.finish({ reason });
    this.waiter?.reject(reason);
  }

  get nothing(): string {
    return `no element of a stream came from ${this.client.what}`;
  }

  /** What is there by what is known. */
  take(): Result | null {
    if (this.over === null && this.ready) {
      const element = this.client.takeElement(this.place, this);
      if (element !== null) return { done: false, value: element };
      this.ready = false;
    }
    if (this.over === null) return null;
    if ('reason' in this.over) throw this.over.reason;
    return OVER;
  }

  leave(): void {
    if (this.over !== null) return;
    this.client.letGo(this.place);
    this.finish({ complete: true });
    this.waiter?.resolve(OVER);
  }

  giveUp(reason: unknown): void {
    if (this.over !== null) return;
    this.client.letGo(this.place);
    this.fail(reason);
  }

  /** Nobody has the stream any more; but its next element may be awaited. */
  forgotten(): void {
    if (this.waiter === null) this.leave();
  }

  private finish(over: { reason: unknown } | { complete: true }): void {
    this.over = over;
    this.stop?.();
  }
}

/**
 * The elements of a call whose reply is a stream. At most `window` of them are under way: who reads slowly stops this
 * stream's handler, and nothing else. Leaving the loop before its end cancels the call.
 *
 * ```js
 * for await (const { body } of client.stream('Store.Scan', prefix)) show(body);
 * ```
 */
export class RpcStream implements AsyncIterableIterator<Reply, undefined>, Disposable, AsyncDisposable {
  /** @internal */
  constructor(private readonly elements: Elements) {
    ownedBy(this, elements);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next element, or that the stream is complete. Rejects with a {@link CallError}, again at every later call. With
   * ERR_RAMWAY_TIMED_OUT (no `CallError`) or an abort this wait ends, and the stream goes on. One waits at a time
   * (ERR_RAMWAY_BUSY). */
  next(options?: WaitOptions): Promise<Result> {
    const { elements } = this;
    try {
      if (options !== undefined) checkCall('next', options, WAIT_NAMES);
      elements.checkAlone();
      const result = elements.take() ?? (options?.timeout === 0 ? this.tryNext() : null);
      if (result !== null) return Promise.resolve(result);
      if (options?.timeout === 0) throw timedOut(elements.nothing);
    } catch (error) {
      return Promise.reject(error);
    }
    return elements.wait(options);
  }

  /** The next element if it is there, or that the stream is complete; null if neither is so now. Throws as `next`. */
  tryNext(): Result | null {
    const { elements } = this;
    elements.checkAlone();
    const result = elements.take();
    if (result !== null) return result;
    elements.client.look();
    return elements.take();
  }

  /** Whether it has ended: it is complete, has failed or was cancelled, and what came before was taken. */
  get done(): boolean {
    return this.elements.over !== null;
  }

  /** Cancels the call, and tells the server. Elements that were not taken are thrown away; a `next` that waits, and every
   * later one, is ERR_RAMWAY_CANCELLED. */
  cancel(): void {
    this.elements.giveUp(cancelled());
  }

  /** What a loop calls that is left before its end: cancels the call. */
  return(): Promise<Result> {
    this.elements.leave();
    return Promise.resolve(OVER);
  }

  [Symbol.dispose](): void {
    this.elements.leave();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.elements.leave();
  }
}
