import { RamwayError } from '../errors.js';
import { otherTypeId, parseTensor, TENSOR_TYPE_ID, type Tensor } from '../tensor.js';

const decoder = new TextDecoder();

/** What a frame says besides its bytes. */
export interface FrameInfo {
  /** Bytes of payload. */
  length: number;
  typeId: number;
  tag: bigint;
}

/** Where a message's bytes are. */
export interface Place {
  /** False once the bytes may be the sender's again. */
  readonly alive: boolean;
  /** What `data` gives. */
  view(at: number, length: number, isTensor: boolean): Uint8Array;
  copy(at: number, length: number): Uint8Array;
  /** The message is done with. */
  done(message: Message): void;
}

/** A tag of 64 bits, by its halves; other numbers too. */
export function wide(low: number, high: number): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

/** A received message: in shared memory until it is released, at the latest by the next receive. */
export class Message {
  /** Bytes of payload. */
  readonly length: number;
  /** The sender's type id. */
  readonly typeId: number;
  private seen: Uint8Array | null = null;
  private gone = false;

  /** @internal */
  constructor(
    private readonly frames: Place,
    private readonly at: number,
    length: number,
    typeId: number,
    private readonly tagLow: number,
    private readonly tagHigh: number,
    /** @internal The position after the message. */
    readonly after: number,
  ) {
    this.length = length;
    this.typeId = typeId;
  }

  /** The payload, in shared memory. The same view each time; its length is 0 once the message is released, and asking
   * for it then is an error. A sender that rewrites what it sent can change it: `copy` what must not change. Of a message of up to
   * 64 bytes that is of no batch and no tensor it is a copy instead, which stays as it was when it was first asked for. */
  get data(): Uint8Array {
    this.check();
    if (this.seen === null) {
      this.seen = this.length === 0 ? new Uint8Array(0) : this.frames.view(this.at, this.length, this.isTensor);
    }
    return this.seen;
  }

  /** The sender's tag, a number of 64 bits. */
  get tag(): bigint {
    return wide(this.tagLow, this.tagHigh);
  }

  /** A copy of the payload, which lasts. */
  copy(): Uint8Array {
    this.check();
    return this.frames.copy(this.at, this.length);
  }

  /** The payload as UTF-8 text; what is none becomes U+FFFD. */
  text(): string {
    // Of a copy: decoders go through the bytes twice and rely on finding the same, which a hostile sender could change.
    return decoder.decode(this.copy());
  }

  /** Whether it is a tensor frame. */
  get isTensor(): boolean {
    return this.typeId === TENSOR_TYPE_ID;
  }

  /** The tensor: its `data` is a view, as this message's. Throws ERR_RAMWAY_INVALID_ARGUMENT for another message. */
  tensor(): Tensor {
    if (!this.isTensor) throw otherTypeId(this.typeId);
    return parseTensor(this.data);
  }

  /** Whether it was released. */
  get released(): boolean {
    return this.gone || !this.frames.alive;
  }

  /** Done with: its place goes back to the sender, and those of the messages that its loop gave before. (Of a batch:
   * with the batch.) Again: nothing happens. */
  release(): void {
    if (this.released) return;
    this.gone = true;
    this.frames.done(this);
  }

  [Symbol.dispose](): void {
    this.release();
  }

  private check(): void {
    if (this.released) {
      throw new RamwayError(
        'Detached',
        'this message was released (by release(), the end of its loop step, or the next receive): copy() what must last',
      );
    }
  }
}
