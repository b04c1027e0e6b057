package ramway

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Where a listener is: one lock for a name and its path, and only what refuses a connection is removed.

func init() {
	helpers["bind"] = func(args []string) {
		l, err := Bind(args[0], ListenOptions{Capacity: 4096})
		must(err)
		say("listening")
		bus, err := l.Accept(background)
		must(err)
		say("accepted")
		told()
		must(errors.Join(bus.Close(), l.Close()))
	}
	helpers["no-descriptors"] = noDescriptors
}

// serves fails unless the listener takes a connector.
func serves(t *testing.T, l *Listener) {
	t.Helper()
	accepted := make(chan error, 1)
	go func() {
		bus, err := l.Accept(background)
		if err == nil {
			err = bus.Close()
		}
		accepted <- err
	}()
	bus, err := Connect(within(t), l.Path(), ConnectOptions{})
	expectKind(t, err, 0)
	expectKind(t, bus.Close(), 0)
	expectKind(t, <-accepted, 0)
}

func TestANameAndItsPathMeetAtOneLock(t *testing.T) {
	at := newFolder(t)
	t.Setenv("RAMWAY_DIR", at.path)
	other := newFolder(t)
	must(os.Symlink(at.path, other.at("link")))
	here, err := os.Getwd()
	must(err)
	relative, err := filepath.Rel(here, at.at("bell.sock"))
	must(err)
	// However the path is written.
	paths := []string{
		at.at("bell.sock"), at.path + "/../" + filepath.Base(at.path) + "/bell.sock", other.at("link") + "/bell.sock", relative,
	}
	for _, first := range append([]string{"bell"}, paths...) {
		l, err := Bind(first, ListenOptions{Capacity: 4096})
		expectKind(t, err, 0)
		at.expectNames("bell", "bell.sock")
		for _, second := range append([]string{"bell", l.Path()}, paths...) {
			_, err := Bind(second, ListenOptions{})
			expectKind(t, err, AlreadyExists)
			serves(t, l)
		}
		expectKind(t, l.Close(), 0)
		at.expectNames()
	}
	// After a kill the other one binds.
	for first, second := range map[string]string{"bell": at.at("bell.sock"), at.at("bell.sock"): "bell"} {
		p := startPeer(t, "bind", first)
		p.expect("listening")
		_, err := Bind(second, ListenOptions{})
		expectKind(t, err, AlreadyExists)
		p.kill()
		at.expectNames("bell", "bell.sock")
		_, err = Connect(within(t), second, ConnectOptions{Timeout: 20 * time.Millisecond})
		expectKind(t, err, NotFound)
		l, err := Bind(second, ListenOptions{Capacity: 4096})
		expectKind(t, err, 0)
		serves(t, l)
		expectKind(t, l.Close(), 0)
		at.expectNames()
	}
	// What is no name's socket has its own lock.
	for _, path := range []string{at.at("x.sock.sock"), at.at("x.lock.sock"), at.at(".x.sock"), other.at("bell.sock")} {
		l, err := Bind(path, ListenOptions{})
		expectKind(t, err, 0)
		if _, err := os.Stat(path + ".lock"); err != nil {
			t.Fatal(err)
		}
		expectKind(t, l.Close(), 0)
	}
	at.expectNames()
}

func TestALiveForeignSocketStays(t *testing.T) {
	at := newFolder(t)
	t.Setenv("RAMWAY_DIR", at.path)
	refusedAs := func() {
		t.Helper()
		for _, name := range []string{"bell", at.at("bell.sock")} {
			_, err := Bind(name, ListenOptions{})
			expectKind(t, err, AlreadyExists)
			expectText(t, err, "does not hold Ramway's lock", "bell.sock")
		}
		at.expectNames("bell.sock")
	}
	foreign, err := net.ListenUnix("unix", &net.UnixAddr{Name: at.at("bell.sock"), Net: "unix"})
	must(err)
	foreign.SetUnlinkOnClose(false)
	refusedAs()
	client, err := net.Dial("unix", at.at("bell.sock"))
	if err != nil {
		t.Fatalf("the foreign program lost its socket: %v", err)
	}
	must(errors.Join(client.Close(), foreign.Close()))

	// A dead one is replaced.
	l, err := Bind("bell", ListenOptions{Capacity: 4096})
	expectKind(t, err, 0)
	serves(t, l)
	expectKind(t, l.Close(), 0)
	at.expectNames()

	// A full backlog.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(err)
	must(unix.Bind(fd, &unix.SockaddrUnix{Name: at.at("bell.sock")}))
	must(unix.Listen(fd, 0))
	var waiting []int
	for full := false; !full; {
		client, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		must(err)
		waiting = append(waiting, client)
		full = unix.Connect(client, &unix.SockaddrUnix{Name: at.at("bell.sock")}) != nil
	}
	refusedAs()
	for _, fd := range append(waiting, fd) {
		must(unix.Close(fd))
	}
	must(os.Remove(at.at("bell.sock")))

	// A datagram socket.
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at.at("bell.sock"), Net: "unixgram"})
	must(err)
	refusedAs()
	must(datagrams.Close())
}

