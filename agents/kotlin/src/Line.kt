import dev.ramway.ErrorKind
import dev.ramway.RamwayException
import dev.ramway.TimedOutException
import kotlinx.coroutines.delay
import kotlinx.coroutines.withTimeoutOrNull
import java.io.FileDescriptor
import java.io.FileOutputStream
import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.milliseconds

/** A command that is not understood. */
class Refused(text: String) : Exception(text)

/** A call gave nothing, or not in time. */
class Ending(val kind: ErrorKind) : Exception(kind.summary(), null, false, false)

/** A command, `word key=value key=value ...`. What a command does not take out of it is refused. */
class Line private constructor(words: List<String>) {
    val word = words.first()
    private val fields = words.drop(1).associate { it.substringBefore('=') to it.substringAfter('=') }.toMutableMap()

    fun text(key: String) = fields.remove(key)

    fun has(key: String) = key in fields

    // A tag needs all 64 bits.
    fun number(key: String) =
        text(key)?.let { it.toULongOrNull()?.toLong() ?: throw Refused("$key=$it is no number") }

    fun needed(key: String) = number(key) ?: throw Refused("$key is missing")

    fun yes(key: String) = text(key) == "yes"

    /** Nothing else was said. */
    fun end() {
        if (fields.isNotEmpty()) throw Refused("$word does not know ${fields.keys}")
    }

    companion object {
        /** The next line of standard input; null when that ends. */
        fun next() = readlnOrNull()?.let { Line(it.split(" ")) }
    }
}

/** How long a wait may last: `timeout`, and `poll`, with which it is a loop of calls with that time-out. */
class Limits(line: Line) {
    private val whole = (line.number("timeout") ?: 20_000).milliseconds
    private val poll = line.number("poll")?.microseconds

    private fun over(began: Long) = whole != Duration.ZERO && msSince(began) >= whole.inWholeMilliseconds

    /** A call that may last as long as a wait. What it gave in the moment of its end is not lost. */
    suspend fun <T : Any> within(atOnce: ((java.time.Duration) -> T)? = null, call: suspend () -> T): T {
        var given: T? = null
        if (poll != null) {
            val began = System.nanoTime()
            while (!over(began)) {
                if (poll == Duration.ZERO && atOnce != null) {
                    // No coroutine begins with no time at all: that is a call of the blocking handle's.
                    try {
                        return atOnce(java.time.Duration.ZERO)
                    } catch (again: TimedOutException) {
                        continue
                    }
                }
                withTimeoutOrNull(poll) { given = call() }
                given?.let { return it }
            }
            throw Ending(ErrorKind.TIMED_OUT)
        }
        if (whole == Duration.ZERO) return call()
        withTimeoutOrNull(whole) { given = call() }
        return given ?: throw Ending(ErrorKind.TIMED_OUT)
    }

    /** Waits until the other side's epoch is not the noted one any more; false: none came in time. */
    suspend fun successor(noted: Int, epoch: () -> Int): Boolean {
        val began = System.nanoTime()
        while (epoch() == noted) {
            if (over(began)) return false
            delay(1)
        }
        return true
    }
}

fun msSince(began: Long) = (System.nanoTime() - began) / 1_000_000

private val out = FileOutputStream(FileDescriptor.out)

/** Prints a line at once. */
fun say(line: String) = out.write("$line\n".toByteArray())

/** ABI.md's name and number. */
fun named(kind: ErrorKind) = "name=${kind.formatName()} number=${kind.number()}"

/** The kind of what a call ended with; anything that has none is thrown on. */
fun kindOf(e: Exception) = when (e) {
    is Ending -> e.kind
    is RamwayException -> e.kind()
    else -> throw e
}
