package dev.ramway.kotlin

/**
 * The receiving end of a ring; one per ring, in the whole system.
 *
 * A received message is a view of the shared memory until it is closed, and one message or batch is out at a time. If this
 * process is killed before that, the next receiver gets the message again.
 *
 * One coroutine at a time may use it, on any threads. [close] may come from any.
 *
 * ```kotlin
 * Receiver.open("ticks") { timeout = 5.seconds }.use { rx ->
 *     rx.messages().collect { message -> println("${message.type}: ${message.length()} bytes") }
 * }
 * ```
 *
 * Of a message, `getLong(offset)` and the like, `copyTo`, `toByteArray` and `read { segment -> }` cost nothing but
 * themselves. `data()` and `buffer()` may be used until the message is closed, on any thread of the coroutine;
 * that takes an arena of all threads, which costs some 20 µs a message.
 */
public class Receiver internal constructor(
    /** The Java port's own handle: everything that is not here, and calls that block a thread. */
    override val blocking: dev.ramway.Receiver,
) : ReceivingEnd() {
    init {
        // A coroutine may be on another thread when it closes a message than when it asked for its bytes.
        blocking.shareViews(true)
    }

    public companion object {
        /** A handle of the Java library's, such as `dev.ramway.Receiver.fromFd(0)`, for coroutines; it is closed with this one. */
        public fun of(blocking: dev.ramway.Receiver): Receiver = Receiver(blocking)

        /** Creates a ring. The options' timeout is waited for on a thread of [kotlinx.coroutines.Dispatchers.IO]. */
        public suspend fun create(name: String, block: OptionsBuilder.() -> Unit = {}): Receiver {
            val options = options(block)
            return opening { Receiver(dev.ramway.Receiver.create(name, options)) }
        }

        /** Attaches to a ring that is there. */
        public suspend fun open(name: String, block: OptionsBuilder.() -> Unit = {}): Receiver {
            val options = options(block)
            return opening { Receiver(dev.ramway.Receiver.open(name, options)) }
        }

        /** Attaches to a ring, or creates it. */
        public suspend fun openOrCreate(name: String, block: OptionsBuilder.() -> Unit = {}): Receiver {
            val options = options(block)
            return opening { Receiver(dev.ramway.Receiver.openOrCreate(name, options)) }
        }
    }
}
