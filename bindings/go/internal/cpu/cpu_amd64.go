package cpu

// Pause goes between two looks of a spin: without it the round trip is 1.2 to 1.6 times longer.
func Pause()

// Pauses is three of them, for between the first look and the second: to look again at once takes the line away from
// a peer that is about to write it.
func Pauses()
