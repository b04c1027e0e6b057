// produce, consume and die.

import { awaitSuccessor, BadMessage, Ending, isEnding, linger, msSince, named, polling, say, sleep } from './common.js';
import { Messages, seqOf } from './messages.js';
import { close, receiving, sending } from './place.js';

/** Sends one message as --how says. A promise, if that takes one. */
function put(tx, args, { typeId, tag, data }, flush) {
  const fill = (slot) => {
    slot.set(data);
  };
  if (args.how === 'try') {
    // By turns the two ways of not waiting.
    const options = { typeId, tag, flush };
    const went = seqOf(tag) % 2 === 0 ? tx.trySend(data, options) : tx.tryReserve(data.length, fill, options);
    if (!went) throw new Ending('Full');
    return undefined;
  }
  const timeout = args.each;
  if (args.sync) {
    const options = { typeId, tag, flush, timeout, allowMainThread: true };
    return args.how === 'reserve' ? tx.reserveSync(data.length, fill, options) : tx.sendSync(data, options);
  }
  const options = { typeId, tag, flush, timeout };
  return args.how === 'reserve' ? tx.reserve(data.length, fill, options) : tx.send(data, options);
}

export async function produce(args) {
  const tx = await sending(args);
  const longest = tx.maxMessageLength;
  const messages = new Messages(args.sizes, longest);
  let seq = args.start ?? 0;
  const end = seq + args.count;
  if (args.resume === 'yes') {
    seq = tx.lastTag === null ? seq : seqOf(tx.lastTag) + 1;
    say(`resuming next=${seq}`);
  }
  let sent = 0;
  let endings = 0;
  const report = (error, began) => say(`end ${named(error)} sent=${sent} next=${seq} elapsed_ms=${msSince(began)}`);

  if (args.oversize === 'yes') {
    const began = performance.now();
    let error;
    try {
      await put(tx, args, messages.make(seq, longest + 1), true);
    } catch (cause) {
      error = cause;
    }
    if (error === undefined) throw new BadMessage(seq, 'a message longer than the longest was sent');
    report(error, began);
    if (error.kind !== 'TooLarge') throw error;
  }
  const batch = args.batch ?? 1;
  while (seq < end) {
    const flush = (sent + 1) % batch === 0 || seq + 1 === end;
    const epoch = tx.peerEpoch;
    const began = performance.now();
    try {
      const message = messages.make(seq);
      const taken =
        args.poll === undefined ? put(tx, args, message, flush) : polling(args, () => put(tx, args, message, flush));
      if (taken) await taken;
    } catch (error) {
      report(error, began);
      if (isEnding(error) && ++endings < args.endings) {
        if (await awaitSuccessor(args, tx, epoch)) continue;
        report(new Ending('TimedOut'), began);
      }
      break;
    }
    if (args.progress === 'yes') say(`at seq=${seq}`);
    seq += 1;
    sent += 1;
    if (args.pace) sleep(args.pace);
  }
  if (seq >= end) say(`sent count=${sent} next=${seq}`);
  await linger(args);
  await close(args, tx);
}

/** What a consumer has seen so far. */
class Seen {
  constructor(args, longest) {
    this.args = args;
    this.messages = new Messages(args.sizes, longest);
    this.next = args.start;
    this.first = -1;
    this.last = -1;
    this.received = 0;
    this.bytes = 0;
  }

  take(frame, payload = frame.data) {
    const seq = this.next ?? seqOf(frame.tag);
    this.messages.check(seq, frame, payload);
    if (this.first < 0) this.first = seq;
    if (this.args.progress === 'yes') say(`at seq=${seq}`);
    if (this.args.work) sleep(this.args.work);
    this.last = seq;
    this.next = seq + 1;
    this.received += 1;
    this.bytes += payload.length;
  }

  left() {
    const { count = Infinity, until = Infinity } = this.args;
    return Math.min(count - this.received, until - (this.next ?? 0));
  }

  report(name, elapsed) {
    const { received, first, last, bytes } = this;
    say(`end ${name} received=${received} first=${first} last=${last} bytes=${bytes} elapsed_ms=${elapsed}`);
  }
}

/** The call that is being made: the other side's epoch before it, when it began, and how long the last one took. */
class Call {
  constructor(end) {
    this.end = end;
    this.elapsed = 0;
    this.begin();
  }

  begin() {
    this.epoch = this.end.peerEpoch;
    this.began = performance.now();
  }

  over() {
    this.elapsed = msSince(this.began);
  }
}

