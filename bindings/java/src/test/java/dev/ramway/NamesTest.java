package dev.ramway;

import static dev.ramway.Rings.expectNames;
import static dev.ramway.Rings.hold;
import static dev.ramway.Rings.refused;
import static dev.ramway.Rings.says;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ramway.sys.Libc;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/**
 * Names, the directory that they stand in, and what is there that is no sound segment: a clear error from every way in, and
 * the thing untouched.
 */
class NamesTest {
    private static final int F_GETFD = 1;
    private static final int FD_CLOEXEC = 1;

    private static final List<String> BAD = List.of("", ".hidden", "..", "a b", "a.sock", "é", "a\0b", "x".repeat(81), "/",
            "/dev/shm/", "a/..", "./.", "/dev/shm/x\0y", "/dev/shm/\ud800");

    @Test
    void namesStandInTheRamwayDirectory() throws IOException {
        Path root = Scratch.directory("root").resolve("made-on-demand");
        try (Peer peer = Peer.start("NamesTest.byName", Map.of("RAMWAY_DIR", root.toString()))) {
            peer.expect("made");
            assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(root)));
            expectNames(root, "a-Valid_name.1");
            peer.finish();
        }
    }

    static void byName(Peer.Inside me, String[] args) {
        for (String bad : BAD) {
            for (OpenMode how : new OpenMode[] {OpenMode.CREATE, OpenMode.OPEN}) {
                refused(ErrorKind.INVALID_ARGUMENT, () -> Attachment.named(bad, how, Options.DEFAULT, Role.CONSUMER));
            }
        }
        for (int wait : new int[] {0, 20}) {
            Options options = Options.DEFAULT.withTimeout(Duration.ofMillis(wait));
            refused(ErrorKind.NOT_FOUND, () -> Attachment.named("absent", OpenMode.OPEN, options, Role.CONSUMER));
        }
        assertFalse(Files.exists(Path.of(SegmentName.directory())), "opening made the directory");
        Attachment.named("x".repeat(80), OpenMode.CREATE, Options.DEFAULT, Role.CONSUMER).release();
        Attachment a = Attachment.named("a-Valid_name.1", OpenMode.CREATE, Options.DEFAULT, Role.CONSUMER);
        me.say("made");
        me.hear();
        a.release();
    }

    @Test
    void thePropertyComesBeforeTheEnvironment() {
        assertEquals(Scratch.DIR.toString(), SegmentName.directory());
        assertEquals(Scratch.DIR + "/x", SegmentName.resolve("x", false).path);
    }

    @Test
    void filesArePrivateUnlessAskedFor() throws IOException {
        Path dir = Scratch.directory("modes");
        for (int mode : new int[] {0600, 0666, 0640}) {
            Path name = dir.resolve("ring");
            Attachment a = hold(name, OpenMode.CREATE, Options.DEFAULT.withMode(mode), Role.PRODUCER);
            assertEquals(mode, (int) Files.getAttribute(name, "unix:mode") & 0777);
            a.release();
        }
    }

    private record State(Object inode, Object mode, long size, String content) {
        static State of(Path path) throws IOException {
            Map<String, Object> all = Files.readAttributes(path, "unix:ino,mode,size", LinkOption.NOFOLLOW_LINKS);
            boolean regular = Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS);
            return new State(all.get("ino"), all.get("mode"), (long) all.get("size"),
                    regular ? Arrays.toString(Files.readAllBytes(path)) : "");
        }
    }

    /** Every way to come at a name: whatever is there and is no sound ring. */
    private static void expectForeign(Path name, ErrorKind kind) throws IOException {
        State before = State.of(name);
        for (OpenMode how : OpenMode.values()) {
            for (boolean discard : new boolean[] {false, true}) {
                for (Role role : Role.values()) {
                    if (discard && how != OpenMode.CREATE) {
                        continue;
                    }
                    says(refused(how == OpenMode.CREATE ? ErrorKind.ALREADY_EXISTS : kind, name, how,
                            Options.DEFAULT.withDiscard(discard), role), name);
                }
            }
        }
        assertEquals(before, State.of(name), "it was touched");
    }

    private interface Maker {
        void make(Path at) throws Exception;
    }

    private static DynamicTest foreign(String what, ErrorKind kind, Maker maker) {
        return DynamicTest.dynamicTest(what, () -> {
            Path name = Scratch.directory("foreign").resolve("thing");
            maker.make(name);
            expectForeign(name, kind);
        });
    }

    @TestFactory
    List<DynamicTest> whatIsNoRegularFile() {
        ErrorKind kind = ErrorKind.INVALID_ARGUMENT;
        return List.of(foreign("a directory", kind, Files::createDirectory),
                foreign("a dangling link", kind, at -> Files.createSymbolicLink(at, Path.of("nowhere"))),
                foreign("a link to itself", kind, at -> Files.createSymbolicLink(at, Path.of("thing"))),
                foreign("a FIFO", kind, at -> assertEquals(0, new ProcessBuilder("mkfifo", at.toString()).start().waitFor())),
                foreign("a socket", kind, at -> {
                    try (ServerSocketChannel socket = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
                        socket.bind(UnixDomainSocketAddress.of(at));
                    }
                }), foreign("a link to a good segment", kind, at -> {
                    hold(at.resolveSibling("target"), OpenMode.CREATE, Options.DEFAULT.withPersistent(true), Role.CONSUMER).release();
                    Files.createSymbolicLink(at, Path.of("target"));
                }), DynamicTest.dynamicTest("a device", () ->
                        // Opening one can do anything, so none is.
                        says(refused(kind, Path.of("/dev/null"), OpenMode.OPEN, Options.DEFAULT, Role.PRODUCER), "device")));
    }

    @TestFactory
    List<DynamicTest> regularFilesOfOthers() {
        byte[] ones = new byte[1 << 20];
        Arrays.fill(ones, (byte) 0xFF);
        return List.of(file("an empty one", new byte[0]), file("a text", "Dear diary".getBytes()), file("zeros", new byte[4096]),
                file("ones", ones), file("almost the magic", Arrays.copyOf("RAMWAY\n\n".getBytes(), 8192)),
                file("half the magic", "RAMW".getBytes()));
    }

    private static DynamicTest file(String what, byte[] content) {
        return foreign(what, ErrorKind.ABI_MISMATCH, at -> Files.write(at, content));
    }

    @TestFactory
    List<DynamicTest> cutOffAndGrownSegments() {
        return List.of(8, 64, 4095, 4096, 4097, 8192, 12_287, 12_289, 1 << 20).stream().map(size ->
                foreign(size + " bytes", ErrorKind.CORRUPT, at -> {
                    Options options = Options.DEFAULT.withCapacity(8192).withPersistent(true);
                    hold(at, OpenMode.CREATE, options, Role.PRODUCER).release();
                    try (RandomAccessFile file = new RandomAccessFile(at.toFile(), "rw")) {
                        file.setLength(size);
                    }
                })).toList();
    }

    @Test
    void aSegmentOfAnotherKind() throws IOException {
        Path name = Scratch.directory("kind").resolve("thing");
        try (Region region = Region.create(name.toString(), 100, Options.DEFAULT)) {
            expectForeign(name, ErrorKind.INVALID_ARGUMENT);
            says(refused(ErrorKind.INVALID_ARGUMENT, name, OpenMode.OPEN, Options.DEFAULT, Role.PRODUCER), "this is a region, not a ring");
            assertFalse(region.isClosed());
        }
        Attachment ring = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
        says(refused(ErrorKind.INVALID_ARGUMENT, () -> Region.open(name.toString(), Options.DEFAULT)), "this is a ring, not a region",
                "opening the region '" + name + "'");
        ring.release();
    }

    @Test
    void moreThanTheMachineHas() {
        Path dir = Scratch.directory("huge");
        for (long capacity : new long[] {1L << 50, 1L << 61, 1L << 62, Long.MAX_VALUE}) {
            refused(ErrorKind.NO_SPACE, dir.resolve("ring"), OpenMode.CREATE, Options.DEFAULT.withCapacity(capacity), Role.PRODUCER);
            refused(ErrorKind.NO_SPACE, () -> Region.create(dir.resolve("region").toString(), capacity, Options.DEFAULT));
            expectNames(dir);
        }
    }

    @Test
    void noDescriptorIsLeftOrInherited() throws Exception {
        Path dir = Scratch.directory("descriptors");
        Path name = dir.resolve("ring");
        Attachment a = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
        assertTrue(descriptors(dir) > 0, "there is a lock description");
        // A child that inherited one would keep the role alive.
        SegmentLink link = (SegmentLink) a.link;
        for (int fd : new int[] {link.lock, link.dir}) {
            assertEquals(FD_CLOEXEC, Libc.fcntl(fd, F_GETFD, 0));
        }
        for (int i = 0; i < 20; i++) {
            refused(ErrorKind.ALREADY_EXISTS, name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
            refused(ErrorKind.BUSY, name, OpenMode.OPEN, Options.DEFAULT, Role.PRODUCER);
            refused(ErrorKind.INVALID_ARGUMENT, name, OpenMode.OPEN, Options.DEFAULT.withCapacity(1 << 30), Role.CONSUMER);
            refused(ErrorKind.NOT_FOUND, dir.resolve("absent"), OpenMode.OPEN, Options.DEFAULT, Role.PRODUCER);
            refused(ErrorKind.NO_SPACE, dir.resolve("big"), OpenMode.CREATE, Options.DEFAULT.withCapacity(1L << 50), Role.PRODUCER);
        }
        a.release();
        assertEquals(0, descriptors(dir));
        String maps = Files.readString(Path.of("/proc/self/maps"));
        assertFalse(maps.contains(dir.toString()), maps);
    }

    private static long descriptors(Path dir) throws IOException {
        long count = 0;
        try (var all = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
            for (Path fd : all) {
                try {
                    count += Files.readSymbolicLink(fd).toString().startsWith(dir.toString()) ? 1 : 0;
                } catch (IOException e) {
                    // Closed meanwhile: the one of this listing.
                    continue;
                }
            }
        }
        return count;
    }
}
