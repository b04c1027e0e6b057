// Draws the camera's pictures, checks each one in the canvas, and says what became of all the others.

import { cellRow, cells, checksum, PREFIX, parse, parsePrefix } from '../frame.mjs';
import { chart, Figures } from './figures.mjs';

const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const canvas = /** @type {HTMLCanvasElement} */ (element('picture'));
// Each picture is read back, so the canvas stays in memory that can be read.
const context = /** @type {CanvasRenderingContext2D} */ (
  canvas.getContext('2d', { alpha: false, willReadFrequently: true })
);
/** The planes' colours; sRGB's curve, so that a browser changes no value but by the matrix. */
const COLOURS = /** @type {const} */ ({
  matrix: 'bt709',
  primaries: 'bt709',
  transfer: 'iec61966-2-1',
  fullRange: false,
});

/** Also for the console: the figures, and the picture that the canvas shows. */
const view = { figures: new Figures(), frame: /** @type {import('../frame.mjs').Frame | null} */ (null) };
/** When it was drawn, or the connection made, in milliseconds of this page's clock. */
let drawn = 0;
Object.assign(globalThis, { view });
/**
 * The last that came and is not drawn yet.
 * @typedef {{ socket: WebSocket, said: import('../frame.mjs').Said, frame: import('../frame.mjs').Frame }} Came
 */
let next = /** @type {Came | null} */ (null);
let status = { camera: 'connecting', ring: '', since: 0 };
/** From this page's clock to the server's, which is the camera's; and how exactly that is known. */
let clock = { offset: performance.timeOrigin, trip: Infinity };

function connect() {
  const socket = new WebSocket(`ws://${location.host}/stream`);
  socket.binaryType = 'arraybuffer';
  socket.onmessage = ({ data }) => {
    if (data instanceof ArrayBuffer) return take(socket, data);
    const said = JSON.parse(data);
    if (said.clock) setClock(said.clock);
    else status = said;
  };
  const ask = () => socket.send(JSON.stringify({ clock: performance.now() }));
  let asking = /** @type {ReturnType<typeof setInterval> | undefined} */ (undefined);
  socket.onopen = () => {
    view.figures = new Figures();
    drawn = performance.now();
    clock.trip = Infinity;
    ask();
    asking = setInterval(ask, 2000);
  };
  socket.onclose = () => {
    clearInterval(asking);
    next = null;
    status = { camera: 'offline', ring: '', since: 0 };
    setTimeout(connect, 500);
  };
}

/** The answer to a question asked half a round trip ago; the shortest trip says most. */
function setClock([asked, server]) {
  const now = performance.now();
  // A clock drifts, so that no answer is the best forever.
  clock.trip += 0.05;
  if (now - asked < clock.trip) clock = { offset: server - (asked + now) / 2, trip: now - asked };
}

function take(socket, data) {
  const said = parsePrefix(data);
  const frame = parse(new Uint8Array(data, PREFIX));
  if (!frame) throw new Error('not a picture');
  view.figures.came(frame, said);
  // Drawn when the screen is refreshed, so never in a tab that nobody sees: the server then sends no more.
  if (next) view.figures.replace();
  else requestAnimationFrame(draw);
  next = { socket, said, frame };
}

function draw() {
  if (!next) return;
  const { socket, said, frame } = next;
  next = null;
  if (canvas.width !== frame.width || canvas.height !== frame.height) {
    canvas.width = frame.width;
    canvas.height = frame.height;
  }
  const picture = new VideoFrame(frame.planes, {
    format: 'I420',
    codedWidth: frame.width,
    codedHeight: frame.height,
    timestamp: Math.round(frame.captured * 1000),
    colorSpace: COLOURS,
  });
  context.drawImage(picture, 0, 0);
  picture.close();
  const row = context.getImageData(0, cellRow(frame.height), frame.width, 1).data;
  const at = performance.now();
  const read = cells(frame.width, (x) => row[Math.floor(x) * 4]);
  const intact = read.number === frame.number % 2 ** 32 && read.checksum === checksum(frame);
  view.frame = frame;
  drawn = at;
  view.figures.drew({ at, node: said.received - frame.captured, canvas: at + clock.offset - frame.captured }, intact);
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ drawn: said.sequence }));
}

/** What to say of the camera, by state. */
const SAID = {
  connecting: () => 'Connecting …',
  offline: () => 'No connection to the server. Trying again …',
  unable: () => 'This browser cannot draw the pictures: it has no VideoFrame (WebCodecs).',
  waiting: () => `No camera yet. Waiting for one on the ring “${status.ring}”.`,
  live: () => 'Live',
  silent: () => 'The camera is there, but no pictures come.',
  dead: () => 'The camera has died. Waiting for the next one …',
  ended: () => 'The camera was switched off. Waiting for the next one …',
};

function report() {
  const { figures } = view;
  const now = performance.now();
  figures.forget(now);
  let [state, passed] = [status.camera, now + clock.offset - status.since];
  if (!('VideoFrame' in globalThis)) state = 'unable';
  else if (state === 'live' && now - drawn > 2000) [state, passed] = ['silent', now - drawn];
  document.body.dataset.state = element('status').dataset.state = state;
  say('status', SAID[state]());
  // Apart from the status, which is read out when it changes.
  say('since', ['silent', 'dead', 'ended'].includes(state) ? `for ${Math.max(0, Math.floor(passed / 1000))} s` : '');

  const ms = (/** @type {number | undefined} */ value) => (value === undefined ? '–' : value.toFixed(1));
  say('rate', state === 'live' ? figures.rate(now).toFixed(1) : '–');
  say('nominal', String(view.frame?.rate ?? '–'));
  const [toNode, toCanvas] = [figures.latency('node'), figures.latency('canvas')];
  say('canvas-median', ms(toCanvas.median));
  say('canvas-median2', ms(toCanvas.median));
  for (const part of ['p95', 'worst']) say(`canvas-${part}`, ms(toCanvas[part]));
  for (const part of ['median', 'p95', 'worst']) say(`node-${part}`, ms(toNode[part]));
  for (const count of ['exposed', 'intact', 'broken', 'late', 'ringFull', 'nodeSkipped', 'pageSkipped', 'replaced'])
    say(count, figures[count].toLocaleString('en'));
  element('broken').classList.toggle('wrong', figures.broken > 0);
  chart(/** @type {HTMLCanvasElement} */ (element('chart')), figures.shown, now);
}

/** Sets a text that differs: what is the same is not announced again. */
function say(/** @type {string} */ id, /** @type {string} */ text) {
  if (element(id).textContent !== text) element(id).textContent = text;
}

connect();
setInterval(report, 250);
