//go:build linux || darwin

package sys

import (
	"encoding/hex"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// FileSystem is what can be expected of a file system.
type FileSystem int

const (
	// Memory is what segments are made for; where the system has no such thing, the best that it has.
	Memory FileSystem = iota
	// Disk: correct, but pages are written back, in an order of the kernel's.
	Disk
	// Unsuitable: shared mappings or locks do not reach everybody here.
	Unsuitable
)

// again repeats a call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func openAgain(dir int, name string, flags int, mode uint32) (int, error) {
	fd := -1
	err := again(func() error {
		var err error
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// Close closes a descriptor. What it says cannot be acted on: the descriptor is gone in any case.
func Close(fd int) { _ = unix.Close(fd) }

// Dup is another descriptor of the same description.
func Dup(fd int) (int, error) {
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
}

// Stat is fstat.
func Stat(fd int) (*unix.Stat_t, error) {
	stat := new(unix.Stat_t)
	err := again(func() error { return unix.Fstat(fd, stat) })
	return stat, err
}

// StatAt is what is at a name; a symbolic link is not followed. nil: nothing.
func StatAt(dir int, name string) (*unix.Stat_t, error) {
	stat := new(unix.Stat_t)
	err := again(func() error { return unix.Fstatat(dir, name, stat, unix.AT_SYMLINK_NOFOLLOW) })
	if err == unix.ENOENT {
		return nil, nil
	}
	return stat, err
}

func typeOf(stat *unix.Stat_t) uint32 { return uint32(stat.Mode) & unix.S_IFMT }

// IsRegular says whether a file may be opened at all: anything else can have side effects on open.
func IsRegular(stat *unix.Stat_t) bool { return typeOf(stat) == unix.S_IFREG }

// IsSocket says whether it is a socket.
func IsSocket(stat *unix.Stat_t) bool { return typeOf(stat) == unix.S_IFSOCK }

// IsLink says whether it is a symbolic link.
func IsLink(stat *unix.Stat_t) bool { return typeOf(stat) == unix.S_IFLNK }

// Describe is the kind of file in words.
func Describe(stat *unix.Stat_t) string {
	switch typeOf(stat) {
	case unix.S_IFREG:
		return "a regular file"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		return "a device"
	}
	return "a file of unknown type"
}

// Permissions are a file's set-id and permission bits.
func Permissions(stat *unix.Stat_t) uint32 { return uint32(stat.Mode) & 0o7777 }

// FileID is what makes a file the same file.
type FileID struct{ Dev, Ino uint64 }

// IDOf is the file's identity.
func IDOf(stat *unix.Stat_t) FileID {
	// Systems differ in the type of the device.
	return FileID{Dev: uint64(stat.Dev), Ino: stat.Ino}
}

// OpenDir opens a directory to name things in it. Unless follow is set, a symbolic link at the end of the path is
// ENOTDIR or ELOOP.
func OpenDir(path string, follow bool) (int, error) {
	flags := 0
	if !follow {
		flags = unix.O_NOFOLLOW
	}
	return openDir(path, flags|unix.O_DIRECTORY)
}

// OpenAt opens what [StatAt] called a regular file. If it was exchanged meanwhile, the open neither blocks nor follows a
// link nor takes a terminal; the caller checks again what it got.
func OpenAt(dir int, name string, writable bool) (int, error) {
	flags := unix.O_RDONLY
	if writable {
		flags = unix.O_RDWR
	}
	return openAgain(dir, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// CreateNew makes a file with a name that nothing has yet.
func CreateNew(dir int, name string) (int, error) {
	return openAgain(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW, 0o600)
}

// RenameNew renames within a directory; EEXIST if the new name is taken.
func RenameNew(dir int, from, to string) error {
	err := again(func() error { return renameNoReplace(dir, from, to) })
	switch err {
	case unix.EINVAL, unix.ENOSYS, unix.ENOTSUP:
	default:
		return err
	}
	// A file system that knows no such thing: two steps, between which the file has both names.
	if err := unix.Linkat(dir, from, dir, to, 0); err != nil {
		return err
	}
	return Unlink(dir, from)
}

// Unlink removes a name.
func Unlink(dir int, name string) error {
	return again(func() error { return unix.Unlinkat(dir, name, 0) })
}

// Chmod sets a file's permissions exactly, whatever the umask.
func Chmod(fd int, mode uint32) error {
	return again(func() error { return unix.Fchmod(fd, mode&uint32(fs.ModePerm)) })
}

// MakeDir makes a directory for its owner alone; that it exists already is fine.
func MakeDir(path string) error {
	if err := again(func() error { return unix.Mkdir(path, 0o700) }); err != unix.EEXIST {
		return err
	}
	return nil
}

// Truncate sets a file's length.
func Truncate(fd int, length int64) error {
	return again(func() error { return unix.Ftruncate(fd, length) })
}

// ReadAt reads at an offset until the buffer is full or the file ends, and says how much there was.
func ReadAt(fd int, buffer []byte, offset int64) (int, error) {
	done := 0
	for done < len(buffer) {
		n, err := unix.Pread(fd, buffer[done:], offset+int64(done))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return done, err
		case n == 0:
			return done, nil
		default:
			done += n
		}
	}
	return done, nil
}

// WriteAt writes all bytes at an offset.
func WriteAt(fd int, bytes []byte, offset int64) error {
	for len(bytes) > 0 {
		n, err := unix.Pwrite(fd, bytes, offset)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return unix.EIO
		default:
			bytes, offset = bytes[n:], offset+int64(n)
		}
	}
	return nil
}

// parseID reads a UUID as text; all zero if it is none.
func parseID(text string) [16]byte {
	id, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), "-", ""))
	if err != nil || len(id) != 16 {
		return [16]byte{}
	}
	return [16]byte(id)
}
