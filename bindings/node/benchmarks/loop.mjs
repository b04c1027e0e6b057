// What the event loop feels of the package: how late timers are under full load, what a handle costs that only waits, and
// what else runs meanwhile. `node loop.mjs PROGRAM [SECONDS]`, PROGRAM being `ramway-bench`, which sends from a process
// of its own; the same in Bun and Deno.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Ring } from '../index.mjs';

const [program, seconds = '5'] = process.argv.slice(2);
if (program === undefined) throw new Error('which program sends?');
const SPAN = Number(seconds) * 1000;
const directory = mkdtempSync('/dev/shm/ramway-loop-');
const name = `${directory}/ring`;
const now = () => Number(process.hrtime.bigint()) / 1e6;

// A timer every millisecond, as a program would have it; late is what lies between it and when it was due.
function drift() {
  const late = [];
  let due = now() + 1;
  let timer = setTimeout(function tick() {
    const at = now();
    late.push(at - due);
    due = at + 1;
    timer = setTimeout(tick, 1);
  }, 1);
  return () => {
    clearTimeout(timer);
    late.sort((a, b) => a - b);
    const part = (of) => late[Math.min(late.length - 1, Math.floor(late.length * of))].toFixed(2);
    return `${late.length} timers of 1 ms, late by ${part(0.5)} ms (median), ${part(0.99)} (99 %), ${part(1)} (longest)`;
  };
}

// The sender: bench/src/sender.rs has what it is told.
const rx = await Ring.create(name, { capacity: 1 << 20 }).receiver();
const order = { send: { protocol: 1, ring: name, cpu: null, realtime: false } };
const sender = spawn(program, [], {
  env: { ...process.env, RAMWAY_BENCH_WORKER: JSON.stringify(order) },
  stdio: ['pipe', 'ignore', 'inherit'],
});
const send = (mode, size, count) => {
  const burst = { test: 'one-way', mode, size, smallest: size, count, group: 1, batch: 64, gap_ns: 0, work_ns: 0 };
  sender.stdin.write(`${JSON.stringify({ burst })}\n`);
};

async function underLoad(what, mode, size, receive) {
  const before = drift();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  console.log(`without load: ${before()}`);
  // More than there is time for: the receiver ends it.
  send(mode, size, 1 << 20);
  const stop = drift();
  const began = now();
  let count = 0;
  let bursts = 1;
  while (bursts > 0) {
    count += await receive(1 << 20);
    bursts--;
    if (now() - began < SPAN) {
      send(mode, size, 1 << 20);
      bursts++;
    }
  }
  const rate = count / (now() - began) / 1000;
  console.log(`${what}: ${rate.toFixed(2)} M/s, ${stop()}`);
}

const sum = (bytes) => {
  let all = 0;
  for (let at = 0; at < bytes.length; at++) all += bytes[at];
  return all;
};
let read = 0;
await underLoad('for await over messages', 'each', 32, async (left) => {
  const all = left;
  for await (const message of rx) {
    read += sum(message.data);
    if (--left === 0) break;
  }
  return all;
});
await underLoad('for await over batches', 'batch', 32, async (left) => {
  const all = left;
  for await (const batch of rx.batches({ max: 1024 })) {
    for (const message of batch) read += sum(message.data);
    left -= batch.length;
    if (left === 0) {
      batch.release();
      break;
    }
  }
  return all;
});
await underLoad("'message' events", 'each', 32, (left) => {
  const all = left;
  return new Promise((resolve) => {
    const listener = (message) => {
      read += sum(message.data);
      if (--left > 0) return;
      rx.off('message', listener);
      resolve(all);
    };
    rx.on('message', listener);
  });
});

// Handles that wait: one, then a hundred.
async function idle(what, start) {
  const waits = start();
  await new Promise((resolve) => setTimeout(resolve, 200));
  const used = process.cpuUsage();
  const began = now();
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  const { user, system } = process.cpuUsage(used);
  console.log(`${what}: ${((user + system) / 10 / (now() - began)).toFixed(3)} % of a processor`);
  return waits;
}
await idle('nothing at all for 10 s', () => null);
const one = rx.recv();
await idle('one receiver that waits for 10 s', () => null);
const pairs = Array.from({ length: 100 }, () => Ring.pair(1 << 12));
const many = pairs.map(([, receiver]) => receiver.recv().catch(() => {}));
await idle('a hundred more', () => null);
for (const [tx, receiver] of pairs) {
  receiver.close();
  tx.close();
}
await Promise.all(many);
send('each', 32, 1);
(await one).release();
const ended = once(sender, 'exit');
sender.stdin.end();
await ended;
rx.close();
rmSync(directory, { recursive: true });
if (read === 0) throw new Error('nothing was read');
