// Rings without a name: a descriptor, which is handed to a child process.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Ring } from '../index.mjs';
import { execPath, programArgs } from './runtimes.mjs';
import { code, eventually, LONG, scene } from './scene.mjs';

/**
 * A child of this runtime that has the rings' descriptors from 3 on.
 * @param {import('./scene.mjs').Scene['own']} own @param {string} way @param {number[]} fds
 */
function child(own, way, ...fds) {
  const file = fileURLToPath(new URL('peer/descriptor.mjs', import.meta.url));
  const process = spawn(execPath, [...programArgs, file, way], { stdio: ['pipe', 'inherit', 'inherit', ...fds] });
  const ended = new Promise((resolve) => process.once('close', (status, signal) => resolve(status ?? signal)));
  own({ close: () => process.kill('SIGKILL') });
  return { process, ended };
}

const fdOf = (/** @type {Ring} */ ring) => /** @type {number} */ (ring.fd);

const opened = (/** @type {string} */ what) =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes(what);
    } catch {
      return false;
    }
  }).length;

scene('both ends in one process, and no descriptor is left', async ({ own }) => {
  const before = opened('ramway-ring');
  const ring = Ring.unnamed({ capacity: 8192, align: 64 });
  assert.deepEqual([ring.name, typeof ring.fd], [undefined, 'number']);
  const tx = own(await ring.sender());
  const rx = own(ring.receiverSync());
  assert.deepEqual([tx.capacity, rx.align, tx.name], [8192, 64, undefined]);
  await assert.rejects(ring.sender(), code('BUSY'));
  ring.close();
  ring.close();
  assert.equal(ring.fd, undefined);
  await assert.rejects(ring.receiver(), code('DETACHED'));
  await tx.send('still there', { tag: 5 });
  assert.equal((await rx.recv()).text(), 'still there');
  tx.close();
  await assert.rejects(rx.recv(), code('CLOSED'));
  rx.close();
  assert.equal(opened('ramway-ring'), before);
});

scene('a child sends to its parent, is killed, and another one follows', async ({ own }) => {
  const ring = own(Ring.unnamed({ capacity: 8192 }));
  const rx = own(await ring.receiver());
  const first = child(own, 'send', fdOf(ring));
  const got = [];
  for (let i = 0; i < 3; i++) {
    const message = await rx.recv({ timeout: LONG });
    got.push(message.text());
    message.release();
  }
  assert.deepEqual(got, ['0', '1', '2']);
  process.kill(/** @type {number} */ (first.process.pid), 'SIGKILL');
  await first.ended;
  await assert.rejects(rx.recv({ timeout: LONG }), code('PEER_DEAD'));
  const second = child(own, 'resume', fdOf(ring));
  await rx.waitForPeer({ timeout: LONG });
  assert.equal((await rx.recv({ timeout: LONG })).text(), 'from 3');
  await assert.rejects(rx.recv({ timeout: LONG }), code('CLOSED'));
  assert.equal(await second.ended, 0);
});

scene('a parent and its child, there and back, over two rings', async ({ own }) => {
  const there = own(Ring.unnamed({ capacity: 8192 }));
  const back = own(Ring.unnamed({ capacity: 8192 }));
  const tx = own(await there.sender());
  const rx = own(await back.receiver());
  const echo = child(own, 'echo', fdOf(there), fdOf(back));
  for (let i = 0; i < 100; i++) await tx.send(`message ${i}`);
  const got = [];
  tx.close();
  for await (const message of rx) got.push(message.text());
  assert.deepEqual(
    got,
    Array.from({ length: 100 }, (_, i) => `message ${i}`),
  );
  assert.equal(await echo.ended, 0);
});

scene("fromFd takes a role of the caller's descriptor, and leaves that open", async ({ own }) => {
  const ring = own(Ring.unnamed());
  const tx = own(await Ring.fromFd(fdOf(ring)).sender({ timeout: 100 }));
  const same = Ring.fromFd(fdOf(ring), { wait: 'block', timeout: 0 });
  assert.throws(() => same.senderSync(), code('BUSY'));
  const rx = own(same.receiverSync());
  same.close();
  assert.equal(rx.wait, 'block');
  tx.trySend('x');
  assert.equal(rx.tryRecv()?.text(), 'x');
  await eventually('its sender is seen', () => rx.peerAlive);
});

test('what is no descriptor of a ring is refused', { timeout: LONG }, async () => {
  for (const wrong of [-1, 1.5, '3', null, undefined, 2 ** 31, NaN]) {
    assert.throws(() => Ring.fromFd(/** @type {any} */ (wrong)), code('INVALID_ARGUMENT'));
  }
  await assert.rejects(Ring.fromFd(1_000_000).sender(), /descriptor 1000000/);
  for (const options of [{ capacity: 4096 }, { persistent: true }, { discard: true }]) {
    assert.throws(() => Ring.fromFd(0, /** @type {any} */ (options)), TypeError);
  }
  assert.throws(() => Ring.unnamed(/** @type {any} */ ({ mode: 0o600 })), TypeError);
  assert.throws(() => Ring.unnamed({ align: 24 }), code('INVALID_ARGUMENT'));
});
