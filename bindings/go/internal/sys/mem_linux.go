package sys

import "golang.org/x/sys/unix"

// largePage is the alignment that lets the kernel use huge pages for a mapping: the file's own page on hugetlbfs (where
// it is a must), else 2 MiB for a mapping that can hold one.
func largePage(fd, length int) int {
	const huge = 2 << 20
	if fs, err := fstatfs(fd); err == nil && uint32(fs.Type) == unix.HUGETLBFS_MAGIC {
		return max(int(fs.Bsize), pageSize)
	}
	if length >= huge {
		return huge
	}
	return pageSize
}

func fstatfs(fd int) (unix.Statfs_t, error) {
	var fs unix.Statfs_t
	err := again(func() error { return unix.Fstatfs(fd, &fs) })
	return fs, err
}
