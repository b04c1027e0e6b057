package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Topics: what each policy receives, where subscribers begin, labels, and every way to send and receive. */
@Timeout(120)
class TopicTest {
    private final String name = Scratch.name("topic");

    private Topic create() {
        return Topic.create(Scratch.path(name).toString()).capacity(64 << 10);
    }

    private Topic open() {
        return Topic.open(Scratch.path(name).toString());
    }

    private static byte[] number(long n) {
        byte[] bytes = new byte[8];
        MemorySegment.ofArray(bytes).set(ValueLayout.JAVA_LONG_UNALIGNED, 0, n);
        return bytes;
    }

    /** Publishes the numbers of the messages. */
    private static void publish(Publisher pub, int count) throws InterruptedException {
        for (int i = 0; i < count; i++) {
            long n = pub.seq() + 1;
            pub.send(7, n, number(n));
        }
    }

    private static void expect(Subscriber sub, long seq, long lost) {
        try (Message m = sub.tryRecv()) {
            assertNotNull(m, "no message where " + seq + " is expected");
            assertEquals(List.of(seq, lost, seq, 7L, seq, 8L),
                    List.of(m.seq(), m.lost(), m.getLong(0), (long) m.typeId(), m.tag(), (long) m.length()));
            assertEquals(seq, m.data().get(ValueLayout.JAVA_LONG, 0));
            assertEquals(0, m.data().address() % 32);
        }
    }

    private static void nothing(Subscriber sub) {
        assertNull(sub.tryRecv());
    }

    private static RamwayException refused(ErrorKind kind, org.junit.jupiter.api.function.Executable call) {
        return Rings.refused(kind, call);
    }

    @Test
    void everySubscriberGetsEveryMessage() throws Exception {
        try (Publisher pub = create().publisher(); Subscriber one = open().subscriber(); Subscriber two = open().subscriber();
                Subscriber lossy = open().lossy().subscriber()) {
            assertEquals(List.of(65536L, 32, 32768 - 32), List.of(pub.capacity(), pub.align(), pub.maxMessageLength()));
            for (int lap = 0; lap < 300; lap++) {
                publish(pub, 50);
                for (Subscriber each : List.of(one, two, lossy)) {
                    for (int i = 1; i <= 50; i++) {
                        expect(each, lap * 50L + i, 0);
                    }
                    nothing(each);
                }
            }
            assertEquals(List.of(0L, 15_000L), List.of(lossy.lost(), pub.seq()));
        }
        assertTrue(Files.notExists(Scratch.path(name)));
    }

    @Test
    void aReliableOneHoldsThePublisherBack() throws Exception {
        try (Publisher pub = create().publisher(); Subscriber sub = open().subscriber()) {
            int sent = 0;
            while (pub.trySend(7, sent + 1, number(sent + 1))) {
                sent++;
            }
            // 64 bytes each, and a whole lap of them.
            assertEquals(1024, sent);
            assertThrows(TimedOutException.class, () -> pub.send(7, 0, new byte[8], Duration.ofMillis(20)));
            assertEquals(65536, pub.pendingBytes());
            assertEquals(new Lag(65536, 1024), sub.lag());
            FutureTask<Void> blocked = new FutureTask<>(() -> {
                pub.send(7, 1025, number(1025));
                return null;
            });
            Thread.ofVirtual().start(blocked);
            for (int i = 1; i <= 1024; i++) {
                expect(sub, i, 0);
            }
            blocked.get(60, TimeUnit.SECONDS);
            expect(sub, 1025, 0);
            nothing(sub);
        }
    }

    @Test
    void aLossyOneIsToldHowManyItLost() throws Exception {
        try (Publisher pub = create().publisher(); Subscriber sub = open().lossy().subscriber()) {
            publish(pub, 10);
            expect(sub, 1, 0);
            publish(pub, 5000);
            long expected = 2;
            long received = 1;
            while (true) {
                try (Message m = sub.tryRecv()) {
                    if (m == null) {
                        break;
                    }
                    assertEquals(expected + m.lost(), m.seq());
                    assertEquals(m.seq(), m.getLong(0));
                    expected = m.seq() + 1;
                    received++;
                }
            }
            assertEquals(5011, expected);
            assertEquals(5010, received + sub.lost());
            assertTrue(sub.lost() > 3000 && received > 400, sub.lost() + " lost");
        }
    }

