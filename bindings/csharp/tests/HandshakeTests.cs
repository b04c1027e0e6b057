using System;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using Ramway.Sys;

namespace Ramway.Tests
{
    internal static class HandshakeTests
    {
        private const int CloseOnExecFlag = 1;
        private const int GetDescriptorFlags = 1;

        /// <summary>A file of the repository that this is developed in.</summary>
        internal static string RepositoryFile(string path, [CallerFilePath] string here = "") =>
            File.ReadAllText(Path.Combine(Path.GetDirectoryName(here)!, "../../..", path));

        // The example of docs/ABI.md, section 12.
        [Test]
        internal static void HelloIsThePagesExample()
        {
            const string start = "```hex hello\n";
            string page = RepositoryFile("docs/ABI.md");
            int at = page.IndexOf(start, StringComparison.Ordinal);
            Check.That(at >= 0, "the page has no example of HELLO");
            string block = page.Substring(at + start.Length, page.IndexOf("```", at + 3, StringComparison.Ordinal) - at - start.Length);
            byte[] wanted = block.Split('\n', StringSplitOptions.RemoveEmptyEntries)
                .SelectMany(line => line.Split(' ', StringSplitOptions.RemoveEmptyEntries).Skip(1))
                .Select(digits => Convert.ToByte(digits, 16)).ToArray();
            Check.Same(wanted, RawSocket.Encoded(HandshakeType.Hello), "HELLO");
        }

        [Test]
        internal static void MessagesComeOutAsTheyWentIn()
        {
            foreach (HandshakeType type in new[] { HandshakeType.Hello, HandshakeType.Welcome, HandshakeType.Ack })
            {
                byte[] message = RawSocket.Encoded(type, ErrorKind.PeerDead, 0x1122334455667788);
                RamwayException? error = Handshake.Decode(message, type, out uint status, out ulong size);
                Check.That(error == null, type + ": " + error?.Message);
                Check.Equal((uint)ErrorKind.PeerDead, status, "status of " + type);
                Check.Equal(0x1122334455667788ul, size, "size of " + type);
            }
        }

        [Test]
        internal static void WhatIsNotUnderstoodIsRefusedByItsError()
        {
            foreach ((string what, int at, byte to, ErrorKind kind) in new[]
            {
                ("magic", 0, (byte)'r', ErrorKind.AbiMismatch),
                ("byte order", 8, (byte)0x0A, ErrorKind.AbiMismatch),
                ("major version", 0x0C, (byte)2, ErrorKind.AbiMismatch),
                ("minor version", 0x0E, (byte)9, default(ErrorKind)),
                ("required feature", 0x18, (byte)1, ErrorKind.AbiMismatch),
                ("optional feature", 0x1C, (byte)1, default(ErrorKind)),
                ("type", 0x10, (byte)9, ErrorKind.Corrupt),
                ("another type", 0x10, (byte)4, ErrorKind.Corrupt),
                ("reserved", 0x3F, (byte)1, default(ErrorKind)),
                ("a refusal where nobody asked", 0x10, (byte)3, ErrorKind.Corrupt),
            })
            {
                byte[] message = RawSocket.Changed(HandshakeType.Hello, at, to);
                RamwayException? error = Handshake.Decode(message, HandshakeType.Hello, out _, out _);
                Check.Equal(kind, error?.Kind ?? 0, what);
            }
        }

        [Test]
        internal static void ARefusalIsTheErrorThatItCarriesInWhateverVersion()
        {
            foreach ((uint status, ErrorKind kind) in new[]
            {
                (15u, ErrorKind.NoSpace), (14u, ErrorKind.PermissionDenied), (0u, ErrorKind.Os), (99u, ErrorKind.Os),
                (uint.MaxValue, ErrorKind.Os),
            })
            {
                byte[] message = RawSocket.Encoded(HandshakeType.Refuse, (ErrorKind)status);
                message[0x0C] = 7;
                message[0x18] = 0xFF;
                RamwayException? error = Handshake.Decode(message, HandshakeType.Welcome, out _, out _);
                Check.Equal(kind, error?.Kind ?? 0, "status " + status);
                Check.That(error!.Message.Contains("refused", StringComparison.Ordinal), error.Message);
            }
        }

