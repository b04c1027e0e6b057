// What each call is given: options that there are not, shapes that are none; gathered messages, batches, tensors in place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Bus, Listener, Ring } from '../index.mjs';
import { code, eventually, LONG, pair, scene } from './scene.mjs';

const allowMainThread = true;

/** What `call` fails with, and whether it was thrown. @param {() => any} call @returns {Promise<[any, boolean]>} */
async function failure(call) {
  let promise;
  try {
    promise = call();
  } catch (error) {
    return [error, true];
  }
  try {
    await promise;
  } catch (error) {
    return [error, false];
  }
  assert.fail(`${call} did not fail`);
}

const WAIT = ['timeout', 'signal'];
const SYNC = ['timeout', 'allowMainThread'];
const FRAME = ['typeId', 'tag', 'flush'];
const one = { dtype: 'uint8', shape: [1] };

/** @type {[string, string[], (tx: any, rx: any, options: any) => unknown][]} */
const calls = [
  ['recv', WAIT, (_, rx, options) => rx.recv(options)],
  ['recvSync', SYNC, (_, rx, options) => rx.recvSync(options)],
  ['recvBatch', ['max', ...WAIT], (_, rx, options) => rx.recvBatch(options)],
  ['tryRecvBatch', ['max'], (_, rx, options) => rx.tryRecvBatch(options)],
  ['recvBatchSync', ['max', ...SYNC], (_, rx, options) => rx.recvBatchSync(options)],
  ['recvInto', WAIT, (_, rx, options) => rx.recvInto(new Uint8Array(9), options)],
  ['recvIntoSync', SYNC, (_, rx, options) => rx.recvIntoSync(new Uint8Array(9), options)],
  ['messages', ['signal'], (_, rx, options) => rx.messages(options)],
  ['batches', ['max', 'signal'], (_, rx, options) => rx.batches(options)],
  ['send', [...FRAME, ...WAIT], (tx, _, options) => tx.send('x', options)],
  ['trySend', FRAME, (tx, _, options) => tx.trySend('x', options)],
  ['sendSync', [...FRAME, ...SYNC], (tx, _, options) => tx.sendSync('x', options)],
  ['sendVectored', [...FRAME, ...WAIT], (tx, _, options) => tx.sendVectored(['x'], options)],
  ['trySendVectored', FRAME, (tx, _, options) => tx.trySendVectored(['x'], options)],
  ['sendVectoredSync', [...FRAME, ...SYNC], (tx, _, options) => tx.sendVectoredSync(['x'], options)],
  ['sendBatch', [...FRAME, ...WAIT], (tx, _, options) => tx.sendBatch(['x'], options)],
  ['reserve', [...FRAME, ...WAIT], (tx, _, options) => tx.reserve(1, () => {}, options)],
  ['tryReserve', FRAME, (tx, _, options) => tx.tryReserve(1, () => {}, options)],
  ['reserveSync', [...FRAME, ...SYNC], (tx, _, options) => tx.reserveSync(1, () => {}, options)],
  ['sendTensor', ['tag', ...WAIT], (tx, _, options) => tx.sendTensor({ data: new Uint8Array(1) }, options)],
  ['trySendTensor', ['tag'], (tx, _, options) => tx.trySendTensor({ data: new Uint8Array(1) }, options)],
  ['sendTensorSync', ['tag', ...SYNC], (tx, _, options) => tx.sendTensorSync({ data: new Uint8Array(1) }, options)],
  ['reserveTensor', ['tag', ...WAIT], (tx, _, options) => tx.reserveTensor(one, () => {}, options)],
  ['tryReserveTensor', ['tag'], (tx, _, options) => tx.tryReserveTensor(one, () => {}, options)],
  ['reserveTensorSync', ['tag', ...SYNC], (tx, _, options) => tx.reserveTensorSync(one, () => {}, options)],
];
/** These tell by a rejection. */
const promising = ['recv', 'recvBatch', 'recvInto', 'send', 'sendVectored', 'sendBatch', 'reserve', 'sendTensor'];
promising.push('reserveTensor');

