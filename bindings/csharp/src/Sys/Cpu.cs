using System;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Ramway.Sys
{
    /// <summary>What the hot path has to know of the processor and of the runtime's compiler.</summary>
    internal static class Cpu
    {
        /// <summary>
        /// Whether Volatile.Write followed by Volatile.Read, on two words, is a store and a load that only the processor may
        /// exchange: then a waker that relies on the other side's membarrier publishes without a fence.
        /// </summary>
        /// <remarks>
        /// RyuJIT (CoreCLR, Native AOT) never moves one volatile access over another, whatever the two are; ECMA-335 would let a
        /// compiler move the read up, and nothing is known of Mono's. On aarch64 a release store followed by an acquire load is
        /// ordered by the processor for most of its cost anyway, and the port fences there.
        /// </remarks>
        internal static readonly bool FenceFree =
            RuntimeInformation.ProcessArchitecture == Architecture.X64 &&
            Type.GetType("Mono.Runtime") == null && Type.GetType("Mono.RuntimeStructs") == null;

        /// <summary>
        /// No load before it is done after one that follows it. x86 exchanges no two loads, and RyuJIT moves none over a volatile one,
        /// which is what follows wherever this is called; elsewhere it is a full fence.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static void LoadFence()
        {
            if (!FenceFree)
            {
                Interlocked.MemoryBarrier();
            }
        }

        /// <summary>
        /// The machine has one processor: spinning would only keep the peer from running. Not what this process may use
        /// (Environment.ProcessorCount): a process that is bound to one has a peer that runs on another.
        /// </summary>
        internal static readonly bool Alone = sysconf(ProcessorsOnline) == 1;

        /// <summary>
        /// This process may use one processor: a thread of it that polls keeps the others from running. What the runtime found when it
        /// began.
        /// </summary>
        internal static readonly bool Bound = Environment.ProcessorCount == 1;

        private const int ProcessorsOnline = 84;

        // PAUSE. Thread.SpinWait(1) is two of them where it was measured (59 ns against 26 ns), because it takes what it pleases
        // for the time of one; the instruction itself is public from .NET 7 on, which netstandard2.1 does not know of.
        private static readonly Action Once = FindPause() ?? SpinOnce;

        /// <summary>Goes between two polls of a spin: without it the round trip is 1.2 to 1.6 times longer.</summary>
        internal static void Pause()
        {
#if NET8_0_OR_GREATER
            if (System.Runtime.Intrinsics.X86.X86Base.IsSupported)
            {
                System.Runtime.Intrinsics.X86.X86Base.Pause();
                return;
            }
#endif
            Once();
        }

        /// <summary>Asks for a line that is going to be read, which may be anything that is mapped.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static unsafe void ReadAhead(byte* at)
        {
#if NET8_0_OR_GREATER
            if (System.Runtime.Intrinsics.X86.Sse.IsSupported)
            {
                System.Runtime.Intrinsics.X86.Sse.Prefetch0(at);
                return;
            }
#endif
            // Nothing depends on what it loads.
            Volatile.Read(ref *at);
        }

        private static void SpinOnce() => Thread.SpinWait(1);

        private static Action? FindPause()
        {
            if (RuntimeInformation.ProcessArchitecture != Architecture.X64)
            {
                return null;
            }
            MethodInfo? pause = Type.GetType("System.Runtime.Intrinsics.X86.X86Base, System.Private.CoreLib")?.GetMethod(
                "Pause", BindingFlags.Static | BindingFlags.Public, null, Type.EmptyTypes, null);
            return pause == null ? null : (Action?)Delegate.CreateDelegate(typeof(Action), pause, false);
        }

        [DllImport("libc")]
        private static extern long sysconf(int name);
    }
}
