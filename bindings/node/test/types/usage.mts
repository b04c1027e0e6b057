// Compiled, never run: what a strict program may write, and what it may not.
import type { Duplex } from 'node:stream';
import {
  type Batch,
  Bus,
  CallError,
  type CallOptions,
  type CallStatus,
  type ConnectOptions,
  type Data,
  type FrameInfo,
  type FrameOptions,
  Listener,
  type ListenOptions,
  type Message,
  type MethodInfo,
  methodId,
  type Pending,
  RamwayError,
  type Receiver,
  type ReceiverMethods,
  Region,
  type Reply,
  Ring,
  type RingOptions,
  RpcClient,
  type RpcConnectOptions,
  type RpcStream,
  type Sender,
  type SenderMethods,
  type SyncOptions,
  type Tensor,
  type TensorLike,
  type TypedArray,
  version,
  type WaitOptions,
  type WaitPolicy,
} from 'ramway';

/** Fails to compile unless both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : never;
const same = <A, B>(_: Same<A, B>): void => undefined;
const signal = AbortSignal.timeout(1000);

export async function sends(tx: SenderMethods, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const data: Data[] = [
    'text',
    bytes,
    bytes.buffer,
    new DataView(bytes.buffer),
    new SharedArrayBuffer(8),
    Buffer.from('x'),
  ];
  for (const one of data) await tx.send(one, { typeId: 1, tag: 2n, flush: false, timeout: 5, signal });
  const sent: boolean = tx.trySend('x', { tag: 7 });
  tx.sendSync('x', { timeout: 5, allowMainThread: true });
  const count: number = await tx.sendBatch(['a', bytes], { typeId: 1 });
  await tx.reserve(10, (slot) => {
    same<typeof slot, Uint8Array>(true);
    return slot.length;
  });
  await tx.reserve(10, async (slot) => slot.length);
  await tx.reserve(10, () => undefined, { timeout: 0 });
  const reserved: boolean = tx.tryReserve(10, (slot) => slot.fill(1).length);
  tx.reserveSync(10, () => 5, { timeout: 1 });
  const tensor: TensorLike = { data: new Float32Array(4), shape: [2, 2] };
  await tx.sendTensor(tensor, { tag: 1n, signal });
  tx.trySendTensor({ data: new Uint16Array(2), dtype: 'bfloat16' });
  tx.flush();
  const writable: WritableStream<Data> = tx.writable;
  void [sent, count, reserved, writable];
  // @ts-expect-error a number is no message
  await tx.send(5);
  // @ts-expect-error a blocking call takes no signal
  tx.sendSync('x', { signal });
  // @ts-expect-error there is no such option
  await tx.send('x', { typeID: 1 });
  // @ts-expect-error only a call that waits may take its time to fill
  tx.tryReserve(10, async () => 5);
}

export async function receives(rx: ReceiverMethods): Promise<void> {
  for await (const msg of rx) same<typeof msg, Message>(true);
  for await (const msg of rx.messages({ signal })) void msg.data;
  for await (const batch of rx.batches({ max: 10, signal })) {
    same<typeof batch, Batch>(true);
    for (const msg of batch) same<typeof msg, Message>(true);
    same<ReturnType<typeof batch.at>, Message | undefined>(true);
  }
  const msg: Message = await rx.recv({ timeout: 5, signal });
  const data: Uint8Array = msg.data;
  const copy: Uint8Array = msg.copy();
  const tag: bigint = msg.tag;
  const text: string = msg.text();
  const tensor: Tensor | undefined = msg.isTensor ? msg.tensor() : undefined;
  const shape: readonly number[] | undefined = tensor?.shape;
  const values: TypedArray | undefined = tensor?.copy().data;
  msg.release();
  const one: Message | null = rx.tryRecv();
  const many: Batch | null = rx.tryRecvBatch({ max: 10 });
  const sync: Message = rx.recvSync({ timeout: 1, allowMainThread: true });
  const batch: Batch = rx.recvBatchSync({ max: 1, timeout: 1 });
  const info: FrameInfo = await rx.recvInto(new Uint8Array(8), { signal });
  const there: FrameInfo | null = rx.tryRecvInto(new Uint8Array(8));
  const taken: FrameInfo = rx.recvIntoSync(new Uint8Array(8), { timeout: 1 });
  const readable: ReadableStream<Uint8Array> = rx.readable;
  rx.pause();
  rx.resume();
  void [data, copy, tag, text, shape, values, one, many, sync, batch, info, there, taken, readable];
  // @ts-expect-error the view is the message's
  msg.data = data;
  // @ts-expect-error a tag is a bigint
  const wrong: number = msg.tag;
  void wrong;
}

export async function opens(name: string): Promise<void> {
  const options: RingOptions = { capacity: 4096, align: 64, persistent: true, mode: 0o600, wait: 'spin' };
  const ring: Ring = Ring.openOrCreate(name, options);
  const tx: Sender = await ring.sender({ timeout: 5 });
  const rx: Receiver = Ring.open(name).receiverSync();
  const [left, right] = Ring.pair(4096, { wait: 'block' });
  same<typeof left, Sender>(true);
  same<typeof right, Receiver>(true);
  const wait: WaitPolicy = tx.wait;
  tx.wait = 'hybrid';
  const numbers: number[] = [tx.capacity, tx.align, tx.peerEpoch, tx.epoch, tx.used, tx.maxMessageLength];
  const facts: boolean[] = [tx.closed, tx.peerAlive, rx.closed];
  const last: bigint | null = tx.lastTag;
  tx.on('drain', () => undefined).once('close', () => undefined);
  rx.on('message', (msg) => {
    same<typeof msg, Message>(true);
  }).on('error', (error) => {
    if (error instanceof RamwayError) void [error.code, error.kind, error.errno];
  });
  tx.unref();
  rx.ref();
  await tx.end();
  rx.close();
  void [wait, numbers, facts, last, version.length];
  // @ts-expect-error there is no such way to wait
  tx.wait = 'sleep';
  // @ts-expect-error a name is text
  Ring.open(5);
}

export async function connects(name: string): Promise<void> {
  const connect: ConnectOptions & WaitOptions = { timeout: 5, signal };
  const listen: ListenOptions & WaitOptions = { capacity: 4096, timeout: 5 };
  const bus: Bus = await Bus.connect(name, connect);
  const other: Bus = await Bus.listen(name, listen);
  const both: [SenderMethods, ReceiverMethods] = [bus, bus];
  const blocking: Bus[] = [Bus.connectSync(name, { allowMainThread: true }), Bus.listenSync(name)];
  const duplex: Duplex = bus.toDuplex({ objectMode: true, signal });
  const halves: [Sender, Receiver] = [bus.sender, bus.receiver];
  const peer: [number, number | undefined] = [bus.peerUid, bus.peerPid];
  bus.on('message', (msg) => void msg.data);
  const listener: Listener = await Listener.bind(name, { backlog: 5 });
  listener.on('connection', (one) => {
    same<typeof one, Bus>(true);
  });
  for await (const one of listener) one.close();
  const accepted: Bus = await listener.accept({ timeout: 5 });
  const sync: SyncOptions = { timeout: 1 };
  const refusal: string | undefined = listener.lastRefusal;
  void [both, blocking, duplex, halves, peer, accepted, listener.acceptSync(sync), refusal, listener.path, other.end()];
  listener.close();
}

export async function regions(name: string): Promise<void> {
  const region: Region = await Region.create(name, 4096, { persistent: true });
  const buffer: ArrayBuffer = region.buffer;
  const bytes: Uint8Array = region.readAt(0, 8);
  region.writeAt(8, 'text');
  region.notify();
  const seen: number = await region.waitAsync({ since: region.notifications, timeout: 5, signal });
  const again: number = region.waitSync({ since: seen, timeout: 0 });
  void [buffer, bytes, again, region.size, region.readOnly, region.closed, Region.openSync(name)];
  region.close();
}

export async function calls(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const connect: RpcConnectOptions & WaitOptions = { timeout: 5, signal, maxBuffered: 1 << 20, allowUids: [0] };
  const client: RpcClient = await RpcClient.connect(name, connect);
  const options: CallOptions = { timeout: 5, signal, meta: 'trace' };
  const reply: Reply = await client.call('Store.Get', bytes, options);
  const [body, meta]: [Uint8Array, Uint8Array] = [reply.body, reply.meta];
  const sync: Reply = client.callSync(7, 'key', { allowMainThread: true, timeout: 5 });
  const pending: Pending = client.start(methodId('Store.Get'));
  const awaited: Reply = await pending;
  const [done, there]: [boolean, Reply | null] = [pending.done, pending.tryReply()];
  const stream: RpcStream = client.stream('Store.Scan', '', { ...options, window: 4 });
  for await (const element of stream) same<typeof element, Reply>(true);
  const result: IteratorResult<Reply, undefined> = await stream.next({ timeout: 5 });
  const methods: MethodInfo[] = await client.describe();
  try {
    await client.ping({ timeout: 5 });
  } catch (error) {
    if (error instanceof CallError) {
      const status: CallStatus | undefined = error.status;
      const rest: [number, string, boolean, string] = [error.applicationCode, error.text, error.mayHaveRun, error.code];
      void [status, rest];
    }
  }
  const peer: [number, number | undefined] = [client.peerUid, client.peerPid];
  const limits: number[] = [client.inFlight, client.maxInFlight, client.maxRequestLength];
  void [body, meta, sync, awaited, done, there, result, methods, peer, limits, client.closed];
  // @ts-expect-error a window is of streams
  void client.call(7, 'x', { window: 4 });
  // @ts-expect-error a method is a number or a name
  void client.call({});
  client.close();
}

const frame: FrameOptions = { typeId: 1 };
void frame;
