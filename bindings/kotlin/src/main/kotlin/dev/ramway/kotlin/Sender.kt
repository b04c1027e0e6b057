package dev.ramway.kotlin

/**
 * The sending end of a ring; one per ring, in the whole system.
 *
 * A message is visible to the receiver when [send] returns. It suspends where the ring is full, and holds no thread
 * meanwhile; cancelling the coroutine ends the wait at once, and nothing of the message was sent then.
 *
 * One coroutine at a time may use it, on any threads. [close] may come from any.
 *
 * ```kotlin
 * Sender.create("ticks") { capacity = 1.MiB }.use { tx ->
 *     tx.send(TypeId(7), "hello".toByteArray())
 * }
 * ```
 *
 * Errors are the Java port's: [dev.ramway.RamwayException] with a kind, [dev.ramway.ClosedException],
 * [dev.ramway.PeerDeadException].
 */
public class Sender internal constructor(
    /** The Java port's own handle: everything that is not here, and calls that block a thread. */
    override val blocking: dev.ramway.Sender,
) : SendingEnd() {
    public companion object {
        /** A handle of the Java library's, such as `dev.ramway.Sender.fromFd(0)`, for coroutines; it is closed with this one. */
        public fun of(blocking: dev.ramway.Sender): Sender = Sender(blocking)

        /** Creates a ring. The options' timeout is waited for on a thread of [kotlinx.coroutines.Dispatchers.IO]. */
        public suspend fun create(name: String, block: OptionsBuilder.() -> Unit = {}): Sender {
            val options = options(block)
            return opening { Sender(dev.ramway.Sender.create(name, options)) }
        }

        /** Attaches to a ring that is there. */
        public suspend fun open(name: String, block: OptionsBuilder.() -> Unit = {}): Sender {
            val options = options(block)
            return opening { Sender(dev.ramway.Sender.open(name, options)) }
        }

        /** Attaches to a ring, or creates it. */
        public suspend fun openOrCreate(name: String, block: OptionsBuilder.() -> Unit = {}): Sender {
            val options = options(block)
            return opening { Sender(dev.ramway.Sender.openOrCreate(name, options)) }
        }
    }
}
