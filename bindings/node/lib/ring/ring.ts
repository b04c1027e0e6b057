// Named rings: what there is to know before one of its ends is opened.
import * as native from '../../native.cjs';
import { call, RamwayError } from '../errors.js';
import {
  capacityOf,
  type FromFdOptions,
  fdOf,
  nameOf,
  PAIR,
  type PairOptions,
  type Read,
  RING,
  RING_FROM_FD,
  RING_UNNAMED,
  type RingOptions,
  read,
  refuseIdle,
  SYNC,
  type UnnamedOptions,
  WAIT,
} from '../options.js';
import { opening } from '../waiting/opening.js';
import { blockUntil, type SyncOptions, type WaitOptions } from '../waiting/waiting.js';
import { Receiver } from './receiver.js';
import { Sender } from './sender.js';

type Intent = 'create' | 'open' | 'openOrCreate' | 'fromFd';

/**
 * A named ring: where it is and how it is to be made. Nothing is opened before one of its ends is asked for.
 *
 * A name is `[A-Za-z0-9._-]{1,80}` in RAMWAY_DIR (by default /dev/shm/ramway-UID), or a path with a slash. Whichever
 * side comes first makes the ring; it stays while a process uses it or undelivered messages are in it.
 */
export class Ring {
  /** As it was given; undefined of a ring without a name. */
  readonly name: string | undefined;
  /** The name, or the descriptor's number. */
  readonly #key: string;
  readonly #intent: Intent;
  readonly #settings: Read<typeof RING>;
  #fd: number | undefined;
  /** The descriptor is this object's to close. */
  #owns = false;

  private constructor(intent: Intent, key: string, settings: Read<typeof RING>) {
    this.#intent = intent;
    this.#key = key;
    this.#settings = settings;
    if (intent === 'fromFd') this.#fd = Number(key);
    else this.name = key;
  }

  /**
   * A ring that must be new: ERR_RAMWAY_ALREADY_EXISTS if a process uses the name, if it holds what was never delivered
   * (unless `discard` is set), or if something else has it.
   */
  static create(name: string, options?: RingOptions): Ring {
    return new Ring('create', nameOf('Ring.create', name), read('Ring.create', RING, options));
  }

  /**
   * A ring that exists, also one that dead processes left: its messages are still there. ERR_RAMWAY_NOT_FOUND if there
   * is none within `timeout`.
   */
  static open(name: string, options?: RingOptions): Ring {
    return new Ring('open', nameOf('Ring.open', name), checked('Ring.open', options));
  }

  /**
   * A ring that is opened if it exists and made if not. ERR_RAMWAY_INVALID_ARGUMENT if it exists with another capacity
   * or alignment than was asked for.
   */
  static openOrCreate(name: string, options?: RingOptions): Ring {
    return new Ring('openOrCreate', nameOf('Ring.openOrCreate', name), checked('Ring.openOrCreate', options));
  }

  /**
   * A new ring without a name, for a child process: its descriptor, `fd`, is handed to `spawn` in `stdio`, and the child
   * calls `Ring.fromFd` with the place that it has there. Either side takes either role; nothing is left behind when
   * the last of them goes. `close` closes the descriptor, once the children have theirs.
   */
  static unnamed(options?: UnnamedOptions): Ring {
    const { timeout, wait, membarrier, lockMemory, prefault, ...made } = read('Ring.unnamed', RING_UNNAMED, options);
    const fd = call(() => native.unnamed(made));
    const ring = new Ring('fromFd', String(fd), {
      ...(timeout !== undefined && { timeout }),
      ...(wait !== undefined && { wait }),
      ...(membarrier !== undefined && { membarrier }),
      ...(lockMemory !== undefined && { lockMemory }),
      ...(prefault !== undefined && { prefault }),
    });
    ring.#owns = true;
    return ring;
  }

