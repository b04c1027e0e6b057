// RPC clients: deaths, hostile servers, closing, threads, what holds the process and what is collected. The server is another
// process.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Reply, RpcClient, RpcServer } from '../index.mjs';
import { connected, ECHO, FAILS, failed, HELD, number, outlasts, SIZED, STREAM, text, word } from './calling.mjs';
import { execPath, programArgs, runtime } from './runtimes.mjs';
import { code, eventually, LONG, Peer, Process, program, scene, turn } from './scene.mjs';

scene('a server that is killed: what is under way may have run', async (scene) => {
  const [client, server] = await connected(scene, {}, ',65536,2');
  const calls = ['a', 'b', 'c'].map((name) => client.call(HELD, name));
  const stream = client.stream(STREAM, word(10));
  await server.does('serve held 2', 'held', { count: 2 });
  const outcomes = Promise.allSettled(calls);
  await server.kill();
  const [a, b, c] = /** @type {any[]} */ (await outcomes).map(({ reason }) => reason);
  failed('PEER_DEAD', { mayHaveRun: true })(a);
  failed('PEER_DEAD', { mayHaveRun: true })(b);
  failed('PEER_DEAD', { mayHaveRun: false })(c);
  await assert.rejects(stream.next(), failed('PEER_DEAD', { mayHaveRun: false }));
  await assert.rejects(client.call(ECHO), failed('PEER_DEAD', { mayHaveRun: false }));
  await assert.rejects(client.ping(), code('PEER_DEAD'));
  assert.deepEqual([client.peerAlive, client.inFlight, client.closed], [false, 0, false]);
});

scene('a server that is killed with many calls in flight', async (scene) => {
  const [client, server] = await connected(scene);
  const calls = Promise.allSettled(Array.from({ length: 3000 }, (_, i) => client.call(i % 3 ? HELD : ECHO, 'x')));
  await server.does('serve held 500', 'held');
  await server.kill();
  const outcomes = await calls;
  assert.equal(outcomes.length, 3000);
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') assert.equal(outcome.reason.kind, 'PeerDead');
    else assert.equal(outcome.value.text(), 'x');
  }
  assert.ok(outcomes.some(({ status }) => status === 'rejected'));
});

scene('cancelling races with replies: each call ends once, and all leave the server', async (scene) => {
  const [client] = await connected(scene);
  const enough = new Error('enough');
  let [replies, aborts] = [0, 0];
  for (let round = 0; round < 20; round++) {
    const controllers = Array.from({ length: 200 }, () => new AbortController());
    const calls = controllers.map(({ signal }, i) => client.call(ECHO, `${round} ${i}`, { signal }));
    for (const [i, call] of calls.entries()) {
      call.then(
        (reply) => {
          replies++;
          assert.equal(reply.text(), `${round} ${i}`);
        },
        (error) => {
          aborts++;
          assert.equal(error, enough);
        },
      );
    }
    // Some at once, some when the first replies are there.
    for (const [i, controller] of controllers.entries()) {
      if (i % 20 === 10) await turn();
      if (i % 2 === round % 2) controller.abort(enough);
    }
    await Promise.allSettled(calls);
    assert.equal(replies + aborts, 200 * (round + 1));
  }
  assert.ok(replies >= 2000 && aborts > 0, `${replies} replies, ${aborts} aborts`);
  await client.ping();
  await eventually('all calls have left the server', () => client.inFlight === 0);
});

scene('many time limits at once', async (scene) => {
  const [client, server] = await connected(scene);
  const calls = Array.from({ length: 2000 }, (_, i) => client.call(HELD, 'x', { timeout: 1 + (i % 30) }));
  for (const { status, reason } of /** @type {any[]} */ (await Promise.allSettled(calls))) {
    assert.equal(status, 'rejected');
    code('TIMED_OUT')(reason);
  }
  // The handlers end now, of those that were begun.
  await eventually('all calls have left the server', async () => {
    await server.does('serve release', 'released');
    return client.inFlight === 0;
  });
  assert.equal((await client.call(ECHO, 'still there')).text(), 'still there');
});

// Frames of a server by hand: the numbers of docs/ABI.md, section 20.
const TYPE_CALL = 0xffff0010;
const TYPE_REPLY = 0xffff0011;
const reply = (status = 0, flags = 0, code = 0, metaLength = 0, body = '') =>
  Buffer.concat([
    new Uint8Array(new Uint32Array([status, flags, code, metaLength]).buffer),
    Buffer.from(body),
  ]).toString('hex');

