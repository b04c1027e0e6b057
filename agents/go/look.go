package main

import (
	"context"
	"sync/atomic"
	"unsafe"
)

// write reserves, fills, and commits what is to be kept.
func write(e *ends, l *line) error {
	n := int(l.number("len", 0))
	kept, unflushed := int(l.number("kept", int64(n))), l.yes("unflushed")
	l.end()
	slot, err := e.tx.Reserve(context.Background(), n)
	if err != nil {
		return err
	}
	bytes := slot.Bytes()
	for i := range bytes {
		bytes[i] = 0x11
	}
	view := unsafe.Pointer(unsafe.SliceData(bytes))
	if unflushed {
		err = slot.CommitUnflushed(0, 0, kept)
	} else {
		err = slot.Commit(0, 0, kept)
	}
	if err != nil {
		return err
	}
	return lookAt(view, n, 0)
}

func hold(e *ends, l *line) error {
	l.end()
	m, err := e.rx.Recv(context.Background())
	if err != nil {
		return err
	}
	defer m.Release()
	return lookAt(unsafe.Pointer(unsafe.SliceData(m.UnsafeBytes())), m.Len(), m.Tag())
}

// lookAt writes and reads single bytes of a message by its address, until release. The ring stays open meanwhile, and so
// its mapping: the address is kept beyond the slot on purpose.
func lookAt(view unsafe.Pointer, n int, tag uint64) error {
	event("view addr=%#x len=%d tag=%d", uintptr(view), n, tag)
	for l := nextLine(); l != nil; l = nextLine() {
		offset := int(l.number("offset", 0))
		if offset < 0 || offset >= n {
			panic(refusedError("offset"))
		}
		// The aligned word that the byte lies in, and where in it. Payloads begin at a multiple of 16.
		word, shift := (*uint32)(unsafe.Add(view, offset&^3)), offset%4*8
		switch l.word {
		case "poke":
			// Inside the message. The other process looks at it; nobody else writes the word.
			old, value := atomic.LoadUint32(word), uint32(l.number("value", 0)&0xFF)
			atomic.StoreUint32(word, old&^(0xFF<<shift)|value<<shift)
			event("poked")
		case "peek":
			event("byte value=%d", atomic.LoadUint32(word)>>shift&0xFF)
		case "release":
			event("released")
			return nil
		default:
			panic(refusedError(l.word + " while a message is held"))
		}
		l.end()
	}
	return nil
}
