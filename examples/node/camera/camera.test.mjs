// The camera, the server and a real browser, each a process of its own.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { launch } from '../browser.mjs';
import { LONG, Program, place, rust, until } from '../processes.mjs';
import { intact, PREFIX, parse } from './frame.mjs';

const RATE = '60';
const SERVER = new URL('server.mjs', import.meta.url).pathname;
const limit = { timeout: 3 * LONG };
/** @type {Promise<import('playwright-core').Browser> | undefined} */
let launched;
after(async () => (await launched)?.close());
/** One for all tests. */
function browser() {
  launched ??= launch();
  return launched;
}

/** What one test has: a directory, and whatever it starts there. */
function stage(t) {
  const directory = place(t);
  const environment = { RAMWAY_DIR: directory };
  return {
    camera: (...count) => new Program(t, [rust('camera'), 'camera', RATE, ...count], environment),
    async server(port = '0') {
      const server = new Program(t, [process.execPath, SERVER, 'camera', port], environment);
      const [url] = await server.line(/^http:.*/);
      return Object.assign(server, { url, port: new URL(url).port });
    },
    left: () => readdirSync(directory),
  };
}

/** What a browser tells the console of connections that were refused. */
const REFUSED = /ERR_CONNECTION_REFUSED|WebSocket connection .* failed/;

/**
 * Opens the page; whatever its console says is a failure, but for what is excused.
 * @param {import('node:test').TestContext} t
 * @param {string} url
 * @param {{ prepare?: () => void, excuse?: RegExp }} options `prepare` runs in the page before anything else
 */
async function open(t, url, { prepare, excuse } = {}) {
  const context = await (await browser()).newContext({ viewport: { width: 1120, height: 760 } });
  const page = await context.newPage();
  const said = [];
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(error.message));
  t.after(async () => {
    await context.close();
    assert.deepEqual(
      said.filter((line) => !excuse?.test(line)),
      [],
    );
  });
  if (prepare) await page.addInitScript(prepare);
  await page.goto(url);
  return page;
}

/** The page's figures, as they are now. */
const figures = (page) =>
  page.evaluate(() => {
    const { figures, frame } = globalThis.view;
    const { exposed, intact, broken, late, ringFull, nodeSkipped, pageSkipped, replaced, unaccounted } = figures;
    const counts = { exposed, intact, broken, late, ringFull, nodeSkipped, pageSkipped, replaced, unaccounted };
    return {
      ...counts,
      number: frame?.number ?? 0,
      started: String(frame?.started),
      canvas: figures.latency('canvas'),
    };
  });
const shown = (page, count) =>
  until(`${count} pictures shown`, async () => {
    const now = await figures(page);
    return now.intact + now.broken >= count && now;
  });
const state = (page, wanted) =>
  until(`the page to say ${wanted}`, async () => (await page.locator('#status').getAttribute('data-state')) === wanted);
const status = (page) => page.locator('#status').textContent();

/** In the page: how far the canvas is from the picture that came last, in steps of 255 a channel. */
function compare() {
  const { width, height, number, planes } = globalThis.view.frame;
  const canvas = /** @type {HTMLCanvasElement} */ (document.getElementById('picture'));
  const pixels = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
  const [plain, colour] = [width * height, (width * height) / 4];
  let [furthest, sum] = [0, 0];
  for (let at = 0; at < plain; at++) {
    const half = (Math.floor(at / width) >> 1) * (width / 2) + ((at % width) >> 1);
    // BT.709, from 16 to 235 and from 16 to 240.
    const luma = (255 / 219) * (planes[at] - 16);
    const [u, v] = [plain, plain + colour].map((plane) => (255 / 224) * (planes[plane + half] - 128));
    [luma + 1.5748 * v, luma - 0.1873 * u - 0.4681 * v, luma + 1.8556 * u].forEach((value, channel) => {
      const off = Math.abs(Math.min(255, Math.max(0, value)) - pixels[at * 4 + channel]);
      furthest = Math.max(furthest, off);
      sum += off;
    });
  }
  return {
    number,
    width: canvas.width,
    height: canvas.height,
    furthest,
    mean: sum / plain / 3,
    url: canvas.toDataURL(),
  };
}