scene('an option that a call does not have is a TypeError, and nothing is sent or taken', async ({ own }) => {
  const [tx, rx] = pair(own);
  tx.trySend('there');
  for (const [what, names, call] of calls) {
    for (const name of ['tiemout', 'typeid', 'Max', '']) {
      const [error, thrown] = await failure(() => call(tx, rx, { [name]: 5, allowMainThread: undefined }));
      assert.ok(error instanceof TypeError, `${what} ${error?.stack}`);
      assert.ok(code('INVALID_ARGUMENT')(error));
      assert.equal(/** @type {any} */ (error).kind, 'InvalidArgument');
      assert.equal(error.message, `${what}: there is no option '${name}', expected ${names.join(', ')}`);
      assert.equal(thrown, !promising.includes(what), what);
    }
    for (const options of [5, null, 'fast', true]) {
      const [error, thrown] = await failure(() => call(tx, rx, options));
      assert.ok(error instanceof TypeError, `${what} ${error?.stack}`);
      assert.match(error.message, new RegExp(`^${what}: the options are .*, expected an object$`));
      assert.equal(thrown, !promising.includes(what), what);
    }
  }
  const message = rx.tryRecv();
  assert.equal(message?.text(), 'there');
  message?.release();
  assert.equal(rx.used, 0);
});

scene('options that are undefined, or inherited from something that has more', async ({ own }) => {
  const [tx, rx] = pair(own);
  for (const [, names, call] of calls) {
    const options = Object.create({ color: 'red', allowMainThread });
    for (const name of names) if (name !== 'allowMainThread') options[name] = undefined;
    tx.trySend('there');
    await call(tx, rx, options);
    while (rx.tryRecv() !== null);
  }
});

scene('a time-out, flag or number that is none is refused by every call', async ({ own }) => {
  const [tx, rx] = pair(own);
  /** @type {Record<string, unknown[]>} */
  const wrong = {
    timeout: [-1, NaN, '5', null, -Infinity],
    allowMainThread: ['yes', 1, null],
    flush: ['no', 0, null],
    max: [0, -1, 1.5, NaN, '3', null],
    signal: [{}, 5, null],
    tag: [-1, 1.5, -1n, 2n ** 64n, '1'],
    typeId: [-1, 1.5, 2 ** 32, '1'],
  };
  for (const [what, names, call] of calls) {
    for (const name of names) {
      for (const value of wrong[name] ?? []) {
        const [error, thrown] = await failure(() => call(tx, rx, { allowMainThread: undefined, [name]: value }));
        if (!names.includes('allowMainThread')) assert.equal(thrown, !promising.includes(what), what);
        assert.equal(error.code, 'ERR_RAMWAY_INVALID_ARGUMENT', `${what} ${name}=${String(value)} ${error.stack}`);
      }
    }
  }
  assert.equal(rx.used, 0);
});

scene('pieces are one message, in their order', async ({ own }) => {
  const [tx, rx] = pair(own);
  const pieces = [
    'über ',
    Uint8Array.of(65, 66),
    new Uint16Array([0x4443]).buffer,
    new DataView(new ArrayBuffer(1)),
    '',
  ];
  await tx.sendVectored(pieces, { typeId: 7, tag: 8 });
  assert.ok(tx.trySendVectored(new Set(['a', 'b'])));
  tx.sendVectoredSync([], { allowMainThread });
  const first = await rx.recv();
  assert.deepEqual([first.text(), first.typeId, first.tag], ['über ABCD\0', 7, 8n]);
  assert.deepEqual([(await rx.recv()).text(), (await rx.recv()).length], ['ab', 0]);
  for (const wrong of ['text', Uint8Array.of(1), 5, null, undefined, [1], [null]]) {
    await assert.rejects(tx.sendVectored(/** @type {any} */ (wrong)), code('INVALID_ARGUMENT'));
    assert.throws(() => tx.trySendVectored(/** @type {any} */ (wrong)), code('INVALID_ARGUMENT'));
  }
  const half = new Uint8Array(tx.maxMessageLength / 2 + 1);
  await assert.rejects(tx.sendVectored([half, half]), code('TOO_LARGE'));
});

