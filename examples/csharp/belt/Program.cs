using System;
using System.Globalization;
using System.Threading;
using Ramway;

namespace Belt
{
    /// <summary>
    /// Watches cameras over a conveyor belt: `belt LISTENER [--cameras COUNT] [--every PICTURES] [--slow MILLISECONDS]`. Any
    /// number of cameras connect, each over a bus of its own.
    /// </summary>
    internal static class Program
    {
        private const string Usage = "usage: belt LISTENER [--cameras COUNT] [--every PICTURES] [--slow MILLISECONDS]";

        private static int Main(string[] arguments)
        {
            int cameras = int.MaxValue, every = 60, slow = 0;
            for (int i = 1; i < arguments.Length; i += 2)
            {
                if (i + 1 == arguments.Length || !int.TryParse(arguments[i + 1], out int value) || value < 0)
                {
                    return Fail(Usage);
                }
                switch (arguments[i])
                {
                    case "--cameras":
                        cameras = value;
                        break;
                    case "--every":
                        every = Math.Max(value, 1);
                        break;
                    case "--slow":
                        slow = value;
                        break;
                    default:
                        return Fail(Usage);
                }
            }
            if (arguments.Length == 0)
            {
                return Fail(Usage);
            }
            CultureInfo.DefaultThreadCurrentCulture = CultureInfo.InvariantCulture;
            try
            {
                Watch(arguments[0], cameras, every, slow);
                return 0;
            }
            catch (RamwayException e)
            {
                return Fail("belt: " + e.Message);
            }
        }

        private static void Watch(string name, int cameras, int every, int slow)
        {
            var stop = new CancellationTokenSource();
            var ended = new ManualResetEventSlim();
            Console.CancelKeyPress += (_, e) =>
            {
                e.Cancel = true;
                stop.Cancel();
            };
            // SIGTERM: the process ends when this returns, and until then there is time to close what is open.
            AppDomain.CurrentDomain.ProcessExit += (_, __) =>
            {
                stop.Cancel();
                ended.Wait(TimeSpan.FromSeconds(5));
            };
            try
            {
                Watch(name, cameras, every, slow, stop.Token);
            }
            finally
            {
                ended.Set();
            }
        }

        private static void Watch(string name, int cameras, int every, int slow, CancellationToken stop)
        {
            // Pictures come in, room for 100 of them; what goes back is a number now and then. Rows begin on cache lines.
            var options = new ListenOptions { FromPeer = 8 << 20, ToPeer = 4096, Align = 64 };
            using Listener listener = Listener.Bind(name, options);
            Console.WriteLine("belt: waiting for cameras at " + listener.Path);
            Console.WriteLine(Report.Title);
            var threads = new Thread[Math.Min(cameras, 1024)];
            for (int number = 1; number <= cameras; number++)
            {
                Bus bus;
                try
                {
                    bus = listener.Accept(null, stop);
                }
                catch (OperationCanceledException)
                {
                    break;
                }
                var watcher = new Watcher(number, bus, every, slow, stop);
                Thread? before = threads[number % threads.Length];
                before?.Join();
                threads[number % threads.Length] = new Thread(watcher.Run);
                threads[number % threads.Length].Start();
            }
            foreach (Thread? thread in threads)
            {
                thread?.Join();
            }
        }

        private static int Fail(string why)
        {
            Console.Error.WriteLine(why);
            return 1;
        }
    }
}
