// Regions: the bytes themselves, who else sees them, and notifications from another process.
import assert from 'node:assert/strict';
import { existsSync, statSync, unlinkSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { Region } from '../index.mjs';
import { code, eventually, LONG, Peer, scene, settled, sleep } from './scene.mjs';

/** A region, and another process that has it open. @param {import('./scene.mjs').Scene} here @returns {Promise<[Region, Peer]>} */
async function shared({ path, own, peer }, size = 4096) {
  const region = own(await Region.create(path('region'), size));
  return [region, await peer(`region=${path('region')}`)];
}

/** Has the garbage of this process collected, as far as one may ask for that. */
async function collect() {
  const { gc, Bun } = /** @type {any} */ (globalThis);
  for (let i = 0; i < 3; i++) {
    if (gc) gc();
    else if (Bun) Bun.gc(true);
    else for (let n = 0; n < 100; n++) new Uint8Array(1 << 20).fill(n);
    await sleep(5);
  }
}

scene('create, open and openOrCreate', async ({ path, own }) => {
  await assert.rejects(Region.open(path('region')), code('NOT_FOUND'));
  assert.throws(() => Region.openSync(path('region')), code('NOT_FOUND'));
  const region = own(await Region.create(path('region'), 100));
  assert.deepEqual([region.name, region.size, region.readOnly, region.closed], [path('region'), 100, false, false]);
  assert.deepEqual(new Uint8Array(region.buffer), new Uint8Array(100));
  await assert.rejects(Region.create(path('region'), 100), code('ALREADY_EXISTS'));
  assert.throws(() => Region.createSync(path('region'), 100), code('ALREADY_EXISTS'));
  for (const open of [
    () => Region.open(path('region')),
    () => Region.openSync(path('region')),
    () => Region.openOrCreate(path('region'), 100),
    () => Region.openOrCreateSync(path('region'), 100),
  ]) {
    const other = own(await open());
    assert.equal(other.size, 100);
  }
  await assert.rejects(Region.openOrCreate(path('region'), 101), code('INVALID_ARGUMENT'));
  assert.throws(() => Region.openOrCreateSync(path('region'), 99), code('INVALID_ARGUMENT'));
  own(await Region.openOrCreate(path('new'), 5000, { mode: 0o640, prefault: true }));
  assert.equal(statSync(path('new')).mode & 0o777, 0o640);
  own(Region.createSync(path('newer'), 1, { wait: 'block' }));
  for (const size of [0, -1, 1.5, NaN, '4096', undefined]) {
    await assert.rejects(Region.create(path('bad'), /** @type {any} */ (size)), code('INVALID_ARGUMENT'));
  }
});

scene('it lives until its last handle is gone; persistent, longer', async ({ path }) => {
  const [a, b] = [await Region.create(path('region'), 100), await Region.open(path('region'))];
  a.close();
  assert.ok(existsSync(path('region')));
  b.close();
  assert.ok(!existsSync(path('region')));
  const kept = await Region.create(path('region'), 100, { persistent: true });
  kept.writeAt(0, 'kept');
  kept.close();
  const again = await Region.open(path('region'));
  assert.deepEqual(again.readAt(0, 4), new TextEncoder().encode('kept'));
  again.close();
  await assert.rejects(Region.create(path('region'), 100), code('ALREADY_EXISTS'));
  const anew = await Region.create(path('region'), 100, { discard: true });
  assert.deepEqual(anew.readAt(0, 4), new Uint8Array(4));
  anew.close();
});

scene('open waits for a region that comes later, and can be given up', async ({ path, own }) => {
  const began = performance.now();
  await assert.rejects(Region.open(path('region'), { timeout: 60 }), code('NOT_FOUND'));
  assert.ok(performance.now() - began >= 59);
  const allowMainThread = true;
  assert.throws(() => Region.openSync(path('region'), { timeout: 20 }), code('UNSUPPORTED'));
  assert.throws(() => Region.openSync(path('region'), { timeout: 20, allowMainThread }), code('NOT_FOUND'));
  const controller = new AbortController();
  const { signal } = controller;
  const given = Region.open(path('region'), { timeout: Infinity, signal });
  const opening = Region.open(path('region'), { timeout: LONG });
  await sleep(30);
  assert.equal(await settled(opening), false);
  controller.abort();
  await assert.rejects(given, { name: 'AbortError' });
  own(await Region.create(path('region'), 100));
  own(await opening);
  await assert.rejects(Region.create(path('other'), 100, { signal }), { name: 'AbortError' });
  assert.ok(!existsSync(path('other')));
});

scene('the buffer is the memory that the other process has', async (here) => {
  const [region, peer] = await shared(here, 10_001);
  assert.equal(region.buffer, region.buffer);
  assert.equal(region.buffer.byteLength, 10_001);
  const bytes = new Uint8Array(region.buffer);
  await peer.does('region store 9997 01020304', 'stored');
  assert.deepEqual([...bytes.subarray(9996)], [0, 1, 2, 3, 4]);
  bytes.set([9, 8, 7], 5000);
  await peer.does('region load 4999 5', 'bytes', { hex: '0009080700' });
  new DataView(region.buffer).setBigUint64(8, 0x0102030405060708n, true);
  await peer.does('region load 8 8', 'bytes', { hex: '0807060504030201' });
});

scene('atomics count with another process, and lose nothing', async (here) => {
  const [region, peer] = await shared(here);
  const words = new Uint32Array(region.buffer);
  const COUNT = 200_000;
  peer.tell(`region add 64 ${COUNT}`);
  for (let i = 0; i < COUNT; i++) {
    Atomics.add(words, 16, 1);
    if (i % 5000 === 0) await sleep(0);
  }
  await peer.said('added');
  assert.equal(Atomics.load(words, 16), 2 * COUNT);
  assert.equal(Atomics.compareExchange(words, 16, 2 * COUNT, 1), 2 * COUNT);
  await peer.does('region load 64 4', 'bytes', { hex: '01000000' });
});

scene('readAt and writeAt copy, within the region', async (here) => {
  const [region, peer] = await shared(here, 100);
  region.writeAt(1, 'äöü');
  region.writeAt(10, new Uint16Array([0x0102, 0x0304]));
  region.writeAt(20, new DataView(new Uint8Array([0, 7, 8, 9]).buffer, 1, 2));
  region.writeAt(30, new Uint8Array([5, 6]).buffer);
  const inside = new SharedArrayBuffer(2);
  new Uint8Array(inside).fill(4);
  region.writeAt(98, inside);
  region.writeAt(100, '');
  await peer.does('region load 1 6', 'bytes', { hex: 'c3a4c3b6c3bc' });
  await peer.does('region load 10 4', 'bytes', { hex: '02010403' });
  await peer.does('region load 20 12', 'bytes', { hex: '070800000000000000000506' });
  await peer.does('region load 96 4', 'bytes', { hex: '00000404' });
  const copy = region.readAt(98, 2);
  region.writeAt(98, new Uint8Array(2));
  assert.deepEqual([...copy], [4, 4]);
  assert.equal(region.readAt(100, 0).length, 0);
  for (const [offset, length] of /** @type {[any, any][]} */ ([
    [0, 101],
    [100, 1],
    [2 ** 53 - 1, 1],
    [-1, 1],
    [0.5, 1],
    ['0', 1],
    [0, -1],
    [0, 2 ** 52],
    [0, undefined],
  ])) {
    assert.throws(() => region.readAt(offset, length), code('INVALID_ARGUMENT'), `${offset}, ${length}`);
  }
  assert.throws(() => region.writeAt(98, 'abc'), code('INVALID_ARGUMENT'));
  for (const data of [1, null, undefined, [1], {}]) {
    assert.throws(() => region.writeAt(0, /** @type {any} */ (data)), code('INVALID_ARGUMENT'));
  }
});

scene('close detaches the buffer and every view of it', async ({ path, own }) => {
  const region = own(await Region.create(path('region'), 4096));
  const { buffer } = region;
  const views = [new Uint8Array(buffer), new Int32Array(buffer, 64, 4)];
  views[0]?.fill(1);
  region.close();
  assert.equal(region.closed, true);
  assert.equal(buffer.byteLength, 0);
  for (const view of views) assert.deepEqual([view.length, view[0]], [0, undefined]);
  for (const call of [
    () => region.buffer,
    () => region.readAt(0, 1),
    () => region.writeAt(0, 'x'),
    () => region.notify(),
    () => region.notifications,
    () => region.waitSync({ allowMainThread: true }),
  ]) {
    assert.throws(call, code('DETACHED'));
  }
  await assert.rejects(region.waitAsync(), code('DETACHED'));
  region.close();
  const [a, b] = [await Region.create(path('region'), 10), await Region.open(path('region'))];
  a[Symbol.dispose]();
  await b[Symbol.asyncDispose]();
  assert.deepEqual([a.closed, b.closed, existsSync(path('region'))], [true, true, false]);
});

/**
 * Ways to take a buffer away. A runtime may refuse that, or copy the bytes; where it does neither, there must be memory
 * under what was taken as long as it is there.
 * @type {[string, (buffer: ArrayBuffer) => ArrayBuffer | undefined][]}
 */
const ways = [
  ['structuredClone', (buffer) => structuredClone(buffer, { transfer: [buffer] })],
  ['transfer()', (buffer) => /** @type {any} */ (buffer).transfer?.()],
  ['transferToFixedLength()', (buffer) => /** @type {any} */ (buffer).transferToFixedLength?.()],
];

for (const [what, take] of ways) {
  scene(`a buffer that was taken away by ${what} outlives the region, whose name is free`, async ({ path, own }) => {
    const region = own(await Region.create(path('region'), 8192));
    const first = region.buffer;
    /** @type {ArrayBuffer | undefined} */ let taken;
    try {
      taken = take(first);
    } catch (error) {
      assert.match(String(error), /transfer|detach/i);
    }
    const bytes = taken === undefined ? new Uint8Array(8192) : new Uint8Array(taken);
    const moved = first.byteLength === 0;
    // There is a new one then, of the same memory.
    new Uint8Array(region.buffer).fill(7);
    assert.equal(bytes[8191], moved ? 7 : 0);
    region.close();
    assert.equal(first.byteLength, 0);
    assert.ok(!existsSync(path('region')));
    const next = own(await Region.create(path('region'), 8192));
    bytes.fill(9);
    assert.deepEqual(next.readAt(0, 2), new Uint8Array(2));
    await collect();
    assert.ok(bytes.every((byte) => byte === 9));
  });
}

scene('a worker that was given the buffer', async ({ path, own }) => {
  const region = own(await Region.create(path('region'), 4096));
  const { buffer } = region;
  const file = new URL('./peer/mapped.mjs', import.meta.url);
  let worker;
  try {
    worker = new Worker(file, { workerData: { buffer }, transferList: [buffer] });
  } catch (error) {
    // Bun.
    assert.match(String(error), /transfer/);
    assert.equal(buffer.byteLength, 4096);
    return;
  }
  const told = own({ close: () => worker.terminate() });
  const said = () => new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  assert.equal(await said(), 'written');
  // Deno moves it, and Node copies it.
  assert.deepEqual([...region.readAt(0, 3)], buffer.byteLength === 0 ? [1, 2, 3] : [0, 0, 0]);
  region.close();
  assert.equal(buffer.byteLength, 0);
  const sum = said();
  worker.postMessage('again');
  assert.equal(await sum, 6);
  await told.close();
});

scene('handles and buffers that are forgotten are collected, and harm nobody', async ({ path }) => {
  const views = [];
  for (let i = 0; i < 50; i++) {
    const region = await Region.create(path(`region-${i}`), 4096);
    views.push(new Uint8Array(region.buffer).fill(i));
  }
  await collect();
  for (const [i, view] of views.entries()) assert.ok(view.every((byte) => byte === i));
  views.length = 0;
  await collect();
});

scene('waitAsync resolves when another process notifies, with what it wrote before', async (here) => {
  const [region, peer] = await shared(here);
  for (let round = 1; round <= 20; round++) {
    const waiting = region.waitAsync({ timeout: LONG });
    if (round % 4 === 0) await sleep(5);
    assert.equal(await settled(waiting), false);
    await peer.does(`region store 0 ${round.toString(16).padStart(2, '0')}`, 'stored');
    await peer.does('region notify', 'notified');
    assert.equal(await waiting, round);
    assert.equal(new Uint8Array(region.buffer)[0], round);
  }
  peer.tell('region wait');
  await sleep(20);
  region.notify();
  await peer.said('awaited');
});

scene('a notification before the wait counts, any number of them once', async ({ path, own }) => {
  const writer = own(await Region.create(path('region'), 1));
  writer.notify();
  const region = own(await Region.open(path('region')));
  // Not what was before it was opened.
  await assert.rejects(region.waitAsync({ timeout: 0 }), code('TIMED_OUT'));
  assert.deepEqual([region.notifications, writer.notifications], [1, 1]);
  for (let i = 0; i < 3; i++) writer.notify();
  assert.equal(await region.waitAsync({ timeout: 0 }), 4);
  await assert.rejects(region.waitAsync({ timeout: 0 }), code('TIMED_OUT'));
  // With a number of one's own.
  assert.equal(await region.waitAsync({ since: 2 }), 4);
  assert.equal(await region.waitAsync({ since: 5 }), 4);
  await assert.rejects(region.waitAsync({ since: 4, timeout: 20 }), code('TIMED_OUT'));
  const allowMainThread = true;
  writer.notify();
  assert.equal(region.waitSync({ allowMainThread }), 5);
  assert.throws(() => region.waitSync({ allowMainThread, timeout: 0 }), code('TIMED_OUT'));
  assert.equal(region.waitSync({ allowMainThread, since: 0 }), 5);
  assert.throws(() => region.waitSync(), code('UNSUPPORTED'));
  for (const since of [-1, 0.5, 2 ** 31, '1']) {
    await assert.rejects(region.waitAsync({ since: /** @type {any} */ (since) }), code('INVALID_ARGUMENT'));
  }
});

scene('many waits at once: all of one notification, each with its own end', async (here) => {
  const [region, peer] = await shared(here);
  const controller = new AbortController();
  const waits = Array.from({ length: 10 }, () => region.waitAsync());
  const given = assert.rejects(region.waitAsync({ signal: controller.signal }), { name: 'AbortError' });
  const late = assert.rejects(region.waitAsync({ timeout: 30 }), code('TIMED_OUT'));
  controller.abort();
  await given;
  await late;
  assert.equal(await settled(Promise.race(waits)), false);
  await peer.does('region notify', 'notified');
  assert.deepEqual(new Set(await Promise.all(waits)), new Set([1]));
  const closed = Promise.allSettled([region.waitAsync(), region.waitAsync({ since: 1, timeout: LONG })]);
  await sleep(10);
  region.close();
  for (const outcome of await closed) assert.ok(code('DETACHED')(/** @type {any} */ (outcome).reason));
});

for (const wait of /** @type {const} */ (['spin', 'hybrid', 'block'])) {
  scene(`a thousand notifications one after the other: ${wait}`, async ({ path, own }) => {
    const [ping, pong] = await Promise.all(['ping', 'pong'].map((name) => Region.create(path(name), 8, { wait })));
    own(ping);
    own(pong);
    const [there, back] = [
      own(await Region.open(path('ping'), { wait })),
      own(await Region.open(path('pong'), { wait })),
    ];
    const echo = (async () => {
      for (let i = 1; i <= 1000; i++) {
        assert.equal(await there.waitAsync({ timeout: LONG }), i);
        back.notify();
      }
    })();
    for (let i = 1; i <= 1000; i++) {
      ping?.notify();
      assert.equal(await pong?.waitAsync({ timeout: LONG }), i);
    }
    await echo;
  });
}

scene('read-only: no buffer and no writing, and waiting all the same', async (here) => {
  const [writer, peer] = await shared(here);
  writer.writeAt(0, 'shared');
  const region = here.own(await Region.open(here.path('region'), { readOnly: true }));
  assert.equal(region.readOnly, true);
  assert.throws(() => region.buffer, code('UNSUPPORTED'));
  assert.throws(() => region.writeAt(0, 'x'), code('PERMISSION_DENIED'));
  assert.throws(() => region.notify(), code('PERMISSION_DENIED'));
  assert.equal(new TextDecoder().decode(region.readAt(0, 6)), 'shared');
  const waiting = region.waitAsync({ timeout: LONG });
  await sleep(20);
  assert.equal(await settled(waiting), false);
  await peer.does('region notify', 'notified');
  assert.equal(await waiting, 1);
  await assert.rejects(region.waitAsync({ timeout: 20 }), code('TIMED_OUT'));
  const closed = region.waitAsync().catch((error) => error);
  region.close();
  assert.ok(code('DETACHED')(await closed));
});

for (const readOnly of [false, true]) {
  scene(`the name is removed: a waiter is told (${readOnly ? 'read-only' : 'writable'})`, async ({ path, own }) => {
    const region = own(await Region.create(path('region'), 100));
    const other = own(await Region.open(path('region'), { readOnly }));
    const waiting = assert.rejects(other.waitAsync(), code('CLOSED'));
    await sleep(20);
    unlinkSync(path('region'));
    await waiting;
    await assert.rejects(other.waitAsync({ timeout: LONG }), code('CLOSED'));
    // Who is there already is heard still.
    region.notify();
    assert.equal(await other.waitAsync(), 1);
  });
}

scene('the loop goes on while a region is waited for', async (here) => {
  const [region, peer] = await shared(here);
  const waiting = region.waitAsync();
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await eventually('timers run', () => turns > 20);
  clearInterval(timer);
  await peer.does('region notify', 'notified');
  await waiting;
});
