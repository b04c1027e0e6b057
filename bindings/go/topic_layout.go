package ramway

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/cpu"
)

// A topic's shared words (ABI.md, section 19), and what both of its sides read.

// topicBlock is a topic's part of the header page, as it lies in shared memory. Every word but the geometry's is accessed
// atomically.
type topicBlock struct {
	geometry [128]byte
	tail     uint64
	last     uint64
	_        [112]byte
	claim    uint64
	_        [120]byte
	starts   [topicChunks]uint64
	// publisher.wait is not used: the publisher sleeps on a word of the subscribers' area.
	publisher roleLine
}

// ejectAfter lies in the publisher's line, behind what every role has.
func (b *topicBlock) ejectAfter() *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(b), offTopicEjectAfter))
}

// agree says whether the positions could be those of a topic that nobody writes at this moment. Plain loads: of a copy, or with
// the publisher's role held.
func (b *topicBlock) agree(g geometry) bool {
	return isTopicPosition(b.tail, g.align) && isTopicPosition(b.last, g.align) && b.tail-b.last <= g.capacity &&
		b.claim-b.tail <= g.capacity && b.claim-b.last <= g.capacity &&
		(b.last != b.tail || b.tail == firstTopicPosition(g.align))
}

// subscribersArea is the beginning of a topic's subscribers' area; the slots follow.
type subscribersArea struct {
	// wait is the publisher's futex.
	wait uint32
	_    [124]byte
	// word is the subscribers' futex in its low half, changes in its high half. Accessed as one word only.
	word uint64
	_    [offSubsSlots - offSubsWord - 8]byte
}

// slot is a subscriber's. Every word is accessed atomically.
type slot struct {
	cursor    uint64
	state     uint64
	flags     uint32
	closeSeen uint32
	lost      uint64
	ejectSeq  uint64
	_         [24]byte
	label     slotLabel
}

// slotLabel is a label as a slot holds it: UTF-8, padded with zeros.
type slotLabel [labelMax / 8]uint64

// Compile-time checks: an index that is not 0 is out of range.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(topicBlock{}.tail)-offTopicTail]
	_ = [1]struct{}{}[unsafe.Offsetof(topicBlock{}.last)-offTopicLast]
	_ = [1]struct{}{}[unsafe.Offsetof(topicBlock{}.claim)-offTopicClaim]
	_ = [1]struct{}{}[unsafe.Offsetof(topicBlock{}.starts)-offTopicStarts]
	_ = [1]struct{}{}[unsafe.Offsetof(topicBlock{}.publisher)-offTopicPublisher]
	_ = [1]struct{}{}[unsafe.Sizeof(topicBlock{})-topicBlockSize]
	_ = [1]struct{}{}[unsafe.Offsetof(subscribersArea{}.wait)-offSubsWait]
	_ = [1]struct{}{}[unsafe.Offsetof(subscribersArea{}.word)-offSubsWord]
	_ = [1]struct{}{}[unsafe.Sizeof(subscribersArea{})-offSubsSlots]
	_ = [1]struct{}{}[unsafe.Offsetof(slot{}.cursor)-offSlotCursor]
	_ = [1]struct{}{}[unsafe.Offsetof(slot{}.state)-offSlotState]
	_ = [1]struct{}{}[unsafe.Offsetof(slot{}.flags)-offSlotFlags]
	_ = [1]struct{}{}[unsafe.Offsetof(slot{}.closeSeen)-offSlotCloseSeen]
	_ = [1]struct{}{}[unsafe.Offsetof(slot{}.lost)-offSlotLost]
	_ = [1]struct{}{}[unsafe.Offsetof(slot{}.ejectSeq)-offSlotEjectSeq]
	_ = [1]struct{}{}[unsafe.Offsetof(slot{}.label)-offSlotLabel]
	_ = [1]struct{}{}[unsafe.Sizeof(slot{})-slotSize]
)

// nextState is the state of a slot that is taken anew, with these flags.
func nextState(state, flags uint64) uint64 {
	return uint64(max(uint32(state>>32)+1, 1))<<32 | flags
}

// withoutFlags is the state of a slot that nobody has.
func withoutFlags(state uint64) uint64 { return state &^ 0xFFFF_FFFF }

func (s *slot) setLabel(label slotLabel) {
	for i, word := range label {
		atomic.StoreUint64(&s.label[i], word)
	}
}

func (s *slot) loadLabel() (label slotLabel) {
	for i := range label {
		label[i] = atomic.LoadUint64(&s.label[i])
	}
	return label
}

// labelOf is a label of at most 64 bytes as a slot holds it.
func labelOf(text string) (label slotLabel) {
	var padded [labelMax]byte
	copy(padded[:], text)
	for i := range label {
		label[i] = binary.LittleEndian.Uint64(padded[8*i:])
	}
	return label
}

