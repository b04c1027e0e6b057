package dev.ramway;

import static dev.ramway.Rings.expectNames;
import static dev.ramway.Rings.hold;
import static dev.ramway.Rings.names;
import static dev.ramway.Rings.refused;
import static dev.ramway.Rings.says;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.ramway.sys.Libc;
import dev.ramway.sys.Placement;
import dev.ramway.sys.SysException;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where segments can be, whose directory it is, how full it may be, and what is asked of their memory. */
class PlacesTest {
    /** A command that puts a small tmpfs over a directory, for the command that follows and for nobody else. */
    private static List<String> inTmpfs(Path dir, String options) {
        String mount = "mount -t tmpfs -o " + options + " tmpfs " + dir + " || exit 99; exec \"$@\"";
        String unshare = "unshare " + (Libc.geteuid() == 0 ? "-m" : "-Urm") + " --propagation private ";
        return List.of("sh", "-c", unshare + "true || exit 99; exec " + unshare + "sh -c '" + mount + "' sh \"$@\"", "sh");
    }

    private static void inside(Path dir, String options, String program) {
        try (Peer peer = Peer.start(inTmpfs(dir, options), program, Map.of(), dir.toString())) {
            int status = peer.waitFor();
            assumeTrue(status != 99, "this process may not mount a file system");
            assertEquals(0, status);
            peer.expect("fine");
        }
    }

    /** A full file system is an error that says so, before anybody is hurt, and leaves nothing behind. */
    @Test
    void aFullFileSystemIsAnErrorAndNoSignal() {
        inside(Scratch.directory("small"), "size=1m,mode=0777", "PlacesTest.inASmallTmpfs");
        inside(Scratch.directory("inodes"), "size=1m,nr_inodes=2,mode=0777", "PlacesTest.withFewInodes");
    }

    static void inASmallTmpfs(Peer.Inside me, String[] args) throws IOException {
        Path dir = Path.of(args[0]);
        for (long capacity : new long[] {1 << 20, 1 << 21, 1 << 30, 1L << 40}) {
            says(refused(ErrorKind.NO_SPACE, dir.resolve("ring"), OpenMode.CREATE, Options.DEFAULT.withCapacity(capacity), Role.CONSUMER),
                    dir.resolve("ring"), "free space");
            expectNames(dir);
        }
        Options half = Options.DEFAULT.withCapacity(1 << 19);
        Attachment a = hold(dir.resolve("fits"), OpenMode.CREATE, half, Role.PRODUCER);
        refused(ErrorKind.NO_SPACE, dir.resolve("second"), OpenMode.CREATE, half, Role.PRODUCER);
        // The space is taken at creation: filling the ring to the brim is no SIGBUS, however full the rest is.
        assertThrows(IOException.class, () -> Files.write(dir.resolve("filler"), new byte[1 << 20]));
        a.data.asSlice(0, a.capacity).fill((byte) 1);
        a.release();
        Files.delete(dir.resolve("filler"));
        expectNames(dir);
        me.say("fine");
    }

    static void withFewInodes(Peer.Inside me, String[] args) {
        Path dir = Path.of(args[0]);
        Attachment one = hold(dir.resolve("one"), OpenMode.CREATE, Options.DEFAULT.withCapacity(4096), Role.PRODUCER);
        refused(ErrorKind.NO_SPACE, dir.resolve("two"), OpenMode.CREATE, Options.DEFAULT.withCapacity(4096), Role.PRODUCER);
        one.release();
        me.say("fine");
    }

