// echo and ping.

import { msSince, named, say } from './common.js';
import { Messages, seqOf } from './messages.js';
import { close, conversation } from './place.js';
import { payload, words } from './speed.js';

export async function echo(args) {
  const { tx, rx } = await conversation(args, args.back, args.ring);
  const { limit: timeout } = args;
  let received = 0;
  let bytes = 0;
  let first = -1;
  let last = -1;
  let began = performance.now();
  let end;
  const count = (message) => {
    last = seqOf(message.tag);
    if (received === 0) first = last;
    received += 1;
    bytes += message.length;
  };
  try {
    if (args.sync) {
      const wait = { timeout, allowMainThread: true };
      for (;;) {
        began = performance.now();
        const message = rx.recvSync(wait);
        count(message);
        const { typeId, tag, data } = message;
        tx.sendSync(data, { typeId, tag, ...wait });
        message.release();
      }
    }
    for await (const message of rx) {
      count(message);
      const { typeId, tag, data } = message;
      await tx.send(data, { typeId, tag, timeout });
      began = performance.now();
    }
    end = 'name=Closed number=9';
  } catch (error) {
    end = named(error);
  }
  say(`end ${end} received=${received} first=${first} last=${last} bytes=${bytes} elapsed_ms=${msSince(began)}`);
  await close(args, tx, rx);
}

export async function ping(args) {
  const { tx, rx, longest } = await conversation(args, args.ring, args.back);
  const messages = new Messages(args.sizes, longest);
  const checks = args.check === 'yes';
  const wait = args.sync ? { timeout: args.limit, allowMainThread: true } : { timeout: args.limit };
  const skipped = Math.floor(args.count / 10);
  const times = [];
  let total = 0n;
  let last = performance.now();
  for (let seq = 0; seq < args.count; seq++) {
    const { typeId, tag, data } = checks ? messages.make(seq) : { typeId: 0, tag: 0, data: payload(args.sizes, seq) };
    let message;
    if (args.sync) {
      tx.sendSync(data, { typeId, tag, ...wait });
      message = rx.recvSync(wait);
    } else {
      await tx.send(data, { typeId, tag, ...wait });
      message = await rx.recv(wait);
    }
    if (checks) messages.check(seq, message, message.data);
    else total += words(message.data);
    message.release();
    if ((seq + 1) % args.group === 0) {
      const now = performance.now();
      if (seq >= skipped) times.push(((now - last) * 1e6) / args.group);
      last = now;
    }
  }
  times.sort((a, b) => a - b);
  const at = (part) => (times[Math.floor((times.length - 1) * part)] ?? 0).toFixed(1);
  say(`rtt count=${args.count} min_ns=${at(0)} p50_ns=${at(0.5)} p99_ns=${at(0.99)} max_ns=${at(1)}`);
  if (!checks) say(`sum value=${BigInt.asUintN(64, total)}`);
  await close(args, tx, rx);
}
