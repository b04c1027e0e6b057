// tensor, and a tensor that is taken.

import { BadMessage, say } from './line.js';
import { seqOf } from './messages.js';

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

const bytesOf = (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** There is one way to send a tensor, which writes it in place, and shows nobody where: `reserve` has nothing to choose. */
export async function sendTensor({ tx }, line) {
  const [dtype, Type] = TYPES[line.number('type')];
  const shape = line.text('shape').split('x').filter(Boolean).map(Number);
  const tag = BigInt(line.text('tag'));
  const bytes = Uint8Array.from(Buffer.from(line.text('data'), 'hex'));
  line.yes('reserve');
  line.end();
  const data = new Type(bytes.buffer);
  await tx.sendTensor({ dtype, shape, data }, { tag });
  say('sent offset=0');
}

/** False where the message is no tensor. */
export function sayTensor(message, { address }) {
  let tensor;
  try {
    tensor = message.tensor();
  } catch (error) {
    if (message.isTensor || error.kind !== 'InvalidArgument') throw error;
    return false;
  }
  const type = TYPES.findIndex(([dtype]) => dtype === tensor.dtype);
  const found = tensor.data.constructor.name;
  if (!message.isTensor || found !== TYPES[type][1].name)
    throw new BadMessage(seqOf(message.tag), `elements in ${found}`);
  const bytes = bytesOf(tensor.data);
  // What has no bytes has no address either, for some runtimes.
  const offset = bytes.length === 0 ? 0n : address(bytes) % 64n;
  const data = Buffer.from(bytes).toString('hex');
  say(`tensor type=${type} shape=${tensor.shape.join('x')} tag=${message.tag} offset=${offset} data=${data}`);
  return true;
}
