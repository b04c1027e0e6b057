package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ramway.sys.Mapping;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Topics of several processes: what SIGKILL leaves, what a hostile side can do, and Rust at the other end. */
@Timeout(180)
class TopicLifeTest {
    private static final String COMMAND = System.getenv().getOrDefault("RAMWAY_CLI", "");

    private final Path path = Scratch.directory("topics").resolve("topic");

    private Topic create() {
        return Topic.create(path.toString()).capacity(16 << 10);
    }

    private Topic open() {
        return open(path.toString());
    }

    private static Topic open(String path) {
        return Topic.open(path).timeout(Duration.ofSeconds(20));
    }

    private static Subscriber subscribe(Topic topic, String policy) {
        return switch (policy) {
            case "durable" -> topic.label("durable").durable(true).subscriber();
            case "readOnly" -> topic.lossy().readOnly(true).subscriber();
            default -> topic.policy(Policy.valueOf(policy)).subscriber();
        };
    }

    /** Subscribes and takes a message, which it does not give back, for each line that it hears. */
    static void subscriber(Peer.Inside me, String[] args) throws Exception {
        Subscriber sub = subscribe(open(args[0]), args[1]);
        me.say("ready");
        while (me.hear() != null) {
            me.say(Long.toString(sub.recv().seq()));
        }
    }

    private Peer subscriber(String policy) {
        Peer peer = Peer.start("TopicLifeTest.subscriber", path.toString(), policy);
        peer.expect("ready");
        return peer;
    }

    /** Publishes as fast as it can, numbers of its own messages, some of them in batches. */
    static void publisher(Peer.Inside me, String[] args) throws Exception {
        Publisher pub = open(args[0]).publisher();
        pub.waitForSubscribers(Integer.parseInt(args[1]));
        me.say(Long.toString(pub.seq()));
        while (true) {
            List<byte[]> batch = new ArrayList<>();
            for (int i = 0; i < 1 + pub.seq() % 5; i++) {
                batch.add(payload(pub.seq() + 1 + i));
            }
            pub.sendBatch(7, 0, batch);
        }
    }

    /** A length and bytes that follow from the number. */
    private static byte[] payload(long seq) {
        byte[] bytes = new byte[8 + (int) (seq * 37 % 900)];
        java.util.Arrays.fill(bytes, (byte) seq);
        MemorySegment.ofArray(bytes).set(ValueLayout.JAVA_LONG_UNALIGNED, 0, seq);
        return bytes;
    }

    /** Whether each byte is what {@link #payload} has. */
    private static void check(Message m) {
        byte[] found = m.toByteArray();
        assertTrue(java.util.Arrays.equals(payload(m.seq()), found), () -> "message " + m.seq() + " is torn");
    }

    @ParameterizedTest
    @ValueSource(strings = {"send", "trySend", "callback"})
    void aKilledSubscriberFreesThePublisher(String way) throws Exception {
        try (Publisher pub = create().publisher(); Peer slow = subscriber("RELIABLE"); Peer other = subscriber("RELIABLE")) {
            while (pub.trySend(7, new byte[100])) {
                assertTrue(pub.seq() < 1000);
            }
            slow.tell("one");
            slow.expect("1");
            slow.kill();
            other.kill();
            long start = System.nanoTime();
            boolean sent = false;
            while (!sent) {
                switch (way) {
                    case "send" -> {
                        pub.send(7, 0, new byte[100], Duration.ofSeconds(20));
                        sent = true;
                    }
                    case "trySend" -> {
                        sent = pub.trySend(7, new byte[100]);
                        Thread.sleep(1);
                    }
                    default -> {
                        CountDownLatch room = new CountDownLatch(1);
                        pub.whenWritable(100, room::countDown);
                        assertTrue(room.await(20, TimeUnit.SECONDS));
                        sent = pub.trySend(7, new byte[100]);
                    }
                }
                assertTrue(System.nanoTime() - start < 20_000_000_000L, "it was not freed");
            }
            assertEquals(List.of(), pub.subscribers());
            pub.send(7, new byte[4000]);
        }
    }

