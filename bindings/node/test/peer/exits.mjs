// Ends, or does not end, by itself: what `process.argv` says is done with one handle, then nothing more.
import { Listener, Region, Ring } from '../../index.mjs';

const [path, how] = /** @type {[string, string]} */ (/** @type {unknown} */ (process.argv.slice(2)));
const say = (/** @type {string} */ line) => console.log(line);

switch (how) {
  case 'open':
    await Ring.create(path).sender();
    await Ring.open(path).receiver();
    break;
  case 'pending': {
    const rx = await Ring.create(path).receiver();
    say('waiting');
    say(`received ${(await rx.recv()).length}`);
    break;
  }
  case 'ref':
  case 'unref':
  case 'unref-after': {
    const rx = await Ring.create(path).receiver();
    if (how === 'unref') rx.unref();
    rx.recv().then(() => say('received'));
    if (how !== 'unref') await new Promise((resolve) => setTimeout(resolve, 20));
    if (how === 'ref') rx.unref().ref();
    if (how === 'unref-after') rx.unref();
    say('waiting');
    break;
  }
  case 'event':
  case 'event-unref': {
    const rx = await Ring.create(path).receiver();
    rx.on('message', () => say('received'));
    if (how === 'event-unref') rx.unref();
    say('waiting');
    break;
  }
  case 'drain':
  case 'drain-unref': {
    const tx = await Ring.create(path, { capacity: 4096 }).sender();
    while (tx.trySend(new Uint8Array(1000)));
    tx.on('drain', () => say('drain'));
    tx.send(new Uint8Array(4000)).then(() => say('sent'));
    if (how === 'drain-unref') tx.unref();
    say('waiting');
    break;
  }
  case 'listener':
  case 'listener-unref': {
    const listener = await Listener.bind(path);
    listener.accept().then(() => say('accepted'));
    if (how === 'listener-unref') listener.unref();
    say('waiting');
    break;
  }
  case 'region':
  case 'region-unref': {
    const region = await Region.create(path, 4096);
    region.waitAsync().then(() => say('notified'));
    if (how === 'region-unref') region.unref();
    say('waiting');
    break;
  }
  default:
    throw new Error(`there is no ${how}`);
}
