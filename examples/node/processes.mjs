// Other processes for the tests: real ones, which never outlive their test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** No test depends on being fast: this is for what has gone wrong, in milliseconds. */
export const LONG = 60_000;

/** Where a program of the Rust examples is; the Makefile builds them and says so. */
export const rust = (/** @type {string} */ name) =>
  join(process.env.RAMWAY_EXAMPLES_RUST ?? '../../target/release', name);

/**
 * A directory for one test's rings, removed at the test's end.
 * @param {import('node:test').TestContext} t
 */
export function place(t) {
  const directory = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'ramway-examples-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/**
 * Waits until `condition` gives something that is true, and gives that.
 * @param {string | (() => string)} what is waited for, in the words of the failure
 */
export async function until(what, condition, timeout = LONG) {
  for (const end = Date.now() + timeout; ; await sleep(20)) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < end, `waited ${timeout / 1000} s: ${typeof what === 'function' ? what() : what}`);
  }
}

export class Program {
  /** Every line of standard output so far. @type {string[]} */
  lines = [];
  /** Standard error so far. */
  complaints = '';

  /**
   * @param {import('node:test').TestContext} t kills it at the end, if it still runs
   * @param {string[]} command
   * @param {Record<string, string>} environment in addition to this process's
   * @param {string} [directory] where it runs
   * @param {'ignore' | 'pipe'} stdin what its standard input is: at its end at once, or open until the test ends it
   */
  constructor(t, command, environment, directory, stdin = 'ignore') {
    const [file, ...args] = command;
    this.name = command.join(' ');
    const env = { ...process.env, ...environment };
    this.child = spawn(file, args, { env, cwd: directory, stdio: [stdin, 'pipe', 'pipe'] });
    this.ended = once(this.child, 'close').then(([code, signal]) => signal ?? code);
    const { stdout, stderr } = this.child;
    assert.ok(stdout && stderr);
    createInterface({ input: stdout }).on('line', (line) => this.lines.push(line));
    stderr.setEncoding('utf8').on('data', (text) => (this.complaints += text));
    t.after(() => this.kill());
  }

  /** The first line that matches, from index `from` on, now or later. */
  line(/** @type {RegExp} */ pattern, from = 0) {
    const found = () =>
      this.lines
        .slice(from)
        .map((line) => pattern.exec(line))
        .find((match) => match !== null);
    const said = () =>
      `${this.name} to say ${pattern}, it said ${this.lines.slice(-20).join('\n')}\n${this.complaints}`;
    return until(said, () => {
      const match = found();
      assert.ok(match || this.running, `${this.name} has ended: ${this.complaints}`);
      return match;
    });
  }

  get running() {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** SIGKILL, and gone when this resolves. */
  kill() {
    return this.stop('SIGKILL');
  }

  /** A signal, and then the exit code or the signal that ended it. */
  stop(/** @type {NodeJS.Signals} */ signal) {
    if (this.running) this.child.kill(signal);
    return this.ended;
  }
}