// TestASocketThatTookOursPlaceStays: the next listener's segment does not take another program's socket with it, nor does
// the last one out.
func TestASocketThatTookOursPlaceStays(t *testing.T) {
	at := newFolder(t)
	for _, killed := range []bool{false, true} {
		p := startPeer(t, "bind", at.at("bell"))
		p.expect("listening")
		bus, err := Connect(within(t), at.at("bell"), ConnectOptions{})
		expectKind(t, err, 0)
		p.expect("accepted")
		must(os.Rename(at.at("bell"), at.at("away")))
		foreign, err := net.ListenUnix("unix", &net.UnixAddr{Name: at.at("bell"), Net: "unix"})
		must(err)
		if killed {
			p.kill()
			_, err := Bind(at.at("bell"), ListenOptions{})
			expectKind(t, err, AlreadyExists)
		} else {
			p.finish()
		}
		client, err := net.Dial("unix", at.at("bell"))
		if err != nil {
			t.Fatalf("the other program lost its socket: %v", err)
		}
		_ = bus.Close()
		must(errors.Join(client.Close(), foreign.Close(), os.Remove(at.at("away"))))
		at.expectNames()
	}
}

// TestSilentConnectorsKeepNobodyOut: with a time that does not help.
func TestSilentConnectorsKeepNobodyOut(t *testing.T) {
	for _, silent := range []int{handshakesMax, 200} {
		l, buses := listening(t, ListenOptions{Capacity: 4096, HandshakeTimeout: Forever})
		good := changed(0, 'R')
		var all []*net.UnixConn
		for i := range silent {
			conn := dial(t, l)
			if i%3 == 0 {
				sendWith(t, conn, good[:32], 0)
			}
			all = append(all, conn)
		}
		for range 3 {
			bus, err := Connect(within(t), l.Path(), ConnectOptions{})
			expectKind(t, err, 0)
			expectKind(t, bus.Send(within(t), 1, []byte("served")), 0)
			other := <-buses
			m, err := other.Recv(within(t))
			expectKind(t, err, 0)
			m.Release()
			expectKind(t, errors.Join(bus.Close(), other.Close()), 0)
		}
		// The oldest were told; as many as there are places are not.
		evicted := int(l.Refused())
		if evicted < silent-handshakesMax+1 || evicted > silent-handshakesMax+3 {
			t.Fatalf("%d of %d silent connectors were ended", evicted, silent)
		}
		expectKind(t, l.LastRefusal(), TimedOut)
		expectText(t, l.LastRefusal(), "64 handshakes were under way, and this connector was silent the longest")
		for _, conn := range all[:evicted] {
			if _, kind := answer(t, conn); kind != TimedOut {
				t.Fatalf("a silent connector was told %v", kind.String())
			}
		}
		expectKind(t, l.Close(), 0)
	}
}

// TestThoseWhoseAckIsDueGoWhenNobodyElseCan: none of them is told, but by the hang-up.
func TestThoseWhoseAckIsDueGoWhenNobodyElseCan(t *testing.T) {
	l, buses := listening(t, ListenOptions{Capacity: 4096, HandshakeTimeout: Forever})
	greeting := changed(0, 'R')
	for range handshakesMax {
		conn := dial(t, l)
		sendWith(t, conn, greeting, 0)
		var b [handshakeSize]byte
		if _, err := conn.Read(b[:]); err != nil {
			t.Fatal(err)
		}
	}
	bus, err := Connect(within(t), l.Path(), ConnectOptions{})
	expectKind(t, err, 0)
	expectKind(t, errors.Join(bus.Close(), (<-buses).Close()), 0)
	if n := l.Refused(); n != 1 {
		t.Fatalf("%d were ended", n)
	}
}

