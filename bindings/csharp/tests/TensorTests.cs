using System;
using System.Collections.Generic;
using System.Linq;
using System.Numerics;
using System.Runtime.InteropServices;

namespace Ramway.Tests
{
    internal static class TensorTests
    {
        private static byte[] Numbered(int length) => Enumerable.Range(0, length).Select(i => (byte)(i * 7)).ToArray();

        [Test]
        internal static void TensorsOfEveryType()
        {
            foreach (int align in new[] { 16, 64, 4096 })
            {
                (Sender tx, Receiver rx) = Ring.Pair(new RingOptions { Capacity = 1 << 16, Align = align });
                for (int round = 0; round < 8; round++)
                {
                    // Moves on, so that payloads begin everywhere.
                    Check.That(tx.TrySend(1, new byte[16 * round]), "room");
                    rx.Recv().Dispose();
                    for (int i = 0; i < ElementTypes.All.Count; i++)
                    {
                        ElementType type = ElementTypes.All[i];
                        long[] shape = { i + 1, round, 3 };
                        byte[] data = Numbered((i + 1) * round * 3 * type.Size());
                        if (round % 2 == 0)
                        {
                            tx.SendTensor(type, shape, (ulong)i, data);
                        }
                        else
                        {
                            using TensorSlot slot = tx.ReserveTensor(type, shape);
                            Check.Equal(0L, AddressOf(slot.Data) % 64, "where the room is");
                            data.CopyTo(slot.Data);
                            slot.Commit((ulong)i);
                        }
                        using Message message = rx.Recv();
                        Check.Equal(Tensor.TypeId, message.TypeId, "type id");
                        Check.Equal((ulong)i, message.Tag, "tag");
                        Tensor tensor = message.AsTensor();
                        Check.Equal(type, tensor.Type, "type");
                        Check.That(tensor.Shape.SequenceEqual(shape), "shape of " + type);
                        Check.Same(data, tensor.Data, type.Name());
                        Check.That(data.Length == 0 || AddressOf(tensor.Data) % 64 == 0, "where the elements are");
                    }
                }
                tx.Dispose();
                rx.Dispose();
            }
            Check.Equal(23, ElementTypes.All.Count, "types");
            Check.That(ElementTypes.All.SequenceEqual((ElementType[])Enum.GetValues(typeof(ElementType))), "all, in their order");
            Check.Equal("bfloat16", ElementType.BFloat16.Name(), "name");
            Check.Equal("type 0 of 3 bits", ((ElementType)3).Name(), "name of no type");
            for (int code = 0; code < 1 << 16; code++)
            {
                bool known = ElementTypes.All.Contains((ElementType)code);
                Check.Equal(known, ElementTypes.IsKnown((ElementType)code), "known: " + code);
            }
        }

