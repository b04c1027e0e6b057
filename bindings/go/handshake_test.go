package ramway

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// The example of docs/ABI.md, section 12.
func TestHelloIsThePagesExample(t *testing.T) {
	page := repositoryFile(t, "docs/ABI.md")
	_, rest, found := strings.Cut(string(page), "```hex hello\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the page has no example of HELLO")
	}
	var want []byte
	for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
		row, err := hex.DecodeString(strings.Join(strings.Fields(line)[1:], ""))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, row...)
	}
	if got := encodeHandshake(hello, 0, 0); !bytes.Equal(got[:], want) {
		t.Fatalf("HELLO is % x, the page has % x", got, want)
	}
}

func TestMessagesComeOutAsTheyWentIn(t *testing.T) {
	for _, kind := range []handshakeType{hello, welcome, ack} {
		b := encodeHandshake(kind, PeerDead, 0x1122334455667788)
		status, size, err := decodeHandshake(&b, kind)
		if err != nil || status != uint32(PeerDead) || size != 0x1122334455667788 {
			t.Fatalf("%v: %d, %#x, %v", kind, status, size, err)
		}
	}
}

func TestWhatIsNotUnderstoodIsRefusedByItsError(t *testing.T) {
	good := encodeHandshake(hello, 0, 0)
	for _, c := range []struct {
		what     string
		at       int
		to       byte
		expected handshakeType
		kind     Kind
	}{
		{"magic", 0, 'r', hello, AbiMismatch},
		{"byte order", 8, 0x0A, hello, AbiMismatch},
		{"major version", 0x0C, 2, hello, AbiMismatch},
		{"minor version", 0x0E, 9, hello, 0},
		{"required feature", 0x18, 1, hello, AbiMismatch},
		{"optional feature", 0x1C, 1, hello, 0},
		{"type", 0x10, 9, hello, Corrupt},
		{"another type", 0x10, 4, hello, Corrupt},
		{"reserved", 0x3F, 1, hello, 0},
		{"a refusal where nobody asked", 0x10, 3, hello, Corrupt},
	} {
		b := good
		b[c.at] = c.to
		if _, _, err := decodeHandshake(&b, c.expected); KindOf(err) != c.kind {
			t.Errorf("%s: %v, expected %v", c.what, err, c.kind.String())
		}
	}
}

func TestTheHandshakeOfRPC(t *testing.T) {
	rpc, plain := terms{rpcFeatures, 7}, terms{}
	said := func(o terms, kind handshakeType) [handshakeSize]byte { return o.encode(kind, 0, 0) }
	// HELLO and WELCOME have the bit, and WELCOME the limit; ACK and REFUSE neither.
	for kind, want := range map[handshakeType][2]byte{hello: {1, 0}, welcome: {1, 7}, refuse: {0, 0}, ack: {0, 0}} {
		b := said(rpc, kind)
		if b[0x18] != want[0] || b[0x28] != want[1] || !bytes.Equal(b[0x2C:], make([]byte, 20)) {
			t.Errorf("%v: % x", kind, b)
		}
		if b = said(plain, kind); b[0x18] != 0 || b[0x28] != 0 {
			t.Errorf("plain %v: % x", kind, b)
		}
	}
	for _, c := range []struct {
		what         string
		sender       terms
		sent         handshakeType
		features     byte
		reader       terms
		expected     handshakeType
		kind         Kind
		inTheMessage string
	}{
		{"both", rpc, hello, 1, rpc, hello, 0, ""},
		{"a plain connector", plain, hello, 0, rpc, hello, AbiMismatch, "this side speaks RPC"},
		{"a client at a plain listener", rpc, hello, 1, plain, hello, AbiMismatch, "the other side speaks RPC"},
		{"a plain listener's WELCOME", plain, welcome, 0, rpc, welcome, AbiMismatch, "this side speaks RPC"},
		{"a server's WELCOME to a plain connector", rpc, welcome, 1, plain, welcome, AbiMismatch, "the other side speaks RPC"},
		{"another feature", rpc, hello, 2, rpc, hello, AbiMismatch, "0x2"},
		{"one more", rpc, hello, 3, rpc, hello, AbiMismatch, "0x2"},
		{"an ACK", rpc, ack, 0, rpc, ack, 0, ""},
		{"an ACK with the bit", rpc, ack, 1, rpc, ack, AbiMismatch, ""},
		{"an ACK in HELLO's place", rpc, ack, 0, rpc, hello, Corrupt, ""},
	} {
		b := said(c.sender, c.sent)
		b[0x18] = c.features
		_, _, err := c.reader.decode(&b, c.expected)
		if KindOf(err) != c.kind {
			t.Errorf("%s: %v", c.what, err)
		}
		if c.kind != 0 {
			expectText(t, err, c.inTheMessage)
		}
	}
}

