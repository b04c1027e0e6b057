// What npm gets, as npm gets it.
//
//   node test/package.mjs lint         publint and attw on the package
//   node test/package.mjs test         packs, installs in an empty directory without a network, and runs README.md there
//   node test/package.mjs dist [DIR]   the tarballs, into dist-npm (DIST_NPM); DIR has the native modules instead of this
//                                      directory. Those of other platforms go into others/ there.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { argv, env, exit } from 'node:process';
import { fileURLToPath } from 'node:url';
import { find, ringDirectory } from './runtimes.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const tool = (name) => join(root, 'node_modules', '.bin', name);
const work = mkdtempSync(join(tmpdir(), 'ramway-package-'));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const LICENSES = ['LICENSE-APACHE', 'LICENSE-MIT'];
const WAIT_MAX = 60_000;
/** This system's C library, as npm calls it. */
const libc = /** @type {any} */ (process.report.getReport()).header.glibcVersionRuntime ? 'glibc' : 'musl';
/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(work, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => exit(130));

const npm = (directory, ...args) =>
  execFileSync('npm', args, { cwd: directory, encoding: 'utf8', env: { ...env, npm_config_loglevel: 'error' } });

/** `npm pack`, and where the tarball is. */
function pack(directory) {
  const [{ filename }] = JSON.parse(npm(directory, 'pack', '--json', '--ignore-scripts', '--pack-destination', work));
  return join(work, filename);
}

/**
 * The tarballs: of the package, and of the platforms whose native module is in `binaries`.
 * @returns {{ main: string, platforms: { tarball: string, here: boolean }[] }}
 */
function build(binaries) {
  const main = join(mkdtempSync(join(work, 'build-')), 'main');
  mkdirSync(main);
  const files = [...manifest.files, 'README.md'];
  for (const file of files) cpSync(join(root, file), join(main, file), { recursive: true, dereference: true });
  copyFileSync(join(root, 'package.json'), join(main, 'package.json'));

  // napi-rs names the packages of the platforms, and says for which system, processor and C library each is.
  execFileSync(tool('napi'), ['create-npm-dirs'], { cwd: main, stdio: 'pipe' });
  const npmDirectory = join(main, '..', 'npm');
  renameSync(join(main, 'npm'), npmDirectory);
  const platforms = [];
  /** @type {Record<string, string>} */
  const optionalDependencies = {};
  for (const name of readdirSync(npmDirectory)) {
    const directory = join(npmDirectory, name);
    const platform = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
    if (!existsSync(join(binaries, platform.main))) continue;
    // Of those that nobody publishes (macOS) nothing is said: yarn refuses what it cannot find, also where it is optional.
    optionalDependencies[platform.name] = platform.version;
    copyFileSync(join(binaries, platform.main), join(directory, platform.main));
    for (const file of LICENSES) copyFileSync(join(root, file), join(directory, file));
    writeFileSync(
      join(directory, 'package.json'),
      JSON.stringify({ ...platform, files: [...platform.files, ...LICENSES] }, null, 2),
    );
    const here =
      platform.os.includes(process.platform) &&
      platform.cpu.includes(process.arch) &&
      (platform.libc ?? [libc]).includes(libc);
    platforms.push({ tarball: pack(directory), here });
  }

  // They are named where they matter, not in the repository, whose lock file would want them from the registry.
  const { devDependencies, napi, ...published } = manifest;
  writeFileSync(join(main, 'package.json'), JSON.stringify({ ...published, optionalDependencies }, null, 2));
  return { main: pack(main), platforms };
}

function lint() {
  const { main } = build(root);
  const fails = [
    [tool('publint'), 'run', main, '--strict'],
    [tool('attw'), main, '--no-emoji'],
  ].filter(([program, ...args]) => spawnSync(program, args, { stdio: 'inherit' }).status !== 0);
  return fails.length === 0;
}

let passed = 0;
let failed = 0;
let skipped = 0;

/** @param {string} name @param {() => unknown} body */
async function test(name, body) {
  try {
    await body();
    passed += 1;
  } catch (error) {
    failed += 1;
    const text = error instanceof Error ? error.message : String(error);
    console.log(`    ${name}: failed\n${text.replace(/^/gm, '    | ')}`);
  }
}

