package dev.ramway.sys;

import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;

/** Memory without a name, whose size can be fixed for good. */
public final class Memfd {
    private static final int MEMFD_CREATE = Platform.pick(319, 279);

    private static final int MFD_CLOEXEC = 1;
    private static final int MFD_ALLOW_SEALING = 2;
    private static final int MFD_NOEXEC_SEAL = 8;

    private static final int F_ADD_SEALS = 1033;
    private static final int F_GET_SEALS = 1034;
    private static final int F_SEAL_SEAL = 1;
    private static final int F_SEAL_SHRINK = 2;
    private static final int F_SEAL_GROW = 4;
    private static final int F_SEAL_WRITE = 8;
    private static final int F_SEAL_FUTURE_WRITE = 16;

    /**
     * What a peer's memory must at least be sealed with before it is mapped: it can neither shrink (reading beyond the end
     * would kill us) nor grow, and nobody can take that back or add a seal that stops the other side's writes.
     */
    private static final int SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

    /** The kernel's limit on a memfd's name: NAME_MAX less its own prefix "memfd:". */
    private static final int NAME_MAX = 249;

    private Memfd() {}

    /** A descriptor is not memory whose size nobody can change; the text says why. */
    public static final class NotSealed extends SysException {
        private static final long serialVersionUID = 1L;

        NotSealed(String why) {
            super(0, "not sealed memory: " + why);
        }
    }

    /**
     * Makes memory that is empty and close-on-exec.
     *
     * @param name shows in /proc only; what does not fit is cut off
     * @return the descriptor, or the error with a minus sign
     */
    public static int create(String name) {
        return create(name, MFD_ALLOW_SEALING);
    }

    /**
     * The same, of a size that nobody can fix: what is handed to a child.
     *
     * @param name shows in /proc only; what does not fit is cut off
     * @return the descriptor, or the error with a minus sign
     */
    public static int unsealed(String name) {
        return create(name, 0);
    }

    private static int create(String name, int more) {
        try (Arena arena = Arena.ofConfined()) {
            long text = Libc.string(arena, clean(name)).address();
            int flags = MFD_CLOEXEC | more;
            // Kernels from 6.3 on can be told to accept only memory that cannot be executed; older ones do not know the flag.
            long fd = Libc.syscallAgain(MEMFD_CREATE, text, flags | MFD_NOEXEC_SEAL, 0, 0, 0, 0);
            if (fd == -Errno.EINVAL) {
                fd = Libc.syscallAgain(MEMFD_CREATE, text, flags, 0, 0, 0, 0);
            }
            return (int) fd;
        }
    }

    private static String clean(String name) {
        StringBuilder kept = new StringBuilder();
        int[] room = {NAME_MAX};
        name.codePoints().map(c -> c < ' ' || c == 0x7F || c >= 0xD800 && c <= 0xDFFF ? '?' : c)
                .takeWhile(c -> (room[0] -= Character.toString(c).getBytes(StandardCharsets.UTF_8).length) >= 0)
                .forEach(kept::appendCodePoint);
        return kept.toString();
    }

    /**
     * Fixes the size of memory of {@link #create}, once its space has been taken: later calls that would change it, or the
     * set of seals, fail for everybody.
     *
     * @return 0, or the error with a minus sign
     */
    public static int seal(int fd) {
        return Libc.fcntl(fd, F_ADD_SEALS, SEALS);
    }

    /**
     * The size in bytes of memory that a peer sent, once it is certain that nobody can change it.
     *
     * @throws NotSealed for anything but an ordinary memfd with at least the seals of {@link #seal}, and none against
     *     writing. Memory of huge pages is refused as well: holes can be punched into it, and filling them again may fail
     *     with SIGBUS
     */
    public static long sealedSize(int fd) throws SysException {
        int seals = Libc.fcntl(fd, F_GET_SEALS, 0);
        if (seals == -Errno.EINVAL) {
            throw new NotSealed("the descriptor sent is not a memfd");
        }
        if (seals < 0) {
            throw new SysException(-seals, "asking for seals");
        }
        if ((seals & SEALS) != SEALS) {
            throw new NotSealed("the seals of the memfd sent are 0x" + Integer.toHexString(seals) + ", expected 0x"
                    + Integer.toHexString(SEALS));
        }
        if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) {
            throw new NotSealed("the memfd sent is sealed against writing");
        }
        if (Files.fileSystem(fd).type() != FileSystems.TMPFS) {
            throw new NotSealed("the memfd sent is of huge pages, which a peer can take away");
        }
        return Files.stat(fd).size();
    }
}
