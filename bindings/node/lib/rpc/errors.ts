// How calls fail, and the numbers of methods that have names.
import { invalid, RamwayError } from '../errors.js';
import {
  type ErrorKind,
  METHOD_RESERVED,
  RPC_APPLICATION,
  RPC_CANCELLED,
  RPC_DRAINING,
  RPC_HANDLER_FAILED,
  RPC_NO_SUCH_METHOD,
  RPC_OVERLOADED,
  RPC_REPLY_TOO_LARGE,
  RPC_TIMED_OUT,
} from '../facts.js';

/** How a server says that a call has ended without a reply, by its name in every language. */
export type CallStatus =
  | 'Application'
  | 'NoSuchMethod'
  | 'TimedOut'
  | 'Cancelled'
  | 'Overloaded'
  | 'ReplyTooLarge'
  | 'Draining'
  | 'HandlerFailed';

/** @internal By their numbers. */
export const STATUSES: ReadonlyMap<number, CallStatus> = new Map([
  [RPC_APPLICATION, 'Application'],
  [RPC_NO_SUCH_METHOD, 'NoSuchMethod'],
  [RPC_TIMED_OUT, 'TimedOut'],
  [RPC_CANCELLED, 'Cancelled'],
  [RPC_OVERLOADED, 'Overloaded'],
  [RPC_REPLY_TOO_LARGE, 'ReplyTooLarge'],
  [RPC_DRAINING, 'Draining'],
  [RPC_HANDLER_FAILED, 'HandlerFailed'],
]);

/**
 * A call that has no reply.
 *
 * Either the server ended it: then `status` says how, and `kind` is the same. Or this side did, or the connection is over:
 * then there is no `status`, and `kind` is `TimedOut` by the call's own time limit, `TooLarge` for a request that the
 * server's rings cannot hold or a reply beyond `maxBuffered`, `Closed`, `PeerDead`, `Corrupt`, `Detached` or
 * `InvalidArgument`. `code` follows `kind` in both cases: `ERR_RAMWAY_TIMED_OUT`, `ERR_RAMWAY_NO_SUCH_METHOD`.
 *
 * ```js
 * try {
 *   await client.call('Store.Get', key, { timeout: 50 });
 * } catch (error) {
 *   if (error instanceof CallError && !error.mayHaveRun) retryLater();
 *   else throw error;
 * }
 * ```
 */
export class CallError extends RamwayError {
  /** How the server ended the call; undefined if it did not. */
  readonly status: CallStatus | undefined;
  /** The number that the handler replied with, of the status `Application`; else 0. */
  readonly applicationCode: number;
  /** What the server wrote, of `Application` and `HandlerFailed`; else what went wrong, or ''. */
  readonly text: string;
  /** Whether the server may have begun the call. If not, it can be made again without being made twice. */
  readonly mayHaveRun: boolean;

  /** @internal */
  constructor(
    kind: ErrorKind | CallStatus,
    message: string,
    mayHaveRun: boolean,
    said?: { status: CallStatus; applicationCode: number; text: string },
  ) {
    super(kind, message);
    this.status = said?.status;
    this.applicationCode = said?.applicationCode ?? 0;
    this.text = said === undefined ? message : said.text;
    this.mayHaveRun = mayHaveRun;
  }

  override get name(): string {
    return 'CallError';
  }
}

const encoder = new TextEncoder();

/**
 * The number of a method's name: FNV-1a of 32 bits over its UTF-8 bytes, kept below Ramway's own methods. The same in
 * every language.
 *
 * ```js
 * methodId('Store.Get') === 0xbadebbdc;
 * ```
 */
export function methodId(name: string): number {
  if (typeof name !== 'string') throw invalid(`methodId: the name is ${String(name)}, expected a string`);
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    const unit = name.charCodeAt(i);
    if (unit > 0x7f) return reduced(hashed(hash, encoder.encode(name.slice(i))));
    hash = Math.imul(hash ^ unit, 0x01000193);
  }
  return reduced(hash);
}

function hashed(hash: number, bytes: Uint8Array): number {
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}

function reduced(hash: number): number {
  const number = hash >>> 0;
  return number >= METHOD_RESERVED ? number - METHOD_RESERVED : number;
}

/** @internal A method as calls and handlers are given it: its number, or its name. */
export function methodOf(what: string, method: unknown): number {
  if (typeof method === 'number' && method >>> 0 === method) return method;
  if (typeof method === 'string') return methodId(method);
  throw invalid(`${what}: the method is ${String(method)}, expected a number from 0 to 4294967295 or a name`);
}
