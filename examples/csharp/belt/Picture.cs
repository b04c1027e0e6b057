using System;
using System.Runtime.InteropServices;
using Ramway;

namespace Belt
{
    /// <summary>What a camera knows of a picture: the twin of `telemetry` in camera.cpp.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal readonly struct Telemetry
    {
        internal readonly ulong Number;
        internal readonly ulong Exposed;
        internal readonly ulong LeftOut;
        internal readonly float Gain;
        internal readonly float Lamp;
    }

    /// <summary>A picture in the shared memory: rows of bytes, and what the camera knows of it in the last one.</summary>
    internal readonly ref struct Picture
    {
        private readonly ReadOnlySpan<Telemetry> _telemetry;

        internal Picture(Tensor tensor)
        {
            if (tensor.Shape.Length != 2 || tensor.Shape[0] != ParcelCounter.Height + 1 || tensor.Shape[1] != ParcelCounter.Width)
            {
                throw new InvalidOperationException("a picture of another size");
            }
            ReadOnlySpan<byte> all = tensor.Elements<byte>();
            Width = (int)tensor.Shape[1];
            Pixels = all.Slice(0, all.Length - Width);
            _telemetry = MemoryMarshal.Cast<byte, Telemetry>(all.Slice(all.Length - Width));
        }

        internal int Width { get; }

        /// <summary>Row by row.</summary>
        internal ReadOnlySpan<byte> Pixels { get; }

        internal ref readonly Telemetry Telemetry => ref _telemetry[0];

        internal ReadOnlySpan<byte> Row(int y) => Pixels.Slice(y * Width, Width);
    }
}
