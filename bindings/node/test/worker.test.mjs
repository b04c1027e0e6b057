// Worker threads: the calls that block, their refusal on the main thread, and workers that are ended meanwhile.
import assert from 'node:assert/strict';
import { Worker } from 'node:worker_threads';
import { Listener, Region, Ring } from '../index.mjs';
import { runtime } from './runtimes.mjs';
import { code, eventually, LONG, lengthOf, made, Peer, pair, scene, sleep } from './scene.mjs';

/** A worker, and what it says one after the other. @param {any} own @param {object} workerData */
function thread(own, workerData) {
  const worker = new Worker(new URL('./peer/thread.mjs', import.meta.url), { workerData });
  own({ close: () => worker.terminate() });
  /** @type {any[]} */ const said = [];
  /** @type {any[]} */ const waiting = [];
  const settle = () => {
    while (said.length > 0 && waiting.length > 0) waiting.shift()(said.shift());
  };
  worker.on('message', (message) => {
    said.push(message);
    settle();
  });
  worker.on('error', (error) => {
    said.push(Promise.reject(error));
    said.at(-1).catch(() => {});
    settle();
  });
  return {
    worker,
    said,
    next: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        settle();
      }),
  };
}

scene('calls that block are refused on the main thread unless it is said that they may', async ({ path, own }) => {
  const [tx, rx] = pair(own);
  const region = own(await Region.create(path('region'), 4096));
  const listener = own(await Listener.bind(path('bus')));
  tx.trySend('there');
  const buffer = new Uint8Array(10);
  for (const call of [
    () => rx.recvSync(),
    () => rx.recvBatchSync(),
    () => rx.recvIntoSync(buffer),
    () => rx.recvSync({ allowMainThread: false }),
    () => rx.recvSync({ timeout: 0 }),
    () => tx.sendSync('x'),
    () => tx.reserveSync(1, () => {}),
    () => region.waitSync(),
    () => listener.acceptSync(),
  ]) {
    assert.throws(call, (error) => {
      assert.match(/** @type {any} */ (error).message, /allowMainThread/);
      return code('UNSUPPORTED')(error);
    });
  }
  const allowMainThread = true;
  assert.equal(rx.recvSync({ allowMainThread }).text(), 'there');
  tx.sendSync('again', { allowMainThread });
  assert.equal(rx.recvBatchSync({ allowMainThread }).length, 1);
  tx.reserveSync(3, (slot) => void slot.fill(1), { allowMainThread });
  assert.equal(rx.recvIntoSync(buffer, { allowMainThread }).length, 3);
  assert.throws(() => rx.recvSync({ allowMainThread, timeout: 10 }), code('TIMED_OUT'));
  assert.throws(() => region.waitSync({ allowMainThread, timeout: 10 }), code('TIMED_OUT'));
  assert.throws(() => listener.acceptSync({ allowMainThread, timeout: 10 }), code('TIMED_OUT'));
});

for (const wait of /** @type {const} */ (['spin', 'hybrid', 'block'])) {
  scene(`a worker receives from another process with calls that block: ${wait}`, async ({ path, own, peer: start }) => {
    const peer = await start('create=yes', 'capacity=4096', `out=${path('r')}`);
    const { next } = thread(own, { what: 'receive', path: path('r'), count: 5000, wait });
    assert.equal(await next(), 'ready');
    peer.tell('send 2500 mixed 0');
    peer.tell('sleep 30');
    peer.tell('send 2500 mixed 2500');
    assert.equal(await next(), 5000);
  });

  scene(`a worker sends to another process with calls that block: ${wait}`, async ({ path, own, peer: start }) => {
    const peer = await start('create=yes', 'capacity=4096', `in=${path('r')}`);
    const { next } = thread(own, { what: 'send', path: path('r'), count: 5000, wait });
    assert.equal(await next(), 'ready');
    await sleep(30);
    await peer.does('recv 5000', 'received', { next: 5000 });
    assert.equal(await next(), 5000);
    await peer.does('recv 0 5000', 'error', { name: 'Closed' });
  });

  scene(`a worker asks and another process answers: ${wait}`, async ({ path, own }) => {
    const peer = own(await Peer.start(`listen=${path('bus')}`));
    const { next } = thread(own, { what: 'ping', path: path('bus'), count: 3000, wait });
    assert.equal(await next(), 'ready');
    await peer.ready();
    await peer.does('echo 3000', 'echoed', { count: 3000 });
    assert.equal(await next(), 3000);
  });
}

