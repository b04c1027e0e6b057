package ramway

import (
	"encoding/binary"
	"math"
	"testing"
)

// changedPage is the header page of a ring of 8192 bytes in a segment of 12288, and change writes over it.
func changedPage(t testing.TB, change func(page []byte)) []byte {
	t.Helper()
	s, err := ringSpec(8192, 16, 4096)
	if err != nil {
		t.Fatal(err)
	}
	page := formatHeader(s)
	change(page)
	return page
}

// Every row of section 16 that concerns the header, and their order.
func TestHeaderChecks(t *testing.T) {
	le := binary.LittleEndian
	put32 := func(at int, v uint32) func([]byte) { return func(p []byte) { le.PutUint32(p[at:], v) } }
	put64 := func(at int, v uint64) func([]byte) { return func(p []byte) { le.PutUint64(p[at:], v) } }
	all := func(changes ...func([]byte)) func([]byte) {
		return func(p []byte) {
			for _, change := range changes {
				change(p)
			}
		}
	}
	version := func(p []byte) { le.PutUint16(p[offVersionMajor:], 2) }
	badMagic := func(p []byte) { p[3] ^= 1 }
	type row struct {
		what   string
		change func([]byte)
		kind   Kind
	}
	rows := []row{
		{"as made", func([]byte) {}, 0},
		{"magic", badMagic, AbiMismatch},
		{"the other byte order", put32(offByteOrder, byteOrderSwapped), AbiMismatch},
		{"no byte order", put32(offByteOrder, 0x01020304), Corrupt},
		{"version 2", version, AbiMismatch},
		{"version 0", func(p []byte) { le.PutUint16(p[offVersionMajor:], 0) }, AbiMismatch},
		{"a later minor version", func(p []byte) { le.PutUint16(p[offVersionMinor:], 9) }, 0},
		{"a required feature", put32(offFeaturesRequired, 1<<31), AbiMismatch},
		{"optional features", put32(offFeaturesOptional, math.MaxUint32), 0},
		{"kind 0", put32(offKind, 0), AbiMismatch},
		{"kind 99", put32(offKind, 99), AbiMismatch},
		{"unknown flags", put32(offFlags, 0xFFFF_FFFE), 0},
		// The first check that fails decides.
		{"magic before the byte order", all(badMagic, put32(offByteOrder, 1)), AbiMismatch},
		{"byte order before the version", all(version, put32(offByteOrder, 1)), Corrupt},
		{"version before the size", all(version, put64(offSize, 1)), AbiMismatch},
		{"features before the size", all(put32(offFeaturesRequired, 1), put64(offSize, 1)), AbiMismatch},
		{"kind before the size", all(put32(offKind, 99), put64(offSize, 1)), AbiMismatch},
	}
	add := func(what string, change func([]byte), kind Kind) { rows = append(rows, row{what, change, kind}) }
	for _, size := range []uint64{0, 4096, 12_287, 12_289, math.MaxUint64} {
		add("size", put64(offSize, size), Corrupt)
	}
	for _, at := range []uint64{0, 1, 64, 4095, 8192, 12_288, 1 << 40, math.MaxUint64, math.MaxUint64 - 4095, math.MaxUint64 - 8191} {
		add("data offset", put64(block0+offDataOffset, at), Corrupt)
	}
	for _, capacity := range []uint64{0, 4096 + 8192, 16_384, 1 << 30, 1 << 63, math.MaxUint64} {
		add("capacity", put64(block0+offCapacity, capacity), Corrupt)
	}
	for _, capacity := range []uint64{1, 15, 16, 2048, 4097, 8191} {
		// Not a page: which of the two checks comes first is left open, and this is the order of section 16.
		add("capacity that is no page", put64(block0+offCapacity, capacity), AbiMismatch)
	}
	for _, align := range []uint32{0, 1, 8, 15, 17, 24, 8192, 1 << 31, math.MaxUint32} {
		add("alignment", put32(block0+offAlign, align), Corrupt)
	}
	for _, r := range rows {
		h, err := checkHeader(changedPage(t, r.change), 12_288)
		if KindOf(err) != r.kind || (h == nil) == (r.kind == 0) {
			t.Errorf("%s: %v, expected %v", r.what, err, r.kind)
		}
	}
	page := changedPage(t, func([]byte) {})
	for size, kind := range map[uint64]Kind{0: Corrupt, 4095: Corrupt, 4096: Corrupt, 12_288: 0, 12_289: Corrupt} {
		_, err := checkHeader(page, size)
		expectKind(t, err, kind)
	}
}

func TestBusAndRegionHeaders(t *testing.T) {
	le := binary.LittleEndian
	s, err := busSpec(8192, 4096, 64)
	if err != nil {
		t.Fatal(err)
	}
	bus := formatHeader(s)
	h, err := checkHeader(bus, s.size)
	if err != nil || h.blocks[0].capacity != 8192 || h.blocks[1].capacity != 4096 || h.blocks[1].dataOffset != 12_288 {
		t.Fatal(h, err)
	}
	// Neither may lie in the other.
	le.PutUint64(bus[block1+offDataOffset:], 8192)
	_, err = checkHeader(bus, s.size)
	expectKind(t, err, Corrupt)
	expectText(t, err, "overlap")
	// One direction may be absent, whatever else its block says.
	s, err = busSpec(0, 4096, 16)
	if err != nil {
		t.Fatal(err)
	}
	bus = formatHeader(s)
	le.PutUint64(bus[block0+offDataOffset:], 1)
	le.PutUint32(bus[block0+offAlign:], 3)
	h, err = checkHeader(bus, s.size)
	if err != nil || h.blocks[0].capacity != 0 || h.blocks[1].capacity != 4096 {
		t.Fatal(h, err)
	}
	_, err = busSpec(0, 0, 16)
	expectKind(t, err, InvalidArgument)

	s, err = regionSpec(5000, 4096)
	if err != nil {
		t.Fatal(err)
	}
	region := formatHeader(s)
	h, err = checkHeader(region, s.size)
	if err != nil || h.blocks[0].length != 5000 || h.blocks[0].capacity != 8192 {
		t.Fatal(h, err)
	}
	for _, length := range []uint64{0, 8193, math.MaxUint64} {
		le.PutUint64(region[block0+offLen:], length)
		_, err = checkHeader(region, s.size)
		expectKind(t, err, Corrupt)
	}
}
