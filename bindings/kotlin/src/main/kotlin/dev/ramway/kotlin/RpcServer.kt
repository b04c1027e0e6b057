package dev.ramway.kotlin

import dev.ramway.RpcRequest
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.buffer
import kotlinx.coroutines.flow.produceIn
import kotlinx.coroutines.job
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.runInterruptible
import java.util.concurrent.Executor
import kotlin.time.Duration

/** How to serve: the block of [RpcServer.bind]. What each property means: [dev.ramway.RpcServer.Builder]. */
@RamwayDsl
public class RpcServerBuilder internal constructor() {
    private val listening = ListenOptionsBuilder()

    /** Bytes of both rings of every client. */
    public var capacity: Long by listening::toPeer

    /** In bytes. */
    public var align: Int by listening::align

    /** Permission bits of the socket; 0 is 0600, or 0666 with [allowUids]. */
    public var mode: Int by listening::mode
    public var allowUids: Set<Int> by listening::allowUids

    /** How long a client may take for each message of the handshake. */
    public var handshakeTimeout: Duration by listening::handshakeTimeout
    public var waitMode: dev.ramway.WaitMode by listening::waitMode

    /** How many clients there may be at a time; null: 128. */
    public var maxClients: Int? = null

    /** How many calls a client may have in flight; null: 1024. */
    public var maxInFlight: Int? = null

    /** Bytes of requests and replies that are copied for one client; null: four times [capacity]. */
    public var maxBytes: Long? = null

    /** How many handlers may run at a time, of all clients; null: 1024. */
    public var handlers: Int? = null

    /** What runs handlers; null: virtual threads. */
    public var executor: Executor? = null

    internal fun bind(name: String): dev.ramway.RpcServer {
        val builder = dev.ramway.RpcServer.builder(name).capacity(capacity).align(align).mode(mode).allowUids(allowUids)
            .handshakeTimeout(handshakeTimeout.java()).waitMode(waitMode)
        maxClients?.let { builder.maxClients(it) }
        maxInFlight?.let { builder.maxInFlight(it) }
        maxBytes?.let { builder.maxBytes(it) }
        handlers?.let { builder.handlers(it) }
        executor?.let { builder.executor(it) }
        return builder.bind()
    }
}

/**
 * Serves methods to RPC clients of any language. A handler suspends as it likes: it runs on a virtual thread of its own, and is
 * cancelled when its call is. [RpcRequest.fail] is the error to throw that ends a call with a number and a text of the
 * application's; any other exception is HandlerFailed.
 *
 * ```kotlin
 * RpcServer.bind("store").use { server ->
 *     server.method("Store.Get") { request -> store.get(request.body()) ?: throw request.fail(404, "no such key") }
 *     server.stream("Store.Keys") { store.keys() }
 *     server.serve()
 * }
 * ```
 */
public class RpcServer internal constructor(
    /** The Java port's own server. */
    public val blocking: dev.ramway.RpcServer,
) : AutoCloseable {
    /** Registers a method that gives one reply. */
    public fun method(number: Int, handler: suspend (RpcRequest) -> ByteArray) {
        blocking.method(number) { request -> runBlocking { handler(request) } }
    }

    /** The same by name: the number is [RpcClient.methodId]. */
    public fun method(name: String, handler: suspend (RpcRequest) -> ByteArray) {
        blocking.method(name) { request -> runBlocking { handler(request) } }
    }

    /**
     * Registers a method that gives one reply, and whose handler runs on the thread that reads what its client asks: for what takes
     * microseconds. It does not suspend, and must not block: until it returns, nothing else of this client is seen.
     */
    public fun inlineMethod(number: Int, handler: (RpcRequest) -> ByteArray) {
        blocking.inlineMethod(number) { request -> handler(request) }
    }

    /** The same by name: the number is [RpcClient.methodId]. */
    public fun inlineMethod(name: String, handler: (RpcRequest) -> ByteArray) {
        blocking.inlineMethod(name) { request -> handler(request) }
    }

    /**
     * Registers a method whose reply is a stream. The flow is collected as fast as the client takes the elements, but for one, on
     * [Dispatchers.Default].
     */
    public fun stream(number: Int, handler: (RpcRequest) -> Flow<ByteArray>) {
        blocking.stream(number) { request -> Elements(handler(request)) }
    }

    /** The same by name: the number is [RpcClient.methodId]. */
    public fun stream(name: String, handler: (RpcRequest) -> Flow<ByteArray>) {
        blocking.stream(name) { request -> Elements(handler(request)) }
    }

    /** Serves until the server is shut down. Cancelling ends the wait; clients that are connected are served on until [close]. */
    public suspend fun serve(): Unit = runInterruptible(Dispatchers.IO) { blocking.serve() }

    /**
     * Takes no new client and no new call, waits for the running ones for up to [limit], cancels the rest, and closes. Cancelling does
     * the latter two at once.
     */
    public suspend fun shutdown(limit: Duration): Unit = runInterruptible(Dispatchers.IO) { blocking.shutdown(limit.java()) }

    /** How many clients are connected. */
    public val clients: Int get() = blocking.clients()

    /** Where the socket is. */
    public val path: String get() = blocking.path()

    /** [shutdown] without a limit for running calls: they are cancelled. */
    override fun close(): Unit = blocking.close()

    public companion object {
        /** Listens. Clients are taken once [serve] runs. */
        public fun bind(name: String, block: RpcServerBuilder.() -> Unit = {}): RpcServer =
            RpcServer(RpcServerBuilder().apply(block).bind(name))
    }
}

/** A flow that is collected one element at a time. */
private class Elements(flow: Flow<ByteArray>) : Iterator<ByteArray>, AutoCloseable {
    private val scope = CoroutineScope(Dispatchers.Default)
    private val elements = flow.buffer(Channel.RENDEZVOUS).produceIn(scope).iterator()

    override fun hasNext(): Boolean = runBlocking { elements.hasNext() }

    override fun next(): ByteArray = elements.next()

    /** The call has its final reply once this returns: the flow has ended then. */
    override fun close(): Unit = runBlocking { scope.coroutineContext.job.cancelAndJoin() }
}
