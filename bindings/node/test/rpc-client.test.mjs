// RPC clients: how calls end, limits, streams, cancelling, deaths, closing, threads, and what keeps the process running. The
// server is another process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import {
  CallError,
  Listener,
  methodId,
  Pending,
  RamwayError,
  Reply,
  RpcClient,
  RpcServer,
  RpcStream,
} from '../index.mjs';
import { execPath, programArgs, runtime } from './runtimes.mjs';
import { code, eventually, LONG, Peer, Process, program, scene, settled, turn } from './scene.mjs';

/** @typedef {import('./scene.mjs').Scene} Scene */

// The server's methods.
const ECHO = 1;
const FAILS = 2;
const HELD = 3;
const STREAM = 4;
const SIZED = 5;
const BREAKS = 6;

/**
 * A server in another process, and a client of it.
 * @param {Scene} scene @param {import('../index.mjs').RpcConnectOptions} [options] @param {string} [limits]
 * @returns {Promise<[RpcClient, Peer]>}
 */
async function connected({ path, own, peer }, options, limits = '') {
  const server = await peer(`serve=${path('rpc')}${limits}`);
  return [own(await RpcClient.connect(path('rpc'), { timeout: LONG, ...options })), server];
}

const word = (/** @type {number} */ value) => new Uint8Array(new Uint32Array([value]).buffer);
const number = (/** @type {Reply | undefined} */ reply) =>
  new DataView(/** @type {Reply} */ (reply).body.buffer).getUint32(0, true);
const text = (/** @type {Uint8Array} */ bytes) => new TextDecoder().decode(bytes);

/**
 * Fits `assert.rejects`: a CallError.
 * @param {string} kind @param {{ mayHaveRun: boolean, status?: string | undefined, applicationCode?: number, text?: string }} values
 */
const failed =
  (kind, { mayHaveRun, status, ...more }) =>
  (/** @type {any} */ error) => {
    code(kind)(error);
    assert.ok(error instanceof CallError && error instanceof RamwayError);
    assert.equal(error.name, 'CallError');
    assert.deepEqual([error.mayHaveRun, error.status], [mayHaveRun, status], error.message);
    assert.equal(error.kind, status ?? error.kind);
    for (const [key, value] of Object.entries(more)) assert.equal(/** @type {any} */ (error)[key], value, key);
    return true;
  };

test('the number of a name is FNV-1a of its UTF-8 bytes, below the reserved numbers', { timeout: LONG }, () => {
  assert.equal(methodId(''), 0x811c9dc5);
  assert.equal(methodId('Store.Get'), 0xbadebbdc);
  for (const name of ['a', 'Größe.Æ', 'größe', '日本.語', '😀', 'x'.repeat(1000)]) {
    let hash = 0x811c9dc5n;
    for (const byte of new TextEncoder().encode(name)) hash = ((hash ^ BigInt(byte)) * 0x01000193n) & 0xffffffffn;
    assert.equal(methodId(name), Number(hash >= 0xffff0000n ? hash - 0xffff0000n : hash), name);
  }
  for (let i = 0; i < 200_000; i++) assert.ok(methodId(String(i)) < 0xffff0000);
  assert.throws(() => methodId(/** @type {any} */ (7)), code('INVALID_ARGUMENT'));
});

for (const wait of /** @type {const} */ (['hybrid', 'block', 'spin'])) {
  scene(`a reply to every call, with its metadata (${wait})`, async (scene) => {
    const [client, server] = await connected(scene, { wait });
    assert.deepEqual([client.wait, client.peerPid, client.peerUid], [wait, server.pid, process.getuid?.()]);
    assert.deepEqual([client.name, client.closed, client.peerAlive], [scene.path('rpc'), false, true]);
    assert.ok(client.maxRequestLength > 1 << 19 && client.maxInFlight === 1024);
    const reply = await client.call(ECHO, 'hällo', { meta: 'trace', timeout: LONG });
    assert.ok(reply instanceof Reply);
    assert.deepEqual([reply.text(), text(reply.meta)], ['hällo', 'trace']);
    const bytes = Uint8Array.from({ length: 300 }, (_, i) => i);
    const shared = new Uint8Array(new SharedArrayBuffer(100_000)).fill(7);
    for (const [body, expected] of /** @type {[any, Uint8Array][]} */ ([
      [undefined, new Uint8Array(0)],
      ['', new Uint8Array(0)],
      [bytes, bytes],
      [bytes.buffer, bytes],
      [new DataView(bytes.buffer, 3, 5), bytes.subarray(3, 8)],
      [new Uint16Array(bytes.buffer, 2, 4), bytes.subarray(2, 10)],
      [shared.subarray(0, 10), shared.slice(0, 10)],
      [shared, shared.slice()],
      ['ü'.repeat(20_000), new TextEncoder().encode('ü'.repeat(20_000))],
    ])) {
      for (const method of [ECHO, 'Test.Echo']) {
        const { body: got, meta } = await client.call(method, body, { meta: bytes });
        assert.deepEqual([...got], [...expected]);
        assert.deepEqual([...meta], [...bytes]);
      }
    }
    const long = new Uint8Array(20_000).fill(9);
    const { body, meta } = await client.call(ECHO, 'x', { meta: long });
    assert.deepEqual([text(body), meta], ['x', long]);
    await client.ping();
    assert.equal(client.inFlight, 0);
  });
}

