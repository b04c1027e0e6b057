// Draws the pictures, and counts those that it did not get.

import { PIXELS, parse, SIDE } from '../picture.mjs';

const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const canvas = (/** @type {string} */ id, /** @type {CanvasRenderingContext2DSettings} */ settings) => {
  const found = /** @type {HTMLCanvasElement} */ (element(id));
  return /** @type {CanvasRenderingContext2D} */ (found.getContext('2d', settings));
};
// Each picture is read back, so the canvas stays in memory that can be read.
const picture = canvas('picture', { alpha: false, willReadFrequently: true });
const strip = canvas('strip', { alpha: true });
/** Columns of the strip: a picture each. */
const COLUMNS = 240;

/** Also for the console. `first` and `number` are the numbers of the first and of the last picture that were drawn. */
const view = { first: 0, number: 0, shown: 0, dropped: 0, broken: 0, age: 0 };
Object.assign(globalThis, { view });
/** The last pictures: their brightness, or -1 for those that did not come. @type {number[]} */
let columns = [];
/** When the last ones were drawn, in milliseconds of this page's clock. @type {number[]} */
let drawn = [];
let state = 'connecting';
/** What came and is not drawn yet, in its order. @type {import('../picture.mjs').Sent[]} */
let waiting = [];

function connect() {
  const socket = new WebSocket(`ws://${location.host}/stream`);
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => Object.assign(view, { first: 0, shown: 0, dropped: 0, broken: 0 });
  socket.onmessage = ({ data }) => {
    if (typeof data === 'string') {
      state = JSON.parse(data).camera;
      return;
    }
    // Drawn when the screen is refreshed, so never in a tab that nobody sees: the server then sends no more.
    if (waiting.length === 0) requestAnimationFrame(() => draw(socket));
    waiting.push(parse(data));
    state = 'live';
  };
  socket.onclose = () => {
    waiting = [];
    state = 'offline';
    setTimeout(connect, 500);
  };
}

function draw(/** @type {WebSocket} */ socket) {
  const sent = waiting.shift();
  if (!sent) return;
  const pixels = picture.createImageData(SIDE, SIDE);
  for (let at = 0; at < PIXELS; at++) pixels.data.set([sent.pixels[at], sent.pixels[at], sent.pixels[at], 255], at * 4);
  picture.putImageData(pixels, 0, 0);
  const grey = sent.number & 255;
  const read = picture.getImageData(0, 0, SIDE, SIDE).data;
  if (!read.every((value, at) => value === (at % 4 === 3 ? 255 : grey))) view.broken++;

  const now = performance.now();
  if (view.first === 0) view.first = sent.number;
  // What came before the first one was not for this page.
  else view.dropped += sent.lost;
  view.number = sent.number;
  view.shown++;
  view.age = performance.timeOrigin + now - sent.time;
  const missed = columns.length === 0 ? 0 : Math.min(sent.lost, COLUMNS);
  columns = [...columns, ...new Array(missed).fill(-1), grey].slice(-COLUMNS);
  drawn = [...drawn.filter((at) => at > now - 2000), now];
  socket.send(String(sent.order));
  if (waiting.length > 0) requestAnimationFrame(() => draw(socket));
}

/** What to say of the camera, by state. */
const SAID = {
  connecting: 'Connecting …',
  offline: 'No connection to the server. Trying again …',
  waiting: 'No picture yet.',
  live: 'Live',
  silent: 'The camera is there, but no pictures come.',
  dead: 'The camera has died. Waiting for the next one …',
  ended: 'The camera was switched off. Waiting for the next one …',
};

function report() {
  const now = performance.now();
  const silent = state === 'live' && now - (drawn.at(-1) ?? now) > 2000;
  const seen = silent ? 'silent' : state;
  element('status').dataset.state = seen;
  say('status', SAID[seen]);
  say('number', view.number === 0 ? '–' : view.number.toLocaleString('en'));
  const since = Math.max(now - 2000, drawn[0] ?? now);
  say('rate', seen === 'live' && now > since ? ((drawn.length * 1000) / (now - since)).toFixed(1) : '–');
  for (const count of ['shown', 'dropped', 'broken']) say(count, view[count].toLocaleString('en'));
  say('age', view.shown === 0 ? '–' : view.age.toFixed(1));
  element('broken').classList.toggle('wrong', view.broken > 0);
  paint();
}

/** A column for each of the last pictures. */
function paint() {
  strip.canvas.width = COLUMNS;
  strip.canvas.height = 1;
  const bad = getComputedStyle(document.querySelector('.mark') ?? strip.canvas).backgroundColor;
  columns.forEach((grey, at) => {
    strip.fillStyle = grey < 0 ? bad : `rgb(${grey}, ${grey}, ${grey})`;
    strip.fillRect(COLUMNS - columns.length + at, 0, 1, 1);
  });
}

/** Sets a text that differs: what is the same is not announced again. */
function say(/** @type {string} */ id, /** @type {string} */ text) {
  if (element(id).textContent !== text) element(id).textContent = text;
}

connect();
setInterval(report, 250);
