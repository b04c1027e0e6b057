package ramway

import "unsafe"

// The bytes of a segment: docs/ABI.md as Go types. Nothing here maps memory or decides what to trust.

const (
	// magic is the first eight bytes of every segment.
	magic = "RAMWAY\r\n"
	// byteOrder is written in the creator's byte order, so that a reader of the other order sees it swapped.
	byteOrder        = 0x0A0B0C0D
	byteOrderSwapped = 0x0D0C0B0A
	// versionMajor: a reader refuses any other. versionMinor: a reader accepts any.
	versionMajor = 1
	versionMinor = 0
	// featuresKnown are the required feature bits that this version knows.
	featuresKnown = 0

	// headerSize is the length of the header page in bytes; data begins here or later.
	headerSize = 4096
	// block0 and block1 are where the blocks begin in the header page.
	block0 = 0x400
	block1 = 0x800

	// frameHeader is the length of what precedes every payload: len uint32, type id uint32, tag uint64.
	frameHeader = 16
	alignMin    = 16
	alignMax    = 4096
	// typeIDReserved: type ids from here up are Ramway's own.
	typeIDReserved = 0xFFFF0000
	// messageMax: no message is longer, whatever the capacity.
	messageMax = 1<<31 - 17

	// flagPersistent in the segment's flags: the last one out leaves the name in place.
	flagPersistent = 1

	// The bits of a role's flags.
	roleMembarrierCapable = 1
	roleFenceFree         = 2
	roleClosed            = 4
)

// segmentKind is what a segment holds.
type segmentKind uint32

const (
	kindRegion   segmentKind = 1
	kindRing     segmentKind = 2
	kindBus      segmentKind = 3
	kindListener segmentKind = 4
)

func (k segmentKind) String() string {
	switch k {
	case kindRegion:
		return "region"
	case kindRing:
		return "ring"
	case kindBus:
		return "bus"
	case kindListener:
		return "listener"
	}
	return "segment of unknown kind"
}

// Where the fields of the segment header are, from the segment's start.
const (
	offMagic            = 0x00
	offByteOrder        = 0x08
	offVersionMajor     = 0x0C
	offVersionMinor     = 0x0E
	offKind             = 0x10
	offFlags            = 0x14
	offFeaturesRequired = 0x18
	offFeaturesOptional = 0x1C
	offSize             = 0x20
	offCreated          = 0x28
	offBootID           = 0x30
)

// Where the fields of a block are, from the block's start: the geometry's, then a ring's.
const (
	offDataOffset = 0x000
	offCapacity   = 0x008
	offLen        = 0x010
	offAlign      = 0x018
	offTail       = 0x080
	offHead       = 0x100
	offProducer   = 0x180
	offConsumer   = 0x200
)

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

// Compile-time checks: an index that is not 0 is out of range.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(ringBlock{}.tail)-0x080]
	_ = [1]struct{}{}[unsafe.Offsetof(ringBlock{}.lastTags)-0x088]
	_ = [1]struct{}{}[unsafe.Offsetof(ringBlock{}.head)-0x100]
	_ = [1]struct{}{}[unsafe.Offsetof(ringBlock{}.producer)-0x180]
	_ = [1]struct{}{}[unsafe.Offsetof(ringBlock{}.consumer)-0x200]
	_ = [1]struct{}{}[unsafe.Offsetof(roleLine{}.closeSeen)-0x00C]
	_ = [1]struct{}{}[unsafe.Sizeof(ringBlock{})-0x280]
	_ = [1]struct{}{}[unsafe.Offsetof(regionBlock{}.notify)-0x080]
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
