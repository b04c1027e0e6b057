// Topics: each policy, where it begins, who waits for whom, what is lost, and how it ends.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, writeSync } from 'node:fs';
import { RamwayError, Ring, Subscriber, Topic, TopicMessage } from '../index.mjs';
import { code, eventually, LONG, program, scene, settled, sleep, turn } from './scene.mjs';

const allowMainThread = true;

/** All that is there now: `seq:text:lost`. @param {Subscriber} sub */
function all(sub) {
  const found = [];
  for (let message = sub.tryRecv(); message !== null; message = sub.tryRecv()) {
    found.push(`${message.seq}:${message.text()}:${message.lost}`);
  }
  return found.join(' ');
}

/** @param {{ send(data: string): Promise<void> }} pub @param {number} count @param {number} [from] */
async function publish(pub, count, from = 0) {
  for (let i = from; i < from + count; i++) await pub.send(`m${i}`);
}

scene('each subscriber reads by its policy', async ({ path, own }) => {
  const before = BigInt(Date.now()) * 1_000_000n;
  const pub = own(await Topic.create(path('t')).publisher({ timestamps: true }));
  const open = Topic.open(path('t'));
  const reliable = own(await open.subscriber('reliable', { label: 'controller' }));
  const lossy = own(await open.subscriber('lossy'));
  const latest = own(await open.subscriber('latest'));
  assert.deepEqual([latest.latest(), latest.tryRecv(), pub.seq, pub.lastTag], [null, null, 0, null]);
  for (let i = 0; i < 3; i++) {
    await pub.send(`m${i}`, { typeId: 7, tag: i, flush: i !== 0 });
    if (i === 0) assert.deepEqual([lossy.tryRecv(), latest.latest(), pub.seq, pub.lastTag], [null, null, 0, null]);
  }
  assert.equal(all(lossy), '1:m0:0 2:m1:0 3:m2:0');
  const message = await reliable.recv();
  assert.ok(message instanceof TopicMessage);
  assert.deepEqual(
    [message.typeId, message.tag, message.seq, message.lost, message.length, message.text()],
    [7, 0n, 1, 0, 2, 'm0'],
  );
  assert.ok(message.time >= before - 1_000_000_000n && message.time <= BigInt(Date.now() + 1000) * 1_000_000n);
  assert.deepEqual(reliable.lag, { bytes: 3 * 64, messages: 2 });
  assert.equal(all(reliable), '2:m1:0 3:m2:0');
  assert.deepEqual(reliable.lag, { bytes: 0, messages: 0 });
  assert.equal(latest.latest()?.text(), 'm2');
  assert.equal(latest.tryRecv(), null); // it was seen
  assert.deepEqual([pub.lastTag, pub.seq, pub.name, pub.capacity, pub.align], [2n, 3, path('t'), 1 << 20, 32]);
  assert.equal(pub.maxMessageLength, (1 << 19) - 32);
  const who = pub.subscribers();
  assert.deepEqual(
    who.map(({ policy, label, alive, lag }) => [policy, label, alive, lag]),
    [
      ['reliable', 'controller', true, { bytes: 0, messages: 0 }],
      ['lossy', '', true, undefined],
      ['latest', '', true, undefined],
    ],
  );
  assert.deepEqual(
    [reliable.policy, reliable.label, lossy.policy, lossy.label],
    ['reliable', 'controller', 'lossy', undefined],
  );
  pub.close();
  for (const sub of [reliable, lossy, latest]) await assert.rejects(sub.recv(), code('CLOSED'));
});

