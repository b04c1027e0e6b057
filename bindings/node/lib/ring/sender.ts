import type { Memory, NativeEndpoint } from '../../native.cjs';
import { type Data, writableOf } from '../bus/streams.js';
import { call } from '../errors.js';
import type { WaitPolicy } from '../options.js';
import { TENSOR_TYPE_ID, type TensorLike, TensorPlan, type TensorShape, type TypedArray } from '../tensor.js';
import { checkCall, type SyncOptions, type WaitOptions } from '../waiting/waiting.js';
import { bytesOf, changed, checkList, gathered } from './data.js';
import { Producer } from './producer.js';
import {
  DONE,
  type Filled,
  type FrameOptions,
  names,
  type Outgoing,
  Sending,
  type TensorFill,
  type TensorFilled,
  type TensorOptions,
} from './sending.js';

/** The sending end of a ring. One per ring, in the whole system; used by one thread.
 *
 * A message is visible to the receiver as soon as it is sent, and is delivered even if this process is killed right
 * after. Sends that find no room wait in the order of their calls. */
export class Sender extends Sending {
  private stream: WritableStream<Data> | null = null;

  /** @internal `of`: what it belongs to, where that is no named ring. */
  constructor(
    native: NativeEndpoint,
    policy: WaitPolicy = 'hybrid',
    of?: string,
    role: 'sender' | 'publisher' = 'sender',
    make: new (native: NativeEndpoint, memory: Memory) => Producer = Producer,
  ) {
    super(native, policy, of, role, make);
  }

  // ---- whole messages

