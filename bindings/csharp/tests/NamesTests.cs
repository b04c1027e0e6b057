using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Sockets;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>
    /// Names, the directory that they stand in, and what is there that is no sound segment: a clear error from every way in, and
    /// the thing untouched.
    /// </summary>
    internal static unsafe class NamesTests
    {
        private static readonly string[] Bad =
        {
            "", ".hidden", "..", "a b", "a.sock", "é", "a\0b", new string('x', 81), "/", "/dev/shm/", "a/..", "./.", "/dev/shm/x\0y",
            "/dev/shm/\ud800", "\ud800",
        };

        [Test]
        private static void NamesStandInTheRamwayDirectory()
        {
            using var dir = new Folder();
            string root = dir.At("made-on-demand");
            using Peer p = Peer.StartWith(new Dictionary<string, string> { ["RAMWAY_DIR"] = root }, "by-name");
            p.Expect("made");
            Check.Equal(0, Files.StatAt(Files.WorkingDirectory, root, out Stat stat), "looking at the directory");
            Check.Equal(0x1C0u, stat.Permissions, "its mode");
            Check.That(File.Exists(root + "/a-Valid_name.1"), "the name is not in it");
            p.Finish();
        }

        [Helper("by-name")]
        private static void ByName(string[] arguments)
        {
            foreach (string bad in Bad)
            {
                Rings.Refused(ErrorKind.InvalidArgument, bad, How.Create, Role.Consumer, null);
                Rings.Refused(ErrorKind.InvalidArgument, bad, How.Open, Role.Consumer, null);
            }
            Check.Throws<ArgumentNullException>(() => Rings.Hold(null!, How.Open, Role.Consumer));
            Rings.Refused(ErrorKind.NotFound, "absent", How.Open, Role.Consumer, null, "RAMWAY_DIR");
            Rings.Refused(ErrorKind.NotFound, "absent", How.Open, Role.Consumer, Rings.Waiting(0.02));
            Check.That(!Directory.Exists(RamwayDirectory.Path), "opening made the directory");
            Rings.Hold(new string('x', 80), How.Create, Role.Consumer).Release();
            Attachment a = Rings.Hold("a-Valid_name.1", How.Create, Role.Consumer);
            Peer.Say("made");
            Peer.Told();
            a.Release();
        }

        [Test]
        private static void FilesArePrivateUnlessAskedFor()
        {
            using var dir = new Folder();
            foreach (int mode in new[] { 0, 0x1B6, 0x1A0 })
            {
                Attachment a = Rings.Hold(dir.At("ring"), How.Create, Role.Producer, new RingOptions { Mode = mode });
                Files.StatAt(Files.WorkingDirectory, dir.At("ring"), out Stat stat);
                Check.Equal(mode == 0 ? 0x180u : (uint)mode, stat.Permissions, "permissions");
                a.Release();
            }
        }

        [Test]
        private static void TheMirrorIsOneMemory()
        {
            using var dir = new Folder();
            foreach (long capacity in new long[] { 4096, 1 << 16, 4 << 20 })
            {
                Attachment a = Rings.Hold(dir.At("ring"), How.Create, Role.Producer, Rings.Of(capacity));
                Attachment b = Rings.Hold(dir.At("ring"), How.Open, Role.Consumer);
                foreach (long at in new[] { 0, 1, capacity / 2, capacity - 1 })
                {
                    a.Data[at] = 0x55;
                    Check.That(a.Data[at + capacity] == 0x55 && b.Data[at] == 0x55, "the copies differ at " + at);
                    b.Data[at + capacity] = 0x66;
                    Check.That(a.Data[at] == 0x66, "the copies differ at " + at);
                }
                Check.That(capacity < 2 << 20 || (long)a.Data % (2 << 20) == 0, "no room for huge pages");
                a.Release();
                b.Release();
            }
        }

        private static string StateOf(string path)
        {
            Check.Equal(0, Files.StatAt(Files.WorkingDirectory, path, out Stat stat), "looking at it");
            string bytes = stat.IsRegular ? BitConverter.ToString(File.ReadAllBytes(path).Take(8192).ToArray()) : "";
            return stat.Mode + " " + stat.Id.Inode + " " + stat.Size + " " + bytes;
        }

        /// <summary>Every way to come at a name where there is something that is no sound ring.</summary>
        private static void Foreign(string name, ErrorKind kind, params string[] parts)
        {
            string before = StateOf(name);
            foreach (Role role in new[] { Role.Producer, Role.Consumer })
            {
                Rings.Refused(kind, name, How.Open, role, null, parts.Append(name).ToArray());
                Rings.Refused(kind, name, How.OpenOrCreate, role, null, name);
                Rings.Refused(ErrorKind.AlreadyExists, name, How.Create, role, null, name);
                Rings.Refused(ErrorKind.AlreadyExists, name, How.Create, role, new RingOptions { Discard = true }, name);
            }
            Check.Equal(before, StateOf(name), "it was touched");
        }

        [Test]
        private static void OtherFilesThanRegularOnes()
        {
            using var dir = new Folder();
            Directory.CreateDirectory(dir.At("directory"));
            Foreign(dir.At("directory"), ErrorKind.InvalidArgument, "a directory");
            Posix.Do(Posix.symlink("nowhere", dir.At("dangling")), "symlink");
            Foreign(dir.At("dangling"), ErrorKind.InvalidArgument, "a symbolic link");
            Posix.Do(Posix.symlink("loop", dir.At("loop")), "symlink");
            Foreign(dir.At("loop"), ErrorKind.InvalidArgument, "a symbolic link");
            Posix.Do(Posix.mkfifo(dir.At("fifo"), 0x180), "mkfifo");
            Foreign(dir.At("fifo"), ErrorKind.InvalidArgument, "a FIFO");
            using var socket = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
            socket.Bind(new UnixDomainSocketEndPoint(dir.At("socket")));
            Foreign(dir.At("socket"), ErrorKind.InvalidArgument, "a socket");
            Attachment a = Rings.Hold(dir.At("target"), How.Create, Role.Consumer);
            Posix.Do(Posix.symlink("target", dir.At("link")), "symlink");
            Foreign(dir.At("link"), ErrorKind.InvalidArgument, "a symbolic link");
            a.Release();
            // Opening one can do anything, so none is.
            Rings.Refused(ErrorKind.InvalidArgument, "/dev/null", How.Open, Role.Producer, null, "a device");
        }

        [Test]
        private static void RegularFilesOfOthers()
        {
            using var dir = new Folder();
            var contents = new Dictionary<string, byte[]>
            {
                ["empty"] = new byte[0],
                ["text"] = System.Text.Encoding.ASCII.GetBytes("Dear diary"),
                ["zeros"] = new byte[4096],
                ["ones"] = Enumerable.Repeat((byte)0xFF, 1 << 20).ToArray(),
                ["almost"] = System.Text.Encoding.ASCII.GetBytes("RAMWAY\n\n").Concat(new byte[8192]).ToArray(),
                ["half"] = System.Text.Encoding.ASCII.GetBytes("RAMW"),
            };
            foreach (KeyValuePair<string, byte[]> pair in contents)
            {
                File.WriteAllBytes(dir.At(pair.Key), pair.Value);
                Foreign(dir.At(pair.Key), ErrorKind.AbiMismatch, "not a Ramway segment");
            }
            dir.Holds(contents.Keys.OrderBy(k => k, StringComparer.Ordinal).ToArray());
        }

        [Test]
        private static void CutOffAndGrownSegments()
        {
            using var dir = new Folder();
            foreach (long size in new long[] { 8, 64, 4095, 4096, 4097, 8192, 12_287, 12_289, 1 << 20 })
            {
                string name = dir.At("thing" + size);
                Rings.Hold(name, How.Create, Role.Producer, new RingOptions { Capacity = 8192, Persistent = true }).Release();
                Posix.Do(Posix.truncate(name, size), "truncate");
                Foreign(name, ErrorKind.Corrupt);
            }
        }

        [Test]
        private static void ASegmentOfAnotherKind()
        {
            using var dir = new Folder();
            using Region region = Region.Create(dir.At("thing"), 100);
            Foreign(dir.At("thing"), ErrorKind.InvalidArgument, "this is a region, not a ring");
        }

        [Test]
        private static void MoreThanTheMachineHas()
        {
            using var dir = new Folder();
            foreach (long capacity in new[] { 1L << 50, 1L << 61, 1L << 62, (1L << 62) + 1, long.MaxValue })
            {
                Rings.Refused(ErrorKind.NoSpace, dir.At("ring"), How.Create, Role.Producer, Rings.Of(capacity), dir.At("ring"));
                Check.Fails(ErrorKind.NoSpace, () => Region.Create(dir.At("region"), capacity), dir.At("region"));
                dir.Holds();
            }
        }

        [Test]
        private static void NoDescriptorIsLeftOrInherited()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            Attachment a = Rings.Hold(name, How.Create, Role.Producer);
            List<int> open = OpenIn(dir.Path);
            Check.That(open.Count >= 2, "there is a lock description, and a directory");
            const int getFlags = 1, closeOnExec = 1;
            foreach (int fd in open)
            {
                Check.That((Posix.fcntl(fd, getFlags) & closeOnExec) != 0, "a descriptor that a child would inherit");
            }
            for (int i = 0; i < 20; i++)
            {
                Rings.Refused(ErrorKind.AlreadyExists, name, How.Create, Role.Producer, null);
                Rings.Refused(ErrorKind.Busy, name, How.Open, Role.Producer, null);
                Rings.Refused(ErrorKind.InvalidArgument, name, How.Open, Role.Consumer, Rings.Of(1 << 30));
                Rings.Refused(ErrorKind.NotFound, dir.At("absent"), How.Open, Role.Producer, null);
            }
            a.Release();
            Check.Equal(0, OpenIn(dir.Path).Count, "descriptors that are left");
        }

        /// <summary>This process's descriptors of what is in a directory.</summary>
        private static List<int> OpenIn(string directory)
        {
            var found = new List<int>();
            foreach (string line in Shell("ls -l /proc/" + System.Diagnostics.Process.GetCurrentProcess().Id + "/fd").Split('\n'))
            {
                int arrow = line.IndexOf(" -> " + directory, StringComparison.Ordinal);
                if (arrow > 0)
                {
                    found.Add(int.Parse(line.Substring(0, arrow).Split(' ').Last()));
                }
            }
            return found;
        }

        private static string Shell(string command)
        {
            var start = new System.Diagnostics.ProcessStartInfo("/bin/sh") { RedirectStandardOutput = true };
            start.ArgumentList.Add("-c");
            start.ArgumentList.Add(command);
            using var process = System.Diagnostics.Process.Start(start)!;
            string said = process.StandardOutput.ReadToEnd();
            process.WaitForExit();
            return said;
        }

        /// <summary>Where every file needs a name: the same life under a dot-name that nobody takes for a segment.</summary>
        [Test]
        private static void BornUnderADotName()
        {
            using var dir = new Folder();
            using SegmentName name = SegmentName.Resolve(dir.At("ring"), true);
            Staged Build()
            {
                var birth = new Staged();
                birth.Build(name, Spec.Ring(4096, 16, Memory.PageSize).Named(false), Facts.ByteProducer,
                    new RingOptions(), false);
                return birth;
            }
            Staged first = Build();
            string[] names = dir.Names();
            Check.That(names.Length == 1 && names[0].StartsWith(".ramway-", StringComparison.Ordinal) && names[0].Length == 8 + 16 + 4,
                "what is there: " + string.Join(" ", names));
            Check.Equal(0, first.GiveName(name), "giving a name");
            dir.Holds("ring");
            Staged second = Build();
            Check.Equal(-Errno.EEXIST, second.GiveName(name), "giving it once more");
            second.Drop();
            dir.Holds("ring");
            // The one that was dropped must not have let go of the living one's role.
            Rings.Refused(ErrorKind.Busy, dir.At("ring"), How.Open, Role.Producer, null);
            first.Take().Drop();
            dir.Holds();
            // A cleaner is faster than the creator: it starts over instead of publishing a file that is gone.
            Staged third = Build();
            File.Delete(dir.At(dir.Names()[0]));
            Check.Equal(-Errno.ENOENT, third.GiveName(name), "giving a name to what is gone");
            third.Drop();
            dir.Holds();
        }

        [Test]
        private static void TheDefaultDirectoryMustBeOursAlone()
        {
            if (!Posix.IsRoot)
            {
                throw new SkipException("only root can become a user whose directory nobody else uses");
            }
            int uid = 1_500_000_000 + System.Diagnostics.Process.GetCurrentProcess().Id;
            string root = "/dev/shm/ramway-" + uid;
            void Expect(string said, int user, string directory)
            {
                using Peer p = Peer.StartWith(new Dictionary<string, string> { ["RAMWAY_DIR"] = directory }, "as-user", user.ToString());
                p.Expect(said);
                p.Finish();
            }
            using var dir = new Folder();
            try
            {
                Expect("ok", uid, "");
                Files.StatAt(Files.WorkingDirectory, root, out Stat stat);
                Check.That(stat.Permissions == 0x1C0 && stat.Uid == uid, "mode and owner");
                Posix.Do(Posix.chmod(root, 0x1ED), "chmod");
                Expect("PermissionDenied", uid, "");
                Directory.Delete(root);
                Directory.CreateDirectory(root);
                Posix.Do(Posix.chmod(root, 0x1C0), "chmod");
                Expect("PermissionDenied", uid, ""); // somebody else's
                Directory.Delete(root);
                Posix.Do(Posix.chown(dir.Path, uid, -1), "chown");
                Posix.Do(Posix.symlink(dir.Path, root), "symlink");
                Expect("PermissionDenied", uid, ""); // a link is no real directory
                File.Delete(root);
                File.WriteAllText(root, "");
                Expect("PermissionDenied", uid, ""); // nor is a file
                File.Delete(root);
                // Somebody else's file in a directory that everybody may write.
                File.WriteAllText(dir.At("mine"), "");
                Posix.Do(Posix.chmod(dir.At("mine"), 0x180), "chmod");
                Posix.Do(Posix.chmod(dir.Path, 0x1FF), "chmod");
                Expect("PermissionDenied", uid + 1, dir.Path);
                dir.Holds("mine");
            }
            finally
            {
                Shell("rm -rf " + root);
            }
        }

        [Helper("as-user")]
        private static void AsUser(string[] arguments)
        {
            Rings.BecomeUser(uint.Parse(arguments[0]));
            try
            {
                Attachment a = Rings.Hold("mine", How.Create, Role.Consumer);
                Peer.Say("ok");
                a.Release();
            }
            catch (RamwayException e)
            {
                Peer.Say(e.Kind.ToString());
            }
        }
    }
}
