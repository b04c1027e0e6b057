import java.lang.foreign.MemorySegment
import java.util.zip.CRC32
import kotlin.math.max

/** A message did not arrive as it was sent. */
class Bad(val seq: Long, text: String) : Exception(text)

/** Message number seq, whose payload begins at [from] of [bytes]. */
class Made(val typeId: Int, val tag: Long, private val bytes: ByteArray, private val from: Int, val length: Int) {
    val segment: MemorySegment get() = MemorySegment.ofArray(bytes).asSlice(from.toLong(), length.toLong())
    val array: ByteArray get() = bytes.copyOfRange(from, from + length)
}

/** Every message of a ring whose longest has [longest] bytes. */
class Messages(private val sizes: String, private val longest: Long) {
    private val fixed = when (sizes) {
        "mixed", "ramp" -> null
        else -> sizes.toLongOrNull() ?: throw Refused("sizes is mixed, ramp or a number")
    }

    /** Bytes 0, 1, …, 255, 0, …: every payload is a piece of it. */
    private var pattern = ByteArray(0)

    private fun length(seq: Long): Long {
        val x = (seq * 2_654_435_761) and 0xFFFF_FFFF
        return when {
            fixed != null -> fixed
            sizes == "ramp" -> seq % (longest + 1)
            seq % 1000 == 999L -> longest
            seq % 100 == 0L -> 0
            seq % 50 == 1L -> x % (longest + 1)
            else -> x % 257
        }
    }

    fun make(seq: Long): Made {
        val length = length(seq)
        if (pattern.size < length + 256) {
            pattern = ByteArray(Math.toIntExact(max(length, minOf(2L * pattern.size, longest)) + 256)) { it.toByte() }
        }
        val from = (seq % 256).toInt()
        val crc = CRC32().apply { update(pattern, from, length.toInt()) }
        return Made((seq % 60_000).toInt(), tag(seq, crc.value), pattern, from, length.toInt())
    }

    /** Says no to what came as message number seq and is not. */
    fun check(seq: Long, typeId: Int, tag: Long, payload: MemorySegment) {
        val made = make(seq)
        if (payload.byteSize() != made.length.toLong()) {
            throw Bad(seq, "length ${payload.byteSize()} instead of ${made.length}")
        }
        if (typeId != made.typeId) throw Bad(seq, "type id $typeId instead of ${made.typeId}")
        // Of the bytes that came, so that each of them is read.
        if (tag != made.tag || tag != tag(seq, crc32(payload))) throw Bad(seq, "tag $tag instead of ${made.tag}")
        if (payload.mismatch(made.segment) != -1L) throw Bad(seq, "the bytes")
    }
}

fun tag(seq: Long, crc: Long) = (crc shl 32) or (seq and 0xFFFF_FFFF)

/** The number that a tag says, of one that was made here. */
fun seqOf(tag: Long) = tag and 0xFFFF_FFFF

fun crc32(bytes: MemorySegment): Long {
    val crc = CRC32()
    // A buffer has an int for its length.
    for (at in 0 until bytes.byteSize() step (1L shl 30)) {
        crc.update(bytes.asSlice(at, minOf(1L shl 30, bytes.byteSize() - at)).asByteBuffer())
    }
    return crc.value
}
