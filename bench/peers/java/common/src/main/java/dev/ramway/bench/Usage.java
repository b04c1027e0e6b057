package dev.ramway.bench;

import com.sun.management.ThreadMXBean;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;

/** Where a measuring process runs, and what it uses during a burst. */
public final class Usage {
    private static final int CLOCK_PROCESS_CPUTIME_ID = 2;
    private static final int RUSAGE_SELF = 0;
    /** Where ru_nvcsw is in struct rusage: two timevals and twelve longs before it. */
    private static final int NVCSW = 2 * 16 + 12 * 8;

    private static final MethodHandle CLOCK_GETTIME = call("clock_gettime");
    private static final MethodHandle GETRUSAGE = call("getrusage");
    private static final MemorySegment RESULT = Arena.global().allocate(256, 8);
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final long switches = contextSwitches();
    private final long cpu = cpu();
    /** Last, because the others may allocate. */
    private final long allocated = THREADS.getTotalThreadAllocatedBytes();

    /**
     * What one process used in one burst.
     *
     * @param cpu nanoseconds of processor time, user and system
     * @param peak the most bytes that were resident
     * @param shared of which shared memory
     * @param switches context switches, voluntary and involuntary
     * @param allocated bytes on the heap, by all threads
     * @param compiled milliseconds that its compilers have worked since it began
     */
    public record Used(long cpu, long peak, long shared, long switches, long allocated, long compiled) {
        static Used read(DataInput in) throws IOException {
            return new Used(in.readLong(), in.readLong(), in.readLong(), in.readLong(), in.readLong(), in.readLong());
        }

        void write(DataOutput out) throws IOException {
            out.writeLong(cpu);
            out.writeLong(peak);
            out.writeLong(shared);
            out.writeLong(switches);
            out.writeLong(allocated);
            out.writeLong(compiled);
        }
    }

    /** {@return what was used since} */
    public Used end() {
        long allocatedNow = THREADS.getTotalThreadAllocatedBytes();
        long cpuNow = cpu();
        long switchesNow = contextSwitches();
        long peak = 0;
        long shared = 0;
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith("VmHWM:")) {
                    peak = kibibytes(line);
                } else if (line.startsWith("RssShmem:")) {
                    shared = kibibytes(line);
                }
            }
        } catch (IOException cause) {
            // A kernel without the file: nothing is known.
        }
        long compiled = ManagementFactory.getCompilationMXBean().getTotalCompilationTime();
        return new Used(cpuNow - cpu, peak, shared, switchesNow - switches, allocatedNow - allocated, compiled);
    }

    private static long kibibytes(String line) {
        return 1024 * Long.parseLong(line.replaceAll("[^0-9]", ""));
    }

    /** Sets the peak of the resident memory back, where the kernel lets it be. */
    public static void forgetPeak() {
        try {
            Files.writeString(Path.of("/proc/self/clear_refs"), "5");
        } catch (IOException cause) {
            // Then it is the peak since the beginning.
        }
    }

    /** Puts this process where it belongs: all of its threads, and what it starts from now on. */
    public static void settle(Integer cpu, boolean realtime) throws Exception {
        if (realtime) {
            throw new IllegalStateException("a Java process cannot lock its memory");
        }
        if (cpu != null) {
            String pid = Long.toString(ProcessHandle.current().pid());
            var taskset = new ProcessBuilder("taskset", "--all-tasks", "--cpu-list", "--pid", cpu.toString(), pid);
            int status = taskset.redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor();
            if (status != 0) {
                throw new IllegalStateException("taskset ended with " + status);
            }
        }
    }

    private static MethodHandle call(String name) {
        var linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().find(name).orElseThrow(),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.ADDRESS));
    }

    private static void call(MethodHandle call, int of) {
        try {
            if ((int) call.invokeExact(of, RESULT) != 0) {
                throw new IllegalStateException("the kernel says nothing of what this process used");
            }
        } catch (RuntimeException | Error cause) {
            throw cause;
        } catch (Throwable cause) {
            throw new IllegalStateException(cause);
        }
    }

    private static long cpu() {
        call(CLOCK_GETTIME, CLOCK_PROCESS_CPUTIME_ID);
        return 1_000_000_000 * RESULT.get(ValueLayout.JAVA_LONG, 0) + RESULT.get(ValueLayout.JAVA_LONG, 8);
    }

    private static long contextSwitches() {
        call(GETRUSAGE, RUSAGE_SELF);
        return RESULT.get(ValueLayout.JAVA_LONG, NVCSW) + RESULT.get(ValueLayout.JAVA_LONG, NVCSW + 8);
    }
}
