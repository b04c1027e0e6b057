// The event loop while messages come: it is woken once per change from idle to busy, timers and I/O go on, idle handles
// cost nothing and hold nothing up.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { Ring } from '../index.mjs';
import { check, code, connected, eventually, fromPeer, LONG, pair, program, scene, sleep, toPeer } from './scene.mjs';

/** Drains bursts that the peer publishes as one, and counts wake-ups. @param {'messages' | 'batches' | 'recv' | 'event'} by */
async function bursts(/** @type {import('./scene.mjs').Scene} */ here, by) {
  const [BURSTS, SIZE] = [10, 2000];
  const [rx, peer] = await fromPeer(here, { capacity: 1 << 20, wait: 'block' });
  let seen = 0;
  const ending = new AbortController();
  const take = (/** @type {import('../index.mjs').Message} */ message) => check(seen++, message);
  const receiving = (async () => {
    if (by === 'messages') for await (const message of rx) take(message);
    else if (by === 'batches') for await (const batch of rx.batches()) [...batch].forEach(take);
    else if (by === 'event') rx.on('message', take);
    else while (true) take(await rx.recv({ signal: ending.signal }));
  })();
  receiving.catch(() => {});
  const wakes = () => /** @type {any} */ (rx).wakes;
  // All that belongs to attaching is over.
  await sleep(200);
  const before = wakes();
  for (let burst = 0; burst < BURSTS; burst++) {
    await peer.does(`batch ${SIZE} 8 ${burst * SIZE}`, 'sent');
    await eventually('the burst', () => seen === (burst + 1) * SIZE);
    // Long enough to be asleep again.
    await sleep(30);
  }
  const count = wakes() - before;
  assert.ok(count >= 1 && count <= BURSTS, `${count} wake-ups for ${BURSTS} bursts of ${SIZE}`);
  ending.abort();
  rx.close();
}

for (const by of /** @type {const} */ (['messages', 'batches', 'recv', 'event'])) {
  scene(`one wake-up for each change from idle to busy: ${by}`, (here) => bursts(here, by));
}

scene('a sender is woken once for each change from full to room', async (here) => {
  const [tx, peer] = await toPeer(here, { capacity: 65536, wait: 'block' });
  const data = new Uint8Array(48);
  let sent = 0;
  const [ROUNDS, COUNT] = [10, 1024];
  for (let i = 0; i < COUNT; i++) assert.equal(tx.trySend(data), true);
  const sending = (async () => {
    for (; sent < ROUNDS * COUNT; sent++) await tx.send(data);
  })();
  await sleep(100);
  const before = /** @type {any} */ (tx).wakes;
  for (let round = 1; round <= ROUNDS; round++) {
    // A quarter is free before the peer says so: four wake-ups for each ring full of messages, if it is slow.
    await peer.does(`skip ${COUNT}`, 'skipped');
    await eventually('the ring is full again', () => sent === round * COUNT);
    await sleep(20);
  }
  await sending;
  const count = /** @type {any} */ (tx).wakes - before;
  assert.ok(count >= 1 && count <= ROUNDS * 5, `${count} wake-ups for ${ROUNDS * COUNT} messages`);
});

/** How much processor time, in milliseconds and all threads together, passes until each of `count` timers fires; sorted. */
async function untilTimers(count = 60, delay = 5) {
  const used = [];
  for (let i = 0; i < count; i++) {
    const before = process.cpuUsage();
    await sleep(delay);
    const { user, system } = process.cpuUsage(before);
    used.push((user + system) / 1000);
  }
  return used.sort((a, b) => a - b);
}

/**
 * A load that keeps the loop from its timers uses the processor until they fire. Processor time, because on a busy machine a
 * timer is late whatever the loop does. @param {() => boolean} busy
 */
async function timersGoOn(busy, /** @type {() => Promise<unknown>} */ begin) {
  await begin();
  const used = await untilTimers();
  assert.ok(busy(), 'the load ended before the timers did');
  // 5 ms until a timer is due, a turn of the loop until it fires, and as much again for the runtime's own threads.
  assert.ok(used[30] < 30, `the loop works for ${used[30]} ms until a timer of 5 ms fires`);
}

