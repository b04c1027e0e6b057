package sys

import (
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// linux/io_uring.h and linux/futex.h.
const (
	uringEntries     = 4
	uringOffSQEs     = 0x10000000
	uringSingleMap   = 1 << 0
	uringFutexWait   = 51
	uringAsyncCancel = 14
	uringProbe       = 8 // IORING_REGISTER_PROBE
	uringSupported   = 1
	sqeSize          = 64
	cqeSize          = 16
	futex2Size32     = 2
	futexMatchAny    = 0xFFFFFFFF
)

// What a completion is of.
const (
	tagFutex  = 1
	tagCancel = 2
)

type uringOffsets struct {
	head, tail, mask, entries uint32
	// The submission queue has flags, dropped, array here; the completion queue overflow, cqes, flags.
	w4, w5, w6, reserved uint32
	address              uint64
}

type uringParams struct {
	sqEntries, cqEntries, flags, cpu, idle, features, workers uint32
	_                                                         [3]uint32
	sq, cq                                                    uringOffsets
}

// Parking lets a goroutine sleep on a futex word through Go's network poller: it holds no thread and no P. An io_uring
// waits on the word, and its completion makes the ring's descriptor readable.
//
// One goroutine sleeps at a time; [Parking.Interrupt] may come from any.
type Parking struct {
	file *os.File
	conn syscall.RawConn
	fd   int
	word *uint32

	memory, sqes   []byte
	sqTail         *uint32
	cqHead, cqTail *uint32
	array, cqesAt  unsafe.Pointer
	sqMask, cqMask uint32
	// waiting: a wait is in the kernel. It stays there over rounds and over waits that ended otherwise.
	waiting bool
	// poll is consume as a value, so that passing it on does not allocate.
	poll func(uintptr) bool
}

// NewParking makes a place to sleep on word, which stays mapped until Close. An error where the kernel has no
// io_uring, forbids it, or cannot wait on a futex with it (before Linux 6.7).
func NewParking(word *uint32) (*Parking, error) {
	var params uringParams
	raw, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uringEntries, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return nil, errno
	}
	p := &Parking{fd: int(raw), word: word}
	if err := p.open(&params); err != nil {
		if p.file != nil {
			_ = p.file.Close()
		} else {
			Close(p.fd)
		}
		p.unmap()
		return nil, err
	}
	return p, nil
}

func (p *Parking) open(params *uringParams) error {
	// Since Linux 5.4, older than the request that is needed.
	if params.features&uringSingleMap == 0 || !p.knowsFutex() {
		return unix.ENOSYS
	}
	length := max(params.sq.w6+4*params.sqEntries, params.cq.w5+cqeSize*params.cqEntries)
	var err error
	if p.memory, err = unix.Mmap(p.fd, 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return err
	}
	p.sqes, err = unix.Mmap(p.fd, uringOffSQEs, sqeSize*int(params.sqEntries), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	at := func(offset uint32) unsafe.Pointer { return unsafe.Pointer(&p.memory[offset]) }
	p.sqTail, p.sqMask, p.array = (*uint32)(at(params.sq.tail)), *(*uint32)(at(params.sq.mask)), at(params.sq.w6)
	p.cqHead, p.cqTail = (*uint32)(at(params.cq.head)), (*uint32)(at(params.cq.tail))
	p.cqMask, p.cqesAt = *(*uint32)(at(params.cq.mask)), at(params.cq.w5)
	// os.NewFile hands only non-blocking descriptors to the poller.
	if err := unix.SetNonblock(p.fd, true); err != nil {
		return err
	}
	p.file = os.NewFile(uintptr(p.fd), "io_uring")
	if err := p.file.SetReadDeadline(time.Time{}); err != nil {
		return err // not in the poller
	}
	if p.conn, err = p.file.SyscallConn(); err != nil {
		return err
	}
	p.poll = func(uintptr) bool { return p.consume() }
	return nil
}

// knowsFutex asks the kernel for the request that is needed.
func (p *Parking) knowsFutex() bool {
	// struct io_uring_probe: last op, ops, 2 + 12 reserved bytes; then op, reserved, flags (u16), reserved (u32) of each.
	const header, entry, ops = 16, 8, 64
	var probe [header + entry*ops]byte
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(p.fd), uringProbe, uintptr(unsafe.Pointer(&probe)), ops, 0, 0)
	return errno == 0 && probe[header+entry*uringFutexWait+2]&uringSupported != 0
}

