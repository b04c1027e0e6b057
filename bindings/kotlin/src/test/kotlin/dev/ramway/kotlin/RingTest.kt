package dev.ramway.kotlin

import dev.ramway.ClosedException
import dev.ramway.ErrorKind
import dev.ramway.RamwayException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.test.runTest
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import java.lang.foreign.MemorySegment
import java.nio.ByteBuffer
import kotlin.test.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.measureTime

class RingTest {
    private val type = TypeId(7)

    @Test
    fun `what is sent is received, however it was given`() = runTest {
        ringPair().use { (tx, rx) ->
            val bytes = "hello".toByteArray()
            tx.send(type, 1, bytes)
            tx.send(type, 2, ByteBuffer.wrap(bytes))
            tx.send(type, 3, MemorySegment.ofArray(bytes))
            tx.send(type, 4, bytes.size) { slot -> slot.put(0, bytes) }
            for (tag in 1L..4) {
                rx.recv().use {
                    assertEquals(type, it.type)
                    assertEquals(tag, it.tag())
                    assertContentEquals(bytes, it.toByteArray())
                }
            }
            assertNull(rx.tryRecv())
            assertEquals(4, tx.lastTag)
        }
    }

    @Test
    fun `a fill that throws sends nothing`() = runTest {
        ringPair().use { (tx, rx) ->
            assertFailsWith<IllegalStateException> { tx.send(type, 100) { error("no") } }
            assertNull(rx.tryRecv())
            tx.send(type, 9, ByteArray(0))
            rx.recv().use { assertEquals(9, it.tag()) }
        }
    }

    @Test
    fun `a full ring suspends the sender and no thread`() = runTest {
        ringPair { capacity = 4.KiB }.use { (tx, rx) ->
            val payload = ByteArray(1000)
            var sent = 0
            while (tx.trySend(type, sent.toLong(), payload)) sent++
            val waiting = launch { tx.send(type, sent.toLong(), payload) }
            // The test's one thread is free: else this would never run.
            withContext(Dispatchers.Default) { Thread.sleep(50) }
            assertFalse(waiting.isCompleted)
            for (tag in 0L..sent) rx.recv().use { assertEquals(tag, it.tag()) }
            waiting.join()
        }
    }

    @Test
    fun `two coroutines on other threads pass a hundred thousand messages in order`() = runBlocking {
        ringPair { capacity = 16.KiB }.use { (tx, rx) ->
            val count = 100_000L
            val sender = launch(Dispatchers.Default) {
                for (i in 0 until count) tx.send(type, i, 8) { it.putLong(0, i * i) }
                tx.close()
            }
            val received = async(Dispatchers.Default) {
                var next = 0L
                rx.messages().collect {
                    check(it.tag() == next && it.getLong(0) == next * next) { "message ${it.tag()} after $next" }
                    next++
                }
                next
            }
            sender.join()
            assertEquals(count, received.await())
        }
    }

    @Test
    fun `a wait that nobody ends is cancelled at once, and the ring goes on`() = runBlocking {
        ringPair { capacity = 4.KiB }.use { (tx, rx) ->
            repeat(20) {
                val waiting = launch(Dispatchers.Default) { rx.recv().close() }
                withContext(Dispatchers.Default) { Thread.sleep(10) }
                val took = measureTime { withTimeout(20.seconds) { waiting.cancelAndJoin() } }
                assertTrue(took < 25.seconds, "cancelled after $took")
            }
            assertFailsWith<TimeoutCancellationException> { withTimeout(20.milliseconds) { rx.recv() } }
            while (tx.trySend(type, ByteArray(1000))) continue
            assertFailsWith<TimeoutCancellationException> { withTimeout(20.milliseconds) { tx.send(type, ByteArray(1000)) } }
            rx.recv().close()
            tx.send(type, ByteArray(1000))
        }
    }

