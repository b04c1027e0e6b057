//go:build amd64 && !race

// Package cpu holds the few instructions that the hot path needs and Go has no word for.
package cpu

// Plain says that [StorePlain] is a store without a fence. (A store of sync/atomic is an XCHG on this processor, which
// waits until all earlier stores have left it.)
const Plain = true
