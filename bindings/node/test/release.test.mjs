// What a view shows after its memory went back to the ring: nothing. Messages, batches, slots; moved to other threads too.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { Ring } from '../index.mjs';
import { execPath, programArgs, runtime } from './runtimes.mjs';
import {
  check,
  code,
  connected,
  eventually,
  fill,
  fromPeer,
  made,
  Process,
  pair,
  scene,
  settled,
  toPeer,
  turn,
} from './scene.mjs';

/** @typedef {import('../index.mjs').Message} Message */

/** Every kind of view of the same bytes. @param {Uint8Array} data */
const views = (data) => [
  data,
  data.subarray(1),
  data.subarray(0, 0),
  new Uint8Array(data.buffer),
  new Float64Array(data.buffer, Math.ceil(data.byteOffset / 8) * 8, 2),
  new Uint8ClampedArray(data.buffer, data.byteOffset, 5),
  Buffer.from(data.buffer, data.byteOffset, data.length),
];

/** @param {ArrayBufferView[]} kept */
function nothingIn(kept) {
  for (const view of kept) {
    assert.deepEqual([view.byteLength, view.byteOffset, view.buffer.byteLength], [0, 0, 0]);
    if (view instanceof Uint8Array) {
      assert.deepEqual([view.length, view[0]], [0, undefined]);
      // It goes nowhere.
      view[0] = 1;
      assert.equal(view[0], undefined);
    }
  }
}

/** @type {[string, (tx: any, rx: any) => Promise<ArrayBufferView[]>][]} */
const ways = [
  [
    'release()',
    async (_, rx) => {
      const message = await rx.recv();
      const kept = views(message.data);
      message.release();
      assert.equal(message.released, true);
      message.release();
      return kept;
    },
  ],
  [
    'Symbol.dispose',
    async (_, rx) => {
      const message = await rx.recv();
      const kept = views(message.data);
      message[Symbol.dispose]();
      return kept;
    },
  ],
  [
    'the next receive',
    async (tx, rx) => {
      const kept = views((await rx.recv()).data);
      await tx.send('next');
      await rx.recv();
      return kept;
    },
  ],
  [
    'a receive that finds nothing',
    async (_, rx) => {
      const kept = views((await rx.recv()).data);
      assert.equal(rx.tryRecv(), null);
      return kept;
    },
  ],
  [
    'the next step of a loop',
    async (tx, rx) => {
      /** @type {any[]} */ let kept = [];
      let step = 0;
      await tx.send('next');
      for await (const message of rx) {
        if (step++ > 0) break;
        kept = views(message.data);
      }
      return kept;
    },
  ],
  [
    'the end of a loop',
    async (_, rx) => {
      /** @type {any[]} */ let kept = [];
      for await (const message of rx) {
        kept = views(message.data);
        break;
      }
      return kept;
    },
  ],
  [
    'the end of a listener',
    (_, rx) =>
      new Promise((resolve) =>
        rx.once('message', (/** @type {any} */ message) => {
          const kept = views(message.data);
          setImmediate(() => resolve(kept));
        }),
      ),
  ],
  [
    'close()',
    async (_, rx) => {
      const kept = views((await rx.recv()).data);
      rx.close();
      return kept;
    },
  ],
  [
    'release() of its batch',
    async (tx, rx) => {
      await tx.send('next');
      const batch = await rx.recvBatch();
      const kept = views(batch.at(0).data);
      batch.release();
      assert.equal(batch.released, true);
      assert.throws(() => batch.at(0), code('DETACHED'));
      return kept;
    },
  ],
];

for (const [what, way] of ways) {
  scene(`a kept view reads length 0 after ${what}`, async ({ own }) => {
    const [tx, rx] = pair(own);
    await tx.send(fill(1, new Uint8Array(100)));
    const kept = await way(tx, rx);
    nothingIn(kept);
    if (!rx.closed) {
      for (let lap = 0; lap < 10; lap++) {
        await tx.send(new Uint8Array(900).fill(0xee));
        (await rx.recv()).release();
      }
    }
    nothingIn(kept);
  });
}