scene('short and long replies belong to the caller', async (scene) => {
  const [client] = await connected(scene);
  const lengths = [0, 1, 63, 64, 65, 4096, 16_383, 16_384, 16_385, 100_000, 900_000];
  const replies = await Promise.all(lengths.map((length) => client.call(SIZED, word(length))));
  for (const [i, { body }] of replies.entries()) {
    assert.equal(body.length, lengths[i]);
    assert.ok(body.every((byte, at) => byte === (at & 0xff)));
    // Nobody else has this memory.
    assert.equal(body.buffer.byteLength, body.length);
    body.fill(0xee);
    if (body.length > 0) structuredClone(body, { transfer: [body.buffer] });
  }
  for (const length of lengths) {
    const { body } = await client.call(SIZED, word(length));
    assert.ok(body.length === length && body.every((byte, at) => byte === (at & 0xff)));
  }
});

scene('what a server is and has', async (scene) => {
  const [client] = await connected(scene);
  const methods = await client.describe({ timeout: LONG });
  assert.deepEqual(
    methods.slice(0, 2).map(({ number, name }) => [number, name]),
    [
      [1, undefined],
      [2, undefined],
    ],
  );
  assert.deepEqual(methods.at(-1), { number: methodId('Test.Echo'), name: 'Test.Echo' });
  await client.ping({ timeout: LONG });
});

scene('how a server ends a call', async (scene) => {
  const [client] = await connected(scene);
  await assert.rejects(
    client.call(FAILS, 'no such key'),
    failed('APPLICATION', { mayHaveRun: true, status: 'Application', applicationCode: 42, text: 'no such key' }),
  );
  await assert.rejects(
    client.call('Test.Missing'),
    failed('NO_SUCH_METHOD', { mayHaveRun: false, status: 'NoSuchMethod', applicationCode: 0 }),
  );
  await assert.rejects(
    client.call(BREAKS, 'broken'),
    failed('HANDLER_FAILED', { mayHaveRun: true, status: 'HandlerFailed', text: 'broken' }),
  );
  await assert.rejects(
    client.call(SIZED, word(2 << 20)),
    failed('REPLY_TOO_LARGE', { mayHaveRun: true, status: 'ReplyTooLarge' }),
  );
  // A long text comes whole.
  const long = 'ö'.repeat(30_000);
  await assert.rejects(
    client.call(FAILS, long),
    failed('APPLICATION', { mayHaveRun: true, status: 'Application', text: long }),
  );
});

scene('how this side ends a call', async (scene) => {
  const [client, server] = await connected(scene, { maxBuffered: 5000 });
  await assert.rejects(
    client.call(ECHO, new Uint8Array(client.maxRequestLength + 1)),
    failed('TOO_LARGE', { mayHaveRun: false }),
  );
  await assert.rejects(client.call(ECHO, 'x', { timeout: 0 }), failed('TIMED_OUT', { mayHaveRun: false }));
  await assert.rejects(client.call(SIZED, word(6000)), failed('TOO_LARGE', { mayHaveRun: true }));
  await assert.rejects(client.call(HELD, 'x', { timeout: 20 }), failed('TIMED_OUT', { mayHaveRun: true }));
  await server.does('serve cancelled 1', 'cancelled', { count: 1 });
});

