// The CommonJS build under another name: a program that has both has one set of classes, one poller and one clock.
import ramway from './dist/index.js';

export const { Batch, Bus, Listener, Message, RamwayError, Receiver, Region, Ring, Sender } = ramway;
export const { Publisher, Subscriber, Topic, TopicMessage } = ramway;
export const { CallError, Fault, methodId, Pending, Reply, RpcClient, RpcRequest, RpcServer, RpcStream } = ramway;
export const { clean, ls, merge, unlink, version } = ramway;
