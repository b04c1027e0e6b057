package ramway

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// place is where a listener is: its socket, and the segment whose lock says that it lives, in a directory that is
// held open. For a plain name that is the segment's, the socket is NAME.sock beside it; a path is the socket's, and the
// segment is PATH.lock, unless the path is that of a name's socket: a name and its path meet at one lock.
type place struct {
	dir *segmentName
	// segment is the segment as a name or path to be created.
	segment string
	// segmentFile and socketFile are the names in the directory.
	segmentFile string
	socketFile  string
	// bound is the socket's file once this process has made it.
	bound *sys.FileID
}

// resolvePlace finds the directory; create makes the Ramway directory if it is not there.
func resolvePlace(text string, create bool) (*place, error) {
	isPath := strings.Contains(text, "/")
	if !isPath && strings.HasSuffix(text, lockSuffix) {
		return nil, failf(InvalidArgument, "a listener's name must not end in %s", lockSuffix)
	}
	dir, err := resolveName(text, create)
	if err != nil {
		return nil, err
	}
	at := &place{dir: dir, segment: text, segmentFile: dir.file, socketFile: socketOf(dir.file)}
	switch {
	case isPath && dir.ofListener():
		at.segment, at.segmentFile = strings.TrimSuffix(text, socketSuffix), strings.TrimSuffix(dir.file, socketSuffix)
		at.socketFile = dir.file
	case isPath:
		at.segment, at.segmentFile, at.socketFile = text+lockSuffix, dir.file+lockSuffix, dir.file
	}
	return at, nil
}

// ofListener says whether a path is that of the socket of a listener with a name: NAME.sock in the Ramway directory,
// however the path is written.
func (p *segmentName) ofListener() bool {
	name, isSocket := strings.CutSuffix(p.file, socketSuffix)
	if !isSocket || !validListenerName(name) {
		return false
	}
	info, err := os.Stat(Directory())
	if err != nil {
		return false
	}
	root, isStat := info.Sys().(*syscall.Stat_t)
	here, err := sys.Stat(p.dir)
	// Systems differ in the type of the device.
	return isStat && err == nil && sys.FileID{Dev: uint64(root.Dev), Ino: root.Ino} == sys.IDOf(here)
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

// clear removes a dead listener's socket. The caller holds the listener's lock. Anything else stays and is an error.
func (p *place) clear() error {
	address, err := p.socketAddress()
	if err != nil {
		return err
	}
	return removeDeadSocket(p.dir.dir, p.socketFile, address, p.socketPath())
}

// removeDeadSocket removes a socket that nobody listens at, which is found out by connecting: a program that listens without
// Ramway's lock keeps it. address leads to it, path is for messages.
func removeDeadSocket(dir int, file, address, path string) error {
	stat, err := sys.StatAt(dir, file)
	switch {
	case err != nil:
		return osError(err, "checking "+path)
	case stat == nil:
		return nil
	case !sys.IsSocket(stat):
		return failf(AlreadyExists, "%s is %s, not a socket; it is left as it is: move it or pick another name", path, sys.Describe(stat))
	}
	fd, err := sys.Stream()
	if err != nil {
		return osError(err, "making a socket")
	}
	err = sys.Connect(fd, address)
	sys.Close(fd)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
	case errors.Is(err, syscall.ENOENT):
		return nil
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return osError(err, "asking whether anybody listens at "+path+", which is left as it is")
	default:
		return failf(AlreadyExists,
			"%s: a program that does not hold Ramway's lock is listening there; stop it, or pick another name", path)
	}
	return unlinkIf(dir, file, sys.IDOf(stat), path)
}

// unlinkIf removes a name if it still leads to this file.
func unlinkIf(dir int, file string, id sys.FileID, path string) error {
	if !leadsTo(dir, file, id) {
		return nil
	}
	if err := sys.Unlink(dir, file); err != nil && !errors.Is(err, syscall.ENOENT) {
		return osError(err, "removing the socket "+path)
	}
	return nil
}

// unbind removes the socket that this process has made, while it still listens there; another one of that name stays.
func (p *place) unbind() error {
	if p.bound == nil {
		return nil
	}
	return unlinkIf(p.dir.dir, p.socketFile, *p.bound, p.socketPath())
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
		if errors.Is(err, syscall.EADDRINUSE) {
			return failf(AlreadyExists, "somebody made %s just now; pick another name", p.socketPath())
		}
		return osError(err, "binding "+p.socketPath())
	}
	stat, err := sys.StatAt(p.dir.dir, p.socketFile)
	if err != nil || stat == nil || !sys.IsSocket(stat) {
		return p.replaced()
	}
	id := sys.IDOf(stat)
	p.bound = &id
	err = sys.SocketMode(p.dir.dir, p.socketFile, mode)
	switch {
	case errors.Is(err, syscall.ENOTSOCK), errors.Is(err, syscall.ENOENT):
		return p.replaced()
	case err == nil:
		err = sys.Listen(fd, backlog)
	}
	if err != nil {
		_ = p.unbind()
		return osError(err, "listening at "+p.socketPath())
	}
	return nil
}

func (p *place) replaced() error {
	return failf(AlreadyExists, "somebody replaced the socket %s, which was just bound", p.socketPath())
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
		return failf(TimedOut, "the listener of %s is alive but not accepting", path), nil
	case absent:
		return failf(NotFound, "no listener made the socket %s: start it, or check the name and RAMWAY_DIR", path), nil
	}
	return failf(NotFound, "the listener that made %s is gone: start it again", path), nil
}
