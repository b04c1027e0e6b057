package ramway

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// ServeOptions say what a [Server] gives its clients. The zero value means the defaults.
type ServeOptions struct {
	// Capacity is the size of both rings of every client in bytes, each rounded up to a power of two of at least a page; 0 is 1 MiB.
	Capacity int64
	// MaxClients is how many clients there may be at a time; one beyond is refused (ErrBusy). 0 is 128; below 0 is ErrInvalidArgument.
	MaxClients int
	// MaxInFlight is how many calls a client may have in flight, at most 1,048,576; 0 is 1024. Clients keep to it; a call beyond
	// is answered with StatusOverloaded.
	MaxInFlight int
	// MaxBytes is how many bytes of requests and replies are copied for one client: a request beyond is answered with StatusOverloaded, a
	// reply beyond with StatusReplyTooLarge. 0 is four times the capacity; below 0 is ErrInvalidArgument.
	MaxBytes int64
	// Pool is how many handlers run at a time, each in a goroutine; further calls wait, and while several clients wait none has more than
	// half of the places. A stream that waits for its client has no place. 0 is 1024; below 0 is ErrInvalidArgument.
	Pool int
	// Align, Mode, AllowUIDs, HandshakeTimeout, Wait and NoMembarrier are as in [ListenOptions]; Wait is how the server waits for requests.
	Align            int
	Mode             fs.FileMode
	AllowUIDs        []uint32
	HandshakeTimeout time.Duration
	Wait             WaitMode
	NoMembarrier     bool
}

// handlersDefault is how many handlers run at a time unless another number is asked for.
const handlersDefault = 1024

// Server answers calls of any number of [Client]s, of any language. It is safe for any number of goroutines.
//
// Each client has a bus of its own. One that sends what no correct client does is dropped, and no other is disturbed; one that does not read
// its replies has them parked, within MaxBytes, and holds up nobody else.
//
//	server, err := ramway.BindServer("store", ramway.ServeOptions{})
//	if err != nil { ... }
//	err = server.Handle(7, func(ctx context.Context, r *ramway.Request) ([]byte, error) {
//		value, known := values[string(r.Body)]
//		if !known {
//			return nil, ramway.Fail(404, "no such key")
//		}
//		return value, nil
//	})
//	err = server.Serve(ctx)
type Server struct {
	name        string
	listener    *Listener
	pool        handlerPool
	maxInFlight uint32
	maxBytes    uint64

	// methods are replaced by a copy, with methodsMu, and read by connections without it.
	methodsMu sync.Mutex
	methods   atomic.Pointer[map[uint32]*serverMethod]

	// mu is never taken while a connection's is held, nor the other way round.
	mu    sync.Mutex
	conns map[*serverConn]struct{}
	state serverState
	// changed tells Shutdown that a client has no call left, or has gone.
	changed chan struct{}
	// over is closed when the server has ended.
	over chan struct{}
}

type serverState uint8

const (
	serverBound serverState = iota
	serverServing
	serverDraining
)

// BindServer listens for clients at a name in RAMWAY_DIR, or at a path (with a '/'). They are served by [Server.Serve], and wait until then.
//
// Errors: as for [Bind].
func BindServer(name string, o ServeOptions) (*Server, error) {
	s, err := bindServer(name, o)
	if err != nil {
		return nil, about(err, "listening at", name)
	}
	return s, nil
}

