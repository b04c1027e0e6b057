using System;
using Ramway.Sys;

namespace Ramway
{
    // Creating: a name that is free, or that a dead and empty segment has.
    internal sealed partial class Named
    {
        private OpenSegment CreateOnce(SegmentName name, Birth birth)
        {
            CheckFileSystem(name.Dir, _options.AllowDisk);
            MakeWay(name);
            if (birth.Segment == null)
            {
                birth.Build(name, _spec!, _kind, _roleByte, _options);
            }
            int result = birth.GiveName(name);
            switch (result)
            {
                case -Errno.EEXIST:
                    throw Again.Raced("somebody else created the same name");
                case -Errno.ENOENT:
                    // `ramway clean` took the dot-name for a dead one's; or the directory is gone.
                    birth.Drop();
                    throw Birth.Vanished();
            }
            if (result < 0)
            {
                throw Errors.Os(result, "giving the segment its name");
            }
            return birth.Take();
        }

        /// <summary>
        /// Removes a dead, empty segment that has the name. Whatever is there and is not a dead segment takes the name, so here that
        /// is AlreadyExists.
        /// </summary>
        private void MakeWay(SegmentName name)
        {
            int file;
            Stat stat;
            try
            {
                file = OpenRegular(name, true, out stat);
            }
            catch (RamwayException e)
            {
                throw Taken(e);
            }
            if (file < 0)
            {
                return;
            }
            try
            {
                MakeWay(name, file, stat);
            }
            finally
            {
                Files.Close(file);
            }
        }

        private void MakeWay(SegmentName name, int file, in Stat stat)
        {
            byte[] page = ReadPage(file, out ulong size);
            Header h;
            try
            {
                h = Header.Check(page, size);
            }
            catch (RamwayException e)
            {
                throw Taken(e);
            }
            NamedLink? link = NamedLink.Open(name, stat, false);
            if (link == null)
            {
                throw Again.Raced("the name changed hands while it was looked at");
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
                    throw link.InUse()
                        ? Errors.Fail(ErrorKind.AlreadyExists, "a live " + Layout.NameOf(h.Kind) +
                            " has this name; open it, or pick another name")
                        : (Exception)Again.Raced("somebody was removing the segment");
                }
                if (!LeadsTo(name.Dir, name.File, link.Id))
                {
                    throw Again.Raced("the name changed hands while it was looked at");
                }
                if (!h.OfAnotherBoot && !(_how == How.Create && _options.Discard))
                {
                    string? reason = Undelivered.ReasonToKeep(file, h, out bool damaged);
                    if (reason != null)
                    {
                        throw Errors.Fail(ErrorKind.AlreadyExists, reason + "; " +
                            (damaged ? "nobody can resume it" : "OpenOrCreate resumes it") + ", Discard starts anew");
                    }
                }
                int removed = Remove(name.Dir, name.File, name.Path, h.Kind);
                if (removed < 0)
                {
                    throw Errors.Os(removed, "removing the dead segment");
                }
            }
            finally
            {
                link.LetGoAlone();
            }
        }

        private static RamwayException Taken(RamwayException e) =>
            e.Kind == ErrorKind.InvalidArgument || e.Kind == ErrorKind.AbiMismatch || e.Kind == ErrorKind.Corrupt
                ? Errors.Fail(ErrorKind.AlreadyExists, "the name is taken: " + e.Text)
                : e;
    }
}