scene('large messages, whose buffer is made when the one before is released', async ({ own }) => {
  const LARGE = 32 << 20;
  const ring = Ring.unnamed({ capacity: 4 * LARGE });
  const [tx, rx] = [own(await ring.sender()), own(await ring.receiver())];
  ring.close();
  // As long as the one before, longer, shorter, short, and some that nobody looks at. A buffer ends where the next frame begins.
  const lengths = [LARGE, LARGE, LARGE, LARGE + 64, LARGE + 64, LARGE, 112, LARGE, LARGE];
  const kept = [];
  for (const [n, length] of [...lengths, ...lengths].entries()) {
    const fill = (/** @type {Uint8Array} */ slot) => {
      slot[0] = n + 1;
      slot[length - 1] = n + 2;
    };
    assert.equal(tx.tryReserve(length, fill), true);
    const message = await rx.recv();
    if (n % 8 === 7) continue;
    const { data } = message;
    assert.deepEqual([data.byteOffset, data.length, data.buffer.byteLength], [0, length, length]);
    assert.deepEqual([data[0], data[length - 1]], [n + 1, n + 2]);
    let moved;
    if (n % 5 === 2) {
      try {
        moved = new Uint8Array(structuredClone(data.buffer, { transfer: [data.buffer] }));
      } catch {
        // Bun refuses.
      }
    }
    message.release();
    nothingIn([data]);
    kept.push({ data, moved, n });
  }
  rx.close();
  for (const { data, moved, n } of kept) {
    nothingIn([data]);
    if (moved !== undefined && moved.length > 0) assert.equal(moved[0], n + 1);
  }
});

scene('a DataView of a released message throws', async ({ own }) => {
  const [tx, rx] = pair(own);
  await tx.send(new Uint8Array(100));
  const message = await rx.recv();
  const view = new DataView(message.data.buffer, message.data.byteOffset, 10);
  assert.equal(view.getUint8(3), 0);
  message.release();
  assert.throws(() => view.byteLength, TypeError);
  assert.throws(() => view.getUint8(0), TypeError);
  assert.throws(() => view.setUint8(0, 1), TypeError);
  assert.throws(() => message.data, code('DETACHED'));
  assert.throws(() => message.copy(), code('DETACHED'));
  assert.throws(() => message.text(), code('DETACHED'));
});

scene('views of ten thousand messages are all empty, copies and short messages are not', async (here) => {
  const [rx, peer] = await fromPeer(here, { capacity: 4096 });
  peer.tell('send 10000 mixed 0');
  const kept = [];
  const short = [];
  const copies = [];
  let seq = 0;
  for await (const message of rx) {
    check(seq++, message);
    if (message.length < 300)
      copies.push({ data: message.copy(), length: message.length, typeId: message.typeId, tag: message.tag });
    const { data, length, typeId, tag } = message;
    if (length > 64) kept.push(data);
    else short.push({ data, length, typeId, tag });
    if (seq === 10_000) break;
  }
  assert.ok(kept.length > 1000 && kept.every((view) => view.length === 0));
  assert.ok(short.length > 1000);
  for (const copy of [...copies, ...short]) check(Number(copy.tag & 0xffff_ffffn), copy);
});

scene('a batch has one ArrayBuffer, and a message of it is released with it', async (here) => {
  const [rx, peer] = await fromPeer(here, { capacity: 8192 });
  await peer.does('send 20 40 0', 'sent');
  const batch = await rx.recvBatch({ max: 12 });
  assert.equal(batch.length, 12);
  const kept = [...batch].map((message) => message.data);
  assert.equal(new Set(kept.map((view) => view.buffer)).size, 1);
  for (const [seq, message] of [...batch].entries()) check(seq, message);
  const used = rx.used;
  batch.release();
  assert.equal(used - rx.used, 12 * 64);
  nothingIn(kept);
  const rest = await rx.recvBatch();
  assert.equal(rest.length, 8);
  const later = [...rest].map((message) => message.data);
  rest[Symbol.dispose]();
  nothingIn(later);
});

for (const length of [8, 64, 65, 100]) {
  const what = length > 64 ? 'a view of the memory that its sender wrote to, not a copy' : 'a copy';
  scene(`a message of ${length} bytes is ${what}`, async (here) => {
    const [bus, peer] = await connected(here);
    await peer.does(`send 1 ${length} 0`, 'sent');
    const { data } = await bus.recv();
    const before = [...data];
    assert.equal(before.length, length);
    await peer.does('frame 18 aabb', 'written');
    const after = length > 64 ? [...before.slice(0, 2), 0xaa, 0xbb, ...before.slice(4)] : before;
    assert.deepEqual([...data], after);
  });
}

