//go:build linux || darwin

package sys

import (
	"io"

	"golang.org/x/sys/unix"
)

// Open-file-description locks on single bytes. They belong to the description, not to the process: they vanish when its
// last descriptor closes, however that comes about, and two descriptions of one process conflict like strangers.

// LockMode is how a byte is locked.
type LockMode int16

const (
	// Unlocked: nobody else holds the byte.
	Unlocked LockMode = unix.F_UNLCK
	// Shared: any number of holders. Needs a readable description.
	Shared LockMode = unix.F_RDLCK
	// Exclusive: one holder. Needs a writable description.
	Exclusive LockMode = unix.F_WRLCK
)

func lockRequest(mode LockMode, at int64) *unix.Flock_t {
	return &unix.Flock_t{Type: int16(mode), Whence: io.SeekStart, Start: at, Len: 1}
}

// TryLock locks one byte without waiting: false if another description holds it in a way that excludes this one.
func TryLock(fd int, at int64, mode LockMode) (bool, error) {
	request := lockRequest(mode, at)
	err := again(func() error { return unix.FcntlFlock(uintptr(fd), ofdSetLock, request) })
	switch err {
	case nil:
		return true, nil
	case unix.EAGAIN, unix.EACCES:
		return false, nil
	}
	return false, err
}

// Unlock releases a byte. It does nothing if this description does not hold it.
func Unlock(fd int, at int64) {
	_, _ = TryLock(fd, at, Unlocked)
}

// HeldExclusivelyByAnother says whether another description holds this byte exclusively.
func HeldExclusivelyByAnother(fd int, at int64) (bool, error) {
	request := lockRequest(Shared, at)
	err := again(func() error { return unix.FcntlFlock(uintptr(fd), ofdGetLock, request) })
	return LockMode(request.Type) == Exclusive, err
}

// HeldByAnother says how another description holds this byte. It takes nothing, and works on a read-only descriptor.
func HeldByAnother(fd int, at int64) (LockMode, error) {
	request := lockRequest(Exclusive, at)
	err := again(func() error { return unix.FcntlFlock(uintptr(fd), ofdGetLock, request) })
	return LockMode(request.Type), err
}
