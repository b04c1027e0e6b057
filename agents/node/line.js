// Commands and events as lines, errors, and how long a call may wait.

import { writeSync } from 'node:fs';

/** A command that is not understood. */
export class Refused extends Error {}

/** A message did not arrive as it was sent. */
export class BadMessage extends Error {
  constructor(seq, text) {
    super(text);
    this.seq = seq;
  }
}

/** What a command ends with that is no error of the library's: a call that never waits gave nothing. */
export class Ending extends Error {
  constructor(kind) {
    super(kind);
    this.kind = kind;
  }
}

/** A command, `word key=value key=value ...`. What it does not take out of it is refused. */
export class Line {
  #fields;

  constructor(text) {
    const [word, ...fields] = text.split(' ');
    this.word = word;
    this.#fields = new Map(fields.map((field) => [field.split('=', 1)[0], field.slice(field.indexOf('=') + 1)]));
  }

  text(key, otherwise) {
    const value = this.#fields.get(key) ?? otherwise;
    this.#fields.delete(key);
    return value;
  }

  has(key) {
    return this.#fields.has(key);
  }

  number(key, otherwise) {
    const text = this.text(key);
    if (text === undefined) return otherwise;
    if (!/^\d+$/.test(text)) throw new Refused(`${key}=${text} is no number`);
    return Number(text);
  }

  yes(key) {
    return this.text(key) === 'yes';
  }

  /** Nothing else was said. */
  end() {
    if (this.#fields.size > 0) throw new Refused(`${this.word} does not know ${[...this.#fields.keys()]}`);
  }
}

/** `timeout` and `poll`, in milliseconds as the library takes them: `whole` a wait, `each` a call. */
export class Limits {
  constructor(line) {
    this.unlimited = !line.has('timeout') && !line.has('poll');
    const ms = line.number('timeout', 20000);
    const us = line.number('poll');
    this.whole = ms === 0 ? undefined : ms;
    this.polls = us !== undefined;
    this.each = this.polls ? us / 1000 : this.whole;
  }

  over(began) {
    return this.whole !== undefined && performance.now() - began >= this.whole;
  }

  /** Makes a call, with `poll` again and again, until it gives something other than a time-out, or the wait is over. */
  wait(call) {
    return this.polls ? this.#poll(call) : call();
  }

  async #poll(call) {
    for (const began = performance.now(); ; ) {
      try {
        return await call();
      } catch (error) {
        if (error?.kind !== 'TimedOut' || this.over(began)) throw error;
      }
    }
  }

  /** Waits until the other side's epoch is not `noted` any more; false if it stays so for too long. */
  async successor(end, noted) {
    for (const began = performance.now(); end.peerEpoch === noted; ) {
      if (this.over(began)) return false;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return true;
  }
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
  'Lagged',
];

/** How a server ends a call, from 0 on. */
const STATUSES = [
  'Ok',
  'Application',
  'NoSuchMethod',
  'TimedOut',
  'Cancelled',
  'Overloaded',
  'ReplyTooLarge',
  'Draining',
  'HandlerFailed',
];

/** ABI.md's name and number of an error, or of the status of a call; anything that has none is thrown on. */
export function named(error) {
  if (error?.status !== undefined) return `name=${error.status} number=${STATUSES.indexOf(error.status)}`;
  const at = KINDS.indexOf(error?.kind);
  if (at < 0) throw error;
  return `name=${error.kind} number=${at + 1}`;
}

export const msSince = (began) => Math.floor(performance.now() - began);

const input = { text: '', ended: false };

/** The next command, undefined once standard input has ended. Reads no further: Deno does not end while it reads. */
export function nextLine() {
  const { stdin } = process;
  return new Promise((resolve) => {
    const look = () => {
      const at = input.text.indexOf('\n');
      if (at < 0 && !input.ended) return;
      stdin.off('data', more).off('end', end).pause();
      resolve(at < 0 ? undefined : new Line(input.text.slice(0, at)));
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
