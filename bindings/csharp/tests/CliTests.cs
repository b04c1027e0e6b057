using System;
using System.Diagnostics;
using System.Linq;
using System.Text;
using System.Text.Json;

namespace Ramway.Tests
{
    /// <summary>
    /// The Rust side's `ramway` command reads what C# makes, keeps its hands off what C# uses, and cleans up after it; and C# does
    /// the same with what Rust makes. RAMWAY_CLI says where the command is.
    /// </summary>
    internal static class CliTests
    {
        private static Process Start(Folder folder, params string[] arguments)
        {
            string? command = Environment.GetEnvironmentVariable("RAMWAY_CLI");
            if (string.IsNullOrEmpty(command))
            {
                throw new SkipException("RAMWAY_CLI does not say where the ramway command is");
            }
            var start = new ProcessStartInfo(command)
            {
                RedirectStandardInput = true,
                RedirectStandardOutput = true,
                UseShellExecute = false,
            };
            start.Environment["RAMWAY_DIR"] = folder.Path;
            arguments.ToList().ForEach(start.ArgumentList.Add);
            return Process.Start(start)!;
        }

        /// <summary>What it prints, given this input. It must succeed.</summary>
        private static string Run(Folder folder, string input, params string[] arguments)
        {
            using Process process = Start(folder, arguments);
            process.StandardInput.Write(input);
            process.StandardInput.Close();
            string said = process.StandardOutput.ReadToEnd();
            process.WaitForExit();
            Check.Equal(0, process.ExitCode, string.Join(" ", arguments) + " ended");
            return said;
        }

        private static string[] List(Folder folder, string what) => JsonDocument.Parse(Run(folder, "", "ls", "--json")).RootElement
            .GetProperty(what).EnumerateArray()
            // Of a bus of another process, which may be of a version that the command does not know, there is less to say.
            .Select(s => string.Join(" ", new[] { "name", "kind", "state" }
                .Select(p => s.TryGetProperty(p, out JsonElement value) ? value.GetString() : "unknown")))
            .OrderBy(s => s, StringComparer.Ordinal).ToArray();

        [Helper("cli-hold")]
        internal static void Hold(string[] arguments)
        {
            using Receiver receiver = Receiver.Create(arguments[0]);
            using Listener listener = Listener.Bind(arguments[0] + "-bell");
            Peer.Say("ready");
            Peer.Told();
        }

        [Test]
        internal static void TheCommandReadsAndCleansWhatThisMade()
        {
            using var folder = new Folder();
            Sender tx = Sender.Create(folder.At("busy"), new RingOptions { Capacity = 4096, Align = 64 });
            tx.Send(7, 42, Encoding.UTF8.GetBytes("hello"));
            Region region = Region.Create(folder.At("region"), 5000, new RegionOptions { Persistent = true });
            Listener bell = Listener.Bind(folder.At("bell"), new ListenOptions { Capacity = 8192 });
            var connecting = Bus.ConnectAsync(bell.Path);
            Bus ours = bell.Accept(Wait.Long), theirs = connecting.GetAwaiter().GetResult();
            ours.Sender.Send(1, new byte[100]);
            Peer dead = Peer.Start("cli-hold", folder.At("dead"));
            dead.Expect("ready");
            dead.Kill();
            string[] wanted =
            {
                "bell.lock listener live", "busy ring live", "dead ring stale", "dead-bell.lock listener stale", "region region live",
            };
            Check.Equal(string.Join("\n", wanted), string.Join("\n", List(folder, "segments")), "segments");
            // Other processes of this user have buses as well.
            Check.That(List(folder, "buses").Contains(folder.At("bell") + " bus live"),
                "the bus: " + string.Join(", ", List(folder, "buses")));
            string seen = Run(folder, "", "inspect", "--json", folder.At("busy"));
            foreach (string part in new[]
            {
                "\"capacity\": 4096", "\"align\": 64", "\"undelivered_messages\": 1", "\"last_tag\": 42", "\"tail\": 112",
                "\"role\": \"sender\"",
            })
            {
                Check.That(seen.Contains(part, StringComparison.Ordinal), seen + " does not say " + part);
            }
            Run(folder, "", "clean", "--undelivered");
            folder.Holds("bell", "bell.lock", "busy", "region");
            theirs.Receiver.Recv(Wait.Long).Dispose();
            theirs.Dispose();
            ours.Dispose();
            bell.Dispose();
            region.Dispose();
            tx.Dispose();
            folder.Holds("busy", "region");
            // Undelivered and persistent stay until it is told to take them.
            Run(folder, "", "clean");
            folder.Holds("busy", "region");
            Run(folder, "", "clean", "--undelivered");
            folder.Holds();
        }

