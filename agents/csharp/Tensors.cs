using System;

namespace Ramway.Conformance
{
    /// <summary>tensors.</summary>
    internal static class Tensors
    {
        private static readonly long[][] Shapes =
        {
            new long[] { }, new long[] { 0 }, new long[] { 1 }, new long[] { 2, 3 }, new long[] { 5, 0, 7 },
            new long[] { 3, 1, 5, 2 }, new long[] { 257 }, ManyDimensions(),
        };

        private static long[] ManyDimensions()
        {
            var shape = new long[32];
            Array.Fill(shape, 1);
            shape[31] = 2;
            return shape;
        }

        private sealed class MadeTensor
        {
            internal MadeTensor(long seq, ElementType type)
            {
                Type = type;
                Shape = Shapes[seq / 24 % Shapes.Length];
                long length = type.Size();
                foreach (long dim in Shape)
                {
                    length *= dim;
                }
                int values = type == ElementType.Bool ? 2 : 256;
                Data = new byte[length];
                for (int i = 0; i < Data.Length; i++)
                {
                    Data[i] = (byte)((seq + i) % values);
                }
                Tag = Messages.Tag(seq, Data);
            }

            internal ElementType Type { get; }

            internal long[] Shape { get; }

            internal byte[] Data { get; }

            internal ulong Tag { get; }
        }

        /// <summary>Tensor number seq; null where that is an ordinary message.</summary>
        private static MadeTensor? Make(long seq)
        {
            int k = (int)(seq % 24);
            return k < ElementTypes.All.Count ? new MadeTensor(seq, ElementTypes.All[k]) : null;
        }

        internal static void Play(Args args)
        {
            Args.OneOf("role", args.Role, "producer", "consumer");
            var all = new Messages(new Sizes(32), 32);
            if (args.Role == "producer")
            {
                Produce(args, all);
            }
            else
            {
                Consume(args, all);
            }
        }

        private static unsafe void Aligned(long seq, ReadOnlySpan<byte> elements)
        {
            fixed (byte* address = elements)
            {
                if ((ulong)address % 64 != 0)
                {
                    throw new BadException(seq, "the elements do not begin on a multiple of 64");
                }
            }
        }

        private static void Produce(Args args, Messages all)
        {
            Args.OneOf("how", args.How, "", "send", "reserve");
            long count = args.Counted();
            Place place = Place.Sending(args);
            Sender tx = place.Tx;
            for (long seq = 0; seq < count; seq++)
            {
                MadeTensor? made = Make(seq);
                if (made == null)
                {
                    Made m = all.Make(seq);
                    tx.Send(m.TypeId, m.Tag, m.Payload, args.Timeout);
                }
                else if (args.How == "reserve")
                {
                    using TensorSlot slot = tx.ReserveTensor(made.Type, made.Shape, args.Timeout);
                    Aligned(seq, slot.Data);
                    made.Data.CopyTo(slot.Data);
                    slot.Commit(made.Tag);
                }
                else
                {
                    tx.SendTensor(made.Type, made.Shape, made.Tag, made.Data, args.Timeout);
                }
            }
            Program.Say($"sent count={count} next={count}");
            place.Close();
        }

        private static void Consume(Args args, Messages all)
        {
            Place place = Place.Receiving(args);
            long received = 0;
            ErrorKind kind;
            try
            {
                for (;; received++)
                {
                    using Message message = place.Receive();
                    Check(all, received, message);
                }
            }
            catch (RamwayException e)
            {
                kind = e.Kind;
            }
            Program.Say($"end {Program.Named(kind)} received={received}");
            place.Close();
        }

        private static void Check(Messages all, long seq, in Message message)
        {
            MadeTensor? made = Make(seq);
            if (made == null)
            {
                try
                {
                    message.AsTensor();
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.InvalidArgument)
                {
                    all.Check(seq, message.TypeId, message.Tag, message.Data);
                    return;
                }
                throw new BadException(seq, "an ordinary message is a tensor");
            }
            Tensor tensor = message.AsTensor();
            if (tensor.Type != made.Type || !tensor.Shape.SequenceEqual(made.Shape))
            {
                throw new BadException(seq, $"{tensor.Type} [{string.Join(", ", tensor.Shape.ToArray())}] instead of "
                    + $"{made.Type} [{string.Join(", ", made.Shape)}]");
            }
            if (!tensor.Data.SequenceEqual(made.Data) || message.Tag != made.Tag)
            {
                throw new BadException(seq, "the bytes, or the tag");
            }
            Aligned(seq, tensor.Data);
        }
    }
}
