package sys

import (
	"errors"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// linux/io_uring.h and linux/futex.h.
const (
	uringOffSQEs     = 0x10000000
	uringSingleMap   = 1 << 0
	uringPollAdd     = 6
	uringAsyncCancel = 14
	uringFutexWait   = 51
	uringCancelAll   = 1<<0 | 1<<2 // IORING_ASYNC_CANCEL_ALL | IORING_ASYNC_CANCEL_ANY
	uringGetEvents   = 1 << 0
	uringOverflow    = 1 << 1 // IORING_SQ_CQ_OVERFLOW
	uringProbe       = 8      // IORING_REGISTER_PROBE
	uringSupported   = 1
	sqeSize          = 64
	cqeSize          = 16
	futex2Size32     = 2
	futexMatchAny    = 0xFFFFFFFF
)

// tagCancel is what a completion bears that nobody waits for. The others bear their target's number, from 1, and above it the
// generation of targets.
const tagCancel = 0

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

// Parking lets a goroutine sleep on futex words and descriptors through Go's network poller: it holds no thread and no P. An
// io_uring waits for each of them, and the first completion makes the ring's descriptor readable.
//
// One goroutine sleeps at a time; [Parking.Interrupt] may come from any.
type Parking struct {
	file *os.File
	conn syscall.RawConn
	fd   int

	memory, sqes             []byte
	sqTail, sqFlags          *uint32
	cqHead, cqTail           *uint32
	array, cqesAt            unsafe.Pointer
	sqMask, cqMask, sqLength uint32
	// queued requests are in the ring and not yet in the kernel.
	queued uint32
	// waiting, by target: a wait is in the kernel. It stays there over rounds and over waits that ended otherwise, because every
	// wake-up of its word would have ended it.
	waiting []bool
	// generation counts what the targets' numbers meant.
	generation uint32
	// poll is consume as a value, so that passing it on does not allocate.
	poll func(uintptr) bool
}

// NewParking makes a place to sleep on so many targets. An error where the kernel has no io_uring, forbids it, or cannot wait
// on a futex with it (before Linux 6.7).
func NewParking(targets int) (*Parking, error) {
	var params uringParams
	// Twice as many completions fit. More, of waits that are cancelled, the kernel keeps until there is room.
	entries := uintptr(max(4, 1<<bits.Len(uint(targets-1))))
	raw, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, entries, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return nil, errno
	}
	p := &Parking{fd: int(raw), waiting: make([]bool, targets)}
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
	p.sqFlags, p.sqLength = (*uint32)(at(params.sq.w4)), params.sqEntries
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

// request is one of the ring's.
type request struct {
	op              uint8
	fd              uint32
	offset, address uint64
	// flags are those of the operation: the events of a poll, what to cancel.
	flags uint32
	user  uint64
	third uint64
}

// queue puts a request into the ring; submit hands the kernel what is there.
func (p *Parking) queue(r request) error {
	if p.queued == p.sqLength {
		if err := p.submit(); err != nil {
			return err
		}
	}
	tail := *p.sqTail // only this side writes it
	index := tail & p.sqMask
	sqe := p.sqes[sqeSize*int(index):][:sqeSize]
	clear(sqe)
	sqe[0] = r.op
	*(*uint32)(unsafe.Pointer(&sqe[4])) = r.fd
	*(*uint64)(unsafe.Pointer(&sqe[8])) = r.offset
	*(*uint64)(unsafe.Pointer(&sqe[16])) = r.address
	*(*uint32)(unsafe.Pointer(&sqe[28])) = r.flags
	*(*uint64)(unsafe.Pointer(&sqe[32])) = r.user
	*(*uint64)(unsafe.Pointer(&sqe[48])) = r.third
	*(*uint32)(unsafe.Add(p.array, 4*index)) = index
	// Release: the request goes before the position that publishes it.
	atomic.StoreUint32(p.sqTail, tail+1)
	p.queued++
	return nil
}

func (p *Parking) submit() error {
	for p.queued != 0 {
		n, errno := p.enter(p.queued, 0)
		switch errno {
		case 0:
			p.queued -= uint32(n)
		case unix.EINTR, unix.EAGAIN:
			runtime.Gosched()
		case unix.EBUSY:
			p.consume() // the completions have to go first
		default:
			return errno
		}
	}
	return nil
}

func (p *Parking) enter(submit, flags uint32) (uintptr, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(p.fd), uintptr(submit), 0, uintptr(flags), 0, 0)
	return n, errno
}

