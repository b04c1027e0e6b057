// SIGKILL and SIGSTOP of the other process at every point: what it had committed is delivered, then ERR_RAMWAY_PEER_DEAD.
import assert from 'node:assert/strict';
import { Bus, Listener, Ring } from '../index.mjs';
import {
  check,
  code,
  connected,
  eventually,
  fromPeer,
  LONG,
  made,
  Peer,
  scene,
  settled,
  sleep,
  toPeer,
} from './scene.mjs';

for (const by of /** @type {const} */ (['recv', 'messages', 'batches', 'recvInto', 'event', 'readable'])) {
  for (const over of /** @type {const} */ (['ring', 'bus'])) {
    scene(`the peer is killed while we wait, ${by} of a ${over}`, async (here) => {
      const [end, peer] = over === 'ring' ? await fromPeer(here) : await connected(here);
      await peer.does('send 3 5 0', 'sent');
      let seen = 0;
      const waiting = (async () => {
        if (by === 'recv')
          while (true) {
            check(seen, await end.recv());
            seen++;
          }
        else if (by === 'messages') for await (const message of end) check(seen++, message);
        else if (by === 'batches')
          for await (const batch of end.batches()) for (const message of batch) check(seen++, message);
        else if (by === 'recvInto') {
          const target = new Uint8Array(5);
          while (true) {
            const info = await end.recvInto(target);
            check(seen++, { typeId: info.typeId, tag: info.tag, length: info.length, data: target });
          }
        } else if (by === 'readable') for await (const bytes of end.readable) seen += bytes.length / 5;
        else
          await new Promise((_, reject) => end.on('message', (message) => check(seen++, message)).on('error', reject));
      })();
      waiting.catch(() => {});
      await eventually('three messages', () => seen === 3);
      await sleep(30);
      assert.equal(await settled(waiting), false);
      assert.equal(end.peerAlive, true);
      await peer.kill();
      await assert.rejects(waiting, code('PEER_DEAD'));
      assert.equal(end.peerAlive, false);
      if (by !== 'readable') await assert.rejects(end.recv(), code('PEER_DEAD'));
    });
  }
}

for (const over of /** @type {const} */ (['ring', 'bus'])) {
  scene(`all that a killed peer had committed is delivered first, then its death, over a ${over}`, async (here) => {
    const [end, peer] = over === 'ring' ? await fromPeer(here) : await connected(here);
    await peer.does('send 300 100 0', 'sent');
    // Never published: as if it had never been.
    await peer.does('commit 20 100 300', 'committed');
    await peer.kill();
    await eventually('it is gone', () => !end.peerAlive);
    let seq = 0;
    const message = await end.recv();
    check(seq++, message);
    for (const later of await end.recvBatch({ max: 50 })) check(seq++, later);
    const last = end.tryRecv();
    assert.ok(last);
    check(seq++, last);
    await assert.rejects(async () => {
      for await (const message of end) check(seq++, message);
    }, code('PEER_DEAD'));
    assert.equal(seq, 300);
    assert.throws(() => end.tryRecv(), code('PEER_DEAD'));
    await assert.rejects(end.recv(), code('PEER_DEAD'));
  });

  scene(`killed in the middle of a stream, over a ${over}: what comes is whole and in order`, async (here) => {
    for (const wait of [0, 1, 3, 7, 20]) {
      const place = { ...here, path: (/** @type {string} */ name) => here.path(`${name}-${wait}`) };
      const [end, peer] = over === 'ring' ? await fromPeer(place, { capacity: 4096 }) : await connected(place, 4096);
      peer.tell('send 100000000 mixed 0');
      let seq = 0;
      const timer = setTimeout(() => peer.kill(), wait);
      await assert.rejects(async () => {
        for await (const batch of end.batches({ max: 16 })) for (const message of batch) check(seq++, message);
      }, code('PEER_DEAD'));
      clearTimeout(timer);
      end.close();
    }
  });

  scene(`the peer is killed while we wait for room, over a ${over}`, async (here) => {
    const [end, peer] = over === 'ring' ? await toPeer(here, { capacity: 4096 }) : await connected(here, 4096);
    while (end.trySend(new Uint8Array(500)));
    const sends = [end.send('one'.repeat(200)), end.send('two'), end.reserve(1000, () => {})];
    for (const promise of sends) promise.catch(() => {});
    await sleep(30);
    assert.equal(await settled(sends[0]), false);
    await peer.kill();
    for (const promise of sends) await assert.rejects(promise, code('PEER_DEAD'));
    await assert.rejects(end.send(new Uint8Array(4000)), code('PEER_DEAD'));
  });

  scene(`a stopped peer is alive, over a ${over}`, async (here) => {
    const [end, peer] = over === 'ring' ? await fromPeer(here) : await connected(here);
    await peer.does('send 2 5 0', 'sent');
    peer.stop();
    const receiving = [await end.recv(), await end.recv()];
    assert.equal(receiving[1].length, 5);
    const waiting = end.recv();
    await sleep(700);
    assert.equal(await settled(waiting), false);
    assert.equal(end.peerAlive, true);
    peer.goOn();
    peer.tell('send 1 5 2');
    check(2, await waiting);
  });
}

