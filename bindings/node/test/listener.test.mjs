// Listeners: many connectors, some of whom say nothing; who gets which connection; the name.
import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import { Bus, Listener, Region, Ring } from '../index.mjs';
import { check, code, eventually, LONG, made, Peer, scene, settled, sleep } from './scene.mjs';

/** One that connects and says nothing. @param {string} path @returns {Promise<import('node:net').Socket & { close(): void }>} */
function mute(path) {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () =>
      resolve(/** @type {any} */ (Object.assign(socket, { close: () => socket.destroy() }))),
    );
    socket.on('error', reject);
  });
}

scene('each connector gets a bus of its own', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus'), { capacity: 8192, align: 32 }));
  assert.deepEqual([listener.name, listener.path, listener.closed], [path('bus'), path('bus'), false]);
  const processes = await Promise.all(
    Array.from({ length: 3 }, async () => own(await Peer.start(`connect=${path('bus')}`))),
  );
  const buses = new Map();
  for (let i = 0; i < processes.length; i++) {
    const bus = own(await listener.accept({ timeout: LONG }));
    assert.deepEqual([bus.sender.capacity, bus.receiver.align, bus.name], [8192, 32, path('bus')]);
    buses.set(bus.peerPid, bus);
  }
  for (const [i, peer] of processes.entries()) {
    const bus = /** @type {Bus} */ (buses.get(peer.pid));
    await peer.ready();
    peer.tell('echo 1');
    const { bytes, options } = made(i, 50);
    await bus.send(bytes, options);
    check(i, await bus.recv());
    await peer.said('echoed', { count: 1 });
  }
  assert.deepEqual([listener.refused, listener.lastRefusal], [0, undefined]);
});

scene('accepts are served in the order of their calls', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus')));
  const accepting = Array.from({ length: 5 }, () => listener.accept({ timeout: LONG }));
  for (const accepted of accepting) {
    assert.equal(await settled(accepted), false);
    const bus = own(await Bus.connect(path('bus'), { timeout: LONG }));
    await bus.send('hello');
    assert.equal((await own(await accepted).recv()).text(), 'hello');
  }
});

scene('a connection whose accept was given up goes to the next one', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus')));
  for (let round = 0; round < 20; round++) {
    const controller = new AbortController();
    const given = listener.accept({ signal: controller.signal });
    const connecting = Bus.connect(path('bus'), { timeout: LONG });
    await sleep(round / 8);
    controller.abort();
    // Either way there is one connection, and one who gets it.
    const bus = own(await given.catch(() => listener.accept({ timeout: LONG })));
    const theirs = own(await connecting);
    await theirs.send('hello');
    assert.equal((await bus.recv()).text(), 'hello');
    bus.close();
    theirs.close();
  }
});

scene('time-outs: not before their time, and 0 is one look', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus')));
  const began = performance.now();
  await assert.rejects(listener.accept({ timeout: 60 }), code('TIMED_OUT'));
  assert.ok(performance.now() - began >= 59);
  const pending = listener.accept({ timeout: LONG });
  await assert.rejects(listener.accept({ timeout: 0 }), code('TIMED_OUT'));
  own(await Bus.connect(path('bus'), { timeout: LONG }));
  own(await pending);
  const connecting = Bus.connect(path('bus'), { timeout: LONG });
  // A handshake is several looks.
  let bus;
  await eventually('a look finds it', async () => {
    bus = await listener.accept({ timeout: 0 }).catch(() => undefined);
    return bus;
  });
  own(bus);
  own(await connecting);
});

scene("'connection' events, and accepts that go first", async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus')));
  // Before anybody listens it waits.
  const connecting = [Bus.connect(path('bus'), { timeout: LONG })];
  await sleep(20);
  /** @type {Bus[]} */ const told = [];
  const tell = (/** @type {Bus} */ bus) => void told.push(own(bus));
  listener.on('connection', tell);
  await eventually('the first', () => told.length === 1);
  const accepted = listener.accept({ timeout: LONG });
  connecting.push(Bus.connect(path('bus'), { timeout: LONG }));
  own(await accepted);
  connecting.push(Bus.connect(path('bus'), { timeout: LONG }), Bus.connect(path('bus'), { timeout: LONG }));
  await eventually('the others', () => told.length === 3);
  listener.off('connection', tell);
  connecting.push(Bus.connect(path('bus'), { timeout: LONG }));
  await sleep(50);
  assert.equal(told.length, 3);
  own(await listener.accept({ timeout: LONG }));
  for (const bus of connecting) own(await bus);
});

scene('for await over connections ends with close, which comes once', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus')));
  let closed = 0;
  listener.on('close', () => closed++);
  const clients = [];
  for (let i = 0; i < 3; i++) clients.push(Bus.connect(path('bus'), { timeout: LONG }));
  let count = 0;
  for await (const bus of listener) {
    own(bus);
    if (++count === 3) setTimeout(() => listener.close(), 20);
  }
  for (const bus of clients) own(await bus);
  listener.close();
  await eventually('it is told', () => closed === 1);
  assert.equal(count, 3);
  for await (const bus of listener) assert.fail(String(bus));
});

