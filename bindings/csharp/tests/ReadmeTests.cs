using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Win32.SafeHandles;

namespace Ramway.Tests
{
    /// <summary>The programs of README.md, line by line, run.</summary>
    internal static class ReadmeTests
    {
        private static readonly List<string> Shown = new List<string>();

        private static void Show(uint typeId, ReadOnlySpan<byte> data)
        {
            lock (Shown)
            {
                Shown.Add(typeId + ":" + Encoding.UTF8.GetString(data));
            }
        }

        private static void ExpectShown(params string[] what)
        {
            lock (Shown)
            {
                Check.Equal(string.Join(" ", what), string.Join(" ", Shown), "what was shown");
                Shown.Clear();
            }
        }

        private static int Draw(Span<byte> data)
        {
            data[0] = (byte)'*';
            return 1;
        }

        private static void SendFrames()
        {
            using var sender = Sender.OpenOrCreate("frames", new RingOptions { Capacity = 8 << 20 });
            sender.Send(1, Encoding.UTF8.GetBytes("copied in"));
            using (Slot slot = sender.Reserve(1 << 20))      // room in the ring, written in place
            {
                int length = Draw(slot.Data);
                slot.Commit(2, tag: 7, length);              // without a commit nothing of it remains
            }
        }

        private static void ReceiveFrames()
        {
            using var receiver = Receiver.OpenOrCreate("frames", new RingOptions { Capacity = 8 << 20 });
            foreach (Message message in receiver.ReadAll())  // each is released after the body; ends when the sender closed
            {
                Show(message.TypeId, message.Data);          // the bytes in the ring, not a copy
            }
        }

        private static void WithoutWaiting(Receiver receiver)
        {
            if (receiver.TryRecv(out Message message))
            {
                using (message)
                {
                    Show(message.TypeId, message.Data);
                }
            }
            using (Batch batch = receiver.RecvBatch(64, TimeSpan.FromSeconds(5)))
            {
                foreach (Message one in batch)
                {
                    Show(one.TypeId, one.Data);
                }
            }
        }

        private static async Task Async(Sender sender, Receiver receiver, byte[] payload, Stream file, CancellationToken token)
        {
            await sender.SendAsync(1, payload, cancellationToken: token);
            sender.Dispose();
            await foreach (MessageLease message in receiver.ReadAllAsync(token))
            {
                await file.WriteAsync(message.Memory, token);
            }
        }

        private static void Serve()
        {
            using var listener = Listener.Bind("engine");
            using Bus bus = listener.Accept();
            foreach (Message message in bus.Receiver.ReadAll())
            {
                bus.Sender.Send(message.TypeId, message.Tag, message.Data);
            }
        }

        private static void Ask()
        {
            using var bus = Bus.Connect("engine");           // waits for a listener that is not there yet: 10 s unless told otherwise
            bus.Sender.Send(1, Encoding.UTF8.GetBytes("anyone?"));
            using Message answer = bus.Receiver.Recv();
            Show(answer.TypeId, answer.Data);
        }

        private static void WriteState(ManualResetEventSlim opened, ManualResetEventSlim read)
        {
            using var region = Region.OpenOrCreate("state", 4096);
            opened.Wait();
            Interlocked.Increment(ref region.Int64At(0));    // 8 bytes that all processes share
            region.Write(64, Encoding.UTF8.GetBytes("anything"));
            region.Notify();                                 // a process that waits sees all that was written before
            read.Wait();
        }

        private static void ReadState(ManualResetEventSlim opened, ManualResetEventSlim read)
        {
            using var region = Region.OpenReadOnly("state", new RegionOptions { Timeout = TimeSpan.FromSeconds(5) });
            opened.Set();
            region.Wait(TimeSpan.FromSeconds(5));
            long count = region.ReadInt64(0);
            Check.Equal(1L, count, "the count");
            read.Set();
        }

        private static ErrorKind Fail(Receiver receiver)
        {
            try
            {
                receiver.Recv(TimeSpan.FromSeconds(1)).Dispose();
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.Closed)    // the peer closed, and all of its messages were received
            {
                return e.Kind;
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.PeerDead)  // its process died, likewise; noticed within 200 ms
            {
                return e.Kind;
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.TimedOut)  // nothing came for a second
            {
                return e.Kind;
            }
            return 0;
        }

        private static void Both(Action one, Action other)
        {
            Exception? failure = null;
            var thread = new Thread(() =>
            {
                try
                {
                    one();
                }
                catch (Exception e)
                {
                    failure = e;
                }
            });
            thread.Start();
            other();
            thread.Join();
            Check.That(failure == null, "the other thread: " + failure);
        }

        private static void Follow(Receiver receiver)
        {
            for (;;)
            {
                try
                {
                    using Message message = receiver.Recv(TimeSpan.FromMilliseconds(50));
                    Show(message.TypeId, message.Data);
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.TimedOut)
                {
                    // Nothing for 50 ms: time for other work.
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.PeerDead)
                {
                    receiver.WaitForPeer(TimeSpan.FromSeconds(30));  // its successor
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.Closed)
                {
                    break;                                   // that was all
                }
            }
        }

