// What message number `seq` is.

import { crc32 } from 'node:zlib';

import { BadMessage, Refused } from './line.js';

/** The low 32 bits of a tag. */
export const seqOf = (tag) => Number(tag & 0xffffffffn);

export const tagOf = (seq, data) => (BigInt(crc32(data)) << 32n) | BigInt(seq >>> 0);

/** Every message of a ring whose longest has `longest` bytes. */
export class Messages {
  constructor(sizes, longest) {
    if (!/^(mixed|ramp|\d+)$/.test(sizes)) throw new Refused(`sizes=${sizes}`);
    this.sizes = sizes;
    this.fixed = /^\d/.test(sizes) ? Number(sizes) : undefined;
    this.longest = longest;
    const length = Math.max(longest, this.fixed ?? 0) + 256;
    // Every payload is a piece of it.
    this.pattern = Buffer.alloc(
      length,
      Uint8Array.from({ length: 256 }, (_, i) => i),
    );
  }

  length(seq) {
    if (this.fixed !== undefined) return this.fixed;
    if (this.sizes === 'ramp') return seq % (this.longest + 1);
    if (seq % 1000 === 999) return this.longest;
    if (seq % 100 === 0) return 0;
    const x = Math.imul(seq, 2654435761) >>> 0;
    return seq % 50 === 1 ? x % (this.longest + 1) : x % 257;
  }

  make(seq) {
    const start = seq % 256;
    const data = this.pattern.subarray(start, start + this.length(seq));
    return { typeId: seq % 60000, tag: tagOf(seq, data), data };
  }

  /** Compares a message, whose type id and tag `frame` has, with number `seq`. */
  check(seq, frame, payload) {
    const { typeId, tag, data } = this.make(seq);
    if (payload.length !== data.length || frame.length !== data.length) {
      throw new BadMessage(seq, `length ${payload.length}, ${frame.length} instead of ${data.length}`);
    }
    if (frame.typeId !== typeId || frame.tag !== tag) {
      const found = `type id ${frame.typeId}, tag 0x${frame.tag.toString(16)}`;
      throw new BadMessage(seq, `${found} instead of ${typeId}, 0x${tag.toString(16)}`);
    }
    if (tagOf(seq, payload) !== tag || Buffer.compare(payload, data) !== 0) throw new BadMessage(seq, 'the bytes');
  }
}
