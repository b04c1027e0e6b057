// read, show and tensors.

import dev.ramway.ElementType
import dev.ramway.ErrorKind
import dev.ramway.Message
import dev.ramway.RamwayException
import dev.ramway.kotlin.Region
import dev.ramway.kotlin.TypeId
import java.lang.foreign.MemorySegment
import java.lang.foreign.ValueLayout

suspend fun read(args: Args) {
    if (args.region != null) {
        Region.open(args.region) { timeout = PATIENCE }.use {
            say("region len=${it.length} crc32=${crc32(it.data)}")
        }
        say("closed")
        return
    }
    val place = if (args.producing()) Place.sending(args) else Place.receiving(args)
    args.pauseNow()
    try {
        if (args.producing()) readAsProducer(args, place) else readAsConsumer(args, place)
    } catch (e: Exception) {
        say("end ${named(kindOf(e))}")
    }
    place.close()
}

private fun readAsProducer(args: Args, place: Place) {
    say(place.tx.lastTag?.let { "last tag=${it.toULong()}" } ?: "last none")
    val m = Messages("${args.size}", place.tx.maxMessageLength.toLong()).make(0)
    if (!place.tx.trySend(TypeId(m.typeId), m.tag, m.segment)) throw Ending(ErrorKind.FULL)
    say("sent")
}

private suspend fun readAsConsumer(args: Args, place: Place) {
    while (true) {
        args.limited { place.rx.recv() }.use { m ->
            val crc = m.read { crc32(it) }
            say("message type_id=${m.typeId().toUInt()} tag=${m.tag().toULong()} len=${m.length()} crc32=$crc")
        }
    }
}

private const val SHOWN = 4096

suspend fun show(args: Args) {
    if (args.producing()) {
        val place = Place.sending(args)
        var view = 0L
        place.tx.send(TypeId(0), SHOWN) { view = shown(it.data().fill(0x11)) }
        // The ring stays open meanwhile, and so its mapping: this is used beyond the slot's life on purpose.
        obey(view)
        place.close()
    } else {
        val place = Place.receiving(args)
        args.limited { place.rx.recv() }.use { obey(shown(it.data())) }
        place.close()
    }
}

private fun shown(view: MemorySegment): Long {
    say("view addr=0x${view.address().toString(16)} len=${view.byteSize()} pid=${ProcessHandle.current().pid()}")
    return view.address()
}

/** Writes and reads single bytes of the message by its address, as standard input says. */
private fun obey(address: Long) {
    val bytes = MemorySegment.ofAddress(address).reinterpret(SHOWN.toLong())
    while (true) {
        val words = Input.line()?.split(" ") ?: return
        when (words[0]) {
            "poke" -> {
                bytes.set(ValueLayout.JAVA_BYTE, words[1].toLong(), words[2].toInt().toByte())
                say("poked")
            }
            "peek" -> say("byte value=${bytes.get(ValueLayout.JAVA_BYTE, words[1].toLong()).toUByte()}")
            else -> return
        }
    }
}

private val SHAPES = listOf(
    longArrayOf(), longArrayOf(0), longArrayOf(1), longArrayOf(2, 3), longArrayOf(5, 0, 7), longArrayOf(3, 1, 5, 2),
    longArrayOf(257), LongArray(32) { if (it < 31) 1 else 2 },
)

private class MadeTensor(seq: Long, val type: ElementType) {
    val shape = SHAPES[(seq / 24 % SHAPES.size).toInt()]
    private val values = if (type == ElementType.BOOL) 2 else 256
    private val length = shape.fold(type.size().toLong()) { product, dim -> product * dim }
    val data: MemorySegment = MemorySegment.ofArray(ByteArray(length.toInt()) { ((seq + it) % values).toByte() })
    val tag = tag(seq, crc32(data))
}

/** Tensor number seq; null where that is an ordinary message. */
private fun tensor(seq: Long) = ElementType.entries.getOrNull((seq % 24).toInt())?.let { MadeTensor(seq, it) }

private fun aligned(seq: Long, data: MemorySegment) {
    if (data.byteSize() > 0 && data.address() % 64 != 0L) throw Bad(seq, "not on a multiple of 64")
}

suspend fun tensors(args: Args) {
    val all = Messages("32", 32)
    if (args.producing()) {
        val count = args.counted()
        val place = Place.sending(args)
        // Tensors go by the calls of the Java port.
        val tx = place.tx.blocking
        for (seq in 0 until count) {
            val made = tensor(seq)
            if (made == null) {
                put(args, place.tx, all.make(seq), true)
            } else if (args.how == "reserve") {
                tx.reserveTensor(made.type, *made.shape).use {
                    aligned(seq, it.data())
                    it.data().copyFrom(made.data)
                    it.commit(made.tag)
                }
            } else {
                tx.sendTensor(made.type, made.shape, made.tag, made.data)
            }
        }
        say("sent count=$count next=$count")
        place.close()
    } else {
        val place = Place.receiving(args)
        var received = 0L
        val kind = try {
            while (true) {
                args.limited { place.rx.recv() }.use { check(all, received, it) }
                received++
            }
            @Suppress("UNREACHABLE_CODE")
            null
        } catch (e: RamwayException) {
            e.kind()
        }
        say("end ${named(kind!!)} received=$received")
        place.close()
    }
}

private fun check(all: Messages, seq: Long, message: Message) {
    val want = tensor(seq)
    if (want == null) {
        try {
            message.tensor()
        } catch (e: RamwayException) {
            if (e.kind() != ErrorKind.INVALID_ARGUMENT) throw e
            return message.read { all.check(seq, message.typeId(), message.tag(), it) }
        }
        throw Bad(seq, "an ordinary message is a tensor")
    }
    val got = message.tensor()
    if (got.type() != want.type || !got.shape().contentEquals(want.shape)) {
        throw Bad(seq, "${got.type()} ${got.shape().toList()} instead of ${want.type} ${want.shape.toList()}")
    }
    if (got.data().mismatch(want.data) != -1L || message.tag() != want.tag) throw Bad(seq, "the bytes, or the tag")
    aligned(seq, got.data())
}
