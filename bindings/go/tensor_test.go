package ramway

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// numbered is n bytes 0, 7, 14, ….
func numbered(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * 7)
	}
	return data
}

func TestTensorsOfEveryType(t *testing.T) {
	for _, o := range []Options{{Align: 16}, {Align: 64}, {Align: 4096}, {Align: 16, Guard: true}} {
		o.Capacity = 1 << 16
		tx, rx, err := Pair(o)
		expectKind(t, err, 0)
		for round := 0; round < 8; round++ {
			// Moves on, so that payloads begin everywhere.
			expectKind(t, tx.TrySend(1, make([]byte, 16*round)), 0)
			m, err := rx.TryRecv()
			expectKind(t, err, 0)
			m.Release()
			for i, dtype := range Dtypes() {
				shape := []uint64{uint64(i) + 1, uint64(round), 3}
				data := numbered((i + 1) * round * 3 * dtype.Size())
				if round%2 == 0 {
					expectKind(t, tx.SendTensor(background, dtype, shape, uint64(i), data), 0)
				} else {
					slot, err := tx.ReserveTensor(background, dtype, shape)
					expectKind(t, err, 0)
					if len(data) != 0 && addressOf(slot.Data())%64 != 0 || copy(slot.Data(), data) != len(slot.Data()) {
						t.Fatalf("%d bytes at %#x", len(slot.Data()), addressOf(slot.Data()))
					}
					expectKind(t, slot.Commit(uint64(i)), 0)
				}
				m, err := rx.TryRecv()
				expectKind(t, err, 0)
				tensor, err := m.Tensor()
				expectKind(t, err, 0)
				if m.TypeID() != TensorTypeID || m.Tag() != uint64(i) || tensor.Dtype != dtype || !slices.Equal(tensor.Shape, shape) ||
					!bytes.Equal(tensor.Data, data) {
					t.Fatalf("%v %v came as %v %v", dtype, shape, tensor.Dtype, tensor.Shape)
				}
				// An empty slice points anywhere.
				if len(data) != 0 && addressOf(tensor.Data)%64 != 0 {
					t.Fatalf("%+v: %v: elements at %#x", o, dtype, addressOf(tensor.Data))
				}
				m.Release()
			}
		}
		expectKind(t, tx.Close(), 0)
		expectKind(t, rx.Close(), 0)
	}
	if len(Dtypes()) != 23 || DtypeBfloat16.String() != "bfloat16" || !strings.Contains(Dtype(3).String(), "3 bits") {
		t.Fatal(Dtypes())
	}
}

func TestTensorElements(t *testing.T) {
	tx, rx, err := Pair(Options{Capacity: 4096})
	expectKind(t, err, 0)
	slot, err := tx.TryReserveTensor(DtypeOf[complex128](), []uint64{2})
	expectKind(t, err, 0)
	_, err = Elements[float64](slot.Data(), DtypeComplex128)
	expectKind(t, err, InvalidArgument)
	room, err := Elements[complex128](slot.Data(), DtypeComplex128)
	expectKind(t, err, 0)
	room[0], room[1] = 1+2i, complex(math.Pi, -1)
	expectKind(t, slot.CommitUnflushed(0), 0)
	_, err = rx.TryRecv()
	expectKind(t, err, Empty)
	expectKind(t, tx.Flush(), 0)
	m, err := rx.TryRecv()
	expectKind(t, err, 0)
	tensor, err := m.Tensor()
	expectKind(t, err, 0)
	if got, err := Elements[complex128](tensor.Data, tensor.Dtype); err != nil || !slices.Equal(got, []complex128{1 + 2i, complex(math.Pi, -1)}) {
		t.Fatal(got, err)
	}
	copied := append(make([]byte, 1, 64), tensor.Data...)
	_, err = Elements[complex128](copied[1:], tensor.Dtype)
	expectText(t, err, "not aligned for complex128")
	if none, err := Elements[int64](nil, DtypeInt64); err != nil || len(none) != 0 {
		t.Fatal(none, err)
	}
	m.Release()
	expectPanic(t, "after Release", func() { _, _ = m.Tensor() })

	// No dimension is one element.
	expectKind(t, tx.TrySendTensor(DtypeOf[int16](), nil, 0, []byte{1, 2}), 0)
	m, err = rx.TryRecv()
	expectKind(t, err, 0)
	if tensor, err := m.Tensor(); err != nil || len(tensor.Shape) != 0 || len(tensor.Data) != 2 {
		t.Fatal(tensor, err)
	}
	m.Release()
}