/** Runs a program to its end: what it printed. */
function run(program, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: WAIT_MAX, ...options });
    running.add(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', reject);
    child.on('close', (code, signal) => {
      running.delete(child);
      if (code === 0) resolve(output);
      else reject(new Error(`${args.join(' ')}: ${signal ?? `exit status ${code}`}\n${output}`));
    });
  });
}

/** The programs of README.md: each says its name in its first line. */
function programs() {
  const blocks = readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^```js\n\/\/ (\S+)\.mjs\n([\s\S]*?)^```$/gm);
  return new Map([...blocks].map(([, name, text]) => [name, text]));
}

// Those that talk to each other; any other is run by itself.
const together = [
  ['producer', 'consumer'],
  ['server', 'client'],
];

/** The same program as CommonJS. */
function asCommonJs(text) {
  const imports = [];
  const rest = text.replace(/^import (.*) from ('.*');\n/gm, (_, names, from) => {
    imports.push(`const ${names.replaceAll(' as ', ': ')} = require(${from});\n`);
    return '';
  });
  return `${imports.join('')}(async () => {\n${rest.replace('new URL(import.meta.url)', '__filename')}})();\n`;
}

/** What a program is told that cannot have the native module. */
const REPORT = "try { require('ramway'); } catch (error) { console.log(error.code, error.message); }\n";
/** Both entry points, one state. */
const ONE_STATE = `
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import * as ramway from 'ramway';
const required = createRequire(import.meta.url)('ramway');
assert.deepEqual(Object.keys(ramway).filter((name) => name !== 'default').sort(), Object.keys(required).sort());
for (const name of Object.keys(required)) assert.equal(ramway[name], required[name], name);
assert.equal(ramway.version, createRequire(import.meta.url)('ramway/package.json').version);
`;

