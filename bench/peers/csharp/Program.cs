using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;
using System.Text.Json;

namespace Ramway.Bench
{
    /// <summary>A worker of <c>ramway bench</c> (the head of <c>bench/src/worker.rs</c> is its protocol): Ramway between two
    /// processes by its C# port.</summary>
    internal static class Program
    {
        public const string Variable = "RAMWAY_BENCH_WORKER";
        private const int Version = 1;
        private const string Name = "ring-csharp";
        /// <summary>How long a pair works before it counts, and how many operations at least: until then code is compiled that
        /// it goes through.</summary>
        private const long WarmUpNs = 1_500_000_000, WarmUpOperations = 200_000, WarmUpLongestNs = 8_000_000_000;

        private static readonly Stream Out = Console.OpenStandardOutput();

        [DllImport("libc", EntryPoint = "_exit")]
        private static extern void Exit(int status);

        /// <summary>Ends this process at once, whatever its other threads do.</summary>
        public static void Halt(int status) => Exit(status);

        private static int Main()
        {
            using JsonDocument told = JsonDocument.Parse(Environment.GetEnvironmentVariable(Variable) ?? "{}");
            JsonElement order = told.RootElement;
            bool leads = order.TryGetProperty("lead", out JsonElement lead);
            try
            {
                if (order.TryGetProperty("list", out _))
                {
                    List();
                }
                else if (order.TryGetProperty("follow", out JsonElement follow))
                {
                    Follower.Run(new Setup(follow.GetProperty("setup")));
                }
                else if (leads)
                {
                    Lead(lead);
                }
                else
                {
                    Console.Error.WriteLine("a worker of `ramway bench`, which starts it");
                    return 2;
                }
            }
            catch (Exception e)
            {
                if (leads)
                {
                    Answer(to => to.WriteString("failed", e.Message));
                }
                Console.Error.WriteLine(e);
                return 1;
            }
            return 0;
        }

        private static void List()
        {
            Line(to =>
            {
                to.WriteStartArray();
                to.WriteStartObject();
                to.WriteString("name", Name);
                to.WriteString("kind", "ramway");
                to.WriteBoolean("copied", false);
                to.WriteString("what", RuntimeInformation.FrameworkDescription +
                    ": two named rings: Reserve, Commit, Recv; together: StartBatch, Add, Flush; RecvBatch");
                to.WriteString("version", "");
                to.WriteEndObject();
                to.WriteEndArray();
            });
        }

        /// <summary>The whole of the leading process.</summary>
        private static void Lead(JsonElement told)
        {
            if (told.GetProperty("protocol").GetInt32() != Version)
            {
                throw new InvalidDataException("speaks version " + Version + " of the protocol, not " + told.GetProperty("protocol"));
            }
            if (told.GetProperty("mechanism").GetString() != Name)
            {
                throw new InvalidDataException("no mechanism here is called " + told.GetProperty("mechanism"));
            }
            Burst first = Burst.Read(told.GetProperty("burst"));
            if (!first.Possible)
            {
                Answer(to => to.WriteNull("cannot"));
                return;
            }
            var pair = new Pair(new Setup(told.GetProperty("setup")), "{\"follow\":" + told.GetRawText() + "}");
            WarmUp(pair, first);
            Answer(to =>
            {
                to.WriteStartObject("ready");
                to.WriteStartArray("pids");
                foreach (int pid in pair.Pids)
                {
                    to.WriteNumberValue(pid);
                }
                to.WriteEndArray();
                to.WriteEndObject();
            });
            foreach (string line in Lines())
            {
                using JsonDocument asked = JsonDocument.Parse(line);
                if (asked.RootElement.TryGetProperty("quit", out _))
                {
                    break;
                }
                Action<Utf8JsonWriter> outcome = pair.Do(Burst.Read(asked.RootElement.GetProperty("burst")));
                Answer(to =>
                {
                    to.WriteStartObject("outcome");
                    outcome(to);
                    to.WriteEndObject();
                });
            }
            pair.Stop();
        }

        private static IEnumerable<string> Lines()
        {
            using var input = new StreamReader(Console.OpenStandardInput(), Encoding.UTF8);
            while (input.ReadLine() is string line)
            {
                yield return line;
            }
        }

        /// <summary>Through the very same loops, in bursts of about the size of those that count.</summary>
        private static void WarmUp(Pair pair, Burst burst)
        {
            long began = Half.Now(), operations = 0, took;
            do
            {
                Burst larger = burst.Times(operations < 20_000 ? 1 : 10);
                pair.Do(larger);
                operations += larger.Count;
                took = Half.Now() - began;
            }
            while ((took < WarmUpNs || operations < WarmUpOperations) && took < WarmUpLongestNs);
        }

        /// <summary>A line of the protocol: an object with what this writes.</summary>
        public static void Answer(Action<Utf8JsonWriter> write)
        {
            Line(to =>
            {
                to.WriteStartObject();
                write(to);
                to.WriteEndObject();
            });
        }

        private static void Line(Action<Utf8JsonWriter> write)
        {
            using var buffer = new MemoryStream();
            using (var to = new Utf8JsonWriter(buffer))
            {
                write(to);
            }
            buffer.WriteByte((byte)'\n');
            Out.Write(buffer.GetBuffer(), 0, (int)buffer.Length);
            Out.Flush();
        }
    }
}
