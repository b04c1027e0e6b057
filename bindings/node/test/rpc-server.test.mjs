// RPC servers: what handlers get and reply, how they fail, streams, what cannot be bound or registered. The client is another process.
import assert from 'node:assert/strict';
import { Bus, Fault, Listener, methodId, RpcClient, RpcRequest, RpcServer } from '../index.mjs';
import { bytes, call, client, gate, serving } from './rpc-scene.mjs';
import { code, eventually, LONG, Peer, scene, settled, sleep } from './scene.mjs';

for (const wait of /** @type {const} */ (['hybrid', 'block', 'spin'])) {
  scene(`a reply is what a handler returns or resolves with (${wait})`, async (scene) => {
    const buffer = bytes('a buffer').buffer;
    const shared = (/** @type {Uint8Array} */ body) => {
      const copy = new SharedArrayBuffer(body.length);
      new Uint8Array(copy).set(body);
      return copy;
    };
    const [server] = await serving(
      scene,
      (server) => {
        server
          .method(0, (request) => request.body)
          .method(1, () => 'text: ä')
          .method(2, async () => 'later')
          .method(3, () => undefined)
          .method(4, () => new DataView(buffer, 2, 6))
          .method(5, () => Promise.resolve(buffer))
          // biome-ignore lint/suspicious/noThenProperty: what is like a promise
          .method(6, () => ({ then: (/** @type {any} */ done) => done('from a thenable') }))
          .method(7, () => null)
          .method(8, (request) => shared(request.body))
          .method('Named', (request) => request.text().length.toString());
      },
      { wait },
    );
    const peer = await client(scene);
    const replies = ['', 'text: ä', 'later', '', 'buffer', 'a buffer', 'from a thenable', ''];
    for (const [method, text] of replies.entries()) assert.deepEqual(await call(peer, method), { word: 'reply', text });
    assert.deepEqual(await call(peer, methodId('Named'), 100), { word: 'reply', text: '100' });
    // What has room among others, and what crosses alone.
    for (const size of [0, 1, 40_000, 65_536, 65_537, 500_000]) {
      for (const method of [0, 8]) assert.equal((await call(peer, method, size)).text, 'x'.repeat(size));
    }
    assert.deepEqual([server.clients, server.closed, server.path], [1, false, scene.path('rpc')]);
  });
}

scene('a handler knows its call, whose bytes are its own', async (scene) => {
  /** @type {RpcRequest[]} */ const seen = [];
  const [server] = await serving(scene, (server) => {
    server.method(3, (request) => void seen.push(request), { name: 'Third' });
    server.stream(4, (request) => {
      seen.push(request);
      return [];
    });
  });
  const peer = await client(scene);
  await call(peer, 3, 5);
  await call(peer, 3, 70_000, LONG);
  await peer.does('call stream 4 hello 3 0', 'started', { first: 2 });
  await peer.does('call next 2', 'complete');
  const [plain, limited, stream] = seen;
  assert.ok(plain instanceof RpcRequest);
  assert.deepEqual([plain.method, plain.text(), plain.isStream, plain.meta.length], [3, 'xxxxx', false, 0]);
  assert.deepEqual([plain.remaining, plain.cancelled, plain.replyMeta], [undefined, false, undefined]);
  assert.deepEqual(plain.peer, { uid: process.getuid?.(), pid: peer.pid });
  const left = limited.remaining ?? assert.fail('no limit');
  assert.ok(left > 0 && left <= LONG && limited.body.length === 70_000);
  assert.deepEqual([stream.method, stream.text(), stream.isStream], [4, 'hello', true]);
  for (const { body } of [plain, limited]) {
    const { buffer, length } = body;
    assert.equal(buffer.byteLength, length);
    assert.equal(structuredClone(buffer, { transfer: [/** @type {ArrayBuffer} */ (buffer)] }).byteLength, length);
    assert.equal(body.length, 0);
  }
  // It ended well: nothing is aborted any more.
  assert.equal(plain.signal.aborted, false);
  await peer.kill();
  await eventually('the client is gone', () => server.clients === 0);
  assert.deepEqual([plain.signal.aborted, plain.cancelled], [false, false]);
});

