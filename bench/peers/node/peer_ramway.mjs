/**
 * Ramway by its npm package: two named rings. In two event loops: `trySend`, and `for await` over messages or batches. In
 * two worker threads that poll: the calls with `Sync`. The same to and from a program in Rust, and frames of any size.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { beginning, compare, grouped, mark, messages, now, POOL, pool, read, verify } from './ends.mjs';
import { about, outcome, PROGRAM, VARIABLE, VERSION } from './protocol.mjs';
import { forgetPeak, settle, Usage } from './usage.mjs';

/** @typedef {import('./ends.mjs').Burst} Burst */

const SPIN = { wait: 'spin' };
const SEEN = Buffer.alloc(8);

/**
 * A stream of messages from here, each visible at once, or as many together as the burst has.
 * @param {any} tx
 * @param {Burst} burst
 */
function stream(tx, { mode, size, count, batch }) {
  if (mode === 'batch') {
    const groups = grouped(messages(size, count), batch);
    return async () => {
      for (const group of groups) {
        await tx.sendBatch(group);
      }
    };
  }
  const all = pool(size);
  if (mode === 'block') {
    return async () => {
      for (let n = 0; n < count; n++) {
        await tx.send(all[n % POOL]);
      }
    };
  }
  return async () => {
    for (let n = 0; n < count; n++) {
      const message = all[n % POOL];
      if (!tx.trySend(message)) {
        await tx.send(message);
      }
    }
  };
}

/**
 * Reads a stream: message by message, or by batches; those as messages, or `byPlace` in their one view.
 * @param {any} rx
 * @param {Burst} burst
 * @param {Int32Array} check
 */
async function receive(rx, { mode, count, batch }, check, byPlace = false) {
  let left = count;
  if (mode === 'batch') {
    for await (const messages of rx.batches({ max: batch })) {
      if (byPlace) {
        const { bytes } = messages;
        for (let n = 0; n < messages.length; n++) {
          const at = messages.offset(n);
          read(check, bytes, at, at + messages.size(n));
        }
      } else {
        for (const message of messages) {
          read(check, message.data);
        }
      }
      left -= messages.length;
      if (left === 0) {
        messages.release();
        return;
      }
    }
  }
  for await (const message of rx) {
    read(check, message.data);
    if (--left === 0) {
      return;
    }
  }
  throw new Error('the sender closed');
}

/** Both rings of a side. @implements {import('./ends.mjs').End} */
class Rings {
  _tx;
  _rx;

  /**
   * @param {any} tx
   * @param {any} rx
   */
  constructor(tx, rx) {
    this._tx = tx;
    this._rx = rx;
  }

  close() {
    this._tx.close();
    this._rx.close();
  }
}

/** In an event loop. */
class Loop extends Rings {
  /** @param {string} mode */
  waitLike(mode) {
    this._tx.wait = this._rx.wait = mode === 'block' ? 'block' : 'hybrid';
  }

