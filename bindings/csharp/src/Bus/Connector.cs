using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>One call of Connect: attempts until the deadline, none of which can outlast it.</summary>
    internal sealed unsafe class Connector
    {
        private readonly string name;
        private readonly ConnectOptions options;
        // What the bus has to carry.
        private readonly uint features;
        private readonly long start = Clock.Nanoseconds;

        internal Connector(string name, ConnectOptions options, uint features = Facts.HandshakeFeatures)
        {
            this.name = name ?? throw new ArgumentNullException(nameof(name));
            this.options = options;
            this.features = features;
        }

        /// <summary>After a connection to an RPC's server: how many calls may be in flight, at least 1.</summary>
        internal uint MaxInFlight { get; private set; }

        internal Bus Run(CancellationToken token)
        {
            token.ThrowIfCancellationRequested();
            // Disposed of after the registration, which waits for a callback that is raising it.
            using Signal? cancelled = token.CanBeCanceled ? new Signal() : null;
            using CancellationTokenRegistration registration =
                token.Register(signal => ((Signal)signal!).Raise(), cancelled);
            var limit = new Limit(WaitLimit.Of(options.Timeout, token), cancelled);
            return Errors.During("connecting to the bus", name, () => Run(limit));
        }

        private Bus Run(Limit limit)
        {
            Waiter.Check(options.Wait);
            WaitLimit.Check(options.Timeout, "timeout");
            for (long pause = Facts.ConnectPauseMinNanos; ; pause = Math.Min(2 * pause, Facts.ConnectPauseMaxNanos))
            {
                try
                {
                    return Attempt(limit);
                }
                catch (Again miss)
                {
                    if (!limit.Wait(-1, pause) && limit.Over)
                    {
                        long took = (Clock.Nanoseconds - start) / 1_000_000;
                        throw Errors.About(miss.Error, $"connecting for {took} ms to the bus", name);
                    }
                }
            }
        }

        /// <summary>Tries once. Again: it may be tried again; its error is what to say if it stays so.</summary>
        private Bus Attempt(Limit limit)
        {
            using Place at = Find();
            BusEnd end = Dial(at);
            try
            {
                RamwayException? stranger = Handshake.CheckPeer(end.Peer, options.AllowUids, nameof(ConnectOptions.AllowUids));
                if (stranger != null)
                {
                    throw stranger;
                }
                return Accept(end, Greet(end, limit));
            }
            finally
            {
                // Once the halves have the socket, this is only one user less.
                end.Release();
            }
        }

        private Place Find()
        {
            try
            {
                return Place.Resolve(name, false);
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.NotFound)
            {
                throw new Again(e);
            }
        }

        /// <summary>Connects a socket.</summary>
        private BusEnd Dial(Place at)
        {
            string path = at.SocketAddress();
            int fd = Errors.Check(Sockets.Stream(), "making a socket");
            int result = Sockets.Connect(fd, path);
            if (result >= 0)
            {
                return new BusEnd(fd);
            }
            Files.Close(fd);
            switch (-result)
            {
                case Errno.EAGAIN:
                case Errno.EINTR:
                    throw new Again(Errors.Fail(ErrorKind.TimedOut,
                        $"the backlog of {at.SocketPath} stayed full: its listener does not accept as fast as others connect"));
                case Errno.ENOENT:
                case Errno.ECONNREFUSED:
                    throw new Again(at.Missed(-result == Errno.ENOENT));
            }
            RamwayException failure = Errors.Os(result, "connecting to " + at.SocketPath);
            bool mayPass = failure.Kind == ErrorKind.PermissionDenied && Clock.Nanoseconds - start < Facts.PermissionGraceNanos;
            throw mayPass ? new Again(failure) : (Exception)failure;
        }

        /// <summary>Says HELLO and waits for the memory, which the end then has, unchecked. Gives the size that it is said to
        /// have.</summary>
        private ulong Greet(BusEnd end, Limit limit)
        {
            // A listener that refuses has answered and hung up already: its answer can still be read.
            RamwayException? told = end.Send(HandshakeType.Hello, features: features);
            if (told != null && told.Kind != ErrorKind.PeerDead)
            {
                throw told;
            }
            using var inbox = new Inbox();
            Arrival arrival = Arrival.Partial;
            while (arrival == Arrival.Partial)
            {
                RamwayException? failed = inbox.Fill(end.Socket, out arrival);
                if (failed != null)
                {
                    throw failed;
                }
                if (arrival == Arrival.Partial && !limit.Wait(end.Socket, long.MaxValue) && limit.Over)
                {
                    throw new Again(Errors.Fail(ErrorKind.TimedOut, "the listener did not answer in time: is it accepting? " +
                        $"({inbox.Filled} of {Facts.HandshakeSize} bytes came)"));
                }
            }
            if (arrival == Arrival.HungUp)
            {
                // Its hang-up before it served us: it was closed, or lost its limit because this process was stopped for long.
                throw inbox.Filled == 0 ? new Again(ListenerGone()) : (Exception)inbox.HungUp(HandshakeType.Welcome);
            }
            RamwayException? wrong = inbox.Message(HandshakeType.Welcome, 1, out _, out ulong size, features);
            if (wrong != null)
            {
                throw wrong.Kind == ErrorKind.TimedOut ? new Again(wrong) : (Exception)wrong;
            }
            MaxInFlight = inbox.MaxInFlight;
            if (features == Facts.RpcFeatures && MaxInFlight == 0)
            {
                throw Errors.Fail(ErrorKind.Corrupt, "WELCOME allows 0 calls in flight, expected at least 1");
            }
            end.Keep(inbox.TakeDescriptor());
            return size;
        }

        /// <summary>Checks the memory, attaches to it and says ACK.</summary>
        private Bus Accept(BusEnd end, ulong size)
        {
            Bus bus;
            try
            {
                var ring = new RingOptions { Wait = options.Wait, Membarrier = options.Membarrier };
                bus = BusMemory.Open(end, size, features, ring, name);
            }
            catch (RamwayException e)
            {
                // The listener may be gone, which changes nothing.
                _ = end.Send(HandshakeType.Ack, e.Kind);
                throw;
            }
            // A listener that has the ACK has accepted us: if it has hung up since, what it sent is to be received first.
            if (end.Send(HandshakeType.Ack) != null)
            {
                bus.Dispose();
                throw new Again(ListenerGone());
            }
            return bus;
        }

        private static RamwayException ListenerGone() => Errors.Fail(ErrorKind.NotFound,
            "the listener went away before it served us, and no other one came");

        /// <summary>How long to go on: until the deadline, or until it is cancelled.</summary>
        private sealed class Limit
        {
            private readonly WaitLimit limit;
            private readonly Signal? cancelled;

            internal Limit(WaitLimit limit, Signal? cancelled)
            {
                this.limit = limit;
                this.cancelled = cancelled;
            }

            internal bool Over => limit.Passed;

            /// <summary>Waits until there is something to read at a socket (unless that is negative), for at most this many
            /// nanoseconds. False: there is nothing.</summary>
            /// <exception cref="OperationCanceledException">It was cancelled.</exception>
            internal bool Wait(int socket, long atMost)
            {
                limit.Token.ThrowIfCancellationRequested();
                // A negative descriptor is left out by the kernel.
                Sockets.PollFd* polled = stackalloc Sockets.PollFd[2];
                polled[0] = new Sockets.PollFd { Fd = socket, Events = Sockets.PollIn };
                polled[1] = new Sockets.PollFd { Fd = cancelled?.Fd ?? -1, Events = Sockets.PollIn };
                Errors.Check(Sockets.Poll(polled, 2, Math.Min(limit.Left, atMost)), "waiting for the listener");
                limit.Token.ThrowIfCancellationRequested();
                return polled[0].Returned != 0;
            }
        }
    }
}
