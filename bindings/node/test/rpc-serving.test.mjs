// RPC servers at work: limits, cancelling, time limits, deaths, shutting down, and what is left.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { RpcClient, RpcRequest, RpcServer } from '../index.mjs';
import { call, client, gate, serving } from './rpc-scene.mjs';
import { execPath, programArgs, runtime } from './runtimes.mjs';
import { eventually, LONG, Process, program, scene, settled, sleep } from './scene.mjs';

scene('a thousand calls are under way, and are answered in any order', async (scene) => {
  const waiting = /** @type {(() => void)[]} */ ([]);
  const all = gate();
  await serving(
    scene,
    (server) =>
      server.method(1, async (request) => {
        const mine = waiting.length;
        const { open, opened } = gate();
        if (waiting.push(open) === 1000) all.open();
        await opened;
        return `${mine} ${request.body.length}`;
      }),
    { maxInFlight: 1000 },
  );
  const peer = await client(scene);
  await peer.does('call start 1000 1 10 0', 'started', { first: 0 });
  await all.opened;
  for (const open of waiting.reverse()) open();
  for (const number of [999, 0, 500]) await peer.does(`call wait ${number}`, 'reply', { text: `${number} 10` });
  await peer.does('call wait-all', 'waited', { Ok: 997 });
});

scene('a promise that never settles keeps one place, and disturbs no other client', async (scene) => {
  let began = 0;
  await serving(
    scene,
    (server) => {
      server.method(1, () => new Promise(() => began++));
      server.method(2, () => 'there');
    },
    { maxInFlight: 4 },
  );
  const [stuck, other] = [await client(scene), await client(scene)];
  await stuck.does('call start 20 1 0 0', 'started');
  await eventually('four calls have begun', () => began === 4);
  assert.equal((await call(other, 2)).text, 'there');
  assert.equal(began, 4);
  // Cancelling frees no place as long as the handler runs.
  for (let number = 0; number < 20; number++) await stuck.does(`call cancel ${number}`, 'cancelled');
  assert.equal((await call(other, 2)).text, 'there');
  assert.equal(began, 4);
  await stuck.does('call state', 'state', { in_flight: 4 });
});

scene('requests and replies beyond maxBytes are refused, and the rest goes on', async (scene) => {
  const { open, opened } = gate();
  let began = 0;
  await serving(
    scene,
    (server) =>
      server.method(1, async () => {
        began++;
        await opened;
      }),
    { maxBytes: 30_000 },
  );
  const peer = await client(scene);
  await peer.does('call start 3 1 10000 0', 'started');
  await peer.does('call start 1 1 10000 0', 'started');
  await peer.does('call wait 3', 'failed', { status: 'Overloaded', may_have_run: 'false' });
  assert.equal(began, 3);
  open();
  await peer.does('call wait-all', 'waited', { Ok: 3 });
  assert.equal((await call(peer, 1, 10_000)).word, 'reply');
});

scene('a cancelled call aborts the signal of its handler, and ends when that does', async (scene) => {
  /** @type {RpcRequest[]} */ const seen = [];
  const { open, opened } = gate();
  await serving(scene, (server) =>
    server.method(1, async (request) => {
      const { signal } = request;
      seen.push(request);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await opened;
    }),
  );
  const peer = await client(scene);
  await peer.does('call start 2 1 0 0', 'started');
  await eventually('both have begun', () => seen.length === 2);
  await peer.does('call cancel 0', 'cancelled');
  await eventually('the first is cancelled', () => seen[0].signal.aborted);
  assert.deepEqual([seen[0].cancelled, seen[1].cancelled, seen[1].signal.aborted], [true, false, false]);
  assert.equal(seen[0].signal.reason.name, 'AbortError');
  await peer.does('call state', 'state', { in_flight: 2 });
  open();
  await eventually('its place is free', async () => (await peer.ask('call state')).in_flight === '1');
  await peer.does('call cancel 1', 'cancelled');
});

scene('time limits: the signal aborts without traffic, and what is late is not begun', async (scene) => {
  /** @type {RpcRequest[]} */ const seen = [];
  const aborted = gate();
  await serving(scene, (server) => {
    server.method(1, (request) => {
      seen.push(request);
      return new Promise((resolve) => request.signal.addEventListener('abort', resolve)).then(aborted.open);
    });
  });
  const peer = await client(scene);
  // A busy machine may need more than the first limits to begin it: then it is not begun.
  let first;
  for (let limit = 60; seen.length === 0; limit *= 2) {
    ({ first } = await peer.ask(`call start 1 1 0 ${limit}`));
    for (const from = performance.now(); seen.length === 0 && performance.now() - from < limit; ) await sleep(1);
  }
  await aborted.opened;
  assert.deepEqual([seen[0].cancelled, seen[0].remaining], [true, 0]);
  await peer.does(`call wait ${first}`, 'failed', { may_have_run: 'true' });
});

