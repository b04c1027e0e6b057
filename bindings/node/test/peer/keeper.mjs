// A worker that keeps what it is given, and says again and again what it sees in it.
import { parentPort } from 'node:worker_threads';

/** @type {Uint8Array} */ let kept = new Uint8Array(0);
parentPort?.on('message', (given) => {
  if (given !== 'again') kept = new Uint8Array(given.buffer, given.offset, given.length);
  parentPort?.postMessage([...kept]);
});
