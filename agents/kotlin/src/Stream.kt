// produce, consume and die.

import dev.ramway.ErrorKind
import dev.ramway.Message
import dev.ramway.kotlin.Sender
import dev.ramway.kotlin.TypeId
import kotlinx.coroutines.flow.collect
import kotlinx.coroutines.flow.transformWhile
import java.lang.foreign.MemorySegment
import java.nio.ByteBuffer

/** Sends one message as --how says, waiting for room for as long as a wait may last. */
suspend fun put(args: Args, tx: Sender, m: Made, flush: Boolean) {
    val type = TypeId(m.typeId)
    when {
        args.how == "try" -> if (!tx.trySend(type, m.tag, m.segment)) throw Ending(ErrorKind.FULL)
        !flush -> putUnflushed(args, tx, m)
        args.how == "reserve" -> args.limited({ tx.blocking.send(m.typeId, m.tag, m.segment, it) }) {
            tx.send(type, m.tag, m.length) { it.data().copyFrom(m.segment) }
        }
        // By turns what a payload may be.
        else -> args.limited({ tx.blocking.send(m.typeId, m.tag, m.segment, it) }) {
            when (seqOf(m.tag) % 3) {
                0L -> tx.send(type, m.tag, m.array)
                1L -> tx.send(type, m.tag, ByteBuffer.wrap(m.array))
                else -> tx.send(type, m.tag, m.segment)
            }
        }
    }
}

private suspend fun putUnflushed(args: Args, tx: Sender, m: Made, length: Int = m.length) {
    val slot = args.limited({ tx.blocking.reserve(m.length, it) }) {
        var slot = tx.blocking.tryReserve(m.length)
        while (slot == null) {
            tx.awaitRoom(m.length)
            slot = tx.blocking.tryReserve(m.length)
        }
        slot
    }
    MemorySegment.copy(m.segment, 0, slot.data(), 0, length.toLong())
    slot.commitUnflushed(m.typeId, m.tag, length)
}

suspend fun produce(args: Args) {
    val count = args.counted()
    val place = Place.sending(args)
    val tx = place.tx
    val all = Messages(args.sizes, tx.maxMessageLength.toLong())
    var next = args.start ?: 0
    val end = next + count
    var sent = 0L
    fun report(kind: ErrorKind, began: Long) =
        say("end ${named(kind)} sent=$sent next=$next elapsed_ms=${msSince(began)}")
    if (args.resume) {
        next = tx.lastTag?.let { seqOf(it) + 1 } ?: next
        say("resuming next=$next")
    }
    if (args.oversize) {
        val began = System.nanoTime()
        try {
            put(args, tx, all.make(next, tx.maxMessageLength + 1L), true)
            throw Bad(next, "a message longer than the longest was sent")
        } catch (e: Exception) {
            report(kindOf(e), began)
        }
    }
    var endings = 0L
    while (next < end) {
        val flush = (sent + 1) % (args.batch ?: 1) == 0L || next + 1 == end
        val noted = tx.peerEpoch
        val began = System.nanoTime()
        try {
            put(args, tx, all.make(next), flush)
        } catch (e: Exception) {
            val kind = kindOf(e)
            report(kind, began)
            if (!isEnding(kind) || ++endings >= args.endings) break
            if (args.awaitSuccessor(noted, tx::peerEpoch)) continue
            report(ErrorKind.TIMED_OUT, began)
            break
        }
        if (args.progress) say("at seq=$next")
        sent++
        next++
        args.pace()
    }
    if (next >= end) say("sent count=$sent next=$next")
    args.lingerNow()
    place.close()
}

/** What a consumer has seen so far. */
private class Seen(val args: Args, longest: Long) {
    private val all = Messages(args.sizes, longest)
    private var next = args.start
    private var first = -1L
    private var bytes = 0L
    var received = 0L

    val last get() = if (first < 0) -1 else next!! - 1

    /** Checks a message before it is released. */
    suspend fun take(typeId: Int, tag: Long, payload: MemorySegment) {
        val seq = next ?: seqOf(tag)
        all.check(seq, typeId, tag, payload)
        if (first < 0) first = seq
        next = seq + 1
        received++
        bytes += payload.byteSize()
        if (args.progress) say("at seq=$seq")
        args.work()
    }

