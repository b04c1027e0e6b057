package ramway

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Unnamed makes a ring without a name, to be handed to a child process by exec.Cmd's ExtraFiles (or over a socket): nobody
// needs to invent a name, and nothing is left to clean up. It takes no role: this process and the child each take one, by
// [SenderFromFile] and [ReceiverFromFile]. The file is the caller's to close; handles live on without it. Of the options
// it uses Capacity, Align and NUMANode; Discard, Persistent and Mode are ErrInvalidArgument.
//
//	ring, err := ramway.Unnamed(ramway.Options{Capacity: 1 << 20})
//	if err != nil { ... }
//	defer ring.Close()
//	child := exec.Command("worker")
//	child.ExtraFiles = []*os.File{ring} // descriptor 3 there
//	if err := child.Start(); err != nil { ... }
//	tx, err := ramway.SenderFromFile(ring, ramway.Options{})
//
// Errors: ErrInvalidArgument for options that cannot be, ErrNoSpace, ErrUnsupported (on macOS), ErrOs.
func Unnamed(o Options) (*os.File, error) {
	fail := func(err error) (*os.File, error) { return nil, about(err, "making a ring without a name", "") }
	if err := o.check(howUnnamed); err != nil {
		return fail(err)
	}
	s, err := o.ringSpec()
	if err != nil {
		return fail(err)
	}
	fd, err := sys.MemoryUnsealed("ramway-ring")
	if err != nil {
		return fail(osError(err, "making memory"))
	}
	if _, err := fillMemory(fd, s.named(false), &o); err != nil {
		sys.Close(fd)
		return fail(err)
	}
	return os.NewFile(uintptr(fd), "ramway-ring"), nil
}

// SenderFromFile is the sender of the ring behind a file of [Unnamed], here or in another process: os.NewFile(3, "ring") is
// the first of ExtraFiles in a child. The file stays the caller's. What it holds is checked like any segment.
// Options.Timeout is how long to wait for the role.
//
// Errors: ErrBusy if the ring has a sender; ErrInvalidArgument for another kind of file or segment, and for options that
// differ from the ring or need a name; ErrAbiMismatch, ErrCorrupt, ErrPermissionDenied, ErrNoSpace, ErrOs.
func SenderFromFile(file *os.File, o Options) (*Sender, error) {
	a, err := attachFile(file, &o, producer)
	if err != nil {
		return nil, err
	}
	return newSender(a, o)
}

// ReceiverFromFile is [SenderFromFile] for the other end.
func ReceiverFromFile(file *os.File, o Options) (*Receiver, error) {
	a, err := attachFile(file, &o, consumer)
	if err != nil {
		return nil, err
	}
	return newReceiver(a, o)
}

// attachFile takes a role of the ring behind a descriptor, which stays the caller's.
func attachFile(file *os.File, o *Options, r role) (a *attachment, err error) {
	// Not Fd, which would take the file out of non-blocking mode.
	raw, err := file.SyscallConn()
	switch {
	case file == nil:
		err = failf(InvalidArgument, "the file is nil")
	case err == nil:
		closed := raw.Control(func(fd uintptr) { a, err = attachDescriptor(int(fd), o, r) })
		if closed != nil {
			err = closed
		}
	}
	if err != nil {
		return nil, about(err, "attaching to a ring without a name", "")
	}
	return a, nil
}

func attachDescriptor(fd int, o *Options, r role) (*attachment, error) {
	if err := o.check(howUnnamed); err != nil {
		return nil, err
	}
	s, err := o.ringSpec()
	if err != nil {
		return nil, err
	}
	stat, err := sys.Stat(fd)
	switch {
	case err != nil:
		return nil, osError(err, "checking the descriptor")
	case !sys.IsRegular(stat):
		return nil, failf(InvalidArgument, "this is %s, not the memory of a ring", sys.Describe(stat))
	case stat.Nlink != 0:
		return nil, failf(InvalidArgument, "this descriptor leads to a file that has a name: open the ring by its name")
	}
	if err := checkFileSystem(fd, false); err != nil {
		return nil, err
	}
	_, _, h, err := readHeader(fd)
	if err != nil {
		return nil, err
	}
	if h.kind != kindRing {
		return nil, failf(InvalidArgument, "this is a %s, not a ring", h.kind)
	}
	if err := o.compare(s, h); err != nil {
		return nil, err
	}
	l, err := lockUnnamed(fd, o.Timeout, r)
	if err != nil {
		return nil, err
	}
	return attachMemory(fd, block0, h.blocks[0], l, o)
}

// lockUnnamed takes a role by a description of its own: a duplicate would share the locks of all who inherited it.
func lockUnnamed(fd int, timeout time.Duration, r role) (*lockLink, error) {
	lock, err := sys.Reopen(fd)
	if err == unix.ENOTSUP {
		return nil, failf(Unsupported, "this system cannot open a file without a name a second time, which the locks need")
	}
	if err != nil {
		return nil, osError(err, "opening the descriptor once more by /proc/self/fd for the locks (is /proc mounted?)")
	}
	l, err := retry(timeout, func() (*lockLink, error) {
		l := &lockLink{lock: lock, dir: -1, roleByte: noRole}
		got, err := sys.TryLock(lock, byteInUse, sys.Shared)
		if err != nil {
			return nil, osError(err, "locking byte 0 of the ring")
		}
		if !got {
			return nil, raced("somebody holds byte 0 of the ring exclusively")
		}
		return l, l.takeRole(r.lockByte(), kindRing)
	})
	if err != nil {
		sys.Close(lock)
		return nil, err
	}
	return l, nil
}
