package cpu

// Pause goes between two looks of a spin: without it the round trip is 1.2 to 1.6 times longer.
func Pause()

// Pauses is three of them, for between the first look and the second: to look again at once takes the line away from
// a peer that is about to write it.
func Pauses()

// StorePlain stores with release order and without a fence: on this processor an ordinary store, which no compiler
// moves because it does not see it. A later load may overtake it.
//
//go:noescape
func StorePlain(word *uint64, value uint64)

// StoreMarked stores value and tag into a mark and then value into word, in this order, as [StorePlain] does.
//
//go:noescape
func StoreMarked(word *uint64, value uint64, mark *[2]uint64, tag uint64)
