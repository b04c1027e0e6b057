import type { NativeEndpoint } from '../../native.cjs';
import { call, RamwayError } from '../errors.js';
import { checkNames, type WaitPolicy } from '../options.js';
import { Loop } from '../ring/loops.js';
import { Receiver } from '../ring/receiver.js';
import { SYNC_NAMES, type SyncOptions, WAIT_NAMES, type WaitOptions } from '../waiting/waiting.js';
import { type Policy, TopicConsumer } from './consumer.js';
import { type TopicFrameInfo, type TopicMessage, TopicTaken } from './message.js';

/** How far a subscriber is behind. */
export interface Lag {
  /** Bytes that are published and not released, frame headers and padding included. */
  readonly bytes: number;
  /** Messages that are published and not received. */
  readonly messages: number;
}

/** A subscriber of a topic: a {@link Receiver} that is one of many, used by one thread. It is given copies.
 *
 * ERR_RAMWAY_LAGGED, once and with `lost`, if the publisher has ejected it: the next receive goes on at the oldest message that is
 * left. */
export class Subscriber extends Receiver<TopicMessage, TopicFrameInfo> {
  private kept: TopicMessage | null = null;

  /** @internal */
  constructor(
    native: NativeEndpoint,
    policy: WaitPolicy | undefined,
    /** The label that it was opened with; undefined without one. */
    readonly label: string | undefined,
    private readonly readOnly: boolean,
  ) {
    super(native, policy, undefined, 'subscriber', TopicConsumer);
  }

  private get topic(): TopicConsumer {
    return this.half as TopicConsumer;
  }

  /** How it reads. */
  get policy(): Policy {
    return this.topic.policy;
  }

  /** Messages that it has lost so far: the sum of what its messages and ERR_RAMWAY_LAGGED say. */
  get lost(): number {
    return this.topic.lost(this.taken?.handedOut ?? 0);
  }

  /** How far it is behind, what was received and not released included. Can be stale. */
  get lag(): Lag {
    this.checkOpen();
    return call(() => this.native.lag(this.topic.positions));
  }

  /** The newest message, whatever was received before: the same one again if there is no newer one; null before the first, and
   * where the publisher overwrites it each of 16 times that it is copied. Never waits. What a receive gives next stays as it was,
   * but under the policy 'latest', where that is a message that is newer than this one. It lasts: nothing has to be released. */
  latest(): TopicMessage | null {
    this.checkOpen();
    if (this.kept !== null && this.topic.isNewest()) return this.kept;
    if (this.policy === 'latest') this.giveUp();
    const newest = this.topic.newest();
    if (newest !== null) this.kept = newest;
    return newest;
  }

  /** `recv` in the words of a value that changes: waits for a message that is newer than the last one that this or `latest` gave.
   * ERR_RAMWAY_UNSUPPORTED under another policy than 'latest'. */
  waitNewer(options?: WaitOptions): Promise<TopicMessage> {
    try {
      if (options !== undefined) checkNames('waitNewer', options, WAIT_NAMES);
      this.readsLatest('waitNewer');
    } catch (error) {
      return Promise.reject(error);
    }
    return this.recv(options);
  }

  /** `waitNewer`, blocking the thread. In a worker, unless `allowMainThread`. */
  waitNewerSync(options?: SyncOptions): TopicMessage {
    if (options !== undefined) checkNames('waitNewerSync', options, SYNC_NAMES);
    this.readsLatest('waitNewerSync');
    return this.recvSync(options);
  }

  private readsLatest(what: string): void {
    if (this.policy === 'latest') return;
    const text = `${what} on a subscriber that receives in order: use recv, or open it with the policy 'latest'`;
    throw new RamwayError('Unsupported', `${this.what}: ${text}`);
  }

  /** The newest message each time that the loop asks for one, until the publisher closes: what a display wants. What it leaves out
   * does not count as lost, but under the policy 'latest'. Ends as `messages` does. */
  newest(options?: { signal?: AbortSignal | undefined }): AsyncIterableIterator<TopicMessage> {
    if (options !== undefined) checkNames('newest', options, ['signal']);
    return new NewestLoop(this, options?.signal);
  }

  /** @internal The next message of such a loop; null: none now. */
  nextNewest(): TopicMessage | null {
    this.giveUp();
    if (!this.half.poll()) return null;
    if (this.policy !== 'latest') this.topic.skipToNewest();
    return this.takeOne();
  }

  /** Moves on so that the next message is the newest one, and gives how many that leaves out, which do not count as lost.
   * ERR_RAMWAY_UNSUPPORTED under the policy 'latest', which reads the newest one anyway. */
  skipToNewest(): number {
    this.checkLoop();
    this.giveUp();
    return this.topic.skipToNewest();
  }

  /** Closes a durable subscriber for good: its label and cursor are forgotten, and the publisher no longer waits for it. Of any
   * other it is `close`. */
  unsubscribe(): void {
    this.shut(true);
  }

  /** @internal */
  protected override took(count: number): TopicTaken {
    return new TopicTaken(this.topic, this.native, count, this.giveBack);
  }

  /** @internal One that may not write cannot be woken. */
  protected override descriptor(): number {
    return this.readOnly ? -1 : super.descriptor();
  }
}

/** Gives the newest message each time. */
class NewestLoop extends Loop<TopicMessage, TopicMessage> {
  constructor(
    private readonly subscriber: Subscriber,
    signal: AbortSignal | undefined,
  ) {
    super(subscriber, signal);
  }

  protected override step(): TopicMessage | null {
    return this.subscriber.nextNewest();
  }
}
