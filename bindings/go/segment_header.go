package ramway

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// The header page as bytes: how a new one is filled in, and what of an existing one is accepted. Checking works on a
// private copy, so each number is read once and what was checked is what is used.

// geometry is where a block's data lies: out of checkHeader, inside the segment, mappable here, and consistent. A
// capacity of 0: this block does not exist.
type geometry struct {
	dataOffset uint64
	capacity   uint64
	// length is a region's as it was asked for, 1 ..= capacity; 0 in a ring.
	length uint64
	// align is a ring's or topic's; 0 in a region.
	align uint32
	// slots, flags and subsOffset are a topic's: 1 ..= topicSlotsMax, bits that are known, and where the subscribers' area
	// begins. Else 0.
	slots, flags uint32
	subsOffset   uint64
}

// areaLen is the length of a topic's subscribers' area in bytes.
func areaLen(slots uint32) uint64 { return offSubsSlots + slotSize*uint64(slots) }

// mappedArea is that in whole pages: the file has all of the last one, because the data begins on a page.
func (g *geometry) mappedArea() int {
	page := uint64(sys.PageSize())
	return int((areaLen(g.slots) + page - 1) &^ (page - 1))
}

// spec is what a new segment is to hold.
type spec struct {
	kind  segmentKind
	flags uint32
	// features are those that it requires: 0, of an RPC's bus its bit.
	features uint32
	// bootID is all zero for a segment without a name: only files can outlive a boot.
	bootID [16]byte
	// size is the whole segment's length in bytes.
	size   uint64
	blocks [2]geometry
}

// tooBig refuses what no machine has.
func tooBig(n uint64) *Error {
	return failf(NoSpace, "a capacity of %d bytes is more than any machine has", n)
}

// roundCapacity is what a ring gets for the capacity asked for: a power of two, at least a granule.
func roundCapacity(asked uint64, granule int) (uint64, error) {
	asked = max(asked, uint64(granule))
	if asked > 1<<62 {
		return 0, tooBig(asked)
	}
	return 1 << bits.Len64(asked-1), nil
}

// ringSpec is a ring. granule is the (huge) page that the data's offset and capacity are multiples of.
func ringSpec(capacity int64, align, granule int) (*spec, error) {
	return ringsSpec(kindRing, []int64{capacity}, align, granule)
}

// busSpec is a bus: toPeer is what the listener sends into, fromPeer what it receives from. A capacity of 0 leaves that
// direction out.
func busSpec(toPeer, fromPeer int64, align int) (*spec, error) {
	if toPeer == 0 && fromPeer == 0 {
		return nil, failf(InvalidArgument, "a bus needs a capacity other than 0 in one direction")
	}
	return ringsSpec(kindBus, []int64{toPeer, fromPeer}, align, sys.PageSize())
}

func ringsSpec(kind segmentKind, capacities []int64, align, granule int) (*spec, error) {
	if align == 0 {
		align = alignMin
	}
	if align < alignMin || align > alignMax || align&(align-1) != 0 {
		return nil, failf(InvalidArgument, "an alignment of %d: expected a power of two from %d to %d", align, alignMin, alignMax)
	}
	s := emptySpec(kind, granule)
	for i, asked := range capacities {
		if asked < 0 {
			return nil, failf(InvalidArgument, "a capacity of %d bytes: expected 0 or more", asked)
		}
		s.blocks[i] = geometry{dataOffset: s.size, align: uint32(align)}
		if asked == 0 && kind == kindBus {
			continue
		}
		capacity, err := roundCapacity(uint64(asked), granule)
		if err != nil {
			return nil, err
		}
		s.blocks[i].capacity = capacity
		// Two of at most 2^62 and a page: no overflow.
		s.size += capacity
	}
	return s, nil
}

