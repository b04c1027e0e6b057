using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    // Sending under a lock, receiving by one thread at a time: the leader, which is a blocking caller, or the client's own thread once
    // there was an asynchronous call (RpcClient.Thread.cs). Who leaves wakes one of those that wait, and one that is woken and need not
    // receive any more wakes the next: so there is a leader as long as anybody waits.
    public sealed partial class RpcClient
    {
        private readonly Bus bus;
        private readonly string name;
        private readonly Sender tx;
        private readonly Receiver rx;
        private readonly int longest;
        private readonly PumpWait pump;

        // Held for sending, and for the ledger; never while anybody waits or code of the user's runs. All that follows is under it.
        private readonly object gate = new object();
        private readonly ClientLedger ledger;
        private readonly LinkedList<Follower> followers = new LinkedList<Follower>();
        private bool disposed;
        /// <summary>How the connection has ended; 0: it has not.</summary>
        private ErrorKind ended;
        private string endText = "";
        /// <summary>The server takes no more: how it ended is to be received.</summary>
        private bool txDead;
        /// <summary>Somebody receives.</summary>
        private bool pumping;
        /// <summary>There is something to be sent that does not fit.</summary>
        private bool roomWanted;
        /// <summary>What the one who receives waits for besides replies.</summary>
        private bool pumpWatchesRoom;
        private long pumpUntil;

        // The leader's own.
        private readonly List<RingEnd> ends = new List<RingEnd>(2);

        internal ClientCall Begin(uint method, uint window, ReadOnlySpan<byte> body, RpcCallOptions? options, IWaker? waker, bool thread,
            bool awaited = false)
        {
            options ??= RpcCallOptions.Default;
            WaitLimit.Check(options.Timeout, "time limit");
            ReadOnlyMemory<byte> meta = options.Meta;
            long length = RpcFrames.PayloadLength(meta.Length, body.Length);
            if (length > longest)
            {
                throw RpcException.Of(ErrorKind.TooLarge, "a request of " + body.Length + " bytes with " + meta.Length +
                    " bytes of metadata can never fit: the ring to the server '" + name + "' takes at most " + longest +
                    " bytes; give the server a larger capacity or cut the request", false);
            }
            var call = new ClientCall(method, window, Later(options.Timeout), awaited) { Waker = waker };
            List<IWaker>? wakes;
            lock (gate)
            {
                if (ended != 0)
                {
                    throw RpcException.Of(disposed ? ErrorKind.Detached : ended, disposed ? "the client is closed" : endText, false);
                }
                if (thread)
                {
                    EnsureThread();
                }
                bool late = call.Deadline != long.MaxValue && call.Deadline <= Clock.Nanoseconds;
                if (late || !ledger.CanPublish || !TryPublish(call, meta.Span, body))
                {
                    call.Meta = meta.ToArray();
                    call.Body = body.ToArray();
                    ledger.Add(call);
                }
                // The clock is looked at after the CALL was published, so that the server's time never ends first.
                Expire();
                wakes = Changed(false);
            }
            Run(wakes);
            return call;
        }

        /// <summary>The moment so much later, by <see cref="Clock"/>.</summary>
        private static long Later(TimeSpan? time)
        {
            WaitLimit limit = WaitLimit.Of(time);
            if (limit.IsForever)
            {
                return long.MaxValue;
            }
            long left = limit.Left, now = Clock.Nanoseconds;
            return left > long.MaxValue - now ? long.MaxValue : now + left;
        }

        /// <summary>Sends what is owed and what waits, as far as there is room, and has the leader know. Who is to be told of it.</summary>
        private List<IWaker>? Changed(bool force)
        {
            if (ended == 0)
            {
                Flush();
            }
            if (pumping && (force || ended != 0 || roomWanted && !pumpWatchesRoom || ledger.NextDeadline < pumpUntil))
            {
                pump.Nudge();
            }
            return ledger.TakeWakes();
        }

        /// <summary>Tells them. here: what they go on with may run on this thread.</summary>
        private static void Run(List<IWaker>? wakes, bool here = false)
        {
            if (wakes != null)
            {
                foreach (IWaker wake in wakes)
                {
                    wake.Wake(here);
                }
            }
        }

        /// <summary>What is owed, then the calls that wait for a place, as long as there is room.</summary>
        private void Flush()
        {
            roomWanted = false;
            while (ledger.TryOwed(out ClientCall? call, out uint credit))
            {
                if (!TryPublishOwed(call, credit))
                {
                    roomWanted = true;
                    return;
                }
                ledger.OwedPublished();
            }
            while (ledger.Front is ClientCall next)
            {
                if (!TryPublish(next, next.Meta.Span, next.Body.Span))
                {
                    roomWanted = true;
                    return;
                }
            }
        }

        private bool TryPublishOwed(ClientCall call, uint credit)
        {
            if (!TryReserve(call.OwesCancel ? 0 : sizeof(uint), out Slot slot))
            {
                return false;
            }
            if (call.OwesCancel)
            {
                slot.CommitOwn(Facts.TypeIdCancel, call.Id);
            }
            else
            {
                RpcFrames.Put(slot.Data, 0, credit);
                slot.CommitOwn(Facts.TypeIdCredit, call.Id);
            }
            return true;
        }

        private bool TryPublish(ClientCall call, ReadOnlySpan<byte> meta, ReadOnlySpan<byte> body)
        {
            if (!TryReserve((int)RpcFrames.PayloadLength(meta.Length, body.Length), out Slot slot))
            {
                return false;
            }
            Span<byte> payload = slot.Data;
            RpcFrames.Fill(payload, meta, body);
            new CallHeader
            {
                TimeoutUs = CallHeader.Timeout(call.Deadline == long.MaxValue ? long.MaxValue : call.Deadline - Clock.Nanoseconds),
                MetaLength = (uint)meta.Length,
                Method = call.Method,
                Window = call.Window,
            }.Encode(payload);
            slot.CommitOwn(Facts.TypeIdCall, ledger.NextId);
            ledger.Published(call);
            return true;
        }

        private bool TryReserve(int length, out Slot slot)
        {
            slot = default;
            if (txDead)
            {
                return false;
            }
            try
            {
                return tx.TryReserve(length, out slot);
            }
            catch (RamwayException e)
            {
                txDead = true;
                if (e.Kind != ErrorKind.Closed && e.Kind != ErrorKind.PeerDead)
                {
                    End(e.Kind, e.Message, true);
                }
                // Else what the server sent before is received first, and then how it ended.
                return false;
            }
        }

        /// <summary>The connection is over, for all calls. Whoever receives closes the bus.</summary>
        private void End(ErrorKind kind, string text, bool mayHaveRun)
        {
            if (ended == 0)
            {
                ended = kind;
                endText = text;
                ledger.End(kind, text, mayHaveRun);
            }
        }

        /// <summary>Receives until there is news for a call, which it says, or the time has come.</summary>
        private bool Lead(ClientCall mine, long until, CancellationToken token)
        {
            try
            {
                while (true)
                {
                    List<IWaker>? wakes;
                    long sleepUntil;
                    bool more, enough, news;
                    pump.Clear();
                    lock (gate)
                    {
                        more = Round();
                        news = mine.HasNews;
                        enough = news || ended != 0 || until != long.MaxValue && Clock.Nanoseconds >= until ||
                            token.IsCancellationRequested;
                        sleepUntil = Prepare(until);
                        wakes = ledger.TakeWakes();
                    }
                    Run(wakes);
                    if (enough)
                    {
                        return news;
                    }
                    if (!more)
                    {
                        pump.Idle(ends, sleepUntil);
                    }
                }
            }
            finally
            {
                lock (gate)
                {
                    Leave();
                }
            }
        }

        /// <summary>Who has received does so no more.</summary>
        private void Leave()
        {
            if (ended != 0)
            {
                bus.Dispose();
            }
            pumping = false;
            HandOver();
        }

        /// <summary>Receives what is there, at most a round's frames, and sends what waits. False: nothing was there.</summary>
        private bool Round()
        {
            bool some = ended == 0 && Receive();
            Expire();
            if (ended == 0)
            {
                Flush();
            }
            return some;
        }

        /// <summary>Decides the calls whose time is over.</summary>
        private void Expire()
        {
            if (ledger.NextDeadline != long.MaxValue)
            {
                ledger.Expire(Clock.Nanoseconds);
            }
        }

        /// <summary>What the one who receives waits for next, and until when.</summary>
        private long Prepare(long until)
        {
            ends.Clear();
            ends.Add(rx);
            pumpWatchesRoom = roomWanted && !txDead;
            if (pumpWatchesRoom)
            {
                ends.Add(tx);
            }
            return pumpUntil = Math.Min(until, ledger.NextDeadline);
        }

        /// <summary>Receives without waiting. False: nothing was there.</summary>
        private bool Receive()
        {
            int taken = 0;
            try
            {
                for (; taken < Facts.RpcFramesPerRound && rx.TryRecv(out Message message); taken++)
                {
                    string? wrong = Take(message);
                    message.Dispose();
                    if (wrong != null)
                    {
                        End(ErrorKind.Corrupt, "the server '" + name + "' sent " + wrong + ", which no correct server does: the " +
                            "connection is closed. See SECURITY.md if the server is not trusted", true);
                        return false;
                    }
                }
            }
            catch (RamwayException e)
            {
                // A server closes only when every call that it took has its reply: what has none was not run.
                End(e.Kind, e.Message, e.Kind != ErrorKind.Closed);
            }
            return taken != 0;
        }

        /// <summary>Takes a frame. Why no correct server sends it; null: it does.</summary>
        private string? Take(in Message message)
        {
            if (message.TypeId != Facts.TypeIdReply)
            {
                return "a frame of type 0x" + message.TypeId.ToString("x8");
            }
            int length = message.Length;
            Span<byte> first = stackalloc byte[Facts.RpcHeader];
            message.Data.Slice(0, Math.Min(length, Facts.RpcHeader)).CopyTo(first);
            if (!ReplyHeader.Decode(first, length, out ReplyHeader header))
            {
                return "a REPLY of " + length + " bytes with a wrong header";
            }
            string? wrong = ledger.Check(message.Tag, header, length, out ClientCall? call, out bool wanted);
            if (wanted && header.Status == RpcStatus.Cancelled && call!.Deadline <= Clock.Nanoseconds)
            {
                // The server's clock ended it before this side had looked at its own, by which its time is over too.
                ledger.Expire(Clock.Nanoseconds);
            }
            else if (wanted)
            {
                byte[] payload = message.Data.Slice(Facts.RpcHeader).ToArray();
                ledger.Deliver(call!, header, new RpcReply(payload, (int)header.MetaLength));
            }
            return wrong;
        }

        /// <summary>Blocks until there is news for a call: true; false: the time has come.</summary>
        internal bool Await(ClientCall call, long until, CancellationToken token = default)
        {
            Follower me = Follower.Own;
            for (bool lead = false; ;)
            {
                bool over, leads;
                List<IWaker>? wakes = null;
                lock (gate)
                {
                    long first = Math.Min(until, call.Deadline), now = first == long.MaxValue ? 0 : Clock.Nanoseconds;
                    if (call.Deadline <= now)
                    {
                        ledger.Expire(now);
                        wakes = Changed(false);
                    }
                    // Checking and registering are one step under the lock: whoever decides the call, or leaves, finds this one.
                    over = call.HasNews || now >= until || token.IsCancellationRequested;
                    leads = !over && !pumping;
                    if (leads)
                    {
                        pumping = true;
                    }
                    else if (!over)
                    {
                        me.Reset();
                        call.Waker = me;
                        followers.AddLast(me.Node);
                    }
                    else if (lead)
                    {
                        HandOver();
                    }
                }
                Run(wakes);
                if (over)
                {
                    // Only this thread takes what it waits for.
                    return call.HasNews;
                }
                if (leads && Lead(call, Math.Min(until, call.Deadline), token))
                {
                    return true;
                }
                lead = !leads && Follow(call, me, Math.Min(until, call.Deadline));
            }
        }

        /// <summary>Waits while another thread receives. Whether this one is to receive now.</summary>
        private bool Follow(ClientCall call, Follower me, long until)
        {
            bool slept = false;
            try
            {
                me.Sleep(until);
                slept = true;
            }
            finally
            {
                lock (gate)
                {
                    if (me.Node.List != null)
                    {
                        followers.Remove(me.Node);
                    }
                    call.Waker = null;
                    if (me.Leads && !slept)
                    {
                        // Interrupted: it passes on what it was given.
                        me.Leads = false;
                        HandOver();
                    }
                }
            }
            bool leads = me.Leads;
            me.Leads = false;
            return leads;
        }

        /// <summary>Nobody receives: one of those who wait does from now on.</summary>
        private void HandOver()
        {
            if (pumping)
            {
                return;
            }
            // The client's thread that takes over, or a Dispose.
            Monitor.PulseAll(gate);
            if (ended != 0)
            {
                // They have been told.
                return;
            }
            if ((owner == null || away) && followers.First is LinkedListNode<Follower> next)
            {
                followers.Remove(next);
                next.Value.Leads = true;
                next.Value.Wake(false);
            }
        }

        /// <summary>Completes when there is news for a call, without a thread that waits.</summary>
        internal async Task NewsAsync(ClientCall call, CancellationToken token)
        {
            var waker = new TaskWaker();
            lock (gate)
            {
                if (call.HasNews)
                {
                    return;
                }
                EnsureThread();
                call.Waker = waker;
            }
            using CancellationTokenRegistration registration = token.Register(() => waker.Cancel(token));
            await waker.Task.ConfigureAwait(false);
        }

        /// <summary>One check of what has come, if nobody else receives.</summary>
        internal void Poll()
        {
            List<IWaker>? wakes;
            lock (gate)
            {
                if (pumping || ended != 0)
                {
                    return;
                }
                Receive();
                Expire();
                wakes = Changed(false);
                if (ended != 0)
                {
                    bus.Dispose();
                }
            }
            Run(wakes);
        }

        /// <summary>Whether a wait for a call is over.</summary>
        internal bool HasNews(ClientCall call)
        {
            lock (gate)
            {
                return call.HasNews;
            }
        }

        /// <summary>Blocks for at most this long until there is news for a call: true. The token ends the wait, not the call.</summary>
        internal bool AwaitFor(ClientCall call, TimeSpan? timeout, CancellationToken token)
        {
            token.ThrowIfCancellationRequested();
            bool news;
            using (token.CanBeCanceled ? token.Register(() => WakeFor(call)) : default)
            {
                news = Await(call, Later(timeout), token);
            }
            if (!news)
            {
                token.ThrowIfCancellationRequested();
            }
            return news;
        }

        /// <summary>Has whoever waits for a call check its token.</summary>
        private void WakeFor(ClientCall call)
        {
            IWaker? waker;
            lock (gate)
            {
                waker = call.Waker;
                if (pumping)
                {
                    pump.Nudge();
                }
            }
            waker?.Wake(false);
        }

        /// <summary>Takes a reply or an element that is there.</summary>
        internal bool TryTake(ClientCall call, out RpcReply? reply)
        {
            List<IWaker>? wakes;
            bool taken;
            lock (gate)
            {
                taken = ledger.TryTake(call, out reply);
                wakes = Changed(false);
            }
            Run(wakes);
            return taken;
        }

        /// <summary>What a decided call of one reply gives.</summary>
        internal RpcReply Result(ClientCall call)
        {
            lock (gate)
            {
                return ledger.TryTake(call, out RpcReply? reply)
                    ? reply
                    : throw call.Error ?? new ObjectDisposedException(nameof(RpcPending), "ramway: the reply was let go of");
            }
        }

        /// <summary>Cancels a call, unless it is decided. letGo: its replies are dropped.</summary>
        internal void Cancel(ClientCall call, Exception error, bool letGo)
        {
            List<IWaker>? wakes;
            lock (gate)
            {
                if (letGo)
                {
                    ledger.LetGo(call, error);
                }
                else
                {
                    ledger.Decide(call, error);
                }
                wakes = Changed(true);
            }
            Run(wakes);
        }

        internal static RpcException Cancelled(ClientCall call) =>
            RpcException.Of(ErrorKind.Interrupted, "the call was cancelled", call.IsPublished);

        /// <summary>Has a token cancel a call.</summary>
        private CancellationTokenRegistration CancelWith(ClientCall call, CancellationToken token) => token.CanBeCanceled
            ? token.Register(() => Cancel(call,
                new OperationCanceledException("ramway: the call was cancelled", Cancelled(call), token), false))
            : default;
    }
}