scene('time-outs and errors of the calls that block', async ({ path, own }) => {
  const { next } = thread(own, { what: 'limits', path: path('') });
  const late = ['ERR_RAMWAY_TIMED_OUT', true];
  const [now, wrong] = ['ERR_RAMWAY_TIMED_OUT', 'ERR_RAMWAY_INVALID_ARGUMENT'];
  const gone = 'ERR_RAMWAY_DETACHED';
  assert.deepEqual(await next(), [
    late,
    late,
    late,
    now,
    wrong,
    wrong,
    late,
    late,
    now,
    'ERR_RAMWAY_TOO_LARGE',
    gone,
    gone,
  ]);
});

for (const [how, expected] of [
  ['kill', 'PEER_DEAD'],
  ['close', 'CLOSED'],
]) {
  scene(`the peer goes while a worker blocks: ${how}`, async ({ path, own, peer: start }) => {
    const peer = await start('create=yes', `out=${path('r')}`);
    const { next } = thread(own, { what: 'endings', path: path('r') });
    assert.equal(await next(), 'ready');
    await peer.does('send 1 5 0', 'sent');
    await sleep(50);
    if (how === 'kill') await peer.kill();
    else peer.tell('close');
    assert.equal(await next(), `ERR_RAMWAY_${expected}`);
  });
}

for (const wait of ['recvSync', 'recvBatchSync', 'sendSync', 'waitSync', 'acceptSync']) {
  scene(`terminate() ends a worker that blocks in ${wait}`, async ({ path, own }) => {
    const { worker, next, said } = thread(own, {
      what: 'block',
      path: path('r'),
      count: wait === 'sendSync' ? 0 : 1,
      wait,
    });
    assert.equal(await next(), 'ready');
    await sleep(80);
    // The loop goes on meanwhile.
    let ticks = 0;
    const timer = setInterval(() => ticks++, 1);
    await worker.terminate();
    clearInterval(timer);
    assert.deepEqual(said, []);
    // Deno's terminate() leaves a thread alone that does not return to its loop, be it one of plain JavaScript.
    if (runtime === 'deno') return;
    // What it had is free again.
    await eventually('its listener is gone', async () => {
      try {
        (await Listener.bind(path('r-bus'))).close();
        return true;
      } catch (error) {
        return code('ALREADY_EXISTS')(error) && false;
      }
    });
  });
}

scene('workers use the calls that do not block too, several at once', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus'), { capacity: 4096 }));
  const threads = [0, 1, 2].map(() => thread(own, { what: 'async', path: path('bus'), count: 1000 }));
  for (let n = 0; n < threads.length; n++) {
    const bus = own(await listener.accept({ timeout: LONG }));
    for (let seq = 0; seq < 1000; seq++) {
      const { bytes, options } = made(seq, lengthOf(seq, 'mixed', 4080));
      await bus.send(bytes, options);
    }
    await assert.rejects(bus.recv(), code('CLOSED'));
  }
  for (const { next } of threads) assert.deepEqual([await next(), await next()], ['ready', 1000]);
});

scene('terminate() ends a worker that waits without blocking, again and again', async ({ path, own }) => {
  for (let n = 0; n < 4; n++) {
    const { worker, next } = thread(own, { what: 'idle', path: path('') });
    assert.equal(await next(), 'ready');
    await worker.terminate();
  }
  const [tx, rx] = pair(own);
  const receiving = rx.recv();
  await tx.send('the others go on');
  assert.equal((await receiving).text(), 'the others go on');
});

scene('the main thread talks to a worker over a ring', async ({ path, own }) => {
  const tx = own(await Ring.create(path('r'), { capacity: 4096 }).sender());
  const { next } = thread(own, { what: 'receive', path: path('r'), count: 3000, wait: 'hybrid' });
  for (let seq = 0; seq < 3000; seq++) {
    const { bytes, options } = made(seq, lengthOf(seq, 'mixed', 4080));
    await tx.send(bytes, options);
  }
  assert.deepEqual([await next(), await next()], ['ready', 3000]);
});

scene('a synchronous call while an asynchronous one is pending is refused, not mixed up', async ({ own }) => {
  const [tx, rx] = pair(own);
  const waiting = rx.recv();
  assert.throws(() => rx.recvSync({ allowMainThread: true, timeout: 0 }), code('BUSY'));
  await tx.send('one');
  assert.equal((await waiting).text(), 'one');
  while (tx.trySend(new Uint8Array(500)));
  const sending = tx.send(new Uint8Array(1000));
  assert.throws(() => tx.sendSync('x', { allowMainThread: true, timeout: 0 }), code('BUSY'));
  for (let n = 0; n < 3; n++) (await rx.recv()).release();
  await sending;
});
