package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The rules of docs/ABI.md, section 20, without a ring. */
class RpcLedgerTest {
    private final List<RpcCall> woken = new ArrayList<>();

    private RpcClientLedger client(int maxInFlight, long maxBuffered) {
        return new RpcClientLedger(maxInFlight, maxBuffered, woken::add);
    }

    private static RpcCall call(int window) {
        return new RpcCall(1, window, RingEnd.FOREVER, RpcFrames.NONE, RpcFrames.NONE);
    }

    /** Submits a call and publishes what can be. */
    private static RpcCall started(RpcClientLedger ledger, int window) {
        RpcCall call = call(window);
        ledger.submit(call);
        if (ledger.next() == call) {
            ledger.published(call);
        }
        return call;
    }

    private static RpcFrames.Reply reply(long id, RpcStatus status, int length) {
        return new RpcFrames.Reply(id, status, false, 0, RpcFrames.NONE, new byte[length]);
    }

    private static RpcFrames.Reply element(long id, int length) {
        return new RpcFrames.Reply(id, RpcStatus.OK, true, 0, RpcFrames.NONE, new byte[length]);
    }

    private static void corrupt(Runnable call) {
        assertEquals(ErrorKind.CORRUPT, assertThrows(RamwayException.class, call::run).kind());
    }

    @Test
    void aCancelledCallKeepsItsPlaceUntilItsReply() {
        RpcClientLedger ledger = client(1, 100);
        RpcCall first = started(ledger, 0);
        RpcCall second = started(ledger, 0);
        assertEquals(RpcCall.State.QUEUED, second.state);
        ledger.cancel(first);
        assertTrue(first.failure.mayHaveRun());
        assertEquals(List.of(first), woken);
        assertNull(ledger.next());
        assertSame(first, ledger.owing());
        ledger.paid(first);
        assertNull(ledger.owing());
        assertNull(ledger.next());
        ledger.received(reply(1, RpcStatus.CANCELLED, 0));
        assertSame(second, ledger.next());
        assertEquals(2, ledger.nextId());
        // Decided once.
        assertEquals(RpcStatus.CANCELLED, first.failure.status().orElseThrow());
        assertEquals(List.of(first), woken);
    }

    @Test
    void aCallWhoseTimeIsOverHasTimedOutWhoeverSaysSoFirst() {
        for (long limit : new long[] {RingEnd.FOREVER, 0}) {
            RpcClientLedger ledger = client(1, 100);
            RpcCall call = new RpcCall(1, 0, limit, RpcFrames.NONE, RpcFrames.NONE);
            ledger.submit(call);
            ledger.published(ledger.next());
            ledger.received(reply(1, RpcStatus.CANCELLED, 0));
            assertEquals(limit == 0, call.failure.status().isEmpty());
            assertTrue(call.failure.mayHaveRun());
            assertNull(ledger.owing());
        }
    }

    @Test
    void aCallThatWaitsIsWithdrawn() {
        RpcClientLedger ledger = client(1, 100);
        started(ledger, 0);
        RpcCall second = started(ledger, 0);
        RpcCall third = started(ledger, 0);
        ledger.timeOut(second);
        ledger.cancel(third);
        assertFalse(second.failure.mayHaveRun());
        assertFalse(third.failure.mayHaveRun());
        assertEquals(0, ledger.queued());
        assertNull(ledger.owing());
    }

    @Test
    void anIdThatIsNotInFlightIsCorrupt() {
        RpcClientLedger ledger = client(4, 100);
        started(ledger, 0);
        for (long id : new long[] {0, 2, -1, 1L << 32 | 1}) {
            corrupt(() -> ledger.received(reply(id, RpcStatus.OK, 0)));
        }
        ledger.received(reply(1, RpcStatus.OK, 0));
        corrupt(() -> ledger.received(reply(1, RpcStatus.OK, 0)));
    }

    @Test
    void elementsBeyondTheCreditAreCorrupt() {
        RpcClientLedger ledger = client(4, 100);
        RpcCall stream = started(ledger, 2);
        corrupt(() -> {
            RpcCall plain = started(ledger, 0);
            ledger.received(element(plain.id, 0));
        });
        ledger.received(element(1, 1));
        ledger.received(element(1, 1));
        corrupt(() -> ledger.received(element(1, 1)));
        // Credit counts once it is published.
        assertNotNull(ledger.take(stream));
        assertSame(stream, ledger.owing());
        corrupt(() -> ledger.received(element(1, 1)));
        ledger.paid(stream);
        ledger.received(element(1, 1));
        // A cancelled stream's elements count too, and are dropped.
        ledger.cancel(stream);
        assertEquals(0, ledger.buffered());
        corrupt(() -> ledger.received(element(1, 1)));
    }

