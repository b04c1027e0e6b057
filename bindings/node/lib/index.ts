/** Shared memory between the processes of one machine, for Node.js, Bun and Deno. */
import * as native from '../native.cjs';

export { Bus, type BusEvents } from './bus/bus.js';
export { Listener, type ListenerEvents } from './bus/listener.js';
export type { ReceiverMethods, SenderMethods } from './bus/methods.js';
export type { Data, DuplexOptions } from './bus/streams.js';
export { type ErrorKind, RamwayError } from './errors.js';
export { type MergeOptions, type MessageOf, merge } from './merge.js';
export type {
  ConnectOptions,
  FromFdOptions,
  ListenOptions,
  PairOptions,
  PlacementOptions,
  RegionOpenOptions,
  RegionOptions,
  RingOptions,
  RpcConnectOptions,
  RpcServerOptions,
  TopicOptions,
  UnnamedOptions,
  WaitPolicy,
} from './options.js';
export { Region } from './region.js';
export { Batch } from './ring/batch.js';
export { Message } from './ring/message.js';
export { type FrameInfo, Receiver, type ReceiverEvents } from './ring/receiver.js';
export { Ring } from './ring/ring.js';
export { Sender } from './ring/sender.js';
export type {
  Filled,
  FrameOptions,
  SenderEvents,
  TensorFill,
  TensorFilled,
  TensorOptions,
} from './ring/sending.js';
export { type CallOptions, type CallSyncOptions, Pending, type StreamOptions } from './rpc/call.js';
export { RpcClient } from './rpc/client.js';
export { CallError, type CallStatus, methodId } from './rpc/errors.js';
export { type MethodInfo, Reply } from './rpc/reply.js';
export { Fault, type RpcPeer, RpcRequest } from './rpc/request.js';
export type { RpcBody, RpcElements, RpcHandler, RpcStreamHandler } from './rpc/running.js';
export { type RpcMethodOptions, RpcServer } from './rpc/server.js';
export { RpcStream } from './rpc/stream.js';
export { type Cleaned, type CleanOptions, clean, ls, type Segment, type SegmentKind, unlink } from './segment.js';
export type { Tensor, TensorLike, TensorShape, TypedArray } from './tensor.js';
export type { Policy } from './topic/consumer.js';
export { type TopicFrameInfo, TopicMessage } from './topic/message.js';
export { Publisher, type SubscriberInfo } from './topic/publisher.js';
export { type Lag, Subscriber } from './topic/subscriber.js';
export { type PublisherOptions, type SubscriberOptions, Topic } from './topic/topic.js';
export type { SyncOptions, WaitOptions } from './waiting/waiting.js';

/** The package's version. */
export const version: string = native.version();