scene('a reliable subscriber holds the publisher back, and nobody else does', async ({ path, own }) => {
  const pub = own(await Topic.create(path('t'), { capacity: 4096 }).publisher());
  const lossy = own(await Topic.open(path('t')).subscriber('lossy'));
  const latest = own(await Topic.open(path('t')).subscriber('latest'));
  for (let i = 0; i < 1000; i++) assert.ok(pub.trySend(`m${i}`));
  let received = 0;
  let lost = 0;
  for (let next = 1, m = lossy.tryRecv(); m !== null; m = lossy.tryRecv()) {
    assert.equal(m.seq, next + m.lost);
    assert.equal(m.text(), `m${m.seq - 1}`);
    next = m.seq + 1;
    received += 1;
    lost += m.lost;
  }
  assert.equal(received + lost, 1000);
  assert.ok(received >= 16, `${received} of 64`);
  assert.equal(lossy.lost, lost);
  assert.deepEqual([latest.tryRecv()?.seq, latest.lost], [1000, 999]);
  const reliable = own(await Topic.open(path('t')).subscriber('reliable', { start: 'now' }));
  let sent = 0;
  while (pub.trySend('x'.repeat(32))) sent += 1;
  assert.ok(sent <= 64 && sent >= 60, `${sent}`);
  await assert.rejects(pub.send('x'.repeat(32), { timeout: 20 }), code('TIMED_OUT'));
  assert.throws(() => pub.sendSync('x'.repeat(32), { timeout: 20, allowMainThread }), code('TIMED_OUT'));
  assert.ok(/** @type {any} */ (pub.subscribers()[0].blocksFor ?? 0) > 0);
  const drained = once(pub, 'drain');
  const waiting = pub.send('at last');
  assert.equal(await settled(waiting), false);
  for (let i = 0; i < sent; i++) (await reliable.recv()).release();
  await Promise.all([waiting, drained]);
  assert.equal((await reliable.recv()).text(), 'at last');
  assert.equal(pub.used, 64);
});

scene('where a subscriber begins', async ({ path, own }) => {
  const pub = own(await Topic.create(path('t')).publisher());
  await publish(pub, 5);
  const begins = async (/** @type {any} */ policy, /** @type {any} */ options) => {
    const sub = await Topic.open(path('t')).subscriber(policy, options);
    const found = all(sub);
    sub.close();
    return found.replaceAll(/:m\d/g, '');
  };
  for (const policy of ['reliable', 'lossy']) {
    assert.equal(await begins(policy, { start: 'oldest' }), '1:0 2:0 3:0 4:0 5:0');
    assert.equal(await begins(policy, { start: 'now' }), '');
    assert.equal(await begins(policy, { history: 2 }), '4:0 5:0');
    assert.equal(await begins(policy, { history: 99 }), '1:0 2:0 3:0 4:0 5:0');
    assert.equal(await begins(policy, { history: 0 }), '');
    assert.equal(await begins(policy, { afterSeq: 3 }), '4:0 5:0');
    assert.equal(await begins(policy, { afterSeq: 99 }), '');
  }
  assert.equal(await begins('reliable', {}), '1:0 2:0 3:0 4:0 5:0');
  assert.equal(await begins('lossy', {}), '');
  pub.skipSeq(41);
  await pub.send('m5');
  assert.equal(pub.seq, 47);
  assert.equal(await begins('lossy', { afterSeq: 5 }), '47:41');
  const small = own(await Topic.create(path('small'), { capacity: 4096 }).publisher());
  await publish(small, 500);
  const late = own(await Topic.open(path('small')).subscriber('lossy', { afterSeq: 10 }));
  const first = await late.recv();
  assert.deepEqual([first.seq, late.lost], [11 + first.lost, first.lost]);
  assert.ok(first.lost > 400);
});

