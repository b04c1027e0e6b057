package ramway

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"time"
)

// serverConn is one client of a server: a goroutine that receives, the pump, and the goroutines of handlers, which send their replies
// themselves where there is room. Inline handlers run in the pump's own.
//
// The pump never waits for room alone: what does not fit is parked, and it reads on; only while the refusal of a call does not fit, this client
// is not read.
type serverConn struct {
	server *Server
	share  poolClient
	// ended is closed when the pump has ended.
	ended chan struct{}

	mu     sync.Mutex
	line   rpcLine
	ledger serverLedger
	// wantsRoom is for how many bytes what is to be sent waits; below 0: for none.
	wantsRoom int64
	// over: the connection has ended. unsent: nothing can be sent any more. leaving: it is to be closed.
	over, unsent, leaving bool

	// replyRoom is for the replies of inline handlers, of the pump.
	replyRoom []byte
}

// serverCall is a call of a client's, of which all but the request is with the connection's mu.
type serverCall struct {
	id             uint64
	method, window uint32
	credit         uint32
	// bytes are those of the request.
	bytes uint64
	// begun: the handler runs. stopped: the call was cancelled, or its client has gone. tooLarge: a reply was.
	begun, stopped, tooLarge bool
	// pending: an element waits for room.
	pending bool
	// inline: nobody holds the call but the connection.
	inline bool

	conn    *serverConn
	by      *serverMethod
	request Request
	ctx     context.Context
	cancel  context.CancelFunc
	// expiry ends the call while it waits for a place in the pool.
	expiry *time.Timer
	task   poolTask
	// wake is for the goroutine of a stream's handler.
	wake chan struct{}
}

func newServerConn(s *Server, bus *Bus) *serverConn {
	c := &serverConn{server: s, ledger: newServerLedger(s.maxInFlight, s.maxBytes), wantsRoom: -1, ended: make(chan struct{})}
	c.line.start(bus)
	return c
}

// serve is the pump.
func (c *serverConn) serve() {
	ended := false
	defer func() {
		if !ended {
			// An inline handler has ended this goroutine.
			go c.serve()
			return
		}
		close(c.ended)
		c.server.gone(c)
	}()
	for {
		c.line.poll()
		some, begun, err := c.round()
		c.mu.Lock()
		switch {
		case err != nil, c.unsent, c.leaving:
			c.finish(err)
			c.mu.Unlock()
			c.line.free()
			ended = true
			return
		case some:
			c.mu.Unlock()
			if begun {
				// The handlers run before this goroutine polls for the next request.
				runtime.Gosched()
			}
			continue
		}
		w := lineWait{room: c.wantsRoom, roomOnly: c.ledger.refusal.id != 0}
		c.line.begin(w)
		c.mu.Unlock()
		// Its context never ends. What has happened the next round finds out.
		_ = c.line.await(context.Background(), w)
		c.mu.Lock()
		c.line.end()
		c.mu.Unlock()
	}
}

// round sends what waits and receives what is there; false: nothing was. begun: a goroutine was. An error is the end of the connection.
func (c *serverConn) round() (some, begun bool, err error) {
	c.mu.Lock()
	c.flush()
	roomOnly := c.ledger.refusal.id != 0
	c.mu.Unlock()
	for range rpcFramesPerRound {
		if roomOnly {
			break
		}
		var in frameIn
		one, err := c.line.look(&in)
		if err != nil || !one {
			return some, begun, err
		}
		some = true
		c.mu.Lock()
		k, err := c.receive(&in)
		if err != nil {
			c.line.corrupt()
		}
		roomOnly = c.ledger.refusal.id != 0
		c.mu.Unlock()
		switch {
		case err != nil:
			c.line.release()
			return true, begun, err
		case k == nil:
			c.line.release()
		case k.inline:
			c.runInline(k)
		default:
			c.line.release()
			c.begin(k)
			begun = true
		}
	}
	return some, begun, nil
}