scene('what is no call is refused', async (scene) => {
  const [client] = await connected(scene);
  const any = /** @type {any} */ (client);
  for (const wrong of [
    () => any.call(-1),
    () => any.call(1.5),
    () => any.call(2 ** 32),
    () => any.call(null),
    () => any.call(ECHO, 7),
    () => any.call(ECHO, 'x', { timeout: -1 }),
    () => any.call(ECHO, 'x', { timeout: '5' }),
    () => any.call(ECHO, 'x', { meta: {} }),
    () => any.call(ECHO, 'x', { signal: {} }),
    () => any.call(ECHO, 'x', { window: 5 }),
    () => any.call(ECHO, 'x', 5),
    async () => any.stream(ECHO, 'x', { window: 0 }),
    async () => any.stream(ECHO, 'x', { window: 1.5 }),
    async () => any.start(ECHO, 'x', { timeouts: 5 }),
    async () => any.ping({ meta: 'x' }),
    () => RpcClient.connect(/** @type {any} */ (7)),
    () => RpcClient.connect('x', /** @type {any} */ ({ maxBuffered: -1 })),
  ]) {
    await assert.rejects(async () => wrong(), code('INVALID_ARGUMENT'), String(wrong));
  }
  assert.equal(client.inFlight, 0);
});

scene('who cannot be connected to', async ({ path, own }) => {
  await assert.rejects(RpcClient.connect(path('none'), { timeout: 30 }), code('NOT_FOUND'));
  const listener = own(await Listener.bind(path('plain')));
  const accepting = assert.rejects(listener.accept({ timeout: LONG }));
  await assert.rejects(RpcClient.connect(path('plain'), { timeout: LONG }), code('ABI_MISMATCH'));
  listener.close();
  await accepting;
  const controller = new AbortController();
  const connecting = RpcClient.connect(path('none'), { signal: controller.signal, timeout: LONG });
  controller.abort(new Error('given up'));
  await assert.rejects(connecting, /given up/);
  assert.throws(() => RpcClient.connectSync(path('none')), code('UNSUPPORTED'));
  assert.throws(() => RpcClient.connectSync(path('none'), { timeout: 1, allowMainThread: true }), code('NOT_FOUND'));
});

scene('calls beyond the limit of the server wait, in their order', async (scene) => {
  const [client, server] = await connected(scene, {}, ',65536,2');
  assert.equal(client.maxInFlight, 2);
  const calls = ['a', 'b', 'c', 'd', 'e'].map((name) => client.start(HELD, name));
  await server.does('serve held 2', 'held', { count: 2 });
  assert.equal(client.inFlight, 2);
  await server.does('serve release', 'released', { count: 2 });
  assert.deepEqual([(await calls[0]).text(), (await calls[1]).text()], ['a', 'b']);
  await server.does('serve held 2', 'held', { count: 2 });
  await server.does('serve release', 'released', { count: 2 });
  assert.deepEqual([(await calls[2]).text(), (await calls[3]).text()], ['c', 'd']);
  await server.does('serve held 1', 'held', { count: 1 });
  // One that waits here is withdrawn when its time is over: it has not run.
  const full = client.start(HELD, 'f');
  await assert.rejects(client.call(HELD, 'g', { timeout: 10 }), failed('TIMED_OUT', { mayHaveRun: false }));
  full.cancel();
  await server.does('serve release', 'released');
  assert.equal((await calls[4]).text(), 'e');
});

scene('ten thousand calls at once, each with its own reply', async (scene) => {
  const [client] = await connected(scene);
  const replies = await Promise.all(
    Array.from({ length: 10_000 }, (_, i) => client.call(i % 2 ? ECHO : 'Test.Echo', `number ${i}`, { timeout: LONG })),
  );
  for (const [i, reply] of replies.entries()) assert.equal(reply.text(), `number ${i}`);
  assert.equal(client.inFlight, 0);
});

scene('requests and replies that fill both rings', async (scene) => {
  // Few enough in flight that the server may keep all of their replies.
  const [client] = await connected(scene, {}, ',4096,3');
  const body = new Uint8Array(client.maxRequestLength).map((_, i) => i * 7);
  const replies = await Promise.all(Array.from({ length: 300 }, () => client.call(ECHO, body)));
  for (const reply of replies) assert.deepEqual(reply.body, body);
});

