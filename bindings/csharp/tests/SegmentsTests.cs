using System;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading.Tasks;
using Microsoft.Win32.SafeHandles;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>Looking from outside, removing, and rings whose descriptor is handed on.</summary>
    internal static class SegmentsTests
    {
        private static string Tell(SegmentInfo s) => s.Error != null
            ? s.Name + ": " + s.Error.Kind
            : s.Name + ": " + s.Kind + (s.InUse ? " used" : "") + (s.Stale ? " stale" : "") + (s.Persistent ? " persistent" : "") +
                (s.ProducerHeld ? " producer" : "") + (s.ConsumerHeld ? " consumer" : "") + " " + s.Capacity + "/" + s.Align +
                " " + s.Used + " " + (s.Undelivered?.ToString() ?? "-");

        private static string All(Folder dir) => string.Join("\n", Segments.Ls(dir.Path).Select(Tell));

        [Test]
        private static void WhatIsThere()
        {
            using var dir = new Folder();
            Check.Equal(0, Segments.Ls(dir.At("none")).Count, "a directory that does not exist");
            Check.Equal("", All(dir), "an empty one");
            using Sender tx = Sender.Create(dir.At("ring"), new RingOptions { Capacity = 8192, Align = 64 });
            tx.Send(1, new byte[100]);
            tx.Send(1, new byte[1]);
            using Region region = Region.Create(dir.At("region"), 5000, new RegionOptions { Persistent = true });
            using Listener bell = Listener.Bind(dir.At("bell"));
            using Peer dead = Peer.Start("hold", "consumer", dir.At("dead"));
            dead.Expect("attached");
            dead.Kill();
            File.WriteAllText(dir.At("other"), "not ours");
            File.WriteAllText(dir.At(".hidden"), "not looked at");
            Directory.CreateDirectory(dir.At("directory"));
            Check.Equal(string.Join("\n", "bell.lock: Listener used producer 0/0 0 -", "dead: Ring stale 1048576/16 0 0",
                "other: AbiMismatch", "region: Region used persistent 8192/0 0 -", "ring: Ring used producer 8192/64 192 2"),
                All(dir), "what is said");
            SegmentInfo ring = Segments.Ls(dir.Path).Single(s => s.Name == "ring");
            Check.That(ring.Path == dir.At("ring") && ring.Size == 8192 + 4096, ring.Path + ", " + ring.Size + " bytes");
            // And through the Ramway directory.
            using Sender named = Sender.Create("survey");
            Check.That(Segments.Ls().Any(s => s.Name == "survey" && s.InUse), "in the Ramway directory");
            if (!Posix.IsRoot)
            {
                Posix.Do(Posix.chmod(dir.At("region"), 0), "chmod");
                Check.Equal(ErrorKind.PermissionDenied, Segments.Ls(dir.Path).Single(s => s.Name == "region").Error!.Kind, "why not");
            }
        }

        [Test]
        private static void UnlinkTakesWhatNobodyUses()
        {
            using var dir = new Folder();
            Sender tx = Sender.Create(dir.At("ring"), new RingOptions { Persistent = true });
            tx.Send(1, new byte[10]);
            Check.Fails(ErrorKind.Busy, () => Segments.Unlink(dir.At("ring")), "the ring is in use", dir.At("ring"));
            tx.Dispose();
            dir.Holds("ring");
            Segments.Unlink(dir.At("ring"));
            dir.Holds();
            Check.Fails(ErrorKind.NotFound, () => Segments.Unlink(dir.At("ring")), dir.At("ring"));
            Check.Fails(ErrorKind.NotFound, () => Segments.Unlink("no-such-ring"));
            File.WriteAllText(dir.At("other"), "not ours");
            Check.Fails(ErrorKind.AbiMismatch, () => Segments.Unlink(dir.At("other")));
            Directory.CreateDirectory(dir.At("directory"));
            Check.Fails(ErrorKind.InvalidArgument, () => Segments.Unlink(dir.At("directory")));
            Posix.Do(Posix.symlink(dir.At("other"), dir.At("link")), "symlink");
            Check.Fails(ErrorKind.InvalidArgument, () => Segments.Unlink(dir.At("link")));
            Check.Throws<ArgumentNullException>(() => Segments.Unlink(null!));
            dir.Holds("directory", "link", "other");
            // A killed listener's socket goes with it.
            using Peer dead = Peer.Start("bell", dir.At("bell"));
            dead.Hear();
            Check.Fails(ErrorKind.Busy, () => Segments.Unlink(dir.At("bell.lock")));
            dead.Kill();
            Segments.Unlink(dir.At("bell.lock"));
            dir.Holds("directory", "link", "other");
        }

        [Test]
        private static void CleanTakesWhatNobodyCouldWant()
        {
            using var dir = new Folder();
            Check.Equal(0, Segments.Clean(dir.At("none")).Count, "a directory that does not exist");
            using Sender live = Sender.Create(dir.At("live"));
            using Peer dead = Peer.Start("hold", "consumer", dir.At("dead"));
            dead.Expect("attached");
            dead.Kill();
            using (Sender full = Sender.Create(dir.At("full")))
            {
                full.Send(1, new byte[10]);
            }
            File.WriteAllText(dir.At("other"), "not ours");
            File.WriteAllBytes(dir.At(".ramway-0123456789abcdef.new"), new byte[10]);
            Directory.CreateDirectory(dir.At("directory"));
            string[] wanted =
            {
                ".ramway-0123456789abcdef.new Removed ", "dead Removed ", "full Kept it holds 1 undelivered messages (10 bytes)",
                "live Kept in use", "other NotRamway ",
            };
            string Said(bool undelivered, bool dryRun) => string.Join("\n", Segments.Clean(dir.Path, undelivered, dryRun)
                .Select(c => c.Name + " " + c.Outcome + " " + c.Reason + c.Error));
            Check.Equal(string.Join("\n", wanted), Said(false, true), "what would be done");
            dir.Holds(".ramway-0123456789abcdef.new", "dead", "directory", "full", "live", "other");
            Check.Equal(string.Join("\n", wanted), Said(false, false), "what was done");
            dir.Holds("directory", "full", "live", "other");
            Check.Equal("full Removed \nlive Kept in use\nother NotRamway ", Said(true, false), "with what is undelivered");
            dir.Holds("directory", "live", "other");
            Check.That(live.TrySend(1, default), "the live one goes on");
        }

        [Test]
        private static void NobodyIsToldToResumeWhatNobodyCan()
        {
            using var dir = new Folder();
            using (Sender tx = Sender.Create(dir.At("ring"), new RingOptions { Capacity = 4096 }))
            {
                tx.Send(1, new byte[10]);
            }
            Check.Fails(ErrorKind.AlreadyExists, () => Sender.Create(dir.At("ring")), "OpenOrCreate resumes it, Discard starts anew");
            // Positions that contradict each other.
            Rings.Poke(dir.At("ring"), Facts.Block0 + Facts.OffHead, BitConverter.GetBytes(7L));
            Check.Fails(ErrorKind.AlreadyExists, () => Sender.Create(dir.At("ring")), "it is damaged",
                "nobody can resume it, Discard starts anew");
            Check.Fails(ErrorKind.Corrupt, () => Sender.OpenOrCreate(dir.At("ring")), dir.At("ring"));
            Check.Equal(CleanOutcome.Kept, Segments.Clean(dir.Path).Single().Outcome, "what is damaged");
            Sender.Create(dir.At("ring"), new RingOptions { Discard = true }).Dispose();
        }

        private static int Number(SafeFileHandle ring) => (int)ring.DangerousGetHandle();

        [Test]
        private static void ARingWithoutAName()
        {
            using SafeFileHandle ring = Ring.Unnamed(new RingOptions { Capacity = 4096, Align = 64 });
            Sender tx = Sender.FromFd(Number(ring));
            Check.Fails(ErrorKind.Busy, () => Sender.FromFd(Number(ring)), "sender already", "descriptor " + Number(ring));
            Check.Fails(ErrorKind.InvalidArgument, () => Receiver.FromFd(Number(ring), new RingOptions { Capacity = 8192 }), "4096");
            using Receiver rx = Receiver.FromFd(Number(ring), new RingOptions { Capacity = 4096, Align = 64 });
            Check.That(rx.Capacity == 4096 && rx.Align == 64 && rx.PeerAlive && rx.Name == null, "what it is");
            Check.Equal(1u, rx.WaitForPeer(TimeSpan.Zero), "its sender");
            tx.Send(7, 8, new byte[] { 9 });
            using (Message message = rx.Recv(Wait.Long))
            {
                Check.That(message.TypeId == 7 && message.Tag == 8 && message.Data[0] == 9, "what was sent");
            }
            // No name that could have vanished: the wait goes on over more than a round.
            Check.Fails(ErrorKind.TimedOut, () => rx.Recv(TimeSpan.FromMilliseconds(250)).Dispose());
            tx.Dispose();
            Check.Fails(ErrorKind.Closed, () => rx.Recv(Wait.Long).Dispose());
            // A successor, and one that only waits for the role.
            using Sender next = Sender.FromFd(Number(ring), new RingOptions { Timeout = Wait.Long });
            Check.Equal(2u, rx.WaitForPeer(), "its successor");
            var waiting = new Beside(() => Sender.FromFd(Number(ring), new RingOptions { Timeout = Wait.Long }).Dispose());
            System.Threading.Thread.Sleep(20);
            next.Dispose();
            Check.Equal(null, waiting.End(), "the one that waited for the role");
            ring.Dispose();
            Check.Equal(4096L, rx.Capacity, "the handles stay");
        }

        [Test]
        private static void WhatIsNoRingIsRefused()
        {
            using var dir = new Folder();
            using Sender named = Sender.Create(dir.At("ring"));
            using var file = new FileStream(dir.At("ring"), FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite | FileShare.Delete);
            Check.Fails(ErrorKind.InvalidArgument, () => Receiver.FromFd(Number(file.SafeFileHandle)), "open the ring by its name");
            int pipe = Files.OpenWith(Files.WorkingDirectory, "/dev/null", 2);
            Check.Fails(ErrorKind.InvalidArgument, () => Receiver.FromFd(pipe), "not the memory of a ring");
            Files.Close(pipe);
            Check.Fails(ErrorKind.Os, () => Receiver.FromFd(pipe));
            Check.Fails(ErrorKind.Os, () => Receiver.FromFd(-1));
            int empty = Memfd.Unsealed("empty");
            Check.Fails(ErrorKind.AbiMismatch, () => Receiver.FromFd(empty));
            Check.Equal(0, Files.Truncate(empty, 5000), "truncate");
            Check.Fails(ErrorKind.AbiMismatch, () => Receiver.FromFd(empty));
            // One that was cut off: an error and no signal.
            using SafeFileHandle ring = Ring.Unnamed();
            Check.Equal(0, Files.Truncate(Number(ring), 4096), "truncate");
            Check.Fails(ErrorKind.Corrupt, () => Receiver.FromFd(Number(ring)));
            Files.Close(empty);
            foreach (var options in new[] { new RingOptions { Discard = true }, new RingOptions { Mode = 0x180 } })
            {
                Check.Fails(ErrorKind.InvalidArgument, () => Ring.Unnamed(options));
                Check.Fails(ErrorKind.InvalidArgument, () => Receiver.FromFd(Number(ring), options));
            }
        }

        /// <summary>NUMBER: sends by an inherited descriptor.</summary>
        [Helper("inherits")]
        private static void Inherits(string[] args)
        {
            using Sender tx = Sender.FromFd(int.Parse(args[0]));
            tx.Send(1, Encoding.ASCII.GetBytes("from the child"));
            Peer.Say("sent");
            if (Peer.Told() == "close")
            {
                tx.Dispose();
                Peer.Say("closed");
            }
            Peer.Told();
        }

        [Test]
        private static void AChildInheritsIt()
        {
            using SafeFileHandle ring = Ring.Unnamed(new RingOptions { Capacity = 4096 }, inheritable: true);
            using Receiver rx = Receiver.FromFd(Number(ring));
            using Peer child = Peer.Start("inherits", Number(ring).ToString());
            Check.Equal(1u, rx.WaitForPeer(Wait.Long), "the child");
            Check.Equal("from the child", RingHelpers.Receive(rx), "what it sent");
            child.Expect("sent");
            Check.Fails(ErrorKind.Busy, () => Sender.FromFd(Number(ring)));
            child.Kill();
            Check.Fails(ErrorKind.PeerDead, () => rx.Recv(Wait.Long).Dispose());
            using Peer next = Peer.Start("inherits", Number(ring).ToString());
            Check.Equal(2u, rx.WaitForPeer(Wait.Long), "its successor");
            Check.Equal("from the child", RingHelpers.Receive(rx), "what it sent");
            next.Expect("sent");
            next.Tell("close");
            next.Expect("closed");
            Check.Fails(ErrorKind.Closed, () => rx.Recv(Wait.Long).Dispose());
            next.Finish();
            // Without being told to, no child has it.
            using SafeFileHandle kept = Ring.Unnamed();
            Check.That((Posix.fcntl(Number(kept), 1) & 1) == 1, "close-on-exec");
        }
    }
}
