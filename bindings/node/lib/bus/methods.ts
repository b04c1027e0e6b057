import type { Message } from '../ring/message.js';
import type { Receiver } from '../ring/receiver.js';
import type { Sender } from '../ring/sender.js';

/** What sends: a {@link Sender}, or a bus. */
export type SenderMethods = Pick<
  Sender,
  | 'send'
  | 'trySend'
  | 'sendSync'
  | 'sendVectored'
  | 'trySendVectored'
  | 'sendVectoredSync'
  | 'sendBatch'
  | 'reserve'
  | 'tryReserve'
  | 'reserveSync'
  | 'sendTensor'
  | 'trySendTensor'
  | 'reserveTensor'
  | 'tryReserveTensor'
  | 'flush'
  | 'writable'
>;

/** What receives: a {@link Receiver}, or a bus. */
export type ReceiverMethods = Pick<
  Receiver,
  | 'recv'
  | 'tryRecv'
  | 'recvSync'
  | 'recvBatch'
  | 'tryRecvBatch'
  | 'recvBatchSync'
  | 'recvInto'
  | 'tryRecvInto'
  | 'recvIntoSync'
  | 'messages'
  | 'batches'
  | 'readable'
> &
  AsyncIterable<Message> & {
    /** Holds the 'message' event back. */
    pause(): unknown;
    /** Goes on with the 'message' event. */
    resume(): unknown;
  };
