package ramway

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// What a ring still holds for its next receiver, and a topic for its durable subscribers.

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
		if h.kind == kindRegion || h.kind == kindTopic || g.capacity == 0 {
			continue
		}
		if r := ringIn(page, i); r.moved(g) || r.unseenClose() {
			return r, g
		}
	}
	return nil, geometry{}
}

// mustStay says whether the last one out leaves the name in place. What cannot be read stays.
func mustStay(file int, page []byte, h *header) bool {
	if h.kind == kindTopic {
		reason, err := topicToKeep(file, page, h.blocks[0])
		return reason != "" || err != nil || h.persistent()
	}
	r, _ := h.undelivered(page)
	return r != nil || h.persistent()
}

// topicToKeep is why a topic that nobody uses is not to be thrown away; empty if it may be. History alone keeps no topic: what
// a durable subscriber is still to receive does.
func topicToKeep(file int, page []byte, g geometry) (string, error) {
	b := topicIn(page)
	if !b.agree(g) {
		return fmt.Sprintf(damaged+"the positions %d, %d and %d contradict each other", b.last, b.tail, b.claim), nil
	}
	slots, err := slotsIn(file, g)
	if err != nil {
		return "", err
	}
	unseen := ""
	for i := range slots {
		switch s := &slots[i]; {
		case s.state&slotDurable == 0:
		case s.cursor != b.tail:
			return fmt.Sprintf("the durable subscriber '%s' has %s", labelText(s.label), undeliveredTo(file, g, b, s)), nil
		case b.publisher.flags&roleClosed != 0 && b.publisher.epoch != 0 && s.closeSeen != b.publisher.epoch:
			unseen = fmt.Sprintf("it holds the end of a stream that the durable subscriber '%s' has not seen", labelText(s.label))
		}
	}
	return unseen, nil
}

// undeliveredTo is what a durable subscriber has not received, in words.
func undeliveredTo(file int, g geometry, b *topicBlock, s *slot) string {
	messages, bytes, err := countUndelivered(file, framesOf(g), b.tail, s.cursor)
	// What the publisher has overwritten cannot be counted any more. Of what a slot gates the claim says nothing: it goes farther
	// than the slot lets the publisher write.
	if err != nil || s.state&slotGating == 0 && b.claim-s.cursor > g.capacity {
		return "undelivered messages, of which some are lost"
	}
	return fmt.Sprintf("%d undelivered messages (%d bytes)", messages, bytes)
}

// damaged begins the reason to keep what nobody can resume.
const damaged = "it is damaged: "

// reasonToKeep is why a segment that nobody uses is nevertheless not to be thrown away; empty if it may be.
func reasonToKeep(file int, h *header) (string, error) {
	page, _, err := readPage(file)
	if err != nil {
		return "", err
	}
	if h.kind == kindTopic {
		reason, err := topicToKeep(file, page, h.blocks[0])
		if err == nil && reason == "" && h.persistent() {
			reason = "it is persistent"
		}
		return reason, err
	}
	switch r, g := h.undelivered(page); {
	case r != nil && r.moved(g):
		messages, bytes, err := countUndelivered(file, framesOf(g), r.tail, r.head)
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

// frames are where frames lie, and of which shape they are: a ring's, or a topic's.
type frames struct {
	geometry
	header, longest uint64
}

func framesOf(g geometry) frames {
	if g.slots != 0 {
		return frames{g, topicFrameHeader, topicMessageMax}
	}
	return frames{g, frameHeader, messageMax}
}

// size is how many bytes a frame with a payload of n bytes takes.
func (f *frames) size(n uint64) uint64 {
	mask := uint64(f.align) - 1
	return (f.header + n + mask) &^ mask
}

// agree says whether frames can lie between the positions.
func (f *frames) agree(tail, head uint64) bool {
	mask, first := uint64(f.align)-1, uint64(f.align)-f.header
	return tail&mask == first && head&mask == first && tail-head <= f.capacity
}

// countUndelivered walks the frames from head to tail and validates each length: how many messages, and their payloads'
// bytes. It reads the file in pieces of at most a MiB: no mapping, so a truncated file is an error and not a signal.
func countUndelivered(file int, g frames, tail, head uint64) (messages, bytes uint64, err error) {
	if !g.agree(tail, head) {
		return 0, 0, failf(Corrupt, "the positions %d and %d contradict each other", head, tail)
	}
	window := make([]byte, min(1<<20, g.capacity))
	// Where the window lies in the ring's data, and how much of it was read.
	var base, filled uint64
	pending := tail - head
	for done := uint64(0); done < pending; {
		// A frame's header never straddles the end of the data: it takes 16 (32) bytes at a multiple of as many.
		at := (head + done) & (g.capacity - 1)
		if at < base || at+g.header > base+filled {
			want := min(uint64(len(window)), g.capacity-at)
			n, err := sys.ReadAt(file, window[:want], int64(g.dataOffset+at))
			if err != nil {
				return 0, 0, osError(err, "reading the ring")
			}
			if uint64(n) < g.header {
				return 0, 0, failf(Corrupt, "the file ends before the frame at %d", at)
			}
			base, filled = at, uint64(n)
		}
		length := uint64(binary.LittleEndian.Uint32(window[at-base:]))
		size := g.size(length)
		if length > g.longest || size > pending-done {
			return 0, 0, failf(Corrupt, "the frame at %d claims %d bytes, %d are published", at, length, pending-done)
		}
		messages++
		bytes += length
		done += size
	}
	return messages, bytes, nil
}
