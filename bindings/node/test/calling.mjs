// What the tests of RPC clients share: the server in another process and its methods, and what a call fails with.
import assert from 'node:assert/strict';
import { CallError, RamwayError, RpcClient } from '../index.mjs';
import { code, LONG } from './scene.mjs';

/** @typedef {import('./scene.mjs').Peer} Peer */
/** @typedef {import('../index.mjs').Reply} Reply */
/** @typedef {import('./scene.mjs').Scene} Scene */

// The server's methods.
export const ECHO = 1;
export const FAILS = 2;
export const HELD = 3;
export const STREAM = 4;
export const SIZED = 5;
export const BREAKS = 6;

/**
 * A server in another process, and a client of it.
 * @param {Scene} scene @param {import('../index.mjs').RpcConnectOptions} [options] @param {string} [limits]
 * @returns {Promise<[RpcClient, Peer]>}
 */
export async function connected({ path, own, peer }, options, limits = '') {
  const server = await peer(`serve=${path('rpc')}${limits}`);
  return [own(await RpcClient.connect(path('rpc'), { timeout: LONG, ...options })), server];
}

/**
 * How a call of HELD ends that is held for longer than its time. A busy machine may need more than the first limits to begin it: then it
 * was not run.
 * @param {RpcClient} client @param {Peer} server @param {number} held how many others are held
 * @param {(timeout: number) => unknown} call
 */
export async function outlasts(client, server, held, call) {
  for (let timeout = 20; ; timeout *= 2) {
    let error;
    try {
      await call(timeout);
    } catch (thrown) {
      error = thrown;
    }
    code('TIMED_OUT')(error);
    // Answered once the server has seen the call.
    await client.ping();
    if (Number((await server.ask('serve held 0')).count) > held) return error;
    assert.ok(timeout < LONG, 'it is never begun');
  }
}

export const word = (/** @type {number} */ value) => new Uint8Array(new Uint32Array([value]).buffer);
export const number = (/** @type {Reply | undefined} */ reply) =>
  new DataView(/** @type {Reply} */ (reply).body.buffer).getUint32(0, true);
export const text = (/** @type {Uint8Array} */ bytes) => new TextDecoder().decode(bytes);

/**
 * Fits `assert.rejects`: a CallError.
 * @param {string} kind @param {{ mayHaveRun: boolean, status?: string | undefined, applicationCode?: number, text?: string }} values
 */
export const failed =
  (kind, { mayHaveRun, status, ...more }) =>
  (/** @type {any} */ error) => {
    code(kind)(error);
    assert.ok(error instanceof CallError && error instanceof RamwayError);
    assert.equal(error.name, 'CallError');
    assert.deepEqual([error.mayHaveRun, error.status], [mayHaveRun, status], error.message);
    assert.equal(error.kind, status ?? error.kind);
    for (const [key, value] of Object.entries(more)) assert.equal(/** @type {any} */ (error)[key], value, key);
    return true;
  };
