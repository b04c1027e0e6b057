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
// it looks at Capacity, Align and NUMANode; Discard, Persistent and Mode are ErrInvalidArgument.
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
		return nil, about(err, "attaching to a ring without a name", "")
	}
	s, err := newSender(a, o)
	if err != nil {
		_ = a.release()
		return nil, about(err, "attaching to a ring without a name", "")
	}
	return s, nil
}

// ReceiverFromFile is [SenderFromFile] for the other end.
func ReceiverFromFile(file *os.File, o Options) (*Receiver, error) {
	a, err := attachFile(file, &o, consumer)
	if err != nil {
		return nil, about(err, "attaching to a ring without a name", "")
	}
	r, err := newReceiver(a, o)
	if err != nil {
		_ = a.release()
		return nil, about(err, "attaching to a ring without a name", "")
	}
	return r, nil
}

// attachFile takes a role of the ring behind a descriptor, which stays the caller's.
func attachFile(file *os.File, o *Options, r role) (a *attachment, err error) {
	if file == nil {
		return nil, failf(InvalidArgument, "the file is nil")
	}
	if err := o.check(howUnnamed); err != nil {
		return nil, err
	}
	s, err := o.ringSpec()
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err == nil {
		// Not Fd, which would take the file out of non-blocking mode.
		closed := raw.Control(func(fd uintptr) { a, err = attachDescriptor(int(fd), s, o, r) })
		if closed != nil {
			err = closed
		}
	}
	return a, err
}

func attachDescriptor(fd int, s *spec, o *Options, r role) (*attachment, error) {
	stat, err := sys.Stat(fd)
	switch {
	case err != nil:
		return nil, osError(err, "looking at the descriptor")
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
	a, err := attachMemory(fd, block0, h.blocks[0], l, o)
	if err != nil {
		_ = l.close()
		return nil, err
	}
	return a, nil
}

// unnamedLink is the locks of one handle on a ring without a name.
type unnamedLink struct{ namedLink }

// vanished: it has no name, and needs none for a successor.
func (l *unnamedLink) vanished() bool { return false }

// close releases the locks with their description. Nothing is to be removed: the kernel frees the memory with the last
// descriptor and mapping.
func (l *unnamedLink) close() error {
	sys.Unlock(l.lock, l.roleByte)
	sys.Unlock(l.lock, byteInUse)
	sys.Close(l.lock)
	return nil
}

// lockUnnamed takes a role by a description of its own: a duplicate would share the locks of all who inherited it.
func lockUnnamed(fd int, timeout time.Duration, r role) (*unnamedLink, error) {
	lock, err := sys.Reopen(fd)
	if err == unix.ENOTSUP {
		return nil, failf(Unsupported, "this system cannot open a file without a name a second time, which the locks need")
	}
	if err != nil {
		return nil, osError(err, "opening the descriptor once more by /proc/self/fd for the locks (is /proc mounted?)")
	}
	l := &unnamedLink{namedLink{lock: lock, dir: -1, roleByte: noRole}}
	start := time.Now()
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		err := l.take(r)
		again, isLater := err.(*later)
		if !isLater {
			if err != nil {
				sys.Close(lock)
				return nil, err
			}
			return l, nil
		}
		limit := timeout
		if again.race {
			limit = max(limit, raceTimeout)
		}
		left := limit - time.Since(start)
		if left <= 0 {
			sys.Close(lock)
			return nil, again.err
		}
		time.Sleep(min(pause, left))
	}
}

func (l *unnamedLink) take(r role) error {
	got, err := sys.TryLock(l.lock, byteInUse, sys.Shared)
	if err != nil {
		return osError(err, "locking byte 0 of the ring")
	}
	if !got {
		return raced("somebody holds byte 0 of the ring exclusively")
	}
	return l.takeRole(r.lockByte(), kindRing)
}
