using System;
using System.Buffers.Binary;
using System.Runtime.InteropServices;

namespace Ramway
{
    /// <summary>
    /// A message that is a tensor, checked: elements of one type in C order (the last dimension varies fastest), where they lie in
    /// the payload.
    /// </summary>
    /// <remarks>
    /// Type and shape are copies. The elements are good as long as the payload is: until the message's Dispose.
    /// <code>
    /// using Message message = receiver.Recv();
    /// Tensor frame = message.AsTensor();
    /// ReadOnlySpan&lt;byte&gt; pixels = frame.Elements&lt;byte&gt;();
    /// </code>
    /// </remarks>
    public readonly ref struct Tensor
    {
        /// <summary>The type id of a message that is a tensor.</summary>
        public const uint TypeId = Facts.TypeIdTensor;

        /// <summary>How many dimensions a tensor has at most.</summary>
        public const int MaxDimensions = Facts.NdimMax;

        // One tensor is nearly always shaped like the one before: then it needs no array of its own. None is ever changed.
        [ThreadStatic]
        private static long[]? latest;

        private readonly long[] shape;

        private Tensor(ElementType type, long[] shape, ReadOnlySpan<byte> data)
        {
            Type = type;
            this.shape = shape;
            Data = data;
        }

        /// <summary>What the elements are.</summary>
        public ElementType Type { get; }

        /// <summary>The outermost dimension first; empty for a tensor of one element without any.</summary>
        public ReadOnlySpan<long> Shape => shape;

        /// <summary>The elements' bytes.</summary>
        public ReadOnlySpan<byte> Data { get; }

        /// <summary>Reads a payload as a tensor. Whether the elements lie on a multiple of 64 bytes is not checked: in a copy of the
        /// payload they need not.</summary>
        /// <param name="payload">What a message of the type <see cref="TypeId"/> has.</param>
        /// <exception cref="RamwayException"><see cref="ErrorKind.InvalidArgument"/>, with what is wrong, if it is not a
        /// tensor.</exception>
        public static Tensor Parse(ReadOnlySpan<byte> payload)
        {
            if (payload.Length < Facts.TensorHeader)
            {
                throw None($"{payload.Length} bytes, and its header alone has {Facts.TensorHeader}");
            }
            // One load: what is checked is what is used, also where a peer rewrites what it sent.
            ulong head = BinaryPrimitives.ReadUInt64LittleEndian(payload);
            var type = (ElementType)(((head & 0xFF) << 8) | ((head >> 8) & 0xFF));
            int dimensions = (int)((head >> 16) & 0xFF);
            uint zero = (uint)((head >> 24) & 0xFF), offset = (uint)(head >> 32);
            int start = Facts.TensorOffShape + 8 * dimensions;
            if (!ElementTypes.IsKnown(type))
            {
                throw None($"there is no element type with the code {(int)type >> 8} and {(int)type & 0xFF} bits");
            }
            if (dimensions > MaxDimensions)
            {
                throw None($"{dimensions} dimensions, and {MaxDimensions} are the most");
            }
            if (zero != 0)
            {
                throw None($"byte 3 is {zero}, not 0");
            }
            if (offset < start || offset >= start + Facts.TensorAlign || offset > payload.Length)
            {
                throw None($"the data of {dimensions} dimensions begins at {start} to {start + Facts.TensorAlign - 1}, not at " +
                    $"{offset}, in a payload of {payload.Length} bytes");
            }
            Span<long> shape = stackalloc long[dimensions];
            for (int i = 0; i < dimensions; i++)
            {
                shape[i] = BinaryPrimitives.ReadInt64LittleEndian(payload.Slice(Facts.TensorOffShape + 8 * i));
            }
            foreach (byte padding in payload.Slice(start, (int)offset - start))
            {
                if (padding != 0)
                {
                    throw None("the bytes between shape and data are not all 0");
                }
            }
            ReadOnlySpan<byte> data = payload.Slice((int)offset);
            if (TensorPlan.Bytes(type, shape) != data.Length)
            {
                throw None($"{data.Length} bytes are not {type.Name()} of the shape {TensorPlan.Describe(shape)}");
            }
            if (latest == null || !shape.SequenceEqual(latest))
            {
                latest = shape.ToArray();
            }
            return new Tensor(type, latest, data);
        }

        /// <summary>The elements, in place.</summary>
        /// <typeparam name="T">What they are: see <see cref="ElementTypes.Of"/>.</typeparam>
        /// <exception cref="RamwayException"><see cref="ErrorKind.InvalidArgument"/> if <see cref="Type"/> is not that of T, or if
        /// they lie where no T can, as only a careless peer has it.</exception>
        public ReadOnlySpan<T> Elements<T>()
            where T : unmanaged
        {
            TensorPlan.CheckElements<T>(Type, Data);
            return MemoryMarshal.Cast<byte, T>(Data);
        }

        private static RamwayException None(string why) =>
            Errors.Fail(ErrorKind.InvalidArgument, "not a tensor frame: " + why);
    }

