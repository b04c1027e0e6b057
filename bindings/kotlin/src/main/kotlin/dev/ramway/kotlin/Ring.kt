package dev.ramway.kotlin

import dev.ramway.ClosedException

/** Both ends of a ring without a name, for coroutines of this process. */
public class RingPair internal constructor(public val sender: Sender, public val receiver: Receiver) : AutoCloseable {
    public operator fun component1(): Sender = sender

    public operator fun component2(): Receiver = receiver

    /** Closes both ends, the sender first. */
    override fun close(): Unit = receiver.use { sender.close() }
}

/** A ring for coroutines of this process: `val (tx, rx) = ringPair { capacity = 64.KiB }`. */
public fun ringPair(block: OptionsBuilder.() -> Unit = {}): RingPair {
    val pair = dev.ramway.Ring.pair(options(block))
    return RingPair(Sender(pair.sender()), Receiver(pair.receiver()))
}
