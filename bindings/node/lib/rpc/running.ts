// How handlers run, and what becomes of what they return, yield and throw.
import type { Data } from '../bus/streams.js';
import { invalid } from '../errors.js';
import { bytesOf } from '../ring/data.js';
import { type Crossing, ELEMENT, FAILED, FAULT, FINISH, NONE, REPLY } from './crossing.js';
import { Fault, type RpcRequest } from './request.js';

/** What a handler replies with: bytes, or text, which is sent as UTF-8; undefined or null is no bytes. */
export type RpcBody = Data | undefined | null | void;

/** The handler of a method that gives one reply. */
export type RpcHandler = (request: RpcRequest) => RpcBody | PromiseLike<RpcBody>;

/** What gives the elements of a stream. */
export type RpcElements = AsyncIterable<RpcBody> | Iterable<RpcBody>;

/** The handler of a method whose reply is a stream: a generator of either kind, or what gives an iterable. */
export type RpcStreamHandler = (request: RpcRequest) => RpcElements | PromiseLike<RpcElements>;

/** What a running call tells. */
export interface Owner {
  readonly crossing: Crossing;
  /** There are answers that have not crossed. */
  flush(): void;
  /** The call has its final answer. */
  ended(token: number): void;
}

/** A call whose handler has not ended. */
export interface Running {
  /** It was cancelled, or, of a stream, another element can be sent. */
  change(room: boolean, stopped: boolean): void;
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}

/** Bytes of what a handler has `returned` or `yielded`. */
function bodyOf(did: string, value: unknown): Uint8Array {
  if (value === undefined || value === null) return NONE;
  try {
    return bytesOf(value as Data);
  } catch {
    const kind = typeof value === 'object' ? 'an object' : `a ${typeof value}`;
    throw invalid(
      `the handler ${did} ${kind}: expected a string, a typed array, a DataView, an ArrayBuffer or undefined`,
    );
  }
}

/** The metadata that the handler has set for the next reply, which alone has it. */
function takeMeta(request: RpcRequest): Uint8Array {
  const meta = request.replyMeta;
  if (meta === undefined) return NONE;
  request.replyMeta = undefined;
  return bodyOf('set as replyMeta', meta);
}

/** "Name: message", as the caller is told it. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return 'the handler threw what has no text';
  }
}

/** Answers a call by what its handler has thrown. */
function fail({ crossing }: Owner, token: number, request: RpcRequest, thrown: unknown): void {
  if (thrown instanceof Fault && thrown.code >>> 0 === thrown.code && typeof thrown.text === 'string') {
    let meta = NONE;
    try {
      meta = takeMeta(request);
    } catch {
      // The fault is what the caller is to know.
    }
    crossing.say(token, FAULT, thrown.code, meta, thrown.text);
  } else {
    crossing.say(token, FAILED, 0, NONE, textOf(thrown));
  }
}

function reply(owner: Owner, token: number, request: RpcRequest, value: unknown): void {
  let [meta, body] = [NONE, NONE];
  try {
    body = bodyOf('returned', value);
    meta = takeMeta(request);
  } catch (error) {
    fail(owner, token, request, error);
    return;
  }
  owner.crossing.answer(token, REPLY, 0, meta, body);
}

/** Runs a handler that gives one reply; what still runs then is given. */
export function run(owner: Owner, token: number, request: RpcRequest, handler: RpcHandler): Running | null {
  let value: unknown;
  try {
    value = handler(request);
    if (isPromise(value)) return new Replying(owner, token, request, value);
  } catch (error) {
    fail(owner, token, request, error);
    return null;
  }
  reply(owner, token, request, value);
  return null;
}

/** A handler that has given a promise. */
class Replying implements Running {
  constructor(
    owner: Owner,
    token: number,
    private readonly request: RpcRequest,
    value: PromiseLike<unknown>,
  ) {
    const settled = (answer: typeof reply) => (outcome: unknown) => {
      owner.ended(token);
      answer(owner, token, request, outcome);
      owner.flush();
    };
    Promise.resolve(value).then(settled(reply), settled(fail));
  }

  change(_: boolean, stopped: boolean): void {
    if (stopped) this.request.stop();
  }
}

