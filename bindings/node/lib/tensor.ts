/** Tensor frames: typed arrays that cross with their element type and shape (docs/ABI.md, section 18). */

import { invalid, RamwayError } from './errors.js';
import {
  ELEMENT_TYPES,
  NDIM_MAX,
  TENSOR_ALIGN,
  TENSOR_HEADER,
  TENSOR_OFF_DTYPE_BITS,
  TENSOR_OFF_DTYPE_CODE,
  TENSOR_OFF_ELEMENTS_OFFSET,
  TENSOR_OFF_NDIM,
  TENSOR_OFF_ZERO,
  TYPE_ID_TENSOR,
} from './facts.js';

/** `Float16Array`, where the type declarations have it. */
type Half = typeof globalThis extends { Float16Array: { prototype: infer T } } ? T : Uint16Array;

/** What holds a tensor's elements. */
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array
  | Half;

/** A received tensor. */
export interface Tensor {
  /** NumPy's or `ml_dtypes`' name of the element type: `'float32'`, `'bfloat16'`, … */
  readonly dtype: string;
  /** The dimensions, the outermost first. Empty: one element without dimensions. */
  readonly shape: readonly number[];
  /**
   * The elements in C order (the last dimension varies fastest): a view of the message's `data`, which ends as that does.
   * A copy instead, if a sender did not align them as the format has it.
   *
   * `Float16Array` where the runtime has it, otherwise the raw bits in a `Uint16Array`; bfloat16 is always a
   * `Uint16Array` of raw bits, float8 and bool a `Uint8Array`. Complex numbers are pairs of floats, the real part first:
   * twice as many as the shape says.
   */
  readonly data: TypedArray;
  /** The same in private memory, valid after the message. Throws `ERR_RAMWAY_DETACHED` once the message is released. */
  copy(): Tensor;
}

/** What is sent as a tensor. A received `Tensor` is one too. */
export interface TensorLike {
  /** The elements in C order. */
  readonly data: TypedArray;
  /** The dimensions, the outermost first: at most 32. Default: one, as long as the data. */
  readonly shape?: readonly number[] | undefined;
  /**
   * NumPy's or `ml_dtypes`' name of the element type. Default: the array's own. To be said for those that JavaScript has
   * no array for: `'bool'` and float8 in a `Uint8Array`, `'bfloat16'` and `'float16'` in a `Uint16Array`, `'complex64'`
   * in a `Float32Array`, `'complex128'` in a `Float64Array`.
   */
  readonly dtype?: string | undefined;
}

/** A tensor that is written in place: what its elements are, and how many. */
export interface TensorShape {
  /** NumPy's or `ml_dtypes`' name of the element type. */
  readonly dtype: string;
  /** The dimensions, the outermost first: at most 32. */
  readonly shape: readonly number[];
}

/** The type id of a message that is a tensor. */
export const TENSOR_TYPE_ID = TYPE_ID_TENSOR;

interface ArrayType {
  new (length: number): TypedArray;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): TypedArray;
  readonly BYTES_PER_ELEMENT: number;
}

interface Dtype {
  readonly name: string;
  /** DLPack's `DLDataTypeCode`. */
  readonly code: number;
  readonly bits: number;
  /** What its elements are received in. */
  readonly array: ArrayType;
  /** Names of the array types that its elements can be sent from. */
  readonly sources: readonly string[];
  /** Numbers of the array an element: 2 if it is complex. */
  readonly numbers: 1 | 2;
}

const HalfArray = ((globalThis as { Float16Array?: unknown }).Float16Array ?? Uint16Array) as ArrayType;

const DTYPES: readonly Dtype[] = [
  dtype('int8', Int8Array),
  dtype('int16', Int16Array),
  dtype('int32', Int32Array),
  dtype('int64', BigInt64Array),
  dtype('uint8', Uint8Array, ['Uint8Array', 'Uint8ClampedArray']),
  dtype('uint16', Uint16Array),
  dtype('uint32', Uint32Array),
  dtype('uint64', BigUint64Array),
  dtype('float16', HalfArray, ['Float16Array', 'Uint16Array']),
  dtype('float32', Float32Array),
  dtype('float64', Float64Array),
  dtype('bfloat16', Uint16Array),
  dtype('complex64', Float32Array, ['Float32Array'], 2),
  dtype('complex128', Float64Array, ['Float64Array'], 2),
  dtype('bool', Uint8Array, ['Uint8Array', 'Uint8ClampedArray']),
  dtype('float8_e3m4', Uint8Array),
  dtype('float8_e4m3', Uint8Array),
  dtype('float8_e4m3b11fnuz', Uint8Array),
  dtype('float8_e4m3fn', Uint8Array),
  dtype('float8_e4m3fnuz', Uint8Array),
  dtype('float8_e5m2', Uint8Array),
  dtype('float8_e5m2fnuz', Uint8Array),
  dtype('float8_e8m0fnu', Uint8Array),
];

