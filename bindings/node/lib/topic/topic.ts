// Named topics: what there is to know before one of its ends is opened.
import * as native from '../../native.cjs';
import { call, invalid } from '../errors.js';
import {
  nameOf,
  PUBLISHER,
  PUBLISHER_SYNC,
  type Read,
  read,
  refuseIdle,
  SUBSCRIBER,
  SUBSCRIBER_SYNC,
  TOPIC,
  type TopicOptions,
} from '../options.js';
import { opening } from '../waiting/opening.js';
import { blockUntil, type SyncOptions, type WaitOptions } from '../waiting/waiting.js';
import type { Policy } from './consumer.js';
import { Publisher } from './publisher.js';
import { Subscriber } from './subscriber.js';

/** What a publisher does besides sending. */
export interface PublisherOptions {
  /** Milliseconds, more than 0: a reliable subscriber that has kept it waiting for so long without reading anything is ejected. It
   * asks for `mayEject`; ERR_RAMWAY_UNSUPPORTED if the topic exists without it. Without this it waits as long as the process lives. */
  ejectAfter?: number | undefined;
  /** Every message says when it was sent, by the wall clock (some 0.1 µs a message). Default false. */
  timestamps?: boolean | undefined;
}

/** What a subscriber is called, and where it begins. */
export interface SubscriberOptions {
  /** At the oldest message that is intact (a reliable one's default), or after the newest one (a lossy one's). */
  start?: 'oldest' | 'now' | undefined;
  /** Begins with up to so many messages that were published before, as many as are intact. */
  history?: number | undefined;
  /** Begins after the message with this number, or at the oldest intact one, which then says how many were lost. A number that the
   * topic has not reached begins after the newest message. */
  afterSeq?: number | undefined;
  /** 1 to 64 bytes of UTF-8: a name for those who watch, and what `durable` finds its cursor by. A reliable subscriber's is its
   * alone while it is attached (ERR_RAMWAY_BUSY). */
  label?: string | undefined;
  /** Of a reliable one with a label: its cursor stays when it closes or dies, and the next one with the label goes on there. The
   * publisher waits for it all the while, also when nobody is there: see {@link Subscriber.unsubscribe}. */
  durable?: boolean | undefined;
  /** Of one that nobody waits for: opens the file only for reading, as another user may. It is seen by nobody, and checks every
   * millisecond while it waits. `Topic.open` only. */
  readOnly?: boolean | undefined;
}

type Intent = 'create' | 'open' | 'openOrCreate';
type Settings = Read<typeof TOPIC>;

/**
 * A named topic: one publisher, any number of subscribers, each with its own policy. Nothing is opened before one of its ends is
 * asked for. Names are as of a {@link Ring}. Whichever side comes first makes the topic; it stays while a process uses it, a durable
 * subscriber has not received everything, or it is persistent.
 */
export class Topic {
  /** As it was given. */
  readonly name: string;
  readonly #intent: Intent;
  readonly #settings: Settings;

