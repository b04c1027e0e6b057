package sys

import (
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// GoodPlace is what to advise where a directory will not do.
const GoodPlace = "a directory on an APFS volume"

// BootID is this boot's id; all zero where the kernel does not tell.
var BootID = sync.OnceValue(func() [16]byte {
	text, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return [16]byte{}
	}
	return parseID(text)
})

// FileSystemOf judges by the name that statfs gives, and whether the file system is local. The disk's are what there
// is: a segment of an earlier boot is never resumed, so the order in which pages are written back does not matter.
func FileSystemOf(fd int) (FileSystem, string, error) {
	var stat unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &stat) }); err != nil {
		return Unsuitable, "", err
	}
	switch unix.ByteSliceToString(stat.Fstypename[:]) {
	case "apfs", "hfs", "tmpfs":
		return Memory, "", nil
	case "nfs":
		return Unsuitable, "NFS", nil
	case "smbfs":
		return Unsuitable, "SMB", nil
	case "afpfs":
		return Unsuitable, "AFP", nil
	case "webdav":
		return Unsuitable, "WebDAV", nil
	case "virtiofs":
		return Unsuitable, "virtiofs", nil
	case "macfuse", "osxfuse", "fusefs":
		return Unsuitable, "FUSE", nil
	case "devfs", "fdesc", "autofs":
		return Unsuitable, "kernel pseudo file system", nil
	}
	if stat.Flags&unix.MNT_LOCAL == 0 {
		return Unsuitable, "network", nil
	}
	return Disk, "", nil
}

// DefaultDirectory is where named segments live unless they are told otherwise. Not TMPDIR, which differs between a
// terminal, a service and an application of one user.
func DefaultDirectory(uid int) string { return "/tmp/ramway-" + strconv.Itoa(uid) }

// Out of <sys/fcntl.h>; golang.org/x/sys does not have it.
const openForSearch = 0x40000000

func openDir(path string, flags int) (int, error) {
	fd, err := openAgain(unix.AT_FDCWD, path, unix.O_RDONLY|flags, 0)
	if err == unix.EACCES {
		// One that may be searched but not listed, as another user's may be.
		return openAgain(unix.AT_FDCWD, path, openForSearch|flags, 0)
	}
	return fd, err
}

// CreateUnnamed: there is no file without a name; the caller takes a temporary name.
func CreateUnnamed(int) (int, error) { return -1, unix.ENOTSUP }

// Reopen: opening /dev/fd/N gives the same description once more, not another one.
func Reopen(int) (int, error) { return -1, unix.ENOTSUP }

// LinkUnnamed: see [CreateUnnamed].
func LinkUnnamed(_, _ int, _ string) error { return unix.ENOTSUP }

func renameNoReplace(dir int, from, to string) error {
	return unix.RenameatxNp(dir, from, dir, to, unix.RENAME_EXCL)
}