function dtype(
  name: keyof typeof ELEMENT_TYPES,
  array: ArrayType & { readonly name: string },
  sources: readonly string[] = [array.name],
  numbers: 1 | 2 = 1,
): Dtype {
  const [code, bits] = ELEMENT_TYPES[name];
  return { name, code, bits, array, sources, numbers };
}

const BY_CODE = new Map(DTYPES.map((dtype) => [(dtype.code << 8) | dtype.bits, dtype]));
const BY_NAME = new Map(DTYPES.map((dtype) => [dtype.name, dtype]));
/** What an array is if nothing else is said. The first that is sent from it: bool, bfloat16 and so on come later. */
const BY_ARRAY = new Map<string, Dtype>();
for (const dtype of DTYPES) {
  const own = dtype.sources[0] as string;
  if (!BY_ARRAY.has(own)) BY_ARRAY.set(own, dtype);
}
BY_ARRAY.set('Uint8ClampedArray', BY_NAME.get('uint8') as Dtype);

/** Bytes up to the end of the shape. */
const headerLength = (ndim: number): number => TENSOR_HEADER + 8 * ndim;

/**
 * Bytes of all elements. `undefined` if the product of the dimensions other than 0 and of the element's size is 2^63 or
 * more. Inexact from 2^53 on, which no payload has.
 */
function byteLength(dtype: Dtype, shape: readonly number[]): number | undefined {
  let product = dtype.bits / 8;
  let empty = false;
  for (const dim of shape) {
    if (dim === 0) empty = true;
    else product *= dim;
  }
  // A product that was rounded can be on the wrong side of the limit. One below 2^53 was not.
  if (product > Number.MAX_SAFE_INTEGER) {
    const exact = shape.reduce((exact, dim) => exact * BigInt(dim || 1), BigInt(dtype.bits / 8));
    if (exact >> 63n !== 0n) return undefined;
  }
  return empty ? 0 : product;
}

/** Headers are copied here before they are read, and written here before they are shared. */
const header = new Uint8Array(headerLength(NDIM_MAX) + TENSOR_ALIGN - 1);
const words = new DataView(header.buffer);

/**
 * Reads a message's payload as a tensor frame. The header is copied before it is read: a peer that rewrites it can
 * make the elements differ, not the length of what is read.
 *
 * Throws `ERR_RAMWAY_INVALID_ARGUMENT` if it is not one, or has a dimension of 2^53 or more. The ring is fine then.
 */
export function parseTensor(payload: Uint8Array): Tensor {
  const length = payload.length;
  if (length < TENSOR_HEADER) throw notATensor(`${length} bytes, and its header alone has ${TENSOR_HEADER}`);
  header.set(length > header.length ? payload.subarray(0, header.length) : payload);
  const code = words.getUint8(TENSOR_OFF_DTYPE_CODE);
  const bits = words.getUint8(TENSOR_OFF_DTYPE_BITS);
  const ndim = words.getUint8(TENSOR_OFF_NDIM);
  const zero = words.getUint8(TENSOR_OFF_ZERO);
  const dtype = BY_CODE.get((code << 8) | bits);
  if (dtype === undefined) throw notATensor(`there is no element type with the code ${code} and ${bits} bits`);
  if (ndim > NDIM_MAX) throw notATensor(`${ndim} dimensions, and ${NDIM_MAX} are the most`);
  if (zero !== 0) throw notATensor(`byte 3 is ${zero}, not 0`);
  const start = headerLength(ndim);
  const offset = words.getUint32(TENSOR_OFF_ELEMENTS_OFFSET, true);
  if (offset < start || offset >= start + TENSOR_ALIGN || offset > length) {
    const range = `${start} to ${start + TENSOR_ALIGN - 1}`;
    throw notATensor(
      `the data of ${ndim} dimensions begins at ${range}, not at ${offset}, in a payload of ${length} bytes`,
    );
  }
  const shape: number[] = [];
  for (let at = TENSOR_HEADER; at < start; at += 8) {
    const dim = words.getUint32(at, true) + 0x1_0000_0000 * words.getUint32(at + 4, true);
    if (dim > Number.MAX_SAFE_INTEGER) throw notATensor(`a dimension of ${words.getBigUint64(at, true)}: 2^53 or more`);
    shape.push(dim);
  }
  for (let at = start; at < offset; at++) {
    if (header[at] !== 0) throw notATensor('the bytes between shape and data are not all 0');
  }
  const nbytes = length - offset;
  if (byteLength(dtype, shape) !== nbytes) {
    throw notATensor(`${nbytes} bytes are not ${dtype.name} of the shape [${shape.join(', ')}]`);
  }
  return new View(dtype.name, shape, elements(dtype.array, payload, offset, nbytes), nbytes);
}

