package ramway

import (
	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// The file behind a segment: what may be opened, on which file systems, and whether a name still leads to it.

// checkFileSystem refuses file systems that cannot do what segments rest on.
func checkFileSystem(fd int, allowDisk bool) error {
	fs, name, err := sys.FileSystemOf(fd)
	switch {
	case err != nil:
		return osError(err, "asking for the file system's type")
	case fs == sys.Unsuitable:
		return failf(Unsupported, "this is a file system of type %s, where shared mappings or locks cannot be relied on; use %s",
			name, sys.GoodPlace)
	case fs == sys.Disk && !allowDisk:
		return failf(Unsupported, "this is a file system on a disk, whose pages are written back; use %s, or AllowDisk",
			sys.GoodPlace)
	}
	return nil
}

// readPage reads a file's first page (zero beyond its end) and its length. No mapping: a truncated file is an error and
// not a signal.
func readPage(fd int) ([]byte, uint64, error) {
	stat, err := sys.Stat(fd)
	if err != nil {
		return nil, 0, osError(err, "checking the file")
	}
	page := make([]byte, headerSize)
	if _, err := sys.ReadAt(fd, page, 0); err != nil {
		return nil, 0, osError(err, "reading the header page")
	}
	return page, uint64(stat.Size), nil
}

// readHeader is readPage and what checkHeader makes of the page.
func readHeader(fd int) (page []byte, size uint64, h *header, err error) {
	if page, size, err = readPage(fd); err == nil {
		h, err = checkHeader(page, size)
	}
	return page, size, h, err
}

// openRegular opens a regular file without side effects on anything else. NotFound: nothing has this name.
func openRegular(p *segmentName, writable bool) (int, *unix.Stat_t, error) {
	absent := failf(NotFound, "no segment has this name")
	notRegular := func(stat *unix.Stat_t) error {
		return failf(InvalidArgument, "this is %s, not a segment; it is left as it is", sys.Describe(stat))
	}
	stat, err := sys.StatAt(p.dir, p.file)
	switch {
	case err != nil:
		return -1, nil, osError(err, "checking the name")
	case stat == nil:
		return -1, nil, absent
	case !sys.IsRegular(stat):
		return -1, nil, notRegular(stat)
	}
	fd, err := sys.OpenAt(p.dir, p.file, writable)
	if err == unix.ENOENT {
		return -1, nil, absent
	}
	if err != nil {
		return -1, nil, osError(err, "opening the file")
	}
	stat, err = sys.Stat(fd)
	if err == nil && sys.IsRegular(stat) {
		return fd, stat, nil
	}
	sys.Close(fd)
	if err != nil {
		return -1, nil, osError(err, "checking the file")
	}
	return -1, nil, notRegular(stat)
}

// leadsTo says whether the name still leads to this file.
func leadsTo(dir int, file string, id sys.FileID) bool {
	stat, err := sys.StatAt(dir, file)
	return err == nil && stat != nil && sys.IDOf(stat) == id
}