func noDescriptors(args []string) {
	l, err := Bind(args[0], ListenOptions{Capacity: 4096})
	must(err)
	// Everything that Go opens by itself is open after one connection.
	bus, err := l.Accept(background)
	must(err)
	must(bus.Close())
	var limit unix.Rlimit
	must(unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	full := limit
	entries, err := os.ReadDir("/proc/self/fd")
	must(err)
	// One of those was the directory's.
	full.Cur = uint64(len(entries) - 1)
	// The lowest number that is free must be beyond the limit.
	for {
		fd, err := unix.Dup(0)
		must(err)
		if uint64(fd) >= full.Cur {
			must(unix.Close(fd))
			break
		}
	}
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &full))
	say("full")
	ctx, cancel := context.WithCancel(background)
	go func() {
		told()
		cancel()
	}()
	var last error
	rounds, began := 0, time.Now()
	for ; ctx.Err() == nil; rounds++ {
		bus, err := l.Accept(ctx)
		if err == nil {
			panic("accepted without a descriptor")
		}
		if KindOf(err) == Os {
			last = err
		}
		_ = bus
	}
	// A second, at least.
	say("%d", int(float64(rounds)/max(time.Since(began).Seconds(), 1)))
	say("%v", last)
	told()
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	say("raised")
	// The last connector that was turned away may not have been told of yet.
	for bus, err = l.Accept(background); KindOf(err) == Os; {
		bus, err = l.Accept(background)
	}
	must(err)
	must(bus.Close())
	must(l.Close())
}

func TestAcceptWithoutDescriptors(t *testing.T) {
	name := newFolder(t).at("bell")
	p := startPeer(t, "no-descriptors", name)
	bus, err := Connect(within(t), name, ConnectOptions{})
	expectKind(t, err, 0)
	_ = bus.Close()
	p.expect("full")
	// Again and again: each is told at once, and none keeps the listener busy.
	for began, n := time.Now(), 0; n < 5 || time.Since(began) < time.Second; n++ {
		_, err = Connect(within(t), name, ConnectOptions{})
		expectKind(t, err, NoSpace)
		expectText(t, err, "it has no memory or descriptors left (NoSpace)")
	}
	p.tell("stop")
	if rounds, err := strconv.Atoi(p.hear()); err != nil || rounds > 30 {
		t.Fatalf("Accept came back %d times in a second", rounds)
	}
	if said := p.hear(); !containsAll(said, "too many open files", "ulimit -n", "told") {
		t.Fatal(said)
	}
	p.tell("raise")
	p.expect("raised")
	// A round of refusals that began before may still meet this connector.
	ctx := within(t)
	for bus, err = Connect(ctx, name, ConnectOptions{}); KindOf(err) == NoSpace; {
		bus, err = Connect(ctx, name, ConnectOptions{})
	}
	expectKind(t, err, 0)
	_ = bus.Close()
	p.finish()
}

func TestTryAccept(t *testing.T) {
	l, err := Bind(newFolder(t).at("bell"), ListenOptions{Capacity: 4096})
	expectKind(t, err, 0)
	_, err = l.TryAccept()
	expectKind(t, err, Empty)
	connected := make(chan error, 1)
	go func() {
		bus, err := Connect(within(t), l.Path(), ConnectOptions{})
		if err == nil {
			err = bus.Close()
		}
		connected <- err
	}()
	eventually(t, "the connector is served", func() bool {
		bus, err := l.TryAccept()
		if err != nil {
			expectKind(t, err, Empty)
			return false
		}
		_ = bus.Close()
		return true
	})
	expectKind(t, <-connected, 0)
	expectKind(t, l.Close(), 0)
	_, err = l.TryAccept()
	expectKind(t, err, Detached)
}

// containsAll says whether a text holds all of these.
func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
