// What the tests with another process share: a directory of their own, the peer, and what message number `seq` is.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Bus, Ring } from '../index.mjs';
import { execPath, programArgs } from './runtimes.mjs';

export * from './numbered.mjs';

/** No test depends on being fast: this is for what has gone wrong. */
export const LONG = 50_000;

/** @typedef {{ [key: string]: string }} Answer */

/** Another process, whose output are lines. */
export class Process {
  /** @type {string[]} */ #lines = [];
  /** @type {((line: string | undefined) => void)[]} */ #waiting = [];
  #stderr = '';

  /** @param {string} command @param {string[]} args @param {NodeJS.ProcessEnv} [env] */
  constructor(command, args, env = {}) {
    this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    /** @type {Promise<{ code: number | null, signal: string | null }>} */
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('close', (code, signal) => {
        resolve({ code, signal });
        for (const take of this.#waiting.splice(0)) take(undefined);
      });
    });
    let rest = '';
    this.child.stdout.setEncoding('utf8').on('data', (text) => {
      const lines = (rest + text).split('\n');
      rest = /** @type {string} */ (lines.pop());
      for (const line of lines) {
        const take = this.#waiting.shift();
        if (take) take(line);
        else this.#lines.push(line);
      }
    });
    this.child.stderr.setEncoding('utf8').on('data', (text) => {
      this.#stderr += text;
    });
    // It may be dead when it is told something.
    this.child.stdin.on('error', () => {});
  }

  get pid() {
    return /** @type {number} */ (this.child.pid);
  }

  /** The next line of its output. */
  async line() {
    if (this.#lines.length > 0) return /** @type {string} */ (this.#lines.shift());
    const line = await new Promise((resolve) => {
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        this.ended.then(() => resolve(this.#lines.shift()));
      else this.#waiting.push(resolve);
    });
    assert.notEqual(line, undefined, `it ended: ${this.child.exitCode ?? this.child.signalCode} ${this.#stderr}`);
    return /** @type {string} */ (line);
  }

  /** @param {string} line */
  tell(line) {
    this.child.stdin.write(`${line}\n`);
  }

  /**
   * Not child.kill, which in Deno closes the child's input first: it would end by itself. One that has just ended is fine.
   * @param {NodeJS.Signals} name
   */
  signal(name) {
    try {
      process.kill(this.pid, name);
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error;
    }
  }

  stop() {
    this.signal('SIGSTOP');
  }

  goOn() {
    this.signal('SIGCONT');
  }

  /** SIGKILL; resolves once the process is gone. */
  async kill() {
    if (this.child.exitCode === null && this.child.signalCode === null) this.signal('SIGKILL');
    await this.ended;
  }

  /** Waits for a good and silent end; gives the rest of its output. */
  async finish() {
    this.child.stdin.end();
    const { code, signal } = await this.ended;
    assert.deepEqual({ code, signal, stderr: this.#stderr }, { code: 0, signal: null, stderr: '' });
    return this.#lines.splice(0);
  }
}

/** The program in Rust: `peer/src/main.rs` says what it can be told. */
export class Peer extends Process {
  /** @param {string[]} places */
  static async start(...places) {
    const program = process.env.RAMWAY_PEER;
    assert.ok(program, 'RAMWAY_PEER names the binary ramway-node-peer: the runner sets it');
    return new Peer(program, places);
  }

  /** The next answer, `word` and its values. @returns {Promise<Answer>} */
  async answer() {
    const [, head, text] = /** @type {string[]} */ (/^(.*?)(?: text=(.*))?$/.exec(await this.line()));
    const [word, ...pairs] = head.split(' ');
    return {
      word,
      ...Object.fromEntries(pairs.map((pair) => pair.split('='))),
      ...(text === undefined ? {} : { text }),
    };
  }

  /** It has its places. */
  async ready() {
    await this.said('ready');
    return this;
  }

  /** @param {string} command */
  ask(command) {
    this.tell(command);
    return this.answer();
  }

  /** The next answer has this word and these values. @param {string} word @param {{ [key: string]: string | number }} values */
  async said(word, values = {}) {
    const answer = await this.answer();
    const expected = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)]));
    assert.deepEqual({ ...answer, ...expected, word }, answer);
  }

  /** Tells it, and waits for this answer. @param {string} command @param {string} word @param {{ [key: string]: string | number }} values */
  async does(command, word, values = {}) {
    this.tell(command);
    await this.said(word, values);
  }
}