        [Test]
        internal static void WhateverComesIsDecodedOrRefused()
        {
            var random = new Random(12);
            byte[] message = new byte[Facts.HandshakeSize], good = RawSocket.Encoded(HandshakeType.Hello);
            for (int round = 0; round < 100_000; round++)
            {
                Handshake.Encode(message, (HandshakeType)random.Next(6), (ErrorKind)random.Next(), (ulong)random.Next());
                for (int change = random.Next(4); change > 0; change--)
                {
                    message[random.Next(message.Length)] = (byte)random.Next(256);
                }
                bool ours = message.AsSpan(0, 8).SequenceEqual(good.AsSpan(0, 8));
                foreach (HandshakeType expected in new[] { HandshakeType.Hello, HandshakeType.Welcome, HandshakeType.Ack })
                {
                    RamwayException? error = Handshake.Decode(message, expected, out _, out _);
                    Check.That(error != null || ours, "accepted without the magic");
                }
            }
        }

        [Test]
        internal static void AnInboxTakesAMessageInPiecesAndNotAByteMore()
        {
            (RawSocket a, RawSocket b) = RawSocket.Pair();
            using (a)
            {
                byte[] message = RawSocket.Encoded(HandshakeType.Ack);
                using var inbox = new Inbox();
                for (int i = 0; i < message.Length; i++)
                {
                    Check.That(inbox.Fill(b.Fd, out Arrival sofar) == null && sofar == Arrival.Partial, "after " + i + " bytes: " + sofar);
                    Check.Equal(0, Sockets.Send(a.Fd, message.AsSpan(i, 1), -1), "sent");
                }
                a.Send(new byte[] { 1, 2, 3 });
                Check.That(inbox.Fill(b.Fd, out Arrival arrival) == null, "the last byte");
                Check.Equal(Arrival.Whole, arrival, "after the last byte");
                Check.That(inbox.Message(HandshakeType.Ack, 0, out _, out _) == null, "ACK");
                byte[] rest = new byte[9];
                Check.Equal(0, Sockets.Receive(b.Fd, rest, out Received got), "receiving the rest");
                Check.Equal(3, got.Bytes, "left for the next one");
                b.Dispose();
                RamwayException? gone = Handshake.Send(a.Fd, HandshakeType.Hello, 0, 0, -1);
                Check.Equal(ErrorKind.PeerDead, gone?.Kind ?? 0, "sending to one that is gone");
            }
        }

        [Test]
        internal static void DescriptorsAreCountedAndNoneStaysOpen()
        {
            int root = Files.OpenDir("/", true);
            int before = RawSocket.OpenDescriptors("/", "socket:");
            for (int n = 0; n < 12; n++)
            {
                (RawSocket a, RawSocket b) = RawSocket.Pair();
                a.Send(RawSocket.Encoded(HandshakeType.Welcome, 0, 4096), Enumerable.Repeat(root, n).ToArray());
                using var inbox = new Inbox();
                Check.That(inbox.Fill(b.Fd, out Arrival arrival) == null && arrival == Arrival.Whole, n + ": " + arrival);
                RamwayException? error = inbox.Message(HandshakeType.Welcome, 1, out _, out _);
                Check.Equal(n == 1 ? 0 : ErrorKind.Corrupt, error?.Kind ?? 0, n + " descriptors");
                if (n == 1)
                {
                    int taken = inbox.TakeDescriptor();
                    Check.Equal(CloseOnExecFlag, Libc.fcntl(taken, GetDescriptorFlags, 0L), "close-on-exec");
                    Files.Close(taken);
                }
                else if (n <= Sockets.DescriptorsMax)
                {
                    Check.That(error!.Message.Contains("came with " + n + " ", StringComparison.Ordinal), error.Message);
                }
                inbox.Dispose();
                a.Dispose();
                b.Dispose();
            }
            Check.Equal(before, RawSocket.OpenDescriptors("/", "socket:"), "descriptors that are open");
            Files.Close(root);
        }

        [Test]
        internal static void ThePeersUserIsOursOrNamed()
        {
            uint own = Libc.geteuid(), overflow = Sockets.OverflowUid();
            foreach ((uint uid, uint[] others, bool welcome) in new[]
            {
                (own, new uint[0], true),
                (own + 1, new uint[0], false),
                (own + 1, new[] { own + 2, own + 1 }, true),
                (overflow, new[] { overflow }, false),
                (uint.MaxValue, new[] { uint.MaxValue }, false),
            })
            {
                RamwayException? error = Handshake.CheckPeer(new Credentials(1, uid), others, "AllowUids");
                Check.Equal(welcome ? 0 : ErrorKind.PermissionDenied, error?.Kind ?? 0, "user " + uid);
            }
        }
    }
}