scene('the peer is killed while it holds a message: its successor receives that again', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  for (let seq = 0; seq < 6; seq++) await tx.send(made(seq, 600).bytes, made(seq, 600).options);
  await peer.does('recv 2', 'received', { next: 2 });
  await peer.does('hold', 'holding', { seq: 2 });
  const waiting = tx.send(made(6, 4000).bytes, made(6, 4000).options);
  waiting.catch(() => {});
  await peer.kill();
  await assert.rejects(waiting, code('PEER_DEAD'));
  // A named ring goes on: there is room for this one, and a successor for all.
  await tx.send(made(6, 600).bytes, made(6, 600).options);
  const epoch = tx.peerEpoch;
  const successor = await here.peer(`in=${here.path('ring')}`);
  assert.notEqual(tx.peerEpoch, epoch);
  assert.equal(tx.peerAlive, true);
  await successor.does('recv 5 2', 'received', { next: 7 });
  await tx.send(made(7, 4000).bytes, made(7, 4000).options);
  await successor.does('recv 1 7', 'received', { next: 8 });
});

scene('we hold a message of a peer that is killed: it stays what it was', async (here) => {
  for (const over of ['ring', 'bus']) {
    const [end, peer] = over === 'ring' ? await fromPeer(here) : await connected(here);
    await peer.does('send 2 1000 0', 'sent');
    const held = await end.recv();
    await peer.kill();
    await eventually('it is gone', () => !end.peerAlive);
    check(0, held);
    held.release();
    check(1, await end.recv());
    await assert.rejects(end.recv(), code('PEER_DEAD'));
  }
});

scene('a successor of a killed sender goes on where that ended, four times', async (here) => {
  const name = here.path('ring');
  const rx = here.own(await Ring.create(name, { capacity: 4096 }).receiver());
  let seq = 0;
  for (let life = 1; life <= 4; life++) {
    const peer = await here.peer(`out=${name}`);
    assert.equal(rx.peerEpoch, life);
    peer.tell('resume 100000000 mixed');
    const until = seq + 500;
    await assert.rejects(async () => {
      for await (const message of rx) {
        check(seq++, message);
        if (seq === until) await peer.kill();
      }
    }, code('PEER_DEAD'));
    assert.ok(seq >= until);
  }
});

scene('a receive that begins after a death waits for nobody; with a successor it goes on', async (here) => {
  const [rx, peer] = await fromPeer(here);
  await peer.kill();
  await assert.rejects(rx.recv(), code('PEER_DEAD'));
  await assert.rejects(rx.recv({ timeout: 10 }), code('PEER_DEAD'));
  const next = await here.peer(`out=${here.path('ring')}`);
  const waiting = rx.recv();
  await next.does('send 1 5 0', 'sent');
  check(0, await waiting);
  // A close is no death.
  next.tell('close');
  for await (const _ of rx) assert.fail('there was no message');
  await assert.rejects(rx.recv(), code('CLOSED'));
});

scene(
  'a peer that closes is waited for to the last message, then ERR_RAMWAY_CLOSED or the end of a loop',
  async (here) => {
    const [bus, peer] = await connected(here);
    await peer.does('send 10 mixed 0', 'sent');
    await peer.does('close', 'closed');
    let seq = 0;
    for await (const message of bus) check(seq++, message);
    assert.equal(seq, 10);
    await assert.rejects(bus.recv(), code('CLOSED'));
    assert.throws(() => bus.tryRecv(), code('CLOSED'));
    await assert.rejects(bus.send('x'), code('CLOSED'));
    assert.throws(() => bus.trySend('x'), code('CLOSED'));
  },
);

scene('a sender that ends: all of it arrives, then the peer is told', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  peer.tell('recv 0');
  for (let seq = 0; seq < 100; seq++) tx.send(made(seq, 200).bytes, made(seq, 200).options).catch(() => {});
  await tx.end();
  assert.equal(tx.closed, true);
  await peer.said('error', { name: 'Closed', next: 100 });
  await assert.rejects(async () => tx.send('x'), code('DETACHED'));
});

scene('connecting to a listener whose process was killed', async ({ path, own }) => {
  const name = path('bus');
  const peer = own(await Peer.start(`listen=${name}`));
  const bus = own(await Bus.connect(name, { timeout: LONG }));
  await peer.ready();
  await peer.kill();
  await assert.rejects(bus.recv(), code('PEER_DEAD'));
  await assert.rejects(Bus.connect(name, { timeout: 50 }), (/** @type {any} */ error) =>
    ['ERR_RAMWAY_NOT_FOUND', 'ERR_RAMWAY_TIMED_OUT'].includes(error.code),
  );
  // What it left is in nobody's way.
  const listener = own(await Listener.bind(name));
  const accepting = listener.accept({ timeout: LONG });
  const [next] = await Promise.all([
    own(new Peer(/** @type {string} */ (process.env.RAMWAY_PEER), [`connect=${name}`])).ready(),
    accepting,
  ]);
  own(await accepting);
  await next.does('send 1 5 0', 'sent');
  check(0, await (await accepting).recv());
});

scene('ten connections at once, each of them killed', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus'), { capacity: 4096 }));
  const lives = Array.from({ length: 10 }, async () => {
    const peer = own(await Peer.start(`connect=${path('bus')}`));
    await peer.ready();
    await peer.does('send 5 5 0', 'sent');
    await peer.kill();
  });
  const served = [];
  for await (const bus of listener) {
    own(bus);
    served.push(
      assert.rejects(async () => {
        let seq = 0;
        for await (const message of bus) check(seq++, message);
      }, code('PEER_DEAD')),
    );
    if (served.length === lives.length) break;
  }
  await Promise.all([...lives, ...served]);
});
