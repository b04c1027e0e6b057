// A server of RPC with the programs' methods, and its commands.

import dev.ramway.RamwayException
import dev.ramway.RpcRequest
import dev.ramway.kotlin.RpcServer
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.util.concurrent.atomic.AtomicLong
import java.util.zip.CRC32
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds

/** The method that is registered by name. */
const val SUM = "Agent.Sum"

fun words(vararg words: Int): ByteArray =
    ByteBuffer.allocate(4 * words.size).order(ByteOrder.LITTLE_ENDIAN).apply { words.forEach { putInt(it) } }.array()

fun word(body: ByteArray, index: Int): Int = ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN).getInt(4 * index)

/** The bytes that begin with this one. */
fun bytes(first: Long, length: Int) = ByteArray(length) { (first + it).toByte() }

fun sumOf(body: ByteArray) = words(CRC32().apply { update(body) }.value.toInt())

class RpcServe(name: String, line: Line) {
    private val scope = CoroutineScope(Dispatchers.Default + SupervisorJob())
    private val gate = CompletableDeferred<Unit>()
    private val began = AtomicLong()
    private val ended = AtomicLong()
    private val cancelled = AtomicLong()
    private val elements = AtomicLong()
    private val server: RpcServer
    private val serving: Deferred<Unit>
    private var stopping: Deferred<Unit>? = null

    init {
        val bytes = line.number("capacity") ?: 65536
        val alignment = (line.number("align") ?: 16).toInt()
        val (clients, calls) = listOf("max_clients", "max_in_flight").map { line.number(it)?.toInt() }
        val copied = line.number("max_bytes")
        val mode = waitMode(line)
        line.end()
        server = RpcServer.bind(name) {
            capacity = bytes
            align = alignment
            maxClients = clients
            maxInFlight = calls
            maxBytes = copied
            waitMode = mode
            handlers = Int.MAX_VALUE
        }
        methods()
        serving = scope.async { server.serve() }
        say("attached pid=${ProcessHandle.current().pid()} capacity=$bytes")
    }

    private suspend fun counted(work: suspend () -> ByteArray): ByteArray {
        began.incrementAndGet()
        try {
            return work()
        } finally {
            ended.incrementAndGet()
        }
    }

    private fun echo(request: RpcRequest): ByteArray {
        request.replyMeta(request.meta())
        return request.body()
    }

    private fun methods() {
        server.method(1) { counted { echo(it) } }
        server.method(2) { counted { bytes(word(it.body(), 0).toLong(), word(it.body(), 1)) } }
        server.method(3) { counted { throw it.fail(word(it.body(), 0), it.body().decodeToString(4)) } }
        server.stream(4) { stream(it.body()) { code, text -> throw it.fail(code, text) } }
        server.method(5) {
            counted {
                counting { gate.await() }
                echo(it)
            }
        }
        server.method(6) { counted { error("method 6") } }
        server.method(7) {
            val left = it.remaining().map { each -> (each.toNanos() + 999_999) / 1_000_000 }.orElse(0)
            counted { words(it.peerPid(), left.toInt()) }
        }
        server.method(SUM) { counted { sumOf(it.body()) } }
    }

    private suspend fun counting(wait: suspend () -> Unit) {
        try {
            wait()
        } catch (end: CancellationException) {
            cancelled.incrementAndGet()
            throw end
        }
    }

    private fun stream(body: ByteArray, fail: (Int, String) -> Nothing): Flow<ByteArray> = flow {
        began.incrementAndGet()
        try {
            val count = word(body, 0).toUInt().toLong()
            for (k in 0 until count) {
                counting { emit(bytes(word(body, 3) + k, word(body, 1))) }
                elements.incrementAndGet()
            }
            if (word(body, 2) != 0) fail(word(body, 2), "after $count")
        } finally {
            ended.incrementAndGet()
        }
    }

    /** Whether it is still open after a command. */
    suspend fun obey(line: Line): Boolean {
        when (line.word) {
            "served" -> {
                line.end()
                val over = ended.get()
                val begun = began.get()
                say("served began=$begun running=${begun - over} cancelled=$cancelled elements=$elements clients=${server.clients}")
            }
            "gate" -> {
                line.end()
                gate.complete(Unit)
                say("opened")
            }
            "shutdown" -> {
                val limit = (line.number("limit") ?: 0).milliseconds
                line.end()
                stopping = scope.async { server.shutdown(limit) }
                say("draining")
            }
            "join" -> {
                line.end()
                if (join()) say("ended")
            }
            "close" -> {
                line.end()
                stopping = stopping ?: scope.async { server.shutdown(Duration.ZERO) }
                if (join()) say("closed")
                return false
            }
            else -> throw Refused("${line.word} is no command of a server")
        }
        return true
    }

    /** Waits for its end; false: it has failed, and that is said. */
    private suspend fun join(): Boolean =
        try {
            serving.await()
            stopping?.await()
            true
        } catch (failure: RamwayException) {
            say("error ${named(failure.kind())} text=${failure.message}")
            false
        }
}