func bindServer(name string, o ServeOptions) (*Server, error) {
	if o.MaxClients < 0 || o.MaxInFlight < 0 || o.MaxBytes < 0 || o.Pool < 0 {
		return nil, failf(InvalidArgument, "MaxClients is %d, MaxInFlight %d, MaxBytes %d, Pool %d: expected at least 1, or 0 for the default",
			o.MaxClients, o.MaxInFlight, o.MaxBytes, o.Pool)
	}
	if o.MaxInFlight > rpcInFlightMax {
		return nil, failf(InvalidArgument, "MaxInFlight is %d: expected at most %d", o.MaxInFlight, rpcInFlightMax)
	}
	orDefault := func(n, otherwise int) int {
		if n == 0 {
			return otherwise
		}
		return n
	}
	inFlight := uint32(orDefault(o.MaxInFlight, rpcInFlightDefault))
	l, err := listen(name, ListenOptions{
		Capacity: o.Capacity, Align: o.Align, Mode: o.Mode, AllowUIDs: o.AllowUIDs, HandshakeTimeout: o.HandshakeTimeout, Wait: o.Wait,
		NoMembarrier: o.NoMembarrier, terms: terms{features: rpcFeatures, maxInFlight: inFlight},
	})
	if err != nil {
		return nil, err
	}
	l.busesMax = orDefault(o.MaxClients, rpcClientsDefault)
	l.start()
	s := &Server{
		name: name, listener: l, maxInFlight: inFlight, maxBytes: uint64(o.MaxBytes),
		conns: map[*serverConn]struct{}{}, changed: make(chan struct{}, 1), over: make(chan struct{}),
	}
	s.methods.Store(&map[uint32]*serverMethod{})
	if s.maxBytes == 0 {
		s.maxBytes = rpcBytesFactor * l.plan.spec.blocks[0].capacity
	}
	s.pool.limit = orDefault(o.Pool, handlersDefault)
	return s, nil
}

// Handle has a handler answer the calls of a method, by number, below 0xFFFF0000. A stream is answered with one element. It may be called at
// any time; calls that came before had StatusNoSuchMethod.
//
// Errors: ErrAlreadyExists if the method has a handler, ErrInvalidArgument for a number that is Ramway's own.
func (s *Server) Handle(method uint32, h Handler) error {
	return s.handle(method, &serverMethod{one: h})
}

// HandleNamed is [Server.Handle] by name: the number is [MethodID] of it, which is ErrAlreadyExists also where another name has the same. A
// name has no control characters (ErrInvalidArgument).
func (s *Server) HandleNamed(name string, h Handler) error {
	return s.handleNamed(name, &serverMethod{name: name, one: h})
}

// HandleInline is [Server.Handle] with a handler that is called without a goroutine of its own.
func (s *Server) HandleInline(method uint32, h InlineHandler) error {
	return s.handle(method, &serverMethod{inline: h})
}

// HandleInlineNamed is [Server.HandleInline] by name, as [Server.HandleNamed].
func (s *Server) HandleInlineNamed(name string, h InlineHandler) error {
	return s.handleNamed(name, &serverMethod{name: name, inline: h})
}

// HandleStream is [Server.Handle] for a method whose reply is a stream.
//
//	err = server.HandleStream(9, func(ctx context.Context, r *ramway.Request) iter.Seq2[[]byte, error] {
//		return func(yield func([]byte, error) bool) {
//			for _, line := range lines {
//				if !yield(line, nil) {
//					return
//				}
//			}
//		}
//	})
func (s *Server) HandleStream(method uint32, h StreamHandler) error {
	return s.handle(method, &serverMethod{stream: h})
}

// HandleStreamNamed is [Server.HandleStream] by name, as [Server.HandleNamed].
func (s *Server) HandleStreamNamed(name string, h StreamHandler) error {
	return s.handleNamed(name, &serverMethod{name: name, stream: h})
}

func (s *Server) handleNamed(name string, m *serverMethod) error {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return about(failf(InvalidArgument, "the method's name %q has control characters", name), "serving", s.name)
	}
	return s.handle(MethodID(name), m)
}

func (s *Server) handle(method uint32, m *serverMethod) error {
	if method >= methodReserved {
		return about(failf(InvalidArgument, "method %#x is Ramway's own: expected a number below %#x", method, uint32(methodReserved)),
			"serving", s.name)
	}
	s.methodsMu.Lock()
	defer s.methodsMu.Unlock()
	methods := maps.Clone(*s.methods.Load())
	if other := methods[method]; other != nil {
		return about(failf(AlreadyExists, "method %d has a handler already (%q, now %q): names whose numbers are the same need another name",
			method, other.name, m.name), "serving", s.name)
	}
	methods[method] = m
	s.methods.Store(&methods)
	return nil
}

// method is the method of a number; nil if there is none.
func (s *Server) method(number uint32) *serverMethod { return (*s.methods.Load())[number] }

