using System;

namespace Ramway
{
    /// <summary>A connection to one process of this machine: two rings in sealed memory, one for each direction.</summary>
    public sealed partial class Bus : IDisposable
    {
        /// <summary>Connects to a listener.</summary>
        public static Bus Connect(string name, ConnectOptions? options = null) => throw new NotImplementedException();

        /// <summary>The sending half; Unsupported if the listener gave this direction no capacity.</summary>
        public Sender Sender => throw new NotImplementedException();

        /// <summary>The receiving half; Unsupported if the listener gave this direction no capacity.</summary>
        public Receiver Receiver => throw new NotImplementedException();

        /// <summary>Whether there is a sending half.</summary>
        public bool HasSender => throw new NotImplementedException();

        /// <summary>Whether there is a receiving half.</summary>
        public bool HasReceiver => throw new NotImplementedException();

        /// <summary>The user that the peer acted as when the connection was made.</summary>
        public uint PeerUid => throw new NotImplementedException();

        /// <summary>The peer's process when the connection was made; 0 if it has no number in our PID namespace.</summary>
        public int PeerPid => throw new NotImplementedException();

        /// <summary>Whether the peer still holds its end of the bus.</summary>
        public bool PeerAlive => throw new NotImplementedException();

        /// <summary>Closes both halves.</summary>
        public void Dispose() => throw new NotImplementedException();
    }
}