    @Test
    void theNewestIsReadAgainAndAgain() throws Exception {
        Publisher pub = create().publisher();
        try (Subscriber sub = open().latest().subscriber();
                Subscriber other = open().subscriber(); Arena arena = Arena.ofConfined()) {
            MemorySegment target = arena.allocate(16);
            assertNull(sub.latest());
            assertNull(sub.latest(target));
            nothing(sub);
            publish(pub, 3);
            for (int i = 0; i < 2; i++) {
                assertEquals(new TopicMeta(7, 3, 8, 3, 0, 0), sub.latest(target));
                assertEquals(3, target.get(ValueLayout.JAVA_LONG, 0));
                assertEquals(3, other.latest(new byte[8]).seq());
                assertEquals(List.of(3L, 3L), List.of(sub.latest().seq(), sub.latest().tag()));
            }
            // It was seen.
            nothing(sub);
            assertThrows(TimedOutException.class, () -> sub.waitNewer(Duration.ofMillis(10)));
            publish(pub, 4);
            try (Message m = sub.waitNewer()) {
                assertEquals(List.of(7L, 3L, 7L), List.of(m.seq(), m.lost(), m.getLong(0)));
                refused(ErrorKind.BUSY, sub::latest);
            }
            nothing(sub);
            refused(ErrorKind.TOO_LARGE, () -> sub.latest(new byte[7]));
            // What the reliable one receives stays as it was.
            for (int i = 1; i <= 7; i++) {
                expect(other, i, 0);
            }
            refused(ErrorKind.UNSUPPORTED, other::waitNewer);
            refused(ErrorKind.UNSUPPORTED, sub::skipToNewest);
            assertEquals(List.of(Policy.LATEST, Policy.RELIABLE), List.of(sub.policy(), other.policy()));
            pub.close();
            assertEquals(7, sub.latest().seq());
            assertThrows(ClosedException.class, sub::waitNewer);
        }
    }

    @Test
    void subscribersBeginWhereTheySay() throws Exception {
        try (Publisher pub = create().publisher()) {
            publish(pub, 20);
            record Case(Topic topic, long first, long lost) {}
            List<Case> cases = List.of(new Case(open(), 1, 0), new Case(open().fromOldest(), 1, 0), new Case(open().fromNow(), 0, 0),
                    new Case(open().history(0), 0, 0), new Case(open().history(3), 18, 0), new Case(open().history(100), 1, 0),
                    new Case(open().afterSeq(5), 6, 0), new Case(open().afterSeq(20), 0, 0), new Case(open().afterSeq(90), 0, 0),
                    new Case(open().lossy(), 0, 0), new Case(open().lossy().fromOldest(), 1, 0),
                    new Case(open().lossy().history(2), 19, 0), new Case(open().lossy().afterSeq(11), 12, 0),
                    new Case(open().latest(), 20, 0));
            for (Case each : cases) {
                try (Subscriber sub = each.topic.subscriber()) {
                    if (each.first == 0) {
                        nothing(sub);
                    } else {
                        expect(sub, each.first, each.lost);
                    }
                }
            }
            // Most of it is overwritten: what comes first then says what was lost since.
            publish(pub, 5000);
            try (Subscriber sub = open().afterSeq(10).subscriber(); Message m = sub.recv()) {
                assertEquals(m.seq() - 11, m.lost());
                assertTrue(m.lost() > 3000, "lost " + m.lost());
            }
        }
    }

    @Test
    void oneIsThereBeforeThePublisher() throws Exception {
        try (Subscriber sub = create().subscriber()) {
            assertEquals(0, sub.peerEpoch());
            for (int run = 1; run <= 2; run++) {
                try (Publisher pub = open().publisher()) {
                    refused(ErrorKind.BUSY, () -> open().publisher());
                    assertEquals(List.of(run, run), List.of(sub.waitForPeer(), pub.epoch()));
                    assertTrue(sub.peerAlive() && pub.peerAlive());
                    assertEquals(run - 1, pub.seq());
                    publish(pub, 1);
                }
                expect(sub, run, 0);
                assertThrows(ClosedException.class, sub::recv);
            }
        }
    }

