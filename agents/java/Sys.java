import java.io.File;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** Two calls of libc that Java has no word for. */
final class Sys {
    private Sys() {}

    private static final int SIGKILL = 9;

    private static MethodHandle libc(String name, ValueLayout... arguments) {
        Linker linker = Linker.nativeLinker();
        MemorySegment address = linker.defaultLookup().find(name).orElseThrow();
        return linker.downcallHandle(address, FunctionDescriptor.of(ValueLayout.JAVA_INT, arguments));
    }

    /** Ends this process as a crash would: without a word to the library. */
    static void crash() {
        try {
            int unused = (int) libc("kill", ValueLayout.JAVA_INT, ValueLayout.JAVA_INT)
                    .invokeExact((int) ProcessHandle.current().pid(), SIGKILL);
            // The signal takes effect before this thread goes on.
            throw new IllegalStateException("kill: " + unused);
        } catch (RuntimeException e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    /** Keeps all threads on one processor: those that there are, and those that they will start. */
    static void pin(int cpu) {
        MethodHandle set = libc("sched_setaffinity", ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mask = arena.allocate(128, 8);
            mask.set(ValueLayout.JAVA_LONG, cpu / 64 * 8L, 1L << cpu % 64);
            // Twice: a thread may have been started by one that was not pinned yet.
            for (int i = 0; i < 2; i++) {
                String[] tasks = new File("/proc/self/task").list();
                for (String task : tasks == null ? new String[] {"0"} : tasks) {
                    // Fails for a thread that has just ended.
                    int unused = (int) set.invokeExact(Integer.parseInt(task), mask.byteSize(), mask);
                }
            }
        } catch (Throwable e) {
            throw new IllegalStateException("--cpu " + cpu, e);
        }
    }
}
