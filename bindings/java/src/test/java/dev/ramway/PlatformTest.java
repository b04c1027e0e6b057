package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Where Ramway cannot work, each way in says so, and why. */
class PlatformTest {
    /** Everything that a program can begin with. */
    private static final List<Executable> BEGINNINGS = List.of(() -> Sender.create("ring"), () -> Receiver.openOrCreate("ring"),
            () -> Ring.pair(Options.DEFAULT), () -> Region.create("region", 1, Options.DEFAULT),
            () -> Region.openReadOnly("region", Options.DEFAULT), () -> Listener.bind("bell", ListenOptions.DEFAULT),
            () -> Bus.connect("bell", ConnectOptions.DEFAULT.withTimeout(Duration.ZERO)), () -> Bus.listen("bell", ListenOptions.DEFAULT));

    static void begin(Peer.Inside me, String[] args) {
        for (Executable beginning : BEGINNINGS) {
            me.say(Rings.refused(ErrorKind.UNSUPPORTED, beginning).getMessage());
        }
    }

    private static void expect(String option, String text) {
        try (Peer peer = Peer.start("PlatformTest.begin", Map.of(Peer.ACCESS, option))) {
            for (int i = 0; i < BEGINNINGS.size(); i++) {
                String said = peer.hear();
                assertTrue(said.contains(text), said);
            }
            peer.finish();
        }
    }

    @Test
    void onAnotherMachine() {
        expect("-Dos.arch=sparcv9", "Ramway for Java runs on Linux on x86-64 and aarch64, this is Linux on sparcv9");
    }

    @Test
    void withoutPermissionToCallLibc() {
        // Before 24, to permit it to one module is to refuse it to the others.
        boolean asked = Runtime.version().feature() >= 24;
        expect(asked ? "--illegal-native-access=deny" : "--enable-native-access=java.base",
                "start it with --enable-native-access=dev.ramway");
    }

    @Test
    void hereItIsSupported() {
        Errors.checkPlatform();
        assertEquals("Linux", System.getProperty("os.name"));
    }
}
