// waitForPeer: until the other side is there, or there again.
import assert from 'node:assert/strict';
import { unlinkSync } from 'node:fs';
import { Bus, Ring } from '../index.mjs';
import { code, connected, eventually, fromPeer, LONG, pair, scene, settled, sleep, toPeer } from './scene.mjs';

const allowMainThread = true;

scene('a peer that is there: at once, with its epoch', async (here) => {
  const [rx, peer] = await fromPeer(here);
  for (let i = 0; i < 3; i++) assert.equal(await rx.waitForPeer({ timeout: 0 }), rx.peerEpoch);
  assert.equal(rx.waitForPeerSync({ timeout: 0, allowMainThread }), 1);
  await peer.does('send 1 5 0', 'sent');
  assert.equal((await rx.recv()).length, 5);
  const [a, b] = pair(here.own);
  assert.equal(await a.waitForPeer(), b.epoch);
  assert.equal(await b.waitForPeer(), a.epoch);
});

scene('nobody has come yet: TimedOut, and then the one that comes', async ({ path, own, peer }) => {
  const rx = own(await Ring.create(path('ring')).receiver());
  for (const timeout of [0, 0.5, 30]) {
    await assert.rejects(rx.waitForPeer({ timeout }), code('TIMED_OUT'));
    assert.throws(() => rx.waitForPeerSync({ timeout, allowMainThread }), code('TIMED_OUT'));
  }
  const waiting = rx.waitForPeer();
  const receiving = rx.recv();
  await sleep(20);
  assert.equal(await settled(waiting), false);
  const other = await peer(`out=${path('ring')}`);
  assert.equal(await waiting, 1);
  await other.does('send 1 5 0', 'sent');
  assert.equal((await receiving).length, 5);
});

for (const how of /** @type {const} */ (['killed', 'closed'])) {
  scene(`PeerDead and Closed are said at every call until a successor comes: ${how}`, async (here) => {
    const kind = how === 'killed' ? 'PEER_DEAD' : 'CLOSED';
    const gone = async (/** @type {any} */ peer) => (how === 'killed' ? peer.kill() : peer.does('close', 'closed'));
    const [rx, peer] = await fromPeer(here);
    await gone(peer);
    await eventually('it is gone', () => !rx.peerAlive);
    for (let i = 0; i < 3; i++) await assert.rejects(rx.recv(), code(kind));
    await assert.rejects(rx.waitForPeer({ timeout: 5 }), code('TIMED_OUT'));
    const waiting = rx.waitForPeer({ timeout: LONG });
    const successor = await here.peer(`out=${here.path('ring')}`);
    assert.equal(await waiting, 2);
    await successor.does('send 1 5 0', 'sent');
    assert.equal((await rx.recv({ timeout: LONG })).length, 5);
    rx.close();

    const place = { ...here, path: (/** @type {string} */ name) => here.path(`${name}-2`) };
    const [tx, first] = await toPeer(place, { capacity: 4096 });
    await gone(first);
    await eventually('it is gone', () => !tx.peerAlive);
    await assert.rejects(tx.waitForPeer({ timeout: 5 }), code('TIMED_OUT'));
    const next = tx.waitForPeer({ timeout: LONG });
    await here.peer(`in=${place.path('ring')}`);
    assert.equal(await next, 2);
  });
}

scene('on a bus the end is final', async (here) => {
  const [killed, first] = await connected(here);
  assert.equal(typeof (await killed.receiver.waitForPeer()), 'number');
  await first.kill();
  await assert.rejects(killed.receiver.waitForPeer(), code('PEER_DEAD'));
  assert.throws(() => killed.sender.waitForPeerSync({ allowMainThread }), code('PEER_DEAD'));
  const listening = Bus.listen(here.path('other'), { timeout: LONG });
  const client = here.own(await Bus.connect(here.path('other'), { timeout: LONG }));
  (await listening).close();
  await assert.rejects(client.receiver.waitForPeer(), code('CLOSED'));
  const [a, b] = pair(here.own);
  b.close();
  await assert.rejects(a.waitForPeer(), code('CLOSED'));
});

scene('what ends the wait: a close of its own, an abort, the name that is gone', async ({ path, own }) => {
  const rx = own(await Ring.create(path('ring')).receiver());
  const controller = new AbortController();
  const aborted = rx.waitForPeer({ signal: controller.signal });
  const waiting = rx.waitForPeer();
  controller.abort(new Error('enough'));
  await assert.rejects(aborted, /enough/);
  await assert.rejects(rx.waitForPeer({ signal: controller.signal }), /enough/);
  assert.equal(await settled(waiting), false);
  rx.close();
  await assert.rejects(waiting, code('DETACHED'));
  await assert.rejects(rx.waitForPeer(), code('DETACHED'));
  assert.throws(() => rx.waitForPeerSync({ allowMainThread }), code('DETACHED'));

  const tx = own(await Ring.create(path('vanishes')).sender());
  const vanished = tx.waitForPeer();
  unlinkSync(path('vanishes'));
  await assert.rejects(vanished, code('CLOSED'));
  for (const options of [5, { tiemout: 1 }, null]) {
    await assert.rejects(tx.waitForPeer(/** @type {any} */ (options)), TypeError);
    assert.throws(() => tx.waitForPeerSync(/** @type {any} */ (options)), TypeError);
  }
  assert.throws(() => tx.waitForPeerSync(), code('UNSUPPORTED'));
});

scene('close() with views and messages that are still held tells the sender at once', async (here) => {
  for (const hold of ['message', 'batch', 'transferred']) {
    const place = { ...here, path: (/** @type {string} */ name) => here.path(`${name}-${hold}`) };
    const [rx, peer] = await fromPeer(place, { capacity: 4096 });
    await peer.does('send 4 1000 0', 'sent');
    const held = hold === 'batch' ? await rx.recvBatch() : await rx.recv();
    const view = 'bytes' in held ? held.bytes : held.data;
    const { buffer } = view;
    if (hold === 'transferred') {
      try {
        structuredClone(buffer, { transfer: [buffer] });
      } catch {
        // Bun refuses.
      }
    }
    peer.tell('send 1 1000 4');
    await sleep(5);
    rx.close();
    await peer.said('error', { name: 'Closed', next: 4 });
    assert.equal(view.length, 0);
    held.release();
    held.release();
  }
});
