package dev.ramway.kotlin

import dev.ramway.Options
import java.io.BufferedReader
import java.nio.file.Path
import java.util.concurrent.TimeUnit
import kotlin.system.exitProcess

/** Where rings of this test JVM and of the processes that it starts are: RAMWAY_DIR is set by the build. */
internal val directory: Path = Path.of(checkNotNull(System.getenv("RAMWAY_DIR")) { "RAMWAY_DIR is not set" })

private var names = 0

/** A name that nobody has used. */
@Synchronized
internal fun freshName(what: String): String = "$what-${ProcessHandle.current().pid()}-${names++}"

/** A process of its own: the other side of a ring. It says lines and is told lines, and does not outlive its test. */
internal class Peer(vararg arguments: String) : AutoCloseable {
    private val process: Process = ProcessBuilder(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--enable-native-access=ALL-UNNAMED",
        "-cp", System.getProperty("java.class.path"), "dev.ramway.kotlin.PeerKt", *arguments,
    ).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    private val output: BufferedReader = process.inputReader()

    fun expect(line: String) {
        val said = output.readLine()
        check(said == line) { "the peer said '$said', not '$line'" }
    }

    fun tell(line: String) {
        process.outputWriter().apply { write(line + "\n") }.flush()
    }

    /** SIGKILL, and until it is gone. */
    fun kill() {
        process.destroyForcibly().waitFor()
    }

    fun end() {
        check(process.waitFor(60, TimeUnit.SECONDS) && process.exitValue() == 0) { "the peer failed" }
    }

    override fun close() = kill()
}

fun main(arguments: Array<String>) {
    val (what, name) = arguments
    fun say(line: String) {
        println(line)
        System.out.flush()
    }
    when (what) {
        // Sends numbers as long as it is told to, then closes.
        "sender" -> dev.ramway.Sender.open(name).use { tx ->
            say("ready")
            var number = 0L
            while (true) {
                val count = readln().toIntOrNull() ?: break
                repeat(count) {
                    tx.reserve(8).use { slot ->
                        slot.putLong(0, number)
                        slot.commit(7, number++)
                    }
                }
                say("sent")
            }
        }
        // Publishes as many as it is told to.
        "publisher" -> dev.ramway.Topic.open(name).publisher().use { pub ->
            say("ready")
            while (true) {
                val count = readln().toIntOrNull() ?: break
                repeat(count) { pub.send(7, ByteArray(8)) }
                say("sent")
            }
        }
        // Receives as many as it is told to.
        "receiver" -> dev.ramway.Receiver.open(name, Options.DEFAULT).use { rx ->
            say("ready")
            while (true) {
                val count = readln().toIntOrNull() ?: break
                repeat(count) { rx.recv().close() }
                say("received")
            }
        }
        "echo" -> dev.ramway.Bus.connect(name).use { bus ->
            say("ready")
            bus.receiver().messages().forEach { bus.sender().send(it.typeId(), it.tag(), it.toByteArray()) }
        }
        else -> exitProcess(2)
    }
}
