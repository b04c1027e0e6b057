// A bus as a Node stream: back-pressure, endings and boundaries, with a process in Rust at the other end.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { code, connected, eventually, fill, lengthOf, scene, turn } from './scene.mjs';

const COUNT = 5_000;

/** The bytes of message number `seq` of a peer that sends `mixed`. @param {number} seq @param {number} longest */
const payload = (seq, longest) => fill(seq, new Uint8Array(lengthOf(seq, 'mixed', longest)));

/** Bytes that no two places have in common for long. @param {number} length */
function noise(length) {
  let x = 1;
  const next = () => {
    x = (Math.imul(x, 1_664_525) + 1_013_904_223) >>> 0;
    return x >>> 24;
  };
  return Buffer.from(Uint8Array.from({ length }, next));
}

/** Some turns, in which nothing may happen that should not. */
async function someTurns() {
  for (let i = 0; i < 20; i++) await turn();
}

/** A bus to a peer that gives everything back, as a stream; `finish` once everything was written. */
async function echoing(/** @type {import('./scene.mjs').Scene} */ here, capacity = 65_536, options = {}) {
  const [bus, peer] = await connected(here, capacity);
  peer.tell('echo 0');
  const duplex = bus.toDuplex(options);
  const finish = async () => {
    assert.equal((await peer.answer()).word, 'echoed');
    await peer.does('close', 'closed');
  };
  return { bus, peer, duplex, finish };
}

for (const [capacity, chunk] of [
  [4096, 65_536],
  [4096, 10],
  [1 << 20, 65_536],
]) {
  scene(`pipeline of chunks of ${chunk} bytes there and back through a bus of ${capacity}`, async (here) => {
    const sent = noise(chunk * 40 + 3);
    const { duplex, bus, finish } = await echoing(here, capacity);
    /** @type {Buffer[]} */ const came = [];
    const pieces = Array.from({ length: 41 }, (_, i) => sent.subarray(i * chunk, (i + 1) * chunk));
    await Promise.all([
      pipeline(Readable.from(pieces), duplex, async (source) => {
        for await (const piece of source) came.push(piece);
      }),
      finish(),
    ]);
    assert.ok(Buffer.concat(came).equals(sent));
    assert.equal(bus.closed, true);
  });
}

scene('many small writes at once come in order', async (here) => {
  const { duplex, finish } = await echoing(here, 4096);
  let expected = '';
  for (let i = 0; i < 5000; i++) {
    expected += `${i}\n`;
    duplex.write(`${i}\n`);
  }
  duplex.end();
  duplex.setEncoding('utf8');
  let text = '';
  duplex.on('data', (piece) => {
    text += piece;
  });
  await Promise.all([finish(), once(duplex, 'end')]);
  assert.equal(text, expected);
});

scene('empty messages neither end a stream of bytes nor are seen in it', async (here) => {
  const [bus, peer] = await connected(here, 4096);
  const duplex = bus.toDuplex();
  peer.tell('send 3 0 0');
  await peer.said('sent');
  await someTurns();
  peer.tell('send 3 16 0');
  await peer.said('sent');
  peer.tell('send 5 0 0');
  peer.tell('send 1 16 3');
  peer.tell('close');
  let length = 0;
  for await (const chunk of duplex) {
    assert.ok(chunk.length > 0);
    length += chunk.length;
  }
  assert.equal(length, 4 * 16);
});

scene('objectMode keeps the boundaries of messages, empty ones too', async (here) => {
  const { duplex, finish } = await echoing(here, 4096, { objectMode: true });
  assert.equal(duplex.readableObjectMode && duplex.writableObjectMode, true);
  const written = (async () => {
    for (let seq = 0; seq < COUNT; seq++) {
      if (!duplex.write(payload(seq, 4096 - 16))) await once(duplex, 'drain');
    }
    duplex.write(new ArrayBuffer(3));
    duplex.write('6869', 'hex');
    duplex.end('');
  })();
  /** @type {Buffer[]} */ const last = [];
  let seq = 0;
  const all = (async () => {
    for await (const chunk of duplex) {
      if (seq < COUNT) assert.deepEqual(new Uint8Array(chunk), payload(seq, 4096 - 16), `message ${seq}`);
      else last.push(chunk);
      seq++;
    }
  })();
  await Promise.all([written, all, finish()]);
  assert.deepEqual(last.map(String), ['\0\0\0', 'hi', '']);
});

