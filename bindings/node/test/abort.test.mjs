// AbortSignal and timeout of every call that waits: before, during and after; and what was given up leaves nothing behind.
import assert from 'node:assert/strict';
import { Bus, Listener, Region, Ring } from '../index.mjs';
import { check, code, eventually, fromPeer, LONG, made, pair, scene, settled, sleep, toPeer, turn } from './scene.mjs';

/**
 * Everything that waits, in a state in which it would wait forever.
 * @typedef {(options: { signal?: AbortSignal, timeout?: number }) => Promise<unknown>} Wait
 */

/** @param {import('./scene.mjs').Scene} here @returns {Promise<Record<string, Wait>>} */
async function waits({ path, own }) {
  const pairs = Array.from({ length: 9 }, () => pair(own));
  for (const [tx] of pairs.slice(0, 4)) assert.equal(tx.trySend(new Uint8Array(4080)), true);
  const region = own(await Region.create(path('region'), 4096));
  const listener = own(await Listener.bind(path('bus')));
  own(await Ring.create(path('taken')).sender());
  const taken = own(await Ring.open(path('taken')).receiver());
  assert.equal(taken.closed, false);
  return {
    send: (options) => pairs[0][0].send('more', options),
    sendBatch: (options) => pairs[1][0].sendBatch(['more'], options),
    reserve: (options) => pairs[2][0].reserve(10, () => assert.fail('there is no room'), options),
    sendTensor: (options) => pairs[3][0].sendTensor({ data: new Float32Array(3) }, options),
    recv: (options) => pairs[4][1].recv(options),
    recvBatch: (options) => pairs[5][1].recvBatch(options),
    recvInto: (options) => pairs[6][1].recvInto(new Uint8Array(10), options),
    waitAsync: (options) => region.waitAsync(options),
    accept: (options) => listener.accept(options),
    connect: (options) => Bus.connect(path('nobody'), options),
    listen: (options) => Bus.listen(path('other'), options),
    sender: (options) => Ring.open(path('no-ring'), { timeout: Infinity }).sender(options),
    receiver: (options) => Ring.open(path('taken'), { timeout: Infinity }).receiver(options),
  };
}

/** They end with a loop, and take no timeout. @param {any} own @returns {Record<string, Wait>} */
const loops = (own) => {
  const pairs = Array.from({ length: 2 }, () => pair(own));
  return {
    messages: (options) => pairs[0][1].messages(options).next(),
    batches: (options) => pairs[1][1].batches(options).next(),
  };
};

scene('a signal that was aborted before: its reason, at once, and nothing was done', async (here) => {
  for (const [name, wait] of Object.entries({ ...(await waits(here)), ...loops(here.own) })) {
    const reason = new Error(`the reason of ${name}`);
    await assert.rejects(
      async () => wait({ signal: AbortSignal.abort(reason) }),
      (error) => error === reason,
      name,
    );
    await assert.rejects(async () => wait({ signal: AbortSignal.abort() }), { name: 'AbortError' }, name);
  }
});

scene('a signal that is aborted meanwhile: its reason', async (here) => {
  for (const [name, wait] of Object.entries({ ...(await waits(here)), ...loops(here.own) })) {
    for (const late of [false, true]) {
      const controller = new AbortController();
      const reason = { the: name };
      const waiting = wait({ signal: controller.signal });
      waiting.catch(() => {});
      if (late) await sleep(15);
      assert.equal(await settled(waiting), false, name);
      controller.abort(reason);
      await assert.rejects(waiting, (error) => error === reason, name);
    }
  }
});

scene('a timeout: ERR_RAMWAY_TIMED_OUT, not before its time', async (here) => {
  for (const [name, wait] of Object.entries(await waits(here))) {
    for (const timeout of [0, 1, 40]) {
      const began = performance.now();
      await assert.rejects(wait({ timeout }), (/** @type {any} */ error) => {
        // Nothing there and a role that is taken are told as such.
        const codes = ['TIMED_OUT', 'NOT_FOUND', 'BUSY'].map((kind) => `ERR_RAMWAY_${kind}`);
        assert.ok(
          (['connect', 'sender', 'receiver'].includes(name) ? codes : codes.slice(0, 1)).includes(error.code),
          `${name}: ${error.stack}`,
        );
        return true;
      });
      const elapsed = performance.now() - began;
      assert.ok(elapsed >= timeout - 2, `${name}: ${elapsed} of ${timeout} ms`);
      // Again works: what timed out is not pending.
    }
  }
});

