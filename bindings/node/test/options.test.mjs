// What callers pass: every mistake is refused before anything is opened, and the error says what it is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Bus, Listener, RamwayError, Region, Ring } from '../index.mjs';
import { code, scene } from './scene.mjs';

/** @typedef {[what: string, call: (options: any) => unknown, names: string[]]} Call */

const placement = ['lockMemory', 'hugePages', 'numaNode', 'prefault'];
const ring = [
  ...['capacity', 'align', 'discard', 'persistent', 'mode', 'timeout', 'allowDisk', 'wait', 'membarrier'],
  ...placement,
];
const bind = [
  ...['capacity', 'toPeer', 'fromPeer', 'align', 'mode', 'handshakeTimeout', 'backlog'],
  ...['allowUids', 'wait', 'membarrier'],
];
const region = ['persistent', 'discard', 'allowDisk', 'mode', 'wait', ...placement];
const openRegion = ['readOnly', 'timeout', 'wait', 'lockMemory', 'prefault'];
const connect = ['allowUids', 'wait', 'membarrier', 'timeout'];

/** @param {any} here @returns {Call[]} */
const calls = (here) => [
  ['Ring.create', (options) => Ring.create('x', options), ring],
  ['Ring.open', (options) => Ring.open('x', options), ring],
  ['Ring.openOrCreate', (options) => Ring.openOrCreate('x', options), ring],
  ['Ring.pair', (options) => Ring.pair(4096, options), ['align', 'wait']],
  ['Ring.sender', (options) => Ring.open(here.path('no')).sender(options), ['timeout', 'signal']],
  ['Ring.receiver', (options) => Ring.open(here.path('no')).receiver(options), ['timeout', 'signal']],
  ['Ring.senderSync', (options) => Ring.open(here.path('no')).senderSync(options), ['timeout', 'allowMainThread']],
  ['Ring.receiverSync', (options) => Ring.open(here.path('no')).receiverSync(options), ['timeout', 'allowMainThread']],
  ['Bus.connect', (options) => Bus.connect(here.path('no'), options), [...connect, 'signal']],
  ['Bus.connectSync', (options) => Bus.connectSync(here.path('no'), options), [...connect, 'allowMainThread']],
  ['Bus.listen', (options) => Bus.listen(here.path('no'), options), [...bind, 'timeout', 'signal']],
  ['Bus.listenSync', (options) => Bus.listenSync(here.path('no'), options), [...bind, 'timeout', 'allowMainThread']],
  ['Listener.bind', (options) => Listener.bind(here.path('no'), options), [...bind, 'signal']],
  ['Listener.bindSync', (options) => Listener.bindSync(here.path('no'), options), bind],
  ['Region.create', (options) => Region.create(here.path('no'), 1, options), [...region, 'signal']],
  ['Region.createSync', (options) => Region.createSync(here.path('no'), 1, options), region],
  ['Region.openOrCreate', (options) => Region.openOrCreate(here.path('no'), 1, options), [...region, 'signal']],
  ['Region.openOrCreateSync', (options) => Region.openOrCreateSync(here.path('no'), 1, options), region],
  ['Region.open', (options) => Region.open(here.path('no'), options), [...openRegion, 'signal']],
  ['Region.openSync', (options) => Region.openSync(here.path('no'), options), [...openRegion, 'allowMainThread']],
];

const flags = ['discard', 'persistent', 'allowDisk', 'membarrier', 'lockMemory', 'hugePages', 'prefault', 'readOnly'];
flags.push('allowMainThread');

/** Values that an option never has. @param {string} name @returns {unknown[]} */
function wrong(name) {
  if (flags.includes(name)) return [1, 'yes', null, {}];
  if (name === 'wait') return ['sleep', 1, null, 'Spin'];
  if (name === 'signal') return [1, {}, new AbortController()];
  if (name === 'allowUids') return [1, 'root', ['root'], [-1], [1.5], [2 ** 32], null];
  if (name === 'timeout' || name === 'handshakeTimeout') return [-1, NaN, '1', 1n, null, -Infinity];
  return [-1, 1.5, NaN, Infinity, '4096', 4096n, null, true, 2 ** 53];
}

/** What `call` fails with, thrown or rejected. @param {() => unknown} call @returns {Promise<any>} */
async function failure(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  assert.fail(`${call} did not fail`);
}

scene('a value that an option cannot have: the call, the option, what was given and what is expected', async (here) => {
  for (const [what, call, names] of calls(here)) {
    for (const name of names) {
      for (const value of wrong(name)) {
        const error = await failure(() => call({ [name]: value }));
        // Numbers that are too large, and nothing else about them.
        const large = ['capacity', 'toPeer', 'fromPeer'].includes(name) && value === 2 ** 53;
        const expected = large ? ['UNSUPPORTED', 'INVALID_ARGUMENT'] : ['INVALID_ARGUMENT'];
        const said = `${what} ${name}=${String(value)}: ${error.stack}`;
        assert.ok(error instanceof RamwayError, said);
        assert.ok(expected.includes(error.code.slice('ERR_RAMWAY_'.length)), said);
        assert.ok(error.message.startsWith(`${what}: the option '${name}' is `), said);
        assert.match(error.message, /, expected ./, said);
      }
    }
  }
});

