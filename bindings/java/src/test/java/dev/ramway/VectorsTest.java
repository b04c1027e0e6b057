package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import dev.ramway.sys.Lock;
import dev.ramway.sys.Mapping;
import dev.ramway.sys.SysException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.zip.CRC32;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Every segment image of format/vectors, good and hostile, read by this port in this process. */
class VectorsTest {
    private static final int SEALS = RawSocket.SEAL_SEAL | RawSocket.SEAL_SHRINK | RawSocket.SEAL_GROW;

    @TestFactory
    List<DynamicTest> everyReaderOfEveryImage() throws IOException {
        List<DynamicTest> tests = new ArrayList<>();
        for (Vector vector : Vector.all()) {
            for (int i = 0; i < vector.readers().size(); i++) {
                Vector.Reader reader = vector.readers().get(i);
                tests.add(DynamicTest.dynamicTest(vector.name() + " " + i + " " + reader.as(), () -> new Play(vector, reader).run()));
            }
        }
        assertTrue(tests.size() > 400, "vectors are missing");
        return tests;
    }

    @TestFactory
    List<DynamicTest> everyReaderOfEveryTopic() throws IOException {
        List<DynamicTest> tests = new ArrayList<>();
        for (Vector vector : Vector.topics()) {
            for (Vector.Reader reader : vector.readers()) {
                tests.add(DynamicTest.dynamicTest(vector.name() + " " + reader.as() + " " + tests.size(),
                        () -> new Play(vector, reader).topic()));
            }
        }
        assertTrue(tests.size() > 150, "vectors are missing: " + tests.size());
        return tests;
    }

    /** One reader of one image. */
    private static final class Play {
        private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
        private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

        private final Vector vector;
        private final Vector.Reader reader;
        private final Path dir = Scratch.directory("vector");
        /** The image's, for what the other side does and for what is left in it. */
        private int fd = -1;
        private Runnable hangUp = () -> fail("a named ring has no socket");

        Play(Vector vector, Vector.Reader reader) {
            this.vector = vector;
            this.reader = reader;
        }

        void run() throws Exception {
            try {
                switch (vector.kind().equals("bus") ? "bus" : reader.as()) {
                    case "bus" -> bus();
                    case "region" -> region();
                    case "listener" -> listener();
                    default -> ring();
                }
            } finally {
                if (fd >= 0) {
                    dev.ramway.sys.Files.close(fd);
                }
            }
        }

        void topic() throws Exception {
            try {
                Path path = make("topic");
                Topic topic = Topic.open(path.toString());
                if (reader.as().equals("publisher")) {
                    Publisher pub = opened(topic::publisher);
                    if (pub != null) {
                        producer(pub, 1, 0);
                        pub.close();
                        leaves();
                    }
                } else {
                    subscriber(topic);
                }
                nameAfter(path);
            } finally {
                dev.ramway.sys.Files.close(fd);
            }
        }

        private void subscriber(Topic topic) throws Exception {
            switch (reader.as()) {
                case "lossy" -> topic.lossy().fromOldest();
                case "latest" -> topic.latest();
                default -> topic.label(reader.label() == null ? "" : reader.label()).durable(reader.label() != null);
            }
            Subscriber sub;
            try {
                sub = opened(topic::subscriber);
            } catch (RamwayException e) {
                // It may read the frames when it comes, or when it receives.
                assertEquals(null, reader.then(), e.getMessage());
                assertEquals("Corrupt", reader.end(), e.getMessage());
                assertEquals(ErrorKind.CORRUPT, e.kind(), e.getMessage());
                return;
            }
            if (sub == null) {
                return;
            }
            if (reader.then() != null) {
                otherSide();
            }
            if (reader.lagged() != null) {
                assertEquals(reader.lagged(), Long.toString(assertThrows(LaggedException.class, sub::tryRecv).lost()));
            }
            List<Vector.Expected> found = new ArrayList<>();
            String end = null;
            while (end == null && found.size() <= reader.messages().size()) {
                // Only a wait asks whether the publisher lives.
                try (Message m = reader.end().equals("PeerDead") ? sub.recv(Scratch.LONG) : sub.tryRecv()) {
                    if (m == null) {
                        end = "Empty";
                    } else {
                        found.add(new Vector.Expected(Integer.toUnsignedLong(m.typeId()), Long.toUnsignedString(m.tag()), m.length(),
                                crc32(m.data()), Long.toUnsignedString(m.seq()), Long.toUnsignedString(m.lost())));
                    }
                } catch (RamwayException e) {
                    end = e.kind().formatName();
                }
            }
            assertEquals(reader.messages(), found);
            assertEquals(reader.end(), end);
            if (end.equals("Corrupt")) {
                Rings.refused(ErrorKind.CORRUPT, sub::tryRecv);
            }
            sub.close();
            leaves();
        }

