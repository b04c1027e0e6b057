package ramway

import (
	"errors"
	"fmt"
)

// The goroutine of a handler: it calls the handler, sends the elements of a stream, and ends with the call's reply. An inline handler is
// called by the goroutine that receives.

// endedText is what the client is told of a handler that has ended its goroutine.
var endedText = []byte("the handler ended its goroutine")

// An inline handler finds room for a reply of the size of earlier ones, from replyRoomMin to replyRoomMax bytes; what it appends beyond
// is its own.
const (
	replyRoomMin = 512
	replyRoomMax = 64 << 10
)

// placed has the handler run, in a goroutine.
func (k *serverCall) placed() { go k.run() }

// runInline calls an inline handler, whose request lies in the ring until it has returned. Of the pump, without mu.
func (c *serverConn) runInline(k *serverCall) {
	h, body := replyHeader{status: rpcHandlerFailed}, endedText
	// Deferred for a handler that ends this goroutine.
	defer func() {
		meta := k.request.ReplyMeta
		if k.request.Cancelled() {
			h, meta, body = replyHeader{status: rpcCancelled}, nil, nil
		}
		c.mu.Lock()
		c.answer(k, h, meta, body)
		c.mu.Unlock()
		// Now: the reply may have been a part of the request.
		c.line.release()
		if room := min(max(2*len(body), replyRoomMin), replyRoomMax); len(body) > cap(c.replyRoom) && room > cap(c.replyRoom) {
			c.replyRoom = make([]byte, 0, room)
		}
	}()
	h, body = k.invoke(c.replyRoom)
}

// run is the handler's goroutine.
func (k *serverCall) run() {
	c := k.conn
	defer c.server.pool.leave(&c.share)
	c.mu.Lock()
	switch {
	case k.stopped:
		c.answer(k, replyHeader{status: rpcCancelled}, nil, nil)
		c.mu.Unlock()
		return
	case k.ctx.Err() != nil:
		k.stopped = true
		c.answer(k, replyHeader{status: rpcTimedOut}, nil, nil)
		c.mu.Unlock()
		return
	}
	k.begun = true
	c.mu.Unlock()
	h, body := replyHeader{status: rpcHandlerFailed}, endedText
	// Deferred for a handler that ends its goroutine.
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case k.stopped, k.ctx.Err() != nil:
			k.stopped = true
			c.answer(k, replyHeader{status: rpcCancelled}, nil, nil)
		case k.tooLarge:
			c.answer(k, replyHeader{status: rpcReplyTooLarge}, nil, nil)
		default:
			c.answer(k, h, k.request.ReplyMeta, body)
		}
	}()
	h, body = k.invoke(nil)
}

// invoke calls the handler, and gives what its reply is to say. room is for what an inline one replies.
func (k *serverCall) invoke(room []byte) (h replyHeader, body []byte) {
	returned := false
	defer func() {
		if !returned {
			h, body = replyHeader{status: rpcHandlerFailed}, []byte(panicText(recover()))
		}
	}()
	var err error
	if k.by.stream != nil && k.window == 0 {
		returned = true
		return replyHeader{status: rpcHandlerFailed}, fmt.Appendf(nil, "method %d replies with a stream: call it as one", k.method)
	}
	switch {
	case k.by.stream != nil:
		err = k.elements()
	case k.by.inline != nil:
		body, err = k.by.inline(&k.request, room)
	default:
		body, err = k.by.one(k.ctx, &k.request)
	}
	if returned = true; err != nil {
		h.status = rpcApplication
		var failed *CallError
		if errors.As(err, &failed) && failed.Status == StatusApplication {
			h.code, body = failed.Code, []byte(failed.Text)
		} else {
			body = []byte(err.Error())
		}
	}
	return h, body
}

// panicText is what the client is told of a panic.
func panicText(value any) string {
	if err, is := value.(error); is {
		return err.Error()
	}
	return fmt.Sprint(value)
}

// elements sends what a stream's handler yields; the error is the handler's.
func (k *serverCall) elements() (err error) {
	for element, failed := range k.by.stream(k.ctx, &k.request) {
		if failed != nil {
			return failed
		}
		if !k.emit(element) {
			break
		}
	}
	return nil
}

// emit sends an element, and waits until there may be another one; false: there is to be none. It has the pool's place while
// it does not wait.
func (k *serverCall) emit(element []byte) bool {
	c := k.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.stopped || c.over {
		return false
	}
	meta := k.request.ReplyMeta
	k.request.ReplyMeta = nil
	c.put(parkedReply{k: k, h: replyHeader{flags: rpcElement}, meta: meta, body: element}, false)
	if k.over() || k.credit > 0 && !k.pending {
		return !k.over()
	}
	c.mu.Unlock()
	c.server.pool.leave(&c.share)
	c.mu.Lock()
	for !k.over() && (k.credit == 0 || k.pending) {
		c.mu.Unlock()
		select {
		case <-k.wake:
		case <-k.ctx.Done():
		}
		c.mu.Lock()
	}
	c.mu.Unlock()
	c.server.pool.enter(&c.share)
	c.mu.Lock()
	return !k.over()
}

// over says whether no element is to follow. With the connection's mu.
func (k *serverCall) over() bool {
	return k.stopped || k.tooLarge || k.conn.over || k.ctx.Err() != nil
}
