// Compiled, never run: how a strict program serves calls.
import {
  type Data,
  Fault,
  type RpcBody,
  type RpcElements,
  type RpcHandler,
  type RpcMethodOptions,
  type RpcPeer,
  RpcRequest,
  RpcServer,
  type RpcServerOptions,
  type RpcStreamHandler,
} from 'ramway';

export async function serves(name: string, signal: AbortSignal): Promise<void> {
  const options: RpcServerOptions = { capacity: 4096, align: 16, mode: 0o600, allowUids: [0], wait: 'block' };
  const limits: RpcServerOptions = { maxClients: 1, maxInFlight: 2, maxBytes: 3, handshakeTimeout: Infinity };
  const server: RpcServer = await RpcServer.bind(name, { ...options, ...limits, signal });
  const named: RpcMethodOptions = { name: 'Seven' };
  const handler: RpcHandler = async (request) => request.body;
  const elements: RpcStreamHandler = function* () {
    yield 'text';
  };
  server
    .method(7, handler, named)
    .method('Nothing', () => {})
    .method('Text', (request) => request.text())
    .method('Maybe', async (request): Promise<RpcBody> => (request.cancelled ? undefined : new Uint8Array(3)))
    .stream('Elements', elements)
    .stream('Array', () => ['a', new Uint8Array(1), undefined])
    .stream('Later', async (): Promise<RpcElements> => new Set(['a']))
    .stream('Generator', async function* (request) {
      request.replyMeta = 'meta';
      yield request.meta;
      throw new Fault(7, 'why');
    });
  server.method('Facts', (request) => {
    const peer: RpcPeer = request.peer;
    const pid: number | undefined = peer.pid;
    const left: number | undefined = request.remaining;
    const meta: Data | undefined = request.replyMeta;
    const facts: [number, number, boolean, AbortSignal] = [request.method, peer.uid, request.isStream, request.signal];
    void [pid, left, meta, facts, request instanceof RpcRequest];
  });
  const ended: Promise<void> = server.run({ signal });
  const numbers: [number, string, string, boolean] = [server.clients, server.path, server.name, server.closed];
  await server.shutdown(5000);
  await ended;
  server.unref().ref().close();
  const fault = new Fault(1);
  const told: [number, string] = [fault.code, fault.text];
  void [numbers, told, RpcServer.bindSync(name, options)];
  // @ts-expect-error a number is no body
  server.method(8, () => 8);
  // @ts-expect-error a stream's elements are bodies
  server.stream(9, () => [9]);
  // @ts-expect-error a method is a number or a name
  server.method(7n, handler);
  // @ts-expect-error there is no such option
  RpcServer.bindSync(name, { threads: 4 });
  server.method(10, (request) => {
    // @ts-expect-error a request is read
    request.body = new Uint8Array(0);
  });
}
