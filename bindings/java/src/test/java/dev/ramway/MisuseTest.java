package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Handles after a use that was wrong, or that nobody ended: what they hold is let go all the same. */
@Timeout(60)
@ExtendWith(Pace.class)
class MisuseTest {
    private static final Options SMALL = Options.DEFAULT.withCapacity(4096);

    private static void inThread(Runnable body) throws InterruptedException {
        Thread t = new Thread(body);
        t.start();
        t.join();
    }

    private static Ring.Pair five() throws InterruptedException {
        Ring.Pair pair = Ring.pair(SMALL);
        for (int i = 0; i < 5; i++) {
            pair.sender().send(i, new byte[3]);
        }
        return pair;
    }

    private static void isClosed(Sender tx) {
        assertThrows(ClosedException.class, () -> tx.send(1, new byte[3]));
    }

    /** Takes one message of a loop that it leaves. */
    private static void leave(Receiver rx, boolean view) {
        for (Message m : rx.messages()) {
            if (view) {
                m.data();
            }
            break;
        }
    }

    @Test
    void aReceiveIntoNothingLeavesTheHandleToBeClosed() throws InterruptedException {
        for (int way = 0; way < 2; way++) {
            boolean array = way == 0;
            try (Ring.Pair pair = five()) {
                inThread(() -> assertThrows(NullPointerException.class, () -> {
                    if (array) {
                        pair.receiver().recvInto((byte[]) null);
                    } else {
                        pair.receiver().recvInto((MemorySegment) null);
                    }
                }));
                long start = System.nanoTime();
                pair.receiver().close();
                Pace.below(800_000_000L, System.nanoTime() - start, "ns until it was closed");
                isClosed(pair.sender());
            }
        }
    }

    @Test
    void aLoopLeftByAThreadThatHasEndedDoesNotKeepTheReceiver() throws InterruptedException {
        for (int way = 0; way < 2; way++) {
            boolean view = way == 1;
            try (Ring.Pair pair = five()) {
                inThread(() -> leave(pair.receiver(), view));
                pair.receiver().close();
                isClosed(pair.sender());
            }
            try (Ring.Pair pair = five()) {
                inThread(() -> leave(pair.receiver(), view));
                try (Message m = pair.receiver().recv()) {
                    assertEquals(1, m.typeId());
                }
            }
        }
    }

    @Test
    void aLoopLeftBeforeTheCloseEndsWithTheNextCall() throws InterruptedException {
        try (Ring.Pair pair = five()) {
            leave(pair.receiver(), true);
            inThread(pair.receiver()::close);
            RamwayException e = assertThrows(RamwayException.class, pair.receiver()::tryRecv);
            assertEquals(ErrorKind.DETACHED, e.kind());
            isClosed(pair.sender());
        }
    }

    @Test
    void aViewOfAThreadThatHasEndedDoesNotKeepTheMessage() throws InterruptedException {
        try (Ring.Pair pair = five()) {
            Message m = pair.receiver().recv();
            MemorySegment[] view = new MemorySegment[1];
            m.close();
            CompletableFuture<Message> handed = new CompletableFuture<>();
            inThread(() -> {
                Message mine = pair.receiver().tryRecv();
                view[0] = mine.data();
                handed.complete(mine);
            });
            handed.join().close();
            assertThrows(WrongThreadException.class, () -> view[0].get(java.lang.foreign.ValueLayout.JAVA_BYTE, 0));
            try (Message next = pair.receiver().recv()) {
                assertEquals(2, next.typeId());
            }
        }
    }

    private static class Collector implements Flow.Subscriber<MessageCopy> {
        final CompletableFuture<Object> end = new CompletableFuture<>();
        Flow.Subscription subscription;
        int count;

        @Override
        public void onSubscribe(Flow.Subscription s) {
            subscription = s;
            s.request(100);
        }

        @Override
        public void onNext(MessageCopy m) {
            count++;
        }

        @Override
        public void onError(Throwable t) {
            end.complete(t);
        }

