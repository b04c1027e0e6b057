using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>A side of a ring.</summary>
    internal enum Role : byte
    {
        Producer = 0,
        Consumer = 1,
    }

    internal static class Roles
    {
        internal static Role Other(this Role role) => role == Role.Producer ? Role.Consumer : Role.Producer;

        /// <summary>The byte of a segment that the holder of the role locks exclusively.</summary>
        internal static long LockByte(this Role role) =>
            role == Role.Producer ? Facts.ByteProducer : Facts.ByteConsumer;
    }

    /// <summary>
    /// Tells one side that the other one lives, and releases the segment at the end. No method may be called after Close; the
    /// others may be called from several threads at once.
    /// </summary>
    internal interface ILink
    {
        /// <summary>Whether Closed and PeerDead are forever; on a named ring a successor may attach.</summary>
        bool Final { get; }

        /// <summary>
        /// Whether a live process holds the other role. For the slow path: it is one system call. It says yes where it cannot know.
        /// </summary>
        bool PeerAlive(Role me);

        /// <summary>
        /// Whether a named segment has lost its name, so that no successor can ever attach. One system call.
        /// </summary>
        bool Vanished();

        /// <summary>
        /// Releases the role and closes the descriptors; on a named segment the last one out removes the name if nothing is
        /// undelivered. To be called once, after the closed flag is set, the peer is woken and all is unmapped.
        /// </summary>
        void Close();
    }

    /// <summary>For two threads of one process: only the closed flag tells.</summary>
    internal sealed class NoLink : ILink
    {
        internal static readonly NoLink Instance = new NoLink();

        public bool Final => true;

        public bool PeerAlive(Role me) => true;

        public bool Vanished() => false;

        public void Close()
        {
        }
    }

    /// <summary>The locks of one handle on a segment that has a name, or whose descriptor is handed on.</summary>
    /// <remarks>
    /// One kernel lock does four jobs: each handle keeps one more open file description, used for nothing but locks (a mapping or a
    /// sent descriptor would keep its locks alive after death). Byte 0 shared: in use. Byte 1 exclusive: I am the producer; of a
    /// listener: I listen. Byte 2 exclusive: I am the consumer. The kernel takes them away however a process ends.
    /// <para>
    /// The holder of byte 0 exclusively, for a moment, is alone with the file and may decide to unlink the name: see <see
    /// cref="StaleName"/>. A process that meets that lock starts over.
    /// </para>
    /// <para>
    /// Its descriptors are plain numbers and not SafeHandles, which close what is forgotten: the lock of a region whose handle was
    /// forgotten, but whose span is still in use, would go, and with it the only thing that keeps others from making the region
    /// anew. A forgotten Sender or Receiver has a finalizer that closes it in the right order.
    /// </para>
    /// </remarks>
    internal sealed class SegmentLink : ILink
    {
        /// <summary>Regions have none, nor have a topic's subscribers until they take a slot.</summary>
        internal const long NoRole = -1;

        /// <summary>The description that holds the locks; it is used for nothing else.</summary>
        private readonly int locks;
        // The name, for the last one out; no directory: the segment never had a name.
        private readonly int dir = -1;
        private readonly string file = "";
        private long roleByte = NoRole;
        // Of a topic an exclusive lock alone is a life: whoever may read the file can take a shared one.
        private bool isTopic;
        private bool inUse;

        /// <summary>Takes over a description of a segment without a name.</summary>
        internal SegmentLink(int locks) => this.locks = locks;

        /// <summary>Takes over a description of a named segment, also where it throws, and duplicates the directory.</summary>
        internal SegmentLink(int locks, SegmentName name)
        {
            this.locks = locks;
            file = name.File;
            int result = Files.Stat(locks, out Stat stat);
            Id = stat.Id;
            result = result < 0 ? result : dir = Files.Dup(name.Dir);
            if (result < 0)
            {
                Files.Close(locks);
                throw Errors.Os(result, "duplicating a descriptor");
            }
        }

        internal FileId Id { get; }

        public bool Final => false;

        /// <summary>
        /// Opens the description that holds the locks of a named segment. null: the name no longer leads to the file. It is opened
        /// for writing where that is permitted, because only then can a handle that only reads be the last one out.
        /// </summary>
        internal static SegmentLink? Open(SegmentName name, in Stat stat, bool readOnly)
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
            var link = new SegmentLink(Errors.Check(own, "opening the file a second time"), name);
            if (link.Id.Equals(stat.Id))
            {
                return link;
            }
            link.Close();
            return null;
        }

        /// <summary>
        /// Locks a role's byte; Busy, to be tried again, if another handle has it: perhaps the kernel has not released yet what a
        /// killed predecessor held.
        /// </summary>
        internal void TakeRole(long at, SegmentKind kind)
        {
            if (Errors.Check(Lock.Try(locks, at, LockMode.Exclusive), "locking the role's byte of the segment") == 0)
            {
                throw new Again(Errors.Fail(ErrorKind.Busy, kind == SegmentKind.Listener ? "a live listener has this name"
                    : kind == SegmentKind.Topic ? "the topic has a publisher already: close it, or wait for the role (Timeout)"
                    : at == Facts.ByteConsumer ? "the ring has a receiver already" : "the ring has a sender already"));
            }
            roleByte = at;
        }

        /// <summary>Locks byte 0 shared; false: another handle holds it exclusively, and is removing the segment.</summary>
        internal bool TryUse()
        {
            inUse = Errors.Check(Lock.Try(locks, Facts.ByteInUse, LockMode.Shared), "locking byte 0 of the segment") != 0;
            return inUse;
        }

        /// <summary>
        /// Locks byte 0 exclusively until Close: 1 when nobody else uses the segment, 0 when another handle does, or a negated errno.
        /// </summary>
        internal int TryAlone() => Lock.Try(locks, Facts.ByteInUse, LockMode.Exclusive);

        /// <summary>Whether byte 0 is in use, shared, by another.</summary>
        internal bool InUseByAnother() => Lock.HeldByAnother(locks, Facts.ByteInUse, out LockMode mode) >= 0 && mode == LockMode.Shared;

        /// <summary>Whether the name still leads to the file.</summary>
        internal bool HasName() => SegmentFile.LeadsTo(dir, file, Id);

        public bool PeerAlive(Role me) => isTopic
            ? LivesAt(Facts.BytePublisher)
            : Lock.HeldByAnother(locks, me.Other().LockByte(), out LockMode mode) < 0 || mode != LockMode.Unlocked;

        /// <summary>Makes this the link of a topic's end.</summary>
        internal void ServeTopic() => isTopic = true;

        /// <summary>
        /// Whether another handle has the byte locked exclusively. It says yes where it cannot know.
        /// </summary>
        internal bool LivesAt(long at) =>
            Lock.HeldExclusivelyByAnother(locks, at, out LockMode mode) < 0 || mode != LockMode.Unlocked;

        /// <summary>Locks a slot's byte of a topic, if nobody else has it. A handle holds one at most.</summary>
        internal bool TryTakeSlot(int slot)
        {
            long at = Facts.ByteSlot + slot;
            bool got = Errors.Check(Lock.Try(locks, at, LockMode.Exclusive), "locking a slot's byte of the topic") != 0;
            roleByte = got ? at : roleByte;
            return got;
        }

        /// <summary>Lets that byte go.</summary>
        internal void LetSlotGo()
        {
            Lock.Unlock(locks, roleByte);
            roleByte = NoRole;
        }

        /// <summary>Locks byte 2 of a topic: one subscriber with a label at a time looks for its slot.</summary>
        internal bool TryJoin() => Errors.Check(Lock.Try(locks, Facts.ByteJoin, LockMode.Exclusive), "locking byte 2 of the topic") != 0;

        /// <summary>The contrary.</summary>
        internal void EndJoin() => Lock.Unlock(locks, Facts.ByteJoin);

        public bool Vanished() => dir >= 0 && Files.Stat(locks, out Stat stat) >= 0 && stat.Links == 0;

        /// <summary>
        /// Releases the role, and if nobody else uses the segment and nothing is undelivered, the name. A segment that cannot be
        /// judged or removed stays for `ramway clean`: that is no error of the handle's.
        /// </summary>
        public void Close()
        {
            if (roleByte != NoRole)
            {
                Lock.Unlock(locks, roleByte);
            }
            // Released first and then tried: if two that leave at once both tried to turn their shared lock into an exclusive one,
            // both would fail and the name would stay.
            Lock.Unlock(locks, Facts.ByteInUse);
            // A description that never held byte 0 is not the last one out.
            if (inUse && dir >= 0 && TryAlone() == 1)
            {
                StaleName.RemoveByLast(this, locks, dir, file);
                // Closing ends the lock as well, but not before a child that is between fork and exec has closed its copy.
                Lock.Unlock(locks, Facts.ByteInUse);
            }
            Files.Close(locks);
            if (dir >= 0)
            {
                Files.Close(dir);
            }
        }
    }
}