scene('every way to fail has its status', async (scene) => {
  class Odd {
    toString() {
      throw new Error('no text');
    }
  }
  const broken = /** @type {any} */ (new Fault(1, 'x'));
  Object.defineProperty(broken, 'code', { value: 'one' });
  /** @type {[() => any, string, string][]} */
  const ways = [
    [() => assert.fail(new Fault(7, 'thrown')), 'Application code=7', 'thrown'],
    [async () => assert.fail(new Fault(0xffff_ffff, 'rejected: ä')), 'Application code=4294967295', 'rejected: ä'],
    [() => assert.fail(new Fault(0)), 'Application code=0', ''],
    [() => assert.fail(new TypeError('thrown')), 'HandlerFailed code=0', 'TypeError: thrown'],
    [() => Promise.reject(new RangeError('rejected')), 'HandlerFailed code=0', 'RangeError: rejected'],
    [() => Promise.reject('a text'), 'HandlerFailed code=0', 'a text'],
    [() => Promise.reject(), 'HandlerFailed code=0', 'undefined'],
    [() => Promise.reject(new Odd()), 'HandlerFailed code=0', 'the handler threw what has no text'],
    [() => Promise.reject(broken), 'HandlerFailed code=0', 'Fault: x'],
    [() => 5, 'HandlerFailed code=0', 'the handler returned a number'],
    [async () => ({}), 'HandlerFailed code=0', 'the handler returned an object'],
  ];
  await serving(scene, (server) => {
    for (const [number, [way]] of ways.entries()) server.method(number, way);
    server.stream(90, () => []);
    server.method(91, (request) => {
      request.replyMeta = /** @type {any} */ (5);
    });
    server.method(92, () => new Uint8Array(2 << 20));
  });
  const peer = await client(scene);
  const fails = async (/** @type {number} */ method, /** @type {string} */ status, /** @type {string} */ text) => {
    const answer = await call(peer, method);
    const said = `${answer.status} code=${answer.code}`;
    assert.deepEqual([answer.word, said, answer.may_have_run], ['failed', status, 'true'], String(method));
    assert.ok((answer.text ?? '').includes(text), `${answer.text}`);
  };
  for (const [number, [, status, text]] of ways.entries()) await fails(number, status, text);
  await fails(90, 'HandlerFailed code=0', 'method 90 replies with a stream: call it as one');
  await fails(91, 'HandlerFailed code=0', 'the handler set as replyMeta a number');
  await fails(92, 'ReplyTooLarge code=0', '');
  assert.deepEqual([(await call(peer, 99)).status, (await call(peer, 99)).may_have_run], ['NoSuchMethod', 'false']);
});

scene('streams: generators of both kinds, iterables, and what goes wrong in them', async (scene) => {
  let finished = 0;
  await serving(scene, (server) => {
    server.stream(1, async function* (request) {
      for (let i = 0; i < Number(request.text()); i++) yield `${i}`;
    });
    server.stream(2, function* (request) {
      for (let i = 0; i < Number(request.text()); i++) yield `${i}`;
    });
    server.stream(3, () => ['a', bytes('b'), undefined]);
    server.stream(4, async () => new Set(['later']));
    server.stream(5, async function* () {
      yield 'one';
      throw new Fault(9, 'after one');
    });
    server.stream(6, function* () {
      yield 'one';
      throw new TypeError('after one');
    });
    server.stream(7, function* () {
      try {
        yield/** @type {any} */ (5);
      } finally {
        finished++;
      }
    });
    server.stream(8, () => /** @type {any} */ ('a text'));
    server.stream(9, () => {
      throw new Fault(8, 'at once');
    });
    server.stream(10, () => /** @type {any} */ ({ [Symbol.iterator]: () => ({ next: () => 5 }) }));
    server.method(11, async () => 'the only one');
  });
  const peer = await client(scene);
  /** @param {number} method @param {string} body @param {number} window @returns {Promise<[(string | undefined)[], any]>} */
  const elements = async (method, body, window) => {
    const { first } = await peer.ask(`call stream ${method} ${body} ${window} 0`);
    const texts = [];
    for (;;) {
      const answer = await peer.ask(`call next ${first}`);
      if (answer.word !== 'reply') return [texts, answer];
      texts.push(answer.text);
    }
  };
  for (const method of [1, 2]) {
    for (const [count, window] of [
      [0, 1],
      [1, 1],
      [500, 1],
      [500, 16],
      [500, 1000],
    ]) {
      const expected = Array.from({ length: count }, (_, i) => `${i}`);
      assert.deepEqual(await elements(method, `${count}`, window), [expected, { word: 'complete' }]);
    }
  }
  assert.deepEqual(await elements(3, '-', 5), [['a', 'b', ''], { word: 'complete' }]);
  assert.deepEqual(await elements(4, '-', 5), [['later'], { word: 'complete' }]);
  assert.deepEqual(await elements(11, '-', 5), [['the only one'], { word: 'complete' }]);
  /** @type {[number, string[], string, string, string][]} */
  const failing = [
    [5, ['one'], 'Application', '9', 'after one'],
    [6, ['one'], 'HandlerFailed', '0', 'TypeError: after one'],
    [7, [], 'HandlerFailed', '0', 'the handler yielded a number'],
    [8, [], 'HandlerFailed', '0', 'gave no iterable'],
    [9, [], 'Application', '8', 'at once'],
    [10, [], 'HandlerFailed', '0', 'gave no object'],
  ];
  for (const [method, texts, status, number, text] of failing) {
    const [came, answer] = await elements(method, '-', 4);
    assert.deepEqual([came, answer.status, answer.code], [texts, status, number]);
    assert.ok(answer.text.includes(text), answer.text);
  }
  assert.equal(finished, 1);
});

