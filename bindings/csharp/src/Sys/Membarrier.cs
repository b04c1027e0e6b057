using System;

namespace Ramway.Sys
{
    /// <summary>
    /// MEMBARRIER_CMD_GLOBAL_EXPEDITED: a fence on the processors of others, so that they need none of their own.
    /// </summary>
    internal static class Membarrier
    {
        private const int GlobalExpedited = 1 << 1;
        private const int RegisterGlobalExpedited = 1 << 2;

        private static readonly long Number = Libc.IsArm64 ? 283 : 324;
        private static readonly Lazy<bool> Registered = new Lazy<bool>(Register);

        /// <summary>
        /// Whether this process is registered and a real barrier succeeded, not merely that the kernel lists the command: a
        /// seccomp filter may forbid it. The first call may take up to 12 ms. RAMWAY_MEMBARRIER=0 in the environment switches it
        /// off.
        /// </summary>
        internal static bool IsAvailable => Registered.Value;

        /// <summary>
        /// A full memory barrier on every processor that runs a registered process, this one included. False if the kernel
        /// refused: then there was none, not even here.
        /// </summary>
        internal static bool Now() => Libc.syscall(Number, GlobalExpedited, 0, 0, 0, 0, 0) == 0;

        private static bool Register() =>
            Environment.GetEnvironmentVariable("RAMWAY_MEMBARRIER") != "0" &&
            Libc.syscall(Number, RegisterGlobalExpedited, 0, 0, 0, 0, 0) == 0 && Now();
    }
}
