package ramway

import (
	"io"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Region is a stretch of named memory that any number of processes have mapped.
//
// Ramway brings no order into what they write: use [Region.Uint32] and [Region.Uint64] for what needs one, or
// [Region.Notify] and [Region.Wait]: what was written before a Notify is seen after the Wait that it ended.
//
// All calls may be made from any number of goroutines. A handle remembers which notifications its Wait has returned for;
// goroutines that must each see every notification open a handle each, or use [Region.WaitSince].
//
// Only [Region.Close] and the end of the process unmap it: a slice of its bytes may outlive the last use of the handle.
type Region struct {
	m    *regionMapping
	name string
	mode WaitMode
	// users counts the calls that are using the mapping; below zero once Close was called, and closedBias when nobody is
	// left. So nothing is unmapped under a call.
	users atomic.Int64
	// closing is closed by Close, closed when all is released; failure is what that returned.
	closing  chan struct{}
	closed   chan struct{}
	released atomic.Bool
	failure  error
	// seen is the count that the last Wait or TryWait returned for.
	seen  atomic.Uint32
	watch regionWatch
}

// closedBias is added to Region.users by Close: so far below zero that calls do not reach it.
const closedBias = math.MinInt64 / 2

// CreateRegion makes a region of size bytes, all zero. It lives until its last handle is closed, in whichever process.
// Of the options, those about rings do not count here. The name is one in RAMWAY_DIR, or a path with a '/'.
//
// Errors: ErrInvalidArgument for a size below 1 or an impossible name, ErrAlreadyExists if the name is in use,
// ErrNoSpace if there is not enough memory, and those of the options.
func CreateRegion(name string, size int64, o Options) (*Region, error) {
	return newRegion(name, howCreate, size, o, false)
}

// OpenRegion opens the region of that name, for reading and writing.
//
// Errors: ErrNotFound if nothing has this name, ErrPermissionDenied, ErrInvalidArgument if it is something else.
func OpenRegion(name string, o Options) (*Region, error) {
	return newRegion(name, howOpen, 0, o, false)
}

// OpenRegionReadOnly opens the region of that name without the permission to write. Such a handle cannot notify, and
// waits by polling every millisecond.
//
// Errors: those of [OpenRegion].
func OpenRegionReadOnly(name string, o Options) (*Region, error) {
	return newRegion(name, howOpen, 0, o, true)
}

// OpenOrCreateRegion opens the region of that name, or makes it.
//
// Errors: those of [CreateRegion] and [OpenRegion]; ErrInvalidArgument if it is there with another size.
func OpenOrCreateRegion(name string, size int64, o Options) (*Region, error) {
	return newRegion(name, howOpenOrCreate, size, o, false)
}

func newRegion(name string, h how, size int64, o Options, readOnly bool) (*Region, error) {
	m, err := openRegionNamed(name, h, size, o, readOnly)
	if err != nil {
		return nil, err
	}
	r := &Region{m: m, name: name, mode: o.Wait, closing: make(chan struct{}), closed: make(chan struct{})}
	r.watch.changed, r.watch.checkedAt = make(chan struct{}), time.Now()
	// What was notified before now does not end a wait of this handle.
	r.seen.Store(r.count())
	return r, nil
}

// enter keeps the mapping until leave. false: the region is closed.
func (r *Region) enter() bool {
	if r.users.Add(1) > 0 {
		return true
	}
	r.leave()
	return false
}

func (r *Region) leave() {
	// Only one call takes the count to the bias for the first time: calls that fail afterwards do so again, in vain.
	if r.users.Add(-1) == closedBias && r.released.CompareAndSwap(false, true) {
		r.failure = r.m.release()
		close(r.closed)
	}
}

// failf is an error about this region.
func (r *Region) failf(kind Kind, format string, args ...any) error {
	e := failf(kind, format, args...)
	e.Op, e.Name = "the region", r.name
	return e
}

func (r *Region) errClosed(what string) error {
	return r.failf(Detached, "%s on a handle that was closed", what)
}

// reading is enter for calls that can fail.
func (r *Region) reading(what string) error {
	if !r.enter() {
		return r.errClosed(what)
	}
	return nil
}

// writing is reading for calls that write.
func (r *Region) writing(what string) error {
	if err := r.reading(what); err != nil {
		return err
	}
	if r.m.readOnly {
		r.leave()
		return r.failf(PermissionDenied, "%s on a handle that was opened read-only", what)
	}
	return nil
}

// Close ends the use of the region; calls that wait end with ErrDetached, and it waits for those that copy. The last
// handle's Close removes the name unless the region is persistent. Safe from any goroutine, and more than once.
//
// No slice of [Region.Bytes] and no pointer of [Region.Uint32] and [Region.Uint64] may be used any more: the memory is
// unmapped.
func (r *Region) Close() error {
	// One more user, so that the bias is reached by leave.
	for {
		users := r.users.Load()
		if users < 0 {
			break
		}
		if r.users.CompareAndSwap(users, users+1+closedBias) {
			close(r.closing)
			r.interruptWatch()
			r.leave()
			break
		}
	}
	<-r.closed
	return r.failure
}

// Name is what the handle was opened by.
func (r *Region) Name() string { return r.name }

// Len is the size that the region was created with, in bytes.
func (r *Region) Len() int64 { return int64(r.m.length) }

// Capacity is how many bytes are mapped: the size rounded up to a page, or to a huge page.
func (r *Region) Capacity() int64 { return int64(r.m.capacity) }

// ReadOnly says whether this handle may not write.
func (r *Region) ReadOnly() bool { return r.m.readOnly }

// Bytes is all [Region.Len] bytes, the memory itself: what is written here is there for everybody, and what is read may
// change while it is read. It must not be used after Close, where it is nil, nor written on a read-only handle, which is
// a fault. [Region.ReadAt] and [Region.WriteAt] have no such rules.
func (r *Region) Bytes() []byte {
	if !r.enter() {
		return nil
	}
	defer r.leave()
	// Mapped until Close, and length is within the capacity that is.
	return unsafe.Slice((*byte)(r.m.data), r.m.length)
}

// ReadAt copies bytes out, as [io.ReaderAt] has it: io.EOF says that the region ends before p does. Others may write
// meanwhile: each aligned 8-byte word comes out whole, but one word may be new and the next one old.
//
// Errors: ErrInvalidArgument for an offset below zero, ErrDetached.
func (r *Region) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, r.outOfRegion(len(p), off)
	}
	if !r.enter() {
		return 0, r.errClosed("ReadAt")
	}
	defer r.leave()
	n := int(min(int64(len(p)), max(r.Len()-off, 0)))
	// Within the region's length, which is mapped until leave.
	copyOut(p[:n], unsafe.Add(r.m.data, off))
	if n < len(p) || off > r.Len() {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt copies bytes in, all or none. To others each aligned 8-byte word appears whole, in no particular order.
//
// Errors: ErrInvalidArgument if they do not lie within [Region.Len], ErrPermissionDenied on a read-only handle,
// ErrDetached.
func (r *Region) WriteAt(p []byte, off int64) (int, error) {
	if err := r.writing("WriteAt"); err != nil {
		return 0, err
	}
	defer r.leave()
	if err := r.check(off, len(p)); err != nil {
		return 0, err
	}
	copyIn(unsafe.Add(r.m.data, off), p)
	return len(p), nil
}

// Uint32 is the 4 bytes at an offset, as an atomic that all processes share. It must not be used after Close.
//
// Errors: ErrInvalidArgument if the offset is not a multiple of 4 or the bytes do not lie within [Region.Len],
// ErrPermissionDenied on a read-only handle, where a store would be a fault (use [Region.LoadUint32]), ErrDetached.
func (r *Region) Uint32(off int64) (word *atomic.Uint32, err error) {
	err = r.atWord(r.writing, "Uint32", off, 4, func(at unsafe.Pointer) { word = (*atomic.Uint32)(at) })
	return word, err
}

// Uint64 is the 8 bytes at an offset, as an atomic that all processes share. It must not be used after Close.
//
// Errors: as [Region.Uint32], with multiples of 8.
func (r *Region) Uint64(off int64) (word *atomic.Uint64, err error) {
	err = r.atWord(r.writing, "Uint64", off, 8, func(at unsafe.Pointer) { word = (*atomic.Uint64)(at) })
	return word, err
}

// LoadUint32 is the value of the 4 bytes at an offset, atomically, also on a read-only handle.
//
// Errors: as [Region.Uint32], except for ErrPermissionDenied.
func (r *Region) LoadUint32(off int64) (value uint32, err error) {
	err = r.atWord(r.reading, "LoadUint32", off, 4, func(at unsafe.Pointer) { value = atomic.LoadUint32((*uint32)(at)) })
	return value, err
}

// LoadUint64 is the value of the 8 bytes at an offset, atomically, also on a read-only handle.
//
// Errors: as [Region.Uint64], except for ErrPermissionDenied.
func (r *Region) LoadUint64(off int64) (value uint64, err error) {
	err = r.atWord(r.reading, "LoadUint64", off, 8, func(at unsafe.Pointer) { value = atomic.LoadUint64((*uint64)(at)) })
	return value, err
}

// atWord calls use with the address of an aligned word within the region. The data begins at a page.
func (r *Region) atWord(enter func(what string) error, what string, off int64, size int, use func(at unsafe.Pointer)) error {
	if err := enter(what); err != nil {
		return err
	}
	defer r.leave()
	if off%int64(size) != 0 {
		return r.failf(InvalidArgument, "an atomic of %d bytes at offset %d: expected a multiple of %d", size, off, size)
	}
	if err := r.check(off, size); err != nil {
		return err
	}
	use(unsafe.Add(r.m.data, off))
	return nil
}

func (r *Region) check(off int64, n int) error {
	if off < 0 || off > r.Len() || int64(n) > r.Len()-off {
		return r.outOfRegion(n, off)
	}
	return nil
}

func (r *Region) outOfRegion(n int, off int64) error {
	return r.failf(InvalidArgument, "%d bytes at offset %d: the region has %d bytes", n, off, r.Len())
}

// notifyWord: bit 0 = somebody sleeps on it, the rest counts notifications.
func (r *Region) notifyWord() *uint32 { return &r.m.region().notify }

// count is the notifications so far (an even number, wrapping), and all that their senders wrote before them. The
// caller keeps the mapping.
func (r *Region) count() uint32 {
	// Acquire, as all of Go's atomics: pairs with the release in Notify.
	return atomic.LoadUint32(r.notifyWord()) &^ notifyWaiting
}

// Notify tells everyone who waits that something has changed, after everything that this goroutine wrote before. It
// never blocks, and makes a system call only if somebody sleeps.
//
// Errors: ErrPermissionDenied on a read-only handle, ErrDetached.
func (r *Region) Notify() error {
	if err := r.writing("Notify"); err != nil {
		return err
	}
	defer r.leave()
	notify(r.notifyWord())
	return nil
}

// notify counts in a word whose bit 0 says that somebody sleeps on it, and wakes those who do.
func notify(word *uint32) {
	// Release, as all of Go's atomics: a waiter that acquires the count sees what was written before.
	if atomic.AddUint32(word, notifyOne)&notifyWaiting != 0 {
		// The bit goes first: a waiter that sets it again from now on sleeps on a value that has this notification in it.
		atomic.AndUint32(word, ^uint32(notifyWaiting))
		sys.FutexWakeAll(word)
	}
}
