package dev.ramway.kotlin

import dev.ramway.ClosedException
import dev.ramway.ErrorKind
import dev.ramway.Lag
import dev.ramway.LaggedException
import dev.ramway.PeerDeadException
import dev.ramway.Policy
import dev.ramway.RamwayException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

class TopicTest {
    private val type = TypeId(7)
    private val name = freshName("topic")

    private fun run(block: suspend kotlinx.coroutines.CoroutineScope.() -> Unit) = runBlocking { withTimeout(60.seconds) { block() } }

    private suspend fun create(block: TopicBuilder.() -> Unit = {}): Publisher = Publisher.create(name) {
        capacity = 64.KiB
        block()
    }

    private suspend fun Publisher.fill(count: Int) = repeat(count) { send(type, seq + 1, ByteArray(8)) }

    private fun Subscriber.numbers(): Flow<Long> = messages().map { it.seq() }

    @Test
    fun `each policy is a flow that ends with the publisher's close`() = run {
        val pub = create()
        Subscriber.open(name).use { all ->
            Subscriber.open(name) { policy = Policy.LOSSY }.use { lossy ->
                Subscriber.open(name) { policy = Policy.LATEST }.use { latest ->
                    pub.waitForSubscribers(1)
                    assertEquals(listOf(Policy.RELIABLE, Policy.LOSSY, Policy.LATEST), pub.subscribers().map { it.policy() }.sorted())
                    assertNull(latest.latest())
                    pub.fill(10)
                    assertEquals(Lag(640, 10), all.lag)
                    assertEquals((1L..4L).toList(), all.numbers().take(4).toList())
                    assertEquals(10, latest.latest()?.seq())
                    assertEquals(8, latest.latest(ByteArray(8))?.length())
                    pub.close()
                    assertEquals((5L..10L).toList(), all.numbers().toList())
                    assertEquals((1L..10L).toList(), lossy.copies().map { it.seq() }.toList())
                    assertEquals(listOf(), latest.newest().toList(), "it was seen")
                    assertFailsWith<ClosedException> { latest.waitNewer() }
                    assertEquals(0L, lossy.lost + all.lost)
                }
            }
        }
    }

    @Test
    fun `a publisher suspends for a reliable subscriber and for no other`() = run {
        create().use { pub ->
            Subscriber.open(name) { policy = Policy.LOSSY }.use { lossy ->
                pub.fill(5000)
                val first = lossy.recv().use { it.seq() to it.lost() }
                assertTrue(first.second > 3000 && first.first == first.second + 1, "$first")
            }
            Subscriber.open(name) { fromNow() }.use { sub ->
                val sending = launch(Dispatchers.Default) { pub.fill(3000) }
                delay(20)
                assertTrue(sending.isActive)
                assertEquals((5001L..8000L).toList(), sub.numbers().take(3000).toList())
                sending.join()
            }
        }
    }

    @Test
    fun `the newest value is collected at the collector's pace`() = run {
        create().use { pub ->
            Subscriber.open(name) { policy = Policy.LATEST }.use { sub ->
                pub.fill(3)
                val seen = ArrayList<Long>()
                val collecting = launch {
                    sub.newest().collect {
                        seen.add(it.seq())
                        delay(20)
                    }
                }
                while (seen.isEmpty()) delay(1)
                repeat(200) {
                    pub.fill(1)
                    delay(1)
                }
                while (seen.last() < 203) delay(1)
                collecting.cancelAndJoin()
                assertEquals(listOf(3L, 203L), listOf(seen.first(), seen.last()))
                assertTrue(seen.size < 150, "${seen.size} of 201")
                assertEquals(seen.sorted().distinct(), seen)
            }
            Subscriber.open(name).use { sub ->
                assertEquals(ErrorKind.UNSUPPORTED, assertFailsWith<RamwayException> { sub.newest() }.kind())
                assertTrue(sub.skipToNewest() > 0)
            }
        }
    }

    @Test
    fun `cancelling ends every wait at once and loses nothing`() = run {
        create().use { pub ->
            for (how in Policy.entries) {
                Subscriber.open(name) { policy = how }.use { sub ->
                    sub.tryRecv()?.close()
                    repeat(20) {
                        val waiting = launch { sub.recv().close() }
                        delay(5)
                        val start = TimeSource.Monotonic.markNow()
                        waiting.cancelAndJoin()
                        assertTrue(start.elapsedNow() < 1.seconds)
                    }
                    val next = pub.seq + 1
                    val received = async { sub.recv().use { it.seq() to it.lost() } }
                    delay(5)
                    pub.fill(1)
                    assertEquals(next to 0L, received.await())
                }
            }
            Subscriber.open(name) { fromNow() }.use { sub ->
                while (pub.trySend(type, ByteArray(8))) assertTrue(pub.seq < 10_000)
                val sending = launch { pub.send(type, ByteArray(8)) }
                delay(20)
                sending.cancelAndJoin()
                val last = pub.seq
                assertEquals(last - 1023, sub.numbers().first())
            }
        }
    }

    @Test
    fun `an ejected subscriber is told once and its flow goes on`() = run {
        create { ejectAfter = 20.milliseconds }.use { pub ->
            Subscriber.open(name) { label = "slow" }.use { sub ->
                pub.fill(3000)
                val lost = assertFailsWith<LaggedException> { sub.numbers().toList() }.lost()
                assertEquals(lost + 1, sub.numbers().first())
                assertEquals(lost, sub.lost)
                assertEquals("slow", sub.label)
            }
        }
    }

    @Test
    fun `a durable subscriber goes on, and history begins before now`() = run {
        create { timestamps = true }.use { pub ->
            fun TopicBuilder.durable() {
                label = "recorder"
                durable = true
            }
            Subscriber.open(name) { durable() }.use { sub ->
                pub.fill(10)
                assertEquals(listOf(1L, 2L), sub.numbers().take(2).toList())
            }
            Subscriber.open(name) { durable() }.use { sub ->
                assertEquals(3L, sub.numbers().first())
                sub.unsubscribe()
            }
            assertEquals(listOf(), pub.subscribers())
            Subscriber.open(name) {
                policy = Policy.LOSSY
                history(3)
            }.use { sub -> assertEquals(8L, sub.numbers().first()) }
            Subscriber.open(name) { afterSeq(4) }.use { sub -> assertTrue(sub.recv().use { it.seq() == 5L && it.time() > 0 }) }
            pub.skipSeq(5)
            assertEquals(ErrorKind.TIMED_OUT, assertFailsWith<RamwayException> { pub.waitForSubscribers(1, Duration.ZERO) }.kind())
        }
    }

    @Test
    fun `a publisher that is killed ends a flow, and its successor goes on in the log`() = run {
        Subscriber.create(name).use { sub ->
            var next = 1L
            repeat(2) {
                Peer("publisher", name).use { peer ->
                    peer.expect("ready")
                    peer.tell("100")
                    peer.expect("sent")
                    peer.kill()
                }
                val found = ArrayList<Long>()
                assertFailsWith<PeerDeadException> { flow { emit(0L); sub.numbers().collect { found.add(it) } }.toList() }
                assertEquals((next..<next + 100).toList(), found)
                next += 100
            }
        }
    }
}
