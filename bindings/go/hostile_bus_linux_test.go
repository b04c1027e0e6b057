package ramway

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// listening is a listener whose calls of Accept run in the background.
func listening(t *testing.T, o ListenOptions) (*Listener, chan *Bus) {
	t.Helper()
	l, err := Bind(newFolder(t).at("target"), o)
	if err != nil {
		t.Fatal(err)
	}
	buses := make(chan *Bus, 100)
	go func() {
		for {
			bus, err := l.Accept(context.Background())
			if errors.Is(err, ErrDetached) {
				return
			}
			if err == nil {
				buses <- bus
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l, buses
}

// dial connects without a word.
func dial(t *testing.T, l *Listener) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: l.Path(), Net: "unix"})
	for errors.Is(err, unix.EAGAIN) {
		// The backlog is full.
		time.Sleep(time.Millisecond)
		conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: l.Path(), Net: "unix"})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(long)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// sendWith sends a message, with descriptors of the root directory.
func sendWith(t *testing.T, conn *net.UnixConn, message []byte, descriptors int) {
	t.Helper()
	var oob []byte
	if descriptors > 0 {
		file, err := os.Open("/")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		fds := make([]int, descriptors)
		for i := range fds {
			fds[i] = int(file.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	if _, _, err := conn.WriteMsgUnix(message, oob, nil); err != nil {
		t.Fatal(err)
	}
}

// answer is the type and status of what comes back, after which the other side must hang up.
func answer(t *testing.T, conn *net.UnixConn) (handshakeType, Kind) {
	t.Helper()
	var b [handshakeSize]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		t.Fatalf("no answer: %v", err)
	}
	status, _, err := decodeHandshake(&b, refuse)
	if err != nil {
		t.Fatalf("the answer is no refusal: %v", err)
	}
	if n, err := conn.Read(b[:]); n != 0 || !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		t.Fatalf("it did not hang up: %d bytes, %v", n, err)
	}
	return refuse, Kind(status)
}

func changed(at int, to byte) []byte {
	b := encodeHandshake(hello, 0, 0)
	b[at] = to
	return b[:]
}

func TestWhatConnectorsDoWrongIsRefusedAndHoldsUpNobody(t *testing.T) {
	l, buses := listening(t, ListenOptions{Capacity: 4096, HandshakeTimeout: 300 * time.Millisecond})
	good := changed(0, 'R')
	// More silent ones than there are places.
	for range handshakesMax + 10 {
		dial(t, l)
	}
	for what, c := range map[string]struct {
		message     []byte
		descriptors int
		kind        Kind
	}{
		"another magic":      {changed(0, 'X'), 0, AbiMismatch},
		"another byte order": {changed(8, 9), 0, AbiMismatch},
		"another version":    {changed(0x0C, 2), 0, AbiMismatch},
		"a feature":          {changed(0x18, 1), 0, AbiMismatch},
		"another type":       {changed(0x10, 4), 0, Corrupt},
		"a descriptor":       {good, 1, Corrupt},
		"many descriptors":   {good, 20, Corrupt},
		"half of it":         {good[:32], 0, TimedOut},
		"nothing":            {nil, 0, TimedOut},
	} {
		conn := dial(t, l)
		if c.message != nil {
			sendWith(t, conn, c.message, c.descriptors)
		}
		if _, kind := answer(t, conn); kind != c.kind {
			t.Errorf("%s: refused with %v, expected %v", what, kind.String(), c.kind.String())
		}
	}
	// One that says that it cannot use the memory, one that says nothing, and one that goes.
	for _, last := range []func(*net.UnixConn){
		func(c *net.UnixConn) { b := encodeHandshake(ack, NoSpace, 0); sendWith(t, c, b[:], 0) },
		func(c *net.UnixConn) { b := encodeHandshake(ack, 0, 0); sendWith(t, c, b[:], 1) },
		func(*net.UnixConn) {},
		func(c *net.UnixConn) { _ = c.Close() },
	} {
		conn := dial(t, l)
		sendWith(t, conn, good, 0)
		var b [handshakeSize]byte
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			t.Fatal(err)
		}
		if _, size, err := decodeHandshake(&b, welcome); err != nil || size != headerSize+2*4096 {
			t.Fatal(size, err)
		}
		last(conn)
	}
	select {
	case <-buses:
		t.Fatal("one of them was accepted")
	default:
	}
	// A slow but honest one, a byte at a time.
	conn := dial(t, l)
	for i := range good {
		sendWith(t, conn, good[i:i+1], 0)
	}
	var b [handshakeSize]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		t.Fatal(err)
	}
	yes := encodeHandshake(ack, 0, 0)
	for i := range yes {
		sendWith(t, conn, yes[i:i+1], 0)
	}
	slow := <-buses
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := slow.Recv(within(t))
	expectKind(t, err, PeerDead)
	_ = slow.Close()
	// And an ordinary one.
	bus, err := Connect(within(t), l.Path(), ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_ = bus.Close()
	_ = (<-buses).Close()
	eventually(t, "all others were counted", func() bool {
		return l.Refused() == handshakesMax+10+9+4 && l.LastRefusal() != nil
	})
}

