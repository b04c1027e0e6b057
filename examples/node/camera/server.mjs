// Shows a camera's pictures in browsers:  node camera/server.mjs RING [PORT]
//
// The camera is another process, in Rust, which draws into shared memory. This one reads each picture where it lies and
// hands the newest to every browser that has drawn what it got before; a slow browser misses pictures, and neither the
// camera nor another browser notices.

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';
import { newest } from './camera.mjs';
import { now, Viewer } from './viewer.mjs';

/** What browsers may ask for, and nothing else. */
const FILES = new Map([
  ['/', ['page/index.html', 'text/html']],
  ['/page/style.css', ['page/style.css', 'text/css']],
  ['/page/page.mjs', ['page/page.mjs', 'text/javascript']],
  ['/page/figures.mjs', ['page/figures.mjs', 'text/javascript']],
  ['/frame.mjs', ['frame.mjs', 'text/javascript']],
]);
const HEADERS = {
  'Cache-Control': 'no-cache',
  'Content-Security-Policy': "default-src 'self'; img-src data:",
  'X-Content-Type-Options': 'nosniff',
  // Both together make the page's clock fine enough to time pictures with.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/**
 * Serves until `signal` is aborted.
 * @param {string} name of the ring
 * @param {number} port of the loopback interface; 0 = one that is free
 * @param {AbortSignal} signal
 */
async function serve(name, port, signal) {
  /** @type {Set<Viewer>} */
  const viewers = new Set();
  /** What browsers are told of the camera. */
  let status = { camera: 'waiting', ring: name, since: now() };

  const server = createServer(async (request, response) => {
    const [file, type] = FILES.get(request.url ?? '') ?? [];
    if (!file || request.method !== 'GET') return response.writeHead(404).end();
    const body = await readFile(new URL(file, import.meta.url));
    response.writeHead(200, { ...HEADERS, 'Content-Type': `${type}; charset=utf-8` }).end(body);
  });
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 1024 });
  server.on('upgrade', (request, socket, head) => {
    // Another site's page may ask for a connection too, from this very browser: its origin is not ours.
    const { host, origin } = request.headers;
    const ours = [`127.0.0.1:${port}`, `localhost:${port}`].includes(host ?? '') && origin === `http://${host}`;
    if (!ours || request.url !== '/stream') return socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n');
    sockets.handleUpgrade(request, socket, head, (accepted) => {
      const viewer = new Viewer(accepted);
      viewers.add(viewer);
      accepted.on('close', () => viewers.delete(viewer));
      viewer.tell(status);
    });
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', () => resolve(0)));
  port = /** @type {import('node:net').AddressInfo} */ (server.address()).port;
  console.log(`http://127.0.0.1:${port}/`);

  const onState = (/** @type {string} */ camera) => {
    status = { camera, ring: name, since: now() };
    for (const viewer of viewers) viewer.tell(status);
    console.log(`camera: ${camera}`);
  };
  try {
    for await (const { message, skipped } of newest(name, { signal, onState })) {
      const received = now();
      /** @type {Uint8Array | undefined} One for all browsers, and none if none can take it. */
      let copy;
      for (const viewer of viewers) {
        viewer.missed(skipped);
        if (viewer.ready) {
          copy ??= message.copy();
          viewer.show(copy, received);
        } else viewer.skip();
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    for (const viewer of viewers) viewer.close();
    sockets.close();
    server.close();
    server.closeIdleConnections();
  }
}

const [name, port = '0'] = process.argv.slice(2);
if (!name || !/^\d+$/.test(port)) {
  console.error('usage: node camera/server.mjs RING [PORT]');
  process.exit(2);
}
const ended = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => ended.abort());
await serve(name, Number(port), ended.signal).catch((error) => {
  console.error(`server: ${error.message}`);
  process.exitCode = 1;
});
