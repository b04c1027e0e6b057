// Kotlin's agent: ../README.md has the protocol.

import dev.ramway.RamwayException
import dev.ramway.kotlin.Bus
import dev.ramway.kotlin.Listener
import dev.ramway.kotlin.OptionsBuilder
import dev.ramway.kotlin.Receiver
import dev.ramway.kotlin.Sender
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlin.system.exitProcess
import kotlin.time.Duration.Companion.seconds

/** How long to wait for a name, a role or the other side. */
val OPEN_TIMEOUT = 10.seconds

fun main() {
    val status = try {
        runBlocking {
            val ends = Ends()
            generateSequence { Line.next() }.forEach {
                try {
                    ends.obey(it)
                } catch (e: RamwayException) {
                    say("error ${named(e.kind())} text=${e.message}")
                }
            }
        }
        0
    } catch (e: Refused) {
        say("refused text=${e.message}")
        2
    } catch (e: Bad) {
        say("bad seq=${e.seq} text=${e.message}")
        1
    }
    exitProcess(status)
}

/** What is open: both halves of a bus, or what a role needs of rings. */
class Ends {
    private var bus: Bus? = null
    private var ownTx: Sender? = null
    private var ownRx: Receiver? = null
    private val tx get() = bus?.sender ?: ownTx ?: throw Refused("there is nothing to send to")
    private val rx get() = bus?.receiver ?: ownRx ?: throw Refused("there is nothing to receive from")

    suspend fun obey(line: Line) = when (line.word) {
        "open" -> open(line)
        "close" -> close(line)
        "produce" -> produce(tx, line)
        "consume" -> consume(rx, line)
        "echo" -> echo(tx, rx, line)
        "ping" -> ping(tx, rx, line)
        "last" -> last(tx, line)
        "take" -> take(rx, line)
        "tensor" -> sendTensor(tx, line)
        "write" -> write(tx, line)
        "hold" -> hold(rx, line)
        "region" -> region(line)
        "measure" -> Measure(line).run({ tx }, { rx })
        "about" -> {
            line.end()
            say("about text=Java ${Runtime.version().feature()}")
        }
        else -> throw Refused("no such command: ${line.word}")
    }

    private suspend fun open(line: Line) {
        val consumes = line.text("role") == "consumer"
        val (ring, back, listen, connect) = listOf("ring", "back", "listen", "connect").map(line::text)
        val create = line.yes("create")
        val bytes = line.number("capacity") ?: 65536
        val alignment = (line.number("align") ?: 16).toInt()
        val touched = line.yes("prefault")
        // A coroutine waits as its dispatcher does.
        line.text("wait")
        line.end()
        val options: OptionsBuilder.() -> Unit = {
            timeout = OPEN_TIMEOUT
            prefault = touched
            if (create) {
                capacity = bytes
                align = alignment
            }
        }
        if (listen != null) {
            val listener = Listener.bind(listen) {
                toPeer = bytes
                fromPeer = bytes
                align = alignment
            }
            bus = listener.use { withTimeout(OPEN_TIMEOUT) { it.accept() } }
        } else if (connect != null) {
            bus = Bus.connect(connect) { timeout = OPEN_TIMEOUT }
        } else {
            val (to, from) = if (consumes) back to ring else ring to back
            ownTx = to?.let { if (create) Sender.create(it, options) else Sender.open(it, options) }
            ownRx = from?.let { if (create) Receiver.create(it, options) else Receiver.open(it, options) }
        }
        if (consumes) {
            rx.run { attached(epoch, peerEpoch, capacity, maxMessageLength) }
        } else {
            tx.run { attached(epoch, peerEpoch, capacity, maxMessageLength) }
        }
    }

    private fun attached(epoch: Int, peerEpoch: Int, capacity: Long, max: Int) = say(
        "attached pid=${ProcessHandle.current().pid()} epoch=${epoch.toUInt()} peer_epoch=${peerEpoch.toUInt()} " +
            "capacity=$capacity max=$max",
    )

    private fun close(line: Line) {
        line.end()
        for (end in bus?.let { listOf(it) } ?: listOfNotNull(ownTx, ownRx)) {
            try {
                end.close()
            } catch (_: RamwayException) {
                // What closing says on a bus whose peer is dead does not matter.
            }
        }
        bus = null
        ownTx = null
        ownRx = null
        say("closed")
    }
}
