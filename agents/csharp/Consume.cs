using System;
using System.Diagnostics;
using System.Threading.Tasks;

namespace Ramway.Conformance
{
    /// <summary>consume, and what a consumer has seen so far.</summary>
    internal sealed class Consume
    {
        private static readonly string[] Ways = { "recv", "batch", "into" };

        private readonly Args args;
        private readonly Place place;
        private readonly Receiver rx;
        private readonly Messages all;

        /// <summary>Where "into" copies to.</summary>
        private byte[]? target;
        private long first = -1;

        /// <summary>The number that is expected; -1 for whatever the first tag says.</summary>
        private long next;
        private long received;
        private long bytes;

        /// <summary>Of the call that is being made: the other side's epoch before it, and when it began.</summary>
        private uint noted;
        private long began;

        internal Consume(Args args)
        {
            this.args = args;
            place = Place.Receiving(args);
            rx = place.Rx;
            all = new Messages(args.Sizes, rx.MaxMessageLength);
            next = args.Start;
        }

        internal static void Play(Args args)
        {
            Args.OneOf("how", args.How, "", "recv", "batch", "into", "try");
            new Consume(args).Run();
        }

        /// <summary>Checks a message before it is released.</summary>
        private void Take(uint typeId, ulong tag, ReadOnlySpan<byte> payload)
        {
            long seq = next >= 0 ? next : Messages.SeqOf(tag);
            all.Check(seq, typeId, tag, payload);
            if (first < 0)
            {
                first = seq;
            }
            next = seq + 1;
            received++;
            bytes += payload.Length;
            if (args.Progress)
            {
                Program.Say($"at seq={seq}");
            }
            Place.Sleep(args.Work);
        }

        /// <summary>How many messages there are left to receive.</summary>
        private long Left()
        {
            long left = args.Count >= 0 ? args.Count - received : long.MaxValue;
            return args.Until >= 0 ? Math.Min(left, Math.Max(args.Until - Math.Max(next, 0), 0)) : left;
        }

        /// <summary>Receives one message, or a batch of them, as --how says.</summary>
        private void Get()
        {
            bool never = args.How == "try";
            // By turns the ways of not waiting.
            switch (never ? Ways[received % 3] : args.How)
            {
                case "batch":
                    GetBatch(never);
                    break;
                case "into":
                    GetInto(never);
                    break;
                default:
                    GetOne(never);
                    break;
            }
        }

        private void GetOne(bool never)
        {
            if (!never && args.Asynchronous)
            {
                using MessageLease lease = place.Await(limit => rx.RecvAsync(limit));
                Take(lease.TypeId, lease.Tag, lease.Data);
                return;
            }
            if (!never && received % 4 == 3)
            {
                // What may be kept longer than a message comes in between.
                using OwnedMessage owned = place.Await(limit => rx.RecvMemory(limit));
                Take(owned.TypeId, owned.Tag, owned.Memory.Span);
                return;
            }
            Message message;
            if (!never)
            {
                message = place.Receive();
            }
            else if (!rx.TryRecv(out message))
            {
                throw new EndingException(ErrorKind.Empty);
            }
            using (message)
            {
                Take(message.TypeId, message.Tag, message.Data);
            }
        }

        private void GetBatch(bool never)
        {
            int most = (int)Math.Min(args.Batch > 0 ? args.Batch : 32, Left());
            Batch batch;
            if (!never)
            {
                batch = place.ReceiveBatch(most);
            }
            else if (!rx.TryRecvBatch(most, out batch))
            {
                throw new EndingException(ErrorKind.Empty);
            }
            using (batch)
            {
                foreach (Message message in batch)
                {
                    Take(message.TypeId, message.Tag, message.Data);
                }
            }
        }

        private void GetInto(bool never)
        {
            target ??= new byte[rx.MaxMessageLength];
            MessageInfo info;
            if (!never)
            {
                info = place.Await(limit =>
                {
                    rx.RecvInto(target, out MessageInfo found, limit);
                    return found;
                });
            }
            else if (!rx.TryRecvInto(target, out info))
            {
                throw new EndingException(ErrorKind.Empty);
            }
            Take(info.TypeId, info.Tag, target.AsSpan(0, info.Length));
        }

        /// <summary>
        /// Receives until nothing is left, as most programs would that wait without a thread. Each message is released when the
        /// loop comes back for the next one.
        /// </summary>
        private async Task GetAll()
        {
            await foreach (MessageLease lease in rx.ReadAllAsync())
            {
                Take(lease.TypeId, lease.Tag, lease.Data);
                if (Left() == 0)
                {
                    return;
                }
                Begin();
            }
            throw new EndingException(ErrorKind.Closed);
        }

        private void Begin()
        {
            noted = rx.PeerEpoch;
            began = Stopwatch.GetTimestamp();
        }

        private void Run()
        {
            string end = "name=Count number=0";
            long elapsed = 0;
            long endings = 0;
            while (Left() > 0)
            {
                Begin();
                try
                {
                    if (args.Asynchronous && args.Patient && (args.How == "" || args.How == "recv"))
                    {
                        GetAll().GetAwaiter().GetResult();
                    }
                    else
                    {
                        Get();
                    }
                    elapsed = Left() > 0 ? 0 : Clock.MsSince(began);
                }
                catch (Exception e) when (EndingException.KindOf(e) is ErrorKind kind)
                {
                    elapsed = Clock.MsSince(began);
                    end = Program.Named(kind);
                    if (Program.IsEnding(kind) && ++endings < args.Endings)
                    {
                        Report(end, elapsed);
                        if (place.AwaitSuccessor(noted, rx))
                        {
                            end = "name=Count number=0";
                            continue;
                        }
                        end = Program.Named(ErrorKind.TimedOut);
                    }
                    break;
                }
            }
            Report(end, elapsed);
            Input.Linger(args);
            place.Close();
        }

        private void Report(string named, long elapsed)
        {
            long last = first >= 0 ? next - 1 : -1;
            Program.Say($"end {named} received={received} first={first} last={last} bytes={bytes} elapsed_ms={elapsed}");
        }

        /// <summary>Receives --count messages and dies with the last one in hand.</summary>
        internal void ReceiveAndDie()
        {
            for (;;)
            {
                using Message message = place.Receive();
                Take(message.TypeId, message.Tag, message.Data);
                if (received >= args.Count)
                {
                    Program.Say($"dying next={next - 1}");
                    Native.Crash();
                }
            }
        }
    }
}
