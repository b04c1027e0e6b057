using System;
using System.Runtime.InteropServices;

namespace Ramway.Sys
{
    /// <summary>What ends a poll from any thread: an eventfd. It stays raised until it is cleared.</summary>
    internal sealed unsafe class Signal : IDisposable
    {
        private const int Cloexec = 0x80000;
        private const int Nonblock = 0x800;

        private readonly Descriptor descriptor;

        internal Signal()
        {
            descriptor = new Descriptor(Errors.Check(Libc.Result(eventfd(0, Cloexec | Nonblock)), "making an eventfd"));
        }

        /// <summary>To be polled for input, by the thread that disposes of this.</summary>
        internal int Fd => (int)descriptor.DangerousGetHandle();

        /// <summary>Raises it. Nothing happens once it is disposed of.</summary>
        internal void Raise()
        {
            int fd = descriptor.Enter();
            if (fd < 0)
            {
                return;
            }
            ulong one = 1;
            // Fails only where it is raised so often already that it cannot count any more.
            _ = write(fd, &one, (UIntPtr)8);
            descriptor.Leave();
        }

        internal void Clear()
        {
            ulong count;
            // Fails only where it is not raised.
            _ = Libc.read(Fd, &count, (UIntPtr)8);
        }

        public void Dispose() => descriptor.Dispose();

        [DllImport("libc", SetLastError = true)]
        private static extern int eventfd(uint count, int flags);

        [DllImport("libc")]
        private static extern IntPtr write(int fd, void* from, UIntPtr length);
    }
}
