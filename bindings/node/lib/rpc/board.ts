// The memory that a client and its native half share: where a request is put, and where events are read (src/rpc_client.rs).
import * as native from '../../native.cjs';
import type { Data } from '../bus/streams.js';
import { type ErrorKind, TAIL } from '../facts.js';
import { bytesOf } from '../ring/data.js';
import { CallError, STATUSES } from './errors.js';
import { Reply } from './reply.js';

// What an event is.
export const NOTHING = 0;
export const ELEMENT = 1;
export const END = 2;
const FAILED = 3;
const FAILED_HALFWAY = 4;
export const CHANGED = 5;

// Words of the board.
const COUNT = 2;
const MORE = 3;
const SEEN = 4;

// Words of an event.
const WHAT = 1;
const AT = 2;
const META_LEN = 3;
const BODY_LEN = 4;
const STATUS = 5;
const KIND = 6;
const CODE = 7;
/** In the place of {@link AT}: in buffers of their own. */
const APART = -1;

const NONE = new Uint8Array(0);
const KINDS = native.errorKinds();
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The bytes of a buffer that native code gave. Bun does not transfer such a buffer; a reply's is to be like any other. */
const own =
  'bun' in process.versions
    ? (buffer: ArrayBuffer) => new Uint8Array(buffer.slice(0))
    : (buffer: ArrayBuffer) => new Uint8Array(buffer);

export class Board {
  private readonly numbers: Float64Array;
  private readonly words: Int32Array;
  private readonly bytes: Uint8Array;
  private readonly outbox: Uint8Array;
  private readonly header: Int32Array;
  private readonly events: number;
  private readonly event: number;
  private readonly inbox: number;
  /** Of the buffers that the last call gave, those that were read. */
  private apart = 0;

  constructor(memory: native.RpcMemory) {
    this.numbers = new Float64Array(memory.board, 0, 1);
    this.words = new Int32Array(memory.board, 0, memory.inbox >> 2);
    this.bytes = new Uint8Array(memory.board);
    this.outbox = new Uint8Array(memory.board, memory.outbox, memory.outboxLen);
    this.header = new Int32Array(memory.header);
    this.events = memory.events;
    this.event = memory.event;
    this.inbox = memory.inbox;
  }

  /** What is mapped, for the close to detach. */
  get mapped(): ArrayBuffer {
    return this.header.buffer as ArrayBuffer;
  }

  /** Whether the server has published something since the native half has looked: a load from shared memory. */
  hasNews(): boolean {
    return Atomics.load(this.header, TAIL) !== this.words[SEEN];
  }

  /** Milliseconds after which the client is to act though nothing has come; Infinity: never. */
  get due(): number {
    return this.numbers[0]!;
  }

  /** How many events there are. */
  get count(): number {
    this.apart = 0;
    return this.words[COUNT]!;
  }

  /** Whether there may be more. */
  get more(): boolean {
    return this.words[MORE] !== 0;
  }

  /** The place of the call that event `index` is of. */
  place(index: number): number {
    return this.words[this.events + this.event * index]!;
  }

  what(index: number): number {
    return this.words[this.events + this.event * index + WHAT]!;
  }

  /** The reply of an event that has one. */
  reply(index: number, buffers: ArrayBuffer[] | null): Reply {
    const word = this.events + this.event * index;
    const { words } = this;
    const metaLength = words[word + META_LEN]!;
    const bodyLength = words[word + BODY_LEN]!;
    const at = words[word + AT]!;
    if (at === APART) {
      const meta = buffers![this.apart++]!;
      const body = buffers![this.apart++]!;
      return new Reply(own(body), metaLength === 0 ? NONE : own(meta));
    }
    const start = this.inbox + at;
    const body = this.bytes.slice(start + metaLength, start + metaLength + bodyLength);
    return new Reply(body, metaLength === 0 ? NONE : this.bytes.slice(start, start + metaLength));
  }

  /** The error of an event that is one; null of another. */
  error(index: number, buffers: ArrayBuffer[] | null): CallError | null {
    const word = this.events + this.event * index;
    const { words } = this;
    const what = words[word + WHAT]!;
    if (what !== FAILED && what !== FAILED_HALFWAY) return null;
    const { meta, body } = this.reply(index, buffers);
    const message = decoder.decode(body);
    const status = STATUSES.get(words[word + STATUS]!);
    const halfway = what === FAILED_HALFWAY;
    if (status === undefined) return new CallError(KINDS[words[word + KIND]!] as ErrorKind, message, halfway);
    const said = { status, applicationCode: words[word + CODE]! >>> 0, text: decoder.decode(meta) };
    return new CallError(status, message, halfway, said);
  }

  /** The error of a call that could not be made. */
  get refusal(): CallError {
    this.apart = 0;
    return this.error(0, null)!;
  }

  /** Puts bytes of a request to `at` in the outbox. Gives how many; -1 if there is no room for them. */
  put(data: Data, at: number): number {
    const { outbox } = this;
    if (typeof data === 'string') {
      if (3 * data.length > outbox.length - at) return -1;
      return encoder.encodeInto(data, at === 0 ? outbox : outbox.subarray(at)).written;
    }
    const bytes = bytesOf(data);
    if (bytes.length > outbox.length - at) return -1;
    outbox.set(bytes, at);
    return bytes.length;
  }
}

/** Bytes for the native half, which reads no shared memory of JavaScript's. */
export function plainBytes(data: Data | undefined): Uint8Array {
  if (data === undefined) return NONE;
  const bytes = bytesOf(data);
  return bytes.buffer instanceof SharedArrayBuffer ? bytes.slice() : bytes;
}