scene('a slow reader stops its stream and nothing else; letting go of it ends the generator', async (scene) => {
  const yielded = [0, 0];
  const ended = [gate(), gate()];
  /** @type {RpcRequest | undefined} */ let request;
  await serving(scene, (server) => {
    server.stream(1, async function* (given) {
      request = given;
      try {
        for (;;) yield `${yielded[0]++}`;
      } finally {
        ended[0].open();
      }
    });
    server.stream(2, function* () {
      try {
        for (;;) yield `${yielded[1]++}`;
      } finally {
        ended[1].open();
      }
    });
    server.method(3, () => 'there');
  });
  const peer = await client(scene);
  const other = await client(scene);
  await peer.does('call stream 1 - 3 0', 'started', { first: 0 });
  await peer.does('call stream 2 - 3 0', 'started', { first: 1 });
  await eventually('as many as there is room for', () => yielded.every((count) => count === 3));
  for (let i = 0; i < 20; i++) {
    assert.equal((await call(peer, 3)).text, 'there');
    assert.equal((await call(other, 3)).text, 'there');
  }
  assert.deepEqual(yielded, [3, 3]);
  for (const stream of [0, 1]) {
    for (let i = 0; i < 10; i++) await peer.does(`call next ${stream}`, 'reply', { text: i });
  }
  assert.ok(
    yielded.every((count) => count <= 14),
    `${yielded}`,
  );
  await peer.does('call cancel 0', 'cancelled');
  await peer.does('call cancel 1', 'cancelled');
  await Promise.all(ended.map(({ opened }) => opened));
  assert.ok(request?.signal.aborted);
  await eventually('their places are free', async () => {
    await call(peer, 3);
    return (await peer.ask('call state')).in_flight === '0';
  });
});

scene('a stream that waits for something of its own is ended through its signal, or by return()', async (scene) => {
  const ended = gate();
  let returned = 0;
  let began = 0;
  await serving(scene, (server) => {
    server.stream(1, async function* (request) {
      began++;
      try {
        await new Promise((_, reject) => request.signal.addEventListener('abort', () => reject(request.signal.reason)));
        yield 'never';
      } finally {
        ended.open();
      }
    });
    // An iterator by hand, whose wait ends when `return` is called.
    server.stream(2, () => {
      began++;
      const { open, opened } = gate();
      return {
        [Symbol.asyncIterator]: () => ({
          next: () => opened.then(() => ({ done: true, value: undefined })),
          return: async () => {
            returned++;
            open();
            return { done: true, value: undefined };
          },
        }),
      };
    });
  });
  const peer = await client(scene);
  await peer.does('call stream 1 - 1 0', 'started');
  await peer.does('call stream 2 - 1 0', 'started');
  await eventually('both have begun', () => began === 2);
  await peer.does('call cancel 0', 'cancelled');
  await peer.does('call cancel 1', 'cancelled');
  await ended.opened;
  await eventually('return was called', () => returned === 1);
  await eventually('their places are free', async () => {
    await call(peer, 99);
    return (await peer.ask('call state')).in_flight === '0';
  });
});

