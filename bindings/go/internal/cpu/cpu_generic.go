//go:build !amd64 && !arm64

package cpu

import (
	"sync/atomic"
	"unsafe"
)

// Pause goes between two polls of a spin; this processor gets none.
func Pause() {}

// Pauses goes between the first poll and the second.
func Pauses() {}

// AwaitAnswer polls a word, at most so many times, until it is not seen any more, and returns what it saw last. Acquire. The line
// where the answer will begin is not asked for here.
func AwaitAnswer(word *uint64, seen uint64, _ unsafe.Pointer, polls uint32) uint64 {
	for {
		now := atomic.LoadUint64(word)
		if now != seen || polls <= 1 {
			return now
		}
		polls--
	}
}
