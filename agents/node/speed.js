// flood and drain, and their payload: the words seq, seq + 1, …

import { say } from './common.js';
import { close, receiving, sending } from './place.js';

const HIGH = 2 ** 32;

/** Writes the words `seq`, `seq` + 1, … as little-endian 64-bit numbers. */
function write(view, seq) {
  const halves = new Uint32Array(view.buffer, view.byteOffset, view.length / 4);
  for (let i = 0; i < halves.length; i += 2) {
    const word = seq + i / 2;
    halves[i] = word;
    halves[i + 1] = word / HIGH;
  }
}

export function payload(size, seq) {
  const view = new Uint8Array(size);
  write(view, seq);
  return view;
}

/** The sum of the 64-bit words, of which a double holds the halves' sums exactly: fewer than 2^20 a message. */
export function words(view) {
  const halves = new Uint32Array(view.buffer, view.byteOffset, view.length / 4);
  let low = 0;
  let high = 0;
  for (let i = 0; i < halves.length; i += 2) {
    low += halves[i];
    high += halves[i + 1];
  }
  return (BigInt(high) << 32n) + BigInt(low);
}

export async function flood(args) {
  const tx = await sending(args);
  const { count, sizes: size, batch = 1, limit } = args;
  let seq = 0;
  const fill = (slot) => write(slot, seq);
  const last = { flush: true };
  const others = { flush: false };
  const wait = { timeout: limit, allowMainThread: true };
  for (; seq < count; seq++) {
    const options = (seq + 1) % batch === 0 || seq + 1 === count ? last : others;
    if (tx.tryReserve(size, fill, options)) continue;
    if (args.sync) tx.reserveSync(size, fill, { ...options, ...wait });
    else await tx.reserve(size, fill, { ...options, timeout: limit });
  }
  say(`sent count=${count} next=${count}`);
  await close(args, tx);
}

export async function drain(args) {
  const rx = await receiving(args);
  const { count, limit } = args;
  const skipped = Math.floor(count / 10);
  let seen = 0;
  let total = 0n;
  let began = performance.now();
  for (const until of [skipped, count]) {
    if (until === count) began = performance.now();
    while (seen < until) {
      const options = { max: Math.min(args.batch ?? 1, until - seen), timeout: limit };
      const batch = args.sync ? rx.recvBatchSync({ ...options, allowMainThread: true }) : await rx.recvBatch(options);
      for (const message of batch) total += words(message.data);
      seen += batch.length;
      batch.release();
    }
  }
  const elapsed = Math.round((performance.now() - began) * 1e6);
  say(`rate messages=${count - skipped} ns=${elapsed} sum=${BigInt.asUintN(64, total)}`);
  await close(args, rx);
}
