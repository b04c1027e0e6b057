/** The ends of rings and buses as web streams and as a Node stream. */

import { addAbortSignal, Duplex } from 'node:stream';
import { type ErrorKind, RamwayError } from '../errors.js';
import { BATCH_DEFAULT } from '../facts.js';
import type { Batch } from '../ring/batch.js';
import type { Message } from '../ring/message.js';
import type { Receiver } from '../ring/receiver.js';
import type { Sender } from '../ring/sender.js';
import type { Bus } from './bus.js';

/** How a bus is to be a Node stream. */
export interface DuplexOptions {
  /** `true`: a chunk is a message, also an empty one. Default `false`: bytes, without boundaries. */
  objectMode?: boolean | undefined;
  /** `false`: the sending half ends once the peer's has. Default `true`. */
  allowHalfOpen?: boolean | undefined;
  /** Destroys the stream, with an `AbortError` whose `cause` is the signal's reason, as streams of Node have it. */
  signal?: AbortSignal | undefined;
}

/** What can be sent: a string as UTF-8. */
export type Data = string | ArrayBufferView | ArrayBufferLike;

const isKind = (error: unknown, kind: ErrorKind): boolean => error instanceof RamwayError && error.kind === kind;

/**
 * The messages as a web stream of copies, one chunk each. A message is received when the program reads, none before: the
 * ring is the only queue. The stream ends when the sender has closed, and fails with `ERR_RAMWAY_PEER_DEAD` if it died.
 *
 * Cancelling closes the receiver, and gives its role up: so does leaving a `for await` over the stream early, unless with
 * `values({ preventCancel: true })`. No message is lost to it: one that nobody was given is still in the ring, for the
 * next receiver of a named one. `releaseLock()` leaves everything open.
 */
export function readableOf(receiver: Receiver): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      // What it rejects with once the stream was cancelled, nobody sees.
      async pull(controller) {
        let message: Message;
        try {
          message = await receiver.recv();
        } catch (error) {
          if (!isKind(error, 'Closed')) throw error;
          controller.close();
          return;
        }
        const copy = message.copy();
        message.release();
        controller.enqueue(copy);
      },
      cancel: () => receiver.close(),
    },
    { highWaterMark: 0 },
  );
}

/**
 * A web stream whose chunks are sent as messages. A write is done when the message is in the ring: `writer.ready` and
 * `pipeTo` wait as long as there is no room. Until then the chunk must stay as it is.
 *
 * Closing the stream is the sender's `end()`: the receiver gets everything, then the end. Aborting it takes back a write
 * that waits and closes the sender at once: the receiver gets what was sent, then the end too, as the format knows only
 * one. After a failed write the sender is left open.
 */
export function writableOf(sender: Sender): WritableStream<Data> {
  return new WritableStream<Data>({
    // Its signal is newer than the declarations of Node 20's types, not than Node 20.
    write: (chunk, controller) => sender.send(chunk, { signal: (controller as unknown as AbortController).signal }),
    close: () => sender.end(),
    abort: () => sender.close(),
  });
}

/** Bytes gathered into one chunk of a stream without boundaries, if that many are there. */
const CHUNK = 64 * 1024;

/**
 * A bus as a Node stream. It reads ahead by the high-water mark of such streams, no further: what is not read stays in
 * the ring, and the peer has to wait. A write is done when it is in the ring.
 *
 * Without `objectMode` a chunk longer than a message can be is sent as several, and messages that are there are read as
 * one chunk. Empty messages are none of it then. Type ids and tags are not seen in either mode, and sent as 0.
 *
 * `end()` closes the sending half only, after everything that was written; `destroy()` closes the bus at once, and so
 * does the end of both halves. The bus's `close()` is the stream's `destroy()`. The peer's close is the end of the
 * readable side, its death `ERR_RAMWAY_PEER_DEAD`; a write after its close fails with `ERR_RAMWAY_CLOSED`.
 *
 * While the stream is in use, do not receive from the bus in other ways, `'message'` listeners included.
 */
export function duplexOf(bus: Bus, options: DuplexOptions = {}): Duplex {
  return new BusDuplex(bus, options);
}

type Callback = (error?: Error | null) => void;

class BusDuplex extends Duplex {
  readonly #bus: Bus;
  readonly #messages: boolean;
  /** Asked for data since the last push. */
  #wanted = false;
  #reading = false;
  /** Received and not pushed yet, from `#next` on: the readable side is full. */
  #batch: Batch | undefined;
  #next = 0;
  /** About how many messages of those last received make a chunk. */
  #together = 16;