scene('what has waited behind a slow handler for longer than its time is not begun', async (scene) => {
  let began = 0;
  let pause = 50;
  await serving(scene, (server) =>
    server.method(1, () => {
      began++;
      const until = performance.now() + pause;
      while (performance.now() < until);
    }),
  );
  const peer = await client(scene);
  // Whether the server takes them together is not said: until it has.
  for (let skipped = 0; skipped === 0; pause = Math.min(2 * pause, 500)) {
    began = 0;
    await peer.ask('call start 5 1 0 20');
    const answer = await peer.ask('call wait-all');
    await eventually('all of them have ended', async () => (await peer.ask('call state')).in_flight === '0');
    assert.equal(answer.Ok, undefined);
    skipped = 5 - began;
  }
});

scene(
  'a client is killed with calls under way: they are cancelled, and no other client is disturbed',
  async (scene) => {
    /** @type {RpcRequest[]} */ const seen = [];
    let ended = 0;
    let finished = 0;
    const [server] = await serving(
      scene,
      (server) => {
        server.method(1, async (request) => {
          seen.push(request);
          await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
          ended++;
          return 'for nobody';
        });
        server.stream(2, async function* () {
          try {
            for (;;) yield 'x';
          } finally {
            finished++;
          }
        });
        server.method(3, () => 'there');
      },
      { maxClients: 2 },
    );
    const other = await client(scene);
    for (let round = 1; round <= 3; round++) {
      const peer = await client(scene);
      await peer.does('call start 100 1 0 0', 'started');
      await peer.does('call stream 2 - 4 0', 'started', { first: 100 });
      await peer.does('call next 100', 'reply', { text: 'x' });
      await eventually('all have begun', () => seen.length === 100 * round);
      assert.equal(server.clients, 2);
      await peer.kill();
      await eventually('all have ended', () => ended === 100 * round && finished === round);
      await eventually('it is gone', () => server.clients === 1);
      assert.ok(seen.every((request) => request.cancelled && request.signal.aborted));
      assert.equal((await call(other, 3)).text, 'there');
    }
  },
);

scene('a client that is stopped holds up nobody', async (scene) => {
  let sent = 0;
  await serving(
    scene,
    (server) => {
      server.stream(1, function* () {
        for (;;) {
          sent++;
          yield new Uint8Array(1000);
        }
      });
      server.method(2, () => 'there');
    },
    { capacity: 4096 },
  );
  const [stopped, other] = [await client(scene), await client(scene)];
  await stopped.does('call stream 1 - 1000 0', 'started');
  await eventually('its ring is full', () => sent >= 3);
  stopped.stop();
  for (let i = 0; i < 50; i++) assert.equal((await call(other, 2)).text, 'there');
  const before = sent;
  for (let i = 0; i < 50; i++) assert.equal((await call(other, 2)).text, 'there');
  assert.equal(sent, before);
  stopped.goOn();
  await stopped.does('call next 0', 'reply');
  await stopped.does('call cancel 0', 'cancelled');
});

scene('a shutdown waits for what runs, and takes nothing new', async (scene) => {
  const { open, opened } = gate();
  let began = 0;
  const [server, run] = await serving(scene, (server) =>
    server.method(1, async () => {
      began++;
      await opened;
      return 'done';
    }),
  );
  const peer = await client(scene);
  await peer.does('call start 5 1 0 0', 'started');
  await eventually('all have begun', () => began === 5);
  const down = server.shutdown(LONG);
  await eventually('nobody can come in', () => !existsSync(scene.path('rpc')));
  assert.deepEqual(
    [await call(peer, 1), began],
    [{ word: 'failed', status: 'Draining', code: '0', may_have_run: 'false', text: '' }, 5],
  );
  assert.deepEqual([await settled(down), await settled(run), server.closed], [false, false, false]);
  open();
  await Promise.all([down, run]);
  await peer.does('call wait-all', 'waited', { Ok: 5 });
  assert.deepEqual([server.closed, server.clients], [true, 0]);
  const late = await call(peer, 1);
  assert.deepEqual([late.status, late.may_have_run], ['Closed', 'false']);
  await server.shutdown();
  scene.own(await RpcServer.bind(scene.path('rpc')));
});

