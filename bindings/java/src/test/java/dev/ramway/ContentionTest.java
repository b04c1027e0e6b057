package dev.ramway;

import static dev.ramway.Rings.drain;
import static dev.ramway.Rings.expectNames;
import static dev.ramway.Rings.hold;
import static dev.ramway.Rings.names;
import static dev.ramway.Rings.put;
import static dev.ramway.Rings.word;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** Names under contention: creators, openers and leavers at once, in threads and in processes of their own. */
class ContentionTest {
    private static final int ROUNDS = 300;
    private static final Options SMALL = Options.DEFAULT.withCapacity(4096);

    private final Path dir = Scratch.directory("contention");
    private final Path name = dir.resolve("ring");

    /** Eight threads attach at once, four in each role: those that could; the others are told what they should be. */
    private List<Attachment> race(ExecutorService threads, OpenMode how, ErrorKind lost) throws Exception {
        CountDownLatch start = new CountDownLatch(1);
        List<Future<Attachment>> results = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            Role role = Role.values()[i % 2];
            results.add(threads.submit(() -> {
                start.await();
                try {
                    return hold(name, how, SMALL, role);
                } catch (RamwayException e) {
                    assertEquals(lost, e.kind(), e.getMessage());
                    return null;
                }
            }));
        }
        start.countDown();
        List<Attachment> winners = new ArrayList<>();
        for (Future<Attachment> result : results) {
            Attachment a = result.get();
            if (a != null) {
                winners.add(a);
            }
        }
        return winners;
    }

    @Test
    void ofRacingCreatorThreadsOneWins() throws Exception {
        try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
            for (int i = 0; i < 100; i++) {
                List<Attachment> winners = race(threads, OpenMode.CREATE, ErrorKind.ALREADY_EXISTS);
                winners.forEach(Attachment::release);
                assertEquals(1, winners.size());
                expectNames(dir);
            }
        }
    }

    @Test
    void ofRacingCreatorProcessesOneWins() {
        try (Peer a = creator(); Peer b = creator(); Peer c = creator()) {
            List<Peer> peers = List.of(a, b, c);
            for (int round = 0; round < 200; round++) {
                peers.forEach(peer -> peer.tell("create"));
                long won = peers.stream().filter(peer -> peer.hear().equals("created")).count();
                assertEquals(1, won, "round " + round);
                peers.forEach(peer -> peer.tell("leave"));
                peers.forEach(peer -> peer.expect("left"));
                expectNames(dir);
            }
            peers.forEach(Peer::finish);
        }
    }

    private Peer creator() {
        return Peer.start("ContentionTest.create", name.toString());
    }

    /** Tries to create at every word of the parent, and says whether it did; lets go at the next one. */
    static void create(Peer.Inside me, String[] args) {
        while (me.hear() != null) {
            try {
                Attachment a = hold(Path.of(args[0]), OpenMode.CREATE, SMALL, Role.PRODUCER);
                me.say("created");
                me.hear();
                a.release();
            } catch (RamwayException e) {
                assertEquals(ErrorKind.ALREADY_EXISTS, e.kind());
                me.say("lost");
                me.hear();
            }
            me.say("left");
        }
    }

    /** Of many that open or create at once, one is the producer and one the consumer, of one and the same ring. */
    @Test
    void oneProducerAndOneConsumer() throws Exception {
        try (ExecutorService threads = Executors.newFixedThreadPool(8)) {
            for (int i = 0; i < 50; i++) {
                List<Attachment> holders = race(threads, OpenMode.OPEN_OR_CREATE, ErrorKind.BUSY);
                assertEquals(2, holders.size());
                Attachment tx = holders.get(holders.get(0).role == Role.PRODUCER ? 0 : 1);
                Attachment rx = holders.get(holders.get(0).role == Role.PRODUCER ? 1 : 0);
                put(tx, 9);
                assertEquals(Layout.frameSize(9, 15), word(rx, Facts.OFF_TAIL), "they have two rings");
                drain(rx);
                holders.forEach(Attachment::release);
                expectNames(dir);
            }
        }
    }

    /** Openers in a world where the name comes and goes see a whole segment or none. */
    @Test
    void nobodyEverSeesHalfASegment() {
        try (Peer a = Peer.start("ContentionTest.comeAndGo", name.toString());
                Peer b = Peer.start("ContentionTest.comeAndGo", name.toString())) {
            a.expect("ready");
            b.expect("ready");
            a.tell("go");
            b.tell("go");
            int opened = 0;
            for (int i = 0; i < ROUNDS || opened == 0 && i < 100 * ROUNDS; i++) {
                Attachment tx;
                try {
                    tx = hold(name, OpenMode.OPEN, Options.DEFAULT, Role.PRODUCER);
                } catch (RamwayException e) {
                    assertEquals(ErrorKind.NOT_FOUND, e.kind(), e.getMessage());
                    continue;
                }
                opened++;
                SegmentLink link = (SegmentLink) tx.link;
                assertEquals(4096, tx.capacity);
                assertFalse(link.vanished());
                assertTrue(SegmentFile.leadsTo(link.dir, "ring", link.id));
                tx.release();
            }
            assertTrue(opened > 0, "never met");
            a.tell("enough");
            b.tell("enough");
            a.expect("done");
            b.expect("done");
        }
        expectNames(dir);
    }

    static void comeAndGo(Peer.Inside me, String[] args) throws InterruptedException {
        me.say("ready");
        me.hear();
        Thread end = Thread.ofPlatform().daemon().start(me::hear);
        while (end.isAlive()) {
            try {
                hold(Path.of(args[0]), OpenMode.CREATE, SMALL, Role.CONSUMER).release();
            } catch (RamwayException e) {
                assertEquals(ErrorKind.ALREADY_EXISTS, e.kind(), e.getMessage());
            }
        }
        me.say("done");
    }

    /** Killed while it creates, opens, closes or removes: the next one can start, and nothing else is left. */
    @Test
    void aCreatorKilledAtAnyInstruction() throws Exception {
        Options next = Options.DEFAULT.withTimeout(Scratch.LONG);
        for (int round = 0; round < 20; round++) {
            try (Peer peer = Peer.start("ContentionTest.forEver", name.toString())) {
                peer.expect("ready");
                Thread.sleep(0, round * 61_000 % 999_999);
                peer.kill();
            }
            assertTrue(names(dir).isEmpty() || names(dir).equals(List.of("ring")), names(dir).toString());
            Attachment a = round % 2 == 0 ? hold(name, OpenMode.OPEN_OR_CREATE, next, Role.CONSUMER)
                    : hold(name, OpenMode.CREATE, next.withDiscard(true), Role.CONSUMER);
            drain(a);
            a.release();
            expectNames(dir);
        }
    }

    static void forEver(Peer.Inside me, String[] args) {
        Path name = Path.of(args[0]);
        me.say("ready");
        while (true) {
            Attachment tx = hold(name, OpenMode.CREATE, Options.DEFAULT.withDiscard(true).withCapacity(1 << 16), Role.PRODUCER);
            put(tx, 100);
            Attachment rx = hold(name, OpenMode.OPEN, Options.DEFAULT, Role.CONSUMER);
            drain(rx);
            rx.release();
            tx.release();
        }
    }
}
