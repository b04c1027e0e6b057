using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>The memory of a bus: made by the listener, not trusted by the connector.</summary>
    internal static class BusMemory
    {
        /// <summary>Makes memory with both rings empty for an end, and attaches the listener to it. The end keeps the memory,
        /// whatever comes of it.</summary>
        internal static Bus Create(ListenPlan plan, BusEnd end)
        {
            int fd = Errors.Check(Memfd.New("ramway-bus:" + plan.Name), "making memory for a bus");
            end.Keep(fd);
            SegmentFile.Fill(fd, plan.Spec, null);
            Memfd.Seal(fd);
            return Attach(end, plan.Spec.Blocks, plan.Options, true, plan.Name);
        }

        /// <summary>
        /// Checks the end's memory, which a listener sent and which is said to have size bytes, and attaches the connector to it.
        /// Nothing of it is used before it is checked; what the listener writes into it later is the rings' to check.
        /// </summary>
        internal static Bus Open(BusEnd end, ulong size, uint features, RingOptions options, string name) =>
            Attach(end, Check(end.Memory, size, features).Blocks, options, false, name);

        private static Header Check(int memory, ulong size, uint features)
        {
            long real = Memfd.SealedSize(memory, out string? why);
            if (why != null)
            {
                throw Errors.Fail(ErrorKind.Corrupt, why);
            }
            Errors.Check(real, "checking the memory sent");
            if (real < SegmentFile.HeaderLength || (ulong)real != size)
            {
                throw Errors.Fail(ErrorKind.Corrupt, $"the memory received has {real} bytes, WELCOME announced {size}");
            }
            Header header = Header.Check(SegmentFile.SnapshotHeader(memory), (ulong)real, features);
            if (header.Kind != SegmentKind.Bus)
            {
                throw Errors.Fail(ErrorKind.Corrupt, $"the memory sent holds a {Layout.NameOf(header.Kind)}, expected a bus");
            }
            if (header.FeaturesRequired != features)
            {
                throw Errors.Fail(ErrorKind.AbiMismatch, "the memory sent is of a plain bus, expected an RPC's");
            }
            if (header.Blocks[0].Capacity == 0 && header.Blocks[1].Capacity == 0)
            {
                throw Errors.Fail(ErrorKind.Corrupt, "the bus has no ring in either direction");
            }
            if (features == Facts.RpcFeatures && (header.Blocks[0].Capacity == 0 || header.Blocks[1].Capacity == 0))
            {
                throw Errors.Fail(ErrorKind.Corrupt, "an RPC's bus has a ring in one direction only, expected both");
            }
            return header;
        }

        /// <summary>Attaches one side to its roles: the listener sends into block 0, the connector into block 1. After an error
        /// nothing is attached.</summary>
        private static Bus Attach(BusEnd end, Geometry[] blocks, RingOptions options, bool listener, string name)
        {
            Attachment Map(int block)
            {
                end.Use();
                return Attachment.Memory(end.Memory, Layout.BlockOffset(block), blocks[block], new BusLink(end), options, name);
            }
            int outward = listener ? 0 : 1, inward = 1 - outward;
            Sender? sender = blocks[outward].Capacity == 0 ? null : Sender.Over(Map(outward), options);
            try
            {
                return new Bus(end, sender, blocks[inward].Capacity == 0 ? null : Receiver.Over(Map(inward), options));
            }
            catch
            {
                sender?.Dispose();
                throw;
            }
        }
    }
}
