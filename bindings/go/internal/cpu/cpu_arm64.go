package cpu

// Await looks at a word until it is not seen any more, looks times at most (at least once), and returns what it saw
// last, with acquire order. It holds the P for that long, so ask for few looks.
//
//go:noescape
func Await(word *uint64, seen uint64, looks uint32) uint64
