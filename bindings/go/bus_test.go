package ramway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	// bus-echo returns every message until the other side closes.
	helpers["bus-echo"] = func(args []string) {
		bus := helperBus(args)
		for m := range bus.All(context.Background()) {
			must(bus.Send(context.Background(), m.TypeID(), m.UnsafeBytes()))
		}
		must(bus.Err())
		must(bus.Close())
	}
	// bus-say sends as many messages as it is told, and then waits to be killed.
	helpers["bus-say"] = func(args []string) {
		bus := helperBus(args)
		for range 3 {
			must(bus.Send(context.Background(), 7, []byte("last words")))
		}
		say("sent")
		told()
		must(bus.Close())
	}
	// bus-listen accepts one bus after another, and says what it got.
	helpers["bus-listen"] = func(args []string) {
		l, err := Bind(args[0], ListenOptions{Capacity: 4096})
		must(err)
		say("listening")
		for {
			bus, err := l.Accept(context.Background())
			must(err)
			m, err := bus.Recv(context.Background())
			must(err)
			say("%s", m.Clone())
			m.Release()
		}
	}
	// bus-other connects as another user.
	helpers["bus-other"] = func(args []string) {
		must(syscall.Setuid(otherUID))
		_, err := Connect(context.Background(), args[0], ConnectOptions{AllowUIDs: []uint32{0}})
		say("%s", KindOf(err).String())
		told()
	}
}

// helperBus is the bus that a helper's arguments say: listen or connect, and where.
func helperBus(args []string) *Bus {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	var bus *Bus
	var err error
	if args[0] == "listen" {
		bus, err = Listen(ctx, args[1], ListenOptions{Capacity: 4096})
	} else {
		bus, err = Connect(ctx, args[1], ConnectOptions{})
	}
	must(err)
	return bus
}

// within is a context for what takes no time at all on a machine that is not busy.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), long)
	t.Cleanup(cancel)
	return ctx
}

// meet makes a bus whose other end is a helper, which listens or connects.
func meet(t *testing.T, at, helper string, itListens bool) (*Bus, *peer) {
	t.Helper()
	its, ours := "connect", func() (*Bus, error) { return Listen(within(t), at, ListenOptions{Capacity: 4096}) }
	if itListens {
		its, ours = "listen", func() (*Bus, error) { return Connect(within(t), at, ConnectOptions{}) }
	}
	p := startPeer(t, helper, its, at)
	bus, err := ours()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	if bus.PeerPID() != p.pid() || bus.PeerUID() != uint32(os.Geteuid()) || !bus.PeerAlive() {
		t.Fatalf("the peer is process %d of user %d, alive: %v", bus.PeerPID(), bus.PeerUID(), bus.PeerAlive())
	}
	return bus, p
}

func TestTwoProcessesTalkOverABus(t *testing.T) {
	for _, itListens := range []bool{false, true} {
		at := newFolder(t)
		before := openDescriptors(t)
		bus, p := meet(t, at.at("echo"), "bus-echo", itListens)
		for i := range 1000 {
			sent := bytes.Repeat([]byte{byte(i)}, i*7%2000)
			if err := bus.Send(within(t), uint32(i), sent); err != nil {
				t.Fatal(err)
			}
			m, err := bus.Recv(within(t))
			if err != nil {
				t.Fatal(err)
			}
			if m.TypeID() != uint32(i) || !bytes.Equal(m.UnsafeBytes(), sent) {
				t.Fatalf("message %d came back as type %d with %d bytes", i, m.TypeID(), m.Len())
			}
			m.Release()
		}
		if err := bus.Sender().Close(); err != nil {
			t.Fatal(err)
		}
		_, err := bus.Recv(within(t))
		expectKind(t, err, Closed)
		p.finish()
		if bus.PeerAlive() {
			t.Fatal("the peer is gone and counts as alive")
		}
		if err := bus.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = bus.Recv(within(t))
		expectKind(t, err, Detached)
		at.expectNames()
		// The poller's and the waiters' own descriptors stay: a second round must not add any.
		if after := openDescriptors(t); itListens && after > before {
			t.Fatalf("%d descriptors are open, %d were", after, before)
		}
	}
}

