package ramway

import (
	"context"
	"os"
	"testing"
	"time"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// awaiting is what both ends have of WaitForPeer.
type awaiting interface {
	WaitForPeer(ctx context.Context) (uint32, error)
	Close() error
}

// makeEnd makes a ring and is one end of it; the other is the helper.
func makeEnd(t *testing.T, name string, r role) (awaiting, string) {
	t.Helper()
	if r == producer {
		tx, err := CreateSender(name, Options{Capacity: 4096})
		expectKind(t, err, 0)
		return tx, "short-receiver"
	}
	rx, err := CreateReceiver(name, Options{Capacity: 4096})
	expectKind(t, err, 0)
	return rx, "short-sender"
}

func TestWaitForPeer(t *testing.T) {
	for _, r := range []role{producer, consumer} {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			dir := newFolder(t)
			h, helper := makeEnd(t, dir.at("ring"), r)
			_, err := h.WaitForPeer(expired())
			expectKind(t, err, TimedOut)
			expectText(t, err, "waiting for the "+r.other().String()+" of", "ring")
			ctx, cancel := context.WithTimeout(background, 30*time.Millisecond)
			_, err = h.WaitForPeer(ctx)
			cancel()
			expectKind(t, err, TimedOut)

			type answer struct {
				epoch uint32
				err   error
			}
			wait := func() <-chan answer {
				got := make(chan answer, 1)
				go func() {
					epoch, err := h.WaitForPeer(background)
					got <- answer{epoch, err}
				}()
				return got
			}
			first := wait()
			p := startPeer(t, helper, dir.at("ring"))
			p.expect("attached")
			if got := <-first; got != (answer{1, nil}) {
				t.Fatal(got)
			}
			// Attached already, and a context that is over does not matter.
			if epoch, err := h.WaitForPeer(expired()); epoch != 1 || err != nil {
				t.Fatal(epoch, err)
			}
			p.kill()
			second := wait()
			p = startPeer(t, helper, dir.at("ring"))
			p.expect("attached")
			if got := <-second; got != (answer{2, nil}) {
				t.Fatal(got)
			}
			p.tell("close")
			p.expect("closed")
			_, err = h.WaitForPeer(expired())
			expectKind(t, err, TimedOut)

			third := wait()
			time.Sleep(5 * time.Millisecond)
			must(os.Remove(dir.at("ring")))
			expectKind(t, (<-third).err, Closed)

			expectKind(t, h.Close(), 0)
			_, err = h.WaitForPeer(background)
			expectKind(t, err, Detached)
		})
	}
}

// A successor has the role's lock before it raises the epoch. A handle that has seen the end of the one before it does not
// take the lock for that one's life.
func TestSuccessorsLockIsNotItsPredecessorsLife(t *testing.T) {
	for _, r := range []role{producer, consumer} {
		for _, seenBy := range []string{"waiting for a peer", "sending or receiving"} {
			for _, end := range []string{"killed", "closed"} {
				testSuccessorsLock(t, r, end, seenBy)
			}
		}
	}
}