for (const [what, frame, stream] of /** @type {[string, string, boolean][]} */ ([
  ['a frame that is no reply', `${TYPE_CALL} 1 ${reply()}`, false],
  ['a frame of a program', `7 1 ${reply()}`, false],
  ['a reply without a header', `${TYPE_REPLY} 1 00`, false],
  ['an unknown status', `${TYPE_REPLY} 1 ${reply(9)}`, false],
  ['an unknown flag', `${TYPE_REPLY} 1 ${reply(0, 2)}`, false],
  ['metadata beyond the frame', `${TYPE_REPLY} 1 ${reply(0, 0, 0, 17)}`, false],
  ['a code without an error', `${TYPE_REPLY} 1 ${reply(0, 0, 5)}`, false],
  ['a reply to no call', `${TYPE_REPLY} 9 ${reply()}`, false],
  ['an element of no stream', `${TYPE_REPLY} 1 ${reply(0, 1)}`, false],
  ['the end of a stream with a body', `${TYPE_REPLY} 1 ${reply(0, 0, 0, 0, 'x')}`, true],
])) {
  scene(`a hostile server is Corrupt, and disturbs no other client: ${what}`, async (scene) => {
    const { path, own } = scene;
    const [honest, server] = await connected(scene);
    const held = honest.call(HELD, 'honest');
    const peer = own(await Peer.start(`rpc-listen=${path('by-hand')}`));
    const client = own(await RpcClient.connect(path('by-hand'), { timeout: LONG }));
    await peer.ready();
    assert.equal(client.maxInFlight, 8);
    const call = stream ? client.stream(7, '', { window: 2 }).next() : client.call(7);
    const outcomes = Promise.allSettled([call, client.call(7), client.stream(7).next()]);
    await peer.does(`say ${frame}`, 'said');
    for (const { reason } of /** @type {any[]} */ (await outcomes)) failed('CORRUPT', { mayHaveRun: true })(reason);
    await assert.rejects(client.call(7), failed('CORRUPT', { mayHaveRun: false }));
    client.close();
    await server.does('serve held 1', 'held', { count: 1 });
    await server.does('serve release', 'released', { count: 1 });
    assert.equal((await held).text(), 'honest');
  });
}

scene('an element beyond the credit is Corrupt; those before it are not lost', async ({ path, own }) => {
  const peer = own(await Peer.start(`rpc-listen=${path('by-hand')}`));
  const client = own(await RpcClient.connect(path('by-hand'), { timeout: LONG }));
  await peer.ready();
  const stream = client.stream(7, '', { window: 2 });
  for (const body of ['a', 'b', 'c']) await peer.does(`say ${TYPE_REPLY} 1 ${reply(0, 1, 0, 0, body)}`, 'said');
  assert.equal((await stream.next()).value?.text(), 'a');
  assert.equal((await stream.next()).value?.text(), 'b');
  await assert.rejects(stream.next(), failed('CORRUPT', { mayHaveRun: true }));
  assert.ok(stream.done);
});

scene('what comes for a call that was cancelled is dropped', async ({ path, own }) => {
  const peer = own(await Peer.start(`rpc-listen=${path('by-hand')}`));
  const client = own(await RpcClient.connect(path('by-hand'), { timeout: LONG }));
  await peer.ready();
  const [pending, other] = [client.start(7), client.start(7)];
  pending.cancel();
  assert.equal(client.inFlight, 2);
  await peer.does(`say ${TYPE_REPLY} 1 ${reply(0, 0, 0, 0, 'late')}`, 'said');
  await peer.does(`say ${TYPE_REPLY} 2 ${reply(0, 0, 0, 0, 'other')}`, 'said');
  assert.equal((await other).text(), 'other');
  await assert.rejects(async () => pending, code('CANCELLED'));
  assert.equal(client.inFlight, 0);
});

scene('a server that shuts down', async (scene) => {
  const [client, server] = await connected(scene);
  const held = client.call(HELD, 'a');
  await server.does('serve held 1', 'held', { count: 1 });
  await server.does('serve drain 60000', 'draining');
  // New calls are refused once it has seen that.
  await eventually('new calls are refused', async () => {
    const refused = await client.call(ECHO).catch((error) => error);
    if (refused instanceof Reply) return false;
    return failed('DRAINING', { mayHaveRun: false, status: 'Draining' })(refused);
  });
  await server.does('serve release', 'released', { count: 1 });
  assert.equal((await held).text(), 'a');
  await eventually('the connection is over', async () => {
    const error = await client.call(ECHO).catch((error) => error);
    return error.kind === 'Closed' && failed('CLOSED', { mayHaveRun: false })(error);
  });
});

