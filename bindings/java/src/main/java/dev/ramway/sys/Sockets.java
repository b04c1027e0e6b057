package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Unix stream sockets that never block, and descriptors sent over them. Results below 0 are errors with a minus sign. */
public final class Sockets {
    /** The longest path in bytes that fits into a {@code sockaddr_un} with its terminating NUL. */
    public static final int PATH_MAX = 107;

    /** The most bytes that one {@link #send} or {@link #receive} takes. */
    public static final int BYTES_MAX = 64;

    /** How many descriptors one receive takes in order to count and close them; the kernel closes any more itself. */
    private static final int DESCRIPTORS_MAX = 8;

    private static final int SOCKET = Platform.pick(41, 198);
    private static final int CONNECT = Platform.pick(42, 203);
    private static final int SENDMSG = Platform.pick(46, 211);
    private static final int RECVMSG = Platform.pick(47, 212);
    private static final int BIND = Platform.pick(49, 200);
    private static final int LISTEN = Platform.pick(50, 201);
    private static final int GETSOCKOPT = Platform.pick(55, 209);
    private static final int FCHMODAT = Platform.pick(268, 53);
    private static final int ACCEPT4 = Platform.pick(288, 242);

    private static final int AF_UNIX = 1;
    private static final int SOCK_STREAM = 1;
    private static final int SOCK_NONBLOCK = 04000;
    private static final int SOCK_CLOEXEC = 02000000;
    private static final int SOL_SOCKET = 1;
    private static final int SCM_RIGHTS = 1;
    private static final int SO_PEERCRED = 17;
    private static final int MSG_CTRUNC = 0x8;
    private static final int MSG_DONTWAIT = 0x40;
    private static final int MSG_NOSIGNAL = 0x4000;
    private static final int MSG_CMSG_CLOEXEC = 0x40000000;

    // Where the parts of a message lie in a thread's scratch memory: the kernel's struct msghdr, one iovec, what is sent or
    // received, and the control message (a header of 16 bytes, then descriptors).
    private static final long NAME = 0;
    private static final long NAME_LENGTH = 8;
    private static final long VECTOR = 16;
    private static final long VECTORS = 24;
    private static final long CONTROL = 32;
    private static final long CONTROL_LENGTH = 40;
    private static final long FLAGS = 48;
    private static final long IOVEC = 56;
    private static final long BYTES = 72;
    private static final long RIGHTS = BYTES + BYTES_MAX;
    private static final int RIGHTS_HEADER = 16;

    private Sockets() {}

    /**
     * Who is at the other end of a socket, as the kernel recorded it when the connection was made.
     *
     * @param pid 0 where the peer's process has no number in our PID namespace
     * @param uid {@link #overflowUid} where the peer's user has no number in our user namespace
     */
    public record Credentials(int pid, int uid) {}

    /**
     * What one receive brought.
     *
     * @param count of bytes; 0 means that the other end hung up, below 0 is an error
     * @param descriptors came with them; they are the caller's to close
     * @param truncated there were more than this side takes, which the kernel closed
     */
    public record Received(int count, int[] descriptors, boolean truncated) {}

    /** A Unix stream socket, close-on-exec and never blocking. */
    public static int stream() {
        return (int) Libc.syscall(SOCKET, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0, 0, 0);
    }

    /** Gives a socket a name, which must be absent. */
    public static int bind(int fd, String path) {
        return withAddress(BIND, fd, path);
    }

    /** Lets connectors queue up at a bound socket, at most {@code backlog} at a time. */
    public static int listen(int fd, int backlog) {
        return (int) Libc.syscall(LISTEN, fd, backlog, 0, 0, 0, 0);
    }

    /** Tries once to connect a socket of {@link #stream} and never waits. */
    public static int connect(int fd, String path) {
        return withAddress(CONNECT, fd, path);
    }

    /** The next connection, close-on-exec and never blocking; EAGAIN if there is none. */
    public static int accept(int fd) {
        return (int) Libc.syscall(ACCEPT4, fd, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);
    }

    /** The length of a path in an address, in bytes. */
    public static int length(String path) {
        return path.getBytes(StandardCharsets.UTF_8).length;
    }

    /** The caller has checked the path's length, and that it holds no NUL. */
    private static int withAddress(int call, int fd, String path) {
        byte[] text = path.getBytes(StandardCharsets.UTF_8);
        MemorySegment address = Libc.scratch().buffer;
        address.set(JAVA_INT, 0, AF_UNIX);
        MemorySegment.copy(text, 0, address, JAVA_BYTE, 2, text.length);
        address.set(JAVA_BYTE, 2 + text.length, (byte) 0);
        return (int) Libc.syscall(call, fd, address.address(), 2 + text.length + 1, 0, 0, 0);
    }

    /**
     * Sends bytes and, unless it is negative, a descriptor with the first of them. It never waits and raises no signal:
     * what a stream does not take whole is EAGAIN.
     */
    public static int send(int fd, byte[] bytes, int descriptor) {
        MemorySegment m = header(bytes.length);
        MemorySegment.copy(bytes, 0, m, JAVA_BYTE, BYTES, bytes.length);
        if (descriptor >= 0) {
            m.set(JAVA_LONG, CONTROL, m.address() + RIGHTS);
            // Of the control message its own length, without the padding behind it; of the whole with it.
            m.set(JAVA_LONG, CONTROL_LENGTH, RIGHTS_HEADER + 8);
            m.set(JAVA_LONG, RIGHTS, RIGHTS_HEADER + 4);
            m.set(JAVA_INT, RIGHTS + 8, SOL_SOCKET);
            m.set(JAVA_INT, RIGHTS + 12, SCM_RIGHTS);
            m.set(JAVA_INT, RIGHTS + RIGHTS_HEADER, descriptor);
        }
        long sent = Libc.syscallAgain(SENDMSG, fd, m.address(), MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0, 0);
        if (sent < 0) {
            return (int) sent;
        }
        return sent == bytes.length ? 0 : -Errno.EAGAIN;
    }

