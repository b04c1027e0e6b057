package dev.ramway.kotlin

import dev.ramway.Batch
import dev.ramway.ClosedException
import dev.ramway.Message
import dev.ramway.MessageCopy
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.map
import kotlin.time.Duration

/** What the receiving end of a ring and a subscriber of a topic have in common: every way to receive. */
public sealed class ReceivingEnd : AutoCloseable {
    /** The Java port's own handle: everything that is not here, and calls that block a thread. */
    public abstract val blocking: dev.ramway.ReceivingEnd<*>

    /** The number of bytes of the data area. */
    public val capacity: Long get() = blocking.capacity()

    /** What every payload's address is a multiple of, in bytes. */
    public val align: Int get() = blocking.align()

    /** The longest payload that ever fits, in bytes. */
    public val maxMessageLength: Int get() = blocking.maxMessageLength()

    /** How often this role has been attached, this handle included. */
    public val epoch: Int get() = blocking.epoch()

    /** How often the other role has been attached; 0: never yet. */
    public val peerEpoch: Int get() = blocking.peerEpoch()

    /** Whether the sender (of a topic: the publisher) is attached and its process lives. One system call. */
    public val peerAlive: Boolean get() = blocking.peerAlive()

    /**
     * The next message, to be closed (`use`); suspends while there is none. [ClosedException] after the sender's close,
     * [dev.ramway.PeerDeadException] after its death, each when everything was received.
     */
    public suspend fun recv(): Message = pollFirst { blocking.tryRecv() } ?: recvLater()

    // Apart, because a function that suspends in a loop makes a continuation at each call, also where it need not wait.
    private suspend fun recvLater(): Message {
        while (true) {
            awaitMessage()
            pollFirst { blocking.tryRecv() }?.let { return it }
        }
    }

    /** The next message if there is one now, else null. */
    public fun tryRecv(): Message? = blocking.tryRecv()

    /** Up to [max] messages, those that are there, to be closed together; suspends while there is none. */
    public suspend fun recvBatch(max: Int = dev.ramway.ReceivingEnd.BATCH): Batch = pollFirst { blocking.tryRecvBatch(max) } ?: recvBatchLater(max)

    private suspend fun recvBatchLater(max: Int): Batch {
        while (true) {
            awaitMessage()
            pollFirst { blocking.tryRecvBatch(max) }?.let { return it }
        }
    }

    /** Up to [max] messages if there are any now, else null. */
    public fun tryRecvBatch(max: Int = dev.ramway.ReceivingEnd.BATCH): Batch? = blocking.tryRecvBatch(max)

    /** Suspends until a living sender is attached; its epoch. TimedOut after [timeout]. */
    public suspend fun waitForPeer(timeout: Duration = Duration.INFINITE): Int = peer(blocking, timeout)

    /** Suspends until there may be a message, or the sender is gone. */
    public suspend fun awaitMessage(): Unit = awaitCallback { blocking.whenReadable(it) }

    /**
     * The messages until the sender closes. Each is closed when the collector comes back for the next one, or ends, however;
     * one that was collected is not delivered again. A sender that died ends the flow with
     * [dev.ramway.PeerDeadException]. Cold: collecting again goes on with the next message.
     *
     * Operators that let messages wait or go to other coroutines (`buffer`, `flowOn`, `toList`, `flatMapMerge`) need
     * [copies]: a message that was closed throws when it is read.
     */
    public fun messages(): Flow<Message> = flow {
        while (true) {
            // Only the receive's own Closed is the end of the flow: the collector may fail with one of another ring.
            val message = orEnd { blocking.tryRecv() ?: recv() } ?: break
            message.use { emit(it) }
        }
    }

    /** As [messages], up to [max] at a time, those that are there: one release and one emission for all of them. */
    public fun batches(max: Int = dev.ramway.ReceivingEnd.BATCH): Flow<Batch> = flow {
        while (true) {
            val batch = orEnd { blocking.tryRecvBatch(max) ?: recvBatch(max) } ?: break
            batch.use { emit(it) }
        }
    }

    /** As [messages], each copied out of the ring or topic: for operators that keep them. */
    public fun copies(): Flow<MessageCopy> = messages().map { it.copy() }

    /** Tells the sender that nobody receives any more, and gives the role up. */
    override fun close(): Unit = blocking.close()
}

/** Null for an orderly close, which is the end of a flow and not its failure. */
private inline fun <T : Any> orEnd(receive: () -> T): T? =
    try {
        receive()
    } catch (_: ClosedException) {
        null
    }
