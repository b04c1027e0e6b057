// open topic=

import { Topic } from 'ramway';

import { Refused } from './line.js';

/** For a name, a role or the other side, in milliseconds. */
export const OPEN_TIMEOUT = 10_000;

export const longestOfTopic = (capacity) => Math.min(capacity / 2 - 32, 2 ** 31 - 33);

/** Where a subscriber begins. */
function begins(from) {
  if (from === undefined) return {};
  const [place, text] = from.split(':');
  if (text === undefined && (place === 'oldest' || place === 'now')) return { start: place };
  if (/^\d+$/.test(text) && place === 'history') return { history: Number(text) };
  if (/^\d+$/.test(text) && place === 'after') return { afterSeq: Number(text) };
  throw new Refused(`from=${from}`);
}

/** Opens one side. Who spins has a thread to itself, and calls the sync twins: see open in main.js. */
export async function openTopic(line, name, role) {
  const [policy, from, label, durable] = [
    line.text('policy'),
    line.text('from'),
    line.text('label'),
    line.yes('durable'),
  ];
  const [wait, create] = [line.text('wait', 'hybrid'), line.yes('create')];
  const [ejectAfter, waitFor] = [line.number('eject_after'), line.number('wait_for')];
  const [capacity, align] = [line.number('capacity', 65536), line.number('align', 32)];
  const timeout = line.number('timeout', OPEN_TIMEOUT);
  line.end();
  const sync = (process.env.RAMWAY_CONFORMANCE_CALLS ?? (wait === 'spin' ? 'sync' : 'async')) === 'sync';
  const options = { wait, timeout };
  const topic = create
    ? Topic.create(name, { ...options, capacity, align, mayEject: ejectAfter !== undefined })
    : Topic.open(name, options);
  const allowed = { allowMainThread: true };
  if (role === 'consumer') {
    if (waitFor !== undefined) throw new Refused("wait_for is a producer's");
    const how = { ...begins(from), label, durable };
    return {
      rx: sync ? topic.subscriberSync(policy, { ...how, ...allowed }) : await topic.subscriber(policy, how),
      sync,
    };
  }
  const how = { ejectAfter };
  const tx = sync ? topic.publisherSync({ ...how, ...allowed }) : await topic.publisher(how);
  if (waitFor !== undefined) await tx.waitForSubscribers(waitFor, { timeout: OPEN_TIMEOUT });
  return { tx, sync };
}
