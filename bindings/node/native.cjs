// Loads the native module: the one that `make build` left here, else the one of this platform's package, which npm
// chooses at installation (`optionalDependencies`). Nothing is built, downloaded or started.
'use strict';

// Every `require` is written out, so that bundlers and single-file compilers see which files there may be. Where a
// package manager has installed more than one C library's module, only the right one loads.
const candidates = {
  'linux-x64': [
    ['@ramway/node-linux-x64-gnu', () => require('./ramway.linux-x64-gnu.node')],
    ['@ramway/node-linux-x64-gnu', () => require('@ramway/node-linux-x64-gnu')],
    ['@ramway/node-linux-x64-musl', () => require('./ramway.linux-x64-musl.node')],
    ['@ramway/node-linux-x64-musl', () => require('@ramway/node-linux-x64-musl')],
  ],
  'linux-arm64': [
    ['@ramway/node-linux-arm64-gnu', () => require('./ramway.linux-arm64-gnu.node')],
    ['@ramway/node-linux-arm64-gnu', () => require('@ramway/node-linux-arm64-gnu')],
    ['@ramway/node-linux-arm64-musl', () => require('./ramway.linux-arm64-musl.node')],
    ['@ramway/node-linux-arm64-musl', () => require('@ramway/node-linux-arm64-musl')],
  ],
  'darwin-x64': [
    ['@ramway/node-darwin-x64', () => require('./ramway.darwin-x64.node')],
    ['@ramway/node-darwin-x64', () => require('@ramway/node-darwin-x64')],
  ],
  'darwin-arm64': [
    ['@ramway/node-darwin-arm64', () => require('./ramway.darwin-arm64.node')],
    ['@ramway/node-darwin-arm64', () => require('@ramway/node-darwin-arm64')],
  ],
};

function load() {
  const platform = `${process.platform}-${process.arch}`;
  const tried = candidates[platform];
  if (!tried) {
    throw unsupported(`ramway has no native module for ${platform}: it runs on ${Object.keys(candidates).join(', ')}`);
  }
  const failures = [];
  for (const [name, open] of tried) {
    try {
      return open();
    } catch (error) {
      // One that is there and does not load says more than one that is not there.
      if (!isAbsent(error)) failures.push(`${name}: ${error.message}`);
    }
  }
  const packages = [...new Set(tried.map(([name]) => name))];
  if (failures.length > 0) {
    throw unsupported(`the native module of ramway does not load on this ${platform}: ${failures.join('; ')}`);
  }
  throw unsupported(
    `the native module of ramway is not installed: ${packages.join(' or ')} comes with the package "ramway" as an ` +
      'optional dependency. Install without --omit=optional (--no-optional), on the platform that runs the program',
  );
}

function isAbsent(error) {
  return error.code === 'MODULE_NOT_FOUND' || error.code === 'ERR_MODULE_NOT_FOUND';
}

function unsupported(message) {
  const error = new Error(message);
  error.name = 'RamwayError';
  error.code = 'ERR_RAMWAY_UNSUPPORTED';
  error.kind = 'Unsupported';
  return error;
}

module.exports = load();
