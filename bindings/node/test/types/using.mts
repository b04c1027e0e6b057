// Explicit resource management.
import { Bus, Listener, Region, Ring, RpcClient, RpcServer } from 'ramway';

export async function all(name: string): Promise<number> {
  await using bus = await Bus.connect(name);
  await using server = await RpcServer.bind(name);
  using listener = await Listener.bind(name);
  using region = await Region.open(name);
  await using rx = await Ring.open(name).receiver();
  using msg = await rx.recv();
  using batch = await bus.recvBatch({ max: 2 });
  await using client = await RpcClient.connect(name);
  using pending = client.start(7);
  await using stream = client.stream(8);
  await pending;
  await stream.next();
  return msg.length + batch.length + listener.refused + region.size + server.clients;
}
