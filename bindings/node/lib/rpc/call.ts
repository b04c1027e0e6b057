// Calls under way, as their client knows them and as their owners hold them.
import type { Data } from '../bus/streams.js';
import { isTimeOut } from '../errors.js';
import { checkCall, WAIT_NAMES, Waiter, type WaitOptions } from '../waiting/waiting.js';
import type { RpcClient } from './client.js';
import { CallError } from './errors.js';
import type { Reply } from './reply.js';

/** What is sent with a call besides its method and its body. */
export interface CallOptions {
  /** The call's time limit in milliseconds, on this side and on the server's; none: as long as it takes; 0: it is not sent. */
  timeout?: number | undefined;
  /** Cancels the call, and tells the server: it ends with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Metadata: bytes that the application defines (a trace, a token). Default none. */
  meta?: Data | undefined;
}

/** What is sent with a call whose reply is a stream. */
export interface StreamOptions extends CallOptions {
  /** How many elements may be under way, at least 1. Default 16. */
  window?: number | undefined;
}

/** What is sent with a call that blocks. */
export interface CallSyncOptions {
  /** The call's time limit in milliseconds; none: as long as it takes; 0: it is not sent. */
  timeout?: number | undefined;
  /** Metadata: bytes that the application defines. Default none. */
  meta?: Data | undefined;
  /** Blocks the main thread too, whose event loop stands still meanwhile. */
  allowMainThread?: boolean | undefined;
}

/** @internal A call of a client. */
export interface UnderWay {
  /** Its reply. */
  end(reply: Reply): void;
  /** It has none. */
  fail(reason: unknown): void;
  /** Of a stream: it has something to be taken. */
  changed?(): void;
}

/** @internal The error of a call that its owner has cancelled. */
export function cancelled(): CallError {
  const text = 'this side cancelled the call';
  return new CallError('Cancelled', text, true, { status: 'Cancelled', applicationCode: 0, text });
}

/** @internal Calls `abort` with the signal's reason when it aborts, unless what this returns is called before. */
export function onAbort(signal: AbortSignal | undefined, abort: (reason: unknown) => void): (() => void) | null {
  if (signal === undefined) return null;
  const aborted = () => abort(signal.reason);
  signal.addEventListener('abort', aborted, { once: true });
  return () => signal.removeEventListener('abort', aborted);
}

/** @internal A call whose promise is all that there is. */
export class Called implements UnderWay {
  private readonly stop: (() => void) | null;

  constructor(
    client: RpcClient,
    place: number,
    signal: AbortSignal | undefined,
    private readonly resolve: (reply: Reply) => void,
    private readonly reject: (reason: unknown) => void,
  ) {
    this.stop = onAbort(signal, (reason) => {
      client.letGo(place);
      this.reject(reason);
    });
  }

  end(reply: Reply): void {
    this.stop?.();
    this.resolve(reply);
  }

  fail(reason: unknown): void {
    this.stop?.();
    this.reject(reason);
  }
}

/** @internal What its client knows of a {@link Pending}: so that one that is forgotten can be collected. */
export class Started implements UnderWay {
  outcome: { reply: Reply } | { reason: unknown } | null = null;
  private promise: Promise<Reply> | null = null;
  private settle: { resolve(reply: Reply): void; reject(reason: unknown): void } | null = null;
  private readonly waiting = new Set<Waiter<Reply>>();
  private readonly stop: (() => void) | null;

  constructor(
    readonly client: RpcClient,
    private readonly place: number,
    signal: AbortSignal | undefined,
  ) {
    this.stop = onAbort(signal, (reason) => this.giveUp(reason));
  }

  get reply(): Promise<Reply> {
    this.promise ??= new Promise((resolve, reject) => {
      if (this.outcome === null) this.settle = { resolve, reject };
      else if ('reply' in this.outcome) resolve(this.outcome.reply);
      else reject(this.outcome.reason);
    });
    return this.promise;
  }

  wait(options: WaitOptions | undefined): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter<Reply> = new Waiter(
        resolve,
        reject,
        options,
        () => `no reply came from ${this.client.what}`,
        () => this.waiting.delete(waiter),
        (reason) => {
          // What has come at the same time says more than that the time is up.
          if (isTimeOut(reason)) this.client.look();
          if (this.waiting.has(waiter)) waiter.reject(reason);
        },
      );
      this.waiting.add(waiter);
    });
  }

  end(reply: Reply): void {
    this.outcome = { reply };
    this.stop?.();
    this.settle?.resolve(reply);
    for (const waiter of [...this.waiting]) waiter.resolve(reply);
  }

  fail(reason: unknown): void {
    this.outcome = { reason };
    this.stop?.();
    this.settle?.reject(reason);
    for (const waiter of [...this.waiting]) waiter.reject(reason);
  }

  giveUp(reason: unknown): void {
    if (this.outcome !== null) return;
    this.client.letGo(this.place);
    this.fail(reason);
  }

  /** Nobody has the call any more; but a promise of its reply may be awaited. */
  forgotten(): void {
    if (this.promise === null && this.waiting.size === 0) this.giveUp(cancelled());
  }
}

// Weak: a call that is under way is held by its client, and one that is over needs nothing.
const owners = new FinalizationRegistry((call: WeakRef<Forgettable>) => call.deref()?.forgotten());

interface Forgettable {
  forgotten(): void;
}

/** @internal Tells the call when its owner was collected. */
export function ownedBy(owner: object, call: Forgettable): void {
  owners.register(owner, new WeakRef(call));
}

/**
 * A call that is under way: `await` it, look whether it is `done`, or `cancel` it.
 *
 * ```js
 * using pending = client.start('Store.Get', key); // cancelled when the block is left before it has ended
 * const reply = await pending;
 * ```
 */
export class Pending implements PromiseLike<Reply>, Disposable {
  /** @internal */
  constructor(private readonly call: Started) {
    ownedBy(this, call);
  }

  /** The reply; rejects with a {@link CallError}. */
  get reply(): Promise<Reply> {
    return this.call.reply;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited as a whole.
  then<A = Reply, B = never>(
    fulfilled?: ((reply: Reply) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.call.reply.then(fulfilled, rejected);
  }

  /** Whether the call has ended: with a reply, an error, or because it was cancelled. */
  get done(): boolean {
    if (this.call.outcome === null) this.call.client.look();
    return this.call.outcome !== null;
  }

  /** The reply if it is there, else null. Throws what `await` would. */
  tryReply(): Reply | null {
    if (!this.done) return null;
    const outcome = this.call.outcome!;
    if ('reply' in outcome) return outcome.reply;
    throw outcome.reason;
  }

  /** Waits for the reply for a while: ERR_RAMWAY_TIMED_OUT (no `CallError`) and an abort end this wait, and the call goes on. */
  wait(options?: WaitOptions): Promise<Reply> {
    try {
      if (options !== undefined) checkCall('wait', options, WAIT_NAMES);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.call.outcome === null ? this.call.wait(options) : this.call.reply;
  }

  /** Cancels the call, and tells the server: its reply is ERR_RAMWAY_CANCELLED. One that has ended stays as it is. */
  cancel(): void {
    this.call.giveUp(cancelled());
  }

  [Symbol.dispose](): void {
    this.cancel();
  }
}
