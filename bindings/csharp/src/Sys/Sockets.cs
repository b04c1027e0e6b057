using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;

namespace Ramway.Sys
{
    /// <summary>Who is at the other end of a socket, as the kernel recorded it when the connection was made.</summary>
    internal readonly struct Credentials
    {
        internal Credentials(int pid, uint uid)
        {
            Pid = pid;
            Uid = uid;
        }

        /// <summary>0 where the peer's process has no number in our PID namespace.</summary>
        internal int Pid { get; }

        /// <summary><see cref="Sockets.OverflowUid"/> where the peer's user has no number in our user namespace.</summary>
        internal uint Uid { get; }
    }

    /// <summary>What one receive brought.</summary>
    internal struct Received
    {
        /// <summary>The number of bytes; 0 means that the other end hung up.</summary>
        internal int Bytes;

        /// <summary>The descriptors that came with them. They are the caller's to close, and close-on-exec.</summary>
        internal List<int> Descriptors;

        /// <summary>There were more descriptors than this side takes, which the kernel closed.</summary>
        internal bool Truncated;
    }

    /// <summary>Unix sockets that pass descriptors. Nothing here waits but <see cref="Poll"/>. Where a call fails, it
    /// returns the negative errno.</summary>
    internal static unsafe class Sockets
    {
        /// <summary>The longest path, in bytes, that fits into a sockaddr_un with its terminating NUL.</summary>
        internal const int PathMax = 107;

        /// <summary>How many descriptors one receive takes in order to count and close them; the kernel closes any more
        /// itself.</summary>
        internal const int DescriptorsMax = 8;

        internal const short PollIn = 0x1;

        /// <summary>What to poll for to learn of the other end's hang-up; what tells of one is more.</summary>
        internal const short PollHangUp = 0x2000;

        private const string Lib = "libc";
        // Of a sockaddr_un: its length, and where the path is in it.
        private const int SockaddrSize = 110, SockaddrPath = 2;
        private const int AfUnix = 1;
        private const int SockStream = 1;
        private const int SockCloexec = 0x80000;
        private const int SockNonblock = 0x800;
        private const int SolSocket = 1;
        private const int SoPeercred = 17;
        private const int ScmRights = 1;
        private const int MsgDontwait = 0x40;
        private const int MsgNosignal = 0x4000;
        private const int MsgCtrunc = 0x8;
        private const int MsgCmsgCloexec = 0x40000000;
        private const int HungUpBits = 0x10 | 0x2000 | 0x8 | 0x20; // HUP, RDHUP, ERR, NVAL
        private const int CmsgHeader = 16;
        private const int CmsgSpace = CmsgHeader + DescriptorsMax * 4;

        /// <summary>Makes a stream socket, close-on-exec and never blocking.</summary>
        internal static int Stream() => Libc.Result(socket(AfUnix, SockStream | SockCloexec | SockNonblock, 0));

        /// <summary>Gives a socket a name, which must be absent.</summary>
        internal static int Bind(int fd, string path)
        {
            byte* address = stackalloc byte[SockaddrSize];
            int length = Address(path, address);
            return length < 0 ? length : Libc.Result(bind(fd, address, (uint)length));
        }

        /// <summary>Lets connectors queue up at a bound socket, backlog of them at a time.</summary>
        internal static int Listen(int fd, int backlog) => Libc.Result(listen(fd, backlog));

        /// <summary>Tries once to connect a socket of <see cref="Stream"/>.</summary>
        internal static int Connect(int fd, string path)
        {
            byte* address = stackalloc byte[SockaddrSize];
            int length = Address(path, address);
            return length < 0 ? length : Libc.Result(connect(fd, address, (uint)length));
        }

        /// <summary>The next connection, close-on-exec and never blocking; EAGAIN if there is none.</summary>
        internal static int Accept(int fd) => Libc.Result(accept4(fd, null, null, SockCloexec | SockNonblock));

