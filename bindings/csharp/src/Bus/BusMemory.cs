using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>The memory of a bus: made by the listener, distrusted by the connector.</summary>
    internal static unsafe class BusMemory
    {
        /// <summary>Makes memory with both rings empty for an end, and attaches the listener to it. The end keeps the memory,
        /// whatever comes of it.</summary>
        internal static Bus Create(BusPlan plan, BusEnd end)
        {
            int fd = Memfd.New("ramway-bus:" + plan.Name);
            if (fd < 0)
            {
                throw Errors.Os(fd, "memory for a bus");
            }
            end.Keep(fd);
            Memfd.Size(fd, (long)plan.Spec.Size);
            byte* page = Segment.MapHeader(fd, true);
            // Nobody else knows this memory yet; it is at least HeaderSize bytes long.
            Header.Format(plan.Spec).CopyTo(new Span<byte>(page, Layout.HeaderSize));
            Memory.Unmap(page, Segment.HeaderLength);
            return Attach(end, plan.Spec.Blocks, plan.Options, true, plan.Name);
        }

        /// <summary>
        /// Checks the end's memory, which a listener sent and which is said to have size bytes, and attaches the connector to it.
        /// Nothing of it is believed before it is checked; whatever the listener writes into it later is the rings' to check.
        /// </summary>
        internal static Bus Open(BusEnd end, ulong size, RingOptions options, string name) =>
            Attach(end, Check(end.Memory, size).Blocks, options, false, name);

        private static Header Check(int memory, ulong size)
        {
            long real = Memfd.SealedSize(memory, out string? why);
            if (why != null)
            {
                throw Errors.Fail(ErrorKind.Corrupt, why);
            }
            if (real < 0)
            {
                throw Errors.Os((int)real, "looking at the memory sent");
            }
            if (real < Segment.HeaderLength || (ulong)real != size)
            {
                throw Errors.Fail(ErrorKind.Corrupt, $"the memory received has {real} bytes, WELCOME announced {size}");
            }
            byte* page = Segment.MapHeader(memory, false);
            byte[] copied = Segment.SnapshotHeader(page);
            Memory.Unmap(page, Segment.HeaderLength);
            Header header = Header.Check(copied, (ulong)real);
            if (header.Kind != SegmentKind.Bus)
            {
                throw Errors.Fail(ErrorKind.Corrupt, $"the memory sent holds a {Layout.NameOf(header.Kind)}, expected a bus");
            }
            if (header.Blocks[0].Capacity == 0 && header.Blocks[1].Capacity == 0)
            {
                throw Errors.Fail(ErrorKind.Corrupt, "the bus has no ring in either direction");
            }
            return header;
        }

        /// <summary>Attaches one side to its roles: the listener sends into block 0, the connector into block 1. After an error
        /// nothing is attached.</summary>
        private static Bus Attach(BusEnd end, Geometry[] blocks, RingOptions options, bool listener, string name)
        {
            int outward = listener ? 0 : 1, inward = 1 - outward;
            Sender? sender = null;
            try
            {
                if (blocks[outward].Capacity != 0)
                {
                    sender = Sender.Over(Map(end, outward, blocks, options, name), options);
                }
                Receiver? receiver = null;
                if (blocks[inward].Capacity != 0)
                {
                    receiver = Receiver.Over(Map(end, inward, blocks, options, name), options);
                }
                return new Bus(end, sender, receiver);
            }
            catch
            {
                sender?.Dispose();
                throw;
            }
        }

        private static Attachment Map(BusEnd end, int block, Geometry[] blocks, RingOptions options, string name)
        {
            end.Use();
            try
            {
                return Attachment.Memory(end.Memory, Layout.BlockOffset(block), blocks[block], new BusLink(end), options, name);
            }
            catch
            {
                end.Release();
                throw;
            }
        }
    }
}
