//go:build linux || darwin

package sys

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// windowSpace is how much address space a [Window] uses before it comes back to an address, at least.
const windowSpace = 64 << 20

// Window shows parts of a ring's data, one at a time, each at addresses that were not used for a long time.
type Window struct {
	fd       int
	offset   int64
	capacity int
	base     unsafe.Pointer
	length   int
	// next is where the next part is put; from and size are of the part that is shown, size 0 for none.
	next, from, size int
}

// NewWindow is for capacity bytes of a file from offset on. The file stays the caller's.
func NewWindow(fd int, offset int64, capacity int) (*Window, error) {
	if huge, err := hugeFile(fd); err != nil || huge {
		return nil, fmt.Errorf("a file of huge pages: %w", unix.EOPNOTSUPP)
	}
	fd, err := Dup(fd)
	if err != nil {
		return nil, err
	}
	w := &Window{fd: fd, offset: offset, capacity: capacity, length: max(windowSpace, 8*capacity)}
	if w.base, err = reserve(w.length, pageSize); err != nil {
		Close(fd)
		return nil, err
	}
	return w, nil
}

// Open shows length bytes from start on, going on at the beginning of the data after its end. Both are multiples of the
// page, start below the capacity and length at most the capacity and a page. Nothing is shown yet.
func (w *Window) Open(start int64, length int) (unsafe.Pointer, error) {
	if w.next+length > w.length {
		w.next = 0
	}
	w.from, w.size = w.next, length
	w.next += length
	at := unsafe.Add(w.base, w.from)
	first := min(length, w.capacity-int(start))
	// Inside the range reserved for it, which nobody else uses.
	if err := mapOver(at, w.fd, w.offset+start, first, true); err != nil {
		return nil, err
	}
	if rest := length - first; rest > 0 {
		if err := mapOver(unsafe.Add(at, first), w.fd, w.offset, rest, true); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// Shut makes what is shown unreadable.
func (w *Window) Shut() {
	if w.size == 0 {
		return
	}
	flags := unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE | unix.MAP_FIXED
	// Over a part of its own range. It fails only for lack of mappings; then the part stays readable, and not wrong.
	_, _ = unix.MmapPtr(-1, 0, unsafe.Add(w.base, w.from), uintptr(w.size), unix.PROT_NONE, flags)
	w.size = 0
}

// Close gives the address space back.
func (w *Window) Close() {
	_ = Unmap(w.base, w.length)
	Close(w.fd)
}
