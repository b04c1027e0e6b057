// docs/api/javascript.txt against docs/api/calls.txt, the types that users see, and what is there.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';
import * as ramway from '../index.mjs';
import { LONG, scene } from './scene.mjs';

const page = (/** @type {string} */ name) =>
  readFileSync(new URL(`../../../docs/api/${name}`, import.meta.url), 'utf8');
const lines = (/** @type {string} */ text) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

const whole = page('javascript.txt');
const [ids, more] = whole.split('## Only here\n');
const spelled = lines(ids).map((line) => /** @type {[string, string]} */ (line.split(' = ', 2)));
/** Every name that the page has. */
const named = [...spelled.map(([, names]) => names), ...lines(more).map((line) => line.split(' = ')[0])]
  .filter((names) => !names.startsWith('-- '))
  .flatMap((names) => names.split(', '));

/** @typedef {{ parents: string[], members: Map<string, string> }} Declared */
/** The public members of each declared type, and the text of their declarations. @type {Map<string, Declared>} */
const types = new Map();
const dist = new URL('../dist/', import.meta.url);
for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'))) {
  const text = readFileSync(new URL(file, dist), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  const head = /^(?:export )?(?:declare )?(?:abstract )?(?:class|interface) (\w+)(.*?)\{\n([\s\S]*?)^\}/gm;
  for (const [, name, parents, body] of text.matchAll(head)) {
    const members = new Map();
    // A declaration may go over several lines; a new one begins at the first indentation.
    for (const declaration of body.split(/\n(?= {4}[^\s}])/)) {
      const parts =
        /^\s*((?:(?:static|readonly|get|set|private|protected|abstract|declare) )*)(#?\w+|\[[\w.]+\])(\??[(<:;][\s\S]*)$/.exec(
          declaration,
        );
      if (parts === null) continue;
      const [, modifiers, member, rest] = parts;
      const hidden = /private|protected/.test(modifiers) || member === 'constructor' || !/^\w/.test(member);
      if (!hidden) members.set(member, (members.get(member) ?? '') + (/\bget\b/.test(modifiers) ? `: ${rest}` : rest));
    }
    types.set(name, { parents: parents.replace(/<[^>]*>/g, '').match(/\w+/g) ?? [], members });
  }
}

/** @param {string} type @returns {Map<string, string>} */
function membersOf(type) {
  const declared = types.get(type);
  if (declared === undefined) return new Map();
  return new Map([...declared.parents.flatMap((parent) => [...membersOf(parent)]), ...declared.members]);
}

test('every call of calls.txt has a line, in the same order', { timeout: LONG }, () => {
  const all = lines(page('calls.txt')).map((line) => line.split(' | ')[0]);
  assert.deepEqual(
    spelled.map(([id]) => id),
    all,
  );
  for (const [id, names] of spelled) assert.match(names, /^(--( \S+){5,}|[A-Za-z]\S*(, \S+)*)$/, id);
  for (const line of lines(more)) assert.match(line, /^\w[\w.]*(, \w[\w.]*)* = \S+/);
});

test('every name of the page is there', { timeout: LONG }, () => {
  const modules = /** @type {Record<string, any>} */ (ramway);
  for (const name of named) {
    const [, path, option] = /** @type {string[]} */ (/^([\w.]+)(?:\((\w+)\))?$/.exec(name) ?? assert.fail(name));
    const [type, member] = path.split('.');
    if (member === undefined) {
      assert.ok(type in modules, name);
      continue;
    }
    const text = membersOf(type).get(member);
    assert.ok(text !== undefined, `${name} is not in the types`);
    // What is a function in the types is one.
    const owner = modules[type];
    if (owner !== undefined && /^[(<]/.test(text)) {
      assert.equal(typeof (owner[member] ?? owner.prototype[member]), 'function', name);
    }
    if (option !== undefined) {
      const known = [...text.matchAll(/\b\w+Options\b/g)].flatMap(([options]) => [...membersOf(options).keys()]);
      known.push(...[...text.matchAll(/(\w+)\?:/g)].map(([, inline]) => inline));
      assert.ok(known.includes(option), `${name}: ${known}`);
    }
  }
});

test('everything public is on the page', { timeout: LONG }, () => {
  const known = new Set(named.map((name) => name.replace(/\(.*/, '')));
  const main = ['Ring', 'Sender', 'Receiver', 'Message', 'Batch', 'Bus', 'Listener', 'Region', 'RamwayError'];
  main.push('Topic', 'Publisher', 'Subscriber', 'TopicMessage');
  main.push('RpcServer', 'RpcRequest', 'Fault', 'RpcClient', 'Pending', 'RpcStream', 'Reply', 'CallError');
  const events = ['SenderEvents', 'ReceiverEvents', 'BusEvents', 'ListenerEvents'];
  const records = ['Segment', 'Cleaned', 'SubscriberInfo', 'Lag', 'MethodInfo'];
  const options = [...types.keys()].filter((name) => name.endsWith('Options'));
  assert.ok(options.length >= 14 && main.every((name) => types.has(name)) && membersOf('Sender').size > 35);
  for (const type of [...main, ...events, ...records, ...options]) {
    for (const member of membersOf(type).keys()) {
      // Of an interface that extends another one the member may stand there.
      const owners = [type, ...(types.get(type)?.parents ?? [])];
      assert.ok(
        owners.some((owner) => known.has(`${owner}.${member}`)),
        `${type}.${member} is not in javascript.txt`,
      );
    }
  }
  for (const name of Object.keys(ramway).filter((name) => name !== 'default')) {
    assert.ok(known.has(name) || main.includes(name), name);
  }
});

scene('the defaults are those of calls.txt', async ({ path, own }) => {
  const tx = own(await ramway.Ring.create(path('ring')).sender());
  const rx = own(await ramway.Ring.open(path('ring')).receiver());
  assert.deepEqual([tx.capacity, tx.align, tx.wait, rx.wait], [1 << 20, 16, 'hybrid', 'hybrid']);
  assert.equal(statSync(path('ring')).mode & 0o7777, 0o600);
  assert.equal(ramway.ls(path('')).find(({ name }) => name === 'ring')?.persistent, false);
  for (let i = 0; i < 2000; i++) tx.trySend('x', { flush: i === 1999 });
  const lengths = [rx.tryRecvBatch()?.length, (await rx.recvBatch()).length];
  assert.deepEqual(lengths, [1024, 976]);
  const listener = own(await ramway.Listener.bind(path('bus')));
  assert.equal(statSync(listener.path).mode & 0o7777, 0o600);
  const accepting = listener.accept({ timeout: LONG });
  const client = own(await ramway.Bus.connect(path('bus')));
  const server = own(await accepting);
  assert.deepEqual([client.sender.capacity, client.receiver.capacity], [1 << 20, 1 << 20]);
  assert.deepEqual([server.sender.align, client.wait], [16, 'hybrid']);
  const calls = own(await ramway.RpcServer.bind(path('rpc')));
  assert.equal(statSync(calls.path).mode & 0o7777, 0o600);
  const serving = calls.run();
  const caller = own(await ramway.RpcClient.connect(path('rpc')));
  assert.deepEqual([caller.wait, caller.maxInFlight, caller.maxRequestLength], ['hybrid', 1024, (1 << 20) - 32]);
  caller.close();
  calls.close();
  await serving;
  // The openers' time-out is 0.
  await assert.rejects(ramway.Ring.open(path('none')).sender(), { code: 'ERR_RAMWAY_NOT_FOUND' });
  await assert.rejects(ramway.Region.open(path('none')), { code: 'ERR_RAMWAY_NOT_FOUND' });
});
