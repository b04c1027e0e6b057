package ramway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// Servers and clients in processes of their own, and their ends.

func init() {
	// A server whose method 1 echoes, 2 waits until it is cancelled, and 3 is a stream without an end.
	helpers["rpc-server"] = func(args []string) {
		inFlight, err := strconv.Atoi(args[1])
		must(err)
		s, err := BindServer(args[0], ServeOptions{MaxInFlight: inFlight, Capacity: 65536})
		must(err)
		var waiting atomic.Int64
		must(s.Handle(1, echo))
		must(s.Handle(2, func(ctx context.Context, _ *Request) ([]byte, error) {
			waiting.Add(1)
			defer waiting.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		must(s.HandleStream(3, endless))
		ended := make(chan error)
		go func() { ended <- s.Serve(context.Background()) }()
		say("serving")
		for {
			switch word := told(); word {
			case "waiting":
				say("%d", waiting.Load())
			case "clients":
				say("%d", s.Clients())
			case "shutdown":
				must(s.Shutdown(context.Background()))
				must(<-ended)
				say("ended")
			case "":
				return
			}
		}
	}
	// A client with calls in flight.
	helpers["rpc-client"] = func(args []string) {
		c, err := ConnectClient(context.Background(), args[0], ClientOptions{})
		must(err)
		var all []*Pending
		for range 10 {
			p, err := c.Start(context.Background(), 2, nil)
			must(err)
			all = append(all, p)
		}
		say("started")
		told()
		runtime.KeepAlive(all)
	}
}

// endless is a stream of numbers.
func endless(context.Context, *Request) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := uint64(0); yield(binary.LittleEndian.AppendUint64(nil, i), nil); i++ {
		}
	}
}

func startServer(t *testing.T, inFlight int) (*peer, string) {
	t.Helper()
	at := newFolder(t).at("server")
	p := startPeer(t, "rpc-server", at, strconv.Itoa(inFlight))
	p.expect("serving")
	return p, at
}

func clientOf(t *testing.T, at string) *Client {
	t.Helper()
	c, err := ConnectClient(within(t), at, ClientOptions{})
	expectKind(t, err, 0)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAServerThatIsKilledMayHaveRunWhatWasSent(t *testing.T) {
	p, at := startServer(t, 4)
	c := clientOf(t, at)
	if c.PeerPID() != p.pid() || c.PeerUID() != uint32(os.Geteuid()) || !c.PeerAlive() {
		t.Fatal(c.PeerPID(), c.PeerUID())
	}
	outcomes := make(chan error, 100)
	for range 10 {
		go func() {
			_, err := c.Call(context.Background(), 2, nil)
			outcomes <- err
		}()
	}
	eventually(t, "as many are in flight as may be", func() bool { p.tell("waiting"); return p.hear() == "4" && c.InFlight() == 4 })
	eventually(t, "the others wait", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := 0
		for k := c.ledger.queue.first; k != nil; k = k.after {
			n++
		}
		return n == 6
	})
	p.kill()
	ran := 0
	for range 10 {
		err := <-outcomes
		expectKind(t, err, PeerDead)
		var failed *CallError
		if errors.As(err, &failed); failed.MayHaveRun() {
			ran++
		}
	}
	if ran != 4 {
		t.Fatalf("%d calls may have run, expected the 4 that were sent", ran)
	}
	_, err := c.Call(within(t), 1, nil)
	expectKind(t, err, PeerDead)
	if c.PeerAlive() {
		t.Fatal("alive")
	}
}

func TestAClientThatIsKilledHasItsCallsCancelled(t *testing.T) {
	server, at := startServer(t, 1024)
	client := startPeer(t, "rpc-client", at)
	client.expect("started")
	waiting := func(n string) func() bool {
		return func() bool { server.tell("waiting"); return server.hear() == n }
	}
	eventually(t, "its calls run", waiting("10"))
	client.kill()
	eventually(t, "they are cancelled", waiting("0"))
	eventually(t, "its place is free", func() bool { server.tell("clients"); return server.hear() == "0" })
	expectKind(t, clientOf(t, at).Ping(within(t)), 0)
	server.tell("shutdown")
	server.expect("ended")
	server.finish()
}

func TestDrainingFinishesWhatRunsAndTakesNothingNew(t *testing.T) {
	gate, begun := make(chan struct{}), make(chan struct{}, 10)
	s := served(t, ServeOptions{}, func(s *Server) {
		expectKind(t, s.Handle(1, echo), 0)
		expectKind(t, s.Handle(2, func(context.Context, *Request) ([]byte, error) {
			begun <- struct{}{}
			<-gate
			return []byte("finished"), nil
		}), 0)
	})
	c, other := calling(t, s, ClientOptions{}), calling(t, s, ClientOptions{})
	// From now on it is served: one that has only connected is not.
	expectKind(t, other.Ping(within(t)), 0)
	running, err := c.Start(within(t), 2, nil)
	expectKind(t, err, 0)
	<-begun
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	// One connection after the other.
	for _, client := range []*Client{c, other} {
		eventually(t, "it drains", func() bool {
			_, err := client.Call(within(t), 1, nil)
			return errors.Is(err, StatusDraining)
		})
	}
	// Ping and describe are answered, also to others.
	expectKind(t, other.Ping(within(t)), 0)
	var failed *CallError
	if _, err := other.Call(within(t), 1, nil); !errors.As(err, &failed) || failed.Status != StatusDraining || failed.MayHaveRun() {
		t.Fatal(err)
	}
	_, err = ConnectClient(within(t), s.Path(), ClientOptions{Timeout: 10 * time.Millisecond})
	if err == nil {
		t.Fatal("a new client was taken")
	}
	close(gate)
	r, err := running.Wait(within(t))
	if err != nil || string(r.Body) != "finished" {
		t.Fatal(err)
	}
	expectKind(t, <-down, 0)
	// Closed in an orderly way: what has no reply was not run.
	_, err = c.Call(within(t), 1, nil)
	expectKind(t, err, Closed)
	if errors.As(err, &failed); failed.MayHaveRun() {
		t.Fatal(err)
	}
	expectKind(t, s.Serve(within(t)), Detached)
	expectKind(t, s.Shutdown(within(t)), 0)
}

func TestShutdownsLimitCancelsTheRest(t *testing.T) {
	begun := make(chan struct{}, 10)
	stuck := make(chan struct{})
	defer close(stuck)
	s := served(t, ServeOptions{}, func(s *Server) {
		expectKind(t, s.Handle(1, func(ctx context.Context, _ *Request) ([]byte, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return nil, nil
		}), 0)
		expectKind(t, s.Handle(2, func(context.Context, *Request) ([]byte, error) {
			begun <- struct{}{}
			<-stuck
			return nil, nil
		}), 0)
	})
	a, b := calling(t, s, ClientOptions{}), calling(t, s, ClientOptions{})
	obeys, err := a.Start(within(t), 1, nil)
	expectKind(t, err, 0)
	ignores, err := b.Start(within(t), 2, nil)
	expectKind(t, err, 0)
	<-begun
	<-begun
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	expectKind(t, s.Shutdown(ctx), Interrupted)
	// The one whose handler has ended has its reply; the other's client was abandoned.
	_, err = obeys.Wait(within(t))
	if !errors.Is(err, StatusCancelled) && KindOf(err) != PeerDead {
		t.Fatal(err)
	}
	_, err = ignores.Wait(within(t))
	expectKind(t, err, PeerDead)
	var failed *CallError
	if errors.As(err, &failed); !failed.MayHaveRun() {
		t.Fatal(err)
	}
}

func TestTheEndOfServesContextEndsTheServer(t *testing.T) {
	s, err := BindServer(newFolder(t).at("server"), ServeOptions{})
	expectKind(t, err, 0)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx) }()
	c, err := ConnectClient(within(t), s.Path(), ClientOptions{})
	expectKind(t, err, 0)
	expectKind(t, c.Ping(within(t)), 0)
	eventually(t, "it serves", func() bool { return KindOf(s.Serve(within(t))) == Busy })
	cancel()
	expectKind(t, <-ended, Interrupted)
	expectKind(t, c.Ping(within(t)), Closed)
	expectKind(t, c.Close(), 0)
	expectKind(t, c.Close(), 0)
}

