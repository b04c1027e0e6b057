using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>One handshake of a listener's. Only its thread knows of it.</summary>
    internal sealed class Greeting : IDisposable
    {
        internal Greeting(BusEnd end, WaitLimit deadline)
        {
            End = end;
            Deadline = deadline;
        }

        internal BusEnd End { get; }

        internal WaitLimit Deadline { get; private set; }

        /// <summary>HELLO is here; another connector has to fail first.</summary>
        internal bool Parked { get; private set; }

        internal bool Over { get; private set; }

        /// <summary>Set once the memory was made.</summary>
        internal Bus? Bus { get; set; }

        /// <summary>The message that is due.</summary>
        internal HandshakeType Due => Bus == null ? HandshakeType.Hello : HandshakeType.Ack;

        private Inbox Inbox { get; } = new Inbox();

        /// <summary>Takes what is there of the message that is due. What came in time counts, also if it is looked at late.</summary>
        internal RamwayException? Read(out bool whole)
        {
            RamwayException? fault = Inbox.Fill(End.Socket, out Arrival arrival);
            whole = arrival == Arrival.Whole;
            if (fault != null)
            {
                return fault;
            }
            switch (arrival)
            {
                case Arrival.Partial:
                    return Deadline.Passed ? Inbox.Silent(Due) : null;
                case Arrival.HungUp:
                    return Inbox.HungUp(Due);
            }
            fault = Inbox.Message(Due, 0, out uint status, out _);
            return fault == null && Due == HandshakeType.Ack && status != 0
                ? Handshake.StatusError(status, "the connector cannot use the memory")
                : fault;
        }

        internal void Park()
        {
            Parked = true;
            Deadline = WaitLimit.Forever;
        }

        /// <summary>Begins to wait for ACK.</summary>
        internal void ExpectAck(WaitLimit deadline)
        {
            Parked = false;
            Deadline = deadline;
            Inbox.Reset();
        }

        /// <summary>Hands over the bus that the connector has acknowledged.</summary>
        internal Bus Complete()
        {
            Bus bus = Bus!;
            Bus = null;
            Dispose();
            return bus;
        }

        public void Dispose()
        {
            if (!Over)
            {
                Over = true;
                Bus?.Dispose();
                Inbox.Dispose();
                // Once the halves have the socket, this is only one user less.
                End.Release();
            }
        }
    }
}
