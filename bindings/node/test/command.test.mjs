// Topics between this and the `ramway` command: pub and sub, each of which may be killed.
import assert from 'node:assert/strict';
import { Topic } from '../index.mjs';
import { code, LONG, Process, scene } from './scene.mjs';

/** The command at work. @param {(name: string) => string} path @param {string[]} args */
function ramway(path, ...args) {
  const program = process.env.RAMWAY_CLI;
  assert.ok(program, 'RAMWAY_CLI names the binary ramway: the runner sets it');
  return new Process(program, args, { RAMWAY_DIR: path('') });
}

scene('ramway pub publishes for subscribers of every policy', async ({ path, own }) => {
  const topic = Topic.openOrCreate(path('t'));
  const [reliable, lossy, latest] = await Promise.all(
    /** @type {const} */ (['reliable', 'lossy', 'latest']).map(async (policy) => own(await topic.subscriber(policy))),
  );
  const pub = own(ramway(path, 'pub', '--lines', '--timestamps', '--type-id', '9', 't'));
  for (const line of ['one', 'two']) pub.tell(line);
  await pub.finish();
  for (const sub of [reliable, lossy]) {
    for (const line of ['one\n', 'two\n']) {
      const message = await sub.recv({ timeout: LONG });
      assert.deepEqual([message.text(), message.typeId, message.lost], [line, 9, 0]);
      assert.ok(message.time > 0n);
    }
    await assert.rejects(sub.recv({ timeout: LONG }), code('CLOSED'));
  }
  assert.equal(latest.latest()?.text(), 'two\n');
});

scene('ramway sub receives what this publishes', async ({ path, own }) => {
  const pub = own(await Topic.create(path('t')).publisher());
  const sub = own(ramway(path, 'sub', '--reliable', '--count', '3', 't'));
  await pub.waitForSubscribers(1, { timeout: LONG });
  for (const line of ['a\n', 'b\n', 'c\n']) await pub.send(line);
  assert.deepEqual([await sub.line(), await sub.line(), await sub.line()], ['a', 'b', 'c']);
  assert.deepEqual(await sub.finish(), []);
});

scene('ramway sub that is killed holds up no publisher', async ({ path, own }) => {
  const pub = own(await Topic.create(path('t'), { capacity: 4096 }).publisher());
  const sub = own(ramway(path, 'sub', '--reliable', 't'));
  await pub.waitForSubscribers(1, { timeout: LONG });
  // Stopped, it blocks the publisher: a full log, and nobody reads.
  sub.stop();
  let sent = 0;
  while (pub.trySend(new Uint8Array(500))) sent += 1;
  assert.ok(sent > 0 && sent < 9, `${sent} were sent`);
  const blocked = pub.send('more', { timeout: LONG });
  await sub.kill();
  await blocked;
  for (let i = 0; i < 50; i++) await pub.send(new Uint8Array(500), { timeout: LONG });
  assert.deepEqual(
    pub.subscribers().filter(({ alive }) => alive),
    [],
  );
});

scene('ramway pub that is killed is a death, and its successor goes on', async ({ path, own }) => {
  const sub = own(await Topic.openOrCreate(path('t')).subscriber());
  const first = own(ramway(path, 'pub', '--lines', 't'));
  first.tell('one');
  assert.equal((await sub.recv({ timeout: LONG })).text(), 'one\n');
  await first.kill();
  await assert.rejects(sub.recv({ timeout: LONG }), code('PEER_DEAD'));
  const second = own(ramway(path, 'pub', '--lines', 't'));
  second.tell('two');
  await sub.waitForPeer({ timeout: LONG });
  const message = await sub.recv({ timeout: LONG });
  assert.deepEqual([message.text(), message.seq, message.lost], ['two\n', 2, 0]);
  await second.finish();
  await assert.rejects(sub.recv({ timeout: LONG }), code('CLOSED'));
});
