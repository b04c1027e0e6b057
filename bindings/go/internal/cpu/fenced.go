//go:build !amd64 || race

// Package cpu holds the few instructions that the hot path needs and Go has no word for.
package cpu

import "sync/atomic"

// Plain says that [StorePlain] is a store without a fence. Here sync/atomic does it: where the processor's own release
// store is what it compiles to, and where the race detector is to see it.
const Plain = false

// StorePlain stores with sequential consistency, which is at least release order.
func StorePlain(word *uint64, value uint64) { atomic.StoreUint64(word, value) }

// StoreTagged stores value and tag into a last-tag record and then value into word, in this order, as [StorePlain] does.
func StoreTagged(word *uint64, value uint64, record *[2]uint64, tag uint64) {
	atomic.StoreUint64(&record[0], value)
	atomic.StoreUint64(&record[1], tag)
	atomic.StoreUint64(word, value)
}

// LoadFence keeps the loads before it from being done after an atomic load behind it, by a store into a word of the caller's
// own: a store of sync/atomic releases, and its loads are not done before its earlier stores.
func LoadFence(own *uint64) { atomic.StoreUint64(own, 0) }
