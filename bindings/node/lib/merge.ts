// The messages of many receivers in one loop. Only those that have something are looked at: the others wait by their
// descriptors, which costs nothing while nothing comes.
import { isEnd } from './errors.js';
import { read, SIGNAL } from './options.js';
import type { Message } from './ring/message.js';
import { Receiver } from './ring/receiver.js';
import * as iteration from './waiting/iteration.js';

/** The message type of a receiver or subscriber. */
export type MessageOf<R> = R extends Receiver<infer M> ? M : never;

/** How a {@link merge} ends early. */
export interface MergeOptions {
  /** Ends the loop with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** The messages of several receivers and subscribers as they come, each with the one that it is of; of several that have messages,
 * one after the other. Each is valid until that one's next message is asked for. One whose sender closes drops out, and the loop
 * ends when all have. What else ends one of them ends the loop as an error. While it runs nobody else may receive from them
 * (ERR_RAMWAY_BUSY); `break` leaves them open. The last argument may be options. */
export function merge<R extends Receiver<Message>>(
  ...sources: (R | MergeOptions)[]
): AsyncIterableIterator<[R, MessageOf<R>]> {
  const last = sources.at(-1);
  const options = last instanceof Receiver || last === undefined ? undefined : last;
  const given = (options === undefined ? sources : sources.slice(0, -1)) as R[];
  return new Merge(given, read('merge', SIGNAL, options).signal);
}

class Merge<R extends Receiver<Message>> implements AsyncIterableIterator<[R, MessageOf<R>]> {
  /** Those that may have a message, the one that gave one last at the end; true: it was woken. */
  private readonly ready: R[] = [];
  private readonly woken = new Set<R>();
  /** Those that have not ended. */
  private readonly open = new Set<R>();
  private begun = false;
  private failed: unknown;
  private waiting: { resolve(step: IteratorResult<[R, MessageOf<R>]>): void; reject(reason: unknown): void } | null =
    null;
  private readonly abort = () => this.fail(this.signal?.reason);

  constructor(
    private readonly sources: R[],
    private readonly signal: AbortSignal | undefined,
  ) {}

  next(): Promise<IteratorResult<[R, MessageOf<R>]>> {
    try {
      if (!this.begun) this.begin();
      const step = this.step();
      if (step !== null) return Promise.resolve(step);
    } catch (error) {
      this.end();
      return Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      // It may wait only because the loop's iteration is over.
      if (this.ready.length !== 0) iteration.over().then(this.goOn);
    });
  }

  return(): Promise<IteratorResult<[R, MessageOf<R>]>> {
    this.begun = true;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  private begin(): void {
    this.begun = true;
    this.signal?.throwIfAborted();
    for (const source of this.sources) {
      source.lead({ reject: (reason) => this.fail(reason) });
      this.open.add(source);
      this.ready.push(source);
    }
    this.signal?.addEventListener('abort', this.abort, { once: true });
  }

  /** The next message; null: none now, or the loop's iteration is over. */
  private step(): IteratorResult<[R, MessageOf<R>]> | null {
    if (this.failed !== undefined) throw this.failed;
    for (;;) {
      if (this.open.size === 0) {
        this.end();
        return { done: true, value: undefined };
      }
      const source = this.ready[0];
      if (source === undefined || iteration.isOver(source.work)) return null;
      this.ready.shift();
      const message = this.take(source);
      if (message === null) continue;
      this.ready.push(source);
      return { done: false, value: [source, message as MessageOf<R>] };
    }
  }

  /** The next message of one; null: it waits, or has ended. */
  private take(source: R): Message | null {
    try {
      const message =
        source.nextMessage() ?? (this.woken.delete(source) && source.askForMore() ? source.nextMessage() : null);
      if (message === null) source.park(() => this.wake(source));
      return message;
    } catch (error) {
      if (!isEnd(error)) throw error;
      this.open.delete(source);
      source.lead(null);
      return null;
    }
  }

  private wake(source: R): void {
    this.woken.add(source);
    this.ready.push(source);
    this.goOn();
  }

  private readonly goOn = (): void => {
    const { waiting } = this;
    if (waiting === null) return;
    try {
      const step = this.step();
      if (step === null) {
        if (this.ready.length !== 0) iteration.over().then(this.goOn);
        return;
      }
      this.waiting = null;
      waiting.resolve(step);
    } catch (error) {
      this.fail(error);
    }
  };

  private fail(reason: unknown): void {
    const { waiting } = this;
    this.waiting = null;
    this.end();
    if (waiting !== null) waiting.reject(reason);
    // Told by the next step.
    else this.failed = reason;
  }

  private end(): void {
    this.signal?.removeEventListener('abort', this.abort);
    const open = [...this.open];
    this.open.clear();
    this.ready.length = 0;
    for (const source of open) source.lead(null);
  }
}
