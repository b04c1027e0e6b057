package ramway

import (
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// selectable is what a Selector asks of a source, between begin and end.
type selectable interface {
	// same says whether the other one is the same handle.
	same(selectable) bool
	// begin keeps other calls and a Close out until end; an error is why it cannot be waited for.
	begin() error
	end()
	// moved says by one load that ready may have something else to say than before.
	moved() bool
	// ready says by loads whether there is something to be taken.
	ready() bool
	// check is ready, and whether it has ended; an error says that it was closed. Of the peer's life the system is asked only if askSystem.
	check(askSystem bool) (bool, error)
	// arm says in its word that somebody sleeps, without any order.
	arm(n *sleeper)
	// longest is how long the sleep may last: ordered says whether a membarrier has ordered all words that ask for one.
	longest(ordered bool) time.Duration
	disarm()
}

// endSource is an end of a ring or topic.
type endSource struct {
	*endpoint
	side
	armed time.Duration
}

func (e *endSource) handle() *endpoint { return e.endpoint }

func (e *endSource) same(other selectable) bool {
	o, is := other.(interface{ handle() *endpoint })
	return is && o.handle() == e.endpoint
}

// open lets the wait in, unless the handle is closed.
func (e *endSource) open() error {
	e.enter()
	if e.isClosed() {
		e.leave()
		return e.fail(Detached)
	}
	return nil
}

func (e *endSource) end() { e.leave() }

func (e *endSource) moved() bool {
	word, seen := e.position()
	return atomic.LoadUint64(word) != seen || e.isShut()
}

// ready: one that is being closed is not, whatever it holds; the check that follows says so.
func (e *endSource) ready() bool {
	if e.isClosed() {
		return false
	}
	over, err := e.side.ready()
	return over || err != nil || e.isShut()
}

func (e *endSource) check(askSystem bool) (bool, error) {
	if e.isClosed() {
		return false, e.fail(Detached)
	}
	if e.isShut() {
		return true, nil
	}
	over, err := e.decide(e.side, askSystem || e.wait.peerWasDead)
	return over || err != nil, nil
}

func (e *endSource) arm(n *sleeper) {
	e.wait.notifier.selecting.Store(true)
	var expected uint32
	expected, e.armed = e.words.arm(e.endpoint)
	n.word(e.wait.notifier.word, expected)
	n.capable = n.capable || e.membarrierCapable
}

func (e *endSource) longest(ordered bool) time.Duration {
	return e.endpoint.ordered(e.membarrierCapable && ordered, e.armed)
}

func (e *endSource) disarm() {
	e.words.disarm(e.endpoint)
	e.wait.notifier.selecting.Store(false)
}

// receiving is the side of a wait for a message that takes nothing.
type receiving struct{ *Receiver }

// ready leaves it to the next receive to say that the subscriber was ejected.
func (r receiving) ready() (bool, error) {
	over, err := r.Receiver.ready()
	if err != nil && r.topic != nil && kindOf(err) == Lagged {
		r.topic.lagged = true
	}
	return over, err
}

type receiverSource struct{ endSource }

func (r *Receiver) source() selectable {
	return &receiverSource{endSource{endpoint: &r.endpoint, side: receiving{r}}}
}

func (r *receiverSource) begin() error {
	if err := r.open(); err != nil {
		return err
	}
	if from := r.side.(receiving).Receiver; from.head != from.released && !r.isShut() {
		r.leave()
		return r.failf(Busy, "a message or batch of this %s is out: release it first", from.doer())
	}
	return nil
}

// doer is what the handle is called.
func (r *Receiver) doer() string {
	if r.topic != nil {
		return "subscriber"
	}
	return "receiver"
}

// Room is a [Source] for [Select] and [Selector]: it is ready when a message of n bytes can be sent without waiting, or never, which
// TrySend says.
func (s *Sender) Room(n int) Source { return &Room{sender: s, n: n} }

// Room is room for a message in a sender or publisher, see [Sender.Room].
type Room struct {
	sender *Sender
	n      int
}

func (r *Room) source() selectable {
	return &roomSource{endSource: endSource{endpoint: &r.sender.endpoint, side: r.sender}, sender: r.sender, n: r.n}
}

type roomSource struct {
	endSource
	sender *Sender
	n      int
}

func (r *roomSource) begin() error {
	if err := r.open(); err != nil {
		return err
	}
	s := r.sender
	switch {
	case s.isShut():
		return nil
	case r.n < 0:
		s.leave()
		return s.failf(InvalidArgument, "room for %d bytes: expected 0 or more", r.n)
	case s.room >= 0:
		s.leave()
		return s.failf(Busy, "a slot of this sender is open: commit or abort it first")
	}
	s.need = s.frameSize(uint64(r.n))
	return nil
}

// never: it is too long, which the call says that is to send it.
func (r *roomSource) never() bool { return uint64(r.n) > r.sender.maxLen }

func (r *roomSource) moved() bool { return r.never() || r.endSource.moved() }

func (r *roomSource) ready() bool { return r.never() || r.endSource.ready() }

func (r *roomSource) check(askSystem bool) (bool, error) {
	over, err := r.endSource.check(askSystem)
	return err == nil && (over || r.never()), err
}

// arm: what was committed unflushed goes before the wait, as in every other one.
func (r *roomSource) arm(n *sleeper) {
	r.sender.flushAny()
	r.endSource.arm(n)
}

type regionSource struct {
	r *Region
	// armed: it is counted among those that sleep.
	armed bool
}

func (r *Region) source() selectable { return &regionSource{r: r} }

func (s *regionSource) same(other selectable) bool {
	o, is := other.(*regionSource)
	return is && o.r == s.r
}

func (s *regionSource) begin() error { return s.r.reading("waiting") }

func (s *regionSource) end() { s.r.leave() }

func (s *regionSource) moved() bool { return s.ready() }

func (s *regionSource) ready() bool { return s.r.count() != s.r.seen.Load() }

func (s *regionSource) check(askSystem bool) (bool, error) {
	if s.r.users.Load() < 0 {
		return false, s.r.errClosed("waiting")
	}
	return s.ready() || askSystem && s.r.nameGone(), nil
}

func (s *regionSource) arm(n *sleeper) {
	if !s.armed {
		s.armed = true
		s.r.selecting(1)
	}
	n.word(s.r.notifyWord(), s.r.arm())
}

// longest: its word is ordered by its own exchange.
func (s *regionSource) longest(bool) time.Duration {
	if s.r.m.readOnly {
		return regionPollInterval
	}
	return pollInterval
}

func (s *regionSource) disarm() {
	if s.armed {
		s.armed = false
		s.r.selecting(-1)
	}
}

type listenerSource struct{ l *Listener }

func (l *Listener) source() selectable { return listenerSource{l} }

func (s listenerSource) same(other selectable) bool { return other == selectable(s) }

// begin, and check: from now on those who come are served.
func (s listenerSource) begin() error {
	if s.l.ending() {
		return failf(Detached, "the listener is closed")
	}
	return nil
}

func (listenerSource) end() {}

func (s listenerSource) moved() bool { return s.ready() }

func (s listenerSource) ready() bool { return s.l.offered.Load() != 0 }

func (s listenerSource) check(bool) (bool, error) {
	if s.ready() {
		return true, nil
	}
	s.l.try(true)
	return false, s.begin()
}

func (s listenerSource) arm(n *sleeper) { n.word(&s.l.arrived.word, s.l.arrived.arm()) }

func (listenerSource) longest(bool) time.Duration { return pollInterval }

func (listenerSource) disarm() {}

// Readable is a [Source] of what has a descriptor, such as an *os.File, a net.Conn or a net.Listener: ready when a read, or an
// Accept, would not block, which is also at its end. While another goroutine reads from it, it may not be ready any more afterwards.
func Readable(c syscall.Conn) Source { return &readable{conn: c} }

// Descriptor is [Readable] for a descriptor's number. It must stay open as long as it is waited for.
func Descriptor(fd int) Source { return &readable{fd: fd} }

type readable struct {
	conn syscall.Conn
	fd   int
}

func (r *readable) source() selectable {
	if r.conn == nil {
		return newDescriptorSource(r.fd, nil, nil)
	}
	conn, err := r.conn.SyscallConn()
	return newDescriptorSource(-1, conn, err)
}

// descriptorSource has a descriptor's number, or a connection that knows it.
type descriptorSource struct {
	conn  syscall.RawConn
	wrong error
	fd    int
	// poll and armIn are functions as values, so that passing them on does not allocate; the other fields are what they are told and what
	// they say.
	poll, armIn func(fd uintptr)
	readable    bool
	parking     *sys.Parking
	target      int
	err         error
}

func newDescriptorSource(fd int, conn syscall.RawConn, wrong error) *descriptorSource {
	d := &descriptorSource{fd: fd, conn: conn, wrong: wrong}
	d.poll = func(fd uintptr) { d.readable = sys.Readable(int(fd)) }
	d.armIn = func(fd uintptr) { d.err = d.parking.ArmDescriptor(d.target, int(fd)) }
	return d
}

// control calls f with the descriptor, which stays open meanwhile; an error says that it is closed.
func (d *descriptorSource) control(f func(fd uintptr)) error {
	if d.conn == nil {
		f(uintptr(d.fd))
		return nil
	}
	return d.conn.Control(f)
}

// armTarget has the kernel wait until it is readable. One that is closed meanwhile is found by the check that follows each sleep.
func (d *descriptorSource) armTarget(parking *sys.Parking, target int) error {
	d.parking, d.target, d.err = parking, target, nil
	_ = d.control(d.armIn)
	d.parking = nil
	return d.err
}

// same: one that is named twice does no harm.
func (*descriptorSource) same(selectable) bool { return false }

func (d *descriptorSource) begin() error {
	if d.wrong != nil {
		return osError(d.wrong, "asking for a descriptor")
	}
	return nil
}

func (*descriptorSource) end() {}

func (*descriptorSource) moved() bool { return false }

// ready: it takes a system call to know.
func (*descriptorSource) ready() bool { return false }

func (d *descriptorSource) check(bool) (over bool, err error) {
	if d.control(d.poll) != nil {
		return false, failf(Detached, "it is closed")
	}
	return d.readable, nil
}

func (d *descriptorSource) arm(n *sleeper) { n.descriptor(d) }

func (*descriptorSource) longest(bool) time.Duration { return pollInterval }

func (*descriptorSource) disarm() {}
