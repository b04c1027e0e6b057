// A peer that writes whatever it likes into the shared memory: ERR_RAMWAY_CORRUPT, never a crash, never a wrong byte
// taken for a right one, and everything else goes on.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { Ring } from '../index.mjs';
import { hex32, hex64, WORD, writeRing } from './image.mjs';
import { check, code, connected, eventually, fromPeer, made, scene, sleep, toPeer } from './scene.mjs';

/** What a receiver can be asked. @type {Record<string, (rx: any) => Promise<unknown>>} */
const receives = {
  recv: (rx) => rx.recv(),
  tryRecv: async (rx) => rx.tryRecv(),
  recvBatch: (rx) => rx.recvBatch(),
  recvInto: (rx) => rx.recvInto(new Uint8Array(65536)),
  recvSync: async (rx) => rx.recvSync({ allowMainThread: true, timeout: 1000 }),
  messages: async (rx) => {
    for await (const message of rx) check(2, message);
  },
  batches: async (rx) => {
    for await (const batch of rx.batches()) check(2, batch.at(0));
  },
  event: (rx) => new Promise((_, reject) => rx.on('message', () => {}).on('error', reject)),
};

const names = Object.keys(receives);
let turnOf = 0;
/** Each of them in turn. */
const some = () => names[turnOf++ % names.length];

/** After two messages that take 32 bytes each, both received, the first released. @type {[string, bigint][]} */
const tails = [
  ['back to the head', 0n],
  ['back to the first message', 16n],
  ['forward past the capacity', 64n + 65536n + 16n],
  ['forward by almost 2^32', 2n ** 32n - 16n],
  ['forward by 2^31', 2n ** 31n],
  ['to the last position of all', 2n ** 64n - 16n],
  ['by one', 65n],
  ['by eight', 72n],
];

for (const [what, tail] of tails) {
  scene(`the sender's position jumps: ${what}`, async (here) => {
    for (const over of ['ring', 'bus']) {
      const place = { ...here, path: (/** @type {string} */ name) => here.path(`${over}-${name}`) };
      const [end, peer] = over === 'ring' ? await fromPeer(place, { capacity: 65536 }) : await connected(place);
      await peer.does('send 2 16 0', 'sent');
      check(0, await end.recv());
      check(1, await end.recv());
      await peer.does(`write ${WORD.tail} ${hex64(tail)}`, 'written');
      const how = some();
      await assert.rejects(async () => receives[how](end), code('CORRUPT'), how);
      // It stays dead, says so, and closes as any other.
      await peer.does(`write ${WORD.tail} ${hex64(64n)}`, 'written');
      await assert.rejects(end.recv(), code('CORRUPT'));
      assert.throws(() => end.tryRecv(), code('CORRUPT'));
      end.close();
      assert.equal(end.closed, true);
    }
  });
}

scene("the sender's position jumps while we wait", async (here) => {
  for (const how of names) {
    if (how === 'tryRecv' || how === 'recvSync') continue;
    const place = { ...here, path: (/** @type {string} */ name) => here.path(`${how}-${name}`) };
    const [bus, peer] = await connected(place);
    await peer.does('send 2 16 0', 'sent');
    (await bus.recvBatch()).release();
    const waiting = receives[how](bus);
    waiting.catch(() => {});
    await sleep(10);
    await peer.does(`write ${WORD.tail} ${hex64(25n)}`, 'written');
    // Publishes nothing, and wakes us.
    peer.tell('close');
    await assert.rejects(waiting, code('CORRUPT'), how);
  }
});

for (const [what, length] of /** @type {[string, number][]} */ ([
  ['one byte more than was published', 17],
  ['more than the ring', 65537],
  ['the longest of all rings', 2 ** 31 - 17],
  ['too long for all rings', 2 ** 31 - 16],
  ['negative', 2 ** 31],
  ['zero with its header', 2 ** 32 - 16],
  ['one with its header', 2 ** 32 - 15],
  ['the largest', 2 ** 32 - 1],
])) {
  scene(`the length of a frame is rewritten: ${what}`, async (here) => {
    const [bus, peer] = await connected(here);
    await peer.does('send 2 16 0', 'sent');
    await peer.does(`frame 32 ${hex32(length)}`, 'written');
    // The one before it is as it was.
    check(0, await bus.recv());
    const how = some();
    await assert.rejects(async () => receives[how](bus), code('CORRUPT'), how);
    await assert.rejects(bus.recv(), code('CORRUPT'));
  });
}