scene('a short message that no batch has is a copy, which stays and has a buffer of its own', async ({ own }) => {
  const [tx, rx] = pair(own);
  const kept = [];
  const receive = [
    async () => (await rx.recv()).data,
    async () => /** @type {Message} */ (rx.tryRecv()).data,
    async () => rx.recvSync({ allowMainThread: true }).data,
    async () => {
      for await (const message of rx) return message.data;
      return assert.fail('it ended');
    },
  ];
  for (let lap = 0; lap < 200; lap++) {
    for (const [way, data] of receive.entries()) {
      const sent = fill(lap + way, new Uint8Array([1, 32, 63, 64][lap % 4]));
      await tx.send(sent);
      const got = await data();
      assert.deepEqual(got, sent);
      kept.push({ got, sent });
      // What is written to it is written to no ring.
      const other = fill(lap + way, new Uint8Array(sent.length));
      await tx.send(other);
      const again = await rx.recv();
      again.data.fill(0xdd);
      assert.deepEqual(again.copy(), other);
      assert.equal(again.data, again.data);
      again.release();
      assert.throws(() => again.data, code('DETACHED'));
    }
  }
  rx.close();
  for (const { got, sent } of kept) assert.deepEqual(got, sent);
  assert.equal(new Set(kept.map(({ got }) => got.buffer)).size, kept.length);
});

scene('a message of one byte more is a view, and so is a short one of a batch', async ({ own }) => {
  const [tx, rx] = pair(own);
  await tx.send(fill(1, new Uint8Array(65)));
  await tx.send(fill(2, new Uint8Array(64)));
  const first = (await rx.recv()).data;
  assert.equal(first.length, 65);
  const batch = await rx.recvBatch();
  const second = /** @type {Message} */ (batch.at(0)).data;
  assert.deepEqual(second, fill(2, new Uint8Array(64)));
  batch.release();
  nothingIn([first, second]);
});

scene('a slot is the memory that the receiver reads', async (here) => {
  const [tx, peer] = await toPeer(here);
  await tx.reserve(
    8,
    async (slot) => {
      slot.set([1, 2, 3, 4, 5, 6, 7, 8]);
      await peer.does('peek 16 8', 'bytes', { hex: '0102030405060708' });
      slot.set([0, 1, 2, 3, 4, 5, 6, 7]);
    },
    made(0, 8).options,
  );
  await peer.does('recv 1', 'received', { next: 1 });
});

scene('a slot is committed whole, shorter, or not at all', async ({ own }) => {
  const [tx, rx] = pair(own);
  const kept = [];
  const keep = (/** @type {Uint8Array} */ slot) => {
    kept.push(slot, slot.subarray(2));
    return slot;
  };
  await tx.reserve(10, (slot) => void keep(slot).fill(1), { typeId: 3, tag: 4n });
  await tx.reserve(10, (slot) => keep(slot).fill(2).length - 6);
  await tx.reserve(10, (slot) => keep(slot).fill(3) && 0);
  await tx.reserve(10, (slot) => keep(slot).fill(4) && false);
  await tx.reserve(0, (slot) => assert.equal(keep(slot).length, 0));
  const failed = new Error('from fill');
  await assert.rejects(
    tx.reserve(10, (slot) => {
      keep(slot).fill(5);
      throw failed;
    }),
    failed,
  );
  await tx.reserve(10, async (slot) => {
    await null;
    keep(slot).fill(6);
    return 3;
  });
  await assert.rejects(
    tx.reserve(10, async (slot) => {
      await null;
      keep(slot).fill(7);
      throw failed;
    }),
    failed,
  );
  await tx.reserve(10, async (slot) => keep(slot).fill(8) && /** @type {false} */ (false));
  for (const bad of [11, -1, 0.5, NaN])
    await assert.rejects(
      tx.reserve(10, (slot) => keep(slot) && bad),
      code('INVALID_ARGUMENT'),
    );
  for (const bad of [-1, 0.5, NaN, '1'])
    await assert.rejects(async () => tx.reserve(/** @type {any} */ (bad), () => {}), code('INVALID_ARGUMENT'));
  await assert.rejects(
    tx.reserve(4081, () => {}),
    code('TOO_LARGE'),
  );
  assert.equal(
    tx.tryReserve(10, (slot) => void keep(slot).fill(9)),
    true,
  );
  assert.throws(
    () =>
      tx.tryReserve(10, () => {
        throw failed;
      }),
    failed,
  );
  tx.tryReserve(10, () => false);
  nothingIn(kept);
  const expected = [Array(10).fill(1), Array(4).fill(2), [], [], Array(3).fill(6), Array(10).fill(9)];
  const batch = await rx.recvBatch();
  assert.deepEqual(
    [...batch].map((message) => [...message.data]),
    expected,
  );
  assert.deepEqual([batch.at(0)?.typeId, batch.at(0)?.tag], [3, 4n]);
});