        /// <summary>Sends all of it and, unless it is negative, the descriptor with its first byte. What a stream does not
        /// take whole is EAGAIN. 0: sent.</summary>
        internal static int Send(int fd, ReadOnlySpan<byte> bytes, int descriptor)
        {
            // Aligned as cmsghdr is: stackalloc of long.
            long* control = stackalloc long[CmsgSpace / 8];
            fixed (byte* at = bytes)
            {
                Iovec piece = new Iovec { Base = at, Length = (ulong)bytes.Length };
                Msghdr message = new Msghdr { Pieces = &piece, Count = 1 };
                if (descriptor >= 0)
                {
                    control[0] = CmsgHeader + 4;
                    ((int*)control)[2] = SolSocket;
                    ((int*)control)[3] = ScmRights;
                    control[2] = descriptor; // with its padding
                    message.Control = control;
                    message.ControlLength = CmsgHeader + 8;
                }
                long sent;
                do
                {
                    sent = Libc.Result((long)sendmsg(fd, &message, MsgNosignal | MsgDontwait));
                }
                while (sent == -Errno.EINTR);
                return sent < 0 ? (int)sent : sent == bytes.Length ? 0 : -Errno.EAGAIN;
            }
        }

        /// <summary>Takes what is there, at most as much as fits. EAGAIN if there is nothing yet; 0: received.</summary>
        internal static int Receive(int fd, Span<byte> bytes, out Received received)
        {
            received = new Received { Descriptors = new List<int>() };
            long* control = stackalloc long[CmsgSpace / 8];
            fixed (byte* at = bytes)
            {
                Iovec piece = new Iovec { Base = at, Length = (ulong)bytes.Length };
                Msghdr message;
                long got;
                do
                {
                    message = new Msghdr { Pieces = &piece, Count = 1, Control = control, ControlLength = CmsgSpace };
                    got = Libc.Result((long)recvmsg(fd, &message, MsgCmsgCloexec | MsgDontwait));
                }
                while (got == -Errno.EINTR);
                if (got < 0)
                {
                    return (int)got;
                }
                received.Bytes = (int)got;
                received.Truncated = (message.Flags & MsgCtrunc) != 0;
                TakeDescriptors((byte*)control, (long)message.ControlLength, received.Descriptors);
                return 0;
            }
        }

        /// <summary>The descriptors in control messages, which the kernel wrote, not the peer.</summary>
        private static void TakeDescriptors(byte* control, long filled, List<int> into)
        {
            for (long at = 0; at + CmsgHeader <= filled;)
            {
                long length = *(long*)(control + at);
                if (length < CmsgHeader || length > filled - at)
                {
                    return;
                }
                bool rights = *(int*)(control + at + 8) == SolSocket && *(int*)(control + at + 12) == ScmRights;
                for (long next = CmsgHeader; rights && next + 4 <= length; next += 4)
                {
                    into.Add(*(int*)(control + at + next));
                }
                at += (length + 7) & ~7L;
            }
        }

        /// <summary>Who is at the other end of a connected socket.</summary>
        internal static int PeerCredentials(int fd, out Credentials peer)
        {
            int* ucred = stackalloc int[3]; // pid, uid, gid
            uint length = 12;
            int result = Libc.Result(getsockopt(fd, SolSocket, SoPeercred, ucred, &length));
            peer = result < 0 ? default : new Credentials(Math.Max(ucred[0], 0), (uint)ucred[1]);
            return result;
        }

        /// <summary>Says whether the other end of a connected socket is closed: the peer closed it or died. Bytes that the
        /// peer sends say nothing and are left alone.</summary>
        internal static bool HungUp(int fd)
        {
            PollFd polled = new PollFd { Fd = fd, Events = PollHangUp };
            long* now = stackalloc long[2];
            now[0] = now[1] = 0;
            int result;
            do
            {
                result = Libc.Result(ppoll(&polled, 1, now, null));
            }
            while (result == -Errno.EINTR);
            // A descriptor that is closed (NVAL) counts too: waiting on it would wait forever.
            return result < 0 || (polled.Returned & HungUpBits) != 0;
        }

        /// <summary>Waits until one of them is ready, for at most this many nanoseconds (long.MaxValue: forever). How many are; 0
        /// as well where a signal came: a caller with a deadline checks it again.</summary>
        internal static int Poll(PollFd* polled, int count, long nanoseconds)
        {
            long* time = stackalloc long[2];
            time[0] = Math.Max(nanoseconds, 0) / 1_000_000_000;
            time[1] = Math.Max(nanoseconds, 0) % 1_000_000_000;
            int result = Libc.Result(ppoll(polled, (ulong)count, nanoseconds == long.MaxValue ? null : time, null));
            if (result != -Errno.EINTR)
            {
                return result;
            }
            for (int i = 0; i < count; i++)
            {
                polled[i].Returned = 0;
            }
            return 0;
        }

