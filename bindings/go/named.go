package ramway

import (
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Named segments: one kernel lock does four jobs.
//
// Each handle keeps one more open file description, used for nothing but locks (a mapping or a sent descriptor would
// keep its locks alive after death). Byte 0 shared: in use. Byte 1 exclusive: I am the producer; of a listener: I
// listen. Byte 2 exclusive: I am the consumer. The kernel takes them away however a process ends.
//
// Whoever holds byte 0 exclusively, for a moment, is alone with the file and may decide to unlink the name: the last one
// out, a creator over a dead segment, and `ramway clean`. Whoever meets that lock starts over.
const (
	byteInUse    = 0
	byteProducer = 1
	byteConsumer = 2
	byteListener = 1
	// noRole: regions have none.
	noRole = -1
)

// raceTimeout is how long races with others (a segment that is just going away) are retried at least.
const raceTimeout = time.Second

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
}

// segment is a named segment that this process uses.
type segment struct {
	// file is a description without locks, for mapping.
	file   int
	header *header
	link   *namedLink
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
	return &later{err: failf(TimedOut, "%s, over and over until the deadline", why), race: true}
}

func absent(e *Error) error { return &later{err: e, absent: true} }

// open creates or opens the segment and locks it. It blocks only as Options.Timeout says, and up to a second against
// others who are just creating or removing the same name.
func (r *request) open() (*segment, error) {
	start := time.Now()
	pause := 100 * time.Microsecond
	var b birth
	defer b.drop()
	for {
		s, err := r.attempt(&b)
		var again *later
		if !errors.As(err, &again) {
			if err != nil {
				return nil, about(err, r.how.verb()+" the "+r.kind.String(), r.name)
			}
			return s, nil
		}
		limit := r.o.Timeout
		if again.race {
			limit = max(limit, raceTimeout)
		}
		left := limit - time.Since(start)
		if left <= 0 {
			return nil, about(again.err, r.how.verb()+" the "+r.kind.String(), r.name)
		}
		time.Sleep(min(pause, left))
		pause = min(2*pause, 10*time.Millisecond)
	}
}

func (r *request) attempt(b *birth) (*segment, error) {
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
	file, stat, err := openRegular(p, !r.readOnly)
	if err != nil {
		return nil, err
	}
	if stat == nil {
		return nil, absent(failf(NotFound, "no segment has the name '%s': create it first, or check RAMWAY_DIR", p.path))
	}
	s, err := r.lockExisting(p, file, stat)
	if err != nil {
		sys.Close(file)
		return nil, err
	}
	return s, nil
}

// lockExisting judges an open file and takes its locks. On an error the file stays the caller's.
func (r *request) lockExisting(p *segmentName, file int, stat *unix.Stat_t) (*segment, error) {
	if err := checkFileSystem(file, r.o.AllowDisk); err != nil {
		return nil, err
	}
	// The header is written before the name exists and never after, so it can be judged without a lock.
	page, size, err := readPage(file)
	if err != nil {
		return nil, err
	}
	h, err := checkHeader(page, size)
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
		return nil, raced("the name changed hands while it was opened")
	}
	if err := l.use(p, r); err != nil {
		_ = l.close()
		return nil, err
	}
	return &segment{file: file, header: h, link: l}, nil
}

// use locks byte 0 shared and the role's byte.
func (l *namedLink) use(p *segmentName, r *request) error {
	got, err := sys.TryLock(l.lock, byteInUse, sys.Shared)
	if err != nil {
		return osError(err, "locking byte 0 of the segment")
	}
	if !got {
		// The description holds nothing: nobody may take it for the last one out.
		l.idle = true
		return raced("somebody was removing the segment")
	}
	if !leadsTo(p.dir, p.file, l.id) {
		return raced("the name changed hands while it was opened")
	}
	if r.roleByte == noRole {
		return nil
	}
	return l.takeRole(r.roleByte, r.kind)
}

// namedLink is the locks of one handle on a named segment.
type namedLink struct {
	// lock is the description that holds the locks; it is used for nothing else.
	lock int
	// dir and file are the name, for the last one out.
	dir  int
	file string
	id   sys.FileID
	// roleByte is the byte that is held exclusively, or noRole.
	roleByte int64
	// idle: byte 0 was never taken, so that there is nothing to let go.
	idle bool
}

// openLink opens the description that holds the locks, and the directory for the last one out. nil: the name no longer
// leads to the file. It is opened for writing where that is permitted, because only then can a handle that only reads be
// the last one out.
func openLink(p *segmentName, stat *unix.Stat_t, readOnly bool) (*namedLink, error) {
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
	return &namedLink{lock: lock, dir: dir, file: p.file, id: sys.IDOf(stat), roleByte: noRole}, nil
}