    @Test
    void aDurableOneGoesOnWhereItWas() throws Exception {
        try (Publisher pub = create().publisher()) {
            try (Subscriber sub = open().label("recorder").durable(true).subscriber()) {
                assertEquals("recorder", sub.label());
                refused(ErrorKind.BUSY, () -> open().label("recorder").subscriber());
                publish(pub, 5);
                expect(sub, 1, 0);
                expect(sub, 2, 0);
            }
            publish(pub, 1);
            SubscriberInfo info = pub.subscribers().getFirst();
            assertEquals(List.of("recorder", true, false, new Lag(256, 4)),
                    List.of(info.label(), info.durable(), info.alive(), info.lag()));
            // It holds the publisher back also where it is away.
            while (pub.trySend(7, pub.seq() + 1, number(pub.seq() + 1))) {
                assertTrue(pub.seq() < 2000);
            }
        }
        assertTrue(Files.exists(Scratch.path(name)));
        Rings.says(refused(ErrorKind.ALREADY_EXISTS, () -> create().publisher()), "recorder", "1024 undelivered messages");
        try (Subscriber sub = open().label("recorder").durable(true).subscriber()) {
            expect(sub, 3, 0);
            assertEquals(1022, sub.skipToNewest());
            expect(sub, 1026, 0);
            sub.unsubscribe();
        }
        assertTrue(Files.notExists(Scratch.path(name)));
    }

    @Test
    void aSlowOneIsEjected() throws Exception {
        try (Publisher pub = create().ejectAfter(Duration.ofMillis(50)).publisher(); Subscriber sub = open().label("slow").subscriber()) {
            publish(pub, 3000);
            LaggedException e = assertThrows(LaggedException.class, sub::tryRecv);
            assertEquals(ErrorKind.LAGGED, e.kind());
            try (Message m = sub.recv()) {
                assertEquals(e.lost() + 1, m.seq());
                assertEquals(m.seq(), m.getLong(0));
                assertEquals(0, m.lost());
            }
            assertEquals(e.lost(), sub.lost());
            SubscriberInfo info = pub.subscribers().getFirst();
            assertEquals(List.of("slow", false, Policy.RELIABLE, e.lost()),
                    List.of(info.label(), info.ejected(), info.policy(), info.lost()));
            long next = e.lost() + 2;
            for (; next <= 3000; next++) {
                expect(sub, next, 0);
            }
            nothing(sub);
        }
    }

    @Test
    void anEjectionThatACallbackFindsIsTold() throws Exception {
        try (Publisher pub = create().ejectAfter(Duration.ofMillis(20)).publisher(); Subscriber sub = open().subscriber()) {
            publish(pub, 3000);
            CountDownLatch readable = new CountDownLatch(1);
            sub.whenReadable(readable::countDown);
            assertTrue(readable.await(60, TimeUnit.SECONDS));
            LaggedException e = assertThrows(LaggedException.class, sub::tryRecv);
            expect(sub, e.lost() + 1, 0);
        }
    }

    @Test
    void aDurableOneThatWasEjectedIsToldWhenItComesBack() throws Exception {
        try (Publisher pub = create().ejectAfter(Duration.ofMillis(30)).publisher()) {
            try (Subscriber sub = open().label("d").durable(true).subscriber()) {
                publish(pub, 2);
                expect(sub, 1, 0);
            }
            publish(pub, 2000);
            try (Subscriber sub = open().label("d").durable(true).subscriber()) {
                LaggedException e = assertThrows(LaggedException.class, sub::recv);
                expect(sub, 2 + e.lost(), 0);
                assertTrue(e.lost() > 500);
            }
        }
    }

