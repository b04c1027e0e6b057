using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>One side of an RPC's bus that says what no correct peer says.</summary>
    internal sealed class RawPeer : IDisposable
    {
        private readonly Listener? _listener;

        private RawPeer(Bus bus, Listener? listener)
        {
            Bus = bus;
            _listener = listener;
        }

        internal Bus Bus { get; }

        /// <summary>A client.</summary>
        internal static RawPeer Client(string name) =>
            new RawPeer(new Connector(name, new ConnectOptions(), Facts.RpcFeatures).Run(default), null);

        /// <summary>A server, and the library's client of it.</summary>
        internal static RawPeer Server(string name, out RpcClient client, uint maxInFlight = 16, int capacity = 4096)
        {
            var options = new ListenOptions { Capacity = capacity, HandshakeTimeout = Wait.Long };
            Listener listener = Listener.BindFor(new Permits(9, true), name, options, () => options.Plan(name).ForRpc(maxInFlight));
            Task<RpcClient> connecting = RpcClient.ConnectAsync(name);
            var peer = new RawPeer(listener.Accept(Wait.Long), listener);
            client = connecting.Result;
            return peer;
        }

        internal void Send(uint typeId, ulong tag, params byte[] payload)
        {
            using Slot slot = Bus.Sender.Reserve(payload.Length, Wait.Long);
            payload.CopyTo(slot.Data);
            slot.CommitOwn(typeId, tag);
        }

        internal void Call(ulong id, uint method, uint window = 0, params byte[] body) =>
            Send(Facts.TypeIdCall, id, Words(0, 0, method, window).Concat(body).ToArray());

        internal void Reply(ulong id, RpcStatus status = RpcStatus.Ok, params byte[] body) =>
            Send(Facts.TypeIdReply, id, Words((uint)status, 0, 0, 0).Concat(body).ToArray());

        internal void Element(ulong id, params byte[] body) =>
            Send(Facts.TypeIdReply, id, Words(0, Facts.RpcElement, 0, 0).Concat(body).ToArray());

        internal static byte[] Words(params uint[] words) => words.SelectMany(BitConverter.GetBytes).ToArray();

        /// <summary>The next frame: its type id and tag.</summary>
        internal (uint TypeId, ulong Tag) Next(out byte[] payload)
        {
            using Message message = Bus.Receiver.Recv(Wait.Long);
            payload = message.ToArray();
            return (message.TypeId, message.Tag);
        }

        /// <summary>That the next frame is a REPLY with this status and no body.</summary>
        internal void Expect(ulong id, RpcStatus status)
        {
            Check.Equal((Facts.TypeIdReply, id), Next(out byte[] payload), "the frame");
            Check.Same(Words((uint)status, 0, 0, 0), payload, "its payload");
        }

        /// <summary>That the next frame is this one, with these numbers as payload.</summary>
        internal void Expect(uint typeId, ulong id, params uint[] words)
        {
            Check.Equal((typeId, id), Next(out byte[] payload), "the frame");
            Check.Same(Words(words), payload, "its payload");
        }

        /// <summary>That the other side hangs up, whatever it has sent before.</summary>
        internal ErrorKind End()
        {
            try
            {
                while (true)
                {
                    Bus.Receiver.Recv(Wait.Long).Dispose();
                }
            }
            catch (RamwayException e)
            {
                return e.Kind;
            }
        }

        public void Dispose()
        {
            Bus.Dispose();
            _listener?.Dispose();
        }
    }

    internal static class RpcHostileTests
    {
        private static byte[] Words(params uint[] words) => RawPeer.Words(words);

        [Test(Seconds = 300)]
        internal static void AClientThatBreaksTheRulesIsDroppedAndNobodyElseNotices()
        {
            using var server = new TestServer();
            using RpcClient honest = server.Connect();
            RpcPending waits = honest.Start(TestServer.Gate);
            byte[] whole = Words(0, 0, Facts.MethodPing, 0);
            void Stream(RawPeer p) => p.Call(1, TestServer.Count, 1, TestServer.CountOf(9, 8));
            void Hold(RawPeer p) => p.Call(1, TestServer.Hold);
            var cases = new List<(string What, Action<RawPeer> Say)>
            {
                ("the first id is 0", p => p.Call(0, TestServer.Echo)),
                ("the first id is 2", p => p.Call(2, TestServer.Echo)),
                ("the first id is the last one", p => p.Call(ulong.MaxValue, TestServer.Echo)),
                ("an id twice", p => { Hold(p); p.Call(1, TestServer.Echo); }),
                ("an id is left out", p => { Hold(p); p.Call(3, TestServer.Echo); }),
                ("a CALL cut off", p => p.Send(Facts.TypeIdCall, 1, whole.Take(15).ToArray())),
                ("an empty CALL", p => p.Send(Facts.TypeIdCall, 1)),
                ("metadata beyond the payload", p => p.Send(Facts.TypeIdCall, 1, Words(0, 1, 1, 0))),
                ("metadata of all ones", p => p.Send(Facts.TypeIdCall, 1, Words(0, uint.MaxValue, 1, 0, 7, 7))),
                ("metadata that wrap", p => p.Send(Facts.TypeIdCall, 1, Words(0, uint.MaxValue - 14, 1, 0, 7, 7))),
                ("a REPLY", p => p.Send(Facts.TypeIdReply, 1, whole)),
                ("an application's message", p => p.Bus.Sender.Send(7, whole)),
                ("a type id of all ones", p => p.Send(uint.MaxValue, 1, whole)),
                ("CANCEL of nothing", p => p.Send(Facts.TypeIdCancel, 1)),
                ("CANCEL of 0", p => { Hold(p); p.Send(Facts.TypeIdCancel, 0); }),
                ("CANCEL of what is to come", p => { Hold(p); p.Send(Facts.TypeIdCancel, 2); }),
                ("CANCEL with a payload", p => { Hold(p); p.Send(Facts.TypeIdCancel, 1, 0); }),
                ("CREDIT of 0", p => { Stream(p); p.Send(Facts.TypeIdCredit, 1, Words(0)); }),
                ("CREDIT without a number", p => { Stream(p); p.Send(Facts.TypeIdCredit, 1); }),
                ("CREDIT of 8 bytes", p => { Stream(p); p.Send(Facts.TypeIdCredit, 1, Words(1, 1)); }),
                ("CREDIT of what is to come", p => { Stream(p); p.Send(Facts.TypeIdCredit, 2, Words(1)); }),
                ("CREDIT of no stream", p => { Hold(p); p.Send(Facts.TypeIdCredit, 1, Words(1)); }),
            };
            foreach ((string what, Action<RawPeer> say) in cases)
            {
                using RawPeer hostile = RawPeer.Client(server.Name);
                say(hostile);
                ErrorKind end = hostile.End();
                Check.That(end == ErrorKind.Closed || end == ErrorKind.PeerDead, what + ": " + end);
                Check.Equal(ErrorKind.Corrupt, server.Server.LastFailure!.Kind, what);
                Check.Equal("x", System.Text.Encoding.ASCII.GetString(honest.Call(TestServer.Echo, new[] { (byte)'x' }).Body.Span), what);
            }
            Wait.Until("their calls are cancelled", () => server.Running == 1 && server.Server.Clients == 1);
            server.Opened.SetResult(true);
            waits.Wait();
        }

        [Test(Seconds = 300)]
        internal static void ACallerThatDoesNotReadIsBoundedAndAlone()
        {
            using var server = new TestServer(new RpcServerOptions { Capacity = 4096, MaxInFlight = 8 });
            using RpcClient honest = server.Connect();
            using RawPeer hostile = RawPeer.Client(server.Name);
            // It calls as fast as there is room, and never receives: the server keeps at most 8 replies, refuses the others, and stops to
            // read when a refusal does not fit.
            int calls = 0;
            for (ulong id = 1; calls < 100_000; id++)
            {
                try
                {
                    using Slot slot = hostile.Bus.Sender.Reserve(16 + 100, TimeSpan.FromMilliseconds(200));
                    RpcFrames.Fill(slot.Data, default, new byte[100]);
                    new CallHeader { Method = TestServer.Echo }.Encode(slot.Data);
                    slot.CommitOwn(Facts.TypeIdCall, id);
                    calls++;
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.TimedOut)
                {
                    break;
                }
            }
            Check.That(calls < 10_000, "it could call " + calls + " times");
            honest.Ping(Wait.Long);
            // Whoever reads after all finds one answer to each call.
            var answered = new HashSet<ulong>();
            while (answered.Count < calls)
            {
                (uint typeId, ulong tag) = hostile.Next(out byte[] payload);
                Check.That(typeId == Facts.TypeIdReply && answered.Add(tag), "one answer to call " + tag);
                uint status = RpcFrames.Get(payload, 0);
                Check.That(status == Facts.RpcOk || status == Facts.RpcOverloaded, "status " + status);
            }
            honest.Ping(Wait.Long);
        }

        [Test(Seconds = 300)]
        internal static void DeadlinesAtBothEndsOfTimeAreKept()
        {
            using var server = new TestServer();
            using RawPeer peer = RawPeer.Client(server.Name);
            peer.Send(Facts.TypeIdCall, 1, Words(uint.MaxValue, 0, TestServer.Echo, 0));
            peer.Expect(1, RpcStatus.Ok);
            peer.Send(Facts.TypeIdCall, 2, Words(1, 0, TestServer.Hold, 0));
            Check.Equal((Facts.TypeIdReply, 2UL), peer.Next(out byte[] payload), "the second");
            uint status = RpcFrames.Get(payload, 0);
            Check.That(status == Facts.RpcTimedOut || status == Facts.RpcCancelled, "a microsecond: " + status);
            // A window of all ones.
            peer.Call(3, TestServer.Count, uint.MaxValue, TestServer.CountOf(2, 8));
            peer.Send(Facts.TypeIdCredit, 3, Words(uint.MaxValue));
            Check.Equal((Facts.TypeIdReply, 3UL), peer.Next(out _), "an element");
            Check.Equal((Facts.TypeIdReply, 3UL), peer.Next(out _), "an element");
            Check.Equal((Facts.TypeIdReply, 3UL), peer.Next(out payload), "the end");
            Check.Equal(0u, RpcFrames.Get(payload, Facts.ReplyOffFlags), "no element");
        }

        [Test(Seconds = 300)]
        internal static void AStreamIsSentOnlyWithCreditAndEndsWithoutIt()
        {
            using var server = new TestServer();
            using RawPeer peer = RawPeer.Client(server.Name);
            peer.Call(1, TestServer.Count, 1, TestServer.CountOf(2, 8));
            Check.Equal((Facts.TypeIdReply, 1UL), peer.Next(out byte[] payload), "an element");
            Check.Equal(Facts.RpcElement, RpcFrames.Get(payload, Facts.ReplyOffFlags), "the first element");
            // What comes next is this call's, not the stream's second element.
            peer.Call(2, Facts.MethodPing);
            peer.Expect(2, RpcStatus.Ok);
            peer.Send(Facts.TypeIdCredit, 1, Words(1));
            Check.Equal((Facts.TypeIdReply, 1UL), peer.Next(out payload), "an element");
            Check.Equal(Facts.RpcElement, RpcFrames.Get(payload, Facts.ReplyOffFlags), "the second element");
            Check.Equal((Facts.TypeIdReply, 1UL), peer.Next(out payload), "the end");
            Check.Equal(0u, RpcFrames.Get(payload, Facts.ReplyOffFlags), "the end needs no credit");
            // A cancelled one ends without the element that waits.
            peer.Call(3, TestServer.Count, 1, TestServer.CountOf(9, 8));
            Check.Equal((Facts.TypeIdReply, 3UL), peer.Next(out _), "an element");
            peer.Send(Facts.TypeIdCancel, 3);
            peer.Send(Facts.TypeIdCredit, 3, Words(9));
            peer.Expect(3, RpcStatus.Cancelled);
            // Late ones are dropped.
            peer.Send(Facts.TypeIdCancel, 3);
            peer.Send(Facts.TypeIdCredit, 3, Words(9));
            peer.Call(4, Facts.MethodPing);
            peer.Expect(4, RpcStatus.Ok);
        }

        [Test(Seconds = 300)]
        internal static void ACancelledHandlerKeepsItsPlaceUntilItEnds()
        {
            var stubborn = new TaskCompletionSource<bool>();
            var began = new TaskCompletionSource<bool>();
            using var folder = new Folder();
            var options = new RpcServerOptions { MaxInFlight = 1, HandshakeTimeout = Wait.Long };
            using RpcServer slow = RpcServer.Bind(folder.At("slow"), options);
            // It does not listen to its token.
            slow.Method(1, async (RpcRequest r) =>
            {
                began.SetResult(true);
                await stubborn.Task;
                return r.Body;
            });
            Task serving = slow.ServeAsync();
            using (RawPeer client = RawPeer.Client(folder.At("slow")))
            {
                client.Call(1, 1);
                Check.That(began.Task.Wait(Wait.Long), "it runs");
                client.Send(Facts.TypeIdCancel, 1);
                client.Call(2, Facts.MethodPing);
                client.Expect(2, RpcStatus.Overloaded);
                stubborn.SetResult(true);
                client.Expect(1, RpcStatus.Cancelled);
                client.Call(3, Facts.MethodPing);
                client.Expect(3, RpcStatus.Ok);
            }
            slow.Dispose();
            Check.That(serving.Wait(Wait.Long), "it ends");
        }

        [Test(Seconds = 300)]
        internal static void AServerThatBreaksTheRulesEndsTheConnection()
        {
            using var folder = new Folder();
            byte[] whole = Words(0, 0, 0, 0);
            var cases = new List<(string What, bool Stream, Action<RawPeer> Say)>
            {
                ("a REPLY with id 0", false, p => p.Reply(0)),
                ("a REPLY to what is to come", false, p => p.Reply(3)),
                ("a REPLY to the last id", false, p => p.Reply(ulong.MaxValue)),
                ("an unknown status", false, p => p.Send(Facts.TypeIdReply, 1, Words(9, 0, 0, 0))),
                ("a code without an error", false, p => p.Send(Facts.TypeIdReply, 1, Words(0, 0, 1, 0))),
                ("an unknown flag", false, p => p.Send(Facts.TypeIdReply, 1, Words(0, 2, 0, 0))),
                ("metadata beyond the payload", false, p => p.Send(Facts.TypeIdReply, 1, Words(0, 0, 0, 6))),
                ("metadata that wrap", false, p => p.Send(Facts.TypeIdReply, 1, Words(0, 0, 0, uint.MaxValue - 14, 7, 7, 7, 7))),
                ("a REPLY cut off", false, p => p.Send(Facts.TypeIdReply, 1, whole.Take(15).ToArray())),
                ("an empty REPLY", false, p => p.Send(Facts.TypeIdReply, 1)),
                ("an element for one reply", false, p => p.Element(1)),
                ("a CALL", false, p => p.Call(1, 1)),
                ("a CANCEL", false, p => p.Send(Facts.TypeIdCancel, 1)),
                ("a CREDIT", false, p => p.Send(Facts.TypeIdCredit, 1, Words(1))),
                ("an application's message", false, p => p.Bus.Sender.Send(7, whole)),
                ("elements beyond the credit", true, p => { p.Element(1); p.Element(1); p.Element(1); }),
                ("an element with a status", true, p => p.Send(Facts.TypeIdReply, 1, Words(4, 1, 0, 0))),
                ("a body at the end", true, p => p.Reply(1, RpcStatus.Ok, 1)),
                ("an element after the end", true, p => { p.Reply(1, RpcStatus.Cancelled); p.Element(1); }),
            };
            foreach ((string what, bool stream, Action<RawPeer> say) in cases)
            {
                using RawPeer hostile = RawPeer.Server(folder.At("server"), out RpcClient client);
                using (client)
                {
                    RpcPending? call = stream ? null : client.Start(1);
                    RpcStream? elements = stream ? client.Stream(4, default, new RpcCallOptions { Window = 2 }) : null;
                    hostile.Next(out _);
                    RpcPending other = client.Start(1);
                    say(hostile);
                    if (what != "an element after the end")
                    {
                        RpcException e = RpcTests.Fails(ErrorKind.Corrupt, () =>
                        {
                            call?.Wait();
                            while (elements?.Next(out _) == true)
                            {
                            }
                        });
                        Check.That(e.MayHaveRun, what);
                    }
                    RpcTests.Fails(ErrorKind.Corrupt, () => other.Wait());
                    RpcTests.Fails(ErrorKind.Corrupt, () => client.Call(1));
                    ErrorKind end = hostile.End();
                    Check.That(end == ErrorKind.Closed || end == ErrorKind.PeerDead, what + ": " + end);
                }
            }
        }

        [Test(Seconds = 300)]
        internal static void AClientSendsWhatThePageSays()
        {
            using var folder = new Folder();
            using RawPeer server = RawPeer.Server(folder.At("server"), out RpcClient client, 2);
            using (client)
            {
                Check.Equal(2, client.MaxInFlight, "the limit");
                RpcPending a = client.Start(7, new byte[] { 1, 2, 3 }, new RpcCallOptions { Meta = new byte[] { 9 } });
                Check.Equal((Facts.TypeIdCall, 1UL), server.Next(out byte[] payload), "CALL 1");
                byte[] expected = Words(0, 1, 7, 0).Concat(new byte[] { 9 }).Concat(new byte[15]).Concat(new byte[] { 1, 2, 3 }).ToArray();
                Check.Same(expected, payload, "its payload");
                RpcStream b = client.Stream(8, default, new RpcCallOptions { Window = 1, Timeout = TimeSpan.FromSeconds(4000) });
                Check.Equal((Facts.TypeIdCall, 2UL), server.Next(out payload), "CALL 2");
                uint left = RpcFrames.Get(payload, 0);
                Check.That(left > 3_000_000_000 && left <= 4_000_000_000, "the time that is left: " + left);
                RpcPending c = client.Start(9);
                server.Element(2, 5);
                Check.That(b.Next(out RpcReply? element) && element.Body.Span[0] == 5, "the element");
                server.Expect(Facts.TypeIdCredit, 2, 1);
                // CANCEL goes before the CALL that waits for a place, and the place is free only with the final REPLY.
                a.Cancel();
                server.Expect(Facts.TypeIdCancel, 1);
                Check.That(!c.TryGet(out _), "it waits");
                server.Reply(1, RpcStatus.Ok, 1);
                Check.That(!c.TryGet(out _), "it is sent");
                server.Expect(Facts.TypeIdCall, 3, 0, 0, 9, 0);
                RpcTests.Fails(ErrorKind.Interrupted, () => a.Wait());
                server.Reply(3);
                c.Wait();
                Check.Equal(1, client.InFlight, "the stream");
            }
        }
    }
}
