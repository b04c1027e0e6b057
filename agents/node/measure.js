// measure: the loops that are timed.
//
// Every message is one of `CYCLE`, in order and from its beginning each time: little-endian 64-bit words that differ from
// message to message. They are made before what is measured begins. The receiver reads every byte in a plain loop into
// two running sums, the second one of the first's values, so that the bytes' order counts as well; what they come to at
// the end says whether anything was lost, repeated, exchanged or damaged.

import { BadMessage, nextLine, Refused, say } from './line.js';

/** How many messages differ. A power of two. */
const CYCLE = 4096;
const SEEN = Buffer.alloc(8);

/** Nanoseconds of CLOCK_MONOTONIC: the same in all processes. */
const now = () => Number(process.hrtime.bigint());

const pools = new Map();

/** The messages of this size: message n is the 64-bit words n, n + 1, … */
function pool(size) {
  let messages = pools.get(size);
  if (messages === undefined) {
    const all = Buffer.alloc(CYCLE * size);
    messages = Array.from({ length: CYCLE }, (_, n) => {
      const message = all.subarray(n * size, (n + 1) * size);
      for (let word = 0; word < size >> 3; word++) message.writeUInt32LE(n + word, word << 3);
      return message;
    });
    pools.set(size, messages);
  }
  return messages;
}

const messages = (size, count) => Array.from({ length: count }, (_, n) => pool(size)[n % CYCLE]);

/** In arrays of `size`, the last one shorter. */
function grouped(of, size) {
  return Array.from({ length: Math.ceil(of.length / size) }, (_, n) => of.slice(n * size, (n + 1) * size));
}

/** Reads every byte. */
function read(check, bytes, from = 0, to = bytes.length) {
  let one = check[0] | 0;
  let two = check[1] | 0;
  for (let at = from; at < to; at++) {
    one = (one + bytes[at]) | 0;
    two = (two + one) | 0;
  }
  check[0] = one;
  check[1] = two;
}

/** Where a frame is looked at: not everywhere, because what reading 512 MiB leaves in the caches is no part of receiving
 * the next one. */
function places(size) {
  const step = Math.max(1, Math.ceil(size / 256));
  return [...Array.from({ length: Math.ceil(size / step) }, (_, n) => n * step), size - 1];
}

function mark(frame, n) {
  for (const place of places(frame.length)) frame[place] = (n % 255) + 1;
}

function compare(frame, size, n) {
  if (frame.length !== size || places(size).some((place) => frame[place] !== (n % 255) + 1)) {
    throw new BadMessage(n, 'the frame received is not the frame sent');
  }
}

/** What of a message is read: itself, or with how=into a copy of it in a buffer of one's own. */
function taker(rx, how, check) {
  const wait = { allowMainThread: true };
  if (how !== 'into') {
    return () => {
      const message = rx.recvSync(wait);
      read(check, message.data);
      message.release();
    };
  }
  const buffer = new Uint8Array(64);
  return () => {
    const { length } = rx.recvIntoSync(buffer, wait);
    read(check, length === buffer.length ? buffer : buffer.subarray(0, length));
  };
}

/** Both halves of round trips: by calls that hold the thread up, or on the event loop. */
const trips = {
  pingSync({ tx, rx, how, groups, check, stamps }) {
    const [take, wait] = [taker(rx, how, check), { allowMainThread: true }];
    stamps.push(now());
    for (const group of groups) {
      for (const message of group) {
        tx.sendSync(message, wait);
        take();
      }
      stamps.push(now());
    }
  },
  echoSync({ tx, rx, how, groups, check }) {
    const [take, wait] = [taker(rx, how, check), { allowMainThread: true }];
    for (const group of groups) {
      for (const answer of group) {
        take();
        tx.sendSync(answer, wait);
      }
    }
  },
  async ping({ tx, rx, groups, check, stamps }) {
    stamps.push(now());
    for (const group of groups) {
      for (const message of group) {
        await tx.send(message);
        const answer = await rx.recv();
        read(check, answer.data);
        answer.release();
      }
      stamps.push(now());
    }
  },
  async echo({ tx, rx, groups, check }) {
    for (const group of groups) {
      for (const answer of group) {
        const message = await rx.recv();
        read(check, message.data);
        message.release();
        await tx.send(answer);
      }
    }
  },
};

/** A stream of messages, each visible at once, or as many together as a group has. */
async function send({ tx, how, batch, groups }) {
  if (batch > 1) {
    for (const group of groups) await tx.sendBatch(group);
    return;
  }
  const [all] = groups;
  if (how === 'await') {
    for (const message of all) await tx.send(message);
    return;
  }
  for (const message of all) {
    if (!tx.trySend(message)) await tx.send(message);
  }
}

