// What is sent: bytes, however they are given.

import type { Data } from '../bus/streams.js';
import { invalid, RamwayError } from '../errors.js';

const encoder = new TextEncoder();

/** `fill`, checked. `blocking`: one that may not give a promise. */
export function checkedFill<V>(fill: (view: V) => unknown, blocking: boolean): (view: V) => unknown {
  if (typeof fill !== 'function') throw invalid('fill: expected a function that gets the slot');
  if (!blocking) return fill;
  return (view) => {
    const filled = fill(view);
    if (!(filled instanceof Promise)) return filled;
    // Its view is detached, and no one waits for its end.
    filled.catch(() => {});
    throw invalid('fill: gave back a promise, which only reserve and reserveTensor can wait for');
  };
}

export function checkSize(length: number): number {
  if (!(Number.isInteger(length) && length >= 0)) {
    throw invalid(`length: ${String(length)} is not a whole number of bytes from 0 up`);
  }
  return length;
}

/** The bytes of what is sent, where they are. */
export function bytesOf(data: Data): Uint8Array {
  if (data instanceof Uint8Array) return data;
  if (typeof data === 'string') return encoder.encode(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) return new Uint8Array(data);
  throw invalid('data: expected a string, a typed array, a DataView or an ArrayBuffer');
}

/** A string and a typed array are iterable too, and are no list of what to send. */
export function checkList(what: string, list: unknown): void {
  if (typeof list !== 'object' || list === null || !(Symbol.iterator in list) || ArrayBuffer.isView(list)) {
    throw invalid(
      `${what}: expected an array (or another iterable) of strings, typed arrays, DataViews or ArrayBuffers`,
    );
  }
}

/** The pieces of a message, and how long it is. */
export function gathered(pieces: Iterable<Data>): { parts: Uint8Array[]; length: number } {
  checkList('pieces', pieces);
  const parts: Uint8Array[] = [];
  let length = 0;
  for (const piece of pieces) {
    const bytes = bytesOf(piece);
    parts.push(bytes);
    length += bytes.length;
  }
  return { parts, length };
}

/** Why bytes that waited are not sent. */
export function changed(length: number, now: number): RamwayError {
  if (now === 0) return new RamwayError('Detached', `the ${length} bytes to send were detached before there was room`);
  return invalid(`data: it had ${length} bytes when it was to be sent, and ${now} when there was room`);
}
