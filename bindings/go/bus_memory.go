package ramway

import (
	"errors"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// The memory of a bus: made by the listener, distrusted by the connector.

// busPlan is what a listener gives every bus.
type busPlan struct {
	name string
	spec *spec
	// options say how this side's halves wait.
	options Options
}

// halves are the ends that one side has; nil where a direction has no capacity.
type halves struct {
	sender   *Sender
	receiver *Receiver
}

// close lets both go, and with them the socket.
func (h halves) close() {
	// What a handshake that failed leaves has nothing to deliver, so there is nobody to tell.
	if h.sender != nil {
		_ = h.sender.Close()
	}
	if h.receiver != nil {
		_ = h.receiver.Close()
	}
}

// newMemory makes memory without a name, of a size that nobody can change, for a new segment, and writes its header page.
// node is the NUMA node of the data; nil leaves that to the kernel.
func newMemory(name string, s *spec, node *int) (fd int, err error) {
	if fd, err = sys.MemoryNew(name); err != nil {
		return -1, osError(err, "making memory")
	}
	if err := fillNewMemory(fd, s, node); err != nil {
		sys.Close(fd)
		return -1, err
	}
	return fd, nil
}

func fillNewMemory(fd int, s *spec, node *int) error {
	for _, g := range s.blocks {
		if node != nil && g.capacity != 0 {
			if err := sys.PreferNode(fd, int64(g.dataOffset), int64(g.capacity), *node); err != nil {
				return osError(err, "taking memory")
			}
		}
	}
	if err := sys.MemorySize(fd, int64(s.size)); err != nil {
		return osError(err, "taking memory")
	}
	page, err := mapHeader(fd, true)
	if err != nil {
		return err
	}
	// Nobody else knows this memory yet; it is at least headerSize bytes long.
	copy(unsafe.Slice((*byte)(page), headerSize), formatHeader(s))
	return sys.Unmap(page, headerLen())
}

// createBus makes memory with both rings empty for an end, and attaches the listener to it. The end keeps the memory,
// also after an error.
func createBus(plan *busPlan, end *busEnd) (h halves, err error) {
	// The name is in the memfd's, so that `ramway ls` finds the bus.
	if end.memory, err = newMemory("ramway-bus:"+plan.name, plan.spec, nil); err != nil {
		return halves{}, err
	}
	return attachBus(end, plan.name, plan.spec.blocks, plan.options, true)
}

// openBus checks memory that a listener sent, said to have size bytes, and attaches the connector to it. Nothing of it
// is used before it is checked; what the listener writes into it later, the rings check. The end keeps the memory, also
// after an error.
func openBus(memory int, size uint64, end *busEnd, name string, o Options) (halves, error) {
	end.memory = memory
	h, err := checkBus(memory, size, end.terms.features)
	if err != nil {
		return halves{}, err
	}
	return attachBus(end, name, h.blocks, o, false)
}

func checkBus(memory int, size uint64, features uint32) (*header, error) {
	real, err := sys.SealedSize(memory)
	switch {
	case errors.Is(err, sys.ErrNotSealed):
		return nil, &Error{Kind: Corrupt, Err: err}
	case err != nil:
		return nil, osError(err, "checking the memory sent")
	case real < int64(headerLen()) || uint64(real) != size:
		return nil, failf(Corrupt, "the memory received has %d bytes, WELCOME announced %d", real, size)
	}
	page, err := mapHeader(memory, false)
	if err != nil {
		return nil, err
	}
	copied := snapshotHeader(page)
	_ = sys.Unmap(page, headerLen())
	h, err := checkHeaderOf(copied, uint64(real), features)
	switch {
	case err != nil:
		return nil, err
	case h.kind != kindBus:
		return nil, failf(Corrupt, "the memory sent holds a %v, expected a bus", h.kind)
	case h.blocks[0].capacity == 0 && h.blocks[1].capacity == 0:
		return nil, failf(Corrupt, "the bus has no ring in either direction")
	case features == rpcFeatures && (h.blocks[0].capacity == 0 || h.blocks[1].capacity == 0):
		return nil, failf(Corrupt, "the bus of RPC has a ring in one direction only, expected both")
	}
	return h, nil
}

// attachBus attaches one side to its roles: the listener sends into block 0, the connector into block 1. After an
// error nothing is attached.
func attachBus(end *busEnd, name string, blocks [2]geometry, o Options, listener bool) (h halves, err error) {
	out, in := 0, 1
	if !listener {
		out, in = 1, 0
	}
	attach := func(block int) (*attachment, error) {
		end.users.Add(1)
		a, err := attachMemory(end.memory, blockOffsets[block], blocks[block], busLink{end}, &o)
		if err == nil {
			a.name = name
		}
		return a, err
	}
	var a *attachment
	if blocks[out].capacity != 0 {
		if a, err = attach(out); err == nil {
			h.sender, err = newSender(a, o)
		}
	}
	if err == nil && blocks[in].capacity != 0 {
		if a, err = attach(in); err == nil {
			h.receiver, err = newReceiver(a, o)
		}
	}
	if err != nil {
		h.close()
		return halves{}, err
	}
	return h, nil
}
