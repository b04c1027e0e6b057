using System;
using System.Threading;

namespace Ramway
{
    /// <summary>
    /// Copies out of and into bytes that other processes may write at the same time. The shared side is accessed as words of 8
    /// bytes wherever they are aligned, and as single bytes at the two ends: each aligned word comes out whole, old or new; their
    /// order is nobody's promise.
    /// </summary>
    internal static unsafe class Shared
    {
        /// <summary>Copies shared bytes out, which are mapped.</summary>
        internal static void CopyOut(Span<byte> to, byte* shared)
        {
            fixed (byte* target = to)
            {
                int i = 0, n = to.Length;
                // Volatile, so that no word is read in parts or twice.
                for (; i < n && ((long)(shared + i) & 7) != 0; i++)
                {
                    target[i] = Volatile.Read(ref shared[i]);
                }
                for (; i + 8 <= n; i += 8)
                {
                    // The private side may lie anywhere.
                    *(ulong*)(target + i) = Volatile.Read(ref *(ulong*)(shared + i));
                }
                for (; i < n; i++)
                {
                    target[i] = Volatile.Read(ref shared[i]);
                }
            }
        }

        /// <summary>Copies bytes into shared ones, which are mapped and may be written.</summary>
        internal static void CopyIn(byte* shared, ReadOnlySpan<byte> from)
        {
            fixed (byte* source = from)
            {
                int i = 0, n = from.Length;
                for (; i < n && ((long)(shared + i) & 7) != 0; i++)
                {
                    Volatile.Write(ref shared[i], source[i]);
                }
                for (; i + 8 <= n; i += 8)
                {
                    Volatile.Write(ref *(ulong*)(shared + i), *(ulong*)(source + i));
                }
                for (; i < n; i++)
                {
                    Volatile.Write(ref shared[i], source[i]);
                }
            }
        }
    }
}
