// The side that is called.
import * as native from '../../native.cjs';
import { call, invalid, RamwayError } from '../errors.js';
import {
  millisecondsOf,
  nameOf,
  RPC_METHOD,
  RPC_SERVER,
  RPC_SERVER_SYNC,
  type RpcServerOptions,
  read,
  SIGNAL,
} from '../options.js';
import { opening } from '../waiting/opening.js';
import { onAbort } from './call.js';
import { methodOf } from './errors.js';
import type { RpcHandler, RpcStreamHandler } from './running.js';
import { Serving } from './serving.js';

/** How a method is registered. */
export interface RpcMethodOptions {
  /** With a number: the name that `describe` tells clients. It has no control characters. */
  name?: string | undefined;
}

/**
 * Serves calls of any number of clients at a name, in any language.
 *
 * ```js
 * const server = await RpcServer.bind('store');
 * server.method('Store.Get', async (request) => (await store.get(request.text())) ?? new Uint8Array());
 * server.stream('Store.Keys', async function* (request) {
 *   for await (const key of store.keys(request.text())) yield key;
 * });
 * process.once('SIGTERM', () => server.shutdown(5000));
 * await server.run();
 * ```
 *
 * Handlers run in the event loop, which nothing here blocks. A handler gets an {@link RpcRequest}; what it returns or
 * resolves with is the reply. A {@link Fault} that it throws or rejects with is told to the caller as the application's error;
 * anything else as `HandlerFailed`, with the text "Name: message". Any number of handlers may be under way, of one client at
 * most `maxInFlight`. A call keeps its place until its handler has ended, also when it was cancelled, and so does a client that is
 * gone: a handler whose promise never settles keeps both. Give `signal` of the request to what it waits for.
 *
 * A client that writes what no correct client writes is dropped, and no other is disturbed. The calls of a client that is
 * gone are cancelled, as those whose time is over. What has not begun by then is not run.
 */
export class RpcServer implements Disposable, AsyncDisposable {
  /** The name that it was made with. */
  readonly name: string;
  /** The socket's path, which clients can be given in place of the name. */
  readonly path: string;
  readonly #native: native.NativeRpcServer;
  readonly #serving: Serving;
  #runs = false;

  /** @internal */
  constructor(server: native.NativeRpcServer, name: string, options: RpcServerOptions) {
    this.name = name;
    this.path = server.path;
    this.#native = server;
    this.#serving = new Serving(server, options.wait ?? 'hybrid');
  }

  /**
   * Listens at `name`: `[A-Za-z0-9._-]{1,80}` in the Ramway directory (RAMWAY_DIR), or with a slash the path of the socket.
   * Nothing is served before `run`. ERR_RAMWAY_ALREADY_EXISTS if a live listener has the name, or something that is not
   * Ramway's to remove.
   */
  static async bind(
    name: string,
    options?: RpcServerOptions & { signal?: AbortSignal | undefined },
  ): Promise<RpcServer> {
    const at = nameOf('RpcServer.bind', name);
    const { signal, ...settings } = read('RpcServer.bind', RPC_SERVER, options);
    return opening(signal, async (attempt) => new RpcServer(await native.bindRpc(attempt, at, settings), at, settings));
  }

  /** {@link RpcServer.bind}, blocking: it does not wait for anybody. */
  static bindSync(name: string, options?: RpcServerOptions): RpcServer {
    const at = nameOf('RpcServer.bindSync', name);
    const settings = read('RpcServer.bindSync', RPC_SERVER_SYNC, options);
    return new RpcServer(
      call(() => native.bindRpcSync(at, settings)),
      at,
      settings,
    );
  }

  /**
   * Registers the handler of a method that gives one reply. `method` is its number, below 0xFFFF0000, or a name, whose number
   * is `methodId(name)`. Where the caller wants a stream, the reply is its only element.
   *
   * ```js
   * server.method(7, (request) => request.body); // the request again
   * server.method(8, async (request) => JSON.stringify(await work(request)), { name: 'Jobs.Work' });
   * ```
   *
   * ERR_RAMWAY_ALREADY_EXISTS if the server has a method with this number.
   */
  method(method: number | string, handler: RpcHandler, options?: RpcMethodOptions): this {
    const [number, name] = this.#method('RpcServer.method', method, handler, options);
    this.#serving.add(number, name, { one: handler });
    return this;
  }

