//go:build !amd64 && !arm64

package cpu

// Pause goes between two looks of a spin; this processor gets none.
func Pause() {}

// Pauses goes between the first look and the second.
func Pauses() {}
