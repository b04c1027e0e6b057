package dev.ramway.kotlin

import dev.ramway.Lag
import dev.ramway.Message
import dev.ramway.MessageCopy
import dev.ramway.Policy
import dev.ramway.SubscriberInfo
import dev.ramway.Topic
import dev.ramway.TopicMeta
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.runInterruptible
import java.lang.foreign.MemorySegment
import kotlin.time.Duration
import kotlin.time.toJavaDuration

/**
 * The one publisher of a topic, in the whole system: a sender whose log many read. [send] suspends for the slowest reliable subscriber
 * where the log is full, and for nobody where there is none. A subscriber that goes never ends it.
 *
 * ```kotlin
 * Publisher.openOrCreate("ticks") { capacity = 8.MiB }.use { pub ->
 *     pub.send(TypeId(7), "to everybody".toByteArray())
 * }
 * ```
 */
public class Publisher internal constructor(override val blocking: dev.ramway.Publisher) : SendingEnd() {
    /** The number of the last message that was committed; 0 before the first. */
    public val seq: Long get() = blocking.seq()

    /** Lets the next message's number be [lost] higher: every subscriber counts that many as lost. */
    public fun skipSeq(lost: Long): Unit = blocking.skipSeq(lost)

    /** Who has a slot: every reliable subscriber, and of the others those that could take one. */
    public fun subscribers(): List<SubscriberInfo> = blocking.subscribers()

    /** Suspends until so many reliable subscribers are there and alive. TimedOut after [timeout]. */
    public suspend fun waitForSubscribers(count: Int, timeout: Duration = Duration.INFINITE): Unit =
        runInterruptible(Dispatchers.IO) {
            if (timeout.isInfinite()) blocking.waitForSubscribers(count) else blocking.waitForSubscribers(count, timeout.toJavaDuration())
        }

    public companion object {
        /** A handle of the Java library's, for coroutines; it is closed with this one. */
        public fun of(blocking: dev.ramway.Publisher): Publisher = Publisher(blocking)

        /** Makes a topic that must be new. The options' timeout is waited for on a thread of [kotlinx.coroutines.Dispatchers.IO]. */
        public suspend fun create(name: String, block: TopicBuilder.() -> Unit = {}): Publisher = publisher(Topic.create(name), block)

        /** The publisher of a topic that is there. */
        public suspend fun open(name: String, block: TopicBuilder.() -> Unit = {}): Publisher = publisher(Topic.open(name), block)

        /** The publisher of a topic, which is made if it is not there. */
        public suspend fun openOrCreate(name: String, block: TopicBuilder.() -> Unit = {}): Publisher =
            publisher(Topic.openOrCreate(name), block)

        private suspend fun publisher(topic: Topic, block: TopicBuilder.() -> Unit): Publisher {
            val built = TopicBuilder().apply(block).build(topic)
            return opening { Publisher(built.publisher()) }
        }
    }
}

/**
 * A subscriber of a topic: a receiver that is one of many. Of a reliable one, a message is a view of the log until it is closed; under
 * the other policies it is a copy. One that was ejected gets [dev.ramway.LaggedException] once, and goes on: collecting again does.
 *
 * ```kotlin
 * Subscriber.open("ticks") { policy = Policy.LOSSY }.use { sub ->
 *     sub.messages().collect { message -> println("${message.seq()}: ${message.length()} bytes, ${message.lost()} lost") }
 * }
 * ```
 */
public class Subscriber internal constructor(override val blocking: dev.ramway.Subscriber) : ReceivingEnd() {
    init {
        // As a receiver's.
        blocking.shareViews(true)
    }

    /** How it reads. */
    public val policy: Policy get() = blocking.policy()

    /** The label that it was opened with; empty without one. */
    public val label: String get() = blocking.label()

    /** How far it is behind. */
    public val lag: Lag get() = blocking.lag()

    /** How many messages this handle has lost so far. */
    public val lost: Long get() = blocking.lost()

    /** A copy of the newest message, the same one again if there is no newer one; null before the first. Never waits. */
    public fun latest(): MessageCopy? = blocking.latest()

    /** [latest] into memory of the caller's. */
    public fun latest(target: MemorySegment): TopicMeta? = blocking.latest(target)

    /** [latest] into an array of the caller's. */
    public fun latest(target: ByteArray): TopicMeta? = blocking.latest(target)

    /** Suspends until there is a message newer than the one that [latest] or this gave last. With [Policy.LATEST] only. */
    public suspend fun waitNewer(): Message {
        checkLatest()
        return recv()
    }

    /**
     * The newest value, like a `StateFlow`: first the one that is there, then, each time that the collector comes back, the newest one
     * if it is another; what came in between is left out. It ends with the publisher's close. With [Policy.LATEST] only. For many
     * collectors: `sub.newest().stateIn(scope)`.
     */
    public fun newest(): Flow<MessageCopy> {
        checkLatest()
        return copies()
    }

    private fun checkLatest() {
        // The Java library's own words.
        if (policy != Policy.LATEST) blocking.waitNewer(java.time.Duration.ZERO).close()
    }

    /** Moves on so that the next message is the newest one; how many are left out. */
    public fun skipToNewest(): Long = blocking.skipToNewest()

    /** Closes a durable subscriber for good: its label and position are forgotten. */
    public fun unsubscribe(): Unit = blocking.unsubscribe()

    public companion object {
        /** A handle of the Java library's, for coroutines; it is closed with this one. */
        public fun of(blocking: dev.ramway.Subscriber): Subscriber = Subscriber(blocking)

        /** Makes a topic that must be new. The options' timeout is waited for on a thread of [kotlinx.coroutines.Dispatchers.IO]. */
        public suspend fun create(name: String, block: TopicBuilder.() -> Unit = {}): Subscriber = subscriber(Topic.create(name), block)

        /** A subscriber of a topic that is there. */
        public suspend fun open(name: String, block: TopicBuilder.() -> Unit = {}): Subscriber = subscriber(Topic.open(name), block)

        /** A subscriber of a topic, which is made if it is not there. */
        public suspend fun openOrCreate(name: String, block: TopicBuilder.() -> Unit = {}): Subscriber =
            subscriber(Topic.openOrCreate(name), block)

        private suspend fun subscriber(topic: Topic, block: TopicBuilder.() -> Unit): Subscriber {
            val built = TopicBuilder().apply(block).build(topic)
            return opening { Subscriber(built.subscriber()) }
        }
    }
}
