using System;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Agents
{
    /// <summary>A call that never waits gave nothing.</summary>
    internal sealed class EndingException : Exception
    {
        internal EndingException(ErrorKind kind)
            : base(kind.ToString()) => Kind = kind;

        internal ErrorKind Kind { get; }

        /// <summary>What a call ended with, if it is that or an error of the library's.</summary>
        internal static ErrorKind? KindOf(Exception e) =>
            e is EndingException ending ? ending.Kind : e is RamwayException error ? error.Kind : (ErrorKind?)null;
    }

    /// <summary>The keys that produce and consume have, and how a stream goes on after an end.</summary>
    internal sealed class Plan
    {
        private long endings;

        internal Plan(Agent agent, Line line, int together)
        {
            Limited = line.Has("timeout");
            Limits = line.Limits();
            Asynchronous = agent.Asynchronous && Limits.Poll == null;
            How = line.Text("how");
            Start = line.Number("start", -1);
            Count = line.Number("count", -1);
            Batch = (int)line.Number("batch", together);
            Progress = line.Yes("progress");
            endings = line.Number("endings", 1);
            line.End();
        }

        /// <summary>Whether it was said how long a wait may last.</summary>
        internal bool Limited { get; }

        internal Limits Limits { get; }

        internal bool Asynchronous { get; }

        internal string How { get; }

        /// <summary>This and Count: -1 where it is not given.</summary>
        internal long Start { get; }

        internal long Count { get; }

        internal int Batch { get; }

        internal bool Progress { get; }

        /// <summary>Whether the stream goes on after this, with a successor of the other side.</summary>
        internal bool GoesOn(ErrorKind kind) => (kind == ErrorKind.Closed || kind == ErrorKind.PeerDead) && --endings > 0;

        /// <summary>Checks every millisecond whether the other side's epoch differs from the noted one; false: none came in time.
        /// </summary>
        internal bool Successor(uint noted, Func<uint> epoch)
        {
            long began = Clock.Now;
            while (epoch() == noted)
            {
                if (Limits.Whole != null && Clock.MsSince(began) >= Limits.Whole.Value.TotalMilliseconds)
                {
                    return false;
                }
                Thread.Sleep(1);
            }
            return true;
        }

        /// <summary>
        /// Waits for what a call gives that waits without a thread, for as long as a wait may last: this program has nothing else
        /// to do meanwhile.
        /// </summary>
        internal static T Await<T>(Limits limits, Func<CancellationToken, ValueTask<T>> call)
        {
            using var limit = new Deadline(limits.Whole);
            try
            {
                return call(limit.Token).AsTask().GetAwaiter().GetResult();
            }
            catch (OperationCanceledException)
            {
                throw new EndingException(ErrorKind.TimedOut);
            }
        }
    }

    /// <summary>produce.</summary>
    internal sealed class Produce
    {
        private readonly Sender tx;
        private readonly Messages all;
        private readonly Plan plan;
        private long next;
        private long sent;

        internal Produce(Agent agent, Sender tx, Line line)
        {
            this.tx = tx;
            all = new Messages(line, tx.MaxMessageLength);
            plan = new Plan(agent, line, 1);
            next = Math.Max(plan.Start, 0);
            if (plan.Count < 0)
            {
                throw new RefusedException("count is missing");
            }
        }

        /// <summary>Sends one message as how says, waiting for room for as long as a wait may last.</summary>
        private void Put(in Made m, bool flush)
        {
            bool never = plan.How == "try";
            if (flush && plan.How != "reserve")
            {
                if (never)
                {
                    if (!tx.TrySend(m.TypeId, m.Tag, m.Payload))
                    {
                        throw new EndingException(ErrorKind.Full);
                    }
                }
                else if (plan.Asynchronous)
                {
                    Send(m.TypeId, m.Tag, m.Payload.ToArray());
                }
                else
                {
                    plan.Limits.Send(tx, m);
                }
                return;
            }
            Slot slot;
            if (!never)
            {
                slot = plan.Limits.Reserve(tx, m.Payload.Length);
            }
            else if (!tx.TryReserve(m.Payload.Length, out slot))
            {
                throw new EndingException(ErrorKind.Full);
            }
            m.Payload.CopyTo(slot.Data);
            if (flush)
            {
                slot.Commit(m.TypeId, m.Tag);
            }
            else
            {
                slot.CommitUnflushed(m.TypeId, m.Tag);
            }
        }

        /// <summary>Sends, without a thread that waits for room.</summary>
        private void Send(uint typeId, ulong tag, ReadOnlyMemory<byte> data) => Plan.Await(plan.Limits, async limit =>
        {
            await tx.SendAsync(typeId, tag, data, limit);
            return true;
        });

        internal void Run()
        {
            long end = next + plan.Count;
            while (next < end)
            {
                bool flush = (sent + 1) % plan.Batch == 0 || next + 1 == end;
                uint noted = tx.PeerEpoch;
                long began = Clock.Now;
                try
                {
                    Put(all.Make(next), flush);
                }
                catch (Exception e) when (EndingException.KindOf(e) is ErrorKind kind)
                {
                    Report(kind, began);
                    if (!plan.GoesOn(kind))
                    {
                        return;
                    }
                    if (!plan.Successor(noted, () => tx.PeerEpoch))
                    {
                        Report(ErrorKind.TimedOut, began);
                        return;
                    }
                    continue;
                }
                if (plan.Progress)
                {
                    Agent.Say($"at seq={next}");
                }
                sent++;
                next++;
            }
            Agent.Say($"sent count={sent} next={next}");
        }

        private void Report(ErrorKind kind, long began) =>
            Agent.Say($"end {Agent.Named(kind)} sent={sent} next={next} elapsed_ms={Clock.MsSince(began)}");
    }

    /// <summary>consume, and what a consumer has seen so far.</summary>
    internal sealed class Consume
    {
        private static readonly string[] Ways = { "recv", "batch", "into" };

        private readonly Receiver rx;
        private readonly Messages all;
        private readonly Plan plan;

        /// <summary>Where "into" copies to.</summary>
        private byte[]? target;
        private long first = -1;

        /// <summary>The number that is expected; -1 for whatever the first tag says.</summary>
        private long next;
        private long received;
        private long bytes;

        /// <summary>Of a topic: messages have numbers, and this is how many it was told that it lost.</summary>
        private readonly bool ofTopic;
        private long lost;

        /// <summary>Of the call that is being made: the other side's epoch before it, and when it began.</summary>
        private uint noted;
        private long began;

        internal Consume(Agent agent, Receiver rx, Line line)
        {
            this.rx = rx;
            all = new Messages(line, rx.MaxMessageLength);
            plan = new Plan(agent, line, 32);
            next = plan.Start;
            ofTopic = rx is Subscriber;
        }

        /// <summary>Takes what a topic's message says of itself; the first one has 1.</summary>
        private void Number(in MessageInfo m)
        {
            long seq = (long)m.Seq - 1;
            if (next >= 0 && next + (long)m.Lost != seq)
            {
                throw new BadException(seq, $"it comes after {m.Lost} lost ones, and {next} was expected");
            }
            next = seq;
            lost += (long)m.Lost;
        }

        /// <summary>Reports how many messages an ejection cost.</summary>
        private void Lagged(long more)
        {
            Agent.Say($"lagged lost={more}");
            lost += more;
            next += next >= 0 ? more : 0;
        }

        /// <summary>Checks a message before it is released.</summary>
        private void Take(in MessageInfo m, ReadOnlySpan<byte> payload)
        {
            if (ofTopic)
            {
                Number(m);
            }
            long seq = next >= 0 ? next : Messages.SeqOf(m.Tag);
            all.Check(seq, m.TypeId, m.Tag, payload);
            if (first < 0)
            {
                first = seq;
            }
            next = seq + 1;
            received++;
            bytes += payload.Length;
            if (plan.Progress)
            {
                Agent.Say($"at seq={seq}");
            }
        }

        /// <summary>How many messages there are left to receive.</summary>
        private long Left => plan.Count >= 0 ? plan.Count - received : long.MaxValue;

        /// <summary>Receives one message, or a batch of them, as how says.</summary>
        private void Get()
        {
            bool never = plan.How == "try";
            // By turns the ways of not waiting.
            switch (never ? Ways[received % 3] : plan.How)
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
            if (!never && plan.Asynchronous)
            {
                using MessageLease lease = Plan.Await(plan.Limits, limit => rx.RecvAsync(limit));
                Take(lease.Info, lease.Data);
                return;
            }
            if (!never && received % 4 == 3)
            {
                // What may be kept longer than a message comes in between.
                using OwnedMessage owned = plan.Limits.Within(limit => rx.RecvMemory(limit));
                Take(owned.Info, owned.Memory.Span);
                return;
            }
            Message message;
            if (!never)
            {
                message = plan.Limits.Receive(rx);
            }
            else if (!rx.TryRecv(out message))
            {
                throw new EndingException(ErrorKind.Empty);
            }
            using (message)
            {
                Take(message.Info, message.Data);
            }
        }

        private void GetBatch(bool never)
        {
            int most = (int)Math.Min(plan.Batch, Left);
            Batch batch;
            if (!never)
            {
                batch = plan.Limits.ReceiveBatch(rx, most);
            }
            else if (!rx.TryRecvBatch(most, out batch))
            {
                throw new EndingException(ErrorKind.Empty);
            }
            using (batch)
            {
                foreach (Message message in batch)
                {
                    Take(message.Info, message.Data);
                }
            }
        }

        private void GetInto(bool never)
        {
            target ??= new byte[rx.MaxMessageLength];
            MessageInfo info;
            if (!never)
            {
                info = plan.Limits.Within(limit =>
                {
                    rx.RecvInto(target, out MessageInfo found, limit);
                    return found;
                });
            }
            else if (!rx.TryRecvInto(target, out info))
            {
                throw new EndingException(ErrorKind.Empty);
            }
            Take(info, target.AsSpan(0, info.Length));
        }

        /// <summary>
        /// Receives until nothing is left, as most programs would that wait without a thread. Each message is released when the
        /// loop comes back for the next one.
        /// </summary>
        private async Task GetAll()
        {
            await foreach (MessageLease lease in rx.ReadAllAsync())
            {
                Take(lease.Info, lease.Data);
                if (Left == 0)
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
            began = Clock.Now;
        }

        internal void Run()
        {
            long elapsed = 0;
            while (Left > 0)
            {
                Begin();
                try
                {
                    if (plan.Asynchronous && !plan.Limited && (plan.How == "" || plan.How == "recv"))
                    {
                        GetAll().GetAwaiter().GetResult();
                    }
                    else
                    {
                        Get();
                    }
                    elapsed = Left > 0 ? 0 : Clock.MsSince(began);
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.Lagged)
                {
                    Lagged((long)e.Lost);
                }
                catch (Exception e) when (EndingException.KindOf(e) is ErrorKind kind)
                {
                    elapsed = Clock.MsSince(began);
                    Report(Agent.Named(kind), elapsed);
                    if (!plan.GoesOn(kind))
                    {
                        return;
                    }
                    if (!plan.Successor(noted, () => rx.PeerEpoch))
                    {
                        Report(Agent.Named(ErrorKind.TimedOut), elapsed);
                        return;
                    }
                }
            }
            Report("name=Count number=0", elapsed);
        }

        private void Report(string named, long elapsed)
        {
            long last = first >= 0 ? next - 1 : -1;
            Agent.Say($"end {named} received={received} first={first} last={last} bytes={bytes} elapsed_ms={elapsed}" +
                (ofTopic ? $" lost={lost}" : ""));
        }
    }
}