// user is what the completion of a target's wait bears.
func (p *Parking) user(target int) uint64 { return uint64(p.generation)<<32 | uint64(target+1) }

// Arm makes the kernel wait while word holds expected, unless it waits for this target already. The word stays mapped until
// Forget or Close. An error, here and from Submit, means that no sleep is possible.
func (p *Parking) Arm(target int, word *uint32, expected uint32) error {
	if p.waiting[target] {
		return nil
	}
	p.waiting[target] = true
	return p.queue(request{op: uringFutexWait, fd: futex2Size32, offset: uint64(expected),
		address: uint64(uintptr(unsafe.Pointer(word))), user: p.user(target), third: futexMatchAny})
}

// ArmDescriptor makes the kernel wait until a descriptor is readable, unless it waits for this target already.
func (p *Parking) ArmDescriptor(target, fd int) error {
	if p.waiting[target] {
		return nil
	}
	p.waiting[target] = true
	return p.queue(request{op: uringPollAdd, fd: uint32(fd), flags: unix.POLLIN, user: p.user(target)})
}

// Begin is before the first Arm of a sleep: it takes note of the waits that have ended.
func (p *Parking) Begin() { p.consume() }

// Submit is after the last Arm, and sets the end of the next Sleep.
func (p *Parking) Submit(until time.Time) error {
	if err := p.submit(); err != nil {
		return err
	}
	return p.file.SetReadDeadline(until)
}

// Forget ends the waits in the kernel: from now on the numbers mean so many other targets. False: there is no room for them.
func (p *Parking) Forget(targets int) bool {
	if targets > cap(p.waiting) || p.cancelAll() != nil {
		return false
	}
	p.generation++
	p.waiting = p.waiting[:targets]
	clear(p.waiting)
	return true
}

// cancelAll ends every wait in the kernel.
func (p *Parking) cancelAll() error {
	p.consume()
	if !slices.Contains(p.waiting, true) {
		return nil
	}
	if err := p.queue(request{op: uringAsyncCancel, flags: uringCancelAll, user: tagCancel}); err != nil {
		return err
	}
	return p.submit()
}

// Sleep parks the goroutine until a word is woken or a descriptor is readable; false: the time set by Submit has passed, or
// Interrupt was called after Submit.
func (p *Parking) Sleep() (woken bool) {
	return !errors.Is(p.conn.Read(p.poll), os.ErrDeadlineExceeded)
}

// Interrupt ends a Sleep that has been submitted. A Sleep that is submitted later is not affected, so its goroutine asks after
// Submit why it might not sleep. Safe from any goroutine, also after Close.
func (p *Parking) Interrupt() { _ = p.file.SetReadDeadline(time.Unix(1, 0)) }

// consume takes the completions, and says whether there were any. A wait that was cancelled because the thread that had
// submitted it has exited counts as well: the sleeper arms anew.
func (p *Parking) consume() (some bool) {
	for {
		head := *p.cqHead // only this side writes it
		// Acquire: the completions up to the tail are visible after this load.
		tail := atomic.LoadUint32(p.cqTail)
		if head == tail {
			return some
		}
		for some = true; head != tail; head++ {
			user := *(*uint64)(unsafe.Add(p.cqesAt, cqeSize*(head&p.cqMask)))
			if target := uint32(user); target != tagCancel && uint32(user>>32) == p.generation {
				p.waiting[target-1] = false
			}
		}
		// Release: what was read goes before the position that lets the kernel write there again.
		atomic.StoreUint32(p.cqHead, head)
		if atomic.LoadUint32(p.sqFlags)&uringOverflow == 0 {
			return some
		}
		// The kernel kept some back for want of room.
		if _, errno := p.enter(0, uringGetEvents); errno != 0 && errno != unix.EINTR {
			return some
		}
	}
}

// Close ends the waits in the kernel. Nobody sleeps any more.
func (p *Parking) Close() {
	// The kernel would do so some time after the close; the words are unmapped now.
	_ = p.cancelAll()
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
