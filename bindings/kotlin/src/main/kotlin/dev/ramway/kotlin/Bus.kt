package dev.ramway.kotlin

import dev.ramway.Message
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow

/**
 * A full-duplex connection of two processes. One coroutine at a time may send, and one receive.
 *
 * ```kotlin
 * Bus.connect("orders").use { bus ->
 *     bus.sender.send(TypeId(1), order)
 *     bus.receiver.recv().use { answer -> println(answer.getLong(0)) }
 * }
 * ```
 */
public class Bus internal constructor(
    /** The Java port's own handle. */
    public val blocking: dev.ramway.Bus,
) : AutoCloseable {
    /** The sending half; Unsupported if this direction has no capacity. */
    public val sender: Sender by lazy { Sender(blocking.sender()) }

    /** The receiving half; Unsupported if this direction has no capacity. */
    public val receiver: Receiver by lazy { Receiver(blocking.receiver()) }

    /** The user that the peer acted as when the connection was made. */
    public val peerUid: Int get() = blocking.peerUid()

    /** The peer's process when the connection was made; 0 if it has no number here. */
    public val peerPid: Int get() = blocking.peerPid()

    /** Whether the peer still holds its end. One system call. */
    public val peerAlive: Boolean get() = blocking.peerAlive()

    /** [Sender.send] of [sender]. */
    public suspend fun send(type: TypeId, data: ByteArray): Unit = sender.send(type, data)

    /** [Sender.send] of [sender]. */
    public suspend fun send(type: TypeId, tag: Long, data: ByteArray): Unit = sender.send(type, tag, data)

    /** [Receiver.recv] of [receiver]. */
    public suspend fun recv(): Message = receiver.recv()

    /** [Receiver.messages] of [receiver]. */
    public fun messages(): Flow<Message> = receiver.messages()

    /** Gives the connection up without saying that this was all: the peer's receiver gets PeerDead. */
    public fun abandon(): Unit = blocking.abandon()

    /** Closes both halves; what was sent before is delivered. */
    override fun close(): Unit = blocking.close()

    public companion object {
        /** Listens, takes one peer, and removes the name again. */
        public suspend fun listen(name: String, block: ListenOptionsBuilder.() -> Unit = {}): Bus {
            val options = ListenOptionsBuilder().apply(block).build()
            return opening { Bus(dev.ramway.Bus.listen(name, options)) }
        }

        /** Connects to a listener, and waits for one that is not there yet as long as the options say. */
        public suspend fun connect(name: String, block: ConnectOptionsBuilder.() -> Unit = {}): Bus {
            val options = ConnectOptionsBuilder().apply(block).build()
            return opening { Bus(dev.ramway.Bus.connect(name, options)) }
        }
    }
}

/**
 * Accepts buses under a name.
 *
 * ```kotlin
 * Listener.bind("orders").use { listener ->
 *     supervisorScope {
 *         listener.connections().collect { bus -> launch { bus.use { serve(it) } } }
 *     }
 * }
 * ```
 */
public class Listener internal constructor(
    /** The Java port's own handle. */
    public val blocking: dev.ramway.Listener,
) : AutoCloseable {
    /** Where the socket is. */
    public val path: String get() = blocking.path()

    /** The next connection, to be closed; waits for it on a thread of [kotlinx.coroutines.Dispatchers.IO]. */
    public suspend fun accept(): Bus = opening { Bus(blocking.accept()) }

    /** The next connection if there is one now, else null; after a call that found none, one is wanted. */
    public fun tryAccept(): Bus? = blocking.tryAccept()?.let { Bus(it) }

    /** How many connectors were refused. */
    public val refused: Long get() = blocking.refused()

    /** Why the last one was. */
    public val lastRefusal: dev.ramway.RamwayException? get() = blocking.lastRefusal().orElse(null)

    /** The connections, each the collector's to close. */
    public fun connections(): Flow<Bus> = flow {
        while (true) emit(accept())
    }

    /** Accepts nobody any more; buses that were accepted stay. */
    override fun close(): Unit = blocking.close()

    public companion object {
        /** Listens. */
        public fun bind(name: String, block: ListenOptionsBuilder.() -> Unit = {}): Listener =
            Listener(dev.ramway.Listener.bind(name, ListenOptionsBuilder().apply(block).build()))
    }
}
