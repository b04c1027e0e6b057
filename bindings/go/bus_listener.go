package ramway

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// ListenOptions say what a [Listener] gives those who connect. The zero value means the defaults.
//
// No option: at most 64 handshakes run at a time. One connector more ends the one that has been silent the longest, which
// may try again; so silent ones keep nobody out.
type ListenOptions struct {
	// Capacity is the size of both rings of every bus in bytes, each rounded up to a power of two of at least a page; 0
	// is 1 MiB.
	Capacity int64
	// ToPeer and FromPeer, if either is set, are the sizes of the ring to the peer and of the one from it, in place of
	// Capacity; the one that is 0 is left out.
	ToPeer, FromPeer int64
	// Align is what each payload's address is a multiple of, in bytes: a power of two from 16 to 4096; 0 is 16.
	Align int
	// Mode is the permission bits of the socket, exactly, whatever the umask; 0 is 0600, or 0666 with AllowUIDs.
	Mode fs.FileMode
	// AllowUIDs are other users who may connect; without it, only our own effective user. They need a path that they
	// can search: give the listener a path, or RAMWAY_DIR such a directory. A user without a number in our user
	// namespace is refused even if its stand-in (usually 65534) is named.
	AllowUIDs []uint32
	// HandshakeTimeout is how long a connector may take for each message of the handshake before it is refused; 0 is 1 s,
	// [Forever] no limit, below 0 ErrInvalidArgument.
	HandshakeTimeout time.Duration
	// Backlog is how many connectors may wait for [Listener.Accept] at a time; others keep trying until their
	// deadline. 0 is 128; the kernel caps it at net.core.somaxconn. Below 0 is ErrInvalidArgument.
	Backlog int
	// Wait is how the ends of every bus wait.
	Wait WaitMode
	// Guard is [Options.Guard].
	Guard bool
	// NoMembarrier is [Options.NoMembarrier].
	NoMembarrier bool
	// terms are those of an RPC's server.
	terms terms
}

// plan is what every bus gets: its rings and options.
func (o *ListenOptions) plan(name string) (*busPlan, error) {
	if err := errors.Join(o.Wait.check(), checkTimeout("HandshakeTimeout", o.HandshakeTimeout)); err != nil {
		return nil, err
	}
	if o.Backlog < 0 {
		return nil, failf(InvalidArgument, "a backlog of %d: expected 0 or more", o.Backlog)
	}
	toPeer, fromPeer := o.ToPeer, o.FromPeer
	switch {
	case toPeer == 0 && fromPeer == 0:
		toPeer = o.Capacity
		if toPeer == 0 {
			toPeer = capacityDefault
		}
		fromPeer = toPeer
	case o.Capacity != 0:
		return nil, failf(InvalidArgument, "Capacity stands for both directions: give either it, or ToPeer and FromPeer")
	}
	s, err := busSpec(toPeer, fromPeer, o.Align)
	if err != nil {
		return nil, err
	}
	s.features = o.terms.features
	options := Options{Wait: o.Wait, Guard: o.Guard, NoMembarrier: o.NoMembarrier}
	return &busPlan{name: name, spec: s, options: options}, nil
}

func (o *ListenOptions) socketMode() uint32 {
	switch {
	case o.Mode != 0:
		return uint32(o.Mode.Perm())
	case len(o.AllowUIDs) != 0:
		return 0o666
	}
	return 0o600
}

// Listener accepts connectors, each with a [Bus] of its own memory. Safe for any number of goroutines.
//
// A connector that is silent, breaks the handshake or is another user's is refused and does not disturb the others: up
// to 64 handshakes run side by side. They begin while somebody is in [Listener.Accept], or after [Listener.TryAccept] found
// nobody; until then connectors wait. Like a net.Listener, it listens until [Listener.Close] or the end of the process,
// also when nothing refers to it any more.
type Listener struct {
	plan    *busPlan
	options ListenOptions
	place   *place
	link    *lockLink
	socket  *busSocket

	// results are what Accept returns, each handed to just one call.
	results chan accepted
	// offered is how many of them wait to be taken. arrived wakes the Selectors that wait for one.
	offered atomic.Int32
	arrived localWord
	// reserve is a descriptor of nothing that matters. It is closed to tell connectors that no others are left. -1: not held.
	// Only takeConnections and the end of Close use it.
	reserve int
	// done is closed by Close, which then waits for the workers.
	done    chan struct{}
	workers sync.WaitGroup
	closing sync.Once
	failure error

	mu sync.Mutex
	// changed: anything below did.
	changed *sync.Cond
	// asking is how many calls of Accept wait; trying: a TryAccept has found nobody.
	asking int
	trying bool
	// peersLeft is how many connectors may still be told that they are welcome, those under way included.
	peersLeft int
	// shakes are the handshakes that are under way or wait for an Accept to take their bus, the oldest first.
	shakes []*handshake
	closed bool
	// busesMax is how many buses there may be at a time, 0 for as many as come; buses is how many there are.
	busesMax, buses int
	refused         uint64
	lastRefusal     error
}

