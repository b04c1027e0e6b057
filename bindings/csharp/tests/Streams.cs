using System;
using System.Globalization;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

namespace Ramway.Tests
{
    /// <summary>A stream of messages of every length, which one process makes and another checks.</summary>
    internal static class Mixed
    {
        /// <summary>The length of message number seq: mostly short, now and then 0, any, or the longest.</summary>
        internal static int LengthOf(int seq, int longest)
        {
            uint x = unchecked((uint)seq * 2654435761);
            return seq % 1000 == 999 ? longest
                : seq % 100 == 0 ? 0
                : seq % 50 == 1 ? (int)(x % (uint)(longest + 1))
                : (int)(x % 257) % (longest + 1);
        }

        internal static uint TypeOf(int seq) => (uint)(seq % 60000);

        internal static void Fill(Span<byte> to, int seq)
        {
            for (int i = 0; i < to.Length; i++)
            {
                to[i] = unchecked((byte)(seq + i));
            }
        }

        /// <summary>The number and a checksum of the bytes; never 0.</summary>
        internal static ulong TagOf(int seq, ReadOnlySpan<byte> bytes)
        {
            uint sum = 2166136261;
            foreach (byte b in bytes)
            {
                sum = unchecked((sum ^ b) * 16777619);
            }
            return (ulong)sum << 32 | (uint)(seq + 1);
        }

        internal static void Verify(in Message m, int seq, int longest)
        {
            ReadOnlySpan<byte> bytes = m.Data;
            Check.Equal(LengthOf(seq, longest), bytes.Length, "bytes of message " + seq);
            Check.Equal(bytes.Length, m.Length, "its length");
            Check.Equal(TypeOf(seq), m.TypeId, "its type id");
            Check.Equal(TagOf(seq, bytes), m.Tag, "the tag, with a checksum of the bytes, of message " + seq);
            Check.That(bytes.Length == 0 || bytes[0] == unchecked((byte)seq), "the first byte of message " + seq);
        }

        internal static void Send(Sender tx, int seq, int longest, bool flush)
        {
            using Slot slot = tx.Reserve(LengthOf(seq, longest), Wait.Long);
            Fill(slot.Data, seq);
            ulong tag = TagOf(seq, slot.Data);
            if (flush)
            {
                slot.Commit(TypeOf(seq), tag);
            }
            else
            {
                slot.CommitUnflushed(TypeOf(seq), tag);
            }
        }
    }

    /// <summary>What the processes of the tests of rings do.</summary>
    internal static class RingHelpers
    {
        internal static int Number(string text) => int.Parse(text, CultureInfo.InvariantCulture);

        internal static WaitMode Mode(string text) => Enum.Parse<WaitMode>(text);

        internal static RingOptions Opening(string mode) => new RingOptions { Timeout = Wait.Long, Wait = Mode(mode) };

        /// <summary>NAME COUNT MODE BATCH: opens, sends the mixed stream, closes.</summary>
        [Helper("mixed")]
        private static void SendMixed(string[] args)
        {
            using Sender tx = Sender.Open(args[0], Opening(args[2]));
            int count = Number(args[1]), batch = Number(args[3]), longest = tx.MaxMessageLength;
            for (int seq = 0; seq < count; seq++)
            {
                Mixed.Send(tx, seq, longest, seq % batch == batch - 1);
            }
        }

        /// <summary>OUT IN MODE: sends back what it receives, until the end.</summary>
        [Helper("echo")]
        private static void Echo(string[] args)
        {
            using Receiver rx = Receiver.Open(args[0], Opening(args[2]));
            using Sender tx = Sender.Open(args[1], Opening(args[2]));
            foreach (Message m in rx.ReadAll())
            {
                tx.Send(m.TypeId, m.Tag, m.Data);
            }
        }

        /// <summary>NAME SLOW: numbers without an end, each flushed, until it is killed; goes on where the last one stopped.</summary>
        [Helper("numbers")]
        private static void Numbers(string[] args)
        {
            using Sender tx = Sender.OpenOrCreate(args[0], new RingOptions { Timeout = Wait.Long, Capacity = 1 << 16 });
            int seq = (int)(uint)(tx.LastTag ?? 0);
            Peer.Say("attached");
            for (; ; seq++)
            {
                Mixed.Send(tx, seq, 300, true);
            }
        }