scene('a timeout and a signal together: whichever is first', async (here) => {
  for (const [name, wait] of Object.entries(await waits(here))) {
    const { signal } = new AbortController();
    await assert.rejects(wait({ timeout: 5, signal }), (error) => error instanceof Error, name);
    const controller = new AbortController();
    const waiting = wait({ timeout: LONG, signal: controller.signal });
    waiting.catch(() => {});
    await turn();
    controller.abort();
    await assert.rejects(waiting, { name: 'AbortError' }, name);
  }
});

scene('AbortSignal.timeout and AbortSignal.any do', async ({ own }) => {
  const [, rx] = pair(own);
  await assert.rejects(rx.recv({ signal: AbortSignal.timeout(10) }), { name: 'TimeoutError' });
  if (AbortSignal.any) {
    const controller = new AbortController();
    const waiting = rx.recv({ signal: AbortSignal.any([controller.signal, AbortSignal.timeout(LONG)]) });
    controller.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
  }
});

scene('numbers that are no timeout, and signals that are none', async (here) => {
  for (const [name, wait] of Object.entries(await waits(here))) {
    for (const bad of [{ timeout: -1 }, { timeout: NaN }, { timeout: '5' }, { signal: {} }]) {
      await assert.rejects(
        async () => wait(/** @type {any} */ (bad)),
        code('INVALID_ARGUMENT'),
        `${name} ${JSON.stringify(bad)}`,
      );
    }
  }
});

scene('an abort after the end changes nothing, and leaves no listener on the signal', async (here) => {
  const [rx, peer] = await fromPeer(here);
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const [add, remove] = [signal.addEventListener, signal.removeEventListener];
  signal.addEventListener = (/** @type {any[]} */ ...args) => {
    listeners++;
    return Reflect.apply(add, signal, args);
  };
  signal.removeEventListener = (/** @type {any[]} */ ...args) => {
    listeners--;
    return Reflect.apply(remove, signal, args);
  };
  const waiting = rx.recv({ signal });
  await turn();
  await peer.does('send 3 5 0', 'sent');
  const message = await waiting;
  for (let n = 0; n < 200; n++)
    await assert.rejects(rx.recvInto(new Uint8Array(1), { signal, timeout: 0 }), code('TOO_LARGE'));
  assert.ok(listeners <= 1, `${listeners} listeners`);
  const next = await rx.recv({ signal });
  controller.abort();
  check(1, next);
  assert.equal(message.released, true);
  check(2, await rx.recv());
});

scene('an abort of a queued send: it is not sent, whole or in part, and the others are', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  /** @type {Promise<unknown>[]} */ const sends = [];
  const controllers = Array.from({ length: 40 }, () => new AbortController());
  // Numbers that stay are 0, 1, 2 …; what is given up has other bytes.
  let seq = 0;
  for (const [n, controller] of controllers.entries()) {
    const given = n % 3 === 1;
    const { bytes, options } = given ? { bytes: new Uint8Array(900).fill(0xee), options: {} } : made(seq++, 700 + n);
    const sending = tx.send(bytes, { ...options, signal: controller.signal });
    sending.catch(() => {});
    sends.push(sending);
  }
  const inRing = [];
  for (const [n, sending] of sends.entries()) if (await settled(sending)) inRing.push(n);
  assert.ok(inRing.length >= 2 && inRing.length <= 5, `${inRing}`);
  // Those that are in the ring already are sent; an abort now comes too late for them.
  assert.ok(inRing.includes(1));
  for (const [n, controller] of controllers.entries()) if (n % 3 === 1) controller.abort(`abort ${n}`);
  await peer.does('recv 1 0', 'received', { next: 1 });
  await peer.does('skip 1', 'skipped');
  const late = inRing.includes(4) ? 1 : 0;
  if (late) {
    await peer.does('recv 2 1', 'received', { next: 3 });
    await peer.does('skip 1', 'skipped');
    await peer.does(`recv ${seq - 3} 3`, 'received', { next: seq });
  } else await peer.does(`recv ${seq - 1} 1`, 'received', { next: seq });
  for (const [n, sending] of sends.entries()) {
    if (n % 3 !== 1 || inRing.includes(n)) await sending;
    else await assert.rejects(sending, (error) => error === `abort ${n}`);
  }
  assert.equal(tx.used, 0);
});

