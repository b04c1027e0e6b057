// A report like a real one, made up: every kind of group, failures, missing figures, and names that try to break out of
// the page. Its figures are drawn from a fixed seed and mean nothing.
//
//   node fixture.mjs [--small] [--hostile] FILE.json
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const MECHANISMS = [
  // name, kind, copied, ns per round trip, ns per message, bytes per ns, version
  ["ring", "ramway", false, 108, 5.6, 90], ["ring-copy", "ramway", true, 121, 9.1, 42], ["ring-disk", "ramway", false, 109, 5.8, 88],
  ["bus", "ramway", false, 109, 5.7, 89], ["bus-c", "ramway", false, 112, 6.9, 87], ["bus-tokio", "ramway", false, 4100, 31, 60],
  ["raw-flag", "by-hand", false, 106, null, null], ["futex", "by-hand", false, 39000, null, null],
  ["hand-ring", "by-hand", false, 107, 5.5, 94], ["mutex-ring", "by-hand", true, 7200, 240, 20], ["uring-futex", "by-hand", false, 42000, 300, 40],
  ["shm-by-hand", "by-hand", true, 140, 60, 21], ["seq-cst", "by-hand", false, 131, 37, 70], ["pointer", "by-hand", false, null, 5.1, 100],
  ["pipe", "kernel", true, 970, 390, 4.1], ["uds", "kernel", true, 2890, 840, 5], ["uds-epoll", "kernel", true, 3900, 900, 4.8],
  ["seqpacket", "kernel", true, 3010, 910, 4.2], ["tcp", "kernel", true, 6900, 1500, 3.8], ["mqueue", "kernel", true, 2100, 1100, null],
  ["tachyon", "peer", false, 117, 52, 82, "0.5.1"], ["iceoryx2", "peer", false, 546, 238, 32, "0.7.0"], ["ipmpsc", "peer", true, 270, 196, 12, "0.5.1"],
  ["ipc-channel", "peer", true, 5200, 1900, 3.1, "0.20.0"], ["zmq", "peer", true, 21000, 139, 3.3, "0.10.0"], ["tonic", "peer", true, 92000, 41000, 0.9, "0.14.2"],
  ["redis", "peer", true, 38000, 9000, 0.7, "0.32.7"],
];
const ACCESS = [["private", 1], ["private-huge", 1.16], ["region-map", 0.99], ["region-huge", 1.15]];
const PERCENTILES = [0, 10, 25, 50, 75, 90, 95, 97.5, 99, 99.5, 99.75, 99.9, 99.95, 99.975, 99.99, 99.995, 99.999];

function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function percentiles(p50, tail, next) {
  const at = (p) => p50 * (p <= 50 ? 0.9 + 0.1 * p / 50 : 1 + tail * Math.pow(Math.log10(100 / (100 - p)) - 0.3, 1.6 + next() * 0.05));
  const samples = 200000, max = at(99.9995) * (1 + next());
  const curve = PERCENTILES.map((p) => [p, at(p)]).concat([[100, max]]);
  for (let i = 1; i < curve.length; i++) curve[i][1] = Math.max(curve[i][1], curve[i - 1][1]);
  const value = (p) => curve.find(([q]) => q === p)[1];
  return { curve, ns: { samples, group: 10, min: at(0), mean: at(58), p50: value(50), p90: value(90), p95: value(95), p99: value(99), p999: value(99.9), p9999: value(99.99), max } };
}

function figures(p50, size, next, more = {}) {
  const { ns, curve } = percentiles(p50, more.tail ?? 0.05 + next() * 0.5, next);
  const ops = 1e9 / p50;
  return {
    operations: 2000000, ops_per_s: ops, ops_per_s_best: ops * 1.03, mib_per_s: size ? ops * size / 2 ** 20 : null, ns, curve,
    rounds_ns: Array.from({ length: 16 }, () => p50 * (0.98 + next() * 0.06)), spread: next() * 0.03, ratio_to_floor: null, ratio_to_ceiling: null,
    cpu_percent: [99.8, 99.1 - next()], peak_rss: [6.1e6, 5.9e6], shared: [2.1e6, 2.1e6], context_switches: [0, next() * 1e-4],
    syscalls: [0, 0], allocations: [0, 0], stalls: 0, parts: [], ...more.set,
  };
}

// Of each kind of group one or two: a browser that looks at every element of the whole takes long.
const FEW = ["rtt-spin", "rtt-block", "one-way-32-each", "one-way-64K-each", "one-way-32-batch", "one-way-1K-batch", "access-1G-read"];

