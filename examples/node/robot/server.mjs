// Shows the robot's camera in browsers:  node robot/server.mjs TOPIC [PORT]
//
// The camera (examples/src/bin/robot.rs) publishes each picture once. Every browser has a subscriber of its own here, which
// reads the newest picture whenever its browser has drawn the one before: a slow browser misses pictures, and neither the
// camera, nor the controller and the recorder, nor another browser notices.

import { Topic } from 'ramway';
import { end, run, serve } from '../pages.mjs';
import { message, PICTURE, PIXELS, TOPIC } from './picture.mjs';

/** Pictures on the way to a browser: one is drawn while the next one travels. More would only be older when they are seen. */
const UNDER_WAY = 2;

const here = (/** @type {string} */ file) => new URL(file, import.meta.url);
const FILES = {
  '/': here('page/index.html'),
  '/page/style.css': here('page/style.css'),
  '/page/page.mjs': here('page/page.mjs'),
  '/picture.mjs': here('picture.mjs'),
};

/** One browser. It says which pictures it has drawn. */
class Browser {
  #socket;
  #sent = 0;
  #drawn = 0;
  /** Goes on with whoever waits until there is room. */
  #wake = () => {};
  #gone = new AbortController();

  /** @param {import('ws').WebSocket} socket */
  constructor(socket) {
    this.#socket = socket;
    socket.on('message', (text) => {
      const drawn = Number(text);
      // Anything else is not from our page.
      if (!(drawn > this.#drawn && drawn <= this.#sent)) return socket.close(1008, 'no such picture');
      this.#drawn = drawn;
      this.#wake();
    });
    socket.on('close', () => this.#gone.abort());
    // 'close' follows.
    socket.on('error', () => {});
  }

  /** Aborted when it has gone. */
  get gone() {
    return this.#gone.signal;
  }

  tell(/** @type {'waiting' | 'dead' | 'ended'} */ camera) {
    this.#socket.send(JSON.stringify({ camera }));
  }

  /**
   * Sends a picture, and resolves when the next one may be sent or `signal` is aborted.
   * @param {import('ramway').TopicMessage} picture
   * @param {AbortSignal} signal
   */
  async show(picture, signal) {
    // A subscriber's data is this program's own copy: the socket may keep it for as long as it takes.
    this.#socket.send(message(picture, ++this.#sent));
    if (this.#sent - this.#drawn < UNDER_WAY) return;
    await new Promise((resolve) => {
      const goOn = () => {
        signal.removeEventListener('abort', goOn);
        resolve(undefined);
      };
      this.#wake = goOn;
      signal.addEventListener('abort', goOn);
      if (signal.aborted) goOn();
    });
  }

  close(/** @type {string} */ why) {
    end(this.#socket, why);
  }
}

/**
 * Sends a browser the newest pictures until it goes or `ended` is aborted.
 * @param {string} name of the topic
 * @param {Browser} browser
 * @param {AbortSignal} ended
 */
async function feed(name, browser, ended) {
  const signal = AbortSignal.any([ended, browser.gone]);
  browser.tell('waiting');
  const options = { label: 'browser', timeout: 10_000, signal };
  const camera = await Topic.openOrCreate(name, TOPIC).subscriber('latest', options);
  try {
    for (;;) {
      try {
        // Asks for the next picture when there is room for it, and gets the one that is the newest then.
        for await (const picture of camera.newest({ signal })) {
          if (picture.typeId !== PICTURE || picture.length !== PIXELS)
            throw new Error(`what came through '${name}' is not a picture of the robot's camera`);
          await browser.show(picture, signal);
        }
        browser.tell('ended');
      } catch (error) {
        if (/** @type {{ code?: string }} */ (error).code !== 'ERR_RAMWAY_PEER_DEAD') throw error;
        browser.tell('dead');
      }
      // The next camera goes on with the next number.
      await camera.waitForPeer({ signal });
    }
  } finally {
    camera.close();
  }
}

await run('node robot/server.mjs TOPIC [PORT]', async (name, port, signal) => {
  const server = await serve(FILES, port, (socket) => {
    const browser = new Browser(socket);
    feed(name, browser, signal).catch((error) => {
      if (signal.aborted) return browser.close('the server ends');
      if (browser.gone.aborted) return;
      console.error(`server: ${error.message}`);
      browser.close('the server cannot go on');
    });
  });
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  server.close();
});