func TestWhatIsNoTensor(t *testing.T) {
	tx, rx, err := Pair(Options{Capacity: 4096})
	expectKind(t, err, 0)
	ones := slices.Repeat([]uint64{1}, 33)
	for _, wrong := range []error{
		tx.TrySendTensor(DtypeFloat32, []uint64{2, 3}, 0, make([]byte, 23)),
		tx.TrySendTensor(DtypeUint8, ones, 0, []byte{0}),
		tx.TrySendTensor(Dtype(2<<8|8), []uint64{1}, 0, []byte{0}),
		tx.TrySendTensor(DtypeUint8, []uint64{1 << 32, 1 << 32, 0}, 0, nil),
		tx.Send(background, TensorTypeID, nil),
	} {
		expectKind(t, wrong, InvalidArgument)
	}
	for _, n := range []uint64{4096, 1 << 31, 1 << 62, 1<<63 - 1} {
		_, err = tx.TryReserveTensor(DtypeUint8, []uint64{n})
		expectKind(t, err, TooLarge)
	}

	slot, err := tx.TryReserveTensor(DtypeUint8, []uint64{1})
	expectKind(t, err, 0)
	expectKind(t, tx.TrySendTensor(DtypeUint8, nil, 0, []byte{0}), Busy)
	slot.Abort()
	expectPanic(t, "slot used after", func() { _ = slot.Commit(0) })
	expectPanic(t, "slot used after", func() { slot.Data() })
	expectKind(t, tx.TrySend(1, []byte("plain")), 0)
	m, err := rx.TryRecv()
	expectKind(t, err, 0)
	_, err = m.Tensor()
	expectText(t, err, "not a tensor frame: its type id is 0x1")
	m.Release()

	// A slot that is open while the sender is closed sends all the same.
	slot, err = tx.TryReserveTensor(DtypeUint8, []uint64{3})
	expectKind(t, err, 0)
	copy(slot.Data(), "end")
	expectKind(t, tx.Close(), 0)
	expectKind(t, slot.Commit(9), 0)
	m, err = rx.TryRecv()
	expectKind(t, err, 0)
	if tensor, err := m.Tensor(); err != nil || string(tensor.Data) != "end" || m.Tag() != 9 {
		t.Fatal(tensor, err)
	}
	m.Release()
	_, err = rx.TryRecv()
	expectKind(t, err, Closed)
}

// tensorFrame is a well-formed frame.
func tensorFrame(t testing.TB, dtype Dtype, shape ...uint64) []byte {
	plan, err := planTensor(dtype, shape)
	expectKind(t, err, 0)
	payload := make([]byte, plan.room())
	return payload[:plan.write(payload)+plan.nbytes]
}

func TestMalformedTensors(t *testing.T) {
	good := tensorFrame(t, DtypeInt32, 2, 3)
	header := len(good) - 24
	for n := range good {
		_, err := ParseTensor(good[:n])
		expectText(t, err, "not a tensor frame: ")
	}
	_, err := ParseTensor(append(slices.Clone(good), 0))
	expectText(t, err, "25 bytes are not int32 of the shape [2 3]")
	for i := range header {
		for bit := range 8 {
			bad := slices.Clone(good)
			bad[i] ^= 1 << bit
			tensor, err := ParseTensor(bad)
			if err == nil && i == 0 && (tensor.Dtype == DtypeUint32 || tensor.Dtype == DtypeFloat32) {
				continue
			}
			expectKind(t, err, InvalidArgument)
		}
	}
}

func FuzzParseTensor(f *testing.F) {
	f.Add(tensorFrame(f, DtypeFloat32, 2, 3))
	f.Add(tensorFrame(f, DtypeBool))
	f.Add(tensorFrame(f, DtypeComplex128, 1, 0, 4))
	f.Fuzz(func(t *testing.T, payload []byte) {
		tensor, err := ParseTensor(payload)
		if err != nil {
			expectKind(t, err, InvalidArgument)
			return
		}
		plan, err := planTensor(tensor.Dtype, tensor.Shape)
		expectKind(t, err, 0)
		if plan.nbytes != len(tensor.Data) || len(payload) > plan.room() {
			t.Fatalf("%v %v in %d bytes", tensor.Dtype, tensor.Shape, len(payload))
		}
	})
}
