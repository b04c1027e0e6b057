package sys

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// SocketPathMax is the longest path that fits into a sockaddr_un with its terminating NUL.
const SocketPathMax = 103

// descriptorsMax is how many descriptors one receive takes in order to count and close them: more than any message
// can hold, because those that do not fit would stay open here forever.
const descriptorsMax = 512

const (
	// A signal for a peer that is gone is switched off by an option of the socket.
	sendFlags    = unix.MSG_DONTWAIT
	receiveFlags = unix.MSG_DONTWAIT

	// hangUp is what to poll for, hungUp what then tells of the other end's hang-up. It is reported only to those who
	// also ask for bytes.
	hangUp = unix.POLLIN | unix.POLLHUP
	hungUp = unix.POLLHUP | unix.POLLERR | unix.POLLNVAL
)

// prepare makes a stream socket never blocking and without SIGPIPE.
func prepare(fd int) (int, error) {
	err := unix.SetNonblock(fd, true)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NOSIGPIPE, 1)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Stream makes a Unix stream socket, close-on-exec and never blocking.
func Stream() (int, error) {
	// No fork by os/exec between the socket and its flag.
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		closeOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return -1, err
	}
	return prepare(fd)
}

// Accept takes the next connection, close-on-exec and never blocking; EAGAIN if there is none.
func Accept(fd int) (int, error) {
	syscall.ForkLock.RLock()
	accepted, _, err := unix.Accept(fd)
	if err == nil {
		closeOnExec(accepted)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return -1, err
	}
	accepted, err = prepare(accepted)
	if err == unix.EINVAL {
		// Its socket takes no more options where the connector is gone already.
		err = unix.ECONNABORTED
	}
	return accepted, err
}

// ShortDir is a short path to an open directory: there is none.
func ShortDir(dir int) string { return "" }

// ModeBeforeBind does nothing: a socket has no mode before it is bound. Until [SocketMode] has been called nobody
// listens, so nobody comes in.
func ModeBeforeBind(fd int, mode uint32) error { return nil }

// SocketMode gives the socket that was just bound at file exactly these permission bits. ENOTSOCK: something else has
// the name now.
func SocketMode(dir int, file string, mode uint32) error {
	// Neither call follows a link. Who can exchange the name in between may write the directory, and gets no more.
	var stat unix.Stat_t
	if err := unix.Fstatat(dir, file, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return unix.ENOTSOCK
	}
	return unix.Fchmodat(dir, file, mode, unix.AT_SYMLINK_NOFOLLOW)
}

// PeerCredentials says who is at the other end of a connected socket. A peer that has gone already has no user and is
// nobody's equal.
func PeerCredentials(fd int) (Credentials, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err == unix.ENOTCONN || err == unix.EINVAL {
		return Credentials{UID: math.MaxUint32}, nil
	}
	if err != nil {
		return Credentials{}, err
	}
	// A failure leaves the 0, which is "unknown".
	pid, _ := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return Credentials{PID: pid, UID: cred.Uid}, nil
}

// OverflowUID: there are no user namespaces, so no number stands for users without one.
func OverflowUID() uint32 { return math.MaxUint32 }

// closeOnExec keeps a descriptor from programs that are executed.
func closeOnExec(fd int) { unix.CloseOnExec(fd) }
