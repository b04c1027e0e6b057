/**
 * One side of a pair: an end, in this thread or in one of its own. One that polls is in a thread of its own, where it
 * holds up nothing else and a blocking call is allowed.
 *
 * @typedef {{module: string, environment: string, name: string, setup: import('./ends.mjs').Setup,
 *   burst: import('./ends.mjs').Burst, leads: boolean}} Order
 * @typedef {{samples: number[], began: number, ended: number}} Ran
 */

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { half, now } from './ends.mjs';
import { why } from './protocol.mjs';

/**
 * Those of `peer_MODULE.mjs`.
 * @param {string} module
 * @param {string} environment
 * @returns {Promise<import('./ends.mjs').Mechanism[]>}
 */
export async function mechanisms(module, environment) {
  const { mechanisms: of } = await import(`./peer_${module}.mjs`);
  return of(environment);
}

/**
 * The one of this name.
 * @param {{module: string, environment: string, name: string}} order
 */
export async function find({ module, environment, name }) {
  const found = (await mechanisms(module, environment)).find((mechanism) => mechanism.about().name === name);
  if (found === undefined) {
    throw new Error(`no mechanism here is called ${name}`);
  }
  return found;
}

/** In this thread. */
export class Side {
  /** @type {import('./ends.mjs').End} */ #end = { close() {} };
  /** @type {(() => Promise<import('./ends.mjs').End> | import('./ends.mjs').End)} */ #finish = () => this.#end;
  /** @type {ReturnType<typeof half> | undefined} */ #half;
  /** @type {boolean} */ #leads = false;

  /**
   * The first step.
   * @param {Order} order
   */
  async open(order) {
    const mechanism = await find(order);
    if (mechanism.open === undefined) {
      throw new Error(`${order.name} has a pair of its own`);
    }
    this.#leads = order.leads;
    this.#finish = await mechanism.open(order.setup, order.leads, order.burst);
  }

  /** The second one, for which the other side has to be there. */
  async finish() {
    this.#end = await this.#finish();
  }

  /** @param {import('./ends.mjs').Burst} burst */
  async prepare(burst) {
    this.#half = half(this.#end, this.#leads, burst);
  }

  /** @returns {Promise<Ran>} */
  async run() {
    if (this.#half === undefined) {
      throw new Error('nothing is prepared');
    }
    const { run, check } = this.#half;
    const began = now();
    const samples = await run();
    const ended = now();
    check();
    return { samples, began, ended };
  }

  async close() {
    await this.#end.close();
  }
}

/** In a thread of its own. */
export class ThreadedSide {
  #worker = new Worker(new URL(import.meta.url), { workerData: 'side' });

  /**
   * @param {'open' | 'finish' | 'prepare' | 'run' | 'close'} method
   * @param {unknown} [argument]
   * @returns {Promise<any>}
   */
  #call(method, argument) {
    return new Promise((resolve, reject) => {
      const done = (/** @type {{failed?: string, result?: unknown}} */ { failed, result }) => {
        this.#worker.off('error', reject);
        if (failed === undefined) {
          resolve(result);
        } else {
          reject(new Error(failed));
        }
      };
      this.#worker.once('message', done).once('error', reject);
      this.#worker.postMessage({ method, argument });
    });
  }

  /** @param {Order} order */
  open(order) {
    return this.#call('open', order);
  }

  finish() {
    return this.#call('finish');
  }

  /** @param {import('./ends.mjs').Burst} burst */
  prepare(burst) {
    return this.#call('prepare', burst);
  }

  /** @returns {Promise<Ran>} */
  run() {
    return this.#call('run');
  }

  async close() {
    await this.#call('close');
    await this.#worker.terminate();
  }
}

if (!isMainThread && workerData === 'side') {
  const side = new Side();
  parentPort?.on('message', async (/** @type {{method: keyof Side, argument: any}} */ { method, argument }) => {
    try {
      parentPort?.postMessage({ result: await side[method](argument) });
    } catch (cause) {
      parentPort?.postMessage({ failed: why(cause) });
    }
  });
}
