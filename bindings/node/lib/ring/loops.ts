// `for await` over a receiver: iterators of their own, since a generator costs twice as much a step (docs/adr/0021).

import { isEnd, RamwayError } from '../errors.js';
import * as iteration from '../waiting/iteration.js';
import { checkWait } from '../waiting/waiting.js';
import type { Batch } from './batch.js';
import type { Message } from './message.js';
import type { Receiver } from './receiver.js';

/** A loop over a receiver, which ends at the sender's close. A receiver that is closed here ends it by an error: half a
 * stream is not to pass for the whole of it. */
export abstract class Loop<T, M extends Message> implements AsyncIterableIterator<T> {
  private done = false;

  constructor(
    protected readonly receiver: Receiver<M>,
    private readonly signal: AbortSignal | undefined,
  ) {
    if (signal !== undefined) checkWait({ signal });
  }

  protected abstract step(): T | null;

  next(): Promise<IteratorResult<T>> {
    if (this.done) return Promise.resolve({ done: true, value: undefined });
    try {
      this.signal?.throwIfAborted();
      this.receiver.checkLoop();
      if (!iteration.isOver(this.receiver.work)) {
        const value = this.step();
        if (value !== null) return Promise.resolve({ done: false, value });
      }
    } catch (error) {
      return this.fail(error);
    }
    return this.receiver
      .later(() => this.step(), this.signal)
      .then(
        (value) => ({ done: false, value }),
        (error) => this.fail(error),
      );
  }

  private fail(error: unknown): Promise<IteratorResult<T>> {
    this.done = true;
    const kind = error instanceof RamwayError ? error.kind : '';
    // What another receive has is not this loop's.
    if (!this.receiver.closed && kind !== 'Busy') this.receiver.giveUp();
    if (isEnd(error)) return Promise.resolve({ done: true, value: undefined });
    return Promise.reject(error);
  }

  return(): Promise<IteratorResult<T>> {
    this.done = true;
    if (!this.receiver.closed) this.receiver.giveUp();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

/** Gives each message, which is done with when the next one is asked for. */
export class MessageLoop<M extends Message> extends Loop<M, M> {
  protected override step(): M | null {
    return this.receiver.nextMessage();
  }
}

/** Gives batches, each of which is released when the next one is asked for. */
export class BatchLoop<M extends Message> extends Loop<Batch<M>, M> {
  constructor(
    receiver: Receiver<M>,
    private readonly max: number,
    signal: AbortSignal | undefined,
  ) {
    super(receiver, signal);
  }

  protected override step(): Batch<M> | null {
    return this.receiver.nextBatch(this.max);
  }
}
