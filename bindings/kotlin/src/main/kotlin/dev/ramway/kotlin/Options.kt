package dev.ramway.kotlin

import dev.ramway.ConnectOptions
import dev.ramway.ListenOptions
import dev.ramway.Options
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

/**
 * How a ring or region is to be made or opened: the block of [Sender.create], [Receiver.open], [Region.create] and the
 * others. What each property means, its unit and range: [Options].
 */
@RamwayDsl
public class OptionsBuilder internal constructor() {
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

    /** How long opening waits for a name or a role that is not there yet. */
    public var timeout: Duration = Options.DEFAULT.timeout().toKotlinDuration()

    /** How the *blocking* calls of [Sender.blocking] and [Receiver.blocking] wait; suspending ones never block. */
    public var waitMode: WaitMode = Options.DEFAULT.waitMode()
    public var membarrier: Boolean = true

    /** -1: any. */
    public var numaNode: Int = Options.DEFAULT.numaNode()

    internal fun build() = Options(
        capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode, timeout.java(), waitMode,
        membarrier, numaNode,
    )
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
private fun Duration.java(): java.time.Duration =
    if (isInfinite()) java.time.Duration.ofDays(36_500) else toJavaDuration()
