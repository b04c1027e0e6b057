package ramway

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// both ends of a bus, in this process.
func bothEnds(t *testing.T, o ListenOptions) (listener, connector *Bus) {
	t.Helper()
	at := newFolder(t).at("both")
	type made struct {
		bus *Bus
		err error
	}
	connected := make(chan made)
	go func() {
		bus, err := Connect(context.Background(), at, ConnectOptions{Timeout: long, Wait: o.Wait, Guard: o.Guard})
		connected <- made{bus, err}
	}()
	listener, err := Listen(within(t), at, o)
	other := <-connected
	if err := errors.Join(err, other.err); err != nil {
		t.Fatal(err)
	}
	return listener, other.bus
}

// A peer that writes anything anywhere, at any time: calls end, with a message or an error, and nothing else happens.
func TestAPeerThatScribblesEndsNothingButItsBus(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	corrupt := 0
	for round := range rounds {
		o := ListenOptions{Capacity: 4096, Guard: round%4 == 3}
		victim, peer := bothEnds(t, o)
		size := int(headerSize + 2*4096)
		page, err := sys.Map(peer.end.memory, 0, size, true)
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		scribbled := make(chan struct{})
		go func() {
			defer close(scribbled)
			random := rand.New(rand.NewPCG(uint64(round), 11))
			for {
				select {
				case <-stop:
					return
				default:
				}
				// The words of the blocks, and frames; now and then something that could be true.
				at := 0x480 + random.IntN(0x200)
				switch random.IntN(4) {
				case 0:
					at = 0x880 + random.IntN(0x200)
				case 1:
					at = headerSize + random.IntN(2*4096-8)
				}
				value := random.Uint64()
				if random.IntN(3) > 0 {
					value = uint64(random.IntN(8192)) &^ 15
				}
				atomic.StoreUint64((*uint64)(unsafe.Add(page, at&^7)), value)
				if random.IntN(50) == 0 {
					time.Sleep(10 * time.Microsecond)
				}
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		var buffer []byte
		var failed error
		for failed == nil || !errors.Is(failed, ErrCorrupt) && ctx.Err() == nil {
			buffer, _, failed = victim.Receiver().RecvAppend(ctx, buffer[:0])
			if len(buffer) > 4096 {
				t.Fatalf("a message of %d bytes out of a ring of 4096", len(buffer))
			}
			if err := victim.TrySend(1, make([]byte, rand.IntN(500))); err != nil {
				failed = err
			}
			if m, err := victim.TryRecv(); err == nil {
				buffer = m.Append(buffer[:0])
				m.Release()
			}
			if b, err := victim.Receiver().TryRecvBatch(10); err == nil {
				b.Release()
			}
		}
		cancel()
		if errors.Is(failed, ErrCorrupt) {
			corrupt++
		}
		// Its own words included, which it must be able to close over.
		_ = victim.Close()
		close(stop)
		<-scribbled
		_ = peer.Close()
		if err := sys.Unmap(page, size); err != nil {
			t.Fatal(err)
		}
	}
	if corrupt == 0 {
		t.Fatal("nothing was ever found to be corrupt")
	}
}

func TestABusThatIsTooBigIsNoSpaceForBoth(t *testing.T) {
	at := newFolder(t).at("big")
	l, err := Bind(at, ListenOptions{ToPeer: 1 << 45})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	told := make(chan error)
	go func() {
		_, err := Connect(context.Background(), at, ConnectOptions{Timeout: long})
		told <- err
	}()
	_, err = l.Accept(within(t))
	expectKind(t, err, NoSpace)
	err = <-told
	expectKind(t, err, NoSpace)
	expectText(t, err, "the listener refused", at)
}

// The bar is 10 ms; the best of some tries, because the machine may be busy with something else.
func TestWaitsEndSoonAfterTheirContext(t *testing.T) {
	at := newFolder(t)
	l, err := Bind(at.at("slow"), ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := CreateRegion(at.at("region"), 8, Options{Wait: Block})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for what, wait := range map[string]func(context.Context) error{
		"Accept":      func(ctx context.Context) error { _, err := l.Accept(ctx); return err },
		"Connect":     func(ctx context.Context) error { _, err := Connect(ctx, at.at("none"), ConnectOptions{}); return err },
		"a handshake": func(ctx context.Context) error { _, err := Connect(ctx, l.Path(), ConnectOptions{}); return err },
		"Wait":        r.Wait,
	} {
		best := long
		for range 10 {
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error)
			go func() { ended <- wait(ctx) }()
			time.Sleep(15 * time.Millisecond)
			asked := time.Now()
			cancel()
			expectKind(t, <-ended, Interrupted)
			best = min(best, time.Since(asked))
		}
		if best > 10*time.Millisecond {
			t.Errorf("%s went on for %v", what, best)
		}
	}
}