    @Test
    void everyPolicyIsToldThatThePublisherDied() throws Exception {
        String[] policies = {"RELIABLE", "LOSSY", "LATEST", "readOnly"};
        Subscriber first = create().subscriber();
        long[] next = new long[policies.length];
        List<Subscriber> subs = new ArrayList<>(List.of(first));
        for (int i = 1; i < policies.length; i++) {
            subs.add(subscribe(open(), policies[i]));
        }
        for (int life = 0; life < 4; life++) {
            try (Peer publisher = Peer.start("TopicLifeTest.publisher", path.toString(), "1")) {
                long before = Long.parseLong(publisher.hear());
                assertTrue(before >= next[0], before + " after " + next[0]);
                long end = System.nanoTime() + 150_000_000;
                for (boolean killed = false; !killed;) {
                    // On a busy machine it may have published little by then.
                    killed = System.nanoTime() > end && next[0] > before + 30;
                    if (killed) {
                        publisher.kill();
                    }
                    for (int i = 0; i < policies.length; i++) {
                        int n = killed ? Integer.MAX_VALUE : 20;
                        try {
                            for (; n > 0; n--) {
                                // While it lives it may wait for the first of them, which is not this one then.
                                try (Message m = killed ? subs.get(i).recv(Duration.ofSeconds(20)) : subs.get(i).tryRecv()) {
                                    if (m == null) {
                                        break;
                                    }
                                    assertEquals(next[i] + 1 + m.lost(), m.seq());
                                    next[i] = m.seq();
                                    check(m);
                                }
                            }
                        } catch (PeerDeadException dead) {
                            assertTrue(killed);
                        }
                    }
                }
            }
            assertEquals(0, first.lost());
            // They agree about what was published last.
            for (long each : next) {
                assertEquals(next[0], each);
            }
        }
        assertTrue(next[0] > 100);
        for (Subscriber each : subs) {
            each.close();
        }
        assertTrue(Files.notExists(path));
    }

    @Test
    void aDurableOneThatIsKilledGetsItsMessageAgain() throws Exception {
        try (Publisher pub = create().publisher()) {
            for (int life = 1; life <= 3; life++) {
                try (Peer peer = subscriber("durable")) {
                    pub.send(7, new byte[8]);
                    peer.tell("go on");
                    // It was never released.
                    peer.expect("1");
                    refused(ErrorKind.BUSY, () -> Topic.open(path.toString()).label("durable").subscriber());
                    peer.kill();
                }
            }
            try (Subscriber sub = subscribe(open(), "durable")) {
                assertEquals(3, sub.skipToNewest() + 1);
                sub.recv().close();
                sub.unsubscribe();
            }
            assertEquals(List.of(), pub.subscribers());
        }
    }

    @Test
    void aStoppedOneIsEjected() throws Exception {
        try (Publisher pub = create().ejectAfter(Duration.ofMillis(50)).publisher(); Subscriber sub = open().subscriber();
                Peer peer = subscriber("RELIABLE")) {
            for (int i = 0; i < 1000; i++) {
                pub.send(7, 0, payload(pub.seq() + 1), Duration.ofSeconds(20));
                // This one is never slow.
                try (Message m = sub.recv()) {
                    assertEquals(i + 1, m.seq());
                }
            }
            assertEquals(1, pub.subscribers().stream().filter(SubscriberInfo::ejected).count());
            peer.kill();
        }
    }

    /** The words of the file, writable: what a process of the same user can do. */
    private MemorySegment scribble() throws Exception {
        int fd = dev.ramway.sys.Files.openAt(dev.ramway.sys.Files.AT_CWD, path.toString(), true);
        assertTrue(fd >= 0);
        MemorySegment all = Mapping.map(fd, 0, Files.size(path), true);
        dev.ramway.sys.Files.close(fd);
        return all;
    }

    private static final long[] NUMBERS = {0, 1, 31, 32, 64, 4096, 1L << 31, 1L << 32, Long.MIN_VALUE, Long.MAX_VALUE, -32, -1};

