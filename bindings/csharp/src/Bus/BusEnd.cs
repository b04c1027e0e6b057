using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// What the two halves of one side share: the socket, whose closing is the peer's notice, and the memory, which stays open
    /// so that /proc/PID/fd shows the bus to users who may inspect this process.
    /// </summary>
    internal sealed class BusEnd
    {
        private readonly Descriptor socket;

        // Set once, during the handshake, before a half knows of it.
        private Descriptor? memory;

        // The halves, and the handshake while it lasts; the last one closes everything.
        private int users = 1;

        /// <summary>Takes over a connected socket, also where it throws. The caller is its first user.</summary>
        internal BusEnd(int fd)
        {
            socket = new Descriptor(fd);
            int result = Sockets.PeerCredentials(fd, out Credentials peer);
            if (result < 0)
            {
                socket.Dispose();
                throw Errors.Os(result, "asking for the user at the other end of a socket");
            }
            Peer = peer;
        }

        internal Credentials Peer { get; }

        /// <summary>The socket's descriptor, for its users.</summary>
        internal int Socket => (int)socket.DangerousGetHandle();

        /// <summary>The memory's descriptor, for its users; -1 if there is none yet.</summary>
        internal int Memory => memory == null ? -1 : (int)memory.DangerousGetHandle();

        /// <summary>Takes the memory over.</summary>
        internal void Keep(int fd) => memory = new Descriptor(fd);

        internal RamwayException? Send(HandshakeType type, ErrorKind status = 0, ulong size = 0, int descriptor = -1,
            uint features = 0, uint maxInFlight = 0) =>
            Handshake.Send(Socket, type, status, size, descriptor, features, maxInFlight);

        /// <summary>Whether the peer closed its end or died, or this end is closed. From any thread, at any time.</summary>
        internal bool HungUp()
        {
            int fd = socket.Enter();
            if (fd < 0)
            {
                return true;
            }
            try
            {
                return Sockets.HungUp(fd);
            }
            finally
            {
                socket.Leave();
            }
        }

        /// <summary>One more user, for whom <see cref="Release"/> is called once.</summary>
        internal void Use() => Interlocked.Increment(ref users);

        /// <summary>Ends one user's use.</summary>
        internal void Release()
        {
            if (Interlocked.Decrement(ref users) == 0)
            {
                memory?.Dispose();
                socket.Dispose();
            }
        }
    }

    /// <summary>One half's link to its peer, and one user of the end.</summary>
    internal sealed class BusLink : ILink
    {
        private readonly BusEnd end;

        internal BusLink(BusEnd end) => this.end = end;

        public bool Final => true;

        public bool PeerAlive(Role me) => !end.HungUp();

        public bool Vanished() => false;

        public void Close() => end.Release();
    }
}
