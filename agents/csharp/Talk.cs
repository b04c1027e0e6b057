using System;
using System.Diagnostics;
using System.Globalization;

namespace Ramway.Conformance
{
    /// <summary>echo and ping.</summary>
    internal static class Talk
    {
        internal static void Echo(Args args)
        {
            Place place = Place.Conversation(args, args.Back, args.Ring);
            Receiver rx = place.Rx;
            long first = -1;
            long last = -1;
            long received = 0;
            long bytes = 0;
            ErrorKind kind;
            long began = Stopwatch.GetTimestamp();
            try
            {
                for (;;)
                {
                    // Without a limit it is being measured, and a look at the clock costs about as much as a message.
                    if (args.Timeout != null)
                    {
                        began = Stopwatch.GetTimestamp();
                    }
                    using Message m = rx.Recv(args.Timeout);
                    last = Messages.SeqOf(m.Tag);
                    if (received++ == 0)
                    {
                        first = last;
                    }
                    ReadOnlySpan<byte> data = m.Data;
                    bytes += data.Length;
                    Back(place, m.TypeId, m.Tag, data);
                }
            }
            catch (RamwayException e)
            {
                kind = e.Kind;
            }
            Program.Say($"end {Program.Named(kind)} received={received} first={first} last={last} bytes={bytes} "
                + $"elapsed_ms={Clock.MsSince(began)}");
            place.Close();
        }

        private static void Back(Place place, uint typeId, ulong tag, ReadOnlySpan<byte> data)
        {
            Slot slot = place.Reserve(data.Length);
            data.CopyTo(slot.Data);
            slot.Commit(typeId, tag);
        }

        internal static void Ping(Args args)
        {
            args.Counted();
            if (!args.Check)
            {
                Speed.Ping(args);
                return;
            }
            Place place = Place.Conversation(args, args.Ring, args.Back);
            Receiver rx = place.Rx;
            var all = new Messages(args.Sizes, place.Tx.MaxMessageLength);
            var times = new Times(args);
            for (long seq = 0; seq < args.Count; seq++)
            {
                Produce.Put(args, place, all.Make(seq), true);
                using (Message m = rx.Recv(args.Timeout))
                {
                    all.Check(seq, m.TypeId, m.Tag, m.Data);
                }
                times.Trip(seq);
            }
            times.Report();
            place.Close();
        }
    }

    /// <summary>The times of groups of round trips, all but the first --warm-up ones.</summary>
    internal sealed class Times
    {
        private readonly Args args;

        /// <summary>Nanoseconds of one round trip, an average of each group.</summary>
        private readonly double[] samples;
        private int taken;
        private long last = Stopwatch.GetTimestamp();

        internal Times(Args args)
        {
            this.args = args;
            samples = new double[args.Count / args.Group + 1];
        }

        /// <summary>Round trip number seq is over.</summary>
        internal void Trip(long seq)
        {
            if ((seq + 1) % args.Group != 0)
            {
                return;
            }
            long now = Stopwatch.GetTimestamp();
            if (seq >= args.WarmUp)
            {
                samples[taken++] = Clock.Ns(now - last) / args.Group;
            }
            last = now;
        }

        internal void Report()
        {
            Array.Sort(samples, 0, taken);
            string At(double part)
            {
                double ns = taken == 0 ? 0 : samples[(int)((taken - 1) * part)];
                return ns.ToString("F1", CultureInfo.InvariantCulture);
            }
            Program.Say($"rtt count={args.Count} min_ns={At(0)} p50_ns={At(0.5)} p99_ns={At(0.99)} max_ns={At(1)}");
        }
    }
}
