package ramway

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

func TestAKilledListenerIsTakenOver(t *testing.T) {
	at := newFolder(t)
	first := startPeer(t, "bus-listen", at.at("bell"))
	first.expect("listening")
	_, err := Bind(at.at("bell"), ListenOptions{})
	expectKind(t, err, AlreadyExists)
	bus, err := Connect(within(t), at.at("bell"), ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	if err := bus.Send(within(t), 0, []byte("one")); err != nil {
		t.Fatal(err)
	}
	first.expect("one")
	first.kill()
	at.expectNames("bell", "bell.lock")
	_, err = bus.Recv(within(t))
	expectKind(t, err, PeerDead)
	// Nobody is there; a connector says so, or waits for the next one.
	_, err = Connect(within(t), at.at("bell"), ConnectOptions{Timeout: 50 * time.Millisecond})
	expectKind(t, err, NotFound)
	expectText(t, err, "gone", "bell")
	waited := make(chan error)
	go func() {
		bus, err := Connect(context.Background(), at.at("bell"), ConnectOptions{Timeout: long})
		if err == nil {
			err = errors.Join(bus.Send(context.Background(), 0, []byte("two")), bus.Close())
		}
		waited <- err
	}()
	second := startPeer(t, "bus-listen", at.at("bell"))
	second.expect("listening")
	second.expect("two")
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	second.kill()
	l, err := Bind(at.at("bell"), ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Path() != at.at("bell") {
		t.Fatal(l.Path())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	at.expectNames()
}

func TestWhatIsNotASocketIsLeftAsItIs(t *testing.T) {
	at := newFolder(t)
	t.Setenv("RAMWAY_DIR", at.path)
	for name, socket := range map[string]string{"named": "named.sock", at.at("path"): "path"} {
		if err := os.WriteFile(at.at(socket), []byte("somebody's"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Bind(name, ListenOptions{})
		expectKind(t, err, AlreadyExists)
		expectText(t, err, "a regular file", socket)
		_, err = Connect(within(t), name, ConnectOptions{})
		expectKind(t, err, InvalidArgument)
		if kept, err := os.ReadFile(at.at(socket)); err != nil || string(kept) != "somebody's" {
			t.Fatalf("%q, %v", kept, err)
		}
	}
	at.expectNames("named.sock", "path")
	if err := os.WriteFile(at.at("taken"), []byte("no segment"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Bind("taken", ListenOptions{})
	expectKind(t, err, AlreadyExists)
}

func TestAcceptAndConnectEndWithTheirContexts(t *testing.T) {
	at := newFolder(t)
	l, err := Bind(at.at("quiet"), ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the shop closes")
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 2)
	go func() {
		_, err := l.Accept(ctx)
		ended <- err
	}()
	go func() {
		// Nobody listens there.
		_, err := Connect(ctx, at.at("absent"), ConnectOptions{Timeout: Forever})
		ended <- err
	}()
	time.Sleep(20 * time.Millisecond)
	cancel(cause)
	for range 2 {
		err := <-ended
		expectKind(t, err, Interrupted)
		if !errors.Is(err, cause) {
			t.Fatal(err)
		}
	}
	// A deadline: nobody came, or nobody was there.
	short, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	_, err = l.Accept(short)
	expectKind(t, err, TimedOut)
	_, err = Connect(short, at.at("absent"), ConnectOptions{})
	expectKind(t, err, NotFound)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	// A listener that lives and does not accept: the connector waits, and says so.
	_, err = Connect(within(t), at.at("quiet"), ConnectOptions{Timeout: 50 * time.Millisecond})
	expectKind(t, err, TimedOut)
	expectText(t, err, "accepting")
	go func() {
		_, err := l.Accept(context.Background())
		ended <- err
	}()
	time.Sleep(20 * time.Millisecond)
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	expectKind(t, <-ended, Detached)
	_, err = l.Accept(context.Background())
	expectKind(t, err, Detached)
	at.expectNames()
}

// As in Send and Recv: no context is one that is never done.
func TestWithoutAContext(t *testing.T) {
	at := newFolder(t)
	l, err := Bind(at.at("bus"), ListenOptions{})
	expectKind(t, err, 0)
	defer l.Close()
	var none context.Context
	accepted := make(chan error, 1)
	go func() {
		bus, err := l.Accept(none)
		if err == nil {
			err = errors.Join(bus.Send(none, 1, []byte("hello")), bus.Close())
		}
		accepted <- err
	}()
	bus, err := Connect(none, at.at("bus"), ConnectOptions{})
	expectKind(t, err, 0)
	m, err := bus.Recv(none)
	expectKind(t, err, 0)
	m.Release()
	expectKind(t, bus.Close(), 0)
	expectKind(t, <-accepted, 0)
	region, err := CreateRegion(at.at("region"), 1, Options{Wait: Block})
	expectKind(t, err, 0)
	defer region.Close()
	go func() {
		time.Sleep(5 * time.Millisecond)
		_ = region.Notify()
	}()
	expectKind(t, region.Wait(none), 0)
}

func TestConnectorsQueueUpBeyondTheBacklog(t *testing.T) {
	at := newFolder(t)
	l, err := Bind(at.at("queue"), ListenOptions{Backlog: 1, Capacity: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const connectors = 20
	failed := make(chan error, connectors)
	for range connectors {
		go func() {
			bus, err := Connect(context.Background(), l.Path(), ConnectOptions{Timeout: long})
			if err == nil {
				err = errors.Join(bus.Send(context.Background(), 9, []byte("here")), bus.Close())
			}
			failed <- err
		}()
	}
	time.Sleep(50 * time.Millisecond)
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range connectors / 4 {
				bus, err := l.Accept(within(t))
				if err != nil {
					t.Error(err)
					return
				}
				m, err := bus.Recv(within(t))
				if err != nil {
					t.Error(err)
					return
				}
				m.Release()
				_, err = bus.Recv(within(t))
				if KindOf(err) != Closed {
					t.Error(err)
				}
				_ = bus.Close()
			}
		}()
	}
	all.Wait()
	for range connectors {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyOneIsWelcomedByListen(t *testing.T) {
	at := newFolder(t)
	const connectors = 5
	outcomes := make(chan error, connectors)
	for range connectors {
		go func() {
			bus, err := Connect(context.Background(), at.at("once"), ConnectOptions{Timeout: time.Second})
			if err == nil {
				_, err = bus.Recv(context.Background())
				_ = bus.Close()
			}
			outcomes <- err
		}()
	}
	time.Sleep(20 * time.Millisecond)
	bus, err := Listen(within(t), at.at("once"), ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at.expectNames()
	for range connectors - 1 {
		expectKind(t, <-outcomes, NotFound)
	}
	if err := bus.Close(); err != nil {
		t.Fatal(err)
	}
	expectKind(t, <-outcomes, Closed)
	_, err = Listen(cancelled(), at.at("once"), ListenOptions{})
	expectKind(t, err, Interrupted)
	at.expectNames()
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAConnectorWithoutTheListenersDirectory(t *testing.T) {
	t.Setenv("RAMWAY_DIR", newFolder(t).at("not-there"))
	_, err := Connect(within(t), "nobody", ConnectOptions{Timeout: 10 * time.Millisecond})
	expectKind(t, err, NotFound)
	_, err = Connect(within(t), "bad name", ConnectOptions{})
	expectKind(t, err, InvalidArgument)
}