/** Runs a handler whose reply is a stream. */
export function runStream(owner: Owner, token: number, request: RpcRequest, handler: RpcStreamHandler): Running | null {
  try {
    return new Streaming(owner, token, request).begin(handler(request));
  } catch (error) {
    fail(owner, token, request, error);
    return null;
  }
}

/** What is asked for elements. */
interface Elements {
  next(): unknown;
  return?: (() => unknown) | undefined;
}

function elementsOf(value: unknown): Elements {
  if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)) {
    const { [Symbol.asyncIterator]: several, [Symbol.iterator]: each } = value as Partial<
      AsyncIterable<unknown> & Iterable<unknown>
    >;
    if (several !== undefined) return several.call(value);
    if (each !== undefined) return each.call(value);
  }
  throw invalid(
    'the handler of a stream gave no iterable: expected a generator, an array or another iterable of bodies',
  );
}

/** A stream: it is asked for its next element only when the caller has room for it, one at a time. */
class Streaming implements Running {
  private elements: Elements | null = null;
  /** The caller has room for an element: it wants at least one. */
  private room = true;
  private stopped = false;
  private done = false;
  /** Code of the handler's runs. */
  private inside = false;
  /** Promises of the handler's that are not settled. */
  private pending = 0;
  /** `return` was called. */
  private left = false;

  constructor(
    private readonly owner: Owner,
    private readonly token: number,
    private readonly request: RpcRequest,
  ) {}

  /** With what the handler has given. Null if it has ended already. */
  begin(given: unknown): Running | null {
    this.ask(
      () => given,
      (value) => {
        this.elements = elementsOf(value);
      },
    );
    this.goOn();
    return this.done ? null : this;
  }

  change(room: boolean, stopped: boolean): void {
    if (room) this.room = true;
    if (stopped && !this.stopped) {
      this.stopped = true;
      this.request.stop();
    }
    this.goOn();
  }

  /** Does what there is to do, until something is to be waited for. */
  private goOn(): void {
    while (!this.done && !this.inside) {
      const { elements } = this;
      if (this.stopped && !this.left && elements !== null) {
        // Also while an element is waited for: that may end the wait.
        this.left = true;
        this.ask(
          () => elements.return?.(),
          () => {},
        );
        continue;
      }
      if (this.pending > 0) return;
      if (this.stopped) {
        this.finish();
        return;
      }
      if (elements === null || !this.room) return;
      this.ask(
        () => elements.next(),
        (step) => this.take(step as IteratorResult<unknown>),
      );
    }
  }

  /** Asks the handler for something, which may come as a promise. */
  private ask(from: () => unknown, then: (value: unknown) => void): void {
    let value: unknown;
    let later = false;
    this.inside = true;
    try {
      value = from();
      later = isPromise(value);
      if (!later) then(value);
    } catch (error) {
      this.fail(error);
    } finally {
      this.inside = false;
    }
    if (!later) return;
    this.pending++;
    const settled = (act: (outcome: unknown) => void) => (outcome: unknown) => {
      this.pending--;
      try {
        act(outcome);
      } catch (error) {
        this.fail(error);
      }
      this.goOn();
      this.owner.flush();
    };
    Promise.resolve(value).then(
      settled(then),
      settled((error) => this.fail(error)),
    );
  }

  private take(step: IteratorResult<unknown>): void {
    if (typeof step !== 'object' || step === null) throw invalid("the iterator's next() gave no object");
    // One that is stopped ends when all of it is settled.
    if (this.stopped || this.done) return;
    if (step.done) {
      this.finish();
      return;
    }
    let [meta, body] = [NONE, NONE];
    try {
      body = bodyOf('yielded', step.value);
      meta = takeMeta(this.request);
    } catch (error) {
      this.fail(error);
      this.abandon();
      return;
    }
    this.room = false;
    this.owner.crossing.answer(this.token, ELEMENT, 0, meta, body);
  }

  private finish(): void {
    this.end();
    this.owner.crossing.answer(this.token, FINISH, 0, NONE, NONE);
  }

  private fail(error: unknown): void {
    if (this.done || this.stopped) return;
    this.end();
    fail(this.owner, this.token, this.request, error);
  }

  private end(): void {
    this.done = true;
    this.owner.ended(this.token);
  }

  /** What has given an element that is none is asked no more. */
  private abandon(): void {
    try {
      Promise.resolve(this.elements?.return?.()).catch(() => {});
    } catch {
      // It has failed already.
    }
  }
}
