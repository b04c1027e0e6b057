using System;
using System.Buffers.Binary;
using System.Collections.Generic;
using System.IO;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>A file in the Ramway directory at one moment: a segment, or one that cannot be read as one.</summary>
    public sealed class SegmentInfo
    {
        internal SegmentInfo(string name, string path)
        {
            Name = name;
            Path = path;
        }

        /// <summary>Its name in the directory.</summary>
        public string Name { get; }

        /// <summary>Where it is.</summary>
        public string Path { get; }

        /// <summary>Why the rest is not known: AbiMismatch for what is not Ramway's or of another version, Corrupt,
        /// PermissionDenied; null for a segment.</summary>
        public RamwayException? Error { get; internal set; }

        /// <summary>What it holds.</summary>
        public SegmentKind Kind { get; internal set; }

        /// <summary>A process uses it.</summary>
        public bool InUse { get; internal set; }

        /// <summary>The last one out leaves the name in place.</summary>
        public bool Persistent { get; internal set; }

        /// <summary>Nobody uses it: it was left by processes that are gone, or by another boot.</summary>
        public bool Stale => Error == null && !InUse;

        /// <summary>The whole file in bytes.</summary>
        public long Size { get; internal set; }

        /// <summary>Bytes of data; 0 for a listener.</summary>
        public long Capacity { get; internal set; }

        /// <summary>What the payloads of a ring or topic are aligned to; 0 for anything else.</summary>
        public int Align { get; internal set; }

        /// <summary>A ring's bytes, frame headers and padding included, that are not released; 0 for anything else.</summary>
        public long Used { get; internal set; }

        /// <summary>A ring's messages that are not released; null if it moved too fast to count or is damaged.</summary>
        public long? Undelivered { get; internal set; }

        /// <summary>The ring has a sender, a topic a publisher; of a listener: it listens.</summary>
        public bool ProducerHeld { get; internal set; }

        /// <summary>The ring has a receiver.</summary>
        public bool ConsumerHeld { get; internal set; }

        /// <summary>A topic's newest message's number; 0 if there is none, and for anything else.</summary>
        public ulong Seq { get; internal set; }

        /// <summary>Who subscribes to a topic; empty for anything else.</summary>
        public IReadOnlyList<SubscriberInfo> Subscribers { get; internal set; } = Array.Empty<SubscriberInfo>();
    }

    /// <summary>What became of a file that <see cref="Segments.Clean"/> inspected.</summary>
    public enum CleanOutcome
    {
        /// <summary>Removed; with dryRun it would have been.</summary>
        Removed = 0,
        /// <summary>Left alone, see the reason.</summary>
        Kept = 1,
        /// <summary>Not Ramway's, so not inspected any further.</summary>
        NotRamway = 2,
        /// <summary>It could not be removed or inspected: see the error.</summary>
        Failed = 3,
    }

    /// <summary>A file that <see cref="Segments.Clean"/> inspected.</summary>
    public sealed class CleanedSegment
    {
        internal CleanedSegment(string name, CleanOutcome outcome, string? reason = null, RamwayException? error = null)
        {
            Name = name;
            Outcome = outcome;
            Reason = reason;
            Error = error;
        }

        /// <summary>Its name in the directory.</summary>
        public string Name { get; }

        /// <summary>What became of it.</summary>
        public CleanOutcome Outcome { get; }

        /// <summary>Why it was kept; null otherwise.</summary>
        public string? Reason { get; }

        /// <summary>Why it could not be removed or inspected; null otherwise.</summary>
        public RamwayException? Error { get; }
    }

    /// <summary>Lists the segments of a directory, and removes those that nobody uses.</summary>
    /// <remarks>
    /// <code>
    /// foreach (SegmentInfo segment in Segments.Ls())
    /// {
    ///     Console.WriteLine($"{segment.Name}: {segment.Kind}, {segment.Undelivered} messages");
    /// }
    /// </code>
    /// </remarks>
    public static class Segments
    {
        /// <summary>
        /// Everything in a directory that could be a segment: regular files whose names do not begin with a dot, sorted. It
        /// disturbs nobody: what it says of a segment in use may be old by the time it is read.
        /// </summary>
        /// <param name="directory">null: <see cref="RamwayDirectory.Path"/>. One that does not exist is empty.</param>
        /// <exception cref="RamwayException">The directory cannot be read; what is wrong with one file its entry says.</exception>
        public static IReadOnlyList<SegmentInfo> Ls(string? directory = null)
        {
            Libc.RequireSupported();
            string root = directory ?? Names.Directory();
            var found = new List<SegmentInfo>();
            foreach (string file in FilesOf(root))
            {
                if (file[0] == '.')
                {
                    continue;
                }
                SegmentInfo? info = Inspect(root, file);
                if (info != null)
                {
                    found.Add(info);
                }
            }
            return found;
        }

        /// <summary>
        /// Removes one segment that nobody uses, whatever it holds: a persistent one and one with undelivered messages too, as it
        /// was named. A listener's dead socket goes with it.
        /// </summary>
        /// <param name="name">A name in the Ramway directory, or a path (with a '/').</param>
        /// <exception cref="RamwayException">
        /// Busy if it is in use, NotFound; InvalidArgument, AbiMismatch or Corrupt for what is no segment of this version, which
        /// stays as it is; PermissionDenied.
        /// </exception>
        public static void Unlink(string name)
        {
            Errors.During("unlinking", name, () =>
            {
                using SegmentName at = SegmentName.Resolve(name, false);
                return UnlinkOne(at);
            });
        }

        /// <summary>
        /// Removes the segments of a directory that nobody uses. Never one that is in use, however quiet it is, and never what is
        /// not Ramway's. Says what became of each regular file.
        /// </summary>
        /// <param name="directory">null: <see cref="RamwayDirectory.Path"/>. One that does not exist is empty.</param>
        /// <param name="undelivered">Also removes what nobody uses but a later process could want: undelivered messages, the unseen end of
        /// a stream, persistent segments.</param>
        /// <param name="dryRun">Only says what would be done.</param>
        /// <exception cref="RamwayException">The directory cannot be read.</exception>
        public static IReadOnlyList<CleanedSegment> Clean(string? directory = null, bool undelivered = false, bool dryRun = false)
        {
            Libc.RequireSupported();
            string root = directory ?? Names.Directory();
            var outcomes = new List<CleanedSegment>();
            foreach (string file in FilesOf(root))
            {
                if (file[0] == '.' && !Staged.IsDotName(file))
                {
                    continue;
                }
                try
                {
                    using SegmentName at = SegmentName.In(root, file);
                    outcomes.Add(CleanOne(at, undelivered, dryRun));
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.NotFound || e.Kind == ErrorKind.InvalidArgument)
                {
                    // Gone meanwhile, or a socket, a directory or whatever else cannot be a segment.
                }
                catch (RamwayException e)
                {
                    outcomes.Add(new CleanedSegment(file, CleanOutcome.Failed, null, Errors.About(e, "cleaning", root + "/" + file)));
                }
            }
            return outcomes;
        }

        private static List<string> FilesOf(string directory)
        {
            var names = new List<string>();
            try
            {
                foreach (string path in Directory.EnumerateFileSystemEntries(directory))
                {
                    names.Add(Path.GetFileName(path)!);
                }
            }
            catch (DirectoryNotFoundException)
            {
                return names;
            }
            catch (Exception e) when (e is UnauthorizedAccessException || e is IOException || e is ArgumentException)
            {
                ErrorKind kind = e is UnauthorizedAccessException ? ErrorKind.PermissionDenied
                    : e is IOException ? ErrorKind.Os : ErrorKind.InvalidArgument;
                throw new RamwayException(kind, "reading the directory", directory, e.Message, 0, e);
            }
            names.Sort(StringComparer.Ordinal);
            return names;
        }

        /// <summary>What there is to say of a file; null if it is gone, or can be no segment.</summary>
        private static SegmentInfo? Inspect(string directory, string file)
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
            info.ProducerHeld = h.Kind == SegmentKind.Topic
                ? TopicSurvey.Lives(fd, Facts.BytePublisher)
                : h.Kind != SegmentKind.Region && Held(fd, Facts.ByteProducer);
            info.ConsumerHeld = h.Kind == SegmentKind.Ring && Held(fd, Facts.ByteConsumer);
            info.Capacity = (long)h.Blocks[0].Capacity;
            info.Align = (int)h.Blocks[0].Align;
            if (h.Kind == SegmentKind.Topic)
            {
                TopicSurvey.Fill(info, fd, h.Blocks[0]);
            }
            if (h.Kind != SegmentKind.Ring)
            {
                return;
            }
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
        private static bool UnlinkOne(SegmentName name) => With(name, true, (fd, stat) =>
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
        private static CleanedSegment CleanOne(SegmentName name, bool undelivered, bool dryRun) =>
            With(name, !dryRun, (fd, stat) => CleanOne(name, fd, stat, undelivered, dryRun));

        private static CleanedSegment CleanOne(SegmentName name, int fd, in Stat stat, bool undelivered, bool dryRun)
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
