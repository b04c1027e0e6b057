// Runs the same test files in Node.js, Bun and Deno, each file in a process of its own, and counts.
//
//   node test/run.mjs [--only node,bun] [NAME...]     NAME as in test/NAME.test.mjs; none: all
//
// JOBS files run beside each other (default 2), those named NAME.alone.test.mjs by themselves. What a file prints is
// shown if one of its tests failed. CI=true: a runtime that is not there is a failure. It ends with one line that counts.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { argv, env, exit } from 'node:process';
import { fileURLToPath } from 'node:url';
import { find, ringDirectory } from './runtimes.mjs';

// Bun's own would be 5 s. What a test says of itself counts before it.
const TEST_TIMEOUT = 60_000;
const FILE_TIMEOUT = 300_000;

/** @typedef {'node' | 'bun' | 'deno'} Runtime */
/** @typedef {{ names: string[], passed: number, failed: number, skipped: number }} Counts */

// Each writes the same kind of report (JUnit), so that one reader counts all three.
/** @type {Record<Runtime, (file: string, report: string) => string[]>} */
const commands = {
  node: (file, report) => [
    ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
    ...['--test-reporter=junit', `--test-reporter-destination=${report}`, file],
  ],
  bun: (file, report) => [
    ...['test', `--timeout=${TEST_TIMEOUT}`, '--reporter=junit', `--reporter-outfile=${report}`, `./${file}`],
  ],
  deno: (file, report) => ['test', '-A', '--no-lock', `--junit-path=${report}`, file],
};

const root = fileURLToPath(new URL('..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'ramway-run-'));
const rings = ringDirectory();
/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

function clean() {
  for (const child of running) stop(child);
  rmSync(work, { recursive: true, force: true });
  rmSync(rings, { recursive: true, force: true });
}
process.on('exit', clean);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => exit(130));

/** A file and what it started are one process group. */
function stop(child) {
  try {
    if (child.pid) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

const ENTITIES = { amp: '&', apos: "'", gt: '>', lt: '<', quot: '"' };

/** What stands in an attribute; each runtime escapes as it likes. */
const unescaped = (text) =>
  text.replace(/&(?:(amp|apos|gt|lt|quot)|#(\d+)|#x([\da-f]+));/gi, (_, name, decimal, hexadecimal) =>
    name ? ENTITIES[name] : String.fromCodePoint(Number(decimal ?? `0x${hexadecimal}`)),
  );

/** @returns {Counts} */
function read(report) {
  /** @type {Counts} */
  const counts = { names: [], passed: 0, failed: 0, skipped: 0 };
  if (!existsSync(report)) return counts;
  const text = readFileSync(report, 'utf8');
  for (const [, name, empty, body] of text.matchAll(
    /<testcase\s[^>]*?\bname="([^"]*)"[^>]*?(?:(\/)>|>([\s\S]*?)<\/testcase>)/g,
  )) {
    // Some escape twice.
    counts.names.push(unescaped(unescaped(name)));
    if (!empty && /<(failure|error)[\s>]/.test(body)) counts.failed += 1;
    else if (!empty && /<skipped[\s/>]/.test(body)) counts.skipped += 1;
    else counts.passed += 1;
  }
  return counts;
}

/** @returns {Promise<Counts>} */
function runFile(runtime, program, file) {
  const report = join(work, `${runtime}-${file.replaceAll('/', '-')}.xml`);
  const began = Date.now();
  const child = spawn(program, commands[runtime](file, report), {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...env,
      RAMWAY_DIR: rings,
      NO_COLOR: '1',
      DENO_NO_UPDATE_CHECK: '1',
      // A test that starts the test runner of Node.js must not be taken for a part of this one.
      NODE_TEST_CONTEXT: undefined,
    },
  });
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    stop(child);
  }, FILE_TIMEOUT);
  return new Promise((resolve) => {
    const done = (code, signal) => {
      clearTimeout(timer);
      running.delete(child);
      // What a test left running would hold up the next one, and hold its pipe open.
      stop(child);
      const counts = read(report);
      let why = '';
      if (late) why = `stopped after ${FILE_TIMEOUT / 1000} s`;
      else if (code !== 0 && counts.failed === 0) why = signal ? `killed by ${signal}` : `exit status ${code}`;
      else if (counts.names.length === 0) why = 'no test was run';
      if (why) counts.failed += 1;
      const { passed, failed, skipped } = counts;
      const seconds = ((Date.now() - began) / 1000).toFixed(1);
      const more = (failed ? `, ${failed} failed` : '') + (skipped ? `, ${skipped} skipped` : '');
      console.log(`    ${runtime} ${file}: ${passed} passed${more} (${seconds} s)${why && `: ${why}`}`);
      if (failed) console.log(output.replace(/^/gm, '    | '));
      resolve(counts);
    };
    child.on('error', (error) => {
      output += String(error);
      done(-1, null);
    });
    child.on('exit', (code, signal) => setImmediate(done, code, signal));
  });
}

