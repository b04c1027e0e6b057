package ramway

import (
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// What rings, regions and listeners ask of a named segment.

// attachNamed creates or opens a named ring, takes the role and maps the ring. It blocks as Options.Timeout says, and up
// to a second in races with others.
func attachNamed(name string, how how, o Options, r role) (*attachment, error) {
	tried := how.verb() + " the ring"
	if err := o.check(how); err != nil {
		return nil, about(err, tried, name)
	}
	// Checked here although an existing ring may need none of it: a mistake shows on the first run.
	s, err := o.ringSpec()
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
		check:    func(h *header) error { return o.compare(s, h) },
	}
	opened, err := q.open()
	if err != nil {
		return nil, err
	}
	a, err := attach(opened.file, block0, opened.header.blocks[0], opened.link, &o, access{true, true, true})
	if err != nil {
		return nil, about(err, tried, name)
	}
	a.name = name
	return a, nil
}

// ringSpec is the ring that the options ask for.
func (o *Options) ringSpec() (*spec, error) {
	granule, err := o.granule()
	if err != nil {
		return nil, err
	}
	capacity := o.Capacity
	if capacity == 0 {
		capacity = capacityDefault
	}
	return ringSpec(capacity, o.Align, granule)
}

// compare says what an existing ring has other than was asked for.
func (o *Options) compare(s *spec, h *header) error {
	if found := h.blocks[0].capacity; o.Capacity != 0 && found != s.blocks[0].capacity {
		return differs("capacity", s.blocks[0].capacity, found)
	}
	if found := h.blocks[0].align; o.Align != 0 && found != s.blocks[0].align {
		return differs("alignment", uint64(s.blocks[0].align), uint64(found))
	}
	return nil
}

func differs(what string, wanted, found uint64) error {
	return failf(InvalidArgument, "it exists, and its %s is %d bytes, not the %d asked for; leave it out to take what is there",
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
	link     *lockLink
}

// region is the region's words in shared memory.
func (m *regionMapping) region() *regionBlock { return (*regionBlock)(unsafe.Add(m.header, block0)) }

// release unmaps the region and lets the name go. To be called once, when nobody uses the memory any more.
func (m *regionMapping) release() error {
	if m.data != nil {
		_ = sys.Unmap(m.data, int(m.capacity))
	}
	if m.header != nil {
		_ = sys.Unmap(m.header, headerLen())
	}
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
	if err := o.check(how); err != nil {
		return fail(err)
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
	// A mapping keeps the memory; only rings map theirs again.
	defer sys.Close(opened.file)
	g := opened.header.blocks[0]
	m := &regionMapping{length: g.length, capacity: g.capacity, readOnly: readOnly, link: opened.link}
	if err := m.open(opened.file, int64(g.dataOffset), &o); err != nil {
		_ = m.release()
		return fail(err)
	}
	return m, nil
}

// open maps the header page and the data of a file. After an error release undoes what was mapped.
func (m *regionMapping) open(file int, dataOffset int64, o *Options) (err error) {
	if m.header, err = mapHeader(file, !m.readOnly); err != nil {
		return err
	}
	if m.data, err = sys.Map(file, dataOffset, int(m.capacity), !m.readOnly); err != nil {
		return osError(err, "mapping the region's data")
	}
	if err := sys.Place(m.data, int(m.capacity), 1, !m.readOnly, o.placement()); err != nil {
		return osError(err, "placing the region's data")
	}
	return nil
}

// lockListener makes the segment of a listener (kind 4, byte 1) under its own name or path, removing a dead one with
// its socket: AlreadyExists if somebody listens there. Closing the link removes the segment, and a socket beside it
// (socketOf), if it is the last one. A user who can open the file can lock it and so keep the next listener out: hence
// our user only. Nothing but locks is shared through it, so that a disk will do.
func lockListener(name string, o Options) (*lockLink, error) {
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
