using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// The locks of one handle on a named segment.
    /// </summary>
    /// <remarks>
    /// Its descriptors are plain numbers and not SafeHandles, which close what is forgotten: the lock of a region whose handle was
    /// forgotten, but whose span is still in use, would go, and with it the only thing that keeps others from making the region
    /// anew. A forgotten Sender or Receiver has a finalizer that closes it in the right order.
    /// </remarks>
    internal sealed class NamedLink : ILink
    {
        /// <summary>The description that holds the locks; it is used for nothing else.</summary>
        private readonly int _lock;
        // The name, for the last one out.
        private readonly int _dir;
        private readonly string _file;
        private long _roleByte = Named.NoRole;
        // Byte 0 was never taken, so that there is nothing to let go.
        private bool _idle;

        internal NamedLink(int @lock, int dir, string file, FileId id)
        {
            _lock = @lock;
            _dir = dir;
            _file = file;
            Id = id;
        }

        internal FileId Id { get; }

        public bool Final => false;

        /// <summary>
        /// Opens the description that holds the locks, and the directory for the last one out. null: the name no longer leads to
        /// the file. It is opened for writing where that is permitted, because only then can a handle that only reads be the last
        /// one out.
        /// </summary>
        internal static NamedLink? Open(SegmentName name, in Stat stat, bool readOnly)
        {
            int own = Files.OpenAt(name.Dir, name.File, true);
            if (readOnly && (own == -Errno.EACCES || own == -Errno.EPERM || own == -Errno.EROFS))
            {
                own = Files.OpenAt(name.Dir, name.File, false);
            }
            if (own == -Errno.ENOENT || own == -Errno.ELOOP)
            {
                return null;
            }
            if (own < 0)
            {
                throw Errors.Os(own, "opening the file a second time");
            }
            if (Files.Stat(own, out Stat now) < 0 || !now.Id.Equals(stat.Id))
            {
                Files.Close(own);
                return null;
            }
            int dir = Files.Dup(name.Dir);
            if (dir < 0)
            {
                Files.Close(own);
                throw Errors.Os(dir, "duplicating a descriptor");
            }
            return new NamedLink(own, dir, name.File, stat.Id);
        }

        /// <summary>
        /// Locks a role's byte; Busy, to be tried again, if somebody has it: perhaps the kernel has not let go yet of a
        /// predecessor that was killed.
        /// </summary>
        internal void TakeRole(long at, SegmentKind kind)
        {
            int got = Lock.Try(_lock, at, LockMode.Exclusive);
            if (got < 0)
            {
                throw Errors.Os(got, "locking the role's byte of the segment");
            }
            if (got == 0)
            {
                throw new Again(Errors.Fail(ErrorKind.Busy, RoleTaken(at, kind)));
            }
            _roleByte = at;
        }

        internal static string RoleTaken(long at, SegmentKind kind) =>
            kind == SegmentKind.Listener ? "somebody is listening here already"
            : at == Named.ByteConsumer ? "the ring has a receiver already" : "the ring has a sender already";

        /// <summary>Locks byte 0 shared.</summary>
        internal void Use(SegmentName name)
        {
            int got = Lock.Try(_lock, Named.ByteInUse, LockMode.Shared);
            if (got < 0)
            {
                throw Errors.Os(got, "locking byte 0 of the segment");
            }
            if (got == 0)
            {
                // The description holds nothing: nobody may take it for the last one out.
                _idle = true;
                throw Again.Raced("somebody was removing the segment");
            }
            if (!Named.LeadsTo(name.Dir, name.File, Id))
            {
                throw Again.Raced("the name changed hands while it was opened");
            }
        }

        /// <summary>
        /// Locks byte 0 exclusively for a moment: 1 when nobody else uses the segment, 0 when somebody does, or a negated errno.
        /// Such a link is let go by <see cref="LetGoAlone"/>.
        /// </summary>
        internal int TryAlone() => Lock.Try(_lock, Named.ByteInUse, LockMode.Exclusive);

        /// <summary>Whether byte 0 is in use, shared, by another.</summary>
        internal bool InUse() =>
            Lock.HeldByAnother(_lock, Named.ByteInUse, out LockMode mode) >= 0 && mode == LockMode.Shared;

        /// <summary>Undoes <see cref="TryAlone"/> and closes the link: nothing else was held.</summary>
        internal void LetGoAlone()
        {
            Lock.Unlock(_lock, Named.ByteInUse);
            Files.Close(_lock);
            Files.Close(_dir);
        }

        public bool PeerAlive(Role me) => Held(me.Other().LockByte());

        /// <summary>
        /// Whether another description, of this process or another, holds the byte. It says yes when it cannot know.
        /// </summary>
        internal bool Held(long at) =>
            Lock.HeldByAnother(_lock, at, out LockMode mode) < 0 || mode != LockMode.Unlocked;

        public bool Vanished() => Files.Stat(_lock, out Stat stat) >= 0 && stat.Links == 0;

        /// <summary>
        /// Releases the role, and if nobody else is there and nothing is undelivered, the name. A segment that cannot be judged or
        /// removed stays for `ramway clean`: that is no error of the handle's.
        /// </summary>
        public void Close()
        {
            if (_roleByte != Named.NoRole)
            {
                Lock.Unlock(_lock, _roleByte);
            }
            if (!_idle)
            {
                // Released first and then tried: if two that leave at once both tried to turn their shared lock into an exclusive
                // one, both would fail and the name would stay.
                Lock.Unlock(_lock, Named.ByteInUse);
                if (TryAlone() == 1)
                {
                    RemoveIfDone();
                    // Closing ends the lock as well, but not before a child that is between fork and exec has closed its copy.
                    Lock.Unlock(_lock, Named.ByteInUse);
                }
            }
            Files.Close(_lock);
            Files.Close(_dir);
        }

        /// <summary>
        /// Only while alone (byte 0 held exclusively): removes the name if nothing needs it any more.
        /// </summary>
        private void RemoveIfDone()
        {
            if (!Named.LeadsTo(_dir, _file, Id))
            {
                return;
            }
            Header h;
            byte[] page;
            try
            {
                page = Named.ReadPage(_lock, out ulong size);
                h = Header.Check(page, size);
            }
            catch (RamwayException)
            {
                return;
            }
            if (!Undelivered.MustStay(page, h))
            {
                // Of a listener the segment only: its socket is its own to remove.
                Files.Unlink(_dir, _file);
            }
        }
    }
}