scene('the event loop runs on beside calls and streams without end', async (scene) => {
  let calls = 0;
  await serving(scene, (server) => {
    server.stream(1, function* () {
      for (;;) yield 'x';
    });
    server.method(2, () => void calls++);
  });
  const [reader, caller] = [await client(scene), await client(scene)];
  await reader.does('call stream 1 - 1000000 0', 'started');
  reader.tell('call next 0');
  await caller.does('call start 20000 2 0 0', 'started');
  for (let i = 0; i < 50; i++) await sleep(0);
  await caller.does('call wait-all', 'waited', { Ok: 20_000 });
  assert.equal(calls, 20_000);
  await reader.said('reply', { text: 'x' });
  await reader.does('call cancel 0', 'cancelled');
});

scene('run: once, until it is aborted', async ({ path, own }) => {
  const server = own(await RpcServer.bind(path('rpc')));
  await assert.rejects(server.run({ signal: AbortSignal.abort(new Error('before')) }), /before/);
  const controller = new AbortController();
  const run = server.run({ signal: controller.signal });
  await assert.rejects(server.run(), code('BUSY'));
  assert.equal(await settled(run), false);
  const down = server.shutdown(LONG);
  controller.abort(new Error('enough'));
  await assert.rejects(run, /enough/);
  await down;
  assert.equal(server.closed, true);
  await assert.rejects(server.run(), code('DETACHED'));
  assert.throws(() => server.method(1, () => {}), code('DETACHED'));
  await server.shutdown();
  // One that never ran is shut down too.
  const idle = own(RpcServer.bindSync(path('rpc')));
  await idle.shutdown();
  assert.equal(idle.closed, true);
  {
    const both = await RpcServer.bind(path('rpc'));
    both[Symbol.dispose]();
    assert.equal(both.closed, true);
    const later = await RpcServer.bind(path('rpc'));
    const serves = later.run();
    await later[Symbol.asyncDispose]();
    await serves;
  }
});

