package ramway

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// Many calls at once.

func TestManyGoroutinesShareAClient(t *testing.T) {
	server, at := startServer(t, 16)
	c := clientOf(t, at)
	var all sync.WaitGroup
	for g := range 64 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 200 {
				body := fmt.Appendf(nil, "%d of %d", i, g)
				r, err := c.Call(context.Background(), 1, body)
				if err != nil || !bytes.Equal(r.Body, body) {
					t.Error(r, err)
					return
				}
			}
		}()
	}
	all.Wait()
	if c.InFlight() != 0 {
		t.Fatal(c.InFlight())
	}
	server.finish()
}

func TestTenThousandCallsInFlight(t *testing.T) {
	const calls = 10_000
	gate := make(chan struct{})
	s := served(t, ServeOptions{MaxInFlight: calls, Capacity: 65536, MaxBytes: 16 << 20}, func(s *Server) {
		expectKind(t, s.Handle(1, func(ctx context.Context, r *Request) ([]byte, error) {
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return r.Body, nil
		}), 0)
	})
	c := calling(t, s, ClientOptions{})
	ctx := context.Background()
	all := make([]*Pending, calls)
	for i := range all {
		var err error
		all[i], err = c.Start(ctx, 1, fmt.Appendf(nil, "call %d", i))
		expectKind(t, err, 0)
	}
	// What found no room in the ring is sent while somebody looks.
	eventually(t, "all are in flight", func() bool { _, err := all[0].Try(); return err == ErrEmpty && c.InFlight() == calls })
	close(gate)
	for i, p := range all {
		r, err := p.Wait(ctx)
		if err != nil || string(r.Body) != fmt.Sprintf("call %d", i) {
			t.Fatal(i, r, err)
		}
	}
	if c.InFlight() != 0 {
		t.Fatal(c.InFlight())
	}
}

func TestCancelStorm(t *testing.T) {
	server, at := startServer(t, 64)
	c := clientOf(t, at)
	var all sync.WaitGroup
	for range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 300 {
				ctx, cancel := context.WithCancel(context.Background())
				method := uint32(1 + i%2)
				p, err := c.Start(ctx, method, []byte("storm"))
				if err != nil {
					t.Error(err)
				} else if i%3 == 0 {
					p.Cancel()
				}
				cancel()
				if p == nil {
					continue
				}
				if r, err := p.Wait(context.Background()); err == nil && string(r.Body) != "storm" || err != nil && !errors.Is(err, StatusCancelled) &&
					KindOf(err) != Detached {
					t.Error(r, err)
				}
			}
		}()
	}
	all.Wait()
	eventually(t, "every call has its final reply", func() bool { return c.Ping(within(t)) == nil && c.InFlight() == 0 })
	eventually(t, "no handler runs", func() bool { server.tell("waiting"); return server.hear() == "0" })
	server.finish()
}

func TestDeadlineStorm(t *testing.T) {
	server, at := startServer(t, 64)
	c := clientOf(t, at)
	var all sync.WaitGroup
	for g := range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 200 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(300))*time.Microsecond)
				_, err := c.Call(ctx, uint32(1+(g+i)%2), []byte("storm"))
				cancel()
				if err != nil && !errors.Is(err, ErrTimedOut) && !errors.Is(err, StatusCancelled) {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	eventually(t, "every call has its final reply", func() bool { return c.Ping(within(t)) == nil && c.InFlight() == 0 })
	eventually(t, "no handler runs", func() bool { server.tell("waiting"); return server.hear() == "0" })
	server.finish()
}

