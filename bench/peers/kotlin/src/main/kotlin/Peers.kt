package dev.ramway.bench.kotlin

import dev.ramway.bench.About
import dev.ramway.bench.Burst
import dev.ramway.bench.Measured
import dev.ramway.bench.Mechanism
import dev.ramway.bench.Outcome
import dev.ramway.bench.RustSide
import dev.ramway.bench.Setup
import dev.ramway.bench.Usage
import dev.ramway.kotlin.Receiver
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.runBlocking

/** Ramway by its Kotlin port: a stream from Rust, collected from a `Flow`. */
object Peers {
    @JvmStatic
    fun mechanisms(): List<Mechanism> = listOf(FromRust, Nothing)
}

private object FromRust : Mechanism {
    override fun about() =
        About("ring-rust-kotlin", "ramway", false, "from a sender in Rust: messages().collect { }", "")

    override fun can(burst: Burst) = burst.streams() && !burst.together()

    override fun pair(setup: Setup, burst: Burst): Measured {
        Usage.settle(setup.cpu(false), setup.realtime)
        val name = "${setup.directory}/there"
        val rx = runBlocking {
            Receiver.create(name) {
                capacity = setup.capacity
                prefault = true
            }
        }
        return Receiving(rx, RustSide("send", name, setup))
    }
}

/** A receiver here, and a sender in Rust. Every message is read to the last word. */
private class Receiving(private val rx: Receiver, private val sender: RustSide) : Measured {
    override fun pids() = longArrayOf(sender.pid(), ProcessHandle.current().pid())

    override fun burst(burst: Burst): Outcome {
        Usage.forgetPeak()
        sender.ask(burst)
        val usage = Usage()
        val total = receive(burst.size, burst.count)
        val ended = System.nanoTime()
        val used = usage.end()
        val sent = sender.hear("sent")
        check(total == expected(burst)) { "the bytes received are not the bytes sent" }
        return Outcome(ended - RustSide.time(sent, "began_ns"), burst.count, LongArray(0), Usage.Used.of(sent), used)
    }

    private fun receive(size: Int, count: Long): Long {
        var total = 0L
        runBlocking {
            rx.messages().take(Math.toIntExact(count)).collect { message ->
                check(message.length() == size)
                for (word in 0L until size step 8) {
                    total += message.getLong(word)
                }
            }
        }
        return total
    }

    override fun stop() {
        sender.stop()
        rx.close()
    }
}

/** No message at all: what a Flow takes for itself, and what it takes from the heap. */
private object Nothing : Mechanism {
    override fun about() = About("flow-kotlin", "by-hand", false, "the same Flow over arrays that are there already: no message at all", "")

    override fun can(burst: Burst) = burst.streams() && !burst.together()

    override fun pair(setup: Setup, burst: Burst): Measured {
        Usage.settle(setup.cpu(false), setup.realtime)
        return Emitting(Array(RustSide.POOL) { n -> LongArray(burst.size / 8) { word -> n + word.toLong() } })
    }
}

private class Emitting(private val messages: Array<LongArray>) : Measured {
    override fun pids() = longArrayOf(ProcessHandle.current().pid())

    override fun burst(burst: Burst): Outcome {
        Usage.forgetPeak()
        val usage = Usage()
        val began = System.nanoTime()
        val total = receive(burst.count)
        val ended = System.nanoTime()
        val used = usage.end()
        check(total == expected(burst)) { "the bytes received are not the bytes sent" }
        return Outcome(ended - began, burst.count, LongArray(0), Usage.Used(0, 0, 0, 0, 0, 0), used)
    }

    private fun receive(count: Long): Long {
        var total = 0L
        runBlocking {
            flow {
                var n = 0
                while (true) {
                    emit(messages[n++ and RustSide.POOL - 1])
                }
            }.take(Math.toIntExact(count)).collect { message ->
                for (word in message) {
                    total += word
                }
            }
        }
        return total
    }

    override fun stop() {}
}

/** Message n has the 64-bit words n % POOL and those after it. */
private fun expected(burst: Burst): Long {
    val words = burst.size / 8L
    val rest = burst.count % RustSide.POOL
    val numbers = burst.count / RustSide.POOL * (RustSide.POOL * (RustSide.POOL - 1L) / 2) + rest * (rest - 1) / 2
    return words * numbers + burst.count * (words * (words - 1) / 2)
}
