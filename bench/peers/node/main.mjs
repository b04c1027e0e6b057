/**
 * A worker of `ramway bench`: measures ways between two processes of Node.js. `node bench/peers/node/main.mjs MODULE
 * ENVIRONMENT`, where `peer_MODULE.mjs` has the mechanisms and `ENVIRONMENT/node_modules` the packages, with the order in
 * RAMWAY_BENCH_WORKER.
 */

import { main } from './worker.mjs';

process.exitCode = await main(process.argv.slice(2));
