using System;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// One client of a server. Its pump receives, and alone ends it; handlers that end on other threads write their replies themselves,
    /// where there is room. Nobody waits for room.
    /// </summary>
    internal sealed partial class ServerConnection
    {
        private readonly RpcServer server;
        private readonly Bus bus;
        private readonly Sender tx;
        private readonly Receiver rx;
        private readonly ServerLedger ledger;
        private readonly PoolShare share = new PoolShare();

        // Held for the ledger and for sending, never while code of the user's runs.
        private readonly object gate = new object();
        private bool over;
        /// <summary>The client takes nothing more; the pump ends the connection.</summary>
        private bool txDead;
        /// <summary>The pump's own: what it has taken, and runs itself before it takes more.</summary>
        private ServerCall? inline;

        internal ServerConnection(RpcServer server, Bus bus, RpcServerOptions options)
        {
            this.server = server;
            this.bus = bus;
            tx = bus.Sender;
            rx = bus.Receiver;
            ledger = new ServerLedger((uint)options.MaxInFlight,
                options.MaxBytes == 0 ? Facts.RpcBytesFactor * rx.Capacity : options.MaxBytes, tx.MaxMessageLength);
        }

        /// <summary>Set before it is known to any other thread.</summary>
        internal ServerPump Pump { get; set; } = null!;

        internal uint PeerUid => bus.PeerUid;

        internal int PeerPid => bus.PeerPid;

        internal bool IsIdle
        {
            get
            {
                lock (gate)
                {
                    return over || ledger.IsIdle;
                }
            }
        }

        internal CancellationToken TokenOf(ServerCall call)
        {
            lock (gate)
            {
                return call.Token;
            }
        }

        /// <summary>
        /// For the pump: writes what is parked, takes what has come, at most a round's frames, runs inline handlers, and checks the
        /// deadlines. Then what to wait for; working: handlers run elsewhere. False: the connection is over.
        /// </summary>
        internal bool Round(List<RingEnd> ends, ref bool more, ref bool working, ref long next)
        {
            int taken = 0;
            Outcome outcome = default;
            while (true)
            {
                lock (gate)
                {
                    if (inline != null)
                    {
                        AnswerInline(inline, outcome);
                        inline = null;
                    }
                    if (!TryReceive(ref taken))
                    {
                        End();
                        return false;
                    }
                    if (inline == null)
                    {
                        more |= taken != 0;
                        Prepare(ends, ref working, ref next);
                        return true;
                    }
                }
                outcome = Invoke(inline);
            }
        }

        /// <summary>Takes what has come, until there is a call that is to be run inline. False: the connection is to be ended.</summary>
        private bool TryReceive(ref int taken)
        {
            try
            {
                FlushParked();
                if (Receive(ref taken) is string wrong)
                {
                    server.Corrupt(this, wrong);
                    return false;
                }
            }
            catch (RamwayException e)
            {
                // The client closed or died, or wrote what no correct peer writes.
                if (e.Kind == ErrorKind.Corrupt)
                {
                    server.Corrupt(e);
                }
                return false;
            }
            return !txDead;
        }

        /// <summary>Checks the deadlines. Then what to wait for.</summary>
        private void Prepare(List<RingEnd> ends, ref bool working, ref long next)
        {
            long now = ledger.NextDeadline == long.MaxValue ? 0 : Clock.Nanoseconds;
            while (ledger.TryExpire(now, out ServerCall? late))
            {
                late.TimedOut = true;
                Stop(late);
            }
            if (ledger.Answer == null)
            {
                ends.Add(rx);
            }
            if (ledger.HasParked || ledger.Answer != null)
            {
                ends.Add(tx);
            }
            working |= ledger.InFlight != 0;
            next = Math.Min(next, ledger.NextDeadline);
        }

        private string? Receive(ref int taken)
        {
            for (; taken < Facts.RpcFramesPerRound && ledger.Answer == null && inline == null; taken++)
            {
                if (!rx.TryRecv(out Message message))
                {
                    return null;
                }
                try
                {
                    if (Take(message) is string wrong)
                    {
                        return wrong;
                    }
                }
                finally
                {
                    message.Dispose();
                }
            }
            return null;
        }

        /// <summary>Takes a frame. Why no correct client sends it; null: it does.</summary>
        private string? Take(in Message message)
        {
            ServerCall? call;
            string? wrong;
            switch (message.TypeId)
            {
                case Facts.TypeIdCall:
                    return TakeCall(message);
                case Facts.TypeIdCancel:
                    wrong = ledger.TakeCancel(message.Tag, message.Length, out call);
                    if (call != null)
                    {
                        Stop(call);
                    }
                    return wrong;
                case Facts.TypeIdCredit:
                    Span<byte> number = stackalloc byte[sizeof(uint)];
                    uint n = 0;
                    if (message.Length == number.Length)
                    {
                        message.Data.CopyTo(number);
                        n = RpcFrames.DecodeCredit(number);
                    }
                    wrong = ledger.TakeCredit(message.Tag, n, out call);
                    if (call?.Held != null)
                    {
                        ReplyFrame element = ledger.Unhold(call)!;
                        SendElement(call, element);
                    }
                    return wrong;
                default:
                    return "a frame of type 0x" + message.TypeId.ToString("x8");
            }
        }

        private string? TakeCall(in Message message)
        {
            int length = message.Length;
            Span<byte> first = stackalloc byte[Facts.RpcHeader];
            message.Data.Slice(0, Math.Min(length, Facts.RpcHeader)).CopyTo(first);
            if (!CallHeader.Decode(first, length, out CallHeader header))
            {
                return "a CALL of " + length + " bytes with a wrong header";
            }
            long now = header.TimeoutUs == 0 ? 0 : Clock.Nanoseconds;
            string? wrong = ledger.Take(message.Tag, header, length, now, server.IsDraining, out ServerCall? call,
                out RpcStatus refusal);
            if (call == null)
            {
                if (wrong == null)
                {
                    Refuse(message.Tag, refusal);
                }
                return wrong;
            }
            call.Connection = this;
            if (header.Method == Facts.MethodPing || header.Method == Facts.MethodDescribe)
            {
                Finish(call, RpcStatus.Ok, 0, default, header.Method == Facts.MethodPing ? default : server.Description);
                return null;
            }
            Handler? handler = server.Find(header.Method);
            if (handler == null)
            {
                Finish(call, RpcStatus.NoSuchMethod, 0, default, default);
                return null;
            }
            if (handler.Stream != null && header.Window == 0)
            {
                byte[] text = Encoding.UTF8.GetBytes("method " + header.Method + " replies with a stream: call it as one");
                Finish(call, RpcStatus.HandlerFailed, 0, default, text);
                return null;
            }
            byte[] payload = message.Data.Slice(Facts.RpcHeader).ToArray();
            int body = (int)RpcFrames.BodyAt(header.MetaLength) - Facts.RpcHeader;
            call.Handler = handler;
            call.Request = new RpcRequest(this, call, header.Method, payload.AsMemory(0, (int)header.MetaLength),
                payload.AsMemory(body));
            if (handler.Inline != null)
            {
                inline = call;
                call.Begun = true;
                call.State = CallState.Running;
                return null;
            }
            server.Pool.Add(share, call);
            return null;
        }

        /// <summary>Answers a CALL that is not taken in. Until that fits, nothing more is read from this client.</summary>
        private void Refuse(ulong id, RpcStatus status)
        {
            if (!TryWrite(id, new ReplyHeader { Status = status }, default, default))
            {
                ledger.Answer = (id, status);
            }
        }

        /// <summary>A call was cancelled, or its time is over.</summary>
        private void Stop(ServerCall call)
        {
            if (call.State == CallState.Over || call.Cancelled)
            {
                return;
            }
            call.Cancel();
            if (!call.Begun)
            {
                // Else it is about to run, and sees it.
                if (server.Pool.Remove(share, call))
                {
                    Finish(call, RpcStatus.Cancelled, 0, default, default);
                }
            }
            else if (call.State == CallState.Paused)
            {
                ledger.Unhold(call);
                Resume(call);
            }
        }

        /// <summary>Has a paused stream's handler go on, or end.</summary>
        private void Resume(ServerCall call)
        {
            call.State = CallState.Waiting;
            server.Pool.Add(share, call);
        }

        /// <summary>Ends a call: its final REPLY is written, or parked.</summary>
        private void Finish(ServerCall call, RpcStatus status, uint code, ReadOnlyMemory<byte> meta, ReadOnlyMemory<byte> body)
        {
            ReplyFrame frame = ledger.Final(call, status, code, meta, body);
            call.Request = null;
            if (!TrySend(frame))
            {
                ledger.TryPark(frame);
                Pump.Nudge();
            }
            if (server.IsDraining && ledger.IsIdle)
            {
                server.Changed();
            }
        }

        /// <summary>An element that has credit. What its handler does next is said by its call's state.</summary>
        private bool SendElement(ServerCall call, ReplyFrame element)
        {
            call.Credit--;
            if (TrySend(element))
            {
                if (call.State == CallState.Paused)
                {
                    Resume(call);
                }
                return true;
            }
            if (!ledger.TryPark(element))
            {
                return false;
            }
            call.State = CallState.Paused;
            Pump.Nudge();
            return true;
        }

        private bool TrySend(ReplyFrame frame)
        {
            if (ledger.HasParked || !TryWrite(frame.Call.Id, frame.Header, frame.Meta.Span, frame.Body.Span))
            {
                return false;
            }
            ledger.Written(frame);
            return true;
        }

        private bool TryWrite(ulong id, in ReplyHeader header, ReadOnlySpan<byte> meta, ReadOnlySpan<byte> body)
        {
            if (over || txDead)
            {
                return false;
            }
            try
            {
                if (!tx.TryReserve((int)RpcFrames.PayloadLength(meta.Length, body.Length), out Slot slot))
                {
                    return false;
                }
                Span<byte> payload = slot.Data;
                RpcFrames.Fill(payload, meta, body);
                header.Encode(payload);
                slot.CommitOwn(Facts.TypeIdReply, id);
                return true;
            }
            catch (RamwayException)
            {
                txDead = true;
                Pump.Nudge();
                return false;
            }
        }

        private void FlushParked()
        {
            while (ledger.TryParked(out ReplyFrame? frame))
            {
                if (!TryWrite(frame.Call.Id, frame.Header, frame.Meta.Span, frame.Body.Span))
                {
                    return;
                }
                ledger.Unpark();
                ledger.Written(frame);
                if (!frame.IsFinal && frame.Call.State == CallState.Paused)
                {
                    Resume(frame.Call);
                }
            }
            if (ledger.Answer is (ulong id, RpcStatus status) && TryWrite(id, new ReplyHeader { Status = status }, default, default))
            {
                ledger.Answer = null;
            }
            if (server.IsDraining && ledger.IsIdle)
            {
                server.Changed();
            }
        }

        /// <summary>Cancels everything: a drain's time is over.</summary>
        internal void CancelAll()
        {
            lock (gate)
            {
                foreach (ServerCall call in new List<ServerCall>(ledger.Calls))
                {
                    Stop(call);
                }
            }
        }

        /// <summary>
        /// For the pump: the end of the connection. It is closed only if every CALL that was taken has its reply, so that the client
        /// may conclude that what has none was not run; else it is abandoned. What runs is told to stop, and its replies are dropped.
        /// </summary>
        internal void End()
        {
            lock (gate)
            {
                if (over)
                {
                    return;
                }
                bool idle = ledger.IsIdle;
                over = true;
                foreach (ServerCall call in ledger.Calls)
                {
                    if (call.State == CallState.Over)
                    {
                        continue;
                    }
                    call.Cancel();
                    if (!call.Begun)
                    {
                        server.Pool.Remove(share, call);
                    }
                    else if (call.State == CallState.Paused)
                    {
                        Resume(call);
                    }
                }
                ledger.Clear();
                if (idle)
                {
                    bus.Dispose();
                }
                else
                {
                    tx.Abandon();
                    rx.GiveUp();
                }
            }
        }
    }
}
