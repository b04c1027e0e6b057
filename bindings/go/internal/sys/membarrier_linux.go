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
	return os.Getenv("RAMWAY_MEMBARRIER") != "0" && membarrier(membarrierRegisterGlobalExpedited) && Membarrier()
})

// Membarrier is a full memory barrier on every processor that runs a registered process, this one included. False if
// the kernel refused: then there was none, not even here.
func Membarrier() bool { return membarrier(membarrierGlobalExpedited) }

func membarrier(command uintptr) bool {
	// Raw: it waits for other processors for about a microsecond, never for a process.
	_, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, command, 0, 0)
	return errno == 0
}