/** The first commands of README.md, with the tarballs in a directory of their own. */
async function fromAClone() {
  const [, text] = /^```sh\n([\s\S]*?)^```$/m.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? [];
  const lines = (text ?? '').split('\n').map((line) => line.replace(/ *#.*/, '').trim());
  const commands = lines.filter((line) => line !== '');
  if (commands.length !== 2) throw new Error(`README.md begins with ${commands.length} commands`);
  const out = join(work, 'dist-npm');
  const place = '/path/to/ramway/bindings/node/dist-npm';
  if (!commands[1].includes(place)) throw new Error(`${commands[1]} does not name ${place}`);
  const project = join(work, 'project');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "name": "project", "private": true }\n');
  const offline = { npm_config_offline: 'true', npm_config_cache: join(work, 'cache'), npm_config_audit: 'false' };
  const shell = (/** @type {string} */ command, /** @type {string} */ cwd) =>
    run('sh', ['-c', command], { cwd, timeout: 10 * WAIT_MAX, env: { ...env, ...offline, DIST_NPM: out } });
  await shell(commands[0], join(root, '..', '..'));
  await shell(commands[1].replace(place, out), project);
  await run(process.execPath, ['-e', "require('ramway').Ring.pair(4096)[0].close()"], { cwd: project });
}

/** `npm install dist-npm/*.tgz` after a `make dist`. @param {(directory: string, ...tarballs: string[]) => void} fresh */
function otherPlatforms(fresh) {
  const binaries = mkdtempSync(join(work, 'binaries-'));
  const [own] = readdirSync(root).filter((name) => name.endsWith('.node'));
  for (const platform of ['linux-x64-gnu', 'linux-arm64-gnu', 'linux-x64-musl', 'linux-arm64-musl']) {
    copyFileSync(join(root, own), join(binaries, `ramway.${platform}.node`));
  }
  const out = join(work, 'dist-of-all');
  dist(binaries, out);
  const here = readdirSync(out).filter((name) => name.endsWith('.tgz'));
  const others = readdirSync(join(out, 'others'));
  if (here.length !== 2 || others.length !== 3) throw new Error(`here ${here}, others ${others}`);
  fresh(join(work, 'of-all'), ...here.map((name) => join(out, name)));
}

async function testInstalled() {
  const { main, platforms } = build(root);
  const site = join(work, 'site');
  const fresh = (directory, ...tarballs) => {
    mkdirSync(directory);
    writeFileSync(join(directory, 'package.json'), '{ "name": "site", "private": true }\n');
    // No network and an empty cache: all that is needed is in the two tarballs.
    npm(
      directory,
      'install',
      '--offline',
      `--cache=${join(work, 'cache')}`,
      '--ignore-scripts',
      '--no-audit',
      ...tarballs,
    );
  };
  const tarballs = platforms.filter(({ here }) => here).map(({ tarball }) => tarball);
  await test('install', () => fresh(site, main, ...tarballs));
  await test("README.md's lines for a clone", fromAClone);
  await test('what is there for other platforms does not disturb', () => otherPlatforms(fresh));
  const lonely = join(work, 'lonely');
  await test('install without the package of the platform', () => fresh(lonely, main));

  const texts = programs();
  const spawning = new Set([...texts].filter(([, text]) => text.includes('node:child_process')).map(([name]) => name));
  for (const [name, text] of texts) {
    writeFileSync(join(site, `${name}.mjs`), text);
    writeFileSync(join(site, `${name}.cjs`), asCommonJs(text));
  }
  writeFileSync(join(site, 'one-state.mjs'), ONE_STATE);
  for (const directory of [site, lonely]) writeFileSync(join(directory, 'report.cjs'), REPORT);
  const machine = join(site, 'other-machine.cjs');
  writeFileSync(machine, `Object.defineProperty(process, 'arch', { value: 'riscv64' });\n${REPORT}`);

  const alone = [...texts.keys()].filter((name) => !together.flat().includes(name)).map((name) => [name]);
  for (const runtime of /** @type {const} */ (['node', 'bun', 'deno'])) {
    const program = find(runtime);
    if (!program) {
      if (env.CI === 'true') failed += 1;
      else skipped += 1;
      console.log(`    ${runtime}: not run, it is not here`);
      continue;
    }
    const before = [passed, failed];
    const args =
      runtime === 'deno' ? ['run', '--allow-ffi', '--allow-read', '--no-prompt', '--no-lock', '--quiet'] : [];
    // Starting a child is a permission of its own.
    const starting = runtime === 'deno' ? ['--allow-run', '--allow-env'] : [];
    const start = (directory, file, more = {}) =>
      run(program, [...args, ...(spawning.has(file.slice(0, -4)) ? starting : []), file], {
        cwd: directory,
        env: { ...env, DENO_NO_UPDATE_CHECK: '1', NO_COLOR: '1', ...more },
      });
    for (const kind of ['mjs', 'cjs']) {
      for (const names of [...together, ...alone]) {
        const rings = ringDirectory();
        await test(`README.md's ${names.join(' and ')} (${kind}) in ${runtime}`, () =>
          Promise.all(names.map((name) => start(site, `${name}.${kind}`, { RAMWAY_DIR: rings }))));
        rmSync(rings, { recursive: true, force: true });
      }
    }
    await test(`one state in ${runtime}`, () => start(site, 'one-state.mjs'));
    /** @type {[string, string, string, RegExp][]} */
    const refused = [
      [
        'on another machine',
        site,
        'other-machine.cjs',
        /^ERR_RAMWAY_UNSUPPORTED .* no native module for linux-riscv64/,
      ],
      ['without its native module', lonely, 'report.cjs', /^ERR_RAMWAY_UNSUPPORTED .* not installed: .*@ramway\/node-/],
    ];
    for (const [what, directory, file, said] of refused) {
      await test(`${what} in ${runtime}`, async () => {
        const printed = await start(directory, file);
        if (!said.test(printed)) throw new Error(`it says: ${printed}`);
      });
    }
    console.log(`    ${runtime}: ${passed - before[0]} passed, ${failed - before[1]} failed`);
  }
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0;
}

/** What `npm install OUT/*.tgz` is to find lies in `out` itself: npm refuses a package of another platform. */
function dist(binaries, out) {
  rmSync(out, { recursive: true, force: true });
  const { main, platforms } = build(binaries);
  for (const { tarball, here } of [{ tarball: main, here: true }, ...platforms]) {
    const directory = here ? out : join(out, 'others');
    mkdirSync(directory, { recursive: true });
    copyFileSync(tarball, join(directory, basename(tarball)));
  }
  return platforms.length > 0;
}

const out = env.DIST_NPM ?? join(root, 'dist-npm');
const commands = { lint, test: testInstalled, dist: () => dist(argv[3] ?? root, out) };
const command = commands[/** @type {keyof typeof commands} */ (argv[2])];
if (!command) {
  console.error('node test/package.mjs lint|test|dist');
  exit(2);
}
process.exitCode = (await command()) ? 0 : 1;