scene('the newest message, and what skipping leaves out', async ({ path, own }) => {
  const pub = own(await Topic.create(path('t')).publisher());
  const sub = own(await Topic.open(path('t')).subscriber());
  const lossy = own(await Topic.open(path('t')).subscriber('lossy'));
  const latest = own(await Topic.open(path('t')).subscriber('latest'));
  await publish(pub, 10);
  const newest = latest.latest();
  assert.equal(latest.latest(), newest);
  assert.equal(sub.latest()?.text(), 'm9');
  assert.equal((await sub.recv()).text(), 'm0'); // as it was
  assert.deepEqual([sub.skipToNewest(), all(sub), sub.lost], [8, '10:m9:0', 0]);
  assert.deepEqual([lossy.skipToNewest(), all(lossy), lossy.lost], [9, '10:m9:0', 0]);
  assert.throws(() => latest.skipToNewest(), code('UNSUPPORTED'));
  await assert.rejects(sub.waitNewer(), code('UNSUPPORTED'));
  await assert.rejects(latest.waitNewer({ timeout: 20 }), code('TIMED_OUT'));
  const newer = latest.waitNewer();
  await publish(pub, 1, 10);
  assert.equal((await newer).seq, 11);
  const seen = [];
  const looping = (async () => {
    for await (const message of latest.newest()) {
      seen.push(message.seq);
      await sleep(1);
    }
  })();
  for (let i = 0; i < 50; i++) {
    await publish(pub, 10, 11 + 10 * i);
    await turn();
  }
  await eventually('the newest', () => seen.at(-1) === 511);
  assert.ok(seen.length < 200, `${seen.length}`);
  const jumps = [];
  const jumping = (async () => {
    for await (const message of sub.newest()) jumps.push(message.seq);
  })();
  await eventually('the newest one of a reliable one', () => jumps.at(-1) === 511);
  assert.equal(newest?.text(), 'm9'); // its own
  pub.close();
  await Promise.all([looping, jumping]);
});

scene('every way of receiving, under every policy', async ({ path, own }) => {
  for (const [policy, mayEject] of /** @type {const} */ ([
    ['reliable', false],
    ['reliable', true],
    ['lossy', false],
    ['latest', false],
  ])) {
    const name = path(`${policy}-${mayEject}`);
    const pub = own(await Topic.create(name, { mayEject }).publisher());
    const sub = own(await Topic.open(name).subscriber(policy));
    const target = new Uint8Array(16);
    let seq = 0;
    const next = () => pub.trySend(`number ${++seq}`, { typeId: 3, tag: seq });
    const is = (/** @type {any} */ message, data = message.data) => {
      assert.deepEqual(
        [message.seq, message.lost, message.typeId, message.tag, message.length],
        [seq, 0, 3, BigInt(seq), data.length],
      );
      assert.equal(new TextDecoder().decode(data), `number ${seq}`);
    };
    next();
    is(sub.tryRecv());
    next();
    is(sub.recvSync({ allowMainThread }));
    next();
    const into = await sub.recvInto(target);
    is(into, target.subarray(0, into.length));
    assert.equal(into.time, 0n);
    next();
    await assert.rejects(sub.recvInto(new Uint8Array(3)), code('TOO_LARGE'));
    const again = /** @type {any} */ (sub.tryRecvInto(target));
    is(again, target.subarray(0, again.length));
    next();
    const batch = await sub.recvBatch();
    is(batch.at(0), batch.bytes.subarray(batch.offset(0), batch.offset(0) + batch.size(0)));
    batch.release();
    const events = once(sub, 'message');
    next();
    const [message] = await events;
    assert.equal(message.seq, seq);
    const reader = sub.readable.getReader();
    next();
    assert.equal(new TextDecoder().decode((await reader.read()).value), `number ${seq}`);
    reader.releaseLock();
    await pub.sendTensor({ data: new Float32Array([1, 2, 3]), shape: [3] });
    seq += 1;
    const tensor = (await sub.recv()).tensor();
    assert.deepEqual([tensor.dtype, [.../** @type {any} */ (tensor.data)]], ['float32', [1, 2, 3]]);
    if (policy === 'latest') continue;
    for (let i = 0; i < 300; i++) next();
    let expected = seq - 300;
    for await (const one of sub) {
      assert.equal(one.text(), `number ${++expected}`);
      if (expected === seq) break;
    }
    for (let i = 0; i < 300; i++) next();
    for await (const many of sub.batches({ max: 77 })) {
      const { bytes } = many;
      for (let i = 0; i < many.length; i++) {
        const text = bytes.subarray(many.offset(i), many.offset(i) + many.size(i));
        assert.equal(new TextDecoder().decode(text), `number ${++expected}`);
        assert.deepEqual(many.at(i)?.copy(), text.slice());
      }
      if (expected === seq) break;
    }
    assert.equal(sub.tryRecv(), null);
  }
});