for (const by of /** @type {const} */ (['messages', 'batches', 'recv', 'event'])) {
  scene(`timers and I/O go on while messages come without end: ${by}`, async (here) => {
    const [rx, peer] = await fromPeer(here, { capacity: 1 << 20 });
    const server = here.own(createServer((socket) => socket.on('error', () => {}).pipe(socket)));
    await new Promise((resolve) => server.listen(here.path('socket'), () => resolve(undefined)));
    const socket = createConnection(here.path('socket'));
    here.own({ close: () => socket.destroy() });
    let echoes = 0;
    socket.on('data', () => {
      echoes++;
      socket.write('x');
    });
    let seen = 0;
    let ended = false;
    const receiving = async () => {
      if (by === 'messages') for await (const message of rx) seen += message.length & 1;
      else if (by === 'batches') for await (const batch of rx.batches()) seen += batch.length;
      else if (by === 'event') rx.on('message', (message) => (seen += message.length & 1)).on('error', () => {});
      else while (true) seen += (await rx.recv()).length & 1;
    };
    await timersGoOn(
      () => !ended,
      async () => {
        socket.write('x');
        peer.tell('flood 33');
        receiving().catch(() => {
          ended = true;
        });
        await eventually('the load', () => seen > 1000);
      },
    );
    const [messages, echoed] = [seen, echoes];
    assert.ok((await readFile(new URL(import.meta.url))).length > 1000);
    await eventually('more messages and more of the socket', () => seen > messages + 1000 && echoes > echoed + 3);
    await peer.kill();
    rx.close();
  });
}

for (const by of /** @type {const} */ (['await', 'not awaited', 'batch'])) {
  scene(`timers go on while messages are sent without end: ${by}`, async (here) => {
    const [tx, peer] = await toPeer(here, { capacity: 1 << 20 });
    peer.tell('skip 0');
    let going = true;
    let sent = 0;
    const data = new Uint8Array(32);
    const sending = async () => {
      while (going) {
        if (by === 'await') await tx.send(data);
        else if (by === 'batch') await tx.sendBatch(Array(100_000).fill(data));
        else await Promise.all(Array.from({ length: 1000 }, () => tx.send(data)));
        sent++;
      }
    };
    const ended = { promise: Promise.resolve() };
    await timersGoOn(
      () => going,
      async () => {
        ended.promise = sending();
        await eventually('the load', () => sent > 3);
      },
    );
    going = false;
    await ended.promise;
  });
}

scene('a hundred idle receivers cost neither threads nor processor time', async ({ own, path }) => {
  const threads = () => readdirSync('/proc/self/task').length;
  const first = own(await Ring.create(path('first'), { capacity: 4096, wait: 'hybrid' }).receiver());
  const opened = [first.recv({ timeout: 20 }).catch(() => {})];
  await Promise.all(opened);
  const before = threads();
  const waiting = [];
  for (let n = 0; n < 50; n++) {
    const rx = own(await Ring.create(path(`r${n}`), { capacity: 4096 }).receiver());
    waiting.push(rx.recv());
    const [, other] = pair(own);
    waiting.push(other.recv());
  }
  await sleep(100);
  const used = process.cpuUsage();
  const began = performance.now();
  await sleep(1000);
  const wall = performance.now() - began;
  const { user, system } = process.cpuUsage(used);
  // Runtimes keep pools of their own, so a few threads may come and go; a hundred may not.
  assert.ok(threads() - before < 20, `${before} threads, then ${threads()}`);
  assert.ok((user + system) / 1000 < wall / 4, `${(user + system) / 1000} ms of processor time in ${wall} ms`);
  for (const promise of waiting) promise.catch(() => {});
});

scene('open handles that nobody waits for do not hold the process', async ({ path }) => {
  const { code: status } = await program('peer/exits.mjs', path('r'), 'open').ended;
  assert.equal(status, 0);
});

scene('a receive that is pending holds the process until its message is there', async ({ path, own, peer }) => {
  const child = own(program('peer/exits.mjs', path('r'), 'pending'));
  assert.equal(await child.line(), 'waiting');
  const sender = await peer(`out=${path('r')}`);
  await sleep(300);
  assert.equal(child.child.exitCode, null);
  await sender.does('send 1 5 0', 'sent');
  assert.equal(await child.line(), 'received 5');
  assert.deepEqual(await child.finish(), []);
});

for (const how of ['unref', 'unref-after', 'event-unref', 'drain-unref', 'listener-unref', 'region-unref']) {
  scene(`what was unref()ed does not hold the process: ${how}`, async ({ path, own }) => {
    const child = own(program('peer/exits.mjs', path('r'), how));
    assert.equal(await child.line(), 'waiting');
    assert.deepEqual(await child.finish(), []);
  });
}

