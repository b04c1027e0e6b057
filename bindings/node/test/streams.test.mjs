// Web streams: back-pressure, endings and boundaries, with a process in Rust at the other end.
import assert from 'node:assert/strict';
import { Ring } from '../index.mjs';
import { code, connected, eventually, fill, fromPeer, lengthOf, scene, settled, toPeer, turn } from './scene.mjs';

const COUNT = 5_000;

/** The bytes of message number `seq` of a peer that sends `mixed`. @param {number} seq @param {number} longest */
const payload = (seq, longest) => fill(seq, new Uint8Array(lengthOf(seq, 'mixed', longest)));

/** Some turns, in which nothing may happen that should not. */
async function someTurns() {
  for (let i = 0; i < 20; i++) await turn();
}

scene('readable: every message a chunk of its own, up to the close', async (here) => {
  const [rx, peer] = await fromPeer(here, { capacity: 4096 });
  peer.tell(`send ${COUNT} mixed 0`);
  peer.tell('close');
  assert.equal(rx.readable, rx.readable);
  let seq = 0;
  for await (const chunk of rx.readable) {
    assert.deepEqual(chunk, payload(seq, 4096 - 16), `message ${seq}`);
    seq++;
  }
  assert.equal(seq, COUNT);
});

scene('readable takes from the ring what is read, and nothing ahead', async (here) => {
  const [rx, peer] = await fromPeer(here);
  await peer.does('send 10 16 1', 'sent', { next: 11 });
  const reader = rx.readable.getReader();
  await someTurns();
  assert.equal(rx.used, 10 * 32);
  for (let seq = 1; seq <= 3; seq++) {
    const { value } = await reader.read();
    assert.deepEqual(value, fill(seq, new Uint8Array(16)));
    await someTurns();
    assert.equal(rx.used, (10 - seq) * 32);
  }
  // The reader goes, the messages stay: they can be received in another way.
  reader.releaseLock();
  const message = await rx.recv();
  assert.deepEqual(message.copy(), fill(4, new Uint8Array(16)));
});

scene('readable: chunks are copies, which stay', async () => {
  const [tx, rx] = Ring.pair(4096);
  const reader = rx.readable.getReader();
  await tx.send('first');
  const { value } = await reader.read();
  for (let i = 0; i < 1000; i++) {
    await tx.send('other');
    await reader.read();
  }
  assert.equal(new TextDecoder().decode(value), 'first');
  structuredClone(value, { transfer: [/** @type {Uint8Array} */ (value).buffer] });
  tx.close();
  assert.deepEqual(await reader.read(), { done: true, value: undefined });
  await reader.closed;
  rx.close();
});

scene('readable: cancelling gives the role up, and loses nothing that nobody was given', async (here) => {
  const [rx, peer] = await fromPeer(here);
  await peer.does('send 3 16 0', 'sent', { next: 3 });
  const reader = rx.readable.getReader();
  assert.deepEqual((await reader.read()).value, fill(0, new Uint8Array(16)));
  await reader.cancel('enough');
  assert.equal(rx.closed, true);
  assert.equal((await reader.read()).done, true);
  const next = here.own(await Ring.open(here.path('ring')).receiver());
  for (const seq of [1, 2]) assert.deepEqual((await next.recv()).copy(), fill(seq, new Uint8Array(16)));
});

scene('readable: cancelling ends a read that waits', async (here) => {
  const [bus, peer] = await connected(here);
  const reader = bus.readable.getReader();
  const read = reader.read();
  assert.equal(await settled(read), false);
  await reader.cancel();
  assert.deepEqual(await read, { done: true, value: undefined });
  // Only this half is closed: the peer cannot send any more, and receives what is sent here.
  assert.equal(bus.receiver.closed, true);
  await peer.does('send 100000 1000 0', 'error', { name: 'Closed' });
  await bus.writable.getWriter().write(fill(0, new Uint8Array(0)));
  await bus.sender.end();
  await peer.does('echo 0', 'error', { name: 'Closed' });
});

scene('readable: leaving a loop over it closes the receiver, unless told not to', async () => {
  for (const preventCancel of [true, false]) {
    const [tx, rx] = Ring.pair(4096);
    await tx.send('a');
    await tx.send('b');
    for await (const chunk of rx.readable.values({ preventCancel })) {
      assert.equal(String.fromCharCode(...chunk), 'a');
      break;
    }
    assert.equal(rx.closed, !preventCancel);
    if (preventCancel) assert.equal((await rx.recv()).text(), 'b');
    tx.close();
    rx.close();
  }
});

scene('readable fails once its sender has died, after the last message', async (here) => {
  const [rx, peer] = await fromPeer(here);
  await peer.does('send 3 16 0', 'sent', { next: 3 });
  await peer.kill();
  const reader = rx.readable.getReader();
  for (let seq = 0; seq < 3; seq++) assert.deepEqual((await reader.read()).value, fill(seq, new Uint8Array(16)));
  await assert.rejects(reader.read(), code('PEER_DEAD'));
  await assert.rejects(reader.closed, code('PEER_DEAD'));
});

