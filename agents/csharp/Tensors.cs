using System;
using System.Globalization;
using System.Linq;

namespace Ramway.Agents
{
    /// <summary>tensor, and a tensor that is taken.</summary>
    internal static class Tensors
    {
        internal static void Send(Sender tx, Line line)
        {
            ElementType type = ElementTypes.All[(int)line.Number("type", 0)];
            ulong tag = (ulong)line.Number("tag", 0);
            long[] shape = line.Text("shape").Split('x', StringSplitOptions.RemoveEmptyEntries).Select(long.Parse).ToArray();
            string hex = line.Text("data");
            var data = new byte[hex.Length / 2];
            for (int i = 0; i < data.Length; i++)
            {
                data[i] = byte.Parse(hex.AsSpan(2 * i, 2), NumberStyles.HexNumber);
            }
            bool inPlace = line.Yes("reserve");
            line.End();
            ulong offset = 0;
            if (inPlace)
            {
                using TensorSlot slot = tx.ReserveTensor(type, shape, Agent.OpenTimeout);
                offset = Offset(slot.Data);
                data.CopyTo(slot.Data);
                slot.Commit(tag);
            }
            else
            {
                tx.SendTensor(type, shape, tag, data, Agent.OpenTimeout);
            }
            Agent.Say($"sent offset={offset}");
        }

        /// <summary>How far after a multiple of 64 the elements begin.</summary>
        private static unsafe ulong Offset(ReadOnlySpan<byte> elements)
        {
            fixed (byte* address = elements)
            {
                return (ulong)address % 64;
            }
        }

        /// <summary>False where the message is no tensor.</summary>
        internal static bool Say(in Message message)
        {
            Tensor tensor;
            try
            {
                tensor = message.AsTensor();
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.InvalidArgument)
            {
                return false;
            }
            int type = ElementTypes.All.ToList().IndexOf(tensor.Type);
            string shape = string.Join("x", tensor.Shape.ToArray());
            string data = BitConverter.ToString(tensor.Data.ToArray()).Replace("-", "").ToLowerInvariant();
            Agent.Say($"tensor type={type} shape={shape} tag={message.Tag} offset={Offset(tensor.Data)} data={data}");
            return true;
        }
    }
}
