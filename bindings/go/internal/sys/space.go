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

// checkFileLimit: growing a file beyond RLIMIT_FSIZE is not only an error but a deadly SIGXFSZ.
func checkFileLimit(end int64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil || uint64(end) <= limit.Cur {
		return nil
	}
	return &LimitError{fmt.Sprintf("%d bytes asked, limited by RLIMIT_FSIZE (ulimit -f) = %d bytes", end, limit.Cur)}
}
