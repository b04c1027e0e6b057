using System;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text;
using System.Threading;

namespace Ramway.Tests
{
    /// <summary>What options and arguments mean, and what is refused instead of being ignored.</summary>
    internal static class ApiTests
    {
        [Test]
        private static void WhatAWayOfOpeningCannotUseIsRefused()
        {
            using var dir = new Folder();
            using Sender tx = Sender.Create(dir.At("ring"), new RingOptions { Discard = true, Mode = 0x180 });
            using Region region = Region.Create(dir.At("region"), 100, new RegionOptions { Discard = true });
            var discard = new RingOptions { Discard = true };
            var discardRegion = new RegionOptions { Discard = true };
            foreach (Action open in new Action[]
            {
                () => Receiver.Open(dir.At("ring"), discard), () => Receiver.OpenOrCreate(dir.At("ring"), discard),
                () => Sender.OpenOrCreate(dir.At("new"), discard), () => Region.Open(dir.At("region"), discardRegion),
                () => Region.OpenOrCreate(dir.At("region"), 100, discardRegion),
                () => Region.OpenReadOnly(dir.At("region"), discardRegion),
            })
            {
                Check.Fails(ErrorKind.InvalidArgument, open, "Discard applies to Create only", dir.Path);
            }
            Check.Fails(ErrorKind.InvalidArgument, () => Receiver.Open(dir.At("ring"), new RingOptions { Persistent = true }),
                "Persistent");
            Check.Fails(ErrorKind.InvalidArgument, () => Receiver.Open(dir.At("ring"), new RingOptions { Mode = 0x180 }), "Mode");
            Check.Fails(ErrorKind.InvalidArgument, () => Region.Open(dir.At("region"), new RegionOptions { Mode = 0x180 }), "Mode");
            dir.Holds("region", "ring");
            using Receiver rx = Receiver.OpenOrCreate(dir.At("ring"), new RingOptions { Persistent = true, Mode = 0x180 });
        }

        [Test]
        private static void TheNodeOfTheData()
        {
            using var dir = new Folder();
            foreach (int node in new[] { 77, -1, 5000 })
            {
                Check.Fails(ErrorKind.InvalidArgument, () => Sender.Create(dir.At("ring"), new RingOptions { NumaNode = node }),
                    "NUMA node " + node + " does not exist; this machine has no", dir.At("ring"));
            }
            dir.Holds();
            foreach ((string list, int node, bool has) in new[]
            {
                ("0", 0, true), ("0", 1, false), ("0-3", 3, true), ("0-3", 4, false), ("0,2-3", 1, false), ("0,2-3", 2, true),
            })
            {
                Check.Equal(has, Sys.Numa.Has(list, node), node + " in " + list);
            }
            try
            {
                using Sender tx = Sender.Create(dir.At("ring"), new RingOptions { NumaNode = 0 });
                using Receiver rx = Receiver.Open(dir.At("ring"), new RingOptions { NumaNode = 0 });
                using Region region = Region.Create(dir.At("region"), 10000, new RegionOptions { NumaNode = 0 });
                (Sender there, Receiver here) = Ring.Pair(new RingOptions { NumaNode = 0 });
                there.Dispose();
                here.Dispose();
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.Unsupported || e.Kind == ErrorKind.PermissionDenied)
            {
                throw new SkipException("this kernel does not place memory: " + e.Message);
            }
        }

        [Test]
        private static void TypeThenTagThenData()
        {
            (Sender tx, Receiver rx) = Ring.Pair();
            using (tx)
            using (rx)
            {
                byte[] data = Encoding.ASCII.GetBytes("data");
                var parts = new ReadOnlyMemory<byte>[] { data.AsMemory(0, 2), data.AsMemory(2) };
                var messages = new ReadOnlyMemory<byte>[] { data, data };
                long[] shape = { 4 };
                tx.Send(7, 1, data);
                tx.Send(7, 2, data, Wait.Long);
                Check.That(tx.TrySend(7, 3, data), "room");
                tx.SendAsync(7, 4, data).AsTask().GetAwaiter().GetResult();
                tx.SendVectored(7, 5, parts, Wait.Long);
                Check.Equal(2, tx.SendBatch(7, 6, messages, Wait.Long), "sent");
                BatchWriter batch = tx.StartBatch();
                data.CopyTo(batch.Add(7, 7, 4));
                data.CopyTo(batch.Add(7, 8, 4, Wait.Long));
                batch.Flush();
                batch.Dispose();
                using (Batch received = rx.RecvBatch())
                {
                    var tags = new System.Collections.Generic.List<ulong>();
                    foreach (Message message in received)
                    {
                        Check.That(message.TypeId == 7 && message.Data.SequenceEqual(data), "what was sent");
                        tags.Add(message.Tag);
                    }
                    Check.Equal("1 2 3 4 5 6 6 7 8", string.Join(" ", tags), "tags");
                }
                tx.SendTensor(ElementType.UInt8, shape, 9, data, Wait.Long);
                tx.SendTensor<byte>(shape, 10, data);
                Check.That(tx.TrySendTensor(ElementType.UInt8, shape, 11, data), "room");
                tx.SendTensor<byte>(shape, data);
                for (ulong tag = 9; tag < 13; tag++)
                {
                    using Message message = rx.Recv();
                    Check.Equal(tag % 12, message.Tag, "the tag of a tensor");
                    Check.That(message.AsTensor().Data.SequenceEqual(data), "its elements");
                }
            }
        }

