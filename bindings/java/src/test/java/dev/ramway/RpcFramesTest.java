package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

/** The bytes of frames, against docs/ABI.md, section 20, whose numbers stand here by hand. */
class RpcFramesTest {
    private static final byte[] BODY = "body".getBytes(StandardCharsets.UTF_8);

    private interface Use<T> {
        T of(Message message);
    }

    /** What a frame is made of that a ring has carried. */
    private static <T> T through(int typeId, long id, byte[] header, byte[] meta, byte[] body, Use<T> use) throws Exception {
        try (Ring.Pair pair = Ring.pair()) {
            pair.sender().putNow(typeId, id, header, meta, body);
            try (Message message = pair.receiver().recv()) {
                return use.of(message);
            }
        }
    }

    private static void corrupt(int typeId, byte[] payload, boolean ofClient) {
        RamwayException e = assertThrows(RamwayException.class, () -> through(typeId, 1, null, RpcFrames.NONE, payload,
                message -> ofClient ? RpcFrames.fromClient(message) : RpcFrames.fromServer(message)));
        assertEquals(ErrorKind.CORRUPT, e.kind());
    }

    private static byte[] hex(String text) {
        return HexFormat.of().parseHex(text.replace(" ", ""));
    }

    @Test
    void aCallIsTheseBytes() throws Exception {
        byte[] meta = {1, 2, 3};
        byte[] found = through(0xFFFF0010, 7, RpcFrames.callHeader(500, 3, 0x01020304, 16), meta, BODY, Message::toByteArray);
        assertArrayEquals(hex("f4010000 03000000 04030201 10000000  01020300000000000000000000000000  626f6479"), found);
        RpcFrames.Call call = through(0xFFFF0010, 7, RpcFrames.callHeader(500, 3, 0x01020304, 16), meta, BODY, message -> {
            RpcFrames.Call each = (RpcFrames.Call) RpcFrames.fromClient(message);
            assertArrayEquals(meta, each.meta(message));
            assertArrayEquals(BODY, each.body(message));
            return each;
        });
        assertEquals(new RpcFrames.Call(7, 500, 0x01020304, 16, 3), call);
    }

    @Test
    void aReplyIsTheseBytes() throws Exception {
        byte[] found = through(0xFFFF0011, 7, RpcFrames.replyHeader(RpcStatus.APPLICATION, false, -1, 0), RpcFrames.NONE, BODY,
                Message::toByteArray);
        assertArrayEquals(hex("01000000 00000000 ffffffff 00000000 626f6479"), found);
        RpcFrames.Reply reply = through(0xFFFF0011, 7, RpcFrames.replyHeader(RpcStatus.OK, true, 0, 0), RpcFrames.NONE, BODY,
                RpcFrames::fromServer);
        assertEquals(true, reply.element());
        assertArrayEquals(BODY, reply.body());
    }

    @Test
    void whatNoPeerSendsIsCorrupt() {
        for (int length : new int[] {0, 1, 15}) {
            corrupt(0xFFFF0010, new byte[length], true);
            corrupt(0xFFFF0011, new byte[length], false);
        }
        corrupt(0xFFFF0010, hex("00000000 01000000 01000000 00000000 00"), true);
        corrupt(0xFFFF0010, hex("00000000 ffffffff 01000000 00000000"), true);
        corrupt(0xFFFF0010, hex("00000000 f1ffffff 01000000 00000000"), true);
        corrupt(0xFFFF0011, new byte[16], true);
        corrupt(0xFFFF0012, new byte[1], true);
        corrupt(0xFFFF0013, new byte[4], true);
        corrupt(0xFFFF0013, new byte[8], true);
        corrupt(7, new byte[16], true);
        corrupt(0xFFFF0010, new byte[16], false);
        corrupt(0xFFFF0011, hex("09000000 00000000 00000000 00000000"), false);
        corrupt(0xFFFF0011, hex("00000000 02000000 00000000 00000000"), false);
        corrupt(0xFFFF0011, hex("04000000 01000000 00000000 00000000"), false);
        corrupt(0xFFFF0011, hex("02000000 00000000 01000000 00000000"), false);
        corrupt(0xFFFF0011, hex("00000000 00000000 00000000 01000000"), false);
    }

    @Test
    void whatIsLeftIsRoundedUp() {
        assertEquals(1, RpcFrames.timeoutMicros(-5));
        assertEquals(1, RpcFrames.timeoutMicros(0));
        assertEquals(1, RpcFrames.timeoutMicros(1));
        assertEquals(1, RpcFrames.timeoutMicros(1000));
        assertEquals(2, RpcFrames.timeoutMicros(1001));
        assertEquals(-1, RpcFrames.timeoutMicros(0xFFFF_FFFFL * 1000));
        assertEquals(0, RpcFrames.timeoutMicros(0xFFFF_FFFFL * 1000 + 1));
        assertEquals(0, RpcFrames.timeoutMicros(RingEnd.FOREVER));
    }

    @Test
    void aNameHasItsNumber() {
        assertEquals(0x811C9DC5, RpcClient.methodId(""));
        assertEquals(0xBADEBBDC, RpcClient.methodId("Store.Get"));
        // FNV-1a gives FFFFEEB3, which is Ramway's own.
        assertEquals(61107, RpcClient.methodId("method 68469"));
    }

    @Test
    void aStatusHasItsNumber() {
        assertEquals(RpcStatus.HANDLER_FAILED, RpcStatus.of(8));
        assertNull(RpcStatus.of(9));
        assertNull(RpcStatus.of(-1));
        for (RpcStatus each : RpcStatus.values()) {
            assertEquals(each, RpcStatus.of(each.number()));
        }
        assertEquals("NoSuchMethod", RpcStatus.NO_SUCH_METHOD.formatName());
    }
}
