package ramway

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// How a named segment comes into being: whole, or not at all.

// staged is a segment that is whole and locked but has no name yet; kept when somebody else was faster, for the next
// attempt.
type staged struct {
	segment *segment
	// dir and dotName are what the file is called meanwhile where the file system knows no files without a name.
	dir     int
	dotName string
}

// drop throws away what has not got its name.
func (b *staged) drop() {
	if b.segment == nil {
		return
	}
	b.unlinkDotName()
	// Nothing leads to the file, so the last one out finds nothing to remove.
	_ = b.segment.drop()
	b.segment = nil
}

func (b *staged) unlinkDotName() {
	if b.dotName != "" {
		_ = sys.Unlink(b.dir, b.dotName)
		sys.Close(b.dir)
		b.dotName = ""
	}
}

func (r *request) createOnce(p *segmentName, b *staged) (*segment, error) {
	if err := checkFileSystem(p.dir, r.o.AllowDisk); err != nil {
		return nil, err
	}
	if err := r.makeWay(p); err != nil {
		return nil, err
	}
	if b.segment == nil {
		if err := b.build(p, r, true); err != nil {
			return nil, err
		}
	}
	switch err := b.giveName(p); err {
	case nil:
		s := b.segment
		b.segment = nil
		return s, nil
	case unix.EEXIST:
		return nil, raced("somebody else created the same name")
	case unix.ENOENT:
		// `ramway clean` took the dot-name for a dead one's; or the directory is gone.
		b.drop()
		return nil, raced("the new segment vanished before it had its name")
	default:
		return nil, osError(err, "giving the segment its name")
	}
}

// makeWay removes a dead, empty segment that has the name. Whatever is there and is not a dead segment takes the name, so
// here that is AlreadyExists.
func (r *request) makeWay(p *segmentName) error {
	taken := func(err error) error {
		e, isOurs := err.(*Error)
		if isOurs && (e.Kind == InvalidArgument || e.Kind == AbiMismatch || e.Kind == Corrupt) {
			return failf(AlreadyExists, "the name is taken: %s", e.Text)
		}
		return err
	}
	file, stat, err := openRegular(p, true)
	if err != nil {
		return taken(err)
	}
	if stat == nil {
		return nil
	}
	defer sys.Close(file)
	page, size, err := readPage(file)
	if err != nil {
		return err
	}
	h, err := checkHeader(page, size)
	if err != nil {
		return taken(err)
	}
	l, err := openLink(p, stat, false)
	if err != nil {
		return err
	}
	if l == nil {
		return raced("the name changed hands while it was looked at")
	}
	// Nothing but the exclusive lock is held, and it is let go by name: see namedLink.close.
	defer func() {
		sys.Unlock(l.lock, byteInUse)
		sys.Close(l.lock)
		sys.Close(l.dir)
	}()
	alone, err := sys.TryLock(l.lock, byteInUse, sys.Exclusive)
	if err != nil {
		return osError(err, "locking byte 0 of the segment")
	}
	if !alone {
		if mode, err := sys.HeldByAnother(l.lock, byteInUse); err == nil && mode == sys.Shared {
			return failf(AlreadyExists, "a live %s has this name; open it, or pick another name", h.kind)
		}
		return raced("somebody was removing the segment")
	}
	if !leadsTo(p.dir, p.file, l.id) {
		return raced("the name changed hands while it was looked at")
	}
	if !h.ofAnotherBoot() && !(r.how == howCreate && r.o.Discard) {
		reason, err := reasonToKeep(file, h)
		if err != nil {
			return err
		}
		if reason != "" {
			advice := "an OpenOrCreate resumes it"
			if strings.HasPrefix(reason, damaged) {
				advice = "nobody can resume it"
			}
			return failf(AlreadyExists, "%s; %s, Discard starts anew", reason, advice)
		}
	}
	if err := removeSegment(p.dir, p.file, h.kind); err != nil {
		return osError(err, "removing the dead segment")
	}
	return nil
}

