import type { NativeEndpoint } from '../../native.cjs';
import { call, invalid } from '../errors.js';
import type { WaitPolicy } from '../options.js';
import { Sender } from '../ring/sender.js';
import type { SyncOptions, WaitOptions } from '../waiting/waiting.js';
import type { Policy } from './consumer.js';
import { TopicProducer } from './producer.js';
import type { Lag } from './subscriber.js';

/** A subscriber, as a publisher sees it at one moment. */
export interface SubscriberInfo {
  readonly slot: number;
  readonly policy: Policy;
  /** Empty if it has none. */
  readonly label: string;
  /** Its cursor stays when it goes. */
  readonly durable: boolean;
  /** Its process lives and has it open. */
  readonly alive: boolean;
  /** The publisher has ejected it, and it has not begun anew. */
  readonly ejected: boolean;
  /** How often the slot was taken. */
  readonly epoch: number;
  /** How far a reliable one is behind; undefined under another policy, which does not say. */
  readonly lag?: Lag;
  /** Messages that it has lost. */
  readonly lost: number;
  /** Milliseconds for which it has kept the publisher waiting without reading anything; undefined if it does not. */
  readonly blocksFor?: number;
}

/** The one publisher of a topic, in the whole system: a {@link Sender} whose log many read, used by one thread. A send waits for
 * the slowest reliable subscriber when the log is full, and for nobody where there is none. No subscriber ever ends it.
 *
 * `waitForPeer` waits for a reliable subscriber, and `peerEpoch` counts the subscribers that came, went, or began anew. */
export class Publisher extends Sender {
  /** @internal */
  constructor(native: NativeEndpoint, policy: WaitPolicy | undefined, timestamps: boolean) {
    super(native, policy, undefined, 'publisher', TopicProducer);
    this.topic.timestamps = timestamps;
  }

  private get topic(): TopicProducer {
    return this.half as TopicProducer;
  }

  /** The number of the last published message; 0 before the first. Exact up to 2^53. */
  get seq(): number {
    this.checkOpen();
    return this.topic.isEmpty ? 0 : call(() => this.native.seq(this.topic.positions));
  }

  override get lastTag(): bigint | null {
    return this.topic.isEmpty ? null : super.lastTag;
  }

  /** Lets the next message's number be `lost` higher than it would be: every subscriber counts that many as lost before it. For
   * bridges and replays, whose own source has a gap. */
  skipSeq(lost: number): void {
    this.checkOpen();
    if (!Number.isSafeInteger(lost) || lost < 0) {
      throw invalid(`lost: ${String(lost)} is not a whole number of messages from 0 up`);
    }
    call(() => this.native.skipSeq(this.topic.positions, lost));
    this.topic.heed();
  }

  /** Those who have a slot: every reliable subscriber, and of the others those that could take one. A system call for each. */
  subscribers(): SubscriberInfo[] {
    this.checkOpen();
    const all = call(() => this.native.subscribers(this.topic.positions));
    return all as unknown as SubscriberInfo[];
  }

  /** Waits until so many reliable subscribers are attached and their processes live: at once if they are there. It polls up to
   * 20 times a second. ERR_RAMWAY_INVALID_ARGUMENT if the topic has fewer slots, ERR_RAMWAY_UNSUPPORTED if it takes no reliable
   * subscribers, ERR_RAMWAY_CLOSED if its name was removed. */
  waitForSubscribers(count: number, options?: WaitOptions): Promise<void> {
    return this.await('waitForSubscribers', options, this.tooFew(count), () => this.find(count, 0)).then(() => {});
  }

  /** `waitForSubscribers`, blocking the thread. In a worker, unless `allowMainThread`. */
  waitForSubscribersSync(count: number, options?: SyncOptions): void {
    this.awaitSync('waitForSubscribersSync', options, this.tooFew(count), (ms) => this.find(count, ms));
  }

  private tooFew(count: number): string {
    return `${this.what} has fewer than ${String(count)} reliable subscribers`;
  }

  private find(count: number, milliseconds: number): true | null {
    this.checkOpen();
    if (!Number.isInteger(count) || count < 0 || count > 0xffff_ffff) {
      throw invalid(`count: ${String(count)} is not a whole number of subscribers`);
    }
    return call(() => this.native.waitForSubscribers(this.topic.positions, count, milliseconds)) || null;
  }
}
