package ramway

import (
	"context"
	"io"
	"iter"
	"runtime"
)

// Pending is a call that is under way, see [Client.Start]. One goroutine at a time may wait for it (ErrBusy); Cancel is safe from any. One that
// becomes garbage is cancelled.
type Pending struct {
	c *Client
	k *clientCall
}

func newPending(c *Client, k *clientCall) *Pending {
	p := &Pending{c, k}
	runtime.SetFinalizer(p, func(p *Pending) { go p.Cancel() })
	return p
}

// Wait waits for the reply until ctx is done, with which only the wait ends and the call goes on: ErrTimedOut or ErrInterrupted with the
// context's cause. nil is a context that is never done. Once it has given the reply it gives no other one: ErrDetached.
//
// Errors: a [*CallError], as for [Client.Call].
func (p *Pending) Wait(ctx context.Context) (Reply, error) {
	defer runtime.KeepAlive(p)
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if p.c.waitsFor(p.k) {
		return Reply{}, p.c.refused(p.k.method, failf(Busy, "another goroutine waits for this call"))
	}
	if err := p.c.wait(orNever(ctx), p.k, goalDecided); err != nil {
		return Reply{}, about(err, "waiting for a reply of", p.c.name)
	}
	return p.taken()
}

// Try is the reply if it is there: ErrEmpty if the call is under way.
//
// Errors: as for [Pending.Wait].
func (p *Pending) Try() (Reply, error) {
	defer runtime.KeepAlive(p)
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	p.c.receiveNow(p.k, goalDecided)
	if !p.k.decided {
		return Reply{}, ErrEmpty
	}
	return p.taken()
}

// taken takes the reply. With mu.
func (p *Pending) taken() (Reply, error) {
	if p.k.outcome == nil && len(p.k.replies) == 0 {
		return Reply{}, p.c.refused(p.k.method, failf(Detached, "the reply was taken already"))
	}
	return p.c.result(p.k)
}

// Cancel cancels the call: its reply is dropped if it comes, and a Wait ends with StatusCancelled. Nothing happens to a call that has ended.
func (p *Pending) Cancel() { p.c.cancel(p.k) }

// cancel is Cancel of a Pending and of a stream.
func (c *Client) cancel(k *clientCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.decided {
		c.ledger.drop(k)
		return
	}
	c.decide(k, &CallError{Status: StatusCancelled, Err: failf(Interrupted, "the caller cancelled it")})
}

// waitsFor says whether a goroutine waits for something of this call. With mu.
func (c *Client) waitsFor(k *clientCall) bool { return k.waiter != nil || c.pumping == k }

// receiveNow receives what is there, without waiting, if nobody else receives. With mu, which is given up meanwhile.
func (c *Client) receiveNow(k *clientCall, goal callGoal) {
	if c.pumping != nil || c.ended != nil || k.reached(goal) {
		return
	}
	c.pumping = k
	if c.drain(k, goal); c.ended == nil {
		c.flush()
	}
	c.pumping = nil
	c.passOn()
}

// ReplyStream is a stream of replies, see [Client.Stream]. The server sends no more elements ahead than the window has room for: a
// stream that nobody reads holds up nothing else. One goroutine at a time may wait for it (ErrBusy); Cancel is safe from any. One
// that becomes garbage is cancelled.
//
//	stream, err := client.Stream(ctx, 9, []byte("all"))
//	if err != nil { ... }
//	for element, err := range stream.All(ctx) {
//		if err != nil { ... } // the last round
//		use(element.Body)
//	}
type ReplyStream struct {
	c *Client
	k *clientCall
}

func newReplyStream(c *Client, k *clientCall) *ReplyStream {
	s := &ReplyStream{c, k}
	runtime.SetFinalizer(s, func(s *ReplyStream) { go s.Cancel() })
	return s
}

// Next is the next element, waiting for it until ctx is done, with which only the wait ends and the stream goes on: ErrTimedOut or
// ErrInterrupted with the context's cause. nil is a context that is never done. io.EOF says that the stream is complete.
//
// Errors: after the elements that came before, a [*CallError], as for [Client.Call].
func (s *ReplyStream) Next(ctx context.Context) (Reply, error) {
	defer runtime.KeepAlive(s)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.c.waitsFor(s.k) {
		return Reply{}, s.c.refused(s.k.method, failf(Busy, "another goroutine waits for this stream"))
	}
	if len(s.k.replies) == 0 {
		if err := s.c.wait(orNever(ctx), s.k, goalElement); err != nil {
			return Reply{}, about(err, "waiting for an element of a stream of", s.c.name)
		}
	}
	return s.taken()
}

// TryNext is [ReplyStream.Next] that does not wait: ErrEmpty if no element is there now.
func (s *ReplyStream) TryNext() (Reply, error) {
	defer runtime.KeepAlive(s)
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.receiveNow(s.k, goalElement)
	if len(s.k.replies) == 0 && !s.k.decided {
		return Reply{}, ErrEmpty
	}
	return s.taken()
}

// taken takes an element, or the end. With mu.
func (s *ReplyStream) taken() (Reply, error) {
	if r, some := s.c.ledger.take(s.k); some {
		if s.k.owing {
			s.c.flush()
		}
		return r, nil
	}
	if s.k.outcome != nil {
		return s.c.result(s.k)
	}
	return Reply{}, io.EOF
}

// All gives the elements one after another. An error comes last, with an empty Reply; a stream that is complete just ends. When ctx is done the
// loop ends with its error; then, and when the loop's body leaves early, the call is cancelled.
func (s *ReplyStream) All(ctx context.Context) iter.Seq2[Reply, error] {
	return func(yield func(Reply, error) bool) {
		defer s.Cancel()
		for {
			r, err := s.Next(ctx)
			if err == io.EOF || !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Cancel cancels the call: elements that have not been taken are dropped, and a Next ends with StatusCancelled. Nothing happens to a stream that
// has ended, but that its elements are dropped.
func (s *ReplyStream) Cancel() { s.c.cancel(s.k) }
