/**
 * What `ramway bench` tells a worker and hears from it: version 1 of the protocol of `bench/src/worker.rs`.
 *
 * @typedef {object} Burst How much to do at a stretch.
 * @property {string} test `rtt`, `one-way`, `view` or `call`; there are others, which nothing here can do.
 * @property {string} mode How the sides wait (`spin`, `hybrid`, `block`) or publish (`each`, `batch`).
 * @property {number} size Bytes of a message.
 * @property {number} smallest The same, unless messages are of different sizes.
 * @property {number} count Messages or round trips.
 * @property {number} group Operations that one sample stands for.
 * @property {number} batch Messages that are published together.
 *
 * @typedef {object} Setup What both sides know before they open a mechanism.
 * @property {string} directory In memory, empty at first and nobody else's; removed afterwards.
 * @property {number} capacity Bytes of buffering between the two sides, where that can be chosen.
 * @property {[number | null, number | null]} cpus Where the leading and the following process are pinned to.
 * @property {boolean} realtime Whether to ask for SCHED_FIFO and locked memory.
 *
 * @typedef {import('./usage.mjs').Used} Used
 */

/** The environment variable that says what this process is to do, as JSON. */
export const VARIABLE = 'RAMWAY_BENCH_WORKER';
export const VERSION = 1;

/**
 * A line of the list.
 * @param {string} name
 * @param {'ramway' | 'peer' | 'by-hand'} kind
 * @param {boolean} copied
 * @param {string} what
 * @param {string} [version]
 */
export function about(name, kind, copied, what, version = '') {
  return { name, kind, copied, what: `Node.js ${process.versions.node.split('.')[0]}: ${what}`, version };
}

/**
 * What one burst measured.
 * @param {number} elapsedNs
 * @param {number} operations
 * @param {number[]} samplesNs
 * @param {Used} leading
 * @param {Used} following
 */
export function outcome(elapsedNs, operations, samplesNs, leading, following) {
  return {
    elapsed_ps: elapsedNs * 1000,
    operations,
    samples_ps: samplesNs.map((ns) => ns * 1000),
    cpu_ns: [leading.cpu_ns, following.cpu_ns],
    peak_rss: [leading.peak_rss, following.peak_rss],
    shared: [leading.shared, following.shared],
    context_switches: [leading.context_switches, following.context_switches],
    allocations: null,
    parts: [],
  };
}

/**
 * A line of the protocol.
 * @param {unknown} words
 */
export function answer(words) {
  process.stdout.write(`${JSON.stringify(words)}\n`);
}

/**
 * The text of whatever was thrown.
 * @param {unknown} cause
 */
export function why(cause) {
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}