        private void fill() throws SysException {
            assertEquals(0, dev.ramway.sys.Files.truncate(fd, vector.size()));
            for (Vector.Run run : vector.bytes()) {
                dev.ramway.sys.Files.writeAt(fd, run.bytes(), run.at());
            }
        }

        /** Writes the image to a file of this name. */
        private Path make(String name) throws SysException {
            fd = dev.ramway.sys.Files.createNew(dev.ramway.sys.Files.AT_CWD, dir.resolve(name).toString());
            assertTrue(fd >= 0);
            fill();
            if (reader.held() != null) {
                Role role = Role.valueOf(reader.held().toUpperCase(java.util.Locale.ROOT));
                assertTrue(Lock.tryLock(fd, Facts.BYTE_IN_USE, Lock.Mode.SHARED));
                assertTrue(Lock.tryLock(fd, role.lockByte(), Lock.Mode.EXCLUSIVE));
            }
            for (long at : reader.locked()) {
                assertTrue(Lock.tryLock(fd, Facts.BYTE_IN_USE, Lock.Mode.SHARED));
                assertTrue(Lock.tryLock(fd, at, Lock.Mode.EXCLUSIVE));
            }
            return dir.resolve(name);
        }

        private interface Opening<T> {
            T open() throws Exception;
        }

        /** What opening gave, compared; null: there is nothing more to look at but the name. */
        private <T> T opened(Opening<T> opening) throws Exception {
            if (reader.open().equals("ok")) {
                return opening.open();
            }
            RamwayException e = assertThrows(RamwayException.class, opening::open);
            assertEquals(reader.open(), e.kind().formatName(), e.getMessage());
            return null;
        }

        private void nameAfter(Path path) {
            if (reader.nameAfter() != null) {
                assertEquals(reader.nameAfter(), Files.exists(path, LinkOption.NOFOLLOW_LINKS) ? "stays" : "gone");
            }
        }

        private void region() throws Exception {
            Path path = make("region");
            Region region = opened(() -> Region.open(path.toString(), Options.DEFAULT));
            if (region != null) {
                assertEquals(reader.region().length(), region.length());
                assertEquals(reader.region().crc32(), crc32(region.data()));
                region.close();
                leaves();
            }
            nameAfter(path);
        }

        private void listener() throws Exception {
            Path path = make("bell.lock");
            SegmentLink lock = opened(() -> BusListenerLock.take(path.toString(), Duration.ZERO));
            if (lock != null) {
                lock.close();
            }
            nameAfter(path);
        }

        private void ring() throws Exception {
            Path path = make("ring");
            if (reader.as().equals("consumer")) {
                Receiver rx = opened(() -> Receiver.open(path.toString(), Options.DEFAULT));
                if (rx != null) {
                    consumer(rx);
                    rx.close();
                    leaves();
                }
            } else {
                Sender tx = opened(() -> Sender.open(path.toString(), Options.DEFAULT));
                if (tx != null) {
                    producer(tx);
                    tx.close();
                    leaves();
                }
            }
            nameAfter(path);
        }

        /** A listener that sends the image as a bus's memory. */
        private void bus() throws Exception {
            fd = dev.ramway.sys.Memfd.create("ramway-vector");
            fill();
            assertEquals(0, dev.ramway.sys.Libc.fcntl(fd, 1033, SEALS));
            String path = dir.resolve("bus").toString();
            try (RawSocket listening = RawSocket.listen(path)) {
                RawSocket[] connection = new RawSocket[1];
                FutureTask<Integer> served = new FutureTask<>(() -> {
                    connection[0] = listening.accept();
                    connection[0].read(Facts.HANDSHAKE_SIZE);
                    connection[0].send(BusHandshake.encode(BusHandshake.Type.WELCOME, null, vector.size()), fd);
                    ByteBuffer message = ByteBuffer.wrap(connection[0].read(Facts.HANDSHAKE_SIZE)).order(ByteOrder.LITTLE_ENDIAN);
                    return message.getInt(Facts.HANDSHAKE_OFF_STATUS);
                });
                Thread.ofPlatform().start(served);
                Bus bus = opened(() -> Bus.connect(path));
                int status = served.get();
                try (RawSocket peer = connection[0]) {
                    hangUp = peer::close;
                    if (bus == null) {
                        assertEquals(reader.open(), ErrorKind.of(status).formatName());
                        return;
                    }
                    assertEquals(0, status);
                    if (reader.as().equals("consumer")) {
                        consumer(bus.receiver());
                    } else {
                        producer(bus.sender());
                    }
                    bus.close();
                    leaves();
                }
            }
        }