/** Another program in the same runtime. @param {string} file beside this one @param {string[]} args */
export function program(file, ...args) {
  return new Process(execPath, [...programArgs, fileURLToPath(new URL(file, import.meta.url)), ...args]);
}

/**
 * @typedef {object} Scene
 * @property {(name: string) => string} path of a ring, a listener, … of this test
 * @property {<T>(thing: T) => T} own is closed or killed when the test ends
 * @property {(...places: string[]) => Promise<Peer>} peer ready to be told something
 */

/** A test with a directory and other processes. @param {string} name @param {(scene: Scene) => Promise<void>} body */
export function scene(name, body, options = {}) {
  test(name, { timeout: LONG, ...options }, async () => {
    const directory = mkdtempSync('/dev/shm/ramway-test-');
    /** @type {any[]} */ const owned = [];
    const own = (/** @type {any} */ thing) => {
      owned.push(thing);
      return thing;
    };
    try {
      await body({
        path: (name) => `${directory}/${name}`,
        own,
        peer: async (...places) => own(await Peer.start(...places)).ready(),
      });
    } finally {
      for (const thing of owned.reverse()) {
        if (thing instanceof Process) await thing.kill();
        else if (thing instanceof Promise) await thing.then(close, () => {});
        else close(thing);
      }
      rmSync(directory, { recursive: true, force: true });
    }
  });
}

/** @param {any} thing */
function close(thing) {
  thing?.close?.();
}

/** Fits `assert.throws` and `assert.rejects`. @param {string} kind without ERR_RAMWAY_ */
export const code = (kind) => (/** @type {any} */ error) => {
  assert.equal(error?.code, `ERR_RAMWAY_${kind}`, error?.stack ?? String(error));
  return true;
};

/** @param {number} ms */
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** One turn of the loop. */
export const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Waits until it holds. @param {string} what @param {() => unknown} holds */
export async function eventually(what, holds) {
  const deadline = performance.now() + LONG / 2;
  while (!(await holds())) {
    assert.ok(performance.now() < deadline, `this never came: ${what}`);
    await sleep(2);
  }
}

/** Whether a promise is settled by now. @param {Promise<unknown>} promise */
export async function settled(promise) {
  const mark = {};
  return (await Promise.race([promise.catch(() => {}), turn().then(() => mark)])) !== mark;
}

/**
 * Both ends of a ring without a name.
 * @param {Scene['own']} own
 * @returns {[import('../index.mjs').Sender, import('../index.mjs').Receiver]}
 */
export function pair(own, capacity = 4096) {
  const [tx, rx] = Ring.pair(capacity);
  return [own(tx), own(rx)];
}

/**
 * A bus: here the connector, its peer the listener.
 * @param {Scene} scene
 * @returns {Promise<[import('../index.mjs').Bus, Peer]>}
 */
export async function connected({ path, own }, capacity = 65_536, align = 16) {
  const peer = own(await Peer.start(`capacity=${capacity}`, `align=${align}`, `listen=${path('bus')}`));
  const bus = own(await Bus.connect(path('bus'), { timeout: LONG }));
  return [bus, await peer.ready()];
}

/**
 * A ring of which the peer is the producer.
 * @param {Scene} scene @param {import('../index.mjs').RingOptions} [options]
 * @returns {Promise<[import('../index.mjs').Receiver, Peer]>}
 */
export async function fromPeer({ path, own, peer }, options) {
  const rx = own(await Ring.create(path('ring'), options).receiver());
  return [rx, await peer(`out=${path('ring')}`)];
}

/**
 * A ring of which the peer is the consumer.
 * @param {Scene} scene @param {import('../index.mjs').RingOptions} [options]
 * @returns {Promise<[import('../index.mjs').Sender, Peer]>}
 */
export async function toPeer({ path, own, peer }, options) {
  const tx = own(await Ring.create(path('ring'), options).sender());
  return [tx, await peer(`in=${path('ring')}`)];
}
