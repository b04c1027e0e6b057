package ramway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Directory is where named segments live: RAMWAY_DIR, else /dev/shm/ramway-<euid> (on macOS /tmp/ramway-<euid>). It need
// not exist.
func Directory() string {
	if dir := os.Getenv(directoryVariable); dir != "" {
		return dir
	}
	return sys.DefaultDirectory(os.Geteuid())
}

// segmentName is a name in a directory that is held open, so that the whole of an operation happens in one directory.
type segmentName struct {
	dir int
	// file is the name in the directory.
	file string
	// path is for messages, and for those who come by path.
	path string
	// isPath: it was given as a path.
	isPath bool
}

// resolveName finds the directory that a name, or a path (with a / in it), means. With makeDir the Ramway directory is
// made if it is not there; the parent of a path must exist. The place is to be closed.
func resolveName(name string, makeDir bool) (*segmentName, error) {
	if strings.Contains(name, "/") {
		parent, file := filepath.Split(name)
		if file == "" || file == "." || file == ".." || strings.IndexByte(name, 0) >= 0 {
			return nil, failf(InvalidArgument, "the path %q does not end in a name", name)
		}
		dir, err := sys.OpenDir(parent, true)
		if err != nil {
			return nil, osError(err, "opening the directory "+parent)
		}
		return &segmentName{dir: dir, file: file, path: name, isPath: true}, nil
	}
	if !validName(name) {
		return nil, failf(InvalidArgument, "the name %q cannot be used: 1 to %d of %s, not starting with a "+
			"dot, not ending in .sock (with a / it would be a path)", name, nameMax, nameCharacters)
	}
	root := Directory()
	dir, err := openRoot(root, makeDir)
	if err != nil {
		return nil, err
	}
	return &segmentName{dir: dir, file: name, path: filepath.Join(root, name)}, nil
}

// openRoot opens the Ramway directory. Everybody may make a directory or link of the default name in /dev/shm, so what
// it is and whose is checked there.
func openRoot(root string, makeDir bool) (int, error) {
	uid := os.Geteuid()
	isDefault := root == sys.DefaultDirectory(uid)
	dir, err := sys.OpenDir(root, !isDefault)
	if err == unix.ENOENT && makeDir {
		if err := sys.MakeDir(root); err != nil {
			return -1, osError(err, "making the Ramway directory "+root)
		}
		dir, err = sys.OpenDir(root, !isDefault)
	}
	const refused = "the Ramway directory %s must be a real directory of user %d with mode 0700, but %s; remove it, or set " +
		"RAMWAY_DIR to a directory of yours"
	switch {
	case err == unix.ENOENT:
		return -1, failf(NotFound, "nothing has this name: the Ramway directory %s does not exist. Create it first, or check "+
			"RAMWAY_DIR", root)
	case isDefault && (err == unix.ENOTDIR || err == unix.ELOOP):
		return -1, failf(PermissionDenied, refused, root, uid, "it is not a directory")
	case err != nil:
		return -1, osError(err, "opening the Ramway directory "+root)
	}
	if !isDefault {
		return dir, nil
	}
	stat, err := sys.Stat(dir)
	if err != nil {
		sys.Close(dir)
		return -1, osError(err, "checking the Ramway directory "+root)
	}
	if int(stat.Uid) != uid || sys.Permissions(stat)&0o077 != 0 {
		sys.Close(dir)
		found := fmt.Sprintf("it belongs to user %d and has mode %04o", stat.Uid, sys.Permissions(stat))
		return -1, failf(PermissionDenied, refused, root, uid, found)
	}
	return dir, nil
}

func (p *segmentName) close() { sys.Close(p.dir) }
