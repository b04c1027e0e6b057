using System;
using System.Security.Cryptography;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// A segment that is whole and locked but has no name yet; kept when another creator was faster, for the next attempt.
    /// </summary>
    internal sealed class Staged
    {
        // What the file is called meanwhile where the file system knows no files without a name; empty where it does.
        private string dotName = "";
        private int dir = -1;

        internal OpenSegment? Segment { get; private set; }

        /// <summary>Throws away what has not got its name.</summary>
        internal void Drop()
        {
            if (dotName.Length != 0)
            {
                Files.Unlink(dir, dotName);
                ForgetDotName();
            }
            // Nothing leads to the file, so the last one out finds nothing to remove.
            Segment?.Drop();
            Segment = null;
        }

        /// <summary>What got its name is its user's.</summary>
        internal OpenSegment Take()
        {
            OpenSegment s = Segment!;
            Segment = null;
            return s;
        }

        private void ForgetDotName()
        {
            Files.Close(dir);
            dir = -1;
            dotName = "";
        }

        /// <summary>Makes the segment appear under its name: 0 or a negated errno.</summary>
        internal int GiveName(SegmentName name)
        {
            if (dotName.Length == 0)
            {
                return Files.LinkUnnamed(Segment!.File, name.Dir, name.File);
            }
            int result = Files.RenameNew(name.Dir, dotName, name.File);
            if (result >= 0)
            {
                // It has its own name now: nothing to unlink.
                ForgetDotName();
            }
            return result;
        }

        /// <summary>Makes the whole of the segment, without a name if mayBeUnnamed and the system can.</summary>
        internal void Build(SegmentName name, Spec spec, long roleByte, SegmentOptions o, bool mayBeUnnamed = true)
        {
            try
            {
                var segment = new OpenSegment(CreateFile(name, mayBeUnnamed, out int own));
                Segment = segment;
                segment.Link = new SegmentLink(own, name);
                // Locked before it is filled in. `ramway clean`, which takes away what has a dot-name and no lock, may be faster.
                if (!segment.Link.TryUse())
                {
                    throw Vanished();
                }
                if (roleByte != SegmentLink.NoRole)
                {
                    segment.Link.TakeRole(roleByte, spec.Kind);
                }
                Errors.Check(Files.Chmod(segment.File, o.FileMode), "setting the file's mode");
                segment.Header = SegmentFile.Fill(segment.File, spec, o.NumaNode);
            }
            catch
            {
                Drop();
                throw;
            }
        }

        /// <summary>Whether this is what <see cref="CreateFile"/> calls a file.</summary>
        internal static bool IsDotName(string file)
        {
            if (file.Length != Facts.StagedPrefix.Length + 16 + Facts.StagedSuffix.Length ||
                !file.StartsWith(Facts.StagedPrefix, StringComparison.Ordinal) || !Names.HasSuffix(file, Facts.StagedSuffix))
            {
                return false;
            }
            foreach (char c in file.AsSpan(Facts.StagedPrefix.Length, 16))
            {
                if (!Uri.IsHexDigit(c))
                {
                    return false;
                }
            }
            return true;
        }

        internal static Again Vanished() => Again.Raced("the new segment vanished before it had its name");

        /// <summary>
        /// Makes a file, and opens it a second time for the locks: without a name, or under one that nobody takes for a segment's.
        /// </summary>
        private int CreateFile(SegmentName name, bool mayBeUnnamed, out int own)
        {
            int file = mayBeUnnamed ? Files.CreateUnnamed(name.Dir) : -1;
            if (file >= 0)
            {
                own = Files.Reopen(file);
                if (own >= 0)
                {
                    return file;
                }
                // Without /proc a file cannot be opened twice, or named, but by a name.
                Files.Close(file);
            }
            Span<byte> random = stackalloc byte[8];
            RandomNumberGenerator.Fill(random);
            string fresh = Facts.StagedPrefix + BitConverter.ToUInt64(random).ToString("x16") + Facts.StagedSuffix;
            int here = Errors.Check(Files.Dup(name.Dir), "duplicating a descriptor");
            file = Files.CreateNew(here, fresh);
            if (file < 0)
            {
                Files.Close(here);
                throw Errors.Os(file, "making a file");
            }
            dir = here;
            dotName = fresh;
            own = Files.OpenAt(dir, fresh, true);
            if (own < 0)
            {
                Files.Close(file);
                // `ramway clean` was faster than the lock.
                throw own == -Errno.ENOENT ? Vanished() : (Exception)Errors.Os(own, "opening the new file a second time");
            }
            return file;
        }
    }
}
