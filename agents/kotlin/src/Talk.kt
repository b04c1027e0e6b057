// echo, ping, last and take.

import dev.ramway.ErrorKind
import dev.ramway.LaggedException
import dev.ramway.Message
import dev.ramway.kotlin.ReceivingEnd
import dev.ramway.kotlin.SendingEnd
import dev.ramway.kotlin.Subscriber
import dev.ramway.kotlin.TypeId
import dev.ramway.kotlin.type

suspend fun echo(tx: SendingEnd, rx: ReceivingEnd, line: Line) {
    val limits = Limits(line)
    line.end()
    var first = -1L
    var last = -1L
    var received = 0L
    var bytes = 0L
    var began = System.nanoTime()
    try {
        while (true) {
            began = System.nanoTime()
            limits.within { rx.recv() }.use { m ->
                last = seqOf(m.tag())
                if (received++ == 0L) first = last
                bytes += m.length()
                limits.within {
                    tx.send(m.type, m.tag(), m.length()) { slot -> m.read { slot.data().copyFrom(it) } }
                }
            }
        }
    } catch (e: Exception) {
        val counts = "received=$received first=$first last=$last bytes=$bytes"
        say("end ${named(kindOf(e))} $counts elapsed_ms=${msSince(began)}")
    }
}

suspend fun ping(tx: SendingEnd, rx: ReceivingEnd, line: Line) {
    val limits = Limits(line)
    val count = line.needed("count")
    val all = Messages(line.text("sizes") ?: "mixed", tx.maxMessageLength.toLong())
    line.end()
    for (seq in 0 until count) {
        val made = all.make(seq)
        limits.within { tx.send(TypeId(made.typeId), made.tag, made.segment) }
        limits.within { rx.recv() }.use { m -> m.read { all.check(seq, m.typeId(), m.tag(), it) } }
    }
    say("answered count=$count")
}

fun last(tx: SendingEnd, line: Line) {
    line.end()
    say(tx.lastTag?.let { "last tag=${it.toULong()}" } ?: "last none")
}

suspend fun take(rx: ReceivingEnd, line: Line) {
    val limits = Limits(line)
    val tensor = line.yes("tensor")
    val tries = line.text("how") == "try"
    line.end()
    try {
        (if (tries) rx.tryRecv() ?: throw Ending(ErrorKind.EMPTY) else limits.within { rx.recv() }).use { m ->
            if (!tensor || !sayTensor(m)) {
                val crc = m.read { crc32(it) }
                say("message type_id=${m.typeId().toUInt()} tag=${m.tag().toULong()} len=${m.length()} crc32=$crc" + stamp(rx, m))
            }
        }
    } catch (e: Exception) {
        say("end ${named(kindOf(e))}" + if (e is LaggedException) " lost=${e.lost()}" else "")
    }
}

/** What a topic's message says of itself. */
private fun stamp(rx: ReceivingEnd, m: Message) = if (rx is Subscriber) " seq=${m.seq()} lost=${m.lost()}" else ""