for (const how of ['ref', 'event', 'listener', 'region', 'drain']) {
  scene(`what waits and is not unref()ed holds the process: ${how}`, async ({ path, own }) => {
    const child = own(program('peer/exits.mjs', path('r'), how));
    assert.equal(await child.line(), 'waiting');
    await sleep(400);
    assert.equal(child.child.exitCode, null);
  });
}

scene('a bus that is idle and then busy, again and again', async (here) => {
  const [bus, peer] = await connected(here);
  peer.tell('echo 0');
  for (let round = 0; round < 100; round++) {
    await bus.send(`round ${round}`);
    assert.equal((await bus.recv({ timeout: LONG })).text(), `round ${round}`);
    if (round % 4 === 0) await sleep(round % 3);
  }
  await bus.end();
  await peer.said('echoed', { count: 100 });
});

scene('what is closed while its wake-up is on the way', async (here) => {
  for (let round = 0; round < 30; round++) {
    const [rx, peer] = await fromPeer(
      { ...here, path: (name) => here.path(`${name}-${round % 2}`) },
      { discard: true },
    );
    const receiving = rx.recv();
    if (round % 3 === 0) await sleep(1);
    peer.tell('send 1 5 0');
    if (round % 2 === 0) await sleep(1);
    rx.close();
    // Either it was there in time or the handle was closed before.
    await receiving.catch(code('DETACHED'));
    await peer.kill();
  }
});

/** Holds the thread up. @param {number} ms */
function work(ms) {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

for (const by of /** @type {const} */ (['messages', 'batches'])) {
  scene(`a slow loop gets all that is there, though its turns end in the middle: ${by}`, async (here) => {
    const [tx, rx] = pair(here.own, 65_536);
    for (let n = 0; n < 200; n++) tx.trySend(`${n}`);
    let seen = 0;
    const got = (/** @type {string} */ text) => {
      assert.equal(text, `${seen++}`);
      work(0.2);
      // It comes to nobody's help: nothing is sent after it.
      if (seen === 200) setTimeout(() => tx.close(), 5);
    };
    if (by === 'messages') for await (const message of rx) got(message.text());
    else for await (const batch of rx.batches({ max: 9 })) for (const message of batch) got(message.text());
    assert.equal(seen, 200);
  });

  scene(`what fills the ring is given back before a slow loop waits: ${by}`, async (here) => {
    const [bus, peer] = await connected(here, 4096);
    peer.tell('send 300 1000 0');
    let seq = 0;
    const got = (/** @type {import('../index.mjs').Message} */ message) => {
      check(seq++, message);
      work(0.4);
    };
    if (by === 'messages') {
      for await (const message of bus) {
        got(message);
        if (seq === 300) break;
      }
    } else {
      for await (const batch of bus.batches()) {
        for (const message of batch) got(message);
        if (seq === 300) break;
      }
    }
    await peer.said('sent', { next: 300 });
  });

  scene(`a receiver that is closed while its loop waits for the next turn: ${by}`, async (here) => {
    for (let round = 0; round < 20; round++) {
      const [tx, rx] = pair(here.own, 65_536);
      for (let n = 0; n < 400; n++) tx.trySend('x');
      setImmediate(() => rx.close());
      let steps = 0;
      const loop = by === 'messages' ? rx.messages() : rx.batches({ max: 3 });
      const reading = (async () => {
        for await (const step of loop) {
          steps += step.length;
          work(0.05);
        }
      })();
      await assert.rejects(reading, code('DETACHED'));
      assert.ok(steps <= 1200);
      tx.close();
    }
  });
}

scene(
  'a wait that is given up in the turn that it began in does not keep the next ones from what is there',
  async (here) => {
    const [tx, rx] = pair(here.own, 1 << 20);
    for (let n = 0; n < 300; n++) tx.trySend(new Uint8Array(2000));
    let seen = 0;
    let given = 0;
    while (seen < 300 && given < 10_000) {
      const controller = new AbortController();
      setImmediate(() => controller.abort());
      try {
        await rx.recv({ signal: controller.signal });
        seen++;
        work(0.1);
      } catch {
        given++;
      }
    }
    assert.equal(seen, 300);
  },
);
