package dev.ramway.kotlin

import dev.ramway.ErrorKind
import dev.ramway.RpcException
import dev.ramway.RpcStatus
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.asFlow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.onCompletion
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds

class RpcTest {
    private val nothing = ByteArray(0)

    /** A server beside a client. */
    private fun served(block: suspend CoroutineScope.(RpcServer, RpcClient) -> Unit) = runBlocking(Dispatchers.Default) {
        val name = freshName("rpc")
        RpcServer.bind(name) { capacity = 64.KiB }.use { server ->
            val serving = launch { server.serve() }
            server.method(1) { it.body() }
            server.method("Echo") { request ->
                request.replyMeta(request.meta())
                request.body()
            }
            RpcClient.connect(name) { timeout = 30.seconds }.use { client -> withTimeout(60.seconds) { block(server, client) } }
            server.shutdown(Duration.ZERO)
            serving.join()
        }
    }

    @Test
    fun `a call has its reply`() = served { server, client ->
        assertContentEquals("hello".toByteArray(), client.call(1, "hello".toByteArray()))
        val reply = client.call(RpcClient.methodId("Echo"), "x".toByteArray()) {
            meta = "trace".toByteArray()
            timeout = 30.seconds
        }
        assertContentEquals("trace".toByteArray(), reply.meta())
        client.ping()
        assertEquals(listOf("", "Echo"), client.describe().map { it.name() })
        assertEquals(1024, client.maxInFlight)
        assertEquals(0, client.inFlight)
        assertEquals(ProcessHandle.current().pid(), client.peerPid.toLong())
        assertEquals(1, server.clients)
    }

    @Test
    fun `an inline handler runs where requests are read`() = served { server, client ->
        val threads = mutableListOf<Thread>()
        server.inlineMethod(2) { request ->
            threads += Thread.currentThread()
            request.body()
        }
        server.inlineMethod("Inline.Fails") { request -> throw request.fail(404, "no such key") }
        repeat(3) { assertContentEquals("hello".toByteArray(), client.call(2, "hello".toByteArray())) }
        assertEquals(listOf(false), threads.distinct().map { it.isVirtual })
        assertEquals(404, assertFailsWith<RpcException> { client.call(RpcClient.methodId("Inline.Fails"), nothing) }.code())
    }

    @Test
    fun `an error says what`() = served { server, client ->
        server.method(2) { request -> throw request.fail(404, "no such key") }
        server.method(3) { error("a mistake") }
        val failed = assertFailsWith<RpcException> { client.call(2, nothing) }
        assertEquals(404 to "no such key", failed.code() to failed.text())
        assertEquals(RpcStatus.HANDLER_FAILED, assertFailsWith<RpcException> { client.call(3, nothing) }.status().get())
        assertEquals(RpcStatus.NO_SUCH_METHOD, assertFailsWith<RpcException> { client.call(4, nothing) }.status().get())
        val late = assertFailsWith<RpcException> { client.call(1, nothing) { timeout = Duration.ZERO } }
        assertEquals(ErrorKind.TIMED_OUT, late.error().get())
    }

    @Test
    fun `many coroutines share a client`() = served { server, client ->
        server.method(2) { request ->
            delay(1.milliseconds)
            request.body()
        }
        (0 until 500).map { i ->
            async {
                val body = byteArrayOf(i.toByte(), (i shr 8).toByte())
                assertContentEquals(body, client.call(1 + i % 2, body))
            }
        }.awaitAll()
        assertEquals(0, client.inFlight)
    }

    @Test
    fun `a cancelled coroutine cancels its call`() = served { server, client ->
        val cancelled = CompletableDeferred<Unit>()
        val began = CompletableDeferred<Unit>()
        server.method(2) { _ ->
            began.complete(Unit)
            try {
                delay(Duration.INFINITE)
            } catch (end: CancellationException) {
                cancelled.complete(Unit)
                throw end
            }
            nothing
        }
        val call = launch { client.call(2, nothing) }
        began.await()
        call.cancel()
        call.join()
        cancelled.await()
        while (client.inFlight > 0) client.ping()
        assertFailsWith<TimeoutCancellationException> { withTimeout(10.milliseconds) { client.call(2, nothing) } }
        while (client.inFlight > 0) client.ping()
    }

    @Test
    fun `a wait that is cancelled leaves the call`() = served { server, client ->
        val gate = CompletableDeferred<Unit>()
        server.method(2) { request ->
            gate.await()
            request.body()
        }
        client.start(2, byteArrayOf(7)).use { pending ->
            assertNull(pending.tryGet())
            assertFailsWith<TimeoutCancellationException> { withTimeout(10.milliseconds) { pending.await() } }
            gate.complete(Unit)
            assertEquals(7, pending.await().body()[0])
        }
        val pending = client.start(2, nothing)
        pending.cancel()
        runCatching { pending.await() }.onFailure { assertEquals(RpcStatus.CANCELLED, (it as RpcException).status().get()) }
    }

    @Test
    fun `a flow at each side`() = served { server, client ->
        server.stream(5) { request -> (0 until request.body()[0]).asFlow().map { byteArrayOf(it.toByte()) } }
        server.stream("Fails") {
            flow {
                emit(byteArrayOf(1))
                throw it.fail(5, "after 1")
            }
        }
        for (count in listOf(0, 1, 100)) {
            val found = client.stream(5, byteArrayOf(count.toByte())) { window = 3 }.map { it.body()[0].toInt() }.toList()
            assertEquals((0 until count).toList(), found)
        }
        val elements = mutableListOf<Int>()
        val failed = assertFailsWith<RpcException> {
            client.stream(RpcClient.methodId("Fails"), nothing).collect { elements += it.body()[0].toInt() }
        }
        assertEquals(listOf(1) to 5, elements to failed.code())
    }

    @Test
    fun `a collector that leaves ends the flow at the server`() = served { server, client ->
        val emitted = AtomicInteger()
        val ended = CompletableDeferred<Unit>()
        server.stream(5) {
            flow {
                while (true) {
                    emit(nothing)
                    emitted.incrementAndGet()
                }
            }.onCompletion { ended.complete(Unit) }
        }
        assertEquals(3, client.stream(5, nothing) { window = 4 }.take(3).toList().size)
        ended.await()
        // The window, the credit of what was taken, and what waits at either side of the server.
        assertTrue(emitted.get() <= 4 + 4 + 2, "${emitted.get()} elements")
        client.stream(5, nothing).first()
        while (client.inFlight > 0) client.ping()
    }

    @Test
    fun `calls of a client that closes end`() = served { server, client ->
        val began = CompletableDeferred<Unit>()
        server.method(2) {
            began.complete(Unit)
            delay(Duration.INFINITE)
            nothing
        }
        val call = async { runCatching { client.call(2, nothing) } }
        began.await()
        client.close()
        assertEquals(ErrorKind.CLOSED, (call.await().exceptionOrNull() as RpcException).error().get())
    }

    @Test
    fun `a plain listener is none`() = runBlocking {
        val name = freshName("plain")
        Listener.bind(name).use { listener ->
            val accepting = launch(Dispatchers.Default) { listener.accept().close() }
            val refused = assertFailsWith<dev.ramway.RamwayException> { RpcClient.connect(name) { timeout = 30.seconds } }
            assertEquals(ErrorKind.ABI_MISMATCH, refused.kind())
            Bus.connect(name).close()
            accepting.join()
        }
    }
}
