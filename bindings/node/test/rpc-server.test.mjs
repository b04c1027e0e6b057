// RPC servers: what handlers get and reply, how calls end, streams, limits, deaths, shutting down. The client is another process.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { Bus, Fault, Listener, methodId, RpcRequest, RpcServer } from '../index.mjs';
import { code, eventually, LONG, program, scene, settled, sleep } from './scene.mjs';

/** @typedef {import('./scene.mjs').Scene} Scene */
/** @typedef {import('./scene.mjs').Peer} Peer */

/** A promise that is settled from outside. */
function gate() {
  /** @type {(value?: any) => void} */ let open = () => {};
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

/**
 * A server that serves, and what its `run` gives.
 * @param {Scene} scene @param {(server: RpcServer) => void} register @param {import('../index.mjs').RpcServerOptions} [options]
 * @returns {Promise<[RpcServer, Promise<void>]>}
 */
async function serving({ path, own }, register, options) {
  const server = own(await RpcServer.bind(path('rpc'), options));
  register(server);
  const run = server.run();
  run.catch(() => {});
  return [server, run];
}

/** @param {Scene} scene */
const client = ({ path, peer }, ...places) => peer(...places, `call=${path('rpc')}`);

/** The answer of one call. @param {Peer} peer @param {number} method */
async function call(peer, method, size = 0, timeout = 0) {
  const { first } = await peer.ask(`rpc start 1 ${method} ${size} ${timeout}`);
  return peer.ask(`rpc wait ${first}`);
}

const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text);

