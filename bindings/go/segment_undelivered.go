package ramway

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// What a ring still holds for its next receiver.

// ringIn is a ring's words in a copy of the header page, which readPage allocates as a whole page and so aligned.
func ringIn(page []byte, block int) *ringBlock {
	return (*ringBlock)(unsafe.Pointer(&page[blockOffsets[block]]))
}

// moved says whether messages are undelivered. Positions that contradict each other count as that: what is not understood
// is not thrown away.
func (r *ringBlock) moved(g geometry) bool {
	return r.tail != r.head || !positionsAgree(r.tail, r.head, g.capacity, g.align)
}

// unseenClose is an orderly close that no receiver has seen: it is delivered like a message.
func (r *ringBlock) unseenClose() bool {
	return r.producer.flags&roleClosed != 0 && r.producer.epoch != 0 && r.consumer.closeSeen != r.producer.epoch
}

// undelivered is the first ring of a segment that holds something for its next receiver, and where its data lies; nil if
// there is none.
func (h *header) undelivered(page []byte) (*ringBlock, geometry) {
	for i, g := range h.blocks {
		if h.kind == kindRegion || g.capacity == 0 {
			continue
		}
		if r := ringIn(page, i); r.moved(g) || r.unseenClose() {
			return r, g
		}
	}
	return nil, geometry{}
}

// mustStay says whether the last one out leaves the name in place.
func mustStay(page []byte, h *header) bool {
	r, _ := h.undelivered(page)
	return r != nil || h.persistent()
}

// damaged begins the reason to keep what nobody can resume.
const damaged = "it is damaged: "

// reasonToKeep is why a segment that nobody uses is nevertheless not to be thrown away; empty if it may be.
func reasonToKeep(file int, h *header) (string, error) {
	page, _, err := readPage(file)
	if err != nil {
		return "", err
	}
	switch r, g := h.undelivered(page); {
	case r != nil && r.moved(g):
		messages, bytes, err := countUndelivered(file, g, r.tail, r.head)
		if KindOf(err) == Corrupt {
			return damaged + err.(*Error).Text, nil
		}
		return fmt.Sprintf("it holds %d undelivered messages (%d bytes)", messages, bytes), err
	case r != nil:
		return "it holds the end of a stream that no receiver has seen", nil
	case h.persistent():
		return "it is persistent", nil
	}
	return "", nil
}

// countUndelivered walks the frames from head to tail and validates each length: how many messages, and their payloads'
// bytes. It reads the file in pieces of at most a MiB: no mapping, so a truncated file is an error and not a signal.
func countUndelivered(file int, g geometry, tail, head uint64) (messages, bytes uint64, err error) {
	if !positionsAgree(tail, head, g.capacity, g.align) {
		return 0, 0, failf(Corrupt, "the positions %d and %d contradict each other", head, tail)
	}
	window := make([]byte, min(1<<20, g.capacity))
	// Where the window lies in the ring's data, and how much of it was read.
	var base, filled uint64
	pending := tail - head
	for done := uint64(0); done < pending; {
		// A frame's header never straddles the end of the data: it takes 16 bytes at a multiple of 16.
		at := (head + done) & (g.capacity - 1)
		if at < base || at+frameHeader > base+filled {
			want := min(uint64(len(window)), g.capacity-at)
			n, err := sys.ReadAt(file, window[:want], int64(g.dataOffset+at))
			if err != nil {
				return 0, 0, osError(err, "reading the ring")
			}
			if n < frameHeader {
				return 0, 0, failf(Corrupt, "the file ends before the frame at %d", at)
			}
			base, filled = at, uint64(n)
		}
		length := uint64(binary.LittleEndian.Uint32(window[at-base:]))
		size := frameSize(length, g.align)
		if length > messageMax || size > pending-done {
			return 0, 0, failf(Corrupt, "the frame at %d claims %d bytes, %d are published", at, length, pending-done)
		}
		messages++
		bytes += length
		done += size
	}
	return messages, bytes, nil
}
