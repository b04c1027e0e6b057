package ramway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// ConnectOptions say how to connect to a [Listener]. The zero value means the defaults.
type ConnectOptions struct {
	// Timeout is how long to wait for a listener that is not there yet, does not accept, or is flooded. 0: as long as
	// the context says, and 10 s if that has no deadline. [Forever]: only the context ends it. Below 0 is
	// ErrInvalidArgument.
	Timeout time.Duration
	// AllowUIDs are other users whose listeners will do; without it, only those of our own effective user.
	AllowUIDs []uint32
	// Wait is how both ends wait.
	Wait WaitMode
	// Guard is [Options.Guard].
	Guard bool
	// NoMembarrier is [Options.NoMembarrier].
	NoMembarrier bool
}

// Connect connects to the listener of that name (a name in RAMWAY_DIR, or a path with a '/'), waiting for one that is
// not there yet or does not accept. It returns once the listener has served us; a context that is cancelled ends it
// within 10 ms, and nil is one that is never done.
//
// Errors: ErrNotFound if there was no listener until the deadline, ErrTimedOut if there was one but it did not serve
// us, ErrPermissionDenied if either side does not deal with the other's user or the socket cannot be reached,
// ErrAbiMismatch if the two sides speak different versions, ErrCorrupt or ErrPeerDead if the listener breaks the
// handshake, or what the listener gave as its reason (ErrNoSpace for example).
func Connect(ctx context.Context, name string, o ConnectOptions) (*Bus, error) {
	return connect(ctx, name, o, handshakeFeatures)
}

// connect is Connect to a listener whose bus requires these features.
func connect(ctx context.Context, name string, o ConnectOptions, features uint32) (*Bus, error) {
	if err := errors.Join(o.Wait.check(), checkTimeout("Timeout", o.Timeout)); err != nil {
		return nil, about(err, "connecting to", name)
	}
	ctx = orNever(ctx)
	timeout := o.Timeout
	if timeout == 0 {
		if _, bounded := ctx.Deadline(); bounded {
			timeout = Forever
		} else {
			timeout = connectTimeout
		}
	}
	c := connector{name: name, o: o, features: features, start: time.Now()}
	whole := ctx
	if timeout != Forever {
		var cancel context.CancelFunc
		whole, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	for pause := connectPauseMin; ; pause = min(2*pause, connectPauseMax) {
		bus, miss, err := c.attempt(whole)
		if err != nil {
			return nil, about(err, "connecting to the bus", name)
		}
		if bus != nil {
			return bus, nil
		}
		select {
		case <-time.After(pause):
		case <-whole.Done():
			return nil, c.gaveUp(ctx, miss)
		}
	}
}

// connector is one call of Connect.
type connector struct {
	name     string
	o        ConnectOptions
	features uint32
	start    time.Time
}

// gaveUp is what to say at the end of the time: what stood in the way, and the context's reason if that ended it.
func (c *connector) gaveUp(ctx context.Context, miss *Error) error {
	told := *miss
	told.Op, told.Name = "connecting to the bus", c.name
	if ctx.Err() == nil {
		told.Op = fmt.Sprintf("connecting for %v to the bus", time.Since(c.start).Round(time.Millisecond))
		return &told
	}
	told.Err = context.Cause(ctx)
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		told.Kind = Interrupted
	}
	return &told
}

// attempt tries once. Without a bus and without an error it may be tried again; miss is what to say if it stays so.
func (c *connector) attempt(ctx context.Context) (bus *Bus, miss *Error, err error) {
	at, err := resolvePlace(c.name, false)
	if err != nil {
		return retryIf(err, KindOf(err) == NotFound)
	}
	defer at.close()
	end, miss, err := c.dial(at)
	if end == nil {
		return nil, miss, err
	}
	// Once the halves have the socket, this is only one user less.
	defer func() { _ = end.release() }()
	end.terms.features = c.features
	if err := checkPeer(end.peer, c.o.AllowUIDs, "AllowUIDs"); err != nil {
		return nil, nil, err
	}
	memory, size, err := greet(ctx, end)
	if err != nil {
		// Its hang-up before it served us, or silence: this process was stopped for longer than the listener waits, or the
		// listener serves nobody, or it has just ended.
		return retryIf(err, KindOf(err) == TimedOut || errors.Is(err, errListenerGone))
	}
	h, err := openBus(memory, size, end, c.name, Options{Wait: c.o.Wait, Guard: c.o.Guard, NoMembarrier: c.o.NoMembarrier})
	told := end.send(ack, KindOf(err), 0, -1)
	if err != nil {
		return nil, nil, err
	}
	// A listener that has the ACK has accepted us: if it has hung up since, what it sent is to be received first.
	if told != nil {
		h.close()
		return nil, errListenerGone, nil
	}
	return newBus(end, c.name, h), nil, nil
}

// retryIf makes an error what to say if it stays so, or the end of all attempts.
func retryIf(err error, again bool) (*Bus, *Error, error) {
	var e *Error
	if again && errors.As(err, &e) {
		return nil, e, nil
	}
	return nil, nil, err
}

var errListenerGone = failf(NotFound, "the listener went away before it served us, and no other one came")

// dial connects a socket. Without one and without an error, miss is why there is no listener yet.
func (c *connector) dial(at *place) (end *busEnd, miss *Error, err error) {
	path, err := at.socketAddress()
	if err != nil {
		return nil, nil, err
	}
	fd, err := sys.Stream()
	if err != nil {
		return nil, nil, osError(err, "making a socket")
	}
	err = sys.Connect(fd, path)
	if err == nil {
		end, err = newBusEnd(fd, at.socketPath())
		return end, nil, err
	}
	sys.Close(fd)
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINPROGRESS), errors.Is(err, syscall.EINTR):
		return nil, failf(TimedOut, "the backlog of %s stayed full: its listener does not accept as fast as others connect",
			at.socketPath()), nil
	// What is not a socket is refused by Linux and named by macOS.
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTSOCK):
		miss, err = at.missed(errors.Is(err, syscall.ENOENT))
		return nil, miss, err
	}
	failure := osError(err, "connecting to "+at.socketPath())
	if failure.Kind == PermissionDenied && time.Since(c.start) < permissionGrace {
		return nil, failure, nil
	}
	return nil, nil, failure
}

// greet says HELLO and waits for the memory, unchecked, and the size that it is said to have. errListenerGone: the
// listener ended before it served us.
func greet(ctx context.Context, end *busEnd) (memory int, size uint64, err error) {
	// A listener that refuses has answered and hung up already: its answer can still be read.
	if err := end.send(hello, 0, 0, -1); err != nil && KindOf(err) != PeerDead {
		return -1, 0, err
	}
	defer end.expireWith(ctx)()
	in := newInbox()
	defer in.discard()
	progress, err := end.receive(in)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		silence := failf(TimedOut, "the listener did not answer in time: is it accepting? (%d of 64 bytes came)", in.filled)
		return -1, 0, silence
	case err != nil:
		return -1, 0, err
	case progress == inboxHungUp && in.filled == 0:
		return -1, 0, errListenerGone
	case progress == inboxHungUp:
		return -1, 0, in.hungUp(welcome)
	}
	if _, size, err = in.message(welcome, 1); err != nil {
		return -1, 0, err
	}
	if end.terms.features == rpcFeatures {
		end.terms.maxInFlight = binary.LittleEndian.Uint32(in.bytes[handshakeOffMaxInFlight:])
		if end.terms.maxInFlight == 0 {
			return -1, 0, failf(Corrupt, "the server allows no call in flight, expected at least 1")
		}
	}
	return in.takeDescriptor(), size, nil
}
