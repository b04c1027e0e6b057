package dev.ramway;

import static dev.ramway.Rings.drain;
import static dev.ramway.Rings.expectNames;
import static dev.ramway.Rings.hold;
import static dev.ramway.Rings.inode;
import static dev.ramway.Rings.put;
import static dev.ramway.Rings.refused;
import static dev.ramway.Rings.says;
import static dev.ramway.Rings.word;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Who leaves, who waits, and what becomes of the name. */
class LeavingTest {
    private static final Options PATIENT = Options.DEFAULT.withTimeout(Scratch.LONG);

    private final Path dir = Scratch.directory("leaving");
    private final Path name = dir.resolve("ring");

    private static <T> FutureTask<T> begin(java.util.concurrent.Callable<T> call) {
        FutureTask<T> task = new FutureTask<>(call);
        Thread.ofPlatform().start(task);
        return task;
    }

    @Test
    void theLastOneOutRemovesTheName() {
        Attachment tx = hold(name, OpenMode.CREATE, Options.DEFAULT.withCapacity(4096), Role.PRODUCER);
        try (Peer peer = Rings.holder(name, Role.CONSUMER)) {
            tx.release();
            expectNames(dir, "ring");
            peer.tell("leave");
            peer.finish();
        }
        expectNames(dir);
        // Undelivered keeps it, delivered does not.
        tx = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
        put(tx, 0);
        tx.release();
        expectNames(dir, "ring");
        Attachment rx = hold(name, OpenMode.OPEN, Options.DEFAULT, Role.CONSUMER);
        drain(rx);
        rx.release();
        expectNames(dir);
    }

    @Test
    void twoLeaveAtOnceAndTheNameGoes() throws Exception {
        for (int i = 0; i < 200; i++) {
            Attachment tx = hold(name, OpenMode.CREATE, Options.DEFAULT.withCapacity(4096), Role.PRODUCER);
            Attachment rx = hold(name, OpenMode.OPEN, Options.DEFAULT, Role.CONSUMER);
            FutureTask<Void> other = begin(() -> {
                tx.release();
                return null;
            });
            rx.release();
            other.get();
            expectNames(dir);
        }
    }

    @Test
    void discardNeverOverTheLiving() {
        Attachment tx = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
        put(tx, 10);
        Options discard = Options.DEFAULT.withDiscard(true).withCapacity(8192);
        refused(ErrorKind.ALREADY_EXISTS, name, OpenMode.CREATE, discard, Role.CONSUMER);
        tx.release();
        Attachment rx = hold(name, OpenMode.CREATE, discard, Role.CONSUMER);
        assertEquals(8192, rx.capacity);
        assertEquals(0, word(rx, Facts.OFF_TAIL));
        rx.release();
    }

    @Test
    void whatDiffersIsSaid() {
        Attachment tx = hold(name, OpenMode.OPEN_OR_CREATE, Options.DEFAULT.withCapacity(10_000).withAlign(64), Role.PRODUCER);
        assertEquals(16_384, tx.capacity);
        assertEquals(64, tx.align);
        for (OpenMode how : new OpenMode[] {OpenMode.OPEN, OpenMode.OPEN_OR_CREATE}) {
            says(refused(ErrorKind.INVALID_ARGUMENT, name, how, Options.DEFAULT.withCapacity(4096), Role.CONSUMER), "16384", "4096",
                    "capacity");
            says(refused(ErrorKind.INVALID_ARGUMENT, name, how, Options.DEFAULT.withAlign(16), Role.CONSUMER), "64", "16", "alignment");
            // The same wish in other words is no difference, and no wish is none either.
            hold(name, how, Options.DEFAULT.withCapacity(9000).withAlign(64), Role.CONSUMER).release();
            hold(name, how, Options.DEFAULT, Role.CONSUMER).release();
        }
        tx.release();
    }