// topicSpec is a topic. Each of its parts begins on a multiple of granule, the (huge) page.
func topicSpec(capacity int64, align, slots int, flags uint32, granule int) (*spec, error) {
	if align == 0 {
		align = topicAlignMin
	}
	if slots == 0 {
		slots = topicSlotsDefault
	}
	switch {
	case align < topicAlignMin || align > alignMax || align&(align-1) != 0:
		return nil, failf(InvalidArgument, "an alignment of %d: a topic's is a power of two from %d to %d", align, topicAlignMin, alignMax)
	case slots < 1 || slots > topicSlotsMax:
		return nil, failf(InvalidArgument, "%d slots for subscribers: expected 1 to %d", slots, topicSlotsMax)
	case capacity < 0:
		return nil, failf(InvalidArgument, "a capacity of %d bytes: expected 0 or more", capacity)
	}
	// A whole frame takes at most half of it.
	rounded, err := roundCapacity(max(uint64(capacity), 2*uint64(align)), granule)
	if err != nil {
		return nil, err
	}
	s := emptySpec(kindTopic, granule)
	mask := max(uint64(granule), headerSize) - 1
	g := geometry{capacity: rounded, align: uint32(align), slots: uint32(slots), flags: flags, subsOffset: s.size}
	g.dataOffset = (s.size + areaLen(g.slots) + mask) &^ mask
	s.blocks[0] = g
	s.size = g.dataOffset + g.capacity
	return s, nil
}

// regionSpec is a region of length bytes, more than 0.
func regionSpec(length int64, granule int) (*spec, error) {
	if length <= 0 {
		return nil, failf(InvalidArgument, "a region of %d bytes: expected at least 1", length)
	}
	s := emptySpec(kindRegion, granule)
	mask := uint64(granule) - 1
	capacity := (uint64(length) + mask) &^ mask
	if capacity > 1<<62 {
		return nil, tooBig(uint64(length))
	}
	s.blocks[0] = geometry{dataOffset: s.size, capacity: capacity, length: uint64(length)}
	s.size += capacity
	return s, nil
}

// listenerSpec is the lock of a listening socket.
func listenerSpec() *spec { return emptySpec(kindListener, sys.PageSize()) }

func emptySpec(kind segmentKind, granule int) *spec {
	return &spec{kind: kind, size: uint64(max(granule, headerSize))}
}

// named makes it a spec of a segment with a name.
func (s *spec) named(persistent bool) *spec {
	s.bootID = sys.BootID()
	if persistent {
		s.flags = flagPersistent
	}
	return s
}

// formatHeader makes the header page of a new segment. Rings begin empty at their first position, everything else is 0.
func formatHeader(s *spec) []byte {
	page := make([]byte, headerSize)
	le := binary.LittleEndian
	copy(page[offMagic:], magic)
	le.PutUint32(page[offByteOrder:], byteOrder)
	le.PutUint16(page[offVersionMajor:], versionMajor)
	minor := uint16(versionMinor)
	if s.kind == kindTopic {
		minor = versionMinorTopic
	}
	le.PutUint16(page[offVersionMinor:], minor)
	le.PutUint32(page[offKind:], uint32(s.kind))
	le.PutUint32(page[offFlags:], s.flags)
	le.PutUint32(page[offFeaturesRequired:], s.features)
	le.PutUint64(page[offSize:], s.size)
	le.PutUint64(page[offCreatedNs:], uint64(time.Now().UnixNano()))
	copy(page[offBootID:], s.bootID[:])
	for i, base := range blockOffsets {
		g := &s.blocks[i]
		if g.dataOffset == 0 {
			continue
		}
		le.PutUint64(page[base+offDataOffset:], g.dataOffset)
		le.PutUint64(page[base+offCapacity:], g.capacity)
		le.PutUint64(page[base+offLen:], g.length)
		le.PutUint32(page[base+offAlign:], g.align)
		switch s.kind {
		case kindTopic:
			le.PutUint32(page[base+offTopicSlots:], g.slots)
			le.PutUint32(page[base+offTopicFlags:], g.flags)
			le.PutUint64(page[base+offTopicSubsOffset:], g.subsOffset)
			first := firstTopicPosition(g.align)
			le.PutUint64(page[base+offTopicTail:], first)
			le.PutUint64(page[base+offTopicLast:], first)
			le.PutUint64(page[base+offTopicClaim:], first)
			for i := range topicChunks {
				le.PutUint64(page[base+offTopicStarts+8*i:], first)
			}
		case kindRing, kindBus:
			le.PutUint64(page[base+offTail:], firstPosition(g.align))
			le.PutUint64(page[base+offHead:], firstPosition(g.align))
		}
	}
	return page
}

// header is what a header page that may be trusted says.
type header struct {
	kind             segmentKind
	major, minor     uint16
	flags            uint32
	featuresOptional uint32
	size             uint64
	createdNs        uint64
	bootID           [16]byte
	// blocks has the rings, or the region or topic in block 0.
	blocks [2]geometry
}