scene('the first of the queue is given up: the next one that fits goes at once', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  for (const seq of [0, 1]) await tx.send(made(seq, 1000).bytes, made(seq, 1000).options);
  const controller = new AbortController();
  const first = tx.send(new Uint8Array(4000), { signal: controller.signal });
  first.catch(() => {});
  const second = tx.send(made(2, 10).bytes, made(2, 10).options);
  assert.equal(await settled(second), false);
  controller.abort();
  await assert.rejects(first, { name: 'AbortError' });
  await second;
  await peer.does('recv 3', 'received', { next: 3 });
  const timed = tx.send(new Uint8Array(4080), { timeout: 10 });
  await timed;
  await assert.rejects(tx.send('x', { timeout: 10 }), code('TIMED_OUT'));
  await peer.does('skip 1', 'skipped');
  assert.equal((await peer.ask('state')).in_used, '0');
});

scene('a batch that is given up in the middle: what was sent is whole messages from its start', async ({ own }) => {
  const [tx, rx] = pair(own);
  const controller = new AbortController();
  const words = Array.from({ length: 500 }, (_, n) => `${n} `.repeat(20));
  const sending = tx.sendBatch(words, { signal: controller.signal });
  sending.catch(() => {});
  await sleep(5);
  controller.abort();
  const sent = await sending.catch((error) => assert.equal(error.name, 'AbortError'));
  let seen = 0;
  for (let message = rx.tryRecv(); message !== null; message = rx.tryRecv())
    assert.equal(message.text(), words[seen++]);
  assert.ok(seen > 0 && seen < 500);
  if (sent !== undefined) assert.equal(sent, seen);
  await tx.send('after');
  assert.equal((await rx.recv()).text(), 'after');
});

scene('an abort while a slot is being filled: nothing is sent', async ({ own }) => {
  const [tx, rx] = pair(own);
  const controller = new AbortController();
  /** @type {(value?: unknown) => void} */ let done = () => {};
  /** @type {any} */ let slot;
  const filling = tx.reserve(
    10,
    (/** @type {Uint8Array} */ bytes) => {
      slot = bytes;
      return new Promise((resolve) => (done = /** @type {any} */ (resolve)));
    },
    { signal: controller.signal },
  );
  filling.catch(() => {});
  const after = tx.send('after');
  await turn();
  controller.abort();
  done();
  await filling.then(
    // An abort is about the waiting, which was over: then it is sent as if there had been none.
    async () => assert.equal((await rx.recv()).length, 10),
    (error) => assert.equal(error.name, 'AbortError'),
  );
  await after;
  assert.equal(slot.length, 0);
  assert.equal((await rx.recv()).text(), 'after');
});

scene('a receive that was given up loses no message', async (here) => {
  const [rx, peer] = await fromPeer(here);
  peer.tell('send 3000 mixed 0');
  let seq = 0;
  let given = 0;
  while (seq < 3000) {
    const controller = new AbortController();
    if (seq % 5 === 0) setImmediate(() => controller.abort());
    else if (seq % 7 === 0) queueMicrotask(() => controller.abort());
    const receiving = rx.recv({ signal: controller.signal, ...(seq % 11 === 0 ? { timeout: 0 } : {}) });
    try {
      check(seq, await receiving);
      seq++;
    } catch (error) {
      const { name, code: kind } = /** @type {any} */ (error);
      assert.ok(name === 'AbortError' || kind === 'ERR_RAMWAY_TIMED_OUT', `${error}`);
      given++;
      await turn();
    }
  }
  assert.ok(given >= 0);
  await peer.said('sent', { next: 3000 });
});