scene('connectors that say nothing, or nonsense, disturb nobody and are refused', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus'), { handshakeTimeout: 150 }));
  const accepting = listener.accept({ timeout: LONG });
  for (let i = 0; i < 3; i++) own(await mute(path('bus')));
  const rude = own(await mute(path('bus')));
  rude.write('GET / HTTP/1.1\r\n\r\n'.padEnd(64, '\n'));
  // While they are silent another one is served.
  own(await Bus.connect(path('bus'), { timeout: LONG }));
  own(await accepting);
  // Nobody else comes: it is the time that refuses them.
  const nobody = listener.accept();
  await eventually('all four are refused', () => listener.refused === 4);
  assert.match(String(listener.lastRefusal), /./);
  assert.equal(await settled(nobody), false);
  listener.close();
  await assert.rejects(nobody, code('DETACHED'));
  assert.equal(listener.refused, 4);
});

scene('close frees the name, at once, and buses live on', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus')));
  await assert.rejects(Listener.bind(path('bus')), code('ALREADY_EXISTS'));
  assert.throws(() => Listener.bindSync(path('bus')), code('ALREADY_EXISTS'));
  await assert.rejects(Bus.listen(path('bus'), { timeout: LONG }), code('ALREADY_EXISTS'));
  const connecting = Bus.connect(path('bus'), { timeout: LONG });
  const [bus, theirs] = [own(await listener.accept({ timeout: LONG })), own(await connecting)];
  const pending = Promise.allSettled([listener.accept(), listener.accept({ timeout: LONG })]);
  await listener[Symbol.asyncDispose]();
  for (const accepted of await pending) {
    assert.equal(accepted.status, 'rejected');
    assert.ok(code('DETACHED')(/** @type {any} */ (accepted).reason));
  }
  await assert.rejects(listener.accept(), code('DETACHED'));
  assert.throws(() => listener.acceptSync({ allowMainThread: true }), code('DETACHED'));
  assert.ok(!existsSync(path('bus')));
  const next = own(Listener.bindSync(path('bus')));
  assert.equal(next.closed, false);
  await bus.send('still there');
  assert.equal((await theirs.recv()).text(), 'still there');
  next[Symbol.dispose]();
  assert.ok(!existsSync(path('bus')));
});

scene('a connection that nobody took is closed with the listener', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus')));
  const controller = new AbortController();
  const given = listener.accept({ signal: controller.signal });
  const bus = own(await Bus.connect(path('bus'), { timeout: LONG }));
  controller.abort();
  // It may have been served before the abort.
  own(await given.catch(() => undefined))?.close();
  listener.close();
  await assert.rejects(
    bus.recv({ timeout: LONG }),
    /** @param {any} error */ (error) => /CLOSED|PEER_DEAD/.test(error.code),
  );
});

scene('blocking accepts, where they may', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus'), { wait: 'block' }));
  const allowMainThread = true;
  assert.throws(() => listener.acceptSync(), code('UNSUPPORTED'));
  assert.throws(() => listener.acceptSync({ timeout: 0, allowMainThread }), code('TIMED_OUT'));
  const peer = own(await Peer.start(`connect=${path('bus')}`));
  const bus = own(listener.acceptSync({ timeout: LONG, allowMainThread }));
  assert.deepEqual([bus.peerPid, bus.wait], [peer.pid, 'block']);
});

scene('permissions of the socket', async ({ path, own }) => {
  own(await Listener.bind(path('default')));
  own(await Listener.bind(path('some'), { mode: 0o660 }));
  own(await Listener.bind(path('others'), { allowUids: [65533] }));
  assert.deepEqual(
    ['default', 'some', 'others'].map((name) => statSync(path(name)).mode & 0o777),
    [0o600, 0o660, 0o666],
  );
});

scene('a plain name: its socket stands beside it', async ({ own }) => {
  const name = `listener.test-${process.pid}`;
  const listener = own(await Listener.bind(name));
  assert.equal(listener.name, name);
  assert.equal(listener.path, `${process.env.RAMWAY_DIR}/${name}.sock`);
  const connecting = Bus.connect(listener.path, { timeout: LONG });
  own(await listener.accept({ timeout: LONG }));
  own(await connecting);
});

scene('a flood of connectors, every one served', async ({ path, own }) => {
  const listener = own(await Listener.bind(path('bus'), { capacity: 4096, backlog: 4 }));
  const COUNT = 100;
  const clients = Promise.all(Array.from({ length: COUNT }, () => Bus.connect(path('bus'), { timeout: LONG })));
  let served = 0;
  for await (const bus of listener) {
    own(bus);
    await bus.send(String(served));
    if (++served === COUNT) break;
  }
  const seen = new Set();
  for (const client of await clients) seen.add((await own(client).recv()).text());
  assert.equal(seen.size, COUNT);
});

scene('what a worker had is free once it is terminated', async ({ path, own }) => {
  const listening = Bus.listen(path('w-main'), { timeout: LONG });
  const worker = new Worker(new URL('./peer/left.mjs', import.meta.url), { workerData: { path: path('w') } });
  own({ close: () => worker.terminate() });
  const bus = own(await listening);
  assert.equal((await bus.recv({ timeout: LONG })).text(), 'ready');
  await assert.rejects(Listener.bind(path('w-bus')), code('ALREADY_EXISTS'));
  await worker.terminate();
  await assert.rejects(bus.recv({ timeout: LONG }), code('CLOSED'));
  await eventually('all of it is free', async () => {
    try {
      (await Listener.bind(path('w-bus'))).close();
      (await Region.create(path('w-region'), 1)).close();
      (await Ring.create(path('w-ring')).receiver()).close();
      return true;
    } catch (error) {
      return code('ALREADY_EXISTS')(error) && false;
    }
  });
});
