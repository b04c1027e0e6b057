package sys

import (
	"fmt"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HugePageSize is the size of the pages that HugePages means.
func HugePageSize() (int, error) {
	return 0, &SettingError{"HugePages: macOS cannot be asked for it; leave the option out"}
}

func useHugePages(unsafe.Pointer, int, int) error {
	_, err := HugePageSize()
	return err
}

func populate(at unsafe.Pointer, length int, writable bool) error {
	touch(at, length, writable)
	return nil
}

func lockError(err error, length int) error {
	limit := "unknown"
	var rlimit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &rlimit) == nil {
		limit = strconv.FormatUint(rlimit.Cur, 10) + " bytes"
	}
	return &doing{fmt.Sprintf("LockMemory: mlock of %d bytes; RLIMIT_MEMLOCK is %s (raise it with ulimit -l), and "+
		"the system has vm.user_wire_limit", length, limit), outOfMemory(err)}
}

// PreferNode: there is no such thing.
func PreferNode(_ int, _, _ int64, _ int) error {
	return &SettingError{"NUMANode: macOS cannot be asked for it; leave the option out"}
}

func verifyNode(unsafe.Pointer, int, int) error { return PreferNode(-1, 0, 0, 0) }
