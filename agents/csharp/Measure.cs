using System;
using System.Numerics;
using System.Runtime.InteropServices;
using System.Text;

namespace Ramway.Agents
{
    /// <summary>measure: the loops that are timed, written as a user who wants speed would.</summary>
    internal sealed class Measure
    {
        /// <summary>Message number n has the words n % Cycle and those after it.</summary>
        internal const int Cycle = 4096;

        private readonly Sender tx;
        private readonly Receiver rx;
        private readonly string what;
        private readonly int size, batch;
        private readonly long count, group;

        /// <summary>When each group began, and the last one ended.</summary>
        private readonly long[] stamps;
        private int stamped;
        private ulong words;

        internal Measure(Agent agent, Line line)
        {
            what = line.Text("do");
            size = (int)line.Number("size", 0);
            count = line.Number("count", 0);
            batch = (int)line.Number("batch", 1);
            group = line.Number("group", 1);
            WaitMode wait = line.Wait();
            line.End();
            stamps = new long[count / group + 2];
            // Which of them a loop needs is open.
            tx = agent.Tx!;
            rx = agent.Rx!;
            if (agent.Tx != null)
            {
                tx.WaitMode = wait;
            }
            if (agent.Rx != null)
            {
                rx.WaitMode = wait;
            }
        }

        internal void Run()
        {
            Agent.Say("ready");
            if (what == "ping" || what == "send")
            {
                // The other side is told first: it polls by then.
                Line.Next();
            }
            long allocated = GC.GetAllocatedBytesForCurrentThread();
            long began = Clock.Ns;
            switch (what)
            {
                case "ping":
                    Ping();
                    break;
                case "echo":
                    Echo();
                    break;
                case "send" when batch > 1:
                    SendTogether();
                    break;
                case "send":
                    SendEach();
                    break;
                case "receive" when batch > 1:
                    ReceiveTogether();
                    break;
                case "receive":
                    ReceiveEach();
                    break;
                case "latest":
                    Latest();
                    break;
                default:
                    throw new RefusedException("do=" + what);
            }
            long ended = Clock.Ns;
            allocated = GC.GetAllocatedBytesForCurrentThread() - allocated;
            var samples = new StringBuilder();
            for (int i = 1; i < stamped; i++)
            {
                samples.Append(i > 1 ? "," : "").Append(stamps[i] - stamps[i - 1]);
            }
            Agent.Say($"measured began_ns={began} ended_ns={ended} words={words} allocated={allocated} samples={samples}");
        }

        private void Stamp() => stamps[stamped++] = Clock.Ns;

        /// <summary>Writes the words seq, seq + 1, ….</summary>
        private static void Fill(Span<byte> bytes, long seq)
        {
            Span<ulong> words = MemoryMarshal.Cast<byte, ulong>(bytes);
            ulong next = (ulong)seq;
            if (words.Length == 4)
            {
                words[3] = next + 3;
                words[2] = next + 2;
                words[1] = next + 1;
                words[0] = next;
                return;
            }
            if (words.Length >= 64)
            {
                Span<Vector<ulong>> vectors = MemoryMarshal.Cast<ulong, Vector<ulong>>(words);
                Span<ulong> start = stackalloc ulong[Vector<ulong>.Count];
                for (int i = 0; i < start.Length; i++)
                {
                    start[i] = next + (ulong)i;
                }
                var vector = MemoryMarshal.Cast<ulong, Vector<ulong>>(start)[0];
                var step = new Vector<ulong>((ulong)Vector<ulong>.Count);
                for (int i = 0; i < vectors.Length; i++)
                {
                    vectors[i] = vector;
                    vector += step;
                }
                int done = vectors.Length * Vector<ulong>.Count;
                words = words.Slice(done);
                next += (ulong)done;
            }
            for (int i = 0; i < words.Length; i++)
            {
                words[i] = next + (ulong)i;
            }
        }