    @Test
    void everyWayToSendAndReceive() throws Exception {
        try (Publisher pub = create().timestamps(true).publisher(); Subscriber sub = open().subscriber();
                Subscriber lossy = open().lossy().subscriber(); Arena arena = Arena.ofConfined()) {
            long before = System.currentTimeMillis() * 1_000_000;
            assertTrue(pub.lastTag().isEmpty());
            pub.send(7, 1, MemorySegment.ofArray(number(1)));
            try (Slot slot = pub.reserve(16)) {
                slot.putLong(0, 2);
                slot.commitUnflushed(7, 2, 8);
            }
            assertEquals(1, pub.lastTag().getAsLong());
            pub.flush();
            assertEquals(2, pub.lastTag().getAsLong());
            pub.sendVectored(7, 3, MemorySegment.ofArray(number(3)).asSlice(0, 3), MemorySegment.ofArray(number(3)).asSlice(3));
            assertEquals(2, pub.sendBatch(7, 4, List.of(number(4), number(5))));
            pub.sendTensor(ElementType.FLOAT32, new long[] {2}, 6, MemorySegment.ofArray(new float[] {1, 2}));
            MemorySegment target = arena.allocate(256);
            for (Subscriber each : List.of(sub, lossy)) {
                assertEquals(new TopicMeta(7, 1, 8, 1, 0, 0), withoutTime(each.recvInto(target), before));
                assertEquals(1, target.get(ValueLayout.JAVA_LONG, 0));
                refused(ErrorKind.TOO_LARGE, () -> each.tryRecvInto(new byte[7]));
                assertEquals(2, each.tryRecvInto(new byte[8]).seq());
                try (Batch batch = each.recvBatch(3)) {
                    assertEquals(3, batch.size());
                    for (int i = 2; i >= 0; i--) {
                        Message m = batch.get(i);
                        assertEquals(List.of(3L + i, 0L, 3L + i), List.of(m.seq(), m.lost(), m.getLong(0)));
                        assertTrue(m.time() >= before);
                    }
                }
                try (Message m = each.recv()) {
                    assertEquals(2f, m.tensor().data().getAtIndex(ValueLayout.JAVA_FLOAT, 1));
                    assertEquals(0, m.tensor().data().address() % 64);
                    MessageCopy copy = m.copy();
                    assertEquals(List.of(6L, 6L), List.of(copy.seq(), copy.tag()));
                }
                assertNull(each.tryRecvInto(target));
                assertNull(each.tryRecvBatch());
            }
            pub.skipSeq(10);
            pub.send(7, 17, number(17));
            expect(sub, 17, 10);
            refused(ErrorKind.INVALID_ARGUMENT, () -> pub.skipSeq(Long.MAX_VALUE));
            refused(ErrorKind.TOO_LARGE, () -> pub.send(7, new byte[32768 - 31]));
            refused(ErrorKind.INVALID_ARGUMENT, () -> pub.send(-1, new byte[1]));
            pub.send(7, 18, new byte[32768 - 32]);
            try (Message m = sub.recv()) {
                assertEquals(32768 - 32, m.length());
            }
        }
    }

    private static TopicMeta withoutTime(TopicMeta meta, long before) {
        assertTrue(meta.time() >= before && meta.time() < before + 60_000_000_000L, () -> meta.toString());
        return new TopicMeta(meta.typeId(), meta.tag(), meta.length(), meta.seq(), 0, meta.lost());
    }

    @Test
    void batchesOfCopiesKeepTheirBytes() throws Exception {
        try (Publisher pub = Topic.create(Scratch.path(name).toString()).capacity(16 << 10).publisher();
                Subscriber sub = open().lossy().subscriber()) {
            long expected = 1;
            for (int round = 0; round < 200; round++) {
                for (int i = 0; i < 40; i++) {
                    pub.send(7, number(pub.seq() + 1));
                }
                while (expected <= pub.seq()) {
                    try (Batch batch = sub.recvBatch()) {
                        for (Message m : batch) {
                            assertEquals(List.of(expected, expected), List.of(m.seq(), m.getLong(0)));
                            expected++;
                        }
                    }
                }
            }
            assertEquals(8001, expected);
        }
    }

