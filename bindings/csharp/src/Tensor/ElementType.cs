using System;
using System.Collections.Generic;
using System.Numerics;

namespace Ramway
{
    /// <summary>What there is to know about the types of elements.</summary>
    public static class ElementTypes
    {
        // The types of C# that elements have. Half came with .NET 5, which netstandard2.1 does not know of.
        private static readonly (ElementType Type, Type? Clr)[] OfClr =
        {
            (ElementType.Int8, typeof(sbyte)),
            (ElementType.Int16, typeof(short)),
            (ElementType.Int32, typeof(int)),
            (ElementType.Int64, typeof(long)),
            (ElementType.UInt8, typeof(byte)),
            (ElementType.UInt16, typeof(ushort)),
            (ElementType.UInt32, typeof(uint)),
            (ElementType.UInt64, typeof(ulong)),
            (ElementType.Float16, Type.GetType("System.Half")),
            (ElementType.Float32, typeof(float)),
            (ElementType.Float64, typeof(double)),
            (ElementType.Complex128, typeof(Complex)),
        };

        /// <summary>Every type, in the order of the format's table.</summary>
        public static IReadOnlyList<ElementType> All { get; } = Array.AsReadOnly(Array.ConvertAll(Facts.ElementTypes, known => known.Type));

        /// <summary>How many bytes an element takes.</summary>
        public static int Size(this ElementType type) => ((int)type & 0xFF) / 8;

        /// <summary>The name in NumPy or ml_dtypes, such as "float32"; of no type, its code and bits.</summary>
        public static string Name(this ElementType type)
        {
            foreach ((ElementType known, string name) in Facts.ElementTypes)
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
            foreach ((ElementType known, Type? clr) in OfClr)
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
