// A program whose 'drain' listeners throw, and which goes on all the same: says how many were called.
import { Ring } from '../index.mjs';

const COUNT = 8;
let thrown = 0;
let drained = 0;
process.on('uncaughtException', () => {
  if (++thrown === COUNT) {
    console.log(drained);
    for (const [tx] of rings) tx.close();
  }
});
const rings = Array.from({ length: COUNT }, () => Ring.pair(4096));
for (const [tx] of rings) {
  tx.wait = 'block';
  tx.on('drain', () => {
    drained++;
    throw new Error('from the listener');
  });
  while (tx.trySend(new Uint8Array(100)));
}
// Until all of them sleep.
setTimeout(() => {
  for (const [, rx] of rings) while (rx.tryRecv());
}, 100);
// For one that never wakes.
setTimeout(() => process.exit(1), 20_000).unref();
setTimeout(() => {}, 500);
