using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>How a name is opened.</summary>
    internal enum How : byte
    {
        Create,
        Open,
        OpenOrCreate,
    }

    internal static class Verbs
    {
        internal static string Verb(this How how) =>
            how == How.Create ? "creating" : how == How.Open ? "opening" : "opening or creating";
    }

    /// <summary>A named segment that this process uses.</summary>
    internal sealed class OpenSegment
    {
        internal OpenSegment(int file) => File = file;

        /// <summary>A description without locks, for mapping.</summary>
        internal int File { get; }

        internal Header Header { get; set; } = null!;

        internal SegmentLink Link { get; set; } = null!;

        /// <summary>Releases what there is of it.</summary>
        internal void Drop()
        {
            Files.Close(File);
            Link?.Close();
        }
    }

    /// <summary>Opening and creating a named segment.</summary>
    internal sealed class Named
    {
        private readonly string name;
        private readonly How how;
        // What to make, and of which kind an existing segment must be.
        private readonly Spec spec;
        // The byte to lock exclusively, or NoRole.
        private readonly long roleByte;
        // Read-only handles take no role and create nothing.
        private readonly bool readOnly;
        private readonly SegmentOptions options;
        // Asked about an existing segment before it is locked: an exception keeps it untouched.
        private readonly Action<Header>? check;
        // A segment whose role is taken, kept between attempts. With its byte 0 held, nobody is the last one out: if the role's
        // holder goes, its ring is still there to be taken over. A release between attempts would make us the last one out of a
        // ring whose holder died just then, and remove what we were waiting for.
        private OpenSegment? waiting;

        internal Named(string name, How how, Spec spec, long roleByte, SegmentOptions options, Action<Header>? check = null,
            bool readOnly = false)
        {
            this.name = name;
            this.how = how;
            this.spec = spec;
            this.roleByte = roleByte;
            this.options = options;
            this.check = check;
            this.readOnly = readOnly;
        }

        /// <summary>
        /// Makes the segment of a listener (kind 4, byte 1) under its own name or path, removing a dead one with its socket:
        /// AlreadyExists if a live listener has it. Closing the link removes the segment if it is the last one. A user who can open
        /// the file can lock it and so keep the next listener out: our user only. Nothing but locks is shared through it, so that a
        /// disk will do.
        /// </summary>
        internal static SegmentLink LockListener(string name)
        {
            var o = new RegionOptions { AllowDisk = true };
            OpenSegment s = new Named(name, How.Create, Spec.Listener().Named(false), Facts.ByteListener, o).Open();
            Files.Close(s.File);
            return s.Link;
        }

        /// <summary>
        /// Creates or opens the segment and locks it. It blocks only as the options' Timeout says, and up to a second against others
        /// who are just creating or removing the same name.
        /// </summary>
        internal OpenSegment Open()
        {
            var staged = new Staged();
            try
            {
                return Errors.During(how.Verb() + " the " + Layout.NameOf(spec.Kind), name,
                    () => Again.Try(options.Timeout, () => Attempt(staged)));
            }
            finally
            {
                StopWaiting();
                staged.Drop();
            }
        }

        private OpenSegment Attempt(Staged staged)
        {
            SegmentName name;
            try
            {
                name = SegmentName.Resolve(this.name, how != How.Open);
            }
            catch (RamwayException e) when (how == How.Open && e.Kind == ErrorKind.NotFound)
            {
                throw new Again(e, absent: true);
            }
            using (name)
            {
                if (how == How.Create)
                {
                    return CreateOnce(name, staged);
                }
                try
                {
                    return OpenOnce(name);
                }
                catch (Again again) when (how == How.OpenOrCreate && again.Absent)
                {
                }
                try
                {
                    return CreateOnce(name, staged);
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.AlreadyExists)
                {
                    // Another creator was faster: its segment is to be opened.
                    throw new Again(e, race: true);
                }
            }
        }

        private OpenSegment OpenOnce(SegmentName name)
        {
            if (waiting == null)
            {
                waiting = LockExisting(name);
            }
            else if (!SegmentFile.LeadsTo(name.Dir, name.File, waiting.Link.Id))
            {
                StopWaiting();
                throw Again.NameChanged("its role was waited for");
            }
            if (roleByte != SegmentLink.NoRole)
            {
                // Where it is taken, the segment waits for the next attempt.
                waiting.Link.TakeRole(roleByte, spec.Kind);
            }
            OpenSegment s = waiting;
            waiting = null;
            return s;
        }

        /// <summary>Releases a segment whose role was taken.</summary>
        private void StopWaiting()
        {
            waiting?.Drop();
            waiting = null;
        }

        /// <summary>Opens and judges the file that has the name, and locks byte 0, shared.</summary>
        private OpenSegment LockExisting(SegmentName name)
        {
            int file = SegmentFile.OpenRegular(name, !readOnly, out Stat stat);
            if (file < 0)
            {
                throw Again.Missing("no segment has the name '" + name.Path + "': create it first, or check RAMWAY_DIR");
            }
            var s = new OpenSegment(file);
            try
            {
                SegmentFile.CheckFileSystem(file, options.AllowDisk);
                // The header is written before the name exists and never after, so it can be judged without a lock.
                s.Header = Header.Check(SegmentFile.ReadPage(file, out ulong size), size);
                s.Header.Require(spec.Kind);
                if (s.Header.OfAnotherBoot)
                {
                    throw Again.Missing("the segment '" + name.Path + "' is stale: it was left by another boot; creating starts anew");
                }
                check?.Invoke(s.Header);
                s.Link = SegmentLink.Open(name, stat, readOnly) ?? throw Again.NameChanged("it was opened");
                if (!s.Link.TryUse())
                {
                    throw Again.Raced("another process was removing the segment");
                }
                return s.Link.HasName() ? s : throw Again.NameChanged("it was opened");
            }
            catch
            {
                s.Drop();
                throw;
            }
        }

        /// <summary>Creates at a name that is free, or that a dead and empty segment has.</summary>
        private OpenSegment CreateOnce(SegmentName name, Staged staged)
        {
            SegmentFile.CheckFileSystem(name.Dir, options.AllowDisk);
            MakeWay(name);
            if (staged.Segment == null)
            {
                staged.Build(name, spec, roleByte, options);
            }
            int result = staged.GiveName(name);
            switch (result)
            {
                case -Errno.EEXIST:
                    throw Again.Raced("another process created the same name");
                case -Errno.ENOENT:
                    // `ramway clean` took the dot-name for a dead one's; or the directory is gone.
                    staged.Drop();
                    throw Staged.Vanished();
            }
            Errors.Check(result, "giving the segment its name");
            return staged.Take();
        }

        /// <summary>
        /// Removes a dead, empty segment that has the name. Anything else takes the name, so here that is AlreadyExists.
        /// </summary>
        private void MakeWay(SegmentName name)
        {
            int file = -1;
            Stat stat;
            Header h;
            try
            {
                file = SegmentFile.OpenRegular(name, true, out stat);
                if (file < 0)
                {
                    return;
                }
                h = Header.Check(SegmentFile.ReadPage(file, out ulong size), size);
                MakeWay(name, file, stat, h);
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.InvalidArgument || e.Kind == ErrorKind.AbiMismatch ||
                e.Kind == ErrorKind.Corrupt)
            {
                throw Errors.Fail(ErrorKind.AlreadyExists, "the name is taken: " + e.Text);
            }
            finally
            {
                if (file >= 0)
                {
                    Files.Close(file);
                }
            }
        }

        private void MakeWay(SegmentName name, int file, in Stat stat, Header h)
        {
            bool damaged = false, takesAll = h.OfAnotherBoot || how == How.Create && options.Discard;
            switch (StaleName.Remove(name, stat, h.Kind, () => takesAll ? null : Undelivered.ReasonToKeep(file, h, out damaged),
                out string? reason))
            {
                case Removal.InUse:
                    throw Errors.Fail(ErrorKind.AlreadyExists, "a live " + Layout.NameOf(h.Kind) +
                        " has this name; open it, or pick another name");
                case Removal.Contended:
                    throw Again.Raced("another process was removing the segment");
                case Removal.Moved:
                    throw Again.NameChanged("it was checked");
                case Removal.Kept:
                    throw Errors.Fail(ErrorKind.AlreadyExists, reason + "; " +
                        (damaged ? "nobody can resume it" : "OpenOrCreate resumes it") + ", Discard starts anew");
            }
        }
    }
}