  /**
   * @param {Buffer[][]} groups
   * @param {Int32Array} check
   */
  async ping(groups, check) {
    const [tx, rx] = [this._tx, this._rx];
    const stamps = [now()];
    for (const group of groups) {
      for (const message of group) {
        await tx.send(message);
        const answer = await rx.recv();
        read(check, answer.data);
        answer.release();
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
    const [tx, rx] = [this._tx, this._rx];
    for (const answer of answers) {
      const message = await rx.recv();
      read(check, message.data);
      message.release();
      await tx.send(answer);
    }
  }

  /** @param {Burst} burst */
  stream(burst) {
    return stream(this._tx, burst);
  }

  /**
   * @param {Burst} burst
   * @param {Int32Array} check
   */
  receive(burst, check) {
    return receive(this._rx, burst, check);
  }
}

/** In a thread that polls. */
class Polling extends Rings {
  /**
   * Receives one message and reads it.
   * @param {Int32Array} check
   */
  _take(check) {
    const message = this._rx.recvSync();
    read(check, message.data);
    message.release();
  }

  /**
   * @param {Buffer[][]} groups
   * @param {Int32Array} check
   */
  ping(groups, check) {
    const stamps = [now()];
    for (const group of groups) {
      for (const message of group) {
        this._tx.sendSync(message);
        this._take(check);
      }
      stamps.push(now());
    }
    return stamps;
  }

  /**
   * @param {Buffer[]} answers
   * @param {Int32Array} check
   */
  echo(answers, check) {
    for (const answer of answers) {
      this._take(check);
      this._tx.sendSync(answer);
    }
  }

  /**
   * @param {number} size
   * @param {number} n
   */
  show(size, n) {
    this._tx.reserveSync(size, (/** @type {Uint8Array} */ slot) => mark(slot, n));
    this._rx.recvSync().release();
  }

  /**
   * @param {number} size
   * @param {number} n
   */
  look(size, n) {
    for (;;) {
      const began = now();
      const message = this._rx.tryRecv();
      if (message === null) {
        continue;
      }
      const { data } = message;
      const first = data[0];
      const taken = now() - began;
      compare(data, size, n);
      if (first !== data[0]) {
        throw new Error('the frame changed');
      }
      message.release();
      this._tx.sendSync(SEEN);
      return taken;
    }
  }
}

/** The same, by copies into a buffer of its own. */
class Copying extends Polling {
  #buffer = new Uint8Array(64);

  /** @param {Int32Array} check */
  _take(check) {
    const { length } = this._rx.recvIntoSync(this.#buffer);
    read(check, length === this.#buffer.length ? this.#buffer : this.#buffer.subarray(0, length));
  }
}

/**
 * Two named rings, whose pages are there from the beginning.
 * @param {any} Ring
 * @param {typeof Rings} Kind
 * @returns {NonNullable<import('./ends.mjs').Mechanism['open']>}
 */
const rings =
  (Ring, Kind) =>
  async ({ directory, capacity }, leads) => {
    const [there, back] = [`${directory}/there`, `${directory}/back`];
    const options = { prefault: capacity <= 64 << 20, ...(Kind === Loop ? {} : SPIN) };
    if (leads) {
      const tx = await Ring.create(there, { ...options, capacity }).sender();
      const rx = await Ring.create(back, { ...options, capacity: Math.min(capacity, 1 << 20) }).receiver();
      return () => new Kind(tx, rx);
    }
    return async () => {
      const rx = await Ring.open(there, options).receiver();
      return new Kind(await Ring.open(back, options).sender(), rx);
    };
  };

/**
 * The program that started this worker, as one side of a stream: `bench/src/sender.rs` and `receiver.rs`.
 * @param {'send' | 'receive'} order
 * @param {string} ring
 * @param {import('./ends.mjs').Setup} setup
 */
function rust(order, ring, { cpus, realtime }) {
  if (process.env[PROGRAM] === undefined) {
    throw new Error(`${PROGRAM} does not say which program is the other side`);
  }
  const [program, ...programArguments] = JSON.parse(process.env[PROGRAM]);
  const cpu = cpus[order === 'send' ? 0 : 1];
  const words = { [order]: { protocol: VERSION, ring, cpu, realtime } };
  const child = spawn(program, programArguments, {
    env: { ...process.env, [VARIABLE]: JSON.stringify(words) },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    pid: child.pid,
    /** @param {unknown} asked */
    ask: (asked) => child.stdin.write(`${JSON.stringify(asked)}\n`),
    /** What it says next. What a test's executable prints besides is none of its own words. */
    async hear() {
      for (;;) {
        const { value, done } = await lines.next();
        if (done) {
          throw new Error(`the other side ended with ${child.exitCode}`);
        }
        if (value.startsWith('{')) {
          return JSON.parse(value);
        }
      }
    },
    async stop() {
      const ended = once(child, 'exit');
      child.stdin.end(`${JSON.stringify({ quit: null })}\n`);
      const [status] = await ended;
      if (status !== 0) {
        throw new Error(`the other side ended with ${status}`);
      }
    },
  };
}

/**
 * @param {any} Ring
 * @returns {NonNullable<import('./ends.mjs').Mechanism['pair']>}
 */
const fromRust = (Ring) => async (setup) => {
  settle(setup.cpus[1], setup.realtime);
  const name = `${setup.directory}/there`;
  const rx = await Ring.create(name, { capacity: setup.capacity, prefault: true }).receiver();
  const sender = rust('send', name, setup);
  return {
    pids: [sender.pid, process.pid],
    async burst(burst) {
      const check = beginning();
      forgetPeak();
      sender.ask({ burst });
      const usage = new Usage();
      await receive(rx, burst, check, true);
      const ended = now();
      const used = usage.end();
      const { sent } = await sender.hear();
      verify(check, burst.size, burst.count);
      return outcome(ended - sent.began_ns, burst.count, [], sent, used);
    },
    async stop() {
      await sender.stop();
      rx.close();
    },
  };
};

/**
 * @param {any} Ring
 * @returns {NonNullable<import('./ends.mjs').Mechanism['pair']>}
 */
const toRust = (Ring) => async (setup) => {
  settle(setup.cpus[0], setup.realtime);
  const name = `${setup.directory}/there`;
  const tx = await Ring.create(name, { capacity: setup.capacity, prefault: true }).sender();
  const receiver = rust('receive', name, setup);
  return {
    pids: [process.pid, receiver.pid],
    async burst(burst) {
      const send = stream(tx, burst);
      forgetPeak();
      receiver.ask({ burst });
      await receiver.hear();
      const usage = new Usage();
      const began = now();
      await send();
      const used = usage.end();
      const { received } = await receiver.hear();
      return outcome(received.ended_ns - began, burst.count, [], used, received);
    },
    async stop() {
      await receiver.stop();
      tx.close();
    },
  };
};

/**
 * @param {string} environment
 * @returns {import('./ends.mjs').Mechanism[]}
 */
export function mechanisms(environment) {
  const { Ring } = createRequire(`${environment}/`)('ramway');
  const whole = ({ size, smallest }) => size === smallest;
  const streams = (burst) => burst.test === 'one-way' && whole(burst);
  const polls = ({ test, mode }) => test === 'view' || mode === 'spin';
  const loops = (burst) =>
    whole(burst) && (burst.test === 'one-way' || (burst.test === 'rtt' && burst.mode !== 'spin'));
  const ring = (name, what) => about(name, 'ramway', false, what);
  return [
    {
      about: () => ring('ring-node', 'two named rings: send, recv, for await; polling: sendSync, recvSync in a worker'),
      can: (burst) => loops(burst) || (whole(burst) && (burst.test === 'rtt' || burst.test === 'view') && polls(burst)),
      threaded: polls,
      open: (setup, leads, burst) => rings(Ring, polls(burst) ? Polling : Loop)(setup, leads, burst),
    },
    {
      about: () => ring('ring-into-node', 'the same in a worker, by recvIntoSync: a copy to a buffer of its own'),
      can: (burst) => whole(burst) && burst.test === 'rtt' && burst.mode === 'spin' && burst.size <= 64,
      threaded: () => true,
      open: rings(Ring, Copying),
    },
    {
      about: () =>
        ring('ring-rust-node', 'from a sender in Rust: for await over messages, or over batches by batch.bytes'),
      can: streams,
      pair: fromRust(Ring),
    },
    {
      about: () => ring('ring-node-rust', 'to a receiver in Rust: trySend, and send where there is no room; sendBatch'),
      can: streams,
      pair: toRust(Ring),
    },
  ];
}
