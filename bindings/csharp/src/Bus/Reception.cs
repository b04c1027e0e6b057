using System;
using System.Collections.Generic;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// A listener's thread: it goes through all handshakes at once, none of which can hold up another, and hands the buses to
    /// whoever asked.
    /// </summary>
    internal sealed unsafe class Reception
    {
        /// <summary>
        /// How many handshakes, and buses that nobody has taken yet, there are at a time. One more connector takes the place of
        /// the handshake that has been silent the longest, or waits in the backlog where none is.
        /// </summary>
        internal const int Places = 64;

        /// <summary>How long no connection is looked for after one could not be accepted for want of descriptors.</summary>
        private static readonly TimeSpan Pause = TimeSpan.FromMilliseconds(100);

        private readonly BusPlan _plan;
        private readonly ListenOptions _options;
        private readonly Descriptor _socket;
        private readonly int _directory;
        private readonly Thread _thread;
        private readonly Signal _signal = new Signal();

        // The thread's own.
        private readonly List<Greeting> _greetings = new List<Greeting>();
        private readonly Sockets.PollFd[] _polled = new Sockets.PollFd[Places + 3];
        // How many more connectors may be told that they are welcome.
        private int _welcomes;
        // A descriptor that is given up to tell a connector that there are none; -1 if it was lost to somebody else.
        private int _reserve;
        private WaitLimit? _pause;

        // Under the lock of the object.
        private readonly object _counters = new object();
        private long _refused;
        private RamwayException? _lastRefusal;

        /// <summary>The socket stays the caller's, and open until <see cref="Close"/> has returned.</summary>
        internal Reception(BusPlan plan, ListenOptions options, Descriptor socket, int peers, Place place)
        {
            _plan = plan;
            _options = options;
            _socket = socket;
            _welcomes = peers;
            _directory = place.Dir;
            _reserve = Files.Dup(_directory);
            Queue = new AcceptQueue(place.SocketPath, _signal);
            _thread = new Thread(Run) { IsBackground = true, Name = "ramway listener" };
            _thread.Start();
        }

        internal AcceptQueue Queue { get; }

        internal long Refused
        {
            get
            {
                lock (_counters)
                {
                    return _refused;
                }
            }
        }

        internal RamwayException? LastRefusal
        {
            get
            {
                lock (_counters)
                {
                    return _lastRefusal;
                }
            }
        }

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
                int count = Watch(listens, out WaitLimit next);
                fixed (Sockets.PollFd* at = _polled)
                {
                    // Fails only for want of memory, which may be for a moment.
                    if (Sockets.Poll(at, count, next.Left) < 0)
                    {
                        Thread.Sleep(1);
                        continue;
                    }
                }
                if (_polled[0].Returned != 0)
                {
                    _signal.Clear();
                }
                for (int i = 0; i < _greetings.Count; i++)
                {
                    Greeting greeting = _greetings[i];
                    if (_polled[i + 2].Returned != 0 || greeting.Deadline.Passed || IsFree(greeting))
                    {
                        Advance(greeting);
                    }
                }
                _greetings.RemoveAll(greeting => greeting.Over);
            }
            foreach (Greeting greeting in _greetings)
            {
                // A connector that was not served is told by the hang-up alone, and waits for the next listener.
                greeting.Dispose();
            }
        }

        /// <summary>It has waited for its turn, which is now.</summary>
        private bool IsFree(Greeting greeting) => greeting.Parked && _welcomes > 0;

        /// <summary>Fills in what to poll, and until when.</summary>
        private int Watch(bool listens, out WaitLimit next)
        {
            next = WaitLimit.Forever;
            // A negative descriptor is left out by the kernel.
            _polled[0] = new Sockets.PollFd { Fd = _signal.Fd, Events = Sockets.PollIn };
            _polled[1] = new Sockets.PollFd { Fd = listens ? ListeningSocket : -1, Events = Sockets.PollIn };
            for (int i = 0; i < _greetings.Count; i++)
            {
                Greeting greeting = _greetings[i];
                int fd = greeting.Parked ? -1 : greeting.End.Socket;
                _polled[i + 2] = new Sockets.PollFd { Fd = fd, Events = Sockets.PollIn };
                next = WaitLimit.First(next, IsFree(greeting) ? WaitLimit.Of(TimeSpan.Zero) : greeting.Deadline);
            }
            if (_pause is WaitLimit pause)
            {
                next = WaitLimit.First(next, pause);
            }
            return _greetings.Count + 2;
        }

        /// <summary>Begins a handshake with each connector, while somebody asks for a bus and there is room. True: the next one
        /// is to be waited for.</summary>
        private bool TakeConnections()
        {
            if (_pause is WaitLimit pause)
            {
                if (!pause.Passed)
                {
                    return false;
                }
                _pause = null;
            }
            bool nudged = false;
            // Not forever: those who are in the middle of a handshake have their turn too.
            for (int taken = 0; ; taken++)
            {
                bool wanted = Queue.Wanted(out bool again, out int ready);
                // Who has asked without waiting has those seen to who are there now.
                nudged |= again;
                bool full = ready + _greetings.Count >= Places;
                if (!(wanted || nudged) || full && _greetings.TrueForAll(greeting => greeting.Parked))
                {
                    return false;
                }
                if (taken == Places)
                {
                    // For those who have asked without waiting as well: they are still there at the next round.
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
                }
                if (fd == -Errno.EMFILE || fd == -Errno.ENFILE)
                {
                    bool told = TurnAway();
                    if (told || _reserve < 0)
                    {
                        Queue.Report(NoDescriptors(fd, "accepting a connection"));
                        _pause = WaitLimit.Of(Pause);
                        return false;
                    }
                    // Nobody is there: one that comes is looked for then.
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
            while (true)
            {
                if (_reserve < 0)
                {
                    _reserve = Files.Dup(_directory);
                }
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
                }
                _reserve = Files.Dup(_directory);
                if (fd == -Errno.EINTR || fd == -Errno.ECONNABORTED)
                {
                    continue;
                }
                if (fd < 0)
                {
                    return told;
                }
                Count(Errors.Fail(ErrorKind.NoSpace, "there were no descriptors left for this connector"));
            }
        }

        private static RamwayException NoDescriptors(int errno, string doing) => Errors.Os(errno, doing +
            "; those who connected were told that there are no descriptors left: raise the limit (ulimit -n, RLIMIT_NOFILE)");

        /// <summary>
        /// Ends the handshake that has been silent the longest: the oldest whose HELLO is not whole, else the oldest whose ACK is
        /// due, each after one more look.
        /// </summary>
        private void MakeRoom()
        {
            foreach (HandshakeType due in new[] { HandshakeType.Hello, HandshakeType.Ack })
            {
                foreach (Greeting greeting in _greetings.ToArray())
                {
                    if (greeting.Over || greeting.Parked || greeting.Due != due)
                    {
                        continue;
                    }
                    Advance(greeting);
                    if (!greeting.Over && !greeting.Parked && greeting.Due == due)
                    {
                        Failed(greeting, Errors.Fail(ErrorKind.TimedOut,
                            Places + " handshakes were under way, and this connector was silent the longest"));
                    }
                    if (greeting.Over)
                    {
                        _greetings.RemoveAll(over => over.Over);
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
            RamwayException? stranger = Handshake.CheckPeer(end.Peer, _options.AllowUids, nameof(ListenOptions.AllowUids));
            if (stranger != null)
            {
                Refuse(end, stranger);
                end.Release();
                return;
            }
            var greeting = new Greeting(end, WaitLimit.Of(_options.HandshakeTimeout));
            // HELLO is nearly always there already.
            Advance(greeting);
            if (!greeting.Over)
            {
                _greetings.Add(greeting);
            }
        }

        /// <summary>Goes on with one handshake, as far as it goes without waiting.</summary>
        private void Advance(Greeting greeting)
        {
            if (!greeting.Parked)
            {
                RamwayException? fault = greeting.Read(out bool whole);
                if (fault != null)
                {
                    Failed(greeting, fault);
                    return;
                }
                if (!whole)
                {
                    return;
                }
                if (greeting.Due == HandshakeType.Ack)
                {
                    Queue.Deliver(greeting.Complete());
                    return;
                }
            }
            if (_welcomes == 0)
            {
                greeting.Park();
                return;
            }
            Welcome(greeting);
        }

        /// <summary>Makes the memory and sends it.</summary>
        private void Welcome(Greeting greeting)
        {
            try
            {
                greeting.Bus = BusMemory.Create(_plan, greeting.End);
            }
            catch (RamwayException e)
            {
                bool noDescriptors = e.Errno == Errno.EMFILE || e.Errno == Errno.ENFILE;
                // It may be gone, which changes nothing.
                _ = greeting.End.Send(HandshakeType.Refuse, noDescriptors ? ErrorKind.NoSpace : e.Kind);
                greeting.Dispose();
                if (noDescriptors)
                {
                    e = NoDescriptors(e.Errno, "making a bus");
                    _pause = WaitLimit.Of(Pause);
                }
                Queue.Report(e);
                return;
            }
            _welcomes--;
            RamwayException? fault = greeting.End.Send(HandshakeType.Welcome, 0, _plan.Spec.Size, greeting.End.Memory);
            if (fault != null)
            {
                Failed(greeting, fault);
                return;
            }
            greeting.ExpectAck(WaitLimit.Of(_options.HandshakeTimeout));
        }

        /// <summary>Ends a handshake for what the connector did. It is told so unless it was welcome before.</summary>
        private void Failed(Greeting greeting, RamwayException fault)
        {
            if (greeting.Bus == null)
            {
                Refuse(greeting.End, fault);
            }
            else
            {
                _welcomes++;
                Count(fault);
            }
            greeting.Dispose();
        }

        private void Refuse(BusEnd end, RamwayException why)
        {
            // It may be gone, which changes nothing.
            _ = end.Send(HandshakeType.Refuse, why.Kind);
            Count(why);
        }

        private void Count(RamwayException why)
        {
            lock (_counters)
            {
                _refused++;
                _lastRefusal = why;
            }
        }
    }
}
