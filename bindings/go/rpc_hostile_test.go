package ramway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A peer of RPC that sends whatever it likes: the error is its own connection's, and nothing else is disturbed.

// rawPeer is an end of an RPC's bus without any rules.
type rawPeer struct {
	t *testing.T
	// line sends, in receives: each may be used by a goroutine of its own.
	line, in rpcLine
}

func newRawPeer(t *testing.T, bus *Bus) *rawPeer {
	p := &rawPeer{t: t}
	p.line.start(bus)
	p.in.start(bus)
	return p
}

// rawClient connects to a server.
func rawClient(t *testing.T, path string) *rawPeer {
	t.Helper()
	bus, err := connect(background, path, ConnectOptions{}, rpcFeatures)
	expectKind(t, err, 0)
	t.Cleanup(func() { _ = bus.Close() })
	return newRawPeer(t, bus)
}

// rawServer is a server that the client of it does not know to be one.
func rawServer(t *testing.T, o ListenOptions, maxInFlight uint32, client ClientOptions) (*rawPeer, *Client) {
	t.Helper()
	o.terms = terms{features: rpcFeatures, maxInFlight: maxInFlight}
	l, err := Bind(newFolder(t).at("raw"), o)
	expectKind(t, err, 0)
	clients := make(chan *Client, 1)
	go func() {
		c, err := ConnectClient(background, l.Path(), client)
		if err != nil {
			t.Error(err)
		}
		clients <- c
	}()
	bus, err := l.Accept(within(t))
	expectKind(t, err, 0)
	c := <-clients
	t.Cleanup(func() { _ = c.Close(); _ = bus.Close(); _ = l.Close() })
	return newRawPeer(t, bus), c
}

// put sends a frame as it is, waiting for room.
func (p *rawPeer) put(typeID uint32, id uint64, payload []byte) {
	p.t.Helper()
	for {
		to, err := p.line.open(uint64(len(payload)))
		switch kindOf(err) {
		case 0:
			copy(to, payload)
			p.line.commit(uint64(len(payload)), typeID, id)
			return
		case Full:
			p.line.begin(lineWait{room: int64(len(payload)), roomOnly: true})
			_ = p.line.await(background, lineWait{room: int64(len(payload)), roomOnly: true})
			p.line.end()
		default:
			// The other side has dropped it already.
			return
		}
	}
}

// next receives a frame, waiting for it; the error is how the connection ended.
func (p *rawPeer) next() (frameIn, error) {
	p.t.Helper()
	ctx := within(p.t)
	for {
		var in frameIn
		some, err := p.in.take(&in)
		if some || err != nil {
			return in, err
		}
		p.in.begin(lineWait{room: -1})
		if err := p.in.await(ctx, lineWait{room: -1}); err != nil {
			p.t.Fatal(err)
		}
		p.in.end()
	}
}

// reply receives a REPLY.
func (p *rawPeer) reply() (id uint64, h replyHeader, body []byte) {
	p.t.Helper()
	in, err := p.next()
	expectKind(p.t, err, 0)
	h, _, body, err = decodeReply(in.payload)
	expectKind(p.t, err, 0)
	if in.typeID != typeIDReply {
		p.t.Fatalf("%#x", in.typeID)
	}
	return in.id, h, body
}

// call receives a CALL.
func (p *rawPeer) call() (id uint64, h callHeader, body []byte) {
	p.t.Helper()
	in, err := p.next()
	expectKind(p.t, err, 0)
	h, _, body, err = decodeCall(in.payload)
	expectKind(p.t, err, 0)
	if in.typeID != typeIDCall {
		p.t.Fatalf("%#x", in.typeID)
	}
	return in.id, h, body
}

// ended receives until the connection has ended.
func (p *rawPeer) ended() Kind {
	p.t.Helper()
	for {
		if _, err := p.next(); err != nil {
			return KindOf(err)
		}
	}
}

