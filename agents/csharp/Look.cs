using System;

namespace Ramway.Conformance
{
    /// <summary>read and show.</summary>
    internal static unsafe class Look
    {
        internal static void Read(Args args)
        {
            if (args.Region != null)
            {
                ReadRegion(args.Region);
                return;
            }
            Args.OneOf("role", args.Role, "producer", "consumer");
            if (args.Role == "producer")
            {
                ReadAsProducer(args);
            }
            else
            {
                ReadAsConsumer(args);
            }
        }

        private static void ReadRegion(string name)
        {
            using (Region region = Region.Open(name, new RegionOptions { Timeout = Place.Patience }))
            {
                Program.Say($"region len={region.Length} crc32={Crc32.Of(region.Data)}");
            }
            Program.Say("closed");
        }

        private static void ReadAsProducer(Args args)
        {
            Place place = Place.Sending(args);
            Input.Pause(args);
            try
            {
                Program.Say(place.Tx.LastTag is ulong last ? $"last tag={last}" : "last none");
                Made m = new Messages(new Sizes(args.Size), place.Tx.MaxMessageLength).Make(0);
                Program.Say(place.Tx.TrySend(m.TypeId, m.Tag, m.Payload) ? "sent" : $"end {Program.Named(ErrorKind.Full)}");
            }
            catch (RamwayException e)
            {
                Program.Say($"end {Program.Named(e.Kind)}");
            }
            place.Close();
        }

        private static void ReadAsConsumer(Args args)
        {
            Place place = Place.Receiving(args);
            Input.Pause(args);
            try
            {
                for (;;)
                {
                    ReadOne(args, place);
                }
            }
            catch (Exception e) when (EndingException.KindOf(e) is ErrorKind kind)
            {
                Program.Say($"end {Program.Named(kind)}");
            }
            place.Close();
        }

        /// <summary>
        /// Receives one message. Every way has checks of its own, or shares them with others: which of them meets the vectors
        /// RAMWAY_CONFORMANCE_READ says.
        /// </summary>
        private static void ReadOne(Args args, Place place)
        {
            switch (Environment.GetEnvironmentVariable("RAMWAY_CONFORMANCE_READ"))
            {
                case "batch":
                    using (Batch batch = place.Rx.RecvBatch(1, args.Timeout))
                    {
                        Saw(batch[0].TypeId, batch[0].Tag, batch[0].Data);
                    }
                    break;
                case "into":
                    var target = new byte[Math.Min(place.Rx.Capacity, 1 << 20)];
                    place.Rx.RecvInto(target, out MessageInfo info, args.Timeout);
                    Saw(info.TypeId, info.Tag, target.AsSpan(0, info.Length));
                    break;
                case "memory":
                    using (OwnedMessage owned = place.Rx.RecvMemory(args.Timeout))
                    {
                        Saw(owned.TypeId, owned.Tag, owned.Memory.Span);
                    }
                    break;
                case "async":
                    using (MessageLease lease = place.Await(limit => place.Rx.RecvAsync(limit)))
                    {
                        Saw(lease.TypeId, lease.Tag, lease.Data);
                    }
                    break;
                default:
                    using (Message message = place.Receive())
                    {
                        Saw(message.TypeId, message.Tag, message.Data);
                    }
                    break;
            }
        }

        private static void Saw(uint typeId, ulong tag, ReadOnlySpan<byte> data) =>
            Program.Say($"message type_id={typeId} tag={tag} len={data.Length} crc32={Crc32.Of(data)}");

        /// <summary>The length of the message of the proof.</summary>
        private const int Shown = 4096;

        internal static void Show(Args args)
        {
            Args.OneOf("role", args.Role, "producer", "consumer");
            if (args.Role == "producer")
            {
                Place place = Place.Sending(args);
                Slot slot = place.Reserve(Shown);
                slot.Data.Fill(0x11);
                // The ring stays open meanwhile, and so its mapping: this is used beyond the slot's life on purpose.
                byte* view = View(slot.Data);
                slot.Commit(0, 0);
                Obey(view);
                place.Close();
            }
            else
            {
                Place place = Place.Receiving(args);
                using (Message message = place.Receive())
                {
                    if (message.Length != Shown)
                    {
                        throw new BadException(0, "not the message of the proof");
                    }
                    Obey(View(message.Data));
                }
                place.Close();
            }
        }

        private static byte* View(ReadOnlySpan<byte> view)
        {
            // Memory of the mapping, which no collector moves.
            fixed (byte* address = view)
            {
                Program.Say($"view addr=0x{(ulong)address:x} len={view.Length} pid={Native.Pid}");
                return address;
            }
        }

        /// <summary>Writes and reads single bytes of the message by its address, as standard input says.</summary>
        private static void Obey(byte* view)
        {
            for (string? line = Input.Line(); line != null; line = Input.Line())
            {
                string[] words = line.Split(' ');
                switch (words[0])
                {
                    case "poke":
                        System.Threading.Volatile.Write(ref view[At(words)], byte.Parse(words[2]));
                        Program.Say("poked");
                        break;
                    case "peek":
                        Program.Say($"byte value={System.Threading.Volatile.Read(ref view[At(words)])}");
                        break;
                    default:
                        return;
                }
            }
        }

        private static int At(string[] words)
        {
            int at = int.Parse(words[1]);
            return at >= 0 && at < Shown ? at : throw new UsageException("not in the message: " + at);
        }
    }
}