// takeRole locks a role's byte; Busy, to be tried again, if somebody has it: perhaps the kernel has not let go yet of a
// predecessor that was killed.
func (l *namedLink) takeRole(at int64, kind segmentKind) error {
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
	case kind == kindListener:
		text = "somebody is listening here already"
	case at == byteConsumer:
		text = "the ring has a receiver already"
	}
	return &later{err: failf(Busy, "%s", text)}
}

func (l *namedLink) peerAlive(me role) bool { return l.held(me.other().lockByte()) }

// held says whether another description, of this process or another, holds the byte. It says yes when it cannot know.
func (l *namedLink) held(at int64) bool {
	mode, err := sys.HeldByAnother(l.lock, at)
	return err != nil || mode != sys.Unlocked
}

func (l *namedLink) vanished() bool {
	stat, err := sys.Stat(l.lock)
	return err == nil && stat.Nlink == 0
}

func (l *namedLink) final() bool { return false }

// close releases the role, and if nobody else is there and nothing is undelivered, the name. A segment that cannot be
// judged or removed stays for `ramway clean`: that is no error of the handle's, hence always nil.
func (l *namedLink) close() error {
	if l.roleByte != noRole {
		sys.Unlock(l.lock, l.roleByte)
	}
	if !l.idle {
		// Released first and then tried: if two that leave at once both tried to turn their shared lock into an
		// exclusive one, both would fail and the name would stay.
		sys.Unlock(l.lock, byteInUse)
		if alone, err := sys.TryLock(l.lock, byteInUse, sys.Exclusive); err == nil && alone {
			l.removeIfDone()
		}
	}
	// Closing the description ends the lock.
	sys.Close(l.lock)
	sys.Close(l.dir)
	return nil
}

// removeIfDone, only while alone (byte 0 held exclusively), removes the name if nothing needs it any more.
func (l *namedLink) removeIfDone() {
	if !leadsTo(l.dir, l.file, l.id) {
		return
	}
	page, size, err := readPage(l.lock)
	if err != nil {
		return
	}
	h, err := checkHeader(page, size)
	if err != nil || mustStay(page, h) {
		return
	}
	_ = removeSegment(l.dir, l.file, h.kind)
}

// removeSegment unlinks a segment's name, and a dead listener's socket with it. The caller holds byte 0 exclusively.
func removeSegment(dir int, file string, kind segmentKind) error {
	if kind == kindListener {
		socket := socketOf(file)
		if stat, err := sys.StatAt(dir, socket); err == nil && stat != nil && sys.IsSocket(stat) {
			if err := sys.Unlink(dir, socket); err != nil && err != unix.ENOENT {
				return err
			}
		}
	}
	if err := sys.Unlink(dir, file); err != unix.ENOENT {
		return err
	}
	return nil
}

// attachNamed creates or opens a named ring, takes the role and maps the ring. It blocks as Options.Timeout says, and up
// to a second in races with others.
func attachNamed(name string, how how, o Options, r role) (*attachment, error) {
	tried := how.verb() + " the ring"
	granule, err := o.granule()
	if err != nil {
		return nil, about(err, tried, name)
	}
	capacity := o.Capacity
	if capacity == 0 {
		capacity = defaultCapacity
	}
	// Checked here although an existing ring may need none of it: a mistake shows on the first run.
	s, err := ringSpec(capacity, o.Align, granule)
	if err != nil {
		return nil, about(err, tried, name)
	}
	q := &request{
		name:     name,
		how:      how,
		kind:     kindRing,
		spec:     s.named(o.Persistent),
		roleByte: r.lockByte(),
		o:        &o,
		check: func(h *header) error {
			if found := h.blocks[0].capacity; o.Capacity != 0 && found != s.blocks[0].capacity {
				return differs("capacity", s.blocks[0].capacity, found)
			}
			if found := h.blocks[0].align; o.Align != 0 && found != s.blocks[0].align {
				return differs("alignment", uint64(s.blocks[0].align), uint64(found))
			}
			return nil
		},
	}
	opened, err := q.open()
	if err != nil {
		return nil, err
	}
	a, err := attach(opened.file, block0, opened.header.blocks[0], opened.link, &o)
	if err != nil {
		_ = opened.drop()
		return nil, about(err, tried, name)
	}
	a.name = name
	return a, nil
}

func differs(what string, wanted, found uint64) error {
	return failf(InvalidArgument, "it exists with a %s of %d bytes, not the %d asked for; leave it out to take what is there",
		what, found, wanted)
}

