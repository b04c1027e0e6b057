// What goes between JavaScript and the native half of an RPC server, many calls and answers at a time: numbers and bytes in
// arrays that are filled again and again. `src/rpc_server.rs` says what each number is.
import type { NativeRpcServer } from '../../native.cjs';
import { call } from '../errors.js';

/** What an answer is. */
export const REPLY = 0;
export const FAULT = 1;
export const FAILED = 2;
export const FINISH = 3;
export const ELEMENT = 4;

const HEAD = 4;
const RECORD = 8;
const ANSWER = 5;
/** Records and answers of one crossing. */
const MANY = 256;
/** Bytes of requests, and as many of replies, that cross with them; what is longer crosses alone. */
const BYTES = 64 << 10;

const encoder = new TextEncoder();
/** No bytes. */
export const NONE: Uint8Array = new Uint8Array(0);

/** A call that has come. Its bytes are its own. */
export interface Arrived {
  token: number;
  method: number;
  isStream: boolean;
  /** When its time is over, on performance.now()'s clock; Infinity without a limit. */
  deadline: number;
  uid: number;
  pid: number | undefined;
  meta: Uint8Array;
  body: Uint8Array;
}

/** Both directions. */
export class Crossing {
  /** Whether the server was shut down, as of the last crossing. */
  isOver = false;
  /** Milliseconds until the next crossing is due; Infinity: there is no such time. */
  due = Infinity;
  /** How many answers have not crossed. */
  answers = 0;
  private readonly out = new Float64Array(ANSWER * MANY);
  private readonly outBytes = new Uint8Array(BYTES);
  private outUsed = 0;
  private readonly into = new Float64Array(HEAD + RECORD * MANY);
  private readonly intoBytes = new Uint8Array(BYTES);
  /** The records that have come, and of them the next one; where its bytes begin. */
  private came = 0;
  private next = 0;
  private at = 0;
  /** When they did, on performance.now()'s clock. */
  private crossed = 0;

  /** Why an answer could not be handed over: the next crossing fails by it. */
  private failure: { reason: unknown } | undefined;
  private closed = false;

  constructor(private readonly native: NativeRpcServer) {}

  /** The native half is closed: answers go nowhere. */
  close(): void {
    this.closed = true;
    this.came = this.answers = 0;
  }

  /** Hands the answers over, serves, and with `takes` gives whether anything has come. Before that all of it is to be read. */
  cross(takes: boolean): boolean {
    if (this.failure !== undefined) throw this.failure.reason;
    const { answers } = this;
    // First: if it throws, they are not handed over again.
    this.answers = this.outUsed = 0;
    const came = call(() => this.native.cross(this.out, this.outBytes, answers, this.into, this.intoBytes, takes));
    this.isOver = this.into[0] === 1;
    this.due = this.into[1]!;
    if (takes) {
      this.came = came;
      this.crossed = performance.now();
      this.next = this.at = 0;
    }
    return came !== 0;
  }

  /** Whether there is a record to be read. */
  get has(): boolean {
    return this.next < this.came;
  }

  /** Reads the next record: a call that has come, or what `changed` is told. */
  read(changed: (token: number, room: boolean, stopped: boolean) => void): Arrived | null {
    const { into } = this;
    const from = HEAD + RECORD * this.next++;
    const token = into[from]!;
    if (into[from + 1] === -1) {
      changed(token, into[from + 2] === 1, into[from + 3] === 1);
      return null;
    }
    const pid = into[from + 5]!;
    const meta = this.take(into[from + 6]!);
    const body = this.take(into[from + 7]!);
    if (into[from + 6]! < 0) call(() => this.native.bytes(token, meta, body));
    return {
      token,
      method: into[from + 1]!,
      isStream: into[from + 2] === 2,
      deadline: into[from + 3]! + this.crossed,
      uid: into[from + 4]!,
      pid: pid === -1 ? undefined : pid,
      meta,
      body,
    };
  }

  /** Has an answer cross with the next ones. `bytes` are copied. Never throws. */
  answer(token: number, what: number, code: number, meta: Uint8Array, bytes: Uint8Array): void {
    if (this.closed) return;
    const length = meta.length + bytes.length;
    try {
      if (this.answers === MANY || length > BYTES - this.outUsed) this.cross(false);
      if (length > BYTES) {
        // An empty one may be detached, which native code does not take.
        const filled = (given: Uint8Array) => (given.length === 0 ? NONE : given);
        call(() => this.native.answer(token, what, code, filled(meta), filled(bytes)));
        return;
      }
    } catch (reason) {
      this.failure ??= { reason };
      return;
    }
    this.put(token, what, code, meta.length, bytes.length);
    // Not of an empty one, which may be detached.
    if (meta.length > 0) this.outBytes.set(meta, this.outUsed);
    if (bytes.length > 0) this.outBytes.set(bytes, this.outUsed + meta.length);
    this.outUsed += length;
  }

  /** {@link answer} with a text. */
  say(token: number, what: number, code: number, meta: Uint8Array, text: string): void {
    this.answer(token, what, code, meta, encoder.encode(text));
  }

  private put(token: number, what: number, code: number, metaLength: number, length: number): void {
    const to = ANSWER * this.answers++;
    const { out } = this;
    out[to] = token;
    out[to + 1] = what;
    out[to + 2] = code;
    out[to + 3] = metaLength;
    out[to + 4] = length;
  }

  /** Bytes that have come, or room for those that had none: always an array of its own, which whoever gets it may transfer. */
  private take(length: number): Uint8Array {
    if (length < 0) return new Uint8Array(-1 - length);
    const from = this.at;
    this.at += length;
    return this.intoBytes.slice(from, this.at);
  }
}