func TestCloseEndsTheCallsOfAllGoroutines(t *testing.T) {
	s := served(t, ServeOptions{MaxInFlight: 2}, func(s *Server) {
		expectKind(t, s.Handle(2, func(ctx context.Context, _ *Request) ([]byte, error) { <-ctx.Done(); return nil, nil }), 0)
	})
	c := calling(t, s, ClientOptions{})
	outcomes := make(chan error, 10)
	for range 5 {
		go func() {
			_, err := c.Call(context.Background(), 2, nil)
			outcomes <- err
		}()
	}
	eventually(t, "they are under way", func() bool { return c.InFlight() == 2 })
	eventually(t, "the others wait", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.ledger.queue.first != nil && c.ledger.queue.first.after != nil && c.ledger.queue.first.after.after != nil
	})
	expectKind(t, c.Close(), 0)
	ran := 0
	for range 5 {
		err := <-outcomes
		expectKind(t, err, Closed)
		var failed *CallError
		if errors.As(err, &failed); failed.MayHaveRun() {
			ran++
		}
	}
	if ran != 2 {
		t.Fatalf("%d may have run", ran)
	}
}

func TestAStreamThatFailsGivesItsElementsFirst(t *testing.T) {
	s := served(t, ServeOptions{}, func(s *Server) {
		expectKind(t, s.HandleStream(1, func(context.Context, *Request) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				_ = yield([]byte("a"), nil) && yield([]byte("b"), nil) && yield(nil, Fail(7, "after 2"))
			}
		}), 0)
		expectKind(t, s.HandleStream(2, func(context.Context, *Request) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				yield([]byte("a"), nil)
				panic("in the middle")
			}
		}), 0)
		expectKind(t, s.HandleStream(3, func(context.Context, *Request) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				_ = yield([]byte("a"), nil) && yield(make([]byte, 2<<20), nil) && yield([]byte("never"), nil)
			}
		}), 0)
	})
	c := calling(t, s, ClientOptions{})
	for method, want := range map[uint32]struct {
		elements string
		status   Status
		text     string
	}{1: {"ab", StatusApplication, "after 2"}, 2: {"a", StatusHandlerFailed, "in the middle"}, 3: {"a", StatusReplyTooLarge, ""}} {
		stream, err := c.Stream(within(t), method, nil)
		expectKind(t, err, 0)
		got := ""
		var last error
		for element, err := range stream.All(within(t)) {
			got += string(element.Body)
			last = err
		}
		var failed *CallError
		if got != want.elements || !errors.As(last, &failed) || failed.Status != want.status || failed.Text != want.text {
			t.Errorf("%d: %q, %v", method, got, last)
		}
	}
	_, err := c.Call(within(t), 1, nil)
	expectText(t, err, "stream")
}

