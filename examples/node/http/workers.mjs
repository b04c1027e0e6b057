// Worker processes, each at the other end of a bus of its own. Requests and replies are matched by their tag, so any
// number of them is under way at once; a worker that dies is started again.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Bus, RamwayError } from 'ramway';

/** The typeIds, as in worker.py. A reply has the tag of its request, and its typeId or REFUSED. */
export const Kind = Object.freeze({ SIMILAR: 1, THUMBNAIL: 2, CANCEL: 3, REFUSED: 4 });

/** Why there is no answer, as an HTTP status. */
export class WorkError extends Error {
  /** @param {number} statusCode @param {string} message @param {ErrorOptions} [options] */
  constructor(statusCode, message, options) {
    super(message, options);
    this.statusCode = statusCode;
  }
}

/**
 * @typedef {object} Options
 * @property {string} name          of the bus; each worker's gets a number
 * @property {string[]} command     starts a worker; the name of its bus is appended
 * @property {number} count         how many workers
 * @property {number} capacity      bytes of requests, and of replies, that one bus has room for
 * @property {number} sendTimeout   milliseconds that a request waits for room on a bus
 * @property {number} replyTimeout  milliseconds that it waits altogether
 * @property {(text: string) => void} log
 */

class Worker {
  /** What waits for a reply, by tag. @type {Map<bigint, { resolve(data: Uint8Array): void, reject(why: Error): void }>} */
  #pending = new Map();
  #nextTag = 0n;
  #stopping = new AbortController();
  /** @type {Bus | undefined} */
  #bus;
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #child;
  #starts = 0;
  #options;
  #name;
  #done;

  /** @param {string} name @param {Options} options */
  constructor(name, options) {
    this.#name = name;
    this.#options = options;
    this.#done = this.#keepAlive();
  }

  get connected() {
    return this.#bus !== undefined;
  }

  get outstanding() {
    return this.#pending.size;
  }

  get state() {
    return { pid: this.#child?.pid, connected: this.connected, outstanding: this.outstanding, starts: this.#starts };
  }

  /**
   * @param {number} typeId
   * @param {number} length
   * @param {(slot: Uint8Array) => void} fill
   * @param {AbortSignal} signal
   */
  async ask(typeId, length, fill, signal) {
    signal.throwIfAborted();
    const bus = /** @type {Bus} */ (this.#bus);
    const tag = this.#nextTag++;
    let sent = false;
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    let giveUp = () => {};
    const reply = new Promise((resolve, reject) => {
      this.#pending.set(tag, { resolve, reject });
      timer = setTimeout(reject, this.#options.replyTimeout, new WorkError(503, 'the worker took too long'));
      giveUp = () => reject(signal.reason);
    });
    // It may be rejected while the request still waits for room, when nobody looks at it yet.
    reply.catch(() => {});
    signal.addEventListener('abort', giveUp);
    try {
      // Written into the ring itself. While the ring is full this waits, in the order of the calls.
      await bus.reserve(length, fill, { typeId, tag, signal, timeout: this.#options.sendTimeout });
      sent = true;
      return await reply;
    } catch (error) {
      if (sent && this.#pending.has(tag)) this.#cancel(bus, tag);
      throw sent ? error : notSent(error);
    } finally {
      this.#pending.delete(tag);
      signal.removeEventListener('abort', giveUp);
      clearTimeout(timer);
    }
  }

  /** Spares the worker what nobody waits for, if it has not begun it. @param {Bus} bus @param {bigint} tag */
  #cancel(bus, tag) {
    try {
      // Where there is no room the worker does it in vain: its reply then finds no one.
      bus.trySend('', { typeId: Kind.CANCEL, tag });
    } catch (error) {
      if (!(error instanceof RamwayError)) throw error;
    }
  }

  /** @param {import('ramway').Message} message */
  #settle(message) {
    const waiting = this.#pending.get(message.tag);
    if (waiting === undefined) return;
    this.#pending.delete(message.tag);
    // A message is gone once the next one is asked for; an answer lives until its client has read it.
    if (message.typeId === Kind.REFUSED) waiting.reject(new WorkError(422, message.text()));
    else waiting.resolve(message.copy());
  }

  async #keepAlive() {
    const { command, capacity, log } = this.#options;
    const stopping = this.#stopping.signal;
    let pause = 0;
    while (!stopping.aborted) {
      const began = performance.now();
      const exited = new AbortController();
      const [program = '', ...words] = [...command, this.#name];
      const child = spawn(program, words, { stdio: ['ignore', 'inherit', 'inherit'] });
      child.once('error', (error) => exited.abort(error));
      child.once('exit', (code, signal) => exited.abort(new Error(`the worker ended with ${signal ?? code}`)));
      this.#child = child;
      this.#starts++;
      try {
        const given = AbortSignal.any([stopping, exited.signal]);
        const bus = await Bus.listen(this.#name, {
          toPeer: capacity,
          fromPeer: capacity,
          timeout: 60_000,
          signal: given,
        });
        this.#bus = bus;
        for await (const message of bus) this.#settle(message);
      } catch (error) {
        if (!stopping.aborted) log(`${this.#name}: ${error}`);
      }
      const bus = this.#bus;
      this.#bus = undefined;
      // Whether they were worked on, and how far, nobody knows.
      for (const waiting of this.#pending.values()) waiting.reject(new WorkError(502, 'the worker died at it'));
      this.#pending.clear();
      bus?.close();
      // It ends by itself now that its bus is closed, or has ended already; if not, it is stuck.
      const stuck = setTimeout(() => child.kill('SIGKILL'), 5_000);
      if (!exited.signal.aborted) await once(exited.signal, 'abort');
      clearTimeout(stuck);
      // At once after a crash, but one that dies whenever it starts must not take the machine.
      pause = performance.now() - began > 5_000 ? 0 : Math.min(5_000, 2 * pause + 50);
      await sleep(pause, undefined, { signal: stopping }).catch(() => {});
    }
  }

  async stop() {
    this.#stopping.abort();
    await this.#bus?.end();
    await this.#done;
  }
}

/** A request that no worker has seen can be made again. @param {unknown} error */
function notSent(error) {
  if (!(error instanceof RamwayError)) return error;
  if (error.kind === 'TimedOut')
    return new WorkError(503, 'the workers have as much as they can take', { cause: error });
  if (error.kind === 'TooLarge') return new WorkError(413, 'this is too large', { cause: error });
  return new WorkError(503, 'the worker died before it had this', { cause: error });
}

export class Workers {
  #workers;

  /** @param {Options} options */
  constructor(options) {
    this.#workers = Array.from(
      { length: options.count },
      (_, index) => new Worker(`${options.name}-${index}`, options),
    );
  }

  get state() {
    return this.#workers.map((worker) => worker.state);
  }

  /**
   * Hands a request to the worker that has the fewest, and waits for the reply.
   * @param {number} typeId  kind of work
   * @param {number} length  bytes of the request
   * @param {(slot: Uint8Array) => void} fill  writes them into the ring
   * @param {AbortSignal} signal  when nobody waits for the answer any more
   * @returns {Promise<Uint8Array>}
   */
  async ask(typeId, length, fill, signal) {
    let least;
    for (const worker of this.#workers) {
      if (worker.connected && (least === undefined || worker.outstanding < least.outstanding)) least = worker;
    }
    if (least === undefined) throw new WorkError(503, 'no worker is there');
    return least.ask(typeId, length, fill, signal);
  }

  /** Lets the workers end: what they were asked has to be answered by then. */
  async stop() {
    await Promise.all(this.#workers.map((worker) => worker.stop()));
  }
}