scene('client and server in one event loop', async ({ path, own }) => {
  const server = own(await RpcServer.bind(path('rpc')));
  /** @type {AbortSignal[]} */ const signals = [];
  server.method('Echo', (request) => request.body.slice());
  server.method('Never', (request) => {
    signals.push(request.signal);
    return new Promise((resolve) => request.signal.addEventListener('abort', () => resolve('too late')));
  });
  server.stream('Count', async function* (request) {
    for (let i = 0; i < Number(request.text()); i++) yield `element ${i}`;
  });
  const run = server.run();
  const client = own(await RpcClient.connect(path('rpc')));
  const replies = await Promise.all(Array.from({ length: 3000 }, (_, i) => client.call('Echo', `number ${i}`)));
  for (const [i, reply] of replies.entries()) assert.equal(reply.text(), `number ${i}`);
  let next = 0;
  for await (const reply of client.stream('Count', '500', { window: 3 }))
    assert.equal(reply.text(), `element ${next++}`);
  assert.equal(next, 500);
  const controller = new AbortController();
  const never = assert.rejects(client.call('Never', '', { signal: controller.signal }), /given up/);
  // A busy machine may need more than the first limits to begin it: then it was not run.
  let late;
  for (let timeout = 20; signals.length < 2; timeout *= 2) {
    late = await client.call('Never', '', { timeout }).catch((error) => error);
    assert.ok(timeout < LONG);
  }
  failed('TIMED_OUT', { mayHaveRun: true })(late);
  controller.abort(new Error('given up'));
  await never;
  await eventually('both handlers know', () => signals.length >= 2 && signals.every(({ aborted }) => aborted));
  await server.shutdown();
  await run;
  await assert.rejects(client.call('Echo'), failed('CLOSED', { mayHaveRun: false }));
});

scene('closing with calls under way', async (scene) => {
  const [client, server] = await connected(scene);
  const pending = client.start(HELD, 'b');
  const stream = client.stream(STREAM, word(100));
  const outcomes = Promise.allSettled([client.call(HELD, 'a'), pending, stream.next(), pending.wait()]);
  await server.does('serve held 2', 'held', { count: 2 });
  await turn();
  client.close();
  client.close();
  assert.ok(client.closed);
  const [a, b, , d] = /** @type {any[]} */ (await outcomes);
  for (const { reason } of [a, b, d]) failed('CLOSED', { mayHaveRun: true })(reason);
  await server.does('serve cancelled 2', 'cancelled', { count: 2 });
  pending.cancel();
  stream.cancel();
  await assert.rejects(client.call(ECHO), failed('DETACHED', { mayHaveRun: false }));
  assert.throws(() => client.start(ECHO), code('DETACHED'));
  assert.throws(() => client.callSync(ECHO, '', { allowMainThread: true }), code('DETACHED'));
  assert.equal(client.inFlight, 0);
  const { path, own } = scene;
  const other = own(await RpcClient.connect(path('rpc')));
  other[Symbol.dispose]();
  assert.ok(other.closed);
  const third = own(await RpcClient.connect(path('rpc')));
  await third[Symbol.asyncDispose]();
  assert.ok(third.closed);
});

scene('a call that blocks, beside others that do not', async (scene) => {
  const [client, server] = await connected(scene);
  assert.throws(() => client.callSync(ECHO), code('UNSUPPORTED'));
  const allowMainThread = true;
  assert.equal(client.callSync(ECHO, 'alone', { allowMainThread }).text(), 'alone');
  const [quick, held] = [client.call(ECHO, 'quick'), client.call(HELD, 'held')];
  const stream = client.stream(STREAM, word(5));
  const reply = client.callSync(ECHO, 'sync', { allowMainThread, meta: 'm', timeout: LONG });
  assert.deepEqual([reply.text(), text(reply.meta)], ['sync', 'm']);
  assert.equal((await quick).text(), 'quick');
  let next = 0;
  for await (const element of stream) assert.equal(number(element), next++);
  assert.equal(next, 5);
  assert.equal(client.callSync(SIZED, word(200_000), { allowMainThread }).body.length, 200_000);
  const late = await outlasts(client, server, 1, (timeout) => client.callSync(HELD, '', { allowMainThread, timeout }));
  failed('TIMED_OUT', { mayHaveRun: true })(late);
  assert.throws(
    () => client.callSync(FAILS, 'x', { allowMainThread }),
    failed('APPLICATION', { mayHaveRun: true, status: 'Application' }),
  );
  assert.throws(() => client.callSync(ECHO, '', /** @type {any} */ ({ signal: 5 })), code('INVALID_ARGUMENT'));
  await server.does('serve held 2', 'held');
  await server.does('serve release', 'released');
  assert.equal((await held).text(), 'held');
});

