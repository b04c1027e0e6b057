package main

import (
	"syscall"
	"unsafe"
)

// monotonic is nanoseconds of CLOCK_MONOTONIC: the same in all processes.
func monotonic() int64 {
	const clockMonotonic = 1
	var t syscall.Timespec
	// It fails for no clock that there is.
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}
