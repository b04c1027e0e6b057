using System;
using System.Collections.Generic;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// A listener's thread: it goes through all handshakes at once, none of which can hold up another, and hands the buses to the
    /// calls that ask.
    /// </summary>
    internal sealed unsafe class ListenerThread
    {
        /// <summary>
        /// How many handshakes, and buses that nobody has taken yet, there are at a time. One more connector takes the place of
        /// the handshake that has been silent the longest, or waits in the backlog where none is.
        /// </summary>
        private const int Places = Facts.HandshakesMax;

        private readonly ListenPlan _plan;
        private readonly ListenOptions _options;
        private readonly Descriptor _socket;
        private readonly int _directory;
        private readonly Thread _thread;
        private readonly Signal _signal = new Signal();

        // The thread's own.
        private readonly List<Incoming> _handshakes = new List<Incoming>();
        private readonly Sockets.PollFd[] _polled = new Sockets.PollFd[Places + 3];
        private readonly Permits _permits;
        // A descriptor that is given up to tell a connector that there are none; -1 if another thread got it.
        private int _reserve;
        // Passed: connections are accepted.
        private WaitLimit _pause = WaitLimit.None;

        // Written by the thread.
        private long _refused;
        private RamwayException? _lastRefusal;

        /// <summary>The socket stays the caller's, and open until <see cref="Close"/> has returned.</summary>
        internal ListenerThread(ListenPlan plan, ListenOptions options, Descriptor socket, int peers, Place place)
        {
            _plan = plan;
            _options = options;
            _socket = socket;
            _permits = new Permits(peers);
            _directory = place.Dir;
            _reserve = Files.Dup(_directory);
            Queue = new AcceptQueue(place.SocketPath, _signal);
            _thread = new Thread(Run) { IsBackground = true, Name = "ramway listener" };
            _thread.Start();
        }

        internal AcceptQueue Queue { get; }

        internal long Refused => Interlocked.Read(ref _refused);

        internal RamwayException? LastRefusal => Volatile.Read(ref _lastRefusal);

        private int ListeningSocket => (int)_socket.DangerousGetHandle();

        /// <summary>Ends every call, every handshake and the thread.</summary>
        internal void Close()
        {
            Queue.Close();
            _thread.Join();
            if (_reserve >= 0)
            {
                Files.Close(_reserve);
            }
            _signal.Dispose();
        }

        private void Run()
        {
            while (!Queue.Closed)
            {
                bool listens = TakeConnections();
                WaitLimit next = Watch(listens);
                fixed (Sockets.PollFd* at = _polled)
                {
                    // Fails only for want of memory, which may be for a moment.
                    if (Sockets.Poll(at, _handshakes.Count + 2, next.Left) < 0)
                    {
                        Thread.Sleep(1);
                        continue;
                    }
                }
                if (_polled[0].Returned != 0)
                {
                    _signal.Clear();
                }
                for (int i = 0; i < _handshakes.Count; i++)
                {
                    Incoming handshake = _handshakes[i];
                    if (_polled[i + 2].Returned != 0 || handshake.Deadline.Passed || handshake.CanGoOn)
                    {
                        Advance(handshake);
                    }
                }
                ForgetThoseOver();
            }
            // A connector that was not served is told by the hang-up alone, and waits for the next listener.
            _handshakes.ForEach(handshake => handshake.Dispose());
        }

        private void ForgetThoseOver() => _handshakes.RemoveAll(handshake => handshake.Stage == Stage.Over);

        /// <summary>Fills in what to poll, and says until when.</summary>
        private WaitLimit Watch(bool listens)
        {
            WaitLimit next = _pause.Passed ? WaitLimit.Forever : _pause;
            _polled[0] = new Sockets.PollFd { Fd = _signal.Fd, Events = Sockets.PollIn };
            _polled[1] = new Sockets.PollFd { Fd = listens ? ListeningSocket : -1, Events = Sockets.PollIn };
            for (int i = 0; i < _handshakes.Count; i++)
            {
                Incoming handshake = _handshakes[i];
                _polled[i + 2] = new Sockets.PollFd { Fd = handshake.Polled, Events = Sockets.PollIn };
                next = WaitLimit.First(next, handshake.CanGoOn ? WaitLimit.None : handshake.Deadline);
            }
            return next;
        }

        /// <summary>Begins a handshake with each connector, while a call asks for a bus and there is a place. True: the next
        /// connector is to be waited for.</summary>
        private bool TakeConnections()
        {
            if (!_pause.Passed)
            {
                return false;
            }
            bool nudged = false;
            // Not forever: those who are in the middle of a handshake go on in between.
            for (int taken = 0; ; taken++)
            {
                bool wanted = Queue.Wanted(out bool again, out int ready);
                // For a call that did not wait, those who are there now are served.
                nudged |= again;
                bool full = ready + _handshakes.Count >= Places;
                if (!(wanted || nudged) || full && _handshakes.TrueForAll(handshake => handshake.Stage == Stage.Parked))
                {
                    return false;
                }
                if (taken == Places)
                {
                    // For calls that did not wait as well: the connectors are still there in the next round.
                    Queue.Nudge();
                    return wanted;
                }
                int fd = Sockets.Accept(ListeningSocket);
                switch (-fd)
                {
                    case Errno.EAGAIN:
                        return wanted;
                    // A connector that is gone already is not the listener's failure.
                    case Errno.EINTR:
                    case Errno.ECONNABORTED:
                        continue;
                    case Errno.EMFILE:
                    case Errno.ENFILE:
                        bool told = TurnAway();
                        if (told || _reserve < 0)
                        {
                            OutOfDescriptors(-fd, "accepting a connection");
                            return false;
                        }
                        // Nobody is there: one that comes is noticed then.
                        return wanted;
                }
                if (fd < 0)
                {
                    // One call has to take it, so a failure that lasts does not spin.
                    Queue.Report(Errors.Os(fd, "accepting a connection"));
                    nudged = false;
                    continue;
                }
                if (full)
                {
                    MakeRoom();
                }
                Begin(fd);
            }
        }

        /// <summary>
        /// Tells all who are in the backlog that there are no descriptors, by one that was kept for it. False: nobody is there.
        /// </summary>
        private bool TurnAway()
        {
            bool told = false;
            for (int turned = 0; turned < Facts.TurnedAwayMax; turned++)
            {
                _reserve = _reserve < 0 ? Files.Dup(_directory) : _reserve;
                if (_reserve < 0)
                {
                    return told;
                }
                Files.Close(_reserve);
                int fd = Sockets.Accept(ListeningSocket);
                if (fd >= 0)
                {
                    // It may be gone, which changes nothing.
                    _ = Handshake.Send(fd, HandshakeType.Refuse, ErrorKind.NoSpace, 0, -1);
                    Files.Close(fd);
                    told = true;
                    Count(Errors.Fail(ErrorKind.NoSpace, "there were no descriptors left for this connector"));
                }
                _reserve = Files.Dup(_directory);
                if (fd < 0 && fd != -Errno.EINTR && fd != -Errno.ECONNABORTED)
                {
                    break;
                }
            }
            return told;
        }

        /// <summary>Tells a call, and accepts nothing for a while.</summary>
        private void OutOfDescriptors(int errno, string doing)
        {
            Queue.Report(Errors.Os(errno, doing +
                "; those who connected were told that there are no descriptors left: raise the limit (ulimit -n, RLIMIT_NOFILE)"));
            _pause = WaitLimit.In(Facts.AcceptPauseNanos);
        }

        /// <summary>
        /// Ends the handshake that has been silent the longest: the oldest whose HELLO is not whole, else the oldest whose ACK is
        /// due, each after one more check.
        /// </summary>
        private void MakeRoom()
        {
            foreach (Stage due in new[] { Stage.Hello, Stage.Ack })
            {
                foreach (Incoming handshake in _handshakes.ToArray())
                {
                    if (handshake.Stage != due)
                    {
                        continue;
                    }
                    Advance(handshake);
                    if (handshake.Stage == due)
                    {
                        Failed(handshake, Errors.Fail(ErrorKind.TimedOut,
                            Places + " handshakes were under way, and this connector was silent the longest"));
                    }
                    if (handshake.Stage == Stage.Over)
                    {
                        ForgetThoseOver();
                        return;
                    }
                }
            }
        }

        private void Begin(int fd)
        {
            BusEnd end;
            try
            {
                end = new BusEnd(fd);
            }
            catch (RamwayException e)
            {
                Queue.Report(e);
                return;
            }
            var handshake = new Incoming(end, _permits, _options.HandshakeTimeout);
            RamwayException? stranger = Handshake.CheckPeer(end.Peer, _options.AllowUids, nameof(ListenOptions.AllowUids));
            if (stranger != null)
            {
                Failed(handshake, stranger);
                return;
            }
            // HELLO is nearly always there already.
            Advance(handshake);
            if (handshake.Stage != Stage.Over)
            {
                _handshakes.Add(handshake);
            }
        }

        /// <summary>Goes on with one handshake, as far as it goes without waiting.</summary>
        private void Advance(Incoming handshake)
        {
            RamwayException? fault = null;
            bool whole = true;
            if (handshake.Stage != Stage.Parked)
            {
                fault = handshake.Read(out whole);
            }
            if (fault == null && whole)
            {
                if (handshake.Stage == Stage.Ack)
                {
                    Queue.Deliver(handshake.Accept());
                }
                else if (_permits.AreLeft)
                {
                    fault = Welcome(handshake);
                }
                else
                {
                    handshake.Park();
                }
            }
            if (fault != null)
            {
                Failed(handshake, fault);
            }
        }

        /// <summary>Makes the memory and sends it. What the connector did wrong is an error.</summary>
        private RamwayException? Welcome(Incoming handshake)
        {
            try
            {
                return handshake.Welcome(_plan);
            }
            catch (RamwayException e)
            {
                bool noDescriptors = e.Errno == Errno.EMFILE || e.Errno == Errno.ENFILE;
                // It may be gone, which changes nothing.
                _ = handshake.End.Send(HandshakeType.Refuse, noDescriptors ? ErrorKind.NoSpace : e.Kind);
                handshake.Dispose();
                if (noDescriptors)
                {
                    OutOfDescriptors(e.Errno, "making a bus");
                }
                else
                {
                    Queue.Report(e);
                }
                return null;
            }
        }

        /// <summary>Ends a handshake for what the connector did. It is told so unless it was welcome before.</summary>
        private void Failed(Incoming handshake, RamwayException fault)
        {
            if (handshake.Stage != Stage.Ack)
            {
                // It may be gone, which changes nothing.
                _ = handshake.End.Send(HandshakeType.Refuse, fault.Kind);
            }
            Count(fault);
            handshake.Dispose();
        }

        private void Count(RamwayException why)
        {
            Volatile.Write(ref _lastRefusal, why);
            Interlocked.Increment(ref _refused);
        }
    }
}
