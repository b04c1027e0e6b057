// A worker that opens one of each, closes nothing, and waits to be terminated.
import { parentPort, workerData } from 'node:worker_threads';
import { Bus, Listener, Region, Ring } from '../../index.mjs';

const { path } = workerData;
const listener = await Listener.bind(`${path}-bus`);
const region = await Region.create(`${path}-region`, 4096);
const receiver = await Ring.create(`${path}-ring`).receiver();
const bus = await Bus.connect(`${path}-main`);
listener.accept().catch(() => {});
Ring.open(`${path}-nothing`, { timeout: Infinity })
  .sender()
  .catch(() => {});
receiver.recv().catch(() => {});
region.waitAsync().catch(() => {});
await bus.send('ready');
parentPort?.on('message', () => {});
