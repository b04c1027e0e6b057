// The robot's camera, controller and recorder, the server and real browsers, each a process of its own.
import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { WebSocket } from 'ws';
import { launch } from '../browser.mjs';
import { LONG, Program, place, rust, until } from '../processes.mjs';
import { PIXELS, parse, TOPIC } from './picture.mjs';

const SERVER = new URL('server.mjs', import.meta.url).pathname;
/** Microseconds between two pictures: some 50 a second. */
const EVERY = '20000';
/** More pictures than the topic holds. */
const LAP = Math.ceil(TOPIC.capacity / PIXELS);
const limit = { timeout: 3 * LONG };
/** @type {Promise<import('playwright-core').Browser> | undefined} */
let launched;
after(async () => (await launched)?.close());

/** What one test has: a directory, and whatever it starts there. */
function stage(t) {
  const directory = place(t);
  const environment = { RAMWAY_DIR: directory };
  const record = join(directory, 'record');
  return {
    record,
    camera: () => new Program(t, [rust('robot'), 'camera', 'robot', EVERY], environment, undefined, 'pipe'),
    /** The two that see every picture; the camera begins when both are there. */
    readers: () =>
      [['controller'], ['recorder', record]].map(
        ([role, ...more]) => new Program(t, [rust('robot'), role, 'robot', ...more], environment),
      ),
    recorded: () => statSync(record).size / (8 + PIXELS),
    async server() {
      const server = new Program(t, [process.execPath, SERVER, 'robot'], environment);
      const [url] = await server.line(/^http:.*/);
      return Object.assign(server, { url });
    },
    left: () => readdirSync(directory),
  };
}

/** Opens the page; whatever its console says is a failure, but that the server has gone. */
async function open(t, url, prepare) {
  launched ??= launch();
  const context = await (await launched).newContext({ viewport: { width: 900, height: 520 } });
  const page = await context.newPage();
  const said = [];
  page.on('console', (message) => said.push(message.text()));
  page.on('pageerror', (error) => said.push(error.message));
  t.after(async () => {
    await context.close();
    assert.deepEqual(
      said.filter((line) => !/ERR_CONNECTION_REFUSED|WebSocket connection .* failed/.test(line)),
      [],
    );
  });
  if (prepare) await page.addInitScript(prepare);
  await page.goto(url);
  return page;
}

const figures = (page) => page.evaluate(() => ({ ...globalThis.view }));
const shown = (page, count) =>
  until(`${count} pictures shown`, async () => {
    const now = await figures(page);
    return now.shown >= count && now;
  });
const state = (page, wanted) =>
  until(`the page to say ${wanted}`, async () => (await page.locator('#status').getAttribute('data-state')) === wanted);
/** A pixel in the middle of the picture. */
const pixel = (page) =>
  page.evaluate(() => {
    const canvas = /** @type {HTMLCanvasElement} */ (document.getElementById('picture'));
    return { number: globalThis.view.number, grey: canvas.getContext('2d')?.getImageData(32, 32, 1, 1).data[0] };
  });
/** Every picture from the first one that was drawn to the last one was drawn or is counted as dropped. */
function isComplete({ first, number, shown, dropped, broken }) {
  assert.deepEqual([shown + dropped, broken], [number - first + 1, 0]);
}
const screenshot = (page, name) => page.screenshot({ path: join(process.env.RAMWAY_EXAMPLES_OUT ?? '.', name) });

