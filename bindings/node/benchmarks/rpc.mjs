// What a call costs: round trips with a server in Rust, and with a socket of Node's own; the processor time of this process; how
// often native code is called.
//
//   node rpc.mjs ../../../target/release/ramway-node-peer
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RpcClient } from '../index.mjs';

const ROUNDS = 30;
const CALLS = 256;
const MANY = 64;

const [program] = process.argv.slice(2);
if (program === undefined)
  throw new Error('the program of the server is missing: cargo build --release -p ramway-node-peer');

/** Calls in rounds; prints the best round and the median. @param {string} what @param {(calls: number) => Promise<void>} round */
async function measure(what, round) {
  /** @type {number[]} */ const wall = [];
  /** @type {number[]} */ const cpu = [];
  for (let i = 0; i < ROUNDS; i++) {
    const [began, used] = [performance.now(), process.cpuUsage()];
    await round(CALLS);
    const { user, system } = process.cpuUsage(used);
    wall.push(((performance.now() - began) * 1e3) / CALLS);
    cpu.push((user + system) / CALLS);
  }
  const shown = (/** @type {number[]} */ values) => {
    const sorted = values.slice(5).sort((a, b) => a - b);
    return `${sorted[0].toFixed(1).padStart(7)} ${sorted[sorted.length >> 1].toFixed(1).padStart(7)}`;
  };
  console.log(`${what.padEnd(36)} ${shown(wall)}   ${shown(cpu)}`);
}

/** @param {() => Promise<unknown>} call */
const oneByOne = (call) => async (/** @type {number} */ calls) => {
  for (let i = 0; i < calls; i++) await call();
};
/** @param {() => Promise<unknown>} call */
const together = (call) => async (/** @type {number} */ calls) => {
  for (let i = 0; i < calls; i += MANY) await Promise.all(Array.from({ length: MANY }, call));
};

console.log(`${'µs a call'.padEnd(36)} ${'best'.padStart(7)}  median   processor time of this process`);
const name = join(tmpdir(), `ramway-bench-rpc-${process.pid}`);
const server = spawn(program, [`serve=${name}`], { stdio: ['pipe', 'ignore', 'inherit'] });
const body = new Uint8Array(64);
for (const wait of /** @type {const} */ (['block', 'hybrid', 'spin'])) {
  const client = await RpcClient.connect(name, { wait });
  await measure(
    `call, one by one (${wait})`,
    oneByOne(() => client.call(1, body)),
  );
  await measure(
    `call, ${MANY} at a time (${wait})`,
    together(() => client.call(1, body)),
  );
  await measure(
    `callSync (${wait})`,
    oneByOne(async () => client.callSync(1, body, { allowMainThread: true })),
  );
  client.close();
}
const counted = await RpcClient.connect(name, { wait: 'block' });
for (const [what, run] of /** @type {const} */ ([
  ['one by one', oneByOne],
  [`${MANY} at a time`, together],
])) {
  const { native } = /** @type {any} */ (counted);
  let crossings = 0;
  for (const method of ['start', 'progress', 'take', 'cancel']) {
    const plain = Object.getPrototypeOf(native)[method];
    native[method] = (/** @type {any[]} */ ...values) => {
      crossings++;
      return plain.apply(native, values);
    };
  }
  await run(() => counted.call(1, body))(CALLS);
  console.log(`calls of native code a call, ${what}: ${(crossings / CALLS).toFixed(2)}`);
}
counted.close();
server.stdin.end();
await once(server, 'exit');

const path = join(tmpdir(), `ramway-bench-net-${process.pid}`);
const echo = `require('net').createServer((s) => s.on('data', (d) => s.write(d))).listen(${JSON.stringify(path)}, () => console.log())`;
const other = spawn(process.execPath, ['-e', echo], { stdio: ['ignore', 'pipe', 'inherit'] });
await once(other.stdout, 'data');
const socket = net.connect(path);
await once(socket, 'connect');
const ask = () =>
  new Promise((resolve) => {
    socket.once('data', resolve);
    socket.write(body);
  });
await measure('net, one by one', oneByOne(ask));
socket.destroy();
other.kill();
rmSync(path, { force: true });
