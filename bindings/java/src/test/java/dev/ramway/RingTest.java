package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class RingTest {
    private static final Options PAGE = Options.DEFAULT.withCapacity(4096);
    private static final Duration SHORT = Duration.ofMillis(20);

    /** A payload that says what it is. */
    static byte[] payload(int length, long seed) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) {
            bytes[i] = (byte) (seed * 31 + i * 7);
        }
        return bytes;
    }

    @Test
    void everyLengthInARingOfOnePage() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            for (int length = 0; length <= pair.sender().maxMessageLength(); length++) {
                byte[] sent = payload(length, length);
                pair.sender().send(7, length, sent);
                try (Message message = pair.receiver().recv()) {
                    assertEquals(7, message.typeId());
                    assertEquals(length, message.tag());
                    assertEquals(length, message.length());
                    assertArrayEquals(sent, message.data().toArray(ValueLayout.JAVA_BYTE));
                    assertArrayEquals(sent, message.toByteArray());
                }
            }
            assertEquals(4080, pair.sender().maxMessageLength());
            refused(ErrorKind.TOO_LARGE, () -> pair.sender().send(7, new byte[4081]));
            refused(ErrorKind.TOO_LARGE, () -> pair.sender().trySend(7, new byte[1 << 20]));
            refused(ErrorKind.TOO_LARGE, () -> pair.sender().reserve(4081));
        }
    }

    @Test
    void theLongestMessageOfALargeRing() throws Exception {
        try (Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(64 << 20))) {
            int longest = pair.sender().maxMessageLength();
            assertEquals((64 << 20) - 16, longest);
            // Once so that the second one lies across the end.
            for (int round = 0; round < 2; round++) {
                pair.sender().send(1, new byte[1000]);
                pair.receiver().recv().close();
                try (Slot slot = pair.sender().reserve(longest)) {
                    slot.putLong(0, 1);
                    slot.putLong(longest - 8, round);
                    slot.commit(1, 0);
                }
                try (Message message = pair.receiver().recv()) {
                    assertEquals(longest, message.length());
                    assertEquals(round, message.getLong(longest - 8));
                    assertEquals(longest, message.data().byteSize());
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {16, 64, 256, 4096})
    void everyAlignmentFilledToTheLastByte(int align) throws Exception {
        Options options = Options.DEFAULT.withCapacity(16384).withAlign(align);
        try (Ring.Pair pair = Ring.pair(options)) {
            Sender tx = pair.sender();
            Receiver rx = pair.receiver();
            assertEquals(align, tx.align());
            Random random = new Random(align);
            for (int lap = 0; lap < 200; lap++) {
                int sent = 0;
                while (true) {
                    int length = random.nextInt(3 * align);
                    if (!tx.trySend(3, lap, payload(length, sent))) {
                        break;
                    }
                    sent++;
                }
                while (tx.trySend(3, lap, new byte[0])) {
                    sent++;
                }
                assertEquals(16384, rx.pendingBytes());
                if (lap == 0) {
                    refused(ErrorKind.TIMED_OUT, () -> tx.send(3, 0, new byte[0], SHORT));
                }
                for (int i = 0; i < sent; i++) {
                    try (Message message = rx.tryRecv()) {
                        assertEquals(0, message.data().address() % align);
                        byte[] bytes = message.toByteArray();
                        assertTrue(bytes.length == 0 || Arrays.equals(payload(bytes.length, i), bytes));
                    }
                }
                assertNull(rx.tryRecv());
                assertEquals(0, tx.pendingBytes());
            }
        }
    }

    @Test
    void everyWayToSendAndToReceive() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE); Arena arena = Arena.ofConfined()) {
            Sender tx = pair.sender();
            Receiver rx = pair.receiver();
            byte[] hello = "hello".getBytes();
            MemorySegment memory = arena.allocateFrom(ValueLayout.JAVA_BYTE, hello);
            tx.send(1, hello);
            tx.send(1, 5, hello, Duration.ZERO);
            tx.send(1, 5, memory);
            tx.send(1, memory);
            tx.send(1, 5, memory, SHORT);
            ByteBuffer buffer = ByteBuffer.wrap("_hello_".getBytes()).position(1).limit(6);
            tx.send(1, buffer);
            tx.send(1, 5, buffer.asReadOnlyBuffer(), SHORT);
            assertEquals(1, buffer.position());
            assertTrue(tx.trySend(1, memory) && tx.trySend(1, 5, memory) && tx.trySend(1, buffer) && tx.trySend(1, 5, hello));
            tx.sendVectored(1, 5, MemorySegment.ofArray("he".getBytes()), memory.asSlice(2, 0), memory.asSlice(2));
            tx.sendBatch(1, List.of(hello, hello));
            for (int i = 0; i < 14; i++) {
                Received received;
                byte[] into = new byte[8];
                switch (i % 4) {
                    case 0 -> received = rx.recvInto(into);
                    case 1 -> received = rx.tryRecvInto(MemorySegment.ofArray(into));
                    case 2 -> received = rx.recvInto(into, SHORT);
                    default -> {
                        try (Message message = rx.recv(SHORT)) {
                            assertEquals(5, message.copyTo(into));
                            MessageCopy copy = message.copy();
                            received = new Received(copy.typeId(), copy.tag(), copy.data().length);
                        }
                    }
                }
                assertArrayEquals("hello\0\0\0".getBytes(), into);
                assertEquals(1, received.typeId());
                assertEquals(5, received.length());
                assertTrue(received.tag() == 5 || received.tag() == 0);
            }
            assertNull(rx.tryRecvInto(new byte[8]));
            // What does not fit stays.
            tx.send(2, 9, hello);
            refused(ErrorKind.TOO_LARGE, () -> rx.recvInto(new byte[4]));
            assertEquals(9, rx.recvInto(new byte[5]).tag());
            // A piece that cannot be read: nothing is sent, and the handle is as before.
            MemorySegment dead;
            try (Arena gone = Arena.ofConfined()) {
                dead = gone.allocate(5);
            }
            assertThrows(IllegalStateException.class, () -> tx.send(1, dead));
            assertThrows(IllegalStateException.class, () -> tx.sendVectored(1, 0, memory, dead));
            assertThrows(NullPointerException.class, () -> tx.send(1, (byte[]) null));
            assertNull(rx.tryRecv());
            tx.send(1, hello);
            rx.recv().close();
            refused(ErrorKind.INVALID_ARGUMENT, () -> tx.send(Ring.RESERVED_TYPE_IDS, hello));
            refused(ErrorKind.INVALID_ARGUMENT, () -> tx.trySend(-1, hello));
            assertNull(rx.tryRecv());
            refused(ErrorKind.TIMED_OUT, () -> rx.recv(Duration.ZERO));
            refused(ErrorKind.TIMED_OUT, () -> rx.recvBatch(3, SHORT));
            refused(ErrorKind.INVALID_ARGUMENT, () -> rx.recvBatch(0));
            refused(ErrorKind.INVALID_ARGUMENT, () -> rx.tryRecvBatch(-1));
            assertNull(rx.tryRecvBatch(1));
        }
    }

    @Test
    void slots() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Sender tx = pair.sender();
            Receiver rx = pair.receiver();
            Slot slot = tx.reserve(40);
            assertEquals(40, slot.length());
            refused(ErrorKind.BUSY, () -> tx.send(1, new byte[1]));
            refused(ErrorKind.BUSY, () -> tx.tryReserve(1));
            slot.putByte(0, (byte) 1);
            slot.putShort(1, (short) 0x302);
            slot.putInt(3, 0x7060504);
            slot.putLong(7, 0x0f0e0d0c0b0a0908L);
            slot.putFloat(16, 1.5f);
            slot.putDouble(20, 2.5);
            slot.put(28, new byte[] {9, 8});
            slot.put(30, MemorySegment.ofArray(new byte[] {7}));
            slot.buffer().put(31, (byte) 6);
            MemorySegment room = slot.data();
            assertEquals(40, room.byteSize());
            assertThrows(IndexOutOfBoundsException.class, () -> slot.putLong(33, 0));
            assertThrows(IndexOutOfBoundsException.class, () -> slot.putByte(-1, (byte) 0));
            assertThrows(IndexOutOfBoundsException.class, () -> slot.put(39, new byte[2]));
            assertNull(rx.tryRecv());
            slot.commit(4, 6, 32);
            slot.close();
            assertThrows(IllegalStateException.class, () -> slot.putByte(0, (byte) 0));
            assertThrows(IllegalStateException.class, () -> slot.commit(1, 0));
            assertThrows(IllegalStateException.class, slot::data);
            assertThrows(IllegalStateException.class, () -> room.set(ValueLayout.JAVA_BYTE, 0, (byte) 0));
            try (Message m = rx.recv()) {
                assertEquals(32, m.length());
                assertEquals(0x0807060504030201L, m.getLong(0));
                assertEquals(0x0f0e0d0c0b0a0908L, m.getLong(7));
                assertEquals(1, m.getByte(0));
                assertEquals(0x302, m.getShort(1));
                assertEquals(0x7060504, m.getInt(3));
                assertEquals(1.5f, m.getFloat(16));
                assertEquals(2.5, m.getDouble(20));
                assertEquals(0x06070809, m.getInt(28));
                assertEquals(ByteOrder.nativeOrder(), m.buffer().order());
                assertTrue(m.buffer().isReadOnly() && m.data().isReadOnly());
            }
            // An abort leaves nothing behind; so does a commit that is refused.
            tx.reserve(100).close();
            refused(ErrorKind.INVALID_ARGUMENT, () -> tx.reserve(4).commit(1, 0, 5));
            refused(ErrorKind.INVALID_ARGUMENT, () -> tx.reserve(4).commit(1, 0, -1));
            refused(ErrorKind.INVALID_ARGUMENT, () -> tx.reserve(4).commit(0xFFFF0001, 0));
            refused(ErrorKind.INVALID_ARGUMENT, () -> tx.reserve(-1));
            assertNull(rx.tryRecv());
            // Not visible before a flush, which may come with a slot open.
            tx.reserve(4).commitUnflushed(1, 0);
            assertNull(rx.tryRecv());
            try (Slot open = tx.reserve(8)) {
                tx.flush();
                rx.recv().close();
                open.commitUnflushed(1, 0, 0);
            }
            assertNull(rx.tryRecv());
            // Full: what was committed is flushed.
            while (true) {
                Slot next = tx.tryReserve(48);
                if (next == null) {
                    break;
                }
                next.commitUnflushed(1, 0);
            }
            assertTrue(rx.pendingBytes() > 4096 - 64);
        }
    }

    @Test
    void batches() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Sender tx = pair.sender();
            Receiver rx = pair.receiver();
            for (int i = 0; i < 100; i++) {
                tx.send(i, i, payload(i % 20, i));
            }
            Batch batch = rx.recvBatch(64);
            assertEquals(64, batch.size());
            int i = 0;
            for (Message message : batch) {
                assertEquals(i, message.typeId());
                assertArrayEquals(payload(i % 20, i), message.data().toArray(ValueLayout.JAVA_BYTE));
                message.close();
                assertEquals(i, message.tag());
                i++;
            }
            assertEquals(63, batch.get(63).typeId());
            assertThrows(IndexOutOfBoundsException.class, () -> batch.get(64));
            refused(ErrorKind.BUSY, rx::recv);
            refused(ErrorKind.BUSY, () -> rx.recvBatch(1));
            Message late = batch.get(3);
            MemorySegment view = late.data();
            batch.close();
            batch.close();
            assertThrows(IllegalStateException.class, batch::size);
            assertThrows(IllegalStateException.class, late::tag);
            assertThrows(IllegalStateException.class, () -> late.getByte(0));
            assertThrows(IllegalStateException.class, () -> view.get(ValueLayout.JAVA_BYTE, 0));
            try (Batch rest = rx.tryRecvBatch(1000)) {
                assertEquals(36, rest.size());
                assertEquals(64, rest.get(0).tag());
            }
            assertEquals(0, rx.pendingBytes());
        }
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void aMixedStreamAroundTheEnd(WaitMode mode) throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE.withWaitMode(mode))) {
            int count = 20_000;
            CompletableFuture<Void> sending = CompletableFuture.runAsync(() -> {
                try {
                    Random random = new Random(5);
                    for (int i = 0; i < count; i++) {
                        pair.sender().send(i, i, payload(random.nextInt(600), i), Scratch.LONG);
                    }
                    pair.sender().close();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
            Random random = new Random(5);
            int i = 0;
            try {
                while (true) {
                    try (Batch batch = pair.receiver().recvBatch(1 + i % 7, Scratch.LONG)) {
                        for (Message message : batch) {
                            assertEquals(i, message.tag());
                            assertArrayEquals(payload(random.nextInt(600), i), message.toByteArray());
                            i++;
                        }
                    }
                }
            } catch (ClosedException end) {
                assertEquals(count, i);
            }
            sending.get();
        }
    }

    @Test
    void lastTagAcrossSenders() throws Exception {
        String name = Scratch.path(Scratch.name("tags")).toString();
        Sender tx = Sender.create(name, PAGE.withPersistent(true));
        assertEquals(OptionalLong.empty(), tx.lastTag());
        tx.send(1, 5, new byte[0]);
        tx.send(1, 6, new byte[0]);
        // Between the stores of the last-tag record and of tail: the third message of 16 bytes would end at 48.
        // The first of a new ring goes to last-tag record 1, the second to last-tag record 0.
        long stale = tx.ring + Facts.OFF_LAST_TAGS + Facts.LAST_TAG_SIZE;
        Words.setLong(stale + Facts.LAST_TAG_END, 48);
        Words.setLong(stale + Facts.LAST_TAG_TAG, 7);
        tx.abandon();
        assertEquals(OptionalLong.empty(), tx.lastTag());
        try (Sender next = Sender.open(name)) {
            assertEquals(OptionalLong.of(6), next.lastTag());
            next.send(1, new byte[0]);
            assertEquals(OptionalLong.of(0), next.lastTag());
            next.send(1, 8, new byte[0]);
            assertEquals(OptionalLong.of(8), next.lastTag());
            assertEquals(2, next.epoch());
        }
    }

    @Test
    void endingsOfANamedRing() throws Exception {
        String name = Scratch.path(Scratch.name("ends")).toString();
        try (Sender tx = Sender.create(name, PAGE)) {
            assertEquals(0, tx.peerEpoch());
            assertFalse(tx.peerAlive());
            tx.send(1, new byte[3]);
            try (Receiver rx = Receiver.open(name)) {
                assertTrue(tx.peerAlive() && rx.peerAlive());
                refused(ErrorKind.BUSY, () -> Receiver.open(name));
                rx.recv().close();
                assertNull(rx.tryRecv());
            }
            assertFalse(tx.peerAlive());
            // For its next receiver: what fits is taken, what would wait is not.
            refused(ErrorKind.CLOSED, () -> {
                while (tx.trySend(1, new byte[1000])) {
                    assertTrue(tx.pendingBytes() <= 4096);
                }
            });
            refused(ErrorKind.CLOSED, () -> tx.send(1, new byte[1000]));
            refused(ErrorKind.CLOSED, () -> tx.reserve(1000, SHORT));
            try (Receiver rx = Receiver.open(name)) {
                assertEquals(2, rx.epoch());
                assertEquals(2, tx.peerEpoch());
                rx.recv().close();
                tx.send(1, new byte[1000]);
                shut(tx);
                refused(ErrorKind.DETACHED, () -> tx.send(1, new byte[1]));
                assertTrue(tx.isClosed());
                for (int i = 0; i < 4; i++) {
                    rx.recv().close();
                }
                refused(ErrorKind.CLOSED, rx::recv);
                refused(ErrorKind.CLOSED, rx::tryRecv);
                // A state that ends when a successor comes.
                try (Sender next = Sender.open(name)) {
                    refused(ErrorKind.TIMED_OUT, () -> rx.recv(SHORT));
                    next.send(9, new byte[1]);
                    try (Message message = rx.recv()) {
                        assertEquals(9, message.typeId());
                    }
                    next.abandon();
                }
                RamwayException end = refused(ErrorKind.PEER_DEAD, rx::recv);
                assertTrue(end instanceof PeerDeadException && end.getMessage().contains(name), end.getMessage());
                assertNotEquals(0, rx.peerEpoch());
            }
        }
    }

    @Test
    void endingsOfAPair() throws Exception {
        Ring.Pair pair = Ring.pair(PAGE);
        pair.sender().send(1, new byte[5]);
        pair.receiver().close();
        refused(ErrorKind.CLOSED, () -> pair.sender().send(1, new byte[5]));
        refused(ErrorKind.CLOSED, () -> pair.sender().flush());
        pair.sender().close();
        refused(ErrorKind.DETACHED, () -> pair.sender().tryReserve(5));
        refused(ErrorKind.DETACHED, pair.receiver()::tryRecv);
        assertEquals(0, pair.receiver().pendingBytes());
        assertEquals(0, pair.sender().peerEpoch());
        refused(ErrorKind.INVALID_ARGUMENT, () -> Ring.pair(PAGE.withAlign(17)));
        refused(ErrorKind.UNSUPPORTED, () -> Ring.pair(PAGE.withHugePages(true)));
    }

    /** Before the end of its block, which javac warns about. */
    private static void shut(RingEnd end) {
        end.close();
    }
}
