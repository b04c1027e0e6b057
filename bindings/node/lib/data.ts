// What is sent: bytes, however they are given.
import { invalid, RamwayError } from './errors.js';
import type { Data } from './streams.js';

const encoder = new TextEncoder();

export function checkFill(fill: unknown): void {
  if (typeof fill !== 'function') throw invalid('fill: expected a function that gets the slot');
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

/** Why bytes that waited are not sent. */
export function changed(length: number, now: number): RamwayError {
  if (now === 0) return new RamwayError('Detached', `the ${length} bytes to send were detached before there was room`);
  return invalid(`data: it had ${length} bytes when it was to be sent, and ${now} when there was room`);
}
