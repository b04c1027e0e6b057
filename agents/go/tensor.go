package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/ramway/ramway/bindings/go"
)

// offsetOf says where elements begin; an empty slice points anywhere.
func offsetOf(elements []byte) uintptr {
	if len(elements) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&elements[0])) % 64
}

func sendTensor(e *ends, l *line) error {
	dtype := ramway.Dtypes()[l.number("type", 0)]
	tag, err := strconv.ParseUint(l.text("tag", ""), 10, 64)
	data, wrong := hex.DecodeString(l.text("data", ""))
	shape := []uint64{}
	for _, text := range strings.FieldsFunc(l.text("shape", ""), func(r rune) bool { return r == 'x' }) {
		dim, err := strconv.ParseUint(text, 10, 64)
		shape, wrong = append(shape, dim), errors.Join(wrong, err)
	}
	inPlace := l.yes("reserve")
	l.end()
	if err = errors.Join(err, wrong); err != nil {
		panic(refusedError(err.Error()))
	}
	var offset uintptr
	if !inPlace {
		err = e.tx.SendTensor(context.Background(), dtype, shape, tag, data)
	} else if slot, refused := e.tx.ReserveTensor(context.Background(), dtype, shape); refused == nil {
		offset = offsetOf(slot.Data())
		copy(slot.Data(), data)
		err = slot.Commit(tag)
	} else {
		err = refused
	}
	if err != nil {
		return err
	}
	event("sent offset=%d", offset)
	return nil
}

// sayTensor is false where the message is no tensor.
func sayTensor(m ramway.Message) (bool, error) {
	t, err := m.Tensor()
	if errors.Is(err, ramway.ErrInvalidArgument) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(t.Shape), "[]"), " ", "x")
	event("tensor type=%d shape=%s tag=%d offset=%d data=%x",
		slices.Index(ramway.Dtypes(), t.Dtype), shape, m.Tag(), offsetOf(t.Data), t.Data)
	return true, nil
}
