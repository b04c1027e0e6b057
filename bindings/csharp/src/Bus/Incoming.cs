using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// How many more connectors may be told that they are welcome. A handshake holds a permit exactly while it is at <see
    /// cref="Stage.Ack"/>: it goes back if the handshake fails, and stays taken if it gives a bus. The listener's thread alone takes;
    /// a server returns those of clients that are gone, from any thread.
    /// </summary>
    internal sealed class Permits
    {
        private int left;

        /// <param name="count">How many there are.</param>
        /// <param name="refuses">A connector that finds none is refused (Busy); else it waits for one.</param>
        internal Permits(int count, bool refuses = false)
        {
            left = count;
            Refuses = refuses;
        }

        internal bool Refuses { get; }

        internal bool AreLeft => System.Threading.Volatile.Read(ref left) > 0;

        internal void Take() => System.Threading.Interlocked.Decrement(ref left);

        internal void Return() => System.Threading.Interlocked.Increment(ref left);
    }

    /// <summary>How far a handshake of a listener's is.</summary>
    internal enum Stage
    {
        /// <summary>HELLO is due.</summary>
        Hello,
        /// <summary>HELLO is here, and no permit is left: another connector has to fail first.</summary>
        Parked,
        /// <summary>The connector was welcomed: it has the memory, and ACK is due.</summary>
        Ack,
        Over,
    }

    /// <summary>One handshake of a listener's. Only its thread knows of it.</summary>
    internal sealed class Incoming : IDisposable
    {
        private readonly Permits permits;
        private readonly TimeSpan timeout;
        private readonly uint features;
        private readonly Inbox inbox = new Inbox();
        // At Stage.Ack, and then only.
        private Bus? bus;

        // features: what HELLO has to require, exactly.
        internal Incoming(BusEnd end, Permits permits, TimeSpan timeout, uint features)
        {
            End = end;
            this.features = features;
            this.permits = permits;
            this.timeout = timeout;
            Deadline = WaitLimit.Of(timeout);
        }

        internal BusEnd End { get; }

        internal Stage Stage { get; private set; }

        /// <summary>Until when the message that is due has to be whole.</summary>
        internal WaitLimit Deadline { get; private set; }

        private HandshakeType Due => Stage == Stage.Ack ? HandshakeType.Ack : HandshakeType.Hello;

        /// <summary>It has waited for a permit, and one is left now.</summary>
        internal bool CanGoOn => Stage == Stage.Parked && permits.AreLeft;

        /// <summary>What to poll: nothing while it waits for a permit. A negative descriptor is left out by the kernel.</summary>
        internal int Polled => Stage == Stage.Parked ? -1 : End.Socket;

        /// <summary>
        /// Takes what is there of the message that is due. What came in time counts, also if it is read late.
        /// </summary>
        internal RamwayException? Read(out bool whole)
        {
            RamwayException? fault = inbox.Fill(End.Socket, out Arrival arrival);
            whole = arrival == Arrival.Whole;
            if (fault != null)
            {
                return fault;
            }
            switch (arrival)
            {
                case Arrival.Partial:
                    return Deadline.Passed ? inbox.Silent(Due) : null;
                case Arrival.HungUp:
                    return inbox.HungUp(Due);
            }
            fault = inbox.Message(Due, 0, out uint status, out _, Stage == Stage.Ack ? Facts.HandshakeFeatures : features);
            return fault == null && Stage == Stage.Ack && status != 0
                ? Handshake.StatusError(status, "the connector cannot use the memory")
                : fault;
        }

        /// <summary>Waits for a permit, without a deadline: the connector has one of its own.</summary>
        internal void Park()
        {
            Stage = Stage.Parked;
            Deadline = WaitLimit.Forever;
        }

        /// <summary>Makes the bus's memory and sends it. An exception: this side has failed; an error: the connector has.</summary>
        internal RamwayException? Welcome(ListenPlan plan)
        {
            bus = BusMemory.Create(plan, End);
            permits.Take();
            Stage = Stage.Ack;
            Deadline = WaitLimit.Of(timeout);
            inbox.Reset();
            return End.Send(HandshakeType.Welcome, 0, plan.Spec.Size, End.Memory, plan.Features, plan.MaxInFlight);
        }

        /// <summary>Hands over the bus that the connector has acknowledged, and ends. Its permit stays taken.</summary>
        internal Bus Accept()
        {
            Bus accepted = bus!;
            Stage = Stage.Over;
            Release();
            return accepted;
        }

        /// <summary>Ends it without a bus.</summary>
        public void Dispose()
        {
            if (Stage == Stage.Over)
            {
                return;
            }
            if (Stage == Stage.Ack)
            {
                permits.Return();
                bus!.Dispose();
            }
            Stage = Stage.Over;
            Release();
        }

        private void Release()
        {
            bus = null;
            inbox.Dispose();
            // Once the halves have the socket, this is only one user less.
            End.Release();
        }
    }
}
