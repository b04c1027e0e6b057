package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

/**
 * System calls, by libc's {@code syscall}: each gives what the kernel gave, or the error number with a minus sign. One
 * function for all of them, because linking each shape of a function costs a starting program some 8 ms.
 *
 * <p>Addresses are passed as numbers: a segment as an argument would keep its arena from being closed for as long as the
 * call lasts. The caller keeps the memory mapped.
 */
public final class Libc {
    private static final long ERRNO = Linker.Option.captureStateLayout().byteOffset(PathElement.groupElement("errno"));
    private static final MethodHandle SYSCALL = link("syscall", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG,
            JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG), Linker.Option.firstVariadicArg(1),
            Linker.Option.captureCallState("errno"));

    private static final int CLOSE = Platform.pick(3, 57);
    private static final int FCNTL = Platform.pick(72, 25);
    private static final int GETEUID = Platform.pick(107, 175);

    private static final ThreadLocal<Scratch> SCRATCH = new ThreadLocal<>() {
        @Override
        protected Scratch initialValue() {
            return new Scratch();
        }
    };

    private Libc() {}

    /** Memory of one thread for the arguments and results of short calls. */
    public static final class Scratch {
        /** 256 bytes, aligned to 8, whose contents last until the thread's next call that uses them. */
        public final MemorySegment buffer;
        /** Where a call leaves errno. */
        private final MemorySegment state;

        private Scratch() {
            // Goes with the thread: there may be millions of virtual ones.
            Arena arena = Arena.ofAuto();
            state = arena.allocate(Linker.Option.captureStateLayout());
            buffer = arena.allocate(256, 8);
        }
    }

    /** This thread's scratch memory. */
    public static Scratch scratch() {
        return SCRATCH.get();
    }

    private static MethodHandle link(String symbol, FunctionDescriptor signature, Linker.Option... options) {
        Linker linker = Linker.nativeLinker();
        MemorySegment address = linker.defaultLookup().find(symbol)
                .orElseThrow(() -> new UnsatisfiedLinkError("libc has no " + symbol));
        return linker.downcallHandle(address, signature, options);
    }

    /** What a downcall throws is none of the function's: a mistake of ours, or the virtual machine's end. */
    private static Error unexpected(Throwable t) {
        return t instanceof Error e ? e : new AssertionError(t);
    }

    /** A C string. The caller has checked that it holds no NUL. */
    public static MemorySegment string(Arena arena, String text) {
        return arena.allocateFrom(text, StandardCharsets.UTF_8);
    }

    /** A system call, once: it may say EINTR. Unused arguments are 0. */
    public static long syscall(int number, long a, long b, long c, long d, long e, long f) {
        MemorySegment state = SCRATCH.get().state;
        try {
            long result = (long) SYSCALL.invokeExact(state, (long) number, a, b, c, d, e, f);
            return result != -1 ? result : -state.get(JAVA_INT, ERRNO);
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

    /** Closes a descriptor. What it says cannot be acted on: the descriptor is gone in any case, so never again on EINTR. */
    static void close(int fd) {
        syscall(CLOSE, fd, 0, 0, 0, 0, 0);
    }

    /** fcntl with a number or an address as its argument. */
    public static int fcntl(int fd, int command, long argument) {
        return (int) syscallAgain(FCNTL, fd, command, argument, 0, 0, 0);
    }

    /** The user that this process acts as. */
    public static int geteuid() {
        return (int) syscall(GETEUID, 0, 0, 0, 0, 0, 0);
    }

    /** The system's words for an error number. */
    static String strerror(int errno) {
        return Words.of(errno);
    }

    /** Linked when the first error is told. */
    private static final class Words {
        private static final MethodHandle STRERROR = link("strerror", FunctionDescriptor.of(ValueLayout.ADDRESS, JAVA_INT));

        static String of(int errno) {
            try {
                MemorySegment text = (MemorySegment) STRERROR.invokeExact(errno);
                // A C string of libc's own; no language's word for an error is longer than this.
                return text.reinterpret(1024).getString(0, StandardCharsets.UTF_8);
            } catch (Throwable t) {
                throw unexpected(t);
            }
        }
    }
}