/** Reads a stream: message by message, or by batches; those as messages, or with how=bytes in their one view. */
async function receive({ rx, how, count, batch, check }) {
  let left = count;
  if (batch > 1) {
    for await (const many of rx.batches({ max: batch })) {
      if (how === 'bytes') {
        const { bytes } = many;
        for (let n = 0; n < many.length; n++) {
          const at = many.offset(n);
          read(check, bytes, at, at + many.size(n));
        }
      } else {
        for (const message of many) read(check, message.data);
      }
      left -= many.length;
      if (left === 0) {
        many.release();
        return;
      }
    }
  }
  for await (const message of rx) {
    read(check, message.data);
    left -= 1;
    if (left === 0) return;
  }
}

/** Sends frames, each after the word that the other side has seen the one before. */
function show({ tx, rx, size, count }) {
  const wait = { allowMainThread: true };
  for (let n = 0; n < count; n++) {
    tx.reserveSync(size, (slot) => mark(slot, n), wait);
    rx.recvSync(wait).release();
  }
}

/** Times a frame that is there, from asking for it to having it as a Uint8Array. */
function look({ tx, rx, size, count, samples }) {
  for (let n = 0; n < count; n++) {
    let began;
    let message = null;
    while (message === null) {
      began = now();
      message = rx.tryRecv();
    }
    const { data } = message;
    const first = data[0];
    samples.push(now() - began);
    compare(data, size, n);
    if (first !== data[0]) throw new BadMessage(n, 'the frame changed');
    message.release();
    tx.sendSync(SEEN, { allowMainThread: true });
  }
}

/** The newest message of a topic, again and again. */
function latest({ rx, count, group, check, stamps }) {
  if (rx?.latest === undefined) throw new Refused('do=latest: no subscriber is open');
  stamps.push(now());
  for (let left = count; left > 0; left -= group) {
    for (let n = Math.min(group, left); n > 0; n--) read(check, rx.latest().data);
    stamps.push(now());
  }
}

const loops = { ping: trips.ping, echo: trips.echo, send, receive, latest, show, look };

export async function measure({ tx, rx }, line) {
  const [what, how, wait] = [line.text('do'), line.text('how'), line.text('wait', 'hybrid')];
  const [size, count] = [line.number('size'), line.number('count')];
  const [batch, group] = [line.number('batch', 1), line.number('group', 1)];
  line.end();
  const loop = (wait === 'spin' && trips[`${what}Sync`]) || loops[what];
  if (loop === undefined) throw new Refused(`do=${what}`);
  for (const end of [tx, rx]) if (end) end.wait = wait;
  const many = ['receive', 'latest', 'show', 'look'].includes(what) ? [] : messages(size, count);
  const groups = grouped(many, what === 'ping' || what === 'echo' ? group : batch > 1 ? batch : count);
  const plan = { tx, rx, how, size, count, batch, group, groups, check: Int32Array.of(1, 0), stamps: [], samples: [] };
  say('ready');
  // The other side is told first: it waits by then.
  if (what === 'ping' || what === 'send' || what === 'show') await nextLine();
  const began = now();
  await loop(plan);
  const ended = now();
  const { check, stamps, samples } = plan;
  for (let n = 1; n < stamps.length; n++) samples.push(stamps[n] - stamps[n - 1]);
  saySums(began, ended, check, samples);
}

function saySums(began, ended, check, samples) {
  say(
    `measured began_ns=${began} ended_ns=${ended} sums=${check[0] >>> 0},${check[1] >>> 0} samples=${samples.join(',')}`,
  );
}

/** `do=call`, of a client. */
export async function measureCalls(client, line) {
  const [what, size] = [line.text('do'), line.number('size')];
  const [count, group] = [line.number('count'), line.number('group', 1)];
  line.end();
  if (what !== 'call') throw new Refused(`do=${what}, with a client open`);
  const [groups, check, stamps] = [grouped(messages(size, count), group), Int32Array.of(1, 0), []];
  say('ready');
  await nextLine();
  stamps.push(now());
  for (const each of groups) {
    for (const message of each) read(check, (await client.call(1, message)).body);
    stamps.push(now());
  }
  saySums(
    stamps[0],
    stamps.at(-1),
    check,
    stamps.slice(1).map((stamp, n) => stamp - stamps[n]),
  );
}
