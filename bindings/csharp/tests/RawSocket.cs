using System;
using System.IO;
using System.Runtime.InteropServices;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>A Unix socket that says what no correct program says.</summary>
    internal sealed unsafe class RawSocket : IDisposable
    {
        private RawSocket(int fd) => Fd = fd;

        internal int Fd { get; private set; }

        /// <summary>Two connected ones.</summary>
        internal static (RawSocket, RawSocket) Pair()
        {
            int* fds = stackalloc int[2];
            Check.Equal(0, socketpair(1, 1 | 0x80000 | 0x800, 0, fds), "socketpair");
            return (new RawSocket(fds[0]), new RawSocket(fds[1]));
        }

        /// <summary>Connects without a word.</summary>
        internal static RawSocket Dial(string path)
        {
            int fd = Sockets.Stream();
            Check.Equal(0, Sockets.Connect(fd, path), "connecting to " + path);
            return new RawSocket(fd);
        }

        internal static RawSocket Listen(string path)
        {
            int fd = Sockets.Stream();
            Check.Equal(0, Sockets.Bind(fd, path), "binding " + path);
            Check.Equal(0, Sockets.Listen(fd, 10), "listening at " + path);
            return new RawSocket(fd);
        }

        /// <summary>The next connection; null once this is closed, or nobody has come for long.</summary>
        internal RawSocket? Accept()
        {
            int fd = Readable() ? Sockets.Accept(Fd) : -1;
            return fd < 0 ? null : new RawSocket(fd);
        }

        internal void Send(ReadOnlySpan<byte> message, params int[] descriptors)
        {
            int space = 16 + ((4 * descriptors.Length + 7) & ~7);
            byte[] control = new byte[space];
            BitConverter.TryWriteBytes(control, 16L + 4 * descriptors.Length);
            control[8] = control[12] = 1; // SOL_SOCKET, SCM_RIGHTS
            Buffer.BlockCopy(descriptors, 0, control, 16, 4 * descriptors.Length);
            fixed (byte* at = message, rights = control)
            {
                long* piece = stackalloc long[] { (long)at, message.Length };
                long* header = stackalloc long[] { 0, 0, (long)piece, 1, 0, 0, 0 };
                if (descriptors.Length != 0)
                {
                    header[4] = (long)rights;
                    header[5] = space;
                }
                long sent = (long)sendmsg(Fd, header, 0x4000);
                Check.Equal((long)message.Length, sent, "sent");
            }
        }

        /// <summary>What comes, until the buffer is full or the other side hangs up: how many bytes.</summary>
        internal int Read(Span<byte> buffer)
        {
            int filled = 0;
            while (filled < buffer.Length)
            {
                Check.That(Readable(), "nothing came");
                int result = Sockets.Receive(Fd, buffer.Slice(filled), out Received got);
                for (int i = 0; i < got.Descriptors.Count; i++)
                {
                    Files.Close(got.Descriptors[i]);
                }
                if (result == -Errno.ECONNRESET || (result == 0 && got.Bytes == 0))
                {
                    break;
                }
                Check.Equal(0, result, "receiving");
                filled += got.Bytes;
            }
            return filled;
        }

        /// <summary>One whole message.</summary>
        internal byte[] Message()
        {
            byte[] message = new byte[Facts.HandshakeSize];
            int got = Read(message);
            Check.Equal(Facts.HandshakeSize, got, "the length of the answer");
            return message;
        }

        /// <summary>Whether something has come that was not read.</summary>
        internal bool HasAnswer
        {
            get
            {
                var polled = new Sockets.PollFd { Fd = Fd, Events = Sockets.PollIn };
                return Sockets.Poll(&polled, 1, 0) != 0;
            }
        }

        /// <summary>Says no more.</summary>
        internal void ShutDown() => shutdown(Fd, 1);

        public void Dispose()
        {
            if (Fd >= 0)
            {
                Files.Close(Fd);
                Fd = -1;
            }
        }

        private bool Readable()
        {
            var polled = new Sockets.PollFd { Fd = Fd, Events = Sockets.PollIn };
            for (WaitLimit end = WaitLimit.Of(Wait.Long); !end.Passed;)
            {
                if (Sockets.Poll(&polled, 1, end.Left) != 0)
                {
                    return true;
                }
            }
            return false;
        }

        /// <summary>How many descriptors this process has of files whose names begin so.</summary>
        internal static int OpenDescriptors(params string[] starts)
        {
            // What an earlier test has forgotten is closed by its finalizer, and not in between.
            GC.Collect();
            GC.WaitForPendingFinalizers();
            int count = 0;
            foreach (string entry in Directory.GetFileSystemEntries("/proc/self/fd"))
            {
                string target = LinkAt(entry);
                count += Array.Exists(starts, start => target.StartsWith(start, StringComparison.Ordinal)) ? 1 : 0;
            }
            return count;
        }

        /// <summary>Where a symbolic link leads; empty if it is none.</summary>
        internal static string LinkAt(string path)
        {
            byte[] to = new byte[4096];
            fixed (byte* at = to)
            {
                long length = (long)readlink(Libc.CString(path), at, (UIntPtr)to.Length);
                return System.Text.Encoding.UTF8.GetString(to, 0, (int)Math.Max(length, 0));
            }
        }

        /// <summary>A message of the handshake, with one byte changed.</summary>
        internal static byte[] Changed(HandshakeType type, int at, byte to, ErrorKind status = 0, ulong size = 0)
        {
            byte[] message = new byte[Facts.HandshakeSize];
            Handshake.Encode(message, type, status, size);
            message[at] = to;
            return message;
        }

        internal static byte[] Encoded(HandshakeType type, ErrorKind status = 0, ulong size = 0) =>
            Changed(type, 0, (byte)'R', status, size);

        [DllImport("libc", SetLastError = true)]
        private static extern int socketpair(int domain, int type, int protocol, int* fds);

        [DllImport("libc", SetLastError = true)]
        private static extern IntPtr sendmsg(int fd, void* message, int flags);

        [DllImport("libc")]
        private static extern IntPtr readlink(byte[] path, byte* to, UIntPtr length);

        [DllImport("libc", SetLastError = true)]
        private static extern int shutdown(int fd, int how);
    }
}
