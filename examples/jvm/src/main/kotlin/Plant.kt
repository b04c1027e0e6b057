/*
 * The readings of all machines of a plant as one flow: each machine (`machine.py`) publishes to a topic of its own.
 *
 *     Plant TOPIC... [--within SECONDS]      five topics or any other number; gives up after SECONDS
 *
 * `merge` collects each topic's flow in a coroutine of its own: one that is silent holds up no other, and what comes is seen in the
 * order in which it comes. A message is given back when its own flow goes on, which is before it comes out of the merged one. So each
 * is made a value of the program's first.
 */

import dev.ramway.Message
import dev.ramway.RamwayException
import dev.ramway.kotlin.MiB
import dev.ramway.kotlin.Subscriber
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.catch
import kotlinx.coroutines.flow.emitAll
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.merge
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull
import kotlin.system.exitProcess
import kotlin.time.Duration.Companion.seconds

/** Beyond this, in °C, a machine is too hot. */
private const val ALARM = 90.0

private sealed interface Event {
    val machine: String
}

private class Reading(override val machine: String, message: Message) : Event {
    val number = message.seq()
    val lost = message.lost()
    val temperature = message.getDouble(0)
    val load = message.getDouble(8)
}

/** The end of one machine's flow; why is null where it has closed. */
private class Stopped(override val machine: String, val why: String?) : Event

/** One machine's. Its end, whatever it is, is an event, and so no end of the merged flow. */
private fun events(machine: String): Flow<Event> = flow<Event> {
    Subscriber.openOrCreate(machine) {
        capacity = 1.MiB
        timeout = 5.seconds
    }.use { sub -> emitAll(sub.messages().map { Reading(machine, it) }) }
    emit(Stopped(machine, null))
}.catch { failure ->
    if (failure !is RamwayException) throw failure
    emit(Stopped(machine, failure.message))
}

private class Totals {
    var readings = 0L
    var lost = 0L
    var hot = 0L
    var temperatures = 0.0
    var loads = 0.0

    fun add(reading: Reading) {
        readings++
        lost += reading.lost
        temperatures += reading.temperature
        loads += reading.load
    }

    override fun toString(): String =
        "%d readings, %d lost, %d too hot, mean %.3f °C, load %.3f"
            .format(readings, lost, hot, temperatures / readings, loads / readings)
}

/** Whether all machines have closed, after the last of them has ended. */
private suspend fun watch(machines: List<String>): Boolean {
    val totals = machines.associateWith { Totals() }
    var closed = 0
    machines.map(::events).merge().collect { event ->
        val own = totals.getValue(event.machine)
        when (event) {
            is Reading -> {
                own.add(event)
                if (event.temperature > ALARM && own.hot++ == 0L) {
                    println("%s: %.1f °C at reading %d".format(event.machine, event.temperature, event.number))
                }
            }

            is Stopped -> {
                println("${event.machine} ${event.why?.let { "failed: $it" } ?: "has closed"}")
                if (event.why == null) closed++
            }
        }
    }
    totals.forEach { (machine, own) -> println("$machine: $own") }
    println("${totals.values.sumOf { it.readings }} readings of ${machines.size} machines")
    return closed == machines.size
}

fun main(arguments: Array<String>) {
    val at = arguments.indexOf("--within")
    val machines = (if (at < 0) arguments.toList() else arguments.take(at)).distinct()
    val within = if (at < 0) 86_400.0 else arguments.getOrNull(at + 1)?.toDoubleOrNull()
    if (machines.isEmpty() || within == null || at >= 0 && arguments.size != at + 2) {
        System.err.println("usage: Plant TOPIC... [--within SECONDS], not: ${arguments.joinToString(" ")}")
        exitProcess(2)
    }
    when (runBlocking { withTimeoutOrNull(within.seconds) { watch(machines) } }) {
        null -> println("the time is over")
        false -> exitProcess(1)
        true -> {}
    }
}
