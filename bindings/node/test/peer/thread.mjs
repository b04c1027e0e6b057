// A worker of worker.test.mjs: does what `workerData` says with the calls that block, and tells its parent.
import { parentPort, workerData } from 'node:worker_threads';
import { Bus, Listener, Region, Ring } from '../../index.mjs';
import { check, lengthOf, made } from '../numbered.mjs';

const { what, path, count, wait } = workerData;
const say = (/** @type {unknown} */ message) => parentPort?.postMessage(message);
const failure = (/** @type {() => unknown} */ call) => {
  try {
    call();
  } catch (error) {
    return /** @type {any} */ (error).code;
  }
  return 'nothing';
};

switch (what) {
  case 'receive': {
    const rx = Ring.open(path, { timeout: 30_000, wait }).receiverSync();
    say('ready');
    let seq = 0;
    while (seq < count) {
      if (seq % 3 === 0) {
        const batch = rx.recvBatchSync({ max: Math.min(7, count - seq) });
        for (const message of batch) check(seq++, message);
      } else if (seq % 3 === 1) {
        const target = new Uint8Array(rx.capacity);
        const info = rx.recvIntoSync(target);
        check(seq++, {
          length: info.length,
          typeId: info.typeId,
          tag: info.tag,
          data: target.subarray(0, info.length),
        });
      } else check(seq++, rx.recvSync({ timeout: 30_000 }));
    }
    say(seq);
    rx.close();
    break;
  }
  case 'send': {
    const tx = Ring.open(path, { timeout: 30_000, wait }).senderSync();
    say('ready');
    for (let seq = 0; seq < count; seq++) {
      const { bytes, options } = made(seq, lengthOf(seq, 'mixed', tx.maxMessageLength));
      if (seq % 2 === 0) tx.sendSync(bytes, options);
      else tx.reserveSync(bytes.length, (slot) => slot.set(bytes), { ...options, timeout: 30_000 });
    }
    say(count);
    tx.close();
    break;
  }
  case 'ping': {
    const bus = Bus.connectSync(path, { timeout: 30_000, wait });
    say('ready');
    for (let seq = 0; seq < count; seq++) {
      const { bytes, options } = made(seq, 32);
      bus.sendSync(bytes, options);
      check(seq, bus.recvSync());
    }
    say(count);
    bus.close();
    break;
  }
  case 'limits': {
    const [tx, rx] = Ring.pair(4096);
    const timed = (/** @type {() => unknown} */ call) => {
      const began = performance.now();
      return [failure(call), performance.now() - began >= 45];
    };
    const seen = [
      timed(() => rx.recvSync({ timeout: 50 })),
      timed(() => rx.recvBatchSync({ timeout: 50 })),
      timed(() => rx.recvIntoSync(new Uint8Array(10), { timeout: 50 })),
      failure(() => rx.recvSync({ timeout: 0 })),
      failure(() => rx.recvSync({ timeout: -1 })),
      failure(() => rx.recvSync({ timeout: NaN })),
    ];
    tx.sendSync(new Uint8Array(4080));
    seen.push(
      timed(() => tx.sendSync('x', { timeout: 50 })),
      timed(() => tx.reserveSync(1, () => {}, { timeout: 50 })),
      failure(() => tx.sendSync('x', { timeout: 0 })),
      failure(() => tx.sendSync(new Uint8Array(4081))),
    );
    rx.recvSync().release();
    rx.close();
    seen.push(failure(() => rx.recvSync()));
    tx.close();
    seen.push(failure(() => tx.sendSync('x')));
    say(seen);
    break;
  }
  case 'endings': {
    const rx = Ring.open(path, { timeout: 30_000 }).receiverSync();
    say('ready');
    check(0, rx.recvSync());
    say(failure(() => rx.recvSync()));
    break;
  }
  case 'block': {
    const [tx, rx] = Ring.pair(4096);
    const region = Region.createSync(path, 4096);
    const listener = Listener.bindSync(`${path}-bus`);
    tx.sendSync(new Uint8Array(count === 0 ? 4080 : 0));
    say('ready');
    switch (wait) {
      case 'recvSync':
        rx.recvSync().release();
        rx.recvSync();
        break;
      case 'sendSync':
        tx.sendSync(new Uint8Array(100));
        break;
      case 'recvBatchSync':
        rx.recvBatchSync().release();
        rx.recvBatchSync();
        break;
      case 'waitSync':
        region.waitSync();
        break;
      case 'acceptSync':
        listener.acceptSync();
        break;
      default:
        throw new Error(`no ${wait}`);
    }
    say('it came back');
    break;
  }
  case 'async': {
    // The calls that do not block work in a worker as they do on the main thread.
    const bus = await Bus.connect(path, { timeout: 30_000 });
    say('ready');
    let seq = 0;
    for await (const message of bus) {
      check(seq++, message);
      if (seq === count) break;
    }
    say(seq);
    await bus.end();
    break;
  }
  case 'idle': {
    // Ends by itself when it is told to, with a receive pending.
    const [, rx] = Ring.pair(4096);
    rx.recv().catch(() => {});
    say('ready');
    break;
  }
  default:
    throw new Error(`there is no ${what}`);
}
