// Buses: connecting and listening, to and from another process; both halves as one object; its end.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { getuid } from 'node:process';
import { Bus, Listener, Ring } from '../index.mjs';
import { check, code, connected, eventually, LONG, made, Peer, scene, settled, sleep } from './scene.mjs';

/** Both ends of a bus in this process. @param {import('./scene.mjs').Scene} here @param {any} [options] @returns {Promise<[Bus, Bus]>} */
async function both({ path, own }, options = {}) {
  const listening = Bus.listen(path('both'), { timeout: LONG, ...options });
  const connecting = Bus.connect(path('both'), { timeout: LONG });
  return [own(await listening), own(await connecting)];
}

/** @param {Peer} peer @param {Bus} bus */
async function talk(peer, bus) {
  peer.tell('echo 3');
  for (let seq = 0; seq < 3; seq++) {
    const { bytes, options } = made(seq, 100);
    await bus.send(bytes, options);
    check(seq, await bus.recv());
  }
  await peer.said('echoed', { count: 3 });
}

scene('connect to another process, listen for one', async (here) => {
  const { path, own } = here;
  const [bus, listener] = await connected(here, 8192, 64);
  assert.deepEqual([bus.name, bus.peerPid, bus.peerUid], [path('bus'), listener.pid, getuid?.()]);
  assert.deepEqual([bus.sender.capacity, bus.receiver.capacity, bus.receiver.align], [8192, 8192, 64]);
  await talk(listener, bus);

  const listening = Bus.listen(path('ours'), { timeout: LONG, toPeer: 4096, fromPeer: 16384 });
  const peer = own(await Peer.start(`connect=${path('ours')}`));
  const ours = own(await listening);
  assert.deepEqual([ours.peerPid, ours.sender.capacity, ours.receiver.capacity], [peer.pid, 4096, 16384]);
  // The name is free again.
  assert.ok(!existsSync(path('ours')));
  await peer.ready();
  await talk(peer, ours);
  assert.deepEqual([ours.peerAlive, ours.closed], [true, false]);
  await peer.kill();
  await eventually('the death is seen', () => !ours.peerAlive);
});

scene('blocking, where it may', async ({ path, own }) => {
  const allowMainThread = true;
  for (const call of [() => Bus.connectSync(path('bus')), () => Bus.listenSync(path('bus'), { timeout: 5 })]) {
    assert.throws(call, code('UNSUPPORTED'));
  }
  assert.throws(() => Bus.connectSync(path('bus'), { timeout: 20, allowMainThread }), code('NOT_FOUND'));
  assert.throws(() => Bus.listenSync(path('bus'), { timeout: 20, allowMainThread }), code('TIMED_OUT'));
  const listener = own(await Peer.start(`listen=${path('bus')}`));
  const bus = own(Bus.connectSync(path('bus'), { timeout: LONG, allowMainThread }));
  await talk(await listener.ready(), bus);
  const peer = own(await Peer.start(`connect=${path('ours')}`));
  const ours = own(Bus.listenSync(path('ours'), { timeout: LONG, allowMainThread }));
  await talk(await peer.ready(), ours);
});

scene('nobody listens: NOT_FOUND after the time, or the listener that comes within it', async (here) => {
  const { path, own } = here;
  const began = performance.now();
  await assert.rejects(Bus.connect(path('bus'), { timeout: 60 }), code('NOT_FOUND'));
  assert.ok(performance.now() - began >= 59);
  await assert.rejects(Bus.connect(path('bus'), { timeout: 0 }), code('NOT_FOUND'));
  const connecting = Bus.connect(path('bus'), { timeout: Infinity });
  await sleep(50);
  assert.equal(await settled(connecting), false);
  own(await Bus.listen(path('bus'), { timeout: LONG }));
  own(await connecting);
});

scene('what is there is no listener, and stays', async ({ path }) => {
  writeFileSync(path('file'), 'a letter');
  await assert.rejects(Bus.connect(path('file'), { timeout: LONG }), code('INVALID_ARGUMENT'));
  await assert.rejects(Bus.listen(path('file'), { timeout: LONG }), code('ALREADY_EXISTS'));
  assert.ok(existsSync(path('file')));
});

