using System;
using System.Collections.Generic;

namespace Ramway
{
    /// <summary>What those who connect and those who listen have in common: who may be at the other end, and how this one waits.</summary>
    public abstract class PeerOptions
    {
        private IReadOnlyCollection<uint> allowUids = Array.Empty<uint>();

        private protected PeerOptions()
        {
        }

        /// <summary>
        /// Other users who may be at the other end; without it, only our own effective user. Those who connect need a path that they
        /// can search: give the one who listens a path, or RAMWAY_DIR such a directory. A user without a number in our user namespace
        /// is refused even if its stand-in (usually 65534) is named.
        /// </summary>
        /// <exception cref="ArgumentNullException">There is no null here: an empty collection allows nobody else.</exception>
        public IReadOnlyCollection<uint> AllowUids
        {
            get => allowUids;
            set => allowUids = value ?? throw new ArgumentNullException(nameof(AllowUids));
        }

        /// <summary>How calls wait.</summary>
        public WaitMode Wait { get; set; }

        /// <summary>As <see cref="RingOptions.Membarrier"/>.</summary>
        public bool Membarrier { get; set; } = true;

        private protected void CopyTo(PeerOptions other)
        {
            other.AllowUids = AllowUids;
            other.Wait = Wait;
            other.Membarrier = Membarrier;
        }
    }

    /// <summary>How to connect: to a <see cref="Listener"/>, or to an <see cref="RpcServer"/>.</summary>
    public abstract class ConnectingOptions : PeerOptions
    {
        private protected ConnectingOptions()
        {
        }

        /// <summary>
        /// How long to wait for a listener that is not there yet, does not accept, or is flooded: 10 s by default; <see
        /// cref="System.Threading.Timeout.InfiniteTimeSpan"/>: forever.
        /// </summary>
        public TimeSpan Timeout { get; set; } = TimeSpan.FromTicks(Facts.ConnectTimeoutNanos / 100);

        private protected void CopyTo(ConnectingOptions other)
        {
            base.CopyTo(other);
            other.Timeout = Timeout;
        }
    }

    /// <summary>What one who listens gives those who connect: a <see cref="Listener"/>, or an <see cref="RpcServer"/>.</summary>
    public abstract class ListeningOptions : PeerOptions
    {
        private protected ListeningOptions()
        {
        }

        /// <summary>
        /// The size of both rings of every bus in bytes, each rounded up to a power of two of at least a page; 0 is 1 MiB. No request
        /// or reply of a call is longer than that less 32 bytes.
        /// </summary>
        public long Capacity { get; set; }

        /// <summary>What each payload's address is a multiple of, in bytes: a power of two from 16 to 4096; 0 is 16.</summary>
        public int Align { get; set; }

        /// <summary>
        /// The permission bits of the socket, exactly, whatever the umask; 0 is 0600 (octal), or 0666 with <see
        /// cref="PeerOptions.AllowUids"/>.
        /// </summary>
        public int Mode { get; set; }

        /// <summary>
        /// How long a connector may take for each message of the handshake before it is refused: 1 s by default; <see
        /// cref="System.Threading.Timeout.InfiniteTimeSpan"/>: forever. Where 64 handshakes are under way and one more connector
        /// comes, the one that has been silent the longest is refused before that.
        /// </summary>
        public TimeSpan HandshakeTimeout { get; set; } = TimeSpan.FromTicks(Facts.HandshakeTimeoutNanos / 100);

        private protected void CopyTo(ListeningOptions other)
        {
            base.CopyTo(other);
            other.Capacity = Capacity;
            other.Align = Align;
            other.Mode = Mode;
            other.HandshakeTimeout = HandshakeTimeout;
        }
    }

    /// <summary>How to connect to a <see cref="Listener"/>. A new object holds the defaults.</summary>
    public sealed class ConnectOptions : ConnectingOptions
    {
    }

    /// <summary>What a <see cref="Listener"/> gives those who connect. A new object holds the defaults.</summary>
    public sealed class ListenOptions : ListeningOptions
    {
        /// <summary>
        /// The size of the ring to the peer, in bytes. If this or <see cref="FromPeer"/> is set, the two stand in place of <see
        /// cref="ListeningOptions.Capacity"/>, and the one that is 0 is left out.
        /// </summary>
        public long ToPeer { get; set; }

        /// <summary>The size of the ring from the peer: see <see cref="ToPeer"/>.</summary>
        public long FromPeer { get; set; }

        /// <summary>
        /// How many connectors may wait to be accepted at a time; others keep trying until their deadline. The kernel caps it at
        /// net.core.somaxconn.
        /// </summary>
        public int Backlog { get; set; } = Facts.BacklogDefault;

        internal uint SocketMode => Mode != 0 ? (uint)Mode : AllowUids.Count != 0 ? 0x1B6u : 0x180u; // 0666, 0600

        /// <summary>What every bus gets.</summary>
        internal ListenPlan Plan(string name)
        {
            Waiter.Check(Wait);
            WaitLimit.Check(HandshakeTimeout, "handshake timeout");
            SegmentOptions.CheckMode(Mode);
            if (Backlog < 1)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, $"a backlog of {Backlog}: expected at least 1");
            }
            long toPeer = ToPeer, fromPeer = FromPeer;
            if (toPeer == 0 && fromPeer == 0)
            {
                toPeer = fromPeer = Capacity == 0 ? (long)Facts.CapacityDefault : Capacity;
            }
            else if (Capacity != 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    "Capacity stands for both directions: say either it, or ToPeer and FromPeer");
            }
            return new ListenPlan(name, Spec.Bus(toPeer, fromPeer, Align),
                new RingOptions { Wait = Wait, Membarrier = Membarrier });
        }
    }

    /// <summary>What a listener gives every bus.</summary>
    internal sealed class ListenPlan
    {
        internal ListenPlan(string name, Spec spec, RingOptions options)
        {
            Name = name;
            Spec = spec;
            Options = options;
        }

        /// <summary>Goes into the memfd's name, so that <c>ramway ls</c> finds the bus.</summary>
        internal string Name { get; }

        internal Spec Spec { get; }

        /// <summary>How this side's halves wait.</summary>
        internal RingOptions Options { get; }

        /// <summary>Of an RPC's server: how many calls a client may have in flight; 0 where it is a plain bus.</summary>
        internal uint MaxInFlight { get; private set; }

        /// <summary>What HELLO has to require, and WELCOME and the memory do.</summary>
        internal uint Features => MaxInFlight == 0 ? Facts.HandshakeFeatures : Facts.RpcFeatures;

        /// <summary>Makes it the plan of an RPC's server.</summary>
        internal ListenPlan ForRpc(uint maxInFlight)
        {
            MaxInFlight = maxInFlight;
            Spec.FeaturesRequired = Facts.RpcFeatures;
            return this;
        }
    }
}