scene('an abort cancels its call, and no other', async (scene) => {
  const [client, server] = await connected(scene);
  const controller = new AbortController();
  const { signal } = controller;
  const aborted = [client.call(HELD, 'a', { signal }), client.start(HELD, 'b', { signal }).reply];
  const other = client.call(HELD, 'c');
  const stream = client.stream(STREAM, word(1000), { signal, window: 1 });
  await stream.next();
  const ended = Promise.all(aborted.map((call) => assert.rejects(call, /enough/)));
  await server.does('serve held 3', 'held', { count: 3 });
  controller.abort(new Error('enough'));
  await ended;
  await assert.rejects(stream.next(), /enough/);
  await assert.rejects(client.call(ECHO, 'x', { signal }), /enough/);
  assert.throws(() => client.start(ECHO, 'x', { signal }), /enough/);
  await server.does('serve cancelled 2', 'cancelled', { count: 2 });
  await server.does('serve release', 'released', { count: 3 });
  assert.equal((await other).text(), 'c');
  await eventually('all calls have ended at the server', () => client.inFlight === 0);
  // A signal outlives its calls without holding them.
  const lasting = new AbortController();
  for (let i = 0; i < 20; i++) await client.call(ECHO, 'x', { signal: lasting.signal });
  lasting.abort();
  await client.ping();
});

scene('a call that is started is awaited, looked at or cancelled', async (scene) => {
  const [client, server] = await connected(scene);
  const pending = client.start(HELD, 'a');
  assert.ok(pending instanceof Pending);
  assert.deepEqual([pending.done, pending.tryReply()], [false, null]);
  await assert.rejects(pending.wait({ timeout: 5 }), (error) => {
    assert.ok(!(error instanceof CallError));
    return code('TIMED_OUT')(error);
  });
  await assert.rejects(pending.wait({ signal: AbortSignal.abort(new Error('not now')) }), /not now/);
  const waited = [pending.wait(), pending.wait({ timeout: LONG }), pending.reply, pending.then((reply) => reply)];
  await server.does('serve held 1', 'held', { count: 1 });
  await server.does('serve release', 'released', { count: 1 });
  // Looking is enough: nothing is awaited here.
  while (!pending.done);
  assert.equal(pending.tryReply()?.text(), 'a');
  for (const reply of await Promise.all(waited)) assert.equal(reply, pending.tryReply());
  assert.equal(await pending.wait(), await pending);

  const cancelled = client.start(HELD, 'b');
  const waits = assert.rejects(cancelled.wait(), failed('CANCELLED', { mayHaveRun: true, status: 'Cancelled' }));
  await server.does('serve held 1', 'held', { count: 1 });
  cancelled.cancel();
  cancelled.cancel();
  assert.ok(cancelled.done);
  await waits;
  assert.throws(() => cancelled.tryReply(), code('CANCELLED'));
  await assert.rejects(cancelled.reply, code('CANCELLED'));
  await server.does('serve cancelled 1', 'cancelled', { count: 1 });
  // The end of a block cancels too; what has ended stays as it is.
  client.start(HELD, 'c')[Symbol.dispose]();
  await server.does('serve cancelled 2', 'cancelled', { count: 2 });
  pending[Symbol.dispose]();
  assert.equal((await pending).text(), 'a');
  const broken = client.start(FAILS, 'x');
  await assert.rejects(async () => broken, code('APPLICATION'));
  await assert.rejects(broken.wait(), code('APPLICATION'));
});

scene('the elements of a stream, in a loop', async (scene) => {
  const [client] = await connected(scene);
  for (const [count, window] of [
    [0, 16],
    [1, 1],
    [1000, 1],
    [1000, 7],
    [5000, undefined],
  ]) {
    let next = 0;
    const stream = client.stream(STREAM, word(/** @type {number} */ (count)), { window });
    assert.ok(stream instanceof RpcStream);
    for await (const reply of stream) assert.equal(number(reply), next++);
    assert.equal(next, count);
    assert.deepEqual([stream.done, await stream.next()], [true, { done: true, value: undefined }]);
  }
  const both = await Promise.all(
    [300, 400].map(async (count) => {
      let sum = 0;
      for await (const reply of client.stream(STREAM, word(count))) sum += number(reply);
      return sum;
    }),
  );
  assert.deepEqual(both, [(300 * 299) / 2, (400 * 399) / 2]);
  assert.equal(client.inFlight, 0);
});

