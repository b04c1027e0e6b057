// read and show.

import { createRequire } from 'node:module';
import { crc32 } from 'node:zlib';

import { Region } from 'ramway';

import { Ending, named, pause, readLine, say } from './common.js';
import { Messages } from './messages.js';
import { close, PATIENCE, receiving, sending } from './place.js';

/** address(view), peek(address), poke(address, value): see address.c. */
export const memory = () => createRequire(import.meta.url)(process.env.RAMWAY_ADDRESS);

export async function read(args) {
  if (args.region) await readRegion(args);
  else if (args.role === 'producer') await readAsProducer(args);
  else await readAsConsumer(args);
}

async function readRegion(args) {
  const region = await Region.open(args.region, { timeout: PATIENCE });
  const bytes = new Uint8Array(region.buffer);
  say(`region len=${bytes.length} crc32=${crc32(bytes)}`);
  region.close();
  say('closed');
}

async function readAsProducer(args) {
  const tx = await sending(args);
  await pause(args);
  try {
    say(tx.lastTag === null ? 'last none' : `last tag=${tx.lastTag}`);
    const { typeId, tag, data } = new Messages(args.size, tx.maxMessageLength).make(0);
    if (!tx.trySend(data, { typeId, tag })) throw new Ending('Full');
    say('sent');
  } catch (error) {
    say(`end ${named(error)}`);
  }
  await close(args, tx);
}

function saw({ typeId, tag, length }, data) {
  say(`message type_id=${typeId} tag=${tag} len=${length} crc32=${crc32(data)}`);
}

/** The ways to receive one message. Every one has its own copy of the checks, or shares it with others: which of them
 * meets the vectors RAMWAY_CONFORMANCE_READ says. */
const ways = {
  async recv(rx, options) {
    const message = await rx.recv(options);
    saw(message, message.data);
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
  sync(rx, options) {
    const message = rx.recvSync({ ...options, allowMainThread: true });
    saw(message, message.data);
    message.release();
  },
};

async function readAsConsumer(args) {
  const rx = await receiving(args);
  await pause(args);
  const receive = ways[process.env.RAMWAY_CONFORMANCE_READ ?? 'recv'];
  try {
    for (;;) await receive(rx, { timeout: args.limit });
  } catch (error) {
    say(`end ${named(error)}`);
  }
  await close(args, rx);
}

const SHOWN = 4096;

/** Writes and reads single bytes of the message in place, as standard input says. */
async function obey({ peek, poke }, address) {
  for (;;) {
    const [command, offset, value] = (await readLine())?.split(' ') ?? [];
    const at = address + BigInt(offset ?? 0);
    if (command === 'poke') {
      poke(at, Number(value));
      say('poked');
    } else if (command === 'peek') {
      say(`byte value=${peek(at)}`);
    } else {
      return;
    }
  }
}

export async function show(args) {
  const bytes = memory();
  const view = (data) => {
    const address = bytes.address(data);
    say(`view addr=0x${address.toString(16)} len=${data.length} pid=${process.pid}`);
    return address;
  };
  if (args.role === 'producer') {
    const tx = await sending(args);
    let address;
    const fill = (slot) => {
      slot.fill(0x11);
      // The view goes with the commit; the address stays the message's.
      address = view(slot);
    };
    await tx.reserve(SHOWN, fill, { timeout: args.limit });
    await obey(bytes, address);
    await close(args, tx);
  } else {
    const rx = await receiving(args);
    const message = await rx.recv({ timeout: args.limit });
    await obey(bytes, view(message.data));
    message.release();
    await close(args, rx);
  }
}
