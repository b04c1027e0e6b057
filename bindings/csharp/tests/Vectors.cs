using System;
using System.Collections.Generic;
using System.Linq;
using System.Text.Json;

namespace Ramway.Tests
{
    /// <summary>
    /// An image of a segment or topic of format/vectors and what a reader must find in it. How both are written down is said in
    /// the README beside them.
    /// </summary>
    internal sealed class Vector
    {
        private static readonly string[] Known = { "name", "about", "class", "size", "bytes", "readers" };

        private Vector(JsonElement json)
        {
            bool topic = !json.TryGetProperty("kind", out JsonElement kind);
            Json.OnlyKnows(json, topic ? Known : Known.Append("kind").ToArray());
            Name = json.GetProperty("name").GetString()!;
            Kind = topic ? "topic" : kind.GetString()!;
            Size = json.GetProperty("size").GetInt64();
            Bytes = VectorRun.All(json, "bytes");
            Readers = json.GetProperty("readers").EnumerateArray()
                .Select(r => topic ? VectorReader.OfTopic(r) : VectorReader.OfSegment(r)).ToList();
        }

        internal string Name { get; }

        internal string Kind { get; }

        internal long Size { get; }

        internal List<VectorRun> Bytes { get; }

        internal List<VectorReader> Readers { get; }

        internal static List<Vector> Segments() => All("segments", "1.0");

        internal static List<Vector> Topics() => All("topics", "1.1");

        private static List<Vector> All(string what, string format)
        {
            using JsonDocument file = JsonDocument.Parse(HandshakeTests.RepositoryFile("format/vectors/" + what + ".json"));
            Check.Equal(format, file.RootElement.GetProperty("format").GetString(), "the format of the vectors");
            return file.RootElement.GetProperty(what).EnumerateArray().Select(s => new Vector(s)).ToList();
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
        /// <summary>What readers of both kinds of images have.</summary>
        private VectorReader(JsonElement json)
        {
            As = Json.Text(json, "as");
            Open = Json.Text(json, "open");
            End = Json.Text(json, "end");
            NameAfter = Json.Text(json, "name_after");
            Leaves = VectorRun.All(json, "leaves");
        }

        internal static VectorReader OfSegment(JsonElement json)
        {
            Json.OnlyKnows(json, "as", "open", "attached", "region", "then", "messages", "last", "send", "end", "leaves",
                "name_after", "held");
            var reader = new VectorReader(json)
            {
                Last = Json.Text(json, "last"),
                Send = json.TryGetProperty("send", out JsonElement send) ? send.GetInt32() : 0,
            };
            string held = Json.Text(json, "held");
            if (held.Length != 0)
            {
                reader.Held.Add((held == "consumer" ? Role.Consumer : Role.Producer).LockByte());
            }
            if (json.TryGetProperty("attached", out JsonElement attached))
            {
                Json.OnlyKnows(attached, "epoch", "peer_epoch", "capacity", "max");
                string[] numbers = { "epoch", "peer_epoch", "capacity", "max" };
                reader.Attached = string.Join(" ", numbers.Select(n => attached.GetProperty(n).GetInt64()));
            }
            if (json.TryGetProperty("region", out JsonElement region))
            {
                Json.OnlyKnows(region, "len", "crc32");
                reader.Region = region.GetProperty("len").GetInt64() + " " + region.GetProperty("crc32").GetUInt32();
            }
            if (json.TryGetProperty("then", out JsonElement then))
            {
                Json.OnlyKnows(then, "when", "bytes", "hang_up");
                reader.When = Json.Text(then, "when");
                reader.Then = VectorRun.All(then, "bytes");
                reader.HangUp = then.TryGetProperty("hang_up", out JsonElement hangUp) && hangUp.GetBoolean();
            }
            reader.Expect(json, "type_id", "tag", "len", "crc32");
            return reader;
        }

        internal static VectorReader OfTopic(JsonElement json)
        {
            Json.OnlyKnows(json, "as", "label", "held", "open", "then", "lagged", "messages", "end", "leaves", "name_after");
            string label = Json.Text(json, "label");
            var reader = new VectorReader(json)
            {
                Label = label.Length == 0 ? null : label,
                Lagged = Json.Text(json, "lagged"),
                Then = VectorRun.All(json, "then"),
            };
            if (json.TryGetProperty("held", out JsonElement held))
            {
                reader.Held.AddRange(held.EnumerateArray().Select(at => at.GetInt64()));
            }
            reader.Expect(json, "type_id", "tag", "len", "crc32", "seq", "lost");
            return reader;
        }

        /// <summary>What the messages say, in this order.</summary>
        private void Expect(JsonElement json, params string[] fields)
        {
            if (json.TryGetProperty("messages", out JsonElement messages))
            {
                foreach (JsonElement m in messages.EnumerateArray())
                {
                    Json.OnlyKnows(m, fields);
                    Messages.Add(string.Join(" ", fields.Select(f => m.GetProperty(f).ToString())));
                }
            }
        }

        internal string As { get; }

        internal string Open { get; }

        /// <summary>Epoch, the peer's epoch, capacity and longest message; empty if they are not said.</summary>
        internal string Attached { get; private set; } = "";

        /// <summary>Length and checksum.</summary>
        internal string Region { get; private set; } = "";

        internal string When { get; private set; } = "";

        internal List<VectorRun> Then { get; private set; } = new List<VectorRun>();

        internal bool HangUp { get; private set; }

        /// <summary>Of a topic: the label of a durable subscriber; null: none.</summary>
        internal string? Label { get; private set; }

        /// <summary>Of a topic: by how many messages the first receive is Lagged; empty: it is not.</summary>
        internal string Lagged { get; private set; } = "";

        /// <summary>Type id, tag, length and checksum of each; of a topic also its number and how many were lost before it.</summary>
        internal List<string> Messages { get; } = new List<string>();

        internal string Last { get; private set; } = "";

        internal int Send { get; private set; }

        internal string End { get; }

        internal List<VectorRun> Leaves { get; }

        internal string NameAfter { get; }

        /// <summary>The bytes of the file that somebody alive has locked, who has byte 0 too.</summary>
        internal List<long> Held { get; } = new List<long>();
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
