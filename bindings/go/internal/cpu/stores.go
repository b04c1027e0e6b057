//go:build !amd64

package cpu

import "sync/atomic"

// StorePlain stores with sequential consistency, which is at least release order.
func StorePlain(word *uint64, value uint64) { atomic.StoreUint64(word, value) }

// StoreMarked stores value and tag into a mark and then value into word, in this order, as [StorePlain] does.
func StoreMarked(word *uint64, value uint64, mark *[2]uint64, tag uint64) {
	atomic.StoreUint64(&mark[0], value)
	atomic.StoreUint64(&mark[1], tag)
	atomic.StoreUint64(word, value)
}
