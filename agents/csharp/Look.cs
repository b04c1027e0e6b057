using System;
using System.Threading;

namespace Ramway.Agents
{
    /// <summary>region, write and hold.</summary>
    internal static unsafe class Look
    {
        internal static void Region(Line line)
        {
            string name = line.Text("name");
            line.End();
            using Region region = Ramway.Region.Open(name, new RegionOptions { Timeout = Agent.OpenTimeout });
            Agent.Say($"region len={region.Length} crc32={Crc32.Of(region.Data)}");
        }

        /// <summary>Reserves, fills, and commits what is to be kept.</summary>
        internal static void Write(Sender tx, Line line)
        {
            int length = (int)line.Number("len", 0), kept = (int)line.Number("kept", length);
            bool unflushed = line.Yes("unflushed");
            line.End();
            Slot slot = tx.Reserve(length, Agent.OpenTimeout);
            slot.Data.Fill(0x11);
            byte* view = View(slot.Data);
            if (unflushed)
            {
                slot.CommitUnflushed(0, 0, kept);
            }
            else
            {
                slot.Commit(0, 0, kept);
            }
            LookAt(view, length, 0);
        }

        internal static void Hold(Receiver rx, Line line)
        {
            line.End();
            using Message message = rx.Recv(Agent.OpenTimeout);
            LookAt(View(message.Data), message.Length, message.Tag);
        }

        /// <summary>Where a message is. The ring stays open meanwhile, and so its mapping, which no collector moves: this is used
        /// beyond a slot's life on purpose.</summary>
        private static byte* View(ReadOnlySpan<byte> view)
        {
            fixed (byte* address = view)
            {
                return address;
            }
        }

        /// <summary>Writes and reads single bytes of a message by its address, until release.</summary>
        private static void LookAt(byte* view, int length, ulong tag)
        {
            Agent.Say($"view addr=0x{(ulong)view:x} len={length} tag={tag}");
            for (Line? line = Line.Next(); line != null; line = Line.Next())
            {
                long at = line.Number("offset", 0);
                if (at < 0 || at >= length)
                {
                    throw new RefusedException("not in the message: " + at);
                }
                switch (line.Word)
                {
                    case "poke":
                        Volatile.Write(ref view[at], (byte)line.Number("value", 0));
                        Agent.Say("poked");
                        break;
                    case "peek":
                        Agent.Say($"byte value={Volatile.Read(ref view[at])}");
                        break;
                    case "release":
                        Agent.Say("released");
                        return;
                    default:
                        throw new RefusedException(line.Word + " while a message is held");
                }
                line.End();
            }
        }
    }
}
