package ramway

import (
	"context"
	"time"
)

// clientLedger is what a client knows of its calls: which wait, which are in flight, what they owe to the server, which replies nobody
// has taken. It does no input or output and has no lock: that of the Client guards it.
//
// A call goes from queued (no id yet) by way of in flight (published, no final REPLY yet) to ended. Its outcome is decided once, also
// before its final REPLY has come: then it stays in flight, owes a CANCEL, and what comes for it is dropped.
type clientLedger struct {
	maxInFlight uint64
	// maxBuffered is how many bytes of replies may be held, held how many there are.
	maxBuffered, held uint64
	// last is the id of the last CALL.
	last uint64
	// calls are those in flight, by id.
	calls map[uint64]*clientCall
	// queue are those that are not sent yet, in the order of the calls.
	queue linkedList[clientCall]
	// owed are calls that owe a CANCEL or CREDIT, each at most once; some may owe nothing any more.
	owed []*clientCall
	// over: the connection has ended.
	over bool
}

// callState is how far a call is.
type callState uint8

const (
	callQueued callState = iota
	callInFlight
	callEnded
)

// clientCall is a call of a client.
type clientCall struct {
	// What is sent; meta and body are the caller's until the call is published.
	method, window uint32
	meta, body     []byte
	deadline       time.Time

	state callState
	// decided: outcome says how the call ended, nil for Ok.
	decided bool
	outcome *CallError
	// owesCancel and owesCredit are what was not sent yet; owing: it is in owed.
	owesCancel, owing bool
	owesCredit        uint32
	id                uint64
	// credit is how many elements may still come.
	credit uint64
	// replies are those that nobody has taken, held their bytes.
	replies []Reply
	held    uint64
	// queued is its place in the queue.
	queued linkedNode[clientCall]
	// one is where replies lie while there is a single one, as there is for most calls.
	one [1]Reply

	// waiter is the goroutine that waits for something of this call; see rpc_client_wait.go.
	waiter *callWaiter
	// unwatch ends the watch of the call's own context.
	unwatch func() bool
}

func newClientLedger(maxInFlight uint32, maxBuffered uint64) clientLedger {
	return clientLedger{maxInFlight: uint64(maxInFlight), maxBuffered: maxBuffered, calls: map[uint64]*clientCall{}}
}

// begin puts a call at the end of the queue.
func (l *clientLedger) begin(k *clientCall) {
	k.state, k.queued.of = callQueued, k
	l.queue.add(&k.queued)
}

// sendable is the next call to be published; nil if there is none, or as many are in flight as may be.
func (l *clientLedger) sendable() *clientCall {
	if uint64(len(l.calls)) >= l.maxInFlight {
		return nil
	}
	return l.queue.front()
}

// published is for a call that was sent, with the id last + 1.
func (l *clientLedger) published(k *clientCall) {
	l.queue.remove(&k.queued)
	l.last++
	k.state, k.id, k.credit = callInFlight, l.last, uint64(k.window)
	k.meta, k.body = nil, nil
	l.calls[k.id] = k
}

// decide is the outcome of a call by this side: its clock, a cancellation, a limit. What it holds is dropped. Nothing happens to a call
// whose outcome is decided.
func (l *clientLedger) decide(k *clientCall, outcome *CallError) {
	if k.decided {
		return
	}
	k.decided, k.outcome = true, outcome
	outcome.method, outcome.mayHaveRun = k.method, k.state == callInFlight
	l.drop(k)
	switch k.state {
	case callQueued:
		l.queue.remove(&k.queued)
		k.state, k.meta, k.body = callEnded, nil, nil
	case callInFlight:
		k.owesCancel, k.owesCredit = true, 0
		l.owe(k)
	}
}

// drop lets the replies go that nobody has taken.
func (l *clientLedger) drop(k *clientCall) {
	l.held -= k.held
	k.held, k.replies, k.one[0] = 0, nil, Reply{}
}

func (l *clientLedger) owe(k *clientCall) {
	if !k.owing {
		k.owing = true
		l.owed = append(l.owed, k)
	}
}

// nextOwed is the next call that owes something; nil if none does.
func (l *clientLedger) nextOwed() *clientCall {
	for len(l.owed) > 0 {
		k := l.owed[0]
		if k.state == callInFlight && (k.owesCancel || k.owesCredit != 0) {
			return k
		}
		l.paid()
	}
	l.owed = nil
	return nil
}

// paid takes the first call out of owed: it owes nothing.
func (l *clientLedger) paid() {
	k := l.owed[0]
	k.owing, k.owesCancel, k.owesCredit = false, false, 0
	l.owed[0] = nil
	l.owed = l.owed[1:]
}