// accepted is what one call of Accept returns.
type accepted struct {
	bus *Bus
	err error
}

// Bind starts to listen at a name in RAMWAY_DIR, or at a path (with a '/'). The name is gone when the listener is
// closed; what a killed one left is removed.
//
// Errors: ErrAlreadyExists if a live listener has the name, or something that is not ours to remove (it stays as it is),
// such as a socket where another program listens;
// ErrInvalidArgument for a bad name, capacity or alignment; ErrPermissionDenied, ErrNoSpace, ErrUnsupported, ErrOs.
//
//	l, err := ramway.Bind("engine", ramway.ListenOptions{})
//	if err != nil { ... }
//	defer l.Close()
//	bus, err := l.Accept(ctx)
func Bind(name string, o ListenOptions) (*Listener, error) {
	l, err := listen(name, o)
	if err != nil {
		return nil, about(err, "listening at", name)
	}
	l.start()
	return l, nil
}

// Listen listens, takes one peer, and removes the name again. At most one connector is ever told that it is
// welcome, so no connector takes itself for connected and is not.
//
// Errors: those of [Bind] and [Listener.Accept].
func Listen(ctx context.Context, name string, o ListenOptions) (*Bus, error) {
	l, err := listen(name, o)
	if err != nil {
		return nil, about(err, "listening at", name)
	}
	l.peersLeft = 1
	l.start()
	bus, err := l.Accept(ctx)
	if closed := l.Close(); err == nil && closed != nil {
		_ = bus.Close()
		return nil, closed
	}
	return bus, err
}

func listen(name string, o ListenOptions) (*Listener, error) {
	plan, err := o.plan(name)
	if err != nil {
		return nil, err
	}
	at, err := resolvePlace(name, true)
	if err != nil {
		return nil, err
	}
	l := &Listener{
		plan: plan, options: o, place: at,
		results:   make(chan accepted),
		done:      make(chan struct{}),
		peersLeft: math.MaxInt,
	}
	l.changed = sync.NewCond(&l.mu)
	if l.link, err = lockListener(at.segment, Options{}); err != nil {
		at.close()
		return nil, err
	}
	if l.socket, err = l.bind(); err != nil {
		_ = l.link.close()
		at.close()
		return nil, err
	}
	if l.reserve, err = sys.Dup(at.dir.dir); err != nil {
		l.reserve = -1
	}
	return l, nil
}

// bind makes the socket. The lock says that the place is ours.
func (l *Listener) bind() (*busSocket, error) {
	if err := l.place.clear(); err != nil {
		return nil, err
	}
	backlog := l.options.Backlog
	if backlog == 0 {
		backlog = backlogDefault
	}
	return l.place.listen(l.options.socketMode(), backlog)
}

func (l *Listener) start() {
	l.workers.Add(1)
	go l.takeConnections()
}

// Accept is the next bus, waiting for it until the context ends, which it notices within 10 ms; nil is a context that is
// never done.
//
// Errors: ErrInterrupted and ErrTimedOut of the context; ErrDetached once the listener is closed; ErrNoSpace if there is
// no memory for a bus and ErrOs if there are no descriptors left (the connectors were told; the listener goes on at the
// next call, which does not accept for 100 ms). What connectors do wrong is no error here: see
// [Listener.LastRefusal].
func (l *Listener) Accept(ctx context.Context) (*Bus, error) {
	ctx = orNever(ctx)
	l.ask(1)
	defer l.ask(-1)
	select {
	case r := <-l.results:
		return l.taken(r)
	case <-l.done:
		return l.taken(accepted{err: failf(Detached, "the listener is closed")})
	case <-ctx.Done():
		return l.taken(accepted{err: contextError(ctx)})
	}
}

// taken is what a call of Accept returns.
func (l *Listener) taken(r accepted) (*Bus, error) {
	if r.err != nil {
		return nil, about(r.err, "accepting at", l.Path())
	}
	return r.bus, nil
}

// TryAccept is [Listener.Accept] that does not wait: ErrEmpty if no connector was served yet. From then on those who come
// are served in the background, so that a later call has them.
func (l *Listener) TryAccept() (*Bus, error) {
	select {
	case r := <-l.results:
		l.try(false)
		return l.taken(r)
	case <-l.done:
		return l.taken(accepted{err: failf(Detached, "the listener is closed")})
	default:
	}
	if l.offered.Load() != 0 {
		// It is about to be offered.
		runtime.Gosched()
		select {
		case r := <-l.results:
			l.try(false)
			return l.taken(r)
		default:
		}
	}
	l.try(true)
	return nil, ErrEmpty
}

