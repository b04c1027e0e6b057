// An HTTP server whose heavy work is done in Python processes, over buses.
//
//     node server.mjs --vectors vectors.npy [--port 8080] [--workers 2]
//
//     curl -s localhost:8080/similar --json '{"vector": [0.1, …], "count": 5}'
//     curl -s localhost:8080/thumbnail?width=160 -H 'content-type: image/jpeg' --data-binary @photo.jpg >small.png

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import Fastify from 'fastify';
import { Kind, WorkError, Workers } from './workers.mjs';

const { values: given } = parseArgs({
  options: {
    vectors: { type: 'string' },
    port: { type: 'string', default: '8080' },
    workers: { type: 'string', default: '2' },
    python: { type: 'string', default: 'python3' },
    capacity: { type: 'string', default: String(16 << 20) },
    'send-timeout': { type: 'string', default: '250' },
    'reply-timeout': { type: 'string', default: '10000' },
  },
});
if (given.vectors === undefined) {
  console.error('usage: node server.mjs --vectors FILE.npy [--port N] [--workers N] [--python PROGRAM]');
  process.exit(2);
}

const capacity = Number(given.capacity);
const workers = new Workers({
  name: `similar-${process.pid}`,
  command: [given.python, fileURLToPath(new URL('worker.py', import.meta.url)), '--vectors', given.vectors],
  count: Number(given.workers),
  capacity,
  sendTimeout: Number(given['send-timeout']),
  replyTimeout: Number(given['reply-timeout']),
  log: (text) => console.error(text),
});

// A few of the largest requests have to fit at once.
const app = Fastify({ bodyLimit: capacity >> 2 });

app.setErrorHandler((/** @type {import('fastify').FastifyError} */ error, _request, reply) => {
  const status = error.statusCode ?? 500;
  if (status === 500) console.error(error);
  if (status === 503) reply.header('retry-after', '1');
  reply.code(status).send({ statusCode: status, message: error.message });
});

/** Aborted, with what nobody will read, when the client hangs up before it has its answer. @param {import('fastify').FastifyReply} reply */
function hangUp(reply) {
  const controller = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort(new WorkError(499, 'the client has hung up'));
  });
  return controller.signal;
}

const similar = {
  body: {
    type: 'object',
    required: ['vector'],
    properties: {
      vector: { type: 'array', items: { type: 'number' }, minItems: 1, maxItems: 4096 },
      count: { type: 'integer', minimum: 1, maximum: 100, default: 10 },
    },
  },
};

app.post('/similar', { schema: similar }, async (request, reply) => {
  const { vector, count } = /** @type {{ vector: number[], count: number }} */ (request.body);
  const found = await workers.ask(
    Kind.SIMILAR,
    4 + 4 * vector.length,
    (slot) => {
      new Uint32Array(slot.buffer, slot.byteOffset, 1)[0] = count;
      new Float32Array(slot.buffer, slot.byteOffset + 4, vector.length).set(vector);
    },
    hangUp(reply),
  );
  const view = new DataView(found.buffer, found.byteOffset, found.byteLength);
  const matches = Array.from({ length: found.byteLength / 8 }, (_, index) => ({
    id: view.getUint32(8 * index, true),
    score: view.getFloat32(8 * index + 4, true),
  }));
  return { matches };
});

app.addContentTypeParser(
  /^image\//,
  { parseAs: 'buffer' },
  async (/** @type {unknown} */ _request, /** @type {Buffer} */ body) => body,
);

const thumbnail = {
  querystring: {
    type: 'object',
    properties: {
      width: { type: 'integer', minimum: 1, maximum: 4096, default: 128 },
      // A page can hold small pictures in itself.
      as: { enum: ['png', 'data-url'], default: 'png' },
    },
  },
};

app.post('/thumbnail', { schema: thumbnail }, async (request, reply) => {
  const { width, as } = /** @type {{ width: number, as: string }} */ (request.query);
  const picture = request.body;
  if (!(picture instanceof Buffer)) return reply.code(415).send({ statusCode: 415, message: 'send a picture' });
  const png = await workers.ask(
    Kind.THUMBNAIL,
    4 + picture.byteLength,
    (slot) => {
      new Uint32Array(slot.buffer, slot.byteOffset, 1)[0] = width;
      slot.set(picture, 4);
    },
    hangUp(reply),
  );
  const bytes = Buffer.from(png.buffer, png.byteOffset, png.byteLength);
  if (as === 'data-url') return reply.type('text/plain').send(`data:image/png;base64,${bytes.toString('base64')}`);
  return reply.type('image/png').send(bytes);
});

app.get('/workers', async () => workers.state);

// After the last request was answered.
app.addHook('onClose', () => workers.stop());

let closing = false;
// A connection that is kept for a next request would keep the server.
app.addHook('onSend', async (_request, reply) => {
  if (closing) reply.header('connection', 'close');
});
for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT'])) {
  process.once(signal, () => {
    closing = true;
    app.close();
  });
}
console.log(`listening on ${await app.listen({ port: Number(given.port) })}`);
