using System;
using System.Collections.Concurrent;
using System.IO;
using System.Text;
using System.Threading;

namespace Ramway.Bench
{
    /// <summary>The whole of the following process. Its standard input has bursts, its standard output what it did.</summary>
    internal sealed class Follower
    {
        private readonly BlockingCollection<Burst> bursts = new BlockingCollection<Burst>();
        private readonly BinaryWriter say =
            new BinaryWriter(new BufferedStream(Console.OpenStandardOutput(), 1 << 16), Encoding.UTF8);
        private volatile bool busy = true;

        public static void Run(Setup setup)
        {
            var follower = new Follower();
            try
            {
                follower.All(setup);
            }
            catch (Exception e)
            {
                follower.Say(e.Message);
                throw;
            }
        }

        private void All(Setup setup)
        {
            Usage.Settle(setup.Cpu(false), setup.Realtime);
            new Thread(Listen) { IsBackground = true }.Start();
            using var rings = new Rings(setup, false);
            Say("");
            busy = false;
            foreach (Burst burst in bursts.GetConsumingEnumerable())
            {
                busy = true;
                Do(rings, burst);
                busy = false;
            }
        }

        private void Do(Rings rings, Burst burst)
        {
            var half = new Half(rings, false, burst);
            Usage.ForgetPeak();
            Say("");
            half.Run();
            long[] samples = half.Samples();
            say.Write("");
            say.Write(half.Ended);
            say.Write(samples.Length);
            foreach (long sample in samples)
            {
                say.Write(sample);
            }
            half.Used.Write(say);
            say.Flush();
        }

        /// <summary>A thread of its own, which notices the end of the leading process while a loop polls.</summary>
        private void Listen()
        {
            using var orders = new BinaryReader(Console.OpenStandardInput(), Encoding.UTF8);
            try
            {
                while (true)
                {
                    bursts.Add(Burst.Read(orders));
                }
            }
            catch (EndOfStreamException)
            {
                if (busy)
                {
                    Program.Halt(1);
                }
                bursts.CompleteAdding();
            }
        }

        private void Say(string failure)
        {
            say.Write(failure);
            say.Flush();
        }
    }
}
