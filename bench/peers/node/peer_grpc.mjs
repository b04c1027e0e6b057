/** @grpc/grpc-js: a unary call for each request over a Unix socket, with the defaults. A body is bytes on both sides: no Protocol
 * Buffers, which would cost more. */

import { createRequire } from 'node:module';
import { now, read } from './ends.mjs';
import { about } from './protocol.mjs';

const METHOD = '/bench.Answers/Ask';

const asBytes = (/** @type {Buffer} */ bytes) => bytes;

/** @implements {import('./ends.mjs').End} */
class Calling {
  #client;

  /** @param {any} client */
  constructor(client) {
    this.#client = client;
  }

  /**
   * @param {Buffer[][]} groups
   * @param {Int32Array} check
   */
  async calls(groups, check) {
    const client = this.#client;
    const call = (/** @type {Buffer} */ message) =>
      /** @type {Promise<Buffer>} */ (
        new Promise((resolve, reject) => {
          client.makeUnaryRequest(
            METHOD,
            asBytes,
            asBytes,
            message,
            (/** @type {Error | null} */ error, /** @type {Buffer} */ reply) =>
              error ? reject(error) : resolve(reply),
          );
        })
      );
    const stamps = [now()];
    for (const group of groups) {
      for (const message of group) {
        read(check, await call(message));
      }
      stamps.push(now());
    }
    return stamps;
  }

  close() {
    this.#client.close();
  }
}

/** @implements {import('./ends.mjs').End} */
class Serving {
  #server;
  #left = 0;
  #done = () => {};

  /** @param {any} server */
  constructor(server) {
    this.#server = server;
    const answer = (/** @type {any} */ call, /** @type {(error: null, reply: Buffer) => void} */ reply) => {
      reply(null, call.request);
      this.#left -= 1;
      if (this.#left === 0) {
        this.#done();
      }
    };
    const kind = { requestStream: false, responseStream: false };
    const bytes = {
      requestSerialize: asBytes,
      requestDeserialize: asBytes,
      responseSerialize: asBytes,
      responseDeserialize: asBytes,
    };
    server.addService({ ask: { path: METHOD, ...kind, ...bytes } }, { ask: answer });
  }

  /** @param {number} count */
  serve(count) {
    this.#left = count;
    return /** @type {Promise<void>} */ (
      new Promise((resolve) => {
        this.#done = resolve;
      })
    );
  }

  close() {
    this.#server.forceShutdown();
  }
}

/**
 * @param {string} environment
 * @returns {import('./ends.mjs').Mechanism[]}
 */
export function mechanisms(environment) {
  const require = createRequire(`${environment}/`);
  const grpc = require('@grpc/grpc-js');
  const { version } = require('@grpc/grpc-js/package.json');
  return [
    {
      about: () =>
        about('grpc-node', 'peer', true, 'gRPC on a Unix socket, @grpc/grpc-js on both sides; bytes', version),
      // A reply is what was sent.
      can: ({ test, mode, size, batch }) => test === 'call' && mode === 'block' && size === 32 && batch === 1,
      async open({ directory }, leads) {
        const address = `unix:${directory}/grpc.sock`;
        if (leads) {
          return async () => {
            const client = new grpc.Client(address, grpc.credentials.createInsecure());
            await new Promise((resolve, reject) => {
              const until = Date.now() + 20_000;
              client.waitForReady(until, (/** @type {Error | undefined} */ error) =>
                error ? reject(error) : resolve(null),
              );
            });
            return new Calling(client);
          };
        }
        const server = new grpc.Server();
        const serving = new Serving(server);
        await new Promise((resolve, reject) => {
          const done = (/** @type {Error | null} */ error) => (error ? reject(error) : resolve(null));
          server.bindAsync(address, grpc.ServerCredentials.createInsecure(), done);
        });
        return () => serving;
      },
    },
  ];
}
