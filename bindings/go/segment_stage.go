package ramway

import (
	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// How a named segment comes into being: whole, or not at all.

// staged is a segment that is whole and locked but has no name yet; kept when somebody else was faster, for the next
// attempt.
type staged struct {
	segment *segment
	// tempName is what the file is called meanwhile, in the link's directory, where the file system knows no files without
	// a name.
	tempName string
}

// drop throws away what has not got its name.
func (b *staged) drop() {
	if b.segment == nil {
		return
	}
	if b.tempName != "" {
		_ = sys.Unlink(b.segment.link.dir, b.tempName)
		b.tempName = ""
	}
	// Nothing leads to the file, so the last one out finds nothing to remove.
	_ = b.segment.drop()
	b.segment = nil
}

func (r *request) createOnce(p *segmentName, b *staged) (*segment, error) {
	if err := checkFileSystem(p.dir, r.o.AllowDisk); err != nil {
		return nil, err
	}
	if err := r.removeStale(p); err != nil {
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
		return nil, raced("another process created the same name")
	case unix.ENOENT:
		// `ramway clean` took the temporary name for a dead creator's; or the directory is gone.
		b.drop()
		return nil, raced("the new segment vanished before it had its name")
	default:
		return nil, osError(err, "giving the segment its name")
	}
}

// build makes the whole of the segment, without a name if mayBeUnnamed and the system can. After an error nothing of it
// remains.
func (b *staged) build(p *segmentName, r *request, mayBeUnnamed bool) (err error) {
	// idle until byte 0 is locked: there is nothing to release before.
	l := &lockLink{lock: -1, file: p.file, roleByte: noRole, idle: true}
	b.segment = &segment{file: -1, link: l}
	defer func() {
		if err != nil {
			b.drop()
		}
	}()
	if l.dir, err = sys.Dup(p.dir); err != nil {
		return osError(err, "duplicating a descriptor")
	}
	if err := b.createFile(mayBeUnnamed); err != nil {
		return err
	}
	stat, err := sys.Stat(b.segment.file)
	if err != nil {
		return osError(err, "checking the new file")
	}
	l.id = sys.IDOf(stat)
	// Locked before it is filled in. `ramway clean`, which removes what has such a name and no lock, may be faster.
	got, err := sys.TryLock(l.lock, byteInUse, sys.Shared)
	if err != nil {
		return osError(err, "locking byte 0 of the segment")
	}
	if !got {
		return raced("the new segment vanished before it had its name")
	}
	l.idle = false
	if r.roleByte != noRole {
		if err := l.takeRole(r.roleByte, r.kind); err != nil {
			return err
		}
	}
	b.segment.header, err = fill(b.segment.file, r.spec, r.o)
	return err
}

// createFile makes the file and opens it a second time for the locks.
func (b *staged) createFile(mayBeUnnamed bool) (err error) {
	s, l := b.segment, b.segment.link
	if mayBeUnnamed {
		if s.file, err = sys.CreateUnnamed(l.dir); err == nil {
			if l.lock, err = sys.Reopen(s.file); err == nil {
				return nil
			}
			// Without /proc a file cannot be opened twice, or named, but by a name.
			sys.Close(s.file)
		}
	}
	name := newStagedName()
	if s.file, err = sys.CreateNew(l.dir, name); err != nil {
		return osError(err, "making a file")
	}
	b.tempName = name
	switch l.lock, err = sys.OpenAt(l.dir, name, true); err {
	case nil:
		return nil
	case unix.ENOENT:
		// `ramway clean` was faster than the lock.
		return raced("the new segment vanished before it had its name")
	}
	return osError(err, "opening the new file a second time")
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
	if g := s.blocks[0]; g.slots != 0 {
		if err := sys.Allocate(file, int64(g.subsOffset), int64(g.mappedArea())); err != nil {
			return osError(err, "taking the segment's space")
		}
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
	if b.tempName == "" {
		return sys.LinkUnnamed(b.segment.file, p.dir, p.file)
	}
	err := sys.RenameNew(p.dir, b.tempName, p.file)
	if err == nil {
		// It has its own name now: nothing to unlink.
		b.tempName = ""
	}
	return err
}