// finish is the end of the connection: calls are cancelled, their replies dropped. With mu.
func (c *serverConn) finish(err error) {
	// A client is told that it was closed only if each call that was taken has its final REPLY.
	abandoned := err != nil && kindOf(err) != Closed || !c.ledger.idle()
	c.over = true
	for _, k := range c.ledger.calls {
		c.stop(k)
	}
	c.ledger.finish()
	c.line.close(abandoned)
}

// receive is a frame that came, as it lies in the ring. The call is one that is to begin. An error, Corrupt, ends the connection. With mu.
func (c *serverConn) receive(in *frameIn) (*serverCall, error) {
	switch in.typeID {
	case typeIDCall:
		return c.receiveCall(in)
	case typeIDCancel:
		if err := decodeCancel(in.payload); err != nil {
			return nil, err
		}
		k, err := c.ledger.cancel(in.id)
		if k != nil {
			c.stop(k)
		}
		return nil, err
	case typeIDCredit:
		n, err := decodeCredit(in.payload)
		if err != nil {
			return nil, err
		}
		k, err := c.ledger.addCredit(in.id, n)
		if k != nil {
			k.wakeUp()
		}
		return nil, err
	}
	return nil, failf(Corrupt, "a frame of type %#x from a client, expected CALL, CANCEL or CREDIT", in.typeID)
}

// receiveCall is a CALL that came. With mu.
func (c *serverConn) receiveCall(in *frameIn) (*serverCall, error) {
	h, meta, body, err := decodeCall(in.payload)
	if err != nil {
		return nil, err
	}
	by := c.server.method(h.method)
	// Ramway's own methods, and what there is none for, are answered here.
	inline := by == nil || by.inline != nil
	size := uint64(len(in.payload) - rpcHeader)
	if inline {
		// Not copied.
		size = 0
	}
	k, err := c.ledger.call(in.id, h, size)
	if err != nil {
		return nil, err
	}
	if k == nil {
		c.flush()
		return nil, nil
	}
	k.conn, k.by, k.inline = c, by, inline
	switch h.method {
	case methodPing:
		c.answer(k, replyHeader{}, nil, nil)
		return nil, nil
	case methodDescribe:
		c.answer(k, replyHeader{}, nil, c.server.describe())
		return nil, nil
	}
	if by == nil {
		c.answer(k, replyHeader{status: rpcNoSuchMethod}, nil, nil)
		return nil, nil
	}
	r := &k.request
	r.Method, r.Body, r.Meta, r.conn = h.method, body, meta, c
	if h.timeoutUs != 0 {
		r.deadline = time.Now().Add(time.Duration(h.timeoutUs) * time.Microsecond)
	}
	if inline {
		return k, nil
	}
	if r.Meta, r.Body, err = splitParts(bytes.Clone(in.payload), h.metaLen); err != nil {
		return nil, err
	}
	if h.timeoutUs != 0 {
		k.ctx, k.cancel = context.WithDeadline(context.Background(), r.deadline)
	} else {
		k.ctx, k.cancel = context.WithCancel(context.Background())
	}
	r.ctx = k.ctx
	if k.window != 0 {
		k.wake = make(chan struct{}, 1)
	}
	k.task = poolTask{client: &c.share, work: k}
	return k, nil
}

// begin has a call's handler run, or wait for its place. Of the pump, without mu.
func (c *serverConn) begin(k *serverCall) {
	if c.server.pool.submit(&k.task) {
		return
	}
	if k.request.deadline.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !k.begun && !k.stopped {
		k.expiry = time.AfterFunc(time.Until(k.request.deadline), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if !k.begun && !k.stopped && c.server.pool.withdraw(&k.task) {
				k.stopped = true
				c.answer(k, replyHeader{status: rpcTimedOut}, nil, nil)
			}
		})
	}
}

