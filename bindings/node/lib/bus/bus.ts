// Buses: a sender and a receiver, each with a ring of its own, between a listener and a connector.
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { clearTimeout, setTimeout } from 'node:timers';
import * as native from '../../native.cjs';
import { call, RamwayError } from '../errors.js';
import {
  CONNECT,
  CONNECT_SYNC,
  type ConnectOptions,
  LISTEN,
  LISTEN_SYNC,
  type ListenOptions,
  nameOf,
  read,
  type WaitPolicy,
} from '../options.js';
import type { Batch } from '../ring/batch.js';
import type { Message } from '../ring/message.js';
import { type FrameInfo, Receiver } from '../ring/receiver.js';
import { Sender } from '../ring/sender.js';
import type { Filled, FrameOptions, TensorFill, TensorFilled, TensorOptions } from '../ring/sending.js';
import type { TensorLike, TensorShape, TypedArray } from '../tensor.js';
import { opening } from '../waiting/opening.js';
import { blockUntil, checkWait, type SyncOptions, sleepUntil, timedOut, type WaitOptions } from '../waiting/waiting.js';
import { Accepting, nobody } from './accepting.js';
import type { ReceiverMethods, SenderMethods } from './methods.js';
import { type Data, type DuplexOptions, duplexOf } from './streams.js';

/** Milliseconds between two polls of a peer that has ended its sending half: nothing tells of the other one's end. */
const PEER_INTERVAL_MAX = 100;

/** What a {@link Bus} tells. */
export interface BusEvents {
  /** A message, valid until the listeners return. Messages flow while there are listeners; see `pause`. */
  message: [message: Message];
  /** There is room again after a `trySend` or `tryReserve` that gave false. */
  drain: [];
  /** Both halves have ended, by this side's or the peer's doing. */
  close: [];
  /** What ended the flow of 'message' events or keeps a 'drain' from ever coming: ERR_RAMWAY_PEER_DEAD, say. */
  error: [error: unknown];
}

/**
 * A full-duplex connection to one process of this machine: a {@link Sender} and a {@link Receiver}, each with a ring of
 * its own in memory that is safe against a hostile peer.
 *
 * `Bus.listen` takes one peer at a name, `Bus.connect` is the other side; a {@link Listener} takes many. The calls are
 * those of `bus.sender` and `bus.receiver`. After the last message the receiver gets ERR_RAMWAY_CLOSED (iterations
 * end) if the peer closed, ERR_RAMWAY_PEER_DEAD if its process died. Both are final.
 */
