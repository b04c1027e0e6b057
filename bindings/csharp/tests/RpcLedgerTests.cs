using System;
using System.Collections.Generic;
using System.Linq;

namespace Ramway.Tests
{
    /// <summary>The bytes of frames, and the two ledgers without any I/O: ABI.md, section 20.</summary>
    internal static class RpcLedgerTests
    {
        [Test]
        internal static void AMethodsNumberIsBelowTheReservedOnes()
        {
            Check.Equal(0x811C9DC5u, Rpc.MethodId(""), "no name");
            Check.Equal(0xBADEBBDCu, Rpc.MethodId("Store.Get"), "the page's example");
            for (int i = 0; i < 200_000; i++)
            {
                Check.That(RpcFrames.MethodId(BitConverter.GetBytes(i)) < Facts.MethodReserved, "the number of " + i);
            }
        }

        [Test]
        internal static void ACallIsReadAsItWasWritten()
        {
            byte[] payload = Enumerable.Repeat((byte)0xAA, 41).ToArray();
            Check.Equal(41L, RpcFrames.PayloadLength(5, 9), "the length");
            RpcFrames.Fill(payload, new byte[] { 1, 2, 3, 4, 5 }, new byte[9]);
            new CallHeader { TimeoutUs = 1, MetaLength = 5, Method = 7, Window = 3 }.Encode(payload);
            Check.Same(new byte[] { 1, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0 }, payload.AsSpan(0, 16), "the header");
            Check.Same(new byte[] { 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, payload.AsSpan(16, 16), "the metadata");
            Check.That(CallHeader.Decode(payload, 41, out CallHeader call), "it is right");
            Check.Equal((1u, 5u, 7u, 3u), (call.TimeoutUs, call.MetaLength, call.Method, call.Window), "what was read");
            Check.That(!CallHeader.Decode(payload, 31, out _), "the room up to the body is missing");
            Check.That(!CallHeader.Decode(payload, 15, out _), "shorter than a header");
            foreach (uint meta in new[] { uint.MaxValue, uint.MaxValue - 14, 1u << 31, 26u })
            {
                new CallHeader { MetaLength = meta }.Encode(payload);
                Check.That(!CallHeader.Decode(payload, 41, out _), "metadata of " + meta);
            }
        }

        [Test]
        internal static void TheTimeThatIsLeftIsRoundedUp()
        {
            foreach ((long nanos, uint micros) in new[]
            {
                (long.MaxValue, 0u), (-5L, 1u), (0L, 1u), (1L, 1u), (1000L, 1u), (1001L, 2u), (uint.MaxValue * 1000L, uint.MaxValue),
                (uint.MaxValue * 1000L + 1, 0u), (long.MaxValue - 1, 0u),
            })
            {
                Check.Equal(micros, CallHeader.Timeout(nanos), nanos + " ns");
            }
        }

        [Test]
        internal static void AReplyThatNoServerSendsIsRefused()
        {
            byte[] header = new byte[16];
            new ReplyHeader { Status = RpcStatus.Application, Code = 9 }.Encode(header);
            Check.Same(new byte[] { 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0 }, header, "the header");
            bool Right(uint status, uint flags, uint code, uint meta, int length = 16)
            {
                RpcFrames.Put(header, 0, status);
                RpcFrames.Put(header, 4, flags);
                RpcFrames.Put(header, 8, code);
                RpcFrames.Put(header, 12, meta);
                return ReplyHeader.Decode(header, length, out _);
            }
            for (uint status = 0; status <= 8; status++)
            {
                Check.That(Right(status, 0, 0, 0), "status " + status);
                Check.Equal(status == 1, Right(status, 0, 5, 0), "a code with status " + status);
                Check.Equal(status == 0, Right(status, 1, 0, 0), "an element with status " + status);
            }
            Check.That(Right(1, 0, uint.MaxValue, 0) && Right(0, 0, 0, 16, 32) && !Right(0, 0, 0, 17, 32), "the limits");
            Check.That(!Right(9, 0, 0, 0) && !Right(uint.MaxValue, 0, 0, 0), "unknown statuses");
            Check.That(!Right(0, 2, 0, 0) && !Right(0, 3, 0, 0) && !Right(0, 1u << 31, 0, 0), "unknown flags");
            Check.That(!Right(0, 0, 0, 1) && !Right(0, 0, 0, uint.MaxValue) && !Right(0, 0, 0, uint.MaxValue - 14, 64), "metadata");
            Check.That(!Right(0, 0, 0, 0, 15), "a short one");
        }

        [Test]
        internal static void DeadlinesComeInTheirOrderAndCanBeTakenOut()
        {
            var random = new Random(7);
            var heap = new Deadlines<ClientCall>();
            var calls = Enumerable.Range(0, 1000).Select(_ => new ClientCall(0, 0, random.Next(1, 500))).ToList();
            calls.ForEach(heap.Add);
            heap.Add(new ClientCall(0, 0, long.MaxValue));
            foreach (ClientCall call in calls.Where((_, i) => i % 3 == 0))
            {
                heap.Remove(call);
                heap.Remove(call);
            }
            long last = 0;
            int taken = 0;
            Check.That(!heap.TryTake(0, out _), "none is over yet");
            while (heap.TryTake(1000, out ClientCall? next))
            {
                Check.That(next.Deadline >= last, "the order");
                last = next.Deadline;
                taken++;
            }
            Check.Equal(calls.Where((_, i) => i % 3 != 0).Count(), taken, "taken");
            Check.Equal(long.MaxValue, heap.Next, "nothing is left");
        }

        // The client's.

        private static ClientCall Publish(ClientLedger ledger, uint window = 0, long deadline = long.MaxValue)
        {
            var call = new ClientCall(1, window, deadline);
            ledger.Add(call);
            Check.That(ledger.Front == call, "it may be published");
            ledger.Published(call);
            return call;
        }

        /// <summary>A REPLY; null: it is right.</summary>
        private static string? Reply(ClientLedger ledger, ulong id, RpcStatus status = RpcStatus.Ok, bool element = false, int body = 0)
        {
            var header = new ReplyHeader { Status = status, Element = element };
            string? wrong = ledger.Check(id, header, 16 + body, out ClientCall? call, out bool wanted);
            if (wanted)
            {
                ledger.Deliver(call!, header, new RpcReply(new byte[body], 0));
            }
            return wrong;
        }

        private static RpcException Cancelled => RpcException.Of(ErrorKind.Interrupted, "", true);

        [Test]
        internal static void AClientKeepsToTheLimitAndItsOrder()
        {
            var ledger = new ClientLedger(2, 1000);
            ClientCall a = Publish(ledger), b = Publish(ledger);
            ClientCall c = new ClientCall(1, 0, long.MaxValue), d = new ClientCall(1, 0, long.MaxValue);
            ledger.Add(c);
            ledger.Add(d);
            Check.That(ledger.Front == null && !ledger.CanPublish, "there is no place");
            Check.Equal((1UL, 2UL, 0UL), (a.Id, b.Id, c.Id), "ids");
            Check.Equal(null, Reply(ledger, 2), "b's reply");
            Check.That(b.Decided && !a.Decided && ledger.Front == c && !ledger.CanPublish, "c is next");
            ledger.Published(c);
            Check.Equal(3UL, c.Id, "c's id");
            // Withdrawn: it never gets an id.
            ledger.Decide(d, Cancelled);
            Check.Equal((0, 2, 0UL), (ledger.Unsent, ledger.InFlight, d.Id), "d is gone");
            Check.That(!ledger.TryOwed(out _, out _), "nothing is owed for what was not sent");
        }

        [Test]
        internal static void ACancelledCallKeepsItsPlaceUntilItsFinalReply()
        {
            var ledger = new ClientLedger(1, 1000);
            ClientCall a = Publish(ledger);
            ledger.Decide(a, Cancelled);
            ledger.Decide(a, null);
            Check.That(a.Error != null, "it is decided once");
            ledger.Add(new ClientCall(1, 0, long.MaxValue));
            Check.That(ledger.Front == null, "its place is not free");
            Check.That(ledger.TryOwed(out ClientCall? owed, out uint credit) && owed == a && a.OwesCancel && credit == 0, "CANCEL");
            ledger.OwedPublished();
            Check.That(!ledger.TryOwed(out _, out _), "one CANCEL");
            Check.Equal(null, Reply(ledger, 1, RpcStatus.Ok, false, 5), "the late reply");
            Check.That(a.Replies.Count == 0 && ledger.Buffered == 0 && ledger.Front != null, "it is dropped, the place is free");
            Check.That(Reply(ledger, 1) != null, "a second final REPLY");
        }

        [Test]
        internal static void WhatAServerMustNotSendIsSeen()
        {
            foreach (ulong id in new[] { 0UL, 3UL, ulong.MaxValue, (1UL << 32) + 1 })
            {
                var ledger = new ClientLedger(5, 1000);
                Publish(ledger);
                Publish(ledger);
                Check.That(Reply(ledger, id) != null, "a REPLY to " + id);
            }
            var streams = new ClientLedger(5, 1000);
            ClientCall single = Publish(streams), stream = Publish(streams, 2);
            Check.That(Reply(streams, single.Id, RpcStatus.Ok, true) != null, "an element where one reply is due");
            Check.Equal(null, Reply(streams, stream.Id, RpcStatus.Ok, true) ?? Reply(streams, stream.Id, RpcStatus.Ok, true), "two");
            Check.That(Reply(streams, stream.Id, RpcStatus.Ok, true) != null, "an element beyond the credit");
            ClientCall other = Publish(streams, 2);
            Check.That(Reply(streams, other.Id, RpcStatus.Ok, false, 1) != null, "a body at the end of a stream");
        }

        [Test]
        internal static void CreditIsOwedForWhatWasTakenAndGoesBeforeCalls()
        {
            var ledger = new ClientLedger(5, 1000);
            ClientCall stream = Publish(ledger, 4);
            for (int i = 0; i < 4; i++)
            {
                Check.Equal(null, Reply(ledger, 1, RpcStatus.Ok, true), "an element");
            }
            Check.That(!ledger.TryOwed(out _, out _), "none was taken");
            Check.That(ledger.TryTake(stream, out _) && !ledger.TryOwed(out _, out _), "half a window together");
            Check.That(ledger.TryTake(stream, out _) && ledger.TryOwed(out _, out uint credit) && credit == 2, "CREDIT of 2");
            Check.That(!ledger.CanPublish, "it goes before any CALL");
            ledger.TryTake(stream, out _);
            Check.That(ledger.TryOwed(out _, out credit) && credit == 3, "one sum, as long as it is not sent");
            ledger.OwedPublished();
            Check.Equal(7UL, stream.Granted, "granted in all");
            ledger.TryTake(stream, out _);
            Reply(ledger, 1, RpcStatus.Ok, true);
            ledger.TryTake(stream, out _);
            Check.That(ledger.TryOwed(out _, out _), "CREDIT");
            ledger.LetGo(stream, Cancelled);
            Check.That(ledger.TryOwed(out _, out credit) && stream.OwesCancel && credit == 0, "once CANCEL is owed, no credit is");
            // Its final REPLY comes first: nothing is owed any more.
            Check.Equal(null, Reply(ledger, 1, RpcStatus.Cancelled), "the end");
            Check.That(!ledger.TryOwed(out _, out _) && ledger.CanPublish, "nothing is owed");
        }

        [Test]
        internal static void AReplyBeyondTheBufferFailsItsCallAlone()
        {
            var ledger = new ClientLedger(5, 100);
            ClientCall a = Publish(ledger), b = Publish(ledger), c = Publish(ledger, 9);
            Reply(ledger, 1, RpcStatus.Ok, false, 60);
            Check.Equal(76L, ledger.Buffered, "buffered");
            Reply(ledger, 2, RpcStatus.Ok, false, 60);
            Check.Equal(ErrorKind.TooLarge, ((RpcException)b.Error!).Kind, "the second");
            Check.That(!ledger.TryOwed(out _, out _), "its final REPLY has come: no CANCEL");
            Reply(ledger, 3, RpcStatus.Ok, true, 60);
            Check.That(c.Decided && ledger.TryOwed(out ClientCall? owed, out _) && owed == c, "a stream is cancelled");
            // One that is waited for counts as taken, unless it is longer than the whole buffer.
            foreach ((int length, bool fits) in new[] { (84, true), (85, false) })
            {
                var awaited = new ClientCall(1, 0, long.MaxValue, true);
                ledger.Add(awaited);
                ledger.Published(awaited);
                Reply(ledger, awaited.Id, RpcStatus.Ok, false, length);
                Check.That(awaited.Decided && fits == (awaited.Error == null) && ledger.Buffered == 76, "a reply of " + length);
            }
            Check.That(ledger.TryTake(a, out _) && ledger.Buffered == 0, "taken");
        }

        [Test]
        internal static void TheEndOfTheConnectionDecidesEveryCall()
        {
            foreach ((ErrorKind kind, bool mayHaveRun) in new[]
            {
                (ErrorKind.Closed, false), (ErrorKind.PeerDead, true), (ErrorKind.Corrupt, true),
            })
            {
                var ledger = new ClientLedger(2, 1000);
                ClientCall a = Publish(ledger), b = Publish(ledger);
                var c = new ClientCall(1, 0, 99);
                ledger.Add(c);
                ledger.Decide(b, Cancelled);
                ledger.End(kind, "over", mayHaveRun);
                var error = (RpcException)a.Error!;
                Check.Equal((kind, mayHaveRun), (error.Kind, error.MayHaveRun), "in flight");
                Check.Equal(ErrorKind.Interrupted, ((RpcException)b.Error!).Kind, "decided before");
                error = (RpcException)c.Error!;
                Check.Equal((kind, false), (error.Kind, error.MayHaveRun), "not sent");
                Check.Equal((0, 0, long.MaxValue), (ledger.InFlight, ledger.Unsent, ledger.NextDeadline), "left");
                Check.That(!ledger.TryOwed(out _, out _), "nothing is owed");
            }
        }

        [Test]
        internal static void ALateCallIsTimedOutAndSaysWhetherItWasSent()
        {
            var ledger = new ClientLedger(1, 1000);
            ClientCall sent = Publish(ledger, 0, 10);
            var waits = new ClientCall(1, 0, 20);
            ledger.Add(waits);
            ledger.Expire(9);
            Check.That(!sent.Decided, "it has time");
            ledger.Expire(20);
            Check.Equal((ErrorKind.TimedOut, true), (((RpcException)sent.Error!).Kind, ((RpcException)sent.Error!).MayHaveRun), "sent");
            Check.Equal((ErrorKind.TimedOut, false), (((RpcException)waits.Error!).Kind, ((RpcException)waits.Error!).MayHaveRun), "not");
            Check.That(sent.OwesCancel && ledger.InFlight == 1 && ledger.Unsent == 0, "the server is told");
        }

        // The server's.

        private static ServerCall Take(ServerLedger ledger, ulong id, uint window = 0, uint timeout = 0, int length = 16)
        {
            string? wrong = ledger.Take(id, new CallHeader { Method = 1, Window = window, TimeoutUs = timeout }, length, 1000, false,
                out ServerCall? call, out _);
            Check.Equal(null, wrong, "CALL " + id);
            return call ?? throw new CheckException("CALL " + id + " was refused");
        }

        private static RpcStatus Refused(ServerLedger ledger, ulong id, uint method = 1, int length = 16, bool draining = false)
        {
            string? wrong = ledger.Take(id, new CallHeader { Method = method }, length, 0, draining, out ServerCall? call,
                out RpcStatus refusal);
            Check.Equal(null, wrong, "CALL " + id);
            Check.Equal(refusal == RpcStatus.Ok, call != null, "refused or taken");
            return refusal;
        }

        private static ReplyFrame End(ServerLedger ledger, ServerCall call, RpcStatus status = RpcStatus.Ok, int body = 0) =>
            ledger.Final(call, status, 0, default, new byte[body]);

        [Test]
        internal static void AServerChecksIds()
        {
            foreach (ulong id in new[] { 0UL, 2UL, ulong.MaxValue, (1UL << 32) + 1 })
            {
                var ledger = new ServerLedger(5, 1000, 500);
                Check.That(ledger.Take(id, default, 16, 0, false, out _, out _) != null, "the first CALL has " + id);
                Check.That(ledger.TakeCancel(id, 0, out _) != null, "CANCEL of " + id);
                Check.That(ledger.TakeCredit(id, 1, out _) != null, "CREDIT of " + id);
            }
            var used = new ServerLedger(5, 1000, 500);
            ServerCall single = Take(used, 1), stream = Take(used, 2, 1);
            Check.That(used.Take(2, default, 16, 0, false, out _, out _) != null, "an id twice");
            Check.That(used.TakeCancel(1, 1, out _) != null, "CANCEL with a payload");
            Check.That(used.TakeCredit(2, 0, out _) != null && used.TakeCredit(1, 1, out _) != null, "CREDIT of 0, and of no stream");
            Check.Equal(null, used.TakeCancel(1, 0, out ServerCall? found), "CANCEL");
            Check.That(found == single, "its call");
            used.TakeCredit(2, uint.MaxValue, out found);
            Check.That(found == stream && stream.Credit == uint.MaxValue, "sums saturate");
            used.Written(End(used, stream));
            Check.Equal(null, used.TakeCredit(2, 1, out found) ?? used.TakeCancel(2, 0, out found), "late ones");
            Check.That(found == null, "they are dropped");
        }

        [Test]
        internal static void AServerRefusesWhatIsBeyondItsLimits()
        {
            var ledger = new ServerLedger(2, 1000, 500);
            ServerCall a = Take(ledger, 1, 0, 0, 600);
            Check.Equal(RpcStatus.Overloaded, Refused(ledger, 2, 1, 401), "bytes");
            Check.Equal(RpcStatus.Draining, Refused(ledger, 3, 1, 16, true), "while it drains");
            Check.Equal(RpcStatus.Ok, Refused(ledger, 4, Facts.MethodPing, 16, true), "ping while it drains");
            Check.Equal(RpcStatus.Overloaded, Refused(ledger, 5, Facts.MethodPing), "ping counts as in flight");
            Check.That(!ledger.IsIdle && ledger.InFlight == 2, "in flight");
            ledger.TryPark(End(ledger, a, RpcStatus.Ok, 100));
            Check.Equal((2, 116L), (ledger.InFlight, ledger.Bytes), "parked: its place is not free yet, its request is");
            Check.That(ledger.TryParked(out ReplyFrame? frame), "it is first");
            ledger.Unpark();
            ledger.Written(frame!);
            Check.Equal((1, 0L), (ledger.InFlight, ledger.Bytes), "written");
        }

        [Test]
        internal static void AReplyThatCannotBeKeptBecomesReplyTooLarge()
        {
            var ledger = new ServerLedger(9, 300, 500);
            Check.Equal(RpcStatus.ReplyTooLarge, End(ledger, Take(ledger, 1), RpcStatus.Ok, 485).Header.Status, "longer than the ring");
            Check.Equal(RpcStatus.Ok, End(ledger, Take(ledger, 2), RpcStatus.Ok, 484).Header.Status, "the longest");
            Check.Equal(RpcStatus.HandlerFailed, End(ledger, Take(ledger, 3), RpcStatus.HandlerFailed, 485).Header.Status, "a text");
            ledger.TryPark(End(ledger, Take(ledger, 4), RpcStatus.Ok, 200));
            ledger.TryPark(End(ledger, Take(ledger, 5), RpcStatus.Ok, 200));
            ledger.TryParked(out ReplyFrame? frame);
            Check.Equal(200, frame!.Body.Length, "the first is kept");
            ledger.Unpark();
            ledger.TryParked(out frame);
            Check.Equal((RpcStatus.ReplyTooLarge, 0), (frame!.Header.Status, frame.Body.Length), "the second is not");
            ServerCall stream = Take(ledger, 6, 1);
            Check.That(ledger.TryElement(stream, default, new byte[280], out ReplyFrame? element) && !ledger.TryHold(element!) &&
                !ledger.TryPark(element!), "an element neither");
            Check.That(!ledger.TryElement(stream, default, new byte[485], out _), "nor one that no ring can hold");
        }

        [Test]
        internal static void WhatWasCancelledSaysSoWhateverItsHandlerGave()
        {
            var ledger = new ServerLedger(9, 1000, 500);
            ServerCall ran = Take(ledger, 1), late = Take(ledger, 2, 0, 5), began = Take(ledger, 3, 0, 5), stream = Take(ledger, 4, 1);
            ran.Begun = began.Begun = stream.Begun = true;
            ran.Cancelled = true;
            ReplyFrame frame = End(ledger, ran, RpcStatus.Ok, 50);
            Check.Equal((RpcStatus.Cancelled, 0), (frame.Header.Status, frame.Body.Length), "cancelled");
            Check.Equal(6000L, ledger.NextDeadline, "5 µs after it was taken");
            int expired = 0;
            while (ledger.TryExpire(6000, out ServerCall? call))
            {
                call.TimedOut = call.Cancelled = true;
                expired++;
            }
            Check.Equal(2, expired, "expired");
            Check.Equal(RpcStatus.TimedOut, End(ledger, late).Header.Status, "never begun");
            Check.Equal(RpcStatus.Cancelled, End(ledger, began).Header.Status, "while it ran");
            ledger.TryElement(stream, default, new byte[10], out ReplyFrame? element);
            Check.That(ledger.TryHold(element!) && ledger.Bytes > 0, "an element waits for credit");
            stream.Cancelled = true;
            Check.Equal(RpcStatus.Cancelled, End(ledger, stream).Header.Status, "the end");
            Check.That(ledger.Bytes == 0 && stream.Held == null, "without its waiting element");
        }

        [Test]
        internal static void AParkedElementOfACancelledStreamIsDropped()
        {
            var ledger = new ServerLedger(9, 1000, 500);
            ServerCall stream = Take(ledger, 1, 1);
            ledger.TryElement(stream, default, new byte[10], out ReplyFrame? element);
            ledger.TryPark(element!);
            stream.Cancelled = stream.Begun = true;
            ledger.TryPark(End(ledger, stream));
            Check.That(ledger.TryParked(out ReplyFrame? frame) && frame!.IsFinal, "the final REPLY is next");
        }

        // The places of handlers.

        [Test]
        internal static void OneClientHasAtMostHalfOfThePlacesWhileOthersWait()
        {
            var started = new List<ServerCall>();
            var pool = new HandlerPool(4, started.Add);
            PoolShare a = new PoolShare(), b = new PoolShare();
            List<ServerCall> Add(PoolShare share, int count) => Enumerable.Range(0, count).Select(i =>
            {
                var call = new ServerCall((ulong)i, 0, long.MaxValue);
                pool.Add(share, call);
                return call;
            }).ToList();
            List<ServerCall> first = Add(a, 10);
            Check.Equal(4, started.Count, "nobody else waits: all places");
            List<ServerCall> second = Add(b, 3);
            pool.Release(a);
            pool.Release(a);
            Check.That(started.Skip(4).SequenceEqual(second.Take(2)), "then b has its half");
            pool.Release(a);
            Check.Equal(7, started.Count, "a place is used");
            Check.That(started[6] == first[4], "a has less than half, so it is next");
            Check.That(pool.Remove(a, first[5]) && !pool.Remove(a, first[5]) && !pool.Remove(a, first[0]), "taken out");
            pool.Release(b);
            pool.Release(b);
            Check.Equal(9, started.Count, "two more");
            Check.That(started[7] == second[2] || started[8] == second[2], "b's last is among them");
            Check.That(!started.Contains(first[5]), "what was taken out is not run");
        }
    }
}
