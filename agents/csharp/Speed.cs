using System;
using System.Diagnostics;
using System.Numerics;
using System.Runtime.InteropServices;

namespace Ramway.Conformance
{
    /// <summary>The loops that are measured, written as a user who wants speed would.</summary>
    internal static class Speed
    {
        private static int Size(Args args)
        {
            long size = args.Sizes.Fixed < 0 ? 32 : args.Sizes.Fixed;
            if (size % 8 != 0)
            {
                throw new UsageException("--sizes has to be a multiple of 8");
            }
            args.Counted();
            return (int)size;
        }

        /// <summary>Writes the words seq, seq + 1, ….</summary>
        private static void Fill(Span<byte> bytes, long seq)
        {
            Span<ulong> words = MemoryMarshal.Cast<byte, ulong>(bytes);
            ulong next = (ulong)seq;
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

        internal static void Flood(Args args)
        {
            int size = Size(args);
            Place place = Place.Sending(args);
            Sender tx = place.Tx;
            int batch = Math.Max(args.Batch, 1);
            int inBatch = 0;
            for (long seq = 0; seq < args.Count; seq++)
            {
                Slot slot = tx.Reserve(size);
                Fill(slot.Data, seq);
                if (++inBatch < batch && seq + 1 < args.Count)
                {
                    slot.CommitUnflushed(0);
                }
                else
                {
                    inBatch = 0;
                    slot.Commit(0);
                }
            }
            Program.Say($"sent count={args.Count} next={args.Count}");
            place.Close();
        }

        internal static void Drain(Args args)
        {
            int size = Size(args);
            Place place = Place.Receiving(args);
            long rest = args.Count - args.WarmUp;
            ulong sum = Drain(place.Rx, args, args.WarmUp, size);
            long began = Stopwatch.GetTimestamp();
            sum += Drain(place.Rx, args, rest, size);
            long ns = (long)Clock.Ns(Stopwatch.GetTimestamp() - began);
            Program.Say($"rate messages={rest} ns={ns} sum={sum}");
            place.Close();
        }

        private static ulong Drain(Receiver rx, Args args, long count, int size) =>
            args.Batch > 1 ? DrainBatches(rx, count, size, args.Batch) : DrainEach(rx, count, size);

        private static ulong DrainEach(Receiver rx, long count, int size)
        {
            ulong sum = 0;
            for (long i = 0; i < count; i++)
            {
                using Message message = rx.Recv();
                sum += Sum(message.Data, size);
            }
            return sum;
        }

        private static ulong DrainBatches(Receiver rx, long count, int size, int most)
        {
            ulong sum = 0;
            for (long left = count; left > 0;)
            {
                using Batch batch = rx.RecvBatch((int)Math.Min(most, left));
                left -= batch.Count;
                foreach (Message message in batch)
                {
                    sum += Sum(message.Data, size);
                }
            }
            return sum;
        }

        internal static void Ping(Args args)
        {
            int size = Size(args);
            Place place = Place.Conversation(args, args.Ring, args.Back);
            Sender tx = place.Tx;
            Receiver rx = place.Rx;
            var times = new Times(args);
            ulong sum = 0;
            for (long seq = 0; seq < args.Count; seq++)
            {
                Slot slot = tx.Reserve(size);
                Fill(slot.Data, seq);
                slot.Commit(0);
                using (Message message = rx.Recv())
                {
                    sum += Sum(message.Data, size);
                }
                times.Trip(seq);
            }
            times.Report();
            Program.Say($"sum value={sum}");
            place.Close();
        }
    }
}
