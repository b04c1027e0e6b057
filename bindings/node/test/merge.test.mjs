// Many sources in one loop: who comes when, who ends it, and what it costs that most of them are idle.
import assert from 'node:assert/strict';
import { merge, Ring, Topic } from '../index.mjs';
import { code, eventually, pair, program, scene, settled, sleep } from './scene.mjs';

scene('the messages of rings and topics, each with the one that it is of', async ({ path, own }) => {
  const [tx, rx] = pair(own);
  const pub = own(await Topic.create(path('t')).publisher());
  const lossy = own(await Topic.open(path('t')).subscriber('lossy'));
  const latest = own(await Topic.open(path('t')).subscriber('latest'));
  /** @type {string[]} */ const got = [];
  const looping = (async () => {
    for await (const [who, message] of merge(rx, lossy, latest)) {
      got.push(`${who === rx ? 'ring' : /** @type {any} */ (who).policy} ${message.text()}`);
    }
  })();
  await eventually('it waits', () => pub.trySend('a'));
  await eventually('both have it', () => got.length === 2);
  assert.throws(() => rx.tryRecv(), code('BUSY'));
  await assert.rejects(lossy.recv(), code('BUSY'));
  await tx.send('b');
  await eventually('the ring too', () => got.length === 3);
  tx.close(); // drops out
  await pub.send('c');
  await eventually('the others go on', () => got.length === 5);
  assert.equal(await settled(looping), false);
  pub.close();
  await looping;
  assert.deepEqual(got.sort(), ['latest a', 'latest c', 'lossy a', 'lossy c', 'ring b']);
});

scene('one after the other where several have messages', async ({ own }) => {
  const pairs = [pair(own, 65536), pair(own, 65536), pair(own, 65536)];
  for (const [index, [tx]] of pairs.entries()) for (let i = 0; i < 100; i++) tx.trySend(`${index}`);
  let order = '';
  for await (const [, message] of merge(...pairs.map(([, rx]) => rx))) {
    order += message.text();
    if (order.length === 300) break;
  }
  assert.equal(order, '012'.repeat(100));
  // They are open, and nobody has them.
  for (const [tx, rx] of pairs) {
    await tx.send('after');
    assert.equal((await rx.recv()).text(), 'after');
  }
});

scene('what ends one of them ends the loop; a signal too', async ({ path, own }) => {
  const [tx, rx] = pair(own);
  const child = own(program('peer/topic.mjs', 'publish', path('t'), '1'));
  assert.equal(await child.line(), 'published 1');
  const sub = own(await Topic.open(path('t')).subscriber());
  const loop = async (/** @type {AbortSignal} */ signal) => {
    for await (const [, message] of merge(rx, sub, { signal })) message.release();
  };
  const controller = new AbortController();
  const looping = loop(controller.signal);
  await sleep(20);
  controller.abort(new Error('enough'));
  await assert.rejects(looping, /enough/);
  await assert.rejects(loop(controller.signal), /enough/);
  const again = loop(new AbortController().signal);
  again.catch(() => {});
  await sleep(20);
  await child.kill();
  await assert.rejects(again, code('PEER_DEAD'));
  const last = loop(new AbortController().signal);
  await assert.rejects(last, code('PEER_DEAD'));
  await tx.send('there');
  assert.equal(rx.tryRecv()?.text(), 'there');
  const closing = (async () => {
    for await (const [, message] of merge(rx)) message.release();
  })();
  await sleep(5);
  rx.close();
  await assert.rejects(closing, code('DETACHED'));
  await assert.rejects(merge(rx).next(), code('DETACHED'));
  assert.throws(() => merge(sub, /** @type {any} */ ({ timeout: 3 })), code('INVALID_ARGUMENT'));
  assert.deepEqual(await merge().next(), { done: true, value: undefined });
});

scene('a hundred sources of which one is busy: the others are not looked at', async ({ path, own }) => {
  const subs = [];
  for (let i = 0; i < 99; i++) {
    await Topic.openOrCreate(path(`idle${i}`), { capacity: 4096 })
      .publisher()
      .then(own);
    subs.push(own(await Topic.open(path(`idle${i}`)).subscriber('lossy')));
  }
  const pub = own(await Topic.create(path('busy')).publisher());
  const busy = own(await Topic.open(path('busy')).subscriber());
  subs.push(busy);
  const count = 20_000;
  const timeOf = async (/** @type {typeof subs} */ sources) => {
    let got = 0;
    const sending = (async () => {
      for (let i = 0; i < count; i++) await pub.send('x');
    })();
    const began = performance.now();
    for await (const [who, message] of merge(...sources)) {
      assert.ok(who === busy && message.length === 1);
      if (++got === count) break;
    }
    await sending;
    return performance.now() - began;
  };
  await timeOf([busy]);
  const alone = Math.min(await timeOf([busy]), await timeOf([busy]));
  const among = Math.min(await timeOf(subs), await timeOf(subs));
  // Were all looked at for each message it would be a hundred times.
  assert.ok(among < 20 * alone, `${among} ms among a hundred, ${alone} ms alone`);
  await pub.send('last');
  const all = merge(...subs);
  assert.equal((await all.next()).value[1].text(), 'last');
  await all.return?.();
});

scene('a loop over many lets timers run', async ({ path, own }) => {
  own(program('peer/topic.mjs', 'flood', path('t')));
  const sub = own(await Topic.open(path('t'), { timeout: 30_000 }).subscriber());
  const rx = own(await Ring.create(path('r')).receiver());
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  // Of this process's own time: on a busy machine it may get little of it in a second.
  const used = () => process.cpuUsage().user + process.cpuUsage().system;
  const until = used() + 300_000;
  let next = 0;
  for await (const [, message] of merge(rx, sub)) {
    const { seq } = /** @type {any} */ (message);
    assert.ok(next === 0 || seq === next);
    next = seq + 1;
    if (used() > until) break;
  }
  clearInterval(timer);
  assert.ok(turns > 10, `${turns}`);
});
