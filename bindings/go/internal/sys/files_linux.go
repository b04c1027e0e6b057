package sys

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// GoodPlace is what to advise where a directory will not do.
const GoodPlace = "/dev/shm or another tmpfs"

// BootID is this boot's id; all zero where the kernel does not tell.
var BootID = sync.OnceValue(func() [16]byte {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return [16]byte{}
	}
	return parseID(string(text))
})

// Segments are refused where shared mappings or locks do not reach everybody.
var unsuitable = map[uint32]string{
	unix.NFS_SUPER_MAGIC:       "NFS",
	unix.V9FS_MAGIC:            "9p",
	unix.FUSE_SUPER_MAGIC:      "FUSE or virtiofs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlay",
	unix.SMB_SUPER_MAGIC:       "SMB",
	0xFF534D42:                 "SMB",
	0xFE534D42:                 "SMB",
	0x00C36400:                 "Ceph",
	0x0BD00BD0:                 "Lustre",
	0x5346414F:                 "AFS",
	0x6B414653:                 "AFS",
	0x73757245:                 "Coda",
	0x786F4256:                 "VirtualBox shared folder",
	unix.ECRYPTFS_SUPER_MAGIC:  "eCryptfs",
	unix.PROC_SUPER_MAGIC:      "kernel pseudo file system",
	unix.SYSFS_MAGIC:           "kernel pseudo file system",
	unix.CGROUP_SUPER_MAGIC:    "kernel pseudo file system",
}

// FileSystemOf judges the file system by the type that statfs names, and gives that type's name if it is unsuitable.
func FileSystemOf(fd int) (FileSystem, string, error) {
	stat, err := fstatfs(fd)
	if err != nil {
		return Unsuitable, "", err
	}
	kind := uint32(stat.Type)
	switch kind {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.HUGETLBFS_MAGIC:
		return Memory, "", nil
	}
	if name, found := unsuitable[kind]; found {
		return Unsuitable, name, nil
	}
	return Disk, "", nil
}

// DefaultDirectory is where named segments live unless they are told otherwise.
func DefaultDirectory(uid int) string { return "/dev/shm/ramway-" + strconv.Itoa(uid) }

func openDir(path string, flags int) (int, error) {
	return openAgain(unix.AT_FDCWD, path, unix.O_PATH|flags, 0)
}

// CreateUnnamed makes a file in the directory's file system that has no name yet; an error where that cannot be.
func CreateUnnamed(dir int) (int, error) {
	return openAgain(dir, ".", unix.O_TMPFILE|unix.O_RDWR, 0o600)
}

// ProcPath is a short path to an open file. Needs /proc.
func ProcPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Reopen is another open file description of the same file, which need not have a name. Needs /proc.
func Reopen(fd int) (int, error) {
	return openAgain(unix.AT_FDCWD, ProcPath(fd), unix.O_RDWR, 0)
}

// LinkUnnamed gives a file without a name its name; EEXIST if the name is taken.
func LinkUnnamed(fd, dir int, name string) error {
	err := again(func() error {
		return unix.Linkat(unix.AT_FDCWD, ProcPath(fd), dir, name, unix.AT_SYMLINK_FOLLOW)
	})
	if err == unix.ENOENT || err == unix.EACCES {
		// Without /proc; this way needs a capability on most kernels.
		return again(func() error { return unix.Linkat(fd, "", dir, name, unix.AT_EMPTY_PATH) })
	}
	return err
}

func renameNoReplace(dir int, from, to string) error {
	return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
}
