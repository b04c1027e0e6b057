//go:build linux || darwin

package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Placement is what is asked of the memory behind a segment's data. What was asked for is verified or is an error;
// nothing is a hint that may have been ignored.
type Placement struct {
	HugePages, LockMemory, Prefault bool
	// Node is the NUMA node that the data must be on; nil: any.
	Node *int
}

// Place does to a live shared mapping what is asked for, or says why not. The same length bytes are mapped copies times,
// back to back. Unmapping undoes all of it.
func Place(at unsafe.Pointer, length, copies int, writable bool, p Placement) error {
	if length == 0 {
		return nil
	}
	// Huge pages before everything that faults pages in: what is small then has to be collapsed.
	if p.HugePages {
		if err := useHugePages(at, length, copies); err != nil {
			return err
		}
	}
	if p.Prefault {
		if err := populate(at, length*copies, writable); err != nil {
			return err
		}
	}
	if p.LockMemory {
		// One copy: the other one's pages are the same, and would count against the limit twice.
		if err := unix.Mlock(bytesAt(at, length)); err != nil {
			return lockError(err, length)
		}
	}
	if p.Node != nil {
		return verifyNode(at, length, *p.Node)
	}
	return nil
}