for (const wait of /** @type {const} */ (['hybrid', 'block', 'spin'])) {
  scene(`a reply is what a handler returns or resolves with (${wait})`, async (scene) => {
    const buffer = bytes('a buffer').buffer;
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
          .method('Named', (request) => request.text().length.toString());
      },
      { wait },
    );
    const peer = await client(scene);
    const replies = ['', 'text: ä', 'later', '', 'buffer', 'a buffer', 'from a thenable', ''];
    for (const [method, text] of replies.entries()) assert.deepEqual(await call(peer, method), { word: 'reply', text });
    assert.deepEqual(await call(peer, methodId('Named'), 100), { word: 'reply', text: '100' });
    // What has room among others, and what crosses alone.
    for (const size of [1, 40_000, 65_536, 65_537, 500_000]) {
      assert.equal((await call(peer, 0, size)).text, 'x'.repeat(size));
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
  await peer.does('rpc stream 4 hello 3 0', 'started', { first: 2 });
  await peer.does('rpc next 2', 'complete');
  const [plain, limited, stream] = seen;
  assert.ok(plain instanceof RpcRequest);
  assert.deepEqual([plain.method, plain.text(), plain.isStream, plain.meta.length], [3, 'xxxxx', false, 0]);
  assert.deepEqual([plain.remaining, plain.cancelled, plain.replyMeta], [undefined, false, undefined]);
  assert.deepEqual(plain.peer, { uid: process.getuid?.(), pid: peer.pid });
  const left = limited.remaining ?? assert.fail('no limit');
  assert.ok(left > 0 && left <= LONG && limited.body.length === 70_000);
  assert.deepEqual([stream.method, stream.text(), stream.isStream], [4, 'hello', true]);
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
  await peer.does('rpc start 1000 1 10 0', 'started', { first: 0 });
  await all.opened;
  for (const open of waiting.reverse()) open();
  for (const number of [999, 0, 500]) await peer.does(`rpc wait ${number}`, 'reply', { text: `${number} 10` });
  await peer.does('rpc wait-all', 'waited', { Ok: 997 });
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
  await stuck.does('rpc start 20 1 0 0', 'started');
  await eventually('four calls have begun', () => began === 4);
  assert.equal((await call(other, 2)).text, 'there');
  assert.equal(began, 4);
  // Cancelling frees no place as long as the handler runs.
  for (let number = 0; number < 20; number++) await stuck.does(`rpc cancel ${number}`, 'cancelled');
  assert.equal((await call(other, 2)).text, 'there');
  assert.equal(began, 4);
  await stuck.does('rpc state', 'state', { in_flight: 4 });
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
  await peer.does('rpc start 3 1 10000 0', 'started');
  await peer.does('rpc start 1 1 10000 0', 'started');
  await peer.does('rpc wait 3', 'failed', { status: 'Overloaded', may_have_run: 'false' });
  assert.equal(began, 3);
  open();
  await peer.does('rpc wait-all', 'waited', { Ok: 3 });
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
  await peer.does('rpc start 2 1 0 0', 'started');
  await eventually('both have begun', () => seen.length === 2);
  await peer.does('rpc cancel 0', 'cancelled');
  await eventually('the first is cancelled', () => seen[0].signal.aborted);
  assert.deepEqual([seen[0].cancelled, seen[1].cancelled, seen[1].signal.aborted], [true, false, false]);
  assert.equal(seen[0].signal.reason.name, 'AbortError');
  await peer.does('rpc state', 'state', { in_flight: 2 });
  open();
  await eventually('its place is free', async () => (await peer.ask('rpc state')).in_flight === '1');
  await peer.does('rpc cancel 1', 'cancelled');
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
  await peer.does('rpc start 1 1 0 60', 'started');
  await aborted.opened;
  assert.deepEqual([seen[0].cancelled, seen[0].remaining], [true, 0]);
  await peer.does('rpc wait 0', 'failed', { may_have_run: 'true' });
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
    await peer.ask('rpc start 5 1 0 20');
    const answer = await peer.ask('rpc wait-all');
    await eventually('all of them have ended', async () => (await peer.ask('rpc state')).in_flight === '0');
    assert.equal(answer.Ok, undefined);
    skipped = 5 - began;
  }
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
    const { first } = await peer.ask(`rpc stream ${method} ${body} ${window} 0`);
    const texts = [];
    for (;;) {
      const answer = await peer.ask(`rpc next ${first}`);
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
  await peer.does('rpc stream 1 - 3 0', 'started', { first: 0 });
  await peer.does('rpc stream 2 - 3 0', 'started', { first: 1 });
  await eventually('as many as there is room for', () => yielded.every((count) => count === 3));
  for (let i = 0; i < 20; i++) {
    assert.equal((await call(peer, 3)).text, 'there');
    assert.equal((await call(other, 3)).text, 'there');
  }
  assert.deepEqual(yielded, [3, 3]);
  for (const stream of [0, 1]) {
    for (let i = 0; i < 10; i++) await peer.does(`rpc next ${stream}`, 'reply', { text: i });
  }
  assert.ok(
    yielded.every((count) => count <= 14),
    `${yielded}`,
  );
  await peer.does('rpc cancel 0', 'cancelled');
  await peer.does('rpc cancel 1', 'cancelled');
  await Promise.all(ended.map(({ opened }) => opened));
  assert.ok(request?.signal.aborted);
  await eventually('their places are free', async () => {
    await call(peer, 3);
    return (await peer.ask('rpc state')).in_flight === '0';
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
  await peer.does('rpc stream 1 - 1 0', 'started');
  await peer.does('rpc stream 2 - 1 0', 'started');
  await eventually('both have begun', () => began === 2);
  await peer.does('rpc cancel 0', 'cancelled');
  await peer.does('rpc cancel 1', 'cancelled');
  await ended.opened;
  await eventually('return was called', () => returned === 1);
  await eventually('their places are free', async () => {
    await call(peer, 99);
    return (await peer.ask('rpc state')).in_flight === '0';
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
  await reader.does('rpc stream 1 - 1000000 0', 'started');
  reader.tell('rpc next 0');
  await caller.does('rpc start 20000 2 0 0', 'started');
  for (let i = 0; i < 50; i++) await sleep(0);
  await caller.does('rpc wait-all', 'waited', { Ok: 20_000 });
  assert.equal(calls, 20_000);
  await reader.said('reply', { text: 'x' });
  await reader.does('rpc cancel 0', 'cancelled');
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
      await peer.does('rpc start 100 1 0 0', 'started');
      await peer.does('rpc stream 2 - 4 0', 'started', { first: 100 });
      await peer.does('rpc next 100', 'reply', { text: 'x' });
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
  await stopped.does('rpc stream 1 - 1000 0', 'started');
  await eventually('its ring is full', () => sent >= 3);
  stopped.stop();
  for (let i = 0; i < 50; i++) assert.equal((await call(other, 2)).text, 'there');
  const before = sent;
  for (let i = 0; i < 50; i++) assert.equal((await call(other, 2)).text, 'there');
  assert.equal(sent, before);
  stopped.goOn();
  await stopped.does('rpc next 0', 'reply');
  await stopped.does('rpc cancel 0', 'cancelled');
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
  await peer.does('rpc start 5 1 0 0', 'started');
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
  await peer.does('rpc wait-all', 'waited', { Ok: 5 });
  assert.deepEqual([server.closed, server.clients], [true, 0]);
  const late = await call(peer, 1);
  assert.deepEqual([late.status, late.may_have_run], ['Closed', 'false']);
  await server.shutdown();
  scene.own(await RpcServer.bind(scene.path('rpc')));
});

scene('a shutdown whose time is over cancels, and does not wait for what goes on', async (scene) => {
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
  await peer.does('rpc start 1 1 0 0', 'started');
  await peer.does('rpc stream 3 - 1 0', 'started');
  await stuck.does('rpc start 1 2 0 0', 'started');
  await eventually('all have begun', () => seen.length === 3);
  await server.shutdown(20);
  await run;
  assert.ok(seen.every((request) => request.cancelled && request.signal.aborted));
  assert.equal(finished, 1);
  await peer.does('rpc wait 0', 'failed', { status: 'Cancelled' });
  await stuck.does('rpc wait 0', 'failed', { status: 'PeerDead', may_have_run: 'true' });
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
    await peer.does('rpc start 3 1 0 0', 'started');
    await eventually('all have begun', () => seen.length === 3);
    if (how === 'outside') server.close();
    else if (how === 'a generator') await peer.does('rpc stream 3 - 2 0', 'started');
    else await peer.does(`rpc start 1 ${how === 'a handler' ? 2 : 4} 0 0`, 'started');
    await run;
    assert.ok(server.closed && seen.every((request) => request.signal.aborted && request.cancelled));
    await peer.does('rpc wait 0', 'failed', { status: 'PeerDead', may_have_run: 'true' });
    server.close();
    await peer.kill();
  }
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
  const { path, own, peer } = scene;
  await serving(scene, (server) => server.method(1, () => 'there'), { maxClients: 1 });
  await assert.rejects(Bus.connect(path('rpc'), { timeout: LONG }), code('ABI_MISMATCH'));
  const first = await client(scene);
  const answer = await own(
    new /** @type {any} */ (first).constructor(process.env.RAMWAY_PEER, [`call=${path('rpc')}`]),
  );
  await answer.said('error', { name: 'Busy' });
  assert.equal((await call(first, 1)).text, 'there');
  const plain = own(await Listener.bind(path('bus')));
  plain.accept().catch(() => {});
  const other = await own(new /** @type {any} */ (first).constructor(process.env.RAMWAY_PEER, [`call=${path('bus')}`]));
  await other.said('error', { name: 'AbiMismatch' });
  void peer;
});

scene('a program ends when its server is closed, and not before', async ({ path, own, peer }) => {
  for (const how of ['shutdown', 'close', 'unref', 'idle', 'exit']) {
    const server = own(program('./peer/rpc-server.mjs', path(how), how));
    assert.equal(await server.line(), 'serves');
    if (how === 'shutdown' || how === 'close' || how === 'exit') {
      const one = await peer(`call=${path(how)}`);
      assert.equal((await call(one, 1)).text, 'there');
      await one.does('rpc start 1 2 0 0', 'started');
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
  await there.does('rpc start 1 2 0 0', 'started', { first: 20 });
  await worker.terminate();
  await there.does('rpc wait 20', 'failed', { status: 'PeerDead', may_have_run: 'true' });
  own(await RpcServer.bind(path('rpc')));
  assert.equal((await call(one, 1)).text, 'here');
});
