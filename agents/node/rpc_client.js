// A client of RPC: its commands.

import { crc32 } from 'node:zlib';

import { CallError, methodId, RpcClient } from 'ramway';

import { BadMessage, msSince, named, Refused, say } from './line.js';
import { measureCalls } from './measure.js';
import { Messages } from './messages.js';
import { pattern, read, SUM, words } from './rpc_server.js';
import { OPEN_TIMEOUT } from './topic.js';

/** How many calls had which outcome. */
class Tally {
  #began = performance.now();
  #names = new Map();
  cancelled = 0;
  bytes = 0;
  #mayHaveRun = 0;

  add(name) {
    this.#names.set(name, (this.#names.get(name) ?? 0) + 1);
  }

  failed(error) {
    this.add(error.status ?? error.kind);
    if (error.mayHaveRun) this.#mayHaveRun++;
  }

  /** `called` and `streamed`. */
  say(begin) {
    const names = [...this.#names].map(([name, count]) => ` ${name}=${count}`).join('');
    const cancelled = this.cancelled > 0 ? ` cancelled=${this.cancelled}` : '';
    const rest = `may_have_run=${this.#mayHaveRun} bytes=${this.bytes} elapsed_ms=${msSince(this.#began)}`;
    say(`${begin}${names}${cancelled} ${rest}`);
  }
}

function same(seq, what, found, expected) {
  if (Buffer.compare(found, expected) === 0) return;
  throw new BadMessage(seq, `${what} of ${found.length} bytes is not the ${expected.length} bytes that were to come`);
}

function application(seq, { applicationCode, text }, code, expected) {
  if (applicationCode === code && text === expected) return;
  throw new BadMessage(seq, `error ${applicationCode} with '${text}' instead of ${code} with '${expected}'`);
}

/** What comes of a call: a reply or a `CallError`. Any other error is a mistake of the agent's. */
async function outcomeOf(call) {
  try {
    return await call;
  } catch (error) {
    if (error instanceof CallError) return error;
    throw error;
  }
}

/** Makes a call at once; where that fails, what with. */
function made(make) {
  try {
    return make();
  } catch (error) {
    if (error instanceof CallError) return error;
    throw error;
  }
}

const isTimeOut = (error) => error?.kind === 'TimedOut' && !(error instanceof CallError);

/** A row of calls. */
class Calls {
  #messages;
  #metaLength;
  #mostMs;

  constructor(line) {
    const method = line.text('method', '');
    if (!/^(sum|\d+)$/.test(method)) throw new Refused(`method=${method}`);
    this.method = method === 'sum' ? methodId(SUM) : Number(method);
    this.key = method === 'sum' ? SUM : this.method;
    this.#messages = new Messages(line.text('sizes', 'mixed'), line.number('longest', 4096));
    this.#metaLength = line.number('meta', 0);
    const deadline = line.number('deadline');
    this.timeout = deadline === undefined ? undefined : deadline / 1000;
    this.#mostMs = Math.ceil((deadline ?? 0) / 1000);
  }

  /** One call. */
  asked(seq) {
    const { method } = this;
    const payload = () => this.#messages.make(seq).data;
    let body;
    if (method === 2) body = words(seq, payload().length);
    else if (method === 3) body = Buffer.concat([words(seq + 1), Buffer.from(`call ${seq}`)]);
    else if (method === 6 || method === 7) body = undefined;
    else body = payload();
    const meta = this.#metaLength > 0 ? pattern(seq + 1, this.#metaLength) : undefined;
    return { seq, body, options: { timeout: this.timeout, meta } };
  }

  #check({ seq, body, options }, reply) {
    const echoes = this.method === 1 || this.method === 5;
    let expected = reply.body;
    if (echoes) expected = body;
    else if (this.method === 2) expected = pattern(seq, this.#messages.make(seq).data.length);
    else if (this.method === 7) {
      const [pid, left] = read(reply.body, 2);
      const most = this.#mostMs;
      if (pid !== process.pid || left > most || (left === 0) !== (most === 0)) {
        throw new BadMessage(seq, `method 7 replied process ${pid} and ${left} ms of ${most}`);
      }
    } else if (this.key === SUM) expected = words(crc32(body));
    else throw new BadMessage(seq, `method ${this.method} replied`);
    same(seq, 'a body', reply.body, expected);
    same(seq, 'metadata', reply.meta, (echoes && options.meta) || new Uint8Array());
  }