func TestAPlainListenerAndAServerRefuseEachOthersPeers(t *testing.T) {
	l, err := Bind(newFolder(t).at("plain"), ListenOptions{})
	expectKind(t, err, 0)
	accepting := make(chan error, 1)
	go func() {
		_, err := l.Accept(context.Background())
		accepting <- err
	}()
	_, err = ConnectClient(within(t), l.Path(), ClientOptions{})
	expectKind(t, err, AbiMismatch)
	expectKind(t, l.Close(), 0)
	expectKind(t, <-accepting, Detached)
	expectKind(t, l.LastRefusal(), AbiMismatch)
	s := served(t, ServeOptions{}, func(*Server) {})
	_, err = Connect(within(t), s.Path(), ConnectOptions{})
	expectKind(t, err, AbiMismatch)
	_, err = connect(within(t), s.Path(), ConnectOptions{}, 3)
	expectKind(t, err, AbiMismatch)
	// The server goes on.
	expectKind(t, calling(t, s, ClientOptions{}).Ping(within(t)), 0)
}

func TestAClientDistrustsTheServersOffer(t *testing.T) {
	for what, c := range map[string]struct {
		terms terms
		plan  func(l *Listener)
		kind  Kind
	}{
		"no call in flight":     {terms{rpcFeatures, 0}, func(*Listener) {}, Corrupt},
		"a segment without it":  {terms{rpcFeatures, 1}, func(l *Listener) { l.plan.spec.features = 0 }, AbiMismatch},
		"a segment with more":   {terms{rpcFeatures, 1}, func(l *Listener) { l.plan.spec.features = 3 }, AbiMismatch},
		"no ring to the server": {terms{rpcFeatures, 1}, func(l *Listener) { l.plan.spec.blocks[1].capacity = 0 }, Corrupt},
		"no ring to the client": {terms{rpcFeatures, 1}, func(l *Listener) { l.plan.spec.blocks[0].capacity = 0 }, Corrupt},
		"an ordinary one":       {terms{rpcFeatures, 1}, func(*Listener) {}, 0},
		"as many as can be":     {terms{rpcFeatures, math.MaxUint32}, func(*Listener) {}, 0},
	} {
		l, err := listen(newFolder(t).at("offer"), ListenOptions{terms: c.terms})
		expectKind(t, err, 0)
		c.plan(l)
		l.start()
		go func() { _, _ = l.Accept(context.Background()) }()
		client, err := ConnectClient(within(t), l.Path(), ClientOptions{})
		if KindOf(err) != c.kind {
			t.Errorf("%s: %v", what, err)
		}
		if client != nil {
			_ = client.Close()
		}
		_ = l.Close()
	}
}