func TestARefusalIsTheErrorThatItCarriesInWhateverVersion(t *testing.T) {
	for status, kind := range map[uint32]Kind{15: NoSpace, 14: PermissionDenied, 0: Os, 99: Os} {
		b := encodeHandshake(refuse, Kind(status), 0)
		b[0x0C], b[0x18] = 7, 0xFF
		_, _, err := decodeHandshake(&b, welcome)
		expectKind(t, err, kind)
		expectText(t, err, "refused")
	}
}

// socketPair is two connected sockets that never block.
func socketPair(t *testing.T) (int, int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range pair {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
	}
	return pair[0], pair[1]
}

func TestAnInboxTakesAMessageInPiecesAndNotAByteMore(t *testing.T) {
	a, b := socketPair(t)
	defer sys.Close(a)
	message := encodeHandshake(ack, 0, 0)
	in := newInbox()
	for i := range message {
		if progress, err := in.fill(b); progress != inboxPartial || err != nil {
			t.Fatalf("after %d bytes: %v, %v", i, progress, err)
		}
		if err := sys.Send(a, message[i:i+1], -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := sys.Send(a, []byte("more"), -1); err != nil {
		t.Fatal(err)
	}
	if progress, err := in.fill(b); progress != inboxWhole || err != nil {
		t.Fatal(progress, err)
	}
	if _, _, err := in.message(ack, 0); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, 9)
	if got, err := sys.Receive(b, rest); err != nil || string(rest[:got.N]) != "more" {
		t.Fatalf("%q, %v", rest[:got.N], err)
	}
	sys.Close(b)
	if err := sendHandshake(a, hello, 0, 0, -1); KindOf(err) != PeerDead {
		t.Fatal(err)
	}
}

func TestDescriptorsAreCountedAndNoneStaysOpen(t *testing.T) {
	before := openDescriptors(t)
	for n := range 12 {
		a, b := socketPair(t)
		file, err := os.Open("/")
		if err != nil {
			t.Fatal(err)
		}
		fds := make([]int, n)
		for i := range fds {
			fds[i] = int(file.Fd())
		}
		message := encodeHandshake(welcome, 0, 4096)
		var oob []byte
		if n > 0 {
			oob = unix.UnixRights(fds...)
		}
		if _, err := unix.SendmsgN(a, message[:], oob, nil, 0); err != nil {
			t.Fatal(err)
		}
		in := newInbox()
		if progress, err := in.fill(b); progress != inboxWhole || err != nil {
			t.Fatal(progress, err)
		}
		_, _, err = in.message(welcome, 1)
		if n == 1 {
			if err != nil {
				t.Fatal(err)
			}
			flags, err := unix.FcntlInt(uintptr(in.descriptor), unix.F_GETFD, 0)
			if err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Fatalf("the descriptor is not close-on-exec: %#x, %v", flags, err)
			}
		} else {
			expectKind(t, err, Corrupt)
		}
		in.discard()
		sys.Close(a)
		sys.Close(b)
		_ = file.Close()
	}
	if after := openDescriptors(t); after != before {
		t.Fatalf("%d descriptors are open, %d were", after, before)
	}
}

// openDescriptors is how many descriptors this process has.
func openDescriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func TestCheckPeer(t *testing.T) {
	own := sys.EffectiveUID()
	for _, c := range []struct {
		uid    uint32
		others []uint32
		ok     bool
	}{
		{own, nil, true},
		{own + 1, nil, false},
		{own + 1, []uint32{own + 2, own + 1}, true},
		{sys.OverflowUID(), []uint32{sys.OverflowUID()}, false},
		{^uint32(0), []uint32{^uint32(0)}, false},
	} {
		if err := checkPeer(sys.Credentials{UID: c.uid}, c.others, "AllowUIDs"); (err == nil) != c.ok {
			t.Errorf("user %d among %v: %v", c.uid, c.others, err)
		} else if err != nil {
			expectKind(t, err, PermissionDenied)
			if c.uid == sys.OverflowUID() {
				expectText(t, err, "as another user")
			}
		}
	}
}

func FuzzDecodeHandshake(f *testing.F) {
	for _, kind := range []handshakeType{hello, welcome, refuse, ack} {
		b := encodeHandshake(kind, 9, 1<<20)
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var b [handshakeSize]byte
		copy(b[:], data)
		for _, kind := range []handshakeType{hello, welcome, ack} {
			if _, _, err := decodeHandshake(&b, kind); err == nil && !bytes.HasPrefix(b[:], []byte(handshakeMagic)) {
				t.Fatal("accepted without the magic")
			}
		}
	})
}
