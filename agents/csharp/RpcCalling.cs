using System;
using System.Buffers.Binary;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Agents
{
    /// <summary>open rpc= role=client: a client's commands.</summary>
    internal sealed class RpcCalling
    {
        private readonly RpcClient client;
        private readonly int pid;
        private readonly bool asynchronous;
        private List<Kept> calls = new List<Kept>();
        private List<Flow> streams = new List<Flow>();

        internal RpcCalling(Line line, string name, int pid, bool asynchronous)
        {
            var options = new RpcClientOptions
            {
                Wait = line.Wait(),
                Timeout = TimeSpan.FromMilliseconds(line.Number("timeout", (long)Agent.OpenTimeout.TotalMilliseconds)),
                MaxBuffered = line.Number("max_buffered", 0),
            };
            line.End();
            this.pid = pid;
            this.asynchronous = asynchronous;
            client = RpcClient.Connect(name, options);
            Agent.Say($"attached pid={pid} peer_pid={client.PeerPid} max_in_flight={client.MaxInFlight}");
        }

        /// <summary>Does what a client is told. False: it is no command of its own.</summary>
        internal bool Obey(Line line)
        {
            switch (line.Word)
            {
                case "call":
                    Call(line);
                    return true;
                case "start":
                    Start(line);
                    return true;
                case "collect":
                    Collect(line);
                    return true;
                case "stream":
                    Stream(line);
                    return true;
                case "next":
                    Next(line);
                    return true;
                case "cancel":
                    line.End();
                    int count = calls.Count + streams.Count;
                    calls.ForEach(kept => kept.Cancel());
                    streams.ForEach(flow => flow.Stream?.Dispose());
                    calls.Clear();
                    streams.Clear();
                    Agent.Say("cancelled count=" + count);
                    return true;
                case "health":
                    line.End();
                    Health();
                    return true;
                case "describe":
                    line.End();
                    Agent.Say("described text=" + string.Join(",", client.Describe(Longest)));
                    return true;
                case "state":
                    line.End();
                    Agent.Say("state in_flight=" + client.InFlight);
                    return true;
                case "measure":
                    new RpcMeasure(client, line, asynchronous).Run();
                    return true;
                case "close":
                    line.End();
                    client.Dispose();
                    return true;
                default:
                    return false;
            }
        }

        /// <summary>The longest single wait where none is said.</summary>
        private static readonly TimeSpan Longest = TimeSpan.FromSeconds(20);

        private static TimeSpan? Timeout(Line line)
        {
            long ms = line.Number("timeout", (long)Longest.TotalMilliseconds);
            return ms == 0 ? (TimeSpan?)null : TimeSpan.FromMilliseconds(ms);
        }

        private void Health()
        {
            try
            {
                if (asynchronous)
                {
                    client.PingAsync(Longest).GetAwaiter().GetResult();
                }
                else
                {
                    client.Ping(Longest);
                }
                Agent.Say("healthy");
            }
            catch (RpcException e)
            {
                Agent.Say($"end name={Tally.NameOf(e)} number={(int?)e.Status ?? (int)e.Kind!.Value}");
            }
        }

        private void Call(Line line)
        {
            var plan = new CallPlan(line, this);
            long inFlight = line.Number("in_flight", 1);
            bool cancel = line.Yes("cancel");
            line.End();
            var tally = new Tally();
            var under = new Queue<Kept>();
            for (long seq = plan.Start; seq < plan.Start + plan.Count; seq++)
            {
                if (inFlight == 1 && !cancel)
                {
                    tally.Count(() => plan.Check(seq, Blocking(plan, seq)));
                    continue;
                }
                if (under.Count == inFlight)
                {
                    End(under.Dequeue(), cancel, tally);
                }
                under.Enqueue(Begin(plan, seq));
            }
            while (under.Count != 0)
            {
                End(under.Dequeue(), cancel, tally);
            }
            tally.Say("called count=" + plan.Count);
        }

        private RpcReply Blocking(CallPlan plan, long seq) => asynchronous
            ? client.CallAsync(plan.Method, plan.Body(seq), plan.Options(seq)).GetAwaiter().GetResult()
            : client.Call(plan.Method, plan.Body(seq), plan.Options(seq));

        private static void End(Kept kept, bool cancel, Tally tally)
        {
            if (cancel && kept.Seq % 2 != 0)
            {
                kept.Cancel();
                tally.Cancelled++;
                return;
            }
            tally.Count(() => kept.Plan.Check(kept.Seq, kept.Wait(Longest)));
        }

        private Kept Begin(CallPlan plan, long seq)
        {
            var kept = new Kept(plan, seq);
            if (asynchronous)
            {
                kept.Source = new CancellationTokenSource();
                kept.Task = client.CallAsync(plan.Method, plan.Body(seq), plan.Options(seq), kept.Source.Token);
                return kept;
            }
            try
            {
                kept.Pending = client.Start(plan.Method, plan.Body(seq), plan.Options(seq));
            }
            catch (RpcException e)
            {
                kept.Error = e;
            }
            return kept;
        }

        private void Start(Line line)
        {
            var plan = new CallPlan(line, this);
            line.End();
            for (long seq = plan.Start; seq < plan.Start + plan.Count; seq++)
            {
                calls.Add(Begin(plan, seq));
            }
            Agent.Say("started count=" + plan.Count);
        }

        private void Collect(Line line)
        {
            TimeSpan? timeout = Timeout(line);
            line.End();
            var tally = new Tally();
            int count = calls.Count;
            for (int i = 0; i < count; i++)
            {
                Kept kept = calls[i];
                try
                {
                    tally.Count(() => kept.Plan.Check(kept.Seq, kept.Wait(timeout)));
                }
                catch (Exception e) when (EndingException.KindOf(e) == ErrorKind.TimedOut)
                {
                    calls = calls.GetRange(i, count - i);
                    Agent.Say("end " + Agent.Named(ErrorKind.TimedOut));
                    return;
                }
            }
            calls.Clear();
            tally.Say("called count=" + count);
        }

        private void Stream(Line line)
        {
            uint count = (uint)line.Number("count", 1), size = (uint)line.Number("size", 0), code = (uint)line.Number("code", 0);
            long number = line.Number("streams", 1), start = line.Number("start", 0), deadline = line.Number("deadline", 0);
            var options = new RpcCallOptions { Timeout = deadline == 0 ? (TimeSpan?)null : TimeSpan.FromTicks(10 * deadline) };
            options.Window = (int)line.Number("window", options.Window);
            line.End();
            for (long seq = start; seq < start + number; seq++)
            {
                var flow = new Flow(seq, count, size, code);
                try
                {
                    flow.Stream = client.Stream(4, RpcServing.Words(count, size, code, (uint)seq), options);
                }
                catch (RpcException e)
                {
                    flow.Error = e;
                }
                streams.Add(flow);
            }
            Agent.Say("started count=" + number);
        }

        private void Next(Line line)
        {
            long count = line.Number("count", long.MaxValue);
            TimeSpan? timeout = Timeout(line);
            line.End();
            var tally = new Tally();
            long received = 0;
            var open = new List<Flow>(streams);
            try
            {
                for (long round = 0; round < count && open.Count != 0; round++)
                {
                    foreach (Flow flow in open.ToArray())
                    {
                        bool there = false;
                        bool ended = !tally.Count(() => flow.Next(timeout, asynchronous, out there, tally)) || !there;
                        received += there ? 1 : 0;
                        if (ended)
                        {
                            open.Remove(flow);
                            streams.Remove(flow);
                        }
                    }
                }
            }
            catch (Exception e) when (EndingException.KindOf(e) == ErrorKind.TimedOut)
            {
                Agent.Say("end " + Agent.Named(ErrorKind.TimedOut));
                return;
            }
            tally.Say("streamed received=" + received);
        }

        /// <summary>What calls are made, and what must come.</summary>
        private sealed class CallPlan
        {
            private readonly RpcCalling owner;
            private readonly string name;
            private readonly Sizes sizes;
            private readonly Messages messages;
            private readonly long longest, meta;
            private readonly TimeSpan? deadline;

            internal CallPlan(Line line, RpcCalling owner)
            {
                this.owner = owner;
                name = line.Maybe("method") ?? "1";
                Method = name == "sum" ? Rpc.MethodId("Agent.Sum")
                    : uint.TryParse(name, out uint number) ? number : throw new RefusedException("method=" + name);
                Count = line.Number("count", 1);
                Start = line.Number("start", 0);
                longest = line.Number("longest", 4096);
                meta = line.Number("meta", 0);
                long us = line.Number("deadline", -1);
                deadline = us < 0 ? (TimeSpan?)null : TimeSpan.FromTicks(10 * us);
                string? text = line.Maybe("sizes");
                sizes = new Sizes(text ?? "mixed");
                messages = new Messages(sizes, longest);
            }

            internal uint Method { get; }

            internal long Start { get; }

            internal long Count { get; }

            internal RpcCallOptions Options(long seq) => new RpcCallOptions { Timeout = deadline, Meta = Meta(seq) };

            private byte[] Meta(long seq)
            {
                byte[] bytes = new byte[meta];
                RpcBytes.Fill(bytes, seq + 1);
                return bytes;
            }

            internal byte[] Body(long seq)
            {
                switch (Method)
                {
                    case 2:
                        return RpcServing.Words((uint)seq, (uint)sizes.Length(seq, longest));
                    case 3:
                        return RpcServing.Words((uint)seq + 1).Concat(Encoding.UTF8.GetBytes("call " + seq)).ToArray();
                    case 6:
                    case 7:
                        return Array.Empty<byte>();
                    default:
                        return messages.Make(seq).Payload.ToArray();
                }
            }

            /// <summary>The length of a reply that is as it must be.</summary>
            internal long Check(long seq, RpcReply reply)
            {
                ReadOnlySpan<byte> body = reply.Body.Span;
                bool right = true;
                switch (Method)
                {
                    case 1:
                    case 5:
                        right = body.SequenceEqual(Body(seq)) && reply.Meta.Span.SequenceEqual(Meta(seq));
                        break;
                    case 2:
                        right = body.Length == sizes.Length(seq, longest) && RpcBytes.Are(body, seq);
                        break;
                    case 3:
                    case 6:
                        right = false;
                        break;
                    case 7:
                        uint left = body.Length == 8 ? BinaryPrimitives.ReadUInt32LittleEndian(body.Slice(4)) : uint.MaxValue;
                        double given = deadline == null ? 0 : Math.Ceiling(deadline.Value.TotalMilliseconds);
                        right = body.Length == 8 && BinaryPrimitives.ReadUInt32LittleEndian(body) == owner.pid &&
                            left <= given && (deadline == null || left > 0);
                        break;
                    default:
                        right = name != "sum" || body.SequenceEqual(RpcServing.Words(Crc32.Of(Body(seq))));
                        break;
                }
                right &= Method == 1 || Method == 5 || reply.Meta.IsEmpty;
                return right ? body.Length : throw new BadException(seq, $"the reply of method {name}, {body.Length} bytes with " +
                    $"{reply.Meta.Length} of metadata");
            }

            /// <summary>An error that is as it must be.</summary>
            internal void Check(long seq, RpcException e)
            {
                if (Method == 3 && e.Status == RpcStatus.Application && (e.Code != seq + 1 || e.Text != "call " + seq))
                {
                    throw new BadException(seq, $"method 3 failed with {e.Code} and '{e.Text}'");
                }
            }
        }

        /// <summary>A call that is under way.</summary>
        private sealed class Kept
        {
            internal Kept(CallPlan plan, long seq)
            {
                Plan = plan;
                Seq = seq;
            }

            internal readonly CallPlan Plan;
            internal readonly long Seq;
            internal RpcPending? Pending;
            internal Task<RpcReply>? Task;
            internal CancellationTokenSource? Source;
            internal RpcException? Error;

            internal RpcReply Wait(TimeSpan? timeout)
            {
                try
                {
                    if (Pending != null)
                    {
                        return Pending.Wait(timeout);
                    }
                    if (Task != null)
                    {
                        // By the handle, which does not throw what the task failed with.
                        if (!((IAsyncResult)Task).AsyncWaitHandle.WaitOne(timeout ?? System.Threading.Timeout.InfiniteTimeSpan))
                        {
                            throw new EndingException(ErrorKind.TimedOut);
                        }
                        return Task.GetAwaiter().GetResult();
                    }
                    throw Error!;
                }
                catch (RpcException e)
                {
                    Plan.Check(Seq, e);
                    throw;
                }
            }

            internal void Cancel()
            {
                Source?.Cancel();
                Pending?.Dispose();
            }
        }

        /// <summary>A stream that is under way.</summary>
        private sealed class Flow
        {
            private readonly long seq;
            private readonly uint count, size, code;
            private uint next;

            internal Flow(long seq, uint count, uint size, uint code)
            {
                this.seq = seq;
                this.count = count;
                this.size = size;
                this.code = code;
            }

            internal RpcStream? Stream;
            internal RpcException? Error;

            /// <summary>An element's length; there: false where the stream is complete, which is an outcome.</summary>
            internal long? Next(TimeSpan? timeout, bool asynchronous, out bool there, Tally tally)
            {
                there = false;
                RpcReply? element;
                try
                {
                    element = Stream == null ? throw Error! : asynchronous ? Later(timeout) : Blocking(timeout);
                }
                catch (RpcException e)
                {
                    if (e.Status == RpcStatus.Application && (e.Code != code || e.Text != "after " + count || next != count))
                    {
                        throw new BadException(seq, $"the stream failed with {e.Code} and '{e.Text}' after {next} elements");
                    }
                    throw;
                }
                if (element == null)
                {
                    return next == count && code == 0 ? 0 : throw new BadException(seq, $"the stream was complete after {next} elements");
                }
                if (element.Body.Length != size || !RpcBytes.Are(element.Body.Span, seq + next))
                {
                    throw new BadException(seq, $"element {next}, {element.Body.Length} bytes");
                }
                next++;
                there = true;
                tally.Bytes += element.Body.Length;
                return null;
            }

            private RpcReply? Blocking(TimeSpan? timeout) => Stream!.Next(out RpcReply? element, timeout) ? element : null;

            private RpcReply? Later(TimeSpan? timeout)
            {
                using var limit = new Deadline(timeout);
                try
                {
                    return Stream!.NextAsync(limit.Token).AsTask().GetAwaiter().GetResult();
                }
                catch (OperationCanceledException)
                {
                    throw new EndingException(ErrorKind.TimedOut);
                }
            }
        }

        /// <summary>How calls ended.</summary>
        private sealed class Tally
        {
            private readonly SortedDictionary<string, long> outcomes = new SortedDictionary<string, long>(StringComparer.Ordinal);
            private readonly long began = Clock.Now;
            private long mayHaveRun;

            internal long Cancelled;
            internal long Bytes;

            internal static string NameOf(RpcException e) => e.Status?.ToString() ?? e.Kind!.Value.ToString();

            /// <summary>Counts a call that gives the length of its reply. False: it failed.</summary>
            internal bool Count(Func<long> call) => Count(() => (long?)call());

            /// <summary>The same where null is no outcome yet.</summary>
            internal bool Count(Func<long?> call)
            {
                try
                {
                    if (call() is long bytes)
                    {
                        Bytes += bytes;
                        Add("Ok");
                    }
                    return true;
                }
                catch (RpcException e)
                {
                    Add(NameOf(e));
                    mayHaveRun += e.MayHaveRun ? 1 : 0;
                    return false;
                }
            }

            private void Add(string name) => outcomes[name] = outcomes.TryGetValue(name, out long n) ? n + 1 : 1;

            internal void Say(string start) => Agent.Say(start + string.Concat(outcomes.Select(o => $" {o.Key}={o.Value}")) +
                $" cancelled={Cancelled} may_have_run={mayHaveRun} bytes={Bytes} elapsed_ms={Clock.MsSince(began)}");
        }
    }
}