/** A page that takes nothing more off its socket, and then does. */
async function stuckPage(t, url) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}stream`, { origin: url.slice(0, -1) });
  t.after(() => socket.terminate());
  /** @type {import('./picture.mjs').Sent[]} */
  const got = [];
  socket.on('message', (/** @type {Buffer} */ data, isBinary) => {
    // A copy, which begins where its ArrayBuffer does.
    if (isBinary) got.push(parse(new Uint8Array(data).buffer));
  });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  socket.pause();
  return { socket, got };
}

test('robot: the picture moves, and a slow browser drops pictures for itself alone', limit, async (t) => {
  const { camera, readers, recorded, server, left, record } = stage(t);
  const host = await server();
  const [controller, recorder] = readers();
  const quick = await open(t, host.url);
  // Its screen is refreshed twice a second.
  const slow = await open(t, host.url, () => {
    globalThis.requestAnimationFrame = (draw) => window.setTimeout(() => draw(performance.now()), 500);
  });
  const stuck = await stuckPage(t, host.url);
  await state(quick, 'waiting');

  const film = camera();
  await shown(slow, 1);
  const [one, start] = [await pixel(quick), recorded()];
  // More than the topic holds: a camera that waited for one of the browsers would never come so far.
  await until('the recorder to have a lap of pictures', () => recorded() > start + LAP);
  const other = await pixel(quick);
  assert.deepEqual([one.grey, other.grey], [one.number & 255, other.number & 255]);
  assert.ok(other.number > one.number);
  await state(quick, 'live');
  await screenshot(quick, 'robot.png');
  await screenshot(slow, 'robot-slow.png');

  // It wakes up and gets the pictures that were on their way to it. For one that it has drawn it gets the newest one, with how
  // many it has missed.
  stuck.socket.resume();
  await until('what was on the way', () => stuck.got.length === 2);
  stuck.socket.send('1');
  await until('the newest one', () => stuck.got.length === 3);
  for (const { number, pixels } of stuck.got) assert.ok(pixels.every((value) => value === (number & 255)));
  const [, second, third] = stuck.got;
  assert.equal(third.lost, third.number - second.number - 1);
  assert.ok(third.lost > LAP / 2, `the stuck page lost ${third.lost}`);

  film.child.stdin?.end();
  assert.equal(await film.ended, 0, film.complaints);
  const [, drawn] = await film.line(/^(\d+) pictures/);
  // The last one comes to every page, however slow it is.
  for (const page of [quick, slow]) {
    await state(page, 'ended');
    await until('the last picture', async () => (await figures(page)).number === Number(drawn));
  }
  const [fast, lame] = await Promise.all([figures(quick), figures(slow)]);
  t.diagnostic(`${film.lines[0]}; quick ${JSON.stringify(fast)}, slow ${JSON.stringify(lame)}`);

  // The others have every picture.
  assert.equal(await controller.ended, 0, controller.complaints);
  assert.match(controller.lines[0], new RegExp(`^${drawn} pictures, 0 missed`));
  assert.equal(await recorder.ended, 0, recorder.complaints);
  assert.deepEqual(recorder.lines, [`${drawn} pictures are in ${record}`]);
  for (const now of [fast, lame]) isComplete(now);
  assert.ok(lame.dropped > LAP / 2, `the slow page dropped ${lame.dropped}`);
  assert.ok(fast.shown > 4 * lame.shown, `the quick page has shown ${fast.shown}, the slow one ${lame.shown}`);

  assert.equal(await host.stop('SIGTERM'), 0, host.complaints);
  assert.deepEqual(left(), ['record']);
});

test('robot: a camera is killed, and the next one goes on with the next number', limit, async (t) => {
  const { camera, readers, server } = stage(t);
  const [film, host] = [camera(), await server()];
  readers();
  const page = await open(t, host.url);
  await shown(page, 10);
  await film.kill();
  await state(page, 'dead');
  const before = await figures(page);
  await screenshot(page, 'robot-dead.png');
  const next = camera();
  const now = await shown(page, before.shown + 10);
  await state(page, 'live');
  assert.equal(now.first, before.first);
  isComplete(now);
  next.child.stdin?.end();
  await state(page, 'ended');
  assert.equal(await host.stop('SIGINT'), 0, host.complaints);
});

test('robot: a page that claims what it was not sent is cut off, and nobody else', limit, async (t) => {
  const { camera, readers, server } = stage(t);
  const [, host] = [camera(), await server()];
  readers();
  const page = await open(t, host.url);
  const now = await shown(page, 3);
  for (const text of ['1000', '-1', 'everything', '']) {
    const { socket } = await stuckPage(t, host.url);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    socket.send(text);
    assert.equal(await closed, 1008);
  }
  isComplete(await shown(page, now.shown + 10));
  assert.equal(host.complaints, '');
});
