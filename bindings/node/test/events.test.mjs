// The events: 'message', 'close', 'error' and 'drain'.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { check, code, connected, eventually, fromPeer, pair, scene, sleep, toPeer, turn } from './scene.mjs';

scene("'message' for each message in order, then 'close' once", async (here) => {
  const [rx, peer] = await fromPeer(here, { capacity: 4096 });
  /** @type {string[]} */ const events = [];
  let seq = 0;
  rx.on('message', (message) => check(seq++, message));
  rx.on('close', () => events.push(`close after ${seq}`));
  rx.on('error', (error) => events.push(`error ${error}`));
  peer.tell('send 5000 mixed 0');
  await peer.said('sent', { next: 5000 });
  await peer.does('close', 'closed');
  await eventually('the close', () => events.length > 0);
  await sleep(20);
  assert.deepEqual(events, ['close after 5000']);
});

scene("'message' and 'close' of a bus", async (here) => {
  const [bus, peer] = await connected(here);
  let seq = 0;
  bus.on('message', (message) => check(seq++, message));
  peer.tell('send 1000 mixed 0');
  peer.tell('close');
  await once(bus, 'close');
  assert.equal(seq, 1000);
});

scene("'error' with the peer's death, after all of its messages", async (here) => {
  const [bus, peer] = await connected(here);
  await peer.does('send 100 50 0', 'sent');
  await peer.kill();
  let seq = 0;
  const failed = once(bus, 'error');
  bus.on('message', (message) => check(seq++, message));
  const [error] = await failed;
  code('PEER_DEAD')(error);
  assert.equal(seq, 100);
});

scene('without a listener for messages nothing is taken', async (here) => {
  const [rx, peer] = await fromPeer(here);
  rx.on('close', () => {});
  rx.on('error', () => {});
  await peer.does('send 3 5 0', 'sent');
  await sleep(20);
  check(0, await rx.recv());
  const [message] = await once(rx, 'message');
  assert.equal(message.released, true);
  // `once` took its listener away: the third is still there.
  await turn();
  check(2, await rx.recv());
});

scene('pause and resume', async (here) => {
  const [rx, peer] = await fromPeer(here);
  let seq = 0;
  rx.on('message', (message) => {
    check(seq++, message);
    if (seq % 10 === 0) assert.equal(rx.pause(), rx);
  });
  await peer.does('send 35 8 0', 'sent');
  await eventually('ten', () => seq === 10);
  for (const expected of [20, 30]) {
    await sleep(10);
    assert.equal(seq, expected - 10);
    assert.equal(rx.resume(), rx);
    await eventually('ten more', () => seq === expected);
  }
  // While it pauses, the calls are free.
  check(seq++, await rx.recv());
  rx.resume();
  await eventually('all', () => seq === 35);
});

scene('while events flow, a receive is refused', async (here) => {
  const [rx] = await fromPeer(here);
  rx.on('message', () => {});
  await turn();
  await assert.rejects(rx.recv(), code('BUSY'));
  assert.throws(() => rx.tryRecv(), code('BUSY'));
  rx.removeAllListeners('message');
  assert.equal(rx.tryRecv(), null);
});

