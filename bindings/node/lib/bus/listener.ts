// Listeners: a name that processes connect to, each with a bus of its own.
import { EventEmitter } from 'node:events';
import * as native from '../../native.cjs';
import { call } from '../errors.js';
import { BIND, BIND_SYNC, type ListenOptions, nameOf, read, SYNC, WAIT, type WaitPolicy } from '../options.js';
import { opening } from '../waiting/opening.js';
import { blockUntil, checkWait, type SyncOptions, sleepUntil, timedOut, type WaitOptions } from '../waiting/waiting.js';
import { Accepting, nobody } from './accepting.js';
import { Bus } from './bus.js';

/** What a {@link Listener} tells. */
export interface ListenerEvents {
  /** A process has connected. Without a listener of this event connections wait for `accept`. */
  connection: [bus: Bus];
  /** The listener was closed. */
  close: [];
  /**
   * Memory or descriptors ran out for a connection. The connector was refused; the listener goes on. Emitted only where no
   * `accept` waits.
   */
  error: [error: unknown];
}

/**
 * Accepts connections, each a {@link Bus} with memory of its own.
 *
 * A connector that is silent, breaks the handshake or is another user's is refused and disturbs nobody: see `refused`
 * and `lastRefusal`. Closing removes the name; accepted buses live on.
 */
export class Listener extends EventEmitter<ListenerEvents> implements AsyncIterable<Bus>, Disposable, AsyncDisposable {
  /** The name that it was made with. */
  readonly name: string;
  /** The socket's path, which connectors can be given in place of the name. */
  readonly path: string;
  readonly #native: native.NativeListener;
  readonly #policy: WaitPolicy | undefined;
  readonly #accepting: Accepting;
  #refused = 0;
  #lastRefusal: string | undefined;

  /** @internal */
  constructor(listener: native.NativeListener, name: string, policy: WaitPolicy | undefined) {
    super();
    this.name = name;
    this.path = listener.path;
    this.#native = listener;
    this.#policy = policy;
    this.#accepting = new Accepting(listener, name, (bus) => new Bus(bus, name, policy));
    const sink = {
      accepted: (bus: Bus) => this.#connected(bus),
      failed: (error: unknown) => {
        if (this.listenerCount('error') > 0) this.emit('error', error);
      },
    };
    (this as EventEmitter).on('newListener', (event) => {
      if (event === 'connection' && !this.closed) this.#accepting.pour(sink);
    });
    (this as EventEmitter).on('removeListener', (event) => {
      if (event === 'connection' && this.listenerCount('connection') === 0) this.#accepting.pour(null);
    });
  }

  /**
   * Listens at `name`: `[A-Za-z0-9._-]{1,80}` in the Ramway directory (RAMWAY_DIR), or with a slash the path of the
   * socket. ERR_RAMWAY_ALREADY_EXISTS if a live listener has the name, or something that is not Ramway's to remove.
   */
  static override async bind(
    name: string,
    options?: ListenOptions & { signal?: AbortSignal | undefined },
  ): Promise<Listener> {
    const at = nameOf('Listener.bind', name);
    const { signal, ...settings } = read('Listener.bind', BIND, options);
    return opening(signal, async (attempt) => {
      return new Listener(await native.bind(attempt, at, settings, false), at, settings.wait);
    });
  }

  /** {@link Listener.bind}, blocking: it does not wait for anybody. */
  static bindSync(name: string, options?: ListenOptions): Listener {
    const at = nameOf('Listener.bindSync', name);
    const settings = read('Listener.bindSync', BIND_SYNC, options);
    return new Listener(
      call(() => native.bindSync(at, settings, false)),
      at,
      settings.wait,
    );
  }

  /**
   * The next connection. ERR_RAMWAY_TIMED_OUT; ERR_RAMWAY_NO_SPACE or ERR_RAMWAY_OS if there is no memory or no
   * descriptor for a bus (the connector was told, and the next call goes on).
   */
  async accept(options?: WaitOptions): Promise<Bus> {
    const limits = read('Listener.accept', WAIT, options);
    checkWait(limits);
    return this.#accepting.accept(limits);
  }

  /** {@link Listener.accept}, blocking. */
  acceptSync(options?: SyncOptions): Bus {
    const deadline = blockUntil('Listener.acceptSync', read('Listener.acceptSync', SYNC, options));
    const kept = this.#accepting.takeKept();
    if (kept !== undefined) return kept;
    for (;;) {
      const milliseconds = sleepUntil(deadline);
      const bus = call(() => this.#native.acceptSync(milliseconds));
      if (bus !== null) return new Bus(bus, this.name, this.#policy);
      if (milliseconds === 0) throw timedOut(nobody(this.name));
    }
  }

  /** A connection that waits to be accepted, or null if there is none: at once, but for making its memory. Errors are
   * those of `accept`. */
  tryAccept(): Bus | null {
    const kept = this.#accepting.takeKept();
    if (kept !== undefined) return kept;
    const bus = call(() => this.#native.acceptSync(0));
    return bus && new Bus(bus, this.name, this.#policy);
  }

  /** How many connectors have been refused or have given up so far. */
  get refused(): number {
    return this.closed ? this.#refused : this.#native.refused;
  }

  /** Why the last one was refused, for logs. */
  get lastRefusal(): string | undefined {
    return this.closed ? this.#lastRefusal : (this.#native.lastRefusal ?? undefined);
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return this.#accepting.closed;
  }

  /** Stops to listen and removes the name. A wait in `accept` is ERR_RAMWAY_DETACHED; iterations end. */
  close(): void {
    if (this.closed) return;
    this.#refused = this.#native.refused;
    this.#lastRefusal = this.#native.lastRefusal ?? undefined;
    this.#accepting.close();
    queueMicrotask(() => this.emit('close'));
  }

  /** The connections, until the listener is closed. */
  async *[Symbol.asyncIterator](): AsyncIterableIterator<Bus> {
    while (!this.closed) {
      let bus: Bus;
      try {
        bus = await this.#accepting.accept({});
      } catch (error) {
        if (this.closed) return;
        throw error;
      }
      yield bus;
    }
  }

  /** Waiting for connections keeps the runtime running (the default). */
  ref(): this {
    this.#accepting.hold(true);
    return this;
  }

  /** Waiting for connections does not keep the runtime running. */
  unref(): this {
    this.#accepting.hold(false);
    return this;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Closes, and waits until the name is free. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    await this.#accepting.settled();
  }

  /** In a step of its own: what a handler throws is the runtime's to report. */
  #connected(bus: Bus): void {
    queueMicrotask(() => {
      if (!this.emit('connection', bus)) this.#accepting.deliver(bus);
    });
  }
}
