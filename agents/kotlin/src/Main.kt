// Kotlin's agent: ../README.md says what each command and flag means.

import dev.ramway.ErrorKind
import dev.ramway.RamwayException
import kotlinx.coroutines.runBlocking
import kotlin.system.exitProcess

fun main(words: Array<String>) {
    val status = if (words.contentEquals(arrayOf("serve"))) serve() else play(words.toList())
    // A thread may still read standard input.
    exitProcess(status)
}

private fun serve(): Int {
    while (true) {
        val line = Input.line() ?: return 0
        play(line.split(" "))
        say("over")
    }
}

/** Plays one command; gives the exit status. */
private fun play(words: List<String>): Int {
    try {
        val args = Args(words)
        args.cpu?.let { onMyself("taskset", "-acp", "$it") }
        runBlocking { run(args) }
        return 0
    } catch (e: Usage) {
        System.err.println(e.message)
        return 2
    } catch (e: Bad) {
        say("bad seq=${e.seq} text=${e.message}")
        return 1
    } catch (e: RamwayException) {
        say("error ${named(e.kind())} text=${e.message}")
    } catch (e: Exception) {
        e.printStackTrace()
        say("error ${named(ErrorKind.OS)} text=$e")
    }
    // A vector may well be what cannot be opened.
    return if (words[0] == "read") 0 else 1
}

private suspend fun run(args: Args) = when (args.command) {
    "produce" -> produce(args)
    "consume" -> consume(args)
    "die" -> die(args)
    "read" -> read(args)
    "show" -> show(args)
    "tensors" -> tensors(args)
    "echo" -> echo(args)
    "ping" -> ping(args)
    "flood" -> flood(args)
    "drain" -> drain(args)
    else -> throw Usage("no such command: ${args.command}")
}