scene('objectMode reads ahead by its high-water mark, no further', async (here) => {
  const [bus, peer] = await connected(here);
  const duplex = bus.toDuplex({ objectMode: true });
  await peer.does('batch 200 16 0', 'sent', { next: 200 });
  const first = await new Promise((resolve) => {
    duplex.once('readable', () => resolve(duplex.read()));
  });
  assert.deepEqual(new Uint8Array(first), fill(0, new Uint8Array(16)));
  await someTurns();
  const mark = duplex.readableHighWaterMark;
  assert.ok(duplex.readableLength <= mark, `${duplex.readableLength} messages are read ahead`);
  // The rest is in the ring, and nothing else.
  assert.equal(bus.receiver.used, (200 - 1 - duplex.readableLength) * 32);
});

scene('a stream of bytes reads ahead by a chunk, no further', async (here) => {
  const [bus, peer] = await connected(here, 1 << 20);
  const duplex = bus.toDuplex();
  await peer.does('batch 60 10000 0', 'sent', { next: 60 });
  let length = 0;
  for (const wanted of [1, 250_000]) {
    while (length < wanted) {
      const chunk = duplex.read();
      if (chunk === null) await once(duplex, 'readable');
      else length += chunk.length;
    }
    await someTurns();
    assert.ok(duplex.readableLength <= 3 * 65_536, `${duplex.readableLength} bytes are read ahead`);
    // What is copied is given back, up to those few that were received together.
    const kept = Math.ceil((600_000 - length - duplex.readableLength) / 10_000);
    assert.ok(
      bus.receiver.used < (kept + 16) * 10_016,
      `${bus.receiver.used} bytes are in the ring, and ${kept} messages`,
    );
  }
  // The rest comes when it is asked for.
  duplex.on('data', (chunk) => {
    length += chunk.length;
  });
  await eventually('the rest', () => length === 600_000);
  assert.equal(bus.receiver.used, 0);
});

scene('writes wait for room: the callback, and drain', async (here) => {
  const [bus, peer] = await connected(here, 4096);
  const duplex = bus.toDuplex();
  let done = 0;
  let written = 0;
  while (duplex.write(new Uint8Array(1000), () => done++)) written++;
  written++;
  await someTurns();
  const most = Math.floor(4096 / 1016);
  assert.ok(done <= most, `${done} writes are done, and ${most} fit`);
  assert.equal(duplex.writableNeedDrain, true);
  let drained = false;
  duplex.once('drain', () => {
    drained = true;
  });
  await someTurns();
  assert.equal(drained, false);
  for (let seq = 0; seq < written; seq++) {
    peer.tell('hold');
    await peer.said('holding');
    peer.tell('');
    await peer.said('released');
  }
  await eventually('drain', () => drained);
  await eventually('every write is done', () => done === written);
});

scene('end() closes the sending half only', async (here) => {
  const [bus, peer] = await connected(here);
  const duplex = bus.toDuplex();
  duplex.end(Buffer.alloc(16));
  await once(duplex, 'finish');
  assert.equal(bus.sender.closed, true);
  assert.equal(bus.receiver.closed, false);
  // The peer sees the end, and goes on sending.
  peer.tell('hold');
  await peer.said('holding');
  peer.tell('');
  await peer.said('released');
  await peer.does('hold', 'error', { name: 'Closed' });
  peer.tell('send 100 16 0');
  peer.tell('close');
  let length = 0;
  for await (const chunk of duplex) length += chunk.length;
  assert.equal(length, 1600);
  assert.equal(bus.closed, true);
});