scene('what a subscriber gets is its own', async ({ path, own }) => {
  const pub = own(await Topic.create(path('t')).publisher());
  const subs = [];
  for (const policy of /** @type {const} */ (['reliable', 'lossy', 'latest', 'lossy'])) {
    subs.push(own(await Topic.open(path('t')).subscriber(policy)));
  }
  await publish(pub, 3);
  for (const sub of subs) {
    const kept = [];
    for await (const message of sub) {
      const { data } = message;
      assert.equal(new TextDecoder().decode(data), message.text());
      kept.push(data);
      data.fill(0x78);
      structuredClone(data, { transfer: [/** @type {ArrayBuffer} */ (data.buffer)] });
      if (message.seq === 3) break;
    }
    assert.deepEqual(
      kept.map((data) => data.length),
      kept.map(() => 0),
    );
  }
  await publish(pub, 1, 3);
  const [message] = [await subs[0]?.recv()];
  const data = message?.data;
  message?.release();
  assert.throws(() => message?.data, code('DETACHED'));
  for (let i = 0; i < 40_000; i++) pub.trySend('y'.repeat(100)) || all(/** @type {any} */ (subs[0]));
  assert.equal(new TextDecoder().decode(data), 'm3');
});

scene('a message that is overwritten while it is read says nothing of the next one', async ({ path, own }) => {
  const open = Topic.create(path('t'), { capacity: 4096, lossyOnly: true });
  const pub = own(await open.publisher());
  const sub = own(await Topic.open(path('t')).subscriber('lossy'));
  await publish(pub, 1);
  // The header of a frame, over and over: 8 bytes long, with a number that is not exact as a `number`.
  const payload = new Int32Array(992 / 4).map((_, at) => [8, 0, 0, 0, -15, 0x7fff_ffff, 0, 0][at % 8] ?? 0);
  const { half } = /** @type {any} */ (sub);
  const check = half.isOvertaken;
  half.isOvertaken = () => {
    // After the first check, and before anything of the frame is read.
    half.isOvertaken = check;
    const overtaken = check.call(half);
    for (let i = 0; i < 4; i++) pub.trySend(new Uint8Array(payload.buffer));
    return overtaken;
  };
  const message = sub.tryRecv();
  assert.ok(message !== null && message.seq > 1, `${message?.seq}`);
  assert.deepEqual([message.lost, message.length], [message.seq - 1, 992]);
});

scene('a lossy subscriber that is lapped all the time never blocks the loop', async ({ path, own }) => {
  const flood = own(program('peer/topic.mjs', 'flood', path('t')));
  const sub = own(await Topic.open(path('t'), { timeout: LONG }).subscriber('lossy'));
  let [received, next, turns] = [0, 0, 0];
  const timer = setInterval(() => turns++, 1);
  const until = performance.now() + 500;
  for await (const message of sub) {
    if (next !== 0) assert.equal(message.seq, next + message.lost);
    assert.equal(message.text(), `${message.seq - 1}`);
    next = message.seq + 1;
    received += 1;
    if (performance.now() > until) break;
  }
  clearInterval(timer);
  assert.ok(received > 100 && turns > 20, `${received} messages, ${turns} turns`);
  await flood.kill();
  for (;;) {
    // What is left, then the death.
    const end = await sub.recv().then(
      () => null,
      (error) => error,
    );
    if (end !== null) {
      assert.ok(code('PEER_DEAD')(end));
      break;
    }
  }
});