    @Test
    void openWaitsForTheName() {
        long start = System.nanoTime();
        Options wait = Options.DEFAULT.withTimeout(Duration.ofMillis(200));
        says(refused(ErrorKind.NOT_FOUND, name, OpenMode.OPEN, wait, Role.PRODUCER), name);
        assertTrue(System.nanoTime() - start >= 200_000_000);
        Path absent = dir.resolve("no/such/dir");
        refused(ErrorKind.NOT_FOUND, absent, OpenMode.OPEN, Options.DEFAULT, Role.PRODUCER);
        refused(ErrorKind.NOT_FOUND, absent, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
        try (Peer peer = Peer.start("LeavingTest.createLater", name.toString())) {
            hold(name, OpenMode.OPEN, PATIENT, Role.PRODUCER).release();
            peer.tell("leave");
            peer.finish();
        }
    }

    static void createLater(Peer.Inside me, String[] args) throws InterruptedException {
        Thread.sleep(300);
        Attachment a = hold(Path.of(args[0]), OpenMode.CREATE, Options.DEFAULT, Role.CONSUMER);
        me.hear();
        a.release();
    }

    @Test
    void anInterruptEndsTheWaitForAName() throws Exception {
        FutureTask<Boolean> task = new FutureTask<>(() -> {
            refused(ErrorKind.INTERRUPTED, name, OpenMode.OPEN, PATIENT, Role.PRODUCER);
            return Thread.currentThread().isInterrupted();
        });
        Thread thread = Thread.ofPlatform().start(task);
        Thread.sleep(100);
        assertFalse(task.isDone());
        thread.interrupt();
        assertTrue(task.get(60, TimeUnit.SECONDS), "the thread is still told");
    }

    @Test
    void aTakenRoleIsWaitedFor() {
        try (Peer peer = Rings.holder(name, Role.PRODUCER)) {
            long start = System.nanoTime();
            Options wait = Options.DEFAULT.withTimeout(Duration.ofMillis(150));
            says(refused(ErrorKind.BUSY, name, OpenMode.OPEN, wait, Role.PRODUCER), "sender", name);
            assertTrue(System.nanoTime() - start >= 150_000_000);
            peer.kill();
        }
        hold(name, OpenMode.OPEN, PATIENT, Role.PRODUCER).release();
        expectNames(dir);
    }

    /**
     * A side that waits for a role gets the ring that its holder leaves, however it goes and at whatever moment: nobody removes
     * what is waited for.
     */
    @Test
    void aRoleIsTakenOverAtAnyMoment() throws Exception {
        for (int round = 0; round < 20; round++) {
            boolean kills = round % 2 == 0;
            try (Peer peer = Rings.holder(name, Role.PRODUCER)) {
                Object before = inode(name);
                // An orderly end removes the name if it comes before the opener does.
                OpenMode how = kills ? OpenMode.OPEN : OpenMode.OPEN_OR_CREATE;
                FutureTask<Attachment> next = begin(() -> hold(name, how, PATIENT, Role.PRODUCER));
                Thread.sleep(0, round * 173_000 % 999_999);
                if (kills) {
                    peer.kill();
                } else {
                    peer.tell("leave");
                    peer.finish();
                }
                Attachment a = next.get(60, TimeUnit.SECONDS);
                if (kills) {
                    assertEquals(before, inode(name), "another ring");
                }
                a.release();
                expectNames(dir);
            }
        }
    }

    @Test
    void whoWaitsInVainIsTheLastOneOut() throws Exception {
        Attachment tx = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
        Options wait = Options.DEFAULT.withTimeout(Duration.ofMillis(300));
        FutureTask<Void> waiter = begin(() -> {
            hold(name, OpenMode.OPEN, wait, Role.PRODUCER).release();
            return null;
        });
        Thread.sleep(50);
        tx.release();
        try {
            waiter.get(60, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            ErrorKind kind = ((RamwayException) e.getCause()).kind();
            // Busy: its time was over before this side had left.
            assertTrue(kind == ErrorKind.NOT_FOUND || kind == ErrorKind.BUSY, e.getCause().toString());
        }
        expectNames(dir);
        // And where the name goes while its role is waited for, there is nothing left to wait for.
        ErrorKind kind = ErrorKind.BUSY;
        for (int millis = 300; kind == ErrorKind.BUSY && millis < Scratch.LONG.toMillis(); millis *= 2) {
            Options limit = Options.DEFAULT.withTimeout(Duration.ofMillis(millis));
            Attachment again = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
            FutureTask<ErrorKind> told = begin(() -> assertThrows(RamwayException.class,
                    () -> hold(name, OpenMode.OPEN, limit, Role.PRODUCER)).kind());
            Thread.sleep(50);
            Files.delete(name);
            // Busy: the time was over before the name went. Then it waits for longer.
            kind = told.get(60, TimeUnit.SECONDS);
            again.release();
        }
        assertEquals(ErrorKind.NOT_FOUND, kind);
    }

    @Test
    void aNameThatVanishesUnderItsUsers() throws Exception {
        Attachment tx = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
        assertFalse(tx.link.vanished());
        Files.delete(name);
        assertTrue(tx.link.vanished());
        // The name is somebody else's now; the old user leaves it alone.
        Attachment rx = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.CONSUMER);
        tx.release();
        expectNames(dir, "ring");
        assertFalse(rx.link.vanished());
        // Renamed over by something else while in use: not ours to remove either.
        Files.move(Files.writeString(dir.resolve("other"), "somebody's"), name, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
        rx.release();
        expectNames(dir, "ring");
    }

    @Test
    void aLeaverOfAnImpossibleRingLeavesIt() {
        Attachment tx = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
        word(tx, Facts.OFF_HEAD, 7);
        word(tx, Facts.OFF_TAIL, 7);
        tx.release();
        expectNames(dir, "ring");
    }

    @Test
    void aReadOnlyRegionHandleCanBeTheLastOneOut() {
        Region w = Region.create(name.toString(), 10_000, Options.DEFAULT);
        Region r = Region.openReadOnly(name.toString(), Options.DEFAULT);
        w.close();
        expectNames(dir, "ring");
        r.close();
        expectNames(dir);
    }

    @Test
    void aListenersLock() throws Exception {
        SegmentLink lock = BusListenerLock.take(name.toString(), Duration.ZERO);
        refused(ErrorKind.ALREADY_EXISTS, () -> BusListenerLock.take(name.toString(), Duration.ZERO));
        try (SegmentName place = SegmentName.resolve(name.toString(), false)) {
            assertEquals(true, BusListenerLock.lives(place.dir, "ring"));
            assertEquals(false, BusListenerLock.lives(place.dir, "other"));
            // What is beside it and is no socket stays.
            Files.createFile(dir.resolve("ring.sock"));
            lock.close();
            assertEquals(false, BusListenerLock.lives(place.dir, "ring"));
        }
        expectNames(dir, "ring.sock");
    }
}
