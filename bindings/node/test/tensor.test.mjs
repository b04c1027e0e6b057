// Tensor frames: against the bytes of docs/ABI.md, against every malformed frame, and both ways with a process in Rust.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Ring } from '../index.mjs';
import { code, fromPeer, scene, settled, toPeer } from './scene.mjs';

// The frames by themselves are not public.
const { parseTensor, TensorPlan } = createRequire(import.meta.url)('../dist/tensor.js');

const Half = /** @type {any} */ (globalThis).Float16Array ?? Uint16Array;

/** The element types in the order of section 18, and what each is received in. @type {[string, any][]} */
const DTYPES = [
  ['int8', Int8Array],
  ['int16', Int16Array],
  ['int32', Int32Array],
  ['int64', BigInt64Array],
  ['uint8', Uint8Array],
  ['uint16', Uint16Array],
  ['uint32', Uint32Array],
  ['uint64', BigUint64Array],
  ['float16', Half],
  ['float32', Float32Array],
  ['float64', Float64Array],
  ['bfloat16', Uint16Array],
  ['complex64', Float32Array],
  ['complex128', Float64Array],
  ['bool', Uint8Array],
  ['float8_e3m4', Uint8Array],
  ['float8_e4m3', Uint8Array],
  ['float8_e4m3b11fnuz', Uint8Array],
  ['float8_e4m3fn', Uint8Array],
  ['float8_e4m3fnuz', Uint8Array],
  ['float8_e5m2', Uint8Array],
  ['float8_e5m2fnuz', Uint8Array],
  ['float8_e8m0fnu', Uint8Array],
];
const ONES = [...Array(31).fill(1), 2];
/** @type {number[][]} */
const SHAPES = [[], [0], [1], [2, 3], [5, 0, 7], [3, 1, 5, 2], [257], ONES];
/** Every type in every shape, twice, so that they begin elsewhere. */
const COUNT = 2 * DTYPES.length * SHAPES.length;

/** @param {string} dtype */
function bitsOf(dtype) {
  if (dtype === 'bool' || dtype.startsWith('float8')) return 8;
  return Number(/\d+$/.exec(dtype));
}

/** Tensor number `seq`, as `peer/src/tensor.rs` has it. @param {number} seq */
function made(seq) {
  const [dtype, array] = DTYPES[seq % DTYPES.length];
  const shape = SHAPES[Math.floor(seq / DTYPES.length) % SHAPES.length];
  const nbytes = shape.reduce((product, dim) => product * dim, bitsOf(dtype) / 8);
  const values = dtype === 'bool' ? 2 : 256;
  const bytes = Uint8Array.from({ length: nbytes }, (_, i) => (seq + i) % values);
  return { dtype, shape, bytes, array, data: new array(bytes.buffer) };
}

/** @param {ArrayBufferView} view */
const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** @param {number} seq @param {import('../index.mjs').Tensor} tensor */
function checkTensor(seq, tensor) {
  const { dtype, shape, bytes, array } = made(seq);
  assert.equal(tensor.dtype, dtype);
  assert.deepEqual(tensor.shape, shape);
  assert.equal(tensor.data.constructor, array, dtype);
  assert.deepEqual(bytesOf(tensor.data), bytes);
}

/** A frame in memory of its own that begins `address` bytes after a multiple of 64. @param {any} tensor */
function frame(tensor, address = 0) {
  const plan = TensorPlan.of(tensor);
  const payload = new Uint8Array(plan.room).fill(0xee);
  return payload.slice(0, plan.write(payload, address));
}

/** @param {Uint8Array} payload @param {RegExp} text */
function refused(payload, text = /^not a tensor frame: /) {
  assert.throws(
    () => parseTensor(payload),
    (error) => {
      code('INVALID_ARGUMENT')(error);
      assert.match(String(/** @type {Error} */ (error).message), /^not a tensor frame: /);
      assert.match(String(/** @type {Error} */ (error).message), text);
      return true;
    },
  );
}