func (h *header) persistent() bool { return h.flags&flagPersistent != 0 }

// ofAnotherBoot: nobody uses this named segment and nobody may resume it.
func (h *header) ofAnotherBoot() bool {
	now, unknown := sys.BootID(), [16]byte{}
	// All zero on either side: not known, so not held against it.
	return h.bootID != unknown && now != unknown && h.bootID != now
}

// checkHeader decides whether a header page may be trusted, in the order of section 16. page holds the file's first
// headerSize bytes (zero beyond its end), fileSize is its length in bytes. Nothing is allocated for what it claims.
func checkHeader(page []byte, fileSize uint64) (*header, error) {
	return checkHeaderOf(page, fileSize, featuresKnown)
}

// checkHeaderOf is checkHeader for a segment that has to require exactly these features.
func checkHeaderOf(page []byte, fileSize uint64, features uint32) (*header, error) {
	le := binary.LittleEndian
	if string(page[offMagic:offMagic+len(magic)]) != magic {
		return nil, failf(AbiMismatch, "this is not a Ramway segment (other first bytes); it is left as it is")
	}
	if fileSize < headerSize {
		return nil, failf(Corrupt, "the segment is cut off after %d bytes, less than its header page", fileSize)
	}
	switch order := le.Uint32(page[offByteOrder:]); order {
	case byteOrder:
	case byteOrderSwapped:
		return nil, failf(AbiMismatch, "the segment was made on a machine of the other byte order")
	default:
		return nil, failf(Corrupt, "the segment's byte order mark is %#010x", order)
	}
	h := &header{
		kind:             segmentKind(le.Uint32(page[offKind:])),
		major:            le.Uint16(page[offVersionMajor:]),
		minor:            le.Uint16(page[offVersionMinor:]),
		flags:            le.Uint32(page[offFlags:]),
		featuresOptional: le.Uint32(page[offFeaturesOptional:]),
		size:             le.Uint64(page[offSize:]),
		createdNs:        le.Uint64(page[offCreatedNs:]),
		bootID:           [16]byte(page[offBootID : offBootID+16]),
	}
	if h.major != versionMajor {
		return nil, failf(AbiMismatch, "the segment has version %d.%d of the format, this side speaks %d.%d",
			h.major, h.minor, versionMajor, versionMinor)
	}
	if required := le.Uint32(page[offFeaturesRequired:]); required&^features != 0 {
		return nil, failf(AbiMismatch, "the segment needs features %#x, which this version does not know", required&^features)
	} else if required != features {
		return nil, failf(AbiMismatch, "the segment requires features %#x, expected %#x: it is no bus of RPC", required, features)
	}
	if h.kind < kindRegion || h.kind > kindTopic {
		return nil, failf(AbiMismatch, "the segment is of kind %d, which this version does not know", uint32(h.kind))
	}
	if h.size != fileSize {
		return nil, failf(Corrupt, "the segment says that it has %d bytes, the file has %d", h.size, fileSize)
	}
	if err := h.checkBlocks(page); err != nil {
		return nil, err
	}
	return h, nil
}

// checkBlocks fills in the blocks that the segment's kind has.
func (h *header) checkBlocks(page []byte) error {
	var err error
	switch h.kind {
	case kindRegion:
		h.blocks[0], err = checkRegion(page, h.size)
	case kindRing:
		h.blocks[0], err = checkRing(page, 0, h)
	case kindTopic:
		h.blocks[0], err = checkTopic(page, h.size)
	case kindBus:
		if h.blocks[0], err = checkRing(page, 0, h); err != nil {
			return err
		}
		if h.blocks[1], err = checkRing(page, 1, h); err != nil {
			return err
		}
		a, b := h.blocks[0], h.blocks[1]
		if a.capacity != 0 && b.capacity != 0 &&
			a.dataOffset < b.dataOffset+b.capacity && b.dataOffset < a.dataOffset+a.capacity {
			return failf(Corrupt, "the two rings of the bus overlap")
		}
	}
	return err
}