  private constructor(intent: Intent, name: unknown, options: unknown) {
    const what = `Topic.${intent}`;
    this.name = nameOf(what, name);
    this.#intent = intent;
    this.#settings = read(what, TOPIC, options);
    if (intent !== 'create') refuseIdle(what, this.#settings, intent === 'openOrCreate');
  }

  /** A topic that must be new: ERR_RAMWAY_ALREADY_EXISTS if a process uses the name, if it holds what a durable subscriber has not
   * received (unless `discard` is set), or if something else has it. What dead processes left is replaced. */
  static create(name: string, options?: TopicOptions): Topic {
    return new Topic('create', name, options);
  }

  /** A topic that exists, also one that dead processes left. ERR_RAMWAY_NOT_FOUND if there is none within `timeout`. */
  static open(name: string, options?: TopicOptions): Topic {
    return new Topic('open', name, options);
  }

  /** A topic that is opened if it exists and made if not. ERR_RAMWAY_INVALID_ARGUMENT if it exists with another capacity, alignment
   * or number of slots than was asked for, or without a property that was asked for. */
  static openOrCreate(name: string, options?: TopicOptions): Topic {
    return new Topic('openOrCreate', name, options);
  }

  /** The publisher, which goes on after what an earlier one published. ERR_RAMWAY_BUSY if the topic has one, in any process.
   * `timeout` takes the place of the topic's. */
  async publisher(options?: PublisherOptions & WaitOptions): Promise<Publisher> {
    const { signal, ...more } = read('Topic.publisher', PUBLISHER, options);
    const settings = this.#with(more);
    const open = async (attempt: native.Attempt) => {
      const end = await native.openTopic(attempt, true, this.#intent, this.name, settings);
      return new Publisher(end, settings.wait, more.timestamps === true);
    };
    // An end of the stream that was not meant reaches no subscriber.
    return opening(signal, open, (publisher) => publisher.abandon());
  }

  /** A subscriber. 'reliable' (the default): the publisher waits for it, and it sees every message. 'lossy': the publisher never
   * waits for it, and it sees every message that it is fast enough for, and how many it lost. 'latest': it reads the newest one.
   *
   * ERR_RAMWAY_BUSY if every slot is taken or a live subscriber has the label, and that stays so until `timeout`;
   * ERR_RAMWAY_UNSUPPORTED for a reliable one where the topic is `lossyOnly`. */
  async subscriber(policy: Policy = 'reliable', options?: SubscriberOptions & WaitOptions): Promise<Subscriber> {
    const { signal, ...more } = read('Topic.subscriber', SUBSCRIBER, options);
    const settings = this.#with({ ...more, policy: policyOf('Topic.subscriber', policy, more) });
    return opening(signal, async (attempt) => {
      const end = await native.openTopic(attempt, false, this.#intent, this.name, settings);
      return new Subscriber(end, settings.wait, more.label, more.readOnly === true);
    });
  }

  /** {@link Topic.publisher}, blocking. On the main thread it does not wait unless it is allowed to. */
  publisherSync(options?: PublisherOptions & SyncOptions): Publisher {
    const { allowMainThread, ...more } = read('Topic.publisherSync', PUBLISHER_SYNC, options);
    const settings = this.#with(more);
    if (settings.timeout) blockUntil('Topic.publisherSync', { allowMainThread });
    const end = call(() => native.openTopicSync(true, this.#intent, this.name, settings));
    return new Publisher(end, settings.wait, more.timestamps === true);
  }

  /** {@link Topic.subscriber}, blocking. On the main thread it does not wait unless it is allowed to. */
  subscriberSync(policy: Policy = 'reliable', options?: SubscriberOptions & SyncOptions): Subscriber {
    const { allowMainThread, ...more } = read('Topic.subscriberSync', SUBSCRIBER_SYNC, options);
    const settings = this.#with({ ...more, policy: policyOf('Topic.subscriberSync', policy, more) });
    if (settings.timeout) blockUntil('Topic.subscriberSync', { allowMainThread });
    const end = call(() => native.openTopicSync(false, this.#intent, this.name, settings));
    return new Subscriber(end, settings.wait, more.label, more.readOnly === true);
  }

  #with<T extends { timeout?: number }>(more: T): Settings & T {
    return { ...this.#settings, ...more };
  }
}

function policyOf(what: string, policy: unknown, { start, history, afterSeq }: SubscriberOptions): Policy {
  if (policy !== 'reliable' && policy !== 'lossy' && policy !== 'latest') {
    throw invalid(`${what}: the policy is ${String(policy)}, expected 'reliable', 'lossy' or 'latest'`);
  }
  const places = [start, history, afterSeq].filter((place) => place !== undefined);
  if (places.length > 1) throw invalid(`${what}: say one of start, history and afterSeq`);
  return policy;
}
