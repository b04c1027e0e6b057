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

/** @internal What a frame says, as numbers that cost nothing to make. */
export class Stamp {
  constructor(
    readonly typeId: number,
    readonly tagLow: number,
    readonly tagHigh: number,
    private readonly seqLow: number,
    private readonly seqHigh: number,
    private readonly timeLow: number,
    private readonly timeHigh: number,
    readonly lost: number,
  ) {}

  get seq(): number {
    return (this.seqHigh >>> 0) * 2 ** 32 + (this.seqLow >>> 0);
  }

  get time(): bigint {
    return wide(this.timeLow, this.timeHigh);
  }
}

/** @internal */
export class TopicInfo implements TopicFrameInfo {
  constructor(
    private readonly stamp: Stamp,
    readonly length: number,
  ) {}

  get typeId(): number {
    return this.stamp.typeId;
  }

  get tag(): bigint {
    return wide(this.stamp.tagLow, this.stamp.tagHigh);
  }

  get seq(): number {
    return this.stamp.seq;
  }

  get time(): bigint {
    return this.stamp.time;
  }

  get lost(): number {
    return this.stamp.lost;
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
    private readonly stamp: Stamp,
  ) {
    super(place, at, length, stamp.typeId, stamp.tagLow, stamp.tagHigh, after);
  }

  /** Its number: the topic's first message has 1, and each later one at least 1 more than the one before. Exact up to 2^53. */
  get seq(): number {
    return this.stamp.seq;
  }

  /** When it was sent, in nanoseconds since 1970 by the publisher's clock; 0n if the publisher gives no times. */
  get time(): bigint {
    return this.stamp.time;
  }

  /** How many messages were lost right before it. */
  get lost(): number {
    return this.stamp.lost;
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
    const { topic } = this;
    return new TopicMessage(this, topic.start(index), topic.length(index), topic.after(index), topic.stamp(index));
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