  /** The ring behind a descriptor of this process, which stays the caller's: one that a parent made by `Ring.unnamed`. */
  static fromFd(fd: number, options?: FromFdOptions): Ring {
    return new Ring('fromFd', String(fdOf('Ring.fromFd', fd)), read('Ring.fromFd', RING_FROM_FD, options));
  }

  /** The descriptor of a ring without a name, while it is open here; undefined for a named one. */
  get fd(): number | undefined {
    return this.#fd;
  }

  /** Closes the descriptor that `Ring.unnamed` made. Ends that were opened go on, and so do children's. For any other ring,
   * and again: nothing happens. */
  close(): void {
    const fd = this.#fd;
    if (!this.#owns || fd === undefined) return;
    this.#fd = undefined;
    call(() => native.closeDescriptor(fd));
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * Both ends of a new ring without a name, of `capacity` bytes rounded up to a power of two of at least a page. They
   * belong to this thread: rings between threads have names.
   */
  static pair(capacity: number, options?: PairOptions): [Sender, Receiver] {
    const settings = read('Ring.pair', PAIR, options);
    const ends = call(() => native.pair(capacityOf('Ring.pair', capacity), settings));
    return [new Sender(ends.sender, settings.wait), new Receiver(ends.receiver, settings.wait)];
  }

  /**
   * The sending end. ERR_RAMWAY_BUSY if the ring has one, in any process. `timeout` takes the place of the ring's.
   */
  async sender(options?: WaitOptions): Promise<Sender> {
    const { timeout, signal } = read('Ring.sender', WAIT, options);
    const settings = this.#within(timeout);
    const open = async (attempt: native.Attempt) => {
      return new Sender(await native.openEndpoint(attempt, true, this.#intent, this.#where(), settings), settings.wait);
    };
    // An end of the stream that was not meant reaches no receiver.
    return opening(signal, open, (sender) => sender.abandon());
  }

  /**
   * The receiving end; it starts with what is undelivered. ERR_RAMWAY_BUSY if the ring has one, in any process.
   * `timeout` takes the place of the ring's.
   */
  async receiver(options?: WaitOptions): Promise<Receiver> {
    const { timeout, signal } = read('Ring.receiver', WAIT, options);
    const settings = this.#within(timeout);
    return opening(signal, async (attempt) => {
      return new Receiver(
        await native.openEndpoint(attempt, false, this.#intent, this.#where(), settings),
        settings.wait,
      );
    });
  }

  /** {@link Ring.sender}, blocking. On the main thread it does not wait unless it is allowed to. */
  senderSync(options?: SyncOptions): Sender {
    const settings = this.#blocking('Ring.senderSync', options);
    return new Sender(
      call(() => native.openEndpointSync(true, this.#intent, this.#where(), settings)),
      settings.wait,
    );
  }

  /** {@link Ring.receiver}, blocking. On the main thread it does not wait unless it is allowed to. */
  receiverSync(options?: SyncOptions): Receiver {
    const settings = this.#blocking('Ring.receiverSync', options);
    return new Receiver(
      call(() => native.openEndpointSync(false, this.#intent, this.#where(), settings)),
      settings.wait,
    );
  }

  /** The name or descriptor to open by. */
  #where(): string {
    if (this.#owns && this.#fd === undefined) {
      throw new RamwayError('Detached', 'the descriptor of this ring without a name is closed');
    }
    return this.#key;
  }

  #within(timeout: number | undefined): Read<typeof RING> {
    return timeout === undefined ? this.#settings : { ...this.#settings, timeout };
  }

  #blocking(what: string, options: unknown): Read<typeof RING> {
    const { timeout, allowMainThread } = read(what, SYNC, options);
    const settings = this.#within(timeout);
    if (settings.timeout) blockUntil(what, { allowMainThread });
    return settings;
  }
}

/** Options of what may be there already. */
function checked(what: string, options: unknown): Read<typeof RING> {
  const settings = read(what, RING, options);
  refuseIdle(what, settings, what === 'Ring.openOrCreate');
  return settings;
}
