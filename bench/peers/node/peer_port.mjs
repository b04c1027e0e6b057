/**
 * `worker_threads`: a MessagePort between two threads of one process, since none leads to another process. The messages are
 * copied by structured cloning; a frame of test `view` is transferred instead, and comes back the same way. Sides that
 * poll call `receiveMessageOnPort`. Nothing ever tells the sender to wait.
 */

import {
  isMainThread,
  MessageChannel,
  parentPort,
  receiveMessageOnPort,
  Worker,
  workerData,
} from 'node:worker_threads';
import { compare, half, mark, now, POOL, pool, read } from './ends.mjs';
import { about, outcome, why } from './protocol.mjs';
import { forgetPeak, settle, Usage } from './usage.mjs';

/** @typedef {import('node:worker_threads').MessagePort} MessagePort */

/** @implements {import('./ends.mjs').End} */
class Port {
  #port;
  #polls = false;
  /** @type {ArrayBuffer | undefined} */ #frame;

  /** @param {MessagePort} port */
  constructor(port) {
    this.#port = port;
  }

  /** @param {string} mode */
  waitLike(mode) {
    this.#polls = mode === 'spin';
  }

  /** @returns {any} */
  #poll() {
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received !== undefined) {
        return received.message;
      }
    }
  }

  /**
   * Calls it for each message until that gives true.
   * @param {(message: Uint8Array) => boolean} take
   */
  #until(take) {
    return /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        const message = (/** @type {Uint8Array} */ bytes) => {
          if (take(bytes)) {
            this.#port.off('message', message);
            resolve();
          }
        };
        this.#port.on('message', message);
      })
    );
  }

  /**
   * @param {Buffer[][]} groups
   * @param {Int32Array} check
   */
  async ping(groups, check) {
    const port = this.#port;
    const stamps = [now()];
    if (this.#polls) {
      for (const group of groups) {
        for (const message of group) {
          port.postMessage(message);
          read(check, this.#poll());
        }
        stamps.push(now());
      }
      return stamps;
    }
    let group = 0;
    let at = 0;
    const answered = this.#until((bytes) => {
      read(check, bytes);
      if (++at === groups[group].length) {
        stamps.push(now());
        at = 0;
        if (++group === groups.length) {
          return true;
        }
      }
      port.postMessage(groups[group][at]);
      return false;
    });
    port.postMessage(groups[0][0]);
    await answered;
    return stamps;
  }

  /**
   * @param {Buffer[]} answers
   * @param {Int32Array} check
   */
  async echo(answers, check) {
    if (this.#polls) {
      for (const answer of answers) {
        read(check, this.#poll());
        this.#port.postMessage(answer);
      }
      return;
    }
    let at = 0;
    await this.#until((bytes) => {
      read(check, bytes);
      this.#port.postMessage(answers[at++]);
      return at === answers.length;
    });
  }

  /** @param {import('./ends.mjs').Burst} burst */
  stream({ size, count }) {
    // Copies that are all of their buffer: a message is cloned with the whole buffer that it is a view of.
    const all = pool(size).map((message) => new Uint8Array(message));
    return () => {
      for (let n = 0; n < count; n++) {
        this.#port.postMessage(all[n % POOL]);
      }
    };
  }

  /**
   * @param {import('./ends.mjs').Burst} burst
   * @param {Int32Array} check
   */
  async receive({ count }, check) {
    let left = count;
    await this.#until((bytes) => {
      read(check, bytes);
      return --left === 0;
    });
  }

  /**
   * @param {number} size
   * @param {number} n
   */
  show(size, n) {
    const frame = this.#frame?.byteLength === size ? this.#frame : new ArrayBuffer(size);
    mark(new Uint8Array(frame), n);
    this.#port.postMessage(frame, [frame]);
    this.#frame = this.#poll();
  }

  /**
   * @param {number} size
   * @param {number} n
   */
  look(size, n) {
    for (;;) {
      const began = now();
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) {
        continue;
      }
      const frame = new Uint8Array(received.message);
      const first = frame[0];
      const taken = now() - began;
      compare(frame, size, n);
      if (first !== frame[0]) {
        throw new Error('the frame changed');
      }
      this.#port.postMessage(received.message, [received.message]);
      return taken;
    }
  }

  close() {
    this.#port.close();
  }
}

const NOTHING = { cpu_ns: 0, peak_rss: 0, shared: 0, context_switches: 0 };

/** Two threads of this process that are each a side, told what to do by this one. @type {import('./ends.mjs').Mechanism} */
const port = {
  about: () => about('port-node', 'by-hand', true, 'worker_threads: a MessagePort between two threads of one process'),
  can: ({ test, mode, smallest, size }) =>
    smallest === size &&
    ((test === 'rtt' && (mode === 'block' || mode === 'spin')) ||
      (test === 'one-way' && mode === 'each') ||
      test === 'view'),
  async pair({ cpus, realtime }) {
    // The threads of one process of Node.js cannot be told apart from outside: they have both processors between them.
    settle(cpus[0] === null || cpus[1] === null ? null : `${cpus[0]},${cpus[1]}`, realtime);
    const channel = new MessageChannel();
    const ports = [channel.port1, channel.port2];
    const threads = ports.map((one, n) => {
      const data = { port: one, leads: n === 0 };
      return new Worker(new URL(import.meta.url), { workerData: data, transferList: [one] });
    });
    const call = (/** @type {Worker} */ thread, /** @type {unknown} */ words) =>
      new Promise((resolve, reject) => {
        thread.once('message', ({ failed, result }) =>
          failed === undefined ? resolve(result) : reject(new Error(failed)),
        );
        thread.postMessage(words);
      });
    const both = (/** @type {unknown} */ words) => Promise.all(threads.map((thread) => call(thread, words)));
    return {
      pids: [process.pid],
      async burst(burst) {
        await both({ burst });
        forgetPeak();
        const usage = new Usage();
        const [leading, following] = /** @type {any[]} */ (await both({ run: null }));
        const used = usage.end();
        const elapsed = Math.max(leading.ended, following.ended) - leading.began;
        // What the process used is both sides'; the first is said to have used it.
        return outcome(elapsed, burst.count, leading.samples.concat(following.samples), used, NOTHING);
      },
      async stop() {
        await Promise.all(threads.map((thread) => thread.terminate()));
      },
    };
  },
};

if (!isMainThread && workerData?.port !== undefined) {
  const end = new Port(workerData.port);
  /** @type {ReturnType<typeof half> | undefined} */
  let ready;
  parentPort?.on('message', async (words) => {
    try {
      if ('burst' in words) {
        ready = half(end, workerData.leads, words.burst);
        parentPort?.postMessage({ result: null });
        return;
      }
      const { run, check } = /** @type {NonNullable<typeof ready>} */ (ready);
      const began = now();
      const samples = await run();
      const ended = now();
      check();
      parentPort?.postMessage({ result: { samples, began, ended } });
    } catch (cause) {
      parentPort?.postMessage({ failed: why(cause) });
    }
  });
}

export const mechanisms = () => [port];
