using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Ramway;

namespace Dashboard
{
    /// <summary>
    /// The newest values of many sensors, a row for each: `dashboard watch TOPIC... [--every MILLISECONDS] [--updates COUNT]`. A sensor
    /// for it, of which there may be any number at any rate: `dashboard sensor TOPIC [--period MICROSECONDS] [--count COUNT]`.
    /// </summary>
    internal static class Program
    {
        private const string Usage = "usage: dashboard watch TOPIC... [--every MILLISECONDS] [--updates COUNT]\n" +
            "       dashboard sensor TOPIC [--period MICROSECONDS] [--count COUNT]";

        private static async Task<int> Main(string[] arguments)
        {
            CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
            var names = new List<string>();
            var numbers = new Dictionary<string, long>
            {
                ["--every"] = 500, ["--updates"] = long.MaxValue, ["--period"] = 1000, ["--count"] = long.MaxValue,
            };
            for (int i = 1; i < arguments.Length; i++)
            {
                if (!numbers.ContainsKey(arguments[i]))
                {
                    names.Add(arguments[i]);
                }
                else if (i + 1 < arguments.Length && long.TryParse(arguments[i + 1], out long number) && number > 0)
                {
                    numbers[arguments[i++]] = number;
                }
                else
                {
                    return Fail(Usage);
                }
            }
            using var stop = new CancellationTokenSource();
            Console.CancelKeyPress += (_, e) =>
            {
                e.Cancel = true;
                stop.Cancel();
            };
            try
            {
                switch (arguments.FirstOrDefault())
                {
                    case "watch" when names.Count > 0:
                        await Watch(names, TimeSpan.FromMilliseconds(numbers["--every"]), numbers["--updates"], stop.Token);
                        return 0;
                    case "sensor" when names.Count == 1:
                        Measure(names[0], numbers["--period"], numbers["--count"], stop.Token);
                        return 0;
                    default:
                        return Fail(Usage);
                }
            }
            catch (OperationCanceledException)
            {
                return 0;
            }
            catch (RamwayException e)
            {
                return Fail("dashboard: " + e.Message);
            }
        }

        /// <summary>Reads all of them again and again. This is what the ExecuteAsync of a BackgroundService would hold.</summary>
        private static async Task Watch(List<string> names, TimeSpan every, long updates, CancellationToken stop)
        {
            List<Gauge> gauges = names.Select(name => new Gauge(name)).ToList();
            try
            {
                for (long update = 1; update <= updates; update++)
                {
                    await Task.Delay(every, stop);
                    long allocated = 0;
                    foreach (Gauge gauge in gauges)
                    {
                        // Opening allocates, and so does finding nothing to open.
                        bool there = gauge.IsOpen;
                        long before = GC.GetAllocatedBytesForCurrentThread();
                        gauge.Read();
                        allocated += there ? GC.GetAllocatedBytesForCurrentThread() - before : 0;
                    }
                    Show(gauges, update, allocated);
                }
            }
            finally
            {
                gauges.ForEach(gauge => gauge.Dispose());
            }
        }

        private static void Show(List<Gauge> gauges, long update, long allocated)
        {
            if (!Console.IsOutputRedirected)
            {
                // From the top again.
                Console.Write("\x1b[H\x1b[J");
            }
            Console.WriteLine($"update {update}: {allocated} bytes allocated");
            Console.WriteLine("topic                     value      age ms     new      number");
            foreach (Gauge g in gauges)
            {
                string shown = g.Newest.Number == 0
                    ? ""
                    : $"{g.Newest.Value,8:F3} {g.Age.TotalMilliseconds,11:F1} {g.New,7} {g.Newest.Number,11}";
                Console.WriteLine($"{g.Name,-22} {shown} {g.State}".TrimEnd());
            }
        }

        /// <summary>A slow wave, measured at its rate. It never waits for a dashboard.</summary>
        private static void Measure(string name, long period, long count, CancellationToken stop)
        {
            using Publisher publisher = Publisher.OpenOrCreate(name, new TopicOptions
            {
                Capacity = 1 << 16, Timestamps = true, Timeout = TimeSpan.FromSeconds(5),
            });
            // A successor counts on.
            long first = (long)publisher.Seq + 1, began = DateTime.UtcNow.Ticks;
            for (long i = 0; i < count; i++)
            {
                using (Slot slot = publisher.Reserve(Reading.Size, null, stop))
                {
                    new Reading(Math.Sin((first + i) * 0.001), first + i).WriteTo(slot.Data);
                    slot.Commit(Reading.TypeId);
                }
                long early = began + (i + 1) * period * 10 - DateTime.UtcNow.Ticks;
                if (early > 0 && stop.WaitHandle.WaitOne(TimeSpan.FromTicks(early)))
                {
                    return;
                }
            }
        }

        private static int Fail(string why)
        {
            Console.Error.WriteLine(why);
            return 1;
        }
    }
}
