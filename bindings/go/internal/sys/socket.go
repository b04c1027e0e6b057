//go:build linux || darwin

package sys

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Credentials say who is at the other end of a socket, as the kernel recorded it when the connection was made.
type Credentials struct {
	// PID is 0 where the peer's process has no number in our PID namespace.
	PID int
	// UID is [OverflowUID] where the peer's user has no number in our user namespace.
	UID uint32
}

// Received is what one receive brought.
type Received struct {
	// N is the number of bytes; 0 means that the other end hung up.
	N int
	// FDs came with them. They are the caller's to close, and close-on-exec.
	FDs []int
	// Truncated says that there were more descriptors than this side takes, which the kernel closed.
	Truncated bool
}

// address makes a socket's address of a path. A leading '@' would mean an abstract name to x/sys.
func address(path string) *unix.SockaddrUnix {
	if strings.HasPrefix(path, "@") {
		path = "./" + path
	}
	return &unix.SockaddrUnix{Name: path}
}

// Bind gives a socket a name, which must be absent.
func Bind(fd int, path string) error { return unix.Bind(fd, address(path)) }

// Listen lets connectors queue up at a bound socket, so many at a time.
func Listen(fd, backlog int) error { return unix.Listen(fd, backlog) }

// Connect tries once to connect a socket of [Stream] and never waits.
func Connect(fd int, path string) error { return unix.Connect(fd, address(path)) }

// Send sends all of b and, unless it is negative, the descriptor with its first byte. It never waits: what a stream
// does not take whole is EAGAIN.
func Send(fd int, b []byte, descriptor int) error {
	var oob []byte
	if descriptor >= 0 {
		oob = unix.UnixRights(descriptor)
	}
	for {
		n, err := unix.SendmsgN(fd, b, oob, nil, sendFlags)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n != len(b):
			return unix.EAGAIN
		default:
			return nil
		}
	}
}

// Receive takes what is there, at most len(b) bytes, and never waits: EAGAIN if there is nothing yet.
func Receive(fd int, b []byte) (Received, error) {
	oob := make([]byte, unix.CmsgSpace(4*descriptorsMax))
	for {
		n, oobn, flags, _, err := unix.Recvmsg(fd, b, oob, receiveFlags)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return Received{}, err
		}
		r := Received{N: n, Truncated: flags&unix.MSG_CTRUNC != 0}
		// What cannot be parsed holds no descriptor of ours: the kernel writes these messages, not the peer.
		messages, _ := unix.ParseSocketControlMessage(oob[:oobn])
		for i := range messages {
			fds, err := unix.ParseUnixRights(&messages[i])
			if err == nil {
				r.FDs = append(r.FDs, fds...)
			}
		}
		for _, fd := range r.FDs {
			closeOnExec(fd)
		}
		return r, nil
	}
}

// HungUp says whether the other end of a connected socket is closed: the peer closed it or died. It never waits.
// Bytes that the peer sends say nothing and are left alone.
func HungUp(fd int) bool {
	polled := []unix.PollFd{{Fd: int32(fd), Events: hangUp}}
	for {
		_, err := unix.Poll(polled, 0)
		if err == unix.EINTR {
			continue
		}
		// A descriptor that is closed (POLLNVAL) counts too: waiting on it would wait forever.
		return err != nil || polled[0].Revents&hungUp != 0
	}
}

// EffectiveUID is the user that this process acts as.
func EffectiveUID() uint32 { return uint32(os.Geteuid()) }

// Readable says whether a read of a descriptor would not wait: there is something, or it has ended or failed. It never waits.
func Readable(fd int) bool {
	polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(polled, 0)
		if err != unix.EINTR {
			return err == nil && n > 0
		}
	}
}
