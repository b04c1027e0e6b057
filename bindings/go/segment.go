package ramway

import (
	"sync/atomic"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// role is a side of a ring.
type role uint8

const (
	producer role = iota
	consumer
)

func (r role) other() role { return 1 - r }

func (r role) String() string {
	if r == producer {
		return "producer"
	}
	return "consumer"
}

// lockByte is the byte of a named segment that the holder of the role locks exclusively.
func (r role) lockByte() int64 {
	if r == producer {
		return byteProducer
	}
	return byteConsumer
}

// how is what may happen to a name.
type how uint8

const (
	howCreate how = iota
	howOpen
	howOpenOrCreate
	// howUnnamed makes memory without a name, or attaches to it.
	howUnnamed
)

func (h how) verb() string {
	switch h {
	case howCreate:
		return "creating"
	case howOpen:
		return "opening"
	}
	return "opening or creating"
}

// link tells one side that the other one lives, and releases the segment at the end. No method may be called after
// close; the others may be called from several goroutines at once.
type link interface {
	// peerAlive says whether the other role is held by somebody alive. A question for the slow path: it is one system
	// call. It says yes where it cannot know.
	peerAlive(me role) bool
	// vanished says whether a named segment has lost its name, so that no successor can ever attach. One system call.
	vanished() bool
	// final says whether Closed and PeerDead are forever; on a named ring a successor may attach.
	final() bool
	// close lets the role go and closes the descriptors; on a named segment the last one out removes the name if nothing
	// is undelivered. To be called once, after the closed flag is set, the peer is woken and all is unmapped.
	close() error
}

// noLink is for two goroutines of one process: only the closed flag tells.
type noLink struct{}

func (noLink) peerAlive(role) bool { return true }
func (noLink) vanished() bool      { return false }
func (noLink) final() bool         { return true }
func (noLink) close() error        { return nil }

// attachment is all that a Sender or a Receiver stands on: mapped memory whose geometry was checked, and the role, held
// until release.
type attachment struct {
	// header is the header page: headerLen() bytes, readable and writable, shared.
	header unsafe.Pointer
	// block is the ring's or topic's block in the header page, a *ringBlock or *topicBlock.
	block unsafe.Pointer
	// area is a topic's subscribers' area, areaLen(slots) bytes; nil in a ring.
	area unsafe.Pointer
	g    geometry
	// data is the ring's data: capacity bytes, mapped twice back to back, readable and writable. Go cannot make a slice
	// read-only, and a stray write to memory that is would end the process.
	data unsafe.Pointer
	// fd is the segment's file, for mapping the data once more, or -1 after closeFile. It holds no lock.
	fd int
	// dataOffset is where the data begins in fd.
	dataOffset int64
	// capacity is a power of two, at least a page; align a power of two from 16 to 4096.
	capacity uint64
	align    uint32
	// link is how the handle is tied to its peer.
	link link
	// name is for messages; empty for a ring without a name.
	name string
}

// ring is the ring's words in shared memory.
func (a *attachment) ring() *ringBlock { return (*ringBlock)(a.block) }

// closeFile gives the file's descriptor back where no further mapping will be made.
func (a *attachment) closeFile() {
	if a.fd >= 0 {
		sys.Close(a.fd)
		a.fd = -1
	}
}

// release unmaps the memory and lets the role go, in this order. To be called once, when nobody uses the memory any
// more.
func (a *attachment) release() error {
	if a.data != nil {
		_ = sys.Unmap(a.data, 2*int(a.capacity))
		a.data = nil
	}
	if a.area != nil {
		_ = sys.Unmap(a.area, a.g.mappedArea())
		a.area = nil
	}
	if a.header != nil {
		_ = sys.Unmap(a.header, headerLen())
		a.header, a.block = nil, nil
	}
	a.closeFile()
	return a.link.close()
}

// headerLen is how many bytes of the header page are mapped: headerSize, or a page where that is larger.
func headerLen() int { return max(sys.PageSize(), headerSize) }

// mapHeader maps the header page of a file that holds at least headerLen bytes.
func mapHeader(fd int, writable bool) (unsafe.Pointer, error) {
	page, err := sys.Map(fd, 0, headerLen(), writable)
	if err != nil {
		return nil, osError(err, "mapping the header page")
	}
	return page, nil
}

// snapshotHeader is a private copy of a mapped header page, for checkHeader.
func snapshotHeader(page unsafe.Pointer) []byte {
	copied := make([]byte, headerSize)
	for i := 0; i < headerSize; i += 8 {
		// Inside the mapping and aligned; others may write meanwhile, hence an atomic load. Each word stands for itself.
		*(*uint64)(unsafe.Pointer(&copied[i])) = atomic.LoadUint64((*uint64)(unsafe.Add(page, i)))
	}
	return copied
}

// attachMemory is attach for a segment in memory without a name, whose file stays the caller's: it is duplicated.
func attachMemory(fd, base int, g geometry, l link, o *Options) (*attachment, error) {
	own, err := sys.Dup(fd)
	if err != nil {
		_ = l.close()
		return nil, osError(err, "duplicating a descriptor")
	}
	return attach(own, base, g, l, o, access{true, true, true})
}

// access says which parts of a segment are mapped for writing.
type access struct{ header, area, data bool }

// attach maps the header page and the data of a ring or topic, and a topic's subscribers' area. base is block0 or block1, g
// what checkHeader said of it. The attachment owns the file and the link; an error closes them.
func attach(fd, base int, g geometry, l link, o *Options, writable access) (*attachment, error) {
	a := &attachment{fd: fd, dataOffset: int64(g.dataOffset), capacity: g.capacity, align: g.align, g: g, link: l}
	fail := func(err error, doing string) (*attachment, error) {
		_ = a.release()
		return nil, osError(err, doing)
	}
	var err error
	if a.header, err = sys.Map(fd, 0, headerLen(), writable.header); err != nil {
		return fail(err, "mapping the header page")
	}
	a.block = unsafe.Add(a.header, base)
	if g.slots != 0 {
		if a.area, err = sys.Map(fd, int64(g.subsOffset), g.mappedArea(), writable.area); err != nil {
			return fail(err, "mapping the subscribers' area")
		}
	}
	if a.data, err = sys.MirrorMap(fd, a.dataOffset, int(g.capacity), writable.data); err != nil {
		return fail(err, "mapping the data twice")
	}
	if err := sys.Place(a.data, int(g.capacity), 2, writable.data, o.placement()); err != nil {
		return fail(err, "placing the data")
	}
	return a, nil
}

// placement is what the options ask of the memory behind the data.
func (o *Options) placement() sys.Placement {
	return sys.Placement{HugePages: o.HugePages, LockMemory: o.LockMemory, Prefault: o.Prefault, Node: o.NUMANode}
}

// check refuses options that are wrong whatever is opened, and those that would have no effect.
func (o *Options) check(how how) error {
	creates := how == howCreate || how == howOpenOrCreate
	switch {
	case o.Discard && how != howCreate:
		return failf(InvalidArgument, "Discard applies to create only: opening takes what is there")
	case o.Persistent && !creates:
		return failf(InvalidArgument, "Persistent applies to a segment that is made with a name: give it to a Create or OpenOrCreate")
	case o.Mode != 0 && !creates:
		return failf(InvalidArgument, "Mode applies to a segment that is made with a name: give it to a Create or OpenOrCreate")
	}
	if err := o.Wait.check(); err != nil {
		return err
	}
	return checkTimeout("Timeout", o.Timeout)
}

// granule is what the data's offset and capacity must be multiples of.
func (o *Options) granule() (int, error) {
	if !o.HugePages {
		return sys.PageSize(), nil
	}
	size, err := sys.HugePageSize()
	if err != nil {
		return 0, osError(err, "HugePages")
	}
	return size, nil
}
