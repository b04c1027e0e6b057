package ramway

import (
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// views gives out the payloads of a lease where they are not simply the frames' own bytes.
type views interface {
	view(r *Receiver, f *frame) []byte
	// revoke ends the lease.
	revoke(r *Receiver)
	// close is for good.
	close()
}

// guard gives out views that stop working with their lease: each lease's pages are mapped once more, at addresses that
// no lease has had for a long time, and taken away with it.
type guard struct {
	window *sys.Window
	// page is a mask.
	page uint64
	// base is where the lease's first page is, nil while it has no view; start is that page's position in the ring.
	base  unsafe.Pointer
	start uint64
}

func newGuard(a *attachment) (*guard, error) {
	window, err := sys.NewWindow(a.fd, a.dataOffset, int(a.capacity))
	if err != nil {
		return nil, osError(err, "mapping a ring a second time to guard its views")
	}
	return &guard{window: window, page: uint64(sys.PageSize()) - 1}, nil
}

// view is a frame of the current lease by its guarded address.
func (g *guard) view(r *Receiver, f *frame) []byte {
	if g.base == nil {
		// The whole lease at once: its frames lie one after the other.
		g.start = r.released & (r.capacity - 1) &^ g.page
		length := (r.head - (r.released &^ g.page) + g.page) &^ g.page
		base, err := g.window.Open(int64(g.start), int(length))
		if err != nil {
			panic("ramway: no guarded view: " + err.Error())
		}
		g.base = base
	}
	// From the first page to the frame. A batch of a whole ring ends where it begins, and so does what is shown.
	frameAt := uint64(uintptr(f.data)-uintptr(r.data)) - frameHeader
	offset := (frameAt-g.start)&(r.capacity-1) + frameHeader
	return unsafe.Slice((*byte)(unsafe.Add(g.base, offset)), f.len)
}

// revoke ends the lease.
func (g *guard) revoke(*Receiver) {
	if g.base != nil {
		g.window.Shut()
		g.base = nil
	}
}

func (g *guard) close() { g.window.Close() }