        private void attached(RingEnd end) throws SysException {
            Vector.Attached want = reader.attached();
            if (want != null) {
                assertEquals(want, new Vector.Attached(Integer.toUnsignedLong(end.epoch()), Integer.toUnsignedLong(end.peerEpoch()),
                        end.capacity(), end.maxMessageLength()));
            }
            if (reader.then() != null && reader.then().when().equals("paused")) {
                otherSide();
            }
        }

        /** What the other side does. */
        private void otherSide() throws SysException {
            int page = Mapping.pageSize();
            for (Vector.Run run : reader.then().bytes()) {
                int size = run.bytes().length;
                if (size != 4 && size != 8 || run.at() % size != 0) {
                    dev.ramway.sys.Files.writeAt(fd, run.bytes(), run.at());
                    continue;
                }
                MemorySegment memory = Mapping.map(fd, run.at() / page * page, page, true);
                ByteBuffer bytes = ByteBuffer.wrap(run.bytes()).order(ByteOrder.LITTLE_ENDIAN);
                if (size == 8) {
                    LONG.setVolatile(memory, run.at() % page, bytes.getLong());
                } else {
                    INT.setVolatile(memory, run.at() % page, bytes.getInt());
                }
                Mapping.unmap(memory);
            }
            if (reader.then().hangUp()) {
                hangUp.run();
            }
        }

        private void consumer(Receiver rx) throws Exception {
            attached(rx);
            FutureTask<Void> poked = new FutureTask<>(() -> {
                Thread.sleep(50);
                otherSide();
                return null;
            });
            if (reader.then() != null && reader.then().when().equals("waiting")) {
                Thread.ofPlatform().start(poked);
            } else {
                poked.cancel(false);
            }
            // Nothing more to come is waited for longer than an ending takes that is none here.
            Duration waitMax = reader.end().equals("TimedOut") ? Duration.ofMillis(250) : Scratch.LONG;
            List<Vector.Expected> found = new ArrayList<>();
            String end = null;
            while (end == null && found.size() <= reader.messages().size()) {
                try (Message m = rx.recv(waitMax)) {
                    found.add(new Vector.Expected(Integer.toUnsignedLong(m.typeId()), Long.toUnsignedString(m.tag()), m.length(),
                            crc32(m.data())));
                } catch (RamwayException e) {
                    end = e.kind().formatName();
                }
            }
            assertEquals(reader.messages(), found);
            assertEquals(reader.end(), end);
            if (!poked.isCancelled()) {
                poked.get();
            }
            if (reader.end().equals("Corrupt")) {
                Rings.refused(ErrorKind.CORRUPT, rx::tryRecv);
            }
        }

        private void producer(Sender tx) throws Exception {
            producer(tx, 0, -1);
        }

        /** A tag below 0: the sum of what is sent, in the upper half. */
        private void producer(SendingEnd tx, int typeId, long tag) throws Exception {
            attached(tx);
            if (reader.last() != null) {
                assertEquals(reader.last(), tx.lastTag().isPresent() ? Long.toUnsignedString(tx.lastTag().getAsLong()) : "none");
            }
            byte[] payload = new byte[reader.send()];
            for (int i = 0; i < payload.length; i++) {
                payload[i] = (byte) i;
            }
            String end;
            try {
                end = tx.trySend(typeId, tag < 0 ? crc32(MemorySegment.ofArray(payload)) << 32 : tag, payload) ? "sent" : "Full";
            } catch (RamwayException e) {
                end = e.kind().formatName();
            }
            assertEquals(reader.end(), end);
            if (end.equals("Corrupt")) {
                Rings.refused(ErrorKind.CORRUPT, () -> tx.trySend(0, new byte[0]));
            }
        }

        private static long crc32(MemorySegment bytes) {
            CRC32 sum = new CRC32();
            byte[] piece = new byte[1 << 16];
            for (long at = 0; at < bytes.byteSize(); at += piece.length) {
                int n = (int) Math.min(piece.length, bytes.byteSize() - at);
                MemorySegment.copy(bytes, ValueLayout.JAVA_BYTE, at, piece, 0, n);
                sum.update(piece, 0, n);
            }
            return sum.getValue();
        }

        /** Compares the bytes that an orderly close left in the file. */
        private void leaves() throws SysException {
            for (Vector.Run run : reader.leaves()) {
                byte[] found = new byte[run.bytes().length];
                assertEquals(found.length, dev.ramway.sys.Files.readAt(fd, found, found.length, run.at()));
                for (int i = 0; run.mask() != null && i < found.length; i++) {
                    found[i] = (byte) (found[i] & run.mask()[i] | run.bytes()[i] & ~run.mask()[i]);
                }
                assertArrayEquals(run.bytes(), found, () -> "at 0x" + Long.toHexString(run.at()));
            }
        }
    }
}
