// The HTTP example as the processes that it is: a server, its Python workers, and clients.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { PNG } from 'pngjs';
import { LONG, Program, place, until } from '../processes.mjs';

const python = process.env.RAMWAY_EXAMPLES_PYTHON;
const ROWS = 3000;
const WIDTH = 48;

// The same numbers in every run: where two scores are as good as equal, either may come first.
let state = 1;
const random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 2 ** 32;
};

// The rows that are searched, and which of them each query has to find, computed here.
const rows = Array.from({ length: ROWS }, () => Float32Array.from({ length: WIDTH }, () => random() * 2 - 1));
const norm = (/** @type {Float32Array} */ row) => Math.hypot(...row);
const cosine = (/** @type {Float32Array} */ a, /** @type {Float32Array} */ b) =>
  a.reduce((sum, value, index) => sum + value * b[index], 0) / norm(a) / norm(b);

const queries = Array.from({ length: 40 }, (_, index) => {
  const vector = rows[index * 7].map((value) => value + (random() - 0.5) * 0.2);
  const count = 1 + (index % 9);
  const matches = rows
    .map((row, id) => ({ id, score: cosine(vector, row) }))
    .sort((a, b) => b.score - a.score)
    .slice(0, count + 1);
  for (let at = 0; at < count; at++) assert.ok(matches[at].score - matches[at + 1].score > 1e-5);
  matches.pop();
  return { body: JSON.stringify({ vector: Array.from(vector), count }), matches };
});

/** A picture of 16 × 8 squares, and the thumbnail that has one pixel for each of them. */
const pictures = Array.from({ length: 12 }, (_, number) => {
  const side = 8 + number;
  const picture = new PNG({ width: 16 * side, height: 8 * side, colorType: 2 });
  const pixels = Buffer.alloc(16 * 8 * 4);
  for (let y = 0; y < picture.height; y++) {
    for (let x = 0; x < picture.width; x++) {
      const square = Math.floor(y / side) * 16 + Math.floor(x / side);
      const colour = [(square * 31) & 255, (number * 20) & 255, (square * number * 7) & 255, 255];
      picture.data.set(colour, 4 * (y * picture.width + x));
      pixels.set(colour, 4 * square);
    }
  }
  return { body: PNG.sync.write(picture), pixels };
});

/** A picture that takes many bytes: noise cannot be compressed. */
const large = (() => {
  const picture = new PNG({ width: 240, height: 240 });
  for (let index = 0; index < picture.data.length; index++) picture.data[index] = randomInt(256);
  return PNG.sync.write(picture);
})();

/** @param {string} body */
function checkMatches(body, query) {
  const { matches } = JSON.parse(body);
  assert.deepEqual(
    matches.map((match) => match.id),
    query.matches.map((match) => match.id),
  );
  for (const [index, match] of matches.entries()) assert.ok(Math.abs(match.score - query.matches[index].score) < 1e-4);
}

/** @param {string} url */
function checkPixels(url, picture) {
  assert.match(url, /^data:image\/png;base64,/);
  const thumbnail = PNG.sync.read(Buffer.from(url.slice(url.indexOf(',') + 1), 'base64'));
  assert.deepEqual([thumbnail.width, thumbnail.height], [16, 8]);
  assert.ok(thumbnail.data.equals(picture.pixels), 'these are the colours of another picture');
}

/** A server with its workers, and how to talk to it. */
class Server extends Program {
  /** Of every worker that was seen. @type {Set<number>} */
  pids = new Set();
  terminated = false;
  url = '';