scene('a listener that says nothing: TIMED_OUT, and an abort ends it sooner', async ({ path, own }) => {
  const server = own(createServer(() => {}));
  await new Promise((resolve) => server.listen(path('mute'), () => resolve(null)));
  await assert.rejects(Bus.connect(path('mute'), { timeout: 150 }), code('TIMED_OUT'));
  const controller = new AbortController();
  const connecting = Bus.connect(path('mute'), { timeout: Infinity, signal: controller.signal });
  await sleep(30);
  assert.equal(await settled(connecting), false);
  controller.abort(new Error('enough'));
  await assert.rejects(connecting, /enough/);
});

scene('listening that is given up frees the name', async (here) => {
  const { path } = here;
  for (let round = 0; round < 10; round++) {
    if (round % 2 === 0) {
      await assert.rejects(Bus.listen(path('both'), { timeout: round }), code('TIMED_OUT'));
    } else {
      const controller = new AbortController();
      const listening = Bus.listen(path('both'), { signal: controller.signal });
      if (round > 3) await eventually('the name is there', () => existsSync(path('both')));
      controller.abort();
      await assert.rejects(listening, { name: 'AbortError' });
    }
    assert.ok(!existsSync(path('both')), `round ${round}`);
  }
  const [a, b] = await both(here);
  await a.send('still');
  assert.equal((await b.recv()).text(), 'still');
});

scene('of several connectors one is welcome', async ({ path, own }) => {
  const connecting = Array.from({ length: 4 }, () => Bus.connect(path('bus'), { timeout: 1500 }));
  const bus = own(await Bus.listen(path('bus'), { timeout: LONG }));
  const outcomes = await Promise.allSettled(connecting);
  const connected = outcomes.filter((outcome) => outcome.status === 'fulfilled');
  assert.equal(connected.length, 1);
  const theirs = own(/** @type {any} */ (connected[0]).value);
  await theirs.send('the one');
  assert.equal((await bus.recv()).text(), 'the one');
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') assert.match(outcome.reason.code, /NOT_FOUND|TIMED_OUT/);
  }
});

scene('a direction without capacity', async (here) => {
  const [a, b] = await both(here, { toPeer: 0 });
  assert.throws(() => a.sender, code('UNSUPPORTED'));
  assert.throws(() => b.receiver, code('UNSUPPORTED'));
  await assert.rejects(a.send('x'), code('UNSUPPORTED'));
  await assert.rejects(a.sendBatch(['x']), code('UNSUPPORTED'));
  await assert.rejects(
    a.reserve(1, () => {}),
    code('UNSUPPORTED'),
  );
  assert.throws(() => a.trySend('x'), code('UNSUPPORTED'));
  await assert.rejects(b.recv(), code('UNSUPPORTED'));
  assert.throws(() => b.tryRecv(), code('UNSUPPORTED'));
  assert.throws(() => b.on('message', () => {}), code('UNSUPPORTED'));
  await b.send('one way');
  assert.equal((await a.recv()).text(), 'one way');
  const ended = new Promise((resolve) => b.once('close', () => resolve(null)));
  await b.end();
  await ended;
  await assert.rejects(a.recv(), code('CLOSED'));
  assert.throws(
    () => Bus.listenSync(here.path('none'), { capacity: 0, allowMainThread: true }),
    code('INVALID_ARGUMENT'),
  );
});

