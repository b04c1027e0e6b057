package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/ramway/ramway/bindings/go"
)

var shapes = [][]uint64{{}, {0}, {1}, {2, 3}, {5, 0, 7}, {3, 1, 5, 2}, {257}, append(slices.Repeat([]uint64{1}, 31), 2)}

// madeTensor is tensor number seq.
type madeTensor struct {
	dtype ramway.Dtype
	shape []uint64
	tag   uint64
	data  []byte
}

// makeTensor is false where number seq is an ordinary message.
func makeTensor(seq uint64) (madeTensor, bool) {
	dtypes := ramway.Dtypes()
	if seq%24 >= uint64(len(dtypes)) {
		return madeTensor{}, false
	}
	m := madeTensor{dtype: dtypes[seq%24], shape: shapes[seq/24%8]}
	n := m.dtype.Size()
	for _, dim := range m.shape {
		n *= int(dim)
	}
	values := uint64(256)
	if m.dtype == ramway.DtypeBool {
		values = 2
	}
	m.data = make([]byte, n)
	for i := range m.data {
		m.data[i] = byte((seq + uint64(i)) % values)
	}
	m.tag = tagOf(seq, m.data)
	return m, true
}

// aligned says whether elements begin where they should; an empty slice points anywhere.
func aligned(seq uint64, elements []byte) error {
	if len(elements) != 0 && uintptr(unsafe.Pointer(&elements[0]))%64 != 0 {
		return badError{seq, "the elements do not begin on a multiple of 64"}
	}
	return nil
}

func (a *args) sendTensor(tx *ramway.Sender, all *messages, seq uint64) error {
	m, is := makeTensor(seq)
	switch {
	case !is:
		message := all.make(seq)
		return tx.SendTagged(a.waiting(), message.typeID, message.tag, message.payload)
	case a.how != "reserve":
		return tx.SendTensor(a.waiting(), m.dtype, m.shape, m.tag, m.data)
	}
	slot, err := tx.ReserveTensor(a.waiting(), m.dtype, m.shape)
	if err != nil {
		return err
	}
	if err := aligned(seq, slot.Data()); err != nil {
		return err
	}
	copy(slot.Data(), m.data)
	return slot.Commit(m.tag)
}

func checkTensor(all *messages, seq uint64, message ramway.Message) error {
	want, is := makeTensor(seq)
	got, err := message.Tensor()
	if !is {
		if !errors.Is(err, ramway.ErrInvalidArgument) {
			return badError{seq, fmt.Sprintf("an ordinary message as a tensor is %v", err)}
		}
		return all.check(seq, message.TypeID(), message.Tag(), message.UnsafeBytes())
	}
	if err != nil {
		return err
	}
	if got.Dtype != want.dtype || !slices.Equal(got.Shape, want.shape) {
		return badError{seq, fmt.Sprintf("%v %v instead of %v %v", got.Dtype, got.Shape, want.dtype, want.shape)}
	}
	if !bytes.Equal(got.Data, want.data) || message.Tag() != want.tag {
		return badError{seq, "the bytes, or the tag"}
	}
	return aligned(seq, got.Data)
}

func tensors(a *args) error {
	all := newMessages(sizes{kind: "fixed", fixed: 32}, 32)
	switch {
	case a.role == "consumer":
		return consumeTensors(a, all)
	case a.role != "producer":
		return usageError("--role is producer or consumer")
	case a.count < 0:
		return usageError("--count is missing")
	}
	e, err := a.sending(a.ring, "")
	if err != nil {
		return err
	}
	for seq := range uint64(a.count) {
		if err := a.sendTensor(e.tx, all, seq); err != nil {
			return err
		}
	}
	event("sent count=%d next=%d", a.count, a.count)
	e.close()
	return nil
}

func consumeTensors(a *args, all *messages) error {
	e, err := a.receiving(a.ring)
	if err != nil {
		return err
	}
	for received := uint64(0); ; received++ {
		m, err := a.receive(e.rx)
		if err != nil {
			kind := ramway.KindOf(err)
			event("end name=%s number=%d received=%d", kind.String(), uint32(kind), received)
			e.close()
			return nil
		}
		if err := checkTensor(all, received, m); err != nil {
			return err
		}
		m.Release()
	}
}
