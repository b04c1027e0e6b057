package ramway

import (
	"errors"
	"io"
	"sync/atomic"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// A topic's subscribers, as its publisher and those who only read its file see them.

// slotsIn is a copy of a topic's slots.
func slotsIn(file int, g geometry) ([]slot, error) {
	area := make([]byte, areaLen(g.slots))
	if n, err := sys.ReadAt(file, area, int64(g.subsOffset)); err != nil || n < len(area) {
		return nil, osError(errors.Join(err, io.ErrUnexpectedEOF), "reading the subscribers' area")
	}
	// A slot lies at a multiple of 128 of a large allocation.
	return unsafe.Slice((*slot)(unsafe.Pointer(&area[offSubsSlots])), g.slots), nil
}

// topicIn is a topic's words in a copy of the header page, which readPage allocates as a whole page and so aligned.
func topicIn(page []byte) *topicBlock { return (*topicBlock)(unsafe.Pointer(&page[block0])) }

// info says who has slot i; false if nobody has, and no durable subscriber's cursor is kept there. seqAt is the number of the frame at a
// position, 0 where there can be none.
func (s *slot) info(i int, tail, newest uint64, g geometry, seqAt func(position uint64) uint64) (SubscriberInfo, bool) {
	state, cursor, flags := atomic.LoadUint64(&s.state), atomic.LoadUint64(&s.cursor), atomic.LoadUint32(&s.flags)
	one := SubscriberInfo{
		Slot: i, Epoch: uint32(state >> 32), Policy: Lossy, Label: labelText(s.loadLabel()), Durable: state&slotDurable != 0,
		Ejected: state&slotEjected != 0, Lost: atomic.LoadUint64(&s.lost),
	}
	switch {
	case state&(slotGating|slotDurable|slotEjected) != 0:
		one.Policy = Reliable
	case state&slotActive == 0:
		return one, false
	case flags&slotFlagLatest != 0:
		one.Policy = Latest
	}
	if bytes := tail - cursor; state&slotGating != 0 && bytes <= g.capacity && isTopicPosition(cursor, g.align) {
		one.Lag = &Lag{Bytes: int64(bytes)}
		if next := seqAt(cursor); next != 0 && next <= newest {
			one.Lag.Messages = newest - next + 1
		}
	}
	return one, true
}

// topicOf is what a topic's file says, from copies of its words.
func topicOf(file int, g geometry) (*SegmentTopic, error) {
	// Before the positions: so no cursor is ahead of tail that was not when it was read.
	slots, err := slotsIn(file, g)
	if err != nil {
		return nil, err
	}
	page, _, err := readPage(file)
	if err != nil {
		return nil, err
	}
	b := topicIn(page)
	seqAt := func(position uint64) uint64 {
		var h [4]uint64
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&h)), topicFrameHeader)
		published := b.tail - position
		if !isTopicPosition(position, g.align) || published == 0 || published > g.capacity {
			return 0
		}
		if n, err := sys.ReadAt(file, bytes, int64(g.dataOffset+position&(g.capacity-1))); err != nil || n < len(bytes) {
			return 0
		}
		return h[2]
	}
	t := &SegmentTopic{Slots: len(slots), LossyOnly: g.flags&topicLossyOnly != 0, MayEject: g.flags&topicMayEject != 0}
	// The publisher may have overwritten it meanwhile: then it is a later one's number, or none.
	if t.Seq = seqAt(b.last); t.Seq != 0 {
		if page, _, err := readPage(file); err != nil || topicIn(page).claim-b.last > g.capacity {
			t.Seq = 0
		}
	}
	for i := range slots {
		one, used := slots[i].info(i, b.tail, t.Seq, g, seqAt)
		if !used {
			continue
		}
		if one.Alive, err = sys.HeldExclusivelyByAnother(file, byteSlot+int64(i)); err != nil {
			return nil, osError(err, "asking for the topic's locks")
		}
		t.Subscribers = append(t.Subscribers, one)
	}
	return t, nil
}
