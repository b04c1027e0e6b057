// A page's files over HTTP and its WebSocket, on the loopback interface: what the servers of these examples share.

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

const HEADERS = {
  'Cache-Control': 'no-cache',
  'Content-Security-Policy': "default-src 'self'; img-src data:",
  'X-Content-Type-Options': 'nosniff',
  // Both together make the page's clock fine enough to time pictures with.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};
const TYPES = { html: 'text/html', css: 'text/css', mjs: 'text/javascript' };

/**
 * Serves from now on. Its address is printed, in a line of its own.
 * @param {Record<string, URL>} files what browsers may ask for, and nothing else
 * @param {number} port 0 = one that is free
 * @param {(socket: import('ws').WebSocket) => void} onSocket a page has connected to /stream
 * @returns {Promise<{ close(): void }>} `close` ends it; open sockets are the caller's
 */
export async function serve(files, port, onSocket) {
  const server = createServer(async (request, response) => {
    const file = Object.hasOwn(files, request.url ?? '') ? files[request.url ?? ''] : undefined;
    if (!file || request.method !== 'GET') return response.writeHead(404).end();
    const type = TYPES[file.pathname.split('.').at(-1) ?? ''];
    const body = await readFile(file);
    response.writeHead(200, { ...HEADERS, 'Content-Type': `${type}; charset=utf-8` }).end(body);
  });
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 1024 });
  server.on('upgrade', (request, socket, head) => {
    // Another site's page may ask for a connection too, from this very browser: its origin is not ours.
    const { host, origin } = request.headers;
    const ours = [`127.0.0.1:${port}`, `localhost:${port}`].includes(host ?? '') && origin === `http://${host}`;
    if (!ours || request.url !== '/stream') return socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n');
    sockets.handleUpgrade(request, socket, head, onSocket);
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', () => resolve(0)));
  port = /** @type {import('node:net').AddressInfo} */ (server.address()).port;
  console.log(`http://127.0.0.1:${port}/`);
  return {
    close() {
      sockets.close();
      server.close();
      server.closeIdleConnections();
    },
  };
}

/**
 * Ends a socket, whether or not its page still answers.
 * @param {import('ws').WebSocket} socket
 * @param {string} why
 */
export function end(socket, why) {
  socket.close(1001, why);
  const late = setTimeout(() => socket.terminate(), 1000);
  socket.once('close', () => clearTimeout(late));
}

/**
 * Runs a server whose arguments are a name and a port, until SIGINT or SIGTERM.
 * @param {string} usage
 * @param {(name: string, port: number, signal: AbortSignal) => Promise<void>} main
 */
export async function run(usage, main) {
  const [name, port = '0'] = process.argv.slice(2);
  if (!name || !/^\d+$/.test(port)) {
    console.error(`usage: ${usage}`);
    process.exit(2);
  }
  const ended = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => ended.abort());
  await main(name, Number(port), ended.signal).catch((error) => {
    console.error(`server: ${error.message}`);
    process.exitCode = 1;
  });
}