// build makes the whole of the segment, without a name if mayBeUnnamed and the system can.
func (b *staged) build(p *segmentName, r *request, mayBeUnnamed bool) error {
	file, lock, err := -1, -1, error(unix.ENOTSUP)
	if mayBeUnnamed {
		file, err = sys.CreateUnnamed(p.dir)
		if err == nil {
			// Without /proc a file cannot be opened twice, or named, but by a name.
			if lock, err = sys.Reopen(file); err != nil {
				sys.Close(file)
			}
		}
	}
	dotName := ""
	if err != nil {
		if file, lock, dotName, err = createDotName(p.dir); err != nil {
			return err
		}
	}
	abandon := func(err error) error {
		if dotName != "" {
			_ = sys.Unlink(p.dir, dotName)
		}
		sys.Close(file)
		sys.Close(lock)
		return err
	}
	stat, err := sys.Stat(file)
	if err != nil {
		return abandon(osError(err, "looking at the new file"))
	}
	// Locked before it is filled in. `ramway clean`, which takes away what has a dot-name and no lock, may be faster.
	got, err := sys.TryLock(lock, byteInUse, sys.Shared)
	if err != nil {
		return abandon(osError(err, "locking byte 0 of the segment"))
	}
	if !got {
		return abandon(raced("the new segment vanished before it had its name"))
	}
	l := &namedLink{lock: lock, file: p.file, id: sys.IDOf(stat), roleByte: noRole}
	if r.roleByte != noRole {
		if err := l.takeRole(r.roleByte, r.kind); err != nil {
			return abandon(err)
		}
	}
	h, err := fill(file, r.spec, r.o)
	if err != nil {
		return abandon(err)
	}
	if l.dir, err = sys.Dup(p.dir); err != nil {
		return abandon(osError(err, "duplicating a descriptor"))
	}
	if dotName != "" {
		if b.dir, err = sys.Dup(p.dir); err != nil {
			sys.Close(l.dir)
			return abandon(osError(err, "duplicating a descriptor"))
		}
	}
	b.dotName = dotName
	b.segment = &segment{file: file, header: h, link: l}
	return nil
}

// createDotName makes a file under a name that nobody takes for a segment, and opens it a second time for the locks.
func createDotName(dir int) (file, lock int, name string, err error) {
	var random [8]byte
	// Never fails (Go 1.24 says so; before, the name's O_EXCL catches a repetition).
	_, _ = rand.Read(random[:])
	name = ".ramway-" + hex.EncodeToString(random[:]) + ".new"
	file, err = sys.CreateNew(dir, name)
	if err != nil {
		return -1, -1, "", osError(err, "making a file")
	}
	lock, err = sys.OpenAt(dir, name, true)
	if err == unix.ENOENT {
		// `ramway clean` was faster than the lock.
		sys.Close(file)
		return -1, -1, "", raced("the new segment vanished before it had its name")
	}
	if err != nil {
		_ = sys.Unlink(dir, name)
		sys.Close(file)
		return -1, -1, "", osError(err, "opening the new file a second time")
	}
	return file, lock, name, nil
}

// fill gives a new file its permissions, its space and its header page.
func fill(file int, s *spec, o *Options) (*header, error) {
	if err := sys.Chmod(file, o.fileMode()); err != nil {
		return nil, osError(err, "setting the file's mode")
	}
	return fillMemory(file, s, o)
}

// fillMemory gives a new file its space and its header page.
func fillMemory(file int, s *spec, o *Options) (*header, error) {
	if err := allocateSegment(file, s, o); err != nil {
		return nil, err
	}
	if err := sys.Truncate(file, int64(s.size)); err != nil {
		return nil, osError(err, "sizing the file")
	}
	page := formatHeader(s)
	if err := sys.WriteAt(file, page, 0); err != nil {
		return nil, osError(err, "writing the header page")
	}
	return checkHeader(page, s.size)
}

// allocateSegment takes the space of the header page and of the data. What lies between them, where pages are huge, stays
// a hole.
func allocateSegment(file int, s *spec, o *Options) error {
	if s.size > 1<<62 {
		return tooBig(s.size)
	}
	if err := sys.Allocate(file, 0, headerSize); err != nil {
		return osError(err, "taking the segment's space")
	}
	for _, g := range s.blocks {
		if o.NUMANode != nil {
			if err := sys.PreferNode(file, int64(g.dataOffset), int64(g.capacity), *o.NUMANode); err != nil {
				return osError(err, "taking the segment's space")
			}
		}
		if err := sys.Allocate(file, int64(g.dataOffset), int64(g.capacity)); err != nil {
			return osError(err, "taking the segment's space")
		}
	}
	return nil
}

// giveName makes the segment appear under its name.
func (b *staged) giveName(p *segmentName) error {
	if b.dotName == "" {
		return sys.LinkUnnamed(b.segment.file, p.dir, p.file)
	}
	if err := sys.RenameNew(p.dir, b.dotName, p.file); err != nil {
		return err
	}
	// It has its own name now: nothing to unlink.
	sys.Close(b.dir)
	b.dotName = ""
	return nil
}