        @Override
        public void onComplete() {
            end.complete(count);
        }

        Object end() throws Exception {
            return end.get(60, TimeUnit.SECONDS);
        }
    }

    @Test
    void aPublisherTakesOverFromALoopThatWasLeft() throws Exception {
        try (Ring.Pair pair = five()) {
            pair.sender().close();
            leave(pair.receiver(), true);
            Collector all = new Collector();
            pair.receiver().publisher().subscribe(all);
            assertEquals(4, all.end());
        }
    }

    @Test
    void whoSubscribesAtTheEndIsTheOneSubscriber() throws Exception {
        try (Ring.Pair pair = Ring.pair(SMALL)) {
            Flow.Publisher<MessageCopy> publisher = pair.receiver().publisher();
            pair.sender().close();
            Collector second = new Collector() {
                @Override
                public void onSubscribe(Flow.Subscription s) {
                    subscription = s;
                }
            };
            Collector first = new Collector() {
                @Override
                public void onComplete() {
                    publisher.subscribe(second);
                    super.onComplete();
                }
            };
            publisher.subscribe(first);
            first.end();
            // Its thread has still to end.
            Thread.sleep(50);
            Collector third = new Collector();
            publisher.subscribe(third);
            assertInstanceOf(IllegalStateException.class, third.end());
            second.subscription.cancel();
        }
    }

    @Test
    void aCancelInterruptsNothingOfTheSubscribers() throws Exception {
        try (Ring.Pair pair = five()) {
            CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
            pair.receiver().publisher().subscribe(new Collector() {
                @Override
                public void onNext(MessageCopy m) {
                    subscription.cancel();
                    interrupted.complete(Thread.currentThread().isInterrupted());
                }
            });
            assertFalse(interrupted.get(60, TimeUnit.SECONDS));
        }
    }

    @Test
    void aHandlerThatThrowsDoesNotEndTheThreadOfTheCallbacks() throws Exception {
        Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
        CompletableFuture<Void> handled = new CompletableFuture<>();
        Thread.setDefaultUncaughtExceptionHandler((t, e) -> {
            handled.complete(null);
            throw new IllegalStateException("a handler that throws");
        });
        try (Ring.Pair pair = Ring.pair(SMALL)) {
            pair.receiver().whenReadable(() -> {
                throw new IllegalStateException("a callback that throws");
            });
            pair.sender().send(1, new byte[1]);
            handled.get(60, TimeUnit.SECONDS);
            pair.receiver().tryRecv().close();
            CompletableFuture<Void> called = new CompletableFuture<>();
            pair.receiver().whenReadable(() -> called.complete(null));
            pair.sender().send(1, new byte[1]);
            called.get(60, TimeUnit.SECONDS);
        } finally {
            Thread.setDefaultUncaughtExceptionHandler(before);
        }
    }

    @Test
    void nothingIsRefusedWhereItIsGiven() throws InterruptedException {
        try (Ring.Pair pair = Ring.pair(SMALL)) {
            assertThrows(NullPointerException.class, () -> pair.receiver().whenReadable(null));
            assertThrows(NullPointerException.class, () -> pair.sender().whenWritable(1, null));
            assertThrows(NullPointerException.class, () -> pair.receiver().waitMode(null));
            MemorySegment everything = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
            RamwayException e = assertThrows(RamwayException.class,
                    () -> pair.sender().sendVectored(1, 0, everything, everything, MemorySegment.ofArray(new byte[10])));
            assertEquals(ErrorKind.TOO_LARGE, e.kind());
        }
    }

    @Test
    void theLongestNegativeTimeOutIsRefused(@TempDir Path dir) {
        ConnectOptions options = ConnectOptions.DEFAULT.withTimeout(Duration.ofSeconds(Long.MIN_VALUE));
        RamwayException e = assertThrows(RamwayException.class, () -> Bus.connect(dir.resolve("none").toString(), options));
        assertEquals(ErrorKind.INVALID_ARGUMENT, e.kind());
    }
}