scene("the frames of the format's page, read and written", async () => {
  const page = readFileSync(new URL('../../../docs/ABI.md', import.meta.url), 'utf8');
  const blocks = [...page.matchAll(/```hex tensor align=16 start=(\d+)\n([^`]*)```/g)];
  assert.equal(blocks.length, 2);
  for (const [, start, block] of blocks) {
    const ring = new Uint8Array(2 * 4096);
    for (const [, at, hex] of block.matchAll(/^data ([0-9a-f]+) {2}(.*)$/gm)) {
      ring.set(Buffer.from(hex.replaceAll(' ', ''), 'hex'), Number.parseInt(at, 16));
    }
    // The frame that begins at the end of the data goes on at its start.
    ring.copyWithin(4096, 0, 4096);
    const at = Number(start) + 16;
    const length = new DataView(ring.buffer).getUint32(Number(start), true);
    const payload = ring.slice(at, at + length);
    const tensor = parseTensor(payload);
    assert.equal(tensor.dtype, 'float32');
    assert.deepEqual(tensor.shape, [2, 3]);
    assert.deepEqual(tensor.data, Float32Array.of(1, 2, 3, 4, 5, 6));
    assert.deepEqual(frame({ data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] }, at), payload);
  }
});

scene('every element type and shape there and back, wherever the payload begins', async () => {
  for (let seq = 0; seq < COUNT; seq++) {
    for (let address = 0; address < 128; address += 8) {
      const { dtype, shape, bytes, data } = made(seq);
      const payload = frame({ dtype, shape, data }, address);
      const offset = new DataView(payload.buffer).getUint32(4, true);
      assert.equal((address + offset) % 64, 0);
      assert.equal(payload.length, offset + bytes.length);
      checkTensor(seq, parseTensor(payload));
    }
  }
});

scene('elements that lie where no typed array can are copied', async () => {
  for (let seq = 0; seq < COUNT; seq++) {
    const payload = frame(made(seq));
    for (const off of [1, 2, 4]) {
      const moved = new Uint8Array(payload.length + off);
      moved.set(payload, off);
      const tensor = parseTensor(moved.subarray(off));
      checkTensor(seq, tensor);
      const { data } = tensor;
      const aligned = off % data.BYTES_PER_ELEMENT === 0;
      assert.equal(data.buffer === moved.buffer, aligned, `${tensor.dtype} ${off}`);
    }
  }
});

scene('every bit of the header counts', async () => {
  const good = frame({ data: Int32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] }, 16);
  assert.equal(good.length, 48 + 24);
  for (let bit = 0; bit < 48 * 8; bit++) {
    const payload = good.slice();
    payload[bit >> 3] ^= 1 << (bit & 7);
    try {
      // The other types of four bytes.
      assert.ok(['uint32', 'float32'].includes(parseTensor(payload).dtype) && bit < 8, `bit ${bit}`);
    } catch (error) {
      code('INVALID_ARGUMENT')(error);
    }
  }
});

scene('malformed frames', async () => {
  const good = frame({ data: Int32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] }, 16);
  for (let length = 0; length < good.length; length++) {
    refused(good.subarray(0, length), length < 8 ? /its header alone has 8/ : / bytes/);
  }
  refused(Uint8Array.of(...good, 0), /25 bytes are not int32 of the shape \[2, 3\]/);
  for (const offset of [0, 8, 23, 24 + 64, 73, 1 << 16, 2 ** 32 - 1]) {
    const payload = good.slice();
    new DataView(payload.buffer).setUint32(4, offset, true);
    refused(payload, new RegExp(`not at ${offset}`));
  }
  for (const [at, text] of /** @type {[number, RegExp][]} */ ([
    [3, /byte 3/],
    [24, /not all 0/],
    [47, /not all 0/],
  ])) {
    const payload = good.slice();
    payload[at] = 1;
    refused(payload, text);
    // Nothing of it is left in the next frame.
    assert.deepEqual(frame({ data: Int32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] }, 16), good);
  }
  // All of it is there, but the elements begin a whole 64 bytes too late.
  const late = new Uint8Array(good.length + 64);
  late.set(good.subarray(0, 24));
  late.set(good.subarray(48), 48 + 64);
  new DataView(late.buffer).setUint32(4, 48 + 64, true);
  refused(late, /not at 112/);
  const wide = frame({ data: new Uint16Array(2), shape: ONES });
  assert.deepEqual(parseTensor(wide).shape, ONES);
  wide[2] = 33;
  refused(wide, /33 dimensions/);
  for (const [type, bits] of [
    [2, 128],
    [0, 4],
    [0, 128],
    [6, 1],
    [4, 32],
    [3, 64],
    [15, 8],
    [17, 4],
    [1, 0],
  ]) {
    const payload = good.slice();
    payload.set([type, bits]);
    refused(payload, /no element type/);
  }
});

scene('shapes that overflow, or that no number of JavaScript can say, are refused', async () => {
  /** @type {[string, bigint[], RegExp][]} */
  const cases = [
    ['uint8', [1n << 63n], /2\^53 or more/],
    ['uint8', [(1n << 64n) - 1n, (1n << 64n) - 1n], /2\^53 or more/],
    ['uint8', [1n << 32n, 1n << 32n], /of the shape/],
    // A stride would overflow, although there is no element.
    ['uint8', [0n, 1n << 32n, 1n << 32n], /of the shape/],
    ['uint8', [1n << 32n, 1n << 31n, 0n], /of the shape/],
    ['complex128', [(1n << 53n) - 1n, 1n << 7n, 0n], /of the shape/],
    ['uint8', [1n << 53n, 0n], /2\^53 or more/],
  ];
  /** @param {string} dtype @param {bigint[]} shape */
  const empty = (dtype, shape) => {
    const data = new /** @type {any} */ (DTYPES.find(([name]) => name === dtype))[1](0);
    const payload = frame({ dtype, data, shape: shape.map(() => 0) });
    const view = new DataView(payload.buffer);
    shape.forEach((dim, i) => {
      view.setBigUint64(8 + 8 * i, dim, true);
    });
    return payload;
  };
  for (const [dtype, shape, text] of cases) {
    refused(empty(dtype, shape), text);
    const data = dtype === 'uint8' ? new Uint8Array(0) : new Float64Array(0);
    assert.throws(() => TensorPlan.of({ dtype, data, shape: shape.map(Number) }), code('INVALID_ARGUMENT'));
  }
  // As near to the limit as it goes: 2^63 − 2^10, and 2^62 where a product of doubles is exact.
  for (const shape of [
    [(1n << 53n) - 1n, 1n << 10n, 0n],
    [1n << 31n, 0n, 1n << 31n],
  ]) {
    assert.deepEqual(parseTensor(empty('uint8', shape)).shape, shape.map(Number));
    const plan = TensorPlan.of({ data: new Uint8Array(0), shape: shape.map(Number) });
    assert.equal(plan.room, 8 + 24 + 63);
  }
});

scene('what is sent must fit together', async () => {
  const floats = Float32Array.of(1, 2, 3);
  /** @type {[any, RegExp][]} */
  const cases = [
    [{ data: floats, shape: [2] }, /tensor\.data: it has 12 bytes, and float32 of the shape \[2\] is 8/],
    [{ data: floats, shape: [-3] }, /tensor\.shape: .*other dimensions/],
    [{ data: floats, shape: [1.5, 2] }, /tensor\.shape: .*other dimensions/],
    [{ data: floats, shape: [Number.NaN] }, /tensor\.shape: .*other dimensions/],
    [{ data: floats, shape: Array(33).fill(1) }, /tensor\.shape: 33 dimensions/],
    [{ data: floats, dtype: 'f4' }, /tensor\.dtype: "f4" is no element type, expected int8, /],
    [{ data: floats, dtype: 'int32' }, /tensor\.data: int32 is sent from a Int32Array, not from a Float32Array/],
    [{ data: floats, dtype: 'complex64' }, /tensor\.shape: .*other dimensions/],
    [{ data: [1, 2, 3] }, /tensor\.data: expected a typed array/],
    [{ data: new DataView(new ArrayBuffer(8)) }, /tensor\.data: expected a typed array/],
    [{ data: new ArrayBuffer(8) }, /tensor\.data: expected a typed array/],
  ];
  const [tx, rx] = Ring.pair(4096);
  for (const [tensor, text] of cases) {
    await assert.rejects(
      async () => tx.sendTensor(tensor),
      (error) => code('INVALID_ARGUMENT')(error) && text.test(String(error)),
    );
    assert.throws(() => tx.trySendTensor(tensor), code('INVALID_ARGUMENT'));
  }
  assert.equal(rx.used, 0);
  tx.close();
  rx.close();
});

scene('what an array says by itself, and the arrays that stand for other types', async () => {
  /** @type {[any, string, number[]][]} */
  const cases = [
    [{ data: new Float64Array(3) }, 'float64', [3]],
    [{ data: new Uint8ClampedArray(3) }, 'uint8', [3]],
    [{ data: Buffer.from('abc') }, 'uint8', [3]],
    [{ data: new BigUint64Array(2), shape: [1, 2] }, 'uint64', [1, 2]],
    [{ data: new Uint16Array(4), dtype: 'float16' }, 'float16', [4]],
    [{ data: new Half(4) }, Half === Uint16Array ? 'uint16' : 'float16', [4]],
    [{ data: new Float32Array(6), dtype: 'complex64' }, 'complex64', [3]],
    [{ data: new Float32Array(1), shape: [] }, 'float32', []],
    [{ data: new Int16Array(new ArrayBuffer(16), 2, 3) }, 'int16', [3]],
    [{ data: new Int16Array(new SharedArrayBuffer(16), 2, 3) }, 'int16', [3]],
  ];
  const [tx, rx] = Ring.pair(1 << 16);
  for (const [tensor, dtype, shape] of cases) {
    await tx.sendTensor(tensor, { tag: 5n });
    const message = await rx.recv();
    assert.equal(message.tag, 5n);
    const came = message.tensor();
    assert.equal(came.dtype, dtype);
    assert.deepEqual(came.shape, shape);
    assert.deepEqual(bytesOf(came.data), new Uint8Array(bytesOf(tensor.data)));
    message.release();
  }
  tx.close();
  rx.close();
});

scene('a tensor is a view of its message, until that is released; a copy stays', async () => {
  const [tx, rx] = Ring.pair(1 << 16);
  const elements = Float32Array.from({ length: 64 }, (_, n) => n);
  await tx.sendTensor({ data: elements, shape: [8, 8] });
  const message = await rx.recv();
  assert.ok(message.isTensor);
  const tensor = message.tensor();
  assert.equal(tensor.data.buffer, message.data.buffer);
  const copy = tensor.copy();
  message.release();
  assert.equal(tensor.data.length, 0);
  assert.throws(() => tensor.copy(), code('DETACHED'));
  assert.throws(() => message.tensor(), code('DETACHED'));
  assert.equal(copy.dtype, 'float32');
  assert.deepEqual(copy.shape, [8, 8]);
  assert.deepEqual(copy.data, elements);
  // A received one is sent as it is.
  await tx.sendTensor(copy);
  const again = (await rx.recv()).tensor();
  assert.deepEqual(again.data, copy.data);
  assert.deepEqual(again.copy().shape, [8, 8]);
  tx.close();
  rx.close();
});

scene('an ordinary message is no tensor', async () => {
  const [tx, rx] = Ring.pair(4096);
  await tx.send(frame({ data: new Uint8Array(3) }), { typeId: 1 });
  const message = await rx.recv();
  assert.equal(message.isTensor, false);
  assert.throws(() => message.tensor(), code('INVALID_ARGUMENT'));
  tx.close();
  rx.close();
});

scene('nothing is sent of a tensor whose data goes before there is room', async () => {
  const [tx, rx] = Ring.pair(4096);
  await tx.send(new Uint8Array(3000));
  const data = new Uint8Array(2000);
  const waits = assert.rejects(tx.sendTensor({ data }), code('DETACHED'));
  structuredClone(data, { transfer: [data.buffer] });
  (await rx.recv()).release();
  await waits;
  await tx.send('next');
  assert.equal((await rx.recv()).text(), 'next');
  tx.close();
  rx.close();
});

scene('a tensor waits for room, and is too large where it can never fit', async () => {
  const [tx, rx] = Ring.pair(4096);
  const data = new Uint8Array(2000).fill(7);
  assert.equal(tx.trySendTensor({ data }), true);
  assert.equal(tx.trySendTensor({ data: new Uint8Array(3000) }), false);
  const waits = tx.sendTensor({ data: new Uint8Array(3000).fill(8) });
  assert.equal(await settled(waits), false);
  assert.deepEqual((await rx.recv()).tensor().data, data);
  await assert.rejects(tx.sendTensor({ data: new Uint8Array(4096) }, { timeout: 50 }), code('TOO_LARGE'));
  const next = await rx.recv();
  await waits;
  assert.equal(next.tensor().data.length, 3000);
  tx.close();
  rx.close();
});

for (const align of [16, 64]) {
  scene(`tensors from a process in Rust, in a ring aligned to ${align}`, async (here) => {
    const [rx, peer] = await fromPeer(here, { capacity: 1 << 16, align });
    peer.tell(`tensors ${COUNT} 0`);
    peer.tell('close');
    let seq = 0;
    for await (const message of rx) {
      assert.equal(message.tag, BigInt(seq));
      const tensor = message.tensor();
      // Rust's are aligned: never a copy.
      if (tensor.data.length > 0) assert.equal(tensor.data.buffer, message.data.buffer);
      checkTensor(seq++, tensor);
    }
    assert.equal(seq, COUNT);
    await peer.said('sent', { next: COUNT });
  });

  scene(`tensors to a process in Rust, in a ring aligned to ${align}`, async (here) => {
    const [tx, peer] = await toPeer(here, { capacity: 1 << 16, align });
    peer.tell(`recv-tensors ${COUNT} 0`);
    for (let seq = 0; seq < COUNT; seq++) {
      const { dtype, shape, data } = made(seq);
      const tensor = { dtype, shape, data };
      if (seq % 2 === 0 || !tx.trySendTensor(tensor, { tag: seq })) await tx.sendTensor(tensor, { tag: seq });
    }
    await peer.said('received', { next: COUNT });
  });
}