scene('a frame in the middle of a batch is rewritten: nothing of it is given out as a message', async (here) => {
  const [bus, peer] = await connected(here);
  await peer.does('send 10 16 0', 'sent');
  await peer.does(`frame ${5 * 32} ${hex32(2 ** 32 - 1)}`, 'written');
  let seq = 0;
  await assert.rejects(async () => {
    for await (const batch of bus.batches()) for (const message of batch) check(seq++, message);
  }, code('CORRUPT'));
  assert.ok(seq === 0 || seq === 5, `${seq}`);
});

scene('the header of a message that we hold is rewritten: its length is what it was', async (here) => {
  const [bus, peer] = await connected(here);
  await peer.does('send 3 16 0', 'sent');
  const message = await bus.recv();
  const { data } = message;
  await peer.does(`frame 0 ${hex32(2 ** 31)}${'ff'.repeat(12)}`, 'written');
  assert.deepEqual([message.length, data.length, message.copy().length, message.typeId], [16, 16, 16, 0]);
  check(0, message);
  message.release();
  check(1, await bus.recv());
  const batch = await bus.recvBatch();
  await peer.does(`frame 64 ${hex32(0)}`, 'written');
  assert.deepEqual([batch.length, batch.at(0)?.length, batch.at(0)?.data.length], [1, 16, 16]);
  batch.release();
  await peer.does('send 1 16 3', 'sent');
  check(3, await bus.recv());
});

for (const [what, head] of /** @type {[string, bigint][]} */ ([
  ['ahead of what we sent', 8192n],
  ['back', 0n],
  ['by one', 33n],
  ['by eight', 40n],
  ['far ahead', 2n ** 31n],
  ['to the last position of all', 2n ** 64n - 16n],
])) {
  scene(`the receiver's position jumps: ${what}`, async (here) => {
    const [tx, peer] = await toPeer(here, { capacity: 4096 });
    await tx.send(made(0, 16).bytes, made(0, 16).options);
    await peer.does('recv 1', 'received', { next: 1 });
    // Seen by us: a later one must not lie before it.
    while (tx.trySend(new Uint8Array(1000)));
    await peer.does(`write ${WORD.head} ${hex64(head)}`, 'written');
    await assert.rejects(async () => {
      for (let n = 0; n < 10; n++) await tx.send(new Uint8Array(1000), { timeout: 2000 });
    }, code('CORRUPT'));
    assert.throws(() => tx.trySend('x'), code('CORRUPT'));
    await assert.rejects(tx.send('x'), code('CORRUPT'));
    tx.close();
  });
}

scene('flags, epochs, wait words, geometry and last-tag records of garbage are no error', async (here) => {
  const [bus, peer] = await connected(here);
  for (const role of [WORD.producer, WORD.consumer]) {
    await peer.does(`write ${role.wait} ${hex32(0xdeadbeef)}`, 'written');
  }
  await peer.does(`write ${WORD.producer.epoch} ${hex32(77)}`, 'written');
  await peer.does(`write ${WORD.producer.flags} ${hex32(0xfffffff8)}`, 'written');
  await peer.does(`write ${0x488} ${'ff'.repeat(32)}`, 'written');
  await peer.does(`write ${0x400} ${'ff'.repeat(32)}`, 'written');
  await peer.does(`write 0 ${'ff'.repeat(64)}`, 'written');
  // A wait word that is set again and again costs system calls, not more.
  peer.tell('send 1000 mixed 0');
  for (let seq = 0; seq < 1000; seq++) check(seq, await bus.recv());
  await peer.said('sent');
  await bus.send('there');
});