func TestCancellationsRaceWithReplies(t *testing.T) {
	calls := 100_000
	if guardAlways || testing.Short() {
		calls = 5_000
	}
	server, at := startServer(t, 128)
	c := clientOf(t, at)
	replied, cancelled := 0, 0
	var window []*Pending
	finish := func() {
		p := window[0]
		window = window[1:]
		switch r, err := p.Wait(context.Background()); {
		case err == nil && string(r.Body) == "race":
			replied++
		case errors.Is(err, StatusCancelled):
			cancelled++
		default:
			t.Fatal(r, err)
		}
	}
	for i := range calls {
		p, err := c.Start(context.Background(), 1, []byte("race"))
		expectKind(t, err, 0)
		if window = append(window, p); len(window) < 8 {
			continue
		}
		if i%2 == 0 {
			// Its reply is on its way, or is not.
			if _, err := window[0].Try(); err == nil {
				replied++
				window = window[1:]
				continue
			}
			window[0].Cancel()
		}
		finish()
	}
	for len(window) > 0 {
		finish()
	}
	if replied+cancelled != calls {
		t.Fatal(replied, cancelled)
	}
	expectKind(t, c.Ping(within(t)), 0)
	eventually(t, "every call has its final reply", func() bool { return c.Ping(within(t)) == nil && c.InFlight() == 0 })
	t.Logf("%d replied, %d cancelled", replied, cancelled)
	server.finish()
}

func TestASlowReaderStopsItsOwnStreamOnly(t *testing.T) {
	server, at := startServer(t, 64)
	c := clientOf(t, at)
	ctx := within(t)
	slow, err := c.Stream(ctx, 3, nil, WithWindow(4))
	expectKind(t, err, 0)
	for i := range uint64(1000) {
		r, err := c.Call(ctx, 1, []byte("beside it"))
		if err != nil || string(r.Body) != "beside it" {
			t.Fatal(r, err)
		}
		if i%100 == 0 {
			element, err := slow.Next(ctx)
			if err != nil || binary.LittleEndian.Uint64(element.Body) != i/100 {
				t.Fatal(element, err)
			}
		}
	}
	// No more than the window has ever come.
	c.mu.Lock()
	held := len(slow.k.replies)
	c.mu.Unlock()
	if held > 4 {
		t.Fatal(held)
	}
	fast, err := c.Stream(ctx, 3, nil)
	expectKind(t, err, 0)
	next := uint64(0)
	for element, err := range fast.All(ctx) {
		if err != nil || binary.LittleEndian.Uint64(element.Body) != next {
			t.Fatal(element, err)
		}
		if next++; next == 5000 {
			break
		}
	}
	if _, err = fast.Next(ctx); !errors.Is(err, StatusCancelled) {
		t.Fatal(err)
	}
	// The end of the server ends a stream after what it has sent.
	server.kill()
	for range 10 {
		if _, err = slow.Next(ctx); err != nil {
			break
		}
	}
	expectKind(t, err, PeerDead)
}

func TestBothRingsFull(t *testing.T) {
	// Large requests and replies through small rings, more than both hold, in both directions at once.
	s := served(t, ServeOptions{Capacity: 4096, MaxBytes: 64 << 20, MaxInFlight: 256}, func(s *Server) {
		expectKind(t, s.Handle(1, echo), 0)
		expectKind(t, s.HandleStream(2, endless), 0)
	})
	c := calling(t, s, ClientOptions{MaxBuffered: 64 << 20})
	ctx := within(t)
	stream, err := c.Stream(ctx, 2, nil, WithWindow(1000))
	expectKind(t, err, 0)
	var all []*Pending
	for i := range 2000 {
		p, err := c.Start(ctx, 1, bytes.Repeat([]byte{byte(i)}, 100+i))
		expectKind(t, err, 0)
		all = append(all, p)
	}
	for i, p := range all {
		r, err := p.Wait(ctx)
		if err != nil || !bytes.Equal(r.Body, bytes.Repeat([]byte{byte(i)}, 100+i)) {
			t.Fatal(i, err)
		}
	}
	for i := range uint64(3000) {
		element, err := stream.Next(ctx)
		if err != nil || binary.LittleEndian.Uint64(element.Body) != i {
			t.Fatal(i, err)
		}
	}
	stream.Cancel()
}
