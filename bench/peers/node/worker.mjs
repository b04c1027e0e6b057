/**
 * The two processes of a pair: what each does from its beginning to its end.
 *
 * @typedef {import('./ends.mjs').Burst} Burst
 * @typedef {import('./side.mjs').Order} Order
 * @typedef {object} Measured Two sides that are ready.
 * @property {(number | undefined)[]} pids The leading one's process, the following one's.
 * @property {(burst: Burst) => Promise<object>} burst Does it; gives the outcome.
 * @property {() => Promise<void>} stop Ends both in an orderly way.
 */

import { spawn } from 'node:child_process';
import { on, once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { answer, outcome, VARIABLE, VERSION, why } from './protocol.mjs';
import { find, mechanisms, Side, ThreadedSide } from './side.mjs';
import { forgetPeak, settle, Usage } from './usage.mjs';

/** Milliseconds that a pair works before it counts: until then functions are compiled that it goes through. */
const WARM_UP = 600;

/** @param {Order} order */
async function sideOf(order) {
  const threaded = (await find(order)).threaded?.(order.burst) ?? false;
  return threaded ? new ThreadedSide() : new Side();
}

/**
 * The leading process's side, and the following process.
 * @param {Order} order
 * @returns {Promise<Measured>}
 */
async function pair(order) {
  // Before anything is opened: threads that the mechanism starts stay where their process is.
  settle(order.setup.cpus[0], order.setup.realtime);
  const side = await sideOf(order);
  await side.open(order);
  const follower = spawn(process.execPath, [fileURLToPath(new URL('./main.mjs', import.meta.url))], {
    env: { ...process.env, [VARIABLE]: JSON.stringify({ follow: { ...order, leads: false } }) },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  let ending = false;
  follower.once('exit', () => {
    if (!ending) {
      // It says itself why, on standard error. The leading side may wait for what nobody will ever send.
      answer({ failed: 'the second process died' });
      process.stdout.once('drain', () => process.exit(1));
      setTimeout(() => process.exit(1), 100);
    }
  });
  /** @type {((words: any) => void)[]} */
  const waiting = [];
  /** @type {any[]} */
  const said = [];
  follower.on('message', (words) => (waiting.length > 0 ? waiting.shift()?.(words) : said.push(words)));
  const heard = async () => {
    const words = said.length > 0 ? said.shift() : await new Promise((resolve) => waiting.push(resolve));
    if (words.failed !== undefined) {
      throw new Error(words.failed);
    }
    return words;
  };
  await heard();
  await Promise.all([side.finish(), heard()]);
  return {
    pids: [process.pid, follower.pid],
    async burst(burst) {
      await side.prepare(burst);
      forgetPeak();
      follower.send({ burst });
      await heard();
      const usage = new Usage();
      const ran = await side.run();
      const used = usage.end();
      const other = await heard();
      const elapsed = Math.max(ran.ended, other.ended) - ran.began;
      return outcome(elapsed, burst.count, ran.samples.concat(other.samples), used, other.used);
    },
    async stop() {
      ending = true;
      const ended = once(follower, 'exit');
      follower.send({ quit: null });
      await side.close();
      const [status] = await ended;
      if (status !== 0) {
        throw new Error(`the second process ended with ${status}`);
      }
    },
  };
}

/**
 * The whole of the following process.
 * @param {Order} order
 */
async function follow(order) {
  const say = (/** @type {any} */ words) =>
    new Promise((resolve) => /** @type {NonNullable<typeof process.send>} */ (process.send)(words, resolve));
  const orders = on(process, 'message');
  let quit = false;
  // Nobody is left to work for.
  process.once('disconnect', () => process.exit(quit ? 0 : 1));
  try {
    settle(order.setup.cpus[1], order.setup.realtime);
    const side = await sideOf(order);
    await side.open(order);
    await say({ opened: null });
    await side.finish();
    await say({ ready: null });
    for await (const [told] of orders) {
      if ('quit' in told) {
        break;
      }
      await side.prepare(told.burst);
      forgetPeak();
      await say({ ready: null });
      const usage = new Usage();
      const { samples, ended } = await side.run();
      await say({ samples, ended, used: usage.end() });
    }
    quit = true;
    await side.close();
    process.disconnect();
  } catch (cause) {
    await say({ failed: why(cause) });
    throw cause;
  }
}

/**
 * The whole of the leading process.
 * @param {string} module
 * @param {string} environment
 * @param {any} told
 */
async function lead(module, environment, told) {
  if (told.protocol !== VERSION) {
    throw new Error(`speaks version ${VERSION} of the protocol, not ${told.protocol}`);
  }
  const { mechanism: name, setup, burst } = told;
  /** @type {Order} */
  const order = { module, environment, name, setup, burst, leads: true };
  const mechanism = await find(order);
  if (!mechanism.can(burst)) {
    answer({ cannot: null });
    return;
  }
  const measured = await (mechanism.pair?.(setup, burst) ?? pair(order));
  const until = Date.now() + WARM_UP;
  do {
    await measured.burst(burst);
  } while (Date.now() < until);
  answer({ ready: { pids: measured.pids } });
  for await (const line of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line);
    if ('quit' in asked) {
      break;
    }
    answer({ outcome: await measured.burst(asked.burst) });
  }
  await measured.stop();
}

/**
 * Gives the exit status.
 * @param {string[]} programArguments
 */
export async function main([module, environment]) {
  const order = JSON.parse(process.env[VARIABLE] ?? '{}');
  try {
    if ('follow' in order) {
      await follow(order.follow);
    } else if (module === undefined || environment === undefined) {
      process.stderr.write('a worker of `ramway bench`, which starts it\n');
      return 2;
    } else if ('list' in order) {
      answer((await mechanisms(module, environment)).map((mechanism) => mechanism.about()));
    } else {
      await lead(module, environment, order.lead);
    }
  } catch (cause) {
    if ('lead' in order) {
      answer({ failed: why(cause) });
    }
    process.stderr.write(`${cause instanceof Error ? cause.stack : cause}\n`);
    return 1;
  }
  return 0;
}
