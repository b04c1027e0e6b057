// echo, ping, flood and drain.

import dev.ramway.Message
import dev.ramway.RamwayException
import dev.ramway.Slot
import dev.ramway.kotlin.TypeId
import dev.ramway.kotlin.type
import java.lang.foreign.MemorySegment
import java.util.Locale

suspend fun echo(args: Args) {
    val place = Place.conversation(args, args.back, args.ring)
    var first = -1L
    var last = -1L
    var received = 0L
    var bytes = 0L
    var began = System.nanoTime()
    val kind = try {
        while (true) {
            began = System.nanoTime()
            args.limited { place.rx.recv() }.use { m ->
                last = seqOf(m.tag())
                if (received++ == 0L) first = last
                bytes += m.length()
                args.limited {
                    place.tx.send(m.type, m.tag(), m.length()) { slot -> copy(m, slot) }
                }
            }
        }
        @Suppress("UNREACHABLE_CODE")
        null
    } catch (e: RamwayException) {
        e.kind()
    } catch (e: Ending) {
        e.kind
    }
    say("end ${named(kind!!)} received=$received first=$first last=$last bytes=$bytes elapsed_ms=${msSince(began)}")
    place.close()
}

private fun copy(m: Message, slot: Slot) {
    if (m.length() == 32) {
        for (at in 0L until 32L step 8) slot.putLong(at, m.getLong(at))
    } else {
        m.read { MemorySegment.copy(it, 0, slot.data(), 0, it.byteSize()) }
    }
}

suspend fun ping(args: Args) {
    val count = args.counted()
    val place = Place.conversation(args, args.ring, args.back)
    val all = Messages(args.sizes, place.tx.maxMessageLength.toLong())
    val size = if (args.check) 0 else size(args)
    val times = DoubleArray((count / args.group + 1).toInt())
    var taken = 0
    var last = System.nanoTime()
    var sum = 0L
    for (seq in 0 until count) {
        if (args.check) put(args, place.tx, all.make(seq), true) else flood(place, seq, size)
        args.limited { place.rx.recv() }.use { m ->
            if (args.check) m.read { all.check(seq, m.typeId(), m.tag(), it) } else sum += sum(m, size)
        }
        if ((seq + 1) % args.group != 0L) continue
        val now = System.nanoTime()
        if (seq >= args.warmUp) times[taken++] = (now - last).toDouble() / args.group
        last = now
    }
    times.sort(0, taken)
    fun at(part: Double) =
        String.format(Locale.ROOT, "%.1f", if (taken == 0) 0.0 else times[((taken - 1) * part).toInt()])
    say("rtt count=$count min_ns=${at(0.0)} p50_ns=${at(0.5)} p99_ns=${at(0.99)} max_ns=${at(1.0)}")
    if (!args.check) say("sum value=${sum.toULong()}")
    place.close()
}

private fun size(args: Args) = (args.sizes.toIntOrNull() ?: 32).also {
    if (it % 8 != 0) throw Usage("--sizes has to be a multiple of 8")
}

private fun words(slot: Slot, seq: Long, size: Int) {
    for (at in 0 until size step 8) slot.putLong(at.toLong(), seq + at / 8)
}

private fun sum(m: Message, size: Int): Long {
    if (m.length() != size) throw Bad(0, "a message of another length than was said")
    var sum = 0L
    for (at in 0 until size step 8) sum += m.getLong(at.toLong())
    return sum
}

private suspend fun flood(place: Place, seq: Long, size: Int) =
    place.tx.send(TypeId(0), size) { words(it, seq, size) }

suspend fun flood(args: Args) {
    val count = args.counted()
    val size = size(args)
    val place = Place.sending(args)
    val batch = args.batch ?: 1
    var inBatch = 0
    for (seq in 0 until count) {
        if (++inBatch >= batch || seq + 1 == count) {
            inBatch = 0
            flood(place, seq, size)
            continue
        }
        val tx = place.tx.blocking
        val slot = tx.tryReserve(size) ?: tx.reserve(size)
        words(slot, seq, size)
        slot.commitUnflushed(0, 0)
    }
    say("sent count=$count next=$count")
    place.close()
}

suspend fun drain(args: Args) {
    val count = args.counted()
    val size = size(args)
    val place = Place.receiving(args)
    var seen = 0L
    var sum = 0L
    var began = System.nanoTime()
    var ended = began
    fun take(m: Message) {
        sum += sum(m, size)
        if (++seen == args.warmUp) began = System.nanoTime()
        if (seen == count) ended = System.nanoTime()
    }
    val batch = args.batch ?: 1
    if (batch > 1) {
        place.rx.batches(batch).collect { for (m in it) take(m) }
    } else {
        place.rx.messages().collect { take(it) }
    }
    if (seen != count) throw Bad(seen, "the stream ended early")
    say("rate messages=${count - args.warmUp} ns=${ended - began} sum=${sum.toULong()}")
    place.close()
}
