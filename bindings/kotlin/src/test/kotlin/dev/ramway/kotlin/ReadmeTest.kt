package dev.ramway.kotlin

import dev.ramway.Message
import dev.ramway.Policy
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.asFlow
import kotlinx.coroutines.flow.fold
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.merge
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

suspend fun publish() {
    Publisher.openOrCreate("prices") { capacity = 8.MiB }.use { pub ->
        pub.waitForSubscribers(1)
        for (price in 100L..102L) pub.send(TypeId(1), length = 8) { it.putLong(0, price) }
    }
}

suspend fun every(): List<Long> =
    Subscriber.openOrCreate("prices") { capacity = 8.MiB }.use { sub ->
        sub.messages().map { it.getLong(0) }.toList()
    }

suspend fun watch(show: suspend (Long) -> Unit) {
    Subscriber.open("prices") {
        policy = Policy.LATEST
        timeout = 5.seconds
    }.use { sub ->
        // Always the newest: what comes while this one is shown is left out.
        sub.newest().collect { show(ByteBuffer.wrap(it.data()).order(ByteOrder.nativeOrder()).getLong(0)) }
    }
}

suspend fun merged(names: List<String>): Map<Int, Int> = coroutineScope {
    val subscribers = names.map { Subscriber.open(it) }
    try {
        val flows = subscribers.mapIndexed { source, sub -> sub.messages().map { source } }
        flows.merge().fold(HashMap<Int, Int>()) { counts, source -> counts.apply { merge(source, 1, Int::plus) } }
    } finally {
        subscribers.forEach { it.close() }
    }
}

suspend fun store(values: Map<String, String>, stop: CompletableDeferred<Unit>) = coroutineScope {
    RpcServer.bind("store").use { server ->
        server.method("Store.Get") { request ->
            val value = values[request.body().decodeToString()] ?: throw request.fail(404, "no such key")
            value.toByteArray()
        }
        server.stream("Store.Keys") { values.keys.asFlow().map { it.toByteArray() } }
        val serving = launch { server.serve() }
        stop.await()
        server.shutdown(5.seconds)
        serving.join()
    }
}

suspend fun lookUp(key: String): Pair<String, List<String>> =
    RpcClient.connect("store") { timeout = 5.seconds }.use { client ->
        val value = client.call(RpcClient.methodId("Store.Get"), key.toByteArray()) { timeout = 1.seconds }
        val keys = client.stream(RpcClient.methodId("Store.Keys"), ByteArray(0))
        value.body().decodeToString() to keys.map { it.body().decodeToString() }.toList()
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
        assertEquals(13, blocks.size)
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

    /** Of docs/start/kotlin.md; that the page has the same text is a test of examples/tests/pages.rs. */
    @Test
    fun `the program of the first page runs`() = runBlocking {
        withTimeout(30.seconds) {
            val receiver = launch(Dispatchers.IO) { dev.ramway.kotlin.start.main(arrayOf("receive")) }
            launch(Dispatchers.IO) { dev.ramway.kotlin.start.main(emptyArray()) }.join()
            receiver.join()
        }
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

            val stop = CompletableDeferred<Unit>()
            val storing = launch(Dispatchers.Default) { store(mapOf("answer" to "42"), stop) }
            assertEquals("42" to listOf("answer"), lookUp("answer"))
            assertEquals(404, assertFailsWith<dev.ramway.RpcException> { lookUp("question") }.code())
            stop.complete(Unit)
            storing.join()

            val seen = ArrayList<Long>()
            // Keeps the topic, so that whoever comes late finds it.
            Subscriber.openOrCreate("prices") { policy = Policy.LOSSY; capacity = 8.MiB }.use {
                val watching = launch(Dispatchers.Default) { watch { seen.add(it) } }
                val all = async(Dispatchers.Default) { every() }
                publish()
                assertEquals(listOf(100L, 101L, 102L), all.await())
                watching.join()
            }
            assertEquals(102L, seen.last())
            assertEquals(seen.sorted(), seen)
        }
    }

    @Test
    fun `a busy source keeps none of a hundred out`() = runBlocking {
        withTimeout(60.seconds) {
            val names = List(100) { freshName("source") }
            val publishers = names.map { Publisher.create(it) { capacity = 16.KiB } }
            val merged = async(Dispatchers.Default) { merged(names) }
            publishers.forEach { it.waitForSubscribers(1) }
            launch(Dispatchers.Default) { repeat(20_000) { publishers[0].send(TypeId(1), ByteArray(8)) } }.also { busy ->
                // Each of the others is heard while the first one is busy.
                publishers.drop(1).forEach { it.send(TypeId(1), ByteArray(8)) }
                busy.join()
            }
            publishers.forEach { it.close() }
            val counts = merged.await()
            assertEquals(20_000, counts[0])
            assertEquals(List(99) { 1 }, (1..99).map { counts[it] })
        }
    }
}