        [Test]
        internal static void ElementsInPlace()
        {
            (Sender tx, Receiver rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
            TensorSlot slot = tx.ReserveTensor(ElementTypes.Of<Complex>(), new long[] { 2 });
            try
            {
                slot.Elements<double>();
                Check.That(false, "complex128 as double");
            }
            catch (RamwayException e)
            {
                Check.Equal("ramway: a tensor of complex128 read or written as float64", e.Message, "why");
            }
            slot.Elements<Complex>()[0] = new Complex(1, 2);
            slot.Elements<Complex>()[1] = new Complex(Math.PI, -1);
            slot.CommitUnflushed();
            Check.That(!rx.TryRecv(out _), "not visible yet");
            tx.Flush();
            using (Message message = rx.Recv())
            {
                Tensor tensor = message.AsTensor();
                ReadOnlySpan<Complex> elements = tensor.Elements<Complex>();
                Check.That(elements[0] == new Complex(1, 2) && elements[1] == new Complex(Math.PI, -1), "the elements");
                // The real part first.
                Check.Equal(Math.PI, MemoryMarshal.Cast<byte, double>(tensor.Data)[2], "as they lie there");
            }
            foreach ((ElementType type, ElementType found) in new[]
            {
                (ElementType.Int8, ElementTypes.Of<sbyte>()), (ElementType.Int16, ElementTypes.Of<short>()),
                (ElementType.Int32, ElementTypes.Of<int>()), (ElementType.Int64, ElementTypes.Of<long>()),
                (ElementType.UInt8, ElementTypes.Of<byte>()), (ElementType.UInt16, ElementTypes.Of<ushort>()),
                (ElementType.UInt32, ElementTypes.Of<uint>()), (ElementType.UInt64, ElementTypes.Of<ulong>()),
                (ElementType.Float32, ElementTypes.Of<float>()), (ElementType.Float64, ElementTypes.Of<double>()),
            })
            {
                Check.Equal(type, found, "the type of C#'s");
            }
            Check.Fails(ErrorKind.InvalidArgument, () => ElementTypes.Of<bool>());
            // No dimension is one element.
            tx.SendTensor<short>(default, new short[] { -7 });
            using (OwnedMessage message = rx.RecvMemory())
            {
                Tensor tensor = message.AsTensor();
                Check.Equal(0, tensor.Shape.Length, "dimensions");
                Check.Equal((short)-7, tensor.Elements<short>()[0], "the element");
            }
        }

        [Test]
        internal static void WhatLiesOddlyIsRefused()
        {
            byte[] frame = Frame(ElementType.Int32, 2, 3);
            byte[] moved = new byte[frame.Length + 8];
            for (int by = 0; by < 8; by++)
            {
                frame.CopyTo(moved, by);
                Tensor tensor = Tensor.Parse(moved.AsSpan(by, frame.Length));
                bool fits = AddressOf(tensor.Data) % 4 == 0;
                try
                {
                    tensor.Elements<int>();
                    Check.That(fits, "read where no int can be");
                }
                catch (RamwayException e)
                {
                    Check.That(!fits && e.Message.Contains("lie where no int32 can", StringComparison.Ordinal), e.Message);
                }
            }
        }

        [Test]
        internal static void WhatIsNoTensor()
        {
            (Sender tx, Receiver rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
            long[] ones = Enumerable.Repeat(1L, 33).ToArray();
            long[] six = { 2, 3 }, much = { 1L << 32, 1L << 32, 0 };
            Check.Fails(ErrorKind.InvalidArgument, () => tx.SendTensor(ElementType.Float32, six, new byte[23]), "that is 24");
            Check.Fails(ErrorKind.InvalidArgument, () => tx.SendTensor(ElementType.UInt8, ones, new byte[1]), "33 dimensions");
            Check.Fails(ErrorKind.InvalidArgument, () => tx.SendTensor((ElementType)(2 << 8 | 8), new long[] { 1 }, new byte[1]));
            Check.Fails(ErrorKind.InvalidArgument, () => tx.TrySendTensor(ElementType.UInt8, much, default));
            Check.Fails(ErrorKind.InvalidArgument, () => tx.TrySendTensor(ElementType.UInt8, new long[] { -1 }, default), "negative");
            Check.Fails(ErrorKind.InvalidArgument, () => tx.Send(Tensor.TypeId, default));
            foreach (long n in new[] { 4096, 1L << 31, 1L << 62, long.MaxValue })
            {
                Check.Fails(ErrorKind.TooLarge, () => tx.ReserveTensor(ElementType.UInt8, new[] { n }), "can never fit");
            }
            using (TensorSlot slot = tx.ReserveTensor(ElementType.UInt8, new long[] { 1 }))
            {
                Check.Fails(ErrorKind.Busy, () => tx.TrySendTensor(ElementType.UInt8, default, new byte[1]));
                slot.Dispose();
                bool thrown = false;
                try
                {
                    slot.Commit();
                }
                catch (ObjectDisposedException)
                {
                    thrown = true;
                }
                Check.That(thrown, "committed after Dispose");
            }
            Check.That(tx.TrySendTensor(ElementType.UInt8, new long[] { 3500 }, new byte[3500]), "room");
            Check.That(!tx.TrySendTensor(ElementType.UInt8, new long[] { 3500 }, new byte[3500]), "no room");
            rx.Recv().Dispose();
            tx.Send(1, new byte[9]);
            using (Message plain = rx.Recv())
            {
                bool thrown = false;
                try
                {
                    plain.AsTensor();
                }
                catch (RamwayException e)
                {
                    thrown = e.Message.Contains("its type id is 0x1, and a tensor's is 0xffff0001", StringComparison.Ordinal);
                }
                Check.That(thrown, "a message of another type");
            }
            // A slot that is open while the sender is closed sends all the same.
            TensorSlot last = tx.ReserveTensor(ElementType.UInt8, new long[] { 3 });
            last.Data.Fill(7);
            tx.Dispose();
            last.Commit(9);
            using (Message message = rx.Recv())
            {
                Check.Equal(9ul, message.Tag, "tag");
                Check.Same(new byte[] { 7, 7, 7 }, message.AsTensor().Data, "the elements");
            }
            Check.Fails(ErrorKind.Closed, () => rx.Recv());
        }

        private static unsafe byte[] Frame(ElementType type, params long[] shape)
        {
            long bytes = TensorPlan.CheckedBytes(type, shape);
            byte[] payload = new byte[TensorPlan.HeaderRoom(shape.Length) + bytes];
            int offset = TensorPlan.Write(payload, type, shape);
            return payload.AsSpan(0, offset + (int)bytes).ToArray();
        }

        private static bool Parses(ReadOnlySpan<byte> payload, out ElementType type)
        {
            try
            {
                type = Tensor.Parse(payload).Type;
                return true;
            }
            catch (RamwayException e)
            {
                Check.Equal(ErrorKind.InvalidArgument, e.Kind, "why: " + e.Message);
                Check.That(e.Message.StartsWith("ramway: not a tensor frame: ", StringComparison.Ordinal), e.Message);
                type = default;
                return false;
            }
        }

        [Test]
        internal static void MalformedTensors()
        {
            byte[] good = Frame(ElementType.Int32, 2, 3);
            int header = good.Length - 24;
            for (int length = 0; length < good.Length; length++)
            {
                Check.That(!Parses(good.AsSpan(0, length), out _), "cut off after " + length);
            }
            Check.That(!Parses(good.Append((byte)0).ToArray(), out _), "a byte too long");
            for (int i = 0; i < header; i++)
            {
                for (int bit = 0; bit < 8; bit++)
                {
                    byte[] bad = good.ToArray();
                    bad[i] ^= (byte)(1 << bit);
                    // Another type of the same size is a tensor as well.
                    bool fine = Parses(bad, out ElementType type);
                    bool another = i == 0 && (type == ElementType.UInt32 || type == ElementType.Float32);
                    Check.That(!fine || another, $"bit {bit} of byte {i}");
                }
            }
            var random = new Random(18);
            byte[][] seeds =
            {
                good, Frame(ElementType.Bool), Frame(ElementType.Complex128, 1, 0, 4),
                Frame(ElementType.UInt8, Enumerable.Repeat(1L, 32).ToArray()),
            };
            for (int round = 0; round < 20_000; round++)
            {
                byte[] payload = seeds[random.Next(seeds.Length)].ToArray();
                for (int change = random.Next(1, 4); change > 0; change--)
                {
                    int value = random.Next(2) == 0 ? random.Next(256) : random.Next(2) * 255;
                    payload[random.Next(Math.Min(payload.Length, 40))] = (byte)value;
                }
                if (Parses(payload, out _))
                {
                    Tensor tensor = Tensor.Parse(payload);
                    Check.Equal((long)tensor.Data.Length, TensorPlan.Bytes(tensor.Type, tensor.Shape), "bytes");
                }
            }
        }

        // The examples of docs/ABI.md, section 18.
        [Test]
        internal static void FramesAreThePagesExamples()
        {
            string[] lines = HandshakeTests.RepositoryFile("docs/ABI.md").Split('\n');
            int examples = 0;
            for (int at = 0; at < lines.Length; at++)
            {
                if (!lines[at].StartsWith("```hex tensor align=16 start=", StringComparison.Ordinal))
                {
                    continue;
                }
                examples++;
                var bytes = new SortedDictionary<int, byte>();
                int start = int.Parse(lines[at].Substring(lines[at].LastIndexOf('=') + 1));
                for (at++; !lines[at].StartsWith("tail", StringComparison.Ordinal); at++)
                {
                    string[] words = lines[at].Split(' ', StringSplitOptions.RemoveEmptyEntries);
                    int offset = Convert.ToInt32(words[1], 16);
                    for (int i = 2; i < words.Length; i++)
                    {
                        bytes[offset + i - 2] = Convert.ToByte(words[i], 16);
                    }
                }
                (Sender tx, Receiver rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
                // A frame of 16 bytes moves the start by as much.
                for (int moved = 0; moved < start; moved += 16)
                {
                    tx.Send(1, default);
                    rx.Recv().Dispose();
                }
                tx.SendTensor<float>(new long[] { 2, 3 }, 7, new float[] { 1, 2, 3, 4, 5, 6 });
                using Message message = rx.Recv();
                byte[] wanted = Enumerable.Range(0, message.Length).Select(i => bytes[(start + 16 + i) % 4096]).ToArray();
                Check.Same(wanted, message.Data, "the payload at start " + start);
                Check.Equal((uint)message.Length, bytes[start % 4096] | (uint)bytes[start % 4096 + 1] << 8, "the length");
                tx.Dispose();
                rx.Dispose();
            }
            Check.Equal(2, examples, "examples on the page");
        }

        [Test]
        internal static void TensorsAllocateNothing()
        {
            (Sender tx, Receiver rx) = Ring.Pair(new RingOptions { Capacity = 1 << 16 });
            byte[] data = Numbered(600);
            long[] shape = { 10, 20, 3 };
            long sum = 0;
            void Rounds(int count)
            {
                for (int i = 0; i < count; i++)
                {
                    tx.SendTensor(ElementType.UInt8, shape, data);
                    using Message message = rx.Recv();
                    Tensor tensor = message.AsTensor();
                    sum += tensor.Elements<byte>()[i % 600] + tensor.Shape[1];
                }
            }
            Rounds(2000);
            long before = GC.GetAllocatedBytesForCurrentThread();
            Rounds(2000);
            long bytes = GC.GetAllocatedBytesForCurrentThread() - before;
            Check.Equal(0L, bytes, "bytes allocated for 2000 tensors, sent and received");
            Check.That(sum > 0, "they were read");
        }

        private static unsafe long AddressOf(ReadOnlySpan<byte> bytes)
        {
            fixed (byte* at = bytes)
            {
                return (long)at;
            }
        }
    }
}
