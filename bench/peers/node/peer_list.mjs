/** No message at all: the receiver's loop over messages that it has already. What Ramway or another library takes above
 * this is the library's; the rest is JavaScript's own. */

import { beginning, messages, now, read, verify } from './ends.mjs';
import { about, outcome } from './protocol.mjs';
import { forgetPeak, settle, Usage } from './usage.mjs';

const NOTHING = { cpu_ns: 0, peak_rss: 0, shared: 0, context_switches: 0 };

/** @type {import('./ends.mjs').Mechanism} */
const list = {
  about: () => about('list-node', 'by-hand', false, "the receiver's loop over an array of Buffers: no message at all"),
  can: ({ test, smallest, size }) => test === 'one-way' && smallest === size,
  async pair(setup) {
    settle(setup.cpus[1], setup.realtime);
    return {
      pids: [process.pid],
      async burst({ size, count }) {
        const arrivals = messages(size, count);
        const check = beginning();
        forgetPeak();
        const usage = new Usage();
        const began = now();
        for (const message of arrivals) {
          read(check, message);
        }
        const ended = now();
        const used = usage.end();
        verify(check, size, count);
        return outcome(ended - began, count, [], NOTHING, used);
      },
      async stop() {},
    };
  },
};

export const mechanisms = () => [list];
