// Shows a camera's pictures in browsers:  node camera/server.mjs RING [PORT]
//
// The camera is another process, in Rust, which draws into shared memory. This one reads each picture where it lies and
// hands the newest to every browser that has drawn what it got before; a slow browser misses pictures, and neither the
// camera nor another browser notices.

import { run, serve } from '../pages.mjs';
import { newest } from './camera.mjs';
import { now, Viewer } from './viewer.mjs';

const here = (/** @type {string} */ file) => new URL(file, import.meta.url);
const FILES = {
  '/': here('page/index.html'),
  '/page/style.css': here('page/style.css'),
  '/page/page.mjs': here('page/page.mjs'),
  '/page/figures.mjs': here('page/figures.mjs'),
  '/frame.mjs': here('frame.mjs'),
};

/**
 * Serves until `signal` is aborted.
 * @param {string} name of the ring
 * @param {number} port of the loopback interface; 0 = one that is free
 * @param {AbortSignal} signal
 */
async function show(name, port, signal) {
  /** @type {Set<Viewer>} */
  const viewers = new Set();
  /** What browsers are told of the camera. */
  let status = { camera: 'waiting', ring: name, since: now() };

  const server = await serve(FILES, port, (socket) => {
    const viewer = new Viewer(socket);
    viewers.add(viewer);
    socket.on('close', () => viewers.delete(viewer));
    viewer.tell(status);
  });

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
    server.close();
  }
}

await run('node camera/server.mjs RING [PORT]', show);