  /** @param {import('node:test').TestContext} t @param {string[]} options */
  static async start(t, ...options) {
    assert.ok(python, 'RAMWAY_EXAMPLES_PYTHON names a Python with ramway, NumPy and OpenCV: `make test` sets it');
    const directory = place(t);
    const data = await mkdtemp(join(tmpdir(), 'ramway-http-'));
    t.after(() => rmSync(data, { recursive: true }));
    const vectors = join(data, 'vectors.npy');
    writeVectors(vectors);
    const program = fileURLToPath(new URL('server.mjs', import.meta.url));
    const given = ['--vectors', vectors, '--port', '0', '--python', python, ...options];
    const server = new Server(t, [process.execPath, program, ...given], { RAMWAY_DIR: directory });
    // A worker that a test has stopped would not notice that the server is gone.
    t.after(async () => {
      await server.kill();
      for (const pid of server.pids) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch (error) {
          assert.equal(/** @type {NodeJS.ErrnoException} */ (error).code, 'ESRCH');
        }
      }
    });
    server.url = (await server.line(/^listening on (.*)$/))[1];
    await server.connected();
    return server;
  }

  /** The state of all workers, once all are there. */
  connected() {
    return until('workers to connect', async () => {
      const workers = await this.workers();
      return workers.every((worker) => worker.connected) && workers;
    });
  }

  async workers() {
    const workers = await (await fetch(`${this.url}/workers`)).json();
    for (const { pid } of workers) this.pids.add(pid);
    return workers;
  }

  outstanding(count) {
    return until(`${count} requests to be outstanding`, async () => {
      const workers = await this.workers();
      return workers.reduce((sum, worker) => sum + worker.outstanding, 0) === count;
    });
  }

  similar(query, init) {
    return this.post('/similar', query.body, 'application/json', init);
  }

  thumbnail(body, init) {
    return this.post('/thumbnail?width=16&as=data-url', body, 'image/png', init);
  }

  post(path, body, type, init) {
    return fetch(this.url + path, { method: 'POST', headers: { 'content-type': type }, body, ...init });
  }

  /** Ends it as a service manager does, and gives what its workers counted. */
  async finish() {
    if (!this.terminated) this.child.kill('SIGTERM');
    assert.equal(await this.ended, 0, this.complaints);
    const totals = [0, 0];
    for (const line of this.lines) {
      const counted = /^worker: (\d+) answered, (\d+) given up/.exec(line);
      for (const index of [0, 1]) totals[index] += Number(counted?.[index + 1] ?? 0);
    }
    return totals;
  }
}

