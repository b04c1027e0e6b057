//go:build !amd64 || race

// Package cpu holds the few instructions that the hot path needs and Go has no word for.
package cpu

// Plain says that [StorePlain] is a store without a fence. Here sync/atomic does it: where the processor's own release
// store is what it compiles to, and where the race detector is to see it.
const Plain = false
