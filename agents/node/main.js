// JavaScript's agent: ../README.md has the protocol.

import { createRequire } from 'node:module';

import { Bus, Ring } from 'ramway';

import { BadMessage, named, nextLine, Refused, say } from './line.js';
import { hold, last, region, take, write } from './look.js';
import { measure } from './measure.js';
import { Calling } from './rpc_client.js';
import { Serving } from './rpc_server.js';
import { consume, echo, ping, produce } from './stream.js';
import { sendTensor } from './tensor.js';
import { longestOfTopic, OPEN_TIMEOUT, openTopic } from './topic.js';

const longest = (capacity) => Math.min(capacity - 16, 2 ** 31 - 17);

/**
 * What is open: both halves of a bus, what a role needs of rings, or a side of RPC. `sync`: whether to call the sync twins. Who spins has a
 * thread to itself: that is what they are for. Everybody else is on the event loop. RAMWAY_CONFORMANCE_CALLS=sync or async
 * says so for all.
 */
let ends = {};

async function open(line) {
  const [role, topic, rpc] = [line.text('role'), line.text('topic'), line.text('rpc')];
  if (rpc !== undefined) {
    const side = { client: Calling, server: Serving }[role];
    if (side === undefined) throw new Refused(`role=${role}`);
    ends = { rpc: await side.open(rpc, line) };
    return;
  }
  if (topic !== undefined) {
    ends = await openTopic(line, topic, role);
    sayAttached(role === 'consumer' ? ends.rx : ends.tx, longestOfTopic);
    return;
  }
  const [ring, back, listen, connect] = ['ring', 'back', 'listen', 'connect'].map((key) => line.text(key));
  const wait = line.text('wait', 'hybrid');
  const [create, prefault] = [line.yes('create'), line.yes('prefault')];
  const [capacity, align] = [line.number('capacity', 65536), line.number('align', 16)];
  line.end();
  const sync = (process.env.RAMWAY_CONFORMANCE_CALLS ?? (wait === 'spin' ? 'sync' : 'async')) === 'sync';
  const options = { wait, timeout: OPEN_TIMEOUT };
  const allowed = { allowMainThread: true };
  if (listen || connect) {
    const how = { ...options, ...(listen && { capacity, align }), ...(sync && allowed) };
    const [name, call] = [listen ?? connect, listen ? 'listen' : 'connect'];
    const bus = sync ? Bus[`${call}Sync`](name, how) : await Bus[call](name, how);
    // It may have one direction only.
    ends = {
      bus,
      tx: role === 'consumer' ? undefined : bus.sender,
      rx: role === 'producer' ? undefined : bus.receiver,
    };
  } else {
    const of = (name) =>
      create ? Ring.create(name, { ...options, capacity, align, prefault }) : Ring.open(name, { ...options, prefault });
    const [to, from] = role === 'consumer' ? [back, ring] : [ring, back];
    ends = {};
    if (to) ends.tx = sync ? of(to).senderSync(allowed) : await of(to).sender();
    if (from) ends.rx = sync ? of(from).receiverSync(allowed) : await of(from).receiver();
  }
  ends.sync = sync;
  sayAttached(role === 'consumer' ? ends.rx : ends.tx, longest);
}

function sayAttached({ epoch, peerEpoch, capacity }, longest) {
  say(
    `attached pid=${process.pid} epoch=${epoch} peer_epoch=${peerEpoch} capacity=${capacity} max=${longest(capacity)}`,
  );
}

/** Closes in an orderly way. What closing says, on a bus whose peer is dead, say, does not matter. */
async function close(line) {
  line.end();
  const { bus, tx, rx, rpc, sync } = ends;
  await rpc?.close();
  for (const end of [tx, rx]) {
    try {
      if (sync) end?.close();
      else await end?.end();
    } catch (error) {
      if (error?.kind === undefined) throw error;
    }
  }
  bus?.close();
  ends = {};
  say('closed');
}

const about = (line) => {
  line.end();
  say(`about text=Node.js ${process.versions.node.split('.')[0]}`);
};

/** address(view), peek(address), poke(address, value): see address.c. */
const memory = () => createRequire(import.meta.url)(process.env.RAMWAY_ADDRESS);

const commands = {
  open: [open],
  close: [close],
  about: [about],
  region: [region],
  produce: [(line) => produce(ends, line), 'tx'],
  consume: [(line) => consume(ends, line), 'rx'],
  echo: [(line) => echo(ends, line), 'tx', 'rx'],
  ping: [(line) => ping(ends, line), 'tx', 'rx'],
  last: [(line) => last(ends, line), 'tx'],
  take: [(line) => take(ends, line, memory), 'rx'],
  tensor: [(line) => sendTensor(ends, line), 'tx'],
  write: [(line) => write(ends, line, memory()), 'tx'],
  hold: [(line) => hold(ends, line, memory()), 'rx'],
  measure: [(line) => measure(ends, line)],
};

async function obey(line) {
  const isOfRpc = ends.rpc !== undefined && line.word !== 'open' && line.word !== 'close';
  const [command, ...needs] = isOfRpc ? [(line) => ends.rpc.obey(line)] : (commands[line.word] ?? []);
  if (command === undefined) throw new Refused(`no such command: ${line.word}`);
  if (needs.some((end) => ends[end] === undefined)) throw new Refused(`nothing is open for ${line.word}`);
  try {
    await command(line);
  } catch (error) {
    if (error instanceof Refused || error instanceof BadMessage) throw error;
    say(`error ${named(error)} text=${error.message}`);
  }
}

try {
  for (let line = await nextLine(); line !== undefined; line = await nextLine()) await obey(line);
} catch (error) {
  if (error instanceof Refused) say(`refused text=${error.message}`);
  else if (error instanceof BadMessage) say(`bad seq=${error.seq} text=${error.message}`);
  else console.error(error);
  process.exitCode = error instanceof Refused ? 2 : 1;
}
// Not process.exit(): whatever is closed lets the event loop end by itself, whatever standard input does.
process.stdin.destroy();
