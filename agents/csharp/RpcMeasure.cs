using System;
using System.Buffers.Binary;
using System.Text;
using System.Threading.Tasks;

namespace Ramway.Agents
{
    /// <summary>measure do=call: calls of a server that is open with bare=yes.</summary>
    internal sealed class RpcMeasure
    {
        private readonly RpcClient client;
        private readonly bool asynchronous;
        private readonly int size;
        private readonly long count, group;

        /// <summary>When each group began, and the last one ended.</summary>
        private readonly long[] stamps;
        private int stamped;
        private ulong words;

        internal RpcMeasure(RpcClient client, Line line, bool asynchronous)
        {
            this.client = client;
            this.asynchronous = asynchronous;
            string what = line.Text("do");
            size = (int)line.Number("size", 0);
            count = line.Number("count", 0);
            group = line.Number("group", 1);
            line.End();
            if (what != "call")
            {
                throw new RefusedException($"do={what}, with a client open");
            }
            stamps = new long[count / group + 2];
        }

        internal void Run()
        {
            Agent.Say("ready");
            Line.Next();
            long began = Clock.Ns;
            if (asynchronous)
            {
                Await().GetAwaiter().GetResult();
            }
            else
            {
                Call();
            }
            long ended = Clock.Ns;
            var samples = new StringBuilder();
            for (int i = 1; i < stamped; i++)
            {
                samples.Append(i > 1 ? "," : "").Append(stamps[i] - stamps[i - 1]);
            }
            Agent.Say($"measured began_ns={began} ended_ns={ended} words={words} samples={samples}");
        }

        private void Call()
        {
            byte[] request = new byte[size];
            stamps[stamped++] = Clock.Ns;
            for (long seq = 0; seq < count; seq++)
            {
                Fill(request, seq);
                Take(client.Call(1, request), seq);
            }
        }

        private async Task Await()
        {
            byte[] request = new byte[size];
            stamps[stamped++] = Clock.Ns;
            for (long seq = 0; seq < count; seq++)
            {
                Fill(request, seq);
                Take(await client.CallAsync(1, request).ConfigureAwait(false), seq);
            }
        }

        private static void Fill(byte[] request, long seq)
        {
            for (int at = 0; at < request.Length; at += 8)
            {
                BinaryPrimitives.WriteInt64LittleEndian(request.AsSpan(at), seq % Measure.Cycle + at / 8);
            }
        }

        private void Take(RpcReply reply, long seq)
        {
            ReadOnlySpan<byte> body = reply.Body.Span;
            if (body.Length != size)
            {
                throw new BadException(seq, "a reply of another length than was said");
            }
            for (int at = 0; at < size; at += 8)
            {
                words += BinaryPrimitives.ReadUInt64LittleEndian(body.Slice(at));
            }
            if ((seq + 1) % group == 0)
            {
                stamps[stamped++] = Clock.Ns;
            }
        }
    }
}
