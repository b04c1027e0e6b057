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

        private readonly ListenPlan plan;
        private readonly ListenOptions options;
        private readonly Descriptor socket;
        private readonly int directory;
        private readonly Thread thread;
        private readonly Signal signal = new Signal();

        // The thread's own.
        private readonly List<Incoming> handshakes = new List<Incoming>();
        private readonly Sockets.PollFd[] polled = new Sockets.PollFd[Places + 3];
        private readonly Permits permits;
        // A descriptor that is given up to tell a connector that there are none; -1 if another thread got it.
        private int reserve;
        // Passed: connections are accepted.
        private WaitLimit pause = WaitLimit.None;

        // Written by the thread.
        private long refused;
        private RamwayException? lastRefusal;

        /// <summary>The socket stays the caller's, and open until <see cref="Close"/> has returned.</summary>
        internal ListenerThread(ListenPlan plan, ListenOptions options, Descriptor socket, Permits permits, Place place)
        {
            this.plan = plan;
            this.options = options;
            this.socket = socket;
            this.permits = permits;
            directory = place.Dir;
            reserve = Files.Dup(directory);
            Queue = new AcceptQueue(place.SocketPath, signal);
            thread = new Thread(Run) { IsBackground = true, Name = "ramway listener" };
            thread.Start();
        }

        internal AcceptQueue Queue { get; }

        internal long Refused => Interlocked.Read(ref refused);

        internal RamwayException? LastRefusal => Volatile.Read(ref lastRefusal);

        private int ListeningSocket => (int)socket.DangerousGetHandle();

        /// <summary>Ends every call, every handshake and the thread.</summary>
        internal void Close()
        {
            Queue.Close();
            thread.Join();
            if (reserve >= 0)
            {
                Files.Close(reserve);
            }
            signal.Dispose();
        }

        private void Run()
        {
            while (!Queue.Closed)
            {
                bool listens = TakeConnections();
                WaitLimit next = Watch(listens);
                fixed (Sockets.PollFd* at = polled)
                {
                    // Fails only for want of memory, which may be for a moment.
                    if (Sockets.Poll(at, handshakes.Count + 2, next.Left) < 0)
                    {
                        Thread.Sleep(1);
                        continue;
                    }
                }
                if (polled[0].Returned != 0)
                {
                    signal.Clear();
                }
                for (int i = 0; i < handshakes.Count; i++)
                {
                    Incoming handshake = handshakes[i];
                    if (polled[i + 2].Returned != 0 || handshake.Deadline.Passed || handshake.CanGoOn)
                    {
                        Advance(handshake);
                    }
                }
                ForgetThoseOver();
            }
            // A connector that was not served is told by the hang-up alone, and waits for the next listener.
            handshakes.ForEach(handshake => handshake.Dispose());
        }

        private void ForgetThoseOver() => handshakes.RemoveAll(handshake => handshake.Stage == Stage.Over);

        /// <summary>Fills in what to poll, and says until when.</summary>
        private WaitLimit Watch(bool listens)
        {
            WaitLimit next = pause.Passed ? WaitLimit.Forever : pause;
            polled[0] = new Sockets.PollFd { Fd = signal.Fd, Events = Sockets.PollIn };
            polled[1] = new Sockets.PollFd { Fd = listens ? ListeningSocket : -1, Events = Sockets.PollIn };
            for (int i = 0; i < handshakes.Count; i++)
            {
                Incoming handshake = handshakes[i];
                polled[i + 2] = new Sockets.PollFd { Fd = handshake.Polled, Events = Sockets.PollIn };
                next = WaitLimit.First(next, handshake.CanGoOn ? WaitLimit.None : handshake.Deadline);
            }
            return next;
        }

        /// <summary>Begins a handshake with each connector, while a call asks for a bus and there is a place. True: the next
        /// connector is to be waited for.</summary>
        private bool TakeConnections()
        {
            if (!pause.Passed)
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
                bool full = ready + handshakes.Count >= Places;
                if (!(wanted || nudged) || full && handshakes.TrueForAll(handshake => handshake.Stage == Stage.Parked))
                {
                    return false;
                }
                if (taken == Places)
                {
                    // For calls that did not wait as well: the connectors are still there the next time.
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
                        if (told || reserve < 0)
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
                reserve = reserve < 0 ? Files.Dup(directory) : reserve;
                if (reserve < 0)
                {
                    return told;
                }
                Files.Close(reserve);
                int fd = Sockets.Accept(ListeningSocket);
                if (fd >= 0)
                {
                    // It may be gone, which changes nothing.
                    _ = Handshake.Send(fd, HandshakeType.Refuse, ErrorKind.NoSpace, 0, -1);
                    Files.Close(fd);
                    told = true;
                    Count(Errors.Fail(ErrorKind.NoSpace, "there were no descriptors left for this connector"));
                }
                reserve = Files.Dup(directory);
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
            pause = WaitLimit.In(Facts.AcceptPauseNanos);
        }

        /// <summary>
        /// Ends the handshake that has been silent the longest: the oldest whose HELLO is not whole, else the oldest whose ACK is
        /// due, each after one more check.
        /// </summary>
        private void MakeRoom()
        {
            foreach (Stage due in new[] { Stage.Hello, Stage.Ack })
            {
                foreach (Incoming handshake in handshakes.ToArray())
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
            var handshake = new Incoming(end, permits, options.HandshakeTimeout, plan.Features);
            RamwayException? stranger = Handshake.CheckPeer(end.Peer, options.AllowUids, nameof(ListenOptions.AllowUids));
            if (stranger != null)
            {
                Failed(handshake, stranger);
                return;
            }
            // HELLO is nearly always there already.
            Advance(handshake);
            if (handshake.Stage != Stage.Over)
            {
                handshakes.Add(handshake);
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
                else if (permits.AreLeft)
                {
                    fault = Welcome(handshake);
                }
                else if (permits.Refuses)
                {
                    fault = Errors.Fail(ErrorKind.Busy, "as many clients are connected as the server takes");
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
                return handshake.Welcome(plan);
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
            Volatile.Write(ref lastRefusal, why);
            Interlocked.Increment(ref refused);
        }
    }
}