scene('pieces wait for room, and one that changes meanwhile is refused', async ({ own }) => {
  const [tx, rx] = pair(own);
  while (tx.trySend(new Uint8Array(100)));
  assert.equal(tx.trySendVectored(['x'.repeat(2000)]), false);
  const gone = new Uint8Array(1000);
  const waiting = [tx.sendVectored(['a'.repeat(1000), 'b'.repeat(1000)]), tx.sendVectored(['c', gone])];
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  const outcomes = Promise.allSettled(waiting);
  let got = '';
  while (!got.startsWith('aaa')) got = (await rx.recv({ timeout: LONG })).text();
  assert.equal(got, 'a'.repeat(1000) + 'b'.repeat(1000));
  const [first, second] = /** @type {any[]} */ (await outcomes);
  assert.equal(first.status, 'fulfilled');
  assert.equal(second.reason.code, 'ERR_RAMWAY_INVALID_ARGUMENT');
});

scene('a batch that its time-out ends resolves with how many were sent; none: it is TimedOut', async ({ own }) => {
  const [tx, rx] = pair(own);
  const data = new Uint8Array(1008);
  for (const timeout of [0, 0.5, 20]) {
    assert.equal(await tx.sendBatch(Array(10).fill(data), { timeout, typeId: 3, tag: 4n }), 4);
    await assert.rejects(tx.sendBatch([data], { timeout }), code('TIMED_OUT'));
    assert.equal(rx.used, 4096);
    for (let i = 0; i < 4; i++) {
      const message = rx.tryRecv();
      assert.deepEqual([message?.typeId, message?.tag], [3, 4n]);
      message?.release();
    }
    assert.equal(rx.tryRecv(), null);
  }
});

scene('a batch that something else ends resolves with how many were sent, and the next call meets it', async (here) => {
  const [tx, rx] = pair(here.own);
  const data = new Uint8Array(1008);
  const long = new Uint8Array(5000);
  assert.equal(await tx.sendBatch(['a', 'b', long, 'c']), 2);
  await assert.rejects(tx.sendBatch([long, 'c']), code('TOO_LARGE'));
  assert.equal(await tx.sendBatch(['a', /** @type {any} */ (5)]), 1);
  await assert.rejects(tx.sendBatch(/** @type {any} */ ([5])), code('INVALID_ARGUMENT'));
  await assert.rejects(tx.sendBatch('text'), code('INVALID_ARGUMENT'));
  while (rx.tryRecv() !== null);

  const controller = new AbortController();
  const { signal } = controller;
  const sending = tx.sendBatch(Array(10).fill(data), { signal });
  controller.abort(new Error('enough'));
  assert.equal(await sending, 4);
  await assert.rejects(tx.sendBatch(['x'], { signal }), /enough/);
  while (rx.tryRecv() !== null);

  const more = tx.sendBatch(Array(10).fill(data));
  rx.close();
  assert.equal(await more, 4);
  await assert.rejects(tx.sendBatch(['x']), code('CLOSED'));
});

scene('what an iterable of a batch throws is its own, and what it gave before is sent', async ({ own }) => {
  const [tx, rx] = pair(own);
  const messages = function* () {
    yield 'a';
    yield 'b';
    throw new Error('from the generator');
  };
  await assert.rejects(tx.sendBatch(messages()), /from the generator/);
  assert.deepEqual([rx.tryRecv()?.text(), rx.tryRecv()?.text(), rx.tryRecv()], ['a', 'b', null]);
});

