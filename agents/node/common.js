// Flags, events, errors: what all commands share.

import { writeSync } from 'node:fs';
import { parseArgs } from 'node:util';

export const COMMANDS = ['produce', 'consume', 'echo', 'ping', 'die', 'read', 'show', 'tensors', 'flood', 'drain'];

/** Wrong flags. */
export class UsageError extends Error {}

/** A message did not arrive as it was sent. */
export class BadMessage extends Error {
  constructor(seq, text) {
    super(text);
    this.seq = seq;
  }
}

/** What a program ends with that is no error of the library's: a call that never waits gave nothing. */
export class Ending extends Error {
  constructor(kind) {
    super(kind);
    this.kind = kind;
  }
}

const NUMBERS = {
  cpu: undefined,
  start: undefined,
  count: undefined,
  until: undefined,
  batch: undefined,
  linger: undefined,
  poll: undefined,
  capacity: 65536,
  align: 16,
  timeout: 20000,
  size: 0,
  endings: 1,
  pace: 0,
  work: 0,
  group: 1,
};
const CHOICES = {
  create: ['no', 'yes'],
  resume: ['no', 'yes'],
  progress: ['no', 'yes'],
  oversize: ['no', 'yes'],
  pause: ['no', 'yes'],
  check: ['yes', 'no'],
  wait: ['hybrid', 'block', 'spin'],
  how: [undefined, 'send', 'reserve', 'try', 'recv', 'batch', 'into'],
  role: [undefined, 'producer', 'consumer'],
};
const TEXTS = ['ring', 'back', 'listen', 'connect', 'region', 'sizes'];

function number(flag, text) {
  if (!/^\d+$/.test(text)) throw new UsageError(`--${flag} ${text} is no number`);
  return Number(text);
}

/** The flags, each by its name, and:
 * `limit`: --timeout as the library takes it, and `each` what a call gets, which --poll makes shorter; `patient`: whether
 * neither was said;
 * `sync`: whether to call the sync twins. Who spins has a thread to itself: that is what they are for. Everybody else
 * is on the event loop. RAMWAY_CONFORMANCE_CALLS=sync or async says so for all. */
export function parse(argv) {
  const [command, ...rest] = argv;
  if (!COMMANDS.includes(command)) throw new UsageError(`a command is one of ${COMMANDS.join(', ')}`);
  const options = {};
  for (const flag of [...TEXTS, ...Object.keys(NUMBERS), ...Object.keys(CHOICES)]) options[flag] = { type: 'string' };
  let given;
  try {
    given = parseArgs({ args: rest, options, strict: true }).values;
  } catch (cause) {
    throw new UsageError(cause.message);
  }
  const args = { command };
  for (const flag of TEXTS) args[flag] = given[flag];
  for (const [flag, fallback] of Object.entries(NUMBERS)) {
    args[flag] = given[flag] === undefined ? fallback : number(flag, given[flag]);
  }
  for (const [flag, values] of Object.entries(CHOICES)) {
    args[flag] = given[flag] ?? values[0];
    if (!values.includes(args[flag])) throw new UsageError(`--${flag} ${args[flag]}`);
  }
  const { sizes = 'mixed' } = given;
  args.sizes = sizes === 'mixed' || sizes === 'ramp' ? sizes : number('sizes', sizes);
  args.limit = args.timeout === 0 ? undefined : args.timeout;
  args.each = args.poll === undefined ? args.limit : args.poll / 1000;
  args.patient = given.timeout === undefined && args.poll === undefined;
  const calls = process.env.RAMWAY_CONFORMANCE_CALLS ?? (args.wait === 'spin' ? 'sync' : 'async');
  args.sync = calls === 'sync';
  return args;
}

/** One event, written at once. */
export function say(line) {
  const bytes = Buffer.from(`${line}\n`);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (cause) {
      // A runtime may have made the pipe one that does not wait.
      if (cause.code !== 'EAGAIN') throw cause;
    }
  }
}

const KINDS = [
  'NotFound',
  'AlreadyExists',
  'InvalidArgument',
  'Busy',
  'Full',
  'Empty',
  'TooLarge',
  'TimedOut',
  'Closed',
  'Detached',
  'PeerDead',
  'Corrupt',
  'AbiMismatch',
  'PermissionDenied',
  'NoSpace',
  'Interrupted',
  'Unsupported',
  'Os',
];

/** ABI.md's name and number of an error; anything that has none is thrown on. */
export function named(error) {
  const at = KINDS.indexOf(error?.kind);
  if (at < 0) throw error;
  return `name=${error.kind} number=${at + 1}`;
}

/** --poll: makes a call that waits again and again, until it gives something other than a time-out, or --timeout is up. */
export async function polling(args, call) {
  for (const began = performance.now(); ; ) {
    try {
      return await call();
    } catch (error) {
      const over = args.limit !== undefined && performance.now() - began >= args.limit;
      if (error?.kind !== 'TimedOut' || over) throw error;
    }
  }
}

/** Whether another side may follow. */
export function isEnding(error) {
  return error?.kind === 'Closed' || error?.kind === 'PeerDead';
}

const waiting = new Int32Array(new SharedArrayBuffer(4));

/** Sleeps for so many microseconds without an event loop: what timers round up to milliseconds. */
export function sleep(us) {
  Atomics.wait(waiting, 0, 0, us / 1000);
}

export const msSince = (began) => Math.floor(performance.now() - began);

const input = { text: '', ended: false, used: false };

/** The next line of standard input, undefined once that has ended. Reads no further: Deno does not end while it reads. */
export function readLine() {
  const { stdin } = process;
  input.used = true;
  return new Promise((resolve) => {
    const look = () => {
      const at = input.text.indexOf('\n');
      if (at < 0 && !input.ended) return;
      stdin.off('data', more).off('end', end).pause();
      resolve(at < 0 ? undefined : input.text.slice(0, at));
      input.text = input.text.slice(at + 1);
    };
    const more = (chunk) => {
      input.text += chunk;
      look();
    };
    const end = () => {
      input.ended = true;
      look();
    };
    stdin.on('data', more).on('end', end).resume();
    look();
  });
}

/** Lets the program end, whatever standard input does. */
export function leaveInput() {
  if (input.used) process.stdin.destroy();
}

/** --linger: that long, or until a line arrives or standard input ends. */
export async function linger(args) {
  if (args.linger === undefined) return;
  let timer;
  const time = new Promise((resolve) => {
    timer = setTimeout(resolve, args.linger);
  });
  await Promise.race([time, readLine()]);
  clearTimeout(timer);
}

/** --pause: until the runner says so. */
export async function pause(args) {
  if (args.pause === 'yes') await readLine();
}

/** Waits until the other side's epoch is not `noted` any more; false if it stays so for --timeout. */
export async function awaitSuccessor(args, end, noted) {
  const began = performance.now();
  while (end.peerEpoch === noted) {
    if (args.timeout && performance.now() - began >= args.timeout) return false;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return true;
}