func TestAHostileClientDisturbsNobody(t *testing.T) {
	running, cancelled := make(chan struct{}, 1000), make(chan struct{}, 1000)
	s := served(t, ServeOptions{Capacity: 4096, MaxInFlight: 4, MaxClients: 1000}, func(s *Server) {
		expectKind(t, s.Handle(1, echo), 0)
		expectKind(t, s.Handle(2, func(ctx context.Context, _ *Request) ([]byte, error) {
			running <- struct{}{}
			<-ctx.Done()
			cancelled <- struct{}{}
			return nil, ctx.Err()
		}), 0)
	})
	honest := calling(t, s, ClientOptions{})
	call := func(method, window uint32) []byte { return rpcWords("", 0, 0, method, window) }
	for what, attack := range map[string]func(p *rawPeer){
		"an id left out":           func(p *rawPeer) { p.put(typeIDCall, 2, call(1, 0)) },
		"id 0":                     func(p *rawPeer) { p.put(typeIDCall, 0, call(1, 0)) },
		"an id twice":              func(p *rawPeer) { p.put(typeIDCall, 1, call(1, 0)); p.put(typeIDCall, 1, call(1, 0)) },
		"a short CALL":             func(p *rawPeer) { p.put(typeIDCall, 1, make([]byte, 15)) },
		"metadata that is not":     func(p *rawPeer) { p.put(typeIDCall, 1, rpcWords("", 0, math.MaxUint32, 1, 0)) },
		"a REPLY":                  func(p *rawPeer) { p.put(typeIDReply, 1, make([]byte, 16)) },
		"a plain message":          func(p *rawPeer) { p.put(7, 1, nil) },
		"an unknown type":          func(p *rawPeer) { p.put(0xFFFF0014, 1, nil) },
		"a tensor":                 func(p *rawPeer) { p.put(TensorTypeID, 1, nil) },
		"a CANCEL of none":         func(p *rawPeer) { p.put(typeIDCancel, 1, nil) },
		"a CANCEL with bytes":      func(p *rawPeer) { p.put(typeIDCall, 1, call(1, 0)); p.put(typeIDCancel, 1, []byte{1}) },
		"a CREDIT of none":         func(p *rawPeer) { p.put(typeIDCredit, 1, rpcWords("", 1)) },
		"a CREDIT of 0":            func(p *rawPeer) { p.put(typeIDCall, 1, call(2, 1)); p.put(typeIDCredit, 1, rpcWords("", 0)) },
		"a long CREDIT":            func(p *rawPeer) { p.put(typeIDCall, 1, call(2, 1)); p.put(typeIDCredit, 1, rpcWords("", 1, 1)) },
		"a CREDIT for one reply":   func(p *rawPeer) { p.put(typeIDCall, 1, call(2, 0)); p.put(typeIDCredit, 1, rpcWords("", 1)) },
		"positions that cannot be": func(p *rawPeer) { atomic.StoreUint64(&p.line.tx.ring.tail, 3); p.line.tx.wakePeer() },
	} {
		p := rawClient(t, s.Path())
		attack(p)
		if kind := p.ended(); kind != PeerDead {
			t.Errorf("%s: the connection ended with %v, expected PeerDead", what, kind)
		}
		r, err := honest.Call(within(t), 1, []byte(what))
		if err != nil || string(r.Body) != what {
			t.Fatalf("after %s: %v", what, err)
		}
	}
	// The handlers of those that were dropped were cancelled.
	for range len(running) {
		<-running
		<-cancelled
	}
	eventually(t, "only the honest one is left", func() bool { return s.Clients() == 1 })
}

func TestLateCancelAndCreditAreDroppedAndTimesMayBeAnything(t *testing.T) {
	s := served(t, ServeOptions{}, func(s *Server) { expectKind(t, s.Handle(1, echo), 0) })
	p := rawClient(t, s.Path())
	id := uint64(0)
	for _, us := range []uint32{0, math.MaxUint32, math.MaxUint32 - 1} {
		id++
		p.put(typeIDCall, id, rpcWords("body", us, 0, 1, 0))
		if got, h, body := p.reply(); got != id || h.status != rpcOk || string(body) != "body" {
			t.Fatal(got, h, body)
		}
		p.put(typeIDCancel, id, nil)
		p.put(typeIDCancel, id, nil)
		p.put(typeIDCredit, id, rpcWords("", math.MaxUint32))
	}
	id++
	p.put(typeIDCall, id, rpcWords("", 1, 0, 1, 0))
	// It is over before, or while it runs, or in time.
	if got, h, _ := p.reply(); got != id || h.status != rpcTimedOut && h.status != rpcCancelled && h.status != rpcOk {
		t.Fatal(got, h)
	}
}