scene(
  'garbage over the whole of a block, again and again: some error or none, and this process lives',
  async (here) => {
    let random = 12345;
    const next = () => (random = (Math.imul(random, 1103515245) + 12345) >>> 0);
    const seen = new Set();
    for (let round = 0; round < 25; round++) {
      const place = { ...here, path: (/** @type {string} */ name) => here.path(`${round}-${name}`) };
      const [bus, peer] = await connected(place, 4096);
      await peer.does(`send ${1 + ((next() >>> 8) % 20)} 16 0`, 'sent');
      for (let write = 0; write < 6; write++) {
        const bytes = Array.from({ length: 8 }, () => ((next() >>> 8) & 255).toString(16).padStart(2, '0')).join('');
        const at =
          write % 2 === 0 ? `write ${0x480 + ((next() >>> 8) % 24) * 16}` : `frame ${((next() >>> 8) % 64) * 8}`;
        await peer.does(`${at} ${bytes}`, 'written');
        try {
          if (write % 3 === 0) for (const message of (await bus.recvBatch({ timeout: 2 })) ?? []) message.copy();
          else if (write % 3 === 1) (await bus.recv({ timeout: 2 })).copy();
          else bus.trySend(new Uint8Array(1000));
          seen.add('nothing');
        } catch (error) {
          seen.add(/** @type {any} */ (error).code);
        }
      }
      bus.close();
      await peer.kill();
    }
    for (const kind of seen)
      assert.match(kind, /^nothing$|^ERR_RAMWAY_(CORRUPT|TIMED_OUT|CLOSED|PEER_DEAD|TOO_LARGE)$/);
  },
);

scene('while the peer rewrites a payload again and again, recvInto copies it once', async (here) => {
  const [bus, peer] = await connected(here);
  await peer.does('send 200 16 0', 'sent');
  const rewriting = (async () => {
    for (let n = 0; n < 200; n++) await peer.does(`frame ${n * 32 + 16} ${'ab'.repeat(16)}`, 'written');
  })();
  const target = new Uint8Array(16);
  for (let seq = 0; seq < 200; seq++) {
    const info = await bus.recvInto(target);
    const copied = [...target];
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([...target], copied);
    assert.deepEqual([info.length, info.typeId], [16, seq]);
  }
  await rewriting;
});

scene('files that are no ring, and rings that no correct program makes', async ({ path, own }) => {
  const refused = async (/** @type {string} */ name, /** @type {string[]} */ kinds) => {
    for (const open of [() => Ring.open(path(name)).receiver(), () => Ring.open(path(name)).sender()]) {
      await assert.rejects(
        open(),
        (/** @type {any} */ error) => kinds.includes(error.code?.slice(11)) || assert.fail(error.stack),
      );
    }
  };
  writeFileSync(path('text'), 'this is no ring, but it is somebody’s file');
  await refused('text', ['ABI_MISMATCH']);
  writeFileSync(path('empty'), '');
  await refused('empty', ['ABI_MISMATCH']);
  writeRing(path('align'), { align: 24 });
  await refused('align', ['CORRUPT']);
  writeRing(path('capacity'), { capacity: 3 * 4096 });
  await refused('capacity', ['CORRUPT']);
  writeRing(path('good'));
  own(await Ring.open(path('good')).receiver()).close();
});

scene('a corrupt ring is no concern of the others', async (here) => {
  const [bad, peer] = await connected({ ...here, path: (name) => here.path(`bad-${name}`) });
  const [good, other] = await connected({ ...here, path: (name) => here.path(`good-${name}`) });
  const errors = [];
  bad.on('error', (error) => errors.push(error));
  bad.on('message', () => {});
  other.tell('echo 0');
  await peer.does('commit 1 8 0', 'committed');
  await peer.does(`frame 0 ${hex32(2 ** 32 - 1)}`, 'written');
  await peer.does('flush', 'flushed');
  await eventually('its error', () => errors.length > 0);
  code('CORRUPT')(errors[0]);
  for (let n = 0; n < 50; n++) {
    await good.send(`${n}`);
    assert.equal((await good.recv()).text(), `${n}`);
  }
  // The other half of the same bus is not the one that lied.
  assert.equal(bad.trySend('still'), true);
});
