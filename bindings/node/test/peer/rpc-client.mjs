// A program or worker that calls: method 1 replies, 3 when the test says so. `process.argv` says what is done.
import assert from 'node:assert/strict';
import { parentPort } from 'node:worker_threads';
import { RpcClient } from '../../index.mjs';
import { collect, collectNow, descriptors } from './collected.mjs';

const [path, how] = /** @type {[string, string]} */ (/** @type {unknown} */ (process.argv.slice(2)));
const over = () => console.log('over');

switch (how) {
  case 'blocking':
  case 'waiting': {
    const client = RpcClient.connectSync(path);
    /** @type {string[]} */ const said = [];
    for (let i = 0; i < 3; i++) {
      said.push(client.callSync(1, `sync ${i}`).text(), (await client.call(1, `async ${i}`)).text());
    }
    parentPort?.postMessage(said);
    if (how === 'blocking') client.callSync(3);
    await client.call(3);
    break;
  }
  case 'idle': {
    const client = await RpcClient.connect(path);
    await client.call(1, 'x', { timeout: 1e6 });
    await client.start(1, 'x', { timeout: 1e6 });
    console.log('called');
    break;
  }
  case 'call':
  case 'ref':
  case 'unref': {
    const client = await RpcClient.connect(path);
    if (how !== 'call') client.unref();
    if (how === 'ref') client.ref();
    client.call(3, 'x', { timeout: 1e6 }).then(over);
    console.log('under way');
    break;
  }
  case 'start': {
    const client = await RpcClient.connect(path);
    client.start(3).then(over);
    console.log('under way');
    break;
  }
  case 'stream': {
    const client = await RpcClient.connect(path);
    client.stream(3).next().then(over, over);
    console.log('under way');
    break;
  }
  case 'dropped': {
    const client = await RpcClient.connect(path);
    const start = () => {
      for (let i = 0; i < 20; i++) {
        client.start(3);
        client.stream(3);
      }
    };
    start();
    // An awaited one is not let go of by who has only its promise.
    const awaited = client.start(3).reply;
    const element = client.stream(3).next();
    console.log('dropped');
    const timer = setInterval(collectNow, 5);
    await Promise.all([awaited, element]);
    clearInterval(timer);
    console.log('over');
    client.close();
    break;
  }
  case 'forgotten': {
    const use = async () => {
      const client = await RpcClient.connect(path);
      await Promise.all([client.call(1, 'x', { timeout: 1e6 }), client.ping()]);
      for await (const _ of client.stream(4, new Uint8Array([5, 0, 0, 0])));
      client.start(3).cancel();
    };
    await use();
    const before = descriptors();
    for (let i = 0; i < 20; i++) await use();
    // Some may be seen from the stack still.
    for (let i = 0; i < 200 && descriptors() > before + 20; i++) await collect();
    assert.ok(descriptors() <= before + 20, `${before} descriptors, then ${descriptors()}`);
    console.log('collected');
    const client = await RpcClient.connect(path);
    const call = client.call(1, 'there');
    await collect();
    assert.equal((await call).text(), 'there');
    console.log('called');
    client.close();
    break;
  }
  default:
    throw new Error(how);
}