scene('while a slot is being filled, other sends wait their turn', async ({ own }) => {
  const [tx, rx] = pair(own);
  /** @type {(value: any) => void} */ let done = () => {};
  const slot = tx.reserve(10, () => new Promise((resolve) => (done = resolve)));
  const after = tx.send('after');
  const other = tx.reserve(5, (/** @type {Uint8Array} */ bytes) => void bytes.fill(1));
  assert.equal(tx.trySend('no'), false);
  assert.equal(
    tx.tryReserve(1, () => {}),
    false,
  );
  assert.equal(await settled(after), false);
  assert.equal(rx.tryRecv(), null);
  done(undefined);
  await Promise.all([slot, after, other]);
  const batch = await rx.recvBatch();
  assert.deepEqual(
    [...batch].map((message) => message.length),
    [10, 5, 5],
  );
});

scene('a sender that is closed while a slot is being filled', async ({ own }) => {
  const [tx, rx] = pair(own);
  /** @type {(value: any) => void} */ let done = () => {};
  /** @type {any} */ let kept;
  const slot = tx.reserve(10, (/** @type {Uint8Array} */ bytes) => {
    kept = bytes;
    return new Promise((resolve) => (done = resolve));
  });
  slot.catch(() => {});
  await eventually('the filling', () => kept !== undefined);
  tx.close();
  nothingIn([kept]);
  done(undefined);
  await assert.rejects(slot, code('DETACHED'));
  await assert.rejects(rx.recv(), code('CLOSED'));
});

scene('tryReserve cannot wait for a promise: nothing is sent, then or later', async ({ own }) => {
  const [tx, rx] = pair(own);
  /** @type {any} */ let kept;
  /** @type {(value?: any) => void} */ let done = () => {};
  const fill = /** @type {any} */ (
    (/** @type {Uint8Array} */ slot) => {
      kept = slot;
      return new Promise((resolve) => {
        done = resolve;
      });
    }
  );
  assert.throws(() => tx.tryReserve(10, fill), code('INVALID_ARGUMENT'));
  assert.equal(kept.length, 0);
  assert.equal(tx.trySend('between'), true);
  done(4);
  await turn();
  assert.throws(() => tx.reserveSync(10, fill, { allowMainThread: true }), code('INVALID_ARGUMENT'));
  done(5);
  await turn();
  assert.equal(tx.trySend('after'), true);
  const batch = await rx.recvBatch();
  assert.deepEqual(
    [...batch].map((message) => message.text()),
    ['between', 'after'],
  );
});

/** Ways to take a buffer away from where it was made; undefined where a runtime does not allow it. */
const moves = /** @type {[string, (buffer: any) => Promise<Uint8Array>][]} */ ([
  ['structuredClone', async (buffer) => new Uint8Array(structuredClone(buffer, { transfer: [buffer] }))],
  [
    'a MessagePort',
    async (buffer) => {
      const { port1, port2 } = new MessageChannel();
      try {
        port1.postMessage(buffer, [buffer]);
        return new Uint8Array(/** @type {any} */ (receiveMessageOnPort(port2)).message);
      } finally {
        port1.close();
      }
    },
  ],
  ['ArrayBuffer.prototype.transfer', async (buffer) => new Uint8Array(buffer.transfer())],
  ['transferToFixedLength', async (buffer) => new Uint8Array(buffer.transferToFixedLength())],
]);

