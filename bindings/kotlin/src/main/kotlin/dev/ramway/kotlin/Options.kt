package dev.ramway.kotlin

import dev.ramway.ConnectOptions
import dev.ramway.ListenOptions
import dev.ramway.Options
import dev.ramway.Policy
import dev.ramway.Topic
import dev.ramway.WaitMode
import kotlin.time.Duration
import kotlin.time.toJavaDuration
import kotlin.time.toKotlinDuration

/** Keeps the builders of options from being nested into each other. */
@DslMarker
public annotation class RamwayDsl

/** 2^10 bytes. */
public val Int.KiB: Long get() = this.toLong() shl 10

/** 2^20 bytes. */
public val Int.MiB: Long get() = this.toLong() shl 20

/** 2^30 bytes. */
public val Int.GiB: Long get() = this.toLong() shl 30

/** What is said of every named segment. What each property means, its unit and range: [Options]. */
@RamwayDsl
public sealed class SegmentOptionsBuilder {
    /** In bytes. */
    public var capacity: Long = Options.DEFAULT.capacity()

    /** In bytes. */
    public var align: Int = Options.DEFAULT.align()
    public var discard: Boolean = false
    public var persistent: Boolean = false
    public var allowDisk: Boolean = false
    public var lockMemory: Boolean = false
    public var hugePages: Boolean = false
    public var prefault: Boolean = false
    public var mode: Int = Options.DEFAULT.mode()

    /** How long opening waits for a name, or a role, label or slot, that is not there yet. */
    public var timeout: Duration = Options.DEFAULT.timeout().toKotlinDuration()

    /** How the *blocking* calls of [SendingEnd.blocking] and [ReceivingEnd.blocking] wait; suspending ones never block. */
    public var waitMode: WaitMode = Options.DEFAULT.waitMode()
    public var membarrier: Boolean = true

    /** -1: any. */
    public var numaNode: Int = Options.DEFAULT.numaNode()
}

/** How a ring or region is to be made or opened: the block of [Sender.create], [Receiver.open], [Region.create] and the others. */
public class OptionsBuilder internal constructor() : SegmentOptionsBuilder() {
    internal fun build() = Options(
        capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode, timeout.java(), waitMode,
        membarrier, numaNode,
    )
}

/**
 * How a topic is to be made or opened: the block of [Publisher.create], [Subscriber.open] and the others. What each property means,
 * and which side it is for: [dev.ramway.Topic].
 */
public class TopicBuilder internal constructor() : SegmentOptionsBuilder() {
    /** 0: 32 for a new topic. */
    public var slots: Int = 0
    public var lossyOnly: Boolean = false
    public var mayEject: Boolean = false

    /** Zero: never. */
    public var ejectAfter: Duration = Duration.ZERO
    public var timestamps: Boolean = false
    public var policy: Policy = Policy.RELIABLE
    public var label: String = ""
    public var durable: Boolean = false
    public var readOnly: Boolean = false
    private var start: (Topic) -> Topic = { it }

    /** Begins at the oldest message that is intact. */
    public fun fromOldest() {
        start = Topic::fromOldest
    }

    /** Begins after the newest message. */
    public fun fromNow() {
        start = Topic::fromNow
    }

    /** Begins with up to so many messages that were published before. */
    public fun history(messages: Long) {
        start = { it.history(messages) }
    }

    /** Begins after the message with this number. */
    public fun afterSeq(seq: Long) {
        start = { it.afterSeq(seq) }
    }

    internal fun build(topic: Topic): Topic = start(topic).capacity(capacity).align(align).discard(discard).persistent(persistent)
        .allowDisk(allowDisk).lockMemory(lockMemory).hugePages(hugePages).prefault(prefault).mode(mode).timeout(timeout.java())
        .waitMode(waitMode).membarrier(membarrier).numaNode(numaNode).slots(slots).lossyOnly(lossyOnly).mayEject(mayEject)
        .ejectAfter(ejectAfter.java()).timestamps(timestamps).policy(policy).label(label).durable(durable).readOnly(readOnly)
}

/** Options for the Java port's own calls. */
public fun options(block: OptionsBuilder.() -> Unit): Options = OptionsBuilder().apply(block).build()

/** How to connect: the block of [Bus.connect]. What each property means: [ConnectOptions]. */
@RamwayDsl
public class ConnectOptionsBuilder internal constructor() {
    public var timeout: Duration = ConnectOptions.DEFAULT.timeout().toKotlinDuration()
    public var allowUids: Set<Int> = emptySet()
    public var waitMode: WaitMode = ConnectOptions.DEFAULT.waitMode()
    public var membarrier: Boolean = true

    internal fun build() = ConnectOptions(timeout.java(), allowUids, waitMode, membarrier)
}

/** How to listen: the block of [Listener.bind]. What each property means: [ListenOptions]. */
@RamwayDsl
public class ListenOptionsBuilder internal constructor() {
    /** In bytes. */
    public var toPeer: Long = ListenOptions.DEFAULT.toPeer()

    /** In bytes. */
    public var fromPeer: Long = ListenOptions.DEFAULT.fromPeer()

    /** In bytes. */
    public var align: Int = ListenOptions.DEFAULT.align()

    /** Permission bits of the socket; 0 is 0600, or 0666 with [allowUids]. */
    public var mode: Int = ListenOptions.DEFAULT.mode()
    public var allowUids: Set<Int> = emptySet()

    /** How long a connector may take for each message of the handshake. */
    public var handshakeTimeout: Duration = ListenOptions.DEFAULT.handshakeTimeout().toKotlinDuration()
    public var backlog: Int = ListenOptions.DEFAULT.backlog()
    public var lockMemory: Boolean = false
    public var prefault: Boolean = false
    public var waitMode: WaitMode = ListenOptions.DEFAULT.waitMode()
    public var membarrier: Boolean = true

    internal fun build() = ListenOptions(
        toPeer, fromPeer, align, mode, allowUids, handshakeTimeout.java(), backlog, lockMemory, prefault, waitMode,
        membarrier,
    )
}

/** Infinite is more than anybody waits, and what Java can add to a clock. */
internal fun Duration.java(): java.time.Duration =
    if (isInfinite()) java.time.Duration.ofDays(36_500) else toJavaDuration()
