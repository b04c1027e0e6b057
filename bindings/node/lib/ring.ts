// Named rings: what there is to know before one of its ends is opened.
import * as native from '../native.cjs';
import { call } from './errors.js';
import { opening } from './opening.js';
import {
  capacityOf,
  nameOf,
  PAIR,
  type PairOptions,
  type Read,
  RING,
  type RingOptions,
  read,
  SYNC,
  WAIT,
} from './options.js';
import { Receiver } from './receiver.js';
import { Sender } from './sender.js';
import { blockUntil, type SyncOptions, type WaitOptions } from './waiting.js';

type Intent = 'create' | 'open' | 'openOrCreate';

/**
 * A named ring: where it is and how it is to be made. Nothing is opened before one of its ends is asked for.
 *
 * A name is `[A-Za-z0-9._-]{1,80}` in RAMWAY_DIR (by default /dev/shm/ramway-UID), or a path with a slash. Whichever
 * side comes first makes the ring; it stays while somebody uses it or undelivered messages are in it.
 */
export class Ring {
  /** As it was given. */
  readonly name: string;
  readonly #intent: Intent;
  readonly #settings: Read<typeof RING>;

  private constructor(intent: Intent, name: unknown, options: unknown) {
    const what = `Ring.${intent}`;
    this.#intent = intent;
    this.name = nameOf(what, name);
    this.#settings = read(what, RING, options);
  }

  /**
   * A ring that must be new: ERR_RAMWAY_ALREADY_EXISTS if somebody uses the name, if it holds what was never delivered
   * (unless `discard` is set), or if something else has it.
   */
  static create(name: string, options?: RingOptions): Ring {
    return new Ring('create', name, options);
  }

  /**
   * A ring that exists, also one that dead processes left: its messages are still there. ERR_RAMWAY_NOT_FOUND if there
   * is none within `timeout`.
   */
  static open(name: string, options?: RingOptions): Ring {
    return new Ring('open', name, options);
  }

  /**
   * A ring that is opened if it exists and made if not. ERR_RAMWAY_INVALID_ARGUMENT if it exists with another capacity
   * or alignment than was asked for.
   */
  static openOrCreate(name: string, options?: RingOptions): Ring {
    return new Ring('openOrCreate', name, options);
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
   * The sending end. ERR_RAMWAY_BUSY if the ring has one, in whichever process. `timeout` takes the place of the ring's.
   */
  async sender(options?: WaitOptions): Promise<Sender> {
    const { timeout, signal } = read('Ring.sender', WAIT, options);
    const settings = this.#within(timeout);
    const open = async (attempt: native.Attempt) => {
      return new Sender(await native.openSender(attempt, this.#intent, this.name, settings), settings.wait);
    };
    // An end of the stream that nobody meant is told to no receiver.
    return opening(signal, open, (sender) => sender.abandon());
  }

  /**
   * The receiving end; it starts with what is undelivered. ERR_RAMWAY_BUSY if the ring has one, in whichever process.
   * `timeout` takes the place of the ring's.
   */
  async receiver(options?: WaitOptions): Promise<Receiver> {
    const { timeout, signal } = read('Ring.receiver', WAIT, options);
    const settings = this.#within(timeout);
    return opening(signal, async (attempt) => {
      return new Receiver(await native.openReceiver(attempt, this.#intent, this.name, settings), settings.wait);
    });
  }

  /** {@link Ring.sender}, blocking. On the main thread it does not wait unless it is allowed to. */
  senderSync(options?: SyncOptions): Sender {
    const settings = this.#blocking('Ring.senderSync', options);
    return new Sender(
      call(() => native.openSenderSync(this.#intent, this.name, settings)),
      settings.wait,
    );
  }

  /** {@link Ring.receiver}, blocking. On the main thread it does not wait unless it is allowed to. */
  receiverSync(options?: SyncOptions): Receiver {
    const settings = this.#blocking('Ring.receiverSync', options);
    return new Receiver(
      call(() => native.openReceiverSync(this.#intent, this.name, settings)),
      settings.wait,
    );
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