// labelText is the contrary. Anything may have been written there.
func labelText(label slotLabel) string {
	var padded [labelMax]byte
	for i, word := range label {
		binary.LittleEndian.PutUint64(padded[8*i:], word)
	}
	text, _, _ := strings.Cut(string(padded[:]), "\x00")
	return strings.ToValidUTF8(text, "\uFFFD")
}

// firstTopicPosition is where the positions of a new topic begin.
func firstTopicPosition(align uint32) uint64 { return uint64(align) - topicFrameHeader }

// isTopicPosition says whether a frame can begin there.
func isTopicPosition(position uint64, align uint32) bool {
	return position&(uint64(align)-1) == firstTopicPosition(align)
}

// maxTopicMessageLen is the longest payload that a topic of this capacity can hold: a whole frame takes at most half of it, so
// that the last message stays intact while the next one is written.
func maxTopicMessageLen(capacity uint64) uint64 {
	return min(capacity/2-topicFrameHeader, topicMessageMax)
}

// topicLog is a mapped topic.
type topicLog struct {
	block    *topicBlock
	area     *subscribersArea
	slots    []slot
	data     unsafe.Pointer
	capacity uint64
	align    uint32
	// flags are the creator's.
	flags uint32
	// fence is for cpu.LoadFence.
	fence uint64
}

func newTopicLog(a *attachment) topicLog {
	return topicLog{
		block: (*topicBlock)(a.block),
		area:  (*subscribersArea)(a.area),
		// The area was mapped with this many slots, which lie right behind its beginning.
		slots:    unsafe.Slice((*slot)(unsafe.Add(a.area, offSubsSlots)), a.g.slots),
		data:     a.data,
		capacity: a.capacity,
		align:    a.align,
		flags:    a.g.flags,
	}
}

// changes is how often a subscriber has come or gone.
func (t *topicLog) changes() uint32 { return uint32(atomic.LoadUint64(&t.area.word) >> 32) }

// countChange says that one came, went, or chose its cursor anew, after its slot says so. A full fence.
func (t *topicLog) countChange() { atomic.AddUint64(&t.area.word, wordChange) }

// sleepWord is the half of the subscribers' word that they sleep on.
func (t *topicLog) sleepWord() *uint32 { return (*uint32)(unsafe.Pointer(&t.area.word)) }

// topicHeader is what precedes a payload.
type topicHeader struct {
	len    uint32
	typeID uint32
	tag    uint64
	seq    uint64
	time   uint64
}

// headerAt reads the header at a position of a frame, each number once. At any such position it lies in the mapping.
func (t *topicLog) headerAt(position uint64) topicHeader {
	at := (*[4]uint64)(unsafe.Add(t.data, position&(t.capacity-1)))
	// Atomic loads, so that the compiler does not load a number a second time after it was checked.
	word := atomic.LoadUint64(&at[0])
	return topicHeader{uint32(word), uint32(word >> 32), atomic.LoadUint64(&at[1]), atomic.LoadUint64(&at[2]), atomic.LoadUint64(&at[3])}
}

// payloadAt is where the payload of the frame at a position begins.
func (t *topicLog) payloadAt(position uint64) unsafe.Pointer {
	return unsafe.Add(t.data, position&(t.capacity-1)+topicFrameHeader)
}

// sizeOf is how many bytes the frame takes.
func (t *topicLog) sizeOf(h *topicHeader) uint64 {
	mask := uint64(t.align) - 1
	return (topicFrameHeader + uint64(h.len) + mask) &^ mask
}

// plausible says whether a frame lies within the left bytes that are published, and has a number that another can follow. More
// than the capacity is not left of a frame that is intact: it would lead out of the log.
func (t *topicLog) plausible(h *topicHeader, left uint64) bool {
	return left <= t.capacity && h.len <= topicMessageMax && t.sizeOf(h) <= left && h.seq+1 > 1
}

// overtaken says whether the frame at a position may be overwritten already, or at any moment. What was read of the frame
// before is from before.
func (t *topicLog) overtaken(position uint64) bool {
	cpu.LoadFence(&t.fence)
	return atomic.LoadUint64(&t.block.claim)-position > t.capacity
}

// frameAt is the header of the frame at any position, and where it ends; false if it is none, or was overtaken. kept: a slot keeps
// it, so that the claim, which goes beyond what a slot lets the publisher write, says nothing.
func (t *topicLog) frameAt(position, tail uint64, kept bool) (h topicHeader, end uint64, ok bool) {
	if !isTopicPosition(position, t.align) {
		return h, 0, false
	}
	h = t.headerAt(position)
	if !kept && t.overtaken(position) || !t.plausible(&h, tail-position) {
		return h, 0, false
	}
	return h, position + t.sizeOf(&h), true
}
