package ramway

import (
	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// lockLink is the locks of one handle on a segment that other processes open by its name or its descriptor.
type lockLink struct {
	// lock is the description that holds the locks; it is used for nothing else.
	lock int
	// dir and file are the name, for the last one out; -1 and empty for a ring without a name.
	dir  int
	file string
	id   sys.FileID
	// roleByte is the byte that is held exclusively, or noRole.
	roleByte int64
	// idle: byte 0 was never taken, so that there is nothing to release.
	idle bool
}

// openLink opens the description that holds the locks, and the directory for the last one out. nil: the name no longer
// leads to the file. It is opened for writing where that is permitted, because only then can a handle that only reads be
// the last one out.
func openLink(p *segmentName, stat *unix.Stat_t, readOnly bool) (*lockLink, error) {
	lock, err := sys.OpenAt(p.dir, p.file, true)
	if readOnly && (err == unix.EACCES || err == unix.EPERM || err == unix.EROFS) {
		lock, err = sys.OpenAt(p.dir, p.file, false)
	}
	if err == unix.ENOENT || err == unix.ELOOP {
		return nil, nil
	}
	if err != nil {
		return nil, osError(err, "opening the file a second time")
	}
	if now, err := sys.Stat(lock); err != nil || sys.IDOf(now) != sys.IDOf(stat) {
		sys.Close(lock)
		return nil, nil
	}
	dir, err := sys.Dup(p.dir)
	if err != nil {
		sys.Close(lock)
		return nil, osError(err, "duplicating a descriptor")
	}
	return &lockLink{lock: lock, dir: dir, file: p.file, id: sys.IDOf(stat), roleByte: noRole}, nil
}

// takeRole locks a role's byte; Busy, to be tried again, if somebody has it: perhaps the kernel has not yet closed the
// files of a predecessor that was killed.
func (l *lockLink) takeRole(at int64, kind segmentKind) error {
	got, err := sys.TryLock(l.lock, at, sys.Exclusive)
	if err != nil {
		return osError(err, "locking the role's byte of the segment")
	}
	if got {
		l.roleByte = at
		return nil
	}
	text := "the ring has a sender already"
	switch {
	case kind == kindTopic:
		text = "the topic has a publisher already: close it, or wait for the role (Timeout)"
	case kind == kindListener:
		text = "somebody is listening here already"
	case at == byteConsumer:
		text = "the ring has a receiver already"
	}
	return &later{err: failf(Busy, "%s", text)}
}

// use locks byte 0 shared.
func (l *lockLink) use(p *segmentName) error {
	got, err := sys.TryLock(l.lock, byteInUse, sys.Shared)
	if err != nil {
		return osError(err, "locking byte 0 of the segment")
	}
	if !got {
		// The description holds nothing: nobody may take it for the last one out.
		l.idle = true
		return raced("another process was removing the segment")
	}
	if !leadsTo(p.dir, p.file, l.id) {
		return raced("another file took the name while it was opened")
	}
	return nil
}

func (l *lockLink) peerAlive(me role) bool { return l.held(me.other().lockByte()) }

// held says whether another description, of this process or another, holds the byte. It says yes when it cannot know.
func (l *lockLink) held(at int64) bool {
	mode, err := sys.HeldByAnother(l.lock, at)
	return err != nil || mode != sys.Unlocked
}

// livesAt says whether a process that may write the file has the byte locked exclusively, if it is not this handle: the only
// lock of a topic that is a life, because whoever may read the file can take a shared one. It says yes when it cannot know.
func (l *lockLink) livesAt(at int64) bool {
	held, err := sys.HeldExclusivelyByAnother(l.lock, at)
	return err != nil || held
}

func (l *lockLink) vanished() bool {
	if l.file == "" {
		return false // it has no name, and needs none for a successor
	}
	stat, err := sys.Stat(l.lock)
	return err == nil && stat.Nlink == 0
}

func (l *lockLink) final() bool { return false }

// close releases the role, and if nobody else is there and nothing is undelivered, the name. (Memory without a name goes
// with its last descriptor and mapping.) A segment that cannot be
// judged or removed stays for `ramway clean`: that is no error of the handle's, hence always nil.
func (l *lockLink) close() error {
	defer l.closeFiles()
	if l.roleByte != noRole {
		sys.Unlock(l.lock, l.roleByte)
	}
	if l.idle {
		return nil
	}
	// Released first and then tried: if two that leave at once both tried to turn their shared lock into an exclusive one,
	// both would fail and the name would stay.
	sys.Unlock(l.lock, byteInUse)
	_ = l.whileAlone(func() error {
		page, _, h, err := readHeader(l.lock)
		if err == nil && !mustStay(l.lock, page, h) {
			// The segment alone: a listener has removed its socket, and one that is there is somebody else's.
			err = sys.Unlink(l.dir, l.file)
		}
		return err
	})
	return nil
}

func (l *lockLink) closeFiles() {
	sys.Close(l.lock)
	sys.Close(l.dir)
}
