import type { NativeEndpoint } from '../../native.cjs';
import { Taken } from '../ring/batch.js';
import { type FrameInfo, Message, type Place, wide } from '../ring/message.js';
import type { TopicConsumer } from './consumer.js';

/** What a topic's frame says besides its bytes. */
export interface TopicFrameInfo extends FrameInfo {
  /** The message's number, see {@link TopicMessage.seq}. */
  readonly seq: number;
  /** See {@link TopicMessage.time}. */
  readonly time: bigint;
  /** See {@link TopicMessage.lost}. */
  readonly lost: number;
}

/** @internal */
export class TopicInfo implements TopicFrameInfo {
  constructor(
    private readonly message: TopicMessage,
    readonly length = message.length,
    readonly typeId = message.typeId,
  ) {}

  get tag(): bigint {
    return this.message.tag;
  }

  get seq(): number {
    return this.message.seq;
  }

  get time(): bigint {
    return this.message.time;
  }

  get lost(): number {
    return this.message.lost;
  }
}

/** A message of a topic. Its `data` is a copy, the program's own: what was asked for before the release stays as it is. */
export class TopicMessage extends Message {
  /** @internal */
  constructor(
    place: Place,
    at: number,
    length: number,
    after: number,
    typeId: number,
    tagLow: number,
    tagHigh: number,
    private readonly seqLow: number,
    private readonly seqHigh: number,
    private readonly timeLow: number,
    private readonly timeHigh: number,
    /** How many messages were lost right before it. */
    readonly lost: number,
  ) {
    super(place, at, length, typeId, tagLow, tagHigh, after);
  }

  /** Its number: the topic's first message has 1, and each later one at least 1 more than the one before. Exact up to 2^53. */
  get seq(): number {
    return (this.seqHigh >>> 0) * 2 ** 32 + (this.seqLow >>> 0);
  }

  /** When it was sent, in nanoseconds since 1970 by the publisher's clock; 0n if the publisher gives no times. */
  get time(): bigint {
    return wide(this.timeLow, this.timeHigh);
  }
}

/** Frames that were taken together. */
export class TopicTaken extends Taken<TopicMessage> {
  /** Null: they are copied from the topic, which keeps them until they are released. */
  private readonly chunk: Uint8Array | null;
  private whole: Uint8Array | null = null;

  constructor(
    private readonly topic: TopicConsumer,
    native: NativeEndpoint,
    count: number,
    giveBack: () => void,
  ) {
    super(topic, native, count, giveBack);
    this.chunk = topic.copies ? topic.chunk : null;
  }

  override message(index: number): TopicMessage {
    return this.topic.message(this, index);
  }

  override copy(at: number, length: number): Uint8Array {
    const { chunk, topic } = this;
    if (chunk === null) return topic.bytes.slice(at, at + length);
    const begin = this.unwrapped(at) - topic.start(0);
    return chunk.slice(begin, begin + length);
  }

  override view(at: number, length: number): Uint8Array {
    // A buffer of its own, which a program can transfer away.
    return this.count === 1 && this.chunk !== null ? this.chunk : this.copy(at, length);
  }

  override all(): Uint8Array {
    const { chunk, topic } = this;
    this.whole ??= chunk ?? topic.bytes.slice(topic.start(0), topic.start(0) + topic.span(this.count));
    return this.whole;
  }
}

/** The newest message, which nobody waits to have back. */
export class Newest implements Place {
  readonly alive = true;

  constructor(private readonly data: Uint8Array) {}

  view(): Uint8Array {
    return this.data;
  }

  copy(): Uint8Array {
    return this.data.slice();
  }

  done(): void {}
}
