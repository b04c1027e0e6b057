// What once went wrong, each where nobody would think of it.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { code, eventually, pair, program, scene } from './scene.mjs';

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

scene('data that changes its length while it waits is refused, and nothing else is overwritten', async ({ own }) => {
  const [tx, rx] = pair(own);
  while (tx.trySend(new Uint8Array(100).fill(1)));
  const detached = new Uint8Array(300);
  // Newer than the declarations of ArrayBuffer.
  const buffer = new /** @type {any} */ (ArrayBuffer)(10, { maxByteLength: 4000 });
  const resized = new Uint8Array(buffer);
  const waiting = [tx.send(detached), tx.send(resized), tx.send('after them')];
  structuredClone(detached.buffer, { transfer: [detached.buffer] });
  buffer.resize(4000);
  const outcomes = Promise.allSettled(waiting);
  /** @type {string[]} */ const got = [];
  while (got.at(-1) !== 'after them') {
    const message = await rx.recv();
    got.push(message.length === 100 ? String(message.data.every((byte) => byte === 1)) : message.text());
  }
  assert.deepEqual([...new Set(got)], ['true', 'after them']);
  const [first, second, third] = /** @type {any[]} */ (await outcomes);
  assert.equal(first.reason.code, 'ERR_RAMWAY_DETACHED');
  assert.equal(second.reason.code, 'ERR_RAMWAY_INVALID_ARGUMENT');
  assert.equal(third.status, 'fulfilled');
});

scene("what a 'drain' listener throws keeps no other handle asleep", async ({ own }) => {
  const child = own(program('throws.mjs'));
  assert.deepEqual(await child.finish(), ['8']);
});

scene('a message after one whose buffer was transferred is there all the same', async ({ own }) => {
  const [tx, rx] = pair(own, 65_536);
  for (const text of ['a', 'b', 'c', '']) tx.trySend(text);
  tx.close();
  /** @type {[string, ArrayBuffer][]} */ const got = [];
  for await (const message of rx) {
    const { data } = message;
    const text = new TextDecoder().decode(data);
    /** @type {ArrayBuffer} */ let moved = new ArrayBuffer(0);
    try {
      const buffer = /** @type {ArrayBuffer} */ (data.buffer);
      moved = structuredClone(buffer, { transfer: [buffer] });
    } catch {
      // Bun refuses.
    }
    got.push([text, moved]);
  }
  assert.deepEqual(
    got.map(([text]) => text),
    ['a', 'b', 'c', ''],
  );
});

scene('a target that is shorter than it says takes no message', async ({ own }) => {
  class Liar extends Uint8Array {
    get length() {
      return 1000;
    }
  }
  const [tx, rx] = pair(own);
  tx.trySend('x'.repeat(100));
  assert.throws(() => rx.tryRecvInto(new Liar(4)), RangeError);
  assert.equal(rx.tryRecv()?.length, 100);
});

scene('all bytes of a batch that has none', async ({ own }) => {
  const [tx, rx] = pair(own);
  for (let i = 0; i < 3; i++) {
    tx.trySend('');
    const batch = rx.tryRecvBatch();
    assert.deepEqual([batch?.bytes.length, batch?.offset(0), batch?.size(0)], [0, 0, 0]);
    batch?.release();
  }
});

scene('a worker that ends leaves no thread behind', async () => {
  const waiting = () => {
    const names = readdirSync('/proc/self/task').map((task) => {
      try {
        return readFileSync(`/proc/self/task/${task}/comm`, 'utf8').trim();
      } catch {
        return '';
      }
    });
    return names.filter((name) => name === 'ramway-wakeups').length;
  };
  const index = JSON.stringify(new URL('../index.mjs', import.meta.url).href);
  const before = waiting();
  for (let i = 0; i < 3; i++) {
    const source = `import(${index}).then(() => require('node:worker_threads').parentPort.postMessage('there'));`;
    const worker = new Worker(`${source} setInterval(() => {}, 1000);`, { eval: true });
    await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    await worker.terminate();
  }
  await eventually('their threads have ended', () => waiting() <= before);
});

scene('more than 4 GiB may pass between two calls of the native half', async ({ own }) => {
  const size = 32 << 20;
  const [tx, rx] = pair(own, 2 * size);
  for (let passed = 0; passed < 4.5 * 2 ** 30; passed += size) {
    assert.ok(tx.tryReserve(size, () => {}));
    const message = rx.tryRecv();
    assert.equal(message?.length, size);
    message?.release();
  }
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.equal(rx.tryRecv(), null); // asks for the sender's life
  const receiving = rx.recv();
  await new Promise((resolve) => setTimeout(resolve, 20));
  await tx.send('after that', { tag: 7 });
  const after = await receiving;
  assert.equal(after.text(), 'after that');
  after.release();
  assert.equal(tx.lastTag, 7n);
  while (tx.tryReserve(size - 16, () => {}));
  const waiting = tx.send('and waits for room, too');
  for (let n = 0; n < 2; n++) if ((await rx.recv()).length < 100) break;
  await waiting;
  tx.close();
  let last = '';
  for await (const message of rx) last = message.length < 100 ? message.text() : '';
  assert.equal(last, 'and waits for room, too');
});
