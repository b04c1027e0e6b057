// A segment as docs/ABI.md describes it, written from its offsets: for rings that no correct program makes today.
import { writeFileSync } from 'node:fs';

/** Where the words of a ring are in its file. */
export const WORD = {
  tail: 0x480,
  head: 0x500,
  producer: { wait: 0x580, flags: 0x584, epoch: 0x588 },
  consumer: { wait: 0x600, flags: 0x604, epoch: 0x608, closeSeen: 0x60c },
  data: 0x1000,
};

/**
 * An empty ring whose positions begin at `position`, which is moved on to where a frame of this alignment can begin.
 * @param {string} path @param {{ capacity?: number, align?: number, position?: bigint }} [options]
 */
export function writeRing(path, { capacity = 4096, align = 16, position = 0n } = {}) {
  const bytes = Buffer.alloc(WORD.data + capacity);
  bytes.write('RAMWAY\r\n', 0, 'latin1');
  bytes.writeUInt32LE(0x0a0b0c0d, 0x08);
  bytes.writeUInt16LE(1, 0x0c);
  bytes.writeUInt32LE(2, 0x10);
  bytes.writeBigUInt64LE(BigInt(bytes.length), 0x20);
  bytes.writeBigUInt64LE(BigInt(WORD.data), 0x400);
  bytes.writeBigUInt64LE(BigInt(capacity), 0x408);
  bytes.writeUInt32LE(align, 0x418);
  const step = BigInt(align);
  const start = BigInt.asUintN(64, (position / step) * step + step - 16n);
  bytes.writeBigUInt64LE(start, WORD.tail);
  bytes.writeBigUInt64LE(start, WORD.head);
  writeFileSync(path, bytes, { mode: 0o600 });
}

/** A position as the peer's command `write` takes it. @param {bigint} value */
export function hex64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, value));
  return bytes.toString('hex');
}

/** @param {number} value */
export function hex32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes.toString('hex');
}