    @ParameterizedTest
    @EnumSource(Policy.class)
    void aHostilePublisherIsNeverMoreThanCorrupt(Policy policy) throws Exception {
        Random random = new Random(1);
        int corrupt = 0;
        for (int round = 0; round < 300; round++) {
            Files.deleteIfExists(path);
            try (Publisher pub = create().slots(4).mayEject(round % 2 == 0).publisher();
                    Subscriber sub = open().policy(policy).subscriber()) {
                for (int i = 0; i < 20; i++) {
                    pub.send(7, payload(i));
                }
                MemorySegment file = scribble();
                long data = file.get(ValueLayout.JAVA_LONG, Facts.BLOCK0);
                for (int i = 0; i < 4; i++) {
                    long at = switch (random.nextInt(4)) {
                        case 0 -> Facts.BLOCK0 + Facts.OFF_TOPIC_TAIL + 8 * random.nextInt(2);
                        case 1 -> Facts.BLOCK0 + Facts.OFF_TOPIC_CLAIM;
                        case 2 -> Facts.BLOCK0 + Facts.OFF_TOPIC_STARTS + 8 * random.nextInt(16);
                        default -> data + 8 * random.nextInt(300);
                    };
                    long value = random.nextBoolean() ? NUMBERS[random.nextInt(NUMBERS.length)]
                            : file.get(ValueLayout.JAVA_LONG, at) + 32 * random.nextInt(-600, 600);
                    file.set(ValueLayout.JAVA_LONG, at, value);
                    try {
                        for (int n = 0; n < 30; n++) {
                            try (Batch batch = n % 2 == 0 ? sub.tryRecvBatch(3) : null; Message m = n % 2 == 1 ? sub.tryRecv() : null) {
                                if (batch != null) {
                                    batch.forEach(Message::toByteArray);
                                }
                                if (m != null) {
                                    m.toByteArray();
                                }
                            }
                            sub.tryRecvInto(new byte[16 << 10]);
                            sub.latest(new byte[16 << 10]);
                        }
                        sub.lag();
                    } catch (RamwayException e) {
                        assertEquals(ErrorKind.CORRUPT, e.kind(), e.getMessage());
                        refused(ErrorKind.CORRUPT, sub::tryRecv);
                        corrupt++;
                        break;
                    }
                }
                Mapping.unmap(file);
            }
        }
        assertTrue(corrupt > 30, corrupt + " times");
    }

    @Test
    void aHostileSubscriberHurtsOnlyItself() throws Exception {
        Random random = new Random(2);
        for (int round = 0; round < 200; round++) {
            Files.deleteIfExists(path);
            try (Publisher pub = create().slots(4).ejectAfter(Duration.ofMillis(2)).publisher(); Subscriber honest = open().subscriber();
                    Subscriber hostile = open().subscriber()) {
                MemorySegment file = scribble();
                long slot = Facts.HEADER_SIZE + Facts.OFF_SUBS_SLOTS + Facts.SLOT_SIZE;
                assertEquals(List.of(2, Policy.RELIABLE), List.of(pub.subscribers().size(), hostile.policy()));
                for (int i = 1; i <= 60; i++) {
                    long at = i % 3 == 0 ? Facts.HEADER_SIZE + Facts.OFF_SUBS_WORD : slot + 8 * random.nextInt(16);
                    long value = random.nextBoolean() ? NUMBERS[random.nextInt(NUMBERS.length)]
                            : file.get(ValueLayout.JAVA_LONG, at) + 32 * random.nextInt(-600, 600);
                    file.set(ValueLayout.JAVA_LONG, at, value);
                    pub.send(7, 0, payload(i), Duration.ofSeconds(20));
                    try (Message m = honest.recv(Duration.ofSeconds(20))) {
                        assertEquals(i, m.seq());
                        check(m);
                    }
                    pub.subscribers();
                }
                Mapping.unmap(file);
            }
        }
    }

    // Rust at the other end.

