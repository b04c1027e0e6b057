using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>Where segments may lie, and what is asked of their memory.</summary>
    internal static unsafe class PlacementTests
    {
        [Test]
        private static void DisksOnlyWhenAskedForAndOtherFileSystemsNever()
        {
            Rings.Refused(ErrorKind.Unsupported, "/proc/self/ring", How.Create, Role.Producer, new RingOptions { AllowDisk = true });
            string dir = Path.Combine(Path.GetTempPath(), "ramway-csharp-" + System.Diagnostics.Process.GetCurrentProcess().Id);
            Directory.CreateDirectory(dir);
            try
            {
                string name = dir + "/ring";
                int fd = Files.OpenDir(dir, true);
                FileSystem.Of(fd, out FileSystem.Numbers numbers);
                Files.Close(fd);
                var disk = new RingOptions { AllowDisk = true };
                switch (FileSystem.Judge(numbers.Type, out string type))
                {
                    case Suitability.Memory:
                        Rings.Hold(name, How.Create, Role.Producer).Release();
                        break;
                    case Suitability.Unsuitable:
                        Rings.Refused(ErrorKind.Unsupported, name, How.Create, Role.Producer, disk, type);
                        break;
                    default:
                        Rings.Refused(ErrorKind.Unsupported, name, How.Create, Role.Producer, null, "AllowDisk");
                        Attachment a = Rings.Hold(name, How.Create, Role.Producer, disk);
                        Rings.Refused(ErrorKind.Unsupported, name, How.Open, Role.Consumer, null, "AllowDisk");
                        Rings.Hold(name, How.Open, Role.Consumer, disk).Release();
                        a.Release();
                        break;
                }
                Check.That(!Directory.EnumerateFileSystemEntries(dir).Any(), "something is left");
            }
            finally
            {
                Directory.Delete(dir, true);
            }
        }

        [Test]
        private static void LockedAndPrefaulted()
        {
            using var dir = new Folder();
            var o = new RingOptions { LockMemory = true, Prefault = true, Capacity = 1 << 16 };
            long before = Resident(), locked = Locked();
            Attachment a = Rings.Hold(dir.At("ring"), How.Create, Role.Producer, o);
            Check.That(Resident() > before || Locked() >= locked + 64, "nothing was faulted in or locked");
            Check.Equal(locked + 64, Locked(), "KiB locked: one of the two mappings");
            a.Release();
            Check.Equal(locked, Locked(), "KiB locked after the release");
        }

        private static long Locked() => Field("VmLck:");

        private static long Resident() => Field("RssShmem:");

        private static long Field(string name)
        {
            Space.Field(Files.ReadText("/proc/self/status"), name, out ulong kib);
            return (long)kib;
        }

        [Test]
        private static void ALimitThatIsTooSmallIsNamed()
        {
            using var dir = new Folder();
            Posix.Do(Posix.chmod(dir.Path, 0x1FF), "chmod");
            using Peer p = Peer.Start("little-lock", dir.At("ring"));
            string said = p.Hear();
            Check.That(said.Contains("RLIMIT_MEMLOCK is 8192 bytes") && said.Contains(dir.At("ring")), said);
            p.Finish();
            dir.Holds();
        }

        [Helper("little-lock")]
        private static void LittleLock(string[] arguments)
        {
            if (Posix.IsRoot)
            {
                // Root may lock what it likes.
                Rings.BecomeUser(1_500_000_000);
            }
            const int lockedMemory = 8;
            ulong* limit = stackalloc ulong[2];
            limit[0] = limit[1] = 8192;
            Posix.Do(Posix.setrlimit(lockedMemory, limit), "setrlimit");
            var o = new RingOptions { LockMemory = true };
            Peer.Say(Rings.Refused(ErrorKind.NoSpace, arguments[0], How.Create, Role.Consumer, o).Message);
        }

        [Test]
        private static void HugePagesAreThereOrTheSettingIsNamed()
        {
            using var dir = new Folder();
            var o = new RingOptions { HugePages = true, Capacity = 1 };
            long huge;
            try
            {
                huge = Placement.HugePageSize();
            }
            catch (RamwayException)
            {
                Rings.Refused(ErrorKind.Unsupported, dir.At("huge"), How.Create, Role.Producer, o, "HugePages");
                return;
            }
            try
            {
                Attachment a = Rings.Hold(dir.At("huge"), How.Create, Role.Producer, o);
                Check.That((long)a.Capacity == huge && a.DataOffset == huge, "the data does not lie on huge pages");
                a.Release();
            }
            catch (RamwayException e)
            {
                Check.That(e.Kind == ErrorKind.Unsupported && e.Message.Contains("shmem_enabled") && e.Message.Contains(dir.At("huge")),
                    e.Message);
            }
            dir.Holds();
            // A file whose data does not begin on a huge page can never have them.
            Attachment small = Rings.Hold(dir.At("small"), How.Create, Role.Producer, Rings.Of(huge));
            Rings.Refused(ErrorKind.Unsupported, dir.At("small"), How.Open, Role.Consumer, new RingOptions { HugePages = true });
            small.Release();
            dir.Holds();
        }

        /// <summary>
        /// A full file system is an error that says so, before anybody is hurt, and leaves nothing behind.
        /// </summary>
        [Test]
        private static void AFullFileSystemIsAnErrorAndNoSignal()
        {
            if (!Posix.IsRoot)
            {
                throw new SkipException("only root may mount a file system");
            }
            foreach (string helper in new[] { "small-tmpfs", "few-inodes" })
            {
                using var dir = new Folder();
                using Peer p = Peer.Start(helper, dir.Path);
                string said = p.Hear();
                if (said == "cannot mount")
                {
                    throw new SkipException("this process may not mount a file system");
                }
                Check.Equal("fine", said, helper);
                p.Finish();
            }
        }

        /// <summary>Puts a small file system over a directory, for this thread alone.</summary>
        private static bool MountTmpfs(string dir, string options)
        {
            const int newMounts = 0x20000;
            const ulong privateForAll = 1 << 18 | 1 << 14;
            return Posix.unshare(newMounts) == 0 && Posix.mount("", "/", "", privateForAll, null) == 0 &&
                Posix.mount("tmpfs", dir, "tmpfs", 0, options) == 0;
        }

        [Helper("small-tmpfs")]
        private static void SmallTmpfs(string[] arguments)
        {
            string dir = arguments[0];
            if (!MountTmpfs(dir, "size=1m,mode=0777"))
            {
                Peer.Say("cannot mount");
                return;
            }
            foreach (long capacity in new[] { 1L << 20, 1L << 21, 1L << 30, 1L << 40 })
            {
                Rings.Refused(ErrorKind.NoSpace, dir + "/ring", How.Create, Role.Consumer, Rings.Of(capacity), dir + "/ring");
                Check.That(!Directory.EnumerateFileSystemEntries(dir).Any(), "something is left");
            }
            Attachment a = Rings.Hold(dir + "/fits", How.Create, Role.Producer, Rings.Of(1 << 19));
            Rings.Refused(ErrorKind.NoSpace, dir + "/second", How.Create, Role.Producer, Rings.Of(1 << 19));
            try
            {
                File.WriteAllBytes(dir + "/filler", new byte[1 << 20]);
            }
            catch (IOException)
            {
                // That was the purpose.
            }
            // The space is taken at creation: filling the ring to the brim is no SIGBUS, however full the rest is.
            new Span<byte>(a.Data, 1 << 19).Fill(1);
            a.Release();
            File.Delete(dir + "/filler");
            Check.That(!Directory.EnumerateFileSystemEntries(dir).Any(), "something is left");
            Peer.Say("fine");
        }

        [Helper("few-inodes")]
        private static void FewInodes(string[] arguments)
        {
            string dir = arguments[0];
            if (!MountTmpfs(dir, "size=1m,nr_inodes=2,mode=0777"))
            {
                Peer.Say("cannot mount");
                return;
            }
            Attachment one = Rings.Hold(dir + "/one", How.Create, Role.Producer, Rings.Of(4096));
            Rings.Refused(ErrorKind.NoSpace, dir + "/two", How.Create, Role.Producer, Rings.Of(4096));
            one.Release();
            Peer.Say("fine");
        }

        [Test]
        private static void ControlGroupsAreFound()
        {
            const string mounts =
                "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n40 23 0:30 /docker/x /sys/fs/memory rw - cgroup cgroup rw,memory\n";
            List<MemoryGroup> groups = MemoryGroup.Parse("0::/a/b\n4:memory,hugetlb:/docker/x/y\n5:cpu:/z\n", mounts);
            Check.Equal("/sys/fs/cgroup/a/b /sys/fs/cgroup/a /sys/fs/cgroup /sys/fs/memory/y /sys/fs/memory",
                string.Join(" ", groups.Select(g => g.Directory)), "the groups, innermost first");
            Check.Equal("/sys/fs/cgroup/a/b/memory.max", groups[0].LimitFile, "a limit of version 2");
            Check.Equal("/sys/fs/memory/y/memory.limit_in_bytes", groups[3].LimitFile, "a limit of version 1");
            Check.Equal(0, MemoryGroup.Parse("", mounts).Count, "without groups");
            // A process that is outside of what the mount shows.
            Check.Equal("/sys/fs/memory", string.Join(" ", MemoryGroup.Parse("4:memory:/other", mounts).Select(g => g.Directory)),
                "outside of the mount");
        }

        [Test]
        private static void BootIdsAndFields()
        {
            Check.Equal("00112233445566778899AABBCCDDEEFF",
                BitConverter.ToString(Boot.ParseId("00112233-4455-6677-8899-aAbBccddeeff\n")).Replace("-", ""), "a UUID");
            Check.That(Boot.ParseId("0011").All(b => b == 0) && Boot.ParseId("").All(b => b == 0), "no UUID");
            Check.That(Boot.Id.Any(b => b != 0), "this boot");
            Check.That(Space.Field("A: 1\nAB:  22 kB\n", "AB:", out ulong n) && n == 22, "a field");
            Check.That(!Space.Field("AB: x\n", "AB:", out _) && !Space.Field("AB: 1\n", "A:", out _), "no field");
        }
    }
}