    @Test
    void aStreamEndsWithoutABody() {
        RpcClientLedger ledger = client(4, 100);
        RpcCall stream = started(ledger, 2);
        corrupt(() -> ledger.received(reply(1, RpcStatus.OK, 1)));
        ledger.received(element(1, 3));
        ledger.received(reply(1, RpcStatus.OK, 0));
        assertTrue(stream.complete);
        assertEquals(3, ledger.take(stream).body().length);
        assertNull(ledger.take(stream));
        assertNull(ledger.owing());
    }

    @Test
    void aCancelledCallOwesNoCredit() {
        RpcClientLedger ledger = client(4, 100);
        RpcCall stream = started(ledger, 1);
        ledger.received(element(1, 1));
        ledger.take(stream);
        assertEquals(1, stream.creditOwed);
        ledger.cancel(stream);
        assertEquals(0, stream.creditOwed);
        assertTrue(stream.cancelOwed);
    }

    @Test
    void whatNobodyTakesIsBounded() {
        RpcClientLedger ledger = client(4, 10);
        RpcCall stream = started(ledger, 100);
        RpcCall other = started(ledger, 0);
        ledger.received(element(1, 10));
        ledger.received(element(1, 1));
        assertEquals(ErrorKind.TOO_LARGE, stream.failure.error().orElseThrow());
        assertEquals(0, ledger.buffered());
        assertSame(stream, ledger.owing());
        ledger.received(reply(2, RpcStatus.OK, 11));
        assertEquals(ErrorKind.TOO_LARGE, other.failure.error().orElseThrow());
        assertFalse(other.cancelOwed);
        RpcCall third = started(ledger, 0);
        ledger.received(reply(3, RpcStatus.OK, 10));
        assertNotNull(third.reply);
        ledger.taken(third);
        assertEquals(0, ledger.buffered());
    }

    @Test
    void anEndDecidesEachCall() {
        for (ErrorKind kind : List.of(ErrorKind.CLOSED, ErrorKind.PEER_DEAD, ErrorKind.CORRUPT)) {
            RpcClientLedger ledger = client(1, 100);
            RpcCall sent = started(ledger, 0);
            RpcCall waits = started(ledger, 0);
            ledger.end(Errors.of(kind, null), false);
            assertEquals(kind, sent.failure.error().orElseThrow());
            assertEquals(kind != ErrorKind.CLOSED, sent.failure.mayHaveRun());
            assertFalse(waits.failure.mayHaveRun());
            RpcCall later = call(0);
            ledger.submit(later);
            assertEquals(kind, later.failure.error().orElseThrow());
            assertFalse(later.failure.mayHaveRun());
        }
        RpcClientLedger ledger = client(1, 100);
        RpcCall sent = started(ledger, 0);
        ledger.end(Errors.of(ErrorKind.CLOSED, null), true);
        assertTrue(sent.failure.mayHaveRun(), "this side closed");
    }

    @Test
    void creditIsOwedOnceAndSaturates() {
        RpcClientLedger ledger = client(4, 1 << 20);
        RpcCall stream = started(ledger, 4);
        for (int i = 0; i < 4; i++) {
            ledger.received(element(1, 1));
        }
        ledger.take(stream);
        assertNull(ledger.owing());
        ledger.take(stream);
        ledger.take(stream);
        assertSame(stream, ledger.owing());
        assertEquals(3, stream.creditOwed);
        stream.credit = RpcFrames.U32_MAX - 1;
        ledger.paid(stream);
        assertEquals(RpcFrames.U32_MAX, stream.credit);
    }

    private static RpcServerCall served(RpcServerLedger ledger, long id, int window, int timeoutMicros, long bytes) {
        assertNull(ledger.admit(id, 1, bytes));
        RpcServerCall call = new RpcServerCall(null, new RpcFrames.Call(id, timeoutMicros, 1, window, 0), RpcFrames.NONE, RpcFrames.NONE);
        ledger.begin(call, bytes);
        return call;
    }