    @Test
    void loopsFlowsAndCallbacks() throws Exception {
        Publisher pub = create().publisher();
        try (Subscriber sub = open().subscriber(); Subscriber flow = open().lossy().subscriber();
                Subscriber called = open().latest().subscriber()) {
            CountDownLatch readable = new CountDownLatch(1);
            called.whenReadable(readable::countDown);
            List<Long> flowed = new ArrayList<>();
            CountDownLatch over = new CountDownLatch(1);
            flow.publisher().subscribe(new Flow.Subscriber<>() {
                @Override
                public void onSubscribe(Flow.Subscription s) {
                    s.request(Long.MAX_VALUE);
                }

                @Override
                public void onNext(MessageCopy copy) {
                    flowed.add(copy.seq());
                }

                @Override
                public void onError(Throwable t) {
                    over.countDown();
                }

                @Override
                public void onComplete() {
                    over.countDown();
                }
            });
            publish(pub, 3);
            assertTrue(readable.await(60, TimeUnit.SECONDS));
            assertEquals(3, called.latest().seq());
            CountDownLatch writable = new CountDownLatch(1);
            pub.whenWritable(8, writable::countDown);
            assertTrue(writable.await(60, TimeUnit.SECONDS));
            pub.close();
            List<Long> looped = new ArrayList<>();
            for (Message m : sub.messages()) {
                looped.add(m.seq());
            }
            assertEquals(List.of(1L, 2L, 3L), looped);
            assertTrue(over.await(60, TimeUnit.SECONDS));
            assertEquals(looped, flowed);
        }
    }

    @Test
    void aFullTopicIsToldWhenThereIsRoom() throws Exception {
        try (Publisher pub = create().publisher(); Subscriber sub = open().subscriber()) {
            while (pub.trySend(7, new byte[8])) {
                assertTrue(pub.seq() < 2000);
            }
            CountDownLatch writable = new CountDownLatch(1);
            pub.whenWritable(8, writable::countDown);
            for (int i = 0; i < 600; i++) {
                sub.recv().close();
            }
            assertTrue(writable.await(60, TimeUnit.SECONDS));
            assertTrue(pub.trySend(7, new byte[8]));
        }
    }

    @Test
    void waitingEndsByAnInterruptAndByClose() throws Exception {
        try (Publisher pub = create().publisher()) {
            for (Topic topic : List.of(open(), open().lossy(), open().latest(), open().lossy().readOnly(true))) {
                Subscriber sub = topic.subscriber();
                for (boolean virtual : new boolean[] {false, true}) {
                    FutureTask<Object> waits = new FutureTask<>(() -> assertThrows(InterruptedException.class, sub::recv));
                    Thread thread = (virtual ? Thread.ofVirtual() : Thread.ofPlatform()).start(waits);
                    Thread.sleep(20);
                    thread.interrupt();
                    waits.get(60, TimeUnit.SECONDS);
                }
                FutureTask<RamwayException> waits = new FutureTask<>(() -> refused(ErrorKind.DETACHED, sub::recv));
                Thread.ofPlatform().start(waits);
                Thread.sleep(20);
                sub.close();
                waits.get(60, TimeUnit.SECONDS);
            }
            assertEquals(List.of(), pub.subscribers());
        }
    }

    @Test
    void sleepersAreWoken() throws Exception {
        Publisher pub = create().waitMode(WaitMode.BLOCK).publisher();
        List<FutureTask<Long>> all = new ArrayList<>();
        for (Topic topic : List.of(open(), open(), open().lossy(), open().latest(), open().lossy().readOnly(true))) {
            Subscriber sub = topic.waitMode(WaitMode.BLOCK).subscriber();
            FutureTask<Long> task = new FutureTask<>(() -> {
                try (sub) {
                    long n = 0;
                    for (Message m : sub.messages()) {
                        n = m.seq();
                    }
                    return n;
                }
            });
            all.add(task);
            (all.size() % 2 == 0 ? Thread.ofVirtual() : Thread.ofPlatform()).start(task);
        }
        for (int i = 0; i < 5000; i++) {
            pub.send(7, number(i));
            if (i % 4 == 0) {
                Thread.yield();
            }
        }
        pub.close();
        for (FutureTask<Long> each : all) {
            assertEquals(5000, each.get(60, TimeUnit.SECONDS));
        }
    }

