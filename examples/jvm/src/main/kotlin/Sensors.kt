/*
 * Takes apart the frames of `examples/src/bin/sensors.rs`: figures of each sensor, and an alarm where a bearing knocks.
 *
 *     Sensors RING [SECONDS]      with SECONDS, gives up after so long, also where nothing comes
 *
 * Three coroutines of one scope: the one that collects the flow, one that prints alarms, one that reports. When the stream ends, or
 * the time, or a failure comes, all three do.
 */

import dev.ramway.Message
import dev.ramway.RamwayException
import dev.ramway.kotlin.MiB
import dev.ramway.kotlin.Receiver
import dev.ramway.kotlin.TypeId
import dev.ramway.kotlin.type
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.channels.consumeEach
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.filter
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.flow.transform
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull
import kotlin.math.abs
import kotlin.math.sqrt
import kotlin.system.exitProcess
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds

private val SHUTDOWN = TypeId(100)
private val NAMES = listOf("vibration (g)", "temperature (°C)", "current (A)")
private val VIBRATION = TypeId(0)

/** Beyond this, in g, it was a knock. */
private const val ALARM = 5f

/** A frame's figures: all that is kept of it. */
private class Frame(val type: TypeId, val nanos: Long, val samples: Int, val sum: Double, val squares: Double, val peak: Float)

private class Figures {
    var frames = 0L
    var samples = 0L
    var sum = 0.0
    var squares = 0.0

    fun add(frame: Frame) {
        frames++
        samples += frame.samples
        sum += frame.sum
        squares += frame.squares
    }

    override fun toString(): String = "%d frames, mean %.3f, effective %.3f".format(frames, sum / samples, sqrt(squares / samples))
}

/** Reads the samples where they lie in the shared memory. */
private fun frame(message: Message): Frame {
    val samples = message.length() / Float.SIZE_BYTES
    var sum = 0.0
    var squares = 0.0
    var peak = 0f
    for (i in 0 until samples) {
        val sample = message.getFloat(i * 4L)
        sum += sample
        squares += sample.toDouble() * sample
        if (abs(sample) > abs(peak)) peak = sample
    }
    return Frame(message.type, message.tag(), samples, sum, squares, peak)
}

/** Whether the sender's own figures, its last message, are the same. */
private fun agrees(last: Message, figures: List<Figures>): Boolean =
    last.tag() == figures.sumOf { it.frames } &&
        figures.withIndex().all { (i, own) ->
            last.getLong(16L * i) == own.frames && last.getDouble(16L * i + 8) == own.sum
        }

private suspend fun follow(rx: Receiver): Boolean = coroutineScope {
    val figures = NAMES.map { Figures() }
    // More alarms than can be printed are left out, rather than waited for.
    val alarms = Channel<Frame>(Channel.CONFLATED)
    var knocks = 0
    var agreed = false
    val printer = launch {
        alarms.consumeEach { println("a knock of %.1f g at %.3f s".format(it.peak, it.nanos / 1e9)) }
    }
    val reporter = launch {
        while (true) {
            delay(500.milliseconds)
            println("%d frames".format(figures.sumOf { it.frames }))
        }
    }
    rx.messages()
        .transform { if (it.type == SHUTDOWN) agreed = agrees(it, figures) else emit(it) }
        .map(::frame)
        .onEach { figures[it.type.value].add(it) }
        .filter { it.type == VIBRATION && abs(it.peak) > ALARM }
        .collect {
            knocks++
            alarms.trySend(it)
        }
    // The sender has closed.
    reporter.cancel()
    alarms.close()
    printer.join()
    NAMES.zip(figures).forEach { (name, own) -> println("$name: $own") }
    println("$knocks knocks in ${figures.sumOf { it.frames }} frames")
    agreed
}

fun main(arguments: Array<String>) {
    if (arguments.size !in 1..2) {
        System.err.println("usage: Sensors RING [SECONDS]")
        exitProcess(2)
    }
    val agreed = try {
        val waitMax = arguments.getOrNull(1)?.toDouble() ?: 86_400.0
        runBlocking {
            withTimeoutOrNull(waitMax.seconds) {
                Receiver.openOrCreate(arguments[0]) {
                    capacity = 1.MiB
                    timeout = 5.seconds
                }.use { follow(it) }
            }
        }
    } catch (failure: RamwayException) {
        System.err.println("Sensors: ${failure.message}")
        exitProcess(1)
    } catch (failure: NumberFormatException) {
        System.err.println("Sensors: SECONDS is a number, not '${arguments[1]}'")
        exitProcess(2)
    }
    when (agreed) {
        null -> println("the time is over")
        false -> {
            System.err.println("Sensors: the sender's figures are others, or did not come")
            exitProcess(1)
        }
        true -> {}
    }
}
