/** zeromq, the npm package: a PUSH and a PULL socket each way over `ipc://`, one I/O thread in each process, which runs on
 * the processor of its process. `await push.send(message)` and `for await` over a PULL socket, as its guide has them. */

import { createRequire } from 'node:module';
import { now, POOL, pool, read } from './ends.mjs';
import { about } from './protocol.mjs';

/** @implements {import('./ends.mjs').End} */
class Sockets {
  #push;
  #pull;

  /**
   * @param {any} push
   * @param {any} pull
   */
  constructor(push, pull) {
    this.#push = push;
    this.#pull = pull;
  }

  /**
   * @param {Buffer[][]} groups
   * @param {Int32Array} check
   */
  async ping(groups, check) {
    const stamps = [now()];
    for (const group of groups) {
      for (const message of group) {
        await this.#push.send(message);
        const [answer] = await this.#pull.receive();
        read(check, answer);
      }
      stamps.push(now());
    }
    return stamps;
  }

  /**
   * @param {Buffer[]} answers
   * @param {Int32Array} check
   */
  async echo(answers, check) {
    for (const answer of answers) {
      const [message] = await this.#pull.receive();
      read(check, message);
      await this.#push.send(answer);
    }
  }

  /** @param {import('./ends.mjs').Burst} burst */
  stream({ size, count }) {
    const all = pool(size);
    return async () => {
      for (let n = 0; n < count; n++) {
        await this.#push.send(all[n % POOL]);
      }
    };
  }

  /**
   * @param {import('./ends.mjs').Burst} burst
   * @param {Int32Array} check
   */
  async receive({ count }, check) {
    // Not `for await`, whose end closes the socket; that is this loop otherwise.
    for (let n = 0; n < count; n++) {
      const [message] = await this.#pull.receive();
      read(check, message);
    }
  }

  close() {
    this.#push.close();
    this.#pull.close();
  }
}

/**
 * @param {string} environment
 * @returns {import('./ends.mjs').Mechanism[]}
 */
export function mechanisms(environment) {
  const require = createRequire(`${environment}/`);
  const zmq = require('zeromq');
  const what = `ZeroMQ (libzmq ${zmq.version}): PUSH and PULL over ipc://, an I/O thread each`;
  return [
    {
      about: () => about('zeromq-node', 'peer', true, what, require('zeromq/package.json').version),
      can: ({ test, mode, smallest, size }) =>
        smallest === size && ((test === 'rtt' && mode === 'block') || (test === 'one-way' && mode === 'each')),
      async open({ directory, capacity }, leads) {
        const options = { linger: 0 };
        const room = Math.min(Math.max(capacity >> 5, 2), 1 << 20);
        const push = new zmq.Push({ ...options, sendHighWaterMark: room });
        const pull = new zmq.Pull({ ...options, receiveHighWaterMark: room });
        const [there, back] = ['there', 'back'].map((name) => `ipc://${directory}/${name}`);
        if (leads) {
          await Promise.all([push.bind(there), pull.bind(back)]);
        } else {
          pull.connect(there);
          push.connect(back);
        }
        return () => new Sockets(push, pull);
      },
    },
  ];
}
