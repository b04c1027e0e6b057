/**
 * What a mechanism is: an end in each of two processes.
 *
 * Every message is one of `POOL`, in order and from its beginning in each burst: 64-bit words that differ from message to
 * message, as in the other rows. They are made before what is measured begins. The receiver reads every byte in a plain
 * loop into two running sums, the second one of the first's values, so that the bytes' order counts as well; what they come
 * to at the end says whether anything was lost, repeated, exchanged or damaged.
 *
 * @typedef {import('./protocol.mjs').Burst} Burst
 * @typedef {import('./protocol.mjs').Setup} Setup
 *
 * @typedef {object} End One side. What it is given is made before what is measured begins.
 * @property {(mode: string) => void} [waitLike] How this side waits from now on.
 * @property {(groups: Buffer[][], check: Int32Array) => Promise<number[]> | number[]} [ping] Round trips: when each group
 *   of them began, and when the last one ended.
 * @property {(answers: Buffer[], check: Int32Array) => Promise<void> | void} [echo] The other side of `ping`.
 * @property {(groups: Buffer[][], check: Int32Array) => Promise<number[]>} [calls] Test `call`: a call for each message, whose
 *   reply is what was sent; gives as `ping` does.
 * @property {(count: number) => Promise<void>} [serve] The other side of `calls`: answers this number of calls from now on; resolves when all
 *   were.
 * @property {(burst: Burst) => (() => Promise<void> | void)} [stream] A stream of messages, ready to be sent.
 * @property {(burst: Burst, check: Int32Array) => Promise<void> | void} [receive] Reads a stream.
 * @property {(size: number, n: number) => void} [show] Test `view`: makes what the other side will look at, sends it, and
 *   waits until the other side has looked.
 * @property {(size: number, n: number) => number} [look] Test `view`: how long it took to have it; the bytes are compared.
 * @property {() => Promise<void> | void} close Gives everything back.
 *
 * @typedef {object} Mechanism A way from one process to another.
 * @property {() => {name: string}} about What the list says.
 * @property {(burst: Burst) => boolean} can Whether it can do this at all. What it cannot is no row.
 * @property {(burst: Burst) => boolean} [threaded] Whether both ends live in worker threads: those that poll do.
 * @property {(setup: Setup, burst: Burst) => Promise<import('./worker.mjs').Measured>} [pair] Two sides that it starts and
 *   measures in its own way.
 * @property {(setup: Setup, leads: boolean, burst: Burst) => Promise<() => Promise<End> | End>} [open] An end in each process. The
 *   leading one's first step is done before the following one begins, and what that gives opens it.
 */

/** How many messages differ. A power of two, which `bench/src/sender.rs` knows too. */
export const POOL = 4096;

/** Nanoseconds of CLOCK_MONOTONIC: the same in both processes. */
export const now = () => Number(process.hrtime.bigint());

/** @type {Map<number, Buffer[]>} */
const pools = new Map();

/**
 * The messages of this size: message n is the 64-bit words n, n + 1, …
 * @param {number} size
 */
export function pool(size) {
  let messages = pools.get(size);
  if (messages === undefined) {
    const all = Buffer.alloc(POOL * size);
    messages = Array.from({ length: POOL }, (_, n) => {
      const message = all.subarray(n * size, (n + 1) * size);
      for (let word = 0; word < size >> 3; word++) {
        message.writeUInt32LE(n + word, word << 3);
      }
      return message;
    });
    pools.set(size, messages);
  }
  return messages;
}

/**
 * Those of a burst.
 * @param {number} size
 * @param {number} count
 */
export function messages(size, count) {
  const all = pool(size);
  return Array.from({ length: count }, (_, n) => /** @type {Buffer} */ (all[n % POOL]));
}

/**
 * In arrays of `size`, the last one shorter.
 * @template T
 * @param {T[]} of
 * @param {number} size
 */
export function grouped(of, size) {
  const groups = [];
  for (let at = 0; at < of.length; at += size) {
    groups.push(of.slice(at, at + size));
  }
  return groups;
}

