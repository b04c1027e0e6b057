package sys

import (
	"math"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// __ulock in a futex's place: the shared kind, which is keyed by the memory object and not by the address.
const (
	sysUlockWait           = 515
	sysUlockWake           = 516
	ulCompareAndWaitShared = 3
	ulfWakeAll             = 0x100
)

// FutexWait sleeps while word holds expected, for at most d (and never more than 71 minutes), and says whether somebody
// woke the word or it held something else. False: the time passed, or a signal handler ran. It holds a thread for that
// long, but no P.
func FutexWait(word *uint32, expected uint32, d time.Duration) (woken bool) {
	// Rounded up, because 0 would be forever.
	micros := min(max((d+time.Microsecond-1)/time.Microsecond, 1), math.MaxUint32)
	_, _, errno := syscall.Syscall6(sysUlockWait, ulCompareAndWaitShared, uintptr(unsafe.Pointer(word)),
		uintptr(expected), uintptr(micros), 0, 0)
	switch errno {
	case 0:
		return true
	case syscall.EINTR, syscall.ETIMEDOUT:
		return false
	case syscall.EFAULT:
		// The page was not in memory, and the kernel compares where it cannot fetch it. This does.
		_ = atomic.LoadUint32(word)
		return true
	}
	// Anything else (no memory for the wait, say) must not become a busy loop.
	time.Sleep(time.Millisecond)
	return false
}

// FutexWord is a word to sleep on while it holds Expected.
type FutexWord struct {
	Expected uint64
	Word     *uint32
}

// FutexWaitMax is how many words FutexWaitAny takes at a time.
const FutexWaitMax = 128

// FutexWaitAny says false: there is no such call here.
func FutexWaitAny([]FutexWord, time.Duration) bool { return false }

// FutexWakeAll wakes everyone who sleeps on word. A system call even if nobody does: ask the word first.
func FutexWakeAll(word *uint32) {
	_, _, _ = syscall.Syscall(sysUlockWake, ulCompareAndWaitShared|ulfWakeAll, uintptr(unsafe.Pointer(word)), 0)
}

// Yield lets another thread run on this processor. There is no call for just that.
func Yield() { time.Sleep(time.Microsecond) }
