package sys

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	membarrierGlobalExpedited         = 1 << 1
	membarrierRegisterGlobalExpedited = 1 << 2
)

// CanMembarrier says whether this process is registered and a real barrier succeeded, not merely that the kernel lists
// the command: a seccomp filter may forbid it. The first call may take up to 12 ms. RAMWAY_MEMBARRIER=0 in the
// environment switches it off.
var CanMembarrier = sync.OnceValue(func() bool {
	if os.Getenv("RAMWAY_MEMBARRIER") == "0" {
		return false
	}
	// Not raw like the barrier itself: registering waits for every processor's grace period.
	_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierRegisterGlobalExpedited, 0, 0)
	return errno == 0 && Membarrier()
})

// Membarrier is a full memory barrier on every processor that runs a registered process, this one included. False if
// the kernel refused: then there was none, not even here.
func Membarrier() bool {
	// Raw: it waits for other processors for about a microsecond, never for a process.
	_, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, membarrierGlobalExpedited, 0, 0)
	return errno == 0
}
