package ramway

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Request is what a handler is asked. Its bytes are a copy, which is the handler's.
type Request struct {
	// Method is the method's number.
	Method uint32
	// Body and Meta are the request's bytes and its metadata; Meta is nil if it has none.
	Body, Meta []byte
	// ReplyMeta is metadata that the handler may give its reply; of a stream it comes with no element.
	ReplyMeta []byte

	ctx  context.Context
	conn *serverConn
}

// Remaining is how much time the call has left, 0 if it is over; false if it has no limit. The handler's context has the same deadline.
func (r *Request) Remaining() (time.Duration, bool) {
	deadline, limited := r.ctx.Deadline()
	if !limited {
		return 0, false
	}
	return max(time.Until(deadline), 0), true
}

// Cancelled says whether the call was cancelled, its time is over, or the client has gone: the same as that the handler's context is done.
func (r *Request) Cancelled() bool { return r.ctx.Err() != nil }

// PeerUID is the client's user, as [Bus.PeerUID].
func (r *Request) PeerUID() uint32 { return r.conn.line.bus.PeerUID() }

// PeerPID is the client's process, as [Bus.PeerPID].
func (r *Request) PeerPID() int { return r.conn.line.bus.PeerPID() }

// Handler answers a call with the body of its reply. An error of [Fail] ends the call with its number and text, any other one with the number
// 0 and its text (StatusApplication); a panic with StatusHandlerFailed. The context ends when the call was cancelled, when its time is over, and when the
// client has gone: then nobody looks at the answer, and the place among the calls in flight is free once the handler has returned.
type Handler func(ctx context.Context, r *Request) ([]byte, error)

// StreamHandler answers a call with a stream of elements; an error that it yields ends the stream, as for [Handler]. The next element is asked
// for when the client has room for it, and holds no place of the pool while it has none; yield says false once the call is over.
type StreamHandler func(ctx context.Context, r *Request) iter.Seq2[[]byte, error]

// serverMethod is a method of a server.
type serverMethod struct {
	name   string
	one    Handler
	stream StreamHandler
}

// panicText is what the client is told of a panic.
func panicText(value any) string {
	switch value := value.(type) {
	case nil:
		return "the handler ended its goroutine"
	case error:
		return value.Error()
	}
	return fmt.Sprint(value)
}

// elements sends what a stream's handler yields; the error is the handler's.
func (k *serverCall) elements() (err error) {
	for element, failed := range k.by.stream(k.ctx, k.request) {
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
	c.put(parkedReply{k: k, h: replyHeader{flags: rpcElement}, body: element}, false)
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
