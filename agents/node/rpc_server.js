// A server of RPC with the agents' methods, beside the commands in the same event loop, and its commands.

import { crc32 } from 'node:zlib';

import { Fault, RpcServer } from 'ramway';

import { Refused, say } from './line.js';

/** The method that is registered by name. */
export const SUM = 'Agent.Sum';

let bytes = Buffer.alloc(0);

/** The bytes that begin with this one. Not to be written to. */
export function pattern(first, size) {
  if (bytes.length < size + 256) {
    bytes = Buffer.alloc(
      2 * size + 256,
      Uint8Array.from({ length: 256 }, (_, i) => i),
    );
  }
  return bytes.subarray(first % 256, (first % 256) + size);
}

export function words(...values) {
  const made = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) made.writeUInt32LE(value >>> 0, 4 * i);
  return made;
}

/** Words of a body, if it has just that many. */
export function read(body, count) {
  if (body.length !== 4 * count) throw new Fault(0, 'the request is no request of this method');
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  return Array.from({ length: count }, (_, i) => view.getUint32(4 * i, true));
}

/** A server at work. */
export class Serving {
  #server;
  /** Its end, and what it failed with. */
  #ended;
  #failure;
  #seen = { began: 0, ended: 0, cancelled: 0, elements: 0 };
  /** Of the calls of 5 that wait; undefined: they do not. */
  #waiting = new Set();

  static async open(name, line) {
    const keys = { max_clients: 'maxClients', max_in_flight: 'maxInFlight', max_bytes: 'maxBytes' };
    const options = { wait: line.text('wait', 'hybrid') };
    const [capacity, align] = [line.number('capacity', 65536), line.number('align', 16)];
    for (const [key, option] of Object.entries(keys)) options[option] = line.number(key);
    const bare = line.yes('bare');
    line.end();
    const serving = new Serving(await RpcServer.bind(name, { ...options, capacity, align }), bare);
    say(`attached pid=${process.pid} capacity=${capacity}`);
    return serving;
  }

  constructor(server, bare) {
    this.#server = server;
    // What is measured is method 1 alone, and nothing that counts.
    if (bare) server.method(1, ({ body }) => body);
    else this.#methods();
    this.#ended = server.run().catch((failure) => {
      this.#failure = failure;
    });
  }

  /** A handler of one reply, which is counted. */
  #counted(handler) {
    return (request) => {
      this.#seen.began++;
      try {
        return handler(request);
      } finally {
        this.#seen.ended++;
      }
    };
  }

  #methods() {
    const server = this.#server;
    const seen = this.#seen;
    const method = (key, handler) => server.method(key, this.#counted(handler));
    method(1, (request) => {
      request.replyMeta = request.meta;
      return request.body;
    });
    method(2, ({ body }) => pattern(...read(body, 2)));
    method(3, ({ body }) => {
      const [code] = read(body.subarray(0, 4), 1);
      throw new Fault(code, new TextDecoder().decode(body.subarray(4)));
    });
    server.stream(4, async function* (request) {
      seen.began++;
      let whole = false;
      try {
        const [count, size, code, seq] = read(request.body, 4);
        for (let k = 0; k < count; k++) {
          seen.elements++;
          yield pattern(seq + k, size);
        }
        whole = true;
        if (code !== 0) throw new Fault(code, `after ${count}`);
      } finally {
        if (!whole) seen.cancelled++;
        seen.ended++;
      }
    });
    server.method(5, async (request) => {
      seen.began++;
      try {
        await this.#opened(request.signal);
        request.replyMeta = request.meta;
        return request.body;
      } catch (reason) {
        seen.cancelled++;
        throw reason;
      } finally {
        seen.ended++;
      }
    });
    method(6, () => {
      throw new Error('method 6');
    });
    method(7, ({ peer, remaining }) => {
      // Of microseconds: what is left is not a float's.
      const ms = remaining === undefined ? 0 : Math.ceil(Math.round(remaining * 1000) / 1000);
      return words(peer.pid ?? 0, ms);
    });
    method(SUM, ({ body }) => words(crc32(body)));
  }

  /** Waits for the gate; rejects when the call is cancelled. */
  #opened(signal) {
    const waiting = this.#waiting;
    if (waiting === undefined) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const stop = () => {
        waiting.delete(resolve);
        reject(signal.reason);
      };
      if (signal.aborted) return stop();
      signal.addEventListener('abort', stop, { once: true });
      waiting.add(resolve);
    });
  }

  async obey(line) {
    switch (line.word) {
      case 'served': {
        line.end();
        const { began, ended, cancelled, elements } = this.#seen;
        const { clients } = this.#server;
        const running = began - ended;
        say(`served began=${began} running=${running} cancelled=${cancelled} elements=${elements} clients=${clients}`);
        return;
      }
      case 'gate': {
        line.end();
        const waiting = this.#waiting ?? [];
        this.#waiting = undefined;
        for (const go of waiting) go();
        say('opened');
        return;
      }
      case 'shutdown': {
        const limit = line.number('limit', 0);
        line.end();
        // `join` says how that went.
        this.#server.shutdown(limit).catch(() => {});
        say('draining');
        return;
      }
      case 'join':
        line.end();
        await this.#ended;
        if (this.#failure !== undefined) throw this.#failure;
        say('ended');
        return;
      default:
        throw new Refused(`${line.word} is no command of a server`);
    }
  }

  async close() {
    await this.#server.shutdown();
    await this.#ended;
  }
}
