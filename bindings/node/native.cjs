// Loads the native module: the one that `make build` left here, else the one of this platform's package, which npm
// chooses at installation (`optionalDependencies`). Nothing is built, downloaded or started.
'use strict';

// Every `require` is written out, so that bundlers and single-file compilers see which files there may be. Of Linux there
// are two: for the GNU C library and for musl. npm installs that of the system, and the other would not load.
const candidates = {
  'linux-x64': [
    [
      '@ramway/node-linux-x64-gnu',
      () => require('./ramway.linux-x64-gnu.node'),
      () => require('@ramway/node-linux-x64-gnu'),
    ],
    [
      '@ramway/node-linux-x64-musl',
      () => require('./ramway.linux-x64-musl.node'),
      () => require('@ramway/node-linux-x64-musl'),
    ],
  ],
  'linux-arm64': [
    [
      '@ramway/node-linux-arm64-gnu',
      () => require('./ramway.linux-arm64-gnu.node'),
      () => require('@ramway/node-linux-arm64-gnu'),
    ],
    [
      '@ramway/node-linux-arm64-musl',
      () => require('./ramway.linux-arm64-musl.node'),
      () => require('@ramway/node-linux-arm64-musl'),
    ],
  ],
  'darwin-x64': [
    [
      '@ramway/node-darwin-x64',
      () => require('./ramway.darwin-x64.node'),
      () => require('@ramway/node-darwin-x64'),
    ],
  ],
  'darwin-arm64': [
    [
      '@ramway/node-darwin-arm64',
      () => require('./ramway.darwin-arm64.node'),
      () => require('@ramway/node-darwin-arm64'),
    ],
  ],
};

function load() {
  const platform = `${process.platform}-${process.arch}`;
  if (!Object.hasOwn(candidates, platform)) {
    throw unsupported(`ramway has no native module for ${platform}: it runs on ${Object.keys(candidates).join(', ')}`);
  }
  let failure;
  for (const [name, ...places] of candidates[platform]) {
    for (const open of places) {
      try {
        return checked(name, open());
      } catch (error) {
        // One that is there and does not load says more than one that is not there.
        if (!isAbsent(error)) {
          failure ??= unsupported(`the native module of ramway, ${name}, does not load here: ${error.message}`, error);
        }
      }
    }
  }
  if (failure) throw failure;
  const names = candidates[platform].map(([name]) => name);
  throw unsupported(
    `the native module of ramway is not installed: the package ${names.join(' or ')} comes with "ramway" as an ` +
      'optional dependency. Install on the platform that runs the program, and without --omit=optional',
  );
}

// Half of an update: both packages have the same version, or the memory's layout might be read in two ways.
function checked(name, binding) {
  const { version } = require('./package.json');
  if (binding.version() !== version) {
    throw new Error(`it is version ${binding.version()}, and ramway is version ${version}: install both again`);
  }
  return binding;
}

function isAbsent(error) {
  return error.code === 'MODULE_NOT_FOUND' || error.code === 'ERR_MODULE_NOT_FOUND';
}

function unsupported(message, cause) {
  const error = new Error(message, cause && { cause });
  return Object.assign(error, { name: 'RamwayError', code: 'ERR_RAMWAY_UNSUPPORTED', kind: 'Unsupported' });
}

module.exports = load();
