// produce, consume, echo and ping.

import { Subscriber } from 'ramway';

import { BadMessage, Ending, Limits, msSince, named, Refused, say } from './line.js';
import { Messages, seqOf } from './messages.js';
import { longestOfTopic } from './topic.js';

/** The keys that produce and consume have. */
class Plan {
  constructor(ends, line, { how, batch }) {
    this.sync = ends.sync;
    this.sizes = line.text('sizes', 'mixed');
    this.how = line.text('how', how);
    this.start = line.number('start');
    this.count = line.number('count');
    this.batch = line.number('batch', batch);
    this.limits = new Limits(line);
    this.endings = line.number('endings', 1);
    this.progress = line.yes('progress');
    line.end();
  }

  /** Whether the stream goes on after this, with a successor of the other side. */
  goesOn({ kind }) {
    if (kind !== 'Closed' && kind !== 'PeerDead') return false;
    this.endings -= 1;
    return this.endings > 0;
  }
}

/** Sends one message as `how` says. A promise, if that takes one. */
function put(tx, plan, { typeId, tag, data }, flush) {
  const fill = (slot) => {
    slot.set(data);
  };
  if (plan.how === 'try') {
    // By turns the two ways of not waiting.
    const options = { typeId, tag, flush };
    const went = seqOf(tag) % 2 === 0 ? tx.trySend(data, options) : tx.tryReserve(data.length, fill, options);
    if (!went) throw new Ending('Full');
    return undefined;
  }
  const timeout = plan.limits.each;
  if (plan.sync) {
    const options = { typeId, tag, flush, timeout, allowMainThread: true };
    return plan.how === 'reserve' ? tx.reserveSync(data.length, fill, options) : tx.sendSync(data, options);
  }
  const options = { typeId, tag, flush, timeout };
  return plan.how === 'reserve' ? tx.reserve(data.length, fill, options) : tx.send(data, options);
}

export async function produce(ends, line) {
  const { tx } = ends;
  const plan = new Plan(ends, line, { how: 'send', batch: 1 });
  if (plan.count === undefined) throw new Refused('count is missing');
  const messages = new Messages(plan.sizes, tx.maxMessageLength);
  let seq = plan.start ?? 0;
  const end = seq + plan.count;
  let sent = 0;
  const report = (error, began) => say(`end ${named(error)} sent=${sent} next=${seq} elapsed_ms=${msSince(began)}`);
  while (seq < end) {
    const flush = (sent + 1) % plan.batch === 0 || seq + 1 === end;
    const epoch = tx.peerEpoch;
    const began = performance.now();
    try {
      const message = messages.make(seq);
      const taken = plan.limits.wait(() => put(tx, plan, message, flush));
      if (taken) await taken;
    } catch (error) {
      report(error, began);
      if (!plan.goesOn(error)) return;
      if (await plan.limits.successor(tx, epoch)) continue;
      report(new Ending('TimedOut'), began);
      return;
    }
    if (plan.progress) say(`at seq=${seq}`);
    seq += 1;
    sent += 1;
  }
  say(`sent count=${sent} next=${seq}`);
}

/** What a consumer has seen so far. */
class Seen {
  constructor(plan, longest, ofTopic) {
    this.plan = plan;
    this.ofTopic = ofTopic;
    this.messages = new Messages(plan.sizes, longest);
    this.next = plan.start;
    this.first = -1;
    this.last = -1;
    this.received = 0;
    this.bytes = 0;
    /** Of a topic, how many it was told that it lost. */
    this.lost = 0;
  }

  /** What a topic's message says of itself; the first one has number 1. */
  number(frame) {
    const seq = frame.seq - 1;
    if (this.next !== undefined && this.next + frame.lost !== seq) {
      throw new BadMessage(seq, `it comes after ${frame.lost} lost ones, and ${this.next} was expected`);
    }
    this.next = seq;
    this.lost += frame.lost;
  }

  /** Reports how many messages an ejection cost. */
  lagged(lost) {
    say(`lagged lost=${lost}`);
    this.lost += lost;
    if (this.next !== undefined) this.next += lost;
  }

  take(frame, payload = frame.data) {
    if (this.ofTopic) this.number(frame);
    const seq = this.next ?? seqOf(frame.tag);
    this.messages.check(seq, frame, payload);
    if (this.first < 0) this.first = seq;
    if (this.plan.progress) say(`at seq=${seq}`);
    this.last = seq;
    this.next = seq + 1;
    this.received += 1;
    this.bytes += payload.length;
  }

  left() {
    return (this.plan.count ?? Infinity) - this.received;
  }

