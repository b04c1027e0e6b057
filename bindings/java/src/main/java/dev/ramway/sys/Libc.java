package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;

/**
 * The calls of libc, as they are: each gives what the call gave, or the error number with a minus sign. What has no
 * symbol in every libc (futex, statx and the like) goes through {@code syscall}.
 *
 * <p>Addresses are passed as numbers where memory is shared: a segment as an argument would keep its arena from being
 * closed for as long as the call lasts. Whoever calls sees to it that the memory stays mapped.
 */
public final class Libc {
    private static final Linker LINKER = Linker.nativeLinker();
    private static final Linker.Option CAPTURE = Linker.Option.captureCallState("errno");
    private static final VarHandle ERRNO = errnoHandle();

    private static final MethodHandle OPENAT =
            withErrno("openat", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT), variadic(3));
    private static final MethodHandle CLOSE = withErrno("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    private static final MethodHandle FCNTL =
            withErrno("fcntl", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG), variadic(2));
    private static final MethodHandle SYSCALL = withErrno("syscall", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG,
            JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG), variadic(1));
    // Without errno, and without the change of the thread's state: only for calls that never block.
    private static final MethodHandle SHORT_SYSCALL = plain("syscall", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG,
            JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG), variadic(1), Linker.Option.critical(false));
    private static final MethodHandle MMAP = withErrno("mmap",
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG));
    private static final MethodHandle MUNMAP = withErrno("munmap", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle GETEUID = plain("geteuid", FunctionDescriptor.of(JAVA_INT));
    private static final MethodHandle GETPAGESIZE = plain("getpagesize", FunctionDescriptor.of(JAVA_INT));
    private static final MethodHandle STRERROR = plain("strerror", FunctionDescriptor.of(ADDRESS, JAVA_INT));

    private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

    private Libc() {}

    /** Memory of one thread for the arguments and results of short calls. */
    public static final class Scratch {
        /** Where a call leaves errno. */
        public final MemorySegment state;
        /** 256 bytes, aligned to 8, whose contents last until the thread's next call that uses them. */
        public final MemorySegment buffer;

        Scratch() {
            // Goes with the thread: there may be millions of virtual ones.
            Arena arena = Arena.ofAuto();
            state = arena.allocate(Linker.Option.captureStateLayout());
            buffer = arena.allocate(256, 8);
        }

        /** The error number of the call that failed last. */
        public int errno() {
            return (int) ERRNO.get(state, 0L);
        }
    }

    /** This thread's scratch memory. */
    public static Scratch scratch() {
        return SCRATCH.get();
    }

    private static VarHandle errnoHandle() {
        MemoryLayout layout = Linker.Option.captureStateLayout();
        return layout.varHandle(PathElement.groupElement("errno"));
    }

    /** Says that the arguments from this one on are variadic in C. */
    public static Linker.Option variadic(int from) {
        return Linker.Option.firstVariadicArg(from);
    }

    /** A function that leaves errno in {@link Scratch#state}, which is its first argument. */
    public static MethodHandle withErrno(String symbol, FunctionDescriptor signature, Linker.Option... options) {
        Linker.Option[] all = java.util.Arrays.copyOf(options, options.length + 1);
        all[options.length] = CAPTURE;
        return plain(symbol, signature, all);
    }

    /** A function whose errno nobody asks for. */
    public static MethodHandle plain(String symbol, FunctionDescriptor signature, Linker.Option... options) {
        MemorySegment address = LINKER.defaultLookup().find(symbol)
                .orElseThrow(() -> new UnsatisfiedLinkError("libc has no " + symbol));
        return LINKER.downcallHandle(address, signature, options);
    }

    /** What a downcall throws is none of the function's: a mistake of ours, or the virtual machine's end. */
    public static Error unexpected(Throwable t) {
        if (t instanceof RuntimeException e) {
            throw e;
        }
        if (t instanceof Error e) {
            throw e;
        }
        return new AssertionError(t);
    }

    /** A C string. The caller has checked that it holds no NUL. */
    public static MemorySegment string(Arena arena, String text) {
        return arena.allocateFrom(text, StandardCharsets.UTF_8);
    }

    static int openat(int dir, String name, int flags, int mode) {
        Scratch s = scratch();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment path = string(arena, name);
            while (true) {
                int fd = (int) OPENAT.invokeExact(s.state, dir, path, flags, mode);
                if (fd >= 0) {
                    return fd;
                }
                int errno = s.errno();
                if (errno != Errno.EINTR) {
                    return -errno;
                }
            }
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    static int close(int fd) {
        Scratch s = scratch();
        try {
            // Never again on EINTR: on Linux the descriptor is gone in any case, and the number may be another's by now.
            return (int) CLOSE.invokeExact(s.state, fd) == 0 ? 0 : -s.errno();
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** fcntl with a number or an address as its argument. */
    public static int fcntl(int fd, int command, long argument) {
        Scratch s = scratch();
        try {
            while (true) {
                int result = (int) FCNTL.invokeExact(s.state, fd, command, argument);
                if (result >= 0) {
                    return result;
                }
                int errno = s.errno();
                if (errno != Errno.EINTR) {
                    return -errno;
                }
            }
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** Any system call, once: it may say EINTR. */
    public static long syscall(int number, long a, long b, long c, long d, long e, long f) {
        Scratch s = scratch();
        try {
            long result = (long) SYSCALL.invokeExact(s.state, (long) number, a, b, c, d, e, f);
            return result != -1 ? result : -s.errno();
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** {@link #syscall} until it is something other than EINTR. */
    public static long syscallAgain(int number, long a, long b, long c, long d, long e, long f) {
        while (true) {
            long result = syscall(number, a, b, c, d, e, f);
            if (result != -Errno.EINTR) {
                return result;
            }
        }
    }

    /** A system call that never blocks; all that is known of a failure is the result -1. */
    static long shortSyscall(int number, long a, long b, long c, long d, long e, long f) {
        try {
            return (long) SHORT_SYSCALL.invokeExact((long) number, a, b, c, d, e, f);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    static long mmap(long at, long length, int protection, int flags, int fd, long offset) {
        Scratch s = scratch();
        try {
            long address = (long) MMAP.invokeExact(s.state, at, length, protection, flags, fd, offset);
            return address != -1 ? address : -s.errno();
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    static int munmap(long at, long length) {
        Scratch s = scratch();
        try {
            return (int) MUNMAP.invokeExact(s.state, at, length) == 0 ? 0 : -s.errno();
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    /** The user that this process acts as. */
    public static int geteuid() {
        try {
            return (int) GETEUID.invokeExact();
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    static int getpagesize() {
        try {
            return (int) GETPAGESIZE.invokeExact();
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }

    static String strerror(int errno) {
        try {
            MemorySegment text = (MemorySegment) STRERROR.invokeExact(errno);
            // A C string of libc's own; no language's word for an error is longer than this.
            return text.reinterpret(1024).getString(0, StandardCharsets.UTF_8);
        } catch (Throwable t) {
            throw unexpected(t);
        }
    }
}