// regionMapping is a named region that this process uses.
type regionMapping struct {
	// header is the header page, mapped apart from the data.
	header unsafe.Pointer
	// data is capacity bytes, mapped once.
	data unsafe.Pointer
	// length is as it was asked for, 1 ..= capacity.
	length, capacity uint64
	// readOnly: neither the data nor the header page can be written, so no waiter's bit can be set either.
	readOnly bool
	link     *namedLink
}

// region is the region's words in shared memory.
func (m *regionMapping) region() *regionBlock { return (*regionBlock)(unsafe.Add(m.header, block0)) }

// release unmaps the region and lets the name go. To be called once, when nobody uses the memory any more.
func (m *regionMapping) release() error {
	_ = sys.Unmap(m.data, int(m.capacity))
	_ = sys.Unmap(m.header, headerLen())
	return m.link.close()
}

// openRegionNamed creates or opens a named region and maps it. length is in bytes: what a new one gets and, if it is not
// 0, what an existing one must have. A read-only handle can only be opened.
func openRegionNamed(name string, how how, length int64, o Options, readOnly bool) (*regionMapping, error) {
	tried := how.verb() + " the region"
	fail := func(err error) (*regionMapping, error) { return nil, about(err, tried, name) }
	if readOnly && how != howOpen {
		return fail(failf(InvalidArgument, "a read-only handle cannot create a region; open it"))
	}
	granule, err := o.granule()
	if err != nil {
		return fail(err)
	}
	q := &request{name: name, how: how, kind: kindRegion, roleByte: noRole, readOnly: readOnly, o: &o}
	if how != howOpen {
		s, err := regionSpec(length, granule)
		if err != nil {
			return fail(err)
		}
		q.spec = s.named(o.Persistent)
	}
	q.check = func(h *header) error {
		if found := h.blocks[0].length; length != 0 && found != uint64(length) {
			return failf(InvalidArgument, "it exists with a length of %d bytes, not the %d asked for", found, length)
		}
		return nil
	}
	opened, err := q.open()
	if err != nil {
		return nil, err
	}
	m, err := mapRegion(opened, readOnly, &o)
	if err != nil {
		_ = opened.drop()
		return fail(err)
	}
	// A mapping keeps the memory; only rings map theirs again.
	sys.Close(opened.file)
	return m, nil
}

func mapRegion(s *segment, readOnly bool, o *Options) (*regionMapping, error) {
	g := s.header.blocks[0]
	page, err := mapHeader(s.file, !readOnly)
	if err != nil {
		return nil, err
	}
	data, err := sys.Map(s.file, int64(g.dataOffset), int(g.capacity), !readOnly)
	if err != nil {
		_ = sys.Unmap(page, headerLen())
		return nil, osError(err, "mapping the region's data")
	}
	if err := sys.Place(data, int(g.capacity), 1, !readOnly, o.placement()); err != nil {
		_ = sys.Unmap(data, int(g.capacity))
		_ = sys.Unmap(page, headerLen())
		return nil, osError(err, "placing the region's data")
	}
	return &regionMapping{header: page, data: data, length: g.length, capacity: g.capacity, readOnly: readOnly, link: s.link}, nil
}

// lockListener makes the segment of a listener (kind 4, byte 1) under its own name or path, removing a dead one with
// its socket: AlreadyExists if somebody listens there. Closing the link removes the segment, and a socket beside it
// (socketOf), if it is the last one. Whoever can open the file can lock it and so keep the next listener out: our user
// only. Nothing but locks is shared through it, so that a disk will do.
func lockListener(name string, o Options) (*namedLink, error) {
	q := &request{
		name:     name,
		how:      howCreate,
		kind:     kindListener,
		spec:     listenerSpec().named(false),
		roleByte: byteListener,
		o:        &Options{AllowDisk: true, Timeout: o.Timeout},
	}
	opened, err := q.open()
	if err != nil {
		return nil, err
	}
	sys.Close(opened.file)
	return opened.link, nil
}

// listenerLives says whether somebody holds the lock of a listener's segment in a directory; not known if the file may
// not be asked.
func listenerLives(dir int, file string) (lives, known bool) {
	stat, err := sys.StatAt(dir, file)
	if err != nil {
		return false, false
	}
	if stat == nil || !sys.IsRegular(stat) {
		return false, true
	}
	fd, err := sys.OpenAt(dir, file, false)
	if err != nil {
		return false, false
	}
	defer sys.Close(fd)
	mode, err := sys.HeldByAnother(fd, byteListener)
	return mode != sys.Unlocked, err == nil
}
