package sys

import "golang.org/x/sys/unix"

// hugeFile says whether a file's pages are huge, so that it cannot be mapped by the ordinary page.
func hugeFile(fd int) (bool, error) {
	fs, err := fstatfs(fd)
	return uint32(fs.Type) == unix.HUGETLBFS_MAGIC, err
}
