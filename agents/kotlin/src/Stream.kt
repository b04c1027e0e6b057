// produce and consume.

import dev.ramway.ErrorKind
import dev.ramway.LaggedException
import dev.ramway.Message
import dev.ramway.kotlin.ReceivingEnd
import dev.ramway.kotlin.SendingEnd
import dev.ramway.kotlin.Subscriber
import dev.ramway.kotlin.TypeId
import kotlinx.coroutines.flow.collect
import kotlinx.coroutines.flow.transformWhile
import java.lang.foreign.MemorySegment
import java.nio.ByteBuffer

/** The keys that both have. */
class Plan(line: Line, together: Int) {
    /** Whether nothing says how long a wait may last, and a flow will do. */
    val unlimited = !line.has("timeout") && !line.has("poll")
    val limits = Limits(line)
    val sizes = line.text("sizes") ?: "mixed"
    val how = line.text("how")
    val start = line.number("start")
    val count = line.number("count")
    val batch = line.number("batch")?.toInt() ?: together
    val progress = line.yes("progress")
    private var endings = line.number("endings") ?: 1

    init {
        line.end()
    }

    /** Whether the stream goes on after this, with a successor of the other side. */
    fun goesOn(kind: ErrorKind) = (kind == ErrorKind.CLOSED || kind == ErrorKind.PEER_DEAD) && --endings > 0
}

/** Sends one message as `how` says, waiting for room for as long as a wait may last. */
private suspend fun put(plan: Plan, tx: SendingEnd, m: Made, flush: Boolean) {
    val type = TypeId(m.typeId)
    when {
        plan.how == "try" -> if (!tx.trySend(type, m.tag, m.segment)) throw Ending(ErrorKind.FULL)
        !flush -> putUnflushed(plan, tx, m)
        plan.how == "reserve" -> plan.limits.within({ tx.blocking.send(m.typeId, m.tag, m.segment, it) }) {
            tx.send(type, m.tag, m.length) { it.data().copyFrom(m.segment) }
        }
        // By turns what a payload may be.
        else -> plan.limits.within({ tx.blocking.send(m.typeId, m.tag, m.segment, it) }) {
            when (seqOf(m.tag) % 3) {
                0L -> tx.send(type, m.tag, m.array)
                1L -> tx.send(type, m.tag, ByteBuffer.wrap(m.array))
                else -> tx.send(type, m.tag, m.segment)
            }
        }
    }
}

private suspend fun putUnflushed(plan: Plan, tx: SendingEnd, m: Made) {
    val slot = plan.limits.within({ tx.blocking.reserve(m.length, it) }) {
        var slot = tx.blocking.tryReserve(m.length)
        while (slot == null) {
            tx.awaitRoom(m.length)
            slot = tx.blocking.tryReserve(m.length)
        }
        slot
    }
    slot.data().copyFrom(m.segment)
    slot.commitUnflushed(m.typeId, m.tag)
}

suspend fun produce(tx: SendingEnd, line: Line) {
    val plan = Plan(line, 1)
    val all = Messages(plan.sizes, tx.maxMessageLength.toLong())
    var next = plan.start ?: 0
    val end = next + (plan.count ?: throw Refused("count is missing"))
    var sent = 0L
    fun report(kind: ErrorKind, began: Long) =
        say("end ${named(kind)} sent=$sent next=$next elapsed_ms=${msSince(began)}")
    while (next < end) {
        val flush = (sent + 1) % plan.batch == 0L || next + 1 == end
        val noted = tx.peerEpoch
        val began = System.nanoTime()
        try {
            put(plan, tx, all.make(next), flush)
        } catch (e: Exception) {
            val kind = kindOf(e)
            report(kind, began)
            if (!plan.goesOn(kind)) return
            if (plan.limits.successor(noted, tx::peerEpoch)) continue
            return report(ErrorKind.TIMED_OUT, began)
        }
        if (plan.progress) say("at seq=$next")
        sent++
        next++
    }
    say("sent count=$sent next=$next")
}