for (const [what, move] of moves) {
  scene(`never other bytes in what was moved by ${what}`, async ({ own }) => {
    const [tx, rx] = pair(own);
    for (let round = 0; round < 20; round++) {
      const length = 100 + round * 150;
      await tx.send(fill(round, new Uint8Array(length)));
      const message = round % 2 === 0 ? await rx.recv() : /** @type {Message} */ ((await rx.recvBatch()).at(0));
      const { data } = message;
      const before = [...data];
      const offset = data.byteOffset;
      let moved;
      try {
        moved = await move(data.buffer);
      } catch {
        // Refused, or not there: then it is still ours.
        assert.deepEqual([...data], before);
      }
      if (moved !== undefined) {
        // Where a runtime makes a copy instead of moving it, the view stays.
        assert.deepEqual([...moved.subarray(offset, offset + length)], before);
      }
      if (round % 3 === 0) message.release();
      // Laps of other bytes; the next receive releases what was not.
      for (let lap = 0; lap < 6; lap++) {
        const [other] = await Promise.all([rx.recv(), tx.send(new Uint8Array(3000).fill(0xe0 + lap))]);
        assert.ok(other.data.every((/** @type {number} */ byte) => byte === 0xe0 + lap));
        other.release();
      }
      assert.equal(data.length, 0);
      if (moved === undefined || moved.length === 0) continue;
      assert.deepEqual([...moved.subarray(offset, offset + length)], before);
      // Nor the other way round.
      moved.fill(0xdd);
      const [last] = await Promise.all([rx.recv(), tx.send(new Uint8Array(3000).fill(1))]);
      assert.ok(last.data.every((/** @type {number} */ byte) => byte === 1));
      last.release();
    }
  });

  scene(`a slot that was moved by ${what} while it was filled writes nowhere after that`, async ({ own }) => {
    const [tx, rx] = pair(own);
    for (let round = 0; round < 8; round++) {
      /** @type {any} */ let moved;
      let refused = false;
      await tx
        .reserve(500, async (/** @type {Uint8Array} */ slot) => {
          slot.fill(7);
          try {
            moved = await move(slot.buffer);
          } catch {
            refused = true;
          }
        })
        .catch((/** @type {any} */ error) => code('DETACHED')(error));
      const message = rx.tryRecv();
      // Either it was sent as it was when it was taken away, or not at all.
      assert.ok(message !== null || !refused);
      if (message !== null) assert.deepEqual([...message.data], Array(500).fill(7));
      moved?.fill(0xdd);
      if (message !== null) assert.ok(message.data.every((/** @type {number} */ byte) => byte === 7));
      for (let lap = 0; lap < 9; lap++) {
        await tx.send(fill(lap, new Uint8Array(900)));
        moved?.fill(0xdd);
        assert.deepEqual([...(await rx.recv()).data], [...fill(lap, new Uint8Array(900))]);
      }
    }
  });
}

scene('a view that was sent to a worker never shows other bytes there', async ({ own }) => {
  const [tx, rx] = pair(own);
  const worker = new Worker(new URL('./peer/keeper.mjs', import.meta.url));
  own({ close: () => worker.terminate() });
  const ask = (/** @type {any} */ value, /** @type {any[]} */ transfer = []) =>
    new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.postMessage(value, transfer);
    });
  for (let round = 0; round < 5; round++) {
    const sent = fill(round, new Uint8Array(700));
    await tx.send(sent);
    const message = await rx.recv();
    const { data } = message;
    const offset = data.byteOffset;
    try {
      assert.deepEqual(await ask({ buffer: data.buffer, offset, length: 700 }, [data.buffer]), [...sent]);
    } catch (error) {
      if (/** @type {any} */ (error)?.name !== 'DataCloneError' && !(error instanceof TypeError)) throw error;
      // Refused: a copy then.
      assert.deepEqual(await ask({ buffer: data.slice().buffer, offset: 0, length: 700 }), [...sent]);
    }
    message.release();
    assert.equal(data.length, 0);
    for (let lap = 0; lap < 10; lap++) {
      await tx.send(new Uint8Array(3000).fill(0xee));
      (await rx.recv()).release();
    }
    assert.deepEqual(await ask('again'), [...sent]);
  }
});

scene('a message that is cloned without a transfer is a copy', async ({ own }) => {
  const [tx, rx] = pair(own);
  await tx.send(fill(1, new Uint8Array(50)));
  const message = await rx.recv();
  const clone = structuredClone(message.data);
  message.release();
  assert.deepEqual([...clone], [...fill(1, new Uint8Array(50))]);
});

scene('handles, messages and slots that are forgotten are collected, and harm nobody', async ({ path, own }) => {
  const flags = { node: ['--expose-gc'], bun: [], deno: ['--v8-flags=--expose-gc'] }[runtime];
  const file = fileURLToPath(new URL('peer/forgotten.mjs', import.meta.url));
  const child = own(new Process(execPath, [...programArgs, ...flags, file, path('')]));
  assert.deepEqual(await child.finish(), ['views', 'waiting', 'loops', 'slots', 'handles']);
});
