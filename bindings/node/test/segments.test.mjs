// ls, unlink and clean; and what an opener cannot be told.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { clean, Listener, ls, Region, Ring, unlink } from '../index.mjs';
import { code, scene } from './scene.mjs';

scene('ls says what is there, and what cannot be said', async (here) => {
  const dir = here.path('all');
  mkdirSync(dir);
  assert.deepEqual(ls(dir), []);
  const tx = here.own(await Ring.create(`${dir}/ring`, { capacity: 8192, align: 64, persistent: true }).sender());
  for (let i = 0; i < 3; i++) tx.trySend('x');
  here.own(await Region.create(`${dir}/region`, 5000));
  here.own(await Listener.bind(`${dir}/listener`));
  writeFileSync(`${dir}/text`, 'no segment');
  const found = new Map(ls(dir).map((segment) => [segment.name, segment]));
  const ring = found.get('ring');
  assert.deepEqual(
    { ...ring, size: 0 },
    {
      name: 'ring',
      path: `${dir}/ring`,
      kind: 'ring',
      inUse: true,
      persistent: true,
      stale: false,
      size: 0,
      capacity: 8192,
      align: 64,
      used: 192,
      undelivered: 3,
      producerHeld: true,
      consumerHeld: false,
    },
  );
  assert.ok((ring?.size ?? 0) > 8192);
  const region = found.get('region');
  assert.deepEqual([region?.kind, region?.capacity, region?.inUse, region?.used], ['region', 5000, true, undefined]);
  assert.ok([...found.values()].some((segment) => segment.kind === 'listener' && segment.producerHeld));
  const text = found.get('text');
  assert.deepEqual([text?.path, text?.kind, text?.error?.code], [`${dir}/text`, undefined, 'ERR_RAMWAY_ABI_MISMATCH']);
  tx.close();
  assert.equal(ls(dir).find(({ name }) => name === 'ring')?.stale, true);
  assert.throws(() => ls(/** @type {any} */ (5)), code('INVALID_ARGUMENT'));
});

scene('unlink removes what nobody uses, whatever it holds, and nothing else', async (here) => {
  const name = here.path('ring');
  const tx = here.own(await Ring.create(name, { persistent: true }).sender());
  tx.trySend('undelivered');
  assert.throws(() => unlink(name), code('BUSY'));
  tx.close();
  assert.ok(existsSync(name));
  unlink(name);
  assert.ok(!existsSync(name));
  assert.throws(() => unlink(name), code('NOT_FOUND'));
  const other = here.path('text');
  writeFileSync(other, 'not to be touched');
  assert.throws(() => unlink(other), code('ABI_MISMATCH'));
  assert.ok(existsSync(other));
  assert.throws(() => unlink(/** @type {any} */ (undefined)), code('INVALID_ARGUMENT'));
});

scene('clean removes what is stale and empty, and undelivered messages only when told to', async (here) => {
  const directory = here.path('all');
  mkdirSync(directory);
  const full = await Ring.create(`${directory}/full`).sender();
  full.trySend('undelivered');
  full.close();
  here.own(await Ring.create(`${directory}/used`).sender());
  (await Region.create(`${directory}/kept`, 100, { persistent: true })).close();
  writeFileSync(`${directory}/text`, 'no segment');
  const outcomes = (/** @type {any} */ options) =>
    Object.fromEntries(clean({ directory, ...options }).map(({ name, outcome }) => [name, outcome]));
  const careful = { full: 'kept', used: 'kept', kept: 'kept', text: 'not-ramway' };
  assert.deepEqual(outcomes({}), careful);
  assert.deepEqual(outcomes({ dryRun: true }), careful);
  const thorough = { full: 'removed', used: 'kept', kept: 'removed', text: 'not-ramway' };
  assert.deepEqual(outcomes({ dryRun: true, undelivered: true }), thorough);
  assert.ok(existsSync(`${directory}/full`));
  assert.match(clean({ directory }).find(({ name }) => name === 'used')?.reason ?? '', /./);
  assert.deepEqual(outcomes({ undelivered: true }), thorough);
  assert.deepEqual([existsSync(`${directory}/full`), existsSync(`${directory}/kept`)], [false, false]);
  assert.throws(() => clean(/** @type {any} */ ({ dryrun: true })), TypeError);
  assert.throws(() => clean(/** @type {any} */ ({ dryRun: 1 })), code('INVALID_ARGUMENT'));
});

scene('what only a new segment can be told is refused where one may be there already', async ({ path }) => {
  const refused = (/** @type {() => any} */ call, /** @type {string} */ name) =>
    assert.rejects(
      async () => call(),
      (/** @type {any} */ error) => {
        assert.match(error.message, new RegExp(`the option '${name}' applies to `));
        return code('INVALID_ARGUMENT')(error);
      },
    );
  await refused(() => Ring.open(path('x'), { discard: true }), 'discard');
  await refused(() => Ring.openOrCreate(path('x'), { discard: true }), 'discard');
  await refused(() => Ring.open(path('x'), { persistent: true }), 'persistent');
  await refused(() => Ring.open(path('x'), { mode: 0o600 }), 'mode');
  await refused(() => Region.openOrCreate(path('x'), 10, { discard: true }), 'discard');
  await refused(() => Region.openOrCreateSync(path('x'), 10, { discard: true }), 'discard');
  Ring.open(path('x'), { discard: false, persistent: false });
  Ring.openOrCreate(path('x'), { persistent: true, mode: 0o600 });
  assert.ok(!existsSync(path('x')));
});
