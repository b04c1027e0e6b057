// What the tests of RPC servers share.
import { RpcServer } from '../index.mjs';

/** @typedef {import('./scene.mjs').Scene} Scene */
/** @typedef {import('./scene.mjs').Peer} Peer */

/** A promise that is settled from outside. */
export function gate() {
  /** @type {(value?: any) => void} */ let open = () => {};
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

/**
 * A server that serves, and what its `run` gives.
 * @param {Scene} scene @param {(server: RpcServer) => void} register @param {import('../index.mjs').RpcServerOptions} [options]
 * @returns {Promise<[RpcServer, Promise<void>]>}
 */
export async function serving({ path, own }, register, options) {
  const server = own(await RpcServer.bind(path('rpc'), options));
  register(server);
  const run = server.run();
  run.catch(() => {});
  return [server, run];
}

/** @param {Scene} scene */
export const client = ({ path, peer }, ...places) => peer(...places, `call=${path('rpc')}`);

/** The answer of one call. @param {Peer} peer @param {number} method */
export async function call(peer, method, size = 0, timeout = 0) {
  const { first } = await peer.ask(`call start 1 ${method} ${size} ${timeout}`);
  return peer.ask(`call wait ${first}`);
}

export const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text);
