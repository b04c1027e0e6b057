package dev.ramway.kotlin

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.runInterruptible
import java.lang.foreign.MemorySegment

/**
 * Named shared bytes, with notifications. Any number of coroutines and threads may use it.
 *
 * ```kotlin
 * Region.openOrCreate("pose", 4096) { persistent = true }.use { region ->
 *     region.data.set(ValueLayout.JAVA_DOUBLE, 0, 1.5)
 *     region.signal()
 * }
 * ```
 */
public class Region internal constructor(
    /** The Java port's own handle. */
    public val blocking: dev.ramway.Region,
) : AutoCloseable {
    /** The bytes, for every thread, until the region is closed. */
    public val data: MemorySegment get() = blocking.data()

    /** The number of bytes. */
    public val length: Long get() = blocking.length()

    /** How many notifications there were, modulo 2^31. */
    public val notifications: Int get() = blocking.notifications()

    /** Counts one notification and wakes everybody who waits. */
    public fun signal(): Unit = blocking.signal()

    /**
     * Waits until the count differs from [seen], on a thread of [Dispatchers.IO], and gives the new one.
     *
     * @param seen what [notifications] said before the data was read
     */
    public suspend fun await(seen: Int): Int = runInterruptible(Dispatchers.IO) { blocking.await(seen) }

    /** The count now, and then each time it has changed; changes that come faster than they are collected come as one. */
    public fun changes(): Flow<Int> = flow {
        var seen = notifications
        while (true) {
            emit(seen)
            seen = await(seen)
        }
    }

    /** Waiters of this handle end with Detached. */
    override fun close(): Unit = blocking.close()

    public companion object {
        /** Creates a region of zeros, [length] bytes long. */
        public suspend fun create(name: String, length: Long, block: OptionsBuilder.() -> Unit = {}): Region {
            val options = options(block)
            return opening { Region(dev.ramway.Region.create(name, length, options)) }
        }

        /** Opens a region that is there. */
        public suspend fun open(name: String, block: OptionsBuilder.() -> Unit = {}): Region {
            val options = options(block)
            return opening { Region(dev.ramway.Region.open(name, options)) }
        }

        /** Opens a region, or creates it with [length] bytes. */
        public suspend fun openOrCreate(name: String, length: Long, block: OptionsBuilder.() -> Unit = {}): Region {
            val options = options(block)
            return opening { Region(dev.ramway.Region.openOrCreate(name, length, options)) }
        }

        /** Opens a region that is there, for reading only. */
        public suspend fun openReadOnly(name: String, block: OptionsBuilder.() -> Unit = {}): Region {
            val options = options(block)
            return opening { Region(dev.ramway.Region.openReadOnly(name, options)) }
        }
    }
}
