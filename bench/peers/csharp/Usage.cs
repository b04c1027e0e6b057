using System;
using System.Diagnostics;
using System.IO;
using System.Runtime.InteropServices;

namespace Ramway.Bench
{
    /// <summary>What one process used in one burst.</summary>
    internal struct Used
    {
        /// <summary>Nanoseconds of processor time, user and system.</summary>
        public long Cpu;
        /// <summary>The most bytes that were resident.</summary>
        public long Peak;
        /// <summary>Of which shared memory.</summary>
        public long Shared;
        /// <summary>Voluntary and involuntary.</summary>
        public long Switches;
        /// <summary>Bytes from the heap, by the thread that measures: it counts them to the last.</summary>
        public long Allocated;

        public static Used Read(BinaryReader from) => new Used
        {
            Cpu = from.ReadInt64(),
            Peak = from.ReadInt64(),
            Shared = from.ReadInt64(),
            Switches = from.ReadInt64(),
            Allocated = from.ReadInt64(),
        };

        public void Write(BinaryWriter to)
        {
            to.Write(Cpu);
            to.Write(Peak);
            to.Write(Shared);
            to.Write(Switches);
            to.Write(Allocated);
        }
    }

    /// <summary>Where a measuring process runs, and its counters at the beginning of a burst.</summary>
    internal readonly unsafe struct Usage
    {
        private const int ClockProcessCpuTime = 2;
        /// <summary>Where ru_nvcsw is in struct rusage, in longs: two timevals and twelve longs before it.</summary>
        private const int Nvcsw = 16;

        private readonly long cpu, switches, allocated;

        [DllImport("libc")]
        private static extern int clock_gettime(int clock, long* time);

        [DllImport("libc")]
        private static extern int getrusage(int who, long* usage);

        private Usage(long cpu, long switches)
        {
            this.cpu = cpu;
            this.switches = switches;
            // Last: nothing after it is not the burst's.
            allocated = GC.GetAllocatedBytesForCurrentThread();
        }

        public static Usage Begin() => new Usage(CpuTime(), ContextSwitches());

        /// <summary>What was used since.</summary>
        public Used End()
        {
            var used = new Used
            {
                Allocated = GC.GetAllocatedBytesForCurrentThread() - allocated,
                Cpu = CpuTime() - cpu,
                Switches = ContextSwitches() - switches,
            };
            foreach (string line in File.ReadLines("/proc/self/status"))
            {
                if (line.StartsWith("VmHWM:", StringComparison.Ordinal))
                {
                    used.Peak = Kibibytes(line);
                }
                else if (line.StartsWith("RssShmem:", StringComparison.Ordinal))
                {
                    used.Shared = Kibibytes(line);
                }
            }
            return used;
        }

        private static long Kibibytes(string line) =>
            1024 * long.Parse(line.Substring(line.IndexOf(':') + 1).Replace("kB", "").Trim());

        /// <summary>Sets the peak of the resident memory back, where the kernel lets it be.</summary>
        public static void ForgetPeak()
        {
            try
            {
                File.WriteAllText("/proc/self/clear_refs", "5");
            }
            catch (Exception e) when (e is IOException || e is UnauthorizedAccessException)
            {
                // Then it is the peak since the beginning.
            }
        }

        /// <summary>Puts this process where it belongs: all of its threads, and what it starts from now on.</summary>
        public static void Settle(int? cpu, bool realtime)
        {
            if (realtime)
            {
                throw new InvalidOperationException("a C# process cannot lock its memory");
            }
            if (cpu.HasValue)
            {
                string pid = Process.GetCurrentProcess().Id.ToString();
                var start = new ProcessStartInfo("taskset", "--all-tasks --cpu-list --pid " + cpu + " " + pid) { RedirectStandardOutput = true };
                using Process taskset = Process.Start(start)!;
                taskset.StandardOutput.ReadToEnd();
                taskset.WaitForExit();
                if (taskset.ExitCode != 0)
                {
                    throw new InvalidOperationException("taskset ended with " + taskset.ExitCode);
                }
            }
        }

        private static long CpuTime()
        {
            long* time = stackalloc long[2];
            clock_gettime(ClockProcessCpuTime, time);
            return 1_000_000_000 * time[0] + time[1];
        }

        private static long ContextSwitches()
        {
            long* usage = stackalloc long[18];
            getrusage(0, usage);
            return usage[Nvcsw] + usage[Nvcsw + 1];
        }
    }
}
