package sys

import (
	"fmt"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Placement is what is asked of the memory behind a segment's data. What was asked for is done or is an error.
type Placement struct {
	HugePages, LockMemory, Prefault bool
	// Node is the NUMA node that the data must be on; nil: any.
	Node *int
}

// HugePageSize is the size of the pages that HugePages means.
func HugePageSize() (int, error) {
	return 0, &SettingError{"HugePages: macOS cannot be asked for it; leave the option out"}
}

// Place does to a live shared mapping what is asked for, or says why not. The same length bytes are mapped copies times,
// back to back. Unmapping undoes all of it.
func Place(at unsafe.Pointer, length, copies int, writable bool, p Placement) error {
	if p.HugePages {
		_, err := HugePageSize()
		return err
	}
	if p.Node != nil {
		return PreferNode(-1, 0, 0, *p.Node)
	}
	if length == 0 {
		return nil
	}
	if p.Prefault {
		touch(at, length*copies, writable)
	}
	if p.LockMemory {
		// One copy: the other one's pages are the same.
		if err := unix.Mlock(bytesAt(at, length)); err != nil {
			limit := "unknown"
			var rlimit unix.Rlimit
			if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &rlimit) == nil {
				limit = strconv.FormatUint(rlimit.Cur, 10) + " bytes"
			}
			return &doing{fmt.Sprintf("LockMemory: mlock of %d bytes; RLIMIT_MEMLOCK is %s (raise it with ulimit -l), and "+
				"the system has vm.user_wire_limit", length, limit), outOfMemory(err)}
		}
	}
	return nil
}
