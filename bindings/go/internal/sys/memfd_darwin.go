package sys

import (
	"crypto/rand"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrNotSealed says that a descriptor is not memory whose size nobody can change; errors that wrap it say why.
var ErrNotSealed = errors.New("not sealed memory")

// MemoryUnsealed: there is no memory without a name that can be locked.
func MemoryUnsealed(string) (int, error) { return -1, unix.ENOTSUP }

// MemoryNew makes a POSIX shared memory object that has lost its name. Its size can be set once, by the first
// ftruncate, and never again.
func MemoryNew(string) (int, error) {
	for {
		var random [8]byte
		if _, err := rand.Read(random[:]); err != nil {
			return -1, err
		}
		// At most 31 bytes.
		name, err := unix.BytePtrFromString(fmt.Sprintf("/ramway-%x", random))
		if err != nil {
			return -1, err
		}
		// No fork by os/exec between the object and its flag.
		syscall.ForkLock.RLock()
		// The conversions to uintptr stand in the calls themselves, which keeps the name where it is meanwhile.
		//lint:ignore SA1019 golang.org/x/sys has no shm_open
		fd, _, errno := unix.Syscall(unix.SYS_SHM_OPEN, uintptr(unsafe.Pointer(name)),
			unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o600)
		if errno == 0 {
			unix.CloseOnExec(int(fd))
			// A process that is killed in between leaves a name without memory behind it.
			//lint:ignore SA1019 nor shm_unlink
			_, _, _ = unix.Syscall(unix.SYS_SHM_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0)
		}
		syscall.ForkLock.RUnlock()
		switch errno {
		case 0:
			return int(fd), nil
		case unix.EEXIST, unix.EINTR:
		default:
			return -1, errno
		}
	}
}

// MemorySize sets the size of new memory, which can be done only once.
func MemorySize(fd int, size int64) error { return Truncate(fd, size) }

// SealedSize is the size in bytes of memory that a peer sent, once it is certain that nobody can change it. A shared
// memory object is told from everything else that can be sent by having no file type at all; anything else, which
// could be truncated, is [ErrNotSealed].
func SealedSize(fd int) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return 0, err
	}
	if stat.Mode&unix.S_IFMT != 0 || stat.Nlink != 0 {
		return 0, fmt.Errorf("%w: the descriptor sent (mode %o) is not a shared memory object", ErrNotSealed, stat.Mode)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return 0, err
	}
	// A description that cannot write could not be mapped as a bus needs it.
	if flags&unix.O_ACCMODE != unix.O_RDWR {
		return 0, fmt.Errorf("%w: the shared memory sent cannot be written", ErrNotSealed)
	}
	// An object whose size is not set yet has none: what is mapped of it is checked against this.
	return stat.Size, nil
}
