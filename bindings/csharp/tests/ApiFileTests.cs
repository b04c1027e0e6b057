using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Ramway.Tests
{
    /// <summary>docs/api/csharp.txt against the calls that every language has, and against this assembly.</summary>
    internal static class ApiFileTests
    {
        private static string Folder([CallerFilePath] string file = "") =>
            Path.Combine(Path.GetDirectoryName(file)!, "..", "..", "..", "docs", "api");

        private static string[] Lines(string file)
        {
            string path = Path.Combine(Folder(), file);
            if (!File.Exists(path))
            {
                throw new SkipException("the sources are not where they were built");
            }
            return File.ReadAllLines(path).Where(line => line.Trim().Length != 0).ToArray();
        }

        private static Dictionary<string, string> Calls() => Lines("calls.txt")
            .Where(line => !line.StartsWith("#", StringComparison.Ordinal))
            .Select(line => line.Split('|', 2)).ToDictionary(parts => parts[0].Trim(), parts => parts[1].Trim());

        /// <summary>The lines of csharp.txt: before "Only here", or after it.</summary>
        private static List<(string Left, string Right)> Said(bool onlyHere)
        {
            var found = new List<(string, string)>();
            bool here = false;
            foreach (string line in Lines("csharp.txt"))
            {
                if (line.StartsWith("#", StringComparison.Ordinal))
                {
                    here |= line.Trim() == "## Only here";
                    continue;
                }
                string[] parts = line.Split('=', 2);
                Check.Equal(2, parts.Length, "parts of: " + line);
                if (here == onlyHere)
                {
                    found.Add((parts[0].Trim(), parts[1].Trim()));
                }
            }
            return found;
        }

        private static IEnumerable<Type> Types() => typeof(Sender).Assembly.GetExportedTypes().Where(type => !type.IsNested);

        private const BindingFlags Public =
            BindingFlags.Public | BindingFlags.Instance | BindingFlags.Static | BindingFlags.DeclaredOnly;

        /// <summary>The public members of a type by name, but for those that every object has.</summary>
        private static IEnumerable<string> MembersOf(Type type) => type.GetMembers(Public)
            .Where(m => !(m is ConstructorInfo) && !(m is MethodInfo method && (method.IsSpecialName ||
                method.GetBaseDefinition().DeclaringType == typeof(object))))
            .Select(m => m.Name).Distinct();

        private static bool Exists(string name)
        {
            string[] parts = name.Split('.');
            Type? type = Types().SingleOrDefault(t => t.Name == parts[0]);
            return type != null && (parts.Length == 1 || parts.Length == 2 && MembersOf(type).Contains(parts[1]));
        }

        [Test]
        private static void EveryCallHasASpellingOrAReason()
        {
            List<(string Left, string Right)> said = Said(false);
            Check.Equal(string.Join("\n", Calls().Keys), string.Join("\n", said.Select(line => line.Left)), "the IDs, in order");
            foreach ((string id, string right) in said)
            {
                if (right.StartsWith("--", StringComparison.Ordinal))
                {
                    Check.That(right.Length > 10, id + " has no reason");
                    continue;
                }
                foreach (string name in right.Split(','))
                {
                    Check.That(Exists(name.Trim()), id + ": there is no " + name.Trim());
                }
            }
            foreach ((string name, string why) in Said(true))
            {
                Check.That(Exists(name) && why.Length > 5, "only here: " + name);
            }
        }

        [Test]
        private static void EveryPublicMemberIsNamed()
        {
            var named = new HashSet<string>(Said(false).Where(line => !line.Right.StartsWith("--", StringComparison.Ordinal))
                .SelectMany(line => line.Right.Split(',')).Select(name => name.Trim()).Concat(Said(true).Select(line => line.Left)));
            var missing = new List<string>();
            foreach (Type type in Types())
            {
                // A type that is named by itself is named with all that it has.
                if (!named.Contains(type.Name))
                {
                    missing.AddRange(MembersOf(type).Select(member => type.Name + "." + member).Where(name => !named.Contains(name)));
                }
            }
            Check.Equal("", string.Join(", ", missing), "public and not in docs/api/csharp.txt");
        }

        [Test]
        private static void DefaultsAreThoseOfEveryLanguage()
        {
            var ring = new RingOptions();
            var listen = new ListenOptions();
            var topic = new TopicOptions();
            var connect = new ConnectOptions();
            object? most = typeof(Receiver).GetMethods().Where(m => m.Name == "RecvBatch").SelectMany(m => m.GetParameters())
                .Single(p => p.Name == "max" && p.HasDefaultValue).DefaultValue;
            (Sender tx, Receiver rx) = Ring.Pair();
            var client = new RpcClientOptions();
            var server = new RpcServerOptions();
            Dictionary<string, string> calls = Calls();
            foreach ((string id, string words, bool same) in new[]
            {
                ("ring.capacity", "default 1 MiB", tx.Capacity == 1 << 20), ("ring.align", "default 16", rx.Align == 16),
                ("ring.discard", "default no", !ring.Discard), ("ring.persistent", "default no", !ring.Persistent),
                ("ring.mode", "default 0600", ring.FileMode == 0x180), ("ring.timeout", "default 0", ring.Timeout == TimeSpan.Zero),
                ("ring.allow_disk", "default no", !ring.AllowDisk), ("ring.wait", "`hybrid` (default)", ring.Wait == WaitMode.Hybrid),
                ("ring.membarrier", "default yes", ring.Membarrier), ("ring.lock_memory", "default no", !ring.LockMemory),
                ("ring.huge_pages", "default no", !ring.HugePages), ("ring.numa_node", "default none", ring.NumaNode == null),
                ("ring.prefault", "default no", !ring.Prefault), ("recv.batch", "it is 1024", most is int n && n == 1024),
                ("bus.capacity", "default 1 MiB", listen.Plan("x").Spec.Blocks[0].Capacity == 1 << 20),
                ("bus.to_peer", "default `capacity`", listen.Plan("x").Spec.Blocks[0].Capacity == 1 << 20),
                ("bus.from_peer", "default `capacity`", listen.Plan("x").Spec.Blocks[1].Capacity == 1 << 20),
                ("bus.align", "default 16", listen.Plan("x").Spec.Blocks[0].Align == 16),
                ("bus.mode", "default 0600, or 0666", listen.SocketMode == 0x180 &&
                    new ListenOptions { AllowUids = new uint[] { 1 } }.SocketMode == 0x1B6),
                ("bus.allow_uids", "default none", listen.AllowUids.Count == 0 && connect.AllowUids.Count == 0),
                ("bus.handshake_timeout", "default 1 s", listen.HandshakeTimeout == TimeSpan.FromSeconds(1)),
                ("bus.backlog", "default 128", listen.Backlog == 128),
                ("bus.timeout", "default 10 s", connect.Timeout == TimeSpan.FromSeconds(10)),
                ("bus.wait", "default `hybrid`", listen.Wait == WaitMode.Hybrid && connect.Wait == WaitMode.Hybrid),
                ("topic.capacity", "default 1 MiB", topic.Check(How.Create, true).Blocks[0].Capacity == 1 << 20),
                ("topic.slots", "default 32", topic.Check(How.Create, true).Blocks[0].Slots == 32),
                ("topic.align", "default 32", topic.Check(How.Create, true).Blocks[0].Align == 32),
                ("topic.lossy_only", "default no", !topic.LossyOnly), ("topic.may_eject", "default no", !topic.MayEject),
                ("topic.eject_after", "default never", topic.EjectAfter == TimeSpan.Zero),
                ("topic.timestamps", "default no", !topic.Timestamps),
                ("topic.policy", "reliable (default)", topic.Policy == Policy.Reliable),
                ("topic.label", "default none", topic.Label == null), ("topic.durable", "default no", !topic.Durable),
                ("topic.start", "default by policy", topic.Start.At == Start.Place.Default),
                ("topic.read_only", "default no", !topic.ReadOnly), ("topic.persistent", "default no", !topic.Persistent),
                ("topic.discard", "default no", !topic.Discard), ("topic.mode", "default 0600", topic.FileMode == 0x180),
                ("topic.timeout", "default 0", topic.Timeout == TimeSpan.Zero),
                ("topic.wait", "`hybrid` (default)", topic.Wait == WaitMode.Hybrid && topic.Membarrier),
                ("rpc.connect", "up to 10 s", client.Timeout == TimeSpan.FromSeconds(10)),
                ("rpc.connect.timeout", "default 10 s", client.Timeout == TimeSpan.FromSeconds(10)),
                ("rpc.connect.wait", "`hybrid` (default)", client.Wait == WaitMode.Hybrid && client.Membarrier),
                ("rpc.call.timeout", "default none", RpcCallOptions.Default.Timeout == null),
                ("rpc.call.meta", "default none", RpcCallOptions.Default.Meta.IsEmpty),
                ("rpc.stream.window", "default 16", RpcCallOptions.Default.Window == 16),
                ("serve.capacity", "default 1 MiB", server.ToListen().Plan("x").Spec.Blocks[0].Capacity == 1 << 20),
                ("serve.align", "default 16", server.ToListen().Plan("x").Spec.Blocks[1].Align == 16),
                ("serve.wait", "`hybrid` (default)", server.Wait == WaitMode.Hybrid && server.Membarrier),
                ("serve.max_clients", "default 128", server.MaxClients == 128),
                ("serve.max_in_flight", "default 1024", server.MaxInFlight == 1024),
                ("bus.membarrier", "default yes", listen.Membarrier && connect.Membarrier),
            })
            {
                Check.That(calls[id].Contains(words, StringComparison.Ordinal), id + ": expected '" + words + "' in: " + calls[id]);
                Check.That(same, id + " has another default here");
            }
            tx.Dispose();
            rx.Dispose();
        }

        [Test]
        private static void WhatBlocksTakesATimeOutAndAToken()
        {
            foreach (Type type in new[] { typeof(Sender), typeof(Receiver), typeof(RingEnd), typeof(Listener), typeof(Region),
                typeof(Publisher), typeof(Subscriber), typeof(RpcClient), typeof(RpcPending), typeof(RpcStream) })
            {
                foreach (IGrouping<string, MethodInfo> calls in type.GetMethods(Public).GroupBy(m => m.Name))
                {
                    bool waits = new[] { "Send", "SendVectored", "SendBatch", "SendTensor", "Reserve", "ReserveTensor", "Recv", "RecvBatch",
                        "RecvInto", "RecvAppend", "RecvMemory", "ReadAll", "WaitForPeer", "Accept", "Wait",
                        "WaitForSubscribers", "WaitNewer", "Ping", "Describe", "Next" }.Contains(calls.Key);
                    bool asynchronous = calls.Key.EndsWith("Async", StringComparison.Ordinal);
                    bool Takes<T>() => calls.Any(m => m.GetParameters().Any(p => p.ParameterType == typeof(T)));
                    Check.That(!waits || Takes<TimeSpan?>() && Takes<CancellationToken>(), type.Name + "." + calls.Key);
                    Check.That(!asynchronous || Takes<CancellationToken>(), type.Name + "." + calls.Key);
                }
            }
        }
    }
}