scene('who reads slowly stops its own stream alone', async (scene) => {
  const [client, server] = await connected(scene);
  const stream = client.stream(STREAM, word(100_000), { window: 4 });
  await server.does('serve made 4', 'made', { count: 4 });
  // The server has read what was sent before this, and has made no more.
  for (let i = 0; i < 3; i++) await client.ping();
  await server.does('serve made 0', 'made', { count: 4 });
  for (let i = 0; i < 2; i++) assert.equal(number((await stream.next()).value), i);
  await server.does('serve made 6', 'made', { count: 6 });
  await client.ping();
  await server.does('serve made 0', 'made', { count: 6 });
  stream.cancel();
  await assert.rejects(stream.next(), failed('CANCELLED', { mayHaveRun: true, status: 'Cancelled' }));
  await client.ping();
  await eventually('the stream has ended', () => client.inFlight === 0);
});

scene('a loop that is left cancels its stream', async (scene) => {
  const [client] = await connected(scene);
  const left = client.stream(STREAM, word(100_000));
  for await (const reply of left) if (number(reply) === 20) break;
  assert.ok(left.done);
  assert.deepEqual(await left.next(), { done: true, value: undefined });
  const thrown = client.stream(STREAM, word(100_000));
  await assert.rejects(async () => {
    for await (const _ of thrown) throw new Error('no more');
  }, /no more/);
  client.stream(STREAM, word(100_000))[Symbol.dispose]();
  await client.stream(STREAM, word(100_000))[Symbol.asyncDispose]();
  await eventually('they have ended', () => client.inFlight === 0);
});

scene('an element is waited for, for a while, or looked for', async (scene) => {
  const [client, server] = await connected(scene);
  const none = client.stream(HELD, 'x');
  assert.equal(none.tryNext(), null);
  await assert.rejects(none.next({ timeout: 5 }), (error) => {
    assert.ok(!(error instanceof CallError));
    return code('TIMED_OUT')(error);
  });
  await assert.rejects(none.next({ timeout: 0 }), code('TIMED_OUT'));
  const controller = new AbortController();
  const waits = assert.rejects(none.next({ signal: controller.signal }), /later/);
  await assert.rejects(none.next(), code('BUSY'));
  assert.throws(() => none.tryNext(), code('BUSY'));
  controller.abort(new Error('later'));
  await waits;
  assert.equal(await settled(none.next({ timeout: LONG })), false);
  none.cancel();
  await server.does('serve cancelled 1', 'cancelled', { count: 1 });

  const stream = client.stream(STREAM, word(3));
  let result = stream.tryNext();
  while (result === null) result = stream.tryNext();
  assert.equal(number(/** @type {any} */ (result).value), 0);
  assert.equal(number((await stream.next({ timeout: LONG })).value), 1);
  assert.equal(number((await stream.next()).value), 2);
  assert.deepEqual(await stream.next(), { done: true, value: undefined });

  // One reply where a stream was asked for is a stream of one element.
  const one = client.stream(ECHO, 'x');
  assert.equal((await one.next()).value?.text(), 'x');
  assert.deepEqual(await one.next(), { done: true, value: undefined });
  await assert.rejects(
    client.stream(99).next(),
    failed('NO_SUCH_METHOD', { mayHaveRun: false, status: 'NoSuchMethod' }),
  );
  const late = client.stream(HELD, 'x', { timeout: 20 });
  await assert.rejects(late.next(), failed('TIMED_OUT', { mayHaveRun: true }));
  await assert.rejects(late.next(), failed('TIMED_OUT', { mayHaveRun: true }));
});

scene('time limits, the nearest one first', async (scene) => {
  const [client] = await connected(scene);
  /** @type {number[]} */ const order = [];
  const late = [60, 20, 40].map((timeout) =>
    client.call(HELD, 'x', { timeout }).catch((error) => {
      code('TIMED_OUT')(error);
      order.push(timeout);
    }),
  );
  const patient = client.call(HELD, 'x', { timeout: LONG });
  await Promise.all(late);
  assert.deepEqual(order, [20, 40, 60]);
  assert.equal(await settled(patient), false);
  client.close();
  await assert.rejects(patient, code('CLOSED'));
});

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
  await assert.rejects(client.call('Never', '', { timeout: 20 }), failed('TIMED_OUT', { mayHaveRun: true }));
  controller.abort(new Error('given up'));
  await never;
  await eventually('both handlers know', () => signals.length === 2 && signals.every(({ aborted }) => aborted));
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
  assert.throws(
    () => client.callSync(HELD, '', { allowMainThread, timeout: 20 }),
    failed('TIMED_OUT', { mayHaveRun: true }),
  );
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