        /// <summary>Adds up all words.</summary>
        private static ulong Sum(ReadOnlySpan<byte> bytes, int size)
        {
            if (bytes.Length != size)
            {
                throw new BadException(0, "a message of another length than was said");
            }
            ReadOnlySpan<ulong> words = MemoryMarshal.Cast<byte, ulong>(bytes);
            if (words.Length == 4)
            {
                return words[3] + words[2] + words[1] + words[0];
            }
            ulong sum = 0;
            if (words.Length >= 64)
            {
                ReadOnlySpan<Vector<ulong>> vectors = MemoryMarshal.Cast<ulong, Vector<ulong>>(words);
                var (even, odd) = (Vector<ulong>.Zero, Vector<ulong>.Zero);
                int i = 0;
                for (; i + 1 < vectors.Length; i += 2)
                {
                    even += vectors[i];
                    odd += vectors[i + 1];
                }
                even += odd;
                for (int lane = 0; lane < Vector<ulong>.Count; lane++)
                {
                    sum += even[lane];
                }
                words = words.Slice(i * Vector<ulong>.Count);
            }
            foreach (ulong word in words)
            {
                sum += word;
            }
            return sum;
        }

        private void Put(long seq)
        {
            Slot slot = tx.Reserve(size);
            Fill(slot.Data, seq & (Cycle - 1));
            slot.Commit(0);
        }

        private ulong Get()
        {
            // Without `using`, here and below: the compiler keeps in memory what a `try` encloses.
            Message message = rx.Recv();
            ulong sum = Sum(message.Data, size);
            message.Dispose();
            return sum;
        }

        private void Ping()
        {
            ulong sum = 0;
            long due = group;
            Stamp();
            for (long seq = 0; seq < count; seq++)
            {
                Put(seq);
                sum += Get();
                if (seq + 1 == due)
                {
                    due += group;
                    Stamp();
                }
            }
            words = sum;
        }

        private void Echo()
        {
            ulong sum = 0;
            for (long seq = 0; seq < count; seq++)
            {
                sum += Get();
                Put(seq);
            }
            words = sum;
        }

        private void SendEach()
        {
            for (long seq = 0; seq < count; seq++)
            {
                Put(seq);
            }
        }

        private void SendTogether()
        {
            for (long seq = 0; seq < count;)
            {
                BatchWriter together = tx.StartBatch();
                for (long last = Math.Min(seq + batch, count); seq < last; seq++)
                {
                    Fill(together.Add(0, size), seq & (Cycle - 1));
                }
                together.Flush();
                together.Dispose();
            }
        }

        private void ReceiveEach()
        {
            ulong sum = 0;
            long due = 1;
            for (long seen = 1; seen <= count; seen++)
            {
                sum += Get();
                if (seen == due)
                {
                    due += group;
                    Stamp();
                }
            }
            words = sum;
        }

        private void ReceiveTogether()
        {
            ulong sum = 0;
            // A stamp stands for a group: what came beyond it belongs to the next.
            long due = 1;
            for (long seen = 0; seen < count;)
            {
                Batch together = rx.RecvBatch((int)Math.Min(batch, count - seen));
                seen += together.Count;
                foreach (Message message in together)
                {
                    sum += Sum(message.Data, size);
                }
                together.Dispose();
                if (seen >= due)
                {
                    due += group;
                    Stamp();
                }
            }
            words = sum;
        }

        /// <summary>Reads the newest message again and again.</summary>
        private void Latest()
        {
            Subscriber sub = rx as Subscriber ?? throw new RefusedException("do=latest: no subscriber is open");
            byte[] buffer = new byte[size];
            ulong sum = 0;
            long due = group;
            Stamp();
            for (long seen = 0; seen < count;)
            {
                if (!sub.TryReadLatest(buffer, out MessageInfo info))
                {
                    // The publisher has overtaken it again and again: a reader tries again.
                    continue;
                }
                sum += Sum(new ReadOnlySpan<byte>(buffer, 0, info.Length), size);
                if (++seen == due)
                {
                    due += group;
                    Stamp();
                }
            }
            words = sum;
        }
    }
}
