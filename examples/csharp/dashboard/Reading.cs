using System;
using System.Buffers.Binary;
using System.Runtime.InteropServices;

namespace Dashboard
{
    /// <summary>What a sensor publishes: 16 bytes, a value and how many were measured so far.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal readonly struct Reading
    {
        internal const int Size = 16;
        /// <summary>The type id of its messages.</summary>
        internal const uint TypeId = 1;

        internal readonly double Value;
        internal readonly long Number;

        internal Reading(double value, long number)
        {
            Value = value;
            Number = number;
        }

        internal Reading(ReadOnlySpan<byte> from)
            : this(BitConverter.Int64BitsToDouble(BinaryPrimitives.ReadInt64LittleEndian(from)),
                BinaryPrimitives.ReadInt64LittleEndian(from.Slice(8)))
        {
        }

        internal void WriteTo(Span<byte> to)
        {
            BinaryPrimitives.WriteInt64LittleEndian(to, BitConverter.DoubleToInt64Bits(Value));
            BinaryPrimitives.WriteInt64LittleEndian(to.Slice(8), Number);
        }
    }
}