scene('labels and durable cursors, closed and killed', async ({ path, own }) => {
  const pub = own(await Topic.create(path('t'), { capacity: 4096 }).publisher());
  const child = own(program('peer/topic.mjs', 'subscribe', path('t'), 'recorder'));
  assert.equal(await child.line(), 'ready');
  await pub.waitForSubscribers(1, { timeout: LONG });
  await assert.rejects(Topic.open(path('t')).subscriber('reliable', { label: 'recorder' }), code('BUSY'));
  await publish(pub, 3);
  for (const line of ['1 m0', '2 m1']) assert.equal(await child.line(), line);
  await child.kill();
  // It is waited for all the while.
  let sent = 3;
  while (pub.trySend(`m${sent}`)) sent += 1;
  assert.ok(sent <= 65, `${sent}`);
  await sleep(250);
  assert.equal(pub.trySend('x'), false);
  await eventually('its death is seen', () => pub.subscribers()[0]?.alive === false);
  const again = { label: 'recorder', durable: true, timeout: LONG };
  const sub = own(await Topic.open(path('t')).subscriber('reliable', again));
  const message = await sub.recv();
  assert.deepEqual([message.seq, message.text()], [2, 'm1']);
  sub.close(); // with the message in hand
  const third = own(await Topic.open(path('t')).subscriber('reliable', again));
  assert.equal((await third.recv()).seq, 2);
  (await third.recv()).release();
  third.close();
  const fourth = own(await Topic.open(path('t')).subscriber('reliable', again));
  assert.equal((await fourth.recv()).seq, 4);
  fourth.unsubscribe();
  assert.deepEqual(pub.subscribers(), []);
  for (let i = 0; i < 200; i++) assert.ok(pub.trySend('nobody waits'));
});

scene('an ejected subscriber is told how many it lost, and goes on', async ({ path, own }) => {
  const topic = Topic.create(path('t'), { capacity: 4096, mayEject: true });
  const pub = own(await topic.publisher({ ejectAfter: 50 }));
  const sub = own(await Topic.open(path('t')).subscriber());
  await publish(pub, 1);
  assert.equal((await sub.recv()).text(), 'm0');
  await publish(pub, 200, 1);
  assert.equal(pub.subscribers()[0]?.ejected, true);
  const lagged = /** @type {any} */ (await sub.recv().catch((error) => error));
  assert.ok(lagged instanceof RamwayError && code('LAGGED')(lagged));
  const message = await sub.recv();
  assert.equal(message.seq, 2 + Number(lagged.lost));
  assert.equal(message.lost, 0);
  assert.equal(sub.lost, lagged.lost);
  assert.equal(pub.subscribers()[0]?.ejected, false);
  let last = message.seq;
  for (let next = sub.tryRecv(); next !== null; next = sub.tryRecv()) last = next.seq;
  assert.equal(last, 201);
  // A loop ends with it, and another one goes on.
  await publish(pub, 200, 201);
  let [got, lost] = [0, 0];
  while (last < 401) {
    try {
      for await (const one of sub) {
        got += 1;
        last = one.seq;
        if (last === 401) break;
      }
    } catch (error) {
      lost += /** @type {any} */ (error).lost;
    }
  }
  assert.equal(got + lost, 200);
});

scene('a subscriber that was killed no longer holds the publisher back', async ({ path, own }) => {
  const pub = own(await Topic.create(path('t'), { capacity: 4096 }).publisher());
  const child = own(program('peer/topic.mjs', 'subscribe', path('t'), '-'));
  assert.equal(await child.line(), 'ready');
  child.stop();
  while (pub.trySend('x'));
  const waiting = pub.send('after its death');
  await sleep(30);
  assert.equal(await settled(waiting), false);
  await child.kill();
  await waiting;
  assert.deepEqual(pub.subscribers(), []);
});