// The same rows as measured in two placements: far, everything between processes takes four times as long. Of the groups the
// last one was near only, and one row never was far.
const PLACED = [["near", 110, 1], ["far", 480, 4]];
function apart(report) {
  const [last] = report.groups.slice(-1);
  for (const group of report.groups) {
    const of = group === last ? PLACED.slice(0, 1) : PLACED;
    group.placements = of.map(([placement, flag_ns]) => ({ placement, flag_ns, probes: 400 }));
    for (const row of report.rows.filter((row) => row.group === group.id && row.figures && of.length > 1)) {
      row.apart = PLACED.map(([placement, , factor], n) => {
        const figures = structuredClone(row.figures);
        for (const key of ["min", "mean", "p50", "p90", "p95", "p99", "p999", "p9999", "max"]) figures.ns[key] *= factor;
        figures.curve = figures.curve.map(([p, ns]) => [p, ns * factor]);
        figures.rounds_ns = figures.rounds_ns.slice(0, 8).map((ns) => ns * factor);
        figures.rounds = figures.rounds_ns.map((_, i) => i + 8 * n);
        figures.ops_per_s /= factor;
        if (figures.mib_per_s) figures.mib_per_s /= factor;
        return { placement, figures };
      });
      if (row.name === "tachyon") row.apart.pop();
    }
  }
  report.placement = { seen: PLACED.map(([placement, flag_ns]) => ({ placement, flag_ns, probes: 2000 })), none: null, repeated: 7 };
  report.bars[0].placement = "near";
  report.bars.splice(1, 0, { ...report.bars[0], bar: "≤ 1.08 × raw-flag", measured: "1.05 ×", met: true, placement: "far" });
  return report;
}

