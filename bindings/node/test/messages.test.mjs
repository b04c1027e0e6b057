// Messages between two processes, one written in Rust: every way to receive and to send, every length, every lap.
import assert from 'node:assert/strict';
import { Ring } from '../index.mjs';
import { writeRing } from './image.mjs';
import { check, code, connected, fromPeer, LONG, lengthOf, made, pair, scene, settled, toPeer } from './scene.mjs';

const COUNT = 10_000;

/** @param {import('../index.mjs').Sender | import('../index.mjs').Bus} tx @param {number} seq @param {number} length */
function send(tx, seq, length) {
  const { bytes, options } = made(seq, length);
  return tx.send(bytes, options);
}

for (const [capacity, count] of [
  [4096, COUNT],
  [1 << 20, 2000],
]) {
  scene(`for await over the messages of a ring of ${capacity} bytes, up to its sender's close`, async (here) => {
    const [rx, peer] = await fromPeer(here, { capacity });
    peer.tell(`send ${count} mixed 0`);
    peer.tell('close');
    let seq = 0;
    for await (const message of rx) check(seq++, message);
    assert.equal(seq, count);
    await peer.said('sent', { next: count });
    await peer.said('closed');
    assert.equal(rx.used, 0);
  });

  scene(`for await over batches of a ring of ${capacity} bytes`, async (here) => {
    const [rx, peer] = await fromPeer(here, { capacity });
    for (const max of [1, 7, 1024, undefined]) {
      peer.tell(`batch ${count} mixed 0`);
      let seq = 0;
      for await (const batch of rx.batches(max === undefined ? {} : { max })) {
        assert.ok(batch.length >= 1 && batch.length <= (max ?? 1024), `${batch.length} messages`);
        let index = 0;
        for (const message of batch) {
          assert.equal(batch.at(index++)?.tag, message.tag);
          check(seq++, message);
        }
        assert.equal(index, batch.length);
        assert.equal(batch.at(index), undefined);
        if (seq >= count) break;
      }
      assert.equal(seq, count);
      await peer.said('sent', { next: count });
    }
  });

  scene(`await send waits for room in a ring of ${capacity} bytes`, async (here) => {
    const [tx, peer] = await toPeer(here, { capacity });
    peer.tell(`recv 0`);
    for (let seq = 0; seq < count; seq++) await send(tx, seq, lengthOf(seq, 'mixed', capacity - 16));
    await tx.end();
    await peer.said('error', { name: 'Closed', next: count });
  });
}

scene('both directions of a bus at once, lengths at random', async (here) => {
  const [bus, peer] = await connected(here, 8192);
  peer.tell(`echo ${COUNT}`);
  const longest = bus.maxMessageLength;
  assert.equal(longest, 8192 - 16);
  const sending = (async () => {
    for (let seq = 0; seq < COUNT; seq++) await send(bus, seq, lengthOf(seq, 'mixed', longest));
  })();
  let seq = 0;
  for await (const message of bus) {
    assert.equal(message.length, lengthOf(seq, 'mixed', longest));
    check(seq++, message);
    if (seq === COUNT) break;
  }
  await sending;
  await peer.said('echoed', { count: COUNT });
});

scene('one after the other: each answer before the next question', async (here) => {
  const [bus, peer] = await connected(here);
  peer.tell('echo 2000');
  for (let seq = 0; seq < 2000; seq++) {
    await send(bus, seq, seq % 97);
    const message = await bus.recv();
    check(seq, message);
    message.release();
  }
  await peer.said('echoed', { count: 2000 });
});

for (const align of [16, 64, 4096]) {
  scene(`every length of a ring of two pages at an alignment of ${align}, both ways`, async (here) => {
    const [bus, peer] = await connected(here, 8192, align);
    peer.tell('echo 0');
    // Every length would take long at every alignment: all short ones, every 29th, and the last.
    const lengths = [];
    for (let length = 0; length <= 8176; length += length < 200 || length > 8150 ? 1 : 29) lengths.push(length);
    for (const [seq, length] of lengths.entries()) {
      await send(bus, seq, length);
      const message = await bus.recv();
      assert.equal(message.length, length);
      check(seq, message);
      message.release();
    }
    await assert.rejects(bus.send(new Uint8Array(8177)), code('TOO_LARGE'));
    assert.throws(() => bus.trySend(new Uint8Array(8177)), code('TOO_LARGE'));
    await bus.sender.end();
    await peer.said('echoed', { count: lengths.length });
  });
}