  /** Sends a copy of the bytes (a string as UTF-8), when there is room. The data must not change until then. */
  send(data: Data, options?: FrameOptions & WaitOptions): Promise<void> {
    try {
      if (options !== undefined) checkCall('send', options, names.frameWait);
      const bytes = bytesOf(data);
      const typeId = this.frame(options);
      return this.sendFrame(bytes, typeId, options?.flush !== false, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Sends a copy of the bytes if there is room now. If not: false, nothing was sent, and 'drain' comes once there is. */
  trySend(data: Data, options?: FrameOptions): boolean {
    const bytes = bytesOf(data);
    const typeId = this.frame(options, 'trySend');
    if (!this.hasRoom(bytes.length)) return false;
    this.put(bytes, typeId, options?.flush !== false);
    return true;
  }

  /** Sends a copy of the bytes, blocking the thread until there is room. In a worker, unless `allowMainThread`. */
  sendSync(data: Data, options?: FrameOptions & SyncOptions): void {
    const bytes = bytesOf(data);
    const typeId = this.frame(options, 'sendSync', names.frameSync);
    this.block('sendSync', bytes.length, options);
    this.put(bytes, typeId, options?.flush !== false);
  }

  /** Sends the pieces, each whatever `send` takes, as one message: their bytes one after the other. */
  sendVectored(pieces: Iterable<Data>, options?: FrameOptions & WaitOptions): Promise<void> {
    // As `send`, not by `post`: an object and a function for each message cost a tenth of what sending one does.
    try {
      if (options !== undefined) checkCall('sendVectored', options, names.frameWait);
      const { parts, length } = gathered(pieces);
      const typeId = this.frame(options);
      const flush = options?.flush !== false;
      this.checkLength(length);
      this.checkOpen();
      if (this.isFree(length)) {
        this.putParts(parts, length, typeId, flush);
        return DONE;
      }
      const { tagLow, tagHigh } = this;
      return this.later(length, options, () => {
        const now = parts.reduce((sum, part) => sum + part.length, 0);
        if (now !== length) throw changed(length, now);
        this.tagLow = tagLow;
        this.tagHigh = tagHigh;
        this.putParts(parts, length, typeId, flush);
        return undefined;
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** `sendVectored` if there is room now; if not: false, and 'drain' comes once there is. */
  trySendVectored(pieces: Iterable<Data>, options?: FrameOptions): boolean {
    const { parts, length } = gathered(pieces);
    const typeId = this.frame(options, 'trySendVectored');
    if (!this.hasRoom(length)) return false;
    this.putParts(parts, length, typeId, options?.flush !== false);
    return true;
  }

  /** `sendVectored`, blocking the thread until there is room. In a worker, unless `allowMainThread`. */
  sendVectoredSync(pieces: Iterable<Data>, options?: FrameOptions & SyncOptions): void {
    const { parts, length } = gathered(pieces);
    const typeId = this.frame(options, 'sendVectoredSync', names.frameSync);
    this.block('sendVectoredSync', length, options);
    this.putParts(parts, length, typeId, options?.flush !== false);
  }

  /** Sends the messages in order, each when there is room, and makes those that fit at once visible together. `typeId`
   * and `tag` are those of all; `timeout` is for the whole batch.
   *
   * Resolves with how many were sent. What keeps a later message than the first from being sent (the time-out, an
   * abort, the receiver's end, a message that is too long) ends the batch with the number of those before it, and the
   * next call meets it; it rejects only if none was sent. */
  async sendBatch(messages: Iterable<Data>, options?: FrameOptions & WaitOptions): Promise<number> {
    if (options !== undefined) checkCall('sendBatch', options, names.frameWait);
    checkList('messages', messages);
    const typeId = this.frame(options);
    const { tagLow, tagHigh } = this;
    const { timeout, signal } = options ?? {};
    const until = timeout === undefined ? undefined : performance.now() + timeout;
    let count = 0;
    try {
      for (const data of messages) {
        try {
          this.tagLow = tagLow;
          this.tagHigh = tagHigh;
          const limits = options && {
            signal,
            timeout: until === undefined ? undefined : Math.max(0, until - performance.now()),
          };
          signal?.throwIfAborted();
          // What is not flushed is published before any wait.
          const sent = this.sendFrame(bytesOf(data), typeId, false, limits);
          if (sent !== DONE) await sent;
        } catch (error) {
          if (count === 0) throw error;
          break;
        }
        count++;
      }
    } finally {
      if (!this.isClosed) this.half.flush();
    }
    return count;
  }

  /** Sends a frame whose options have been checked and whose tag is kept aside. */
  private sendFrame(
    bytes: Uint8Array,
    typeId: number,
    flush: boolean,
    options: WaitOptions | undefined,
  ): Promise<void> {
    const { length } = bytes;
    this.checkLength(length);
    this.checkOpen();
    if (this.isFree(length)) {
      this.put(bytes, typeId, flush);
      return DONE;
    }
    const { tagLow, tagHigh } = this;
    return this.later(length, options, () => {
      // There is room for what it was. A view of a message that was released since has length 0.
      if (bytes.length !== length) throw changed(length, bytes.length);
      this.tagLow = tagLow;
      this.tagHigh = tagHigh;
      this.put(bytes, typeId, flush);
      return undefined;
    });
  }

  private putParts(parts: Uint8Array[], length: number, typeId: number, flush: boolean): void {
    const producer = this.half;
    let { at } = producer;
    for (const part of parts) {
      producer.bytes.set(part, at);
      at += part.length;
    }
    producer.commit(length, typeId, this.tagLow, this.tagHigh, flush);
  }

  // ---- slots

  /** Has `fill` write a message of up to `length` bytes in place, when there is room. The slot is shared memory with
   * whatever was there before; its views have length 0 afterwards. What `fill` gives back is the length; `false`, an
   * exception or a rejection sends nothing. While an asynchronous `fill` runs, other sends wait. */
  reserve(
    length: number,
    fill: (slot: Uint8Array) => Filled | Promise<Filled>,
    options?: FrameOptions & WaitOptions,
  ): Promise<void> {
    return this.post('reserve', names.frameWait, options, () => this.bytesSlot(length, fill, false));
  }

  /** `reserve` if there is room now; if not: false, and 'drain' comes once there is. */
  tryReserve(length: number, fill: (slot: Uint8Array) => Filled, options?: FrameOptions): boolean {
    return this.tryPost('tryReserve', names.frame, options, this.bytesSlot(length, fill, true));
  }

  /** `reserve`, blocking the thread until there is room. In a worker, unless `allowMainThread`. */
  reserveSync(length: number, fill: (slot: Uint8Array) => Filled, options?: FrameOptions & SyncOptions): void {
    this.postSync('reserveSync', names.frameSync, options, this.bytesSlot(length, fill, true));
  }

  // ---- tensors

  /** Sends a typed array with its shape and element type, as every language reads it (`Message.tensor()`). */
  sendTensor(tensor: TensorLike, options?: TensorOptions & WaitOptions): Promise<void> {
    return this.post('sendTensor', names.tensorWait, options, () => this.tensor(tensor));
  }

  /** `sendTensor` if there is room now; if not: false, and 'drain' comes once there is. */
  trySendTensor(tensor: TensorLike, options?: TensorOptions): boolean {
    return this.tryPost('trySendTensor', names.tensor, options, this.tensor(tensor));
  }

  /** `sendTensor`, blocking the thread until there is room. In a worker, unless `allowMainThread`. */
  sendTensorSync(tensor: TensorLike, options?: TensorOptions & SyncOptions): void {
    this.postSync('sendTensorSync', names.tensorSync, options, this.tensor(tensor));
  }

  /** Has `fill` write the elements of a tensor in place, when there is room: `data` is a typed array over shared memory
   * with whatever was there before, and has length 0 afterwards. `false`, an exception or a rejection sends nothing.
   * While an asynchronous `fill` runs, other sends wait. */
  reserveTensor<T extends TypedArray = TypedArray>(
    tensor: TensorShape,
    fill: TensorFill<T>,
    options?: TensorOptions & WaitOptions,
  ): Promise<void> {
    return this.post('reserveTensor', names.tensorWait, options, () => this.tensorSlot(tensor, fill, false));
  }

  /** `reserveTensor` if there is room now; if not: false, and 'drain' comes once there is. */
  tryReserveTensor<T extends TypedArray = TypedArray>(
    tensor: TensorShape,
    fill: (data: T) => TensorFilled,
    options?: TensorOptions,
  ): boolean {
    return this.tryPost('tryReserveTensor', names.tensor, options, this.tensorSlot(tensor, fill, true));
  }

  /** `reserveTensor`, blocking the thread until there is room. In a worker, unless `allowMainThread`. */
  reserveTensorSync<T extends TypedArray = TypedArray>(
    tensor: TensorShape,
    fill: (data: T) => TensorFilled,
    options?: TensorOptions & SyncOptions,
  ): void {
    this.postSync('reserveTensorSync', names.tensorSync, options, this.tensorSlot(tensor, fill, true));
  }

  private tensor(tensor: TensorLike): Outgoing {
    const plan = TensorPlan.of(tensor);
    const put = () => {
      const producer = this.half;
      const { at } = producer;
      const length = plan.write(producer.bytes.subarray(at, at + plan.room), (this.address + at) % 64);
      producer.commit(length, TENSOR_TYPE_ID, this.tagLow, this.tagHigh, true);
      return undefined;
    };
    return { room: plan.room, put };
  }

  // ----

  /** Makes visible what was sent with `flush: false`. */
  flush(): void {
    this.checkOpen();
    this.half.flush();
  }

  /** A web stream whose writes wait for room. Closing it ends this sender. */
  get writable(): WritableStream<Data> {
    this.stream ??= writableOf(this);
    return this.stream;
  }

  /** The tag of the last message that was made visible, also by an earlier sender; null before the first. */
  get lastTag(): bigint | null {
    const producer = this.half;
    return call(() => this.native.lastTag(producer.positions));
  }

  /** Closes at once: the receiver gets what was sent and then the end. Sends that still wait, and a slot that is still
   * being filled, are `ERR_RAMWAY_DETACHED` and not sent. Again: nothing happens. */
  override close(): void {
    this.shut(false);
  }

  /** Gives the role up without telling the receiver, as if the process had died: it gets `ERR_RAMWAY_PEER_DEAD` after
   * what was sent. For a program that failed half-way: `close`, `end` and `using` say that this was all. */
  abandon(): void {
    this.shut(true);
  }

  /** Sends what waits, then closes. No further sends are taken. */
  override end(): Promise<void> {
    return this.finishing();
  }
}
