package ramway

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Named segments: one kernel lock does four jobs.
//
// Each handle keeps one more open file description, used for nothing but locks (a mapping or a sent descriptor would
// keep its locks alive after death). Byte 0 shared: in use. Byte 1 exclusive: I am the producer; of a listener: I
// listen. Byte 2 exclusive: I am the consumer. The kernel takes them away however a process ends.
//
// A handle that holds byte 0 exclusively, for a moment, is alone with the file and may decide to unlink the name: the last
// one out, a creator over a dead segment, and `ramway clean`. Who meets that lock starts over.
const (
	// noRole: regions have none.
	noRole = -1
)

// request is everything that opening or creating a named segment needs to know.
type request struct {
	name string
	how  how
	// kind is what an existing segment must be.
	kind segmentKind
	// spec is what to make; nil if how is howOpen.
	spec *spec
	// check is asked about an existing segment before it is locked: an error keeps it untouched. May be nil.
	check func(*header) error
	// roleByte is the byte to lock exclusively, or noRole.
	roleByte int64
	// readOnly handles take no role and create nothing.
	readOnly bool
	o        *Options
	// waiting is a segment whose role is taken, kept between attempts. With its byte 0 held, nobody is the last one out:
	// if the role's holder goes, its ring is still there to be taken over. Letting go between attempts would make us the
	// last one out of a ring whose holder died just then, and remove what we were waiting for.
	waiting *segment
}

// segment is a named segment that this process uses.
type segment struct {
	// file is a description without locks, for mapping.
	file   int
	header *header
	link   *lockLink
}

// drop lets everything go.
func (s *segment) drop() error {
	sys.Close(s.file)
	return s.link.close()
}

// later is why an attempt is to be made again, and what to say when there is no time left.
type later struct {
	err *Error
	// race: somebody else was in the middle of something, which is waited for in any case. Else nothing is there to
	// open, or somebody has the role.
	race bool
	// absent: nothing is there to open.
	absent bool
}

func (l *later) Error() string { return l.err.Error() }

func raced(why string) error {
	return &later{err: failf(TimedOut, "%s, at each attempt until the deadline; try again, or pick another name", why), race: true}
}

func absent(e *Error) error { return &later{err: e, absent: true} }

// retry makes attempts until one gives no later: for as long as the time-out says, and up to a second against others who
// are just creating or removing the same name.
func retry[T any](timeout time.Duration, attempt func() (T, error)) (T, error) {
	start := time.Now()
	for pause := racePauseMin; ; pause = min(2*pause, racePauseMax) {
		got, err := attempt()
		again, isLater := err.(*later)
		if !isLater {
			return got, err
		}
		limit := timeout
		if again.race {
			limit = max(limit, raceTimeout)
		}
		left := limit - time.Since(start)
		if left <= 0 {
			return got, again.err
		}
		time.Sleep(min(pause, left))
	}
}

// open creates or opens the segment and locks it. It blocks as retry does.
func (r *request) open() (*segment, error) {
	var b staged
	defer b.drop()
	defer r.stopWaiting()
	s, err := retry(r.o.Timeout, func() (*segment, error) { return r.attempt(&b) })
	if err != nil {
		return nil, about(err, r.how.verb()+" the "+r.kind.String(), r.name)
	}
	return s, nil
}

func (r *request) attempt(b *staged) (*segment, error) {
	p, err := resolveName(r.name, r.how != howOpen)
	if err != nil {
		if e := err.(*Error); r.how == howOpen && e.Kind == NotFound {
			return nil, absent(e)
		}
		return nil, err
	}
	defer p.close()
	if r.how == howCreate {
		return r.createOnce(p, b)
	}
	s, err := r.openOnce(p)
	var again *later
	if r.how == howOpen || !errors.As(err, &again) || !again.absent {
		return s, err
	}
	s, err = r.createOnce(p, b)
	var e *Error
	if errors.As(err, &e) && e.Kind == AlreadyExists {
		// Somebody was faster: what they made is to be opened.
		return nil, &later{err: e, race: true}
	}
	return s, err
}

func (r *request) openOnce(p *segmentName) (*segment, error) {
	if s := r.waiting; s != nil {
		if leadsTo(p.dir, p.file, s.link.id) {
			return r.takeRole(s)
		}
		r.stopWaiting()
		return nil, raced("another file took the name while its role was waited for")
	}
	file, stat, err := openRegular(p, !r.readOnly)
	if kindOf(err) == NotFound {
		return nil, absent(failf(NotFound, "no segment has the name '%s': create it first, or check RAMWAY_DIR", p.path))
	}
	if err != nil {
		return nil, err
	}
	s, err := r.lockExisting(p, file, stat)
	if err != nil {
		sys.Close(file)
		return nil, err
	}
	return r.takeRole(s)
}

// takeRole locks the role's byte of a segment in use. Where it is taken, the segment waits for the next attempt.
func (r *request) takeRole(s *segment) (*segment, error) {
	r.waiting = s
	if r.roleByte != noRole {
		if err := s.link.takeRole(r.roleByte, r.kind); err != nil {
			return nil, err
		}
	}
	r.waiting = nil
	return s, nil
}

// stopWaiting releases a segment whose role was taken.
func (r *request) stopWaiting() {
	if r.waiting != nil {
		_ = r.waiting.drop()
		r.waiting = nil
	}
}

// lockExisting judges an open file and locks byte 0, shared. On an error the file stays the caller's.
func (r *request) lockExisting(p *segmentName, file int, stat *unix.Stat_t) (*segment, error) {
	if err := checkFileSystem(file, r.o.AllowDisk); err != nil {
		return nil, err
	}
	// The header is written before the name exists and never after, so it can be judged without a lock.
	_, _, h, err := readHeader(file)
	if err != nil {
		return nil, err
	}
	if h.kind != r.kind {
		return nil, failf(InvalidArgument, "this is a %s, not a %s", h.kind, r.kind)
	}
	if h.ofAnotherBoot() {
		return nil, absent(failf(NotFound, "the segment '%s' is stale: it was left by another boot; creating starts anew", p.path))
	}
	if r.check != nil {
		if err := r.check(h); err != nil {
			return nil, err
		}
	}
	l, err := openLink(p, stat, r.readOnly)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, raced("another file took the name while it was opened")
	}
	if err := l.use(p); err != nil {
		_ = l.close()
		return nil, err
	}
	return &segment{file: file, header: h, link: l}, nil
}