/** The `nbytes` of the payload from `offset` on as an array: a view, where its type can lie there. */
function elements(array: ArrayType, payload: Uint8Array, offset: number, nbytes: number): TypedArray {
  const count = nbytes / array.BYTES_PER_ELEMENT;
  const at = payload.byteOffset + offset;
  if (at % array.BYTES_PER_ELEMENT === 0) return new array(payload.buffer, at, count);
  const copy = new array(count);
  bytes(copy).set(payload.subarray(offset));
  return copy;
}

class View implements Tensor {
  readonly #nbytes: number;

  constructor(
    readonly dtype: string,
    readonly shape: readonly number[],
    readonly data: TypedArray,
    nbytes: number,
  ) {
    this.#nbytes = nbytes;
  }

  copy(): Tensor {
    const nbytes = this.#nbytes;
    if (this.data.byteLength !== nbytes) throw new RamwayError('Detached', "the tensor's message has been released");
    return new View(this.dtype, this.shape.slice(), this.data.slice() as TypedArray, nbytes);
  }
}

/** A tensor that is going to be sent: its type, shape and length are known, its place is not yet. */
export class TensorPlan {
  readonly #dtype: Dtype;
  readonly #shape: readonly number[];
  /** Missing where the elements are written in place. */
  readonly #data: TypedArray | undefined;
  readonly #nbytes: number;

  /** Throws `ERR_RAMWAY_INVALID_ARGUMENT` if data, shape and type do not fit together. */
  private constructor(dtype: Dtype, given: unknown, data: TypedArray | undefined) {
    const shape = shapeOf(given);
    const text = `[${shape.join(', ')}]`;
    const nbytes = byteLength(dtype, shape);
    if (nbytes === undefined) throw invalid(`tensor.shape: ${text} of ${dtype.name} is 2^63 bytes or more`);
    if (data !== undefined && nbytes !== data.byteLength) {
      throw invalid(
        `tensor.data: it has ${data.byteLength} bytes, and ${dtype.name} of the shape ${text} is ${nbytes}`,
      );
    }
    this.#dtype = dtype;
    this.#shape = shape;
    this.#data = data;
    this.#nbytes = nbytes;
  }

  /** Of a tensor that is there. */
  static of(tensor: TensorLike): TensorPlan {
    checkTensor(tensor, '{ data, shape, dtype }');
    const data = tensor.data;
    const dtype = dtypeOf(data, tensor.dtype);
    return new TensorPlan(dtype, tensor.shape ?? [data.length / dtype.numbers], data);
  }

  /** Of one that is to be written in place. */
  static for(tensor: TensorShape): TensorPlan {
    checkTensor(tensor, '{ dtype, shape }');
    const dtype = BY_NAME.get(tensor.dtype);
    if (dtype === undefined) throw noElementType(tensor.dtype);
    return new TensorPlan(dtype, tensor.shape, undefined);
  }