        private static void SendAll(Sender sender)
        {
            sender.Send(4, Encoding.UTF8.GetBytes("half"));
            throw new InvalidOperationException("the other half cannot be had");
        }

        private static void Abandoning()
        {
            using var sender = Sender.OpenOrCreate("frames");
            try
            {
                SendAll(sender);
            }
            catch
            {
                sender.Abandon();                            // the receiver gets PeerDead, after what was committed
                throw;
            }
        }

        private static void StartChild(string number)
        {
            Peer child = Peer.Start("inherits", number);
            child.Expect("sent");
        }

        private static void ForAChild()
        {
            using SafeFileHandle ring = Ring.Unnamed(inheritable: true);
            using var receiver = Receiver.FromFd((int)ring.DangerousGetHandle());
            StartChild(ring.DangerousGetHandle().ToString());        // there: Sender.FromFd(int.Parse(args[0]))
            receiver.WaitForPeer(TimeSpan.FromSeconds(30));
            using Message message = receiver.Recv(Wait.Long);
            Show(message.TypeId, message.Data);
        }

        [Test]
        private static void RingOfTwoPrograms()
        {
            Both(SendFrames, ReceiveFrames);
            ExpectShown("1:copied in", "2:*");
        }

        [Test]
        private static void ManyAtATime()
        {
            (Sender tx, Receiver rx) = Ring.Pair();
            foreach (string text in new[] { "a", "b", "c" })
            {
                tx.Send(5, Encoding.UTF8.GetBytes(text));
            }
            WithoutWaiting(rx);
            ExpectShown("5:a", "5:b", "5:c");
            Check.Equal(ErrorKind.TimedOut, Fail(rx), "with nobody sending");
            tx.Dispose();
            Check.Equal(ErrorKind.Closed, Fail(rx), "with the sender closed");
            rx.Dispose();
        }

        [Test]
        private static async Task Asynchronous()
        {
            (Sender tx, Receiver rx) = Ring.Pair();
            var file = new MemoryStream();
            await Async(tx, rx, Encoding.UTF8.GetBytes("to a file"), file, CancellationToken.None);
            rx.Dispose();
            Check.Equal("to a file", Encoding.UTF8.GetString(file.ToArray()), "what was written");
        }

        [Test]
        private static void BusOfTwoPrograms()
        {
            Both(Serve, Ask);
            ExpectShown("1:anyone?");
        }

        [Test]
        private static void RegionOfTwoPrograms()
        {
            using var opened = new ManualResetEventSlim();
            using var read = new ManualResetEventSlim();
            Both(() => WriteState(opened, read), () => ReadState(opened, read));
        }

        [Test]
        private static void TheProducerDied()
        {
            using Receiver rx = Receiver.Create("frames");
            // One that fails, one that is killed, and one that closes.
            Check.Throws<InvalidOperationException>(Abandoning);
            var following = new Beside(() => Follow(rx));
            using Peer dead = Peer.Start("hold", "producer", "frames");
            dead.Expect("attached");
            dead.Tell("send two");
            dead.Expect("done");
            dead.Kill();
            using Peer last = Peer.Start("hold", "producer", "frames");
            last.Expect("attached");
            last.Tell("send three");
            last.Expect("done");
            last.Tell("close");
            last.Expect("done");
            Check.Equal(null, following.End(), "the loop");
            ExpectShown("4:half", "1:two", "1:three");
            last.Finish();
        }

        [Test]
        private static void ARingForAChild()
        {
            ForAChild();
            ExpectShown("1:from the child");
        }

        /// <summary>Every line of a program there is here or in the other files of that name, in this order, with more between.</summary>
        [Test]
        private static void WhatIsShownIsWhatRan()
        {
            string here = ThisFile(), readme = Path.Combine(Path.GetDirectoryName(here)!, "..", "README.md");
            if (!File.Exists(readme))
            {
                throw new SkipException("the sources are not where they were built");
            }
            string[] ran = File.ReadAllLines(here)
                .Concat(new[] { "ReadmeTopicTests.cs", "ReadmeRpcTests.cs" }
                    .SelectMany(file => File.ReadAllLines(Path.Combine(Path.GetDirectoryName(here)!, file))))
                .Select(l => l.Trim()).ToArray();
            string[] lines = File.ReadAllLines(readme);
            int programs = 0;
            for (int i = 0; i < lines.Length; i++)
            {
                if (lines[i] != "```csharp")
                {
                    continue;
                }
                programs++;
                string first = lines[i + 1].Trim();
                int at = Array.IndexOf(ran, first);
                for (i++; lines[i] != "```"; i++)
                {
                    string line = lines[i].Trim();
                    int found = line.Length == 0 ? at : Array.IndexOf(ran, line, Math.Max(at, 0));
                    Check.That(at >= 0 && found >= 0 && found - at < 8, "README.md:" + (i + 1) + " is not run: " + line);
                    at = found;
                }
            }
            Check.Equal(20, programs, "programs in README.md");
        }

        private static string ThisFile([CallerFilePath] string path = "") => path;
    }
}