scene('how calls wait can be changed while they are under way', async (scene) => {
  const [client, server] = await connected(scene, { wait: 'block' });
  for (const wait of /** @type {const} */ (['spin', 'hybrid', 'block'])) {
    const held = client.call(HELD, wait);
    client.wait = wait;
    assert.equal(client.wait, wait);
    await server.does('serve held 1', 'held', { count: 1 });
    await server.does('serve release', 'released', { count: 1 });
    assert.equal((await held).text(), wait);
  }
});

for (const how of ['blocking', 'waiting']) {
  scene(`a worker calls, and is ended in a call: ${how}`, async ({ path, own, peer }) => {
    const server = await peer(`serve=${path('rpc')}`);
    const worker = new Worker(new URL('./peer/rpc-client.mjs', import.meta.url), { argv: [path('rpc'), how] });
    own({ close: () => worker.terminate() });
    const said = await new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    assert.deepEqual(said, ['sync 0', 'async 0', 'sync 1', 'async 1', 'sync 2', 'async 2']);
    await server.does('serve held 1', 'held', { count: 1 });
    await worker.terminate();
    // Deno's terminate() leaves a thread alone that does not return to its loop, be it one of plain JavaScript.
    if (runtime === 'deno' && how === 'blocking') return;
    await server.does('serve cancelled 1', 'cancelled', { count: 1 });
  });
}

scene('a client that nobody waits with does not hold the process', async ({ path, own, peer }) => {
  await peer(`serve=${path('rpc')}`);
  const child = own(program('peer/rpc-client.mjs', path('rpc'), 'idle'));
  assert.deepEqual(await child.finish(), ['called']);
});

for (const how of ['call', 'start', 'stream', 'ref']) {
  scene(`a call that is under way holds the process: ${how}`, async ({ path, own, peer }) => {
    const server = await peer(`serve=${path('rpc')}`);
    const child = own(program('peer/rpc-client.mjs', path('rpc'), how));
    await server.does('serve held 1', 'held', { count: 1 });
    assert.equal(child.child.exitCode, null);
    await server.does('serve release', 'released', { count: 1 });
    assert.deepEqual(await child.finish(), ['under way', 'over']);
  });
}

scene('a call that is under way does not hold the process after unref', async ({ path, own, peer }) => {
  const server = await peer(`serve=${path('rpc')}`);
  const child = own(program('peer/rpc-client.mjs', path('rpc'), 'unref'));
  assert.deepEqual(await child.finish(), ['under way']);
  await server.does('serve cancelled 1', 'cancelled', { count: 1 });
});

scene('calls and streams that nobody has any more are cancelled', async ({ path, own, peer }) => {
  const server = await peer(`serve=${path('rpc')}`);
  const flags = { node: ['--expose-gc'], bun: [], deno: ['--v8-flags=--expose-gc'] }[runtime];
  const file = fileURLToPath(new URL('peer/rpc-client.mjs', import.meta.url));
  const child = own(new Process(execPath, [...programArgs, ...flags, file, path('rpc'), 'dropped']));
  assert.equal(await child.line(), 'dropped');
  await server.does('serve held 42', 'held', { count: 42 });
  // Some may be seen from the stack still.
  server.tell('serve cancelled 30');
  const { word: said, count } = await server.answer();
  assert.ok(said === 'cancelled' && Number(count) <= 40, `${said} ${count}`);
  await server.does('serve release', 'released', { count: 42 });
  assert.deepEqual(await child.finish(), ['over']);
});

scene('clients that are forgotten are collected, and harm nobody', async ({ path, own, peer }) => {
  await peer(`serve=${path('rpc')}`);
  const flags = { node: ['--expose-gc'], bun: [], deno: ['--v8-flags=--expose-gc'] }[runtime];
  const file = fileURLToPath(new URL('peer/rpc-client.mjs', import.meta.url));
  const child = own(new Process(execPath, [...programArgs, ...flags, file, path('rpc'), 'forgotten']));
  assert.deepEqual(await child.finish(), ['collected', 'called']);
});
