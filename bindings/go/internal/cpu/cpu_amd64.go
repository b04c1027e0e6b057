package cpu

// Await looks at a word until it is not seen any more, looks times at most (at least once), and returns what it saw
// last, with acquire order. It pauses three times before the first look and once after each: about 25 ns a look. It
// holds the P for that long, so ask for few looks.
//
//go:noescape
func Await(word *uint64, seen uint64, looks uint32) uint64

// StorePlain stores with release order and without a fence: on this processor an ordinary store, which no compiler
// moves because it does not see it. A later load may overtake it.
//
//go:noescape
func StorePlain(word *uint64, value uint64)

// StoreMarked stores value and tag into a mark and then value into word, in this order, as [StorePlain] does.
//
//go:noescape
func StoreMarked(word *uint64, value uint64, mark *[2]uint64, tag uint64)
