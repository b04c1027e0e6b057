package ramway

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Segments from outside: what a directory holds, and the removal of what is not needed any more.

// Segment is what [Ls] found under a name, at one moment.
type Segment struct {
	// Name is the file's name, Path leads to it.
	Name, Path string
	// Err says why the file cannot be read as a segment: AbiMismatch for what is not Ramway's or of another version,
	// Corrupt, PermissionDenied. Then only Name and Path are filled in.
	Err error
	// Kind is "ring", "region", "listener" or "topic".
	Kind string
	// InUse: somebody uses it. Stale is the contrary: left behind by processes that died, or by another boot.
	InUse, Stale bool
	// Persistent: the name stays when the last user goes.
	Persistent bool
	// Size is the whole file's, Capacity the data's, in bytes; 0 for a listener.
	Size, Capacity int64
	// Align is the alignment of the payloads of a ring or topic.
	Align int
	// Used is how many bytes of a ring are not released yet.
	Used int64
	// Undelivered is how many messages of a ring are not released yet; -1 if it moved too fast to count, or is damaged.
	Undelivered int
	// ProducerHeld: a ring has a sender, a topic a publisher; of a listener: somebody listens. ConsumerHeld: a ring has a
	// receiver.
	ProducerHeld, ConsumerHeld bool
	// Topic is what else there is to say of a topic; nil for another kind.
	Topic *SegmentTopic
}

// SegmentTopic is a topic that [Ls] found.
type SegmentTopic struct {
	// Slots is how many there are, used or not.
	Slots int
	// LossyOnly and MayEject are the properties that its creator gave it.
	LossyOnly, MayEject bool
	// Seq is the number of the newest message; 0 before the first, or if it moved too fast to read it.
	Seq uint64
	// Subscribers are those that have a slot, as [Publisher.Subscribers] gives them; BlocksFor is 0.
	Subscribers []SubscriberInfo
}

