//go:build !amd64 && !arm64

package cpu

import "sync/atomic"

// Await looks at a word until it is not seen any more, looks times at most (at least once), and returns what it saw
// last, with acquire order. It holds the P for that long, so ask for few looks.
func Await(word *uint64, seen uint64, looks uint32) uint64 {
	for {
		now := atomic.LoadUint64(word)
		if now != seen || looks <= 1 {
			return now
		}
		looks--
	}
}