// stop cancels a call: its handler is told, and one that has not begun never does. With mu.
func (c *serverConn) stop(k *serverCall) {
	if k.stopped || k.cancel == nil {
		return
	}
	k.stopped = true
	k.cancel()
	k.wakeUp()
	if !k.begun && c.server.pool.withdraw(&k.task) {
		c.answer(k, replyHeader{status: rpcCancelled}, nil, nil)
	}
}

// wakeUp wakes the goroutine of a stream's handler.
func (k *serverCall) wakeUp() {
	if k.wake != nil {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// answer is a call's final reply: sent, or parked. With mu.
func (c *serverConn) answer(k *serverCall, h replyHeader, meta, body []byte) {
	c.ledger.handled(k)
	if k.expiry != nil {
		k.expiry.Stop()
	}
	if k.cancel != nil {
		k.cancel()
	}
	if c.over {
		return
	}
	if one := k.by != nil && k.by.stream == nil; k.window != 0 && h.status == rpcOk && (one || len(body) != 0) {
		// Of a method whose reply is one, called as a stream: that has one element.
		c.put(parkedReply{k: k, h: replyHeader{flags: rpcElement}, meta: meta, body: body}, true)
		meta, body = nil, nil
		if k.tooLarge {
			h = replyHeader{status: rpcReplyTooLarge}
		}
	}
	c.put(parkedReply{k: k, h: h, meta: meta, body: body}, true)
	if c.ledger.draining && c.ledger.idle() {
		c.server.progress()
	}
}

// put sends a frame, or parks it, copied or not. With mu.
func (c *serverConn) put(p parkedReply, copied bool) {
	n := rpcPayloadLen(p.meta, p.body)
	p.h.metaLen = uint32(len(p.meta))
	if !c.line.fits(n) {
		p.k.tooLarge = true
		if p.element() {
			return
		}
		p = parkedReply{k: p.k, h: replyHeader{status: rpcReplyTooLarge}}
	}
	if c.line.state != lineSelects && len(c.ledger.parked) == 0 && c.sent(c.line.putReply(p.k.id, p.h, p.meta, p.body), n) {
		c.ledger.published(p.k, p.h)
		return
	}
	p.k.pending = p.element()
	c.ledger.park(p, copied)
}

// sent says whether a frame was, and else what follows. With mu.
func (c *serverConn) sent(err error, n uint64) bool {
	switch {
	case err == nil:
		return true
	case kindOf(err) == Full:
		c.wantsRoom = int64(n)
	default:
		// The client has gone.
		c.unsent = true
	}
	if c.line.state == lineReceives {
		c.line.interrupt()
	}
	return false
}

// flush sends what waits, as far as there is room and the sender is free. With mu.
func (c *serverConn) flush() {
	l := &c.ledger
	if c.line.state == lineSelects || c.unsent || c.over {
		return
	}
	c.wantsRoom = -1
	if r := l.refusal; r.id != 0 {
		if !c.sent(c.line.putReply(r.id, replyHeader{status: uint32(r.status)}, nil, nil), rpcHeader) {
			return
		}
		l.refusal = refusal{}
	}
	for p := l.nextParked(); p != nil; p = l.nextParked() {
		if !c.sent(c.line.putReply(p.k.id, p.h, p.meta, p.body), rpcPayloadLen(p.meta, p.body)) {
			return
		}
		l.published(p.k, p.h)
		if p.element() {
			p.k.pending = false
			p.k.wakeUp()
		}
		l.unpark()
	}
	if l.draining && l.idle() {
		c.server.progress()
	}
}

// drain takes no new call.
func (c *serverConn) drain() {
	c.mu.Lock()
	c.ledger.draining = true
	c.mu.Unlock()
}

// idle says whether every call that was taken has its reply.
func (c *serverConn) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over || c.ledger.idle()
}

// stopAll cancels all calls.
func (c *serverConn) stopAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.ledger.calls {
		c.stop(k)
	}
}

// leave closes the connection.
func (c *serverConn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving = true
	c.line.interrupt()
}
