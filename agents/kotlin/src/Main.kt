// Kotlin's agent: ../README.md has the protocol.

import dev.ramway.ErrorKind
import dev.ramway.Policy
import dev.ramway.RamwayException
import dev.ramway.RpcException
import dev.ramway.kotlin.Bus
import dev.ramway.kotlin.Listener
import dev.ramway.kotlin.OptionsBuilder
import dev.ramway.kotlin.Publisher
import dev.ramway.kotlin.Receiver
import dev.ramway.kotlin.ReceivingEnd
import dev.ramway.kotlin.Sender
import dev.ramway.kotlin.SendingEnd
import dev.ramway.kotlin.Subscriber
import dev.ramway.kotlin.TopicBuilder
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlin.system.exitProcess
import kotlin.time.Duration.Companion.milliseconds
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
                } catch (e: RpcException) {
                    say("error ${named(e.error().orElse(ErrorKind.OS))} text=${e.message}")
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

/** What is open: both halves of a bus, what a role needs of rings, a side of a topic, or one of RPC. */
class Ends {
    private var bus: Bus? = null
    private var ownTx: SendingEnd? = null
    private var ownRx: ReceivingEnd? = null
    private var server: RpcServe? = null
    private var client: RpcCalls? = null
    private val tx: SendingEnd get() = bus?.sender ?: ownTx ?: throw Refused("there is nothing to send to")
    private val rx: ReceivingEnd get() = bus?.receiver ?: ownRx ?: throw Refused("there is nothing to receive from")

    suspend fun obey(line: Line) {
        server?.let {
            if (!it.obey(line)) server = null
            return
        }
        client?.let {
            if (!it.obey(line)) client = null
            return
        }
        play(line)
    }

    private suspend fun play(line: Line) = when (line.word) {
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
        val role = line.text("role")
        line.text("rpc")?.let {
            when (role) {
                "server" -> server = RpcServe(it, line)
                "client" -> client = RpcCalls.open(it, line)
                else -> throw Refused("role=$role")
            }
            return
        }
        val consumes = role == "consumer"
        line.text("topic")?.let { return openTopic(it, consumes, line) }
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
        sayAttached(consumes)
    }

    private suspend fun openTopic(name: String, consumes: Boolean, line: Line) {
        val create = line.yes("create")
        val bytes = line.number("capacity") ?: 65536
        val alignment = (line.number("align") ?: 32).toInt()
        val waitFor = line.number("wait_for")
        val reads = line.text("policy") ?: "reliable"
        val (label, from) = listOf(line.text("label") ?: "", line.text("from") ?: "")
        val durable = line.yes("durable")
        val eject = (line.number("eject_after") ?: 0).milliseconds
        val limit = line.number("timeout")?.milliseconds ?: OPEN_TIMEOUT
        // A coroutine waits as its dispatcher does.
        line.text("wait")
        line.end()
        val options: TopicBuilder.() -> Unit = {
            policy = Policy.entries.find { it.name.lowercase() == reads } ?: throw Refused("policy=$reads")
            this.label = label
            this.durable = durable
            ejectAfter = eject
            timeout = limit
            begin(from)
            if (create) {
                capacity = bytes
                align = alignment
            }
        }
        if (consumes) {
            if (waitFor != null) throw Refused("wait_for is a producer's")
            ownRx = if (create) Subscriber.create(name, options) else Subscriber.open(name, options)
        } else {
            val pub = if (create) Publisher.create(name, options) else Publisher.open(name, options)
            ownTx = pub
            waitFor?.let { pub.waitForSubscribers(it.toInt(), OPEN_TIMEOUT) }
        }
        sayAttached(consumes)
    }

    private fun TopicBuilder.begin(from: String) {
        val number = from.substringAfter(':', "").toLongOrNull()
        when (from.substringBefore(':')) {
            "" -> Unit
            "oldest" -> fromOldest()
            "now" -> fromNow()
            "history" -> history(number ?: throw Refused("from=$from"))
            "after" -> afterSeq(number ?: throw Refused("from=$from"))
            else -> throw Refused("from=$from")
        }
    }

    private fun sayAttached(consumes: Boolean) {
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