        /// <summary>ROLE NAME: attaches and says "attached"; does as it is told.</summary>
        [Helper("hold")]
        private static void Hold(string[] args)
        {
            var options = new RingOptions { Timeout = Wait.Long };
            if (args[0] == "producer")
            {
                HoldSender(Sender.OpenOrCreate(args[1], options));
            }
            else
            {
                HoldReceiver(Receiver.OpenOrCreate(args[1], options));
            }
        }

        private static void HoldSender(Sender tx)
        {
            Peer.Say("attached");
            for (string line = Peer.Told(); line != ""; line = Peer.Told())
            {
                string[] words = line.Split(' ', 2);
                byte[] bytes = Encoding.ASCII.GetBytes(words.Length > 1 ? words[1] : "");
                switch (words[0])
                {
                    case "send":
                        tx.Send(1, (ulong)bytes.Length, bytes);
                        break;
                    case "unflushed":
                        Slot slot = tx.Reserve(bytes.Length);
                        bytes.CopyTo(slot.Data);
                        slot.CommitUnflushed(1, 77);
                        break;
                    case "reserve":
                        tx.Reserve(bytes.Length).Data[0] = 1;
                        break;
                    case "flush":
                        tx.Flush();
                        break;
                    case "close":
                        tx.Dispose();
                        break;
                    case "abandon":
                        tx.Abandon();
                        break;
                }
                Peer.Say("done");
            }
        }

        private static void HoldReceiver(Receiver rx)
        {
            Peer.Say("attached");
            for (string line = Peer.Told(); line != ""; line = Peer.Told())
            {
                if (line == "close")
                {
                    rx.Dispose();
                    Peer.Say("done");
                    continue;
                }
                Message m = rx.Recv(Wait.Long);
                Peer.Say(Encoding.ASCII.GetString(m.Data));
                if (line == "recv")
                {
                    m.Dispose();
                }
            }
        }

        [DllImport("libc", EntryPoint = "kill")]
        private static extern int SendSignal(int pid, int signal);

        internal static void Stop(Peer peer) => Check.Equal(0, SendSignal(peer.Pid, 19), "SIGSTOP");

        internal static void Continue(Peer peer) => Check.Equal(0, SendSignal(peer.Pid, 18), "SIGCONT");

        internal static string Text(in Message m) => Encoding.ASCII.GetString(m.Data);

        internal static string Receive(Receiver rx)
        {
            using Message m = rx.Recv(Wait.Long);
            return Text(m);
        }

        internal static readonly WaitMode[] Modes = { WaitMode.Hybrid, WaitMode.Block, WaitMode.Spin };

        /// <summary>A thread whose failure is the test's.</summary>
        internal static Thread Beside(Action work, Action<Exception?> ended)
        {
            var thread = new Thread(() =>
            {
                Exception? failed = null;
                try
                {
                    work();
                }
                catch (Exception e)
                {
                    failed = e;
                }
                ended(failed);
            });
            thread.IsBackground = true;
            thread.Start();
            return thread;
        }

        internal static ErrorKind KindOf(Exception? e) => e is RamwayException known ? known.Kind : 0;
    }

    /// <summary>Work in a thread of its own, and what it ended with.</summary>
    internal sealed class Beside
    {
        private readonly Thread _thread;
        private Exception? _failed;

        internal Beside(Action work) => _thread = RingHelpers.Beside(work, e => _failed = e);

        /// <summary>What it threw; null if nothing.</summary>
        internal Exception? End()
        {
            Check.That(_thread.Join(Wait.Long), "the other thread is stuck");
            return _failed;
        }

        /// <summary>The kind of RamwayException that it threw.</summary>
        internal ErrorKind Kind()
        {
            Exception? e = End();
            Check.That(e == null || e is RamwayException, "expected a RamwayException or none, found " + e);
            return RingHelpers.KindOf(e);
        }
    }
}
