package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What no correct peer writes is Corrupt, and stays so; never a crash, never an endless loop. */
class HostileTest {
    private static final int CAPACITY = 4096;
    private static final Options PAGE = Options.DEFAULT.withCapacity(CAPACITY);

    private static boolean isPossible(long position) {
        return Long.compareUnsigned(position, CAPACITY) <= 0 && position % 16 == 0;
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 1, 15, 16, 64, CAPACITY - 16, CAPACITY, CAPACITY + 16, 1L << 31, 1L << 32, Long.MIN_VALUE, -16, -1})
    void tail(long tail) throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Receiver rx = pair.receiver();
            pair.sender().send(1, new byte[48]);
            Words.setLongRelease(rx.ring + Facts.OFF_TAIL, tail);
            ErrorKind end = null;
            // Inside the ring lies an old frame, or none: zeros are a message of length 0.
            for (int i = 0; i < 1 << 10 && end == null; i++) {
                try (Message message = rx.tryRecv()) {
                    end = message == null ? ErrorKind.EMPTY : null;
                } catch (RamwayException e) {
                    end = e.kind();
                }
            }
            assertTrue(end == ErrorKind.CORRUPT || isPossible(tail) && end == ErrorKind.EMPTY, "tail " + tail + ": " + end);
            if (!isPossible(tail)) {
                refused(ErrorKind.CORRUPT, rx::recv);
                refused(ErrorKind.CORRUPT, () -> rx.recvBatch(5));
                refused(ErrorKind.CORRUPT, () -> rx.recvInto(new byte[5000]));
            }
            rx.close();
            assertTrue(rx.isFinished());
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 1, 15, 16, 64, CAPACITY - 16, CAPACITY, CAPACITY + 16, 1L << 31, 1L << 32, Long.MIN_VALUE, -16, -1})
    void head(long head) throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Sender tx = pair.sender();
            for (int i = 0; i < 64; i++) {
                tx.send(1, new byte[48]);
            }
            Words.setLongRelease(tx.ring + Facts.OFF_HEAD, head);
            if (isPossible(head)) {
                assertEquals(head >= 64, tx.trySend(1, new byte[48]));
            } else {
                refused(ErrorKind.CORRUPT, () -> tx.trySend(1, new byte[48]));
                refused(ErrorKind.CORRUPT, () -> tx.reserve(0));
                refused(ErrorKind.CORRUPT, tx::flush);
                tx.close();
                assertTrue(tx.isFinished());
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {49, 64, 80, CAPACITY, Integer.MAX_VALUE - 16, Integer.MAX_VALUE - 15, Integer.MIN_VALUE, -16, -1})
    void length(int length) throws Exception {
        for (int how = 0; how < 4; how++) {
            try (Ring.Pair pair = Ring.pair(PAGE)) {
                Receiver rx = pair.receiver();
                pair.sender().send(1, new byte[48]);
                Words.setInt(pair.sender().data, length);
                int way = how;
                refused(ErrorKind.CORRUPT, () -> {
                    switch (way) {
                        case 0 -> rx.recv();
                        case 1 -> rx.tryRecv();
                        case 2 -> rx.recvBatch(9);
                        default -> rx.recvInto(new byte[5000]);
                    }
                });
                refused(ErrorKind.CORRUPT, rx::tryRecv);
                rx.close();
                assertTrue(rx.isFinished());
            }
        }
    }

    @Test
    void aLengthInTheMiddleOfABatch() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Receiver rx = pair.receiver();
            pair.sender().send(1, new byte[48]);
            pair.sender().send(1, new byte[48]);
            Words.setInt(pair.sender().data + 64, CAPACITY);
            try (Batch batch = rx.recvBatch(5)) {
                assertEquals(1, batch.size());
                assertEquals(48, batch.get(0).data().byteSize());
            }
            refused(ErrorKind.CORRUPT, rx::recv);
            rx.close();
            assertTrue(rx.isFinished());
        }
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void whileWaiting(WaitMode mode) throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE.withWaitMode(mode))) {
            CompletableFuture.delayedExecutor(20, TimeUnit.MILLISECONDS).execute(() -> {
                Words.setLongRelease(pair.sender().ring + Facts.OFF_TAIL, 8);
                pair.sender().wakePeer();
            });
            refused(ErrorKind.CORRUPT, pair.receiver()::recv);
        }
    }

    /** A false waiter, unknown flags and any epoch cost something and change nothing. */
    @Test
    void wordsThatAreOnlyCompared() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Sender tx = pair.sender();
            Receiver rx = pair.receiver();
            int[] values = {0, 1, -1, 0x7FFFFFF8, 0x80000000};
            for (int i = 0; i < 1000; i++) {
                Words.setInt(rx.mine + Facts.OFF_ROLE_WAIT, values[i % 5]);
                Words.setInt(tx.mine + Facts.OFF_ROLE_WAIT, values[(i + 1) % 5]);
                Words.setInt(rx.mine + Facts.OFF_ROLE_FLAGS, values[i / 5 % 5] & ~Facts.ROLE_CLOSED);
                Words.setInt(tx.mine + Facts.OFF_ROLE_EPOCH, values[i / 7 % 5]);
                tx.send(1, i, new byte[100]);
                try (Message message = rx.recv()) {
                    assertEquals(i, message.tag());
                }
                assertNull(rx.tryRecv());
            }
        }
    }

    @Test
    void positionsAtAttach() throws Exception {
        String name = Scratch.path(Scratch.name("attach")).toString();
        try (Receiver rx = Receiver.create(name, PAGE.withPersistent(true))) {
            Words.setLongRelease(rx.ring + Facts.OFF_TAIL, 24);
            refused(ErrorKind.CORRUPT, () -> Sender.open(name));
            Words.setLongRelease(rx.ring + Facts.OFF_TAIL, 0);
            Sender.open(name).close();
        }
    }

    /** A thread that writes at random where a peer could: each call returns, and nothing but Corrupt and the like is thrown. */
    @Test
    void scribbles() throws Exception {
        long end = System.nanoTime() + 1_500_000_000L;
        java.util.Random random = new java.util.Random(11);
        int corrupt = 0;
        while (System.nanoTime() < end) {
            try (Ring.Pair pair = Ring.pair(PAGE)) {
                for (int i = 0; i < 30; i++) {
                    pair.sender().trySend(1, new byte[random.nextInt(100)]);
                }
                for (int i = 0; i < 5; i++) {
                    Words.setInt(pair.sender().data + random.nextInt(2048) / 4 * 4, random.nextInt(200) - 20);
                }
                for (int i = 0; i < 100; i++) {
                    try (Batch batch = pair.receiver().tryRecvBatch(3)) {
                        if (batch == null) {
                            break;
                        }
                        for (Message message : batch) {
                            assertTrue(message.toByteArray().length <= CAPACITY);
                        }
                    }
                }
            } catch (RamwayException e) {
                assertEquals(ErrorKind.CORRUPT, e.kind());
                corrupt++;
            }
        }
        assertTrue(corrupt > 0);
    }
}