scene('what cannot be bound, registered or asked for', async ({ path, own }) => {
  /** @type {[any, any, any][]} */
  const binds = [
    [5, undefined, code('INVALID_ARGUMENT')],
    ['a\0b', undefined, code('INVALID_ARGUMENT')],
    ['no good name', undefined, code('INVALID_ARGUMENT')],
    [`${path('none')}/rpc`, undefined, code('NOT_FOUND')],
    [path('rpc'), { capacity: -1 }, code('INVALID_ARGUMENT')],
    [path('rpc'), { capacity: 2 ** 53 }, code('INVALID_ARGUMENT')],
    [path('rpc'), { align: 17 }, code('INVALID_ARGUMENT')],
    [path('rpc'), { mode: 0o10000 }, code('INVALID_ARGUMENT')],
    [path('rpc'), { allowUids: [-1] }, code('INVALID_ARGUMENT')],
    [path('rpc'), { handshakeTimeout: '1' }, code('INVALID_ARGUMENT')],
    [path('rpc'), { wait: 'sleep' }, code('INVALID_ARGUMENT')],
    [path('rpc'), { maxClients: 0 }, code('INVALID_ARGUMENT')],
    [path('rpc'), { maxInFlight: 0 }, code('INVALID_ARGUMENT')],
    [path('rpc'), { maxInFlight: 2 ** 20 + 1 }, code('INVALID_ARGUMENT')],
    [path('rpc'), { maxBytes: 1.5 }, code('INVALID_ARGUMENT')],
    [path('rpc'), { max_bytes: 1 }, /there is no option 'max_bytes'/],
    [path('rpc'), null, /expected an object/],
  ];
  for (const [name, options, expected] of binds) {
    await assert.rejects(RpcServer.bind(name, options), expected, JSON.stringify([name, options]));
    assert.throws(() => RpcServer.bindSync(name, options), expected, JSON.stringify([name, options]));
  }
  await assert.rejects(RpcServer.bind(path('rpc'), { signal: AbortSignal.abort(new Error('before')) }), /before/);
  const server = own(await RpcServer.bind(path('rpc'), { capacity: 5000, maxBytes: 0, maxClients: 1, maxInFlight: 1 }));
  await assert.rejects(RpcServer.bind(path('rpc')), code('ALREADY_EXISTS'));
  const handler = () => {};
  server.method(7, handler, { name: 'Seven' });
  server.stream('Numbers', () => []);
  /** @type {[any, any, any, any][]} */
  const keys = [
    [7, handler, undefined, code('ALREADY_EXISTS')],
    ['Numbers', handler, {}, code('ALREADY_EXISTS')],
    [-1, handler, undefined, code('INVALID_ARGUMENT')],
    [1.5, handler, undefined, code('INVALID_ARGUMENT')],
    [2 ** 32, handler, undefined, code('INVALID_ARGUMENT')],
    [0xffff_0000, handler, undefined, code('INVALID_ARGUMENT')],
    [7n, handler, undefined, code('INVALID_ARGUMENT')],
    [undefined, handler, undefined, code('INVALID_ARGUMENT')],
    ['a\nb', handler, undefined, code('INVALID_ARGUMENT')],
    [8, undefined, undefined, code('INVALID_ARGUMENT')],
    [8, 'handler', undefined, code('INVALID_ARGUMENT')],
    [8, handler, { name: 'a\0b' }, code('INVALID_ARGUMENT')],
    [8, handler, { name: 5 }, code('INVALID_ARGUMENT')],
    [8, handler, { names: 'x' }, /there is no option 'names'/],
    [8, handler, 'name', /expected an object/],
    ['Named', handler, { name: 'again' }, code('INVALID_ARGUMENT')],
  ];
  for (const [method, what, options, expected] of keys) {
    assert.throws(() => server.method(method, what, options), expected, String(method));
    assert.throws(() => server.stream(method, what, options), expected, String(method));
  }
  for (const timeout of [-1, '5', null, Number.NaN]) {
    await assert.rejects(server.shutdown(/** @type {any} */ (timeout)), code('INVALID_ARGUMENT'));
  }
  await assert.rejects(server.run(/** @type {any} */ ({ timeout: 5 })), /there is no option 'timeout'/);
  await assert.rejects(server.run(/** @type {any} */ ({ signal: 5 })), code('INVALID_ARGUMENT'));
  assert.equal(server.closed, false);
  for (const [number, text] of [[-1], [2 ** 32], [1.5], ['1'], [1n], [1, 5]]) {
    assert.throws(() => new Fault(/** @type {any} */ (number), /** @type {any} */ (text)), code('INVALID_ARGUMENT'));
  }
  const fault = new Fault(3, 'why');
  assert.deepEqual([fault.code, fault.text, fault.message, fault.name], [3, 'why', 'why', 'Fault']);
  assert.ok(fault instanceof Error);
});

scene('who speaks no RPC, or is one too many, is refused', async (scene) => {
  const { path, own } = scene;
  await serving(scene, (server) => server.method(1, () => 'there'), { maxClients: 1 });
  await assert.rejects(Bus.connect(path('rpc'), { timeout: LONG }), code('ABI_MISMATCH'));
  const first = await client(scene);
  const second = own(await Peer.start(`call=${path('rpc')}`));
  await second.said('error', { name: 'Busy' });
  assert.equal((await call(first, 1)).text, 'there');
  const plain = own(await Listener.bind(path('bus')));
  plain.accept().catch(() => {});
  const other = own(await Peer.start(`call=${path('bus')}`));
  await other.said('error', { name: 'AbiMismatch' });
});

scene('metadata goes both ways, of each element its own', async (scene) => {
  const [server] = await serving(scene, (server) => {
    server.method(1, async (request) => {
      request.replyMeta = request.meta;
      await null;
      return 'reply';
    });
    server.stream(2, async function* (request) {
      for (const meta of ['one', undefined, 'two']) {
        request.replyMeta = meta;
        yield 'element';
      }
      request.replyMeta = 'of the end';
      throw new Fault(3, 'enough');
    });
  });
  const client = scene.own(await RpcClient.connect(server.path, { timeout: LONG }));
  for (const size of [0, 1, 15, 16, 17, 70_000]) {
    const meta = new Uint8Array(size).fill(7);
    const reply = await client.call(1, 'x', { meta });
    assert.deepEqual([reply.text(), Buffer.compare(reply.meta, meta)], ['reply', 0]);
  }
  const metas = [];
  await assert.rejects(
    async () => {
      for await (const element of client.stream(2)) metas.push(Buffer.from(element.meta).toString());
    },
    { applicationCode: 3, text: 'enough', status: 'Application' },
  );
  assert.deepEqual(metas, ['one', '', 'two']);
});