// 2^64 is reached from below, as if 2^64 bytes had been sent.
for (const [what, position] of /** @type {[string, bigint][]} */ ([
  ['2^31', 2n ** 31n],
  ['2^32', 2n ** 32n],
  ['2^53', 2n ** 53n],
  ['2^63', 2n ** 63n],
  ['2^64', 2n ** 64n],
])) {
  for (const align of [16, 64]) {
    scene(`positions that pass ${what} at an alignment of ${align}`, async ({ path, own, peer: start }) => {
      for (const back of [64n, 65_536n]) {
        for (const name of ['there', 'back'])
          writeRing(path(`${name}-${back}`), { align, position: position - back - 1n });
        const rx = own(await Ring.open(path(`there-${back}`)).receiver());
        const tx = own(await Ring.open(path(`back-${back}`)).sender());
        const peer = await start(`out=${path(`there-${back}`)}`, `in=${path(`back-${back}`)}`);
        peer.tell('send 1000 mixed 0');
        let seq = 0;
        for await (const batch of rx.batches({ max: 5 })) {
          for (const message of batch) check(seq++, message);
          if (seq === 1000) break;
        }
        await peer.said('sent', { next: 1000 });
        peer.tell('recv 1000');
        for (seq = 0; seq < 1000; seq++) await send(tx, seq, lengthOf(seq, 'mixed', 4080));
        await peer.said('received', { next: 1000 });
        assert.equal(rx.used, 0);
        assert.equal(tx.used, 0);
      }
    });
  }
}

scene('frames of 8 MiB in a ring of 32 MiB', async (here) => {
  const [bus, peer] = await connected(here, 1 << 25);
  peer.tell('echo 8');
  for (let seq = 0; seq < 8; seq++) {
    await bus.reserve(1 << 23, (slot) => void slot.fill(seq + 1), { tag: seq });
    const { data, tag } = await bus.recv();
    assert.deepEqual([data.length, tag], [1 << 23, BigInt(seq)]);
    assert.equal(Buffer.compare(data, Buffer.alloc(1 << 23, seq + 1)), 0);
  }
  await peer.said('echoed', { count: 8 });
});

scene('sends that are not awaited go out in the order of the calls', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  const sends = [];
  for (let seq = 0; seq < 300; seq++) sends.push(send(tx, seq, seq % 10 === 0 ? 3000 : seq % 20));
  // There is room for a short one: those that came first wait for more.
  assert.equal(await settled(sends[299]), false);
  assert.equal(tx.trySend('later'), false);
  assert.equal(tx.trySend(''), false);
  await peer.does('recv 300', 'received', { next: 300 });
  await Promise.all(sends);
  assert.equal(tx.trySend('now'), true);
});

scene('of sends that are not awaited each is done once it is in the ring, and not before', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  const sends = Array.from({ length: 8 }, (_, seq) => send(tx, seq, 1000));
  await Promise.all(sends.slice(0, 4));
  for (let seq = 4; seq < 8; seq++) {
    assert.equal(await settled(sends[seq]), false);
    await peer.does(`recv 1 ${seq - 4}`, 'received', { next: seq - 3 });
    await sends[seq];
  }
});

scene('a sender may write over its bytes once send has returned them', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  for (let seq = 0; seq < 100; seq++) {
    const { bytes, options } = made(seq, 1000);
    await tx.send(bytes, options);
    bytes.fill(0xee);
    if (seq % 4 === 3) await peer.does(`recv 4 ${seq - 3}`, 'received', { next: seq + 1 });
  }
});

scene('what is not flushed is seen at the next flush, send, wait and end, and not before', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 4096 });
  const unseen = async (/** @type {number} */ bytes) => assert.equal((await peer.ask('state')).in_used, `${bytes}`);
  const quiet = (/** @type {number} */ seq) => tx.send(made(seq, 8).bytes, { ...made(seq, 8).options, flush: false });
  await quiet(0);
  await quiet(1);
  await unseen(0);
  tx.flush();
  await peer.does('recv 2 0', 'received', { next: 2 });
  await quiet(2);
  await unseen(0);
  await send(tx, 3, 0);
  await peer.does('recv 2 2', 'received', { next: 4 });
  assert.equal(tx.trySend(made(4, 8).bytes, { ...made(4, 8).options, flush: false }), true);
  await unseen(0);
  // It does not fit beside it: a side that waits must have published what it has.
  const waiting = send(tx, 5, 4080);
  await peer.does('recv 2 4', 'received', { next: 6 });
  await waiting;
  await quiet(6);
  await unseen(0);
  peer.tell('recv 0 6');
  await tx.end();
  assert.equal((await peer.answer()).next, '7');
});

