package dev.ramway.sys;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The system's calls, each by what it does. */
class SysTest {
    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();

    private int fd = -1;

    private int memory(long size) throws SysException {
        fd = Memfd.create("ramway-test");
        assertTrue(fd >= 0);
        Space.allocate(fd, 0, size);
        return fd;
    }

    @AfterEach
    void closeMemory() {
        if (fd >= 0) {
            Files.close(fd);
        }
    }

    @Test
    void allocationTakesTheSpaceAndGrowsTheFile() throws SysException {
        memory(4096);
        Space.allocate(fd, 4096, 40 << 20);
        assertEquals(4096 + (40 << 20), Files.stat(fd).size());
        // Taken, not promised: all of it is there without a write.
        MemorySegment all = Mapping.map(fd, 0, 4096 + (40 << 20), false);
        assertEquals(0, all.get(ValueLayout.JAVA_LONG, 40 << 20));
        Mapping.unmap(all);
        for (long length : new long[] {1L << 46, (1L << 62) - 1, -1, Long.MAX_VALUE}) {
            assertThrows(SysException.Limit.class, () -> Space.allocate(fd, 4096, length));
        }
        String text = assertThrows(SysException.Limit.class, () -> Space.allocate(fd, 0, 1L << 46)).getMessage();
        assertTrue(text.startsWith("70368744177664 bytes asked, ") && text.contains("MemAvailable"), text);
    }

    @Test
    void controlGroups() {
        String one = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
        String two = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        String cpu = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n";
        String part = "30 20 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n";
        ControlGroup root = new ControlGroup("/sys/fs/cgroup", true);
        assertEquals(List.of(new ControlGroup("/sys/fs/cgroup/memory/a/b", false), new ControlGroup("/sys/fs/cgroup/memory/a", false),
                new ControlGroup("/sys/fs/cgroup/memory", false), new ControlGroup("/sys/fs/cgroup/unified", true)),
                ControlGroup.of("4:memory:/a/b\n1:cpu:/\n0::/\n", cpu + one + two));
        assertEquals(List.of(root), ControlGroup.of("0::/docker/abc\n", part));
        assertEquals(List.of(root), ControlGroup.of("0::/docker/abcdef\n", part));
        assertEquals(List.of(root), ControlGroup.of("0::/\n", part));
        assertEquals(List.of(new ControlGroup("/sys/fs/cgroup/x", true), root), ControlGroup.of("0::/docker/abc/x\n", part));
        assertEquals(List.of(), ControlGroup.of("0::/\n", ""));
        assertEquals(List.of(), ControlGroup.of("nonsense\n::\n0::", "also - nonsense\n"));
    }

    @Test
    void limitsOfGroups(@TempDir Path dir) throws IOException {
        ControlGroup group = new ControlGroup(dir.toString(), true);
        assertNull(group.room(), "no files, no limit");
        write(dir, "memory.max", "max\n");
        write(dir, "memory.current", "300\n");
        assertNull(group.room(), "max is no limit");
        write(dir, "memory.max", "1000\n");
        write(dir, "memory.stat", "anon 5\ninactive_file 60\nactive_file 40\n");
        assertEquals(new ControlGroup.Room(1000, 800), group.room());
        write(dir, "memory.limit_in_bytes", "500\n");
        write(dir, "memory.usage_in_bytes", "600\n");
        write(dir, "memory.stat", "total_inactive_file 700\n");
        assertEquals(new ControlGroup.Room(500, 500), new ControlGroup(dir.toString(), false).room());
        write(dir, "memory.limit_in_bytes", "9223372036854771712\n");
        assertNull(new ControlGroup(dir.toString(), false).room(), "the largest number is no limit");
    }

    private static void write(Path dir, String name, String text) throws IOException {
        java.nio.file.Files.writeString(dir.resolve(name), text);
    }

    @Test
    void numbersInTheKernelsFiles() {
        String text = "MemTotal:       24682416 kB\nMemFree:        1 kB\nMemAvailable:   100 kB\nBad: x\n";
        assertEquals(OptionalLong.of(100), Space.field(text, "MemAvailable:"));
        assertEquals(OptionalLong.empty(), Space.field(text, "Mem"));
        assertEquals(OptionalLong.empty(), Space.field(text, "Bad:"));
        assertEquals(8, Cpu.count("0-7\n"));
        assertEquals(4, Cpu.count("0,2-3,63"));
        assertEquals(Runtime.getRuntime().availableProcessors(), Cpu.count(""));
    }