// reply is a REPLY that was received; the error is Corrupt. It gives the call, whose owner may be told; nil if nobody is to be.
func (l *clientLedger) reply(id uint64, h replyHeader, meta, body []byte) (*clientCall, error) {
	k := l.calls[id]
	switch {
	case id == 0 || id > l.last:
		return nil, failf(Corrupt, "a REPLY to call %d, expected one of 1 to %d", id, l.last)
	case k == nil:
		return nil, failf(Corrupt, "a REPLY to call %d, which has its final one", id)
	}
	if h.flags&rpcElement != 0 {
		switch {
		case k.window == 0:
			return nil, failf(Corrupt, "an element for call %d, which is no stream", id)
		case k.credit == 0:
			return nil, failf(Corrupt, "an element for call %d, which has no credit left", id)
		}
		k.credit--
		if k.decided {
			return nil, nil
		}
		l.hold(k, Reply{body, meta})
		return k, nil
	}
	if k.window != 0 && h.status == rpcOk && len(body) != 0 {
		return nil, failf(Corrupt, "the end of the stream of call %d has a body of %d bytes, expected none", id, len(body))
	}
	delete(l.calls, id)
	if k.state = callEnded; k.decided {
		return nil, nil
	}
	if h.status != rpcOk {
		k.decided, k.outcome = true, replyError(k.method, h, body)
		if h.status == rpcCancelled && !k.deadline.IsZero() && !time.Now().Before(k.deadline) {
			// The server's clock has said so a moment before this side asked its own.
			k.outcome = &CallError{Err: &Error{Kind: TimedOut, Err: context.DeadlineExceeded}, method: k.method, mayHaveRun: true}
		}
		return k, nil
	}
	if k.window == 0 {
		l.hold(k, Reply{body, meta})
	}
	k.decided = true
	return k, nil
}

// hold keeps a reply until somebody takes it, or fails its call.
func (l *clientLedger) hold(k *clientCall, r Reply) {
	size := uint64(len(r.Body) + len(r.Meta))
	if size > l.maxBuffered-l.held {
		l.decide(k, &CallError{Err: failf(TooLarge, "a reply of %d bytes, and %d bytes of replies wait to be taken already: at most %d may "+
			"(ClientOptions.MaxBuffered)", size, l.held, l.maxBuffered)})
		k.outcome.mayHaveRun = true
		return
	}
	l.held += size
	k.held += size
	if k.replies == nil {
		k.replies = k.one[:0]
	}
	k.replies = append(k.replies, r)
}

// take takes the oldest reply that the call holds. A stream then owes credit for it, which is sent for a half of the window at a time.
func (l *clientLedger) take(k *clientCall) (Reply, bool) {
	if len(k.replies) == 0 {
		return Reply{}, false
	}
	r := k.replies[0]
	k.replies[0] = Reply{}
	if k.replies = k.replies[1:]; len(k.replies) == 0 {
		k.replies = nil
	}
	size := uint64(len(r.Body) + len(r.Meta))
	l.held -= size
	k.held -= size
	if k.window != 0 && k.state == callInFlight && !k.decided {
		k.owesCredit = addCredit(k.owesCredit, 1)
		if k.owesCredit >= max(k.window/2, 1) {
			l.owe(k)
		}
	}
	return r, true
}

// creditSent is for the credit that the first of owed has sent.
func (l *clientLedger) creditSent(k *clientCall) {
	k.credit += uint64(k.owesCredit)
	l.paid()
}

// cutOff ends the queue: nothing can be sent any more.
func (l *clientLedger) cutOff(why func() *CallError, tell func(*clientCall)) {
	l.owed = nil
	for k := l.queue.front(); k != nil; k = l.queue.front() {
		l.decide(k, why())
		tell(k)
	}
}

// finish ends all calls with the connection. What they hold can still be taken. notRun: those without a reply were not run.
func (l *clientLedger) finish(notRun bool, why func() *CallError, tell func(*clientCall)) {
	l.over = true
	l.cutOff(why, tell)
	for _, k := range l.calls {
		k.state = callEnded
		if !k.decided {
			k.decided, k.outcome = true, why()
			k.outcome.method, k.outcome.mayHaveRun = k.method, !notRun
			tell(k)
		}
	}
	clear(l.calls)
}

// replyError is the outcome that a final REPLY says.
func replyError(method uint32, h replyHeader, body []byte) *CallError {
	e := &CallError{Status: Status(h.status), Code: h.code, method: method, mayHaveRun: !Status(h.status).notRun()}
	if e.Status == StatusApplication || e.Status == StatusHandlerFailed {
		e.Text = validText(body)
	}
	return e
}
