using System;
using System.IO;
using System.Text.Json;

namespace Ramway.Bench
{
    /// <summary>How much to do at a stretch.</summary>
    internal sealed class Burst
    {
        /// <summary><c>rtt</c> or <c>one-way</c>; there are others, which nothing here can do.</summary>
        public string Test = "";
        /// <summary>How the sides wait (<c>spin</c>, <c>hybrid</c>, <c>block</c>) or publish (<c>each</c>, <c>batch</c>).</summary>
        public string Mode = "";
        /// <summary>Bytes of a message, a multiple of 8.</summary>
        public int Size;
        /// <summary>The same, unless messages are of different sizes.</summary>
        public int Smallest;
        /// <summary>Messages or round trips.</summary>
        public long Count;
        /// <summary>Operations that one sample stands for.</summary>
        public int Group;
        /// <summary>Messages that are published together.</summary>
        public int Batch;
        /// <summary>Nanoseconds that the receiver works on each message.</summary>
        public long Busy;

        public static Burst Read(JsonElement words) => new Burst
        {
            Test = words.GetProperty("test").GetString() ?? "",
            Mode = words.GetProperty("mode").GetString() ?? "",
            Size = words.GetProperty("size").GetInt32(),
            Smallest = words.GetProperty("smallest").GetInt32(),
            Count = words.GetProperty("count").GetInt64(),
            Group = words.GetProperty("group").GetInt32(),
            Batch = words.GetProperty("batch").GetInt32(),
            Busy = words.GetProperty("work_ns").GetInt64(),
        };

        public static Burst Read(BinaryReader from) => new Burst
        {
            Test = from.ReadString(),
            Mode = from.ReadString(),
            Size = from.ReadInt32(),
            Smallest = from.ReadInt32(),
            Count = from.ReadInt64(),
            Group = from.ReadInt32(),
            Batch = from.ReadInt32(),
            Busy = from.ReadInt64(),
        };

        public void Write(BinaryWriter to)
        {
            to.Write(Test);
            to.Write(Mode);
            to.Write(Size);
            to.Write(Smallest);
            to.Write(Count);
            to.Write(Group);
            to.Write(Batch);
            to.Write(Busy);
        }

        public Burst Times(long factor)
        {
            var burst = (Burst)MemberwiseClone();
            burst.Count *= factor;
            return burst;
        }

        /// <summary>Whether the ring's loops can do it.</summary>
        public bool Possible =>
            (Test == "rtt" || Test == "one-way") && Smallest == Size && Size >= 8 && Size % 8 == 0 && Busy == 0;

        public bool Together => Mode == "batch";
    }

    /// <summary>What both processes know before they open the rings.</summary>
    internal sealed class Setup
    {
        private readonly int?[] cpus = new int?[2];

        public Setup(JsonElement words)
        {
            Directory = words.GetProperty("directory").GetString() ?? "";
            Capacity = words.GetProperty("capacity").GetInt64();
            Realtime = words.GetProperty("realtime").GetBoolean();
            for (int side = 0; side < 2; side++)
            {
                JsonElement cpu = words.GetProperty("cpus")[side];
                cpus[side] = cpu.ValueKind == JsonValueKind.Null ? (int?)null : cpu.GetInt32();
            }
        }

        /// <summary>In memory, empty at first and nobody else's; removed afterwards.</summary>
        public string Directory { get; }
        /// <summary>Bytes of each ring.</summary>
        public long Capacity { get; }
        /// <summary>Whether to ask for SCHED_FIFO and locked memory.</summary>
        public bool Realtime { get; }

        /// <summary>Where a side is pinned to; null: not pinned.</summary>
        public int? Cpu(bool leads) => cpus[leads ? 0 : 1];
    }

    /// <summary>What one burst measured.</summary>
    internal static class Outcome
    {
        public static void Write(Utf8JsonWriter to, long elapsed, long operations, long[] samples, Used leading, Used following)
        {
            to.WriteNumber("elapsed_ps", 1000 * elapsed);
            to.WriteNumber("operations", operations);
            Array(to, "samples_ps", System.Array.ConvertAll(samples, ns => 1000 * ns));
            Array(to, "cpu_ns", leading.Cpu, following.Cpu);
            Array(to, "peak_rss", leading.Peak, following.Peak);
            Array(to, "shared", leading.Shared, following.Shared);
            Array(to, "context_switches", leading.Switches, following.Switches);
            to.WriteNull("allocations");
            Array(to, "allocated_bytes", leading.Allocated, following.Allocated);
            Array(to, "parts");
        }

        private static void Array(Utf8JsonWriter to, string name, params long[] values)
        {
            to.WriteStartArray(name);
            foreach (long value in values)
            {
                to.WriteNumberValue(value);
            }
            to.WriteEndArray();
        }
    }
}