func TestAMillionOpenCallsAreRefusedAndHoldUpNobody(t *testing.T) {
	gate := make(chan struct{})
	s := served(t, ServeOptions{Capacity: 65536, MaxInFlight: 100, Pool: 4}, func(s *Server) {
		expectKind(t, s.Handle(1, func(ctx context.Context, r *Request) ([]byte, error) {
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return r.Body, nil
		}), 0)
		expectKind(t, s.Handle(2, echo), 0)
	})
	p := rawClient(t, s.Path())
	honest := calling(t, s, ClientOptions{})
	calls := 100_000
	if guardAlways {
		calls = 10_000
	}
	var sent sync.WaitGroup
	sent.Add(1)
	go func() {
		defer sent.Done()
		// It never reads meanwhile: its answers fill the ring, and then it is not read.
		for id := uint64(1); id <= uint64(calls); id++ {
			p.put(typeIDCall, id, rpcWords("", 0, 0, 1, 0))
		}
	}()
	// It has all of the pool; but each of the honest one's calls only waits until one of its handlers ends. None does, as long as nobody is
	// let in, but for ping, which needs none.
	for range 100 {
		expectKind(t, honest.Ping(within(t)), 0)
	}
	statuses := map[uint32]int{}
	for range calls - 100 {
		_, h, _ := p.reply()
		statuses[h.status]++
	}
	if statuses[rpcOverloaded] != calls-100 {
		t.Fatal(statuses)
	}
	sent.Wait()
	close(gate)
	for range 100 {
		if _, h, _ := p.reply(); h.status != rpcOk {
			t.Fatal(h)
		}
	}
	r, err := honest.Call(within(t), 2, []byte("still"))
	if err != nil || string(r.Body) != "still" {
		t.Fatal(err)
	}
}

func TestAClientThatDoesNotReadIsParkedWithinItsBytes(t *testing.T) {
	s := served(t, ServeOptions{Capacity: 4096, MaxBytes: 16384, MaxInFlight: 1000}, func(s *Server) {
		expectKind(t, s.Handle(1, func(context.Context, *Request) ([]byte, error) { return make([]byte, 1000), nil }), 0)
		expectKind(t, s.Handle(2, func(context.Context, *Request) ([]byte, error) { return make([]byte, 5000), nil }), 0)
	})
	p := rawClient(t, s.Path())
	p.put(typeIDCall, 1, rpcWords("", 0, 0, 2, 0))
	if _, h, _ := p.reply(); h.status != rpcReplyTooLarge {
		t.Fatal(h)
	}
	for id := uint64(2); id <= 101; id++ {
		p.put(typeIDCall, id, rpcWords("", 0, 0, 1, 0))
	}
	honest := calling(t, s, ClientOptions{})
	r, err := honest.Call(within(t), 1, nil)
	if err != nil || len(r.Body) != 1000 {
		t.Fatal(err)
	}
	// 3 fit into the ring, 16 into the bytes; the others were run in vain, or refused while there was no room for their requests.
	eventually(t, "all are answered or parked", func() bool {
		s.mu.Lock()
		conns := slices.Collect(maps.Keys(s.conns))
		s.mu.Unlock()
		for _, c := range conns {
			c.mu.Lock()
			parked, calls, last, bytes := len(c.ledger.parked), len(c.ledger.calls), c.ledger.last, c.ledger.bytes
			roomOnly := c.ledger.refusal.id != 0
			c.mu.Unlock()
			if bytes > 16384 {
				t.Errorf("%d bytes are copied", bytes)
			}
			if (last == 101 || roomOnly) && parked == calls {
				return true
			}
		}
		return false
	})
	got := map[uint32]int{}
	for range 100 {
		_, h, _ := p.reply()
		got[h.status]++
	}
	if got[rpcOk]+got[rpcReplyTooLarge]+got[rpcOverloaded] != 100 || got[rpcOk] < 16 || got[rpcOk] > 25 {
		t.Fatal(got)
	}
}

