package cpu

// Pause goes between two polls of a spin: without it the round trip is 1.2 to 1.6 times longer.
func Pause()

// Pauses is three of them, for between the first poll and the second: to poll again at once takes the line away from
// a peer that is about to write it.
func Pauses()