    @Test
    void bootIds() {
        byte[] id = HexFormat.of().parseHex("0123456789abcdef0123456789abcdef");
        assertArrayEquals(id, BootId.parse("01234567-89ab-CDEF-0123-456789abcdef\n"));
        for (String bad : List.of("", "0123", "no uuid at all, none")) {
            assertArrayEquals(new byte[16], BootId.parse(bad));
        }
        assertFalse(java.util.Arrays.equals(new byte[16], BootId.now()), "this kernel tells its boot id");
    }

    @Test
    void descriptionsOfOneProcessAreStrangers() throws SysException {
        int a = memory(4096);
        int b = Files.reopen(a);
        try {
            assertTrue(Lock.tryLock(a, 0, Lock.Mode.SHARED));
            assertTrue(Lock.tryLock(b, 0, Lock.Mode.SHARED));
            assertFalse(Lock.tryLock(a, 0, Lock.Mode.EXCLUSIVE));
            assertEquals(Lock.Mode.SHARED, Lock.heldByAnother(a, 0));
            Lock.unlock(b, 0);
            assertEquals(Lock.Mode.UNLOCKED, Lock.heldByAnother(a, 0), "one's own lock is not another's");
            assertTrue(Lock.tryLock(a, 0, Lock.Mode.EXCLUSIVE));
            assertEquals(Lock.Mode.EXCLUSIVE, Lock.heldByAnother(b, 0));
            assertEquals(Lock.Mode.UNLOCKED, Lock.heldByAnother(b, 1), "one byte each");
        } finally {
            Files.close(b);
        }
        // A read-only description can ask and share.
        String path = "/dev/shm/ramway-java-lock-" + ProcessHandle.current().pid();
        int writer = Files.createNew(Files.AT_CWD, path);
        int reader = Files.openAt(Files.AT_CWD, path, false);
        Files.unlink(Files.AT_CWD, path);
        assertTrue(Lock.tryLock(writer, 0, Lock.Mode.EXCLUSIVE));
        assertEquals(Lock.Mode.EXCLUSIVE, Lock.heldByAnother(reader, 0));
        assertTrue(Lock.tryLock(reader, 3, Lock.Mode.SHARED));
        assertEquals(Errno.EBADF, assertThrows(SysException.class, () -> Lock.tryLock(reader, 4, Lock.Mode.EXCLUSIVE)).errno());
        Files.close(reader);
        Files.close(writer);
    }

    @Test
    void aFileWithoutANameGetsOne() throws SysException {
        String path = "/dev/shm/ramway-java-name-" + ProcessHandle.current().pid();
        int dir = Files.openDir("/dev/shm", true);
        String name = path.substring("/dev/shm/".length());
        try {
            assertNull(Files.statAt(dir, name));
            fd = Files.createUnnamed(dir);
            assertEquals(0, Files.stat(fd).links());
            assertEquals(0, Files.chmod(fd, 0640));
            assertEquals(0, Files.linkUnnamed(fd, dir, name));
            assertEquals(-Errno.EEXIST, Files.linkUnnamed(fd, dir, name));
            Stat stat = Files.statAt(dir, name);
            assertEquals(Files.stat(fd), stat);
            assertEquals(0640, stat.permissions());
            assertTrue(stat.isRegular());
            Files.writeAt(fd, "some bytes".getBytes(), 3);
            byte[] read = new byte[20];
            assertEquals(13, Files.readAt(fd, read, 20, 0));
            assertEquals("some bytes", new String(read, 3, 10));
            int other = Files.createNew(dir, name + "2");
            Files.close(other);
            assertEquals(-Errno.EEXIST, Files.renameNew(dir, name + "2", name));
            assertEquals(0, Files.unlink(dir, name));
            assertEquals(0, Files.renameNew(dir, name + "2", name));
            assertEquals(0, Files.unlink(dir, name));
            assertEquals(-Errno.ENOENT, Files.unlink(dir, name));
        } finally {
            Files.close(dir);
        }
    }

