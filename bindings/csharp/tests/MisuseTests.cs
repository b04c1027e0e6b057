using System;
using System.Buffers;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>What a program does by mistake: it gets an exception, and what others sent or will send is as it was.</summary>
    internal static class MisuseTests
    {
        private static readonly RingOptions Small = new RingOptions { Capacity = 4096 };

        [Test]
        private static void NothingByDefault()
        {
            Check.Throws<ObjectDisposedException>(() => default(Message).Data.ToArray());
            Check.Throws<ObjectDisposedException>(() => Count(default));
            Check.Throws<ObjectDisposedException>(() => { foreach (Message m in default(Batch)) { } });
            Check.Throws<ObjectDisposedException>(() => default(Slot).Commit(1));
            Check.Throws<ObjectDisposedException>(() => default(Slot).Data.Clear());
            Check.Throws<ObjectDisposedException>(() => default(TensorSlot).Commit());
            Check.Throws<ObjectDisposedException>(() => default(BatchWriter).Add(1, 1));
            Check.Throws<ObjectDisposedException>(() => default(BatchWriter).Flush());
            Check.Throws<ObjectDisposedException>(() => Console.Out.Write(default(MessageLease).Length));
            Check.Throws<ObjectDisposedException>(() => Console.Out.Write(default(MessageLease).Memory.Length));
            default(Message).Dispose();
            default(Batch).Dispose();
            default(Slot).Dispose();
            default(TensorSlot).Dispose();
            default(BatchWriter).Dispose();
            default(MessageLease).Dispose();
        }

        private static int Count(Batch batch) => batch.Count;

        [Test]
        private static void NamesThatAreNone()
        {
            var calls = new Action<string>[]
            {
                n => Sender.Create(n).Dispose(),
                n => Receiver.Open(n).Dispose(),
                n => Sender.OpenOrCreate(n).Dispose(),
                n => Region.Create(n, 1).Dispose(),
                n => Region.OpenReadOnly(n).Dispose(),
                n => Listener.Bind(n).Dispose(),
                n => Bus.Connect(n, new ConnectOptions { Timeout = TimeSpan.Zero }).Dispose(),
            };
            foreach (Action<string> call in calls)
            {
                Check.Throws<ArgumentNullException>(() => call(null!));
                foreach (string name in new[] { "", ".", "..", "a\0b", "/dev/shm/a\0b", "a\ud800", "/dev/shm/\udc00a", "/dev/shm/" })
                {
                    Check.Fails(ErrorKind.InvalidArgument, () => call(name));
                }
            }
        }

        [Test]
        private static void TimesAtTheirLimits()
        {
            (Sender tx, Receiver rx) = Ring.Pair(Small);
            foreach (TimeSpan time in new[] { TimeSpan.FromTicks(-1), TimeSpan.MinValue, TimeSpan.FromMilliseconds(-2) })
            {
                Check.Fails(ErrorKind.InvalidArgument, () => rx.Recv(time));
                Check.Fails(ErrorKind.InvalidArgument, () => rx.RecvBatch(1, time));
                Check.Fails(ErrorKind.InvalidArgument, () => rx.RecvInto(new byte[1], out _, time));
                Check.Fails(ErrorKind.InvalidArgument, () => rx.RecvMemory(time));
                Check.Fails(ErrorKind.InvalidArgument, () => tx.Send(1, 0, default, time));
                Check.Fails(ErrorKind.InvalidArgument, () => tx.Reserve(1, time));
            }
            Check.Fails(ErrorKind.TimedOut, () => rx.Recv(TimeSpan.Zero));
            Check.Fails(ErrorKind.TimedOut, () => rx.Recv(TimeSpan.FromTicks(1)));
            foreach (TimeSpan time in new[] { TimeSpan.MaxValue, Timeout.InfiniteTimeSpan, TimeSpan.FromDays(1_000_000) })
            {
                Thread later = new Thread(() =>
                {
                    Thread.Sleep(20);
                    tx.Send(1, default);
                });
                later.Start();
                rx.Recv(time).Dispose();
                later.Join();
            }
            tx.Dispose();
            rx.Dispose();
        }

        /// <summary>A loop of time-outs learns of an end too.</summary>
        [Test]
        private static void AnEndIsToldBeforeATimeOut()
        {
            using var dir = new Folder();
            foreach (TimeSpan time in new[] { TimeSpan.Zero, TimeSpan.FromTicks(1), TimeSpan.FromTicks(100) })
            {
                (Sender tx, Receiver rx) = Ring.Pair(Small);
                tx.Dispose();
                Check.Fails(ErrorKind.Closed, () => rx.Recv(time));
                rx.Dispose();
                Sender named = Sender.Create(dir.At("r"), new RingOptions { Capacity = 4096, Discard = true });
                Receiver reader = Receiver.Open(dir.At("r"));
                Check.Fails(ErrorKind.TimedOut, () => reader.Recv(time));
                named.Send(1, new byte[3000]);
                Check.Fails(ErrorKind.TimedOut, () => named.Send(1, 0, new byte[3000], time));
                reader.Dispose();
                Check.Fails(ErrorKind.Closed, () => named.Send(1, 0, new byte[3000], time));
                reader = Receiver.Open(dir.At("r"));
                reader.Recv(time).Dispose();
                named.Dispose();
                Check.Fails(ErrorKind.Closed, () => reader.Recv(time));
                Check.Fails(ErrorKind.Closed, () => reader.RecvBatch(3, time));
                reader.Dispose();
            }
        }

        /// <summary>A token whose source was reset has forgotten whom to tell.</summary>
        [Test]
        private static void ATokenThatWasResetEndsAWaitAtOnce()
        {
            MethodInfo? reset = typeof(CancellationTokenSource).GetMethod("TryReset");
            if (reset == null)
            {
                throw new SkipException("this runtime cannot reset a token");
            }
            (Sender tx, Receiver rx) = Ring.Pair(Small);
            long best = long.MaxValue;
            for (int i = 0; i < 5; i++)
            {
                using var source = new CancellationTokenSource();
                Check.Fails(ErrorKind.TimedOut, () => rx.Recv(TimeSpan.FromMilliseconds(1), source.Token));
                Check.That((bool)reset.Invoke(source, null)!, "the token is reset");
                long ended = 0;
                var waiting = new Thread(() =>
                {
                    Check.Throws<OperationCanceledException>(() => rx.Recv(null, source.Token));
                    ended = Stopwatch.GetTimestamp();
                });
                waiting.Start();
                Thread.Sleep(20);
                long began = Stopwatch.GetTimestamp();
                source.Cancel();
                waiting.Join();
                best = Math.Min(best, ended - began);
            }
            Check.That(best < Stopwatch.Frequency / 30, "the fastest of 5 took " + best * 1000 / Stopwatch.Frequency + " ms");
            tx.Dispose();
            rx.Dispose();
        }

        [Test]
        private static void ACopyOfABatchWriterThatIsBehindIsRefused()
        {
            (Sender tx, Receiver rx) = Ring.Pair(Small);
            Copied(tx);
            for (int i = 0; i < 3; i++)
            {
                using Message m = rx.Recv(Wait.Long);
                Check.Equal((uint)i + 1, m.TypeId, "the message");
            }
            Check.Equal(0L, rx.PendingBytes, "there are no more");
            tx.Send(4, default);
            rx.Recv(Wait.Long).Dispose();
            tx.Dispose();
            rx.Dispose();
        }

        private static void Copied(Sender tx)
        {
            BatchWriter batch = tx.StartBatch();
            BatchWriter copy = batch;
            batch.Add(1, 8);
            batch.Add(2, 8);
            batch.Flush();
            bool refused = false;
            try
            {
                copy.Add(9, 8);
                copy.Flush();
            }
            catch (InvalidOperationException)
            {
                refused = true;
            }
            Check.That(refused, "the copy is refused");
            batch.Add(3, 8);
            batch.Flush();
            batch.Dispose();
            copy.Dispose();
        }

        /// <summary>Memory that throws, as that of a message which was released does.</summary>
        private sealed class Broken : MemoryManager<byte>
        {
            public override Memory<byte> Memory => CreateMemory(8);

            public override Span<byte> GetSpan() => throw new ObjectDisposedException("broken");

            public override MemoryHandle Pin(int elementIndex = 0) => throw new ObjectDisposedException("broken");

            public override void Unpin()
            {
            }

            protected override void Dispose(bool disposing)
            {
            }
        }

        [Test]
        private static void ABatchOfMemoryThatThrowsSaysWhatWasSent()
        {
            (Sender tx, Receiver rx) = Ring.Pair(Small);
            ReadOnlyMemory<byte> good = new byte[8], bad = new Broken().Memory;
            Check.Equal(2, tx.SendBatch(1, new[] { good, good, bad, good }), "messages sent before it");
            for (int i = 0; i < 2; i++)
            {
                Check.That(rx.TryRecv(out Message m), "message " + i + " is there");
                m.Dispose();
            }
            Check.Throws<ObjectDisposedException>(() => tx.SendBatch(1, new[] { bad, good }));
            Check.Throws<ObjectDisposedException>(() => tx.SendVectored(1, new[] { good, bad }));
            Check.Equal(0L, rx.PendingBytes, "nothing of those");
            tx.Send(5, default);
            rx.Recv(Wait.Long).Dispose();
            Check.Equal(0L, rx.PendingBytes, "and nothing after");
            tx.Dispose();
            rx.Dispose();
        }

        private sealed class Full : IBufferWriter<byte>
        {
            public void Advance(int count)
            {
            }

            public Memory<byte> GetMemory(int sizeHint = 0) => throw new InvalidOperationException("full");

            public Span<byte> GetSpan(int sizeHint = 0) => throw new InvalidOperationException("full");
        }

        [Test]
        private static void AWriterThatThrowsLosesNoMessage()
        {
            (Sender tx, Receiver rx) = Ring.Pair(Small);
            tx.Send(3, new byte[] { 1, 2 });
            Check.Throws<InvalidOperationException>(() => rx.RecvAppend(new Full(), Wait.Long));
            var writer = new ArrayBufferWriter<byte>();
            Check.Equal(3u, rx.RecvAppend(writer, Wait.Long).TypeId, "it is still there");
            Check.Same(new byte[] { 1, 2 }, writer.WrittenSpan, "its bytes");
            Check.Equal(0L, rx.PendingBytes, "once");
            tx.Dispose();
            rx.Dispose();
        }

        /// <summary>On a disk, where 2 GiB that nobody touches take no memory.</summary>
        [Test]
        private static void ARegionTooLongForASpanCanBeDisposed()
        {
            string path = Path.Combine(AppContext.BaseDirectory, "region-" + Process.GetCurrentProcess().Id);
            Region region;
            try
            {
                region = Region.Create(path, int.MaxValue + 1L, new RegionOptions { AllowDisk = true });
            }
            catch (RamwayException e)
            {
                throw new SkipException("no region of 2 GiB there: " + e.Message);
            }
            Check.Fails(ErrorKind.TooLarge, () => region.Data.Clear());
            Check.Fails(ErrorKind.TooLarge, () => region.View.ToArray());
            Check.Fails(ErrorKind.TooLarge, () => region.Memory.ToArray());
            Check.Equal(1, region.Slice(int.MaxValue, 1).Length, "its last byte");
            Task disposing = Task.Run(region.Dispose);
            Check.That(disposing.Wait(TimeSpan.FromSeconds(10)), "Dispose ends");
        }

        [Test]
        private static async Task AStreamThatIsLeftHalfWayGoesOn()
        {
            (Sender tx, Receiver rx) = Ring.Pair(Small);
            for (uint i = 0; i < 4; i++)
            {
                tx.Send(i, default);
            }
            await foreach (MessageLease m in rx.ReadAllAsync())
            {
                Check.Equal(0u, m.TypeId, "the first");
                Check.That(await Kind(rx.WaitToReadAsync()) == ErrorKind.Busy, "busy while one is out");
                break;
            }
            LeaveHalfWay(rx);
            await foreach (MessageLease m in rx.ReadAllAsync())
            {
                Check.Equal(2u, m.TypeId, "the third");
                m.Dispose();
                m.Dispose();
                Check.That(await rx.WaitToReadAsync(), "released, another is there");
                break;
            }
            rx.Recv(Wait.Long).Dispose();
            Task<bool> first = rx.WaitToReadAsync().AsTask();
            bool second = false;
            try
            {
                await rx.WaitToReadAsync();
            }
            catch (InvalidOperationException)
            {
                second = true;
            }
            Check.That(second, "two at once");
            tx.Dispose();
            Check.That(!await first && !await rx.WaitToReadAsync() && !await rx.WaitToReadAsync(), "false forever after the end");
            rx.Dispose();
            Check.That(await Kind(rx.WaitToReadAsync()) == ErrorKind.Detached, "closed");
        }

        private static void LeaveHalfWay(Receiver rx)
        {
            foreach (Message m in rx.ReadAll())
            {
                Check.Equal(1u, m.TypeId, "the second");
                break;
            }
        }

        private static async Task<ErrorKind?> Kind(ValueTask<bool> task)
        {
            try
            {
                await task;
            }
            catch (RamwayException e)
            {
                return e.Kind;
            }
            return null;
        }

        [Test]
        private static async Task NothingIsLeftBehind()
        {
            using var dir = new Folder();
            await LiveAndLet(dir, 20);
            int files = 0;
            for (int i = 0; i < 5; i++)
            {
                await LiveAndLet(dir, 100);
                int nowFiles = Directory.GetFileSystemEntries("/proc/self/fd").Length;
                int nowMaps = File.ReadAllText("/proc/self/maps").Split('\n').Count(l => l.Contains(dir.Path, StringComparison.Ordinal));
                if (i > 0)
                {
                    Check.That(nowFiles <= files + 20, nowFiles + " descriptors, and " + files + " before");
                    Check.Equal(0, nowMaps, "mappings of what is closed");
                }
                files = nowFiles;
            }
        }

        private static async Task LiveAndLet(Folder dir, int count)
        {
            for (int i = 0; i < count; i++)
            {
                using Sender tx = Sender.Create(dir.At("r" + i), new RingOptions { Capacity = 4096, Discard = true });
                using Receiver rx = Receiver.Open(dir.At("r" + i));
                using Region region = Region.Create(dir.At("s" + i), 4096);
                using var source = new CancellationTokenSource();
                Task<bool> wait = rx.WaitToReadAsync(source.Token).AsTask();
                Task<uint> other = region.WaitAsync(region.Count, source.Token).AsTask();
                if (i % 2 == 0)
                {
                    source.Cancel();
                }
                else
                {
                    rx.Dispose();
                    region.Dispose();
                }
                await Task.WhenAll(Over(wait), Over(other));
            }
        }

        private static Task Over(Task task) => task.ContinueWith(t => Check.That(!t.IsCompletedSuccessfully, "it did not succeed"),
            TaskScheduler.Default);

        /// <summary>The shortest program: send, dispose, and read until the sender has closed.</summary>
        [Test]
        private static async Task TheShortestProgram()
        {
            using var dir = new Folder();
            string name = dir.At("prices");
            using var tx = Sender.OpenOrCreate(name);
            using var rx = Receiver.OpenOrCreate(name);

            tx.Send(7, 42, new byte[] { 1, 2, 3 });
            tx.Dispose();
            var lines = new StringWriter();
            await foreach (MessageLease message in rx.ReadAllAsync())
            {
                lines.WriteLine($"{message.Tag}: {message.Length} bytes");
            }
            Check.Equal("42: 3 bytes", lines.ToString().TrimEnd(), "what it prints");
        }
    }
}
