// A client of RPC, and its commands.

import dev.ramway.CallOptions
import dev.ramway.ErrorKind
import dev.ramway.RpcException
import dev.ramway.RpcReply
import dev.ramway.RpcStatus
import dev.ramway.RpcStream
import dev.ramway.TimedOutException
import dev.ramway.WaitMode
import dev.ramway.kotlin.CallOptionsBuilder
import dev.ramway.kotlin.RpcClient
import dev.ramway.kotlin.RpcPending
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runInterruptible
import kotlinx.coroutines.withTimeoutOrNull
import java.util.TreeMap
import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.toJavaDuration

fun waitMode(line: Line): WaitMode = WaitMode.valueOf((line.text("wait") ?: "hybrid").uppercase())

private fun statusOf(e: RpcException): RpcStatus? = e.status().orElse(null)

private fun nameOf(e: RpcException) = statusOf(e)?.formatName() ?: e.error().get().formatName()

private fun same(seq: Long, what: String, expected: ByteArray, found: ByteArray) {
    val at = expected.asList().zip(found.asList()).indexOfFirst { (a, b) -> a != b }
    if (at >= 0 || expected.size != found.size) {
        throw Bad(seq, "byte $at of the $what, which has ${found.size} bytes and should have ${expected.size}")
    }
}

private fun application(seq: Long, e: RpcException, code: Int, text: String) {
    if (e.code() != code || e.text() != text) {
        throw Bad(seq, "error ${e.code().toUInt()} with '${e.text()}' instead of ${code.toUInt()} with '$text'")
    }
}

/** One call. */
private class Request(val seq: Long, val body: ByteArray, val meta: ByteArray)

/** A row of calls. */
private class Row(line: Line) {
    val method: Int = line.text("method").let {
        if (it == "sum") RpcClient.methodId(SUM) else it?.toUIntOrNull()?.toInt() ?: throw Refused("method=$it")
    }
    private val messages = Messages(line.text("sizes") ?: "mixed", line.number("longest") ?: 4096)
    private val metaLength = (line.number("meta") ?: 0).toInt()
    private val deadline = line.number("deadline")

    fun request(seq: Long): Request {
        val body = when (method) {
            2 -> words(seq.toInt(), messages.make(seq).length)
            3 -> words(seq.toInt() + 1) + "call $seq".toByteArray()
            6, 7 -> ByteArray(0)
            else -> messages.make(seq).array
        }
        return Request(seq, body, bytes(seq + 1, metaLength))
    }

    fun options(request: Request): CallOptionsBuilder.() -> Unit = {
        meta = request.meta
        deadline?.let { timeout = it.microseconds }
    }

    /** Says no to a reply that is not as it must be. */
    fun check(request: Request, reply: RpcReply) {
        val body = when (method) {
            1, 5 -> request.body
            2 -> bytes(request.seq, messages.make(request.seq).length)
            7 -> seven(request, reply.body())
            RpcClient.methodId(SUM) -> sumOf(request.body)
            else -> throw Bad(request.seq, "method ${method.toUInt()} replied")
        }
        same(request.seq, "body", body, reply.body())
        same(request.seq, "metadata", if (method == 1 || method == 5) request.meta else ByteArray(0), reply.meta())
    }

    private fun seven(request: Request, body: ByteArray): ByteArray {
        val most = deadline?.let { (it + 999) / 1000 } ?: 0
        if (body.size != 8 || word(body, 0).toLong() != ProcessHandle.current().pid() ||
            word(body, 1).toUInt().toLong() > most || (word(body, 1) == 0) != (most == 0L)
        ) {
            throw Bad(request.seq, "method 7 replied ${body.toList()} of $most ms")
        }
        return body
    }
}

/** How many calls had which outcome. */
private class Tally {
    private val began = System.nanoTime()
    private val names = TreeMap<String, Long>()
    private var mayHaveRun = 0
    var cancelled = 0
    var bytes = 0L

