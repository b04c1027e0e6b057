package dev.ramway.kotlin

import dev.ramway.ClosedException
import dev.ramway.Message
import dev.ramway.PeerDeadException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.test.runTest
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import java.lang.foreign.ValueLayout
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

class FlowTest {
    private val type = TypeId(7)

    private fun RingPair.fill(count: Long) {
        for (i in 0 until count) check(sender.trySend(type, i, ByteArray(8) { i.toByte() }))
    }

    @Test
    fun `a flow ends with the sender's close, and collecting again goes on`() = runTest {
        ringPair().use { ring ->
            ring.fill(10)
            assertEquals(listOf(0L, 1L, 2L), ring.receiver.messages().map { it.tag() }.take(3).toList())
            ring.sender.close()
            assertEquals((3L..9L).toList(), ring.receiver.messages().map { it.tag() }.toList())
            assertEquals(emptyList(), ring.receiver.messages().toList())
        }
    }

    @Test
    fun `a message that is kept throws, and a copy does not`() = runTest {
        ringPair().use { ring ->
            ring.fill(3)
            ring.sender.close()
            val kept = ArrayList<Message>()
            ring.receiver.messages().take(2).collect { kept.add(it) }
            for (message in kept) assertFailsWith<IllegalStateException> { message.getLong(0) }
            assertEquals(listOf<Byte>(2), ring.receiver.copies().toList().map { it.data()[7] })
        }
    }

    @Test
    fun `a view outlives a change of threads, and not its message`() = runTest {
        ringPair().use { ring ->
            ring.fill(1)
            ring.sender.close()
            ring.receiver.messages().collect { message ->
                val view = message.data()
                withContext(Dispatchers.IO) { assertEquals(0, view.get(ValueLayout.JAVA_LONG_UNALIGNED, 0)) }
                val sum = message.read { segment -> segment.byteSize() + segment.get(ValueLayout.JAVA_BYTE, 7) }
                assertEquals(8L, sum)
                // Closed on a thread that did not ask for the view.
                withContext(Dispatchers.IO) { message.close() }
                assertFailsWith<IllegalStateException> { view.get(ValueLayout.JAVA_LONG_UNALIGNED, 0) }
            }
        }
    }

    @Test
    fun `batches are released together`() = runTest {
        ringPair { capacity = 4.KiB }.use { ring ->
            ring.fill(20)
            ring.sender.close()
            val sizes = ring.receiver.batches(8).map { batch -> batch.sumOf { it.length() } / 8 }.toList()
            assertEquals(listOf(8, 8, 4), sizes)
        }
    }

    @Test
    fun `the collector's own Closed is a failure, not the end`() = runTest {
        val other = ringPair()
        other.receiver.close()
        ringPair().use { ring ->
            ring.fill(2)
            ring.sender.close()
            assertFailsWith<ClosedException> {
                ring.receiver.messages().collect { other.sender.send(type, it.toByteArray()) }
            }
        }
        other.close()
    }

    @Test
    fun `a scope that fails ends the collector that waits`() = runBlocking {
        ringPair().use { ring ->
            val began = TimeSource.Monotonic.markNow()
            assertFailsWith<IllegalArgumentException> {
                coroutineScope {
                    launch { ring.receiver.messages().collect {} }
                    launch {
                        delay(30.milliseconds)
                        throw IllegalArgumentException("the other one")
                    }
                }
            }
            assertTrue(began.elapsedNow() < 25.seconds)
            // What comes later is received by the next collector.
            ring.fill(1)
            ring.sender.close()
            assertEquals(listOf(0L), ring.receiver.messages().map { it.tag() }.toList())
        }
    }

    @Test
    fun `a sender that was killed fails the flow, after everything it had sent`() = runBlocking {
        val name = freshName("killed")
        Receiver.create(name).use { rx ->
            Peer("sender", name).use { peer ->
                peer.expect("ready")
                val tags = ArrayList<Long>()
                val collector = async(Dispatchers.Default) { runCatching { rx.messages().collect { tags.add(it.tag()) } } }
                peer.tell("1000")
                peer.expect("sent")
                val killed = TimeSource.Monotonic.markNow()
                peer.kill()
                val failure = withTimeout(20.seconds) { collector.await() }.exceptionOrNull()
                assertIs<PeerDeadException>(failure)
                // 200 ms by the design; the machine of the tests may have much else to do.
                assertTrue(killed.elapsedNow() < 25.seconds, "learned after ${killed.elapsedNow()}")
                assertEquals((0L until 1000).toList(), tags)
            }
            // A successor: the flow is collected again.
            Peer("sender", name).use { peer ->
                peer.expect("ready")
                peer.tell("5")
                peer.expect("sent")
                peer.tell("close")
                peer.end()
                assertEquals((0L until 5).toList(), rx.messages().map { it.tag() }.toList())
            }
        }
    }

    @Test
    fun `a receiver that was killed fails the sender that waits`() = runBlocking {
        val name = freshName("full")
        Sender.create(name) { capacity = 4.KiB }.use { tx ->
            Peer("receiver", name).use { peer ->
                peer.expect("ready")
                while (tx.trySend(type, ByteArray(1000))) continue
                val sender = async(Dispatchers.Default) { runCatching { tx.send(type, ByteArray(1000)) } }
                peer.kill()
                assertIs<PeerDeadException>(withTimeout(20.seconds) { sender.await() }.exceptionOrNull())
            }
        }
    }

    @Test
    fun `a hundred collectors wait in a handful of threads`() = runBlocking {
        val before = Thread.activeCount()
        val rings = List(100) { ringPair { capacity = 4.KiB } }
        coroutineScope {
            val collectors = rings.map { ring ->
                async(Dispatchers.Default) { ring.receiver.messages().map { it.tag() }.toList() }
            }
            delay(100.milliseconds)
            val more = Thread.activeCount() - before
            assertTrue(more < 40, "$more threads more")
            for (ring in rings) {
                ring.fill(3)
                ring.sender.close()
            }
            for (tags in collectors.awaitAll()) assertEquals(listOf(0L, 1L, 2L), tags)
        }
        rings.forEach { it.close() }
    }

    @Test
    fun `an idle collector is cancelled and leaves nothing behind`() = runBlocking {
        val name = freshName("idle")
        val collector = launch(Dispatchers.Default) {
            Receiver.create(name).use { rx -> rx.messages().collect {} }
        }
        delay(100.milliseconds)
        withTimeout(5.seconds) { collector.cancelAndJoin() }
        // `use` has closed the receiver, and the last one out has removed the name.
        assertEquals(emptyList(), directory.toFile().list().orEmpty().filter { it == name })
    }
}
