package dev.ramway.kotlin

import dev.ramway.Slot
import java.lang.foreign.MemorySegment
import java.nio.ByteBuffer
import java.util.OptionalLong
import kotlin.time.Duration

/** What the sending end of a ring and the publisher of a topic have in common: every way to send. */
public sealed class SendingEnd : AutoCloseable {
    /** The Java port's own handle: everything that is not here, and calls that block a thread. */
    public abstract val blocking: dev.ramway.SendingEnd

    /** The number of bytes of the data area; a frame takes 16 more than its payload, rounded up to [align]. */
    public val capacity: Long get() = blocking.capacity()

    /** What every payload's address is a multiple of, in bytes. */
    public val align: Int get() = blocking.align()

    /** The longest payload that ever fits, in bytes. */
    public val maxMessageLength: Int get() = blocking.maxMessageLength()

    /** How often this role has been attached, this handle included. */
    public val epoch: Int get() = blocking.epoch()

    /** How often the other role has been attached; 0: never yet. */
    public val peerEpoch: Int get() = blocking.peerEpoch()

    /** Whether the receiver (of a topic: a reliable subscriber) is attached and its process lives. One system call. */
    public val peerAlive: Boolean get() = blocking.peerAlive()

    /** The tag of the last message that is visible to receivers, by any sender; null before the first. */
    public val lastTag: Long? get() = blocking.lastTag().orNull()

    /** [send] with tag 0. */
    public suspend fun send(type: TypeId, data: ByteArray): Unit = send(type, 0, data)

    /** Sends a message; suspends while there is no room for it. */
    public suspend fun send(type: TypeId, tag: Long, data: ByteArray) {
        while (!trySend(type, tag, data)) awaitRoom(data.size)
    }

    /** [send] with tag 0. */
    public suspend fun send(type: TypeId, data: ByteBuffer): Unit = send(type, 0, data)

    /** Sends what is between a buffer's position and limit, neither of which is changed; suspends while there is no room. */
    public suspend fun send(type: TypeId, tag: Long, data: ByteBuffer) {
        while (!trySend(type, tag, data)) awaitRoom(data.remaining())
    }

    /** [send] with tag 0. */
    public suspend fun send(type: TypeId, data: MemorySegment): Unit = send(type, 0, data)

    /** Sends a message; suspends while there is no room for it. */
    public suspend fun send(type: TypeId, tag: Long, data: MemorySegment) {
        // Of one that is too long, the attempt says so.
        while (!trySend(type, tag, data)) awaitRoom(data.byteSize().toInt())
    }

    /** [send] with tag 0. */
    public suspend fun send(type: TypeId, length: Int, fill: (Slot) -> Unit): Unit = send(type, 0, length, fill)

    /**
     * Sends a message of [length] bytes that [fill] writes where it lies in the ring; suspends while there is no room. What
     * [fill] throws is thrown, and nothing was sent.
     */
    public suspend fun send(type: TypeId, tag: Long, length: Int, fill: (Slot) -> Unit) {
        var slot = blocking.tryReserve(length)
        while (slot == null) {
            awaitRoom(length)
            slot = blocking.tryReserve(length)
        }
        // Closing a slot that was not committed is an abort.
        slot.use {
            fill(it)
            it.commit(type.value, tag)
        }
    }

    /** Sends a message if there is room now; false if the ring is full. */
    public fun trySend(type: TypeId, data: ByteArray): Boolean = trySend(type, 0, data)

    /** Sends a message if there is room now; false if the ring is full. */
    public fun trySend(type: TypeId, tag: Long, data: ByteArray): Boolean = blocking.trySend(type.value, tag, data)

    /** Sends a message if there is room now; false if the ring is full. */
    public fun trySend(type: TypeId, data: ByteBuffer): Boolean = trySend(type, 0, data)

    /** Sends a message if there is room now; false if the ring is full. */
    public fun trySend(type: TypeId, tag: Long, data: ByteBuffer): Boolean = blocking.trySend(type.value, tag, data)

    /** Sends a message if there is room now; false if the ring is full. */
    public fun trySend(type: TypeId, data: MemorySegment): Boolean = trySend(type, 0, data)

    /** Sends a message if there is room now; false if the ring is full. */
    public fun trySend(type: TypeId, tag: Long, data: MemorySegment): Boolean = blocking.trySend(type.value, tag, data)

    /** Suspends until a living receiver, of a topic a reliable subscriber, is attached; its epoch. TimedOut after [timeout]. */
    public suspend fun waitForPeer(timeout: Duration = Duration.INFINITE): Int = peer(blocking, timeout)

    /** Suspends until there may be room for a payload of this length, or the receiver is gone. */
    public suspend fun awaitRoom(length: Int): Unit = awaitCallback { blocking.whenWritable(length, it) }

    /** Makes what was committed unflushed by [Slot.commitUnflushed] visible. */
    public fun flush(): Unit = blocking.flush()

    /** Gives the role up without telling the receiver that this was all: it is told PeerDead. */
    public fun abandon(): Unit = blocking.abandon()

    /** Flushes, tells the receiver that this was all, and gives the role up. */
    override fun close(): Unit = blocking.close()
}

private fun OptionalLong.orNull(): Long? = if (isPresent) asLong else null

/**
 * [use] for a stream that has to be whole: if [block] fails the role is given up by [SendingEnd.abandon], and the receiver gets
 * [dev.ramway.PeerDeadException] instead of an orderly end.
 */
public inline fun <E : SendingEnd, R> E.useOrAbandon(block: (E) -> R): R {
    try {
        return block(this)
    } catch (failure: Throwable) {
        abandon()
        throw failure
    } finally {
        // After an abandon this does nothing.
        close()
    }
}
