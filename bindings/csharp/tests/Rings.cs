using System;
using System.IO;
using System.Runtime.InteropServices;
using System.Threading;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>
    /// Rings by their attachments, whose words tests set directly: what a sender and a receiver do with them is tested elsewhere.
    /// </summary>
    internal static unsafe class Rings
    {
        internal static RingOptions Of(long capacity) => new RingOptions { Capacity = capacity };

        internal static RingOptions Waiting(double seconds) => new RingOptions { Timeout = TimeSpan.FromSeconds(seconds) };

        internal static Attachment Hold(string name, How how, Role role, RingOptions? o = null) =>
            Attachment.Named(name, how, o ?? new RingOptions(), role);

        /// <summary>The error of an attempt that must fail.</summary>
        internal static RamwayException Refused(ErrorKind kind, string name, How how, Role role, RingOptions? o, params string[] parts) =>
            Check.Fails(kind, () => Hold(name, how, role, o).Release(), parts);

        /// <summary>Publishes a message of so many bytes.</summary>
        internal static void Put(Attachment a, uint length)
        {
            ulong tail = Volatile.Read(ref a.Ring->Tail);
            *(uint*)(a.Data + (tail & (a.Capacity - 1))) = length;
            Volatile.Write(ref a.Ring->Tail, tail + Layout.FrameSize(length, a.Align));
        }

        /// <summary>Releases everything.</summary>
        internal static void Drain(Attachment a) => Volatile.Write(ref a.Ring->Head, Volatile.Read(ref a.Ring->Tail));

        internal static ulong InodeOf(string path)
        {
            Check.That(Files.StatAt(Files.WorkingDirectory, path, out Stat stat) == 0, "nothing is at " + path);
            return stat.Id.Inode;
        }

        /// <summary>Writes into a segment's file.</summary>
        internal static void Poke(string path, long at, byte[] bytes)
        {
            using var file = new FileStream(path, FileMode.Open, FileAccess.Write, FileShare.ReadWrite | FileShare.Delete);
            file.Seek(at, SeekOrigin.Begin);
            file.Write(bytes, 0, bytes.Length);
        }

        /// <summary>Attaches, and publishes an empty message at every "put", until it hears something else.</summary>
        [Helper("holder")]
        private static void Holder(string[] arguments)
        {
            Attachment a = Hold(arguments[0], How.OpenOrCreate, arguments[1] == "consumer" ? Role.Consumer : Role.Producer, Of(4096));
            Peer.Say("ready");
            while (Peer.Told() == "put")
            {
                Put(a, 5);
                Peer.Say("done");
            }
            a.Release();
        }

        /// <summary>
        /// In a helper that is about to become another user, who may not be able to read this program: loads what will be needed.
        /// </summary>
        internal static void BecomeUser(uint uid)
        {
            using (var dir = new Folder())
            {
                Hold(dir.At("ring"), How.Create, Role.Consumer, new RingOptions { LockMemory = true, Capacity = 4096 }).Release();
                Console.Out.Write(Refused(ErrorKind.NotFound, dir.At("none"), How.Open, Role.Consumer, null).Message.Substring(0, 0));
                Console.Out.Write(Errors.Os(Errno.ENOMEM, "").Message.Substring(0, 0));
                Console.Out.Write(ErrorKind.PermissionDenied.ToString().Substring(0, 0));
            }
            Console.Out.Flush();
            Posix.Do(Posix.setuid(uid), "setuid");
        }

        internal static Peer StartHolder(string name, string role)
        {
            Peer p = Peer.Start("holder", name, role);
            p.Expect("ready");
            return p;
        }
    }

    /// <summary>What tests do to files, and to themselves, that .NET has no call for.</summary>
    internal static unsafe class Posix
    {
        internal static bool IsRoot => geteuid() == 0;

        internal static void Do(int result, string what)
        {
            if (result == -1)
            {
                throw new CheckException(what + ": " + Libc.ErrorText(Marshal.GetLastWin32Error()));
            }
        }

        [DllImport("libc", SetLastError = true)]
        internal static extern int symlink(string to, string at);

        [DllImport("libc", SetLastError = true)]
        internal static extern int mkfifo(string at, uint mode);

        [DllImport("libc", SetLastError = true)]
        internal static extern int truncate(string at, long length);

        [DllImport("libc", SetLastError = true)]
        internal static extern int chmod(string at, uint mode);

        [DllImport("libc", SetLastError = true)]
        internal static extern int chown(string at, int uid, int gid);

        [DllImport("libc", SetLastError = true)]
        internal static extern int setuid(uint uid);

        [DllImport("libc", SetLastError = true)]
        internal static extern int setrlimit(int resource, ulong* limit);

        [DllImport("libc", SetLastError = true)]
        internal static extern int kill(int pid, int signal);

        [DllImport("libc", SetLastError = true)]
        internal static extern int unshare(int flags);

        [DllImport("libc", SetLastError = true)]
        internal static extern int mount(string from, string at, string type, ulong flags, string? options);

        [DllImport("libc", SetLastError = true)]
        internal static extern int fcntl(int fd, int command);

        [DllImport("libc")]
        private static extern uint geteuid();
    }
}
