package ramway

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// A name that nobody uses: who may judge it, and how it is removed. The last one out, a creator over a dead segment,
// Unlink and Clean all come here.

var (
	// errInUse: another handle uses the segment.
	errInUse = errors.New("in use")
	// errGone: the name does not lead to the file any more.
	errGone = errors.New("it is gone already")
)

// whileAlone calls f while byte 0 is held exclusively, so that nobody else uses the segment, and while the name leads to
// it. The link's own lock on byte 0 was released before. errInUse, errGone, or what f says.
func (l *lockLink) whileAlone(f func() error) error {
	alone, err := sys.TryLock(l.lock, byteInUse, sys.Exclusive)
	if err != nil {
		return osError(err, "locking byte 0 of the segment")
	}
	if !alone {
		return errInUse
	}
	// Closing ends the lock as well, but not before a child that is between fork and exec has closed its copy.
	defer sys.Unlock(l.lock, byteInUse)
	if !leadsTo(l.dir, l.file, l.id) {
		return errGone
	}
	return f()
}

// whileAlone is lockLink.whileAlone for a file that was opened to be judged.
func (p *segmentName) whileAlone(stat *unix.Stat_t, f func() error) error {
	l, err := openLink(p, stat, false)
	if err != nil {
		return err
	}
	if l == nil {
		return errGone
	}
	defer l.closeFiles()
	return l.whileAlone(f)
}

// removeSegment unlinks a dead segment's name, and before it a dead listener's socket if nobody listens there. The caller
// is alone with it.
func (p *segmentName) removeSegment(kind segmentKind) error {
	if kind == kindListener {
		socket := socketOf(p.file)
		if here := sys.ShortDir(p.dir); here != "" {
			// What is not to be removed stays, and does not keep the segment.
			_ = removeDeadSocket(p.dir, socket, here+"/"+socket, socket)
		}
	}
	if err := sys.Unlink(p.dir, p.file); err != nil && err != unix.ENOENT {
		return osError(err, "removing the name")
	}
	return nil
}

// removeStale removes a dead, empty segment that has the name that is to be created. Whatever is there and is not a dead
// segment takes the name, so here that is AlreadyExists.
func (r *request) removeStale(p *segmentName) error {
	taken := func(err error) error {
		e, isOurs := err.(*Error)
		if isOurs && (e.Kind == InvalidArgument || e.Kind == AbiMismatch || e.Kind == Corrupt) {
			return failf(AlreadyExists, "the name is taken: %s", e.Text)
		}
		return err
	}
	file, stat, err := openRegular(p, true)
	if kindOf(err) == NotFound {
		return nil
	}
	if err != nil {
		return taken(err)
	}
	defer sys.Close(file)
	_, _, h, err := readHeader(file)
	if err != nil {
		return taken(err)
	}
	err = p.whileAlone(stat, func() error {
		if !h.ofAnotherBoot() && !(r.how == howCreate && r.o.Discard) {
			if err := refuseUndelivered(file, h); err != nil {
				return err
			}
		}
		return p.removeSegment(h.kind)
	})
	switch err {
	case errGone:
		return raced("another file took the name while it was checked")
	case errInUse:
		if mode, err := sys.HeldByAnother(file, byteInUse); err == nil && mode == sys.Shared {
			return failf(AlreadyExists, "a live %s has this name; open it, or pick another name", h.kind)
		}
		return raced("another process was removing the segment")
	}
	return err
}

// refuseUndelivered is why a dead segment's name cannot be taken, if somebody could still want what it holds.
func refuseUndelivered(file int, h *header) error {
	reason, err := reasonToKeep(file, h)
	if err != nil || reason == "" {
		return err
	}
	advice := "an OpenOrCreate resumes it"
	if strings.HasPrefix(reason, damaged) {
		advice = "nobody can resume it"
	}
	return failf(AlreadyExists, "%s; %s, Discard starts anew", reason, advice)
}
