package ramway

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// busSocket is a socket in Go's poller: a goroutine that waits for it holds no thread.
type busSocket struct {
	file *os.File
	raw  syscall.RawConn
	// terms are what this side asks of the bus, in its handshake.
	terms terms
}

// newBusSocket owns a descriptor that never blocks.
func newBusSocket(fd int, name string) (*busSocket, error) {
	file := os.NewFile(uintptr(fd), name)
	if file == nil {
		return nil, osError(syscall.EBADF, "a socket")
	}
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, osError(err, "a socket")
	}
	return &busSocket{file: file, raw: raw}, nil
}

// control calls f with the descriptor, which stays open meanwhile; not if it is closed already.
func (s *busSocket) control(f func(fd int)) {
	// The only error says that it is closed.
	_ = s.raw.Control(func(fd uintptr) { f(int(fd)) })
}

// send is sendHandshake, with this side's terms.
func (s *busSocket) send(t handshakeType, status Kind, size uint64, descriptor int) error {
	err := error(failf(Detached, "the bus's socket is closed"))
	s.control(func(fd int) { err = s.terms.send(fd, t, status, size, descriptor) })
	return err
}

// receive waits until a message is whole or the other side is gone. The error is os.ErrDeadlineExceeded once the
// socket's read deadline has passed.
func (s *busSocket) receive(in *inbox) (progress inboxProgress, err error) {
	in.terms = s.terms
	failed := s.raw.Read(func(fd uintptr) bool {
		progress, err = in.fill(int(fd))
		return err != nil || progress != inboxPartial
	})
	if err == nil {
		err = failed
	}
	return progress, err
}

// expireIn sets the read deadline; a time below zero is none.
func (s *busSocket) expireIn(d time.Duration) {
	var at time.Time
	if d >= 0 {
		at = time.Now().Add(d)
	}
	// Fails only on a closed socket, where a read does as well.
	_ = s.file.SetReadDeadline(at)
}

// expireWith makes reads end when ctx does, until the function that it returns is called.
func (s *busSocket) expireWith(ctx context.Context) (stop func()) {
	undo := context.AfterFunc(ctx, func() { s.expireIn(0) })
	return func() { undo() }
}

// hungUp says whether the peer closed its end or died, or this end is closed.
func (s *busSocket) hungUp() bool {
	gone := true
	s.control(func(fd int) { gone = sys.HungUp(fd) })
	return gone
}

func (s *busSocket) close() error {
	if err := s.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return osError(err, "closing a socket")
	}
	return nil
}

// busEnd is what the two endpoints of one side share: the socket, whose closing is the peer's notice, and the memory,
// which stays open so that /proc/PID/fd shows the bus to those who may inspect this process.
type busEnd struct {
	*busSocket
	peer sys.Credentials
	// memory is -1 until there is any. Written during the handshake only.
	memory int
	// users counts the endpoints, and the handshake while it lasts; the last one closes everything.
	users atomic.Int32
}

// newBusEnd owns a connected socket. Its caller is its first user.
func newBusEnd(fd int, name string) (*busEnd, error) {
	peer, err := sys.PeerCredentials(fd)
	if err != nil {
		sys.Close(fd)
		return nil, osError(err, "asking who is at the other end of a socket")
	}
	socket, err := newBusSocket(fd, name)
	if err != nil {
		return nil, err
	}
	end := &busEnd{busSocket: socket, peer: peer, memory: -1}
	end.users.Store(1)
	return end, nil
}

// release ends one user's use.
func (e *busEnd) release() error {
	if e.users.Add(-1) > 0 {
		return nil
	}
	if e.memory >= 0 {
		sys.Close(e.memory)
	}
	return e.busSocket.close()
}

// busLink is one endpoint's link to its peer, and one user of the end.
type busLink struct{ end *busEnd }

func (l busLink) peerAlive(role) bool { return !l.end.hungUp() }

func (l busLink) vanished() bool { return false }

func (l busLink) final() bool { return true }

func (l busLink) close() error { return l.end.release() }
