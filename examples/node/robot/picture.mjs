// The robot's pictures (examples/src/bin/robot.rs), and how they travel to a browser. Runs in Node and in browsers.

/** The type id of a picture. */
export const PICTURE = 1;
/** Pixels on a side. */
export const SIDE = 64;
/** A byte each: grey. All of a picture are the low byte of its number. */
export const PIXELS = SIDE * SIDE;
/** The topic as the camera and its other readers make it. */
export const TOPIC = { capacity: 1 << 20 };

/** Bytes before the pixels. */
const HEADER = 32;

/**
 * What a browser is sent of a picture.
 * @typedef {object} Sent
 * @property {number} order counts what this browser was sent, from 1 on
 * @property {number} number of the picture
 * @property {number} lost how many pictures this browser missed right before it
 * @property {number} time when the camera published it, in milliseconds since 1970
 * @property {Uint8Array} pixels
 */

/**
 * @param {import('ramway').TopicMessage} picture
 * @param {number} order
 */
export function message(picture, order) {
  const bytes = new Uint8Array(HEADER + PIXELS);
  const view = new DataView(bytes.buffer);
  view.setFloat64(0, order, true);
  view.setFloat64(8, picture.seq, true);
  view.setFloat64(16, picture.lost, true);
  view.setFloat64(24, Number(picture.time) / 1e6, true);
  bytes.set(picture.data, HEADER);
  return bytes;
}

/**
 * @param {ArrayBuffer} buffer
 * @returns {Sent}
 */
export function parse(buffer) {
  const view = new DataView(buffer, 0, HEADER);
  const [order, number, lost, time] = [0, 8, 16, 24].map((at) => view.getFloat64(at, true));
  return { order, number, lost, time, pixels: new Uint8Array(buffer, HEADER, PIXELS) };
}