scene('a shutdown whose time is over cancels, and does not wait for what goes on', async (scene) => {
  // What is cancelled has 100 ms to end: a busy machine may need more, and then its client is left as by a server that died.
  for (let status = 'PeerDead', attempt = 0; status === 'PeerDead'; attempt++) {
    /** @type {RpcRequest[]} */ const seen = [];
    let finished = 0;
    const [server, run] = await serving(scene, (server) => {
      server.method(1, async (request) => {
        seen.push(request);
        await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
        return 'ended';
      });
      server.method(2, (request) => {
        seen.push(request);
        return new Promise(() => {});
      });
      server.stream(3, async function* (request) {
        seen.push(request);
        try {
          for (;;) yield 'x';
        } finally {
          finished++;
        }
      });
    });
    const [peer, stuck] = [await client(scene), await client(scene)];
    await peer.does('call start 1 1 0 0', 'started');
    await peer.does('call stream 3 - 1 0', 'started');
    await stuck.does('call start 1 2 0 0', 'started');
    await eventually('all have begun', () => seen.length === 3);
    await server.shutdown(20);
    await run;
    assert.ok(seen.every((request) => request.cancelled && request.signal.aborted));
    ({ status } = await peer.ask('call wait 0'));
    await stuck.does('call wait 0', 'failed', { status: 'PeerDead', may_have_run: 'true' });
    if (status === 'Cancelled') assert.equal(finished, 1);
    else assert.ok(status === 'PeerDead' && attempt < 100, status);
  }
});

scene('closing ends everything at once, also from a handler', async (scene) => {
  for (const how of ['outside', 'a handler', 'a generator', 'a shutdown in a handler']) {
    /** @type {RpcRequest[]} */ const seen = [];
    const [server, run] = await serving(scene, (server) => {
      server.method(1, (request) => {
        seen.push(request);
        void request.signal;
        return new Promise(() => {});
      });
      server.method(2, () => server.close());
      server.stream(3, function* () {
        server.close();
        yield 'x';
      });
      server.method(4, async () => void (await server.shutdown()));
    });
    const peer = await client(scene);
    await peer.does('call start 3 1 0 0', 'started');
    await eventually('all have begun', () => seen.length === 3);
    if (how === 'outside') server.close();
    else if (how === 'a generator') await peer.does('call stream 3 - 2 0', 'started');
    else await peer.does(`call start 1 ${how === 'a handler' ? 2 : 4} 0 0`, 'started');
    await run;
    assert.ok(server.closed && seen.every((request) => request.signal.aborted && request.cancelled));
    await peer.does('call wait 0', 'failed', { status: 'PeerDead', may_have_run: 'true' });
    server.close();
    await peer.kill();
  }
});

scene('a program ends when its server is closed, and not before', async ({ path, own, peer }) => {
  for (const how of ['shutdown', 'close', 'unref', 'idle', 'exit']) {
    const server = own(program('./peer/rpc-server.mjs', path(how), how));
    assert.equal(await server.line(), 'serves');
    if (how === 'shutdown' || how === 'close' || how === 'exit') {
      const one = await peer(`call=${path(how)}`);
      assert.equal((await call(one, 1)).text, 'there');
      await one.does('call start 1 2 0 0', 'started');
      assert.equal(await one.kill(), undefined);
    }
    assert.deepEqual(await server.finish(), how === 'unref' || how === 'idle' ? [] : ['over']);
    // process.exit ends nothing in words: the name is left to whoever binds it next.
    if (how !== 'exit') assert.equal(existsSync(path(how)), false, how);
    own(RpcServer.bindSync(path(how)));
  }
});

scene('servers in worker threads; one that is terminated is gone', async (scene) => {
  const { path, own, peer } = scene;
  const worker = new Worker(new URL('./peer/rpc-server.mjs', import.meta.url), { argv: [path('rpc'), 'worker'] });
  own({ close: () => worker.terminate() });
  const here = own(await RpcServer.bind(path('here')));
  here.method(1, () => 'here');
  void here.run();
  const [there, one] = [await peer(`call=${path('rpc')}`), await peer(`call=${path('here')}`)];
  for (let i = 0; i < 20; i++) {
    assert.equal((await call(there, 1)).text, 'there');
    assert.equal((await call(one, 1)).text, 'here');
  }
  await there.does('call start 1 2 0 0', 'started', { first: 20 });
  // Calls are taken in their order: that one has begun.
  assert.equal((await call(there, 1)).text, 'there');
  await worker.terminate();
  await there.does('call wait 20', 'failed', { status: 'PeerDead', may_have_run: 'true' });
  own(await RpcServer.bind(path('rpc')));
  assert.equal((await call(one, 1)).text, 'here');
});