func TestAKilledPeerIsNoticedAfterItsLastMessage(t *testing.T) {
	for _, itListens := range []bool{false, true} {
		bus, p := meet(t, newFolder(t).at("killed"), "bus-say", itListens)
		p.expect("sent")
		p.kill()
		killed := time.Now()
		for range 3 {
			m, err := bus.Recv(within(t))
			if err != nil {
				t.Fatal(err)
			}
			m.Release()
		}
		_, err := bus.Recv(within(t))
		expectKind(t, err, PeerDead)
		if took := time.Since(killed); took > 5*time.Second {
			t.Fatalf("noticed after %v", took)
		}
		// The sending endpoint learns it when it has to wait.
		for err = nil; err == nil; {
			err = bus.Send(within(t), 1, make([]byte, 1000))
		}
		expectKind(t, err, PeerDead)
		if bus.PeerAlive() {
			t.Fatal("the peer is dead and counts as alive")
		}
	}
}

func TestOneDirectionCanBeLeftOut(t *testing.T) {
	at := newFolder(t).at("one-way")
	l, err := Bind(at, ListenOptions{ToPeer: 5000, Align: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	type made struct {
		bus *Bus
		err error
	}
	connected := make(chan made)
	go func() {
		bus, err := Connect(context.Background(), l.Path(), ConnectOptions{Wait: Block})
		connected <- made{bus, err}
	}()
	ours, err := l.Accept(within(t))
	theirs := <-connected
	if err != nil || theirs.err != nil {
		t.Fatal(err, theirs.err)
	}
	defer ours.Close()
	defer theirs.bus.Close()
	if ours.Receiver() != nil || theirs.bus.Sender() != nil || ours.Sender().Capacity() != 8192 || ours.Sender().Align() != 64 {
		t.Fatal("the wrong halves")
	}
	expectKind(t, theirs.bus.Send(within(t), 0, nil), Unsupported)
	expectKind(t, theirs.bus.TrySend(0, nil), Unsupported)
	_, err = ours.Recv(within(t))
	expectKind(t, err, Unsupported)
	_, err = ours.TryRecv()
	expectKind(t, err, Unsupported)
	for range ours.All(within(t)) {
		t.Fatal("a message out of nowhere")
	}
	expectKind(t, ours.Err(), Unsupported)
	if err := ours.TrySend(3, []byte("there")); err != nil {
		t.Fatal(err)
	}
	m, err := theirs.bus.TryRecv()
	if err != nil || string(m.Clone()) != "there" {
		t.Fatal(err)
	}
	m.Release()
}

func TestImpossibleListenersAreRefused(t *testing.T) {
	at := newFolder(t)
	for what, c := range map[string]struct {
		name string
		o    ListenOptions
	}{
		"both ways of saying a capacity": {at.at("x"), ListenOptions{Capacity: 4096, ToPeer: 4096}},
		"a negative capacity":            {at.at("x"), ListenOptions{Capacity: -1}},
		"an odd alignment":               {at.at("x"), ListenOptions{Align: 24}},
		"no wait mode":                   {at.at("x"), ListenOptions{Wait: Block + 1}},
		"a name that ends in .lock":      {"x.lock", ListenOptions{}},
		"a name that cannot be":          {"a name", ListenOptions{}},
		"a file name that is too long":   {at.at(strings.Repeat("n", 120)), ListenOptions{}},
	} {
		_, err := Bind(c.name, c.o)
		if KindOf(err) != InvalidArgument {
			t.Errorf("%s: %v", what, err)
		}
	}
	at.expectNames()
}

func TestCloseEndsTheWaitsOfOtherGoroutines(t *testing.T) {
	bus, p := meet(t, newFolder(t).at("close"), "bus-say", false)
	for range 3 {
		m, err := bus.Recv(within(t))
		if err != nil {
			t.Fatal(err)
		}
		m.Release()
	}
	ended := make(chan error)
	go func() {
		_, err := bus.Recv(context.Background())
		ended <- err
	}()
	time.Sleep(20 * time.Millisecond)
	if err := bus.Close(); err != nil {
		t.Fatal(err)
	}
	expectKind(t, <-ended, Detached)
	if err := bus.Close(); err != nil {
		t.Fatal(err)
	}
	p.finish()
}

// deep is a directory whose path does not fit into a socket's address.
func deep(t *testing.T) string {
	t.Helper()
	dir := newFolder(t).path
	for len(dir) <= 120 {
		dir = filepath.Join(dir, strings.Repeat("d", 30))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPathsThatDoNotFitIntoAnAddress(t *testing.T) {
	dir := deep(t)
	for _, name := range []string{filepath.Join(dir, "socket"), "by-name"} {
		t.Setenv("RAMWAY_DIR", dir)
		bus, p := meet(t, name, "bus-say", true)
		p.expect("sent")
		m, err := bus.Recv(within(t))
		if err != nil || string(m.Clone()) != "last words" {
			t.Fatal(err)
		}
		m.Release()
		p.finish()
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Fatal(left, err)
	}
}

// otherUID is a user that nothing belongs to.
const otherUID = 54321

func TestOtherUsersAreServedOnlyIfTheyAreNamed(t *testing.T) {
	at := newFolder(t)
	if err := os.Chmod(at.path, 0o755); err != nil {
		t.Fatal(err)
	}
	old := unix.Umask(0o077)
	l, err := Bind(at.at("open"), ListenOptions{AllowUIDs: []uint32{otherUID}})
	unix.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	expectMode(t, l.Path(), 0o666)
	closed, err := Bind(at.at("closed"), ListenOptions{Mode: 0o666})
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	expectMode(t, closed.Path(), 0o666)
	own, err := Bind(at.at("own"), ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	expectMode(t, own.Path(), 0o600)
	if os.Geteuid() != 0 {
		t.Log("only root can start a process of another user: what it is told is not tried here")
		return
	}
	for _, c := range []struct {
		l    *Listener
		kind Kind
	}{{l, 0}, {closed, PermissionDenied}, {own, PermissionDenied}} {
		p := startPeer(t, "bus-other", c.l.Path())
		ctx, cancel := context.WithCancel(within(t))
		accepted := make(chan *Bus)
		go func() {
			bus, _ := c.l.Accept(ctx)
			accepted <- bus
		}()
		if c.kind == 0 {
			p.expect(Kind(0).String())
		} else {
			p.expect(c.kind.String())
			cancel()
		}
		bus := <-accepted
		cancel()
		if (bus != nil) != (c.kind == 0) {
			t.Fatalf("accepted: %v, expected %v", bus != nil, c.kind == 0)
		}
		if bus != nil {
			if bus.PeerUID() != otherUID {
				t.Fatalf("the peer is user %d", bus.PeerUID())
			}
			_ = bus.Close()
		}
		p.finish()
	}
	// It is counted after the other side was told.
	eventually(t, "one connector was refused for its user", func() bool {
		return closed.Refused() == 1 && KindOf(closed.LastRefusal()) == PermissionDenied
	})
}

func expectMode(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != mode|fs.ModeSocket {
		t.Fatalf("%v, %v: expected a socket of mode %v", info.Mode(), err, mode)
	}
}

func TestStreamsOverABus(t *testing.T) {
	bus, p := meet(t, newFolder(t).at("stream"), "bus-echo", true)
	sent := make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(i * i >> 7)
	}
	done := make(chan error, 1)
	go func() {
		w := bus.Sender().Writer(context.Background(), 5)
		_, err := w.Write(sent[:100_000])
		if err == nil {
			_, err = w.ReadFrom(io.MultiReader(bytes.NewReader(sent[100_000:]), strings.NewReader("")))
		}
		done <- errors.Join(err, bus.Sender().Close())
	}()
	got, err := io.ReadAll(bus.Receiver().Reader(within(t)))
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d of %d bytes came back: %v", len(got), len(sent), err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	p.finish()
}