    private Process ramway(String... arguments) throws Exception {
        Assumptions.assumeFalse(COMMAND.isEmpty(), "RAMWAY_CLI does not say where the ramway command is");
        List<String> command = new ArrayList<>(List.of(COMMAND, "--color", "never"));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    @Test
    void javaSubscribesToRust() throws Exception {
        Process pub = ramway("pub", "-q", "--lines", "--type-id", "9", "--timestamps", "--wait-for-subscribers", "2", path.toString());
        try (Subscriber sub = open().subscriber(); Subscriber lossy = open().lossy().subscriber();
                Subscriber latest = open().latest().subscriber(); Subscriber two = open().label("two").subscriber()) {
            try (var in = pub.getOutputStream()) {
                for (int i = 1; i <= 20_000; i++) {
                    in.write(("line " + i + "\n").getBytes());
                }
            }
            Thread other = Thread.ofPlatform().start(() -> {
                int n = 0;
                for (Message m : two.messages()) {
                    n++;
                    assertEquals(n, m.seq());
                }
            });
            int n = 0;
            for (Message m : sub.messages()) {
                n++;
                assertEquals(List.of((long) n, 0L, 9), List.of(m.seq(), m.lost(), m.typeId()));
                assertEquals("line " + n + "\n", new String(m.toByteArray()));
                assertTrue(m.time() > 0);
            }
            assertEquals(20_000, n);
            other.join();
            long received = 0;
            for (Message m : lossy.messages()) {
                received++;
                assertEquals("line " + m.seq() + "\n", new String(m.toByteArray()));
            }
            assertEquals(20_000, received + lossy.lost());
            assertEquals("line 20000\n", new String(latest.latest().data()));
            assertEquals(0, pub.waitFor());
        }
    }

    // Closed before the end of its block.
    @SuppressWarnings("try")
    @Test
    void rustSubscribesToJava() throws Exception {
        try (Publisher pub = create().publisher()) {
            List<Process> subs = List.of(ramway("sub", "-q", "--reliable", path.toString()),
                    ramway("sub", "-q", "--reliable", "--durable", "--label", "kept", path.toString()),
                    ramway("sub", "-q", "--lossy", "--from-oldest", path.toString()));
            List<Thread> readers = new ArrayList<>();
            long[] lines = new long[3];
            for (int i = 0; i < 3; i++) {
                int which = i;
                BufferedReader in = subs.get(i).inputReader();
                readers.add(Thread.ofVirtual().start(() -> lines[which] = in.lines().count()));
            }
            pub.waitForSubscribers(2, Duration.ofSeconds(20));
            for (int i = 1; i <= 20_000; i++) {
                pub.send(3, ("line " + i + "\n").getBytes());
            }
            pub.close();
            for (Thread each : readers) {
                each.join();
            }
            for (Process each : subs) {
                assertEquals(0, each.waitFor());
            }
            assertEquals(List.of(20_000L, 20_000L), List.of(lines[0], lines[1]));
            assertTrue(lines[2] > 0);
        }
    }

    // Closed before the end of its block.
    @SuppressWarnings("try")
    @Test
    void aKilledRustSubscriberFreesJavaAndADurableOneGoesOnInJava() throws Exception {
        try (Publisher pub = create().publisher()) {
            Process dies = ramway("sub", "-q", "--reliable", path.toString());
            Process durable = ramway("sub", "-q", "--reliable", "--durable", "--label", "kept", path.toString());
            pub.waitForSubscribers(2, Duration.ofSeconds(20));
            BufferedReader said = new BufferedReader(new InputStreamReader(durable.getInputStream()));
            pub.send(7, "first\n".getBytes());
            assertEquals("first", said.readLine());
            // Stopped, so that it takes no more; what it has given back is known.
            stop(durable);
            stop(dies);
            while (pub.trySend(7, payload(pub.seq() + 1))) {
                assertTrue(pub.seq() < 1000);
            }
            dies.destroyForcibly().waitFor();
            durable.destroyForcibly().waitFor();
            assertThrows(TimedOutException.class, () -> pub.send(7, 0, new byte[1000], Duration.ofMillis(300)));
            try (Subscriber sub = open().label("kept").durable(true).subscriber(); Message m = sub.recv()) {
                assertTrue(m.seq() <= 2, "it goes on at " + m.seq());
                m.close();
                sub.skipToNewest();
                sub.recv().close();
                pub.send(7, 0, new byte[1000], Duration.ofSeconds(20));
            }
        }
    }

    // Closed before the end of its block.
    @SuppressWarnings("try")
    @Test
    void javaEjectsRust() throws Exception {
        try (Publisher pub = create().ejectAfter(Duration.ofMillis(50)).publisher()) {
            Process sub = ramway("sub", "-q", "--reliable", "--format", "json", path.toString());
            pub.waitForSubscribers(1, Duration.ofSeconds(20));
            stop(sub);
            for (int i = 0; i < 500; i++) {
                pub.send(7, 0, payload(pub.seq() + 1), Duration.ofSeconds(20));
            }
            assertEquals(List.of(true), pub.subscribers().stream().map(SubscriberInfo::ejected).toList());
            new ProcessBuilder("kill", "-CONT", Long.toString(sub.pid())).start().waitFor();
            BufferedReader said = sub.inputReader();
            assertTrue(said.readLine().contains("\"seq\":"));
            pub.close();
            String last = said.lines().reduce((a, b) -> b).orElse("");
            assertTrue(last.contains("\"seq\":500"), last);
            assertEquals(0, sub.waitFor());
        }
    }

    private static void stop(Process process) throws Exception {
        assertEquals(0, new ProcessBuilder("kill", "-STOP", Long.toString(process.pid())).start().waitFor());
    }
}
