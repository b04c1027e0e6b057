// Loops of calls with short time-outs, and of calls that never wait: each learns that the other side died or closed.
import assert from 'node:assert/strict';
import { fromPeer, LONG, scene, toPeer } from './scene.mjs';

const allowMainThread = true;
/** Milliseconds: never waiting, less than a spin, less and more than the 100 ms between two looks at the other side. */
const TIMES = [0, 0.02, 1, 5, 50, 99, 150];
const data = new Uint8Array(500);
const target = new Uint8Array(500);

/** @type {[string, (rx: import('../index.mjs').Receiver, timeout: number) => unknown][]} */
const receives = [
  ['recv', (rx, timeout) => rx.recv({ timeout })],
  ['recvSync', (rx, timeout) => rx.recvSync({ timeout, allowMainThread })],
  ['recvBatch', (rx, timeout) => rx.recvBatch({ timeout })],
  ['recvInto', (rx, timeout) => rx.recvInto(target, { timeout })],
  ['recvIntoSync', (rx, timeout) => rx.recvIntoSync(target, { timeout, allowMainThread })],
  ['tryRecv', (rx) => rx.tryRecv()],
];

/** @type {[string, (tx: import('../index.mjs').Sender, timeout: number) => unknown][]} */
const sends = [
  ['send', (tx, timeout) => tx.send(data, { timeout })],
  ['sendSync', (tx, timeout) => tx.sendSync(data, { timeout, allowMainThread })],
  ['sendBatch', (tx, timeout) => tx.sendBatch([data], { timeout })],
  ['reserve', (tx, timeout) => tx.reserve(500, () => {}, { timeout })],
  ['trySend', (tx) => tx.trySend(data)],
];

/** Calls until it is no time-out; what it is then. @param {() => unknown} call @param {number} most calls that find nothing */
async function loop(call, most = Infinity) {
  const deadline = performance.now() + LONG / 2;
  for (let calls = 0; calls < most; calls++) {
    try {
      const got = await call();
      assert.ok(got === null || got === false, 'there is nothing to receive, and no room');
    } catch (/** @type {any} */ error) {
      if (error.kind !== 'TimedOut') return error.kind;
    }
    assert.ok(performance.now() < deadline, 'it never heard of it');
  }
  return undefined;
}

/** It has read that it is to close: these loops leave the event loop no turn to write that in. @param {any} peer */
const closes = (peer) => peer.does('close', 'closed');

for (const how of /** @type {const} */ (['PeerDead', 'Closed'])) {
  for (const policy of /** @type {const} */ (['hybrid', 'block', 'spin'])) {
    scene(`a receiver that polls (${policy}) learns that its sender is ${how}`, async (here) => {
      for (const timeout of policy === 'hybrid' ? TIMES : [0, 0.02, 5]) {
        for (const [what, call] of receives) {
          if (what === 'tryRecv' && timeout !== 0) continue;
          const place = { ...here, path: (/** @type {string} */ name) => here.path(`${name}-${timeout}-${what}`) };
          const [rx, peer] = await fromPeer(place);
          rx.wait = policy;
          const once = () => call(rx, timeout);
          assert.equal(await loop(once, 2), undefined);
          if (how === 'PeerDead') peer.signal('SIGKILL');
          else await closes(peer);
          assert.equal(await loop(once), how, `${what} with ${timeout} ms`);
          // A named ring's sender may have a successor: it is said again until then.
          assert.equal(await loop(once, 1), how, `${what} with ${timeout} ms, again`);
          rx.close();
        }
      }
    });

    scene(`a sender that polls (${policy}) learns that its receiver is ${how}`, async (here) => {
      for (const timeout of policy === 'hybrid' ? TIMES : [0, 0.02, 5]) {
        for (const [what, call] of sends) {
          if (what === 'trySend' && timeout !== 0) continue;
          const place = { ...here, path: (/** @type {string} */ name) => here.path(`${name}-${timeout}-${what}`) };
          const [tx, peer] = await toPeer(place, { capacity: 4096 });
          tx.on('error', () => {});
          tx.wait = policy;
          while (tx.trySend(data));
          const once = () => call(tx, timeout);
          assert.equal(await loop(once, 2), undefined);
          if (how === 'PeerDead') peer.signal('SIGKILL');
          else await closes(peer);
          assert.equal(await loop(once), how, `${what} with ${timeout} ms`);
          tx.close();
        }
      }
    });
  }
}