scene('close() ends what is pending: ERR_RAMWAY_DETACHED, and in whatever order', async (here) => {
  const ends = {
    recv: (/** @type {any} */ [, rx]) => [rx, rx.recv()],
    recvBatch: (/** @type {any} */ [, rx]) => [rx, rx.recvBatch()],
    recvInto: (/** @type {any} */ [, rx]) => [rx, rx.recvInto(new Uint8Array(5))],
    messages: (/** @type {any} */ [, rx]) => [rx, rx.messages().next()],
    send: (/** @type {any} */ [tx]) => [tx, tx.send(new Uint8Array(4080)).then(() => tx.send('x'))],
    reserve: (/** @type {any} */ [tx]) => [tx, tx.send(new Uint8Array(4080)).then(() => tx.reserve(1, () => {}))],
  };
  for (const wait of [0, 5]) {
    for (const [name, begin] of Object.entries(ends)) {
      const [end, pending] = begin(pair(here.own));
      pending.catch(() => {});
      await sleep(wait);
      end.close();
      if (name === 'messages') await pending.catch(code('DETACHED'));
      else await assert.rejects(pending, code('DETACHED'), name);
      assert.equal(end.closed, true);
      end.close();
    }
  }
  const region = here.own(await Region.create(here.path('region'), 4096));
  const waiting = region.waitAsync();
  waiting.catch(() => {});
  await turn();
  region.close();
  await assert.rejects(waiting, code('DETACHED'));
  const listener = here.own(await Listener.bind(here.path('bus')));
  const accepting = listener.accept();
  accepting.catch(() => {});
  await turn();
  listener.close();
  await assert.rejects(accepting, code('DETACHED'));
});

scene('what is called on a closed handle', async (here) => {
  const [tx, rx] = pair(here.own);
  tx.close();
  rx.close();
  const allowMainThread = true;
  for (const call of [
    () => tx.send('x'),
    () => tx.trySend('x'),
    () => tx.sendBatch(['x']),
    () => tx.reserve(1, () => {}),
    () => tx.tryReserve(1, () => {}),
    () => tx.sendSync('x', { allowMainThread }),
    () => tx.flush(),
    () => rx.recv(),
    () => rx.tryRecv(),
    () => rx.recvBatch(),
    () => rx.tryRecvBatch(),
    () => rx.recvInto(new Uint8Array(1)),
    () => rx.tryRecvInto(new Uint8Array(1)),
    () => rx.recvSync({ allowMainThread }),
  ]) {
    await assert.rejects(async () => call(), code('DETACHED'), `${call}`);
  }
  for (const loop of [rx.messages(), rx.batches()]) await assert.rejects(loop.next(), code('DETACHED'));
  assert.deepEqual([tx.closed, rx.closed], [true, true]);
  await tx.end();
  await rx.end();
  assert.equal(tx.unref(), tx);
  assert.equal(rx.ref(), rx);
});

scene('Symbol.dispose closes at once, Symbol.asyncDispose after what is queued', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  for (let seq = 0; seq < 20; seq++) tx.send(made(seq, 700).bytes, made(seq, 700).options);
  peer.tell('sleep 30');
  peer.tell('recv 0');
  await tx[Symbol.asyncDispose]();
  assert.equal(tx.closed, true);
  await peer.said('slept');
  await peer.said('error', { name: 'Closed', next: 20 });
  const [other, rx] = pair(here.own);
  const sends = Array.from({ length: 6 }, () => other.send(new Uint8Array(1500)));
  for (const sending of sends) sending.catch(() => {});
  await turn();
  other[Symbol.dispose]();
  for (const [n, sending] of sends.entries()) {
    if (n < 2) await sending;
    else await assert.rejects(sending, code('DETACHED'));
  }
  let seen = 0;
  for await (const message of rx) seen += message.length;
  assert.equal(seen, 3000);
  rx[Symbol.dispose]();
  assert.equal(rx.closed, true);
});

scene('thousands of sends that time out at once, or are aborted together', async ({ own }) => {
  const [tx] = pair(own);
  await tx.send(new Uint8Array(4080));
  const controller = new AbortController();
  let ended = 0;
  const count = 2000;
  for (let n = 0; n < count; n++) {
    tx.send('x', n % 2 ? { signal: controller.signal } : { timeout: 20 }).catch(() => ended++);
  }
  await sleep(5);
  controller.abort();
  await eventually('all of them', () => ended === count);
});
