package dev.ramway;

import static dev.ramway.BusTest.assertKind;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tensors through a ring. */
@Timeout(120)
class TensorSlotTest {
    /** n bytes 0, 7, 14, ... */
    private static byte[] numbered(int n) {
        byte[] data = new byte[n];
        for (int i = 0; i < n; i++) {
            data[i] = (byte) (i * 7);
        }
        return data;
    }

    @Test
    void tensorsOfEveryTypeFromEveryPosition() throws Exception {
        for (int align : new int[] {16, 64, 4096}) {
            try (Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(1 << 16).withAlign(align))) {
                for (int round = 0; round < 8; round++) {
                    // Moves on, so that payloads begin everywhere.
                    assertTrue(pair.sender().trySend(1, new byte[16 * round]));
                    pair.receiver().tryRecv().close();
                    for (ElementType type : ElementType.values()) {
                        oneTensor(pair, type, round);
                    }
                }
            }
        }
    }

    private static void oneTensor(Ring.Pair pair, ElementType type, int round) throws InterruptedException {
        Sender tx = pair.sender();
        int tag = type.ordinal();
        long[] shape = {tag + 1, round, 3};
        byte[] data = numbered((tag + 1) * round * 3 * type.size());
        if (round % 2 == 0) {
            tx.sendTensor(type, shape, tag, MemorySegment.ofArray(data));
        } else {
            try (TensorSlot slot = tx.reserveTensor(type, shape)) {
                assertEquals(data.length, slot.data().byteSize());
                assertEquals(0, slot.data().address() % 64);
                slot.data().copyFrom(MemorySegment.ofArray(data));
                slot.commit(tag);
            }
        }
        try (Message message = pair.receiver().tryRecv()) {
            Tensor tensor = message.tensor();
            assertEquals(Tensor.TYPE_ID, message.typeId());
            assertEquals(tag, message.tag());
            assertEquals(type, tensor.type());
            assertArrayEquals(shape, tensor.shape());
            assertArrayEquals(data, tensor.data().toArray(ValueLayout.JAVA_BYTE));
            assertEquals(0, tensor.data().address() % 64);
            assertTrue(tensor.data().isReadOnly());
        }
    }

    @Test
    void elementsAreReadAndWrittenInPlace() throws Exception {
        try (Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(4096))) {
            TensorSlot slot = pair.sender().tryReserveTensor(ElementType.FLOAT32, 2, 3);
            MemorySegment room = slot.data();
            for (int i = 0; i < 6; i++) {
                room.setAtIndex(ValueLayout.JAVA_FLOAT, i, i + 1);
            }
            slot.commitUnflushed(7);
            assertThrows(IllegalStateException.class, () -> room.set(ValueLayout.JAVA_FLOAT, 0, 1f), "a late write");
            assertThrows(IllegalStateException.class, () -> slot.commit(0));
            slot.close();
            assertNull(pair.receiver().tryRecv());
            pair.sender().flush();
            MemorySegment late;
            try (Message message = pair.receiver().recv()) {
                late = message.tensor().data();
                assertEquals(6f, late.getAtIndex(ValueLayout.JAVA_FLOAT, 5));
            }
            assertThrows(IllegalStateException.class, () -> late.get(ValueLayout.JAVA_FLOAT, 0), "a late read");
            // No dimension is one element.
            assertTrue(pair.sender().trySendTensor(ElementType.INT16, new long[0], 0, MemorySegment.ofArray(new byte[] {1, 2})));
            try (Message message = pair.receiver().recv()) {
                assertEquals(0, message.tensor().shape().length);
                assertEquals(0x0201, message.tensor().data().get(ValueLayout.JAVA_SHORT, 0));
            }
        }
    }

    @Test
    void aCopyIsATensorToo() throws Exception {
        try (Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(4096))) {
            pair.sender().sendTensor(ElementType.UINT8, new long[] {3}, 1, MemorySegment.ofArray(new byte[] {1, 2, 3}));
            byte[] copy = new byte[200];
            Received received = pair.receiver().recvInto(copy);
            Tensor tensor = Tensor.parse(MemorySegment.ofArray(copy).asSlice(0, received.length()));
            assertArrayEquals(new byte[] {1, 2, 3}, tensor.data().toArray(ValueLayout.JAVA_BYTE));
        }
    }

    @Test
    void whatCannotBeSentLeavesNothing() throws Exception {
        try (Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(4096))) {
            Sender tx = pair.sender();
            MemorySegment one = MemorySegment.ofArray(new byte[1]);
            RamwayException e = assertKind(ErrorKind.INVALID_ARGUMENT,
                    () -> tx.sendTensor(ElementType.FLOAT32, new long[] {2, 3}, 0, MemorySegment.ofArray(new byte[23])));
            assertTrue(e.getMessage().contains("23 bytes for float32 of the shape [2, 3]: that is 24"), e.getMessage());
            assertKind(ErrorKind.INVALID_ARGUMENT, () -> tx.sendTensor(ElementType.UINT8, new long[33], 0, one.asSlice(1)));
            assertKind(ErrorKind.INVALID_ARGUMENT, () -> tx.tryReserveTensor(ElementType.UINT8, 1L << 32, 1L << 32, 0));
            assertKind(ErrorKind.TOO_LARGE, () -> tx.tryReserveTensor(ElementType.UINT8, 4096));
            assertKind(ErrorKind.INVALID_ARGUMENT, () -> tx.send(Tensor.TYPE_ID, new byte[0]));
            try (TensorSlot slot = tx.tryReserveTensor(ElementType.UINT8, 1)) {
                assertKind(ErrorKind.BUSY, () -> tx.trySendTensor(ElementType.UINT8, new long[0], 0, one));
                assertEquals(1, slot.data().byteSize());
            }
            assertNull(pair.receiver().tryRecv());
            // Full is no error for those who do not wait.
            assertTrue(tx.trySendTensor(ElementType.UINT8, new long[] {3000}, 0, MemorySegment.ofArray(new byte[3000])));
            assertFalse(tx.trySendTensor(ElementType.UINT8, new long[] {3000}, 0, MemorySegment.ofArray(new byte[3000])));
            assertNull(tx.tryReserveTensor(ElementType.UINT8, 3000));
            Duration shortly = Duration.ofMillis(10);
            assertThrows(TimedOutException.class, () -> tx.reserveTensor(ElementType.UINT8, new long[] {3000}, shortly));
            assertThrows(TimedOutException.class,
                    () -> tx.sendTensor(ElementType.UINT8, new long[] {3000}, 0, MemorySegment.ofArray(new byte[3000]), shortly));
            pair.receiver().tryRecv().close();
            tx.send(1, "plain".getBytes());
            try (Message message = pair.receiver().recv()) {
                e = assertKind(ErrorKind.INVALID_ARGUMENT, message::tensor);
                assertEquals("not a tensor frame: its type id is 0x1, and a tensor's is 0xffff0001", e.getMessage());
            }
        }
    }

    @Test
    void aSlotThatIsOpenWhileTheSenderIsClosedSendsAllTheSame() throws Exception {
        try (Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(4096))) {
            TensorSlot slot = pair.sender().tryReserveTensor(ElementType.UINT8, 3);
            slot.data().copyFrom(MemorySegment.ofArray("end".getBytes()));
            pair.sender().close();
            slot.commit(9);
            try (Message message = pair.receiver().recv()) {
                assertEquals("end", new String(message.tensor().data().toArray(ValueLayout.JAVA_BYTE)));
                assertEquals(9, message.tag());
            }
            assertThrows(ClosedException.class, () -> pair.receiver().tryRecv());
        }
    }
}
