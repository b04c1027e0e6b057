package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Loops, streams and publishers. */
class StreamTest {
    private static final Options PAGE = Options.DEFAULT.withCapacity(4096);

    private static void send(Ring.Pair pair, int from, int to) throws InterruptedException {
        for (int i = from; i < to; i++) {
            pair.sender().send(1, i, new byte[i]);
        }
    }

    @Test
    void loops() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            send(pair, 0, 5);
            Message kept = null;
            int i = 0;
            for (Message message : pair.receiver().messages()) {
                assertEquals(i++, message.tag());
                if (kept != null) {
                    assertThrows(IllegalStateException.class, kept::tag);
                }
                kept = message;
                if (i == 3) {
                    break;
                }
            }
            // The one that the loop was left with goes back when the receiver is used again.
            assertEquals(2, kept.tag());
            try (Message next = pair.receiver().tryRecv()) {
                assertEquals(3, next.tag());
            }
            assertThrows(IllegalStateException.class, kept::tag);
            pair.sender().close();
            Iterator<Message> rest = pair.receiver().messages().iterator();
            assertTrue(rest.hasNext() && rest.hasNext());
            assertEquals(4, rest.next().tag());
            assertFalse(rest.hasNext());
            assertFalse(rest.hasNext());
            assertThrows(java.util.NoSuchElementException.class, rest::next);
        }
        // Left in the middle and closed.
        Ring.Pair pair = Ring.pair(PAGE);
        send(pair, 0, 2);
        for (Message message : pair.receiver().messages()) {
            assertEquals(0, message.tag());
            break;
        }
        pair.receiver().close();
        assertTrue(pair.receiver().isFinished());
        pair.close();
    }

    @Test
    void streams() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            send(pair, 0, 20);
            try (Stream<Message> stream = pair.receiver().stream()) {
                assertEquals(List.of(0, 1, 2), stream.limit(3).map(Message::length).toList());
            }
            assertEquals(3, pair.receiver().tryRecv().tag());
        }
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            send(pair, 0, 20);
            pair.sender().close();
            assertEquals(190, pair.receiver().stream().mapToLong(Message::tag).sum());
        }
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Thread.currentThread().interrupt();
            refused(ErrorKind.INTERRUPTED, () -> pair.receiver().stream().count());
            assertTrue(Thread.interrupted());
        }
    }

    /** Writes down what it is told. */
    private static final class Told implements Flow.Subscriber<MessageCopy> {
        final LinkedBlockingQueue<MessageCopy> messages = new LinkedBlockingQueue<>();
        final CompletableFuture<Throwable> ended = new CompletableFuture<>();
        final CountDownLatch subscribed = new CountDownLatch(1);
        volatile Flow.Subscription subscription;

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            this.subscription = subscription;
            subscribed.countDown();
        }

        @Override
        public void onNext(MessageCopy message) {
            messages.add(message);
        }

        @Override
        public void onError(Throwable t) {
            ended.complete(t);
        }

        @Override
        public void onComplete() {
            ended.complete(null);
        }

        Flow.Subscription subscription() throws InterruptedException {
            assertTrue(subscribed.await(Scratch.LONG.toSeconds(), TimeUnit.SECONDS));
            return subscription;
        }

        long next() throws InterruptedException {
            return messages.poll(Scratch.LONG.toSeconds(), TimeUnit.SECONDS).tag();
        }
    }

    @Test
    void aPublisherGivesWhatIsAskedFor() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Told told = new Told();
            Flow.Publisher<MessageCopy> publisher = pair.receiver().publisher();
            publisher.subscribe(told);
            send(pair, 0, 10);
            told.subscription().request(2);
            assertEquals(0, told.next());
            assertEquals(1, told.next());
            Thread.sleep(50);
            assertEquals(0, told.messages.size());
            // What was not asked for is still in the ring.
            assertTrue(pair.sender().pendingBytes() > 0);
            Told second = new Told();
            publisher.subscribe(second);
            assertTrue(second.ended.get(60, TimeUnit.SECONDS) instanceof IllegalStateException);
            told.subscription().request(Long.MAX_VALUE);
            told.subscription().request(Long.MAX_VALUE);
            for (int i = 2; i < 10; i++) {
                assertEquals(i, told.next());
            }
            pair.sender().close();
            assertEquals(null, told.ended.get(60, TimeUnit.SECONDS));
        }
    }

    /** Subscribes, once the one before has left: until its thread has ended, a publisher refuses the next one. */
    private static Told subscribed(Flow.Publisher<MessageCopy> publisher) throws Exception {
        long start = System.nanoTime();
        while (true) {
            Told told = new Told();
            publisher.subscribe(told);
            told.subscription();
            if (!told.ended.isDone()) {
                return told;
            }
            assertTrue(System.nanoTime() - start < Scratch.LONG.toNanos(), () -> "still refused: " + told.ended.join());
            Thread.sleep(1);
        }
    }

    @Test
    void aSubscriptionEndsWhileIdle() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Flow.Publisher<MessageCopy> publisher = pair.receiver().publisher();
            for (int i = 0; i < 20; i++) {
                Told told = subscribed(publisher);
                told.subscription().request(5);
                pair.sender().send(1, i, new byte[1]);
                assertEquals(i, told.next());
                Thread.sleep(i % 4);
                told.subscription().cancel();
                // Its thread releases the receiver, for the next one.
                subscribed(publisher).subscription().cancel();
                for (int wait = 0; wait < 2000; wait++) {
                    try {
                        assertEquals(null, pair.receiver().tryRecv());
                        break;
                    } catch (IllegalStateException busy) {
                        Thread.sleep(1);
                    }
                }
                subscribed(publisher).subscription().cancel();
                assertFalse(told.ended.isDone());
            }
        }
    }

    @Test
    void aPublisherFails() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Told told = new Told();
            pair.receiver().publisher().subscribe(told);
            told.subscription().request(0);
            assertTrue(told.ended.get(60, TimeUnit.SECONDS) instanceof IllegalArgumentException);
        }
        Ring.Pair pair = Ring.pair(PAGE);
        Told told = new Told();
        pair.receiver().publisher().subscribe(told);
        told.subscription().request(1);
        Thread.sleep(20);
        pair.receiver().close();
        assertEquals(ErrorKind.DETACHED, ((RamwayException) told.ended.get(60, TimeUnit.SECONDS)).kind());
        pair.close();
    }
}