    fun add(name: String) {
        names.merge(name, 1, Long::plus)
    }

    fun failed(e: RpcException) {
        add(nameOf(e))
        if (e.mayHaveRun()) mayHaveRun++
    }

    /** Counts what came of a call, if it is as it must be. */
    suspend fun count(row: Row, request: Request, outcome: suspend () -> RpcReply) {
        try {
            val reply = outcome()
            row.check(request, reply)
            bytes += reply.body().size
            add("Ok")
        } catch (e: RpcException) {
            if (row.method == 3 && statusOf(e) == RpcStatus.APPLICATION) {
                application(request.seq, e, request.seq.toInt() + 1, "call ${request.seq}")
            }
            failed(e)
        }
    }

    fun print(begin: String) {
        val counts = names.map { " ${it.key}=${it.value}" }.joinToString("")
        val own = if (cancelled > 0) " cancelled=$cancelled" else ""
        say("$begin$counts$own may_have_run=$mayHaveRun bytes=$bytes elapsed_ms=${msSince(began)}")
    }
}

/** A call that was started. */
private class Kept(val row: Row, val request: Request, val pending: RpcPending)

/** A stream that is read one element at a time, and how far: the Java port's, because a flow takes as it is collected. */
private class Reading(
    private val stream: RpcStream, private val seq: Long, private val size: Int, private val count: Long, private val code: Int,
) {
    private var received = 0L
    var ended = false
        private set

    private fun whole() {
        if (received != count) throw Bad(seq, "$received elements instead of $count")
    }

    /** Receives one element, and says how many that were: none where the stream has ended. Null: the time is over. */
    suspend fun next(tally: Tally, limit: Duration): Int? {
        val result = runInterruptible(Dispatchers.IO) { runCatching { stream.next(limit.toJavaDuration()) } }
        result.getOrNull()?.let {
            same(seq, "element", bytes(seq + received, size), it.body())
            received++
            tally.bytes += it.body().size
            return 1
        }
        when (val failure = result.exceptionOrNull()) {
            null -> {
                whole()
                if (code != 0) throw Bad(seq, "it is complete in place of an error")
                tally.add("Ok")
            }
            is TimedOutException -> return null
            is RpcException -> {
                if (statusOf(failure) == RpcStatus.APPLICATION) {
                    whole()
                    application(seq, failure, code, "after $count")
                }
                tally.failed(failure)
            }
            else -> throw failure
        }
        ended = true
        return 0
    }

    fun cancel() = stream.close()
}

class RpcCalls private constructor(private val client: RpcClient) {
    private val kept = ArrayDeque<Kept>()
    private val streams = mutableListOf<Reading>()

    companion object {
        suspend fun open(name: String, line: Line): RpcCalls {
            val limit = line.number("timeout")?.milliseconds ?: OPEN_TIMEOUT
            val buffered = line.number("max_buffered")
            val mode = waitMode(line)
            line.end()
            val client = RpcClient.connect(name) {
                timeout = limit
                maxBuffered = buffered
                waitMode = mode
            }
            say("attached pid=${ProcessHandle.current().pid()} peer_pid=${client.peerPid} max_in_flight=${client.maxInFlight}")
            return RpcCalls(client)
        }
    }

    /** Whether it is still open after a command. */
    suspend fun obey(line: Line): Boolean {
        when (line.word) {
            "call" -> call(line)
            "start" -> start(line)
            "collect" -> collect(line)
            "stream" -> stream(line)
            "next" -> next(line)
            "cancel" -> cancel(line)
            "health" -> health(line)
            "describe" -> {
                line.end()
                val methods = client.describe().map { it.number().toUInt().toString() + if (it.name().isEmpty()) "" else " ${it.name()}" }
                say("described text=${methods.joinToString(",")}")
            }
            "state" -> {
                line.end()
                say("state in_flight=${client.inFlight}")
            }
            "close" -> {
                line.end()
                client.close()
                say("closed")
                return false
            }
            else -> throw Refused("${line.word} is no command of a client")
        }
        return true
    }

