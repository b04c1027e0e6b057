package main

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/ramway/ramway/bindings/go"
)

func read(a *args) error {
	if a.region != "" {
		return readRegion(a)
	}
	var err error
	switch a.role {
	case "producer":
		err = readAsProducer(a)
	case "consumer":
		err = readAsConsumer(a)
	default:
		err = usageError("--role is producer or consumer")
	}
	return err
}

func readRegion(a *args) error {
	region, err := ramway.OpenRegion(a.region, ramway.Options{Timeout: patience})
	if err != nil {
		return err
	}
	bytes := make([]byte, region.Len())
	if _, err := region.ReadAt(bytes, 0); err != nil {
		return err
	}
	event("region len=%d crc32=%d", len(bytes), crc32.ChecksumIEEE(bytes))
	if err := region.Close(); err != nil {
		return err
	}
	event("closed")
	return nil
}

func (a *args) pauseNow() {
	if a.pause {
		readLine()
	}
}

func readAsProducer(a *args) error {
	e, err := a.sending(a.ring, "")
	if err != nil {
		return err
	}
	a.pauseNow()
	if tag, any := e.tx.LastTag(); any {
		event("last tag=%d", tag)
	} else {
		event("last none")
	}
	m := newMessages(sizes{kind: "fixed", fixed: uint64(max(a.size, 0))}, e.tx.MaxMessageLen()).make(0)
	if err := e.tx.TrySendTagged(m.typeID, m.tag, m.payload); err != nil {
		reportEnd(err)
	} else {
		event("sent")
	}
	e.close()
	return nil
}

func readAsConsumer(a *args) error {
	e, err := a.receiving(a.ring)
	if err != nil {
		return err
	}
	a.pauseNow()
	for {
		m, err := a.receive(e.rx)
		if err != nil {
			reportEnd(err)
			break
		}
		event("message type_id=%d tag=%d len=%d crc32=%d", m.TypeID(), m.Tag(), m.Len(), crc32.ChecksumIEEE(m.UnsafeBytes()))
		m.Release()
	}
	e.close()
	return nil
}

func reportEnd(err error) {
	kind := ramway.KindOf(err)
	event("end name=%s number=%d", kind.String(), uint32(kind))
}

// shown is the length of the message of the proof.
const shown = 4096

func show(a *args) error {
	switch a.role {
	case "producer":
		e, err := a.sending(a.ring, "")
		if err != nil {
			return err
		}
		slot, err := a.reserve(e.tx, shown)
		if err != nil {
			return err
		}
		bytes := slot.Bytes()
		for i := range bytes {
			bytes[i] = 0x11
		}
		// The ring stays open meanwhile, and so its mapping: this is its address, kept beyond the slot on purpose.
		view := showView(bytes)
		if err := slot.Commit(0, 0, shown); err != nil {
			return err
		}
		obey(view)
		e.close()
		return nil
	case "consumer":
		e, err := a.receiving(a.ring)
		if err != nil {
			return err
		}
		m, err := a.receive(e.rx)
		if err != nil {
			return err
		}
		if m.Len() != shown {
			return errors.New("the message is not the one of the proof")
		}
		obey(showView(m.UnsafeBytes()))
		m.Release()
		e.close()
		return nil
	}
	return usageError("--role is producer or consumer")
}

func showView(bytes []byte) unsafe.Pointer {
	view := unsafe.Pointer(unsafe.SliceData(bytes))
	event("view addr=%#x len=%d pid=%d", uintptr(view), shown, os.Getpid())
	return view
}

// obey writes and reads single bytes of the message by its address, as standard input says.
func obey(view unsafe.Pointer) {
	for {
		line := readLine()
		command, rest, _ := strings.Cut(line, " ")
		var offset, value int
		switch command {
		case "poke":
			if _, err := fmt.Sscan(rest, &offset, &value); err == nil && offset >= 0 && offset < shown {
				// Inside the message. The other process looks at it; nobody else writes the word.
				word, shift := wordOf(view, offset)
				old := atomic.LoadUint32(word)
				atomic.StoreUint32(word, old&^(0xFF<<shift)|uint32(value&0xFF)<<shift)
			}
			event("poked")
		case "peek":
			if _, err := fmt.Sscan(rest, &offset); err == nil && offset >= 0 && offset < shown {
				word, shift := wordOf(view, offset)
				value = int(atomic.LoadUint32(word) >> shift & 0xFF)
			}
			event("byte value=%d", value)
		default:
			return
		}
	}
}

// wordOf is the aligned word that a byte of the message lies in, and where in it. Payloads begin at a multiple of 16.
func wordOf(view unsafe.Pointer, offset int) (*uint32, int) {
	return (*uint32)(unsafe.Add(view, offset&^3)), offset % 4 * 8
}