/** Takes what lives until it is released. */
function holding(held, take) {
  try {
    take(held);
  } finally {
    held.release();
  }
}

/** Takes one message, or a batch, by a call that gives one or a promise of one. */
async function getOne(rx, seen, call, target) {
  const { args } = seen;
  const max = Math.min(args.batch ?? 32, seen.left());
  const takeAll = (batch) => {
    for (const message of batch) seen.take(message);
  };
  const took = (frame) => {
    call.over();
    if (frame === null) throw new Ending('Empty');
    return frame;
  };
  let how = args.how ?? 'recv';
  const never = how === 'try';
  // By turns the three ways of not waiting.
  if (never) how = ['recv', 'batch', 'into'][seen.received % 3];
  const options = { timeout: args.each };
  const now = { ...options, allowMainThread: true };
  if (how === 'recv') {
    const message = never ? rx.tryRecv() : args.sync ? rx.recvSync(now) : await rx.recv(options);
    holding(took(message), (message) => seen.take(message));
  } else if (how === 'batch') {
    const batch = never
      ? rx.tryRecvBatch({ max })
      : args.sync
        ? rx.recvBatchSync({ ...now, max })
        : await rx.recvBatch({ ...options, max });
    holding(took(batch), takeAll);
  } else {
    const frame = never
      ? rx.tryRecvInto(target)
      : args.sync
        ? rx.recvIntoSync(target, now)
        : await rx.recvInto(target, options);
    seen.take(took(frame), target.subarray(0, frame.length));
  }
}

/** Receives until nothing is left to receive; throws whatever ends it before, the other side's close included.
 *
 * Where no flag says how long a single wait may last, messages and batches come as most programs take them, by
 * `for await`. */
async function get(rx, seen, call, target) {
  const { args } = seen;
  const loops = !args.sync && args.patient;
  if (loops && (args.how ?? 'recv') === 'recv') {
    for await (const message of rx) {
      call.over();
      seen.take(message);
      // Left to the loop, several messages are given back together: whoever is killed sees them again. What is
      // reported as done with is given back here.
      if (args.progress === 'yes') message.release();
      if (seen.left() <= 0) return;
      call.begin();
    }
    throw new Ending('Closed');
  }
  if (loops && args.how === 'batch' && seen.left() === Infinity) {
    for await (const batch of rx.batches({ max: args.batch ?? 32 })) {
      call.over();
      for (const message of batch) seen.take(message);
      call.begin();
    }
    throw new Ending('Closed');
  }
  while (seen.left() > 0) {
    call.begin();
    if (args.poll === undefined) await getOne(rx, seen, call, target);
    else await polling(args, () => getOne(rx, seen, call, target));
  }
}

export async function consume(args) {
  const rx = await receiving(args);
  const seen = new Seen(args, rx.capacity - 16);
  const target = args.how === 'into' || args.how === 'try' ? Buffer.alloc(rx.capacity - 16) : undefined;
  const call = new Call(rx);
  let endings = 0;
  let end = 'name=Count number=0';
  while (seen.left() > 0) {
    call.begin();
    try {
      await get(rx, seen, call, target);
    } catch (error) {
      call.over();
      end = named(error);
      if (isEnding(error) && ++endings < args.endings) {
        seen.report(end, call.elapsed);
        if (await awaitSuccessor(args, rx, call.epoch)) {
          end = 'name=Count number=0';
          continue;
        }
        end = named(new Ending('TimedOut'));
      }
      break;
    }
  }
  seen.report(end, call.elapsed);
  await linger(args);
  await close(args, rx);
}

export async function die(args) {
  const start = args.start ?? 0;
  let last;
  if (args.role === 'producer') {
    const tx = await sending(args);
    const messages = new Messages(args.sizes, tx.maxMessageLength);
    last = start + args.count;
    for (let seq = start; seq < last; seq++) await put(tx, args, messages.make(seq), true);
    const { typeId, tag, data } = messages.make(last);
    const half = data.subarray(0, Math.floor(data.length / 2));
    const write = (slot) => {
      slot.set(half);
      return half.length;
    };
    await tx.reserve(data.length, write, { typeId, tag, flush: false, timeout: args.limit });
  } else {
    const rx = await receiving(args);
    const seen = new Seen(args, rx.capacity - 16);
    while (seen.left() > 0) {
      const message = await rx.recv({ timeout: args.limit });
      seen.take(message);
      if (seen.left() > 0) message.release();
    }
    last = seen.last;
  }
  say(`dying next=${last}`);
  process.kill(process.pid, 'SIGKILL');
}
