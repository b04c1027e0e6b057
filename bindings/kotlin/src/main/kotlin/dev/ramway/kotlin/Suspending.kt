package dev.ramway.kotlin

import dev.ramway.ErrorKind
import dev.ramway.RamwayException
import dev.ramway.Registration
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runInterruptible
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlin.coroutines.resume
import kotlin.time.Duration
import kotlin.time.toJavaDuration

/**
 * Polls before a call suspends. A suspension wakes a thread of the port's and costs this coroutine two dispatches; the answer of a
 * peer that is at work comes within a microsecond or two.
 */
private const val FIRST_POLLS = 64

/** Polls a few times, without a system call. */
internal inline fun <T : Any> pollFirst(attempt: () -> T?): T? {
    repeat(FIRST_POLLS) {
        attempt()?.let { return it }
        Thread.onSpinWait()
    }
    return null
}

/**
 * Suspends until the port calls back. The coroutine holds no thread meanwhile, and cancelling it takes the request back at
 * once.
 */
internal suspend inline fun awaitCallback(crossinline register: (Runnable) -> Registration) {
    suspendCancellableCoroutine { continuation ->
        val registration = register { continuation.resume(Unit) }
        continuation.invokeOnCancellation { registration.close() }
    }
}

/**
 * What may wait in the kernel, on a thread meant for that; cancelling interrupts it. What it made in the moment of a
 * cancellation is closed, because its caller is gone.
 */
internal suspend fun <T : AutoCloseable> opening(block: () -> T): T {
    var made: T? = null
    try {
        return runInterruptible(Dispatchers.IO) { interruptible(block).also { made = it } }
    } catch (cancelled: CancellationException) {
        made?.close()
        throw cancelled
    }
}

/** The port's calls that do not declare InterruptedException say with an error of their own that they were interrupted. */
private inline fun <T> interruptible(block: () -> T): T =
    try {
        block()
    } catch (failure: RamwayException) {
        if (failure.kind() != ErrorKind.INTERRUPTED) throw failure
        throw InterruptedException(failure.message)
    }

/** The wait for a peer, which is one of the kernel's. */
internal suspend fun peer(end: dev.ramway.RingEnd, timeout: Duration): Int =
    runInterruptible(Dispatchers.IO) { if (timeout.isInfinite()) end.waitForPeer() else end.waitForPeer(timeout.toJavaDuration()) }