func testSuccessorsLock(t *testing.T, r role, end, seenBy string) {
	t.Run(r.String()+" "+end+" "+seenBy, func(t *testing.T) {
		t.Parallel()
		dir := newFolder(t)
		h, helper := makeEnd(t, dir.at("ring"), r)
		defer h.Close()
		p := startPeer(t, helper, dir.at("ring"))
		p.expect("attached")
		if end == "killed" {
			p.kill()
		} else {
			p.tell("close")
			p.expect("closed")
			p.finish()
		}
		var err error
		switch end := h.(type) {
		case *Sender:
			for seenBy == "sending or receiving" && err == nil {
				err = end.Send(background, 1, make([]byte, 1000))
			}
		case *Receiver:
			if seenBy == "sending or receiving" {
				_, err = end.Recv(background)
			}
		}
		switch {
		case seenBy != "sending or receiving":
			_, err = h.WaitForPeer(expired())
			expectKind(t, err, TimedOut)
		case end == "killed":
			expectKind(t, err, PeerDead)
		default:
			expectKind(t, err, Closed)
		}

		// A successor that is stopped after its first two steps: it has the lock, and its flags do not say "closed".
		file, err := os.OpenFile(dir.at("ring"), os.O_RDWR, 0)
		must(err)
		defer file.Close()
		other := r.other()
		locked, err := sys.TryLock(int(file.Fd()), int64(other.lockByte()), sys.Exclusive)
		if !locked || err != nil {
			t.Fatal(locked, err)
		}
		var line uintptr
		if other == producer {
			line = unsafe.Offsetof(ringBlock{}.producer)
		} else {
			line = unsafe.Offsetof(ringBlock{}.consumer)
		}
		_, err = file.WriteAt(make([]byte, 4), int64(block0+line+unsafe.Offsetof(roleLine{}.flags)))
		must(err)
		if epoch, err := h.WaitForPeer(expired()); epoch != 0 {
			t.Fatal(epoch, err)
		}
		sys.Unlock(int(file.Fd()), int64(other.lockByte()))
		p = startPeer(t, helper, dir.at("ring"))
		p.expect("attached")
		if epoch, err := h.WaitForPeer(background); epoch != 2 || err != nil {
			t.Fatal(epoch, err)
		}
		p.finish()
	})
}

func TestWaitForPeerEndsByClose(t *testing.T) {
	for _, r := range []role{producer, consumer} {
		h, _ := makeEnd(t, newFolder(t).at("ring"), r)
		ended := make(chan error, 1)
		go func() {
			_, err := h.WaitForPeer(background)
			ended <- err
		}()
		time.Sleep(5 * time.Millisecond)
		expectKind(t, h.Close(), 0)
		expectKind(t, <-ended, Detached)
	}
}

// TestWaitForPeerWhereAnEndIsFinal: on a bus and on a pair nobody else comes.
func TestWaitForPeerWhereAnEndIsFinal(t *testing.T) {
	tx, rx, err := Pair(Options{})
	expectKind(t, err, 0)
	if epoch, err := tx.WaitForPeer(background); epoch != 1 || err != nil {
		t.Fatal(epoch, err)
	}
	expectKind(t, tx.Send(background, 1, nil), 0)
	expectKind(t, tx.Close(), 0)
	_, err = rx.WaitForPeer(background)
	expectKind(t, err, Closed)
	// It took nothing away.
	expectKind(t, receiveOnce(rx)(background), 0)
	expectKind(t, rx.Close(), 0)

	for kind, finish := range map[Kind]func(*peer){PeerDead: (*peer).kill, Closed: func(p *peer) {
		p.tell("close")
		p.expect("closed")
	}} {
		l, err := Bind(newFolder(t).at("bus"), ListenOptions{Capacity: 4096})
		expectKind(t, err, 0)
		p := startPeer(t, "short-bus", l.Path())
		bus, err := l.Accept(background)
		expectKind(t, err, 0)
		p.expect("attached")
		for _, h := range []awaiting{bus.Sender(), bus.Receiver()} {
			if epoch, err := h.WaitForPeer(background); epoch != 1 || err != nil {
				t.Fatal(epoch, err)
			}
		}
		finish(p)
		for _, h := range []awaiting{bus.Sender(), bus.Receiver()} {
			_, err = h.WaitForPeer(background)
			expectKind(t, err, kind)
		}
		expectKind(t, bus.Receiver().Close(), 0)
		expectKind(t, l.Close(), 0)
	}
}

func TestNegativeTimeouts(t *testing.T) {
	name := newFolder(t).at("name")
	options := Options{Timeout: -1}
	_, sender := OpenSender(name, options)
	_, receiver := CreateReceiver(name, options)
	_, region := OpenRegion(name, options)
	_, created := CreateRegion(name, 1, options)
	_, connected := Connect(background, name, ConnectOptions{Timeout: -1})
	_, listening := Bind(name, ListenOptions{HandshakeTimeout: -1})
	_, backlog := Bind(name, ListenOptions{Backlog: -1})
	for _, err := range []error{sender, receiver, region, created, connected, listening, backlog} {
		expectKind(t, err, InvalidArgument)
		expectText(t, err, "expected 0 or more", name)
	}
}
