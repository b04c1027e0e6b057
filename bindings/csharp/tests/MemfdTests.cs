using System;
using System.IO;
using System.Linq;
using Ramway.Sys;

namespace Ramway.Tests
{
    internal static unsafe class MemfdTests
    {
        private const int AddSeals = 1033;
        private const int SealSeal = 1, SealShrink = 2, SealGrow = 4, SealWrite = 8;

        /// <summary>Memory of some size with these seals, which begins with these bytes.</summary>
        internal static int Memory(long size, int seals, ReadOnlySpan<byte> start = default)
        {
            int fd = Memfd.New("ramway-test");
            Check.That(fd >= 0, "memfd_create: " + fd);
            Check.Equal(0, Files.Truncate(fd, size), "sizing it");
            Check.Equal(0, Files.WriteAt(fd, start, 0), "writing to it");
            Check.That(seals == 0 || Libc.fcntl(fd, AddSeals, (long)seals) == 0, "sealing it");
            return fd;
        }

        [Test]
        internal static void SealedMemoryHasASizeThatStays()
        {
            int fd = Memfd.New("ramway-test");
            Check.Equal(0L, Memfd.SealedSize(fd, out string? why), "not sealed yet");
            Check.That(why != null, "why is that");
            Space.Allocate(fd, 0, 8192);
            Memfd.Seal(fd);
            Check.Equal(8192L, Memfd.SealedSize(fd, out why), "the size: " + why);
            Check.Equal(-Errno.EPERM, Files.Truncate(fd, 4096), "making it shorter");
            Check.Equal(-Errno.EPERM, Files.Truncate(fd, 16384), "making it longer");
            Check.Equal(-Errno.EPERM, Libc.Result(Libc.fcntl(fd, AddSeals, (long)SealWrite)), "one more seal");
            Files.Close(fd);
        }

        [Test]
        internal static void WhatCanChangeIsRefused()
        {
            const int all = SealSeal | SealShrink | SealGrow;
            foreach ((int seals, string part) in new[]
            {
                (0, "seals"), (SealShrink | SealSeal, "seals"), (SealGrow | SealSeal, "seals"), (SealShrink | SealGrow, "seals"),
                (all | SealWrite, "against writing"), (all | 0x10, "against writing"),
            })
            {
                int fd = Memory(4096, seals);
                Check.Equal(0L, Memfd.SealedSize(fd, out string? why), "size with the seals " + seals);
                Check.That(why != null && why.Contains(part, StringComparison.Ordinal), seals + ": " + why);
                Files.Close(fd);
            }
            using var folder = new Folder();
            File.WriteAllBytes(folder.At("file"), new byte[4096]);
            foreach (string path in new[] { "/dev/null", "/", folder.At("file") })
            {
                // A file on a tmpfs has seals of its own, that it cannot be sealed: it is refused like a device.
                int fd = Files.OpenWith(Files.WorkingDirectory, path, 0);
                long size = Memfd.SealedSize(fd, out string? why);
                Check.That(size == 0 && why != null, path + ": " + size + ", " + why);
                Files.Close(fd);
            }
        }

        [Test]
        internal static void MemoryOfHugePagesIsRefused()
        {
            const long allowSealing = 2, hugePages = 4;
            int fd;
            fixed (byte* name = new byte[] { (byte)'x', 0 })
            {
                fd = (int)Libc.syscall(Libc.IsArm64 ? 279 : 319, (long)name, allowSealing | hugePages, 0, 0, 0, 0);
            }
            if (fd < 0)
            {
                throw new SkipException("this kernel has no memfd of huge pages");
            }
            Check.Equal(0, Libc.fcntl(fd, AddSeals, (long)(SealSeal | SealShrink | SealGrow)), "sealing it");
            Check.Equal(0L, Memfd.SealedSize(fd, out string? why), "its size");
            Check.That(why != null && why.Contains("huge", StringComparison.Ordinal), "why: " + why);
            Files.Close(fd);
        }

        [Test]
        internal static void MemoryIsCloseOnExecWhateverItIsCalled()
        {
            foreach ((string name, string start) in new[]
            {
                (string.Concat(Enumerable.Repeat("é/\n\0", 200)), "/memfd:é/??é/??"), ("\ud83d\ude00\ud83d", "/memfd:😀\ufffd"),
                (new string('n', 1000), "/memfd:nnn"), ("", "/memfd:"),
            })
            {
                int fd = Memfd.New(name);
                Check.That(fd >= 0, name + ": " + fd);
                Check.Equal(1, Libc.fcntl(fd, 1, 0L), "close-on-exec");
                string link = RawSocket.LinkAt(Files.ProcPath(fd));
                Check.That(link.StartsWith(start, StringComparison.Ordinal), link);
                Files.Close(fd);
            }
        }

        [Test]
        internal static void AHangUpIsSeenWhateverBytesAreLeft()
        {
            (RawSocket a, RawSocket b) = RawSocket.Pair();
            Check.That(!Sockets.HungUp(a.Fd), "at once");
            b.Send(new byte[] { 1, 2, 3 });
            Check.That(!Sockets.HungUp(a.Fd), "bytes are no hang-up");
            Check.Equal(0, Sockets.PeerCredentials(a.Fd, out Credentials own), "who is there");
            Check.Equal(System.Diagnostics.Process.GetCurrentProcess().Id, own.Pid, "process");
            Check.Equal(Libc.geteuid(), own.Uid, "user");
            int closed = b.Fd;
            b.Dispose();
            Check.That(Sockets.HungUp(a.Fd), "it was not seen");
            Check.Equal(-Errno.EPIPE, Sockets.Send(a.Fd, new byte[] { 1 }, -1), "sending after that");
            Check.That(Sockets.HungUp(closed), "a descriptor that is closed would be waited on forever");
            a.Dispose();
        }

        [Test]
        internal static void ADescriptorIsClosedOnceAndNotWhileItIsUsed()
        {
            int fd = Files.OpenDir("/", true);
            var descriptor = new Descriptor(fd);
            Check.Equal(fd, descriptor.Enter(), "inside");
            descriptor.Dispose();
            Check.Equal(0, Files.Stat(fd, out _), "still open: somebody is inside");
            descriptor.Leave();
            Check.That(Files.Stat(fd, out _) < 0, "closed when the last one has left");
            Check.Equal(-1, descriptor.Enter(), "nobody enters any more");
            descriptor.Dispose();
        }
    }
}
