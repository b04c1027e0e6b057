package main

import (
	"fmt"
	"hash/crc32"
	"strconv"
)

// sizes is how long message number seq is.
type sizes struct {
	kind  string
	fixed uint64
}

func (l *line) sizes() sizes {
	text := l.text("sizes", "mixed")
	if text == "mixed" || text == "ramp" {
		return sizes{kind: text}
	}
	number, err := strconv.ParseUint(text, 10, 62)
	if err != nil {
		panic(refusedError("sizes=" + text))
	}
	return sizes{kind: "fixed", fixed: number}
}

// messages is every message of a ring whose longest has max bytes.
type messages struct {
	sizes sizes
	max   uint64
	// pattern is bytes 0, 1, …, 255, 0, …: every payload is a piece of it.
	pattern []byte
}

// made is message number seq.
type made struct {
	typeID  uint32
	tag     uint64
	payload []byte
}

func newMessages(s sizes, longest int) *messages {
	m := &messages{sizes: s, max: uint64(longest)}
	m.pattern = make([]byte, max(s.fixed, m.max)+256)
	for i := range m.pattern {
		m.pattern[i] = byte(i)
	}
	return m
}

func (m *messages) length(seq uint64) uint64 {
	x := uint64(uint32(seq) * 2_654_435_761)
	switch {
	case m.sizes.kind == "fixed":
		return m.sizes.fixed
	case m.sizes.kind == "ramp":
		return seq % (m.max + 1)
	case seq%1000 == 999:
		return m.max
	case seq%100 == 0:
		return 0
	case seq%50 == 1:
		return x % (m.max + 1)
	}
	return x % 257
}

func (m *messages) make(seq uint64) made {
	payload := m.pattern[seq%256:][:m.length(seq)]
	return made{typeID: uint32(seq % 60_000), tag: tagOf(seq, payload), payload: payload}
}

// badError is a message that did not arrive as it was sent.
type badError struct {
	seq  uint64
	what string
}

func (e badError) Error() string { return e.what }

// check says what is wrong with what came as message number seq.
func (m *messages) check(seq uint64, typeID uint32, tag uint64, payload []byte) error {
	length := m.length(seq)
	if uint64(len(payload)) != length {
		return badError{seq, fmt.Sprintf("length %d instead of %d, tag %#018x", len(payload), length, tag)}
	}
	if uint64(typeID) != seq%60_000 {
		return badError{seq, fmt.Sprintf("type id %d instead of %d", typeID, seq%60_000)}
	}
	// Of the bytes that came, so that each of them is read.
	if want := tagOf(seq, payload); want != tag {
		return badError{seq, fmt.Sprintf("tag %#018x instead of %#018x", tag, want)}
	}
	for i, b := range payload {
		if want := byte(seq + uint64(i)); b != want {
			return badError{seq, fmt.Sprintf("byte %d is %d instead of %d", i, b, want)}
		}
	}
	return nil
}

func tagOf(seq uint64, payload []byte) uint64 {
	return uint64(crc32.ChecksumIEEE(payload))<<32 | seq&0xFFFF_FFFF
}
