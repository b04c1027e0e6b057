package dev.ramway.kotlin

import dev.ramway.CallOptions
import dev.ramway.RpcReply
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlin.time.Duration

/** How a call is made: the block of [RpcClient.call] and the others. What each property means: [CallOptions]. */
@RamwayDsl
public class CallOptionsBuilder internal constructor() {
    /** The call's time limit; infinite: none. */
    public var timeout: Duration = Duration.INFINITE

    /** Metadata of the request. */
    public var meta: ByteArray = ByteArray(0)

    /** Of a stream: how many elements may be under way. */
    public var window: Int = CallOptions.DEFAULT.window()

    internal fun build() = CallOptions(if (timeout.isInfinite()) null else timeout.java(), meta, window)
}

/** How to connect: the block of [RpcClient.connect]. What each property means: [dev.ramway.RpcClient.Builder]. */
@RamwayDsl
public class RpcClientBuilder internal constructor() {
    private val connection = ConnectOptionsBuilder()

    /** How long to wait for a server that is not there yet. */
    public var timeout: Duration by connection::timeout
    public var allowUids: Set<Int> by connection::allowUids
    public var waitMode: dev.ramway.WaitMode by connection::waitMode

    /** Bytes of replies that nobody has taken yet; null: four times the capacity of the ring. */
    public var maxBuffered: Long? = null

    internal fun connect(name: String): dev.ramway.RpcClient {
        val builder = dev.ramway.RpcClient.builder(name).timeout(timeout.java()).allowUids(allowUids).waitMode(waitMode)
        maxBuffered?.let { builder.maxBuffered(it) }
        return builder.connect()
    }
}

/**
 * Calls the methods of an RPC server of any language. For any number of coroutines at a time. A call that is cancelled, or whose
 * coroutine is, ends at once, and the server is told. A call that fails throws [dev.ramway.RpcException].
 *
 * ```kotlin
 * RpcClient.connect("store").use { client ->
 *     val value = client.call(RpcClient.methodId("Store.Get"), key)
 *     client.stream(RpcClient.methodId("Store.Keys"), ByteArray(0)).collect { println(String(it.body())) }
 * }
 * ```
 */
public class RpcClient internal constructor(
    /** The Java port's own client, whose calls block. */
    public val blocking: dev.ramway.RpcClient,
) : AutoCloseable {
    /** Sends a request and waits for its reply. */
    public suspend fun call(method: Int, body: ByteArray): ByteArray = call(method, body) {}.body()

    /** Sends a request and waits for its reply, which has metadata too. */
    public suspend fun call(method: Int, body: ByteArray, block: CallOptionsBuilder.() -> Unit): RpcReply =
        start(method, body, block).use { it.await() }

    /**
     * Sends a request and does not wait. Where nobody waits for a call of the client, nothing is received.
     *
     * @return the call; close lets go of it and cancels it
     */
    public fun start(method: Int, body: ByteArray, block: CallOptionsBuilder.() -> Unit = {}): RpcPending =
        RpcPending(blocking.start(method, body, options(block)))

    /**
     * The elements of a call whose reply is a stream. Cold: each collection makes a call, which is cancelled when the collection ends
     * before. A collector that is slow stops its own stream and nothing else.
     */
    public fun stream(method: Int, body: ByteArray, block: CallOptionsBuilder.() -> Unit = {}): Flow<RpcReply> = flow {
        blocking.stream(method, body, options(block)).use { stream ->
            while (true) {
                val element = pollFirst { stream.tryNext() } ?: onThread { stream.next() } ?: break
                emit(element)
            }
        }
    }

    private fun options(block: CallOptionsBuilder.() -> Unit): CallOptions = CallOptionsBuilder().apply(block).build()

    /** Waits until the server has answered: it is there and reads. */
    public suspend fun ping(): Unit = onThread { blocking.ping() }

    /** The server's methods, in the order of their numbers. */
    public suspend fun describe(): List<dev.ramway.RpcClient.Method> = onThread { blocking.describe() }

    /** How many calls the server lets this client have in flight; more wait in the client. */
    public val maxInFlight: Long get() = blocking.maxInFlight()

    /** How many calls are in flight now. */
    public val inFlight: Int get() = blocking.inFlight()

    /** The user that the server acted as when the connection was made. */
    public val peerUid: Int get() = blocking.peerUid()

    /** The server's process when the connection was made; 0 if it has no number here. */
    public val peerPid: Int get() = blocking.peerPid()

    /** Ends the connection; calls under way end with Closed. */
    override fun close(): Unit = blocking.close()

    public companion object {
        /** Connects to a server, and waits for one that is not there yet as long as the options say. */
        public suspend fun connect(name: String, block: RpcClientBuilder.() -> Unit = {}): RpcClient {
            val builder = RpcClientBuilder().apply(block)
            return opening { RpcClient(builder.connect(name)) }
        }

        /** The number of a method's name. */
        public fun methodId(name: String): Int = dev.ramway.RpcClient.methodId(name)
    }
}

/** A call that is under way. Close lets go of it: it is cancelled unless its outcome is known. */
public class RpcPending internal constructor(
    /** The Java port's own, whose calls block. */
    public val blocking: dev.ramway.RpcPending,
) : AutoCloseable {
    /** Waits for the reply. To cancel the wait, by `withTimeout` for example, does not cancel the call. */
    public suspend fun await(): RpcReply = pollFirst { blocking.tryGet() } ?: onThread { blocking.get() }

    /** The reply if it is there, else null. */
    public fun tryGet(): RpcReply? = blocking.tryGet()

    /** Cancels the call, unless its outcome is known. */
    public fun cancel(): Unit = blocking.cancel()

    override fun close(): Unit = blocking.close()
}

/** Waits on a virtual thread, which may receive for others too; cancelling interrupts it. */
private suspend fun <T> onThread(wait: () -> T): T = suspendCancellableCoroutine { continuation ->
    val thread = Thread.ofVirtual().name("ramway-call").unstarted { continuation.resumeWith(runCatching(wait)) }
    continuation.invokeOnCancellation { thread.interrupt() }
    thread.start()
}
