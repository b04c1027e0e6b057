// A program or worker that serves: method 1 replies, 2 never does. `process.argv` says how it ends.
import { RpcServer } from '../../index.mjs';

const [path, how] = /** @type {[string, string]} */ (/** @type {unknown} */ (process.argv.slice(2)));
const server = await RpcServer.bind(path);
server.method(1, () => 'there');
server.method(2, (request) => {
  // Once its client is gone.
  request.signal.addEventListener('abort', () => {
    if (how === 'shutdown') void server.shutdown();
    if (how === 'close') server.close();
    if (how === 'exit') {
      console.log('over');
      process.exit(0);
    }
  });
  return new Promise(() => {});
});
if (how === 'unref') server.unref();
if (how === 'idle') {
  console.log('serves');
} else {
  const run = server.run();
  if (how !== 'worker') console.log('serves');
  if (how !== 'unref') {
    await run;
    console.log('over');
  }
}
