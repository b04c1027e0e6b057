using System;
using System.Numerics;
using System.Runtime.InteropServices;

namespace Belt
{
    /// <summary>How bright a picture is, and how much of it has changed since the one before.</summary>
    internal sealed class Statistics
    {
        // All that is copied of a picture: the message goes back to the camera.
        private byte[] _before = Array.Empty<byte>();

        /// <summary>Of a pixel.</summary>
        internal double Mean { get; private set; }

        /// <summary>The mean change of a pixel, in either direction.</summary>
        internal double Motion { get; private set; }

        internal void Look(Picture picture)
        {
            ReadOnlySpan<byte> pixels = picture.Pixels;
            bool first = _before.Length != pixels.Length;
            if (first)
            {
                _before = pixels.ToArray();
            }
            ReadOnlySpan<Vector<byte>> now = MemoryMarshal.Cast<byte, Vector<byte>>(pixels);
            ReadOnlySpan<Vector<byte>> before = MemoryMarshal.Cast<byte, Vector<byte>>(_before);
            long sum = 0, moved = 0;
            // So many vectors at a time that a sum of 16 bits cannot overflow: each adds twice at most 255.
            const int most = 128;
            for (int at = 0; at < now.Length;)
            {
                int end = Math.Min(at + most, now.Length);
                Vector<ushort> sums = Vector<ushort>.Zero, moves = Vector<ushort>.Zero;
                for (; at < end; at++)
                {
                    Vector.Widen(now[at], out Vector<ushort> low, out Vector<ushort> high);
                    sums += low + high;
                    Vector.Widen(Vector.Max(now[at], before[at]) - Vector.Min(now[at], before[at]), out low, out high);
                    moves += low + high;
                }
                for (int i = 0; i < Vector<ushort>.Count; i++)
                {
                    sum += sums[i];
                    moved += moves[i];
                }
            }
            // 240 rows of 320: no vector is longer than what divides it.
            Mean = (double)sum / pixels.Length;
            Motion = first ? 0 : (double)moved / pixels.Length;
            pixels.CopyTo(_before);
        }
    }
}