func TestAHostileServersClientIsCorruptAndNothingElse(t *testing.T) {
	for what, attack := range map[string]func(p *rawPeer, id, stream uint64){
		"an id not issued":          func(p *rawPeer, _, _ uint64) { p.put(typeIDReply, 99, rpcWords("", 0, 0, 0, 0)) },
		"id 0":                      func(p *rawPeer, _, _ uint64) { p.put(typeIDReply, 0, rpcWords("", 0, 0, 0, 0)) },
		"a CALL":                    func(p *rawPeer, _, _ uint64) { p.put(typeIDCall, 1, rpcWords("", 0, 0, 0, 0)) },
		"a CANCEL":                  func(p *rawPeer, id, _ uint64) { p.put(typeIDCancel, id, nil) },
		"a CREDIT":                  func(p *rawPeer, id, _ uint64) { p.put(typeIDCredit, id, rpcWords("", 1)) },
		"a plain message":           func(p *rawPeer, id, _ uint64) { p.put(1, id, rpcWords("", 0, 0, 0, 0)) },
		"an unknown status":         func(p *rawPeer, id, _ uint64) { p.put(typeIDReply, id, rpcWords("", 9, 0, 0, 0)) },
		"an unknown flag":           func(p *rawPeer, id, _ uint64) { p.put(typeIDReply, id, rpcWords("", 0, 4, 0, 0)) },
		"a code without its status": func(p *rawPeer, id, _ uint64) { p.put(typeIDReply, id, rpcWords("", 0, 0, 1, 0)) },
		"an element with a status":  func(p *rawPeer, _, id uint64) { p.put(typeIDReply, id, rpcWords("", 1, 1, 0, 0)) },
		"an element of no stream":   func(p *rawPeer, id, _ uint64) { p.put(typeIDReply, id, rpcWords("", 0, 1, 0, 0)) },
		"an end with a body":        func(p *rawPeer, _, id uint64) { p.put(typeIDReply, id, rpcWords("x", 0, 0, 0, 0)) },
		"metadata that is not":      func(p *rawPeer, id, _ uint64) { p.put(typeIDReply, id, rpcWords("", 0, 0, 0, 1)) },
		"a short REPLY":             func(p *rawPeer, id, _ uint64) { p.put(typeIDReply, id, rpcWords("", 0, 0, 0)) },
		"a REPLY twice": func(p *rawPeer, _, id uint64) {
			p.put(typeIDReply, id, rpcWords("", 2, 0, 0, 0))
			p.put(typeIDReply, id, rpcWords("", 2, 0, 0, 0))
		},
		"an element after the end": func(p *rawPeer, _, id uint64) {
			p.put(typeIDReply, id, rpcWords("", 0, 0, 0, 0))
			p.put(typeIDReply, id, rpcWords("", 0, 1, 0, 0))
		},
		"elements beyond the credit": func(p *rawPeer, _, id uint64) {
			for range 4 {
				p.put(typeIDReply, id, rpcWords("e", 0, 1, 0, 0))
			}
		},
		"a ring's tail where it is not": func(p *rawPeer, _, _ uint64) { atomic.StoreUint64(&p.line.tx.ring.tail, 1); p.line.tx.wakePeer() },
	} {
		p, c := rawServer(t, ListenOptions{Capacity: 4096}, 10, ClientOptions{})
		stream, err := c.Stream(within(t), 2, nil, WithWindow(3))
		expectKind(t, err, 0)
		streamID, _, _ := p.call()
		outcome := make(chan error, 1)
		go func() {
			_, err := c.Call(context.Background(), 1, nil)
			outcome <- err
		}()
		id, _, _ := p.call()
		attack(p, id, streamID)
		err = <-outcome
		expectKind(t, err, Corrupt)
		var failed *CallError
		if !errors.As(err, &failed) || !failed.MayHaveRun() {
			t.Errorf("%s: %v", what, err)
		}
		for range 5 {
			if _, err = stream.Next(within(t)); err != nil {
				break
			}
		}
		if kind := KindOf(err); kind != Corrupt && err != io.EOF && !errors.Is(err, StatusNoSuchMethod) {
			t.Errorf("%s: %v", what, err)
		}
		_, err = c.Call(within(t), 1, nil)
		expectKind(t, err, Corrupt)
		if errors.As(err, &failed); failed.MayHaveRun() {
			t.Errorf("%s: a call after the end may have run", what)
		}
		if kind := p.ended(); kind != PeerDead {
			t.Errorf("%s: the server was told %v", what, kind)
		}
	}
}

