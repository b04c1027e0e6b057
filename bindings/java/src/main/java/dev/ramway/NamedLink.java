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
 * <p>Whoever holds byte 0 exclusively, for a moment, is alone with the file and may decide to unlink the name: the last one
 * out, a creator over a dead segment, and {@code ramway clean}. Whoever meets that lock starts over.
 */
final class NamedLink implements Link {
    static final int BYTE_IN_USE = 0;
    static final int BYTE_PRODUCER = 1;
    static final int BYTE_CONSUMER = 2;
    static final int BYTE_LISTENER = 1;
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
    /** Byte 0 was never taken, so that there is nothing to let go. */
    private boolean idle;

    /** Of a segment that never had a name: nobody removes it, the kernel takes it with its last descriptor. */
    static NamedLink unnamed(int lock) {
        return new NamedLink(lock, -1, "", null);
    }

    NamedLink(int lock, int dir, String file, FileId id) {
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
    static NamedLink open(SegmentName name, Stat stat, boolean readOnly) {
        int lock = Files.openAt(name.dir, name.file, true);
        if (readOnly && (lock == -Errno.EACCES || lock == -Errno.EPERM || lock == -Errno.EROFS)) {
            lock = Files.openAt(name.dir, name.file, false);
        }
        if (lock == -Errno.ENOENT || lock == -Errno.ELOOP) {
            return null;
        }
        Errors.checked(lock, "opening the file a second time");
        boolean same;
        try {
            same = Files.stat(lock).id().equals(stat.id());
        } catch (SysException e) {
            same = false;
        }
        if (!same) {
            Files.close(lock);
            return null;
        }
        int dir = Files.dup(name.dir);
        if (dir < 0) {
            Files.close(lock);
            throw Errors.os(-dir, "duplicating a descriptor");
        }
        return new NamedLink(lock, dir, name.file, stat.id());
    }

    /**
     * Locks a role's byte; to be tried again if somebody has it: perhaps the kernel has not let go yet of a predecessor that
     * was killed.
     */
    void takeRole(int at, int kind) throws Later {
        boolean got;
        try {
            got = Lock.tryLock(lock, at, Lock.Mode.EXCLUSIVE);
        } catch (SysException e) {
            throw Errors.os(e, "locking the role's byte of the segment");
        }
        if (got) {
            roleByte = at;
            return;
        }
        if (kind == Layout.KIND_LISTENER) {
            throw Later.busy("somebody is listening here already");
        }
        throw Later.busy(at == BYTE_CONSUMER ? "the ring has a receiver already" : "the ring has a sender already");
    }

    /** Locks byte 0, shared. */
    void use(SegmentName name) throws Later {
        boolean got;
        try {
            got = Lock.tryLock(lock, BYTE_IN_USE, Lock.Mode.SHARED);
        } catch (SysException e) {
            throw Errors.os(e, "locking byte 0 of the segment");
        }
        if (!got) {
            // The description holds nothing: nobody may take it for the last one out.
            idle = true;
            throw Later.raced("somebody was removing the segment");
        }
        if (name != null && !SegmentFile.leadsTo(name.dir, name.file, id)) {
            throw Later.raced("the name changed hands while it was opened");
        }
    }

    /** Locks byte 0 and a role of a ring without a name, waiting for it as the options say. */
    void take(Role role, Options options) {
        Named.retry(RingEnd.nanos(options.timeout()), () -> {
            idle = false;
            use(null);
            takeRole(role.lockByte(), Layout.KIND_RING);
            return this;
        });
    }

    @Override
    public boolean peerAlive(Role me) {
        try {
            return Lock.heldByAnother(lock, me.other().lockByte()) != Lock.Mode.UNLOCKED;
        } catch (SysException e) {
            return true;
        }
    }

    @Override
    public boolean vanished() {
        try {
            return id != null && Files.stat(lock).links() == 0;
        } catch (SysException e) {
            return false;
        }
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
            Lock.unlock(lock, BYTE_IN_USE);
            if (id != null && tryAlone()) {
                removeIfDone();
            }
        }
        letGo();
    }

    /** Whether byte 0 could be locked exclusively. */
    private boolean tryAlone() {
        try {
            return Lock.tryLock(lock, BYTE_IN_USE, Lock.Mode.EXCLUSIVE);
        } catch (SysException e) {
            return false;
        }
    }

    /**
     * Ends the use without being the last one out. Closing the description ends its lock as well, but not before a child that
     * is between fork and exec has closed its copy: so it is let go by name.
     */
    void letGo() {
        Lock.unlock(lock, BYTE_IN_USE);
        Files.close(lock);
        if (dir >= 0) {
            Files.close(dir);
        }
    }

    /** Only while alone (byte 0 held exclusively): removes the name if nothing needs it any more. */
    private void removeIfDone() {
        try {
            if (!SegmentFile.leadsTo(dir, file, id)) {
                return;
            }
            SegmentFile.Page page = SegmentFile.readPage(lock);
            Header header = Header.check(page.bytes(), page.fileSize());
            if (!Undelivered.mustStay(page.bytes(), header)) {
                // A listener has taken its socket away itself, and only its own.
                removeName(dir, file);
            }
        } catch (RamwayException e) {
            // What cannot be judged stays.
            return;
        }
    }

    /**
     * Unlinks a dead segment's name, and with a listener's a socket that nobody listens at. The caller holds byte 0 exclusively.
     */
    static void removeSegment(int dir, String file, int kind) {
        if (kind == Layout.KIND_LISTENER) {
            try {
                DeadSocket.remove(dir, SegmentName.socketOf(file));
            } catch (SysException e) {
                // The segment goes without it.
                removeName(dir, file);
                return;
            }
        }
        removeName(dir, file);
    }

    private static void removeName(int dir, String file) {
        int result = Files.unlink(dir, file);
        if (result != 0 && result != -Errno.ENOENT) {
            throw Errors.os(-result, "removing the dead segment");
        }
    }
}
