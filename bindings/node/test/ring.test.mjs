// Named rings: how they come to be, whom they wait for, and what is left of an opening that was given up.
import assert from 'node:assert/strict';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Ring } from '../index.mjs';
import { code, fromPeer, LONG, scene, settled, sleep } from './scene.mjs';

scene('create, open and openOrCreate', async ({ path, own }) => {
  await assert.rejects(Ring.open(path('ring')).sender(), code('NOT_FOUND'));
  assert.throws(() => Ring.open(path('ring')).receiverSync(), code('NOT_FOUND'));
  const tx = own(await Ring.create(path('ring'), { capacity: 5000, align: 64 }).sender());
  assert.deepEqual([tx.capacity, tx.align, tx.name, tx.closed], [8192, 64, path('ring'), false]);
  await assert.rejects(Ring.create(path('ring')).receiver(), code('ALREADY_EXISTS'));
  const rx = own(await Ring.open(path('ring')).receiver());
  assert.deepEqual([rx.capacity, rx.align, rx.name, rx.epoch, rx.peerEpoch], [8192, 64, path('ring'), 1, 1]);
  await tx.send('through it');
  assert.equal((await rx.recv()).text(), 'through it');
  tx.close();
  const next = own(Ring.openOrCreate(path('ring'), { capacity: 8192 }).senderSync());
  assert.equal(next.epoch, 2);
  const other = own(await Ring.openOrCreate(path('other')).receiver());
  assert.deepEqual([other.capacity, other.align], [1 << 20, 16]);
});

scene('a ring that is there with another capacity or alignment', async ({ path, own }) => {
  own(await Ring.create(path('ring'), { capacity: 8192, align: 64 }).sender());
  for (const options of [{ capacity: 4096 }, { align: 16 }]) {
    for (const ring of [Ring.open(path('ring'), options), Ring.openOrCreate(path('ring'), options)]) {
      const refused = /** @type {any} */ (await ring.receiver().catch((error) => error));
      assert.ok(code('INVALID_ARGUMENT')(refused));
      assert.match(refused.message, /it exists, and its (capacity is 8192|alignment is 64) bytes/);
    }
  }
  own(await Ring.open(path('ring'), { capacity: 8192, align: 64 }).receiver());
});

scene('a plain name stands in RAMWAY_DIR', async ({ own }) => {
  const name = `ring.test-${process.pid}`;
  const rx = own(await Ring.create(name).receiver());
  assert.equal(rx.name, name);
  assert.ok(existsSync(`${process.env.RAMWAY_DIR}/${name}`));
  rx.close();
  assert.ok(!existsSync(`${process.env.RAMWAY_DIR}/${name}`));
});

scene('the file has the permissions that were asked for', async ({ path, own }) => {
  own(await Ring.create(path('default')).sender());
  own(await Ring.create(path('open'), { mode: 0o666 }).sender());
  assert.deepEqual(
    ['default', 'open'].map((name) => statSync(path(name)).mode & 0o777),
    [0o600, 0o666],
  );
});

scene('each role once, in whichever process', async (here) => {
  const [rx] = await fromPeer(here);
  await assert.rejects(Ring.open(here.path('ring')).sender(), code('BUSY'));
  await assert.rejects(Ring.open(here.path('ring')).receiver(), code('BUSY'));
  rx.close();
  here.own(await Ring.open(here.path('ring')).receiver());
});

scene('undelivered messages stay: discard says that they may go', async ({ path, own }) => {
  const tx = await Ring.create(path('ring')).sender();
  await tx.send('undelivered');
  tx.close();
  await assert.rejects(Ring.create(path('ring')).sender(), code('ALREADY_EXISTS'));
  const rx = await Ring.open(path('ring')).receiver();
  assert.equal((await rx.recv()).text(), 'undelivered');
  rx.close();
  const again = own(await Ring.create(path('ring'), { discard: true }).receiver());
  assert.equal(again.tryRecv(), null);
});

scene('persistent: the name stays when nobody uses it', async ({ path }) => {
  for (const persistent of [false, true]) {
    const rx = await Ring.create(path('ring'), { persistent }).receiver();
    rx.close();
    assert.equal(existsSync(path('ring')), persistent);
  }
});

scene('what is no ring is left as it is', async ({ path }) => {
  writeFileSync(path('file'), 'a letter');
  for (const ring of [Ring.create(path('file')), Ring.open(path('file')), Ring.openOrCreate(path('file'))]) {
    await assert.rejects(
      ring.sender(),
      /** @param {any} error */ (error) => {
        assert.ok(['ERR_RAMWAY_ALREADY_EXISTS', 'ERR_RAMWAY_ABI_MISMATCH'].includes(error.code), error.stack);
        assert.match(error.message, /file/);
        return true;
      },
    );
  }
  assert.equal(await readFile(path('file'), 'utf8'), 'a letter');
});

scene('an error of the operating system has its number', async ({ path }) => {
  writeFileSync(path('file'), '');
  const error = /** @type {any} */ (
    await Ring.create(path('file/ring'))
      .sender()
      .catch((error) => error)
  );
  assert.match(error.code, /^ERR_RAMWAY_/);
  assert.equal(error.errno, 20, error.stack);
});

scene('an open waits for a ring that comes later, and for a role that is given up', async (here) => {
  const { path, own } = here;
  const receiver = Ring.open(path('ring')).receiver({ timeout: LONG });
  const sender = Ring.open(path('ring'), { timeout: Infinity }).sender();
  await sleep(50);
  assert.deepEqual([await settled(receiver), await settled(sender)], [false, false]);
  const first = await Ring.create(path('ring')).sender();
  const rx = own(await receiver);
  await first.send('of the first');
  await sleep(50);
  assert.equal(await settled(sender), false);
  first.close();
  const second = own(await sender);
  assert.equal((await rx.recv()).text(), 'of the first');
  await second.send('of the second');
  assert.equal((await rx.recv()).text(), 'of the second');
});

