// A call into native code for each message against typed arrays over the same memory: what decided how the package works
// (docs/adr/0021). `node hot-path.mjs LIBRARY [PART OF A NAME]...`, where LIBRARY is what `cargo build --release` makes of
// hot-path/; the same in Bun and Deno. In one process, without a peer: only what the ways differ in.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { time } from './timing.mjs';

const directory = mkdtempSync(join(tmpdir(), 'hot-path-'));
const file = join(directory, 'hot-path.node');
copyFileSync(process.argv[2], file);
const native = createRequire(import.meta.url)(file);
rmSync(directory, { recursive: true });

const ring = new native.NativeRing();
const hand = native.byHand();
const [header, data] = [ring.header(), ring.data()];
const positions = new Int32Array(header);
const wide = new BigInt64Array(header);
const bits = new Float64Array(header);
const bytes = new Uint8Array(data);
const words = new Int32Array(data);
const TAIL = 0x80;
const HEAD = 0x100;
const MASK = (1 << 20) - 1;
/** Messages of a burst: what 1 MiB holds of 32 bytes and 16 of header, and a little less. */
const COUNT = 16384;
let kept = 0;
const keep = (/** @type {number | bigint} */ result) => {
  kept += Number(result);
};

/** A function of its own for each variant, as V8 would otherwise share between them what it has seen. */
const loop = (/** @type {string} */ body) =>
  new Function('n', 'native', 'ring', 'hand', 'positions', 'wide', 'bits', 'bytes', 'words', 'data', 'start', body);
const run = (/** @type {Function} */ f, n = COUNT, start = 0) =>
  f(n, native, ring, hand, positions, wide, bits, bytes, words, data, start);
const primitive = (/** @type {string} */ what, /** @type {number} */ n, /** @type {string} */ body, made = '') => {
  const f = loop(`${made}; let kept = 0; for (let i = 0; i < n; i++) { ${body} } return kept;`);
  return time(what, n, () => keep(run(f, n)));
};

// What there is to build it of.
await primitive('a call: napi-rs, a function', 2e4, 'native.nothing();');
await primitive('a call: napi-rs, a function of two numbers', 2e4, 'kept = native.add(kept, i);');
await primitive('a call: napi-rs, a method', 2e4, 'ring.nothing();');
await primitive('a call: a function registered by hand', 2e4, 'hand.nothing();');
await primitive('32 bits: plain read', 1e5, 'kept += positions[900 + (i & 1)];');
await primitive('32 bits: Atomics.load', 1e5, 'kept += Atomics.load(positions, 900 + (i & 1));');
await primitive('32 bits: plain write', 1e5, 'positions[900] = i;');
await primitive('32 bits: Atomics.store', 1e5, 'Atomics.store(positions, 900, i);');
await primitive('64 bits: Atomics.store of a BigInt', 1e5, 'Atomics.store(wide, 450, BigInt(i));');
await primitive('64 bits: plain write of a BigInt', 1e5, 'wide[450] = BigInt(i);');
const halves = 'const whole = new Float64Array(1), half = new Int32Array(whole.buffer)';
await primitive('64 bits: two halves, written as a float', 1e5, 'half[0] = i; bits[450] = whole[0];', halves);
await primitive('64 bits: Atomics.load to a number', 1e5, 'kept += Number(Atomics.load(wide, 450));');
await primitive(
  'a view: new Uint8Array(buffer, at, 32)',
  1e5,
  `kept += new Uint8Array(data, (i * 48) & ${MASK}, 32).length;`,
);
await primitive(
  'a view: bytes.subarray(at, at + 32)',
  1e5,
  `const at = (i * 48) & ${MASK}; kept += bytes.subarray(at, at + 32).length;`,
);
for (const size of [8, 32, 128, 1024, 8192]) {
  const source = `const source = new Uint8Array(${size}).fill(3), four = new Int32Array(source.buffer)`;
  const n = Math.max(500, Math.round(1e6 / size));
  await primitive(`copying ${size} B: bytes.set`, n, 'bytes.set(source, (i * 48) & 0xfff0);', source);
  await primitive(
    `copying ${size} B: byte by byte`,
    n,
    `for (let j = 0, at = (i * 48) & 0xfff0; j < ${size}; j++) bytes[at + j] = source[j];`,
    source,
  );
  await primitive(
    `copying ${size} B: four at a time`,
    n,
    `for (let j = 0, at = ((i * 48) & 0xfff0) >> 2; j < ${size >> 2}; j++) words[at + j] = four[j];`,
    source,
  );
}
await primitive(
  'an outside buffer, made and detached by hand',
  2000,
  'hand.detach(hand.lend((i * 64) & 0xffff, 65536));',
);
if ('transfer' in ArrayBuffer.prototype) {
  await primitive(
    'an outside buffer, made, detached by transfer(0)',
    2000,
    'hand.lend((i * 64) & 0xffff, 64).transfer(0);',
  );
}

