using System;
using System.Runtime.InteropServices;

namespace Ramway.Sys
{
    /// <summary>
    /// A file descriptor that is closed once: when it is disposed of and nobody is inside of a call with it, or when it is
    /// garbage. So a number that was closed, and may be another file's by now, is never used.
    /// </summary>
    internal sealed class Descriptor : SafeHandle
    {
        internal Descriptor(int fd)
            : base((IntPtr)(-1), true) => SetHandle((IntPtr)fd);

        public override bool IsInvalid => (int)handle < 0;

        /// <summary>Enters: the descriptor stays open until <see cref="Leave"/>. -1: it is closed, and there is nothing to
        /// leave.</summary>
        internal int Enter()
        {
            bool entered = false;
            try
            {
                DangerousAddRef(ref entered);
                return (int)handle;
            }
            catch (ObjectDisposedException)
            {
                return -1;
            }
        }

        internal void Leave() => DangerousRelease();

        protected override bool ReleaseHandle()
        {
            Files.Close((int)handle);
            return true;
        }
    }
}