  constructor(bus: Bus, { objectMode = false, allowHalfOpen = true, signal }: DuplexOptions) {
    super({ objectMode, allowHalfOpen });
    this.#bus = bus;
    this.#messages = objectMode;
    // Not as an option: a signal that has been aborted would destroy what is not there yet.
    if (signal !== undefined) addAbortSignal(signal, this);
  }

  override _read(): void {
    this.#wanted = true;
    if (!this.#reading) void this.#fill();
  }

  /** Pushes until the readable side is full, or ends. */
  async #fill(): Promise<void> {
    this.#reading = true;
    try {
      while (this.#wanted) {
        if (this.#batch === undefined) {
          // As many as there is room for: what has to wait here, the sender waits for.
          const max = this.#messages ? Math.max(this.readableHighWaterMark - this.readableLength, 1) : this.#together;
          this.#batch = await this.#bus.receiver.recvBatch({ max });
          this.#next = 0;
        }
        if (this.destroyed) break;
        const chunk = this.#take(this.#batch);
        // An empty chunk of bytes ends nothing, but would be taken for an answer to what was asked.
        if (!this.#messages && chunk.length === 0) continue;
        // `push` may ask again before it returns.
        this.#wanted = false;
        if (this.push(chunk)) this.#wanted = true;
      }
    } catch (error) {
      if (this.destroyed) return;
      if (isKind(error, 'Closed')) this.push(null);
      // The bus was closed here: that is its `destroy()`.
      else if (isKind(error, 'Detached')) this.destroy();
      else this.destroy(error as Error);
    } finally {
      this.#reading = false;
    }
  }

  /** A copy of the batch's next message, or of as many as make a chunk. The batch is given back with its last one. */
  #take(batch: Batch): Buffer {
    const begin = this.#next;
    let length = 0;
    do length += batch.size(this.#next++);
    while (!this.#messages && length < CHUNK && this.#next < batch.length);
    const count = this.#next - begin;
    let chunk: Buffer;
    if (count === 1) {
      const copy = batch.at(begin)!.copy();
      chunk = Buffer.from(copy.buffer, copy.byteOffset, length);
    } else {
      chunk = Buffer.allocUnsafe(length);
      const { bytes } = batch;
      for (let i = begin, at = 0; i < this.#next; i++) {
        const offset = batch.offset(i);
        const size = batch.size(i);
        chunk.set(bytes.subarray(offset, offset + size), at);
        at += size;
      }
    }
    this.#together = Math.min(Math.ceil((CHUNK * count) / Math.max(length, 1)), BATCH_DEFAULT);
    if (this.#next === batch.length) {
      this.#batch = undefined;
      batch.release();
    }
    return chunk;
  }

  override _write(chunk: Data, encoding: BufferEncoding, done: Callback): void {
    const list = this.#sendable(chunk, encoding);
    const sender = this.#bus.sender;
    const [first] = list;
    if (first === undefined) done();
    else if (list.length === 1) settle(sender.send(first), done);
    else settle(sendAll(sender, list), done);
  }

  override _writev(chunks: { chunk: Data; encoding: BufferEncoding }[], done: Callback): void {
    const list = chunks.flatMap(({ chunk, encoding }) => this.#sendable(chunk, encoding));
    if (list.length === 0) done();
    else settle(sendAll(this.#bus.sender, list), done);
  }

  /** The messages that a chunk is sent as: none, if it is no bytes of a stream of bytes. */
  #sendable(chunk: Data, encoding: BufferEncoding): Data[] {
    if (this.#messages) return [typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk];
    const bytes = chunk as Buffer;
    const most = this.#bus.sender.maxMessageLength;
    if (bytes.length <= most) return bytes.length === 0 ? [] : [bytes];
    // Pieces short enough that one can be written while the peer reads another.
    const step = Math.ceil(most / 4);
    const pieces: Data[] = [];
    for (let at = 0; at < bytes.length; at += step) pieces.push(bytes.subarray(at, at + step));
    return pieces;
  }

  override _final(done: Callback): void {
    settle(this.#bus.sender.end(), done);
  }

  override _destroy(error: Error | null, done: Callback): void {
    this.#bus.close();
    done(error);
  }
}

/** All of the messages. A batch that something ended early is begun again, and meets it. */
async function sendAll(sender: Sender, messages: Data[]): Promise<void> {
  for (let sent = 0; sent < messages.length; ) {
    sent += await sender.sendBatch(sent === 0 ? messages : messages.slice(sent));
  }
}

/** Calls back once. Not from the promise's reaction: what a callback throws is no rejection. */
function settle(promise: Promise<unknown>, done: Callback): void {
  promise.then(
    () => process.nextTick(done),
    (error) => process.nextTick(done, error),
  );
}
