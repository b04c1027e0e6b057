using System;
using System.Collections.Generic;
using System.Diagnostics.CodeAnalysis;

namespace Ramway
{
    /// <summary>
    /// One client's calls at a server: which have no final REPLY yet, their credit, what is parked and how many bytes are copied. It does
    /// no I/O and knows no clock; its user holds a lock.
    /// </summary>
    internal sealed class ServerLedger
    {
        private readonly uint maxInFlight;
        private readonly long maxBytes;
        private readonly long longest;
        private readonly Dictionary<ulong, ServerCall> calls = new Dictionary<ulong, ServerCall>();
        private readonly Deadlines<ServerCall> deadlines = new Deadlines<ServerCall>();
        private readonly Queue<ReplyFrame> parked = new Queue<ReplyFrame>();
        private ulong next = 1;

        /// <param name="maxInFlight">How many calls the client may have without a final REPLY.</param>
        /// <param name="maxBytes">Bytes of requests and replies that are copied for it.</param>
        /// <param name="longest">The longest payload that the ring can hold.</param>
        internal ServerLedger(uint maxInFlight, long maxBytes, long longest)
        {
            this.maxInFlight = maxInFlight;
            this.maxBytes = maxBytes;
            this.longest = longest;
        }

        /// <summary>Calls that have no final REPLY in the ring.</summary>
        internal int InFlight => calls.Count;

        /// <summary>Bytes that are copied now.</summary>
        internal long Bytes { get; private set; }

        internal bool HasParked => parked.Count != 0;

        /// <summary>
        /// A CALL was refused and its answer did not fit: until it does, nothing is read from this client.
        /// </summary>
        internal (ulong Id, RpcStatus Status)? Answer { get; set; }

        /// <summary>Every CALL that was taken has its final REPLY in the ring.</summary>
        internal bool IsIdle => calls.Count == 0 && Answer == null;

        internal long NextDeadline => deadlines.Next;

        internal IEnumerable<ServerCall> Calls => calls.Values;

        /// <summary>
        /// Takes a CALL of this payload length. Why no correct client sends it, or null; then the call, or what to refuse it with.
        /// </summary>
        internal string? Take(ulong id, in CallHeader header, int length, long now, bool draining, out ServerCall? call,
            out RpcStatus refusal)
        {
            call = null;
            refusal = RpcStatus.Ok;
            if (id != next)
            {
                return "a CALL with the id " + id + ", expected " + next;
            }
            next++;
            bool own = header.Method >= Facts.MethodReserved;
            if (calls.Count >= maxInFlight)
            {
                refusal = RpcStatus.Overloaded;
            }
            else if (draining && !own)
            {
                refusal = RpcStatus.Draining;
            }
            else if (length > maxBytes - Bytes && !own)
            {
                refusal = RpcStatus.Overloaded;
            }
            if (refusal != RpcStatus.Ok)
            {
                return null;
            }
            call = new ServerCall(id, header.Window, header.TimeoutUs == 0 ? long.MaxValue : now + header.TimeoutUs * 1000L);
            if (!own)
            {
                call.RequestBytes = length;
                Bytes += length;
            }
            calls.Add(id, call);
            deadlines.Add(call);
            return null;
        }

        /// <summary>Takes a CANCEL. The call, if it is still to be cancelled.</summary>
        internal string? TakeCancel(ulong id, int length, out ServerCall? call)
        {
            call = null;
            if (length != 0)
            {
                return "a CANCEL with " + length + " bytes";
            }
            return Issued(id) ? Find(id, out call) : "a CANCEL for call " + id + ", which was not made";
        }

        /// <summary>Takes a CREDIT of n (0: not even a number). The call, if it goes on.</summary>
        internal string? TakeCredit(ulong id, uint n, out ServerCall? call)
        {
            call = null;
            if (n == 0)
            {
                return "a CREDIT without a number of at least 1";
            }
            if (!Issued(id))
            {
                return "a CREDIT for call " + id + ", which was not made";
            }
            Find(id, out call);
            if (call == null)
            {
                return null;
            }
            if (call.Window == 0)
            {
                return "a CREDIT for call " + id + ", which is no stream";
            }
            call.Credit = n > uint.MaxValue - call.Credit ? uint.MaxValue : call.Credit + n;
            return null;
        }

        private bool Issued(ulong id) => id != 0 && id < next;

        private string? Find(ulong id, out ServerCall? call)
        {
            if (calls.TryGetValue(id, out call) && call.State == CallState.Over)
            {
                call = null;
            }
            return null;
        }

