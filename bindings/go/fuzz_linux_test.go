package ramway

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// fuzzMax is the longest image that is tried, in bytes.
const fuzzMax = 1 << 18

// FuzzSegment opens an image as everything that it can be, and scribbles over a shared word while it is in use. However
// hostile the image is: no crash, no hang, no byte outside of the mapping, and no more messages than fit. The seeds are
// the vectors.
func FuzzSegment(f *testing.F) {
	for _, v := range readVectors(f) {
		if v.Size > fuzzMax {
			continue
		}
		image := encodeImage(&v)
		f.Add(image, uint16(block0+offTail), uint64(4096))
		for _, r := range v.Readers {
			if r.Then != nil {
				for _, run := range r.Then.Bytes {
					if len(run.Hex) == 8 && run.At < headerSize {
						f.Add(image, uint16(run.At), binary.LittleEndian.Uint64(run.Hex))
					}
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, image []byte, at uint16, value uint64) {
		fuzzImage(t, decodeImage(image), at, value)
	})
}

// encodeImage writes an image without its zeros, which would be all that a fuzzer ever changes: its length, and then
// runs of an offset, a length of one byte, and the bytes.
func encodeImage(v *vector) []byte {
	le := binary.LittleEndian
	encoded := le.AppendUint32(nil, uint32(v.Size))
	for _, run := range v.Bytes {
		for at, bytes := run.At, run.Hex; len(bytes) > 0; {
			n := min(len(bytes), 255)
			encoded = append(append(le.AppendUint32(encoded, uint32(at)), byte(n)), bytes[:n]...)
			at, bytes = at+int64(n), bytes[n:]
		}
	}
	return encoded
}

// decodeImage gives an image for any bytes at all.
func decodeImage(encoded []byte) []byte {
	le := binary.LittleEndian
	if len(encoded) < 4 {
		return nil
	}
	image := make([]byte, le.Uint32(encoded)%(fuzzMax+1))
	for encoded = encoded[4:]; len(encoded) >= 5; {
		at, n := int(le.Uint32(encoded)), min(int(encoded[4]), len(encoded)-5)
		if at < len(image) {
			copy(image[at:], encoded[5:5+n])
		}
		encoded = encoded[5+n:]
	}
	return image
}

func fuzzImage(t *testing.T, image []byte, at uint16, value uint64) {
	fd, err := unix.MemfdCreate("ramway-fuzz", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(fd)
	if err := sys.WriteAt(fd, image, 0); err != nil {
		t.Fatal(err)
	}
	page, size, err := readPage(fd)
	if err != nil || size != uint64(len(image)) {
		t.Fatal(size, err)
	}
	h, err := checkHeader(page, size)
	if err != nil {
		switch KindOf(err) {
		case Corrupt, AbiMismatch:
			return
		}
		t.Fatal(err)
	}
	// What the last one out and a creator ask of it.
	if _, err := reasonToKeep(fd, h); err != nil {
		t.Fatal(err)
	}
	mustStay(-1, page, h)
	if size < uint64(headerLen()) {
		t.Fatalf("a segment of %d bytes", size)
	}
	if h.kind == kindRegion {
		g := h.blocks[0]
		data, err := sys.Map(fd, int64(g.dataOffset), int(g.capacity), false)
		if err != nil {
			t.Fatal(err)
		}
		readAll(unsafe.Slice((*byte)(data), g.length))
		_ = sys.Unmap(data, int(g.capacity))
		return
	}
	words, err := mapHeader(fd, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Unmap(words, headerLen()) }()
	scribble := func() {
		// Behind the geometry of either block: what a live peer could change. The header and the geometry are read once.
		offset := int(at) % (headerSize - 8) &^ 7
		if offset >= block0+offTail {
			atomic.StoreUint64((*uint64)(unsafe.Add(words, offset)), value)
		}
	}
	for i, g := range h.blocks {
		if g.capacity != 0 {
			fuzzConsumer(t, fd, blockOffsets[i], g, scribble)
			fuzzProducer(t, fd, blockOffsets[i], g, scribble)
		}
	}
}

// readAll reads every byte: outside of the mapping that is the end.
func readAll(b []byte) (sum uint64) {
	for _, c := range b {
		sum += uint64(c)
	}
	return sum
}

func fuzzConsumer(t *testing.T, fd, base int, g geometry, scribble func()) {
	o := Options{NoMembarrier: true}
	a, err := attachMemory(fd, base, g, noLink{}, &o)
	if err != nil {
		t.Fatal(err)
	}
	first, last := uintptr(a.data), uintptr(a.data)+2*uintptr(g.capacity)
	rx, err := newReceiver(a, o)
	if err != nil {
		expectKind(t, err, Corrupt)
		return
	}
	defer rx.Close()
	most := 2*g.capacity/frameHeader + 2
	scribbled := false
	for n := uint64(0); ; n++ {
		if n > most {
			t.Fatalf("more than %d messages in %d bytes", most, g.capacity)
		}
		m, err := rx.TryRecv()
		switch KindOf(err) {
		case 0:
			m.View(func(b []byte) {
				at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
				// Under the guard, views lie in its own mapping.
				if !guardAlways && (at < first || at+uintptr(len(b)) > last) {
					t.Fatalf("a view of %d bytes outside of the mapping", len(b))
				}
				if uint64(len(b)) > g.capacity-frameHeader || cap(b) != len(b) || at%uintptr(g.align) != 0 {
					t.Fatalf("a view of %d bytes (capacity %d) at %x in a ring of %d", len(b), cap(b), at, g.capacity)
				}
				readAll(b)
			})
			m.Release()
		case Empty, Closed:
			if scribbled {
				return
			}
		case Corrupt:
			if _, err := rx.TryRecv(); KindOf(err) != Corrupt {
				t.Fatalf("it does not stay dead: %v", err)
			}
			return
		default:
			t.Fatal(err)
		}
		if n == 3 || err != nil {
			scribble()
			scribbled = true
		}
	}
}

func fuzzProducer(t *testing.T, fd, base int, g geometry, scribble func()) {
	o := Options{NoMembarrier: true}
	a, err := attachMemory(fd, base, g, noLink{}, &o)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := newSender(a, o)
	if err != nil {
		expectKind(t, err, Corrupt)
		return
	}
	defer tx.Close()
	tx.LastTag()
	longest := make([]byte, tx.MaxMessageLen())
	for i := range 64 {
		payload := longest[:min(len(longest), i*i)]
		if i%16 == 15 {
			payload = longest
		}
		switch err := tx.TrySendTagged(uint32(i), uint64(i), payload); KindOf(err) {
		case 0, Full:
		case Corrupt:
			if err := tx.TrySend(0, nil); KindOf(err) != Corrupt {
				t.Fatalf("it does not stay dead: %v", err)
			}
			return
		case Closed:
			return
		default:
			t.Fatal(err)
		}
		if i == 3 {
			scribble()
		}
	}
}