scene('ten thousand calls of one thread, to a server of the same thread', async (scene) => {
  const [server] = await serving(scene, (server) => {
    server.method(1, (request) => request.body);
    server.method(2, async (request) => {
      await null;
      return request.body;
    });
  });
  const client = scene.own(await RpcClient.connect(server.path, { timeout: LONG }));
  const calls = Array.from({ length: 10_000 }, (_, i) => client.call(1 + (i % 2), `${i}`));
  for (const [i, call] of calls.entries()) assert.equal((await call).text(), `${i}`);
  assert.deepEqual(await client.describe({ timeout: LONG }), [
    { number: 1, name: undefined },
    { number: 2, name: undefined },
  ]);
});

scene('a storm of cancelled calls leaves nothing behind', async (scene) => {
  let running = 0;
  const [server] = await serving(
    scene,
    (server) => {
      server.method(1, async (request) => {
        running++;
        await new Promise((resolve) => {
          if (request.signal.aborted) resolve(null);
          request.signal.addEventListener('abort', resolve);
          setImmediate(resolve);
        });
        running--;
        return 'done';
      });
      server.stream(2, async function* () {
        running++;
        try {
          for (;;) yield 'x';
        } finally {
          running--;
        }
      });
    },
    { maxInFlight: 50 },
  );
  const client = scene.own(await RpcClient.connect(server.path, { timeout: LONG }));
  let [done, cancelled] = [0, 0];
  for (let round = 0; round < 100; round++) {
    const calls = Array.from({ length: 20 }, () => client.start(1));
    const streams = Array.from({ length: 5 }, () => client.stream(2, '', { window: 2 }));
    await streams[0].next();
    if (round % 2) await sleep(0);
    for (const [i, call] of calls.entries()) if (i % 3 !== 0) call.cancel();
    for (const stream of streams) stream.cancel();
    for (const call of calls) {
      await call.wait({ timeout: LONG }).then(
        () => done++,
        () => cancelled++,
      );
    }
  }
  assert.equal(done + cancelled, 2000);
  await eventually('no handler runs', () => running === 0);
  await eventually('no call is in flight', () => client.inFlight === 0);
});

scene('a storm of time limits: each call ends once, and all handlers end', async (scene) => {
  let [running, late] = [0, 0];
  const [server] = await serving(scene, (server) =>
    server.method(1, async (request) => {
      running++;
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, Number(request.text()));
        request.signal.addEventListener('abort', () => {
          clearTimeout(timer);
          late++;
          resolve(null);
        });
      });
      running--;
      return request.body;
    }),
  );
  const client = scene.own(await RpcClient.connect(server.path, { timeout: LONG }));
  let ended = 0;
  for (let round = 0; round < 10; round++) {
    const calls = Array.from({ length: 200 }, (_, i) =>
      client.call(1, `${i % 7}`, { timeout: 1 + (i % 5) }).then(
        (reply) => assert.equal(reply.text(), `${i % 7}`),
        (error) => assert.match(error.kind, /^(TimedOut|Cancelled)$/),
      ),
    );
    ended += (await Promise.all(calls)).length;
  }
  assert.equal(ended, 2000);
  // One that takes longer than any test: its time limit ends it.
  await assert.rejects(client.call(1, `${LONG}`, { timeout: 20 }), /./);
  await eventually('no handler runs', () => running === 0 && late > 0);
  await eventually('no call is in flight', () => client.inFlight === 0);
});

scene('servers and requests that are forgotten are collected, and what serves is not', async ({ path, own }) => {
  const flags = { node: ['--expose-gc'], bun: [], deno: ['--v8-flags=--expose-gc'] }[runtime];
  const file = fileURLToPath(new URL('peer/rpc-forgotten.mjs', import.meta.url));
  const child = own(new Process(execPath, [...programArgs, ...flags, file, path('')]));
  assert.deepEqual(await child.finish(), ['servers', 'calls', 'clients']);
});