func TestAClientHoldsNoMoreThanItsLimit(t *testing.T) {
	p, c := rawServer(t, ListenOptions{Capacity: 65536}, 10, ClientOptions{MaxBuffered: 1000})
	ctx := within(t)
	a, err := c.Start(ctx, 1, nil)
	expectKind(t, err, 0)
	b, err := c.Start(ctx, 1, nil)
	expectKind(t, err, 0)
	first, _, _ := p.call()
	second, _, _ := p.call()
	p.put(typeIDReply, first, append(rpcWords("", 0, 0, 0, 0), make([]byte, 600)...))
	p.put(typeIDReply, second, append(rpcWords("", 0, 0, 0, 0), make([]byte, 600)...))
	_, err = b.Wait(ctx)
	expectKind(t, err, TooLarge)
	r, err := a.Wait(ctx)
	if err != nil || len(r.Body) != 600 {
		t.Fatal(err)
	}
	_, err = a.Wait(ctx)
	expectKind(t, err, Detached)
	// An element beyond fails its stream, which is cancelled; the connection goes on.
	s, err := c.Stream(ctx, 1, nil)
	expectKind(t, err, 0)
	third, _, _ := p.call()
	p.put(typeIDReply, third, append(rpcWords("", 0, 1, 0, 0), make([]byte, 1001)...))
	_, err = s.Next(ctx)
	expectKind(t, err, TooLarge)
	if in, err := p.next(); err != nil || in.typeID != typeIDCancel || in.id != third || len(in.payload) != 0 {
		t.Fatal(in, err)
	}
	p.put(typeIDReply, third, rpcWords("", 4, 0, 0, 0))
	go func() {
		id, _, body := p.call()
		p.put(typeIDReply, id, append(rpcWords("", 0, 0, 0, 0), body...))
	}()
	if r, err = c.Call(ctx, 1, []byte("goes on")); err != nil || !bytes.Equal(r.Body, []byte("goes on")) {
		t.Fatal(r, err)
	}
}

func TestCancelAndCreditGoBeforeAnyCallBehindAFullRing(t *testing.T) {
	p, c := rawServer(t, ListenOptions{Capacity: 4096}, 100, ClientOptions{})
	background := context.Background()
	a, err := c.Start(background, 1, nil)
	expectKind(t, err, 0)
	s, err := c.Stream(background, 2, nil, WithWindow(2))
	expectKind(t, err, 0)
	// The ring to the server is full: nobody reads there.
	full := make(chan error, 8)
	ctx, stop := context.WithCancel(background)
	defer stop()
	for range cap(full) {
		go func() {
			_, err := c.Call(ctx, 3, make([]byte, 1000))
			full <- err
		}()
	}
	eventually(t, "a call waits for room", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.line.state == lineSelects
	})
	a.Cancel()
	// An element comes and is taken although nothing can be sent.
	p.put(typeIDReply, 2, rpcWords("element", 0, 1, 0, 0))
	r, err := s.Next(within(t))
	if err != nil || string(r.Body) != "element" {
		t.Fatal(r, err)
	}
	id, _, _ := p.call()
	stream, _, _ := p.call()
	calls := 0
	var in frameIn
	for {
		if in, err = p.next(); err != nil || in.typeID != typeIDCall {
			break
		}
		if calls++; calls > 4 {
			t.Fatal("a CALL that waited for room went before a CANCEL")
		}
	}
	if in.typeID != typeIDCancel || in.id != id {
		t.Fatalf("%#x of %d", in.typeID, in.id)
	}
	if in, err = p.next(); err != nil || in.typeID != typeIDCredit || in.id != stream {
		t.Fatalf("%#x of %d, %v", in.typeID, in.id, err)
	}
	stop()
	for range cap(full) {
		expectKind(t, <-full, Interrupted)
	}
}

