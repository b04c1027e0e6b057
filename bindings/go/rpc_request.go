package ramway

import (
	"context"
	"iter"
	"time"
)

// Request is what a handler is asked. Its bytes are a copy, which is the handler's; those of an [InlineHandler]'s lie in the ring.
type Request struct {
	// Method is the method's number.
	Method uint32
	// Body and Meta are the request's bytes and its metadata; Meta is nil if it has none.
	Body, Meta []byte
	// ReplyMeta is metadata that the handler may give its reply. Of a stream it is that of the next element, with which it is taken.
	ReplyMeta []byte

	// ctx is nil for an inline handler.
	ctx      context.Context
	deadline time.Time
	conn     *serverConn
}

// Remaining is how much time the call has left, 0 if it is over; false if it has no limit. The handler's context has the same deadline.
func (r *Request) Remaining() (time.Duration, bool) {
	if r.deadline.IsZero() {
		return 0, false
	}
	return max(time.Until(r.deadline), 0), true
}

// Cancelled says whether the call was cancelled, its time is over, or the client has gone: the same as that the handler's context is done. An
// inline handler learns only that its time is over: nothing is received while it runs.
func (r *Request) Cancelled() bool {
	if r.ctx == nil {
		return !r.deadline.IsZero() && !time.Now().Before(r.deadline)
	}
	return r.ctx.Err() != nil
}

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

// InlineHandler is a [Handler] that is called by the goroutine that receives its client's calls, without one of its own. That is the
// cheapest way to answer a call, for what takes microseconds: until it returns, no other call of this client is begun, and neither a
// cancellation nor the end of another call's time is seen. Other clients are not held up. It must not block, and must not wait for the server:
// [Server.Shutdown] waits until it has returned.
//
// Its reply is what it returns: what it has appended to reply, which is empty, or bytes of its own. The request and reply are good until it
// returns: what is to be kept is copied. The request lies where the client wrote it, and a client that is not trusted can still write
// there: copy what is decided on.
//
//	err = server.HandleInline(7, func(r *ramway.Request, reply []byte) ([]byte, error) {
//		return strconv.AppendInt(reply, counter.Add(int64(len(r.Body))), 10), nil
//	})
//
// Errors and panics end the call as those of a [Handler] do.
type InlineHandler func(r *Request, reply []byte) ([]byte, error)

// serverMethod is a method of a server.
type serverMethod struct {
	name   string
	one    Handler
	inline InlineHandler
	stream StreamHandler
}
