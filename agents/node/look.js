// last, take, region, write and hold.

import { crc32 } from 'node:zlib';

import { Region } from 'ramway';

import { Ending, Limits, named, nextLine, Refused, say } from './line.js';
import { sayTensor } from './tensor.js';

export function last({ tx }, line) {
  line.end();
  say(tx.lastTag === null ? 'last none' : `last tag=${tx.lastTag}`);
}

export async function region(line) {
  const name = line.text('name');
  line.end();
  const opened = await Region.open(name, { timeout: 10_000 });
  const bytes = new Uint8Array(opened.buffer);
  say(`region len=${bytes.length} crc32=${crc32(bytes)}`);
  opened.close();
}

function saw({ typeId, tag, length, seq, lost }, data) {
  const stamp = seq === undefined ? '' : ` seq=${seq} lost=${lost}`;
  say(`message type_id=${typeId} tag=${tag} len=${length} crc32=${crc32(data)}${stamp}`);
}

/** The ways to receive one message. Every one has its own copy of the checks, or shares it with others. */
const ways = {
  async recv(rx, options, memory) {
    const message = await rx.recv(options);
    if (!memory || !sayTensor(message, memory)) saw(message, message.data);
    message.release();
  },
  async copy(rx, options) {
    const message = await rx.recv(options);
    saw(message, message.copy());
    message.release();
  },
  async batch(rx, options) {
    const batch = await rx.recvBatch({ ...options, max: 1 });
    for (const message of batch) saw(message, message.data);
    batch.release();
  },
  async into(rx, options) {
    const target = new Uint8Array(Math.min(rx.capacity, 1 << 20));
    const frame = await rx.recvInto(target, options);
    saw(frame, target.subarray(0, frame.length));
  },
  try(rx) {
    const message = rx.tryRecv();
    if (message === null) throw new Ending('Empty');
    saw(message, message.data);
    message.release();
  },
  sync(rx, options) {
    const message = rx.recvSync({ ...options, allowMainThread: true });
    saw(message, message.data);
    message.release();
  },
};

export async function take({ rx }, line, memory) {
  const [how, limits, tensor] = [line.text('how', 'recv'), new Limits(line), line.yes('tensor')];
  line.end();
  if (!(how in ways)) throw new Refused(`how=${how}`);
  try {
    await ways[how](rx, { timeout: limits.whole }, tensor ? memory() : undefined);
  } catch (error) {
    say(`end ${named(error)}${error.lost === undefined ? '' : ` lost=${error.lost}`}`);
  }
}

/** Reserves, fills, and commits what is to be kept. */
export async function write({ tx }, line, memory) {
  const length = line.number('len');
  const [kept, flush] = [line.number('kept', length), !line.yes('unflushed')];
  line.end();
  let address;
  const fill = (slot) => {
    slot.fill(0x11);
    // The view goes with the commit; the address stays the message's.
    address = memory.address(slot);
    return kept;
  };
  await tx.reserve(length, fill, { flush });
  await lookAt(memory, address, length, 0);
}

export async function hold({ rx }, line, memory) {
  line.end();
  const message = await rx.recv({ timeout: 10_000 });
  await lookAt(memory, memory.address(message.data), message.length, message.tag);
  message.release();
}

/** Writes and reads single bytes of a message by its address, until `release`. */
async function lookAt({ peek, poke }, address, length, tag) {
  say(`view addr=0x${address.toString(16)} len=${length} tag=${tag}`);
  for (let line = await nextLine(); line !== undefined; line = await nextLine()) {
    const at = address + BigInt(line.number('offset', 0));
    if (line.word === 'poke') {
      poke(at, line.number('value'));
      say('poked');
    } else if (line.word === 'peek') {
      say(`byte value=${peek(at)}`);
    } else if (line.word === 'release') {
      say('released');
      return;
    } else {
      throw new Refused(`${line.word} while a message is held`);
    }
    line.end();
  }
}