  /**
   * Registers the handler of a method whose reply is a stream: an asynchronous generator, a generator, or a function that gives an
   * iterable. It is asked for the next element only when the caller has room for it; when the call is cancelled, `return()` ends
   * it, so that its `finally` runs. A caller that wants one reply gets `HandlerFailed`.
   *
   * ```js
   * server.stream('Log.Tail', async function* (request) {
   *   for await (const line of tail(request.text(), { signal: request.signal })) yield line;
   * });
   * ```
   */
  stream(method: number | string, handler: RpcStreamHandler, options?: RpcMethodOptions): this {
    const [number, name] = this.#method('RpcServer.stream', method, handler, options);
    this.#serving.add(number, name, { stream: handler });
    return this;
  }

  /**
   * Serves until the server is shut down or closed: then the promise resolves. Until then it keeps the runtime running, as `ref` says. `signal` closes the
   * server, and the promise rejects with its reason. ERR_RAMWAY_BUSY if it runs already, ERR_RAMWAY_DETACHED if it is closed.
   */
  async run(options?: { signal?: AbortSignal | undefined }): Promise<void> {
    const { signal } = read('RpcServer.run', SIGNAL, options);
    this.#check();
    if (this.#runs) throw new RamwayError('Busy', `the RPC server '${this.name}' is served already`);
    signal?.throwIfAborted();
    this.#runs = true;
    let aborted = false;
    const stop = onAbort(signal, () => {
      aborted = !this.closed;
      this.close();
    });
    try {
      await this.#serving.serve();
    } finally {
      stop?.();
    }
    if (aborted) throw signal?.reason;
  }

  /**
   * Takes no new client and no new call, waits for those that run for at most `timeout` milliseconds (default 0; `Infinity`: as
   * long as it takes), cancels the rest, which has 100 ms to end, and closes: then the promise resolves, and that of `run`. A
   * client all of whose calls are answered learns `Closed`; of the others those calls may have run (`PeerDead`). Of two time
   * limits the shorter one counts. Of one that does not run it serves, for so long.
   */
  async shutdown(timeout = 0): Promise<void> {
    millisecondsOf('RpcServer.shutdown', 'timeout', timeout);
    if (!this.closed) await this.#serving.shutdown(timeout);
  }

  /** Closes at once: what runs is cancelled, and its callers learn that it may have run. The promise of `run` resolves. */
  close(): void {
    this.#serving.close();
  }

  /** Whether it was shut down or closed. */
  get closed(): boolean {
    return this.#serving.closed;
  }

  /** How many clients are connected. */
  get clients(): number {
    return this.closed ? 0 : this.#native.clients;
  }

  /** Serving keeps the runtime running (the default). */
  ref(): this {
    this.#serving.hold(true);
    return this;
  }

  /** Serving does not keep the runtime running. */
  unref(): this {
    this.#serving.hold(false);
    return this;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** `shutdown()`: what runs is cancelled, and has 100 ms to end. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown();
  }

  #method(
    what: string,
    method: number | string,
    handler: unknown,
    options: RpcMethodOptions | undefined,
  ): [number, string | undefined] {
    const number = methodOf(what, method);
    if (typeof handler !== 'function') throw invalid(`${what}: the handler is ${typeof handler}, expected a function`);
    const { name } = read(what, RPC_METHOD, options);
    this.#check();
    if (typeof method === 'number') return [number, name];
    if (name !== undefined) throw invalid(`${what}: the option 'name' is for a number; '${method}' is a name`);
    return [number, method];
  }

  #check(): void {
    if (this.closed) throw new RamwayError('Detached', `the RPC server '${this.name}' is closed`);
  }
}