    /** By turns the ways to look at a message; a view that any thread may close takes its time. */
    suspend fun take(m: Message) =
        take(m.typeId(), m.tag(), if (received % 16 == 0L) m.data() else MemorySegment.ofArray(m.toByteArray()))

    fun left() = minOf(
        args.count?.minus(received) ?: Long.MAX_VALUE,
        args.until?.minus(next ?: 0)?.coerceAtLeast(0) ?: Long.MAX_VALUE,
    )

    fun report(named: String, elapsed: Long) =
        say("end $named received=$received first=$first last=$last bytes=$bytes elapsed_ms=$elapsed")
}

/** Receives until nothing is left, by flows where no flag says how long a single wait may last. */
private class Receiving(val place: Place, val seen: Seen) {
    private val args = seen.args
    var noted = 0
    var began = 0L
    var elapsed = 0L

    fun begin() {
        noted = place.rx.peerEpoch
        began = System.nanoTime()
    }

    private fun over() {
        elapsed = msSince(began)
    }

    private suspend fun took(m: Message) {
        over()
        seen.take(m)
        begin()
    }

    suspend fun all() {
        val rx = place.rx
        val most = args.batch ?: 32
        when (args.how) {
            "try" -> one { rx.tryRecv() ?: throw Ending(ErrorKind.EMPTY) }
            "into" -> one { args.limited(rx.blocking::recv) { rx.recv() } }
            "batch" -> if (args.patient && args.count == null && args.until == null) {
                rx.batches(most).collect { batch -> batch.forEach { took(it) } }
                throw Ending(ErrorKind.CLOSED)
            } else {
                while (seen.left() > 0) {
                    begin()
                    val count = minOf(most.toLong(), seen.left()).toInt()
                    val batch = args.limited({ rx.blocking.recvBatch(count, it) }) { rx.recvBatch(count) }
                    batch.use { for (m in it) took(m) }
                }
            }
            null, "recv" -> if (args.patient) {
                rx.messages().transformWhile {
                    took(it)
                    emit(Unit)
                    seen.left() > 0
                }.collect()
                if (seen.left() > 0) throw Ending(ErrorKind.CLOSED)
            } else {
                one { args.limited(rx.blocking::recv) { rx.recv() } }
            }
            else -> throw Usage("--how is recv, batch, into or try")
        }
    }

    private suspend fun one(receive: suspend () -> Message) {
        while (seen.left() > 0) {
            begin()
            receive().use { took(it) }
        }
    }

    fun failed() = over()
}

suspend fun consume(args: Args) {
    val place = Place.receiving(args)
    val seen = Seen(args, place.rx.maxMessageLength.toLong())
    val receiving = Receiving(place, seen)
    var end = "name=Count number=0"
    var endings = 0L
    while (seen.left() > 0) {
        receiving.begin()
        try {
            receiving.all()
        } catch (e: Exception) {
            receiving.failed()
            val kind = kindOf(e)
            end = named(kind)
            if (isEnding(kind) && ++endings < args.endings) {
                seen.report(end, receiving.elapsed)
                if (args.awaitSuccessor(receiving.noted, place.rx::peerEpoch)) {
                    end = "name=Count number=0"
                    continue
                }
                end = named(ErrorKind.TIMED_OUT)
            }
            break
        }
    }
    seen.report(end, receiving.elapsed)
    args.lingerNow()
    place.close()
}

suspend fun die(args: Args) {
    val count = args.counted()
    if (args.producing()) {
        val tx = Place.sending(args).tx
        val all = Messages(args.sizes, tx.maxMessageLength.toLong())
        val first = args.start ?: 0
        for (seq in first until first + count) put(args, tx, all.make(seq), true)
        val last = all.make(first + count)
        putUnflushed(args, tx, last, last.length / 2)
        say("dying next=${first + count}")
    } else {
        val rx = Place.receiving(args).rx
        val seen = Seen(args, rx.maxMessageLength.toLong())
        while (seen.left() > 0) {
            val message = args.limited(rx.blocking::recv) { rx.recv() }
            seen.take(message)
            if (seen.left() > 0) message.close()
        }
        say("dying next=${seen.last}")
    }
    onMyself("kill", "-KILL")
}
