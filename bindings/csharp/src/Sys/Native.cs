using System;
using System.Runtime.InteropServices;

namespace Ramway.Sys
{
    /// <summary>Memory of this process that the collector does not move, at multiples of 128.</summary>
    internal static unsafe class Native
    {
        private const int Line = 128;

        /// <summary>Takes length bytes, all zero, to be given back with <see cref="Free"/>.</summary>
        internal static byte* Zeroed(int length)
        {
            byte* at = Take(length);
            new Span<byte>(at, length).Clear();
            return at;
        }

        /// <summary>Takes length bytes that hold anything.</summary>
        internal static byte* Take(long length)
        {
            // The word before what is given out says where the allocation begins.
            var block = (long)Marshal.AllocHGlobal((IntPtr)(length + 2 * Line));
            var at = (long*)((block + 2 * Line - 1) & -Line);
            at[-1] = block;
            return (byte*)at;
        }

        /// <summary>Gives it back; null is nothing.</summary>
        internal static void Free(void* at)
        {
            if (at != null)
            {
                Marshal.FreeHGlobal((IntPtr)((long*)at)[-1]);
            }
        }
    }
}