scene('readable fails once its receiver is closed under it', async () => {
  const [tx, rx] = Ring.pair(4096);
  const read = rx.readable.getReader().read();
  const fails = assert.rejects(read, code('DETACHED'));
  rx.close();
  await fails;
  tx.close();
});

scene('writable: a write is done when its message is in the ring', async (here) => {
  const [tx, rx] = Ring.pair(4096);
  here.own(tx);
  here.own(rx);
  const writer = tx.writable.getWriter();
  assert.equal(tx.writable, tx.writable);
  assert.equal(writer.desiredSize, 1);
  await writer.write(new Uint8Array(2000));
  await writer.write('text');
  await writer.write(new DataView(new ArrayBuffer(3)));
  await writer.ready;
  const waits = writer.write(new Uint8Array(3000));
  const { ready } = writer;
  assert.equal(writer.desiredSize, 0);
  await someTurns();
  assert.equal(await settled(waits), false);
  assert.equal(await settled(ready), false);
  assert.equal((await rx.recv()).length, 2000);
  (await rx.recv()).release();
  await waits;
  await ready;
  assert.equal((await rx.recv()).length, 3);
  assert.equal((await rx.recv()).length, 3000);
});

scene('writable: closing it is the end of the stream, after everything that was written', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  const writer = tx.writable.getWriter();
  // More than the ring takes: they wait in the stream.
  const writes = Array.from({ length: 50 }, () => writer.write(new Uint8Array(1000)));
  const closed = writer.close();
  assert.equal(await settled(closed), false);
  // What `recv` says of foreign messages does not matter here: it takes the first one.
  peer.tell('sleep 1');
  await peer.said('slept');
  for (let i = 0; i < 50; i++) {
    peer.tell('hold');
    await peer.said('holding');
    peer.tell('');
    await peer.said('released');
  }
  await closed;
  await Promise.all(writes);
  assert.equal(tx.closed, true);
  await peer.does('hold', 'error', { name: 'Closed' });
});

scene('writable: aborting it takes a waiting write back, and closes the sender', async (here) => {
  const [bus, peer] = await connected(here, 4096);
  const writer = bus.writable.getWriter();
  await writer.write(new Uint8Array(3000));
  const waits = assert.rejects(writer.write(new Uint8Array(2000)), /had enough/);
  const later = assert.rejects(writer.write('never'), /had enough/);
  await someTurns();
  writer.closed.catch(() => {});
  await writer.abort(new Error('had enough'));
  await Promise.all([waits, later]);
  assert.equal(bus.sender.closed, true);
  peer.tell('echo 0');
  assert.equal((await bus.recv()).length, 3000);
  await peer.said('echoed', { count: 1 });
});

scene('writable fails with what a send fails with, and leaves the sender open', async (here) => {
  const [tx, rx] = Ring.pair(4096);
  here.own(tx);
  here.own(rx);
  const writer = tx.writable.getWriter();
  const { closed } = writer;
  closed.catch(() => {});
  await assert.rejects(writer.write(new Uint8Array(5000)), code('TOO_LARGE'));
  await assert.rejects(closed, code('TOO_LARGE'));
  await tx.send('still');
  assert.equal((await rx.recv()).text(), 'still');
});

scene('writable fails once its receiver has died', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  const writer = tx.writable.getWriter();
  writer.closed.catch(() => {});
  await writer.write(new Uint8Array(3000));
  const waits = assert.rejects(writer.write(new Uint8Array(3000)), code('PEER_DEAD'));
  await peer.kill();
  await waits;
});

scene('pipeThrough and pipeTo: from a process, through a transform, to it again', async (here) => {
  const [rx, peer] = await fromPeer(here, { capacity: 4096 });
  const [bus, echo] = await connected(here, 4096);
  echo.tell('echo 0');
  peer.tell(`send ${COUNT} mixed 0`);
  peer.tell('close');
  const reversed = new TransformStream({
    transform: (chunk, controller) => controller.enqueue(chunk.reverse()),
  });
  const piped = rx.readable.pipeThrough(reversed).pipeTo(bus.writable);
  let seq = 0;
  const reader = bus.readable.getReader();
  for (; seq < COUNT; seq++) {
    const { value } = await reader.read();
    assert.deepEqual(value?.reverse(), payload(seq, 4096 - 16), `message ${seq}`);
  }
  await piped;
  assert.equal(bus.sender.closed, true);
  await echo.said('echoed', { count: COUNT });
  await echo.does('close', 'closed');
  assert.equal((await reader.read()).done, true);
});

scene('pipeTo with a signal ends both', async (here) => {
  const [tx, rx] = Ring.pair(4096);
  const [tx2, rx2] = Ring.pair(4096);
  for (const end of [tx, rx, tx2, rx2]) here.own(end);
  const gone = new AbortController();
  const piped = rx.readable.pipeTo(tx2.writable, { signal: gone.signal });
  await tx.send('x');
  assert.equal((await rx2.recv()).text(), 'x');
  gone.abort(new Error('no more'));
  await assert.rejects(piped, /no more/);
  await eventually('both are closed', () => rx.closed && tx2.closed);
  await assert.rejects(rx2.recv(), code('CLOSED'));
});