    @Test
    void disksOnlyWhenAskedForAndOtherFileSystemsNever(@TempDir Path dir) throws IOException {
        Options disk = Options.DEFAULT.withAllowDisk(true);
        refused(ErrorKind.UNSUPPORTED, Path.of("/proc/self/ring"), OpenMode.CREATE, disk, Role.PRODUCER);
        Path name = dir.resolve("ring");
        String type = Files.getFileStore(dir).type();
        if (type.equals("tmpfs")) {
            hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER).release();
        } else if (type.equals("overlay")) {
            says(refused(ErrorKind.UNSUPPORTED, name, OpenMode.CREATE, disk, Role.PRODUCER), "overlay");
        } else {
            says(refused(ErrorKind.UNSUPPORTED, name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER), "allowDisk");
            Attachment a = hold(name, OpenMode.CREATE, disk, Role.PRODUCER);
            refused(ErrorKind.UNSUPPORTED, name, OpenMode.OPEN, Options.DEFAULT, Role.CONSUMER);
            hold(name, OpenMode.OPEN, disk, Role.CONSUMER).release();
            a.release();
        }
        expectNames(dir);
    }

    /** Runs as another user, of a number that nobody uses. */
    private static Peer asUser(int uid, String directory, String program, String... args) {
        return Peer.start(List.of("setpriv", "--reuid", Integer.toString(uid), "--clear-groups"), program,
                Map.of("RAMWAY_DIR", directory), args);
    }

    static void create(Peer.Inside me, String[] args) {
        try {
            Attachment.named("mine", OpenMode.CREATE, Options.DEFAULT, Role.CONSUMER).release();
            me.say("ok");
        } catch (RamwayException e) {
            me.say(e.kind().formatName());
        }
    }

    @Test
    void theDefaultDirectoryMustBeOursAlone() throws Exception {
        assumeTrue(Libc.geteuid() == 0, "only root can become a user whose directory nobody else uses");
        int uid = 1_500_000_000 + (int) ProcessHandle.current().pid();
        Path root = Path.of("/dev/shm/ramway-" + uid);
        try {
            expectAs(uid, "", "ok");
            assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(root)));
            assertEquals(uid, Files.getAttribute(root, "unix:uid"));
            Files.setPosixFilePermissions(root, PosixFilePermissions.fromString("rwxr-xr-x"));
            expectAs(uid, "", "PermissionDenied");
            Files.delete(root);
            // Somebody else's.
            Files.createDirectory(root, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            expectAs(uid, "", "PermissionDenied");
            Files.delete(root);
            // A link is no real directory, nor is a file.
            Path dir = Scratch.directory("linked");
            Files.setAttribute(dir, "unix:uid", uid);
            Files.createSymbolicLink(root, dir);
            expectAs(uid, "", "PermissionDenied");
            Files.delete(root);
            Files.createFile(root);
            expectAs(uid, "", "PermissionDenied");
        } finally {
            Files.deleteIfExists(root);
        }
        // Somebody else's file in a directory that everybody may write.
        Path open = Files.createTempDirectory(Path.of("/dev/shm"), "ramway-java-open-");
        Files.createFile(open.resolve("mine"), PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
        expectAs(uid + 1, open.toString(), "PermissionDenied");
        assertEquals(List.of("mine"), names(open));
        Files.delete(open.resolve("mine"));
        Files.delete(open);
    }

    private static void expectAs(int uid, String directory, String said) {
        try (Peer peer = asUser(uid, directory, "PlacesTest.create")) {
            peer.expect(said);
            peer.finish();
        }
    }

    @Test
    void lockedAndFaultedIn() {
        Path dir = Scratch.directory("placed");
        Options options = Options.DEFAULT.withCapacity(1 << 20).withLockMemory(true).withPrefault(true);
        Attachment tx = hold(dir.resolve("ring"), OpenMode.CREATE, options, Role.PRODUCER);
        // A consumer cannot write: faulted in by reading.
        Attachment rx = hold(dir.resolve("ring"), OpenMode.OPEN, options, Role.CONSUMER);
        assertEquals(resident(tx.data), resident(rx.data));
        assertEquals(2048, resident(tx.data));
        rx.release();
        tx.release();
    }

    /** How many KiB of a mapping are in memory for this process. */
    private static long resident(MemorySegment memory) {
        String range = Long.toHexString(memory.address()) + "-";
        long found = 0;
        boolean inside = false;
        for (String line : dev.ramway.sys.Files.text("/proc/self/smaps").split("\n")) {
            String[] words = line.trim().split("\\s+");
            if (!words[0].endsWith(":")) {
                long first = Long.parseUnsignedLong(words[0].split("-")[0], 16);
                inside = first >= memory.address() && first < memory.address() + memory.byteSize();
            } else if (inside && words[0].equals("Rss:")) {
                found += Long.parseLong(words[1]);
            }
        }
        assertTrue(found > 0, range);
        return found;
    }

    @Test
    void aLimitThatIsTooSmallIsNamed() {
        Path dir = Scratch.directory("limits");
        List<String> prlimit = List.of("prlimit", "--memlock=8192:8192", "--fsize=1048576:1048576");
        boolean root = Libc.geteuid() == 0;
        List<String> command = new java.util.ArrayList<>(prlimit);
        if (root) {
            // Root may lock what it likes.
            command.addAll(List.of("setpriv", "--inh-caps=-all", "--bounding-set=-ipc_lock"));
        }
        try (Peer peer = Peer.start(command, "PlacesTest.littleRoom", Map.of(), dir.toString())) {
            assertTrue(peer.hear().contains("RLIMIT_MEMLOCK is 8192 bytes"));
            assertTrue(peer.hear().contains("RLIMIT_FSIZE (ulimit -f) = 1048576 bytes"));
            peer.finish();
        }
        expectNames(dir);
    }

    static void littleRoom(Peer.Inside me, String[] args) {
        Path name = Path.of(args[0]).resolve("ring");
        Options locked = Options.DEFAULT.withCapacity(65536).withLockMemory(true);
        me.say(refused(ErrorKind.NO_SPACE, name, OpenMode.CREATE, locked, Role.CONSUMER).getMessage());
        Options long2 = Options.DEFAULT.withCapacity(2 << 20);
        me.say(refused(ErrorKind.NO_SPACE, name, OpenMode.CREATE, long2, Role.CONSUMER).getMessage());
    }

    @Test
    void hugePagesAreThereOrTheSettingIsNamed() {
        Path dir = Scratch.directory("hugepages");
        Options options = Options.DEFAULT.withCapacity(1).withHugePages(true);
        long huge;
        try {
            huge = Placement.hugePageSize();
        } catch (SysException e) {
            says(refused(ErrorKind.UNSUPPORTED, dir.resolve("huge"), OpenMode.CREATE, options, Role.PRODUCER), "transparent huge pages");
            return;
        }
        try {
            Attachment a = hold(dir.resolve("huge"), OpenMode.CREATE, options, Role.PRODUCER);
            assertEquals(huge, a.capacity);
            assertEquals(0, a.data.address() % huge);
            a.release();
        } catch (RamwayException e) {
            assertEquals(ErrorKind.UNSUPPORTED, e.kind(), e.getMessage());
            says(e, "shmem_enabled", dir.resolve("huge"));
        }
        // A file whose data does not begin on a huge page can never have them.
        Attachment a = hold(dir.resolve("small"), OpenMode.CREATE, Options.DEFAULT.withCapacity(4096), Role.PRODUCER);
        Options opened = Options.DEFAULT.withHugePages(true);
        says(refused(ErrorKind.UNSUPPORTED, dir.resolve("small"), OpenMode.OPEN, opened, Role.CONSUMER), "whole huge pages");
        a.release();
        expectNames(dir);
    }
}