export function fixture({ hostile = false, small = false, placed = false } = {}) {
  const next = random(20260);
  const groups = [], rows = [];
  const add = (group, candidates) => {
    groups.push({ size: 32, capacity: 1 << 20, gap_ns: 0, work_ns: 0, floor: null, ceiling: null, rounds: 16, ...group });
    const of = [];
    for (const [name, kind, copied, version, result] of candidates) {
      if (result === null) continue;
      const failed = typeof result === "string";
      of.push({ id: `${group.id}/${name}`, group: group.id, name, kind, what: `${name}: one line about it`, version: version ?? "", copied, failure: failed ? result : null, figures: failed ? null : result });
    }
    const p50 = (name) => of.find((row) => row.name === name)?.figures?.ns.p50;
    for (const { figures } of of) {
      if (!figures) continue;
      if (group.floor) figures.ratio_to_floor = figures.ns.p50 / p50(group.floor);
      if (group.ceiling) figures.ratio_to_ceiling = p50(group.ceiling) / figures.ns.p50;
    }
    rows.push(...of);
  };
  const kernel = (kind, at) => (kind === "kernel" ? { syscalls: [at, at], allocations: null } : {});

  const trips = [["rtt-spin", "spin", "both sides polling", "raw-flag", 1, 0], ["rtt-hybrid", "hybrid", "polling, then sleeping", "raw-flag", 1.04, 5], ["rtt-block", "block", "sleeping at once", "futex", 1, 36000]];
  for (const [id, mode, how, floor, factor, plus] of trips)
    add({ id, title: `round trip, 32 B, ${how}`, test: "rtt", mode, floor }, MECHANISMS.map(([name, kind, copied, rtt, , , version]) => [name, kind, copied, version,
      rtt === null ? null : name === "mqueue" && mode === "block" ? "mq_open: Function not implemented (os error 38)" : figures(rtt * factor + (rtt < 30000 ? plus : 0), 32, next, { set: kernel(kind, 2) })]));

  const sizes = [[32, "32"], [256, "256"], [1024, "1K"], [4096, "4K"], [65536, "64K"], [1 << 20, "1M"], [64 << 20, "64M"]];
  for (const mode of ["each", "batch"])
    for (const [size, text] of mode === "each" ? sizes : sizes.slice(0, 3))
      add({ id: `one-way-${text}-${mode}`, title: `one way, ${text.replace(/([KM])$/, " $1i")}B, ${mode === "each" ? "each published by itself" : "published in batches"}`, test: "one-way", mode, size, ceiling: "pointer", capacity: size > 1024 ? 8 << 20 : 1 << 20 },
        MECHANISMS.map(([name, kind, copied, , message, bandwidth, version]) => {
          const fixed = message === null ? null : mode === "batch" ? message * 0.85 : message;
          const result = fixed === null || (bandwidth === null && size > 8192) ? null
            : name === "zmq" && size === 64 << 20 ? "the follower was killed: memory allocation of 67108864 bytes failed"
              : figures(fixed + size / (bandwidth ?? 4), size, next, { tail: 0.02 + next() * 0.1, set: kernel(kind, 1) });
          return [name, kind, copied, version, result];
        }));

  add({ id: "wake", title: "wake-up of a sleeping receiver", test: "wake", mode: "block", size: 0, floor: "futex" },
    [["futex", "by-hand", false, null, 40000], ["region", "ramway", false, null, 40400], ["ring", "ramway", false, null, 40900], ["eventfd", "kernel", false, null, 43100], ["pipe", "kernel", true, null, 44800], ["uds", "kernel", true, null, 47000]]
      .map(([name, kind, copied, version, p50]) => [name, kind, copied, version, figures(p50, 0, next, { tail: 0.02, set: { syscalls: null, context_switches: [0, 1] } })]));
  add({ id: "paced-50us", title: "messages 50 µs apart, polling, then sleeping", test: "paced", mode: "hybrid", gap_ns: 50000, floor: "hand-ring" },
    MECHANISMS.filter(([, , , rtt]) => rtt).map(([name, kind, copied, rtt, , , version]) => [name, kind, copied, version, figures(rtt / 1.7, 32, next, { set: { ops_per_s: 20000, stalls: name === "tachyon" ? 23 : 0 } })]));
  add({ id: "idle", title: "a receiver that waits", test: "idle", mode: "hybrid" },
    [["ring", "ramway", 0.1], ["tachyon", "peer", 26], ["uds", "kernel", 0.01]].map(([name, kind, percent]) => [name, kind, true, null, figures(1e9, 0, next, { set: { cpu_percent: [0, percent] } })]));
  for (const [test, word] of [["sequential-read", "read"], ["sequential-write", "write"], ["random-read", "random"]])
    for (const [size, text] of [[100e6, "100M"], [1e9, "1G"]])
      add({ id: `access-${text}-${word}`, title: `memory access, ${text}B, ${test.replace("-", " ")}`, test, mode: "each", size, capacity: size, floor: "private" },
        ACCESS.map(([name, speed]) => [name, name.startsWith("region") ? "ramway" : "by-hand", false, null,
          name === "region-huge" && text === "1G" ? "huge pages: Unsupported: vm.nr_hugepages is 0" : figures(size / (test === "random-read" ? 300 : 11) / speed / (0.98 + next() * 0.04), size, next, { tail: 0.01 })]));

  rows.find((row) => row.id === "rtt-block/mutex-ring").figures.parts = [["lock", 900], ["condition wait", 5100], ["notify", 1100], ["copy", 12]];

  if (hostile) {
    const name = '</script><script>window.broken=1</script><img src=x onerror="window.broken=2">';
    add({ id: '"><script>window.broken=3</script>', title: `{{data}} <b>title</b> </title></table> \u2028 ' " &amp;`, test: "rtt", mode: "spin", floor: name },
      [[name, "peer", false, "<i>1</i>", figures(100, 32, next)], ["'onmouseover='window.broken=4'", "kernel", true, "<!--", figures(200, 32, next)], ["__proto__", "peer", true, "", figures(300, 32, next)], ["javascript:window.broken=5", "peer", true, "", "<svg onload=window.broken=6> --> ]]> </script>"]]);
  }
  const report = {
    schema: 1, began: 1795278660, seconds: 642.3, settings: { plan: "standard", cpus: [0, 1], realtime: false, only: [] },
    machine: {
      cpu: "A processor (family 6 model 143)", cpus: 2, pinned: [0, 1], same_core: false, kernel: "6.12.0-amd64", virtualized: true, load: 0.21,
      memory: 8 * 2 ** 30, governor: null, turbo: null, huge_pages: ["madvise", "never"], libc: "glibc 2.36", time_source: "tsc", ramway: "0.2.0", rustc: "1.88.0",
    },
    groups: groups.filter((group) => !small || FEW.includes(group.id) || group.title.includes("<b>")),
    rows: rows.filter((row) => !small || FEW.includes(row.group) || row.group.includes("<")),
    bars: [
      { what: "ring round trip, 32 B, spinning, p50", bar: "≤ 1.0 × raw-flag", measured: "1.02 ×", met: false },
      { what: "ring round trip, 32 B, spinning, p50", bar: "≤ 0.9 × tachyon", measured: "0.88 ×", met: true },
      { what: "ring one way, 32 B, each published", bar: "≥ 3 × tachyon", measured: "9.3 ×", met: true },
      { what: "ring one way, 1 MiB, zero-copy", bar: "≥ 1.3 × the best peer", measured: "1.4 ×", met: true },
      { what: "blocked receiver, messages 1 ms apart, p50", bar: "≤ 1.05 × futex", measured: "paced-1ms-block was not run", met: null },
    ],
  };
  return placed ? apart(report) : report;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [hostile, small, placed] = ["--hostile", "--small", "--placed"].map((word) => process.argv.includes(word));
  writeFileSync(process.argv.at(-1), JSON.stringify(fixture({ hostile, small, placed })));
}
