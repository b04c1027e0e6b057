//go:build amd64 && !race

// Package cpu holds the few instructions that the hot path needs and Go has no word for.
package cpu

// Plain says that [StorePlain] is a store without a fence. (A store of sync/atomic is an XCHG on this processor, which
// waits until all earlier stores have left it.)
const Plain = true

// StorePlain stores with release order and without a fence; a later load may overtake it.
//
// On this processor every store releases. That the compiler makes one instruction of it, in its place, follows from how it
// is built: an aligned word is stored at once, and stores, calls and the operations of sync/atomic are one chain that it
// does not reorder. The word lies in a mapping of which it knows nothing. The same three lines in assembly cost a call on
// each message, and measured 10 % slower between two processes (docs/adr/0017).
func StorePlain(word *uint64, value uint64) { *word = value }

// StoreTagged stores value and tag into a last-tag record and then value into word, in this order, as [StorePlain] does.
func StoreTagged(word *uint64, value uint64, record *[2]uint64, tag uint64) {
	record[0] = value
	record[1] = tag
	*word = value
}

// LoadFence keeps the loads before it from being done after an atomic load behind it. On this processor loads keep their order, and
// the compiler's chain of memory operations keeps it as well.
func LoadFence(*uint64) {}
