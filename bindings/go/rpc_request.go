package ramway

import (
	"context"
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
