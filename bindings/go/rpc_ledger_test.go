package ramway

import (
	"errors"
	"math"
	"testing"
	"time"
)

// What both sides keep, without any input or output.

// publishAll publishes what may be.
func (l *clientLedger) publishAll() (n int) {
	for k := l.sendable(); k != nil; k = l.sendable() {
		l.published(k)
		n++
	}
	return n
}

func begun(l *clientLedger, window uint32) *clientCall {
	k := &clientCall{window: window}
	l.begin(k)
	return k
}

func TestClientLedgerKeepsTheOrderAndTheLimit(t *testing.T) {
	l := newClientLedger(2, 100)
	calls := []*clientCall{}
	for range 5 {
		calls = append(calls, begun(&l, 0))
	}
	if l.publishAll() != 2 || calls[0].id != 1 || calls[1].id != 2 || calls[2].state != callQueued {
		t.Fatal("not the first two")
	}
	// One that waits is withdrawn: it has no id, was not run, and owes nothing.
	l.decide(calls[3], &CallError{})
	if calls[3].outcome.mayHaveRun || calls[3].state != callEnded || l.nextOwed() != nil {
		t.Fatal("not withdrawn")
	}
	// One in flight that is cancelled keeps its place.
	l.decide(calls[0], &CallError{})
	if !calls[0].outcome.mayHaveRun || l.publishAll() != 0 {
		t.Fatal("a cancelled call gave its place up early")
	}
	if k := l.nextOwed(); k != calls[0] || !k.owesCancel {
		t.Fatal("no CANCEL is owed")
	}
	l.paid()
	if l.nextOwed() != nil {
		t.Fatal("the CANCEL is owed twice")
	}
	first := calls[0].outcome
	k, err := l.reply(1, replyHeader{}, nil, []byte("late"))
	if k != nil || err != nil || calls[0].outcome != first || l.held != 0 {
		t.Fatal("a late reply was not dropped")
	}
	if l.publishAll() != 1 || calls[2].id != 3 {
		t.Fatal("the place was not free")
	}
	if k, err = l.reply(2, replyHeader{}, nil, []byte("body")); k != calls[1] || err != nil || l.held != 4 {
		t.Fatal(k, err)
	}
	if r, some := l.take(k); !some || string(r.Body) != "body" || l.held != 0 {
		t.Fatal(r)
	}
	if l.publishAll() != 1 || calls[4].id != 4 {
		t.Fatal("the last one")
	}
}