test('camera: the canvas shows what the camera drew, and it moves', limit, async (t) => {
  const { camera, server, left } = stage(t);
  const [film, host] = [camera(), await server()];
  const page = await open(t, host.url, { excuse: REFUSED });
  const first = await shown(page, 30);
  assert.equal(first.broken, 0);

  // What came and what the canvas shows, at one moment. That what came is what the camera drew says its checksum, which
  // the page has compared: no picture was broken.
  const pictures = [];
  for (let at = 0; at < 2; at++) {
    pictures.push(await page.evaluate(compare));
    await shown(page, (await figures(page)).intact + 20);
  }
  for (const picture of pictures) {
    assert.deepEqual([picture.width, picture.height], [640, 480]);
    // A browser's factors have few bits: U in blue may count 2 instead of 2.11, which makes up to 6 in the blue parts.
    assert.ok(
      picture.mean < 1 && picture.furthest <= 8,
      `off by ${picture.mean} on average, ${picture.furthest} at most`,
    );
  }
  assert.ok(pictures[1].number > pictures[0].number);
  assert.notEqual(pictures[1].url, pictures[0].url);

  const now = await figures(page);
  assert.deepEqual([now.broken, now.unaccounted], [0, 0]);
  await state(page, 'live');
  await sleep(2000);
  await page.screenshot({ path: join(process.env.RAMWAY_EXAMPLES_OUT ?? '.', 'camera.png'), fullPage: true });
  t.diagnostic(JSON.stringify(await figures(page)));

  assert.equal(await host.stop('SIGTERM'), 0, host.complaints);
  await film.kill();
  assert.deepEqual(
    left().filter((name) => name !== 'camera'),
    [],
  );
});

test('camera: killed, the page says so, and shows the next one', limit, async (t) => {
  const { camera, server } = stage(t);
  const [one, host] = [camera(), await server()];
  const page = await open(t, host.url);
  const before = await shown(page, 10);

  await one.kill();
  await state(page, 'dead');
  assert.match(await status(page), /The camera has died/);
  assert.equal(await page.locator('#rate').textContent(), '–');
  await page.screenshot({ path: join(process.env.RAMWAY_EXAMPLES_OUT ?? '.', 'camera-dead.png') });
  const last = await figures(page);

  camera();
  await state(page, 'live');
  const next = await until('pictures of the next camera', async () => {
    const now = await figures(page);
    return now.started !== before.started && now.intact > last.intact + 10 && now;
  });
  assert.equal(next.started === last.started, false);
  assert.deepEqual([next.broken, next.unaccounted], [0, 0]);
  assert.deepEqual(host.lines.slice(1), ['camera: waiting', 'camera: live', 'camera: dead', 'camera: live']);
});

test('camera: stopped is not dead, and what it did not see is counted', limit, async (t) => {
  const { camera, server } = stage(t);
  const [film, host] = [camera(), await server()];
  const page = await open(t, host.url);
  const before = await shown(page, 10);
  film.child.kill('SIGSTOP');
  await state(page, 'silent');
  film.child.kill('SIGCONT');
  await state(page, 'live');
  const now = await shown(page, before.intact + 30);
  assert.equal(now.started, before.started);
  assert.ok(now.late >= 60, `it was stopped for two seconds and is late for ${now.late}`);
  assert.deepEqual([now.broken, now.unaccounted], [0, 0]);
  assert.deepEqual(host.lines.slice(1), ['camera: waiting', 'camera: live']);
});

test('camera: switched off is not dead, and nothing is left behind', limit, async (t) => {
  const { camera, server, left } = stage(t);
  const host = await server();
  const page = await open(t, host.url, { excuse: REFUSED });
  await state(page, 'waiting');
  assert.match(await status(page), /No camera yet/);

  const film = camera('60');
  assert.equal(await film.ended, 0);
  await state(page, 'ended');
  const now = await figures(page);
  assert.deepEqual([now.broken, now.unaccounted, film.complaints], [0, 0, '']);

  assert.equal(await host.stop('SIGINT'), 0, host.complaints);
  assert.deepEqual(left(), []);
});