/** NumPy's own file format. @param {string} path */
function writeVectors(path) {
  const header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${ROWS}, ${WIDTH}), }`;
  const padded = `${header.padEnd(128 - 10 - 1)}\n`;
  const start = Buffer.from(`\x93NUMPY\x01\x00\x00\x00${padded}`, 'latin1');
  start.writeUInt16LE(padded.length, 8);
  writeFileSync(path, Buffer.concat([start, ...rows.map((row) => Buffer.from(row.buffer))]));
}

/** autocannon with many connections, each of which begins somewhere else in the list. */
function load(server, requests, limit) {
  return autocannon({
    url: server.url,
    connections: 24,
    timeout: LONG / 1000,
    ...limit,
    setupClient(client) {
      const start = randomInt(requests.length);
      client.setRequests([...requests.slice(start), ...requests.slice(0, start)]);
    },
  });
}

/** What autocannon is to send, and what becomes of each answer. */
function checked(answers) {
  const check = (expect) => (status, body) => {
    try {
      expect(status, body);
      answers.right++;
    } catch (error) {
      answers.wrong.push(error);
    }
  };
  const right = (then) =>
    check((status, body) => {
      answers[status] = (answers[status] ?? 0) + 1;
      if (status === 200) then(body);
      else assert.ok(answers.allowed.includes(status), `${status}: ${body}`);
    });
  const searches = queries.map((query) => ({
    method: 'POST',
    path: '/similar',
    headers: { 'content-type': 'application/json' },
    body: query.body,
    onResponse: right((body) => checkMatches(body, query)),
  }));
  const thumbnails = pictures.map((picture) => ({
    method: 'POST',
    path: '/thumbnail?width=16&as=data-url',
    headers: { 'content-type': 'image/png' },
    body: picture.body,
    onResponse: right((body) => checkPixels(body, picture)),
  }));
  return [...searches, ...thumbnails].sort(() => Math.random() - 0.5);
}

const outcome = (...allowed) => ({ right: 0, wrong: [], allowed });

test('http: every answer under load is the right one', { timeout: 4 * LONG }, async (t) => {
  const server = await Server.start(t);
  const answers = outcome();
  const amount = 2000;
  const result = await load(server, checked(answers), { amount });
  console.log(
    `http: ${Math.round(result.requests.total / result.duration)} answers a second, all looked at, from 2 workers`,
  );
  assert.deepEqual(answers.wrong, []);
  assert.equal(answers.right, amount);
  assert.equal(answers[200], amount);
  assert.deepEqual([result.non2xx, result.errors, result.timeouts, result.mismatches], [0, 0, 0, 0]);
  assert.deepEqual(await server.finish(), [amount, 0]);
  assert.equal(server.complaints, '');
});

test('http: what is wrong with a request is said', { timeout: LONG }, async (t) => {
  const server = await Server.start(t, '--workers', '1', '--capacity', '65536');
  const said = async (response) => [response.status, (await response.json()).message];
  const json = (value) => server.post('/similar', JSON.stringify(value), 'application/json');
  assert.deepEqual(await said(await json({ vector: [1, 2] })), [422, `a vector has ${WIDTH} elements, not 2`]);
  assert.equal((await json({ vector: ['x'] })).status, 400);
  assert.equal((await json({ vector: [] })).status, 400);
  assert.deepEqual(await said(await server.thumbnail(Buffer.from('no picture'))), [422, 'this is not a picture']);
  assert.equal((await server.thumbnail(Buffer.alloc(20_000))).status, 413);
  assert.equal((await server.post('/thumbnail', '{}', 'application/json')).status, 415);
  const png = await server.post('/thumbnail?width=16', pictures[0].body, 'image/png');
  assert.equal(png.headers.get('content-type'), 'image/png');
  assert.ok(PNG.sync.read(Buffer.from(await png.arrayBuffer())).data.equals(pictures[0].pixels));
  assert.deepEqual(await server.finish(), [3, 0]);
});

test('http: requests of a killed worker are answered with 502, and its successor serves', {
  timeout: 2 * LONG,
}, async (t) => {
  const server = await Server.start(t, '--workers', '1');
  const [worker] = await server.workers();
  process.kill(worker.pid, 'SIGSTOP');
  const answers = queries.slice(0, 10).map((query) => server.similar(query));
  await server.outstanding(answers.length);
  process.kill(worker.pid, 'SIGKILL');
  for (const answer of await Promise.all(answers)) {
    assert.equal(answer.status, 502);
    assert.equal((await answer.json()).message, 'the worker died at it');
  }
  const [next] = await server.connected();
  assert.deepEqual([next.starts, next.outstanding, next.pid === worker.pid], [2, 0, false]);
  for (const query of queries) checkMatches(await (await server.similar(query)).text(), query);
  assert.deepEqual(await server.finish(), [queries.length, 0]);
});

test('http: workers killed under load cost their requests and no others', { timeout: 4 * LONG }, async (t) => {
  const server = await Server.start(t);
  const answers = outcome(502, 503);
  const running = load(server, checked(answers), { duration: 3 * (LONG / 1000) });
  // One after the other.
  for (const index of [0, 1]) {
    const workers = await server.connected();
    const before = answers[200] ?? 0;
    await until('some answers', () => answers[200] > before + 300);
    process.kill(workers[index].pid, 'SIGKILL');
    await until('the next worker', async () => (await server.workers())[index].starts === 2);
  }
  await server.connected();
  const before = answers[200];
  await until('answers of all', () => answers[200] > before + 300);
  running.stop();
  const result = await running;
  assert.deepEqual(answers.wrong, []);
  assert.deepEqual([result.errors, result.timeouts], [0, 0]);
  assert.ok(answers[502] > 0, JSON.stringify(answers));
  await server.finish();
});

test('http: while the bus stays full new requests get 503, and those that were in it their answer', {
  timeout: 2 * LONG,
}, async (t) => {
  const capacity = 1 << 20;
  assert.ok(large.length > capacity / 5 && large.length < capacity / 4);
  const server = await Server.start(
    t,
    '--workers',
    '1',
    '--capacity',
    String(capacity),
    '--reply-timeout',
    String(LONG),
  );
  const [worker] = await server.workers();
  process.kill(worker.pid, 'SIGSTOP');
  const inside = [1, 2, 3, 4].map(() => server.thumbnail(large));
  await server.outstanding(inside.length);
  const refused = await Promise.all([1, 2, 3].map(() => server.thumbnail(large)));
  for (const answer of refused) {
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1']);
    assert.equal((await answer.json()).message, 'the workers have as much as they can take');
  }
  process.kill(worker.pid, 'SIGCONT');
  for (const answer of await Promise.all(inside)) assert.equal(answer.status, 200);
  assert.equal((await server.thumbnail(large)).status, 200);
  assert.deepEqual(await server.finish(), [5, 0]);
});

test('http: a worker that takes too long costs a 503, and is spared what it has not begun', {
  timeout: 2 * LONG,
}, async (t) => {
  const server = await Server.start(t, '--workers', '1', '--reply-timeout', '300');
  const [worker] = await server.workers();
  process.kill(worker.pid, 'SIGSTOP');
  for (const answer of await Promise.all(queries.slice(0, 5).map((query) => server.similar(query)))) {
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1']);
    assert.equal((await answer.json()).message, 'the worker took too long');
  }
  await server.outstanding(0);
  process.kill(worker.pid, 'SIGCONT');
  await until('an answer', async () => (await server.similar(queries[0])).ok);
  const [, spared] = await server.finish();
  assert.ok(spared >= 5, `${spared}`);
});

test('http: clients that hang up take their requests back', { timeout: 2 * LONG }, async (t) => {
  const server = await Server.start(t, '--workers', '1', '--reply-timeout', String(LONG));
  const [worker] = await server.workers();
  process.kill(worker.pid, 'SIGSTOP');
  const clients = queries.slice(0, 6).map((query) => {
    const client = request(`${server.url}/similar`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    client.on('error', () => {});
    client.end(query.body);
    return client;
  });
  await server.outstanding(6);
  const stays = server.similar(queries[20]);
  await server.outstanding(7);
  for (const client of clients) client.destroy();
  await server.outstanding(1);
  process.kill(worker.pid, 'SIGCONT');
  checkMatches(await (await stays).text(), queries[20]);
  assert.deepEqual(await server.finish(), [1, clients.length]);
});

test('http: SIGTERM lets requests be answered, workers end, and names go', { timeout: 2 * LONG }, async (t) => {
  const server = await Server.start(t, '--reply-timeout', String(LONG));
  const workers = await server.workers();
  for (const worker of workers) process.kill(worker.pid, 'SIGSTOP');
  const answers = queries.slice(0, 8).map((query) => server.similar(query));
  await server.outstanding(answers.length);
  server.terminated = server.child.kill('SIGTERM');
  await until('the server to take no more', () =>
    server.workers().then(
      () => false,
      () => true,
    ),
  );
  assert.ok(server.running);
  for (const worker of workers) process.kill(worker.pid, 'SIGCONT');
  for (const [index, answer] of (await Promise.all(answers)).entries()) {
    assert.equal(answer.status, 200);
    checkMatches(await answer.text(), queries[index]);
  }
  assert.deepEqual(await server.finish(), [answers.length, 0]);
  for (const worker of workers) assert.throws(() => process.kill(worker.pid, 0), { code: 'ESRCH' });
});

test('http: the workers of a killed server end by themselves', { timeout: LONG }, async (t) => {
  const server = await Server.start(t);
  const workers = await server.workers();
  await server.kill();
  await until('the workers to end', () =>
    workers.every((worker) => {
      try {
        process.kill(worker.pid, 0);
        return false;
      } catch {
        return true;
      }
    }),
  );
});
