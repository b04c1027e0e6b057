// The camera's messages (examples/src/bin/camera) and what the server puts before them. Runs in Node and in browsers.

/** The type id of a picture: 'I420' in little-endian letters. */
export const I420 = 0x30323449;
/** Bytes before the planes. */
export const HEADER = 64;
/** Bytes that the server puts before a camera's message on its way to a browser. */
export const PREFIX = 32;
/** The ring as both ends make it: nine pictures of 640 × 480, each on a cache line of its own. */
export const RING = { capacity: 4 << 20, align: 64 };

const STRIP = 16;
const CELLS = 64;

/**
 * @typedef {object} Frame
 * @property {number} width
 * @property {number} height
 * @property {number} number of the exposure, from 1 on since the camera's start
 * @property {number} captured when the exposure began, in milliseconds since 1970
 * @property {bigint} started when the camera did, in nanoseconds: tells its numbers from those of another run
 * @property {number} ringFull exposures since the camera's start that found the ring full
 * @property {number} late exposures since the camera's start that it came too late for itself
 * @property {number} rate exposures a second, nominally
 * @property {Uint8Array} planes Y, U and V, where they lie in the message
 */

/**
 * Reads a camera's message in place.
 * @param {Uint8Array} message
 * @returns {Frame | null} null: this is no such message
 */
export function parse(message) {
  if (message.length < HEADER) return null;
  const view = new DataView(message.buffer, message.byteOffset, HEADER);
  const [width, height] = [view.getUint32(0, true), view.getUint32(4, true)];
  const whole = width > 0 && width % CELLS === 0 && height % 4 === 0 && height > STRIP;
  if (!whole || message.length !== HEADER + (width * height * 3) / 2) return null;
  return {
    width,
    height,
    number: Number(view.getBigUint64(8, true)),
    captured: Number(view.getBigUint64(16, true)) / 1e6,
    started: view.getBigUint64(24, true),
    ringFull: Number(view.getBigUint64(32, true)),
    late: Number(view.getBigUint64(40, true)),
    rate: view.getUint32(48, true),
    planes: message.subarray(HEADER),
  };
}

/**
 * The checksum of a picture's planes, without the rows that it is written in.
 * @param {Frame} frame
 */
export function checksum({ width, height, planes }) {
  const words = new Uint32Array(planes.buffer, planes.byteOffset, planes.length / 4);
  const [row, rows] = [width / 4, height - STRIP];
  let sum = 0x811c9dc5;
  const add = (/** @type {number} */ from, /** @type {number} */ count) => {
    for (let at = from; at < from + count; at++) sum = Math.imul(sum ^ words[at], 0x01000193);
  };
  add(0, rows * row);
  add(height * row, (rows * row) / 4);
  add((height * row * 5) / 4, (rows * row) / 4);
  return sum >>> 0;
}

/**
 * Reads the cells in the last rows of a picture.
 * @param {number} width
 * @param {(x: number) => number} brightness of a pixel in the middle of those rows, 0 to 255
 */
export function cells(width, brightness) {
  const word = (/** @type {number} */ first) => {
    let bits = 0;
    for (let cell = first; cell < first + CELLS / 2; cell++)
      bits = (bits << 1) | Number(brightness(((cell + 0.5) * width) / CELLS) > 127);
    return bits >>> 0;
  };
  return { number: word(0), checksum: word(CELLS / 2) };
}

/** The row of a picture to read the cells from. */
export const cellRow = (/** @type {number} */ height) => height - STRIP / 2;

/** Whether a picture is whole and the one that its header says. */
export function intact(/** @type {Frame} */ frame) {
  const row = cellRow(frame.height) * frame.width;
  const read = cells(frame.width, (x) => frame.planes[row + Math.floor(x)]);
  return read.number === frame.number % 2 ** 32 && read.checksum === checksum(frame);
}

/**
 * What the server says with each picture.
 * @typedef {object} Said
 * @property {number} sequence counts what this browser was sent, from 1 on
 * @property {number} nodeSkipped pictures passed over since it connected, because Node was behind
 * @property {number} pageSkipped pictures passed over since it connected, because it was behind itself
 * @property {number} received when Node got the picture, in milliseconds since 1970
 */

export function prefix(/** @type {Said} */ { sequence, nodeSkipped, pageSkipped, received }) {
  const bytes = new Uint8Array(PREFIX);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, sequence, true);
  view.setUint32(4, nodeSkipped, true);
  view.setUint32(8, pageSkipped, true);
  view.setFloat64(16, received, true);
  return bytes;
}

/**
 * The other way.
 * @param {ArrayBuffer} buffer
 * @returns {Said}
 */
export function parsePrefix(buffer) {
  const view = new DataView(buffer, 0, PREFIX);
  return {
    sequence: view.getUint32(0, true),
    nodeSkipped: view.getUint32(4, true),
    pageSkipped: view.getUint32(8, true),
    received: view.getFloat64(16, true),
  };
}
