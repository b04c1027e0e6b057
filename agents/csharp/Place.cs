using System;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Conformance
{
    /// <summary>Rings or a bus as the flags say: both halves of a bus, or what the command needs of rings.</summary>
    internal sealed class Place
    {
        /// <summary>How long to wait for a name, a role or the other side.</summary>
        internal static readonly TimeSpan Patience = TimeSpan.FromSeconds(10);

        private readonly Args args;
        private readonly Bus? bus;
        private readonly Sender? tx;
        private readonly Receiver? rx;

        /// <summary>
        /// Makes or opens what the flags say. On rings, to is the one to send to and from the one to receive from.
        /// </summary>
        private Place(Args args, string? to, string? from)
        {
            this.args = args;
            bus = OpenBus(args);
            if (bus != null)
            {
                tx = bus.HasSender ? bus.Sender : null;
                rx = bus.HasReceiver ? bus.Receiver : null;
                return;
            }
            var options = new RingOptions { Timeout = Patience, Wait = args.Wait };
            if (args.Create)
            {
                options.Capacity = args.Capacity;
                options.Align = args.Align;
            }
            if (to != null)
            {
                tx = args.Create ? Sender.Create(to, options) : Sender.Open(to, options);
            }
            if (from != null)
            {
                rx = args.Create ? Receiver.Create(from, options) : Receiver.Open(from, options);
            }
        }

        private static Bus? OpenBus(Args args)
        {
            if (args.Listen != null)
            {
                var options = new ListenOptions { Capacity = args.Capacity, Align = args.Align, Wait = args.Wait };
                using Listener listener = Listener.Bind(args.Listen, options);
                return listener.Accept(Patience);
            }
            if (args.Connect != null)
            {
                return Bus.Connect(args.Connect, new ConnectOptions { Timeout = Patience, Wait = args.Wait });
            }
            return null;
        }

        /// <summary>The half to send by.</summary>
        internal Sender Tx => tx ?? throw Missing();

        /// <summary>The half to receive by.</summary>
        internal Receiver Rx => rx ?? throw Missing();

        private static UsageException Missing() =>
            new UsageException("--ring (with --back for both ways), --listen or --connect is missing");

        /// <summary>The sending half, and the line that says so.</summary>
        internal static Place Sending(Args args) => Conversation(args, args.Ring, null);

        /// <summary>The receiving half, and the line that says so.</summary>
        internal static Place Receiving(Args args)
        {
            var place = new Place(args, null, args.Ring);
            Attached(place.Rx);
            return place;
        }

        /// <summary>Both halves: to one ring and from the other, or a bus.</summary>
        internal static Place Conversation(Args args, string? to, string? from)
        {
            var place = new Place(args, to, from);
            Attached(place.Tx);
            return place;
        }

        private static void Attached(RingEnd end) =>
            Program.Say($"attached pid={Native.Pid} epoch={end.Epoch} peer_epoch={end.PeerEpoch} capacity={end.Capacity} "
                + $"max={end.MaxMessageLength}");

        /// <summary>Closes in an orderly way. What that says on a bus whose peer is dead does not matter.</summary>
        internal void Close()
        {
            foreach (IDisposable? end in bus != null ? new IDisposable?[] { bus } : new IDisposable?[] { tx, rx })
            {
                try
                {
                    end?.Dispose();
                }
                catch (RamwayException)
                {
                    // As above.
                }
            }
            Program.Say("closed");
        }

        /// <summary>Waits for a message, for as long as a wait may last.</summary>
        internal Message Receive()
        {
            var waiting = new Waiting(args);
            for (;;)
            {
                try
                {
                    return Rx.Recv(waiting.Each);
                }
                catch (RamwayException e) when (waiting.GoesOn(e))
                {
                }
            }
        }

        /// <summary>The same for a batch.</summary>
        internal Batch ReceiveBatch(int most)
        {
            var waiting = new Waiting(args);
            for (;;)
            {
                try
                {
                    return Rx.RecvBatch(most, waiting.Each);
                }
                catch (RamwayException e) when (waiting.GoesOn(e))
                {
                }
            }
        }

        /// <summary>The same for any other call that takes a time-out.</summary>
        internal T Await<T>(Func<TimeSpan?, T> call)
        {
            var waiting = new Waiting(args);
            for (;;)
            {
                try
                {
                    return call(waiting.Each);
                }
                catch (RamwayException e) when (waiting.GoesOn(e))
                {
                }
            }
        }

        /// <summary>
        /// Waits for what a call gives that waits without a thread, for as long as a wait may last: this program has nothing else
        /// to do meanwhile.
        /// </summary>
        internal T Await<T>(Func<CancellationToken, ValueTask<T>> call)
        {
            using var limit = new CancellationTokenSource(args.Timeout ?? Timeout.InfiniteTimeSpan);
            try
            {
                return call(limit.Token).AsTask().GetAwaiter().GetResult();
            }
            catch (OperationCanceledException)
            {
                throw new EndingException(ErrorKind.TimedOut);
            }
        }

        /// <summary>Sends, without a thread that waits for room.</summary>
        internal void Send(uint typeId, ReadOnlyMemory<byte> data, ulong tag) => Await(async limit =>
        {
            await Tx.SendAsync(typeId, tag, data, limit);
            return true;
        });

        /// <summary>Waits for room, for as long as a wait may last.</summary>
        internal Slot Reserve(int length)
        {
            var waiting = new Waiting(args);
            for (;;)
            {
                try
                {
                    return Tx.Reserve(length, waiting.Each);
                }
                catch (RamwayException e) when (waiting.GoesOn(e))
                {
                }
            }
        }

        /// <summary>Sends, and waits for room for as long as a wait may last.</summary>
        internal void Send(in Made m)
        {
            var waiting = new Waiting(args);
            for (;;)
            {
                try
                {
                    Tx.Send(m.TypeId, m.Tag, m.Payload, waiting.Each);
                    return;
                }
                catch (RamwayException e) when (waiting.GoesOn(e))
                {
                }
            }
        }

        /// <summary>
        /// Looks every millisecond until the other side's epoch differs from the noted one; false: none came in time.
        /// </summary>
        internal bool AwaitSuccessor(uint noted, RingEnd end)
        {
            var clock = Stopwatch.StartNew();
            while (end.PeerEpoch == noted)
            {
                if (args.Timeout != null && clock.Elapsed >= args.Timeout)
                {
                    return false;
                }
                Thread.Sleep(1);
            }
            return true;
        }

        /// <summary>Sleeps for so many microseconds; the system's clock counts whole milliseconds.</summary>
        internal static void Sleep(long us)
        {
            if (us > 0)
            {
                Thread.Sleep((int)((us + 999) / 1000));
            }
        }
    }
}
