// tensors: every element type and some shapes.

import { BadMessage, named, say } from './common.js';
import { memory } from './look.js';
import { Messages, tagOf } from './messages.js';
import { close, receiving, sending } from './place.js';

const Half = globalThis.Float16Array ?? Uint16Array;

/** In the order of ABI.md's table: the name, what its elements come in, and how many of these make one. */
const TYPES = [
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
  ['complex64', Float32Array, 2],
  ['complex128', Float64Array, 2],
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
const SHAPES = [[], [0], [1], [2, 3], [5, 0, 7], [3, 1, 5, 2], [257], [...new Array(31).fill(1), 2]];

const bytesOf = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** Tensor number `seq`, its bytes and its tag; undefined where that is an ordinary message. */
function made(seq) {
  if (seq % 24 === 23) return undefined;
  const [dtype, Type, parts = 1] = TYPES[seq % 24];
  const shape = SHAPES[Math.floor(seq / 24) % 8];
  const data = new Type(shape.reduce((product, dim) => product * dim, parts));
  const bytes = bytesOf(data);
  const values = dtype === 'bool' ? 2 : 256;
  for (let i = 0; i < bytes.length; i++) bytes[i] = (seq + i) % values;
  return { tensor: { dtype, shape, data }, bytes, tag: tagOf(seq, bytes) };
}

/** There is one way to send a tensor, which writes it in place: --how has nothing to choose. */
async function send(tx, args, messages, seq) {
  const timeout = args.limit;
  const expected = made(seq);
  if (expected) {
    await tx.sendTensor(expected.tensor, { tag: expected.tag, timeout });
    return;
  }
  const { typeId, tag, data } = messages.make(seq);
  await tx.send(data, { typeId, tag, timeout });
}

function checkOrdinary(seq, messages, message) {
  let tensor;
  try {
    tensor = message.tensor();
  } catch (error) {
    if (message.isTensor || error.kind !== 'InvalidArgument') throw error;
    messages.check(seq, message, message.data);
    return;
  }
  throw new BadMessage(seq, `an ordinary message as a tensor is ${tensor.dtype} [${tensor.shape}]`);
}

function check(seq, messages, message, address) {
  const expected = made(seq);
  if (!expected) {
    checkOrdinary(seq, messages, message);
    return;
  }
  const { dtype, shape, data } = expected.tensor;
  const tensor = message.tensor();
  const found = `${tensor.dtype} [${tensor.shape}] in ${tensor.data.constructor.name}`;
  const wanted = `${dtype} [${shape}] in ${data.constructor.name}`;
  if (!message.isTensor || found !== wanted) throw new BadMessage(seq, `${found} instead of ${wanted}`);
  const bytes = bytesOf(tensor.data);
  // The tag of the bytes that came, so that each of them is read.
  if (
    tagOf(seq, bytes) !== message.tag ||
    message.tag !== expected.tag ||
    Buffer.compare(bytes, expected.bytes) !== 0
  ) {
    throw new BadMessage(seq, `other bytes, or the tag 0x${message.tag.toString(16)}`);
  }
  // What has no bytes has no address either, for some runtimes.
  const off = bytes.length === 0 ? 0n : address(bytes) % 64n;
  if (off !== 0n) throw new BadMessage(seq, `the elements begin ${off} bytes after a multiple of 64`);
}

export async function tensors(args) {
  const messages = new Messages(32, 32);
  if (args.role === 'producer') {
    const tx = await sending(args);
    for (let seq = 0; seq < args.count; seq++) await send(tx, args, messages, seq);
    say(`sent count=${args.count} next=${args.count}`);
    await close(args, tx);
    return;
  }
  const { address } = memory();
  const rx = await receiving(args);
  let received = 0;
  let end = 'name=Closed number=9';
  try {
    for await (const message of rx) {
      check(received, messages, message, address);
      received += 1;
    }
  } catch (error) {
    end = named(error);
  }
  say(`end ${end} received=${received}`);
  await close(args, rx);
}