scene('removing the last listener stops the flow; adding one starts it again', async (here) => {
  const [rx, peer] = await fromPeer(here);
  /** @type {number[]} */ const seen = [];
  const first = (/** @type {any} */ message) => {
    seen.push(Number(message.tag & 0xffffn));
    if (seen.length === 3) rx.off('message', first);
  };
  rx.on('message', first);
  await peer.does('send 10 8 0', 'sent');
  await eventually('three', () => seen.length === 3);
  await sleep(10);
  assert.deepEqual(seen, [0, 1, 2]);
  rx.on('message', (message) => seen.push(Number(message.tag & 0xffffn)));
  await eventually('the others', () => seen.length === 10);
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

scene('every listener gets every message, also when one of them throws', async (here) => {
  const [rx, peer] = await fromPeer(here);
  const seen = [0, 0];
  rx.on('message', () => seen[0]++);
  rx.on('message', () => seen[1]++);
  await peer.does('send 100 8 0', 'sent');
  await eventually('all', () => seen[1] === 100);
  assert.deepEqual(seen, [100, 100]);
});

scene("'drain' comes after trySend said false, once there is room, and once", async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  let drains = 0;
  tx.on('drain', () => drains++);
  for (let round = 0; round < 20; round++) {
    let count = 0;
    while (tx.trySend(new Uint8Array(480))) count++;
    assert.ok(count > 0);
    assert.equal(tx.trySend(new Uint8Array(480)), false);
    await sleep(3);
    assert.equal(drains, round);
    await peer.does(`skip ${count}`, 'skipped');
    await eventually('drain', () => drains === round + 1);
    await turn();
    assert.equal(drains, round + 1);
  }
});

scene('a producer that only goes on at drain delivers everything', async (here) => {
  const [bus, peer] = await connected(here, 4096);
  peer.tell('skip 20000');
  let sent = 0;
  const data = new Uint8Array(40);
  await new Promise((resolve) => {
    const go = () => {
      while (sent < 20_000 && bus.trySend(data)) sent++;
      if (sent === 20_000) resolve(undefined);
    };
    bus.on('drain', go);
    go();
  });
  await peer.said('skipped', { next: 20_000 });
});

scene('drain also comes after sends that were queued', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  const sends = Array.from({ length: 10 }, () => tx.send(new Uint8Array(1000)));
  assert.equal(tx.trySend('x'), false);
  const drained = once(tx, 'drain');
  let done = false;
  Promise.all(sends).then(() => (done = true));
  await peer.does('skip 10', 'skipped');
  await drained;
  await Promise.all(sends);
  assert.equal(done, true);
  assert.equal(tx.trySend('x'), true);
});

scene('drain is not awaited forever: the peer dies or closes, and trySend says so', async (here) => {
  for (const how of ['kill', 'close']) {
    const place = { ...here, path: (/** @type {string} */ name) => here.path(`${name}-${how}`) };
    const [bus, peer] = await connected(place, 4096);
    const failed = new Promise((resolve) => {
      bus.on('error', resolve);
      bus.on('drain', () => resolve(null));
      // The peer may go on sending: the bus itself has not ended.
      bus.sender.on('close', () => resolve(null));
    });
    while (bus.trySend(new Uint8Array(500)));
    if (how === 'kill') await peer.kill();
    else peer.tell('close');
    await failed;
    assert.throws(() => bus.trySend(new Uint8Array(4000)), code(how === 'kill' ? 'PEER_DEAD' : 'CLOSED'));
  }
});

scene("'close' of a handle that we close ourselves, once, and nothing after it", async ({ own }) => {
  const [tx, rx] = pair(own);
  /** @type {string[]} */ const events = [];
  for (const [name, end] of /** @type {[string, any][]} */ ([
    ['tx', tx],
    ['rx', rx],
  ])) {
    for (const event of ['close', 'error', 'message', 'drain']) end.on(event, () => events.push(`${name} ${event}`));
  }
  await turn();
  rx.close();
  rx.close();
  await sleep(5);
  tx.close();
  await sleep(20);
  assert.deepEqual(
    events.filter((event) => event !== 'tx close'),
    ['rx close'],
  );
  assert.ok(events.filter((event) => event === 'tx close').length === 1);
});

scene('a handle that is closed by its own listener', async (here) => {
  const [rx, peer] = await fromPeer(here);
  let seen = 0;
  const closed = once(rx, 'close');
  rx.on('message', (message) => {
    if (++seen === 3) {
      const { data } = message;
      rx.close();
      assert.equal(data.length, 0);
    }
  });
  peer.tell('send 100 80 0');
  await closed;
  await sleep(10);
  assert.equal(seen, 3);
  assert.equal(rx.closed, true);
});

scene('messages of a peer that goes on forever do not keep close waiting', async (here) => {
  const [rx, peer] = await fromPeer(here);
  let seen = 0;
  rx.on('message', () => seen++);
  peer.tell('flood 32');
  await eventually('some', () => seen > 1000);
  await rx.end();
  const before = seen;
  await sleep(20);
  assert.equal(seen, before);
});