  /** Bytes of payload to reserve: enough wherever it begins. */
  get room(): number {
    return headerLength(this.#shape.length) + TENSOR_ALIGN - 1 + this.#nbytes;
  }

  /**
   * Writes the frame into a slot of at least `room` bytes, and gives how many bytes of it are the message.
   *
   * `address` is the slot's in memory, or anything that differs from it by a multiple of 64: the elements' address then
   * is one. Throws `ERR_RAMWAY_DETACHED` if the data has been detached since the plan was made.
   */
  write(slot: Uint8Array, address: number): number {
    const data = this.#data!;
    if (data.byteLength !== this.#nbytes) {
      throw new RamwayError('Detached', "the tensor's data was detached before there was room for it");
    }
    const offset = this.begin(slot, address);
    slot.set(bytes(data), offset);
    return offset + this.#nbytes;
  }

  /** Bytes of the message whose elements begin at `offset`. */
  length(offset: number): number {
    return offset + this.#nbytes;
  }

  /** Where the elements of a slot are written to. */
  elements(slot: Uint8Array, offset: number): TypedArray {
    const { array } = this.#dtype;
    return new array(slot.buffer, slot.byteOffset + offset, this.#nbytes / array.BYTES_PER_ELEMENT);
  }

  /** Writes what comes before the elements, and gives where they begin: `address` as for `write`. */
  begin(slot: Uint8Array, address: number): number {
    const start = headerLength(this.#shape.length);
    const offset = start + ((TENSOR_ALIGN - ((address + start) % TENSOR_ALIGN)) % TENSOR_ALIGN);
    header[TENSOR_OFF_DTYPE_CODE] = this.#dtype.code;
    header[TENSOR_OFF_DTYPE_BITS] = this.#dtype.bits;
    header[TENSOR_OFF_NDIM] = this.#shape.length;
    header[TENSOR_OFF_ZERO] = 0;
    words.setUint32(TENSOR_OFF_ELEMENTS_OFFSET, offset, true);
    let at = TENSOR_HEADER;
    for (const dim of this.#shape) {
      words.setUint32(at, dim % 0x1_0000_0000, true);
      words.setUint32(at + 4, Math.floor(dim / 0x1_0000_0000), true);
      at += 8;
    }
    header.fill(0, start, offset);
    slot.set(header.subarray(0, offset));
    return offset;
  }
}

/** Further properties are allowed: tensors of other packages have more. */
function checkTensor(tensor: unknown, expected: string): void {
  if (typeof tensor !== 'object' || tensor === null || ArrayBuffer.isView(tensor)) {
    throw invalid(`tensor: expected ${expected}`);
  }
}

/** The dimensions, of anything iterable. */
function shapeOf(given: unknown): number[] {
  const there = given !== null && typeof given === 'object' && (Symbol.iterator in given || 'length' in given);
  if (!there) throw invalid(`tensor.shape: expected an array of dimensions, not ${String(given)}`);
  const shape = Array.from(given as ArrayLike<number>);
  if (shape.length > NDIM_MAX) throw invalid(`tensor.shape: ${shape.length} dimensions, and ${NDIM_MAX} are the most`);
  if (!shape.every((dim) => Number.isSafeInteger(dim) && dim >= 0)) {
    throw invalid(`tensor.shape: [${shape.join(', ')}] has other dimensions than whole numbers from 0 to 2^53 - 1`);
  }
  return shape;
}

function noElementType(name: unknown): RamwayError {
  return invalid(
    `tensor.dtype: ${JSON.stringify(name)} is no element type, expected ${[...BY_NAME.keys()].join(', ')}`,
  );
}

/** The element type of what is sent: the one that is said, if the array can hold it. */
function dtypeOf(data: TypedArray, name: string | undefined): Dtype {
  // The name of the intrinsic type, for classes that extend it (Buffer) and for other realms too.
  const array: string | undefined = ArrayBuffer.isView(data) ? data[Symbol.toStringTag] : undefined;
  const own = array === undefined ? undefined : BY_ARRAY.get(array);
  if (array === undefined || own === undefined) throw invalid('tensor.data: expected a typed array');
  if (name === undefined) return own;
  const said = BY_NAME.get(name);
  if (said === undefined) throw noElementType(name);
  if (said.sources.includes(array)) return said;
  throw invalid(`tensor.data: ${name} is sent from a ${said.sources.join(' or a ')}, not from a ${array}`);
}

const bytes = (data: TypedArray): Uint8Array => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

const notATensor = (why: string): RamwayError => invalid(`not a tensor frame: ${why}`);

/** The error for a message with another type id. */
export const otherTypeId = (typeId: number): RamwayError =>
  notATensor(`its type id is 0x${typeId.toString(16)}, and a tensor's is 0x${TENSOR_TYPE_ID.toString(16)}`);