  /** Counts what came of a call, if it is as it must be. */
  count(tally, asked, outcome) {
    if (outcome instanceof CallError) {
      if (outcome.status === 'Application' && this.method === 3) {
        application(asked.seq, outcome, asked.seq + 1, `call ${asked.seq}`);
      }
      tally.failed(outcome);
      return;
    }
    this.#check(asked, outcome);
    tally.bytes += outcome.body.length;
    tally.add('Ok');
  }
}

/** A stream, what it is to bring, and how far it was read. */
class Reading {
  #seq;
  #size;
  #count;
  #code;
  #received = 0;
  stream;
  ended = false;

  constructor(seq, size, count, code) {
    [this.#seq, this.#size, this.#count, this.#code] = [seq, size, count, code];
  }

  body() {
    return words(this.#count, this.#size, this.#code, this.#seq);
  }

  /** Receives one element, and says how many that were: none where the stream has ended. */
  async next(timeout, tally) {
    let next;
    try {
      next = await this.stream.next({ timeout });
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      if (error.status === 'Application') {
        this.#whole();
        application(this.#seq, error, this.#code, `after ${this.#count}`);
      }
      this.ended = true;
      tally.failed(error);
      return 0;
    }
    if (next.done) {
      this.#whole();
      if (this.#code !== 0) throw new BadMessage(this.#seq, 'it is complete in place of an error');
      this.ended = true;
      tally.add('Ok');
      return 0;
    }
    same(this.#seq, 'an element', next.value.body, pattern(this.#seq + this.#received, this.#size));
    this.#received++;
    tally.bytes += next.value.body.length;
    return 1;
  }

  #whole() {
    if (this.#received !== this.#count) {
      throw new BadMessage(this.#seq, `${this.#received} elements instead of ${this.#count}`);
    }
  }
}

/** A client, and the calls that it keeps. */
export class Calling {
  #client;
  #kept = [];
  #streams = [];

  static async open(name, line) {
    const options = { wait: line.text('wait', 'hybrid'), timeout: line.number('timeout', OPEN_TIMEOUT) };
    const maxBuffered = line.number('max_buffered');
    line.end();
    const calling = new Calling();
    calling.#client = await RpcClient.connect(name, { ...options, maxBuffered });
    const { peerPid, maxInFlight } = calling.#client;
    say(`attached pid=${process.pid} peer_pid=${peerPid ?? 0} max_in_flight=${maxInFlight}`);
    return calling;
  }

  async close() {
    this.#client.close();
  }

  async obey(line) {
    const command = commands[line.word];
    if (command === undefined) throw new Refused(`${line.word} is no command of a client`);
    await this[command](line);
  }

  /** A call that is waited for before the next one: blocking the thread, or not, in turn. */
  #one(calls, { seq, body, options }) {
    if (seq % 2 === 1) return outcomeOf(this.#client.call(calls.key, body, options));
    return made(() => this.#client.callSync(calls.key, body, { ...options, allowMainThread: true }));
  }

  async call(line) {
    const calls = new Calls(line);
    const [count, start] = [line.number('count', 1), line.number('start', 0)];
    const [inFlight, cancel] = [line.number('in_flight', 1), line.yes('cancel')];
    line.end();
    const tally = new Tally();
    const underWay = [];
    const oldest = async ({ asked, outcome, controller }) => {
      if (controller === undefined) return calls.count(tally, asked, await outcome);
      controller.abort();
      tally.cancelled++;
    };
    let next = 0;
    for (let seq = start; seq < start + count; seq++) {
      const asked = calls.asked(seq);
      if (inFlight === 1 && !cancel) {
        calls.count(tally, asked, await this.#one(calls, asked));
        continue;
      }
      if (underWay.length - next >= inFlight) await oldest(underWay[next++]);
      const { body, options } = asked;
      if (cancel && seq % 2 === 1) {
        const controller = new AbortController();
        const { signal } = controller;
        // Aborted, it rejects with the signal's reason.
        const outcome = this.#client.call(calls.key, body, { ...options, signal }).catch(() => {});
        underWay.push({ asked, outcome, controller });
      } else {
        const pending = made(() => this.#client.start(calls.key, body, options));
        underWay.push({ asked, outcome: outcomeOf(pending instanceof CallError ? Promise.reject(pending) : pending) });
      }
    }
    while (next < underWay.length) await oldest(underWay[next++]);
    tally.say(`called count=${count}`);
  }

  async start(line) {
    const calls = new Calls(line);
    const [count, start] = [line.number('count', 1), line.number('start', 0)];
    line.end();
    for (let seq = start; seq < start + count; seq++) {
      const asked = calls.asked(seq);
      this.#kept.push({ calls, asked, pending: this.#client.start(calls.key, asked.body, asked.options) });
    }
    say(`started count=${count}`);
  }

  async collect(line) {
    const timeout = line.number('timeout', 20000);
    line.end();
    const tally = new Tally();
    let count = 0;
    for (const { calls, asked, pending } of this.#kept) {
      let outcome;
      try {
        outcome = await outcomeOf(pending.wait({ timeout }));
      } catch (error) {
        if (!isTimeOut(error)) throw error;
        this.#kept.splice(0, count);
        say(`end ${named(error)}`);
        return;
      }
      calls.count(tally, asked, outcome);
      count++;
    }
    this.#kept = [];
    tally.say(`called count=${count}`);
  }

  async stream(line) {
    const [count, size, code] = [line.number('count', 0), line.number('size', 0), line.number('code', 0)];
    const [streams, start] = [line.number('streams', 1), line.number('start', 0)];
    const [window, deadline] = [line.number('window'), line.number('deadline')];
    line.end();
    const timeout = deadline === undefined ? undefined : deadline / 1000;
    for (let seq = start; seq < start + streams; seq++) {
      const reading = new Reading(seq, size, count, code);
      reading.stream = this.#client.stream(4, reading.body(), { window, timeout });
      this.#streams.push(reading);
    }
    say(`started count=${streams}`);
  }

  async next(line) {
    const [timeout, rounds] = [line.number('timeout', 20000), line.number('count', Infinity)];
    line.end();
    const tally = new Tally();
    let received = 0;
    for (let round = 0; this.#streams.length > 0 && round < rounds; round++) {
      for (const reading of this.#streams) {
        try {
          received += await reading.next(timeout, tally);
        } catch (error) {
          if (!isTimeOut(error)) throw error;
          say(`end ${named(error)}`);
          return;
        }
      }
      this.#streams = this.#streams.filter(({ ended }) => !ended);
    }
    tally.say(`streamed received=${received}`);
  }

  async cancel(line) {
    line.end();
    for (const { pending } of this.#kept) pending.cancel();
    for (const { stream } of this.#streams) stream.cancel();
    say(`cancelled count=${this.#kept.length + this.#streams.length}`);
    this.#kept = [];
    this.#streams = [];
  }

  async health(line) {
    line.end();
    const outcome = await outcomeOf(this.#client.ping());
    say(outcome instanceof CallError ? `end ${named(outcome)}` : 'healthy');
  }

  async describe(line) {
    line.end();
    const methods = await this.#client.describe();
    const text = methods.map(({ number, name }) => (name === undefined ? number : `${number} ${name}`)).join(',');
    say(`described text=${text}`);
  }

  async state(line) {
    line.end();
    say(`state in_flight=${this.#client.inFlight}`);
  }

  async measure(line) {
    await measureCalls(this.#client, line);
  }
}

const commands = Object.fromEntries(
  ['call', 'start', 'collect', 'stream', 'next', 'cancel', 'health', 'describe', 'state', 'measure'].map((name) => [
    name,
    name,
  ]),
);
