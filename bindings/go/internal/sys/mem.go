//go:build linux || darwin

package sys

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

var pageSize = os.Getpagesize()

// PageSize is the size of a page of memory in bytes.
func PageSize() int { return pageSize }

func protection(writable bool) int {
	if writable {
		return unix.PROT_READ | unix.PROT_WRITE
	}
	return unix.PROT_READ
}

// Map maps length bytes of a file from offset, both multiples of the page, shared. The caller has checked that the file
// holds them. To be undone with [Unmap].
func Map(fd int, offset int64, length int, writable bool) (unsafe.Pointer, error) {
	if align := largePage(fd, length); align > pageSize {
		at, err := reserve(length, align)
		if err != nil {
			return nil, err
		}
		if err := mapOver(at, fd, offset, length, writable); err != nil {
			_ = Unmap(at, length)
			return nil, err
		}
		return at, nil
	}
	return unix.MmapPtr(fd, offset, nil, uintptr(length), protection(writable), unix.MAP_SHARED)
}

// MirrorMap maps capacity bytes of a file from offset twice, back to back: byte i and byte i + capacity are one byte of
// memory. Both numbers are multiples of the page, and the caller has checked that the file holds the bytes. To be undone
// with [Unmap] of 2 * capacity bytes.
func MirrorMap(fd int, offset int64, capacity int, writable bool) (unsafe.Pointer, error) {
	if capacity <= 0 || capacity > 1<<61 {
		return nil, unix.ENOMEM
	}
	at, err := reserve(2*capacity, largePage(fd, capacity))
	if err != nil {
		return nil, err
	}
	for half := range 2 {
		// Inside the range reserved above, which nobody else uses.
		target := unsafe.Add(at, half*capacity)
		if err := mapOver(target, fd, offset, capacity, writable); err != nil {
			_ = Unmap(at, 2*capacity)
			return nil, err
		}
	}
	return at, nil
}

// Unmap undoes [Map] and [MirrorMap]. Nobody may use the memory any more.
func Unmap(at unsafe.Pointer, length int) error {
	return unix.MunmapPtr(at, uintptr(length))
}

// mapOver maps a window of a file over a range that reserve gave.
func mapOver(at unsafe.Pointer, fd int, offset int64, length int, writable bool) error {
	_, err := unix.MmapPtr(fd, offset, at, uintptr(length), protection(writable), unix.MAP_SHARED|unix.MAP_FIXED)
	return err
}

// reserve takes address space without memory, length bytes of it, beginning at a multiple of align (a power of two).
func reserve(length, align int) (unsafe.Pointer, error) {
	slack := 0
	if align > pageSize {
		slack = align
	}
	flags := unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(length+slack), unix.PROT_NONE, flags)
	if err != nil || slack == 0 {
		return base, err
	}
	before := -int(uintptr(base)) & (align - 1)
	at := unsafe.Add(base, before)
	// What was only taken to find a multiple goes back; nobody knows of it.
	if before > 0 {
		_ = Unmap(base, before)
	}
	if after := slack - before; after > 0 {
		_ = Unmap(unsafe.Add(at, length), after)
	}
	return at, nil
}

// touch faults every page of a shared mapping in, for writing if it is writable, and leaves its bytes as they are.
func touch(at unsafe.Pointer, length int, writable bool) {
	for i := 0; i < length; i += pageSize {
		// Within the mapping and aligned to a page. Other processes write here by stores that an atomic never tears.
		word := (*uint32)(unsafe.Add(at, i))
		value := atomic.LoadUint32(word)
		if writable {
			// Writes back what is there; if that fails, another has just written, which faults as well.
			atomic.CompareAndSwapUint32(word, value, value)
		}
	}
}

// bytesAt is a mapping as the slice that some calls want; never read or written through.
func bytesAt(at unsafe.Pointer, length int) []byte {
	return unsafe.Slice((*byte)(at), length)
}
