// Calls of the methods of an RPC server.
import { clearTimeout, setTimeout } from 'node:timers';
import * as native from '../../native.cjs';
import type { Data } from '../bus/streams.js';
import { call, invalid } from '../errors.js';
import { ITERATION_SPIN_MS, METHOD_DESCRIBE, METHOD_PING, POLL_INTERVAL_MS, RPC_WINDOW_DEFAULT } from '../facts.js';
import {
  checkNames,
  nameOf,
  RPC_CONNECT,
  RPC_CONNECT_SYNC,
  type RpcConnectOptions,
  read,
  type WaitPolicy,
} from '../options.js';
import { Idle } from '../waiting/idle.js';
import { opening } from '../waiting/opening.js';
import {
  blockUntil,
  checkCall,
  type SyncOptions,
  TIMER_MAX,
  WAIT_NAMES,
  type WaitOptions,
} from '../waiting/waiting.js';
import { Board, CHANGED, ELEMENT, NOTHING, plainBytes } from './board.js';
import {
  Called,
  type CallOptions,
  type CallSyncOptions,
  Pending,
  Started,
  type StreamOptions,
  type UnderWay,
} from './call.js';
import { CallError, methodOf } from './errors.js';
import { type MethodInfo, methodsOf, type Reply } from './reply.js';
import { Elements, RpcStream } from './stream.js';

const CALL_NAMES = [...WAIT_NAMES, 'meta'];
const STREAM_NAMES = [...CALL_NAMES, 'window'];
const SYNC_NAMES = ['timeout', 'meta', 'allowMainThread'];

/**
 * Calls the methods of an RPC server of this machine, in any language. `RpcClient.connect` makes one.
 *
 * A call is sent at once, or kept and sent in order while the server's limit of calls in flight is reached or the ring is
 * full. Its promise is resolved by the event loop, which is never blocked; replies are copies. What has no reply rejects
 * with a {@link CallError}, which says how the call ended and whether it may have run. Nothing is repeated by itself, and
 * a client does not connect again by itself.
 *
 * It belongs to one thread. While a reply, or the next element of a stream, is to come it keeps the process running,
 * unless `unref` was called.
 *
 * ```js
 * const client = await RpcClient.connect('store');
 * const { body } = await client.call('Store.Get', 'key', { timeout: 50 });
 * for await (const { body } of client.stream('Store.Scan', 'k')) show(body);
 * client.close();
 * ```
 */
export class RpcClient implements Disposable, AsyncDisposable {
  /** The name that it was connected to. */
  readonly name: string;
  /** The user that the server acted as when the connection was made, as the kernel recorded it. */
  readonly peerUid: number;
  /** The server's process when the connection was made; undefined if it has no number in our PID namespace. */
  readonly peerPid: number | undefined;
  /** How many calls the server lets this client have in flight. Those beyond wait in the client, in their order. */
  readonly maxInFlight: number;
  /** Bytes of the longest request: its metadata, rounded up to 16, and its body together. */
  readonly maxRequestLength: number;
  /** @internal What errors call it. */
  readonly what: string;
  private readonly native: native.NativeRpcClient;
  private readonly board: Board;
  private readonly idle: Idle;
  private policy: WaitPolicy;
  private polls: boolean;
  private isClosed = false;
  /** By their places. */
  private calls: (UnderWay | undefined)[] = [];
  private underWay = 0;
  /** Calls with one reply, and streams whose next element is waited for. */
  private waited = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** When it fires. */
  private timerAt = Infinity;
  private readonly news = () => {
    if (this.board.hasNews()) this.receive(false);
    this.follow();
  };

  /** @internal */
  constructor(client: native.NativeRpcClient, name: string, policy: WaitPolicy = 'hybrid') {
    this.native = client;
    this.name = name;
    this.what = `the RPC server '${name}'`;
    this.policy = policy;
    this.peerUid = client.peerUid;
    this.peerPid = client.peerPid ?? undefined;
    this.maxInFlight = client.maxInFlight;
    this.maxRequestLength = client.maxRequestLen;
    this.polls = call(() => client.polls());
    const board = new Board(call(() => client.memory()));
    this.board = board;
    const self = this;
    this.idle = new Idle({
      poll: () => board.hasNews(),
      arm: () => this.receive(true),
      descriptor: () => this.descriptor(),
      get spin() {
        return self.policy === 'spin' ? Infinity : self.polls ? ITERATION_SPIN_MS : 0;
      },
    });
  }

