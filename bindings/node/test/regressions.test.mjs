// What once went wrong, each where nobody would think of it.
import assert from 'node:assert/strict';
import { pair, scene } from './scene.mjs';

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
