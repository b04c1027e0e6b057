package ramway

import "unsafe"

// The bytes of a segment: docs/ABI.md as Go types; its numbers are in facts.go. Nothing here maps memory or decides what to trust.

// String is the kind as people read it.
func (k segmentKind) String() string {
	if k >= kindRegion && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "segment of unknown kind"
}

// blockOffsets are where the blocks begin in the header page.
var blockOffsets = [2]int{block0, block1}

// lastTag is a last-tag record: the end and the tag of a published frame.
type lastTag struct {
	end uint64
	tag uint64
}

// roleLine is what one side of a ring says of itself. Every word is accessed atomically.
type roleLine struct {
	// wait is the futex: 1 while the holder sleeps or is about to.
	wait uint32
	// flags: roleMembarrierCapable, roleFenceFree, roleClosed.
	flags uint32
	// epoch is how often the role was attached; 0 = never.
	epoch uint32
	// closeSeen (consumer only) is the producer's epoch whose orderly close was delivered.
	closeSeen uint32
	_         [112]byte
}

// ringBlock is a ring's part of the header page, as it lies in shared memory. Every word but the geometry's is accessed
// atomically; the geometry is read once, by checkHeader, out of a copy.
type ringBlock struct {
	geometry [128]byte
	tail     uint64
	lastTags [2]lastTag
	_        [88]byte
	head     uint64
	_        [120]byte
	producer roleLine
	consumer roleLine
}

// regionBlock is a region's part of the header page.
type regionBlock struct {
	geometry [128]byte
	// notify: bit 0 = somebody waits, the rest counts notifications.
	notify uint32
	_      [124]byte
}

// The structs have every field where the facts say. Compile-time checks: an index that is not 0 is out of range.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(ringBlock{}.tail)-offTail]
	_ = [1]struct{}{}[unsafe.Offsetof(ringBlock{}.lastTags)-offLastTags]
	_ = [1]struct{}{}[unsafe.Offsetof(ringBlock{}.head)-offHead]
	_ = [1]struct{}{}[unsafe.Offsetof(ringBlock{}.producer)-offProducer]
	_ = [1]struct{}{}[unsafe.Offsetof(ringBlock{}.consumer)-offConsumer]
	_ = [1]struct{}{}[unsafe.Offsetof(lastTag{}.tag)-lastTagTag]
	_ = [1]struct{}{}[unsafe.Sizeof(lastTag{})-lastTagSize]
	_ = [1]struct{}{}[unsafe.Offsetof(roleLine{}.wait)-offRoleWait]
	_ = [1]struct{}{}[unsafe.Offsetof(roleLine{}.flags)-offRoleFlags]
	_ = [1]struct{}{}[unsafe.Offsetof(roleLine{}.epoch)-offRoleEpoch]
	_ = [1]struct{}{}[unsafe.Offsetof(roleLine{}.closeSeen)-offRoleCloseSeen]
	_ = [1]struct{}{}[unsafe.Sizeof(ringBlock{})-ringBlockSize]
	_ = [1]struct{}{}[unsafe.Offsetof(regionBlock{}.notify)-offNotify]
	_ = [1]struct{}{}[unsafe.Sizeof(regionBlock{})-regionBlockSize]
)

// firstPosition is where the positions of a new ring with this alignment begin.
func firstPosition(align uint32) uint64 { return uint64(align) - frameHeader }

// positionsAgree says whether two positions could be those of a ring at rest: where frames can begin, and at most a
// capacity apart.
func positionsAgree(tail, head, capacity uint64, align uint32) bool {
	mask, first := uint64(align)-1, firstPosition(align)
	return tail&mask == first && head&mask == first && tail-head <= capacity
}

// frameSize is how many bytes a frame with a payload of n bytes takes. It cannot overflow for n up to 2^32.
func frameSize(n uint64, align uint32) uint64 {
	mask := uint64(align) - 1
	return (frameHeader + n + mask) &^ mask
}

// maxMessageLen is the longest payload that a ring of this capacity can ever hold.
func maxMessageLen(capacity uint64) uint64 {
	if capacity < frameHeader {
		return 0
	}
	return min(capacity-frameHeader, messageMax)
}