    private static RpcServerLedger.Out out(RpcServerCall call, int length) {
        return new RpcServerLedger.Out(call.id, call, RpcStatus.OK, false, 0, RpcFrames.NONE, new byte[length]);
    }

    @Test
    void aServerWantsIdsInTheirOrder() {
        RpcServerLedger ledger = new RpcServerLedger(4, 100);
        for (long id : new long[] {0, 2, -1, 1L << 32 | 1}) {
            corrupt(() -> ledger.admit(id, 1, 0));
        }
        served(ledger, 1, 0, 0, 0);
        corrupt(() -> ledger.admit(1, 1, 0));
        corrupt(() -> ledger.cancelled(0));
        corrupt(() -> ledger.cancelled(2));
        corrupt(() -> ledger.cancelled(-1));
        corrupt(() -> ledger.credited(2, 1));
        corrupt(() -> ledger.credited(1, 1));
    }

    @Test
    void aPlaceIsFreeOnceTheFinalReplyIsPublished() {
        RpcServerLedger ledger = new RpcServerLedger(1, 100);
        RpcServerCall call = served(ledger, 1, 0, 0, 0);
        assertEquals(RpcStatus.OVERLOADED, ledger.admit(2, 1, 0));
        ledger.cancelled(1);
        assertEquals(RpcStatus.OVERLOADED, ledger.admit(3, 1, 0));
        ledger.ended(call);
        assertTrue(ledger.park(out(call, 5)));
        assertEquals(RpcStatus.OVERLOADED, ledger.admit(4, 1, 0));
        ledger.unparked();
        ledger.published(out(call, 5));
        assertNull(ledger.admit(5, 1, 0));
        // Late ones are dropped.
        assertNull(ledger.cancelled(1));
        assertNull(ledger.credited(1, 1));
    }

    @Test
    void aServersBytesAreBounded() {
        RpcServerLedger ledger = new RpcServerLedger(100, 100);
        RpcServerCall first = served(ledger, 1, 0, 0, 60);
        assertEquals(RpcStatus.OVERLOADED, ledger.admit(2, 1, 41));
        RpcServerCall stream = served(ledger, 3, 1, 0, 40);
        assertFalse(ledger.keepElement(stream, RpcFrames.NONE, new byte[1]));
        ledger.ended(first);
        assertTrue(ledger.keepElement(stream, new byte[20], new byte[30]));
        assertFalse(ledger.park(out(first, 11)));
        assertTrue(ledger.park(out(first, 10)));
        assertEquals(100, ledger.bytes());
        assertTrue(ledger.park(out(first, 0)));
        ledger.ended(stream);
        ledger.unparked();
        assertEquals(0, ledger.bytes());
    }

    @Test
    void aDrainingServerAnswersItsOwnMethods() {
        RpcServerLedger ledger = new RpcServerLedger(1, 100);
        ledger.drain();
        assertEquals(RpcStatus.DRAINING, ledger.admit(1, 1, 0));
        assertNull(ledger.admit(2, Facts.METHOD_PING, 0));
    }

    @Test
    void timesEndInTheirOrder() throws InterruptedException {
        RpcServerLedger ledger = new RpcServerLedger(10, 100);
        RpcServerCall late = served(ledger, 1, 0, -1, 0);
        RpcServerCall second = served(ledger, 2, 0, 2000, 0);
        RpcServerCall first = served(ledger, 3, 0, 1, 0);
        served(ledger, 4, 0, 0, 0);
        while (second.left() > 0) {
            Thread.sleep(1);
        }
        assertSame(first, ledger.expired());
        assertSame(second, ledger.expired());
        assertNull(ledger.expired());
        assertTrue(ledger.untilExpiry() > 0);
        ledger.ended(late);
        assertEquals(RingEnd.FOREVER, ledger.untilExpiry());
    }

    @Test
    void creditSaturates() {
        RpcServerLedger ledger = new RpcServerLedger(10, 100);
        RpcServerCall stream = served(ledger, 1, 1, 0, 0);
        ledger.credited(1, RpcFrames.U32_MAX);
        assertEquals(RpcFrames.U32_MAX, stream.credit);
        assertEquals(RpcFrames.U32_MAX, served(ledger, 2, -1, 0, 0).credit);
    }
}
