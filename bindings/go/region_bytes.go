package ramway

import (
	"encoding/binary"
	"unsafe"
)

// Copies out of and into bytes that other processes may write at the same time. The shared side is accessed as 8-byte
// words wherever they are aligned, and as single bytes at the two ends: Go does not tear an access of a word. Each
// aligned word comes out whole, old or new; their order is nobody's promise.

// sharedWords are copied at a time.
type sharedWords = [8]uint64

// sharedHead is how many of n bytes lie before the first aligned word at or after shared.
func sharedHead(shared unsafe.Pointer, n int) int { return min(int(-uintptr(shared)&7), n) }

// copyOut copies len(to) shared bytes out, which are mapped.
func copyOut(to []byte, shared unsafe.Pointer) {
	head := sharedHead(shared, len(to))
	for i := range head {
		to[i] = *(*byte)(unsafe.Add(shared, i))
	}
	i := head
	for ; i+64 <= len(to); i += 64 {
		// Word for word, and not as a whole, whose parts the compiler might take as it likes.
		from, out := (*sharedWords)(unsafe.Add(shared, i)), to[i:i+64:i+64]
		le := binary.LittleEndian
		le.PutUint64(out[0:8], from[0])
		le.PutUint64(out[8:16], from[1])
		le.PutUint64(out[16:24], from[2])
		le.PutUint64(out[24:32], from[3])
		le.PutUint64(out[32:40], from[4])
		le.PutUint64(out[40:48], from[5])
		le.PutUint64(out[48:56], from[6])
		le.PutUint64(out[56:64], from[7])
	}
	for ; i+8 <= len(to); i += 8 {
		binary.LittleEndian.PutUint64(to[i:], *(*uint64)(unsafe.Add(shared, i)))
	}
	for ; i < len(to); i++ {
		to[i] = *(*byte)(unsafe.Add(shared, i))
	}
}

// copyIn copies bytes into shared ones, which are mapped and may be written.
func copyIn(shared unsafe.Pointer, from []byte) {
	head := sharedHead(shared, len(from))
	for i := range head {
		*(*byte)(unsafe.Add(shared, i)) = from[i]
	}
	i := head
	for ; i+64 <= len(from); i += 64 {
		to, in := (*sharedWords)(unsafe.Add(shared, i)), from[i:i+64:i+64]
		le := binary.LittleEndian
		to[0] = le.Uint64(in[0:8])
		to[1] = le.Uint64(in[8:16])
		to[2] = le.Uint64(in[16:24])
		to[3] = le.Uint64(in[24:32])
		to[4] = le.Uint64(in[32:40])
		to[5] = le.Uint64(in[40:48])
		to[6] = le.Uint64(in[48:56])
		to[7] = le.Uint64(in[56:64])
	}
	for ; i+8 <= len(from); i += 8 {
		*(*uint64)(unsafe.Add(shared, i)) = binary.LittleEndian.Uint64(from[i:])
	}
	for ; i < len(from); i++ {
		*(*byte)(unsafe.Add(shared, i)) = from[i]
	}
}
