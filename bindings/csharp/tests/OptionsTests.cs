using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>What cannot be asked for is a clear error.</summary>
    internal static class OptionsTests
    {
        private static void Wrong(RingOptions o, params string[] parts)
        {
            using var dir = new Folder();
            foreach (How how in new[] { How.Create, How.Open, How.OpenOrCreate })
            {
                Rings.Refused(ErrorKind.InvalidArgument, dir.At("ring"), how, Role.Consumer, o, parts);
            }
            dir.Holds();
        }

        [Test]
        private static void EachWrongOptionIsNamed()
        {
            foreach (int align in new[] { 24, 8, 8192, -16, 1 })
            {
                Wrong(new RingOptions { Align = align }, "an alignment of " + align, "power of two from 16 to 4096");
            }
            Wrong(new RingOptions { Capacity = -1 }, "a capacity of -1 bytes");
            Wrong(new RingOptions { Wait = (WaitMode)3 }, "3 is not a wait mode");
            Wrong(new RingOptions { Wait = (WaitMode)(-1) }, "not a wait mode");
            Wrong(new RingOptions { Timeout = TimeSpan.FromSeconds(-1) }, "a timeout of");
            Wrong(new RingOptions { Mode = 0x200 }, "a mode of 512");
            Wrong(new RingOptions { Mode = -1 }, "a mode of -1");
        }

        [Test]
        private static void WhatDiffersIsSaid()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            Attachment tx = Rings.Hold(name, How.OpenOrCreate, Role.Producer, new RingOptions { Capacity = 10_000, Align = 64 });
            Check.Equal(16_384ul, tx.Capacity, "capacity");
            Check.Equal(64u, tx.Align, "alignment");
            foreach (How how in new[] { How.Open, How.OpenOrCreate })
            {
                Rings.Refused(ErrorKind.InvalidArgument, name, how, Role.Consumer, Rings.Of(4096), "16384", "4096", "capacity");
                Rings.Refused(ErrorKind.InvalidArgument, name, how, Role.Consumer, new RingOptions { Align = 16 }, "64", "16", "alignment");
                // The same wish in other words is no difference, and no wish is none either.
                Rings.Hold(name, how, Role.Consumer, new RingOptions { Capacity = 9000, Align = 64 }).Release();
                Rings.Hold(name, how, Role.Consumer).Release();
            }
            tx.Release();
            dir.Holds();
        }

        [Test]
        private static void OpenWaitsForTheName()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            long start = Clock.Nanoseconds;
            Rings.Refused(ErrorKind.NotFound, name, How.Open, Role.Producer, Rings.Waiting(0.2), name, "opening the ring");
            Check.That(Clock.Nanoseconds - start >= 200_000_000, "it did not wait");
            Rings.Refused(ErrorKind.NotFound, dir.At("no/such/dir"), How.Open, Role.Producer, null, dir.At("no/such"));
            Rings.Refused(ErrorKind.NotFound, dir.At("no/such/dir"), How.Create, Role.Producer, null, dir.At("no/such"));
            foreach (TimeSpan timeout in new[] { TimeSpan.FromSeconds(30), Timeout.InfiniteTimeSpan })
            {
                var creator = new Thread(() =>
                {
                    Thread.Sleep(100);
                    Attachment rx = Rings.Hold(name, How.Create, Role.Consumer);
                    // Until somebody opened it: the opener's Release may be the last one.
                    Wait.Until("the ring is opened", () => rx.Link.PeerAlive(Role.Consumer));
                    rx.Release();
                });
                creator.Start();
                Attachment tx = Rings.Hold(name, How.Open, Role.Producer, new RingOptions { Timeout = timeout });
                creator.Join();
                tx.Release();
                dir.Holds();
            }
        }

        [Test]
        private static void ErrorsSayWhatWasTried()
        {
            var e = new RamwayException(ErrorKind.NotFound, "opening the ring", "ticks", "it is gone", 0, null);
            Check.Equal("ramway: opening the ring 'ticks': it is gone", e.Message, "with all parts");
            e = new RamwayException(ErrorKind.PeerDead, null, null, null, 0, null);
            Check.Equal("ramway: the peer died without closing", e.Message, "with none");
            e = Errors.Os(-Errno.EACCES, "opening the file");
            Check.Equal(ErrorKind.PermissionDenied, e.Kind, "the kind of EACCES");
            Check.Equal(Errno.EACCES, e.Errno, "errno");
            Check.That(e.Message.Contains("opening the file") && e.Message.Contains("Permission denied"), e.Message);
            e = Errors.About(e, "opening the ring", "ticks");
            Check.That(e.Message.StartsWith("ramway: opening the ring 'ticks': opening the file", StringComparison.Ordinal), e.Message);
            Check.Equal(ErrorKind.Os, Errors.KindOf(71), "an errno that has no kind");
            foreach (ErrorKind kind in (ErrorKind[])Enum.GetValues(typeof(ErrorKind)))
            {
                Check.That(Errors.Summary(kind).Length > 3 && !Errors.Summary(kind).StartsWith("error", StringComparison.Ordinal),
                    "no words for " + kind);
            }
            Check.Equal("error 99", Errors.Summary((ErrorKind)99), "a number of a later version");
        }
    }
}
