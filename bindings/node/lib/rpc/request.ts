// What a handler gets, and how it fails on purpose.

import type { Data } from '../bus/streams.js';
import { invalid } from '../errors.js';
import type { Arrived } from './crossing.js';

/** Who calls: the client's user and process when the connection was made. */
export interface RpcPeer {
  /** The client's user, as the kernel recorded it. */
  readonly uid: number;
  /** The client's process; undefined if it has no number in our PID namespace. Numbers are used again. */
  readonly pid: number | undefined;
}

/**
 * An error of the application: a handler throws it, or rejects with it, and the caller gets the number and the text, with the
 * status `Application`.
 *
 * ```js
 * server.method('Store.Get', async (request) => {
 *   const value = await store.get(text(request.body));
 *   if (value === undefined) throw new Fault(404, 'there is no such key');
 *   return value;
 * });
 * ```
 */
export class Fault extends Error {
  /** The application's number, from 0 to 4294967295. */
  readonly code: number;
  /** What went wrong, for the caller. */
  readonly text: string;

  /** ERR_RAMWAY_INVALID_ARGUMENT for a code that is no whole number of 32 bits, or a text that is no string. */
  constructor(code: number, text = '') {
    if (typeof code !== 'number' || code >>> 0 !== code) {
      throw invalid(`Fault: the code is ${String(code)}, expected a whole number from 0 to 4294967295`);
    }
    if (typeof text !== 'string') throw invalid(`Fault: the text is ${String(text)}, expected a string`);
    super(text);
    this.code = code;
    this.text = text;
  }

  override get name(): string {
    return 'Fault';
  }
}

/** A call as its handler sees it: the request, and who makes it. */
export class RpcRequest {
  /** The method's number. */
  readonly method: number;
  /** The request's bytes: a copy that is the handler's own, for as long as it wants it. */
  readonly body: Uint8Array;
  /** The request's metadata: bytes that the application defines; empty if the caller gave none. A copy, as the body. */
  readonly meta: Uint8Array;
  /** The client. */
  readonly peer: RpcPeer;
  /** Whether the caller wants a stream. A handler that gives one reply serves it too: the stream has one element. */
  readonly isStream: boolean;
  /**
   * Metadata of the reply, or of the next element: bytes that the application defines, given as a body is. Undefined is none.
   * It is of one reply or element, and undefined again after that.
   */
  replyMeta: Data | undefined;
  readonly #deadline: number;
  #stopped = false;
  #controller: AbortController | undefined;

  /** @internal */
  constructor(call: Arrived) {
    this.method = call.method;
    this.body = call.body;
    this.meta = call.meta;
    this.peer = { uid: call.uid, pid: call.pid };
    this.isStream = call.isStream;
    this.#deadline = call.deadline;
  }

  /** How many milliseconds the call has left, at least 0; undefined without a limit. */
  get remaining(): number | undefined {
    return this.#deadline === Infinity ? undefined : Math.max(0, this.#deadline - performance.now());
  }

  /** Whether the call was cancelled, its time is over or its client is gone: nobody wants the reply any more. */
  get cancelled(): boolean {
    return this.#stopped || (this.#deadline !== Infinity && performance.now() >= this.#deadline);
  }

  /**
   * Aborts, with an AbortError, once the call is cancelled, its time is over or its client is gone: for what the handler
   * waits for. Once the handler has ended it does not abort any more.
   *
   * ```js
   * server.method(7, async (request) => (await fetch(url, { signal: request.signal })).arrayBuffer());
   * ```
   */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped) this.#abort();
    }
    return this.#controller.signal;
  }

  /** @internal Nobody wants the reply any more. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#abort();
  }

  /** The body as UTF-8 text. */
  text(): string {
    return decoder.decode(this.body);
  }

  #abort(): void {
    const text = `nobody wants the reply of method ${this.method} any more: the call was cancelled, its time is over, or its client is gone`;
    this.#controller?.abort(new DOMException(text, 'AbortError'));
  }
}

const decoder = new TextDecoder();
