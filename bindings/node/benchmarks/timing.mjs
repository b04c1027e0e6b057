// What the measurements here share.

export const runtime = 'bun' in process.versions ? 'Bun' : 'deno' in process.versions ? 'Deno' : 'Node.js';
const version = process.versions[runtime === 'Node.js' ? 'node' : runtime.toLowerCase()];
const only = process.argv.slice(3);

console.log(`${runtime} ${version}: nanoseconds an operation, the best and the median of the bursts`);

/** Bursts that warm up, and those that count. */
const WARM_UP = 40;
const BURSTS = 200;
/** Milliseconds that may be spent on the latter. */
const TIME = 500;

/**
 * @param {string} what
 * @param {number} count Operations of a burst.
 * @param {() => unknown} burst May be asynchronous.
 * @param {() => void} [before] What precedes each burst, and does not count.
 */
export async function time(what, count, burst, before = () => {}) {
  if (only.length > 0 && !only.some((part) => what.includes(part))) return;
  const taken = [];
  let until = Infinity;
  for (let n = 0; n < WARM_UP + BURSTS && performance.now() < until; n++) {
    before();
    if (n === WARM_UP) until = performance.now() + TIME;
    const began = process.hrtime.bigint();
    const result = burst();
    if (result instanceof Promise) await result;
    if (n >= WARM_UP) taken.push(Number(process.hrtime.bigint() - began) / count);
  }
  taken.sort((a, b) => a - b);
  const shown = (/** @type {number} */ ns) => ns.toFixed(1).padStart(9);
  console.log(`${shown(taken[0])} ${shown(taken[taken.length >> 1])}  ${what}`);
}