// hostile is a listener that answers HELLO with what it is told, and gives the connector's ACK.
func hostile(t *testing.T, respond func(conn *net.UnixConn)) (path string, acks chan Kind) {
	t.Helper()
	path = newFolder(t).at("hostile")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	acks = make(chan Kind, 10)
	go func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			var b [handshakeSize]byte
			if _, err := io.ReadFull(conn, b[:]); err == nil {
				respond(conn)
				if _, err := io.ReadFull(conn, b[:]); err == nil {
					status, _, _ := decodeHandshake(&b, ack)
					acks <- Kind(status)
				}
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return path, acks
}

// memory is a memfd of some size with these seals, which begins with these bytes.
func memory(t *testing.T, size int64, seals int, start []byte) int {
	t.Helper()
	fd, err := unix.MemfdCreate("ramway-test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		err = unix.Ftruncate(fd, size)
	}
	if err == nil {
		_, err = unix.Pwrite(fd, start, 0)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

func TestWhatAListenerSendsIsDistrusted(t *testing.T) {
	const (
		all  = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
		size = headerSize + 2*4096
	)
	s, err := busSpec(4096, 4096, 16)
	if err != nil {
		t.Fatal(err)
	}
	page := func(change func(page []byte)) []byte {
		p := formatHeader(s)
		change(p)
		return p
	}
	same := func([]byte) {}
	fine := memory(t, size, all, page(same))
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	hello64 := func(kind handshakeType, announced uint64, fds ...int) func(*net.UnixConn) {
		return func(conn *net.UnixConn) {
			b := encodeHandshake(kind, 0, announced)
			var oob []byte
			if len(fds) > 0 {
				oob = unix.UnixRights(fds...)
			}
			_, _, _ = conn.WriteMsgUnix(b[:], oob, nil)
		}
	}
	raw := func(b []byte) func(*net.UnixConn) {
		return func(conn *net.UnixConn) { _, _ = conn.Write(b); _ = conn.CloseWrite() }
	}
	refused := encodeHandshake(refuse, NoSpace, 0)
	other := encodeHandshake(welcome, 0, size)
	other[0x0C] = 2
	for what, c := range map[string]struct {
		respond func(*net.UnixConn)
		kind    Kind
		// acked: the memory was looked at, so that the listener is told.
		acked bool
	}{
		"no descriptor":            {hello64(welcome, size), Corrupt, false},
		"two descriptors":          {hello64(welcome, size, fine, fine), Corrupt, false},
		"not a memfd":              {hello64(welcome, size, null), Corrupt, true},
		"no seals":                 {hello64(welcome, size, memory(t, size, 0, page(same))), Corrupt, true},
		"can still grow":           {hello64(welcome, size, memory(t, size, unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL, page(same))), Corrupt, true},
		"sealed against writing":   {hello64(welcome, size, memory(t, size, all|unix.F_SEAL_WRITE, page(same))), Corrupt, true},
		"another size than it has": {hello64(welcome, 2*size, fine), Corrupt, true},
		"less than a page":         {hello64(welcome, 100, memory(t, 100, all, nil)), Corrupt, true},
		"not a segment":            {hello64(welcome, size, memory(t, size, all, nil)), AbiMismatch, true},
		"another version": {hello64(welcome, size, memory(t, size, all, page(func(p []byte) { p[offVersionMajor] = 9 }))),
			AbiMismatch, true},
		"a ring": {hello64(welcome, size, memory(t, size, all, page(func(p []byte) { p[offKind] = byte(kindRing) }))),
			Corrupt, true},
		"rings that overlap": {hello64(welcome, size, memory(t, size, all, page(func(p []byte) {
			copy(p[block1:block1+8], p[block0:block0+8])
		}))), Corrupt, true},
		"no ring at all": {hello64(welcome, size, memory(t, size, all, page(func(p []byte) {
			clear(p[block0+8 : block0+16])
			clear(p[block1+8 : block1+16])
		}))), Corrupt, true},
		"positions that cannot be": {hello64(welcome, size, memory(t, size, all, page(func(p []byte) { p[block0+0x80] = 3 }))),
			Corrupt, true},
		"positions of the other ring": {hello64(welcome, size, memory(t, size, all, page(func(p []byte) { p[block1+0x101] = 0x40 }))),
			Corrupt, true},
		"a message of another type":    {hello64(hello, size, fine), Corrupt, false},
		"a refusal":                    {raw(refused[:]), NoSpace, false},
		"another handshake's version":  {raw(other[:]), AbiMismatch, false},
		"another magic":                {raw(make([]byte, handshakeSize)), AbiMismatch, false},
		"the end in mid-message":       {raw(refused[:33]), PeerDead, false},
		"the end before any message":   {raw(nil), NotFound, false},
		"silence":                      {func(*net.UnixConn) {}, TimedOut, false},
		"a message that never goes on": {func(c *net.UnixConn) { _, _ = c.Write(refused[:5]) }, TimedOut, false},
	} {
		before := openDescriptors(t)
		path, acks := hostile(t, c.respond)
		timeout := long
		if c.kind == TimedOut || c.kind == NotFound {
			timeout = 200 * time.Millisecond
		}
		bus, err := Connect(context.Background(), path, ConnectOptions{Timeout: timeout})
		// Who is hung up on tries again until the deadline, which may come in the middle of a try.
		if kind := KindOf(err); kind != c.kind && !(c.kind == NotFound && kind == TimedOut) {
			t.Errorf("%s: %v, expected %v", what, err, c.kind.String())
		}
		if bus != nil {
			_ = bus.Close()
		}
		if c.acked {
			if acked := <-acks; acked != c.kind {
				t.Errorf("%s: acknowledged with %v, expected %v", what, acked.String(), c.kind.String())
			}
		}
		// But for the listening socket of this round.
		eventually(t, what+": no descriptor is left", func() bool { return openDescriptors(t) <= before+1 })
	}
}