func (l *Listener) try(more bool) {
	l.mu.Lock()
	changed := l.trying != more
	l.trying = more
	l.mu.Unlock()
	if changed {
		l.changed.Broadcast()
	}
}

func (l *Listener) ask(more int) {
	l.mu.Lock()
	l.asking += more
	l.mu.Unlock()
	l.changed.Broadcast()
}

// Path is the socket's path, which connectors can be given in place of the name.
func (l *Listener) Path() string { return l.place.socketPath() }

// Refused is how many connectors have been refused or have given up so far.
func (l *Listener) Refused() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// LastRefusal is why the last of them was, for logs; nil if none has been.
func (l *Listener) LastRefusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastRefusal
}

// refusal counts one.
func (l *Listener) refusal(why error) {
	l.mu.Lock()
	l.refused++
	l.lastRefusal = why
	l.mu.Unlock()
}

// Close stops listening and removes the name. Calls of Accept end with ErrDetached, and connectors that were not yet
// served wait for the next listener; buses live on. Safe from any goroutine, and more than once.
func (l *Listener) Close() error {
	l.closing.Do(func() {
		l.mu.Lock()
		l.closed = true
		for _, h := range l.shakes {
			h.end.expireIn(0)
		}
		l.mu.Unlock()
		close(l.done)
		l.changed.Broadcast()
		l.arrived.tell()
		// While our lock says that this name is ours. A connector that comes in between is told by the hang-up.
		unbound := l.place.unbind()
		closed := l.socket.close()
		l.workers.Wait()
		if l.reserve >= 0 {
			sys.Close(l.reserve)
		}
		l.failure = errors.Join(unbound, closed, l.link.close())
		l.place.close()
	})
	return l.failure
}

// takeConnections begins a handshake with each connector, while somebody asks for a bus.
func (l *Listener) takeConnections() {
	defer l.workers.Done()
	for l.awaitDemand() {
		fd, err := l.nextConnection()
		switch {
		case err != nil:
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				err = l.turnAway(err)
			}
			// One call of Accept has to take it, and a failure that lasts does not spin.
			if l.deliver(accepted{err: err}) {
				select {
				case <-time.After(acceptPause):
				case <-l.done:
				}
			}
		case fd >= 0:
			l.begin(fd)
		}
	}
}

// awaitDemand waits until a call of Accept waits, and a handshake can begin; false: the listener is closed.
func (l *Listener) awaitDemand() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for (l.unasked() || len(l.shakes) >= handshakesMax && l.silentLongest() == nil) && !l.closed {
		l.changed.Wait()
	}
	return !l.closed
}

// unasked: nobody wants a bus. With mu held.
func (l *Listener) unasked() bool { return l.asking == 0 && !l.trying }

// turnAway tells the connectors that wait that there are no descriptors, with the one that was kept in reserve.
func (l *Listener) turnAway(err error) error {
	why := failf(NoSpace, "there were no descriptors left")
	if l.reserve >= 0 {
		sys.Close(l.reserve)
		l.reserve = -1
	}
	l.socket.control(func(socket int) {
		for range turnedAwayMax {
			fd, err := sys.Accept(socket)
			if errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.ECONNABORTED) {
				continue
			}
			if err != nil {
				return
			}
			// It may be gone, which changes nothing.
			_ = sendHandshake(fd, refuse, NoSpace, 0, -1)
			sys.Close(fd)
			l.refusal(why)
		}
	})
	if fd, err := sys.Dup(l.place.dir.dir); err == nil {
		l.reserve = fd
	}
	var told *Error
	if errors.As(err, &told) {
		told.Text += ": no descriptors are left, and the connectors that waited were told so; raise RLIMIT_NOFILE (ulimit -n), " +
			"or close what is not used"
	}
	return err
}

// nextConnection waits for a connector; -1 if nobody asks for one any more.
func (l *Listener) nextConnection() (fd int, err error) {
	failed := l.socket.raw.Read(func(socket uintptr) bool {
		for {
			l.mu.Lock()
			unasked := l.unasked()
			l.mu.Unlock()
			if fd = -1; unasked {
				return true
			}
			fd, err = sys.Accept(int(socket))
			switch {
			case errors.Is(err, syscall.EAGAIN):
				fd, err = -1, nil
				return false
			// A connector that is gone already is not the listener's failure.
			case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.ECONNABORTED):
			default:
				return true
			}
		}
	})
	switch {
	case failed != nil:
		// Closed: awaitDemand ends it all.
		return -1, nil
	case err != nil:
		return -1, osError(err, "accepting a connection")
	}
	return fd, nil
}

// deliver hands something to a call of Accept, now or later; false: the listener was closed.
func (l *Listener) deliver(a accepted) bool {
	l.offered.Add(1)
	defer l.offered.Add(-1)
	l.arrived.tell()
	select {
	case l.results <- a:
		return true
	case <-l.done:
		return false
	}
}