    @Test
    fun `what cannot be is said with its kind`() = runTest {
        ringPair { capacity = 4.KiB }.use { (tx, rx) ->
            assertEquals(ErrorKind.TOO_LARGE, assertFailsWith<RamwayException> { tx.send(type, ByteArray(5000)) }.kind())
            val reserved = TypeId(0xFFFF0000u)
            assertEquals("4294901760", reserved.toString())
            assertEquals(
                ErrorKind.INVALID_ARGUMENT,
                assertFailsWith<RamwayException> { tx.send(reserved, ByteArray(1)) }.kind(),
            )
            rx.close()
            assertFailsWith<ClosedException> { tx.send(type, ByteArray(1)) }
            tx.close()
            assertEquals(ErrorKind.DETACHED, assertFailsWith<RamwayException> { tx.send(type, ByteArray(1)) }.kind())
        }
    }

    @Test
    fun `a handle that is closed by another coroutine ends the one that waits`() = runBlocking {
        ringPair().use { (_, rx) ->
            val waiting = async(Dispatchers.Default) { runCatching { rx.recv().close() } }
            withContext(Dispatchers.Default) { Thread.sleep(50) }
            rx.close()
            val failure = withTimeout(5.seconds) { waiting.await() }.exceptionOrNull()
            assertEquals(ErrorKind.DETACHED, (failure as RamwayException).kind())
        }
    }

    @Test
    fun `options say what the ring is, and an opening that waits is cancelled`() = runBlocking {
        val name = freshName("options")
        Sender.create(name) {
            capacity = 64.KiB
            align = 64
        }.use { tx ->
            assertEquals(65536, tx.capacity)
            assertEquals(64, tx.align)
            assertEquals(65536 - 16, tx.maxMessageLength)
            val differs = assertFailsWith<RamwayException> { Receiver.open(name) { capacity = 1.MiB } }
            assertEquals(ErrorKind.INVALID_ARGUMENT, differs.kind())
            Receiver.open(name).use { assertTrue(tx.peerAlive) }
        }
        // A close is delivered like a message, and the ring stays until then.
        Receiver.open(name).use { rx -> assertFailsWith<ClosedException> { rx.recv() } }
        val missing = assertFailsWith<RamwayException> { Receiver.open(freshName("missing")) }
        assertEquals(ErrorKind.NOT_FOUND, missing.kind())
        val took = measureTime {
            assertFailsWith<TimeoutCancellationException> {
                withTimeout(100.milliseconds) { Receiver.open(freshName("missing")) { timeout = 30.seconds } }
            }
        }
        assertTrue(took < 25.seconds, "cancelled after $took")
    }

    @Test
    fun `a scope that fails is no orderly end`() = runBlocking {
        val name = "abandoned-${System.nanoTime()}"
        Receiver.create(name).use { rx ->
            assertFailsWith<IllegalStateException> {
                Sender.open(name).useOrAbandon { tx ->
                    tx.send(type, 1, ByteArray(3))
                    error("in the middle of it")
                }
            }
            rx.recv().use { assertEquals(1, it.tag()) }
            assertFailsWith<dev.ramway.PeerDeadException> { rx.recv() }
            assertEquals(3, Sender.open(name).useOrAbandon { it.send(type, ByteArray(3)); 3 })
            rx.recvBatch().use { assertEquals(1, it.size()) }
            assertFailsWith<ClosedException> { rx.recv() }
        }
    }

    @Test
    fun `a peer is waited for`() = runBlocking {
        val name = "waited-${System.nanoTime()}"
        Receiver.create(name).use { rx ->
            assertFailsWith<dev.ramway.TimedOutException> { rx.waitForPeer(1.milliseconds) }
            val waiting = async(Dispatchers.Default) { rx.waitForPeer() }
            Sender.open(name).use { tx ->
                assertEquals(1, waiting.await())
                assertEquals(1, tx.waitForPeer(kotlin.time.Duration.ZERO))
            }
            // Cancelling ends it, and loses nothing.
            assertFailsWith<TimeoutCancellationException> { withTimeout(20.milliseconds) { rx.waitForPeer() } }
            assertEquals(null, runCatching { rx.tryRecv() }.getOrNull())
        }
    }
}