  /**
   * Connects to the server at `name` (or at the path of its socket), waiting at most `timeout` milliseconds (default
   * 10 000, `Infinity`: as long as it takes) for one that is not there yet, does not accept, or is flooded.
   *
   * ERR_RAMWAY_ABI_MISMATCH where a plain listener is, ERR_RAMWAY_BUSY if the server has as many clients as it takes, else
   * as for `Bus.connect`.
   */
  static async connect(name: string, options?: RpcConnectOptions & WaitOptions): Promise<RpcClient> {
    const at = nameOf('RpcClient.connect', name);
    const { signal, ...settings } = read('RpcClient.connect', RPC_CONNECT, options);
    return opening(
      signal,
      async (attempt) => new RpcClient(await native.rpcConnect(attempt, at, settings), at, settings.wait),
    );
  }

  /** {@link RpcClient.connect}, blocking. In a worker, unless `allowMainThread`. */
  static connectSync(name: string, options?: RpcConnectOptions & SyncOptions): RpcClient {
    const at = nameOf('RpcClient.connectSync', name);
    const { allowMainThread, ...settings } = read('RpcClient.connectSync', RPC_CONNECT_SYNC, options);
    blockUntil('RpcClient.connectSync', { allowMainThread });
    return new RpcClient(
      call(() => native.rpcConnectSync(at, settings)),
      at,
      settings.wait,
    );
  }

  // ---- calls

