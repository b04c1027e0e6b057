package sys

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// seals are what a peer's memory must at least be sealed with before it is mapped: it can neither shrink (reading
// beyond the end would kill us) nor grow, and nobody can take that back or add a seal that stops the other side's
// writes.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// memfdNameMax is the kernel's limit on a memfd's name: NAME_MAX less its own prefix "memfd:".
const memfdNameMax = 249

// ErrNotSealed says that a descriptor is not memory whose size nobody can change; errors that wrap it say why.
var ErrNotSealed = errors.New("not sealed memory")

// MemoryNew makes memory without a name, empty and close-on-exec, whose size can be set and then fixed by
// [MemorySize]. What is given as its name only shows in /proc; what does not fit is cut off.
func MemoryNew(name string) (int, error) {
	clean := make([]byte, 0, len(name))
	for _, r := range name {
		if r < ' ' || r == 0x7f {
			r = '?'
		}
		next := fmt.Append(nil, string(r))
		if len(clean)+len(next) > memfdNameMax {
			break
		}
		clean = append(clean, next...)
	}
	return memfd(string(clean), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
}

// MemoryUnsealed is memory without a name that nobody can seal, whose size its holders could change.
func MemoryUnsealed(name string) (int, error) { return memfd(name, unix.MFD_CLOEXEC) }

func memfd(name string, flags int) (int, error) {
	// Kernels from 6.3 on can be told to accept only memory that cannot be executed; older ones do not know the flag.
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL {
		fd, err = unix.MemfdCreate(name, flags)
	}
	return fd, err
}

// MemorySize takes the space of new memory: a [LimitError] or ENOSPC if there is not enough. It then fixes the size for
// good: later calls that would change it, or the set of seals, fail for everybody.
func MemorySize(fd int, size int64) error {
	if err := Allocate(fd, 0, size); err != nil {
		return err
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	return err
}

// SealedSize is the size in bytes of memory that a peer sent, once it is certain that nobody can change it. Anything
// but an ordinary memfd with at least the seals of [MemorySize], and none against writing, is [ErrNotSealed]. Memory
// of huge pages is refused as well: holes can be punched into it, and filling them again may fail with SIGBUS.
func SealedSize(fd int) (int64, error) {
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	switch {
	case err == unix.EINVAL:
		return 0, fmt.Errorf("%w: the descriptor sent is not a memfd", ErrNotSealed)
	case err != nil:
		return 0, err
	case got&seals != seals:
		return 0, fmt.Errorf("%w: the seals of the memfd sent are %#x, expected %#x", ErrNotSealed, got, seals)
	case got&(unix.F_SEAL_WRITE|unix.F_SEAL_FUTURE_WRITE) != 0:
		return 0, fmt.Errorf("%w: the memfd sent is sealed against writing", ErrNotSealed)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return 0, err
	}
	if int64(fs.Type) != unix.TMPFS_MAGIC {
		return 0, fmt.Errorf("%w: the memfd sent is of huge pages, which a peer can take away", ErrNotSealed)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return 0, err
	}
	return stat.Size, nil
}
