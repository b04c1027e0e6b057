// Where the three runtimes are, and which of them this is. `node test/runtimes.mjs bun` prints a path.
import { accessSync, constants, existsSync, mkdtempSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { arch, argv, env, exit, platform, execPath as thisProgram, versions } from 'node:process';
import { fileURLToPath } from 'node:url';

/** The runtime that runs this: 'node', 'bun' or 'deno'. */
export const runtime = versions.deno ? 'deno' : versions.bun ? 'bun' : 'node';

/** The program of this runtime. */
export const execPath = thisProgram;

/** What comes between the program and a file to run it: `spawn(execPath, [...programArgs, 'file.mjs'])`. */
export const programArgs = runtime === 'deno' ? ['run', '-A', '--no-lock', '--quiet'] : [];

// npm's packages `bun` and `deno` put the program in place by an install script. Nobody has to run it: the packages
// of the platforms, which npm chooses, hold the programs themselves.
const packaged = {
  bun: [`@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}`, 'bin/bun'],
  deno: [`@deno/${platform}-${arch}`, 'deno'],
};
const variants = platform === 'linux' ? ['', '-glibc', '-musl'] : [''];

/**
 * The path of a runtime: of npm's package, else what is on the PATH.
 * @param {'node' | 'bun' | 'deno'} name
 * @returns {string | undefined}
 */
export function find(name) {
  if (name === runtime) return thisProgram;
  if (name !== 'node') {
    const require = createRequire(import.meta.url);
    const [base, program] = packaged[name];
    for (const variant of variants) {
      try {
        return require.resolve(`${base}${variant}/${program}`);
      } catch {
        // The next one.
      }
    }
  }
  for (const directory of (env.PATH ?? '').split(delimiter)) {
    if (directory && existsSync(join(directory, name))) return join(directory, name);
  }
  return undefined;
}

/** A new directory for rings (RAMWAY_DIR): in memory, where the system has such a place. */
export function ringDirectory() {
  let base = env.RAMWAY_DIR ?? '/dev/shm';
  try {
    accessSync(base, constants.W_OK);
  } catch {
    base = tmpdir();
  }
  return mkdtempSync(join(base, 'ramway-node-'));
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const path = find(/** @type {'node'} */ (argv[2] ?? runtime));
  if (!path) exit(1);
  console.log(path);
}
