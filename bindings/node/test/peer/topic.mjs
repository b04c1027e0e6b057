// One side of a topic, until it is killed: `publish PATH COUNT`, `subscribe PATH LABEL|-` (two messages) or `flood PATH`. Says a line for each
// thing that it has done.
import { Topic } from '../../index.mjs';

const [how, path, more] = /** @type {[string, string, string]} */ (/** @type {unknown} */ (process.argv.slice(2)));

if (how === 'subscribe') {
  const options = more === '-' ? {} : { label: more, durable: true };
  const sub = await Topic.open(path).subscriber('reliable', options);
  console.log('ready');
  // The second one stays in hand: whoever goes on begins with it.
  for (let seq = 0; seq < 2; ) {
    const message = await sub.recv();
    ({ seq } = message);
    console.log(`${seq} ${message.text()}`);
  }
  setInterval(() => {}, 1000);
} else {
  const pub = await Topic.openOrCreate(path, { capacity: 65536 }).publisher();
  for (let i = 0; how === 'flood' || i < Number(more); i++) await pub.send(`${i}`);
  console.log(`published ${pub.seq}`);
  setInterval(() => {}, 1000);
}
