using System;
using System.Collections.Generic;
using System.Numerics;

namespace Ramway
{
    /// <summary>
    /// What a tensor's elements are: DLPack's type code in the upper byte, the bits of one element in the lower. In the order of the
    /// format's table, with the names of NumPy and ml_dtypes.
    /// </summary>
    public enum ElementType : ushort
    {
        /// <summary>sbyte.</summary>
        Int8 = (0 << 8) | 8,
        /// <summary>short.</summary>
        Int16 = (0 << 8) | 16,
        /// <summary>int.</summary>
        Int32 = (0 << 8) | 32,
        /// <summary>long.</summary>
        Int64 = (0 << 8) | 64,
        /// <summary>byte.</summary>
        UInt8 = (1 << 8) | 8,
        /// <summary>ushort.</summary>
        UInt16 = (1 << 8) | 16,
        /// <summary>uint.</summary>
        UInt32 = (1 << 8) | 32,
        /// <summary>ulong.</summary>
        UInt64 = (1 << 8) | 64,
        /// <summary>System.Half.</summary>
        Float16 = (2 << 8) | 16,
        /// <summary>float.</summary>
        Float32 = (2 << 8) | 32,
        /// <summary>double.</summary>
        Float64 = (2 << 8) | 64,
        /// <summary>bfloat16.</summary>
        BFloat16 = (4 << 8) | 16,
        /// <summary>A real and an imaginary float.</summary>
        Complex64 = (5 << 8) | 64,
        /// <summary><see cref="System.Numerics.Complex"/>.</summary>
        Complex128 = (5 << 8) | 128,
        /// <summary>A byte, 0 or 1. Not C#'s bool: a peer can send any byte.</summary>
        Bool = (6 << 8) | 8,
        /// <summary>float8_e3m4.</summary>
        Float8E3M4 = (7 << 8) | 8,
        /// <summary>float8_e4m3.</summary>
        Float8E4M3 = (8 << 8) | 8,
        /// <summary>float8_e4m3b11fnuz.</summary>
        Float8E4M3B11Fnuz = (9 << 8) | 8,
        /// <summary>float8_e4m3fn.</summary>
        Float8E4M3Fn = (10 << 8) | 8,
        /// <summary>float8_e4m3fnuz.</summary>
        Float8E4M3Fnuz = (11 << 8) | 8,
        /// <summary>float8_e5m2.</summary>
        Float8E5M2 = (12 << 8) | 8,
        /// <summary>float8_e5m2fnuz.</summary>
        Float8E5M2Fnuz = (13 << 8) | 8,
        /// <summary>float8_e8m0fnu.</summary>
        Float8E8M0Fnu = (14 << 8) | 8,
    }

    /// <summary>What there is to know about the types of elements.</summary>
    public static class ElementTypes
    {
        // In the order of ABI.md, section 18.
        private static readonly (ElementType Type, string Name, Type? Clr)[] Table =
        {
            (ElementType.Int8, "int8", typeof(sbyte)),
            (ElementType.Int16, "int16", typeof(short)),
            (ElementType.Int32, "int32", typeof(int)),
            (ElementType.Int64, "int64", typeof(long)),
            (ElementType.UInt8, "uint8", typeof(byte)),
            (ElementType.UInt16, "uint16", typeof(ushort)),
            (ElementType.UInt32, "uint32", typeof(uint)),
            (ElementType.UInt64, "uint64", typeof(ulong)),
            // Half came with .NET 5, which netstandard2.1 does not know of.
            (ElementType.Float16, "float16", Type.GetType("System.Half")),
            (ElementType.Float32, "float32", typeof(float)),
            (ElementType.Float64, "float64", typeof(double)),
            (ElementType.BFloat16, "bfloat16", null),
            (ElementType.Complex64, "complex64", null),
            (ElementType.Complex128, "complex128", typeof(Complex)),
            (ElementType.Bool, "bool", null),
            (ElementType.Float8E3M4, "float8_e3m4", null),
            (ElementType.Float8E4M3, "float8_e4m3", null),
            (ElementType.Float8E4M3B11Fnuz, "float8_e4m3b11fnuz", null),
            (ElementType.Float8E4M3Fn, "float8_e4m3fn", null),
            (ElementType.Float8E4M3Fnuz, "float8_e4m3fnuz", null),
            (ElementType.Float8E5M2, "float8_e5m2", null),
            (ElementType.Float8E5M2Fnuz, "float8_e5m2fnuz", null),
            (ElementType.Float8E8M0Fnu, "float8_e8m0fnu", null),
        };

        /// <summary>Every type, in the order of the format's table.</summary>
        public static IReadOnlyList<ElementType> All { get; } = Array.AsReadOnly(Array.ConvertAll(Table, row => row.Type));

        /// <summary>How many bytes an element takes.</summary>
        public static int Size(this ElementType type) => ((int)type & 0xFF) / 8;

        /// <summary>The name in NumPy or ml_dtypes, such as "float32"; of no type, its code and bits.</summary>
        public static string Name(this ElementType type)
        {
            foreach ((ElementType known, string name, _) in Table)
            {
                if (known == type)
                {
                    return name;
                }
            }
            return $"type {(int)type >> 8} of {(int)type & 0xFF} bits";
        }

        /// <summary>The type of a tensor of these.</summary>
        /// <typeparam name="T">A number of C#'s or <see cref="Complex"/>; and System.Half on .NET 5 or later.</typeparam>
        /// <exception cref="RamwayException"><see cref="ErrorKind.InvalidArgument"/> for any other.</exception>
        public static ElementType Of<T>()
            where T : unmanaged
        {
            return Known<T>.Type ??
                throw Errors.Fail(ErrorKind.InvalidArgument, $"no tensor has elements of {typeof(T)}; use its bytes");
        }

        /// <summary>Found once for each T; of a static read-only field the runtime's compiler makes a constant.</summary>
        private static class Known<T>
        {
            internal static readonly ElementType? Type = Find(typeof(T));
        }

        private static ElementType? Find(Type type)
        {
            foreach ((ElementType known, _, Type? clr) in Table)
            {
                if (clr == type)
                {
                    return known;
                }
            }
            return null;
        }

        /// <summary>Whether it is one of them: the codes have gaps, and each its bits.</summary>
        internal static bool IsKnown(ElementType type)
        {
            int code = (int)type >> 8, bits = (int)type & 0xFF;
            switch (code)
            {
                case 0:
                case 1:
                    return bits == 8 || bits == 16 || bits == 32 || bits == 64;
                case 2:
                    return bits == 16 || bits == 32 || bits == 64;
                case 4:
                    return bits == 16;
                case 5:
                    return bits == 64 || bits == 128;
                default:
                    return code >= 6 && code <= 14 && bits == 8;
            }
        }
    }
}
