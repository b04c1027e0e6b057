// What message number `seq` is, as in the peer's `message.rs`: everything follows from the number, so that each side can
// tell what is missing, torn or out of order.
import assert from 'node:assert/strict';

const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
  return byte;
});

/** zlib's. @param {Uint8Array} bytes */
export function crc32(bytes) {
  let crc = -1;
  for (let i = 0; i < bytes.length; i++) crc = (crc >>> 8) ^ TABLE[(crc ^ bytes[i]) & 255];
  return ~crc >>> 0;
}

/** The length of message number `seq`. @param {number} seq @param {number | 'mixed'} sizes @param {number} longest */
export function lengthOf(seq, sizes, longest) {
  if (sizes !== 'mixed') return sizes;
  const x = Math.imul(seq, 2_654_435_761) >>> 0;
  if (seq % 1000 === 999) return longest;
  if (seq % 100 === 0) return 0;
  return seq % 50 === 1 ? x % (longest + 1) : x % 257;
}

/** The bytes of message number `seq`. @param {number} seq @param {Uint8Array} to */
export function fill(seq, to) {
  for (let i = 0; i < to.length; i++) to[i] = seq + i;
  return to;
}

/** @param {number} seq @param {Uint8Array} bytes */
export const frameOf = (seq, bytes) => ({
  typeId: seq % 60_000,
  tag: (BigInt(crc32(bytes)) << 32n) | BigInt(seq),
});

/** Message number `seq` in memory of its own. @param {number} seq @param {number} length */
export function made(seq, length) {
  const bytes = fill(seq, new Uint8Array(length));
  return { bytes, options: frameOf(seq, bytes) };
}

/**
 * That this is message number `seq`, every byte of it.
 * @param {number} seq @param {{ data: Uint8Array, length: number, typeId: number, tag: bigint }} message
 */
export function check(seq, message) {
  const { data, length } = message;
  if (data.length !== length) assert.fail(`message ${seq}: ${data.length} bytes of ${length}`);
  for (let i = 0; i < length; i++) {
    if (data[i] !== ((seq + i) & 255)) assert.fail(`message ${seq}: byte ${i} of ${length} is ${data[i]}`);
  }
  const { typeId, tag } = frameOf(seq, data);
  if (message.typeId !== typeId || message.tag !== tag) {
    assert.fail(`message ${seq}: type id ${message.typeId}, tag ${message.tag} instead of ${tag}`);
  }
}
