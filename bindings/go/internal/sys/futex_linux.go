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

// FutexWord is a word to sleep on while it holds Expected: struct futex_waitv.
type FutexWord struct {
	Expected uint64
	Word     *uint32
	flags    uint32
	_        uint32
}

// FutexWaitMax is how many words FutexWaitAny takes at a time.
const FutexWaitMax = 128

// FutexWaitAny sleeps while each of the words, at most FutexWaitMax, holds what is expected of it, for at most d, which is
// positive. It may return early without a reason. Where the kernel does not know or allow it (before 5.16, or by a seccomp
// filter), it returns at once, with false. It holds a thread for that long, but no P.
func FutexWaitAny(words []FutexWord, d time.Duration) bool {
	for i := range words {
		words[i].flags = futex2Size32
	}
	// It takes a time of the clock, not one that has to pass.
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return false
	}
	until := unix.NsecToTimespec(now.Nano() + int64(d))
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX_WAITV, uintptr(unsafe.Pointer(unsafe.SliceData(words))), uintptr(len(words)), 0,
		uintptr(unsafe.Pointer(&until)), unix.CLOCK_MONOTONIC, 0)
	return errno != unix.ENOSYS && errno != unix.EPERM && errno != unix.EACCES && errno != unix.EINVAL
}

// FutexWakeAll wakes everyone who sleeps on word. Costs 260 ns even if nobody does: ask the word first.
func FutexWakeAll(word *uint32) {
	// All rather than one: a waiter that was killed may still be queued and would swallow a single wake-up. Raw, because
	// it never blocks.
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, math.MaxInt32, 0, 0, 0)
}

// Yield lets another thread run on this processor.
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
