package cpu

import "unsafe"

// Pause goes between two polls of a spin: without it the round trip is 1.2 to 1.6 times longer.
func Pause()

// Pauses is three of them, for between the first poll and the second: to poll again at once takes the line away from
// a peer that is about to write it.
func Pauses()

// Await polls a word until it differs from seen, at least once and at most polls times. It returns what it saw last, and how many polls
// are left. Acquire. With each
// poll it asks for a line, which then comes together with the word's and not after it: where the next frame will begin.
//
// In assembly, because Go has no word for that; a call for each poll was half of what it gained. The loop cannot be interrupted: polls
// are to be few.
//
//go:noescape
func Await(word *uint64, seen uint64, line unsafe.Pointer, polls uint32) (now uint64, left uint32)