        /// <summary>The next call whose time is over.</summary>
        internal bool TryExpire(long now, [NotNullWhen(true)] out ServerCall? call) => deadlines.TryTake(now, out call);

        /// <summary>An element; false: no ring can hold it.</summary>
        internal bool TryElement(ServerCall call, ReadOnlyMemory<byte> meta, ReadOnlyMemory<byte> body,
            [NotNullWhen(true)] out ReplyFrame? frame)
        {
            var header = new ReplyHeader { Element = true, MetaLength = (uint)meta.Length };
            frame = new ReplyFrame(call, header, meta, body);
            return frame.Length <= longest;
        }

        /// <summary>Keeps an element until there is credit for it; false: there are too many bytes already.</summary>
        internal bool TryHold(ReplyFrame element)
        {
            if (element.Length > maxBytes - Bytes)
            {
                return false;
            }
            Bytes += element.Length;
            element.Call.Held = element;
            return true;
        }

        /// <summary>Takes back what was held.</summary>
        internal ReplyFrame? Unhold(ServerCall call)
        {
            ReplyFrame? held = call.Held;
            if (held != null)
            {
                Bytes -= held.Length;
                call.Held = null;
            }
            return held;
        }

        /// <summary>Ends a call, whose request and held element are let go of. What is to be written.</summary>
        internal ReplyFrame Final(ServerCall call, RpcStatus status, uint code, ReadOnlyMemory<byte> meta, ReadOnlyMemory<byte> body)
        {
            call.State = CallState.Over;
            deadlines.Remove(call);
            Unhold(call);
            Bytes -= call.RequestBytes;
            call.RequestBytes = 0;
            if (call.Cancelled)
            {
                // Whatever the handler gave: the client drops it.
                status = call.TimedOut && !call.Begun ? RpcStatus.TimedOut : RpcStatus.Cancelled;
            }
            bool hasBody = status == RpcStatus.Ok || status == RpcStatus.Application || status == RpcStatus.HandlerFailed;
            var frame = new ReplyFrame(call, HeaderOf(status, code, hasBody ? meta.Length : 0), hasBody ? meta : default,
                hasBody ? body : default);
            if (frame.Length <= longest)
            {
                return frame;
            }
            // That a handler failed is more than what it said.
            return Empty(call, status == RpcStatus.HandlerFailed ? status : RpcStatus.ReplyTooLarge);
        }

        private static ReplyHeader HeaderOf(RpcStatus status, uint code, int meta) => new ReplyHeader
        {
            Status = status,
            Code = status == RpcStatus.Application ? code : 0,
            MetaLength = (uint)meta,
        };

        private static ReplyFrame Empty(ServerCall call, RpcStatus status) =>
            new ReplyFrame(call, HeaderOf(status, 0, 0), default, default);

        /// <summary>
        /// Keeps a frame until there is room in the ring. One for which there are too many bytes already: a final REPLY becomes
        /// ReplyTooLarge, an element is not kept (false). A frame without content is always kept: there is one for each call.
        /// </summary>
        internal bool TryPark(ReplyFrame frame)
        {
            if (frame.Length > Math.Max(maxBytes - Bytes, Facts.RpcHeader))
            {
                if (!frame.IsFinal)
                {
                    return false;
                }
                frame = Empty(frame.Call,
                    frame.Header.Status == RpcStatus.HandlerFailed ? RpcStatus.HandlerFailed : RpcStatus.ReplyTooLarge);
            }
            if (frame.IsFinal)
            {
                // An element stays as it is until its handler goes on; a reply's bytes are the handler's.
                frame.Copy();
            }
            Bytes += frame.Length;
            parked.Enqueue(frame);
            return true;
        }

        /// <summary>The first that is parked. Elements of streams that were cancelled are dropped.</summary>
        internal bool TryParked([NotNullWhen(true)] out ReplyFrame? frame)
        {
            while (parked.TryPeek(out frame))
            {
                if (frame.IsFinal || !frame.Call.Cancelled)
                {
                    return true;
                }
                Unpark();
            }
            return false;
        }

        /// <summary>Takes the first that is parked out.</summary>
        internal void Unpark() => Bytes -= parked.Dequeue().Length;

        /// <summary>A frame is in the ring.</summary>
        internal void Written(ReplyFrame frame)
        {
            if (frame.IsFinal)
            {
                calls.Remove(frame.Call.Id);
            }
        }

        /// <summary>Forgets everything: the client is gone.</summary>
        internal void Clear()
        {
            calls.Clear();
            parked.Clear();
            Answer = null;
            Bytes = 0;
        }
    }
}
