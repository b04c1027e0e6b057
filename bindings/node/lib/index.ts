/** Shared memory between the processes of one machine, for Node.js, Bun and Deno. */
import * as native from '../native.cjs';

export { Batch } from './batch.js';
export { Bus, type BusEvents } from './bus.js';
export { type ErrorKind, RamwayError } from './errors.js';
export { Listener, type ListenerEvents } from './listener.js';
export { Message } from './message.js';
export type { ReceiverMethods, SenderMethods } from './methods.js';
export type {
  ConnectOptions,
  FromFdOptions,
  ListenOptions,
  PairOptions,
  PlacementOptions,
  RegionOpenOptions,
  RegionOptions,
  RingOptions,
  UnnamedOptions,
  WaitPolicy,
} from './options.js';
export { type FrameInfo, Receiver, type ReceiverEvents } from './receiver.js';
export { Region } from './region.js';
export { Ring } from './ring.js';
export { type Cleaned, type CleanOptions, clean, ls, type Segment, type SegmentKind, unlink } from './segments.js';
export { Sender } from './sender.js';
export type {
  Filled,
  FrameOptions,
  SenderEvents,
  TensorFill,
  TensorFilled,
  TensorOptions,
} from './sending.js';
export type { Data, DuplexOptions } from './streams.js';
export type { Tensor, TensorLike, TensorShape, TypedArray } from './tensor.js';
export type { SyncOptions, WaitOptions } from './waiting.js';

/** The package's version. */
export const version: string = native.version();