// Ls is every segment of a directory, by name; "" is [Directory], and one that does not exist is empty. It maps nothing,
// locks nothing and disturbs nobody: what it says of a segment in use may be old by the time it is read. A file that cannot
// be read as a segment is an element with Err.
//
//	segments, err := ramway.Ls("")
//	for _, s := range segments {
//		fmt.Println(s.Name, s.Kind, s.InUse, s.Undelivered)
//	}
//
// Errors: only if the directory cannot be read.
func Ls(directory string) ([]Segment, error) {
	all := []Segment{}
	err := eachFile(directory, "listing", func(p *segmentName) {
		if p.file[0] == '.' {
			return
		}
		s, err := inspect(p)
		switch KindOf(err) {
		// Removed meanwhile, or not a file that could be a segment.
		case NotFound, InvalidArgument:
			return
		}
		s.Name, s.Path = p.file, p.path
		if err != nil {
			s = Segment{Name: p.file, Path: p.path, Err: about(err, "inspecting", p.path)}
		}
		all = append(all, s)
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// eachFile calls f for each name of a directory, sorted.
func eachFile(directory, doing string, f func(p *segmentName)) error {
	if directory == "" {
		directory = Directory()
	}
	entries, err := os.ReadDir(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		var dir int
		if dir, err = sys.OpenDir(directory, true); err == nil {
			defer sys.Close(dir)
			for _, entry := range entries {
				f(&segmentName{dir: dir, file: entry.Name(), path: filepath.Join(directory, entry.Name()), isPath: true})
			}
			return nil
		}
	}
	return about(osError(err, "reading the directory"), doing, directory)
}

func inspect(p *segmentName) (Segment, error) {
	file, _, err := openRegular(p, false)
	if err != nil {
		return Segment{}, err
	}
	defer sys.Close(file)
	page, size, h, err := readHeader(file)
	if err != nil {
		return Segment{}, err
	}
	s := Segment{Kind: h.kind.String(), Persistent: h.persistent(), Size: int64(size)}
	for at, held := range map[int64]*bool{byteInUse: &s.InUse, byteProducer: &s.ProducerHeld, byteConsumer: &s.ConsumerHeld} {
		mode, err := sys.HeldByAnother(file, at)
		if err != nil {
			return Segment{}, osError(err, "asking for the segment's locks")
		}
		*held = mode != sys.Unlocked
	}
	s.Stale = !s.InUse
	switch g := h.blocks[0]; h.kind {
	case kindListener:
		return s, nil
	case kindTopic:
		// Its byte 2 is another lock, and only an exclusive one is a life.
		s.ConsumerHeld = false
		if s.ProducerHeld, err = sys.HeldExclusivelyByAnother(file, bytePublisher); err != nil {
			return Segment{}, osError(err, "asking for the segment's locks")
		}
		s.Capacity, s.Align = int64(g.capacity), int(g.align)
		s.Topic, err = topicOf(file, g)
		return s, err
	}
	for i, g := range h.blocks {
		s.Capacity += int64(g.capacity)
		if h.kind == kindRegion || g.capacity == 0 {
			continue
		}
		s.Align = int(g.align)
		used, messages := contents(file, page, i, g, s.InUse)
		s.Used += used
		if s.Undelivered >= 0 && messages >= 0 {
			s.Undelivered += messages
		} else {
			s.Undelivered = -1
		}
	}
	return s, nil
}

// contents is how many bytes and messages a ring holds; -1 messages if it moved too fast to count, or is damaged.
func contents(file int, page []byte, block int, g geometry, moves bool) (used int64, messages int) {
	for range 3 {
		w := ringIn(page, block)
		used = int64(min(w.tail-w.head, g.capacity))
		counted, _, err := countUndelivered(file, framesOf(g), w.tail, w.head)
		if !moves {
			return used, messageCount(counted, err)
		}
		// Frames that were counted while their ring moved may have been overwritten: only a still ring counts.
		var gone error
		if page, _, gone = readPage(file); gone != nil {
			break
		}
		if now := ringIn(page, block); now.head == w.head {
			return used, messageCount(counted, err)
		}
	}
	return used, -1
}

func messageCount(counted uint64, err error) int {
	if err != nil {
		return -1
	}
	return int(counted)
}

// Unlink removes a segment that nobody uses, by name or path, whatever it holds: persistent, or with undelivered messages
// too, since the caller named it. The dead socket of a listener goes with it.
//
// Errors: ErrBusy if somebody uses it, ErrNotFound, ErrPermissionDenied. What is no segment of this version stays as it is:
// ErrAbiMismatch, ErrCorrupt, ErrInvalidArgument if it is no regular file.
func Unlink(name string) error {
	p, err := resolveName(name, false)
	if err == nil {
		defer p.close()
		err = unlinkOnce(p)
	}
	if err != nil {
		return about(err, "unlinking", name)
	}
	return nil
}

func unlinkOnce(p *segmentName) error {
	file, stat, err := openRegular(p, true)
	if err != nil {
		return err
	}
	defer sys.Close(file)
	_, _, h, err := readHeader(file)
	if err != nil {
		return err
	}
	switch err := p.whileAlone(stat, func() error { return p.removeSegment(h.kind) }); err {
	case errGone:
		return failf(NotFound, "%v", err)
	case errInUse:
		return failf(Busy, "the %s is in use: close it first in every process (ramway ls shows which)", h.kind)
	default:
		return err
	}
}

// CleanOptions say what [Clean] may do.
type CleanOptions struct {
	// Undelivered also removes what nobody uses but somebody could want: undelivered messages, the unseen end of a
	// stream, persistent segments.
	Undelivered bool
	// DryRun only says what would be done. It takes no lock.
	DryRun bool
}

// Cleaned is what became of a file: it was removed (with DryRun: would have been), or kept for a reason, or Err.
type Cleaned struct {
	// Name is the file's name.
	Name string
	// Removed says whether it was removed.
	Removed bool
	// Kept is why it was left alone; empty if it was removed.
	Kept string
	// Err is what went wrong with this file.
	Err error
}

// Clean removes the segments of a directory that nobody uses; "" is [Directory]. Never one that somebody uses, however
// quiet it is, and never what is not Ramway's. It gives each regular file's name and what became of it.
//
// Errors: only if the directory cannot be read.
func Clean(directory string, o CleanOptions) ([]Cleaned, error) {
	all := []Cleaned{}
	err := eachFile(directory, "cleaning", func(p *segmentName) {
		if p.file[0] == '.' && !isStagedName(p.file) {
			return
		}
		kept, err := cleanOnce(p, o)
		switch KindOf(err) {
		// Gone already; sockets, directories and whatever else cannot be a segment.
		case NotFound, InvalidArgument:
			return
		}
		if err != nil {
			err = about(err, "cleaning", p.path)
		}
		all = append(all, Cleaned{Name: p.file, Removed: kept == "" && err == nil, Kept: kept, Err: err})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// cleanOnce removes a segment, or says why it is kept.
func cleanOnce(p *segmentName, o CleanOptions) (kept string, err error) {
	file, stat, err := openRegular(p, !o.DryRun)
	if err != nil {
		return "", err
	}
	defer sys.Close(file)
	page, size, err := readPage(file)
	if err != nil {
		return "", err
	}
	h, err := checkHeader(page, size)
	begun := string(page[:8])
	switch unfinished := isStagedName(p.file); {
	// A creator that was killed before it had written the header.
	case err != nil && unfinished && (begun == magic || begun == "\x00\x00\x00\x00\x00\x00\x00\x00"):
		h = &header{kind: kindRing}
	case err != nil && begun != magic:
		return "not a Ramway segment", nil
	case err != nil:
		return err.(*Error).Text, nil
	case unfinished || h.ofAnotherBoot():
		o.Undelivered = true
	}
	judge := func() (string, error) {
		if o.Undelivered || isStagedName(p.file) {
			return "", nil
		}
		return reasonToKeep(file, h)
	}
	if o.DryRun {
		mode, err := sys.HeldByAnother(file, byteInUse)
		switch {
		case err != nil:
			return "", osError(err, "asking for the segment's locks")
		case mode != sys.Unlocked:
			return errInUse.Error(), nil
		}
		return judge()
	}
	err = p.whileAlone(stat, func() (err error) {
		if kept, err = judge(); err != nil || kept != "" {
			return err
		}
		return p.removeSegment(h.kind)
	})
	switch err {
	case errGone:
		return "", failf(NotFound, "%v", err)
	case errInUse:
		return err.Error(), nil
	}
	return kept, err
}