    @Test
    void subscribersAreSeenAndWaitedFor() throws Exception {
        try (Publisher pub = create().slots(4).publisher()) {
            pub.waitForSubscribers(0);
            assertThrows(TimedOutException.class, () -> pub.waitForSubscribers(1, Duration.ofMillis(10)));
            refused(ErrorKind.INVALID_ARGUMENT, () -> pub.waitForSubscribers(5));
            FutureTask<Void> waits = new FutureTask<>(() -> {
                pub.waitForSubscribers(2);
                return null;
            });
            Thread.ofVirtual().start(waits);
            try (Subscriber one = open().label("one").subscriber(); Subscriber lossy = open().lossy().label("watch").subscriber();
                    Subscriber latest = open().latest().subscriber(); Subscriber two = open().subscriber()) {
                waits.get(60, TimeUnit.SECONDS);
                record Seen(int slot, Policy policy, String label, boolean alive) {}
                Set<Seen> seen = new java.util.HashSet<>();
                pub.subscribers().forEach(each -> seen.add(new Seen(each.slot(), each.policy(), each.label(), each.alive())));
                assertEquals(Set.of(new Seen(0, Policy.RELIABLE, "one", true), new Seen(2, Policy.LOSSY, "watch", true),
                        new Seen(3, Policy.LATEST, "", true), new Seen(1, Policy.RELIABLE, "", true)), seen);
                Rings.says(refused(ErrorKind.BUSY, () -> open().subscriber()), "all 4 slots", "2 by reliable subscribers",
                        "2 by lossy or latest", "'one', 'watch'");
                // One that nobody waits for does without.
                open().lossy().subscriber().close();
                assertTrue(lossy.peerAlive() && latest.peerAlive() && two.epoch() == 1 && one.peerEpoch() == 1);
            }
            assertEquals(List.of(), pub.subscribers());
        }
    }

    @Test
    void wrongOptionsAreRefused() throws Exception {
        try (Publisher pub = create().slots(3).publisher()) {
            String path = Scratch.path(name).toString();
            List<Topic> publishers = List.of(open().lossy(), open().fromNow(), open().label("x"), open().readOnly(true),
                    open().discard(true), open().mode(0644), Topic.openOrCreate(path).capacity(1 << 20), Topic.openOrCreate(path).slots(4),
                    Topic.openOrCreate(path).align(64), Topic.openOrCreate(path).lossyOnly(true), Topic.openOrCreate(path).mayEject(true),
                    open().align(16), open().slots(2000), open().capacity(-1), open().timeout(Duration.ofSeconds(-1)),
                    open().lossyOnly(true).mayEject(true));
            for (Topic each : publishers) {
                refused(ErrorKind.INVALID_ARGUMENT, each::publisher);
            }
            List<Topic> subscribers = List.of(open().ejectAfter(Duration.ofSeconds(1)), open().timestamps(true),
                    open().label("x".repeat(65)),
                    open().label("a\0"), open().label("\uD800"), open().durable(true), open().lossy().label("x").durable(true),
                    open().latest().history(1), open().readOnly(true), open().lossy().readOnly(true).label("x"),
                    Topic.openOrCreate(path).lossy().readOnly(true));
            for (Topic each : subscribers) {
                refused(ErrorKind.INVALID_ARGUMENT, each::subscriber);
            }
            refused(ErrorKind.INVALID_ARGUMENT, () -> open().history(-1));
            refused(ErrorKind.UNSUPPORTED, () -> open().ejectAfter(Duration.ofSeconds(1)).publisher());
            refused(ErrorKind.INVALID_ARGUMENT, () -> Receiver.open(path));
            refused(ErrorKind.ALREADY_EXISTS, () -> create().publisher());
            assertEquals(Segments.Kind.TOPIC, Segments.ls(Scratch.DIR).stream().filter(each -> each.name().equals(name)).findFirst()
                    .orElseThrow().kind());
            assertEquals(0, pub.seq());
        }
        refused(ErrorKind.NOT_FOUND, () -> open().publisher());
        try (Publisher pub = create().lossyOnly(true).publisher(); Subscriber sub = open().latest().subscriber()) {
            refused(ErrorKind.UNSUPPORTED, () -> open().subscriber());
            publish(pub, 3000);
            assertEquals(3000, sub.latest().seq());
        }
    }
}
