using System;
using System.Collections.Generic;
using System.Diagnostics.CodeAnalysis;

namespace Ramway
{
    /// <summary>
    /// A client's calls: which are in flight, which wait for a place, what they owe the server, what is buffered. It does no I/O and
    /// knows no clock; its user holds a lock.
    /// </summary>
    /// <remarks>
    /// A call is decided once. One that is decided before its final REPLY has come stays in flight and owes a CANCEL, so that its place
    /// is free only when the server has let go of it.
    /// </remarks>
    internal sealed class ClientLedger
    {
        private readonly uint maxInFlight;
        private readonly long maxBuffered;
        private readonly Dictionary<ulong, ClientCall> inFlight = new Dictionary<ulong, ClientCall>();
        private readonly LinkedList<ClientCall> unsent = new LinkedList<ClientCall>();
        private readonly Queue<ClientCall> owed = new Queue<ClientCall>();
        private readonly Deadlines<ClientCall> deadlines = new Deadlines<ClientCall>();
        private List<IWaker> wakes = new List<IWaker>();
        private ulong issued;

        /// <param name="maxInFlight">How many calls the server allows.</param>
        /// <param name="maxBuffered">Bytes of replies that nobody has taken, all calls together.</param>
        internal ClientLedger(uint maxInFlight, long maxBuffered)
        {
            this.maxInFlight = maxInFlight;
            this.maxBuffered = maxBuffered;
        }

        /// <summary>Calls that are published and have no final REPLY.</summary>
        internal int InFlight => inFlight.Count;

        internal int Unsent => unsent.Count;

        /// <summary>Whether there is a call that the server is still to answer.</summary>
        internal bool IsBusy => inFlight.Count != 0 || unsent.Count != 0;

        /// <summary>Bytes of replies that nobody has taken.</summary>
        internal long Buffered { get; private set; }

        /// <summary>The earliest deadline of a call that is not decided.</summary>
        internal long NextDeadline => deadlines.Next;

        /// <summary>Whether a new call may be published at once: nothing goes before it, and it has a place.</summary>
        internal bool CanPublish => unsent.Count == 0 && owed.Count == 0 && inFlight.Count < maxInFlight;

        /// <summary>The id that the next CALL gets.</summary>
        internal ulong NextId => issued + 1;

        /// <summary>The first call that waits for a place, if there is one for it.</summary>
        internal ClientCall? Front => inFlight.Count < maxInFlight ? unsent.First?.Value : null;

        /// <summary>Keeps a call until it can be published.</summary>
        internal void Add(ClientCall call)
        {
            call.Node = unsent.AddLast(call);
            deadlines.Add(call);
        }

        /// <summary>Its CALL was published, with <see cref="NextId"/>.</summary>
        internal void Published(ClientCall call)
        {
            if (call.Node == null)
            {
                deadlines.Add(call);
            }
            else
            {
                unsent.Remove(call.Node);
                call.Node = null;
            }
            call.Meta = call.Body = default;
            call.Id = ++issued;
            call.Granted = call.Window;
            inFlight.Add(call.Id, call);
        }

        /// <summary>What is to be published before any CALL: a CANCEL, or a CREDIT of so many.</summary>
        internal bool TryOwed([NotNullWhen(true)] out ClientCall? call, out uint credit)
        {
            while (owed.TryPeek(out call))
            {
                credit = call.OwedCredit;
                if (call.OwesCancel || credit != 0)
                {
                    return true;
                }
                // Its final REPLY has come.
                owed.Dequeue().InOwed = false;
            }
            credit = 0;
            return false;
        }

        /// <summary>What <see cref="TryOwed"/> gave was published.</summary>
        internal void OwedPublished()
        {
            ClientCall call = owed.Dequeue();
            call.InOwed = false;
            if (!call.OwesCancel)
            {
                call.Granted += call.OwedCredit;
            }
            call.OwesCancel = false;
            call.OwedCredit = 0;
        }

        /// <summary>
        /// Checks a REPLY of this payload length. Why no correct server sends it, or null; then its call, and whether its bytes are
        /// wanted: then <see cref="Deliver"/> follows.
        /// </summary>
        internal string? Check(ulong id, in ReplyHeader header, int length, out ClientCall? call, out bool wanted)
        {
            wanted = false;
            if (!inFlight.TryGetValue(id, out call))
            {
                return id == 0 || id > issued
                    ? "a REPLY to call " + id + ", which was not made"
                    : "a REPLY to call " + id + ", which has its final one";
            }
            if (header.Element)
            {
                if (!call.IsStream)
                {
                    return "an element for call " + id + ", which is no stream";
                }
                if (++call.Received > call.Granted)
                {
                    return "an element for call " + id + " beyond its credit";
                }
            }
            else
            {
                if (call.IsStream && header.Status == RpcStatus.Ok && length != RpcFrames.BodyAt(header.MetaLength))
                {
                    return "a body at the end of the stream of call " + id;
                }
                inFlight.Remove(id);
                call.OwesCancel = false;
                call.OwedCredit = 0;
            }
            if (call.Decided)
            {
                return null;
            }
            if (length > maxBuffered - (call.Awaited ? 0 : Buffered))
            {
                Decide(call, RpcException.Of(ErrorKind.TooLarge, "a reply of " + length + " bytes would exceed the client's MaxBuffered " +
                    "of " + maxBuffered + " (" + Buffered + " bytes of replies were not taken yet)", true));
                return null;
            }
            wanted = true;
            return null;
        }