/** What a consumer has seen so far. */
private class Seen(private val rx: ReceivingEnd, private val plan: Plan) {
    private val all = Messages(plan.sizes, rx.maxMessageLength.toLong())
    private var next = plan.start
    private var first = -1L
    private var bytes = 0L
    private var received = 0L

    /** The messages of a topic have numbers, and lost is how many it was told that it lost. */
    private val ofTopic = rx is Subscriber
    private var lost = 0L

    /** Of the call that is being made: the other side's epoch before it, when it began; and how long the last one took. */
    var noted = 0
    private var began = 0L
    private var elapsed = 0L

    fun begin() {
        noted = rx.peerEpoch
        began = System.nanoTime()
    }

    fun over() {
        elapsed = msSince(began)
    }

    /** By turns the ways to look at a message, before it is released; a view that any thread may close takes its time. */
    private fun took(m: Message) {
        over()
        val payload = if (received % 16 == 0L) m.data() else MemorySegment.ofArray(m.toByteArray())
        if (ofTopic) number(m.seq(), m.lost())
        val seq = next ?: seqOf(m.tag())
        all.check(seq, m.typeId(), m.tag(), payload)
        if (first < 0) first = seq
        next = seq + 1
        received++
        bytes += payload.byteSize()
        if (plan.progress) say("at seq=$seq")
        begin()
    }

    /** Takes what a topic's message says of itself; the first one has 1. */
    private fun number(number: Long, before: Long) {
        val seq = number - 1
        if (next?.let { it + before != seq } == true) throw Bad(seq, "it comes after $before lost ones, and $next was expected")
        next = seq
        lost += before
    }

    /** Reports how many messages an ejection cost. */
    fun lagged(cost: Long) {
        say("lagged lost=$cost")
        lost += cost
        next = next?.plus(cost)
    }

    fun left() = plan.count?.minus(received) ?: Long.MAX_VALUE

    fun report(named: String) {
        val last = if (first < 0) -1 else next!! - 1
        say("end $named received=$received first=$first last=$last bytes=$bytes elapsed_ms=$elapsed${if (ofTopic) " lost=$lost" else ""}")
    }

    /** Receives until nothing is left, by flows where nothing says how long a single wait may last. */
    suspend fun all() = when (plan.how) {
        "try" -> one { rx.tryRecv() ?: throw Ending(ErrorKind.EMPTY) }
        "into" -> one { plan.limits.within(rx.blocking::recv) { rx.recv() } }
        "batch" -> if (plan.unlimited && plan.count == null) {
            rx.batches(plan.batch).collect { batch -> batch.forEach { took(it) } }
            throw Ending(ErrorKind.CLOSED)
        } else {
            while (left() > 0) {
                begin()
                val count = minOf(plan.batch.toLong(), left()).toInt()
                val batch = plan.limits.within({ rx.blocking.recvBatch(count, it) }) { rx.recvBatch(count) }
                batch.use { for (m in it) took(m) }
            }
        }
        null, "recv" -> if (plan.unlimited) {
            rx.messages().transformWhile {
                took(it)
                emit(Unit)
                left() > 0
            }.collect()
            if (left() > 0) throw Ending(ErrorKind.CLOSED) else Unit
        } else {
            one { plan.limits.within(rx.blocking::recv) { rx.recv() } }
        }
        else -> throw Refused("how is recv, batch, into or try")
    }

    private suspend fun one(receive: suspend () -> Message) {
        while (left() > 0) {
            begin()
            receive().use { took(it) }
        }
    }
}

suspend fun consume(rx: ReceivingEnd, line: Line) {
    val plan = Plan(line, 32)
    val seen = Seen(rx, plan)
    while (seen.left() > 0) {
        seen.begin()
        try {
            seen.all()
        } catch (e: Exception) {
            seen.over()
            if (e is LaggedException) {
                seen.lagged(e.lost())
                continue
            }
            val kind = kindOf(e)
            seen.report(named(kind))
            if (!plan.goesOn(kind)) return
            if (!plan.limits.successor(seen.noted, rx::peerEpoch)) return seen.report(named(ErrorKind.TIMED_OUT))
        }
    }
    seen.report("name=Count number=0")
}
