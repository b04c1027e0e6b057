package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Files;
import dev.ramway.sys.Libc;
import dev.ramway.sys.Poll;
import dev.ramway.sys.Sockets;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Stream;

/** A socket that says what no Ramway would, with as many descriptors as it likes. */
final class RawSocket implements AutoCloseable {
    private static final boolean ARM = System.getProperty("os.arch").equals("aarch64");
    private static final int SENDMSG = ARM ? 211 : 46;
    private static final int SOCKETPAIR = ARM ? 199 : 53;
    private static final int OPENAT = ARM ? 56 : 257;
    private static final int PWRITE = ARM ? 68 : 18;
    private static final int F_ADD_SEALS = 1033;

    static final int SEAL_SEAL = 1;
    static final int SEAL_SHRINK = 2;
    static final int SEAL_GROW = 4;
    static final int SEAL_WRITE = 8;

    private int fd;

    private RawSocket(int fd) {
        assertTrue(fd >= 0, () -> "no socket: " + Errno.text(-fd));
        this.fd = fd;
    }

    int fd() {
        return fd;
    }

    /** Two that are connected. */
    static RawSocket[] pair() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment two = arena.allocate(8);
            assertEquals(0, Libc.syscall(SOCKETPAIR, 1, 1 | 04000 | 02000000, 0, two.address(), 0, 0));
            return new RawSocket[] {new RawSocket(two.get(ValueLayout.JAVA_INT, 0)), new RawSocket(two.get(ValueLayout.JAVA_INT, 4))};
        }
    }

    /** One that has connected and not said a word. */
    static RawSocket connect(String path) {
        RawSocket socket = new RawSocket(Sockets.stream());
        int error = -Sockets.connect(socket.fd, path);
        // A backlog may be full for a moment.
        for (int i = 0; error == Errno.EAGAIN && i < 10_000; i++) {
            sleep(1);
            error = -Sockets.connect(socket.fd, path);
        }
        assertEquals(0, error);
        return socket;
    }

    /** One that listens. */
    static RawSocket listen(String path) {
        RawSocket socket = new RawSocket(Sockets.stream());
        assertEquals(0, Sockets.bind(socket.fd, path));
        assertEquals(0, Sockets.listen(socket.fd, 16));
        return socket;
    }

    /** The next connection of one that listens, or null if it is closed meanwhile. */
    RawSocket accept() {
        while (true) {
            int accepted = Sockets.accept(fd);
            if (accepted >= 0) {
                return new RawSocket(accepted);
            }
            if (accepted != -Errno.EAGAIN) {
                return null;
            }
            sleep(1);
        }
    }

    /** Sends bytes, and descriptors with the first of them. */
    void send(byte[] bytes, int... descriptors) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment header = arena.allocate(56, 8);
            MemorySegment vector = arena.allocate(16, 8);
            MemorySegment data = arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes);
            vector.set(ValueLayout.JAVA_LONG, 0, data.address());
            vector.set(ValueLayout.JAVA_LONG, 8, bytes.length);
            header.set(ValueLayout.JAVA_LONG, 16, vector.address());
            header.set(ValueLayout.JAVA_LONG, 24, 1);
            if (descriptors.length > 0) {
                long length = 16 + 4L * descriptors.length;
                MemorySegment control = arena.allocate(length + 7 & ~7L, 8);
                control.set(ValueLayout.JAVA_LONG, 0, length);
                control.set(ValueLayout.JAVA_INT, 8, 1);
                control.set(ValueLayout.JAVA_INT, 12, 1);
                MemorySegment.copy(descriptors, 0, control, ValueLayout.JAVA_INT, 16, descriptors.length);
                header.set(ValueLayout.JAVA_LONG, 32, control.address());
                header.set(ValueLayout.JAVA_LONG, 40, control.byteSize());
            }
            long sent = Libc.syscall(SENDMSG, fd, header.address(), 0x4040, 0, 0, 0);
            assertEquals(bytes.length, sent, () -> "sent: " + (sent < 0 ? Errno.text((int) -sent) : ""));
        }
    }

    /** So many bytes; fewer only if the other side hangs up first. Descriptors that come are closed. */
    byte[] read(int wanted) {
        byte[] bytes = new byte[wanted];
        int filled = 0;
        long began = System.nanoTime();
        while (filled < wanted) {
            Sockets.Received got = Sockets.receive(fd, bytes, filled, Math.min(wanted - filled, Sockets.BYTES_MAX));
            for (int descriptor : got.descriptors()) {
                Files.close(descriptor);
            }
            if (got.count() == -Errno.EAGAIN) {
                if (System.nanoTime() - began > Scratch.LONG.toNanos()) {
                    return fail("only " + filled + " of " + wanted + " bytes came");
                }
                sleep(1);
                continue;
            }
            if (got.count() <= 0) {
                return Arrays.copyOf(bytes, filled);
            }
            filled += got.count();
        }
        return bytes;
    }

    boolean hungUp() {
        return Poll.hungUp(fd);
    }

    @Override
    public void close() {
        if (fd >= 0) {
            Files.close(fd);
            fd = -1;
        }
    }

    /** What is at a path, read-only. The caller closes it. */
    static int open(String path) {
        try (Arena arena = Arena.ofConfined()) {
            int opened = (int) Libc.syscall(OPENAT, -100, Libc.string(arena, path).address(), 02000000, 0, 0, 0);
            assertTrue(opened >= 0, path);
            return opened;
        }
    }

    /** Memory of some size with these seals, which begins with these bytes. The caller closes it. */
    static int memory(long size, int seals, byte[] start) {
        int memory = Memfd.of(size);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment data = arena.allocateFrom(ValueLayout.JAVA_BYTE, start);
            if (start.length > 0) {
                assertEquals(start.length, Libc.syscall(PWRITE, memory, data.address(), start.length, 0, 0, 0));
            }
        }
        assertEquals(0, Libc.fcntl(memory, F_ADD_SEALS, seals));
        return memory;
    }

    private static final class Memfd {
        static int of(long size) {
            int memory = dev.ramway.sys.Memfd.create("ramway-test");
            assertTrue(memory >= 0);
            assertEquals(0, Files.truncate(memory, size));
            return memory;
        }
    }

    /** How many descriptors this process has. */
    static int openDescriptors() {
        try (Stream<Path> all = java.nio.file.Files.list(Path.of("/proc/self/fd"))) {
            return (int) all.count();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