// push submits one request.
func (p *Parking) push(op uint8, fd uint32, offset, address, user, third uint64) error {
	tail := *p.sqTail // only this side writes it
	index := tail & p.sqMask
	sqe := p.sqes[sqeSize*int(index):][:sqeSize]
	clear(sqe)
	sqe[0] = op
	*(*uint32)(unsafe.Pointer(&sqe[4])) = fd
	*(*uint64)(unsafe.Pointer(&sqe[8])) = offset
	*(*uint64)(unsafe.Pointer(&sqe[16])) = address
	*(*uint64)(unsafe.Pointer(&sqe[32])) = user
	*(*uint64)(unsafe.Pointer(&sqe[48])) = third
	*(*uint32)(unsafe.Add(p.array, 4*index)) = index
	// Release: the request goes before the position that publishes it.
	atomic.StoreUint32(p.sqTail, tail+1)
	for {
		_, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(p.fd), 1, 0, 0, 0, 0)
		switch errno {
		case 0:
			return nil
		case unix.EINTR, unix.EAGAIN:
			runtime.Gosched()
		default:
			// Not taken: the place is free again.
			atomic.StoreUint32(p.sqTail, tail)
			return errno
		}
	}
}

// Arm makes the kernel wait while word holds expected, unless it does already, and sets the end of the next Sleep. An
// error means that no sleep is possible.
func (p *Parking) Arm(expected uint32, until time.Time) error {
	p.consume()
	if !p.waiting {
		address := uint64(uintptr(unsafe.Pointer(p.word)))
		if err := p.push(uringFutexWait, futex2Size32, uint64(expected), address, tagFutex, futexMatchAny); err != nil {
			return err
		}
		p.waiting = true
	}
	return p.file.SetReadDeadline(until)
}

// Sleep parks the goroutine until the word is woken; false: the time set by Arm has passed, or Interrupt was called after
// Arm.
func (p *Parking) Sleep() (woken bool) {
	return !errors.Is(p.conn.Read(p.poll), os.ErrDeadlineExceeded)
}

// Interrupt ends a Sleep that has been armed. A Sleep that is armed later is not affected, so its goroutine asks after
// Arm why it might not sleep. Safe from any goroutine, also after Close.
func (p *Parking) Interrupt() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) }

// consume takes the completions, and says whether there were any. A wait that was cancelled because the thread that had
// submitted it has exited counts as well: the sleeper arms anew.
func (p *Parking) consume() bool {
	head, some := *p.cqHead, false // only this side writes it
	// Acquire: the completions up to the tail are visible after this load.
	for tail := atomic.LoadUint32(p.cqTail); head != tail; head++ {
		some = true
		cqe := unsafe.Add(p.cqesAt, cqeSize*(head&p.cqMask))
		if *(*uint64)(cqe) == tagFutex {
			p.waiting = false
		}
	}
	if some {
		// Release: what was read goes before the position that lets the kernel write there again.
		atomic.StoreUint32(p.cqHead, head)
	}
	return some
}

// Close ends the wait in the kernel. Nobody sleeps any more.
func (p *Parking) Close() {
	if p.waiting {
		// The kernel would do so some time after the close; the word is unmapped now.
		_ = p.push(uringAsyncCancel, 0, 0, tagFutex, tagCancel, 0)
	}
	_ = p.file.Close()
	p.unmap()
}

func (p *Parking) unmap() {
	if p.memory != nil {
		_ = unix.Munmap(p.memory)
	}
	if p.sqes != nil {
		_ = unix.Munmap(p.sqes)
	}
	p.memory, p.sqes = nil, nil
}
