package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Allocate takes the space of length bytes from offset in the file, growing it where it is shorter: a [LimitError] or
// ENOSPC if the disk does not have it. Whether memory will do is not asked: the file's pages are a cache of the disk.
func Allocate(fd int, offset, length int64) error {
	end, err := fileEnd(offset, length)
	if err != nil || length == 0 {
		return err
	}
	stat, err := Stat(fd)
	if err != nil {
		return &doing{"checking the file", err}
	}
	if missing := end - stat.Blocks*512; missing > 0 {
		// Counted from where the space that the file has ends.
		store := unix.Fstore_t{Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: missing}
		switch err := unix.FcntlFstore(uintptr(fd), unix.F_PREALLOCATE, &store); err {
		case nil:
		case unix.ENOTSUP, unix.EINVAL:
			// A file system that cannot; then the free space is compared.
			if err := checkFree(fd, uint64(missing)); err != nil {
				return err
			}
		default:
			return &doing{fmt.Sprintf("allocating %d bytes", length), err}
		}
	}
	if stat.Size < end {
		return Truncate(fd, end)
	}
	return nil
}

func checkFree(fd int, needed uint64) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return &doing{"fstatfs of the segment", err}
	}
	if available := fs.Bavail * uint64(fs.Bsize); needed > available {
		return &LimitError{fmt.Sprintf("%d bytes asked, %d available, limited by its file system's free space (df)", needed, available)}
	}
	return nil
}