  report(name, elapsed) {
    const { received, first, last, bytes } = this;
    const lost = this.ofTopic ? ` lost=${this.lost}` : '';
    say(`end ${name} received=${received} first=${first} last=${last} bytes=${bytes} elapsed_ms=${elapsed}${lost}`);
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
  const { plan } = seen;
  const max = Math.min(plan.batch, seen.left());
  const takeAll = (batch) => {
    for (const message of batch) seen.take(message);
  };
  const took = (frame) => {
    call.over();
    if (frame === null) throw new Ending('Empty');
    return frame;
  };
  let how = plan.how;
  const never = how === 'try';
  // By turns the three ways of not waiting.
  if (never) how = ['recv', 'batch', 'into'][seen.received % 3];
  const options = { timeout: plan.limits.each };
  const now = { ...options, allowMainThread: true };
  if (how === 'recv') {
    const message = never ? rx.tryRecv() : plan.sync ? rx.recvSync(now) : await rx.recv(options);
    holding(took(message), (message) => seen.take(message));
  } else if (how === 'batch') {
    const batch = never
      ? rx.tryRecvBatch({ max })
      : plan.sync
        ? rx.recvBatchSync({ ...now, max })
        : await rx.recvBatch({ ...options, max });
    holding(took(batch), takeAll);
  } else {
    const frame = never
      ? rx.tryRecvInto(target)
      : plan.sync
        ? rx.recvIntoSync(target, now)
        : await rx.recvInto(target, options);
    seen.take(took(frame), target.subarray(0, frame.length));
  }
}

/** Receives until nothing is left to receive; throws whatever ends it before, the other side's close included.
 *
 * Where nothing says how long a single wait may last, messages and batches come as most programs take them, by
 * `for await`. */
async function get(rx, seen, call, target) {
  const { plan } = seen;
  const loops = !plan.sync && plan.limits.unlimited;
  if (loops && plan.how === 'recv') {
    for await (const message of rx) {
      call.over();
      seen.take(message);
      // Left to the loop, several messages are given back together: whoever is killed sees them again. What is
      // reported as done with is given back here.
      if (plan.progress) message.release();
      if (seen.left() <= 0) return;
      call.begin();
    }
    throw new Ending('Closed');
  }
  if (loops && plan.how === 'batch' && seen.left() === Infinity) {
    for await (const batch of rx.batches({ max: plan.batch })) {
      call.over();
      for (const message of batch) seen.take(message);
      call.begin();
    }
    throw new Ending('Closed');
  }
  while (seen.left() > 0) {
    call.begin();
    await plan.limits.wait(() => getOne(rx, seen, call, target));
  }
}

export async function consume(ends, line) {
  const { rx } = ends;
  const plan = new Plan(ends, line, { how: 'recv', batch: 32 });
  const ofTopic = rx instanceof Subscriber;
  const longest = ofTopic ? longestOfTopic(rx.capacity) : rx.capacity - 16;
  const seen = new Seen(plan, longest, ofTopic);
  const target = plan.how === 'into' || plan.how === 'try' ? Buffer.alloc(longest) : undefined;
  const call = new Call(rx);
  while (seen.left() > 0) {
    call.begin();
    try {
      await get(rx, seen, call, target);
    } catch (error) {
      call.over();
      if (error?.kind === 'Lagged') {
        seen.lagged(error.lost);
        continue;
      }
      seen.report(named(error), call.elapsed);
      if (!plan.goesOn(error)) return;
      if (await plan.limits.successor(rx, call.epoch)) continue;
      seen.report(named(new Ending('TimedOut')), call.elapsed);
      return;
    }
  }
  seen.report('name=Count number=0', call.elapsed);
}

export async function echo({ tx, rx, sync }, line) {
  const { whole: timeout } = new Limits(line);
  line.end();
  let received = 0;
  let bytes = 0;
  let first = -1;
  let last = -1;
  let began = performance.now();
  let end = 'name=Closed number=9';
  const count = (message) => {
    last = seqOf(message.tag);
    if (received === 0) first = last;
    received += 1;
    bytes += message.length;
  };
  try {
    if (sync) {
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
  } catch (error) {
    end = named(error);
  }
  say(`end ${end} received=${received} first=${first} last=${last} bytes=${bytes} elapsed_ms=${msSince(began)}`);
}

export async function ping({ tx, rx, sync }, line) {
  const [count, { whole: timeout }] = [line.number('count'), new Limits(line)];
  const messages = new Messages(line.text('sizes', 'mixed'), tx.maxMessageLength);
  line.end();
  const wait = sync ? { timeout, allowMainThread: true } : { timeout };
  for (let seq = 0; seq < count; seq++) {
    const { typeId, tag, data } = messages.make(seq);
    let message;
    if (sync) {
      tx.sendSync(data, { typeId, tag, ...wait });
      message = rx.recvSync(wait);
    } else {
      await tx.send(data, { typeId, tag, ...wait });
      message = await rx.recv(wait);
    }
    messages.check(seq, message, message.data);
    message.release();
  }
  say(`answered count=${count}`);
}
