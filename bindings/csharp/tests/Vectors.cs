using System;
using System.Collections.Generic;
using System.Linq;
using System.Text.Json;

namespace Ramway.Tests
{
    /// <summary>
    /// A segment image of format/vectors and what a reader must find in it. How both are written down is said in the README
    /// beside them.
    /// </summary>
    internal sealed class Vector
    {
        private static readonly string[] Known = { "name", "about", "class", "kind", "size", "bytes", "readers" };

        private Vector(JsonElement json)
        {
            Json.OnlyKnows(json, Known);
            Name = json.GetProperty("name").GetString()!;
            Kind = json.GetProperty("kind").GetString()!;
            Size = json.GetProperty("size").GetInt64();
            Bytes = VectorRun.All(json, "bytes");
            Readers = json.GetProperty("readers").EnumerateArray().Select(r => new VectorReader(r)).ToList();
        }

        internal string Name { get; }

        internal string Kind { get; }

        internal long Size { get; }

        internal List<VectorRun> Bytes { get; }

        internal List<VectorReader> Readers { get; }

        internal static List<Vector> All()
        {
            using JsonDocument file = JsonDocument.Parse(HandshakeTests.RepositoryFile("format/vectors/segments.json"));
            Check.Equal("1.0", file.RootElement.GetProperty("format").GetString(), "the format of the vectors");
            return file.RootElement.GetProperty("segments").EnumerateArray().Select(s => new Vector(s)).ToList();
        }
    }

    /// <summary>Bytes at an offset of a file, and which of their bits count.</summary>
    internal sealed class VectorRun
    {
        private VectorRun(JsonElement json)
        {
            Json.OnlyKnows(json, "at", "hex", "mask");
            At = json.GetProperty("at").GetInt64();
            Hex = Json.Bytes(json.GetProperty("hex"));
            Mask = json.TryGetProperty("mask", out JsonElement mask)
                ? Json.Bytes(mask)
                : Enumerable.Repeat((byte)0xFF, Hex.Length).ToArray();
        }

        internal long At { get; }

        internal byte[] Hex { get; }

        internal byte[] Mask { get; }

        internal static List<VectorRun> All(JsonElement json, string name) => json.TryGetProperty(name, out JsonElement runs)
            ? runs.EnumerateArray().Select(r => new VectorRun(r)).ToList()
            : new List<VectorRun>();
    }

    /// <summary>What a reader of an image finds.</summary>
    internal sealed class VectorReader
    {
        internal VectorReader(JsonElement json)
        {
            Json.OnlyKnows(json, "as", "open", "attached", "region", "then", "messages", "last", "send", "end", "leaves",
                "name_after", "held");
            As = Json.Text(json, "as");
            Open = Json.Text(json, "open");
            Last = Json.Text(json, "last");
            End = Json.Text(json, "end");
            NameAfter = Json.Text(json, "name_after");
            Held = Json.Text(json, "held");
            Send = json.TryGetProperty("send", out JsonElement send) ? send.GetInt32() : 0;
            Leaves = VectorRun.All(json, "leaves");
            if (json.TryGetProperty("attached", out JsonElement attached))
            {
                Json.OnlyKnows(attached, "epoch", "peer_epoch", "capacity", "max");
                string[] numbers = { "epoch", "peer_epoch", "capacity", "max" };
                Attached = string.Join(" ", numbers.Select(n => attached.GetProperty(n).GetInt64()));
            }
            if (json.TryGetProperty("region", out JsonElement region))
            {
                Json.OnlyKnows(region, "len", "crc32");
                Region = region.GetProperty("len").GetInt64() + " " + region.GetProperty("crc32").GetUInt32();
            }
            if (json.TryGetProperty("then", out JsonElement then))
            {
                Json.OnlyKnows(then, "when", "bytes", "hang_up");
                When = Json.Text(then, "when");
                Then = VectorRun.All(then, "bytes");
                HangUp = then.TryGetProperty("hang_up", out JsonElement hangUp) && hangUp.GetBoolean();
            }
            if (json.TryGetProperty("messages", out JsonElement messages))
            {
                foreach (JsonElement m in messages.EnumerateArray())
                {
                    Json.OnlyKnows(m, "type_id", "tag", "len", "crc32");
                    Messages.Add(m.GetProperty("type_id").GetUInt32() + " " + m.GetProperty("tag").GetString() + " " +
                        m.GetProperty("len").GetInt32() + " " + m.GetProperty("crc32").GetUInt32());
                }
            }
        }

        internal string As { get; }

        internal string Open { get; }

        /// <summary>Epoch, the peer's epoch, capacity and longest message; empty if they are not said.</summary>
        internal string Attached { get; } = "";

        /// <summary>Length and checksum.</summary>
        internal string Region { get; } = "";

        internal string When { get; } = "";

        internal List<VectorRun> Then { get; } = new List<VectorRun>();

        internal bool HangUp { get; }

        /// <summary>Type id, tag, length and checksum of each.</summary>
        internal List<string> Messages { get; } = new List<string>();

        internal string Last { get; }

        internal int Send { get; }

        internal string End { get; }

        internal List<VectorRun> Leaves { get; }

        internal string NameAfter { get; }

        internal string Held { get; }
    }

    internal static class Json
    {
        /// <summary>What a test does not know it must not pass over.</summary>
        internal static void OnlyKnows(JsonElement json, params string[] names)
        {
            foreach (JsonProperty property in json.EnumerateObject())
            {
                Check.That(names.Contains(property.Name), "the vectors have a field '" + property.Name + "' that is not known here");
            }
        }

        internal static string Text(JsonElement json, string name) =>
            json.TryGetProperty(name, out JsonElement text) ? text.GetString()! : "";

        internal static byte[] Bytes(JsonElement hex)
        {
            string digits = hex.GetString()!;
            return Enumerable.Range(0, digits.Length / 2).Select(i => Convert.ToByte(digits.Substring(2 * i, 2), 16)).ToArray();
        }
    }

    /// <summary>zlib's CRC-32.</summary>
    internal static class Crc32
    {
        internal static uint Of(ReadOnlySpan<byte> bytes)
        {
            uint crc = uint.MaxValue;
            foreach (byte b in bytes)
            {
                crc ^= b;
                for (int bit = 0; bit < 8; bit++)
                {
                    crc = (crc >> 1) ^ (0xEDB88320 & (uint)-(int)(crc & 1));
                }
            }
            return ~crc;
        }
    }
}