// checkRange reads a block's geometry and checks that the data lies inside the segment and can be mapped here.
func checkRange(page []byte, block int, size uint64) (geometry, error) {
	le, base := binary.LittleEndian, blockOffsets[block]
	g := geometry{
		dataOffset: le.Uint64(page[base+offDataOffset:]),
		capacity:   le.Uint64(page[base+offCapacity:]),
		length:     le.Uint64(page[base+offLen:]),
		align:      le.Uint32(page[base+offAlign:]),
	}
	end, carry := bits.Add64(g.dataOffset, g.capacity, 0)
	if g.dataOffset < headerSize || g.dataOffset%headerSize != 0 || carry != 0 || end > size {
		return geometry{}, failf(Corrupt, "block %d claims %d bytes at %d, which do not lie in a segment of %d bytes",
			block, g.capacity, g.dataOffset, size)
	}
	if pageSize := uint64(sys.PageSize()); g.capacity != 0 && (g.dataOffset%pageSize != 0 || g.capacity%pageSize != 0) {
		return geometry{}, failf(AbiMismatch, "the data (%d bytes at %d) cannot be mapped with this machine's pages of %d bytes",
			g.capacity, g.dataOffset, pageSize)
	}
	return g, nil
}

func checkRing(page []byte, block int, h *header) (geometry, error) {
	if h.kind == kindBus && binary.LittleEndian.Uint64(page[blockOffsets[block]+offCapacity:]) == 0 {
		return geometry{}, nil
	}
	g, err := checkRange(page, block, h.size)
	if err != nil {
		return geometry{}, err
	}
	if g.capacity < headerSize || g.capacity&(g.capacity-1) != 0 {
		return geometry{}, failf(Corrupt, "ring %d has a capacity of %d bytes, not a power of two of at least a page", block, g.capacity)
	}
	if g.align < alignMin || g.align > alignMax || g.align&(g.align-1) != 0 || uint64(g.align) > g.capacity {
		return geometry{}, failf(Corrupt, "ring %d has an alignment of %d", block, g.align)
	}
	g.length = 0
	return g, nil
}

func checkRegion(page []byte, size uint64) (geometry, error) {
	g, err := checkRange(page, 0, size)
	if err != nil {
		return geometry{}, err
	}
	if g.length == 0 || g.length > g.capacity {
		return geometry{}, failf(Corrupt, "the region claims %d bytes in a capacity of %d", g.length, g.capacity)
	}
	g.align = 0
	return g, nil
}

func checkTopic(page []byte, size uint64) (geometry, error) {
	g, err := checkRange(page, 0, size)
	if err != nil {
		return geometry{}, err
	}
	if g.capacity < headerSize || g.capacity&(g.capacity-1) != 0 {
		return geometry{}, failf(Corrupt, "the topic has a capacity of %d bytes, not a power of two of at least a page", g.capacity)
	}
	if g.align < topicAlignMin || g.align > alignMax || g.align&(g.align-1) != 0 || uint64(g.align) > g.capacity/2 {
		return geometry{}, failf(Corrupt, "the topic has an alignment of %d", g.align)
	}
	le := binary.LittleEndian
	g.slots = le.Uint32(page[block0+offTopicSlots:])
	if g.slots < 1 || g.slots > topicSlotsMax {
		return geometry{}, failf(Corrupt, "the topic has %d slots for subscribers, expected 1 to %d", g.slots, topicSlotsMax)
	}
	g.subsOffset = le.Uint64(page[block0+offTopicSubsOffset:])
	end, carry := bits.Add64(g.subsOffset, areaLen(g.slots), 0)
	if g.subsOffset < headerSize || g.subsOffset%headerSize != 0 || carry != 0 || end > g.dataOffset {
		return geometry{}, failf(Corrupt, "the topic's subscribers' area of %d bytes at %d does not lie between the header page and "+
			"the data at %d", areaLen(g.slots), g.subsOffset, g.dataOffset)
	}
	if pageSize := uint64(sys.PageSize()); g.subsOffset%pageSize != 0 {
		return geometry{}, failf(AbiMismatch, "the topic's subscribers' area at %d cannot be mapped with this machine's pages of %d bytes",
			g.subsOffset, pageSize)
	}
	g.flags = le.Uint32(page[block0+offTopicFlags:])
	if unknown := g.flags &^ topicFlagsKnown; unknown != 0 {
		return geometry{}, failf(AbiMismatch, "the topic was made with flags %#x, which this version does not know", unknown)
	}
	g.length = 0
	return g, nil
}