test('camera: slow browsers miss pictures, and nobody else does', limit, async (t) => {
  const { camera, server } = stage(t);
  camera();
  const host = await server();
  const quick = await open(t, host.url);
  // Its screen is refreshed twice a second.
  const slow = await open(t, host.url, {
    prepare: () => (globalThis.requestAnimationFrame = (draw) => window.setTimeout(() => draw(performance.now()), 500)),
  });
  // This one takes nothing more off its socket after the connection.
  const stuck = new WebSocket(`${host.url.replace('http', 'ws')}stream`, { origin: host.url.slice(0, -1) });
  t.after(() => stuck.terminate());
  await new Promise((resolve, reject) => stuck.once('open', resolve).once('error', reject));
  /** @type {Buffer[]} */
  const late = [];
  stuck.on('message', (data, isBinary) => isBinary && late.push(/** @type {Buffer} */ (data)));
  stuck.pause();

  await shown(slow, 3);
  const start = await Promise.all([figures(quick), figures(slow)]);
  await shown(slow, start[1].intact + 8);
  const [fast, lame] = await Promise.all([figures(quick), figures(slow)]);
  const grown = (/** @type {string} */ what) => [fast[what] - start[0][what], lame[what] - start[1][what]];

  // A camera that waited for the slow one would not be ahead of it, and one that waited for the stuck one would stand
  // still. A ring is full now and then where a machine has other things to do; here they would fill it for good.
  const [exposed] = grown('exposed');
  const [many, few] = grown('intact');
  const [ringFull] = grown('ringFull');
  assert.ok(exposed - ringFull > 5 * few, `${exposed} exposures, ${ringFull} ring full, the slow page got ${few}`);
  assert.ok(ringFull < exposed / 3, `${ringFull} of ${exposed} exposures found the ring full`);
  assert.ok(many > 2 * few, `the quick page got ${many} pictures while the slow one got ${few}`);
  assert.ok(lame.pageSkipped > 8, `the slow page missed only ${lame.pageSkipped}`);
  for (const now of [fast, lame]) assert.deepEqual([now.broken, now.unaccounted], [0, 0]);
  t.diagnostic(`quick ${JSON.stringify(fast)}, slow ${JSON.stringify(lame)}`);

  // It wakes up and gets what was on the way to it, as it was: the camera has long drawn others in the same places.
  stuck.resume();
  await until('what was on the way', () => late.length === 2);
  await sleep(200);
  stuck.pause();
  assert.equal(late.length, 2);
  for (const data of late) {
    const frame = parse(new Uint8Array(data).subarray(PREFIX));
    assert.ok(frame && intact(frame) && frame.number < lame.number);
  }

  await Promise.all([quick.context().close(), slow.context().close()]);
  // A hung browser does not keep the server from ending.
  assert.equal(await host.stop('SIGTERM'), 0, host.complaints);
});

test('camera: a new server finds camera and page again', limit, async (t) => {
  const { camera, server } = stage(t);
  camera();
  const host = await server();
  const page = await open(t, host.url, { excuse: REFUSED });
  await shown(page, 10);
  await host.kill();
  await state(page, 'offline');
  await server(host.port);
  await state(page, 'live');
  const now = await shown(page, 10);
  assert.deepEqual([now.broken, now.unaccounted], [0, 0]);
});

test('camera: other sites and other hosts get no pictures', limit, async (t) => {
  const { server } = stage(t);
  const { url, port } = await server();
  const stream = `ws://127.0.0.1:${port}/stream`;
  const refused = (options, to = stream) =>
    new Promise((resolve) => {
      const socket = new WebSocket(to, options);
      socket.once('error', (error) => resolve(error.message)).once('open', () => resolve('open'));
      t.after(() => socket.terminate());
    });
  const origin = url.slice(0, -1);
  assert.equal(await refused({ origin }), 'open');
  assert.match(await refused({ origin: 'http://example.com' }), /403/);
  assert.match(await refused({}), /403/);
  // A name that somebody else made lead here.
  assert.match(
    await refused({ origin: `http://example.com:${port}`, headers: { host: `example.com:${port}` } }),
    /403/,
  );
  assert.match(await refused({ origin }, `ws://127.0.0.1:${port}/other`), /403/);
  for (const path of ['server.mjs', 'package.json', '../package.json', '%2e%2e/package.json'])
    assert.equal((await fetch(url + path)).status, 404);
  const page = await fetch(url);
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'self'/);
});