scene('a publisher that was killed, and its successor', async ({ path, own }) => {
  const child = own(program('peer/topic.mjs', 'publish', path('t'), '3'));
  assert.equal(await child.line(), 'published 3');
  const sub = own(await Topic.open(path('t')).subscriber());
  const latest = own(await Topic.open(path('t')).subscriber('latest'));
  await assert.rejects(Topic.open(path('t')).publisher(), code('BUSY'));
  assert.equal(all(sub), '1:0:0 2:1:0 3:2:0');
  assert.equal((await latest.recv()).seq, 3);
  const waiting = [sub.recv(), latest.recv()];
  // Whichever is the first to fail, both are asked.
  for (const wait of waiting) wait.catch(() => {});
  await child.kill();
  for (const wait of waiting) await assert.rejects(wait, code('PEER_DEAD'));
  assert.equal(latest.latest()?.seq, 3); // whether or not the publisher is there
  const successor = Topic.open(path('t'), { timeout: LONG }).publisher();
  await sub.waitForPeer({ timeout: LONG });
  const pub = own(await successor);
  assert.deepEqual([pub.epoch, pub.seq], [2, 3]);
  await pub.send('from the second');
  assert.equal(all(sub), '4:from the second:0');
  assert.equal((await latest.recv()).seq, 4);
  pub.abandon();
  await assert.rejects(sub.recv(), code('PEER_DEAD'));
});

scene('waiting for subscribers, for nothing, and until it is given up', async ({ path, own }) => {
  const pub = own(await Topic.create(path('t'), { capacity: 4096, slots: 4 }).publisher());
  await assert.rejects(pub.waitForSubscribers(1, { timeout: 20 }), code('TIMED_OUT'));
  await assert.rejects(pub.waitForSubscribers(5), code('INVALID_ARGUMENT'));
  assert.throws(() => pub.waitForSubscribersSync(1, { timeout: 20, allowMainThread }), code('TIMED_OUT'));
  const both = pub.waitForSubscribers(2);
  const one = own(await Topic.open(path('t')).subscriber());
  assert.equal(await settled(both), false);
  const two = own(await Topic.open(path('t')).subscriber());
  await both;
  const lossy = own(await Topic.open(path('t')).subscriber('lossy'));
  for (const sub of [one, two, lossy]) {
    const controller = new AbortController();
    const waiting = sub.recv({ signal: controller.signal });
    await sleep(5);
    controller.abort(new Error('enough'));
    await assert.rejects(waiting, /enough/);
    await assert.rejects(sub.recv({ timeout: 10 }), code('TIMED_OUT'));
  }
  while (pub.trySend('x'));
  const controller = new AbortController();
  const blocked = pub.send('x', { signal: controller.signal });
  setTimeout(() => controller.abort(new Error('no more')), 10);
  await assert.rejects(blocked, /no more/);
  const given = new AbortController();
  const opening = Topic.open(path('t'), { timeout: LONG }).publisher({ signal: given.signal });
  setTimeout(() => given.abort(new Error('not any more')), 10);
  await assert.rejects(opening, /not any more/);
  const waiting = one.recv(); // 64 are there
  await waiting;
  one.close();
  await assert.rejects(one.recv(), code('DETACHED'));
});

scene('a subscriber that may only read is asked every millisecond', async ({ path, own }) => {
  const pub = own(await Topic.create(path('t')).publisher());
  const subs = [];
  for (const policy of /** @type {const} */ (['lossy', 'latest'])) {
    subs.push(own(await Topic.open(path('t')).subscriber(policy, { readOnly: true })));
  }
  assert.deepEqual(pub.subscribers(), []);
  for (let i = 0; i < 3; i++) {
    const waiting = subs.map((sub) => sub.recv());
    await sleep(20);
    await publish(pub, 1, i);
    for (const wait of waiting) assert.equal((await wait).text(), `m${i}`);
  }
  for (const sub of subs) await assert.rejects(sub.recv({ timeout: 10 }), code('TIMED_OUT'));
  const waiting = subs.map((sub) => sub.recv());
  for (const wait of waiting) wait.catch(() => {});
  pub.close();
  for (const wait of waiting) await assert.rejects(wait, code('CLOSED'));
});

