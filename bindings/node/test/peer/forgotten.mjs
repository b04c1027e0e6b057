// Forgets handles with everything that can hang on them, collects garbage, and goes on.
import assert from 'node:assert/strict';
import { Ring } from '../../index.mjs';
import { collect, descriptors } from './collected.mjs';

const directory = process.argv[2];
const pair = () => Ring.pair(4096);
const bytes = (/** @type {number} */ value) => new Uint8Array(200).fill(value);

// A view outlives every handle: it shows what it showed, or nothing.
/** @type {Uint8Array[]} */ const kept = [];
for (let i = 0; i < 50; i++) {
  const [tx, rx] = pair();
  await tx.send(bytes(i));
  kept.push((await rx.recv()).data);
}
await collect();
for (const [i, view] of kept.entries()) assert.ok(view.length === 0 || view.every((byte) => byte === i));
console.log('views');

// A handle that waits is not forgotten.
const waiting = Array.from({ length: 20 }, () => {
  const [tx, rx] = pair();
  return { tx, received: rx.recv().then((message) => message.text()) };
});
await collect();
for (const { tx } of waiting) tx.trySend('still there');
for (const { received } of waiting) assert.equal(await received, 'still there');
waiting.length = 0;
console.log('waiting');

// Loops that nobody ends, and messages that nobody releases.
for (let i = 0; i < 50; i++) {
  const [tx, rx] = pair();
  for (let n = 0; n < 5; n++) tx.trySend(bytes(n));
  const loop = rx.batches({ max: 2 });
  await loop.next();
  rx.on('error', () => {});
}
await collect();
console.log('loops');

// Slots whose filling never ends.
for (let i = 0; i < 20; i++) {
  const [tx] = pair();
  tx.reserve(100, () => new Promise(() => {})).catch(() => {});
}
await collect();
console.log('slots');

// What a forgotten handle had is free again: descriptors, and its role.
const before = descriptors();
for (let i = 0; i < 100; i++) {
  const ring = Ring.create(`${directory}r${i}`, { capacity: 4096 });
  await ring.sender();
  await Ring.open(`${directory}r${i}`).receiver();
}
const most = descriptors();
for (let i = 0; i < 200 && descriptors() > before + 20; i++) await collect();
assert.ok(descriptors() <= before + 20, `${before} descriptors, then ${most}, then ${descriptors()}`);
const rx = await Ring.openOrCreate(`${directory}r0`, { timeout: 5000 }).receiver();
rx.close();
console.log('handles');
