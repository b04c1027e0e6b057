package sys

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SocketPathMax is the longest path that fits into a sockaddr_un with its terminating NUL.
const SocketPathMax = 107

// descriptorsMax is how many descriptors one receive takes in order to count and close them; the kernel closes any
// more itself.
const descriptorsMax = 8

const (
	sendFlags    = unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT
	receiveFlags = unix.MSG_CMSG_CLOEXEC | unix.MSG_DONTWAIT

	// hangUp is what to poll for, hungUp what then tells of the other end's hang-up.
	hangUp = unix.POLLRDHUP
	hungUp = unix.POLLHUP | unix.POLLRDHUP | unix.POLLERR | unix.POLLNVAL
)

// Stream makes a Unix stream socket, close-on-exec and never blocking.
func Stream() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
}

// Accept takes the next connection, close-on-exec and never blocking; EAGAIN if there is none.
func Accept(fd int) (int, error) {
	accepted, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	return accepted, err
}

// ShortDir is a short path to an open directory, "" where there is no such thing.
func ShortDir(dir int) string { return "/proc/self/fd/" + strconv.Itoa(dir) }

// ModeBeforeBind gives a socket its mode before it has a name, so that at no time the name has more permission bits
// than asked for.
func ModeBeforeBind(fd int, mode uint32) error { return unix.Fchmod(fd, mode) }

// SocketMode gives the socket that was just bound at file exactly these permission bits, whatever the umask took
// away. ENOTSOCK: something else has the name now.
func SocketMode(dir int, file string, mode uint32) error {
	// O_PATH and no links followed: what is checked here is what is changed below, also if somebody renames meanwhile.
	fd, err := unix.Openat(dir, file, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return unix.ENOTSOCK
	}
	if stat.Mode&0o7777 == mode {
		return nil
	}
	return unix.Chmod(ShortDir(fd), mode)
}

// PeerCredentials says who is at the other end of a connected socket.
func PeerCredentials(fd int) (Credentials, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Credentials{}, err
	}
	return Credentials{PID: max(int(cred.Pid), 0), UID: cred.Uid}, nil
}

// OverflowUID is the number that stands for every user who has none in our user namespace: it says nothing about who
// somebody is.
func OverflowUID() uint32 {
	text, _ := os.ReadFile("/proc/sys/kernel/overflowuid")
	uid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return 65534
	}
	return uint32(uid)
}

// closeOnExec has nothing to do here: received descriptors are close-on-exec from the start.
func closeOnExec(fd int) {}
