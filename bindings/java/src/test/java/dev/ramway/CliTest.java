package dev.ramway;

import static dev.ramway.BusTest.LONG;
import static dev.ramway.BusTest.assertKind;
import static dev.ramway.BusTest.names;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The Rust side's {@code ramway} command reads what Java makes, keeps its hands off what Java uses, and cleans up after it; and
 * Java does the same with what Rust makes. RAMWAY_CLI says where the command is.
 */
@Timeout(120)
class CliTest {
    private static final String COMMAND = System.getenv().getOrDefault("RAMWAY_CLI", "");

    @BeforeAll
    static void thereIsACommand() {
        Assumptions.assumeFalse(COMMAND.isEmpty(), "RAMWAY_CLI does not say where the ramway command is");
    }

    private static String run(Path directory, String input, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(COMMAND));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().put("RAMWAY_DIR", directory.toString());
        Process process = builder.start();
        try (var in = process.getOutputStream()) {
            in.write(input.getBytes());
        }
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), () -> command + ": " + said);
        // As it is written for people, with spaces; what is looked for has none.
        return said.replaceAll("\\s", "");
    }

    private static void assertSays(String said, String part) {
        assertTrue(said.contains(part), () -> said + " does not say " + part);
    }

    /** Takes a ring and waits to be killed. */
    static void holder(Peer.Inside me, String[] args) {
        Receiver rx = Receiver.create(args[0], Options.DEFAULT.withCapacity(4096));
        me.say("ready " + rx.capacity());
        me.hear();
    }

    @Test
    void theCommandReadsAndCleansWhatJavaMade() throws Exception {
        Path directory = Scratch.directory("cli");
        Sender tx = Sender.create(directory.resolve("busy").toString(), Options.DEFAULT.withCapacity(4096).withAlign(64));
        assertTrue(tx.trySend(7, 42, "hello".getBytes()));
        Listener bell = Listener.bind(directory.resolve("bell").toString());
        try (Peer dead = Peer.start("CliTest.holder", directory.resolve("dead").toString())) {
            dead.expect("ready 4096");
            dead.kill();
        }
        String listed = run(directory, "", "ls", "--json");
        assertSays(listed, "\"name\":\"bell.lock\"");
        for (String kind : new String[] {"listener", "ring"}) {
            assertSays(listed, "\"kind\":\"" + kind + "\"");
        }
        assertSays(listed, "\"state\":\"stale\"");
        String inspected = run(directory, "", "inspect", "--json", directory.resolve("busy").toString());
        for (String part : new String[] {"\"capacity\":4096", "\"align\":64", "\"undelivered_messages\":1", "\"last_tag\":42",
            "\"tail\":112", "\"role\":\"sender\""}) {
            assertSays(inspected, part);
        }
        run(directory, "", "clean", "--undelivered");
        assertEquals(List.of("bell", "bell.lock", "busy"), names(directory));
        bell.close();
        tx.close();
        assertEquals(List.of("busy"), names(directory), "undelivered stays");
        run(directory, "", "clean");
        assertEquals(List.of("busy"), names(directory), "until it is told to take it");
        run(directory, "", "clean", "--undelivered");
        assertEquals(List.of(), names(directory));
    }

    @Test
    void theCommandSeesABusOfJava() throws Exception {
        Path directory = Scratch.directory("cli-bus");
        try (Listener listener = Listener.bind(directory.resolve("socket").toString())) {
            CompletableFuture<Bus> connected = BusTest.async(() -> Bus.connect(listener.path()));
            try (Bus ours = listener.accept(LONG); Bus theirs = connected.get()) {
                assertTrue(ours.peerAlive() && theirs.peerAlive());
                String listed = run(directory, "", "ls", "--json");
                String buses = listed.substring(listed.indexOf("\"buses\""));
                assertSays(buses, Long.toString(ProcessHandle.current().pid()));
                assertSays(buses, "socket");
            }
        }
    }

    @Test
    void javaOpensWhatTheCommandMade() throws Exception {
        Path directory = Scratch.directory("cli-made");
        String name = directory.resolve("ring").toString();
        run(directory, "one\ntwo\n", "send", "--lines", "--type-id", "9", "--capacity", "64K", "ring");
        RamwayException e = assertKind(ErrorKind.ALREADY_EXISTS, () -> Receiver.create(name).close());
        assertTrue(e.getMessage().contains("2 undelivered messages (8 bytes)"), e.getMessage());
        try (Receiver rx = Receiver.open(name, Options.DEFAULT.withCapacity(1 << 16))) {
            for (String expected : new String[] {"one\n", "two\n"}) {
                try (Message message = rx.recv(LONG)) {
                    assertEquals(9, message.typeId());
                    assertEquals(expected, new String(message.toByteArray()));
                }
            }
            assertThrows(ClosedException.class, () -> rx.recv(LONG));
        }
        assertEquals(List.of(), names(directory));
    }
}