scene('sendBatch sends what an iterable gives, more than the ring has room for', async ({ own }) => {
  const [tx, rx] = pair(own);
  const words = Array.from({ length: 1000 }, (_, n) => `message ${n}`);
  const sent = tx.sendBatch(words, { typeId: 7, tag: 9n });
  for (const word of words) {
    const message = await rx.recv();
    assert.deepEqual([message.text(), message.typeId, message.tag], [word, 7, 9n]);
  }
  assert.equal(await sent, 1000);
  assert.equal(await tx.sendBatch([]), 0);
  const failing = tx.sendBatch(
    (function* () {
      yield 'before';
      throw new Error('the iterable ends so');
    })(),
  );
  await assert.rejects(failing, /the iterable ends so/);
  await tx.send('after');
  const texts = [(await rx.recv()).text()];
  if (texts[0] === 'before') texts.push((await rx.recv()).text());
  assert.equal(texts.at(-1), 'after');
});

scene('recvInto copies, and says what it copied', async (here) => {
  const [rx, peer] = await fromPeer(here, { capacity: 4096 });
  peer.tell('send 500 mixed 0');
  const target = new Uint8Array(8192).subarray(100);
  for (let seq = 0; seq < 500; seq++) {
    const info = await rx.recvInto(target, { timeout: LONG });
    check(seq, { length: info.length, typeId: info.typeId, tag: info.tag, data: target.subarray(0, info.length) });
  }
  assert.equal(rx.tryRecvInto(target), null);
  await peer.said('sent', { next: 500 });
  await peer.ask('send 2 100 500');
  const info = rx.tryRecvInto(target);
  assert.ok(info);
  check(500, { length: info.length, typeId: info.typeId, tag: info.tag, data: target.subarray(0, 100) });
  // What does not fit is not lost.
  await assert.rejects(rx.recvInto(new Uint8Array(99)), code('TOO_LARGE'));
  assert.throws(() => rx.tryRecvInto(new Uint8Array(0)), code('TOO_LARGE'));
  check(501, await rx.recv());
});

scene('tryRecv and tryRecvBatch look once', async (here) => {
  const [rx, peer] = await fromPeer(here, { capacity: 4096 });
  assert.equal(rx.tryRecv(), null);
  assert.equal(rx.tryRecvBatch(), null);
  await peer.ask('send 10 8 0');
  const first = rx.tryRecv();
  assert.ok(first);
  check(0, first);
  first.release();
  const batch = rx.tryRecvBatch({ max: 4 });
  assert.deepEqual(batch && [...batch].map((message) => Number(message.tag & 0xffffffffn)), [1, 2, 3, 4]);
  batch?.release();
  const rest = await rx.recvBatch({ max: 100 });
  assert.equal(rest.length, 5);
  rest.release();
  assert.equal(rx.tryRecvBatch({ max: 1 }), null);
});

