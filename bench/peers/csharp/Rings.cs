using System;
using System.IO;
using System.Runtime.InteropServices;

namespace Ramway.Bench
{
    /// <summary>
    /// One ring to send on, one to receive from: <c>Reserve</c>, <c>Commit</c> and <c>Recv</c>, together
    /// <c>StartBatch</c>, <c>Add</c>, <c>Flush</c> and <c>RecvBatch</c>. Message n is the 64-bit words n, n + 1, …; the
    /// receiver reads all of them.
    /// </summary>
    internal sealed class Rings : IDisposable
    {
        private readonly Sender tx;
        private readonly Receiver rx;

        public Rings(Setup setup, bool leads)
        {
            string there = Path.Combine(setup.Directory, "there"), back = Path.Combine(setup.Directory, "back");
            // Their pages are there from the beginning.
            var options = new RingOptions { Capacity = leads ? setup.Capacity : 0, Prefault = true, Wait = WaitMode.Spin };
            tx = leads ? Sender.Create(there, options) : Sender.Open(back, options);
            rx = leads ? Receiver.Create(back, options) : Receiver.Open(there, options);
        }

        public void WaitLike(string mode)
        {
            tx.WaitMode = rx.WaitMode = mode == "hybrid" ? WaitMode.Hybrid : mode == "block" ? WaitMode.Block : WaitMode.Spin;
        }

        public void Send(int size, long n)
        {
            Slot slot = tx.Reserve(size);
            Fill(slot.Data, n);
            slot.Commit(0);
        }

        public void Send(int size, long n, int count)
        {
            BatchWriter batch = tx.StartBatch();
            for (long last = n + count; n < last; n++)
            {
                Fill(batch.Add(0, size), n);
            }
            batch.Flush();
            batch.Dispose();
        }

        private static void Fill(Span<byte> bytes, long n)
        {
            Span<long> words = MemoryMarshal.Cast<byte, long>(bytes);
            if (words.Length == 4)
            {
                words[3] = n + 3;
                words[2] = n + 2;
                words[1] = n + 1;
                words[0] = n;
                return;
            }
            for (int word = 0; word < words.Length; word++)
            {
                words[word] = n + word;
            }
        }

        public long Receive(int size)
        {
            Message message = rx.Recv();
            long sum = Sum(message.Data, size);
            message.Dispose();
            return sum;
        }

        public int Receive(int size, int max, ref long sum)
        {
            Batch batch = rx.RecvBatch(max);
            int count = batch.Count;
            long words = 0;
            foreach (Message message in batch)
            {
                words += Sum(message.Data, size);
            }
            batch.Dispose();
            sum += words;
            return count;
        }

        private static long Sum(ReadOnlySpan<byte> bytes, int size)
        {
            if (bytes.Length != size)
            {
                throw new InvalidDataException("a message of " + bytes.Length + " bytes instead of " + size);
            }
            ReadOnlySpan<long> words = MemoryMarshal.Cast<byte, long>(bytes);
            if (words.Length == 4)
            {
                return words[3] + words[2] + words[1] + words[0];
            }
            long sum = 0;
            foreach (long word in words)
            {
                sum += word;
            }
            return sum;
        }

        public void Dispose()
        {
            tx.Dispose();
            rx.Dispose();
        }
    }
}