        [Test]
        internal static void ThisOpensWhatTheCommandMade()
        {
            using var folder = new Folder();
            string name = folder.At("ring");
            Run(folder, "one\ntwo\n", "send", "--lines", "--type-id", "9", "--capacity", "64K", "ring");
            Check.Fails(ErrorKind.AlreadyExists, () => Receiver.Create(name), "2 undelivered messages (8 bytes)");
            using (Receiver rx = Receiver.Open(name, new RingOptions { Capacity = 1 << 16 }))
            {
                foreach (string line in new[] { "one\n", "two\n" })
                {
                    using Message message = rx.Recv(Wait.Long);
                    Check.Equal(9u, message.TypeId, "type");
                    Check.Equal(line, Encoding.UTF8.GetString(message.Data), "line");
                }
                Check.Fails(ErrorKind.Closed, () => rx.Recv(Wait.Long));
            }
            folder.Holds();
            // And the other way round.
            using (Sender tx = Sender.Create(name))
            {
                tx.Send(1, Encoding.UTF8.GetBytes("from C#"));
            }
            Check.Equal("from C#", Run(folder, "", "recv", "ring"), "received");
            folder.Holds();
        }

        [Test]
        internal static void AKilledCommandLeavesItsRole()
        {
            using var folder = new Folder();
            string name = folder.At("ring");
            using Process recv = Start(folder, "recv", "ring");
            using Sender tx = Sender.Open(name, new RingOptions { Timeout = Wait.Long });
            Wait.Until("the command is there", () => tx.PeerAlive);
            Check.Fails(ErrorKind.Busy, () => Receiver.Open(name));
            Check.Fails(ErrorKind.AlreadyExists, () => Receiver.Create(name, new RingOptions { Discard = true }));
            recv.Kill();
            using Receiver rx = Receiver.Open(name, new RingOptions { Timeout = Wait.Long });
            tx.Send(3, new byte[5]);
            Check.Equal(5, rx.Recv(Wait.Long).Length, "received");
        }

        [Test]
        internal static void TopicsGoBothWaysBetweenTheCommandAndThis()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using (Subscriber reliable = Subscriber.Create(name, new TopicOptions { Label = "display" }))
            {
                using Subscriber latest = Subscriber.Open(name, new TopicOptions { Policy = Policy.Latest });
                Run(folder, "one\ntwo\n", "pub", "--lines", "--timestamps", "--type-id", "9", "topic");
                foreach (string line in new[] { "one\n", "two\n" })
                {
                    using Message message = reliable.Recv(Wait.Long);
                    Check.Equal(line, Encoding.UTF8.GetString(message.Data), "line");
                    Check.That(message.TypeId == 9 && message.Time > DateTime.UtcNow.AddMinutes(-5), "type and time");
                }
                using (Message newest = latest.WaitNewer(Wait.Long))
                {
                    Check.Equal(2ul, newest.Seq, "the newest");
                }
                Check.Fails(ErrorKind.Closed, () => reliable.Recv(Wait.Long));
                string seen = Run(folder, "", "inspect", "--json", name);
                Check.That(seen.Contains("\"display\"", StringComparison.Ordinal), "who subscribes: " + seen);
            }
            using (Publisher publisher = Publisher.Create(name))
            {
                using Process sub = Start(folder, "sub", "--reliable", "--count", "2", "topic");
                publisher.WaitForSubscribers(1, Wait.Long);
                publisher.Send(1, Encoding.UTF8.GetBytes("from "));
                publisher.Send(1, Encoding.UTF8.GetBytes("C#"));
                Check.Equal("from C#", sub.StandardOutput.ReadToEnd(), "received");
                sub.WaitForExit();
                Check.Equal(0, sub.ExitCode, "it ended");
            }
            folder.Holds();
        }

        [Test]
        internal static void AKilledCommandThatSubscribesBlocksNobody()
        {
            using var folder = new Folder();
            using Publisher publisher = Publisher.Create(folder.At("topic"), new TopicOptions { Capacity = 4096 });
            using Process sub = Start(folder, "sub", "--reliable", "topic");
            publisher.WaitForSubscribers(1, Wait.Long);
            sub.Kill();
            for (int i = 0; i < 50; i++)
            {
                publisher.Send(1, new byte[500], Wait.Long);
            }
            using Process pub = Start(folder, "pub", "--wait", "other");
            using Subscriber subscriber = Subscriber.OpenOrCreate(folder.At("other"));
            Wait.Until("the command publishes", () => subscriber.PeerAlive);
            pub.Kill();
            Check.Fails(ErrorKind.PeerDead, () => subscriber.Recv(Wait.Long));
        }
    }
}
