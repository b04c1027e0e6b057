using System;
using System.Diagnostics;
using System.IO;

namespace Ramway.Bench
{
    /// <summary>One side's part of a burst: its loops. Nothing here allocates while it is measured.</summary>
    internal sealed class Half
    {
        private readonly Rings rings;
        private readonly bool leads;
        private readonly Burst burst;
        private readonly long[] stamps;
        private int stamped;
        private long sum;

        public Half(Rings rings, bool leads, Burst burst)
        {
            this.rings = rings;
            this.leads = leads;
            this.burst = burst;
            bool samples = leads == (burst.Test == "rtt");
            // The first stamp begins the first group.
            stamps = new long[samples ? burst.Count / burst.Group + 2 : 0];
            rings.WaitLike(burst.Mode);
        }

        /// <summary>When it began and was through, in nanoseconds of CLOCK_MONOTONIC.</summary>
        public long Began { get; private set; }
        public long Ended { get; private set; }
        public Used Used { get; private set; }

        public static long Now() => Stopwatch.GetTimestamp();

        public void Run()
        {
            Usage usage = Usage.Begin();
            Began = Now();
            bool receives = true;
            if (burst.Test == "rtt")
            {
                if (leads)
                {
                    Ping(rings, burst.Size, burst.Count, burst.Group);
                }
                else
                {
                    Echo(rings, burst.Size, burst.Count);
                }
            }
            else if (leads)
            {
                receives = false;
                if (burst.Together)
                {
                    SendTogether(rings, burst.Size, burst.Count, burst.Batch);
                }
                else
                {
                    SendEach(rings, burst.Size, burst.Count);
                }
            }
            else if (burst.Together)
            {
                ReceiveTogether(rings, burst.Size, burst.Count, burst.Group, burst.Batch);
            }
            else
            {
                ReceiveEach(rings, burst.Size, burst.Count, burst.Group);
            }
            Ended = Now();
            Used = usage.End();
            if (receives && sum != Expected(burst.Size / 8, burst.Count))
            {
                throw new InvalidDataException("the bytes received are not the bytes sent");
            }
        }

        /// <summary>Nanoseconds of every group of operations.</summary>
        public long[] Samples()
        {
            var samples = new long[Math.Max(0, stamped - 1)];
            for (int i = 0; i < samples.Length; i++)
            {
                samples[i] = stamps[i + 1] - stamps[i];
            }
            return samples;
        }

        /// <summary>All words of messages 0 to count - 1.</summary>
        private static long Expected(long words, long count) => words * Triangular(count) + count * Triangular(words);

        /// <summary>0 + 1 + … up to n - 1. Wraps as the sums do: the even factor is halved before it is multiplied.</summary>
        private static long Triangular(long n) => n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;

        private void Ping(Rings rings, int size, long count, int group)
        {
            long total = 0;
            int left = group;
            Stamp();
            for (long n = 0; n < count; n++)
            {
                rings.Send(size, n);
                total += rings.Receive(size);
                if (--left == 0)
                {
                    left = group;
                    Stamp();
                }
            }
            sum = total;
        }

        private void Echo(Rings rings, int size, long count)
        {
            long total = 0;
            for (long n = 0; n < count; n++)
            {
                total += rings.Receive(size);
                rings.Send(size, n);
            }
            sum = total;
        }

        private static void SendEach(Rings rings, int size, long count)
        {
            for (long n = 0; n < count; n++)
            {
                rings.Send(size, n);
            }
        }

        private static void SendTogether(Rings rings, int size, long count, int batch)
        {
            for (long n = 0; n < count; n += batch)
            {
                rings.Send(size, n, (int)Math.Min(batch, count - n));
            }
        }

        private void ReceiveEach(Rings rings, int size, long count, int group)
        {
            long total = 0;
            int left = 1;
            for (long n = 0; n < count; n++)
            {
                total += rings.Receive(size);
                if (--left == 0)
                {
                    left = group;
                    Stamp();
                }
            }
            sum = total;
        }

        private void ReceiveTogether(Rings rings, int size, long count, int group, int batch)
        {
            // A stamp stands for a group: what came beyond it belongs to the next.
            long total = 0, due = 0;
            for (long n = 0; n < count;)
            {
                n += rings.Receive(size, (int)Math.Min(batch, count - n), ref total);
                if (n >= due)
                {
                    due += group;
                    Stamp();
                }
            }
            sum = total;
        }

        private void Stamp()
        {
            if (stamped < stamps.Length)
            {
                stamps[stamped++] = Now();
            }
        }
    }
}