    /**
     * Takes what is there, at most {@code most} bytes into an array at an offset, and never waits: EAGAIN if there is nothing yet.
     */
    public static Received receive(int fd, byte[] into, int offset, int most) {
        MemorySegment m = header(most);
        m.set(JAVA_LONG, CONTROL, m.address() + RIGHTS);
        m.set(JAVA_LONG, CONTROL_LENGTH, RIGHTS_HEADER + 4 * DESCRIPTORS_MAX);
        int count = (int) Libc.syscallAgain(RECVMSG, fd, m.address(), MSG_CMSG_CLOEXEC | MSG_DONTWAIT, 0, 0, 0);
        if (count < 0) {
            return new Received(count, new int[0], false);
        }
        MemorySegment.copy(m, JAVA_BYTE, BYTES, into, offset, count);
        return new Received(count, rights(m), (m.get(JAVA_INT, FLAGS) & MSG_CTRUNC) != 0);
    }

    /** A message header for {@code bytes} bytes, without a control message. */
    private static MemorySegment header(int bytes) {
        MemorySegment m = Libc.scratch().buffer;
        m.fill((byte) 0);
        m.set(JAVA_LONG, NAME, 0);
        m.set(JAVA_INT, NAME_LENGTH, 0);
        m.set(JAVA_LONG, VECTOR, m.address() + IOVEC);
        m.set(JAVA_LONG, VECTORS, 1);
        m.set(JAVA_LONG, IOVEC, m.address() + BYTES);
        m.set(JAVA_LONG, IOVEC + 8, bytes);
        return m;
    }

    /** The descriptors that came with a message. The kernel writes control messages, not the peer. */
    private static int[] rights(MemorySegment m) {
        long end = RIGHTS + m.get(JAVA_LONG, CONTROL_LENGTH);
        int[] found = new int[DESCRIPTORS_MAX];
        int n = 0;
        for (long at = RIGHTS; at + RIGHTS_HEADER <= end;) {
            long length = m.get(JAVA_LONG, at);
            if (length < RIGHTS_HEADER || length > end - at) {
                break;
            }
            if (m.get(JAVA_INT, at + 8) == SOL_SOCKET && m.get(JAVA_INT, at + 12) == SCM_RIGHTS) {
                for (long fd = at + RIGHTS_HEADER; fd + 4 <= at + length; fd += 4) {
                    found[n++] = m.get(JAVA_INT, fd);
                }
            }
            at += (length + 7) & ~7L;
        }
        return Arrays.copyOf(found, n);
    }

    /**
     * Gives a socket its mode before it has a name, so that at no time the name has more permission bits than asked for.
     */
    public static int modeBeforeBind(int fd, int mode) {
        return Files.chmod(fd, mode);
    }

    /**
     * Gives the socket that was just bound at a name exactly these permission bits, whatever the umask took away. ENOTSOCK:
     * something else has the name now.
     */
    public static int modeAfterBind(int dir, String name, int mode) {
        // Only a name for what is there, and no links followed: what is checked here is what is changed below, even if
        // somebody renames it meanwhile.
        int fd = Files.openPath(dir, name);
        if (fd < 0) {
            return fd;
        }
        try (Arena arena = Arena.ofConfined()) {
            Stat stat = Files.stat(fd);
            if (!stat.isSocket()) {
                return -Errno.ENOTSOCK;
            }
            if (stat.permissions() == mode) {
                return 0;
            }
            long path = Libc.string(arena, Files.procPath(fd)).address();
            return (int) Libc.syscallAgain(FCHMODAT, Files.AT_CWD, path, mode, 0, 0, 0);
        } catch (SysException e) {
            return -e.errno();
        } finally {
            Files.close(fd);
        }
    }

    /**
     * Who is at the other end of a connected socket.
     *
     * @throws SysException if the kernel does not say
     */
    public static Credentials peer(int fd) throws SysException {
        MemorySegment answer = Libc.scratch().buffer;
        // struct ucred: the process, the user, the group; then the length that getsockopt takes and gives.
        answer.set(JAVA_INT, 16, 12);
        long result = Libc.syscall(GETSOCKOPT, fd, SOL_SOCKET, SO_PEERCRED, answer.address(), answer.address() + 16, 0);
        if (result < 0) {
            throw new SysException((int) -result, "");
        }
        return new Credentials(Math.max(answer.get(JAVA_INT, 0), 0), answer.get(JAVA_INT, 4));
    }

    /**
     * The number that stands for every user who has none in our user namespace: it says nothing about who somebody is.
     */
    public static int overflowUid() {
        String text = Files.text("/proc/sys/kernel/overflowuid").trim();
        try {
            return Integer.parseUnsignedInt(text);
        } catch (NumberFormatException e) {
            return 65534;
        }
    }
}
