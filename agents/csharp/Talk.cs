using System;

namespace Ramway.Agents
{
    /// <summary>echo, ping, last and take.</summary>
    internal static class Talk
    {
        internal static void Echo(Sender tx, Receiver rx, Line line)
        {
            Limits limits = line.Limits();
            line.End();
            long first = -1, last = -1, received = 0, bytes = 0, began = 0;
            try
            {
                for (;;)
                {
                    began = Clock.Now;
                    using Message m = rx.Recv(limits.Whole);
                    last = Messages.SeqOf(m.Tag);
                    if (received++ == 0)
                    {
                        first = last;
                    }
                    bytes += m.Length;
                    Answer(tx, limits, m.TypeId, m.Tag, m.Data);
                }
            }
            catch (RamwayException e)
            {
                Agent.Say($"end {Agent.Named(e.Kind)} received={received} first={first} last={last} bytes={bytes} "
                    + $"elapsed_ms={Clock.MsSince(began)}");
            }
        }

        private static void Answer(Sender tx, Limits limits, uint typeId, ulong tag, ReadOnlySpan<byte> data)
        {
            Slot slot = limits.Reserve(tx, data.Length);
            data.CopyTo(slot.Data);
            slot.Commit(typeId, tag);
        }

        internal static void Ping(Sender tx, Receiver rx, Line line)
        {
            Limits limits = line.Limits();
            long count = line.Number("count", 0);
            var all = new Messages(line, tx.MaxMessageLength);
            line.End();
            for (long seq = 0; seq < count; seq++)
            {
                Made made = all.Make(seq);
                Answer(tx, limits, made.TypeId, made.Tag, made.Payload);
                using Message m = rx.Recv(limits.Whole);
                all.Check(seq, m.TypeId, m.Tag, m.Data);
            }
            Agent.Say($"answered count={count}");
        }

        internal static void Last(Sender tx, Line line)
        {
            line.End();
            Agent.Say(tx.LastTag is ulong last ? $"last tag={last}" : "last none");
        }

        /// <summary>Receives one message. Every way has checks of its own, or shares them with others.</summary>
        internal static void Take(Receiver rx, Line line)
        {
            Limits limits = line.Limits();
            string how = line.Text("how");
            bool tensor = line.Yes("tensor");
            line.End();
            try
            {
                Take(rx, limits, how, tensor);
            }
            catch (Exception e) when (EndingException.KindOf(e) is ErrorKind kind)
            {
                Agent.Say($"end {Agent.Named(kind)}" + (kind == ErrorKind.Lagged ? $" lost={((RamwayException)e).Lost}" : ""));
            }
        }

        private static void Take(Receiver rx, Limits limits, string how, bool tensor)
        {
            bool topic = rx is Subscriber;
            void Say(in MessageInfo m, ReadOnlySpan<byte> data) => Agent.Say(
                $"message type_id={m.TypeId} tag={m.Tag} len={data.Length} crc32={Crc32.Of(data)}" +
                (topic ? $" seq={m.Seq} lost={m.Lost}" : ""));
            switch (how)
            {
                case "batch":
                    using (Batch batch = limits.ReceiveBatch(rx, 1))
                    {
                        Say(batch[0].Info, batch[0].Data);
                    }
                    break;
                case "into":
                    var target = new byte[Math.Min(rx.Capacity, 1 << 20)];
                    rx.RecvInto(target, out MessageInfo info, limits.Whole);
                    Say(info, target.AsSpan(0, info.Length));
                    break;
                case "memory":
                    using (OwnedMessage owned = rx.RecvMemory(limits.Whole))
                    {
                        Say(owned.Info, owned.Memory.Span);
                    }
                    break;
                case "async":
                    using (MessageLease lease = Plan.Await(limits, limit => rx.RecvAsync(limit)))
                    {
                        Say(lease.Info, lease.Data);
                    }
                    break;
                case "try":
                    if (!rx.TryRecv(out Message there))
                    {
                        throw new EndingException(ErrorKind.Empty);
                    }
                    using (there)
                    {
                        Say(there.Info, there.Data);
                    }
                    break;
                default:
                    using (Message message = limits.Receive(rx))
                    {
                        if (!tensor || !Tensors.Say(message))
                        {
                            Say(message.Info, message.Data);
                        }
                    }
                    break;
            }
        }
    }
}
