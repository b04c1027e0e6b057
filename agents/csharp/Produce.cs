using System;
using System.Diagnostics;

namespace Ramway.Conformance
{
    /// <summary>produce.</summary>
    internal sealed class Produce
    {
        private readonly Args args;
        private readonly Place place;
        private readonly Sender tx;
        private readonly Messages all;
        private long next;
        private long sent;

        private Produce(Args args)
        {
            this.args = args;
            place = Place.Sending(args);
            tx = place.Tx;
            all = new Messages(args.Sizes, tx.MaxMessageLength);
            next = args.First;
        }

        internal static void Play(Args args)
        {
            args.Counted();
            Args.OneOf("how", args.How, "", "send", "reserve", "try");
            new Produce(args).Run();
        }

        /// <summary>Sends one message as --how says, waiting for room for as long as a wait may last.</summary>
        internal static void Put(Args args, Place place, in Made m, bool flush)
        {
            bool never = args.How == "try";
            if (flush && args.How != "reserve")
            {
                if (!never && args.Asynchronous)
                {
                    place.Send(m.TypeId, m.Payload.ToArray(), m.Tag);
                }
                else if (!never)
                {
                    place.Send(m);
                }
                else if (!place.Tx.TrySend(m.TypeId, m.Tag, m.Payload))
                {
                    throw new EndingException(ErrorKind.Full);
                }
                return;
            }
            Slot slot;
            if (never)
            {
                if (!place.Tx.TryReserve(m.Payload.Length, out slot))
                {
                    throw new EndingException(ErrorKind.Full);
                }
            }
            else
            {
                slot = place.Reserve(m.Payload.Length);
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

        private void Run()
        {
            long end = next + args.Count;
            if (args.Resume)
            {
                next = tx.LastTag is ulong last ? Messages.SeqOf(last) + 1 : next;
                Program.Say($"resuming next={next}");
            }
            if (args.Oversize)
            {
                TryTooLong();
            }
            long endings = 0;
            while (next < end)
            {
                bool flush = (sent + 1) % Math.Max(args.Batch, 1) == 0 || next + 1 == end;
                uint noted = tx.PeerEpoch;
                long began = Stopwatch.GetTimestamp();
                try
                {
                    Put(args, place, all.Make(next), flush);
                }
                catch (Exception e) when (EndingException.KindOf(e) is ErrorKind kind)
                {
                    Report(kind, began);
                    if (!Program.IsEnding(kind) || ++endings >= args.Endings)
                    {
                        break;
                    }
                    if (!place.AwaitSuccessor(noted, tx))
                    {
                        Report(ErrorKind.TimedOut, began);
                        break;
                    }
                    continue;
                }
                if (args.Progress)
                {
                    Program.Say($"at seq={next}");
                }
                sent++;
                next++;
                Place.Sleep(args.Pace);
            }
            if (next >= end)
            {
                Program.Say($"sent count={sent} next={next}");
            }
            Input.Linger(args);
            place.Close();
        }

        private void TryTooLong()
        {
            long began = Stopwatch.GetTimestamp();
            try
            {
                Put(args, place, all.Make(next, tx.MaxMessageLength + 1L), true);
            }
            catch (Exception e) when (EndingException.KindOf(e) is ErrorKind kind)
            {
                Report(kind, began);
                return;
            }
            throw new BadException(next, "a message longer than the longest was sent");
        }

        private void Report(ErrorKind kind, long began) =>
            Program.Say($"end {Program.Named(kind)} sent={sent} next={next} elapsed_ms={Clock.MsSince(began)}");
    }

    /// <summary>Whole milliseconds and nanoseconds of Stopwatch's time stamps.</summary>
    internal static class Clock
    {
        internal static long Now => Stopwatch.GetTimestamp();

        internal static long MsSince(long began) => (Stopwatch.GetTimestamp() - began) * 1000 / Stopwatch.Frequency;

        internal static double Ns(long ticks) => ticks * 1e9 / Stopwatch.Frequency;
    }
}
