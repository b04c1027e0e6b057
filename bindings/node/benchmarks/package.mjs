// What a message costs in the package itself, one process being both sides: a ring is filled, then drained. `node
// package.mjs ALL [PART OF A NAME]...`; the same in Bun and Deno. Between two processes it is `ramway bench --only node`.
import { Ring } from '../index.mjs';
import { time } from './timing.mjs';

const COUNT = 16384;
const [tx, rx] = Ring.pair(1 << 20);
const message = new Uint8Array(32).fill(5);
const together = Array.from({ length: COUNT }, () => message);
const into = new Uint8Array(32);
let kept = 0;

function read(/** @type {Uint8Array} */ bytes) {
  let all = 0;
  for (let at = 0; at < bytes.length; at++) all += bytes[at];
  kept += all;
}

function fill() {
  for (let n = 0; n < COUNT; n++) if (!tx.trySend(message)) throw new Error('full');
}

function drain() {
  while (rx.tryRecvBatch() !== null);
}

const receive = (/** @type {string} */ what, /** @type {() => Promise<void> | void} */ burst) =>
  time(`receiving: ${what}`, COUNT, burst, () => {
    if (rx.used !== 0) throw new Error(`${rx.used} bytes are left`);
    fill();
  });

await time('sending: trySend', COUNT, fill, drain);
drain();
await time('sending: await sendBatch', COUNT, () => tx.sendBatch(together), drain);
drain();
const loops = { 'and data': read, 'only the messages': () => {} };
for (const [what, use] of Object.entries(loops)) {
  const data = what === 'and data';
  await receive(`for await over messages ${what}`, async () => {
    let left = COUNT;
    for await (const one of rx) {
      if (data) use(one.data);
      if (--left === 0) break;
    }
  });
  await receive(`for await over batches ${what}`, async () => {
    let left = COUNT;
    for await (const batch of rx.batches()) {
      for (const one of batch) if (data) use(one.data);
      left -= batch.length;
      if (left === 0) {
        batch.release();
        break;
      }
    }
  });
}
await receive('for await over batches, bytes', async () => {
  let left = COUNT;
  for await (const batch of rx.batches()) {
    const { bytes } = batch;
    let all = 0;
    for (let n = 0; n < batch.length; n++) {
      for (let at = batch.offset(n), end = at + batch.size(n); at < end; at++) all += bytes[at];
    }
    kept += all;
    left -= batch.length;
    if (left === 0) {
      batch.release();
      break;
    }
  }
});
await receive('tryRecvInto', () => {
  for (let n = 0; n < COUNT; n++) {
    rx.tryRecvInto(into);
    read(into);
  }
});
await receive('tryRecv, data, release', () => {
  for (let n = 0; n < COUNT; n++) {
    const one = rx.tryRecv();
    if (one === null) throw new Error('empty');
    read(one.data);
    one.release();
  }
});
if (kept === 0) throw new Error('nothing was read');
tx.close();
rx.close();
