using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>One call of Connect: attempts until the deadline, none of which can outlast it.</summary>
    internal sealed unsafe class Connector
    {
        // Between two attempts, in nanoseconds.
        private const long PauseMin = 500_000;
        private const long PauseMax = 10_000_000;

        // A listener's socket gets its permissions just after its name: a refusal in this time may pass.
        private const long PermissionGrace = 200_000_000;

        private readonly string _name;
        private readonly ConnectOptions _options;
        private readonly long _start = Clock.Nanoseconds;

        internal Connector(string name, ConnectOptions options)
        {
            _name = name ?? throw new ArgumentNullException(nameof(name));
            _options = options;
        }

        internal Bus Run(CancellationToken token)
        {
            token.ThrowIfCancellationRequested();
            // Disposed of after the registration, which waits for a callback that is raising it.
            using Signal? cancelled = token.CanBeCanceled ? new Signal() : null;
            using CancellationTokenRegistration registration =
                token.Register(signal => ((Signal)signal!).Raise(), cancelled);
            var limit = new Limit(WaitLimit.Of(_options.Timeout, token), cancelled);
            return Errors.During("connecting to the bus", _name, () => Run(limit));
        }

        private Bus Run(Limit limit)
        {
            Waiter.Check(_options.Wait);
            WaitLimit.Check(_options.Timeout, "timeout");
            for (long pause = PauseMin; ; pause = Math.Min(2 * pause, PauseMax))
            {
                Bus? bus = Attempt(limit, out RamwayException? miss);
                if (bus != null)
                {
                    return bus;
                }
                if (!limit.Wait(-1, pause) && limit.Over)
                {
                    long took = (Clock.Nanoseconds - _start) / 1_000_000;
                    throw Errors.About(miss!, $"connecting for {took} ms to the bus", _name);
                }
            }
        }

        /// <summary>Tries once. Without a bus it may be tried again; miss is what to say if it stays so.</summary>
        private Bus? Attempt(Limit limit, out RamwayException? miss)
        {
            miss = null;
            Place at;
            try
            {
                at = Place.Resolve(_name, false);
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.NotFound)
            {
                miss = e;
                return null;
            }
            using (at)
            {
                BusEnd? end = Dial(at, out miss);
                if (end == null)
                {
                    return null;
                }
                try
                {
                    return Shake(end, limit, out miss);
                }
                finally
                {
                    // Once the halves have the socket, this is only one user less.
                    end.Release();
                }
            }
        }

        private Bus? Shake(BusEnd end, Limit limit, out RamwayException? miss)
        {
            RamwayException? stranger = Handshake.CheckPeer(end.Peer, _options.AllowUids, nameof(ConnectOptions.AllowUids));
            if (stranger != null)
            {
                throw stranger;
            }
            if (!Greet(end, limit, out ulong size, out miss))
            {
                return null;
            }
            Bus bus;
            try
            {
                var ring = new RingOptions { Wait = _options.Wait, Membarrier = _options.Membarrier };
                bus = BusMemory.Open(end, size, ring, _name);
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
                miss = ListenerGone();
                return null;
            }
            return bus;
        }

        /// <summary>Says HELLO and waits for the memory, which the end then has, unchecked, and the size that it is said to have.
        /// False: it may be tried again.</summary>
        private static bool Greet(BusEnd end, Limit limit, out ulong size, out RamwayException? miss)
        {
            size = 0;
            miss = null;
            // A listener that does not serve us has answered and hung up already: its answer can still be read.
            RamwayException? told = end.Send(HandshakeType.Hello);
            if (told != null && told.Kind != ErrorKind.PeerDead)
            {
                throw told;
            }
            using var inbox = new Inbox();
            Arrival arrival;
            while (true)
            {
                RamwayException? failed = inbox.Fill(end.Socket, out arrival);
                if (failed != null)
                {
                    throw failed;
                }
                if (arrival != Arrival.Partial)
                {
                    break;
                }
                if (!limit.Wait(end.Socket, long.MaxValue) && limit.Over)
                {
                    miss = Errors.Fail(ErrorKind.TimedOut, "the listener did not serve us in time; is it accepting? " +
                        $"({inbox.Filled} of {Handshake.Size} bytes came)");
                    return false;
                }
            }
            if (arrival == Arrival.HungUp)
            {
                // Its hang-up before it served us: it was closed, or lost its limit because this process was stopped for long.
                miss = inbox.Filled == 0 ? ListenerGone() : throw inbox.HungUp(HandshakeType.Welcome);
                return false;
            }
            RamwayException? wrong = inbox.Message(HandshakeType.Welcome, 1, out _, out size);
            if (wrong != null && wrong.Kind == ErrorKind.TimedOut)
            {
                miss = wrong;
                return false;
            }
            if (wrong != null)
            {
                throw wrong;
            }
            end.Keep(inbox.TakeDescriptor());
            return true;
        }

        /// <summary>Connects a socket. Without one, miss is why there is none yet.</summary>
        private BusEnd? Dial(Place at, out RamwayException? miss)
        {
            miss = null;
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
                    miss = Errors.Fail(ErrorKind.TimedOut,
                        $"the backlog of {at.SocketPath} stayed full: its listener does not accept as fast as others connect");
                    return null;
                case Errno.ENOENT:
                case Errno.ECONNREFUSED:
                    miss = at.Missed(-result == Errno.ENOENT);
                    return null;
            }
            RamwayException failure = Errors.Os(result, "connecting to " + at.SocketPath);
            if (failure.Kind == ErrorKind.PermissionDenied && Clock.Nanoseconds - _start < PermissionGrace)
            {
                miss = failure;
                return null;
            }
            throw failure;
        }

        private static RamwayException ListenerGone() => Errors.Fail(ErrorKind.NotFound,
            "the listener went away before it served us, and no other one came");

        /// <summary>How long to go on: until the deadline, or until it is cancelled.</summary>
        private sealed class Limit
        {
            private readonly WaitLimit _limit;
            private readonly Signal? _cancelled;

            internal Limit(WaitLimit limit, Signal? cancelled)
            {
                _limit = limit;
                _cancelled = cancelled;
            }

            internal bool Over => _limit.Passed;

            /// <summary>Waits until there is something to read at a socket (unless that is negative), for at most this many
            /// nanoseconds. False: there is nothing.</summary>
            /// <exception cref="OperationCanceledException">It was cancelled.</exception>
            internal bool Wait(int socket, long atMost)
            {
                _limit.Token.ThrowIfCancellationRequested();
                // A negative descriptor is left out by the kernel.
                Sockets.PollFd* polled = stackalloc Sockets.PollFd[2];
                polled[0] = new Sockets.PollFd { Fd = socket, Events = Sockets.PollIn };
                polled[1] = new Sockets.PollFd { Fd = _cancelled?.Fd ?? -1, Events = Sockets.PollIn };
                Errors.Check(Sockets.Poll(polled, 2, Math.Min(_limit.Left, atMost)), "waiting for the listener");
                _limit.Token.ThrowIfCancellationRequested();
                return polled[0].Returned != 0;
            }
        }
    }
}