    private suspend fun call(line: Line) {
        val row = Row(line)
        val count = line.number("count") ?: 1
        val first = line.number("start") ?: 0
        val inFlight = line.number("in_flight") ?: 1
        val cancels = line.yes("cancel")
        line.end()
        val tally = Tally()
        val underWay = ArrayDeque<Kept>()
        suspend fun oldest() {
            val call = underWay.removeFirst()
            if (cancels && call.request.seq % 2 == 1L) {
                tally.cancelled++
                call.pending.close()
            } else {
                tally.count(row, call.request) { call.pending.await() }
            }
        }
        for (seq in first until first + count) {
            val request = row.request(seq)
            if (inFlight == 1L && !cancels) {
                tally.count(row, request) { client.call(row.method, request.body, row.options(request)) }
                continue
            }
            if (underWay.size >= inFlight) oldest()
            try {
                underWay += Kept(row, request, client.start(row.method, request.body, row.options(request)))
            } catch (e: RpcException) {
                tally.failed(e)
            }
        }
        while (underWay.isNotEmpty()) oldest()
        tally.print("called count=$count")
    }

    private fun start(line: Line) {
        val row = Row(line)
        val count = line.number("count") ?: 1
        val first = line.number("start") ?: 0
        line.end()
        for (seq in first until first + count) {
            val request = row.request(seq)
            kept += Kept(row, request, client.start(row.method, request.body, row.options(request)))
        }
        say("started count=$count")
    }

    private suspend fun collect(line: Line) {
        val limit = (line.number("timeout") ?: 20_000).milliseconds
        line.end()
        val tally = Tally()
        var count = 0
        while (kept.isNotEmpty()) {
            val call = kept.first()
            withTimeoutOrNull(limit) { tally.count(call.row, call.request) { call.pending.await() } }
                ?: return say("end ${named(ErrorKind.TIMED_OUT)}")
            kept.removeFirst()
            count++
        }
        tally.print("called count=$count")
    }

    private fun stream(line: Line) {
        val (count, size) = listOf("count", "size").map { line.needed(it).toInt() }
        val code = (line.number("code") ?: 0).toInt()
        val number = line.number("streams") ?: 1
        val first = line.number("start") ?: 0
        val (most, deadline) = listOf("window", "deadline").map { line.number(it) }
        line.end()
        for (seq in first until first + number) {
            var options = CallOptions.DEFAULT
            most?.let { options = options.withWindow(it.toInt()) }
            deadline?.let { options = options.withTimeout(it.microseconds.toJavaDuration()) }
            val stream = client.blocking.stream(4, words(count, size, code, seq.toInt()), options)
            streams += Reading(stream, seq, size, count.toUInt().toLong(), code)
        }
        say("started count=$number")
    }

    private suspend fun next(line: Line) {
        val limit = (line.number("timeout") ?: 20_000).milliseconds
        var rounds = line.number("count") ?: Long.MAX_VALUE
        line.end()
        val tally = Tally()
        var received = 0L
        while (streams.isNotEmpty() && rounds-- > 0) {
            for (each in streams) {
                received += each.next(tally, limit) ?: return say("end ${named(ErrorKind.TIMED_OUT)}")
            }
            streams.removeAll { it.ended }
        }
        tally.print("streamed received=$received")
    }

    private fun cancel(line: Line) {
        line.end()
        val count = streams.size + kept.size
        streams.forEach { it.cancel() }
        kept.forEach { it.pending.close() }
        streams.clear()
        kept.clear()
        say("cancelled count=$count")
    }

    private suspend fun health(line: Line) {
        line.end()
        try {
            client.ping()
            say("healthy")
        } catch (e: RpcException) {
            say("end name=${nameOf(e)} number=${statusOf(e)?.number() ?: e.error().get().number()}")
        }
    }
}
