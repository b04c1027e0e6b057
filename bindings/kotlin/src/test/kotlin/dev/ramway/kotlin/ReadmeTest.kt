package dev.ramway.kotlin

import dev.ramway.Message
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.flow.fold
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.supervisorScope
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.withTimeoutOrNull
import java.nio.ByteBuffer
import java.nio.ByteOrder
import kotlin.io.path.Path
import kotlin.io.path.readText
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds

suspend fun produce() {
    Sender.openOrCreate("ticks") { capacity = 1.MiB }.use { tx ->
        tx.send(TypeId(1), 7, "any bytes".toByteArray())
        // Written where the receiver reads it.
        tx.send(TypeId(2), length = 16) { slot ->
            slot.putLong(0, System.nanoTime())
            slot.putDouble(8, 1.5)
        }
    }
}

suspend fun consume() {
    Receiver.openOrCreate("ticks") { capacity = 1.MiB }.use { rx ->
        rx.messages().collect { message ->
            println("${message.type}: ${message.length()} bytes, tag ${message.tag()}")
        }
    }
}

suspend fun feed(lines: Sequence<String>) {
    Sender.openOrCreate("feed").useOrAbandon { tx ->
        for (line in lines) tx.send(TypeId(1), line.toByteArray())
    }
}

suspend fun mean(rx: Receiver): Double {
    var count = 0L
    val sum = rx.messages().map { it.getDouble(8) }.onEach { count++ }.fold(0.0, Double::plus)
    return sum / count
}

suspend fun firstWithin(rx: Receiver, timeout: Duration): Long? =
    withTimeoutOrNull(timeout) { rx.recv().use { it.tag() } }

suspend fun serve() {
    Listener.bind("prices").use { listener ->
        supervisorScope {
            listener.connections().collect { bus ->
                launch { bus.use { it.messages().collect { question -> answer(bus, question) } } }
            }
        }
    }
}

suspend fun ask(): Double =
    Bus.connect("prices") { timeout = 5.seconds }.use { bus ->
        bus.send(TypeId(1), 42, "EURUSD".toByteArray())
        bus.recv().use { it.getDouble(0) }
    }

private suspend fun answer(bus: Bus, question: Message) {
    check(question.toByteArray().decodeToString() == "EURUSD")
    val price = ByteBuffer.allocate(8).order(ByteOrder.nativeOrder()).putDouble(0, 1.16)
    bus.sender.send(question.type, question.tag(), price)
}

/** The README's programs are these, to the letter, and they run. */
class ReadmeTest {
    @Test
    fun `the README's programs are in this file`() {
        val here = Path("src/test/kotlin/dev/ramway/kotlin/ReadmeTest.kt").readText()
        val blocks = Regex("```kotlin\n(.*?)```", RegexOption.DOT_MATCHES_ALL).findAll(Path("README.md").readText()).toList()
        assertEquals(7, blocks.size)
        for (block in blocks) assertContains(here, block.groupValues[1])
    }

    @Test
    fun `the dependency is the one that is made`() {
        val coordinates = Regex("<groupId>(.*?)</groupId>\\s*<artifactId>(.*?)</artifactId>\\s*<version>(.*?)</version>")
        val page = Path("README.md").readText()
        val (group, artifact, version) = coordinates.find(Path("pom.xml").readText())!!.destructured
        assertEquals("$group:$artifact:$version", coordinates.find(page)!!.destructured.toList().joinToString(":"))
        assertContains(page, "implementation(\"$group:$artifact:$version\")")
    }

    @Test
    fun `they run`() = runBlocking {
        withTimeout(30.seconds) {
            // The first side creates the ring; the close is received like a message.
            val consumer = launch(Dispatchers.Default) { consume() }
            produce()
            consumer.join()

            Receiver.openOrCreate("feed").use { rx ->
                assertFailsWith<IllegalStateException> { feed(sequence { yield("one"); error("no more") }) }
                assertEquals(3, rx.recv().use { it.length() })
                assertFailsWith<dev.ramway.PeerDeadException> { rx.recv() }
                feed(sequenceOf("two"))
                assertEquals(1, rx.copies().toList().size)
            }

            val server = launch(Dispatchers.Default) { serve() }
            assertEquals(1.16, ask())
            server.cancelAndJoin()

            ringPair().use { (tx, rx) ->
                assertNull(firstWithin(rx, 20.milliseconds))
                for (value in listOf(1.0, 2.0, 4.5)) tx.send(TypeId(1), 16) { it.putDouble(8, value) }
                tx.close()
                assertEquals(2.5, async { mean(rx) }.await())
            }
        }
    }
}