scene('a time-out of the call takes the place of the description: NOT_FOUND, BUSY', async ({ path, own }) => {
  const began = performance.now();
  await assert.rejects(Ring.open(path('ring'), { timeout: LONG }).sender({ timeout: 60 }), code('NOT_FOUND'));
  own(await Ring.create(path('ring')).sender());
  await assert.rejects(Ring.open(path('ring'), { timeout: 60 }).sender(), code('BUSY'));
  assert.ok(performance.now() - began >= 119, `${performance.now() - began} ms`);
  await assert.rejects(Ring.open(path('ring'), { timeout: LONG }).sender({ timeout: 0 }), code('BUSY'));
});

scene('an opening that is aborted leaves nothing behind', async ({ path, own }) => {
  for (let round = 0; round < 20; round++) {
    const controller = new AbortController();
    const { signal } = controller;
    // Now before, now while, now after the ring is made.
    const opened =
      round % 4 < 2 ? Ring.create(path('ring')).sender({ signal }) : Ring.create(path('ring')).receiver({ signal });
    if (round % 2 === 0) await sleep(round / 10);
    controller.abort();
    await opened.then(
      (end) => ('abandon' in end ? end.abandon() : end.close()),
      (error) => assert.equal(error, signal.reason),
    );
    own(await Ring.create(path('ring')).receiver()).close();
  }
});

scene('many openings that wait do not hold up files, and all end with one signal', async ({ path }) => {
  const controller = new AbortController();
  const { signal } = controller;
  const waiting = Array.from({ length: 24 }, (_, i) =>
    Ring.open(path(`ring-${i}`)).receiver({ timeout: LONG, signal }),
  );
  const all = Promise.allSettled(waiting);
  for (let i = 0; i < 10; i++) await readFile(fileURLToPath(import.meta.url));
  assert.equal(await settled(Promise.race(waiting)), false);
  controller.abort();
  for (const outcome of await all) {
    assert.deepEqual(outcome, { status: 'rejected', reason: signal.reason });
  }
});

scene('on the main thread a synchronous opening waits only if it may', async ({ path, own }) => {
  for (const open of [
    () => Ring.open(path('ring'), { timeout: 5 }).senderSync(),
    sync('senderSync'),
    sync('receiverSync'),
  ]) {
    assert.throws(open, (error) => {
      assert.match(/** @type {any} */ (error).message, /allowMainThread/);
      return code('UNSUPPORTED')(error);
    });
  }
  const allowMainThread = true;
  const waiting = { timeout: 20, allowMainThread };
  assert.throws(() => Ring.open(path('ring')).senderSync(waiting), code('NOT_FOUND'));
  assert.throws(() => Ring.open(path('ring'), { timeout: 20 }).receiverSync({ allowMainThread }), code('NOT_FOUND'));
  own(Ring.create(path('ring')).senderSync(waiting));
  own(Ring.open(path('ring')).receiverSync());

  /** @param {'senderSync' | 'receiverSync'} how */
  function sync(how) {
    return () => Ring.open(path('ring'))[how]({ timeout: 20 });
  }
});

scene('a pair', async ({ own }) => {
  const [tx, rx] = Ring.pair(5000, { align: 128, wait: 'block' });
  own(tx);
  own(rx);
  assert.deepEqual([tx.capacity, rx.capacity, tx.align, rx.align], [8192, 8192, 128, 128]);
  assert.deepEqual([tx.wait, rx.wait, tx.name, rx.name], ['block', 'block', undefined, undefined]);
  const received = rx.recv();
  assert.equal(tx.trySend('between the two'), true);
  assert.equal((await received).text(), 'between the two');
  // A view of a pair's message can be written to, as any other.
  tx.trySend(new Uint8Array(4));
  const message = /** @type {import('../index.mjs').Message} */ (rx.tryRecv());
  message.data.fill(7);
  assert.deepEqual([...message.data], [7, 7, 7, 7]);
  tx.close();
  await assert.rejects(rx.recv(), code('CLOSED'));
});

scene('the way of waiting comes from the description, and can be changed', async ({ path, own }) => {
  const tx = own(await Ring.create(path('ring'), { wait: 'spin' }).sender());
  const rx = own(await Ring.open(path('ring')).receiver());
  assert.deepEqual([tx.wait, rx.wait], ['spin', 'hybrid']);
  tx.wait = 'block';
  assert.equal(tx.wait, 'block');
  assert.throws(() => {
    tx.wait = /** @type {any} */ ('sleep');
  }, code('INVALID_ARGUMENT'));
});

scene('rings of every placement that this machine has', async ({ path, own }) => {
  own(await Ring.create(path('prefault'), { prefault: true, membarrier: false, capacity: 1 << 16 }).sender());
  for (const [name, options] of /** @type {[string, any][]} */ ([
    ['locked', { lockMemory: true, capacity: 4096 }],
    ['huge', { hugePages: true }],
    ['node', { numaNode: 0 }],
  ])) {
    const outcome = await Ring.create(path(name), options)
      .sender()
      .then(own, (/** @type {any} */ error) => error);
    // A machine may not have it, and then it says so.
    if (outcome instanceof Error) assert.match(/** @type {any} */ (outcome).code, /UNSUPPORTED|OS|PERMISSION|NO_SPACE/);
  }
});
