package sys

import (
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The shared kind, never FUTEX_PRIVATE_FLAG: a private futex is keyed by address space and would not be woken from
// another process.
const (
	futexWait = 0
	futexWake = 1
)

// FutexWait sleeps while word holds expected, for at most d, which is positive, and says whether somebody woke the word or
// it held something else. False: the time passed, or a signal handler ran. It holds a thread for that long, but no P.
func FutexWait(word *uint32, expected uint32, d time.Duration) (woken bool) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(expected),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
	switch errno {
	case 0, unix.EAGAIN:
		return true
	case unix.EINTR, unix.ETIMEDOUT:
		return false
	}
	// Anything else (a seccomp filter, say) must not become a busy loop.
	time.Sleep(time.Millisecond)
	return false
}

// FutexWakeAll wakes everyone who sleeps on word. Costs 260 ns even if nobody does: ask the word first.
func FutexWakeAll(word *uint32) {
	// All rather than one: a waiter that was killed may still be queued and would swallow a single wake-up. Raw, because
	// it never blocks.
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, math.MaxInt32, 0, 0, 0)
}

// Yield lets another thread run on this processor.
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