        [Test]
        private static void ABatchIsOf1024AtMostUnlessToldOtherwise()
        {
            (Sender tx, Receiver rx) = Ring.Pair();
            using (tx)
            using (rx)
            {
                for (int i = 0; i < 1100; i++)
                {
                    tx.Send(1, default);
                }
                using (Batch batch = rx.RecvBatch(timeout: Wait.Long))
                {
                    Check.Equal(1024, batch.Count, "messages");
                }
                Check.That(rx.TryRecvBatch(out Batch rest) && rest.Count == 76, "the rest");
                rest.Dispose();
                rest.Dispose();
                Check.That(!rx.TryRecvBatch(out _), "no more");
            }
        }

        [Test]
        private static void EveryWaitTakesATimeOutAndAToken()
        {
            (Sender tx, Receiver rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
            var soon = TimeSpan.FromMilliseconds(5);
            Check.Fails(ErrorKind.TimedOut, () =>
            {
                foreach (Message message in rx.ReadAll(soon))
                {
                    Check.Equal(0, message.Length, "no message");
                }
            });
            tx.Send(1, new byte[4000]);
            byte[] large = new byte[4000];
            var parts = new ReadOnlyMemory<byte>[] { large };
            using var cancelled = new CancellationTokenSource();
            cancelled.Cancel();
            long[] shape = { 3900 };
            var elements = new byte[3900];
            foreach (Action<TimeSpan?, CancellationToken> wait in new Action<TimeSpan?, CancellationToken>[]
            {
                (time, token) => tx.Send(1, large, time, token), (time, token) => tx.Send(1, 2, large, time, token),
                (time, token) => tx.SendVectored(1, parts, time, token), (time, token) => tx.SendVectored(1, 2, parts, time, token),
                (time, token) => tx.SendBatch(1, parts, time, token), (time, token) => tx.Reserve(4000, time, token),
                (time, token) => tx.SendTensor(ElementType.UInt8, shape, elements, time, token),
                (time, token) => tx.SendTensor<byte>(shape, 3, elements, time, token),
                (time, token) => tx.ReserveTensor(ElementType.UInt8, shape, time, token),
                (time, token) =>
                {
                    BatchWriter batch = tx.StartBatch();
                    try
                    {
                        batch.Add(1, 2, 4000, time, token);
                    }
                    finally
                    {
                        batch.Dispose();
                    }
                },
            })
            {
                Check.Fails(ErrorKind.TimedOut, () => wait(soon, default));
                Check.Fails(ErrorKind.InvalidArgument, () => wait(TimeSpan.FromMilliseconds(-2), default), "time-out");
                Check.Throws<OperationCanceledException>(() => wait(null, cancelled.Token));
            }
            rx.Recv().Dispose();
            foreach (Action<TimeSpan?, CancellationToken> wait in new Action<TimeSpan?, CancellationToken>[]
            {
                (time, token) => rx.Recv(time, token), (time, token) => rx.RecvBatch(3, time, token),
                (time, token) => rx.RecvInto(large, out _, time, token), (time, token) => rx.RecvMemory(time, token),
                (time, token) => rx.RecvAppend(new System.Buffers.ArrayBufferWriter<byte>(), time, token),
                (time, token) => rx.ReadAll(time, token).GetEnumerator().MoveNext(),
            })
            {
                Check.Fails(ErrorKind.TimedOut, () => wait(soon, default));
                Check.Fails(ErrorKind.InvalidArgument, () => wait(TimeSpan.FromMilliseconds(-2), default), "time-out");
                Check.Throws<OperationCanceledException>(() => wait(null, cancelled.Token));
            }
            tx.Dispose();
            rx.Dispose();
        }

        [Test]
        private static void ErrorsNameTheRingAndTheArgument()
        {
            using var dir = new Folder();
            Check.Equal("name", Check.Throws<ArgumentNullException>(() => Sender.Create(null!)).ParamName, "the argument");
            Check.Equal("name", Check.Throws<ArgumentNullException>(() => Region.Open(null!)).ParamName, "the argument");
            Check.Equal("name", Check.Throws<ArgumentNullException>(() => Bus.Connect(null!)).ParamName, "the argument");
            Check.Equal("name", Check.Throws<ArgumentNullException>(() => Listener.Bind(null!)).ParamName, "the argument");
            Check.Equal("AllowUids", Check.Throws<ArgumentNullException>(() => new ListenOptions { AllowUids = null! }).ParamName,
                "the option");
            Check.Equal("AllowUids", Check.Throws<ArgumentNullException>(() => new ConnectOptions { AllowUids = null! }).ParamName,
                "the option");
            using Sender tx = Sender.Create(dir.At("ring"));
            Receiver rx = Receiver.Open(dir.At("ring"));
            Check.Equal(dir.At("ring"), tx.Name, "its name");
            Check.Equal("writer", Check.Throws<ArgumentNullException>(() => rx.RecvAppend(null!)).ParamName, "the argument");
            tx.Dispose();
            Check.That(tx.IsClosed && !rx.IsClosed, "which one is closed");
            Check.Fails(ErrorKind.Closed, () => rx.Recv().Dispose(), dir.At("ring"));
            Check.Fails(ErrorKind.Detached, () => tx.Send(1, default), dir.At("ring"));
            rx.Dispose();
            using Listener listener = Listener.Bind(dir.At("bell"), new ListenOptions { Capacity = 4096 });
            var connecting = Bus.ConnectAsync(listener.Path);
            Bus ours = listener.Accept(Wait.Long);
            using Bus theirs = connecting.GetAwaiter().GetResult();
            ours.Dispose();
            Check.Fails(ErrorKind.Closed, () => theirs.Receiver.Recv().Dispose(), dir.At("bell"));
        }

        /// <summary>NAME...: opens rings, regions and buses of another user, and says what comes of it.</summary>
        [Helper("other-user")]
        private static void OtherUser(string[] args)
        {
            if (Posix.IsRoot)
            {
                Rings.BecomeUser(1);
            }
            foreach (Action open in new Action[]
            {
                () => Receiver.Open(args[0]), () => Sender.OpenOrCreate(args[0]), () => Region.Open(args[1]),
                () => Region.OpenReadOnly(args[1]),
            })
            {
                try
                {
                    open();
                    Peer.Say("opened");
                }
                catch (RamwayException e)
                {
                    Peer.Say(e.Kind + " " + e.Errno + " " + e.Message);
                }
            }
        }

        [Test]
        private static void WhoMayNotIsToldSo()
        {
            using var dir = new Folder();
            // Another user, where this one can become another; else no one may, not even we.
            Posix.Do(Posix.chmod(dir.Path, 0x1ED), "chmod");
            int mode = Posix.IsRoot ? 0x180 : 0;
            using Sender tx = Sender.Create(dir.At("ring"), new RingOptions { Mode = 0x180 });
            using Region region = Region.Create(dir.At("region"), 100, new RegionOptions { Mode = 0x180 });
            Posix.Do(Posix.chmod(dir.At("ring"), (uint)mode), "chmod");
            Posix.Do(Posix.chmod(dir.At("region"), (uint)mode), "chmod");
            using Peer other = Peer.Start("other-user", dir.At("ring"), dir.At("region"));
            foreach (string name in new[] { "ring", "ring", "region", "region" })
            {
                string said = other.Hear();
                Check.That(said.StartsWith("PermissionDenied 13 ", StringComparison.Ordinal) &&
                    said.Contains("'" + dir.At(name) + "'", StringComparison.Ordinal), name + ": " + said);
            }
            other.Finish();
            Check.That(tx.TrySend(1, default), "the owner goes on");
        }

        [Test]
        private static void ASecondReleaseDoesNothing()
        {
            (Sender tx, Receiver rx) = Ring.Pair();
            using (tx)
            using (rx)
            {
                tx.Send(1, new byte[1]);
                tx.Send(1, new byte[2]);
                Message first = rx.Recv();
                Message copy = first;
                first.Dispose();
                first.Dispose();
                Message second = rx.Recv();
                copy.Dispose();
                Check.Equal(2, second.Length, "the next one is still out");
                second.Dispose();
                tx.Send(1, new byte[3]);
                OwnedMessage owned = rx.RecvMemory();
                owned.Dispose();
                owned.Dispose();
                Slot slot = tx.Reserve(4);
                slot.Dispose();
                slot.Dispose();
                tx.Send(1, new byte[5]);
                Check.Equal(5, rx.Recv().Length, "after all that");
            }
        }
    }
}
