// What once went wrong, each where nobody would think of it.
import assert from 'node:assert/strict';
import { code, pair, scene } from './scene.mjs';

scene('a receive inside a loop over messages takes the next one, and the loop goes on after it', async ({ own }) => {
  const [tx, rx] = pair(own, 65_536);
  for (let i = 0; i < 10; i++) tx.trySend(String(i));
  tx.close();
  const got = [];
  for await (const message of rx) {
    got.push(message.text());
    if (got.length === 2) got.push(rx.tryRecv()?.text());
  }
  assert.deepEqual(got.map(Number), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

scene('batches, listeners and messages take over from each other without losing any', async ({ own }) => {
  const [tx, rx] = pair(own, 65_536);
  for (let i = 0; i < 10; i++) tx.trySend(String(i));
  /** @type {string[]} */ const got = [];
  const loop = rx.messages();
  got.push((await loop.next()).value.text());
  for await (const batch of rx.batches({ max: 3 })) {
    for (const message of batch) got.push(message.text());
    break;
  }
  got.push((await loop.next()).value.text());
  await new Promise((resolve) => {
    rx.on('message', (message) => {
      if (got.push(message.text()) === 10) resolve(undefined);
    });
  });
  assert.deepEqual(got.map(Number), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

scene('what a fill asks for comes after it, also if it throws', async ({ own }) => {
  const [tx, rx] = pair(own, 65_536);
  /** @type {Promise<void>} */ let sent = Promise.reject(new Error('not called'));
  sent.catch(() => {});
  const fill = () => {
    sent = tx.send('asked for inside');
    throw new Error('nothing to send');
  };
  assert.throws(() => tx.tryReserve(10, fill), /nothing to send/);
  await sent;
  assert.equal(rx.tryRecv()?.text(), 'asked for inside');
  await assert.rejects(tx.reserve(10, fill), /nothing to send/);
  await sent;
  assert.equal(rx.tryRecv()?.text(), 'asked for inside');

  /** @type {Promise<void>} */ let ended = Promise.resolve();
  /** @type {Uint8Array | undefined} */ let kept;
  const last = () =>
    tx.tryReserve(10, (slot) => {
      kept = slot;
      ended = tx.end();
      throw new Error('the end');
    });
  assert.throws(last, /the end/);
  await ended;
  assert.deepEqual([tx.closed, kept?.length], [true, 0]);
});

scene('closing rejects a slot whose fill never ends', async ({ own }) => {
  const [tx] = pair(own);
  /** @type {Uint8Array | undefined} */ let kept;
  const filling = tx.reserve(10, (slot) => {
    kept = slot;
    return new Promise(() => {});
  });
  const waiting = tx.send('after it');
  tx.close();
  await assert.rejects(filling, code('DETACHED'));
  await assert.rejects(waiting, code('DETACHED'));
  assert.equal(kept?.length, 0);
});
