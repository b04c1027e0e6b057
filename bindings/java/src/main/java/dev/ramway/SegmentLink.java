package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.FileId;
import dev.ramway.sys.Files;
import dev.ramway.sys.Lock;
import dev.ramway.sys.Stat;
import dev.ramway.sys.SysException;

/**
 * The locks of one handle on a named segment: one kernel lock does four jobs.
 *
 * <p>Each handle keeps one more open file description, used for nothing but locks (a mapping or a sent descriptor would
 * keep its locks alive after death). Byte 0 shared: in use. Byte 1 exclusive: I am the producer; of a listener: I listen.
 * Byte 2 exclusive: I am the consumer. The kernel takes them away however a process ends.
 *
 * <p>The holder of byte 0 exclusively, for a moment, is alone with the file and may decide to unlink the name
 * ({@link SegmentRemoval}). A call that meets that lock starts over.
 */
final class SegmentLink implements Link {
    /** In place of a role's byte: regions have none. */
    static final int NO_ROLE = -1;

    /** The description that holds the locks; it is used for nothing else. */
    final int lock;
    /** The directory and the name in it, for the last one out. */
    final int dir;
    final String file;
    final FileId id;
    /** The byte that is held exclusively. */
    private int roleByte = NO_ROLE;
    /** Byte 0 was never taken, so that there is nothing to release. */
    private boolean idle;

    /** Of a segment that never had a name: nobody removes it, the kernel takes it with its last descriptor. */
    static SegmentLink unnamed(int lock) {
        return new SegmentLink(lock, -1, "", null);
    }

    SegmentLink(int lock, int dir, String file, FileId id) {
        this.lock = lock;
        this.dir = dir;
        this.file = file;
        this.id = id;
    }

    /**
     * Opens the description that holds the locks, and the directory for the last one out. null: the name no longer leads to
     * the file. It is opened for writing where that is permitted, because only then can a handle that only reads be the last
     * one out.
     */
    static SegmentLink open(SegmentName name, Stat stat, boolean readOnly) {
        int lock = Files.openAt(name.dir, name.file, true);
        if (readOnly && (lock == -Errno.EACCES || lock == -Errno.EPERM || lock == -Errno.EROFS)) {
            lock = Files.openAt(name.dir, name.file, false);
        }
        if (lock == -Errno.ENOENT || lock == -Errno.ELOOP) {
            return null;
        }
        Errors.checked(lock, "opening the file a second time");
        int opened = lock;
        if (!Errors.orElse(false, () -> Files.stat(opened).id().equals(stat.id()))) {
            Files.close(lock);
            return null;
        }
        int dir = Files.dup(name.dir);
        if (dir < 0) {
            Files.close(lock);
            throw Errors.os(-dir, "duplicating a descriptor");
        }
        return new SegmentLink(lock, dir, name.file, stat.id());
    }

    /**
     * Locks a role's byte; to be tried again if somebody has it: perhaps the kernel has not released yet what a killed
     * predecessor held.
     */
    void takeRole(int at, int kind) throws RetryLater {
        if (Errors.during("locking the role's byte of the segment", () -> Lock.tryLock(lock, at, Lock.Mode.EXCLUSIVE))) {
            roleByte = at;
            return;
        }
        if (kind == Facts.KIND_TOPIC) {
            throw RetryLater.busy("the topic has a publisher already: close it, or wait for the role (timeout)");
        }
        if (kind == Facts.KIND_LISTENER) {
            throw RetryLater.busy("somebody is listening here already");
        }
        throw RetryLater.busy(at == Facts.BYTE_CONSUMER ? "the ring has a receiver already" : "the ring has a sender already");
    }

    /** Locks byte 0, shared. */
    void use(SegmentName name) throws RetryLater {
        if (!Errors.during("locking byte 0 of the segment", () -> Lock.tryLock(lock, Facts.BYTE_IN_USE, Lock.Mode.SHARED))) {
            // The description holds nothing: nobody may take it for the last one out.
            idle = true;
            throw RetryLater.raced("another process was removing the segment");
        }
        if (name != null && !SegmentFile.leadsTo(name.dir, name.file, id)) {
            throw RetryLater.nameChanged("it was opened");
        }
    }

    /** Locks byte 0 and a role of a ring without a name, waiting for it as the options say. */
    void take(Role role, Options options) {
        SegmentOpening.retry(RingEnd.nanos(options.timeout()), () -> {
            idle = false;
            use(null);
            takeRole(role.lockByte(), Facts.KIND_RING);
            return this;
        });
    }

    /** Locks a slot's byte of a topic, if nobody else has it. A handle holds one at most. */
    boolean takeSlot(int index) {
        int at = Facts.BYTE_SLOT + index;
        boolean got = Errors.during("locking a slot's byte of the topic", () -> Lock.tryLock(lock, at, Lock.Mode.EXCLUSIVE));
        if (got) {
            roleByte = at;
        }
        return got;
    }

    /** Lets the slot's byte go. */
    void letSlotGo() {
        Lock.unlock(lock, roleByte);
        roleByte = NO_ROLE;
    }

    /**
     * Whether somebody holds a byte exclusively. Of a topic only that is a life: whoever may read the file can take a shared lock.
     * One system call; yes where it cannot know.
     */
    boolean livesAt(int at) {
        return Errors.orElse(true, () -> Lock.heldByAnother(lock, at) == Lock.Mode.EXCLUSIVE);
    }

    @Override
    public boolean peerAlive(Role me) {
        return Errors.orElse(true, () -> Lock.isHeld(lock, me.other().lockByte()));
    }

    @Override
    public boolean vanished() {
        return Errors.orElse(false, () -> id != null && Files.stat(lock).links() == 0);
    }

    @Override
    public boolean isFinal() {
        return false;
    }

    /**
     * Releases the role, and if nobody else is there and nothing is undelivered, the name. A segment that cannot be judged or
     * removed stays for {@code ramway clean}: that is no error of the handle's.
     */
    @Override
    public void close() {
        if (roleByte != NO_ROLE) {
            Lock.unlock(lock, roleByte);
        }
        if (!idle) {
            // Released first and then tried: if two that leave at once both tried to turn their shared lock into an
            // exclusive one, both would fail and the name would stay.
            Lock.unlock(lock, Facts.BYTE_IN_USE);
            if (id != null) {
                removeIfLast();
            }
        }
        closeDescriptors();
    }

    private void removeIfLast() {
        try {
            if (Lock.tryLock(lock, Facts.BYTE_IN_USE, Lock.Mode.EXCLUSIVE)) {
                // A listener has taken its socket away itself, and only its own: here it is a segment like others.
                SegmentRemoval.whileAlone(this, Facts.KIND_RING, () -> {
                    SegmentFile.Page page = SegmentFile.readPage(lock);
                    return SegmentUndelivered.mustStay(lock, page) ? "" : null;
                });
            }
        } catch (SysException | RamwayException e) {
            // What cannot be judged stays.
            return;
        }
    }

    /**
     * Ends the use without being the last one out. Closing the description ends its lock as well, but not before a child that
     * is between fork and exec has closed its copy: so it is released explicitly.
     */
    void closeDescriptors() {
        Lock.unlock(lock, Facts.BYTE_IN_USE);
        Files.close(lock);
        if (dir >= 0) {
            Files.close(dir);
        }
    }
}
