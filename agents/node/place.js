// Rings and buses as the flags say, and their ends.

import { Bus, Ring } from 'ramway';

import { say, UsageError } from './common.js';

/** For a name, a role or the other side, in milliseconds. */
export const PATIENCE = 10_000;

function ring(args, name) {
  if (!name) throw new UsageError('a command wants --ring, --listen or --connect, and some --back');
  const { capacity, align, wait } = args;
  return args.create === 'yes'
    ? Ring.create(name, { capacity, align, wait, timeout: PATIENCE })
    : Ring.open(name, { wait, timeout: PATIENCE });
}

const allowed = { allowMainThread: true };

const sender = (args, name) => (args.sync ? ring(args, name).senderSync(allowed) : ring(args, name).sender());
const receiver = (args, name) => (args.sync ? ring(args, name).receiverSync(allowed) : ring(args, name).receiver());

function bus(args) {
  const { connect, listen, capacity, align, wait } = args;
  const options = { wait, timeout: PATIENCE, ...(args.sync && allowed) };
  if (connect) return args.sync ? Bus.connectSync(connect, options) : Bus.connect(connect, options);
  if (!listen) return undefined;
  Object.assign(options, { capacity, align });
  return args.sync ? Bus.listenSync(listen, options) : Bus.listen(listen, options);
}

const longest = (capacity) => Math.min(capacity - 16, 2 ** 31 - 17);

function attached(end) {
  const { epoch, peerEpoch, capacity } = end;
  say(
    `attached pid=${process.pid} epoch=${epoch} peer_epoch=${peerEpoch} capacity=${capacity} max=${longest(capacity)}`,
  );
}

/** The buses whose one half was opened. */
const buses = new WeakMap();

/** The sending end of --ring, or of the bus. */
export async function sending(args) {
  const connection = await bus(args);
  const tx = connection ? connection.sender : await sender(args, args.ring);
  if (connection) buses.set(tx, connection);
  attached(tx);
  return tx;
}

/** The receiving end of --ring, or of the bus. */
export async function receiving(args) {
  const connection = await bus(args);
  const rx = connection ? connection.receiver : await receiver(args, args.ring);
  if (connection) buses.set(rx, connection);
  attached(rx);
  return rx;
}

/** What sends and what receives: two ends of the rings `to` and `from`, or one bus, which is both. */
export async function conversation(args, to, from) {
  const connection = await bus(args);
  if (connection) {
    attached(connection.sender);
    return { tx: connection, rx: connection, longest: longest(connection.sender.capacity) };
  }
  const tx = await sender(args, to);
  const rx = await receiver(args, from);
  attached(tx);
  return { tx, rx, longest: longest(tx.capacity) };
}

/** Closes in an orderly way, each once. What closing says, on a bus whose peer is dead, say, does not matter. */
export async function close(args, ...ends) {
  for (const end of new Set(ends)) {
    try {
      if (args.sync) end.close();
      else await end.end();
      buses.get(end)?.close();
    } catch (error) {
      if (error?.kind === undefined) throw error;
    }
  }
  say('closed');
}