        /// <summary>Gives a socket its mode before it has a name, so that at no time the name has more permission bits than
        /// asked for.</summary>
        internal static int ModeBeforeBind(int fd, uint mode) => Libc.Result(Libc.fchmod(fd, mode));

        /// <summary>Gives the socket that was just bound exactly these permission bits, whatever the umask took away. ENOTSOCK:
        /// something else has the name now.</summary>
        internal static int SocketMode(int dir, string file, uint mode)
        {
            // O_PATH and no links followed: what is checked here is what is changed below, also if the name changes meanwhile.
            int fd = Files.OpenWith(dir, file, Files.PathOnly | Files.NoFollow);
            if (fd < 0)
            {
                return fd;
            }
            try
            {
                int result = Files.Stat(fd, out Stat stat);
                if (result < 0)
                {
                    return result;
                }
                if (!stat.IsSocket)
                {
                    return -Errno.ENOTSOCK;
                }
                return stat.Permissions == mode ? 0 : Libc.Result(Libc.chmod(Libc.CString(Files.ProcPath(fd)), mode));
            }
            finally
            {
                Files.Close(fd);
            }
        }

        /// <summary>The number that stands for every user who has none in our user namespace: it does not say who
        /// the user is.</summary>
        internal static uint OverflowUid()
        {
            return uint.TryParse(Files.ReadText("/proc/sys/kernel/overflowuid").Trim(), out uint uid) ? uid : 65534;
        }

        /// <summary>Writes a sockaddr_un, and says how long it is. What begins with '@' is a file's name like any other.</summary>
        private static int Address(string path, byte* to)
        {
            int length = Names.LengthOf(path);
            if (length < 1 || length > PathMax)
            {
                return -Errno.EINVAL;
            }
            new Span<byte>(to, SockaddrSize).Clear();
            *(ushort*)to = AfUnix;
            Encoding.UTF8.GetBytes(path, new Span<byte>(to + SockaddrPath, length));
            return SockaddrPath + length + 1;
        }

        /// <summary>struct pollfd.</summary>
        [StructLayout(LayoutKind.Sequential)]
        internal struct PollFd
        {
            internal int Fd;
            internal short Events;
            internal short Returned;
        }

        [StructLayout(LayoutKind.Sequential)]
        private struct Iovec
        {
            internal void* Base;
            internal ulong Length;
        }

        /// <summary>struct msghdr of a 64-bit Linux; where musl has 32 bits and padding, the padding is 0.</summary>
        [StructLayout(LayoutKind.Explicit, Size = 56)]
        private struct Msghdr
        {
            [FieldOffset(16)]
            internal Iovec* Pieces;
            [FieldOffset(24)]
            internal ulong Count;
            [FieldOffset(32)]
            internal void* Control;
            [FieldOffset(40)]
            internal ulong ControlLength;
            [FieldOffset(48)]
            internal int Flags;
        }

        [DllImport(Lib, SetLastError = true)]
        private static extern int socket(int domain, int type, int protocol);

        [DllImport(Lib, SetLastError = true)]
        private static extern int bind(int fd, byte* address, uint length);

        [DllImport(Lib, SetLastError = true)]
        private static extern int listen(int fd, int backlog);

        [DllImport(Lib, SetLastError = true)]
        private static extern int connect(int fd, byte* address, uint length);

        [DllImport(Lib, SetLastError = true)]
        private static extern int accept4(int fd, byte* address, uint* length, int flags);

        [DllImport(Lib, SetLastError = true)]
        private static extern IntPtr sendmsg(int fd, Msghdr* message, int flags);

        [DllImport(Lib, SetLastError = true)]
        private static extern IntPtr recvmsg(int fd, Msghdr* message, int flags);

        [DllImport(Lib, SetLastError = true)]
        private static extern int getsockopt(int fd, int level, int name, void* value, uint* length);

        [DllImport(Lib, SetLastError = true)]
        private static extern int ppoll(PollFd* polled, ulong count, long* time, void* signals);
    }
}