func TestAnUnsentCallThatTimesOutIsWithdrawn(t *testing.T) {
	p, c := rawServer(t, ListenOptions{}, 1, ClientOptions{})
	a, err := c.Start(within(t), 1, []byte("in flight"))
	expectKind(t, err, 0)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = c.Call(ctx, 1, []byte("never sent"))
	var failed *CallError
	if !errors.As(err, &failed) || failed.MayHaveRun() || !errors.Is(err, ErrTimedOut) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	id, _, _ := p.call()
	p.put(typeIDReply, id, rpcWords("done", 0, 0, 0, 0))
	r, err := a.Wait(within(t))
	if err != nil || string(r.Body) != "done" {
		t.Fatal(err)
	}
	// The next one has the next id: the one that was withdrawn had none.
	b, err := c.Start(within(t), 1, nil)
	expectKind(t, err, 0)
	if next, _, _ := p.call(); next != id+1 {
		t.Fatal(next)
	}
	// One that was sent and times out keeps its place until its final REPLY, and may have run.
	b.Cancel()
	_, err = b.Wait(within(t))
	if !errors.Is(err, StatusCancelled) || !errors.As(err, &failed) || !failed.MayHaveRun() || c.InFlight() != 1 {
		t.Fatal(err, c.InFlight())
	}
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = c.Call(ctx, 1, nil)
	if !errors.As(err, &failed) || failed.MayHaveRun() {
		t.Fatal(err)
	}
}

func TestAPumpLearnsThatItsOwnCallIsOver(t *testing.T) {
	// The server is silent, and the goroutine that waits for the call receives for all.
	p, c := rawServer(t, ListenOptions{}, 10, ClientOptions{Wait: Block})
	pumps := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.line.state == lineReceives
	}
	wait := func(call *Pending) chan error {
		outcome := make(chan error, 1)
		go func() {
			_, err := call.Wait(context.Background())
			outcome <- err
		}()
		eventually(t, "it sleeps", pumps)
		return outcome
	}
	ctx, cancel := context.WithCancel(context.Background())
	byContext, err := c.Start(ctx, 1, nil)
	expectKind(t, err, 0)
	outcome := wait(byContext)
	cancel()
	if err := <-outcome; !errors.Is(err, StatusCancelled) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	byCall, err := c.Start(context.Background(), 1, nil)
	expectKind(t, err, 0)
	outcome = wait(byCall)
	byCall.Cancel()
	if err := <-outcome; !errors.Is(err, StatusCancelled) {
		t.Fatal(err)
	}
	// And a follower takes the pump's place.
	first, err := c.Start(context.Background(), 1, nil)
	expectKind(t, err, 0)
	outcome = wait(first)
	second := make(chan error, 1)
	go func() {
		_, err := c.Call(context.Background(), 1, nil)
		second <- err
	}()
	eventually(t, "it follows", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.followers.first != nil
	})
	first.Cancel()
	if err := <-outcome; !errors.Is(err, StatusCancelled) {
		t.Fatal(err)
	}
	for range 7 {
		in, err := p.next()
		expectKind(t, err, 0)
		if in.typeID == typeIDCall && in.id == 4 {
			p.put(typeIDReply, 4, rpcWords("", 0, 0, 0, 0))
		}
	}
	expectKind(t, <-second, 0)
}

func TestACallsTimeIsInTheFrameAndEndsItHere(t *testing.T) {
	p, c := rawServer(t, ListenOptions{}, 10, ClientOptions{})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	outcome := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, 1, nil)
		outcome <- err
	}()
	id, h, _ := p.call()
	if h.timeoutUs == 0 || h.timeoutUs > 50_000 {
		t.Fatal(h.timeoutUs)
	}
	err := <-outcome
	var failed *CallError
	if !errors.Is(err, ErrTimedOut) || !errors.As(err, &failed) || !failed.MayHaveRun() {
		t.Fatal(err)
	}
	if in, err := p.next(); err != nil || in.typeID != typeIDCancel || in.id != id {
		t.Fatal(in, err)
	}
	p.put(typeIDReply, id, rpcWords("late", 0, 0, 0, 0))
	// The reply of a later call is received past it.
	go func() {
		id, h, _ := p.call()
		if h.timeoutUs != 0 {
			t.Error(h.timeoutUs)
		}
		p.put(typeIDReply, id, rpcWords("next", 0, 0, 0, 0))
	}()
	r, err := c.Call(context.Background(), 1, nil)
	if err != nil || string(r.Body) != "next" || c.InFlight() != 0 {
		t.Fatal(r, err)
	}
}