scene('an option that there is not: the error names it, and those there are', async (here) => {
  for (const [what, call, names] of calls(here)) {
    for (const name of ['Capacity', 'time', 'writable_views', '']) {
      const error = await failure(() => call({ [name]: 1 }));
      assert.ok(code('INVALID_ARGUMENT')(error));
      assert.ok(error.message.startsWith(`${what}: there is no option '${name}', expected `), error.message);
      assert.deepEqual(error.message.split(', expected ')[1].split(', ').sort(), [...names].sort(), what);
    }
  }
});

scene('options that are none, and a call without', async (here) => {
  for (const [what, call] of calls(here)) {
    for (const options of [null, 1, 'fast', true]) {
      const error = await failure(() => call(options));
      assert.ok(code('INVALID_ARGUMENT')(error));
      assert.match(error.message, new RegExp(`^${what}: the options are .*, expected an object$`));
    }
  }
});

scene('an option that is undefined is as good as left out', async (here) => {
  for (const [what, call, names] of calls(here)) {
    if (!what.startsWith('Ring.') || /Sync|sender|receiver/.test(what)) continue;
    const made = await call(Object.fromEntries(names.map((name) => [name, undefined])));
    for (const end of Array.isArray(made) ? made : []) end.close();
  }
  const nothing = { timeout: undefined, signal: undefined };
  const made = here.own(await Ring.create(here.path('ring'), { capacity: undefined }).sender(nothing));
  assert.equal(made.capacity, 1 << 20);
});

scene('options may be inherited, and each is read once', async ({ path, own }) => {
  let reads = 0;
  const options = Object.create({
    get capacity() {
      return ++reads === 1 ? 8192 : 'something else';
    },
  });
  const tx = own(await Ring.create(path('ring'), options).sender());
  assert.deepEqual([tx.capacity, reads], [8192, 1]);
});

scene('what is changed in the options afterwards changes nothing', async ({ path, own }) => {
  const options = { capacity: 8192, allowUids: [] };
  const ring = Ring.create(path('ring'), { capacity: options.capacity });
  options.capacity = 1 << 20;
  assert.equal(own(await ring.sender()).capacity, 8192);
});

test('a ring of more than 2^30 bytes is refused before anything is made', { timeout: 50_000 }, async () => {
  for (const capacity of [2 ** 30 + 1, 2 ** 40]) {
    assert.throws(() => Ring.create('x', { capacity }), code('UNSUPPORTED'));
    assert.throws(() => Ring.pair(capacity), code('UNSUPPORTED'));
    await assert.rejects(Listener.bind('x', { toPeer: capacity }), code('UNSUPPORTED'));
    await assert.rejects(Bus.listen('x', { capacity }), code('UNSUPPORTED'));
  }
});

test('what the core refuses of a ring, it says in words', { timeout: 50_000 }, async () => {
  for (const [options, text] of /** @type {[any, RegExp][]} */ ([
    [{ align: 24 }, /24/],
    [{ align: 8192 }, /8192/],
    [{ align: 0 }, /0/],
  ])) {
    const error = await failure(() => Ring.create(`refused-${process.pid}`, options).sender());
    assert.ok(code('INVALID_ARGUMENT')(error));
    assert.match(error.message, text);
  }
  assert.throws(() => Ring.pair(4096, { align: 5000 }), code('INVALID_ARGUMENT'));
});

test('a name is a string, and a good one', { timeout: 50_000 }, async () => {
  /** @type {[string, (name: any) => unknown][]} */
  const named = [
    ['Ring.create', (name) => Ring.create(name).sender()],
    ['Ring.open', (name) => Ring.open(name).receiver()],
    ['Bus.connect', (name) => Bus.connect(name, { timeout: 0 })],
    ['Bus.listen', (name) => Bus.listen(name, { timeout: 0 })],
    ['Listener.bind', (name) => Listener.bind(name)],
    ['Region.create', (name) => Region.create(name, 1)],
    ['Region.open', (name) => Region.open(name)],
  ];
  for (const [what, call] of named) {
    for (const name of [undefined, null, 1, {}, ['x'], new URL('file:///x')]) {
      const error = await failure(() => call(name));
      assert.ok(code('INVALID_ARGUMENT')(error));
      assert.match(error.message, new RegExp(`^${what}: the name is .*, expected a string$`));
    }
    for (const name of ['', '.hidden', 'a b', 'ä', 'x'.repeat(81), 'a\0b']) {
      assert.ok(code('INVALID_ARGUMENT')(await failure(() => call(name))), `${what}(${JSON.stringify(name)})`);
    }
  }
});