scene("the peer's end leaves the sending half open, unless told otherwise", async (here) => {
  const [bus, peer] = await connected(here);
  const open = bus.toDuplex();
  await peer.does('send 1 16 0', 'sent', { next: 1 });
  await peer.does('close', 'closed');
  open.resume();
  await once(open, 'end');
  assert.equal(open.writable, true);
  assert.equal(bus.closed, false);
  open.destroy();
  await once(open, 'close');
  assert.equal(bus.closed, true);
});

scene("allowHalfOpen: false ends the sending half with the peer's", async (here) => {
  const [bus, peer] = await connected(here);
  const duplex = bus.toDuplex({ allowHalfOpen: false });
  await peer.does('close', 'closed');
  duplex.resume();
  await once(duplex, 'close');
  assert.equal(duplex.writableFinished, true);
  assert.equal(bus.closed, true);
});

scene('destroy() closes the bus at once, with what waits', async (here) => {
  const [bus, peer] = await connected(here, 4096);
  const duplex = bus.toDuplex();
  duplex.resume();
  duplex.write(new Uint8Array(4000));
  const failed = new Promise((resolve) => duplex.write(new Uint8Array(4000), resolve));
  await someTurns();
  const closed = once(duplex, 'close');
  duplex.destroy();
  assert.ok((await failed) instanceof Error);
  await closed;
  assert.equal(bus.closed, true);
  peer.tell('hold');
  await peer.said('holding');
  peer.tell('');
  await peer.said('released');
  await peer.does('hold', 'error', { name: 'Closed' });
});

scene('an abort destroys the stream', async (here) => {
  for (const early of [true, false]) {
    const [bus, peer] = await connected(here);
    const gone = new AbortController();
    if (early) gone.abort(new Error('no more'));
    const duplex = bus.toDuplex({ signal: gone.signal });
    duplex.resume();
    const failed = once(duplex, 'error');
    if (!early) {
      await someTurns();
      gone.abort(new Error('no more'));
    }
    const [error] = await failed;
    assert.equal(error.name, 'AbortError');
    assert.equal(error.cause.message, 'no more');
    await eventually('it is closed', () => bus.closed);
    await peer.does('hold', 'error', { name: 'Closed' });
    await peer.kill();
  }
});

scene('the death of the peer is an error of the stream', async (here) => {
  const [bus, peer] = await connected(here);
  const duplex = bus.toDuplex();
  await peer.does('send 3 16 0', 'sent', { next: 3 });
  let length = 0;
  duplex.on('data', (chunk) => {
    length += chunk.length;
  });
  await eventually('what it sent', () => length === 48);
  const failed = once(duplex, 'error');
  await peer.kill();
  const [error] = await failed;
  code('PEER_DEAD')(error);
  await eventually('it is closed', () => bus.closed);
});

scene('a pipeline fails when the peer dies while a write waits', async (here) => {
  const [bus, peer] = await connected(here, 4096);
  const duplex = bus.toDuplex();
  let pulled = 0;
  const source = Readable.from(
    (function* () {
      for (;;) {
        pulled++;
        yield Buffer.alloc(1000);
      }
    })(),
  );
  const piped = assert.rejects(
    pipeline(source, duplex, async (from) => {
      for await (const _ of from) assert.fail('nothing is sent');
    }),
    code('PEER_DEAD'),
  );
  await eventually('it waits', () => duplex.writableNeedDrain);
  const before = pulled;
  await someTurns();
  // A source that never ends is held up.
  assert.ok(pulled - before < 100, `${pulled}`);
  await peer.kill();
  await piped;
  assert.equal(source.destroyed, true);
});

scene('a stream does not hold timers up', async (here) => {
  const { duplex, finish } = await echoing(here);
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  const chunk = noise(64);
  await Promise.all([
    pipeline(
      Readable.from(
        (function* () {
          for (let i = 0; i < 50_000; i++) yield chunk;
        })(),
      ),
      duplex,
      async (from) => {
        let length = 0;
        for await (const piece of from) length += piece.length;
        assert.equal(length, 50_000 * 64);
      },
    ),
    finish(),
  ]);
  clearInterval(timer);
  assert.ok(ticks >= 10, `${ticks} ticks`);
});
