package ramway

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// ListenOptions say what a [Listener] gives those who connect. The zero value means the defaults.
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
}

const (
	handshakeTimeout = time.Second
	backlogDefault   = 128
	// handshakesMax is how many handshakes run at a time; more connectors wait in the backlog.
	handshakesMax = 64
)

// plan is what every bus gets.
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
			toPeer = defaultCapacity
		}
		fromPeer = toPeer
	case o.Capacity != 0:
		return nil, failf(InvalidArgument, "Capacity stands for both directions: say either it, or ToPeer and FromPeer")
	}
	s, err := busSpec(toPeer, fromPeer, o.Align)
	if err != nil {
		return nil, err
	}
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
// to 64 handshakes run side by side. They begin while somebody is in [Listener.Accept]; until then connectors wait. As a
// net.Listener, it listens until [Listener.Close] or the end of the process, whoever still knows it.
type Listener struct {
	plan    *busPlan
	options ListenOptions
	place   *place
	link    *namedLink
	socket  *busSocket

	// results are what Accept returns, each handed to just one call.
	results chan accepted
	// slots has one element for each handshake that is under way or waits for an Accept to take its bus.
	slots chan struct{}
	// welcomes, if there is one, has an element for each connector that was told that it is welcome.
	welcomes chan struct{}
	// done is closed by Close, which then waits for workers.
	done    chan struct{}
	workers sync.WaitGroup
	closing sync.Once
	failure error

	mu sync.Mutex
	// wanted: more calls of Accept wait, or Close was called.
	wanted *sync.Cond
	// asking is how many calls of Accept wait.
	asking int
	// ends are those of the handshakes under way.
	ends        map[*busEnd]struct{}
	closed      bool
	refused     uint64
	lastRefusal error
}

// accepted is what one call of Accept returns.
type accepted struct {
	bus *Bus
	err error
}

// Listen starts to listen at a name in RAMWAY_DIR, or at a path (with a '/'). The name is gone when the listener is
// closed; what a killed one left is taken over.
//
// Errors: ErrAlreadyExists if a live listener has the name, or something that is not ours to remove (it stays as it is);
// ErrInvalidArgument for a bad name, capacity or alignment; ErrPermissionDenied, ErrNoSpace, ErrUnsupported, ErrOs.
func Listen(name string, o ListenOptions) (*Listener, error) {
	l, err := listen(name, o)
	if err != nil {
		return nil, about(err, "listening at", name)
	}
	l.start()
	return l, nil
}

// ListenOnce listens, takes one peer, and removes the name again. At most one connector is ever told that it is
// welcome, so none believes that it is connected and is not.
//
// Errors: those of [Listen] and [Listener.Accept].
func ListenOnce(ctx context.Context, name string, o ListenOptions) (*Bus, error) {
	l, err := listen(name, o)
	if err != nil {
		return nil, about(err, "listening at", name)
	}
	l.welcomes = make(chan struct{}, 1)
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
		results: make(chan accepted),
		slots:   make(chan struct{}, handshakesMax),
		done:    make(chan struct{}),
		ends:    make(map[*busEnd]struct{}),
	}
	l.wanted = sync.NewCond(&l.mu)
	if l.link, err = lockListener(at.segment, Options{}); err != nil {
		at.close()
		return nil, err
	}
	if l.socket, err = l.bind(); err != nil {
		_ = l.link.close()
		at.close()
		return nil, err
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
// no memory for a bus and ErrOs if there are no descriptors left (the connector was told, and the listener goes on at
// the next call). What connectors do wrong is no error here: see [Listener.Refused].
func (l *Listener) Accept(ctx context.Context) (*Bus, error) {
	ctx = orNever(ctx)
	l.ask(1)
	defer l.ask(-1)
	select {
	case r := <-l.results:
		if r.err != nil {
			return nil, about(r.err, "accepting at", l.Path())
		}
		return r.bus, nil
	case <-l.done:
		return nil, &Error{Kind: Detached, Op: "accepting at", Name: l.Path(), Text: "the listener is closed"}
	case <-ctx.Done():
		return nil, about(contextError(ctx), "accepting at", l.Path())
	}
}

func (l *Listener) ask(more int) {
	l.mu.Lock()
	l.asking += more
	l.mu.Unlock()
	if more > 0 {
		l.wanted.Signal()
	}
}

// Path is the socket's path, which connectors can be given in place of the name.
func (l *Listener) Path() string { return l.place.socketPath() }

// Refused is how many connectors have been refused or have given up so far, and why the last one was, for logs.
func (l *Listener) Refused() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused, l.lastRefusal
}

// Close stops listening and removes the name. Calls of Accept end with ErrDetached, and connectors that were not yet
// served wait for the next listener; buses live on. Safe from any goroutine, and more than once.
func (l *Listener) Close() error {
	l.closing.Do(func() {
		l.mu.Lock()
		l.closed = true
		for end := range l.ends {
			end.expireIn(0)
		}
		l.mu.Unlock()
		close(l.done)
		l.wanted.Broadcast()
		// While our lock says that this name is ours. A connector that comes in between is told by the hang-up.
		cleared := l.place.clear()
		closed := l.socket.close()
		l.workers.Wait()
		l.failure = errors.Join(cleared, closed, l.link.close())
		l.place.close()
	})
	return l.failure
}

// takeConnections begins a handshake with each connector, while somebody asks for a bus.
func (l *Listener) takeConnections() {
	defer l.workers.Done()
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.done:
			return
		}
		if !l.awaitDemand() {
			return
		}
		fd, err := l.nextConnection()
		switch {
		case err != nil:
			// One call of Accept has to take it, so a failure that lasts does not spin.
			l.deliver(accepted{err: err})
		case fd >= 0:
			l.workers.Add(1)
			go l.serve(fd)
			// Its slot is the handshake's.
			continue
		}
		<-l.slots
	}
}

// awaitDemand waits until a call of Accept waits; false: the listener is closed.
func (l *Listener) awaitDemand() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.asking == 0 && !l.closed {
		l.wanted.Wait()
	}
	return !l.closed
}

// nextConnection waits for a connector; -1 if nobody asks for one any more.
func (l *Listener) nextConnection() (fd int, err error) {
	failed := l.socket.raw.Read(func(socket uintptr) bool {
		for {
			l.mu.Lock()
			unasked := l.asking == 0
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
		// Closed: the next look at the demand ends it all.
		return -1, nil
	case err != nil:
		return -1, osError(err, "accepting a connection")
	}
	return fd, nil
}

// deliver hands something to a call of Accept, now or later; false: the listener was closed.
func (l *Listener) deliver(a accepted) bool {
	select {
	case l.results <- a:
		return true
	case <-l.done:
		return false
	}
}