func TestAHandlersTimeAndPeer(t *testing.T) {
	s := served(t, ServeOptions{}, func(s *Server) {
		expectKind(t, s.Handle(1, func(ctx context.Context, r *Request) ([]byte, error) {
			left, limited := r.Remaining()
			return fmt.Appendf(nil, "%v %v %v %v", limited, left > time.Second && left <= time.Minute, r.PeerPID() == os.Getpid(),
				r.PeerUID() == uint32(os.Geteuid())), nil
		}), 0)
		expectKind(t, s.Handle(2, func(ctx context.Context, r *Request) ([]byte, error) {
			<-ctx.Done()
			if !r.Cancelled() {
				t.Error("not cancelled")
			}
			return []byte("in vain"), nil
		}), 0)
	})
	c := calling(t, s, ClientOptions{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if r, err := c.Call(ctx, 1, nil); err != nil || string(r.Body) != "true true true true" {
		t.Fatal(r, err)
	}
	if r, err := c.Call(context.Background(), 1, nil); err != nil || string(r.Body) != "false false true true" {
		t.Fatal(r, err)
	}
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Call(short, 2, nil)
	if !errors.Is(err, ErrTimedOut) && !errors.Is(err, StatusCancelled) {
		t.Fatal(err)
	}
	eventually(t, "it has its final reply", func() bool { return c.Ping(within(t)) == nil && c.InFlight() == 0 })
}

func TestWhatWaitsForAPlaceTimesOutAndIsCancelledThere(t *testing.T) {
	gate, begun := make(chan struct{}), make(chan string, 10)
	s := served(t, ServeOptions{Pool: 1}, func(s *Server) {
		expectKind(t, s.Handle(1, func(_ context.Context, r *Request) ([]byte, error) {
			begun <- string(r.Body)
			<-gate
			return nil, nil
		}), 0)
	})
	p := rawClient(t, s.Path())
	p.put(typeIDCall, 1, rpcWords("first", 0, 0, 1, 0))
	if said := <-begun; said != "first" {
		t.Fatal(said)
	}
	p.put(typeIDCall, 2, rpcWords("too late", 1000, 0, 1, 0))
	p.put(typeIDCall, 3, rpcWords("cancelled", 0, 0, 1, 0))
	p.put(typeIDCancel, 3, nil)
	p.put(typeIDCall, 4, rpcWords("last", 0, 0, 1, 0))
	got := map[uint64]uint32{}
	for range 2 {
		id, h, _ := p.reply()
		got[id] = h.status
	}
	if got[2] != rpcTimedOut || got[3] != rpcCancelled {
		t.Fatal(got)
	}
	close(gate)
	for _, want := range []uint64{1, 4} {
		if id, h, _ := p.reply(); id != want || h.status != rpcOk {
			t.Fatal(id, h)
		}
	}
	if said := <-begun; said != "last" {
		t.Fatal(said)
	}
}

func TestACancelledCallKeepsItsPlaceUntilItsHandlerHasEnded(t *testing.T) {
	gate, begun := make(chan struct{}), make(chan struct{}, 10)
	s := served(t, ServeOptions{MaxInFlight: 1}, func(s *Server) {
		expectKind(t, s.Handle(1, func(ctx context.Context, r *Request) ([]byte, error) {
			begun <- struct{}{}
			<-gate
			return nil, nil
		}), 0)
	})
	p := rawClient(t, s.Path())
	p.put(typeIDCall, 1, rpcWords("", 0, 0, 1, 0))
	<-begun
	p.put(typeIDCancel, 1, nil)
	// No rapid reset: the place is not free.
	p.put(typeIDCall, 2, rpcWords("", 0, 0, 1, 0))
	if id, h, _ := p.reply(); id != 2 || h.status != rpcOverloaded {
		t.Fatal(id, h)
	}
	close(gate)
	if id, h, _ := p.reply(); id != 1 || h.status != rpcCancelled {
		t.Fatal(id, h)
	}
	p.put(typeIDCall, 3, rpcWords("", 0, 0, 1, 0))
	if id, h, _ := p.reply(); id != 3 || h.status != rpcOk {
		t.Fatal(id, h)
	}
}

func TestACancelledStreamEndsWithoutCredit(t *testing.T) {
	s := served(t, ServeOptions{}, func(s *Server) { expectKind(t, s.HandleStream(1, endless), 0) })
	p := rawClient(t, s.Path())
	p.put(typeIDCall, 1, rpcWords("", 0, 0, 1, 2))
	for range 2 {
		if _, h, _ := p.reply(); h.flags != rpcElement {
			t.Fatal(h)
		}
	}
	p.put(typeIDCancel, 1, nil)
	if _, h, _ := p.reply(); h.flags != 0 || h.status != rpcCancelled {
		t.Fatal(h)
	}
	// With credit the elements go on, as many as it says.
	p.put(typeIDCall, 2, rpcWords("", 0, 0, 1, 1))
	p.reply()
	p.put(typeIDCredit, 2, rpcWords("", 3))
	for range 3 {
		if _, h, _ := p.reply(); h.flags != rpcElement {
			t.Fatal(h)
		}
	}
	p.put(typeIDCall, 3, rpcWords("", 0, 0, methodPing, 0))
	if id, h, _ := p.reply(); id != 3 || h.status != rpcOk {
		t.Fatal(id, h)
	}
}

func TestOneClientHasHalfOfThePoolWhileOthersWait(t *testing.T) {
	begun, gate := make(chan string, 100), make(chan struct{})
	s := served(t, ServeOptions{Pool: 4}, func(s *Server) {
		expectKind(t, s.Handle(1, func(ctx context.Context, r *Request) ([]byte, error) {
			begun <- string(r.Body)
			<-gate
			return nil, nil
		}), 0)
	})
	greedy, modest := rawClient(t, s.Path()), rawClient(t, s.Path())
	for id := range uint64(20) {
		greedy.put(typeIDCall, id+1, rpcWords("g", 0, 0, 1, 0))
	}
	// Alone it has all of it.
	for range 4 {
		<-begun
	}
	for id := range uint64(3) {
		modest.put(typeIDCall, id+1, rpcWords("m", 0, 0, 1, 0))
	}
	eventually(t, "16 calls of the one and 3 of the other wait", func() bool {
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		waiting := map[int]bool{}
		for _, c := range s.pool.waiting {
			n := 0
			for task := c.queue.first; task != nil; task = task.after {
				n++
			}
			waiting[n] = true
		}
		return waiting[16] && waiting[3]
	})
	got := ""
	for range 4 {
		gate <- struct{}{}
		got += <-begun
	}
	if got[:2] != "mm" {
		t.Fatal("the places that got free went to " + got)
	}
	close(gate)
	for range 20 {
		greedy.reply()
	}
	for range 3 {
		modest.reply()
	}
}

func TestMethodsAndOptionsThatCannotBe(t *testing.T) {
	at := newFolder(t)
	for _, o := range []ServeOptions{{MaxClients: -1}, {MaxInFlight: -1}, {MaxInFlight: rpcInFlightMax + 1}, {MaxBytes: -1}, {Pool: -1},
		{Capacity: -1}, {Align: 3}, {Wait: 9}} {
		_, err := BindServer(at.at("no"), o)
		expectKind(t, err, InvalidArgument)
	}
	s := served(t, ServeOptions{MaxClients: 1, Capacity: 4096}, func(s *Server) {
		expectKind(t, s.Handle(1, echo), 0)
		expectKind(t, s.Handle(1, echo), AlreadyExists)
		expectKind(t, s.HandleStream(1, endless), AlreadyExists)
		expectKind(t, s.HandleNamed("Store.Get", echo), 0)
		expectKind(t, s.HandleStreamNamed("Store.Get", endless), AlreadyExists)
		expectKind(t, s.Handle(0xBADEBBDC, echo), AlreadyExists)
		expectKind(t, s.Handle(methodPing, echo), InvalidArgument)
		expectKind(t, s.HandleNamed("a\nb", echo), InvalidArgument)
	})
	_, err := BindServer(s.Path(), ServeOptions{})
	expectKind(t, err, AlreadyExists)
	c := calling(t, s, ClientOptions{})
	_, err = ConnectClient(within(t), s.Path(), ClientOptions{})
	expectKind(t, err, Busy)
	_, err = ConnectClient(within(t), s.Path(), ClientOptions{MaxBuffered: -1})
	expectKind(t, err, InvalidArgument)
	_, err = c.Call(within(t), 1, nil, WithWindow(1))
	expectKind(t, err, InvalidArgument)
	for _, window := range []int{0, -1, 1 << 32} {
		_, err = c.Stream(within(t), 1, nil, WithWindow(window))
		expectKind(t, err, InvalidArgument)
	}
	_, err = c.Call(within(t), 1, make([]byte, 5000))
	expectKind(t, err, TooLarge)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	var failed *CallError
	if _, err = c.Call(over, 1, nil); !errors.Is(err, StatusCancelled) || !errors.As(err, &failed) || failed.MayHaveRun() {
		t.Fatal(err)
	}
	stream, err := c.Stream(within(t), 1, []byte("x"))
	expectKind(t, err, 0)
	if _, err = stream.Next(within(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is complete", func() bool { _, err := stream.TryNext(); return err == io.EOF })
	if s.Clients() != 1 {
		t.Fatal(s.Clients())
	}
}
