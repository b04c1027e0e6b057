import dev.ramway.ErrorKind
import dev.ramway.TimedOutException
import dev.ramway.RamwayException
import kotlinx.coroutines.delay
import kotlinx.coroutines.withTimeoutOrNull
import java.io.FileOutputStream
import java.io.FileDescriptor
import java.util.Optional
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.milliseconds

/** Wrong flags. */
class Usage(text: String) : Exception(text)

/** A call gave nothing, or not in time. */
class Ending(val kind: ErrorKind) : Exception(kind.summary(), null, false, false)

private val FLAGS = (
    "ring back listen connect region create capacity align wait timeout cpu sizes start count until resume batch how " +
        "endings progress linger oversize pace work group check role size pause warm-up poll"
    ).split(" ").toSet()

/** The flags, the same for every command; ../README.md says what each means. */
class Args(words: List<String>) {
    val command = words.firstOrNull() ?: throw Usage("a command is missing")
    private val given = words.drop(1).chunked(2).associate {
        val flag = it[0].removePrefix("--")
        if (it.size < 2 || !it[0].startsWith("--") || flag !in FLAGS) throw Usage("not a flag with a value: ${it[0]}")
        flag to it[1]
    }

    val ring = given["ring"]
    val back = given["back"]
    val listen = given["listen"]
    val connect = given["connect"]
    val region = given["region"]
    val how = given["how"]
    val role = given["role"]
    val create = yes("create", false)
    val resume = yes("resume", false)
    val progress = yes("progress", false)
    val oversize = yes("oversize", false)
    val check = yes("check", true)
    val pause = yes("pause", false)
    val capacity = number("capacity") ?: 65536
    val align = (number("align") ?: 16).toInt()

    /** Whether nothing says how long a wait may last, and a flow will do. */
    val patient = given["timeout"] == null && given["poll"] == null

    /** A wait is a loop of calls with this time-out. */
    private val poll = number("poll")?.microseconds
    private val timeout = (number("timeout") ?: 20_000).milliseconds
    val cpu = number("cpu")
    val sizes = given["sizes"] ?: "mixed"
    val size = number("size") ?: 0
    val start = number("start")
    val count = number("count")
    val until = number("until")
    val batch = number("batch")?.toInt()
    val endings = number("endings") ?: 1
    val group = number("group") ?: 1
    val warmUp = number("warm-up") ?: ((count ?: 0) / 10)
    private val linger = number("linger")
    private val pace = (number("pace") ?: 0).microseconds
    private val work = (number("work") ?: 0).microseconds

    private fun number(flag: String) =
        given[flag]?.let { it.toLongOrNull() ?: throw Usage("--$flag $it is no number") }

    private fun yes(flag: String, otherwise: Boolean) = when (given[flag]) {
        null -> otherwise
        "yes" -> true
        "no" -> false
        else -> throw Usage("--$flag is yes or no")
    }

    fun counted() = count ?: throw Usage("--count is missing")

    /** Whether --role is the producer's. */
    fun producing() = when (role) {
        "producer" -> true
        "consumer" -> false
        else -> throw Usage("--role is producer or consumer")
    }

    /** A call that may last as long as --timeout says. What it gave in the moment of its end is not lost. */
    suspend fun <T : Any> limited(atOnce: ((java.time.Duration) -> T)? = null, call: suspend () -> T): T {
        var given: T? = null
        if (poll != null) {
            val began = System.nanoTime()
            while (timeout == Duration.ZERO || msSince(began) < timeout.inWholeMilliseconds) {
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
        if (timeout == Duration.ZERO) return call()
        withTimeoutOrNull(timeout) { given = call() }
        return given ?: throw Ending(ErrorKind.TIMED_OUT)
    }

    /** Waits until the other side's epoch is not the noted one any more; false: none came in time. */
    suspend fun awaitSuccessor(noted: Int, epoch: () -> Int): Boolean {
        val began = System.nanoTime()
        while (epoch() == noted) {
            if (timeout != Duration.ZERO && msSince(began) >= timeout.inWholeMilliseconds) return false
            delay(1)
        }
        return true
    }

    suspend fun pace() = delay(pace)

    suspend fun work() = delay(work)

    /** --linger: that long, or until a line arrives or standard input ends. */
    fun lingerNow() {
        linger?.let { Input.line(it) }
    }

    fun pauseNow() {
        if (pause) Input.line()
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

/** Whether the stream may go on after this. */
fun isEnding(kind: ErrorKind) = kind == ErrorKind.CLOSED || kind == ErrorKind.PEER_DEAD

/** Runs a command on this process, given by its id. */
fun onMyself(vararg command: String) {
    val words = command.toList() + ProcessHandle.current().pid().toString()
    ProcessBuilder(words).redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor()
}

/** Standard input, line by line, by a thread of its own: a line may be waited for with a limit. */
object Input {
    // Empty for the end.
    private val lines by lazy {
        LinkedBlockingQueue<Optional<String>>().also { to ->
            thread(isDaemon = true) {
                generateSequence(::readlnOrNull).forEach { to.add(Optional.of(it)) }
                to.add(Optional.empty())
            }
        }
    }
    private var ended = false

    /** The next line; null if there is none in that many milliseconds, or any more. */
    fun line(ms: Long = Long.MAX_VALUE): String? {
        val next = if (ended) null else lines.poll(ms, TimeUnit.MILLISECONDS)
        ended = ended || next?.isEmpty == true
        return next?.orElse(null)
    }
}
