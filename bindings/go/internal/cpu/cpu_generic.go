//go:build !amd64 && !arm64

package cpu

// Pause goes between two polls of a spin; this processor gets none.
func Pause() {}

// Pauses goes between the first poll and the second.
func Pauses() {}