  /**
   * Sends a request and resolves with its reply. `method` is a number, or a name, whose number is `methodId(name)`.
   *
   * Rejects with a {@link CallError}: what the server said (`status`), or ERR_RAMWAY_TIMED_OUT by the call's own `timeout`,
   * ERR_RAMWAY_TOO_LARGE for a request that the server's rings cannot hold or a reply beyond `maxBuffered`,
   * ERR_RAMWAY_CLOSED if the server or this client closed, ERR_RAMWAY_PEER_DEAD, ERR_RAMWAY_CORRUPT if the server broke
   * the rules, ERR_RAMWAY_DETACHED on a client that is closed. With the signal's reason after an abort: the call is
   * cancelled then.
   */
  call(method: number | string, body?: Data, options?: CallOptions): Promise<Reply> {
    let place: number;
    try {
      place = this.request('call', CALL_NAMES, method, body, options, 0);
    } catch (error) {
      return Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      this.add(place, new Called(this, place, options?.signal, resolve, reject));
    });
  }

  /** {@link RpcClient.call}, blocking the thread until the reply comes. In a worker, unless `allowMainThread`. Replies to other
   * calls that come meanwhile are received, and their promises resolved when the event loop goes on. */
  callSync(method: number | string, body?: Data, options?: CallSyncOptions): Reply {
    if (options !== undefined) checkNames('callSync', options, SYNC_NAMES);
    blockUntil('RpcClient.callSync', options);
    const place = this.send('callSync', method, body, options?.meta, options?.timeout, 0);
    let over = false;
    try {
      for (;;) {
        // A worker can be terminated between two waits.
        const buffers = call(() => this.native.wait(place, POLL_INTERVAL_MS));
        over = this.board.count !== 0 && this.board.what(0) !== NOTHING;
        if (over) return this.outcome(buffers);
      }
    } finally {
      if (!over) call(() => this.native.cancel(place));
      if (this.underWay !== 0) this.look();
    }
  }

  /**
   * Sends a request and gives the call that is under way. `cancel`, or the end of the block of a `using`, cancels it; one that is
   * never awaited is cancelled when it is collected as garbage, whenever that is.
   *
   * Throws what keeps the call from being made: as `call`.
   */
  start(method: number | string, body?: Data, options?: CallOptions): Pending {
    const place = this.request('start', CALL_NAMES, method, body, options, 0);
    return new Pending(this.add(place, new Started(this, place, options?.signal)));
  }

  /**
   * Sends a request whose reply is a stream. At most `window` (16) elements are under way: who reads slowly stops this stream
   * and nothing else. `timeout` is that of the whole stream.
   *
   * Throws what keeps the call from being made: as `call`.
   */
  stream(method: number | string, body?: Data, options?: StreamOptions): RpcStream {
    const window = options?.window ?? RPC_WINDOW_DEFAULT;
    if (!(window >>> 0 === window && window !== 0)) {
      throw invalid(`stream: the option 'window' is ${String(window)}, expected a whole number of elements from 1 on`);
    }
    const place = this.request('stream', STREAM_NAMES, method, body, options, window);
    return new RpcStream(this.add(place, new Elements(this, place, options?.signal)));
  }

  /** Resolves when the server has answered: it is there and reads. Rejects as `call`. */
  async ping(options?: WaitOptions): Promise<void> {
    if (options !== undefined) checkCall('ping', options, WAIT_NAMES);
    await this.call(METHOD_PING, undefined, options);
  }

  /** The numbers and names of the server's methods, in the order of the numbers. Rejects as `call`. */
  async describe(options?: WaitOptions): Promise<MethodInfo[]> {
    if (options !== undefined) checkCall('describe', options, WAIT_NAMES);
    return methodsOf(await this.call(METHOD_DESCRIBE, undefined, options));
  }

  // ---- the client

  /** How many calls are sent and have no final reply: also those that were cancelled, until the server has ended them. */
  get inFlight(): number {
    if (this.isClosed) return 0;
    this.look();
    return call(() => this.native.inFlight);
  }

  /** Whether the server's process holds its end of the connection. A stopped process does. */
  get peerAlive(): boolean {
    return call(() => this.native.peerAlive);
  }

  /** How calls wait: 'spin' polls in every iteration of the loop (a blocking call: all the time), 'hybrid' for a while, 'block'
   * not at all, before it sleeps. */
  get wait(): WaitPolicy {
    return this.policy;
  }

  set wait(policy: WaitPolicy) {
    call(() => this.native.setWait(policy));
    this.policy = policy;
    this.polls = call(() => this.native.polls());
  }

  /** What is to come keeps the process running (the default). */
  ref(): this {
    this.idle.hold(true);
    return this;
  }

  /** The process may end before it has come. */
  unref(): this {
    this.idle.hold(false);
    return this;
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return this.isClosed;
  }

  /** Ends the connection, at once: the server cancels what is under way, whose callers get ERR_RAMWAY_CLOSED. Again: nothing
   * happens. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.idle.forget();
    clearTimeout(this.timer);
    const { calls } = this;
    this.calls = [];
    this.underWay = 0;
    this.waited = 0;
    call(() => this.native.close(this.board.mapped));
    const text = `this RPC client of '${this.name}' was closed while the call was under way`;
    for (const under of calls) under?.fail(new CallError('Closed', text, true));
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  // ---- how it works

  /** @internal Receives what is there. */
  look(): void {
    if (this.isClosed) return;
    this.receive(true);
    this.follow();
  }

  /** @internal Lets go of a call: it is cancelled. */
  letGo(place: number): void {
    if (this.isClosed) return;
    this.remove(place);
    call(() => this.native.cancel(place));
    this.follow();
  }

  /** @internal The next element of a stream is waited for, or no more. */
  streamWaits(yes: boolean): void {
    if (this.isClosed) return;
    this.waited += yes ? 1 : -1;
    this.follow();
  }

  /** @internal The next element of a stream; null: none now, or it has ended, which it is told. */
  takeElement(place: number, stream: UnderWay): Reply | null {
    const { board } = this;
    const buffers = call(() => this.native.take(place));
    // It counts the buffers anew.
    if (board.count === 0) return null;
    const what = board.what(0);
    if (what === NOTHING) return null;
    if (what === ELEMENT) return board.reply(0, buffers);
    this.remove(place);
    const error = board.error(0, buffers);
    if (error === null) stream.end(board.reply(0, buffers));
    else stream.fail(error);
    this.follow();
    return null;
  }

  /** The reply of the one event that there is; throws the error that it is. */
  private outcome(buffers: ArrayBuffer[] | null): Reply {
    const error = this.board.error(0, buffers);
    if (error !== null) throw error;
    return this.board.reply(0, buffers);
  }

  /** Checks the options, and sends. Gives the place of the call. */
  private request(
    what: string,
    names: readonly string[],
    method: number | string,
    body: Data | undefined,
    options: CallOptions | undefined,
    window: number,
  ): number {
    if (options === undefined) return this.send(what, method, body, undefined, undefined, window);
    checkCall(what, options, names);
    return this.send(what, method, body, options.meta, options.timeout, window);
  }

  private send(
    what: string,
    method: number | string,
    body: Data | undefined,
    meta: Data | undefined,
    timeout: number | undefined,
    window: number,
  ): number {
    if (this.isClosed) throw new CallError('Detached', `this RPC client of '${this.name}' is closed`, false);
    const number = methodOf(what, method);
    const { board, native } = this;
    const limit = timeout === undefined || timeout === Infinity ? -1 : timeout;
    const metaLength = meta === undefined ? 0 : board.put(meta, 0);
    const bodyLength = metaLength < 0 ? -1 : body === undefined ? 0 : board.put(body, metaLength);
    const place = call(() =>
      bodyLength >= 0
        ? native.start(number, window, limit, metaLength, bodyLength)
        : native.startWith(number, window, limit, plainBytes(meta), plainBytes(body)),
    );
    if (place >= 0) return place;
    const { refusal } = board;
    // If the connection is over, that is their end too.
    if (this.underWay !== 0) this.look();
    throw refusal;
  }

  private add<U extends UnderWay>(place: number, under: U): U {
    this.calls[place] = under;
    this.underWay++;
    if (under.changed === undefined) this.waited++;
    this.follow();
    return under;
  }

  private remove(place: number): UnderWay | undefined {
    const under = this.calls[place];
    if (under !== undefined) {
      this.calls[place] = undefined;
      this.underWay--;
      if (under.changed === undefined) this.waited--;
    }
    return under;
  }

  /** Takes what has come for calls. Settles promises, and runs nothing of the program's. */
  private receive(tell: boolean): boolean {
    const { board, native } = this;
    let any = false;
    for (let more = true; more; ) {
      const buffers = call(() => native.progress(tell));
      const { count } = board;
      more = board.more;
      if (count !== 0) any = true;
      let streams: UnderWay[] | null = null;
      for (let index = 0; index < count; index++) {
        const place = board.place(index);
        if (board.what(index) === CHANGED) {
          // Taking an element puts it on the board.
          const stream = this.calls[place];
          streams ??= [];
          if (stream !== undefined) streams.push(stream);
          continue;
        }
        const error = board.error(index, buffers);
        const reply = error === null ? board.reply(index, buffers) : null;
        const under = this.remove(place);
        if (reply !== null) under?.end(reply);
        else under?.fail(error);
      }
      if (streams !== null) for (const stream of streams) stream.changed?.();
    }
    return any;
  }

  /** Waits for what is to come, as long as anybody does. A stream that nobody reads from is left alone. */
  private follow(): void {
    if (this.isClosed) return;
    if (this.waited === 0) {
      if (this.idle.waits) this.idle.cancel();
      if (this.underWay === 0) return;
    } else if (!this.idle.waits) {
      this.idle.wait(this.news);
    }
    const { due } = this.board;
    if (due === Infinity) return;
    const at = performance.now() + due;
    // One that fires early looks again.
    if (this.timerAt <= at) return;
    clearTimeout(this.timer);
    this.timerAt = at;
    this.timer = setTimeout(fire, Math.min(Math.ceil(due), TIMER_MAX), new WeakRef(this));
    // What keeps the process running is the wait.
    this.timer.unref();
  }

  /** @internal The time of a call may be over, or there may be room for one. */
  fired(): void {
    this.timerAt = Infinity;
    if (this.isClosed || this.underWay === 0) return;
    this.receive(false);
    this.follow();
  }

  private descriptor(): number {
    try {
      return this.native.descriptor();
    } catch {
      // It is asked now and then.
      return -1;
    }
  }
}

function fire(client: WeakRef<RpcClient>): void {
  client.deref()?.fired();
}
