package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Map;
import org.junit.jupiter.api.Test;

/** With {@code -Dramway.unguarded=true}, in a process of its own: the same bytes, lengths and lives as without. */
class UnguardedTest {
    /** In that process. */
    static void ring(Peer.Inside me, String[] args) throws Exception {
        try (Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(4096))) {
            // Over the ring's end, several times.
            for (int i = 0; i < 1000; i++) {
                byte[] tail = {(byte) i, 2, 3};
                Slot slot = pair.sender().reserve(20);
                slot.putByte(0, (byte) i);
                slot.putShort(1, (short) i);
                slot.putInt(3, i);
                slot.putLong(7, ~i);
                slot.put(17, tail);
                assertThrows(IndexOutOfBoundsException.class, () -> slot.putLong(13, 1));
                assertThrows(IndexOutOfBoundsException.class, () -> slot.putByte(-1, (byte) 1));
                slot.commit(7, i);
                assertThrows(IllegalStateException.class, () -> slot.putByte(0, (byte) 1));
                Message message = pair.receiver().recv();
                assertEquals((byte) i, message.getByte(0));
                assertEquals((short) i, message.getShort(1));
                assertEquals(i, message.getInt(3));
                assertEquals(~(long) i, message.getLong(7));
                assertEquals(i, message.data().get(java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED, 3));
                assertArrayEquals(tail, message.copyOf(17, 3));
                assertEquals(20, message.toByteArray().length);
                assertThrows(IndexOutOfBoundsException.class, () -> message.getLong(13));
                message.close();
                assertThrows(IllegalStateException.class, () -> message.getByte(0));
            }
        }
        me.say("done");
    }

    @Test
    void checksLengthsAndLives() {
        try (Peer peer = Peer.start("UnguardedTest.ring", Map.of("JDK_JAVA_OPTIONS", "-Dramway.unguarded=true"))) {
            assertEquals("done", peer.hear());
            peer.finish();
        }
    }
}