scene('every call of the halves', async (here) => {
  const [a, b] = await both(here, { capacity: 1 << 16 });
  assert.deepEqual([a.maxMessageLength, a.wait], [a.sender.maxMessageLength, 'hybrid']);
  const allowMainThread = true;
  const target = new Uint8Array(100);
  await a.send('send', { typeId: 1, tag: 2 });
  const message = await b.recv();
  assert.deepEqual([message.text(), message.typeId, message.tag], ['send', 1, 2n]);
  assert.equal(b.tryRecv(), null);
  assert.equal(a.trySend('trySend'), true);
  assert.equal(b.tryRecv()?.text(), 'trySend');
  a.sendSync('sendSync', { allowMainThread });
  assert.equal(b.recvSync({ allowMainThread }).text(), 'sendSync');
  assert.equal(await a.sendBatch(['one', 'two', 'three', 'four', 'five']), 5);
  assert.deepEqual(
    [...(await b.recvBatch({ max: 2 }))].map((message) => message.text()),
    ['one', 'two'],
  );
  assert.equal(b.tryRecvBatch({ max: 1 })?.length, 1);
  assert.equal(b.recvBatchSync({ allowMainThread }).length, 2);
  await a.reserve(4, (slot) => void slot.fill(1));
  assert.equal((await b.recvInto(target)).length, 4);
  assert.equal(
    a.tryReserve(4, () => 2),
    true,
  );
  assert.equal(b.tryRecvInto(target)?.length, 2);
  a.reserveSync(4, () => 3, { allowMainThread });
  assert.equal(b.recvIntoSync(target, { allowMainThread }).length, 3);
  await a.sendTensor({ data: new Float32Array([1, 2]), shape: [2, 1] });
  assert.deepEqual((await b.recv()).tensor().shape, [2, 1]);
  assert.equal(a.trySendTensor({ data: new Float32Array(3) }), true);
  assert.equal((await b.recv()).isTensor, true);
  assert.equal(a.trySend('put off', { flush: false }), true);
  assert.equal(b.tryRecv(), null);
  a.flush();
  assert.equal((await b.messages().next()).value.text(), 'put off');
  await a.send('in a batch');
  assert.equal((await b.batches().next()).value.length, 1);
  const writer = a.writable.getWriter();
  await writer.write('of a stream');
  const reader = b.readable.getReader();
  assert.equal(new TextDecoder().decode((await reader.read()).value), 'of a stream');
  a.wait = 'block';
  assert.deepEqual([a.wait, a.sender.wait, a.receiver.wait], ['block', 'block', 'block']);
  assert.equal(a.unref().ref(), a);
});

scene('for await over a bus ends with the peer, whose other half goes on', async (here) => {
  const [a, b] = await both(here);
  for (const text of ['a', 'b']) await a.send(text);
  await a.sender.end();
  const seen = [];
  for await (const message of b) seen.push(message.text());
  assert.deepEqual(seen, ['a', 'b']);
  assert.deepEqual([a.closed, b.closed, a.peerAlive], [false, false, true]);
  await b.send('c');
  assert.equal((await a.recv()).text(), 'c');
  await assert.rejects(a.send('d'), code('DETACHED'));
});

scene("'message' flows while somebody listens to the bus", async (here) => {
  const [a, b] = await both(here);
  await a.sendBatch(['0', '1', '2', '3']);
  /** @type {string[]} */ const seen = [];
  /** @type {(message: import('../index.mjs').Message) => void} */
  const take = (message) => {
    seen.push(message.text());
    if (seen.length === 2) b.off('message', take);
  };
  b.on('message', take);
  await eventually('two of them', () => seen.length === 2);
  await sleep(20);
  assert.deepEqual(seen, ['0', '1']);
  assert.equal((await b.recv()).text(), '2');
  b.once('message', take);
  await eventually('the last one', () => seen.length === 3);
  b.on('message', take);
  b.pause();
  await a.send('4');
  await sleep(20);
  assert.equal(seen.length, 3);
  b.resume();
  await eventually('resumed', () => seen.length === 4);
  assert.deepEqual(seen, ['0', '1', '3', '4']);
});

scene("'drain' of the bus", async (here) => {
  const [a, b] = await both(here, { capacity: 4096 });
  let drained = 0;
  a.on('drain', () => drained++);
  while (a.trySend(new Uint8Array(1000)));
  await sleep(20);
  assert.equal(drained, 0);
  while (b.tryRecv() !== null);
  await eventually('there is room', () => drained === 1);
});

scene("'close' comes once, when both halves have ended", async (here) => {
  for (const how of ['ours', 'theirs', 'halves', 'the other half later']) {
    const [a, b] = await both(here);
    let closed = 0;
    b.on('close', () => closed++);
    b.on('message', () => {});
    b.on('error', (error) => assert.fail(String(error)));
    if (how === 'ours') {
      b.close();
      b.close();
    } else if (how === 'theirs') {
      a.close();
    } else if (how === 'halves') {
      await b.sender.end();
      await sleep(10);
      assert.equal(closed, 0);
      b.receiver.close();
    } else {
      await a.sender.end();
      await sleep(30);
      assert.equal(closed, 0);
      a.receiver.close();
    }
    await eventually(how, () => closed > 0);
    a.close();
    b.close();
    await sleep(20);
    assert.equal(closed, 1, how);
  }
});