        /// <summary>Keeps what a checked REPLY brought.</summary>
        internal void Deliver(ClientCall call, in ReplyHeader header, RpcReply reply)
        {
            if (!header.Element && header.Status != RpcStatus.Ok)
            {
                Decide(call, RpcException.Of(header.Status, header.Code, reply.Body.Span));
                return;
            }
            if (!header.Element && call.IsStream)
            {
                call.Last = reply;
            }
            else
            {
                call.Replies.Enqueue(reply);
                Buffered += HeldBy(call, reply);
            }
            if (header.Element)
            {
                Tell(call);
            }
            else
            {
                Decide(call, null);
            }
        }

        /// <summary>Takes the first of a call's replies, and owes credit for an element.</summary>
        internal bool TryTake(ClientCall call, [NotNullWhen(true)] out RpcReply? reply)
        {
            if (!call.Replies.TryDequeue(out reply))
            {
                return false;
            }
            Buffered -= HeldBy(call, reply);
            if (call.IsStream && !call.Decided && !call.OwesCancel)
            {
                call.OwedCredit = call.OwedCredit == uint.MaxValue ? uint.MaxValue : call.OwedCredit + 1;
                // Half a window together: the server has the other half to go on with.
                if (call.OwedCredit >= call.Window - call.Window / 2)
                {
                    Owe(call);
                }
            }
            return true;
        }

        /// <summary>Decides a call from here, unless it is decided; null: it has succeeded. Replies that are there can be taken.</summary>
        internal void Decide(ClientCall call, Exception? error)
        {
            if (call.Decided)
            {
                return;
            }
            call.Decided = true;
            call.Error = error;
            deadlines.Remove(call);
            if (call.Node != null)
            {
                // Withdrawn: it was not run.
                unsent.Remove(call.Node);
                call.Node = null;
                call.Meta = call.Body = default;
            }
            else if (inFlight.ContainsKey(call.Id))
            {
                call.OwesCancel = true;
                call.OwedCredit = 0;
                Owe(call);
            }
            Tell(call);
        }

        /// <summary>Nobody wants the call or its replies any more.</summary>
        internal void LetGo(ClientCall call, Exception error)
        {
            Decide(call, error);
            while (call.Replies.TryDequeue(out RpcReply? reply))
            {
                Buffered -= HeldBy(call, reply);
            }
        }

        private static long HeldBy(ClientCall call, RpcReply reply) => call.Awaited ? 0 : reply.Held;

        /// <summary>Decides the calls whose time is over.</summary>
        internal void Expire(long now)
        {
            while (deadlines.TryTake(now, out ClientCall? call))
            {
                Decide(call, RpcException.Of(ErrorKind.TimedOut, call.IsPublished
                    ? "the call's time is over, and its reply has not come"
                    : "the call's time was over before it could be sent", call.IsPublished));
            }
        }

        /// <summary>The connection is over, for all calls. mayHaveRun: so those that are published may have.</summary>
        internal void End(ErrorKind kind, string text, bool mayHaveRun)
        {
            foreach (ClientCall call in inFlight.Values)
            {
                call.OwesCancel = false;
                call.OwedCredit = 0;
            }
            var left = new List<ClientCall>(inFlight.Values);
            left.AddRange(unsent);
            inFlight.Clear();
            owed.Clear();
            foreach (ClientCall call in left)
            {
                Decide(call, RpcException.Of(kind, text, mayHaveRun && call.IsPublished));
            }
        }

        /// <summary>Who is to be told of what has changed since this was called last, without the lock; null: nobody.</summary>
        internal List<IWaker>? TakeWakes()
        {
            if (wakes.Count == 0)
            {
                return null;
            }
            List<IWaker> taken = wakes;
            wakes = new List<IWaker>();
            return taken;
        }

        private void Tell(ClientCall call)
        {
            if (call.Waker != null)
            {
                wakes.Add(call.Waker);
            }
        }

        private void Owe(ClientCall call)
        {
            if (!call.InOwed)
            {
                call.InOwed = true;
                owed.Enqueue(call);
            }
        }
    }
}
