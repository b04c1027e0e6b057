// measure: the loops that are timed.

import com.sun.management.ThreadMXBean
import dev.ramway.Message
import dev.ramway.Slot
import dev.ramway.kotlin.ReceivingEnd
import dev.ramway.kotlin.SendingEnd
import dev.ramway.kotlin.Subscriber
import dev.ramway.kotlin.TypeId
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.take
import java.lang.foreign.Arena
import java.lang.foreign.ValueLayout
import java.lang.management.ManagementFactory

/** Message number n has the words n % CYCLE and those after it. */
private const val CYCLE = 4096L

private val threads = ManagementFactory.getThreadMXBean() as ThreadMXBean

class Measure(line: Line) {
    private val what = line.text("do")
    private val size = line.needed("size").toInt()
    private val count = line.needed("count")
    private val batch = line.number("batch")?.toInt() ?: 1
    private val group = line.number("group") ?: 1

    /** When each group of round trips began, and the last one ended. */
    private val stamps = LongArray((count / group).toInt() + 2)
    private var stamped = 0
    private var words = 0L

    init {
        // A coroutine waits as its dispatcher does.
        line.text("wait")
        line.end()
    }

    suspend fun run(tx: () -> SendingEnd, rx: () -> ReceivingEnd) {
        say("ready")
        // The other side is told first: it waits by then.
        if (what == "ping" || what == "send") Line.next()
        var allocated = threads.totalThreadAllocatedBytes
        val began = System.nanoTime()
        when (what) {
            "ping" -> ping(tx(), rx())
            "echo" -> echo(tx(), rx())
            "send" -> send(tx())
            "receive" -> receive(rx())
            "latest" -> latest(rx() as? Subscriber ?: throw Refused("do=latest: no subscriber is open"))
            "flow" -> flowOfArrays()
            else -> throw Refused("do=$what")
        }
        val ended = System.nanoTime()
        allocated = threads.totalThreadAllocatedBytes - allocated
        val compiled = ManagementFactory.getCompilationMXBean().totalCompilationTime
        val samples = (1 until stamped).joinToString(",") { "${stamps[it] - stamps[it - 1]}" }
        say(
            "measured began_ns=$began ended_ns=$ended words=${words.toULong()} allocated=$allocated " +
                "compiled_ms=$compiled samples=$samples",
        )
    }

    private fun fill(slot: Slot, seq: Long) {
        for (at in 0 until size step 8) slot.putLong(at.toLong(), (seq and (CYCLE - 1)) + at / 8)
    }

    private fun take(m: Message) {
        if (m.length() != size) throw Bad(0, "a message of another length than was said")
        var sum = 0L
        for (at in 0 until size step 8) sum += m.getLong(at.toLong())
        words += sum
    }

    private suspend fun put(tx: SendingEnd, seq: Long) = tx.send(TypeId(0), size) { fill(it, seq) }

    private suspend fun ping(tx: SendingEnd, rx: ReceivingEnd) {
        stamps[stamped++] = System.nanoTime()
        for (seq in 0 until count) {
            put(tx, seq)
            rx.recv().use { take(it) }
            if ((seq + 1) % group == 0L) stamps[stamped++] = System.nanoTime()
        }
    }

    private suspend fun echo(tx: SendingEnd, rx: ReceivingEnd) {
        for (seq in 0 until count) {
            rx.recv().use { take(it) }
            put(tx, seq)
        }
    }

    private suspend fun send(tx: SendingEnd) {
        var together = 0
        for (seq in 0 until count) {
            if (++together == batch || seq + 1 == count) {
                together = 0
                put(tx, seq)
                continue
            }
            val slot = tx.blocking.tryReserve(size) ?: tx.blocking.reserve(size)
            fill(slot, seq)
            slot.commitUnflushed(0, 0)
        }
    }

    private suspend fun receive(rx: ReceivingEnd) {
        if (batch == 1) return rx.messages().take(Math.toIntExact(count)).collect { take(it) }
        var seen = 0L
        while (seen < count) {
            rx.recvBatch(minOf(batch.toLong(), count - seen).toInt()).use {
                seen += it.size()
                for (m in it) take(m)
            }
        }
    }

    private fun latest(sub: Subscriber) {
        val target = Arena.ofAuto().allocate(size.toLong(), 8)
        var sum = 0L
        stamps[stamped++] = System.nanoTime()
        var seen = 0L
        while (seen < count) {
            // The publisher has overtaken it again and again: a reader tries again.
            val meta = sub.latest(target) ?: continue
            if (meta.length() != size) throw Bad(0, "a message of another length than was said")
            for (at in 0 until size step 8) sum += target.get(ValueLayout.JAVA_LONG, at.toLong())
            if (++seen % group == 0L) stamps[stamped++] = System.nanoTime()
        }
        words = sum
    }

    /** No message at all: what a Flow takes for itself, over arrays that are there already. */
    private suspend fun flowOfArrays() {
        val messages = Array(CYCLE.toInt()) { n -> LongArray(size / 8) { word -> n + word.toLong() } }
        var total = 0L
        flow {
            var n = 0
            while (true) emit(messages[n++ and (CYCLE - 1).toInt()])
        }.take(Math.toIntExact(count)).collect { message ->
            for (word in message) total += word
        }
        words = total
    }
}
