// A worker that writes to a region's buffer, which was transferred to it, and later says what is there.
import { parentPort, workerData } from 'node:worker_threads';

const bytes = new Uint8Array(workerData.buffer);
bytes.set([1, 2, 3]);
parentPort?.on('message', () => parentPort?.postMessage(bytes.reduce((sum, byte) => sum + byte, 0)));
parentPort?.postMessage('written');
