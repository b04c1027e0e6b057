using System;
using System.Buffers.Binary;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>One file of a directory, for <see cref="Segments"/>.</summary>
    internal static class Survey
    {
        /// <summary>What there is to say of a file; null if it is gone, or can be no segment.</summary>
        internal static SegmentInfo? Look(string directory, string file)
        {
            var info = new SegmentInfo(file, directory.TrimEnd('/') + "/" + file);
            try
            {
                using SegmentName at = SegmentName.In(directory, file);
                int fd = Named.OpenRegular(at, false, out _);
                if (fd < 0)
                {
                    return null;
                }
                try
                {
                    Fill(info, fd);
                }
                finally
                {
                    Files.Close(fd);
                }
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.NotFound || e.Kind == ErrorKind.InvalidArgument)
            {
                return null;
            }
            catch (RamwayException e)
            {
                info.Error = Errors.About(e, "inspecting", info.Path);
            }
            return info;
        }

        private static void Fill(SegmentInfo info, int fd)
        {
            byte[] page = Named.ReadPage(fd, out ulong size);
            Header h = Header.Check(page, size);
            info.Kind = h.Kind;
            info.Persistent = h.Persistent;
            info.Size = (long)size;
            info.InUse = Held(fd, Named.ByteInUse);
            info.ProducerHeld = h.Kind != SegmentKind.Region && Held(fd, Named.ByteProducer);
            info.ConsumerHeld = h.Kind == SegmentKind.Ring && Held(fd, Named.ByteConsumer);
            info.Capacity = (long)h.Blocks[0].Capacity;
            if (h.Kind != SegmentKind.Ring)
            {
                return;
            }
            info.Align = (int)h.Blocks[0].Align;
            // Frames that were counted while their ring moved may have been overwritten: only a still ring counts.
            for (int attempt = 0; attempt < 3; attempt++)
            {
                Words(page, out ulong tail, out ulong head);
                info.Used = (long)Math.Min(unchecked(tail - head), h.Blocks[0].Capacity);
                ulong messages = 0;
                bool counted = true;
                try
                {
                    Undelivered.Count(fd, h.Blocks[0], tail, head, out messages, out _);
                }
                catch (RamwayException)
                {
                    counted = false;
                }
                page = Named.ReadPage(fd, out _);
                Words(page, out _, out ulong now);
                if (now == head)
                {
                    info.Undelivered = counted ? (long?)messages : null;
                    return;
                }
            }
        }

        private static void Words(byte[] page, out ulong tail, out ulong head)
        {
            ReadOnlySpan<byte> at = page.AsSpan(Layout.Block0);
            tail = BinaryPrimitives.ReadUInt64LittleEndian(at.Slice(Layout.OffTail));
            head = BinaryPrimitives.ReadUInt64LittleEndian(at.Slice(Layout.OffHead));
        }

        private static bool Held(int fd, long at)
        {
            int result = Lock.HeldByAnother(fd, at, out LockMode mode);
            if (result < 0)
            {
                throw Errors.Os(result, "asking for the segment's locks");
            }
            return mode != LockMode.Unlocked;
        }

        /// <summary>Removes a segment that nobody uses.</summary>
        internal static void Unlink(SegmentName name)
        {
            int fd = Named.OpenRegular(name, true, out Stat stat);
            if (fd < 0)
            {
                throw Gone();
            }
            try
            {
                Header h = Header.Check(Named.ReadPage(fd, out ulong size), size);
                if (!Alone(name, stat, () => Remove(name, h.Kind)))
                {
                    throw Errors.Fail(ErrorKind.Busy, "the " + Layout.NameOf(h.Kind) +
                        " is in use: close it first in every process (ramway ls shows which)");
                }
            }
            finally
            {
                Files.Close(fd);
            }
        }

        /// <summary>Removes a segment that nobody uses and nobody could want.</summary>
        internal static CleanedSegment Clean(SegmentName name, bool undelivered, bool dryRun)
        {
            int fd = Named.OpenRegular(name, !dryRun, out Stat stat);
            if (fd < 0)
            {
                throw Gone();
            }
            try
            {
                return Clean(name, fd, stat, undelivered, dryRun);
            }
            finally
            {
                Files.Close(fd);
            }
        }

        private static CleanedSegment Clean(SegmentName name, int fd, in Stat stat, bool undelivered, bool dryRun)
        {
            byte[] page = Named.ReadPage(fd, out ulong size);
            bool unborn = Birth.IsDotName(name.File);
            ulong magic = BinaryPrimitives.ReadUInt64LittleEndian(page);
            Header? h = null;
            try
            {
                h = Header.Check(page, size);
            }
            catch (RamwayException) when (unborn && (magic == 0 || magic == Layout.Magic))
            {
                // A creator that was killed before it had written the header.
            }
            catch (RamwayException) when (magic != Layout.Magic)
            {
                return new CleanedSegment(name.File, CleanOutcome.NotRamway);
            }
            catch (RamwayException e)
            {
                return new CleanedSegment(name.File, CleanOutcome.Kept, e.Text);
            }
            string? reason = null;
            void Judge()
            {
                if (h != null && !h.OfAnotherBoot && !undelivered && !unborn)
                {
                    reason = Undelivered.ReasonToKeep(fd, h, out _);
                }
            }
            bool free;
            if (dryRun)
            {
                free = !Held(fd, Named.ByteInUse);
                if (free)
                {
                    Judge();
                }
            }
            else
            {
                free = Alone(name, stat, () =>
                {
                    Judge();
                    if (reason == null)
                    {
                        Remove(name, h?.Kind ?? SegmentKind.Ring);
                    }
                });
            }
            if (!free)
            {
                reason = "in use";
            }
            return new CleanedSegment(name.File, reason == null ? CleanOutcome.Removed : CleanOutcome.Kept, reason);
        }

        /// <summary>Does something with a file while nobody else uses it; false, and nothing is done: somebody does.</summary>
        private static bool Alone(SegmentName name, in Stat stat, Action act)
        {
            NamedLink? link = NamedLink.Open(name, stat, false);
            if (link == null)
            {
                throw Gone();
            }
            try
            {
                int alone = link.TryAlone();
                if (alone < 0)
                {
                    throw Errors.Os(alone, "locking byte 0 of the segment");
                }
                if (alone == 0)
                {
                    return false;
                }
                if (!Named.LeadsTo(name.Dir, name.File, link.Id))
                {
                    throw Gone();
                }
                act();
                return true;
            }
            finally
            {
                link.LetGoAlone();
            }
        }

        private static void Remove(SegmentName name, SegmentKind kind)
        {
            int result = Named.Remove(name.Dir, name.File, name.Path, kind);
            if (result < 0)
            {
                throw Errors.Os(result, "removing the name");
            }
        }

        private static RamwayException Gone() => Errors.Fail(ErrorKind.NotFound, "no segment has this name");
    }
}
