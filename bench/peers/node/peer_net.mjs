/** `net`: one Unix stream socket, both ways; a `write` for each message, and what arrives is read in 'data' events. */

import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { now, POOL, pool, read } from './ends.mjs';
import { about } from './protocol.mjs';

/** @implements {import('./ends.mjs').End} */
class Socket {
  #socket;

  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.#socket = socket;
    socket.pause();
  }

  /**
   * Calls it for each chunk until that gives true.
   * @param {(chunk: Buffer) => boolean} take
   */
  #until(take) {
    const socket = this.#socket;
    return /** @type {Promise<void>} */ (
      new Promise((resolve, reject) => {
        const stop = (/** @type {Error | undefined} */ cause) => {
          socket.pause().off('data', data).off('close', closed);
          cause === undefined ? resolve() : reject(cause);
        };
        const data = (/** @type {Buffer} */ chunk) => {
          if (take(chunk)) {
            stop(undefined);
          }
        };
        const closed = () => stop(new Error('the socket is closed'));
        socket.on('data', data).on('close', closed).resume();
      })
    );
  }

  /**
   * @param {Buffer[][]} groups
   * @param {Int32Array} check
   */
  async ping(groups, check) {
    const socket = this.#socket;
    const stamps = [now()];
    let group = 0;
    let at = 0;
    let missing = groups[0][0].length;
    const answered = this.#until((chunk) => {
      read(check, chunk);
      missing -= chunk.length;
      if (missing > 0) {
        return false;
      }
      if (++at === groups[group].length) {
        stamps.push(now());
        at = 0;
        if (++group === groups.length) {
          return true;
        }
      }
      missing = groups[group][at].length;
      socket.write(groups[group][at]);
      return false;
    });
    socket.write(groups[0][0]);
    await answered;
    return stamps;
  }

  /**
   * @param {Buffer[]} answers
   * @param {Int32Array} check
   */
  async echo(answers, check) {
    let at = 0;
    let missing = answers[0].length;
    await this.#until((chunk) => {
      read(check, chunk);
      missing -= chunk.length;
      if (missing > 0) {
        return false;
      }
      this.#socket.write(answers[at++]);
      if (at === answers.length) {
        return true;
      }
      missing = answers[at].length;
      return false;
    });
  }

  /** @param {import('./ends.mjs').Burst} burst */
  stream({ size, count }) {
    const socket = this.#socket;
    const all = pool(size);
    return async () => {
      for (let n = 0; n < count; n++) {
        if (!socket.write(all[n % POOL])) {
          await once(socket, 'drain');
        }
      }
    };
  }

  /**
   * @param {import('./ends.mjs').Burst} burst
   * @param {Int32Array} check
   */
  async receive({ size, count }, check) {
    let left = size * count;
    await this.#until((chunk) => {
      read(check, chunk);
      left -= chunk.length;
      return left === 0;
    });
  }

  close() {
    this.#socket.destroy();
  }
}

/** @type {import('./ends.mjs').Mechanism} */
const net = {
  about: () => about('net-node', 'by-hand', true, 'net: a Unix stream socket, one write a message'),
  can: ({ test, mode, smallest, size }) =>
    smallest === size && ((test === 'rtt' && mode === 'block') || (test === 'one-way' && mode === 'each')),
  async open({ directory }, leads) {
    const path = `${directory}/socket`;
    if (!leads) {
      return async () => {
        const socket = connect(path);
        await once(socket, 'connect');
        return new Socket(socket);
      };
    }
    const server = createServer({ pauseOnConnect: true }).listen(path);
    const connection = once(server, 'connection');
    await once(server, 'listening');
    return async () => {
      const [socket] = await connection;
      server.close();
      return new Socket(socket);
    };
  },
};

export const mechanisms = () => [net];