/** What nothing at all comes to. */
export const beginning = () => Int32Array.of(1, 0);

/**
 * Reads every byte.
 * @param {Int32Array} check
 * @param {Uint8Array} bytes
 */
export function read(check, bytes, from = 0, to = bytes.length) {
  let one = check[0] | 0;
  let two = check[1] | 0;
  for (let at = from; at < to; at++) {
    one = (one + bytes[at]) | 0;
    two = (two + one) | 0;
  }
  check[0] = one;
  check[1] = two;
}

/**
 * Throws if that is not what was read.
 * @param {Int32Array} check
 * @param {number} size
 * @param {number} count
 */
export function verify(check, size, count) {
  const expected = beginning();
  const all = pool(size);
  for (let n = 0; n < count; n++) {
    read(expected, /** @type {Buffer} */ (all[n % POOL]));
  }
  if (check[0] !== expected[0] || check[1] !== expected[1]) {
    throw new Error('the bytes received are not the bytes sent');
  }
}

/**
 * Where a frame is looked at: not everywhere, because what reading 512 MiB leaves in the caches is no part of receiving
 * the next one.
 * @param {number} size
 */
export function places(size) {
  const step = Math.max(1, Math.ceil(size / 256));
  const all = Array.from({ length: Math.ceil(size / step) }, (_, n) => n * step);
  return [...all, size - 1];
}

/**
 * Writes there what the n-th frame has.
 * @param {Uint8Array} frame
 * @param {number} n
 */
export function mark(frame, n) {
  for (const place of places(frame.length)) {
    frame[place] = (n % 255) + 1;
  }
}

/**
 * Throws if it is not the n-th frame.
 * @param {Uint8Array} frame
 * @param {number} size
 * @param {number} n
 */
export function compare(frame, size, n) {
  if (frame.length !== size || places(size).some((place) => frame[place] !== (n % 255) + 1)) {
    throw new Error('the frame received is not the frame sent');
  }
}

/**
 * One half of a burst, ready to be run: what it runs gives samples.
 * @param {End} end
 * @param {boolean} leads
 * @param {Burst} burst
 * @returns {{run: () => Promise<number[]>, check: () => void}}
 */
export function half(end, leads, burst) {
  const { test, size, count } = burst;
  const check = beginning();
  const verified = () => verify(check, size, count);
  const nothing = () => {};
  end.waitLike?.(burst.mode);
  if (test === 'one-way' && leads) {
    const stream = has(end.stream).call(end, burst);
    return { run: async () => (await stream(), []), check: nothing };
  }
  if (test === 'one-way') {
    return { run: async () => (await has(end.receive).call(end, burst, check), []), check: verified };
  }
  if (test === 'view') {
    const steps = Array.from({ length: count }, (_, n) => n);
    const show = (/** @type {number} */ n) => (has(end.show).call(end, size, n), []);
    const look = (/** @type {number} */ n) => [has(end.look).call(end, size, n)];
    return { run: async () => steps.flatMap(leads ? show : look), check: nothing };
  }
  if (test === 'call' && !leads) {
    // The calling side reads the replies, which are what it sent.
    const served = has(end.serve).call(end, count);
    return { run: async () => (await served, []), check: nothing };
  }
  const all = messages(size, count);
  if (!leads) {
    return { run: async () => (await has(end.echo).call(end, all, check), []), check: verified };
  }
  const groups = grouped(all, burst.group);
  const trips = async () => {
    const stamps = await has(test === 'call' ? end.calls : end.ping).call(end, groups, check);
    return stamps.slice(1).map((stamp, n) => stamp - /** @type {number} */ (stamps[n]));
  };
  return { run: trips, check: verified };
}

/**
 * @template T
 * @param {T | undefined} method
 * @returns {T}
 */
function has(method) {
  if (method === undefined) {
    throw new Error('this end cannot do that');
  }
  return method;
}