    @Test
    void whatCannotBeMappedIsAnError() throws SysException {
        memory(Mapping.pageSize());
        for (long capacity : new long[] {0, -1, 1L << 60, 1L << 62}) {
            assertThrows(SysException.class, () -> Mapping.mirror(fd, 0, capacity, false));
        }
        assertThrows(SysException.class, () -> Mapping.map(fd, 1, Mapping.pageSize(), false));
        String maps = Files.text("/proc/self/maps");
        assertFalse(maps.contains("/memfd:ramway-test"), maps);
    }

    @Test
    void largeMappingsBeginOnAHugePage() throws SysException {
        memory(4 << 20);
        for (boolean writable : new boolean[] {true, false}) {
            MemorySegment twice = Mapping.mirror(fd, 0, 4 << 20, writable);
            assertEquals(0, twice.address() % (2 << 20));
            assertEquals(8 << 20, twice.byteSize());
            assertEquals(!writable, twice.isReadOnly());
            Mapping.unmap(twice);
        }
    }

    @Test
    void touchingLeavesTheBytes() throws SysException {
        memory(1 << 16);
        MemorySegment all = Mapping.map(fd, 0, 1 << 16, true);
        all.fill((byte) 7);
        Placement.touch(all, true);
        Placement.touch(all.asReadOnly(), false);
        assertEquals(-1, all.mismatch(MemorySegment.ofArray(filled(1 << 16))));
        Mapping.unmap(all);
    }

    private static byte[] filled(int length) {
        byte[] bytes = new byte[length];
        java.util.Arrays.fill(bytes, (byte) 7);
        return bytes;
    }

    @Test
    void aFutexSleepsUntilItIsWoken() throws Exception {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment word = arena.allocate(8, 8);
            long at = word.address();
            assertTrue(Futex.waitShared(at, 1, 1_000_000_000), "it holds something else");
            long start = System.nanoTime();
            assertFalse(Futex.waitShared(at, 0, 20_000_000));
            assertTrue(System.nanoTime() - start >= 20_000_000);
            FutureTask<Boolean> sleeper = new FutureTask<>(() -> Futex.waitShared(at, 0, 10_000_000_000L));
            Thread.ofPlatform().start(sleeper);
            Thread.sleep(50);
            start = System.nanoTime();
            INT.setVolatile(word, 0L, 1);
            Futex.wakeAll(at);
            assertTrue(sleeper.get());
            assertTrue(System.nanoTime() - start < 5_000_000_000L);
        }
        // No memory is an error of the system's, and neither a crash nor a busy loop.
        long start = System.nanoTime();
        assertFalse(Futex.waitShared(4096, 0, 5_000_000));
        assertTrue(System.nanoTime() - start >= 900_000);
        Futex.wakeAll(4096);
    }

    @Test
    void manyWordsAreSleptOnAtOnce() throws Exception {
        if (!FutexWaitv.supported()) {
            assertTrue(Libc.syscall(449, 0, 0, 0, 0, 0, 0) < 0);
            return;
        }
        try (Arena arena = Arena.ofShared()) {
            MemorySegment words = arena.allocate(4L * FutexWaitv.MAX, 4);
            FutexWaitv sleep = new FutexWaitv();
            for (int i = 0; i < FutexWaitv.MAX; i++) {
                sleep.set(i, words.address() + 4L * i, 0);
            }
            long start = System.nanoTime();
            assertEquals(-Errno.ETIMEDOUT, sleep.await(FutexWaitv.MAX, 20_000_000));
            assertTrue(System.nanoTime() - start >= 20_000_000);
            FutureTask<Integer> sleeper = new FutureTask<>(() -> sleep.await(FutexWaitv.MAX, 10_000_000_000L));
            Thread.ofPlatform().start(sleeper);
            Thread.sleep(50);
            INT.setVolatile(words, 400L, 1);
            Futex.wakeAll(words.address() + 400);
            assertEquals(100, sleeper.get());
            assertEquals(-Errno.EAGAIN, sleep.await(FutexWaitv.MAX, 1_000_000_000));
            sleep.set(3, 4096, 0);
            assertEquals(-Errno.EFAULT, sleep.await(100, 1_000_000_000));
        }
    }

    @Test
    void membarrier() {
        assertEquals(Membarrier.isAvailable(), Membarrier.run());
        assertEquals(0, Mapping.pageSize() % 4096);
        assertTrue(Errno.text(Errno.ENOENT).endsWith("(errno 2)"), Errno.text(Errno.ENOENT));
    }
}