scene('tensors are written in place', async ({ own }) => {
  const [tx, rx] = pair(own, 65_536);
  /** @type {any[]} */ const kept = [];
  const matrix = { dtype: 'float32', shape: [2, 3] };
  const fill = (/** @type {any} */ data) => {
    assert.ok(data instanceof Float32Array && data.length === 6);
    kept.push(data);
    for (let i = 0; i < 6; i++) data[i] = i / 2;
  };
  await tx.reserveTensor(matrix, fill, { tag: 5 });
  assert.ok(tx.tryReserveTensor(matrix, fill, { tag: 5 }));
  tx.reserveTensorSync(matrix, fill, { tag: 5, allowMainThread });
  await tx.reserveTensor(
    matrix,
    async (data) => {
      await Promise.resolve();
      fill(data);
    },
    { tag: 5 },
  );
  for (let i = 0; i < 4; i++) {
    const message = await rx.recv();
    const { dtype, shape, data } = message.tensor();
    assert.deepEqual([dtype, shape, [...data], message.tag], ['float32', [2, 3], [0, 0.5, 1, 1.5, 2, 2.5], 5n]);
    message.release();
  }
  assert.ok(kept.every((data) => data.length === 0));

  assert.ok(tx.tryReserveTensor(matrix, () => false));
  await assert.rejects(
    tx.reserveTensor(matrix, () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.throws(() => tx.tryReserveTensor(matrix, /** @type {any} */ (() => 6)), code('INVALID_ARGUMENT'));
  assert.throws(() => tx.tryReserveTensor(matrix, /** @type {any} */ (async () => {})), code('INVALID_ARGUMENT'));
  assert.equal(rx.tryRecv(), null);

  for (const [dtype, shape, length] of /** @type {[string, number[], number][]} */ ([
    ['complex128', [2], 4],
    ['int8', [3, 0], 0],
    ['uint64', [], 1],
    ['bfloat16', [7], 7],
  ])) {
    let seen = -1;
    await tx.reserveTensor({ dtype, shape }, (data) => {
      seen = data.length;
    });
    assert.equal(seen, length);
    const message = await rx.recv();
    const got = message.tensor();
    assert.deepEqual([got.dtype, got.shape, got.data.length], [dtype, shape, length]);
  }
  for (const wrong of [undefined, null, 5, {}, { dtype: 'f4', shape: [1] }, { dtype: 'int8', shape: 3 }]) {
    await assert.rejects(
      tx.reserveTensor(/** @type {any} */ (wrong), () => {}),
      (/** @type {any} */ error) => {
        assert.match(error.message, /^tensor(\.dtype|\.shape)?: /);
        return code('INVALID_ARGUMENT')(error);
      },
    );
  }
  await assert.rejects(tx.sendTensor(/** @type {any} */ (undefined)), /^RamwayError: tensor: expected/);
  await assert.rejects(tx.sendTensor(/** @type {any} */ ({ data: [1] })), /tensor\.data: expected a typed array/);
});

scene('closing its own receiver ends a loop by Detached, not as if the stream were complete', async ({ own }) => {
  for (const make of [
    (/** @type {any} */ rx) => rx.messages(),
    (/** @type {any} */ rx) => rx.batches(),
    (/** @type {any} */ rx) => rx,
  ]) {
    for (const close of ['close', 'end']) {
      // While it waits.
      const [, waiting] = pair(own);
      const loop = (async () => {
        for await (const _ of make(waiting)) assert.fail('nothing was sent');
      })();
      setTimeout(() => /** @type {any} */ (waiting)[close](), 5);
      await assert.rejects(loop, code('DETACHED'));

      // In its body.
      const [tx, rx] = pair(own);
      for (let i = 0; i < 3; i++) tx.trySend('x');
      let steps = 0;
      const inside = (async () => {
        for await (const _ of make(rx)) {
          steps++;
          /** @type {any} */ (rx)[close]();
        }
      })();
      await assert.rejects(inside, code('DETACHED'));
      assert.equal(steps, 1);
    }
  }
});

scene('a loop that its body leaves, or that was left, ends quietly', async ({ own }) => {
  const [tx, rx] = pair(own);
  for (let i = 0; i < 3; i++) tx.trySend('x');
  const loop = rx.messages();
  for await (const _ of loop) break;
  assert.deepEqual(await loop.next(), { done: true, value: undefined });
  for await (const _ of rx) {
    rx.close();
    break;
  }
  // The sender's own end is the end of a stream.
  const [tx2, rx2] = pair(own);
  tx2.trySend('last');
  tx2.close();
  const got = [];
  for await (const message of rx2) got.push(message.text());
  assert.deepEqual(got, ['last']);
});

scene('a loop that is aborted rejects with the reason, whether or not it was closed then too', async ({ own }) => {
  for (const closes of [false, true]) {
    const [tx, rx] = pair(own);
    tx.trySend('x');
    const controller = new AbortController();
    const loop = (async () => {
      for await (const _ of rx.messages({ signal: controller.signal })) {
        controller.abort(new Error('enough'));
        if (closes) rx.close();
      }
    })();
    await assert.rejects(loop, /enough/);
  }
});

scene('the messages of a bus end by Detached too, when it is closed here', async ({ path, own }) => {
  const accepting = Bus.listen(path('bus'), { timeout: LONG });
  const client = own(await Bus.connect(path('bus'), { timeout: LONG }));
  const server = own(await accepting);
  const loop = (async () => {
    for await (const _ of server) assert.fail('nothing was sent');
  })();
  setTimeout(() => server.end(), 5);
  await assert.rejects(loop, (/** @type {any} */ error) => {
    assert.equal(error.message, `the receiver of the bus '${path('bus')}' is closed`);
    return code('DETACHED')(error);
  });
  client.close();
});

scene('tryAccept gives who is there, and null if nobody is', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus')));
  assert.equal(listener.tryAccept(), null);
  const connecting = Bus.connect(path('bus'), { timeout: LONG });
  /** @type {Bus | null} */ let bus = null;
  await eventually('a connection', () => {
    bus = own(listener.tryAccept());
    return bus !== null;
  });
  const client = own(await connecting);
  await client.send('hello');
  const message = await /** @type {any} */ (bus).recv({ timeout: LONG });
  assert.equal(message.text(), 'hello');
  await assert.rejects(listener.accept({ timeout: 0 }), /nobody connected to the listener '.*bus'/);
  listener.close();
  assert.throws(() => listener.tryAccept(), code('DETACHED'));
});

scene('errors say which ring', async ({ path, own }) => {
  const tx = own(await Ring.create(path('ring'), { capacity: 4096 }).sender());
  const rx = own(await Ring.open(path('ring')).receiver());
  const about = new RegExp(`the (sender|receiver) of the ring '${path('ring')}'`);
  await assert.rejects(rx.recv({ timeout: 0 }), about);
  await assert.rejects(rx.recv({ timeout: 2 }), about);
  assert.throws(() => rx.recvSync({ timeout: 2, allowMainThread }), about);
  while (tx.trySend(new Uint8Array(500)));
  await assert.rejects(tx.send(new Uint8Array(500), { timeout: 2 }), about);
  assert.throws(() => tx.sendSync(new Uint8Array(500), { timeout: 2, allowMainThread }), about);
  await assert.rejects(tx.send(new Uint8Array(5000)), about);
  tx.close();
  rx.close();
  await assert.rejects(tx.send('x'), about);
  await assert.rejects(rx.recv(), about);
});

test('an option whose name everything inherits is no option', { timeout: LONG }, () => {
  const [tx, rx] = Ring.pair(4096);
  for (const name of ['toString', 'constructor', 'hasOwnProperty']) {
    assert.throws(() => tx.trySend('x', /** @type {any} */ ({ [name]: 1 })), TypeError);
  }
  tx.close();
  rx.close();
});