// Receiving, every byte read.
const read = 'const read = (bytes, at, end) => { let all = 0; for (; at < end; at++) all += bytes[at]; return all; }';
const fill = () => {
  ring.clear();
  ring.fill(COUNT, 32);
};
const receive = (/** @type {string} */ what, /** @type {string} */ body) => {
  const f = loop(`${read}; let kept = 0; ${body} return kept;`);
  return time(`receiving: ${what}`, COUNT, () => keep(run(f, COUNT, Number(wide[HEAD >> 3]))), fill);
};
await receive(
  'a call, which copies into an array',
  'const into = new Uint8Array(64); for (let l; (l = ring.recvInto(into)) >= 0;) kept += read(into, 0, l);',
);
await receive(
  'a call, which gives a copy',
  'for (let m; (m = ring.recvCopy()) !== null;) kept += read(m, 0, m.length);',
);
await receive(
  'a call, which gives a view; detached',
  'for (let m; (m = ring.recvView()) !== null;) { kept += read(m, 0, m.length); hand.detach(m.buffer); ring.release(); }',
);
const views = {
  'typed arrays, no view': 'kept += read(bytes, at, at + length);',
  'typed arrays, new Uint8Array': 'kept += read(new Uint8Array(data, at, length), 0, length);',
  'typed arrays, subarray': 'kept += read(bytes.subarray(at, at + length), 0, length);',
};
for (const [what, view] of Object.entries(views)) {
  for (const together of [1, 1024]) {
    await receive(
      `${what}, ${together} released at once`,
      `
      let head = start, tail = Atomics.load(positions, ${TAIL >> 2});
      for (let left = n; left > 0; left--) {
        if ((head | 0) === tail) throw new Error('empty');
        const at = (head & ${MASK}) + 16, length = words[(at >> 2) - 4];
        ${view}
        head += (length + 31) & ~15;
        if (left % ${together} === 1 || ${together} === 1) Atomics.store(wide, ${HEAD >> 3}, BigInt(head));
      }`,
    );
  }
}
await receive(
  'typed arrays, a buffer lent for each and detached',
  `
  let head = start;
  for (let left = n; left > 0; left--) {
    const at = (head & ${MASK}) + 16, length = words[(at >> 2) - 4];
    const lent = hand.lend(at, length);
    kept += read(new Uint8Array(lent), 0, length);
    hand.detach(lent);
    head += (length + 31) & ~15;
    Atomics.store(wide, ${HEAD >> 3}, BigInt(head));
  }`,
);

// Sending.
const send = (/** @type {string} */ what, /** @type {string} */ body) => {
  const f = loop(`const message = new Uint8Array(32).fill(7); ${halves}; ${body}`);
  const clear = () => ring.clear();
  return time(`sending: ${what}`, COUNT, () => void run(f, COUNT, Number(wide[TAIL >> 3])), clear);
};
await send('a call', "for (let i = 0; i < n; i++) if (!ring.send(message)) throw new Error('full');");
const stores = {
  'Atomics and BigInt': `Atomics.store(wide, ${TAIL >> 3}, BigInt(tail));`,
  'written as a float': `half[0] = tail; half[1] = tail / 4294967296; bits[${TAIL >> 3}] = whole[0];`,
};
for (const [what, store] of Object.entries(stores)) {
  for (const together of [1, 32]) {
    await send(
      `typed arrays, ${together} at once, the position by ${what}`,
      `
      let tail = start;
      const head = Number(Atomics.load(wide, ${HEAD >> 3}));
      for (let left = n; left > 0; left--) {
        const length = message.length, step = (length + 31) & ~15;
        if (tail + step - head > ${MASK + 1}) throw new Error('full');
        const at = tail & ${MASK};
        words[at >> 2] = length;
        words[(at >> 2) + 1] = words[(at >> 2) + 2] = words[(at >> 2) + 3] = 0;
        bytes.set(message, at + 16);
        tail += step;
        if (left % ${together} === 1 || ${together} === 1) { ${store} }
      }`,
    );
  }
}

// What a loop costs that awaits.
const iterate = (/** @type {string} */ what, /** @type {(n: number) => AsyncIterable<{value: number}>} */ items) =>
  time(`for await: ${what}`, 2e4, async () => {
    for await (const item of items(2e4)) kept += item.value;
  });
const item = { value: 1 };
const end = { done: true, value: undefined };
const iterator = (/** @type {(n: number, of: number) => any} */ next) => (/** @type {number} */ of) => ({
  [Symbol.asyncIterator]() {
    let n = 0;
    return { next: () => next(n++, of) };
  },
});
await iterate('a generator', async function* (n) {
  for (let i = 0; i < n; i++) yield item;
});
await iterate(
  'an iterator, a new promise each',
  iterator((n, of) => Promise.resolve(n < of ? { done: false, value: item } : end)),
);
const [same, last] = [Promise.resolve({ done: false, value: item }), Promise.resolve(end)];
await iterate(
  'an iterator, the same promise',
  iterator((n, of) => (n < of ? same : last)),
);
await iterate(
  'an iterator, no promise',
  iterator((n, of) => (n < of ? { done: false, value: item } : end)),
);
await time('a turn of the loop: setImmediate', 500, async () => {
  for (let i = 0; i < 500; i++) await new Promise((resolve) => setImmediate(resolve));
});
if (kept === 0) throw new Error('nothing was read');
