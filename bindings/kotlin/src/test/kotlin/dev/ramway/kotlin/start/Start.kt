// The program of docs/start/kotlin.md, below the first empty line.
package dev.ramway.kotlin.start

import dev.ramway.kotlin.Receiver
import dev.ramway.kotlin.Sender
import dev.ramway.kotlin.TypeId
import kotlinx.coroutines.runBlocking

fun main(arguments: Array<String>) = runBlocking<Unit> {
    if (arguments.singleOrNull() == "receive") {
        Receiver.openOrCreate("hello").use { rx ->
            rx.messages().collect { message -> println(String(message.toByteArray())) } // until the sender closes
        }
    } else {
        Sender.openOrCreate("hello").use { tx ->
            for (n in 1..3) tx.send(TypeId(1), "message $n".toByteArray())
        }
    }
}
