// RPC servers, and calls that have ended, are forgotten and collected; what serves is not.
import assert from 'node:assert/strict';
import { RpcClient, RpcServer } from '../../index.mjs';
import { collect, descriptors } from './collected.mjs';

const directory = process.argv[2];
const bind = (/** @type {number} */ i) => RpcServer.bindSync(`${directory}s${i}`, { capacity: 4096 });

// Servers that never ran.
const before = descriptors();
for (let i = 0; i < 100; i++) {
  const server = bind(i);
  server.method(1, () => String(server.clients));
}
for (let i = 0; i < 200 && descriptors() > before + 20; i++) await collect();
assert.ok(descriptors() <= before + 20, `${before} descriptors, then ${descriptors()}`);
bind(0).close();
console.log('servers');

// One that serves, of which nothing is kept. Of what its calls had nothing stays.
/** @type {WeakRef<object>[]} */ const seen = [];
void bind(1000)
  .method(1, (request) => {
    seen.push(new WeakRef(request), new WeakRef(request.signal));
    return request.body;
  })
  .method(2, async (request) => {
    seen.push(new WeakRef(request));
    await null;
    return request.body;
  })
  .stream(3, async function* (request) {
    seen.push(new WeakRef(request));
    yield request.body;
    yield request.body;
  })
  .run();
await collect();
const client = await RpcClient.connect(`${directory}s1000`);
for (let i = 0; i < 500; i++) {
  for (const method of [1, 2]) assert.equal((await client.call(method, `${i}`)).text(), `${i}`);
  let count = 0;
  for await (const element of client.stream(3, `${i}`)) {
    assert.equal(element.text(), `${i}`);
    // Every other one is left before its end.
    if (++count === 1 && i % 2 === 0) break;
  }
}
client.close();
const alive = () => seen.filter((ref) => ref.deref() !== undefined).length;
for (let i = 0; i < 200 && alive() > 50; i++) await collect();
assert.ok(alive() <= 50, `${alive()} of ${seen.length} requests are kept`);
console.log('calls');

// Clients that come and go.
const one = await RpcClient.connect(`${directory}s1000`);
const steady = descriptors();
for (let i = 0; i < 100; i++) {
  const other = await RpcClient.connect(`${directory}s1000`);
  await other.call(1);
  other.close();
}
await one.call(1);
for (let i = 0; i < 200 && descriptors() > steady + 20; i++) await collect();
assert.ok(descriptors() <= steady + 20, `${steady} descriptors, then ${descriptors()}`);
one.close();
console.log('clients');
// Nothing but the server, which nobody holds, keeps the program.
process.exit(0);
