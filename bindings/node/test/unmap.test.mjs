// close() gives memory back itself, and does not leave it to a later turn of the loop.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Region, Ring } from '../index.mjs';
import { scene, turn } from './scene.mjs';

const mappings = () => readFileSync('/proc/self/maps', 'latin1').split('\n').length;
/** What a runtime maps meanwhile, and the last closed handles whose views may be in the hands of one of its threads. */
const OTHERS = 1000;
const TIMES = 2500;

/** @type {[string, (path: (name: string) => string, n: number) => void][]} */
const ways = [
  [
    'pairs',
    () => {
      const [tx, rx] = Ring.pair(4096);
      tx.close();
      rx.close();
    },
  ],
  [
    'pairs with messages that were looked at',
    () => {
      const [tx, rx] = Ring.pair(4096);
      tx.tryReserve(5, (slot) => void slot.fill(7));
      tx.trySend('kept'.repeat(20));
      assert.equal(rx.tryRecv()?.data[4], 7);
      const last = rx.tryRecv()?.data;
      tx.close();
      rx.close();
      assert.equal(last?.length, 0);
    },
  ],
  [
    'named rings',
    (path, n) => {
      const ring = Ring.openOrCreate(path(`ring-${n % 7}`), { capacity: 4096 });
      const tx = ring.senderSync();
      const rx = ring.receiverSync();
      tx.trySend('x');
      assert.equal(rx.tryRecv()?.text(), 'x');
      tx.close();
      rx.close();
    },
  ],
  [
    'regions',
    (path, n) => {
      const region = Region.createSync(path(`region-${n % 7}`), 8192);
      if (n % 2) new Uint8Array(region.buffer).fill(n);
      region.close();
    },
  ],
];

for (const [what, make] of ways) {
  scene(`thousands in one turn of the loop leave no mappings: ${what}`, async ({ path }) => {
    const before = mappings();
    for (let n = 0; n < TIMES; n++) make(path, n);
    const after = mappings();
    assert.ok(after < before + OTHERS, `${before} mappings, and ${after} after ${TIMES} ${what}`);
    await turn();
  });
}

scene('what was transferred away outlives the close, of a message and of a region', async ({ path }) => {
  /** @type {[Uint8Array, number][]} */ const kept = [];
  for (let n = 0; n < 200; n++) {
    const [tx, rx] = Ring.pair(4096);
    tx.trySend(new Uint8Array(100).fill(n));
    const view = rx.tryRecv()?.data;
    const buffer = /** @type {ArrayBuffer} */ (view?.buffer);
    const region = Region.createSync(path('region'), 4096);
    new Uint8Array(region.buffer).fill(n);
    for (const from of [buffer, region.buffer]) {
      try {
        kept.push([new Uint8Array(structuredClone(from, { transfer: [from] })), n]);
      } catch {
        // Bun refuses.
      }
    }
    rx.close();
    tx.close();
    region.close();
  }
  for (const [bytes, n] of kept)
    assert.ok(bytes.length > 0 && bytes.subarray(0, 100).every((byte) => byte === (n & 0xff)));
});
