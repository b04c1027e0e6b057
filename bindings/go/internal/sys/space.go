//go:build linux || darwin

package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// doing is an error of the system while something was done.
type doing struct {
	what string
	err  error
}

func (e *doing) Error() string { return e.what + ": " + e.err.Error() }

func (e *doing) Unwrap() error { return e.err }

// outOfMemory: EAGAIN is mlock's other way to say that memory could not be had.
func outOfMemory(err error) error {
	if err == unix.EAGAIN {
		return unix.ENOMEM
	}
	return err
}

// fileEnd is where length bytes from offset end, if a file may become that long: growing one beyond RLIMIT_FSIZE is not
// only an error but a deadly SIGXFSZ.
func fileEnd(offset, length int64) (int64, error) {
	end := offset + length
	if offset < 0 || length < 0 || end < 0 {
		return 0, &LimitError{fmt.Sprintf("%d bytes asked at offset %d: more than any file can hold", length, offset)}
	}
	var limit unix.Rlimit
	if length == 0 || unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) != nil || uint64(end) <= limit.Cur {
		return end, nil
	}
	return 0, &LimitError{fmt.Sprintf("%d bytes asked, limited by RLIMIT_FSIZE (ulimit -f) = %d bytes", end, limit.Cur)}
}