    /// <summary>Messages that are tensors.</summary>
    public static class TensorMessages
    {
        /// <summary>The payload as a tensor, in place: good until the message's Dispose.</summary>
        /// <exception cref="RamwayException"><see cref="ErrorKind.InvalidArgument"/>, with what is wrong, if the message is
        /// none.</exception>
        /// <exception cref="ObjectDisposedException">The message was released.</exception>
        public static Tensor AsTensor(this Message message)
        {
            Check(message.TypeId);
            return Tensor.Parse(message.Data);
        }

        /// <summary>The same of a message that is kept.</summary>
        /// <exception cref="RamwayException"><see cref="ErrorKind.InvalidArgument"/>, with what is wrong, if the message is
        /// none.</exception>
        /// <exception cref="ObjectDisposedException">The message was released.</exception>
        public static Tensor AsTensor(this OwnedMessage message)
        {
            Check(message.TypeId);
            return Tensor.Parse(message.Memory.Span);
        }

        private static void Check(uint typeId)
        {
            if (typeId != Tensor.TypeId)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    $"not a tensor frame: its type id is 0x{typeId:x}, and a tensor's is 0x{Tensor.TypeId:x}");
            }
        }
    }

    /// <summary>A tensor that is going to be written: docs/ABI.md, section 18.</summary>
    internal static unsafe class TensorPlan
    {
        /// <summary>
        /// How many bytes the elements take; -1 if the product of the dimensions that are not 0 and of the element's size is 2^63
        /// or more, or one is negative: no stride then overflows, in whichever order a language multiplies.
        /// </summary>
        internal static long Bytes(ElementType type, ReadOnlySpan<long> shape)
        {
            long size = type.Size();
            bool empty = false;
            foreach (long dimension in shape)
            {
                if (dimension < 0 || (dimension != 0 && size > long.MaxValue / dimension))
                {
                    return -1;
                }
                empty |= dimension == 0;
                size *= Math.Max(dimension, 1);
            }
            return empty ? 0 : size;
        }

        /// <summary>The elements' bytes, of what can be a tensor.</summary>
        internal static long CheckedBytes(ElementType type, ReadOnlySpan<long> shape)
        {
            if (!ElementTypes.IsKnown(type))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    $"no element type has the code {(int)type >> 8} and {(int)type & 0xFF} bits");
            }
            if (shape.Length > Tensor.MaxDimensions)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    $"a tensor of {shape.Length} dimensions: at most {Tensor.MaxDimensions}");
            }
            long bytes = Bytes(type, shape);
            if (bytes < 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, $"a tensor of {type.Name()} of the shape {Describe(shape)}: a " +
                    "dimension is negative, or that is 2^63 bytes or more");
            }
            return bytes;
        }

        /// <summary>What to reserve beside the elements: enough wherever the payload begins.</summary>
        internal static int HeaderRoom(int dimensions) => Facts.TensorOffShape + 8 * dimensions + Facts.TensorAlign - 1;

        /// <summary>Writes the header into a payload of at least <see cref="HeaderRoom"/> bytes, and says where the elements begin:
        /// on an address that is a multiple of 64.</summary>
        internal static int Write(Span<byte> payload, ElementType type, ReadOnlySpan<long> shape)
        {
            int header = Facts.TensorOffShape + 8 * shape.Length;
            int offset;
            fixed (byte* at = payload)
            {
                // A slot's memory is mapped, and so stays where it is.
                offset = header + (int)(-(long)(at + header) & (Facts.TensorAlign - 1));
            }
            ulong head = (uint)type >> 8 | ((ulong)type & 0xFF) << 8 | (ulong)shape.Length << 16 | (ulong)offset << 32;
            BinaryPrimitives.WriteUInt64LittleEndian(payload, head);
            for (int i = 0; i < shape.Length; i++)
            {
                BinaryPrimitives.WriteInt64LittleEndian(payload.Slice(Facts.TensorOffShape + 8 * i), shape[i]);
            }
            payload.Slice(header, offset - header).Clear();
            return offset;
        }

        internal static void CheckElements<T>(ElementType type, ReadOnlySpan<byte> data)
            where T : unmanaged
        {
            ElementType wanted = ElementTypes.Of<T>();
            if (type != wanted)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, $"a tensor of {type.Name()} read or written as {wanted.Name()}");
            }
            fixed (byte* at = data)
            {
                // Of no elements, at is null.
                if ((long)at % Math.Min(sizeof(T), 8) != 0)
                {
                    throw Errors.Fail(ErrorKind.InvalidArgument, $"a tensor's elements lie where no {type.Name()} can");
                }
            }
        }

        internal static string Describe(ReadOnlySpan<long> shape) => "(" + string.Join(", ", shape.ToArray()) + ")";
    }
}
