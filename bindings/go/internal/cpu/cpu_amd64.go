package cpu

import "unsafe"

// Pause goes between two polls of a spin: without it the round trip is 1.2 to 1.6 times longer.
func Pause()

// Pauses is three of them, for between the first poll and the second: to poll again at once takes the line away from
// a peer that is about to write it.
func Pauses()

// AwaitAnswer polls a word, at most so many times, until it is not seen any more, and returns what it saw last. Acquire. With each
// poll it asks for the line where the answer will begin, so that this one comes together with the word's and not after it: two
// processors need it about 200 ns earlier. Where messages come in a stream it would be taken away from the sender that writes it.
//
// The loop cannot be interrupted: polls are to be few.
//
//go:noescape
func AwaitAnswer(word *uint64, seen uint64, line unsafe.Pointer, polls uint32) uint64
