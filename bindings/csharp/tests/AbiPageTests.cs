using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text;

namespace Ramway.Tests
{
    /// <summary>
    /// docs/ABI.md is what this port was written from, so what it shows is compared with what the code writes.
    /// </summary>
    internal static unsafe class AbiPageTests
    {
        private static string[] Page() => HandshakeTests.RepositoryFile("docs/ABI.md").Split('\n');

        /// <summary>The lines of the blocks that are fenced as ```hex TITLE…, by their whole titles.</summary>
        private static Dictionary<string, List<string>> Blocks(string title)
        {
            string[] lines = Page();
            var found = new Dictionary<string, List<string>>();
            for (int i = 0; i < lines.Length; i++)
            {
                if (!lines[i].StartsWith("```hex " + title, StringComparison.Ordinal))
                {
                    continue;
                }
                var block = new List<string>();
                found.Add(lines[i].Substring(7), block);
                for (i++; lines[i] != "```"; i++)
                {
                    block.Add(lines[i]);
                }
            }
            Check.That(found.Count != 0, "docs/ABI.md has no block '" + title + "'");
            return found;
        }

        /// <summary>Compares `OFFSET  xx xx …` with the bytes there; a byte that is not hexadecimal may be anything.</summary>
        private static void Compare(string line, ReadOnlySpan<byte> bytes)
        {
            string[] words = line.Split(new[] { ' ' }, StringSplitOptions.RemoveEmptyEntries);
            int at = int.Parse(words[0], NumberStyles.HexNumber);
            for (int i = 1; i < words.Length; i++, at++)
            {
                if (byte.TryParse(words[i], NumberStyles.HexNumber, CultureInfo.InvariantCulture, out byte shown))
                {
                    Check.Equal(shown, bytes[at], "byte 0x" + at.ToString("x") + " in the line '" + line + "'");
                }
            }
        }

        [Test]
        private static void TheHeaderPageIsAsShown()
        {
            using var dir = new Folder();
            Attachment a = Rings.Hold(dir.At("header"), How.Create, Role.Producer, Rings.Of(4096));
            byte[] file = File.ReadAllBytes(dir.At("header"));
            a.Release();
            foreach (string line in Blocks("header").Values.SelectMany(b => b))
            {
                Compare(line, file);
            }
        }

        [Test]
        private static void FramesAreAsShown()
        {
            foreach (KeyValuePair<string, List<string>> block in Blocks("align="))
            {
                string[] numbers = block.Key.Replace("align=", "").Replace("start=", "").Split(' ');
                int align = int.Parse(numbers[0]), start = int.Parse(numbers[1]);
                using var dir = new Folder();
                using Sender tx = Sender.Create(dir.At("frames"), new RingOptions { Capacity = 4096, Align = align });
                using Receiver rx = Receiver.Open(dir.At("frames"));
                if (start > align)
                {
                    tx.Send(1, new byte[start - 16]);
                    rx.Recv().Dispose();
                }
                tx.Send(7, 0x1122334455667788, Encoding.ASCII.GetBytes("hello"));
                tx.Send(8, default);
                byte[] file = File.ReadAllBytes(dir.At("frames"));
                foreach (string line in block.Value)
                {
                    if (line.StartsWith("data ", StringComparison.Ordinal))
                    {
                        Compare(line.Substring(5), file.AsSpan(4096));
                    }
                    else
                    {
                        Check.That(line.StartsWith("tail ", StringComparison.Ordinal), "what is '" + line + "'?");
                        ulong tail = ulong.Parse(line.Substring(5).Trim(), NumberStyles.HexNumber);
                        Check.Equal(tail, BitConverter.ToUInt64(file, 0x480), "tail");
                    }
                }
                Check.That(block.Value.Count > 2, "an empty block");
            }
        }

        /// <summary>The rows of the page's tables, as cells without their spaces and back-quotes.</summary>
        private static List<string[]> Rows() => Page().Where(l => l.StartsWith("| ", StringComparison.Ordinal))
            .Select(l => l.Substring(2).TrimEnd('|').Split(new[] { " | " }, StringSplitOptions.None)
                .Select(c => c.Trim().Replace("`", "")).ToArray()).ToList();

        [Test]
        private static void FieldsAreWhereTheTablesSay()
        {
            RingBlock b;
            // An address, because only of that an offset can be made.
            byte* start = (byte*)&b;
            var fields = new Dictionary<string, long>
            {
                ["magic"] = Facts.OffMagic,
                ["byte_order"] = Facts.OffByteOrder,
                ["version_major"] = Facts.OffVersionMajor,
                ["version_minor"] = Facts.OffVersionMinor,
                ["kind"] = Facts.OffKind,
                ["flags"] = Facts.OffFlags,
                ["features_required"] = Facts.OffFeaturesRequired,
                ["features_optional"] = Facts.OffFeaturesOptional,
                ["size"] = Facts.OffSize,
                ["created_ns"] = Facts.OffCreatedNs,
                ["boot_id"] = Facts.OffBootId,
                ["data_offset"] = Facts.OffDataOffset,
                ["capacity"] = Facts.OffCapacity,
                ["len"] = Facts.OffLen,
                ["align"] = Facts.OffAlign,
                ["tail"] = (byte*)&b.Tail - start,
                ["head"] = (byte*)&b.Head - start,
                ["last_tags[0].end"] = (byte*)&b.LastTag0.End - start,
                ["last_tags[0].tag"] = (byte*)&b.LastTag0.Tag - start,
                ["last_tags[1].end"] = (byte*)&b.LastTag1.End - start,
                ["last_tags[1].tag"] = (byte*)&b.LastTag1.Tag - start,
                ["producer.wait"] = (byte*)&b.Producer.Wait - start,
                ["producer.flags"] = (byte*)&b.Producer.Flags - start,
                ["producer.epoch"] = (byte*)&b.Producer.Epoch - start,
                ["consumer.wait"] = (byte*)&b.Consumer.Wait - start,
                ["consumer.flags"] = (byte*)&b.Consumer.Flags - start,
                ["consumer.epoch"] = (byte*)&b.Consumer.Epoch - start,
                ["consumer.close_seen"] = (byte*)&b.Consumer.CloseSeen - start,
            };
            List<string[]> rows = Rows();
            foreach (KeyValuePair<string, long> field in fields)
            {
                Check.That(rows.Any(r => r.Length >= 3 && r[2] == field.Key &&
                    long.TryParse(r[0], NumberStyles.HexNumber, CultureInfo.InvariantCulture, out long at) && at == field.Value),
                    "docs/ABI.md does not show " + field.Key + " at " + field.Value.ToString("X3"));
            }
            RegionBlock region;
            string notify = ((byte*)&region.Notify - (byte*)&region).ToString("X3");
            Check.That(string.Join("\n", Page()).Contains("at block offset " + notify + " the u32 `notify`"), "where notify is");
        }

        [Test]
        private static void ErrorsHaveTheNumbersOfTheTable()
        {
            List<string[]> rows = Rows();
            foreach (ErrorKind kind in (ErrorKind[])Enum.GetValues(typeof(ErrorKind)))
            {
                Check.That(rows.Any(r => r.Length == 3 && r[0] == ((int)kind).ToString() && r[1] == kind.ToString()),
                    "docs/ABI.md does not show " + kind + " as " + (int)kind);
            }
        }
    }
}
