package ramway

import (
	"encoding/binary"
	"unsafe"
)

// Copies out of and into bytes that other processes may write at the same time. The shared side is accessed as 8-byte
// words wherever they are aligned, and as single bytes at the two ends: Go does not tear an access of a word. Each
// aligned word comes out whole, old or new; their order is nobody's promise.

// sharedWord is the word at an offset of shared memory, which must come out as a multiple of 8.
func sharedWord(shared unsafe.Pointer, at int) *uint64 { return (*uint64)(unsafe.Add(shared, at)) }

// sharedHead is how many of n bytes lie before the first aligned word at or after shared.
func sharedHead(shared unsafe.Pointer, n int) int { return min(int(-uintptr(shared)&7), n) }

// copyOut copies len(to) shared bytes out, which are mapped.
func copyOut(to []byte, shared unsafe.Pointer) {
	head := sharedHead(shared, len(to))
	for i := range head {
		to[i] = *(*byte)(unsafe.Add(shared, i))
	}
	to, shared = to[head:], unsafe.Add(shared, head)
	le, i := binary.LittleEndian, 0
	// Four at a time: so the loop is about as fast as memory is.
	for ; len(to) >= 32; i += 32 {
		a, b := *sharedWord(shared, i), *sharedWord(shared, i+8)
		c, d := *sharedWord(shared, i+16), *sharedWord(shared, i+24)
		le.PutUint64(to, a)
		le.PutUint64(to[8:], b)
		le.PutUint64(to[16:], c)
		le.PutUint64(to[24:], d)
		to = to[32:]
	}
	for ; len(to) >= 8; i += 8 {
		le.PutUint64(to, *sharedWord(shared, i))
		to = to[8:]
	}
	for j := range to {
		to[j] = *(*byte)(unsafe.Add(shared, i+j))
	}
}

// copyIn copies bytes into shared ones, which are mapped and may be written.
func copyIn(shared unsafe.Pointer, from []byte) {
	head := sharedHead(shared, len(from))
	for i := range head {
		*(*byte)(unsafe.Add(shared, i)) = from[i]
	}
	from, shared = from[head:], unsafe.Add(shared, head)
	le, i := binary.LittleEndian, 0
	for ; len(from) >= 32; i += 32 {
		a, b, c, d := le.Uint64(from), le.Uint64(from[8:]), le.Uint64(from[16:]), le.Uint64(from[24:])
		*sharedWord(shared, i) = a
		*sharedWord(shared, i+8) = b
		*sharedWord(shared, i+16) = c
		*sharedWord(shared, i+24) = d
		from = from[32:]
	}
	for ; len(from) >= 8; i += 8 {
		*sharedWord(shared, i) = le.Uint64(from)
		from = from[8:]
	}
	for j := range from {
		*(*byte)(unsafe.Add(shared, i+j)) = from[j]
	}
}
