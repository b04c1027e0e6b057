// RPC clients: replies, how calls end, limits, streams, cancelling. The server is another process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallError, Listener, methodId, Pending, Reply, RpcClient, RpcStream } from '../index.mjs';
import {
  BREAKS,
  connected,
  ECHO,
  FAILS,
  failed,
  HELD,
  number,
  outlasts,
  SIZED,
  STREAM,
  text,
  word,
} from './calling.mjs';
import { code, eventually, LONG, scene, settled } from './scene.mjs';

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
  const late = await outlasts(client, server, 0, (timeout) => client.call(HELD, 'x', { timeout }));
  failed('TIMED_OUT', { mayHaveRun: true })(late);
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
  // A busy machine may need more than the first limits to begin it: then it was not run.
  for (let timeout = 20, error; !error?.mayHaveRun; timeout *= 2) {
    const late = client.stream(HELD, 'x', { timeout });
    for (let i = 0; i < 2; i++) {
      error = await late.next().catch((thrown) => thrown);
      if (error.mayHaveRun) failed('TIMED_OUT', { mayHaveRun: true })(error);
      else failed('TIMED_OUT', { mayHaveRun: false, status: 'TimedOut' })(error);
    }
  }
});

scene('time limits, the nearest one first', async (scene) => {
  const [client] = await connected(scene);
  const patient = client.call(HELD, 'x', { timeout: LONG });
  // On a busy machine all of them may be over at once, and then the server's word may be the first.
  for (let unit = 20, order = ''; order !== '1,2,3'; unit *= 2) {
    /** @type {number[]} */ const ended = [];
    const late = [3, 1, 2].map((units) =>
      client.call(HELD, 'x', { timeout: units * unit }).catch((error) => {
        code('TIMED_OUT')(error);
        ended.push(units);
      }),
    );
    await Promise.all(late);
    order = ended.join();
    assert.ok(unit < LONG, order);
  }
  assert.equal(await settled(patient), false);
  client.close();
  await assert.rejects(patient, code('CLOSED'));
});
