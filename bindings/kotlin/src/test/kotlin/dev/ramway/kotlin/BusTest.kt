package dev.ramway.kotlin

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import java.lang.foreign.ValueLayout
import kotlin.test.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.measureTime

class BusTest {
    private val type = TypeId(3)

    @Test
    fun `a process answers over a bus`() = runBlocking {
        val name = freshName("bus")
        Listener.bind(name) { toPeer = 64.KiB }.use { listener ->
            Peer("echo", name).use { peer ->
                withTimeout(30.seconds) { listener.accept() }.use { bus ->
                    peer.expect("ready")
                    for (length in 0..300) {
                        val bytes = ByteArray(length) { (it + length).toByte() }
                        bus.send(type, length.toLong(), bytes)
                        withTimeout(20.seconds) { bus.recv() }.use {
                            assertEquals(type, it.type)
                            assertContentEquals(bytes, it.toByteArray())
                        }
                    }
                    assertTrue(bus.peerAlive)
                }
                peer.end()
            }
        }
    }

    @Test
    fun `a listener serves many at a time in one scope`() = runBlocking {
        val name = freshName("many")
        Listener.bind(name).use { listener ->
            val server = launch(Dispatchers.Default) {
                listener.connections().take(8).collect { bus ->
                    launch { bus.use { it.messages().collect { m -> bus.send(m.type, m.tag() + 1, m.toByteArray()) } } }
                }
            }
            val answers = (0L until 8).map { i ->
                async(Dispatchers.Default) {
                    Bus.connect(name) { timeout = 20.seconds }.use { bus ->
                        bus.send(type, i, ByteArray(4))
                        bus.recv().use { it.tag() }
                    }
                }
            }
            assertEquals((1L..8).toList(), withTimeout(30.seconds) { answers.awaitAll() })
            withTimeout(20.seconds) { server.join() }
        }
    }

    @Test
    fun `waiting for nobody is cancelled`() = runBlocking {
        Listener.bind(freshName("nobody")).use { listener ->
            val took = measureTime {
                assertFailsWith<TimeoutCancellationException> { withTimeout(50.milliseconds) { listener.accept() } }
                assertFailsWith<TimeoutCancellationException> {
                    withTimeout(50.milliseconds) { Bus.connect(freshName("no-listener")) }
                }
            }
            assertTrue(took < 9.seconds, "cancelled after $took")
        }
    }

    @Test
    fun `a region tells of changes`() = runBlocking {
        val name = freshName("region")
        Region.create(name, 4096).use { writer ->
            Region.openReadOnly(name).use { reader ->
                assertEquals(4096, reader.length)
                val seen = async(Dispatchers.Default) {
                    reader.changes().map { reader.data.get(ValueLayout.JAVA_LONG, 8) }.take(2).toList()
                }
                val before = reader.notifications
                val waiting = async(Dispatchers.Default) { reader.await(before) }
                withTimeout(20.seconds) {
                    while (!seen.isCompleted || !waiting.isCompleted) {
                        writer.data.set(ValueLayout.JAVA_LONG, 8, 42)
                        writer.signal()
                        kotlinx.coroutines.delay(5.milliseconds)
                    }
                }
                assertEquals(42, seen.await().last())
            }
            val took = measureTime {
                assertFailsWith<TimeoutCancellationException> {
                    withTimeout(50.milliseconds) { writer.await(writer.notifications) }
                }
            }
            assertTrue(took < 25.seconds, "cancelled after $took")
        }
    }
}
