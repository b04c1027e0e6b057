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

// Await polls a word until it differs from seen, at least once and at most polls times. It returns what it saw last, and how many polls
// are left. Acquire. The line is not asked for here.
func Await(word *uint64, seen uint64, _ unsafe.Pointer, polls uint32) (now uint64, left uint32) {
	for left = polls; ; {
		if now = atomic.LoadUint64(word); now != seen {
			return now, left
		}
		if left--; left == 0 {
			return now, left
		}
	}
}
