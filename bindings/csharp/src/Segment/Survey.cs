using System;
using System.Buffers.Binary;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>One file of a directory, for <see cref="Segments"/>.</summary>
    internal static class Survey
    {
        /// <summary>What there is to say of a file; null if it is gone, or can be no segment.</summary>
        internal static SegmentInfo? Inspect(string directory, string file)
        {
            var info = new SegmentInfo(file, Names.Within(directory, file));
            try
            {
                using SegmentName at = SegmentName.In(directory, file);
                With(at, false, (fd, _) =>
                {
                    Fill(info, fd);
                    return info;
                });
                return info;
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.NotFound || e.Kind == ErrorKind.InvalidArgument)
            {
                return null;
            }
            catch (RamwayException e)
            {
                info.Error = Errors.About(e, "inspecting", info.Path);
                return info;
            }
        }

        /// <summary>Does something with the open file that has a name; NotFound if it has none.</summary>
        private static T With<T>(SegmentName name, bool writable, Func<int, Stat, T> act)
        {
            int fd = SegmentFile.OpenRegular(name, writable, out Stat stat);
            if (fd < 0)
            {
                throw Gone();
            }
            try
            {
                return act(fd, stat);
            }
            finally
            {
                Files.Close(fd);
            }
        }

        private static void Fill(SegmentInfo info, int fd)
        {
            byte[] page = SegmentFile.ReadPage(fd, out ulong size);
            Header h = Header.Check(page, size);
            info.Kind = h.Kind;
            info.Persistent = h.Persistent;
            info.Size = (long)size;
            info.InUse = Held(fd, Facts.ByteInUse);
            info.ProducerHeld = h.Kind != SegmentKind.Region && Held(fd, Facts.ByteProducer);
            info.ConsumerHeld = h.Kind == SegmentKind.Ring && Held(fd, Facts.ByteConsumer);
            info.Capacity = (long)h.Blocks[0].Capacity;
            if (h.Kind != SegmentKind.Ring)
            {
                return;
            }
            info.Align = (int)h.Blocks[0].Align;
            // Frames that were counted while their ring moved may have been overwritten: only a still ring counts.
            for (int attempt = 0; attempt < 3; attempt++)
            {
                var words = new Undelivered.RingWords(page, 0);
                info.Used = (long)Math.Min(unchecked(words.Tail - words.Head), h.Blocks[0].Capacity);
                long? counted = null;
                try
                {
                    Undelivered.Count(fd, h.Blocks[0], words.Tail, words.Head, out ulong messages, out _);
                    counted = (long)messages;
                }
                catch (RamwayException)
                {
                    // Damaged, or overwritten while it was counted.
                }
                page = SegmentFile.ReadPage(fd, out _);
                if (new Undelivered.RingWords(page, 0).Head == words.Head)
                {
                    info.Undelivered = counted;
                    return;
                }
            }
        }

        private static bool Held(int fd, long at)
        {
            Errors.Check(Lock.HeldByAnother(fd, at, out LockMode mode), "asking for the segment's locks");
            return mode != LockMode.Unlocked;
        }

        /// <summary>Removes a segment that nobody uses.</summary>
        internal static bool Unlink(SegmentName name) => With(name, true, (fd, stat) =>
        {
            Header h = Header.Check(SegmentFile.ReadPage(fd, out ulong size), size);
            return StaleName.Remove(name, stat, h.Kind, () => null, out _) switch
            {
                Removal.Removed => true,
                Removal.Moved => throw Gone(),
                _ => throw Errors.Fail(ErrorKind.Busy, "the " + Layout.NameOf(h.Kind) +
                    " is in use: close it first in every process (ramway ls shows which)"),
            };
        });

        /// <summary>Removes a segment that nobody uses and nobody could want.</summary>
        internal static CleanedSegment Clean(SegmentName name, bool undelivered, bool dryRun) =>
            With(name, !dryRun, (fd, stat) => Clean(name, fd, stat, undelivered, dryRun));

        private static CleanedSegment Clean(SegmentName name, int fd, in Stat stat, bool undelivered, bool dryRun)
        {
            byte[] page = SegmentFile.ReadPage(fd, out ulong size);
            bool staged = Staged.IsDotName(name.File);
            ulong magic = BinaryPrimitives.ReadUInt64LittleEndian(page);
            Header? h = null;
            try
            {
                h = Header.Check(page, size);
            }
            catch (RamwayException) when (staged && (magic == 0 || magic == Facts.Magic))
            {
                // A creator that was killed before it had written the header.
            }
            catch (RamwayException) when (magic != Facts.Magic)
            {
                return new CleanedSegment(name.File, CleanOutcome.NotRamway);
            }
            catch (RamwayException e)
            {
                return new CleanedSegment(name.File, CleanOutcome.Kept, e.Text);
            }
            string? Judge() => h == null || h.OfAnotherBoot || undelivered || staged ? null : Undelivered.ReasonToKeep(fd, h, out _);
            string? reason = null;
            if (!dryRun)
            {
                switch (StaleName.Remove(name, stat, h?.Kind ?? SegmentKind.Ring, Judge, out reason))
                {
                    case Removal.Moved:
                        throw Gone();
                    case Removal.InUse:
                    case Removal.Contended:
                        reason = "in use";
                        break;
                }
            }
            else
            {
                reason = Held(fd, Facts.ByteInUse) ? "in use" : Judge();
            }
            return new CleanedSegment(name.File, reason == null ? CleanOutcome.Removed : CleanOutcome.Kept, reason);
        }

        private static RamwayException Gone() => Errors.Fail(ErrorKind.NotFound, "no segment has this name");
    }
}
