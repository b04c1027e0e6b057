package ramway

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// place is where a listener is: its socket, and the segment whose lock says that it lives, in a directory that is
// held open. For a plain name that is the segment's, the socket is NAME.sock beside it; a path is the socket's, and the
// segment is PATH.lock.
type place struct {
	dir *segmentName
	// segment is the segment as a name or path to be created.
	segment string
	// segmentFile and socketFile are the names in the directory.
	segmentFile string
	socketFile  string
}

// resolvePlace finds the directory; create makes the Ramway directory if it is not there.
func resolvePlace(text string, create bool) (*place, error) {
	isPath := strings.Contains(text, "/")
	if !isPath && strings.HasSuffix(text, ".lock") {
		return nil, failf(InvalidArgument, "a listener's name must not end in .lock")
	}
	dir, err := resolveName(text, create)
	if err != nil {
		return nil, err
	}
	if isPath {
		return &place{dir: dir, segment: text + ".lock", segmentFile: dir.file + ".lock", socketFile: dir.file}, nil
	}
	return &place{dir: dir, segment: text, segmentFile: dir.file, socketFile: dir.file + ".sock"}, nil
}

func (p *place) close() { p.dir.close() }

// socketPath is for messages, and for those who connect by path: hence a '/' in it, which filepath.Join might leave out.
func (p *place) socketPath() string {
	return strings.TrimSuffix(filepath.Dir(p.dir.path), "/") + "/" + p.socketFile
}

// socketAddress is a path to the socket that fits into an address, through the directory that is held open if need be.
func (p *place) socketAddress() (string, error) {
	path := p.socketPath()
	if len(path) > sys.SocketPathMax {
		if short := sys.ShortDir(p.dir.dir); short != "" {
			path = short + "/" + p.socketFile
		}
	}
	if len(path) > sys.SocketPathMax {
		return "", failf(InvalidArgument, "the socket's path %s is too long: the system takes at most %d bytes, and so at "+
			"most %d in the file name; pick a shorter name, or set RAMWAY_DIR to a shorter path",
			p.socketPath(), sys.SocketPathMax, max(sys.SocketPathMax-(len(path)-len(p.socketFile)), 0))
	}
	return path, nil
}

// clear removes a dead listener's socket. The caller holds the listener's lock. Anything that is not a socket stays and
// is an error.
func (p *place) clear() error {
	stat, err := sys.StatAt(p.dir.dir, p.socketFile)
	switch {
	case err != nil:
		return osError(err, "looking at "+p.socketPath())
	case stat == nil:
		return nil
	case !sys.IsSocket(stat):
		return failf(AlreadyExists, "%s is %s, not a socket; it is left as it is: move it or pick another name",
			p.socketPath(), sys.Describe(stat))
	}
	if err := sys.Unlink(p.dir.dir, p.socketFile); err != nil && !errors.Is(err, syscall.ENOENT) {
		return osError(err, "removing the dead socket "+p.socketPath())
	}
	return nil
}

// listen makes a listening socket, at a name that is absent, with exactly these permission bits.
func (p *place) listen(mode uint32, backlog int) (*busSocket, error) {
	path, err := p.socketAddress()
	if err != nil {
		return nil, err
	}
	fd, err := sys.Stream()
	if err != nil {
		return nil, osError(err, "making a socket")
	}
	if err := p.bind(fd, path, mode, backlog); err != nil {
		sys.Close(fd)
		return nil, err
	}
	return newBusSocket(fd, p.socketPath())
}

func (p *place) bind(fd int, path string, mode uint32, backlog int) error {
	if err := sys.ModeBeforeBind(fd, mode); err != nil {
		return osError(err, "setting the mode of a socket")
	}
	if err := sys.Bind(fd, path); err != nil {
		return osError(err, "binding "+p.socketPath())
	}
	err := sys.SocketMode(p.dir.dir, p.socketFile, mode)
	switch {
	case errors.Is(err, syscall.ENOTSOCK):
		return failf(AlreadyExists, "somebody replaced the socket %s, which was just bound", p.socketPath())
	case err == nil:
		err = sys.Listen(fd, backlog)
	}
	if err != nil {
		_ = sys.Unlink(p.dir.dir, p.socketFile)
		return osError(err, "listening at "+p.socketPath())
	}
	return nil
}

// missed is what to say when nobody takes a connection until the deadline: nothing has the socket's name (absent), or
// nobody listens there. The second error is that nobody ever will.
func (p *place) missed(absent bool) (*Error, error) {
	path := p.socketPath()
	// A link may lead to a socket.
	if stat, err := sys.StatAt(p.dir.dir, p.socketFile); err == nil && stat != nil && !sys.IsSocket(stat) && !sys.IsLink(stat) {
		return nil, failf(InvalidArgument, "%s is %s, not a listener's socket", path, sys.Describe(stat))
	}
	// Where we may not ask we do not know.
	lives, known := listenerLives(p.dir.dir, p.segmentFile)
	switch {
	case lives && known:
		return failf(TimedOut, "the listener of %s lives, but it does not listen", path), nil
	case absent:
		return failf(NotFound, "no listener made the socket %s: start it, or check the name and RAMWAY_DIR", path), nil
	}
	return failf(NotFound, "the listener that made %s is gone: start it again", path), nil
}