/** @type {Runtime[]} */
let runtimes = ['node', 'bun', 'deno'];
/** @type {string[]} */
const wanted = [];
for (let index = 2; index < argv.length; index += 1) {
  if (argv[index] === '--only') runtimes = /** @type {Runtime[]} */ (argv[++index].split(/[ ,]+/));
  else wanted.push(argv[index]);
}
const all = readdirSync(join(root, 'test')).filter((name) => name.endsWith('.test.mjs'));
const chosen = all.filter((name) => wanted.length === 0 || wanted.includes(name.replace(/(\.alone)?\.test\.mjs$/, '')));
if (chosen.length === 0) {
  console.error(`there is no such test; there are: ${all.join(' ')}`);
  exit(2);
}
const alone = chosen.filter((name) => name.endsWith('.alone.test.mjs'));
const beside = chosen.filter((name) => !alone.includes(name));

const total = { passed: 0, failed: 0, skipped: 0 };
/** @type {Map<string, Map<string, string[]>>} */
const namesOf = new Map();

for (const runtime of runtimes) {
  const program = find(runtime);
  const version = program && spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout?.trim().split('\n')[0];
  if (!program || !version) {
    if (env.CI === 'true') total.failed += 1;
    else total.skipped += 1;
    console.log(`${runtime}: not run, it is not here`);
    continue;
  }
  const began = Date.now();
  const sum = { passed: 0, failed: 0, skipped: 0 };
  const one = async (name) => {
    const counts = await runFile(runtime, program, `test/${name}`);
    for (const key of /** @type {const} */ (['passed', 'failed', 'skipped'])) sum[key] += counts[key];
    if (!namesOf.has(name)) namesOf.set(name, new Map());
    namesOf.get(name)?.set(runtime, counts.names);
  };
  const queue = [...beside];
  const worker = async () => {
    for (let name = queue.shift(); name; name = queue.shift()) await one(name);
  };
  await Promise.all(Array.from({ length: Number(env.JOBS) || 2 }, worker));
  for (const name of alone) await one(name);
  for (const key of /** @type {const} */ (['passed', 'failed', 'skipped'])) total[key] += sum[key];
  console.log(
    `${runtime}: ${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped ` +
      `(${version.replace(/^(node|bun|deno) ?/, '')}, ${Math.round((Date.now() - began) / 1000)} s)`,
  );
}

// A test that one of them passes over in silence would be no test of that one.
for (const [file, lists] of namesOf) {
  const everywhere = new Set([...lists.values()].flat());
  for (const [runtime, names] of lists) {
    const lacking = [...everywhere].filter((name) => !names.includes(name));
    // One whose process has ended early is counted as failed already.
    if (lacking.length === 0 || names.length === 0) continue;
    total.failed += 1;
    console.log(`${file}: ${runtime} has no ${lacking.map((name) => `"${name}"`).join(', ')}`);
  }
}

console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed ? 1 : 0;