export class Bus
  extends EventEmitter<BusEvents>
  implements SenderMethods, ReceiverMethods, Disposable, AsyncDisposable
{
  /** The name that it was listened at or connected to. */
  readonly name: string;
  /** The user that the peer acted as when the connection was made, as the kernel recorded it. */
  readonly peerUid: number;
  /**
   * The peer's process when the connection was made; undefined if it has no number in our PID namespace. It says who
   * asked; numbers are used again.
   */
  readonly peerPid: number | undefined;
  readonly #sender: Sender | undefined;
  readonly #receiver: Receiver | undefined;
  #senderEnded: boolean;
  #receiverEnded: boolean;
  #told = false;
  #failed = false;
  #polling: ReturnType<typeof setTimeout> | undefined;

  /** @internal */
  constructor(bus: native.NativeBus, name: string, policy: WaitPolicy | undefined) {
    super();
    this.name = name;
    this.peerUid = bus.peerUid;
    this.peerPid = bus.peerPid;
    const of = `the bus '${name}'`;
    this.#sender = bus.sender && new Sender(bus.sender, policy, of);
    this.#receiver = bus.receiver && new Receiver(bus.receiver, policy, of);
    this.#senderEnded = this.#sender === undefined;
    this.#receiverEnded = this.#receiver === undefined;
    this.#forward();
  }

  /**
   * Connects to the listener at `name` (or at the path of its socket), waiting at most `timeout` milliseconds (default
   * 10 000, `Infinity`: as long as it takes) for one that is not there yet, does not accept, or is flooded.
   *
   * ERR_RAMWAY_NOT_FOUND if there was no listener within the time, ERR_RAMWAY_TIMED_OUT if there was one but it did not
   * answer, ERR_RAMWAY_PERMISSION_DENIED, ERR_RAMWAY_ABI_MISMATCH, or the listener's reason not to.
   */
  static async connect(name: string, options?: ConnectOptions & WaitOptions): Promise<Bus> {
    const at = nameOf('Bus.connect', name);
    const { signal, ...settings } = read('Bus.connect', CONNECT, options);
    return opening(signal, async (attempt) => new Bus(await native.connect(attempt, at, settings), at, settings.wait));
  }

  /** {@link Bus.connect}, blocking. */
  static connectSync(name: string, options?: ConnectOptions & SyncOptions): Bus {
    const at = nameOf('Bus.connectSync', name);
    const { allowMainThread, ...settings } = read('Bus.connectSync', CONNECT_SYNC, options);
    blockUntil('Bus.connectSync', { allowMainThread });
    return new Bus(
      call(() => native.connectSync(at, settings)),
      at,
      settings.wait,
    );
  }

  /**
   * Listens at `name`, takes one peer and removes the name again, as soon as it has connected or when this ends in
   * another way. At most one connector is ever told that it is welcome.
   */
  static async listen(name: string, options?: ListenOptions & WaitOptions): Promise<Bus> {
    const at = nameOf('Bus.listen', name);
    const { timeout, signal, ...settings } = read('Bus.listen', LISTEN, options);
    checkWait({ timeout, signal });
    const began = performance.now();
    const make = (bus: native.NativeBus) => new Bus(bus, at, settings.wait);
    const accepting = await opening(signal, async (attempt) => {
      return new Accepting(await native.bind(attempt, at, settings, true), at, make);
    });
    const left = timeout === undefined ? undefined : Math.max(0, timeout - (performance.now() - began));
    try {
      return await accepting.accept({ timeout: left, signal });
    } finally {
      accepting.close();
      await accepting.settled();
    }
  }

  /** {@link Bus.listen}, blocking. */
  static listenSync(name: string, options?: ListenOptions & SyncOptions): Bus {
    const at = nameOf('Bus.listenSync', name);
    const { timeout, allowMainThread, ...settings } = read('Bus.listenSync', LISTEN_SYNC, options);
    const deadline = blockUntil('Bus.listenSync', { timeout, allowMainThread });
    const listener = call(() => native.bindSync(at, settings, true));
    try {
      for (;;) {
        const milliseconds = sleepUntil(deadline);
        const bus = call(() => listener.acceptSync(milliseconds));
        if (bus !== null) return new Bus(bus, at, settings.wait);
        if (milliseconds === 0) throw timedOut(nobody(at));
      }
    } finally {
      listener.close();
    }
  }

  /** The sending end. ERR_RAMWAY_UNSUPPORTED if the listener gave this direction no capacity. */
  get sender(): Sender {
    return this.#sender ?? this.#missing('receive-only');
  }

  /** The receiving end. ERR_RAMWAY_UNSUPPORTED if the listener gave this direction no capacity. */
  get receiver(): Receiver {
    return this.#receiver ?? this.#missing('send-only');
  }

  // ---- sending

  /** {@link Sender.send} */
  send(data: Data, options?: FrameOptions & WaitOptions): Promise<void> {
    return this.#sender === undefined ? this.#missingAsync('receive-only') : this.#sender.send(data, options);
  }

  /** {@link Sender.trySend} */
  trySend(data: Data, options?: FrameOptions): boolean {
    return this.sender.trySend(data, options);
  }

  /** {@link Sender.sendSync} */
  sendSync(data: Data, options?: FrameOptions & SyncOptions): void {
    this.sender.sendSync(data, options);
  }

  /** {@link Sender.sendVectored} */
  sendVectored(pieces: Iterable<Data>, options?: FrameOptions & WaitOptions): Promise<void> {
    return this.#sender === undefined ? this.#missingAsync('receive-only') : this.#sender.sendVectored(pieces, options);
  }

  /** {@link Sender.trySendVectored} */
  trySendVectored(pieces: Iterable<Data>, options?: FrameOptions): boolean {
    return this.sender.trySendVectored(pieces, options);
  }

  /** {@link Sender.sendVectoredSync} */
  sendVectoredSync(pieces: Iterable<Data>, options?: FrameOptions & SyncOptions): void {
    this.sender.sendVectoredSync(pieces, options);
  }

  /** {@link Sender.sendBatch} */
  sendBatch(messages: Iterable<Data>, options?: FrameOptions & WaitOptions): Promise<number> {
    return this.#sender === undefined ? this.#missingAsync('receive-only') : this.#sender.sendBatch(messages, options);
  }

  /** {@link Sender.reserve} */
  reserve(
    length: number,
    fill: (slot: Uint8Array) => Filled | Promise<Filled>,
    options?: FrameOptions & WaitOptions,
  ): Promise<void> {
    return this.#sender === undefined
      ? this.#missingAsync('receive-only')
      : this.#sender.reserve(length, fill, options);
  }

  /** {@link Sender.tryReserve} */
  tryReserve(length: number, fill: (slot: Uint8Array) => Filled, options?: FrameOptions): boolean {
    return this.sender.tryReserve(length, fill, options);
  }

  /** {@link Sender.reserveSync} */
  reserveSync(length: number, fill: (slot: Uint8Array) => Filled, options?: FrameOptions & SyncOptions): void {
    this.sender.reserveSync(length, fill, options);
  }

  /** {@link Sender.sendTensor} */
  sendTensor(tensor: TensorLike, options?: TensorOptions & WaitOptions): Promise<void> {
    return this.#sender === undefined ? this.#missingAsync('receive-only') : this.#sender.sendTensor(tensor, options);
  }

  /** {@link Sender.trySendTensor} */
  trySendTensor(tensor: TensorLike, options?: TensorOptions): boolean {
    return this.sender.trySendTensor(tensor, options);
  }

  /** {@link Sender.reserveTensor} */
  reserveTensor<T extends TypedArray = TypedArray>(
    tensor: TensorShape,
    fill: TensorFill<T>,
    options?: TensorOptions & WaitOptions,
  ): Promise<void> {
    return this.#sender === undefined
      ? this.#missingAsync('receive-only')
      : this.#sender.reserveTensor(tensor, fill, options);
  }

  /** {@link Sender.tryReserveTensor} */
  tryReserveTensor<T extends TypedArray = TypedArray>(
    tensor: TensorShape,
    fill: (data: T) => TensorFilled,
    options?: TensorOptions,
  ): boolean {
    return this.sender.tryReserveTensor(tensor, fill, options);
  }

  /** {@link Sender.flush} */
  flush(): void {
    this.sender.flush();
  }

  /** {@link Sender.writable}: closing it ends the sending half only. */
  get writable(): WritableStream<Data> {
    return this.sender.writable;
  }

  /** Bytes of the longest message that can be sent. */
  get maxMessageLength(): number {
    return this.sender.maxMessageLength;
  }

  // ---- receiving

  /** {@link Receiver.recv} */
  recv(options?: WaitOptions): Promise<Message> {
    return this.#receiver === undefined ? this.#missingAsync('send-only') : this.#receiver.recv(options);
  }

  /** {@link Receiver.tryRecv} */
  tryRecv(): Message | null {
    return this.receiver.tryRecv();
  }

  /** {@link Receiver.recvSync} */
  recvSync(options?: SyncOptions): Message {
    return this.receiver.recvSync(options);
  }

  /** {@link Receiver.recvBatch} */
  recvBatch(options?: { max?: number | undefined } & WaitOptions): Promise<Batch> {
    return this.#receiver === undefined ? this.#missingAsync('send-only') : this.#receiver.recvBatch(options);
  }

  /** {@link Receiver.tryRecvBatch} */
  tryRecvBatch(options?: { max?: number | undefined }): Batch | null {
    return this.receiver.tryRecvBatch(options);
  }

  /** {@link Receiver.recvBatchSync} */
  recvBatchSync(options?: { max?: number | undefined } & SyncOptions): Batch {
    return this.receiver.recvBatchSync(options);
  }

  /** {@link Receiver.recvInto} */
  recvInto(target: Uint8Array, options?: WaitOptions): Promise<FrameInfo> {
    return this.#receiver === undefined ? this.#missingAsync('send-only') : this.#receiver.recvInto(target, options);
  }

  /** {@link Receiver.tryRecvInto} */
  tryRecvInto(target: Uint8Array): FrameInfo | null {
    return this.receiver.tryRecvInto(target);
  }

  /** {@link Receiver.recvIntoSync} */
  recvIntoSync(target: Uint8Array, options?: SyncOptions): FrameInfo {
    return this.receiver.recvIntoSync(target, options);
  }

  /** {@link Receiver.messages} */
  messages(options?: { signal?: AbortSignal | undefined }): AsyncIterableIterator<Message> {
    return this.receiver.messages(options);
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Message> {
    return this.receiver.messages();
  }

  /** {@link Receiver.batches} */
  batches(options?: { max?: number | undefined; signal?: AbortSignal | undefined }): AsyncIterableIterator<Batch> {
    return this.receiver.batches(options);
  }

  /** {@link Receiver.readable}: cancelling it closes the receiving half only. */
  get readable(): ReadableStream<Uint8Array> {
    return this.receiver.readable;
  }

  /** No 'message' events until `resume`. */
  pause(): this {
    this.receiver.pause();
    return this;
  }

  /** 'message' events again. */
  resume(): this {
    this.receiver.resume();
    return this;
  }

  // ---- both

  /** Both halves as one stream of Node's, with its back-pressure. `end()` of it closes the sending half only. */
  toDuplex(options?: DuplexOptions): Duplex {
    return duplexOf(this, options);
  }

  /** How both halves wait. */
  get wait(): WaitPolicy {
    return (this.#receiver ?? this.sender).wait;
  }

  set wait(policy: WaitPolicy) {
    for (const half of this.#halves()) {
      if (!half.closed) half.wait = policy;
    }
  }

  /** Whether the peer still has one of the ends that this side has the other ones of, and its process lives. */
  get peerAlive(): boolean {
    return this.#halves().some((half) => !half.closed && half.peerAlive);
  }

  /** Whether both halves are closed. */
  get closed(): boolean {
    return this.#halves().every((half) => half.closed);
  }

  /** Waiting keeps the runtime running (the default). */
  ref(): this {
    for (const half of this.#halves()) half.ref();
    return this;
  }

  /** Waiting does not keep the runtime running. */
  unref(): this {
    for (const half of this.#halves()) half.unref();
    return this;
  }

  /** Closes both halves at once: the peer receives what was sent, then the end. */
  close(): void {
    this.#sender?.close();
    this.#receiver?.close();
  }

  /** Sends what waits, then closes both halves. */
  async end(): Promise<void> {
    await this.#sender?.end();
    this.#receiver?.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end();
  }

  #halves(): (Sender | Receiver)[] {
    return [this.#sender, this.#receiver].filter((half) => half !== undefined);
  }

  #missing(ways: string): never {
    const text = `the bus '${this.name}' is ${ways}: its listener gave the other direction a capacity of 0`;
    throw new RamwayError('Unsupported', text);
  }

  async #missingAsync(ways: string): Promise<never> {
    return this.#missing(ways);
  }

  /** The halves' events are the bus's, too. */
  #forward(): void {
    const fail = (half: Sender | Receiver) => (error: unknown) => {
      // A listener of the half itself handles it; a death that both halves saw is one event.
      const told = (half as EventEmitter).listenerCount('error') > 1 || this.#failed;
      // A program that does not listen for room polls for it, and gets the error then.
      const unasked = half === this.#sender && this.listenerCount('drain') === 0;
      if ((told || unasked) && this.listenerCount('error') === 0) return;
      this.#failed = true;
      this.emit('error', error);
    };
    this.#sender?.on('error', fail(this.#sender));
    this.#sender?.on('drain', () => this.emit('drain'));
    this.#sender?.on('close', () => {
      this.#senderEnded = true;
      this.#ended();
    });
    const receiver = this.#receiver;
    receiver?.on('error', fail(receiver));
    receiver?.on('close', () => {
      this.#receiverEnded = true;
      this.#ended();
    });
    const message = (message: Message) => {
      this.emit('message', message);
    };
    (this as EventEmitter).on('newListener', (event) => {
      if (event === 'message' && this.listenerCount('message') === 0) this.receiver.on('message', message);
    });
    (this as EventEmitter).on('removeListener', (event) => {
      if (event === 'message' && this.listenerCount('message') === 0) receiver?.off('message', message);
    });
  }

  #ended(): void {
    clearTimeout(this.#polling);
    if (this.#receiverEnded && !this.#senderEnded) this.#pollPeer(1);
    if (this.#told || !this.#receiverEnded || !this.#senderEnded) return;
    this.#told = true;
    this.emit('close');
  }

  /** Nothing more will come: the bus has ended once nothing can be sent either. */
  #pollPeer(after: number): void {
    const sender = this.#sender!;
    if (sender.closed || !sender.peerAlive) {
      this.#senderEnded = true;
      this.#ended();
      return;
    }
    this.#polling = setTimeout(() => this.#pollPeer(Math.min(2 * after, PEER_INTERVAL_MAX)), after);
    this.#polling.unref();
  }
}
