package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ramway.sys.Files;
import dev.ramway.sys.Libc;
import dev.ramway.sys.Sockets;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The messages of a handshake, without a listener. */
class HandshakeTest {
    static final byte[] HELLO = BusHandshake.encode(BusHandshake.Type.HELLO, null, 0);

    /** HELLO with one byte changed. */
    static byte[] changed(int at, int to) {
        byte[] message = HELLO.clone();
        message[at] = (byte) to;
        return message;
    }

    private static ErrorKind kindOf(byte[] message, BusHandshake.Type expected) {
        try {
            BusHandshake.decode(message, expected);
            return null;
        } catch (RamwayException e) {
            return e.kind();
        }
    }

    @Test
    void helloIsTheExampleOfTheFormatsPage() throws IOException {
        String page = java.nio.file.Files.readString(Repository.file("docs/ABI.md"));
        String after = page.substring(page.indexOf("```hex hello\n") + "```hex hello\n".length());
        String rows = after.substring(0, after.indexOf("```"));
        String hex = rows.lines().map(row -> row.substring(2).replace(" ", "")).collect(Collectors.joining());
        assertArrayEquals(HexFormat.of().parseHex(hex), HELLO);
    }

    @ParameterizedTest
    @EnumSource(names = {"HELLO", "WELCOME", "ACK"})
    void messagesComeOutAsTheyWentIn(BusHandshake.Type type) {
        byte[] message = BusHandshake.encode(type, ErrorKind.PEER_DEAD, 0x1122334455667788L);
        assertEquals(new BusHandshake.Content(11, 0x1122334455667788L), BusHandshake.decode(message, type));
    }

    @ParameterizedTest
    @CsvSource({"magic,0,114,ABI_MISMATCH", "byte order,8,10,ABI_MISMATCH", "major version,12,2,ABI_MISMATCH", "minor version,14,9,",
        "required feature,24,1,ABI_MISMATCH", "optional feature,28,1,", "type,16,9,CORRUPT", "another type,16,4,CORRUPT",
        "reserved,63,1,", "a refusal where nobody asked,16,3,CORRUPT"})
    void whatIsNotUnderstoodIsRefusedByItsError(String what, int at, int to, ErrorKind kind) {
        assertEquals(kind, kindOf(changed(at, to), BusHandshake.Type.HELLO), what);
    }

    @ParameterizedTest
    @CsvSource({"15,NO_SPACE", "14,PERMISSION_DENIED", "0,OS", "99,OS", "-1,OS"})
    void aRefusalIsTheErrorThatItCarriesInWhateverVersion(int status, ErrorKind kind) {
        byte[] message = BusHandshake.encode(BusHandshake.Type.REFUSE, null, 0);
        for (int i = 0; i < 4; i++) {
            message[0x14 + i] = (byte) (status >> 8 * i);
        }
        message[0x0C] = 7;
        message[0x18] = (byte) 0xFF;
        RamwayException e = assertThrows(RamwayException.class, () -> BusHandshake.decode(message, BusHandshake.Type.WELCOME));
        assertEquals(kind, e.kind());
        assertTrue(e.getMessage().contains("the listener refused"), e.getMessage());
    }

    @Test
    void anInboxTakesAMessageInPiecesAndNotAByteMore() {
        RawSocket[] pair = RawSocket.pair();
        RawSocket b = pair[1];
        try (RawSocket a = pair[0]) {
            byte[] message = BusHandshake.encode(BusHandshake.Type.ACK, null, 0);
            BusInbox inbox = new BusInbox();
            for (int i = 0; i < message.length; i++) {
                assertEquals(BusInbox.Progress.PARTIAL, inbox.fill(b.fd()), "after " + i);
                a.send(new byte[] {message[i]});
            }
            a.send(new byte[] {1, 2, 3});
            assertEquals(BusInbox.Progress.WHOLE, inbox.fill(b.fd()));
            assertEquals(0, inbox.message(BusHandshake.Type.ACK, 0).status());
            assertArrayEquals(new byte[] {1, 2, 3}, b.read(3));
            b.close();
            RamwayException e = assertThrows(PeerDeadException.class,
                    () -> BusHandshake.send(a.fd(), BusHandshake.Type.HELLO, null, 0, -1));
            assertEquals("the other side hung up before HELLO", e.getMessage());
            assertEquals(BusInbox.Progress.HUNG_UP, new BusInbox().fill(a.fd()));
        }
    }

    @Test
    void descriptorsAreCountedAndNoneStaysOpen() {
        int file = RawSocket.open("/");
        int before = RawSocket.openDescriptors();
        for (int n = 0; n < 12; n++) {
            RawSocket[] pair = RawSocket.pair();
            try (RawSocket a = pair[0]; RawSocket b = pair[1]) {
                int[] many = new int[n];
                Arrays.fill(many, file);
                a.send(BusHandshake.encode(BusHandshake.Type.WELCOME, null, 4096), many);
                BusInbox inbox = new BusInbox();
                assertEquals(BusInbox.Progress.WHOLE, inbox.fill(b.fd()));
                if (n == 1) {
                    assertEquals(4096, inbox.message(BusHandshake.Type.WELCOME, 1).size());
                    int got = inbox.takeDescriptor();
                    assertEquals(1, Libc.fcntl(got, 1, 0), "close-on-exec");
                    Files.close(got);
                } else {
                    RamwayException e = assertThrows(RamwayException.class, () -> inbox.message(BusHandshake.Type.WELCOME, 1));
                    assertEquals(ErrorKind.CORRUPT, e.kind(), e.getMessage());
                }
                inbox.discard();
            }
        }
        assertEquals(before, RawSocket.openDescriptors());
        Files.close(file);
    }

    @Test
    void onlyUsersThatAreKnownTakePart() {
        int own = Libc.geteuid();
        assertDoesNotThrow(() -> check(own, Set.of()));
        assertDoesNotThrow(() -> check(own + 1, Set.of(own + 2, own + 1)));
        for (int uid : new int[] {own + 1, Sockets.overflowUid(), -1}) {
            RamwayException e = assertThrows(RamwayException.class, () -> check(uid, Set.of(Sockets.overflowUid(), -1)));
            assertEquals(ErrorKind.PERMISSION_DENIED, e.kind());
        }
    }

    private static void check(int uid, Set<Integer> others) {
        BusHandshake.checkPeer(new Sockets.Credentials(1, uid), Libc.geteuid(), others, "allowUids");
    }

    @Test
    void noBytesMakeTheDecoderStumble() {
        Random random = new Random(7);
        for (int round = 0; round < 20_000; round++) {
            byte[] message = HELLO.clone();
            for (int i = random.nextInt(6); i > 0; i--) {
                message[random.nextInt(40)] = (byte) random.nextInt();
            }
            for (BusHandshake.Type type : BusHandshake.Type.values()) {
                if (kindOf(message, type) == null) {
                    assertArrayEquals(Arrays.copyOf(HELLO, 12), Arrays.copyOf(message, 12), "magic and byte order");
                }
            }
        }
    }

    /** Files of the repository that this package is developed in. */
    static final class Repository {
        private Repository() {}

        static Path file(String path) {
            // Tests run in the package's folder.
            return Path.of("../..").resolve(path).toAbsolutePath().normalize();
        }
    }
}