scene('options that do not belong there, or say nothing', async ({ path, own }) => {
  own(await Topic.create(path('t'), { lossyOnly: true }).publisher());
  const open = Topic.open(path('t'));
  await assert.rejects(open.subscriber(), code('UNSUPPORTED'));
  own(await open.subscriber('lossy'));
  const wrong = [
    () => Topic.create(path('u'), { capacity: 4096, slots: 0 }).publisher(),
    () => Topic.create(path('u'), { lossyOnly: true, mayEject: true }).publisher(),
    () => Topic.create(path('u'), { align: 16 }).publisher(),
    () => Topic.create(path('u')).publisher({ ejectAfter: 0 }),
    () => open.subscriber(/** @type {any} */ ('newest')),
    () => open.subscriber('lossy', { durable: true, label: 'x' }),
    () => open.subscriber('reliable', { durable: true }),
    () => open.subscriber('latest', { start: 'oldest' }),
    () => open.subscriber('lossy', { start: 'now', history: 3 }),
    () => open.subscriber('lossy', { label: 'x'.repeat(65) }),
    () => open.subscriber('reliable', { readOnly: true }),
    () => Topic.openOrCreate(path('t')).subscriber('lossy', { readOnly: true }),
    () => open.subscriber('lossy', /** @type {any} */ ({ ejectAfter: 3 })),
    () => open.publisher(/** @type {any} */ ({ label: 'x' })),
  ];
  for (const call of wrong) await assert.rejects(call, code('INVALID_ARGUMENT'), String(call));
  assert.throws(() => Topic.open(path('t'), { discard: true }), code('INVALID_ARGUMENT'));
  await assert.rejects(Topic.open(path('t'), { capacity: 4096 }).subscriber('lossy'), code('INVALID_ARGUMENT'));
  await assert.rejects(Topic.open(path('gone')).subscriber(), code('NOT_FOUND'));
  await assert.rejects(Ring.open(path('t')).receiver(), code('INVALID_ARGUMENT'));
  const kept = await Topic.create(path('kept'), { persistent: true }).publisher();
  kept.close();
  assert.ok(existsSync(path('kept')));
});

/**
 * What nobody but a hostile publisher writes, where in the file; and what a reliable, a lossy and a latest subscriber make of it:
 * C is ERR_RAMWAY_CORRUPT, a number the message, - nothing.
 * @type {[string, number, bigint, string][]}
 */
const scribbles = [
  ['tail, by one', 0x480, 161n, 'C C 2'],
  ['tail, beyond the capacity', 0x480, 128n + 65536n, 'C C C'],
  ['tail, far away', 0x480, 1n << 63n, 'C C C'],
  ['tail, back', 0x480, 0n, 'C C C'],
  ['last, by one', 0x488, 65n, '2 2 C'],
  ['last, far away', 0x488, 1n << 40n, '2 2 -'],
  ['claim, far away', 0x500, 1n << 62n, '2 - -'],
  ['a length', 0, 0xffff_ffffn, 'C C C'],
  ['a number', 16, 0n, 'C C C'],
];

for (const [what, offset, value, expected] of scribbles) {
  scene(`scribbled over: ${what}`, async ({ path, own }) => {
    const pub = own(await Topic.create(path('t'), { capacity: 65536 }).publisher());
    const subs = [];
    for (const policy of /** @type {const} */ (['reliable', 'lossy', 'latest'])) {
      subs.push(own(await Topic.open(path('t')).subscriber(policy)));
    }
    await publish(pub, 1);
    for (const sub of subs) (await sub.recv()).release();
    await publish(pub, 1, 1);
    const file = openSync(path('t'), 'r+');
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(value);
    // The data follows the header page and two pages of slots; the second message is at 64.
    writeSync(file, bytes, 0, 8, offset < 0x100 ? 3 * 4096 + 64 + offset : offset);
    closeSync(file);
    const found = [];
    for (const sub of subs) {
      const outcome = () => {
        try {
          return String(sub.tryRecv()?.seq ?? '-');
        } catch (error) {
          assert.ok(code('CORRUPT')(error));
          return 'C';
        }
      };
      found.push(outcome());
      // It stays dead, says so, and closes as any other.
      if (found.at(-1) === 'C') assert.equal(outcome(), 'C');
      sub.close();
      assert.equal(sub.closed, true);
    }
    assert.equal(found.join(' '), expected);
    pub.close();
  });
}