func TestClientLedgerFindsWhatIsCorrupt(t *testing.T) {
	element := replyHeader{flags: rpcElement}
	for what, c := range map[string]func(l *clientLedger) error{
		"id 0":                       func(l *clientLedger) error { _, err := l.reply(0, replyHeader{}, nil, nil); return err },
		"an id not issued":           func(l *clientLedger) error { _, err := l.reply(3, replyHeader{}, nil, nil); return err },
		"the largest id":             func(l *clientLedger) error { _, err := l.reply(math.MaxUint64, replyHeader{}, nil, nil); return err },
		"an element of no stream":    func(l *clientLedger) error { _, err := l.reply(1, element, nil, nil); return err },
		"an end of a stream with it": func(l *clientLedger) error { _, err := l.reply(2, replyHeader{}, nil, []byte("x")); return err },
		"two final replies": func(l *clientLedger) error {
			if _, err := l.reply(1, replyHeader{}, nil, nil); err != nil {
				return nil
			}
			_, err := l.reply(1, replyHeader{}, nil, nil)
			return err
		},
		"an element after the end": func(l *clientLedger) error {
			if _, err := l.reply(2, replyHeader{}, nil, nil); err != nil {
				return nil
			}
			_, err := l.reply(2, element, nil, nil)
			return err
		},
		"an element beyond the credit": func(l *clientLedger) error {
			for range 2 {
				if _, err := l.reply(2, element, nil, nil); err != nil {
					return nil
				}
			}
			_, err := l.reply(2, element, nil, nil)
			return err
		},
		"an element beyond the credit of a cancelled call": func(l *clientLedger) error {
			l.decide(l.calls[2], &CallError{})
			for range 2 {
				if _, err := l.reply(2, element, nil, nil); err != nil {
					return nil
				}
			}
			_, err := l.reply(2, element, nil, nil)
			return err
		},
	} {
		l := newClientLedger(10, 100)
		begun(&l, 0)
		begun(&l, 2)
		l.publishAll()
		if err := c(&l); KindOf(err) != Corrupt {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestClientLedgerSumsCredit(t *testing.T) {
	l := newClientLedger(10, 1000)
	k := begun(&l, 8)
	l.publishAll()
	element := replyHeader{flags: rpcElement}
	for range 8 {
		if _, err := l.reply(1, element, nil, []byte("12345")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if _, some := l.take(k); !some || l.nextOwed() != nil {
			t.Fatal("credit is owed after", i)
		}
	}
	// From a half of the window on it is to be sent; one sum, however often.
	for range 3 {
		l.take(k)
	}
	if owed := l.nextOwed(); owed != k || k.owesCredit != 6 || len(l.owed) != 1 {
		t.Fatal(k.owesCredit, len(l.owed))
	}
	l.creditSent(k)
	if k.credit != 6 || l.nextOwed() != nil {
		t.Fatal(k.credit)
	}
	// A cancelled call owes no credit, and what it held is dropped.
	l.take(k)
	l.take(k)
	if _, err := l.reply(1, element, nil, []byte("more")); err != nil {
		t.Fatal(err)
	}
	l.decide(k, &CallError{})
	if l.held != 0 || k.owesCredit != 0 || !l.nextOwed().owesCancel {
		t.Fatal(l.held, k.owesCredit)
	}
}

func TestClientLedgerBoundsWhatItHolds(t *testing.T) {
	l := newClientLedger(10, 10)
	a, b := begun(&l, 0), begun(&l, 4)
	l.publishAll()
	if k, err := l.reply(1, replyHeader{}, []byte("12"), []byte("345678")); k != a || err != nil || l.held != 8 {
		t.Fatal(k, err, l.held)
	}
	// 3 more are too many: the call fails and is cancelled, the connection goes on.
	if k, err := l.reply(2, replyHeader{flags: rpcElement}, nil, []byte("123")); k != b || err != nil || KindOf(b.outcome) != TooLarge {
		t.Fatal(k, err)
	}
	if !b.outcome.mayHaveRun || l.nextOwed() != b || l.held != 8 {
		t.Fatal(b.outcome, l.held)
	}
	if _, err := l.reply(2, replyHeader{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if r, _ := l.take(a); string(r.Body) != "345678" || l.held != 0 {
		t.Fatal(r, l.held)
	}
	c := begun(&l, 0)
	l.publishAll()
	if k, err := l.reply(3, replyHeader{}, nil, make([]byte, 11)); k != c || err != nil || KindOf(c.outcome) != TooLarge || !c.outcome.mayHaveRun {
		t.Fatal(k, err)
	}
}

func TestClientLedgerEndsEveryCallOnce(t *testing.T) {
	l := newClientLedger(2, 100)
	calls := []*clientCall{begun(&l, 0), begun(&l, 3), begun(&l, 0)}
	l.publishAll()
	if _, err := l.reply(2, replyHeader{flags: rpcElement}, nil, []byte("kept")); err != nil {
		t.Fatal(err)
	}
	told := map[*clientCall]int{}
	l.finish(false, func() *CallError { return &CallError{Err: ErrPeerDead} }, func(k *clientCall) { told[k]++ })
	for i, k := range calls {
		if told[k] != 1 || !k.decided || k.outcome.mayHaveRun != (i < 2) || k.state != callEnded {
			t.Errorf("call %d: told %d times, %+v", i, told[k], k.outcome)
		}
	}
	// What came before can still be taken.
	if r, some := l.take(calls[1]); !some || string(r.Body) != "kept" {
		t.Fatal(r)
	}
}

func serverCallOf(t *testing.T, l *serverLedger, id uint64, window uint32, size uint64) *serverCall {
	t.Helper()
	k, err := l.call(id, callHeader{window: window}, size)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestServerLedgerRefusesBeyondItsLimits(t *testing.T) {
	l := newServerLedger(2, 100)
	a := serverCallOf(t, &l, 1, 0, 60)
	refused := func(id uint64, size uint64, status Status) {
		t.Helper()
		if k := serverCallOf(t, &l, id, 0, size); k != nil || l.refusal != (refusal{id, status}) || l.idle() {
			t.Fatal(k, l.refusal)
		}
		l.refusal = refusal{}
	}
	refused(2, 41, StatusOverloaded)
	serverCallOf(t, &l, 3, 0, 40)
	refused(4, 0, StatusOverloaded)
	// A handler that has ended gives its request's bytes back, but the place only with the final REPLY.
	l.handled(a)
	refused(5, 16, StatusOverloaded)
	l.published(a, replyHeader{})
	if k := serverCallOf(t, &l, 6, 0, 60); k == nil || l.bytes != 100 {
		t.Fatal(k, l.bytes)
	}
	l.draining = true
	l.published(l.calls[3], replyHeader{})
	refused(7, 0, StatusDraining)
	if k, err := l.call(8, callHeader{method: methodPing}, 0); k == nil || err != nil {
		t.Fatal("no ping while it drains")
	}
}

func TestServerLedgerFindsWhatIsCorrupt(t *testing.T) {
	for what, c := range map[string]func(l *serverLedger) error{
		"an id twice":               func(l *serverLedger) error { _, err := l.call(2, callHeader{}, 0); return err },
		"an id left out":            func(l *serverLedger) error { _, err := l.call(4, callHeader{}, 0); return err },
		"a CALL with id 0":          func(l *serverLedger) error { _, err := l.call(0, callHeader{}, 0); return err },
		"a CANCEL with id 0":        func(l *serverLedger) error { _, err := l.cancel(0); return err },
		"a CANCEL of none":          func(l *serverLedger) error { _, err := l.cancel(3); return err },
		"a CREDIT of none":          func(l *serverLedger) error { _, err := l.addCredit(math.MaxUint64, 1); return err },
		"a CREDIT with id 0":        func(l *serverLedger) error { _, err := l.addCredit(0, 1); return err },
		"a CREDIT without a stream": func(l *serverLedger) error { _, err := l.addCredit(1, 1); return err },
	} {
		l := newServerLedger(10, 100)
		serverCallOf(t, &l, 1, 0, 0)
		serverCallOf(t, &l, 2, 5, 0)
		if err := c(&l); KindOf(err) != Corrupt {
			t.Errorf("%s: %v", what, err)
		}
	}
	// What comes for a call that has ended is dropped, also CREDIT for one that was no stream.
	l := newServerLedger(10, 100)
	k := serverCallOf(t, &l, 1, 0, 0)
	l.published(k, replyHeader{})
	if k, err := l.cancel(1); k != nil || err != nil {
		t.Fatal(k, err)
	}
	if k, err := l.addCredit(1, 7); k != nil || err != nil {
		t.Fatal(k, err)
	}
}

func TestServerLedgerParksWithinItsBytes(t *testing.T) {
	l := newServerLedger(10, 100)
	a, b, c := serverCallOf(t, &l, 1, 0, 0), serverCallOf(t, &l, 2, 3, 0), serverCallOf(t, &l, 3, 0, 0)
	l.park(parkedReply{k: a, body: make([]byte, 90)}, true)
	l.park(parkedReply{k: c, body: make([]byte, 11)}, true)
	if l.bytes != 90 || !c.tooLarge || l.parked[1].h.status != rpcReplyTooLarge {
		t.Fatal(l.bytes, c.tooLarge)
	}
	// Of a handler that waits: nothing is copied.
	l.park(parkedReply{k: b, h: replyHeader{flags: rpcElement}, body: make([]byte, 1000)}, false)
	l.park(parkedReply{k: b}, true)
	if l.bytes != 90 || b.tooLarge {
		t.Fatal(l.bytes)
	}
	// An element of a call that was cancelled is not sent; its final reply is, without credit.
	b.stopped, b.credit = true, 0
	order := []*serverCall{}
	for p := l.nextParked(); p != nil; p = l.nextParked() {
		order = append(order, p.k)
		l.published(p.k, p.h)
		l.unpark()
	}
	if len(order) != 3 || order[0] != a || order[1] != c || order[2] != b || l.bytes != 0 || !l.idle() {
		t.Fatal(order, l.bytes)
	}
}

type placedTask func()

func (f placedTask) placed() { f() }

func TestHandlerPoolIsFair(t *testing.T) {
	p := handlerPool{limit: 3}
	var a, b poolClient
	ran := ""
	task := func(c *poolClient, name string) *poolTask {
		return &poolTask{client: c, work: placedTask(func() { ran += name })}
	}
	// Alone, a client has all places.
	for _, name := range []string{"a", "b", "c"} {
		if !p.submit(task(&a, name)) {
			t.Fatal(name)
		}
	}
	d := task(&a, "d")
	for _, one := range []*poolTask{d, task(&a, "e"), task(&a, "f"), task(&b, "1"), task(&b, "2"), task(&b, "3")} {
		if p.submit(one) {
			t.Fatal("beyond the limit")
		}
	}
	// While both wait, none gets more than a half, rounded up: two of three.
	p.leave(&a)
	p.leave(&a)
	if ran != "abc1d" {
		t.Fatal(ran)
	}
	for range 10 {
		if a.running > 2 && b.queue.first != nil || b.running > 2 && a.queue.first != nil {
			t.Fatal(a.running, b.running)
		}
		switch {
		case b.running > 0:
			p.leave(&b)
		case a.running > 0:
			p.leave(&a)
		}
	}
	if p.running != 0 || len(p.waiting) != 0 || a.running != 0 || b.running != 0 {
		t.Fatal(p.running, len(p.waiting), ran)
	}
	if len(ran) != 9 || p.withdraw(d) {
		t.Fatal("each runs once: " + ran)
	}
	// What is withdrawn does not run.
	for range p.limit {
		p.submit(task(&a, "g"))
	}
	h := task(&b, "h")
	if p.submit(h) || !p.withdraw(h) || p.withdraw(h) || len(p.waiting) != 0 {
		t.Fatal("not withdrawn")
	}
}

// A call whose time is over has timed out, whichever side's clock says so first.
func TestCancelledAfterTheDeadlineIsTheTimeOut(t *testing.T) {
	for left, late := range map[time.Duration]bool{time.Hour: false, -time.Second: true} {
		l := newClientLedger(2, 100)
		k := begun(&l, 0)
		k.deadline = time.Now().Add(left)
		l.publishAll()
		if got, err := l.reply(1, replyHeader{status: rpcCancelled}, nil, nil); got != k || err != nil {
			t.Fatal(got, err)
		}
		if errors.Is(k.outcome, ErrTimedOut) != late || errors.Is(k.outcome, StatusCancelled) == late || !k.outcome.MayHaveRun() {
			t.Errorf("with %v left: %v", left, k.outcome)
		}
	}
}
