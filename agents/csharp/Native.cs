using System;
using System.IO;
using System.Runtime.InteropServices;

namespace Ramway.Conformance
{
    /// <summary>Two calls of libc that .NET has no word for.</summary>
    internal static unsafe class Native
    {
        private const int SigKill = 9;

        [DllImport("libc")]
        private static extern int kill(int pid, int signal);

        [DllImport("libc")]
        private static extern int getpid();

        [DllImport("libc")]
        private static extern int sched_setaffinity(int task, UIntPtr size, ulong* mask);

        /// <summary>This process.</summary>
        internal static int Pid { get; } = getpid();

        /// <summary>Ends this process as a crash would: without a word to the library.</summary>
        internal static void Crash()
        {
            kill(Pid, SigKill);
            // The signal takes effect before this thread goes on.
            throw new InvalidOperationException("kill");
        }

        /// <summary>Keeps all threads on one processor: those that there are, and those that they will start.</summary>
        internal static void Pin(int cpu)
        {
            const int words = 16;
            ulong* mask = stackalloc ulong[words];
            mask[cpu / 64] = 1UL << cpu % 64;
            // Twice: a thread may have been started by one that was not pinned yet.
            for (int i = 0; i < 2; i++)
            {
                foreach (string task in Directory.GetDirectories("/proc/self/task"))
                {
                    // Fails for a thread that has just ended.
                    sched_setaffinity(int.Parse(Path.GetFileName(task)), (UIntPtr)(words * sizeof(ulong)), mask);
                }
            }
        }
    }
}
