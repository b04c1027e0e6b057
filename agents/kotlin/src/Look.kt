// region, write, hold and tensor.

import dev.ramway.ElementType
import dev.ramway.ErrorKind
import dev.ramway.Message
import dev.ramway.RamwayException
import dev.ramway.kotlin.ReceivingEnd
import dev.ramway.kotlin.Region
import dev.ramway.kotlin.SendingEnd
import java.lang.foreign.MemorySegment
import java.lang.foreign.ValueLayout
import java.util.HexFormat
import kotlin.time.toJavaDuration

suspend fun region(line: Line) {
    val name = line.text("name") ?: throw Refused("name is missing")
    line.end()
    Region.open(name) { timeout = OPEN_TIMEOUT }.use { say("region len=${it.length} crc32=${crc32(it.data)}") }
}

/** Reserves, fills, and commits what is to be kept. Such slots, and tensors, are the Java port's. */
fun write(tx: SendingEnd, line: Line) {
    val length = line.needed("len").toInt()
    val kept = line.number("kept")?.toInt() ?: length
    val unflushed = line.yes("unflushed")
    line.end()
    val slot = tx.blocking.reserve(length, OPEN_TIMEOUT.toJavaDuration())
    val address = slot.data().fill(0x11).address()
    if (unflushed) slot.commitUnflushed(0, 0, kept) else slot.commit(0, 0, kept)
    lookAt(address, length, 0)
}

suspend fun hold(rx: ReceivingEnd, line: Line) {
    line.end()
    rx.recv().use { lookAt(it.data().address(), it.length(), it.tag()) }
}

/** Writes and reads single bytes of a message by its address, until `release`. */
private fun lookAt(address: Long, length: Int, tag: Long) {
    say("view addr=0x${address.toString(16)} len=$length tag=${tag.toULong()}")
    // The ring stays open meanwhile, and so its mapping: beyond the slot's life on purpose.
    val bytes = MemorySegment.ofAddress(address).reinterpret(length.toLong())
    while (true) {
        val line = Line.next() ?: return
        when (line.word) {
            "poke" -> {
                bytes.set(ValueLayout.JAVA_BYTE, line.needed("offset"), line.needed("value").toByte())
                say("poked")
            }
            "peek" -> say("byte value=${bytes.get(ValueLayout.JAVA_BYTE, line.needed("offset")).toUByte()}")
            "release" -> return say("released")
            else -> throw Refused("${line.word} while a message is held")
        }
        line.end()
    }
}

fun sendTensor(tx: SendingEnd, line: Line) {
    val type = ElementType.entries[line.needed("type").toInt()]
    val shape = line.text("shape").orEmpty().split("x").filter { it.isNotEmpty() }.map { it.toLong() }.toLongArray()
    val tag = line.needed("tag")
    val data = MemorySegment.ofArray(HexFormat.of().parseHex(line.text("data").orEmpty()))
    val inPlace = line.yes("reserve")
    line.end()
    var offset = 0L
    if (inPlace) {
        tx.blocking.reserveTensor(type, *shape).use {
            offset = offset(it.data())
            it.data().copyFrom(data)
            it.commit(tag)
        }
    } else {
        tx.blocking.sendTensor(type, shape, tag, data)
    }
    say("sent offset=$offset")
}

/** How far after a multiple of 64 elements begin; of none, 0. */
private fun offset(data: MemorySegment) = if (data.byteSize() == 0L) 0 else data.address() % 64

/** False where the message is no tensor. */
fun sayTensor(message: Message): Boolean {
    val tensor = try {
        message.tensor()
    } catch (e: RamwayException) {
        if (e.kind() == ErrorKind.INVALID_ARGUMENT) return false
        throw e
    }
    val data = HexFormat.of().formatHex(tensor.data().toArray(ValueLayout.JAVA_BYTE))
    say(
        "tensor type=${tensor.type().ordinal} shape=${tensor.shape().joinToString("x")} tag=${message.tag().toULong()} " +
            "offset=${offset(tensor.data())} data=$data",
    )
    return true
}