// describe is the body of the answer to methodDescribe.
func (s *Server) describe() []byte {
	methods := *s.methods.Load()
	var b []byte
	for _, number := range slices.Sorted(maps.Keys(methods)) {
		b = strconv.AppendUint(b, uint64(number), 10)
		if name := methods[number].name; name != "" {
			b = append(append(b, ' '), name...)
		}
		b = append(b, '\n')
	}
	return b
}

// Serve takes clients and answers their calls until [Server.Shutdown] has ended the server, with nil, or ctx is done: then running calls
// are cancelled, the server is closed, and the error is ErrInterrupted or ErrTimedOut with the context's cause. nil is a context that is never done.
//
// Errors: ErrBusy if it serves already, ErrDetached if it was shut down.
func (s *Server) Serve(ctx context.Context) error {
	s.mu.Lock()
	state := s.state
	if state == serverBound {
		s.state = serverServing
	}
	s.mu.Unlock()
	switch state {
	case serverServing:
		return s.failure(failf(Busy, "the server serves already"))
	case serverDraining:
		return s.failure(failf(Detached, "the server was shut down"))
	}
	ctx = orNever(ctx)
	for {
		bus, err := s.listener.Accept(ctx)
		switch kindOf(err) {
		case 0:
			s.welcome(bus)
		case Detached:
			<-s.over
			return nil
		case TimedOut, Interrupted:
			_ = s.Shutdown(ctx)
			return s.failure(contextError(ctx))
		}
		// Else there was no memory or no descriptor for a client, which was told; the listener pauses by itself.
	}
}

// failure is an error of serving.
func (s *Server) failure(err error) error { return about(err, "serving", s.name) }

// welcome begins to serve a client.
func (s *Server) welcome(bus *Bus) {
	c := newServerConn(s, bus)
	s.mu.Lock()
	c.ledger.draining = s.state == serverDraining
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	go c.serve()
}

// gone is for a client that is not served any more.
func (s *Server) gone(c *serverConn) {
	// Before it is counted no more: who sees by Clients that there is a place finds it free.
	s.listener.busEnded()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.progress()
}

// progress is for Shutdown.
func (s *Server) progress() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Clients is how many clients are connected.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Path is the socket's path, which clients can be given in place of the name.
func (s *Server) Path() string { return s.listener.Path() }

// shutdownGrace is how long calls that were cancelled by Shutdown have to end.
const shutdownGrace = pollInterval

// Shutdown ends the server: it takes no new client, answers new calls with StatusDraining, and waits until the running ones have ended and their
// replies are published. When ctx is done it cancels the rest, waits another 100 ms for their answers, and closes. A client whose
// calls all have their replies is told ErrClosed, another one ErrPeerDead. A handler that does not return is not waited for any longer.
//
// The error is nil if all calls ended by themselves; else ErrTimedOut or ErrInterrupted with the context's cause. nil is a context that
// is never done. Further calls wait for the same end.
func (s *Server) Shutdown(ctx context.Context) error {
	ctx = orNever(ctx)
	s.mu.Lock()
	first := s.state != serverDraining
	s.state = serverDraining
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	if !first {
		select {
		case <-s.over:
			return nil
		case <-ctx.Done():
		}
		s.stopAll()
		<-s.over
		return s.failure(contextError(ctx))
	}
	// The buses that nobody has accepted are closed by it.
	closed := s.listener.Close()
	for _, c := range conns {
		c.drain()
	}
	err := s.drained(ctx)
	if err != nil {
		s.stopAll()
		grace, cancel := context.WithTimeout(context.Background(), shutdownGrace)
		_ = s.drained(grace)
		cancel()
		err = s.failure(err)
	}
	s.mu.Lock()
	conns = slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.leave()
	}
	for _, c := range conns {
		<-c.ended
	}
	close(s.over)
	return errors.Join(err, closed)
}

// stopAll cancels the calls of all clients.
func (s *Server) stopAll() {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.stopAll()
	}
}

// drained waits until no client has a call left.
func (s *Server) drained(ctx context.Context) error {
	for {
		s.mu.Lock()
		conns := slices.Collect(maps.Keys(s.conns))
		s.mu.Unlock()
		if !slices.ContainsFunc(conns, func(c *serverConn) bool { return !c.idle() }) {
			return nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return contextError(ctx)
		}
	}
}