scene("'error' once with the peer's death, then 'close'", async (here) => {
  const [bus, peer] = await connected(here, 4096);
  /** @type {any[]} */ const told = [];
  bus.on('error', (error) => told.push(/** @type {any} */ (error).code));
  bus.on('close', () => told.push('close'));
  bus.on('message', (message) => told.push(message.length));
  await peer.does('send 2 10 0', 'sent', { next: 2 });
  while (bus.trySend(new Uint8Array(1000)));
  await peer.kill();
  await eventually('the end', () => told.includes('close'));
  await sleep(20);
  assert.deepEqual(told.slice(0, 3), [10, 10, 'ERR_RAMWAY_PEER_DEAD']);
  assert.equal(told.filter((what) => what === 'close').length, 1);
});

scene('a death that a promise tells needs no listener for errors', async (here) => {
  const [bus, peer] = await connected(here);
  const received = assert.rejects(bus.recv(), code('PEER_DEAD'));
  bus.on('close', () => {});
  await peer.kill();
  await received;
  await assert.rejects(bus.recv(), code('PEER_DEAD'));
  await sleep(20);
});

scene('a listener for events of one half needs none on the bus', async (here) => {
  const [bus, peer] = await connected(here);
  /** @type {any[]} */ const told = [];
  bus.receiver.on('error', (error) => told.push(/** @type {any} */ (error).code));
  bus.receiver.on('message', () => {});
  await peer.kill();
  await eventually('the half is told', () => told.length > 0);
  assert.deepEqual(told, ['ERR_RAMWAY_PEER_DEAD']);
});

scene('close() ends what waits; end() sends it first', async (here) => {
  const [a, b] = await both(here, { capacity: 4096 });
  while (a.trySend(new Uint8Array(1000)));
  const late = a.send('the last');
  const ended = a.end();
  await sleep(10);
  assert.equal(await settled(ended), false);
  const seen = [];
  for await (const message of b) seen.push(message.length);
  assert.equal(seen.at(-1), 8);
  await late;
  await ended;
  assert.equal(a.closed, true);

  const [c, d] = await both(here, { capacity: 4096 });
  while (c.trySend(new Uint8Array(1000)));
  const waiting = [c.send('never'), c.recv()];
  c.close();
  for (const wait of waiting) await assert.rejects(wait, code('DETACHED'));
  for (const call of [() => c.send('x'), () => c.recv()]) await assert.rejects(call, code('DETACHED'));
  assert.equal(c.peerAlive, false);
  await d[Symbol.asyncDispose]();
  assert.equal(d.closed, true);
  const [e] = await both(here);
  e[Symbol.dispose]();
  assert.equal(e.closed, true);
});

scene('an abort that comes after the connection is made leaves nobody connected', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus')));
  for (let round = 0; round < 20; round++) {
    const controller = new AbortController();
    const connecting = Bus.connect(path('bus'), { signal: controller.signal, timeout: LONG });
    const accepted = own(await listener.accept({ timeout: LONG }));
    controller.abort();
    const bus = await connecting.catch(() => undefined);
    bus?.close();
    // Closed here or there, and never left open.
    await assert.rejects(
      accepted.recv({ timeout: LONG }),
      /** @param {any} error */ (error) => /CLOSED|PEER_DEAD/.test(error.code),
    );
  }
});

scene('a plain name, and a ring beside it', async ({ own }) => {
  const name = `bus.test-${process.pid}`;
  const listening = Bus.listen(name, { timeout: LONG });
  const theirs = own(await Bus.connect(name, { timeout: LONG }));
  const ours = own(await listening);
  assert.deepEqual([ours.name, theirs.name, ours.sender.name], [name, name, undefined]);
  own(await Ring.create(name).receiver());
});