scene('bytes of every kind, text, type ids and tags', async ({ own }) => {
  const [tx, rx] = pair(own, 1 << 16);
  const bytes = Uint8Array.of(9, 1, 2, 3, 4, 5, 6, 7, 8, 9);
  const shared = new SharedArrayBuffer(3);
  new Uint8Array(shared).set([1, 2, 3]);
  /** @type {[any, number[]][]} */
  const kinds = [
    [bytes, [...bytes]],
    [bytes.subarray(1, 4), [1, 2, 3]],
    [bytes.buffer, [...bytes]],
    [new DataView(bytes.buffer, 2, 3), [2, 3, 4]],
    [new Uint16Array(bytes.buffer, 2, 2), [2, 3, 4, 5]],
    [new Float64Array([1]), [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]],
    [Buffer.from('abc'), [97, 98, 99]],
    [shared, [1, 2, 3]],
    [new Uint8Array(shared, 1), [2, 3]],
    ['', []],
    ['aé€😀\0z', [97, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0, 122]],
    ['\ud800', [0xef, 0xbf, 0xbd]],
    ['é'.repeat(5000), [...Buffer.from('é'.repeat(5000))]],
    [new Uint8Array(0), []],
  ];
  for (const [data, expected] of kinds) {
    await tx.send(data);
    const message = await rx.recv();
    assert.deepEqual([[...message.data], message.length], [expected, expected.length]);
    assert.deepEqual([...message.copy()], expected);
    if (typeof data === 'string') assert.equal(message.text(), data === '\ud800' ? '\ufffd' : data);
    message.release();
  }
  for (const bad of [undefined, null, 1, 1n, {}, [1, 2], new Date()]) {
    await assert.rejects(async () => tx.send(/** @type {any} */ (bad)), code('INVALID_ARGUMENT'));
    assert.throws(() => tx.trySend(/** @type {any} */ (bad)), code('INVALID_ARGUMENT'));
  }
  /** @type {[number, number | bigint, bigint][]} */
  const numbers = [
    [0, 0, 0n],
    [1, 2 ** 53 - 1, 2n ** 53n - 1n],
    [0xfffe_ffff, 2n ** 64n - 1n, 2n ** 64n - 1n],
    [0x8000_0000, 2n ** 63n, 2n ** 63n],
  ];
  for (const [typeId, tag, expected] of numbers) {
    await tx.send('x', { typeId, tag });
    const message = await rx.recv();
    assert.deepEqual([message.typeId, message.tag], [typeId, expected]);
    message.release();
    assert.equal(tx.lastTag, expected === 0n ? tx.lastTag : expected);
  }
  for (const options of [
    { typeId: 0xffff_0000 },
    { typeId: 2 ** 32 },
    { typeId: -1 },
    { typeId: 1.5 },
    { typeId: NaN },
    { tag: -1 },
    { tag: -1n },
    { tag: 2n ** 64n },
    { tag: 2 ** 53 },
    { tag: 0.5 },
    { timeout: -1 },
    { timeout: NaN },
  ]) {
    await assert.rejects(async () => tx.send('x', options), code('INVALID_ARGUMENT'), `${Object.entries(options)}`);
  }
  assert.equal(rx.tryRecv(), null);
});

scene('two receives at once, and a receive while a message of a loop is in hand', async ({ own }) => {
  const [tx, rx] = pair(own);
  const waiting = rx.recv();
  await assert.rejects(rx.recv(), code('BUSY'));
  await assert.rejects(rx.recvBatch(), code('BUSY'));
  await assert.rejects(rx.recvInto(new Uint8Array(10)), code('BUSY'));
  assert.throws(() => rx.tryRecv(), code('BUSY'));
  await assert.rejects(rx.messages().next(), code('BUSY'));
  await tx.send('first');
  const first = await waiting;
  assert.equal(first.text(), 'first');
  await tx.send('second');
  const second = await rx.recv();
  assert.deepEqual([first.released, second.released, second.text()], [true, false, 'second']);
});

scene('a loop that is left leaves the receiver as it is, and the rest in the ring', async (here) => {
  const [rx, peer] = await fromPeer(here, { capacity: 65536 });
  await peer.ask('send 100 16 0');
  let seq = 0;
  for await (const message of rx) {
    check(seq++, message);
    if (seq === 10) break;
  }
  for await (const batch of rx.batches({ max: 10 })) {
    for (const message of batch) check(seq++, message);
    if (seq === 20) break;
  }
  await assert.rejects(async () => {
    for await (const message of rx.messages()) {
      check(seq++, message);
      throw new Error('out of the loop');
    }
  }, /out of the loop/);
  const iterator = rx.messages();
  check(seq++, (await iterator.next()).value);
  assert.deepEqual(await iterator.return?.(), { done: true, value: undefined });
  assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  assert.equal(rx.closed, false);
  peer.tell('close');
  for await (const message of rx) check(seq++, message);
  assert.equal(seq, 100);
});

scene('what the last loop had in hand when it was left is not received again', async ({ own, path }) => {
  const tx = own(await Ring.create(path('r')).sender());
  const rx = own(await Ring.open(path('r')).receiver());
  for (const text of ['a', 'b', 'c']) await tx.send(text);
  for await (const message of rx) {
    assert.equal(message.text(), 'a');
    break;
  }
  rx.close();
  const next = own(await Ring.open(path('r'), { timeout: LONG }).receiver());
  assert.equal((await next.recv()).text(), 'b');
});
