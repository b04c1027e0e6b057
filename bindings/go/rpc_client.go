package ramway

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ClientOptions say how to connect to a [Server]. The zero value means the defaults.
type ClientOptions struct {
	// Timeout is how long to wait for the server, as [ConnectOptions.Timeout].
	Timeout time.Duration
	// AllowUIDs are other users whose servers will do; without it, only those of our own effective user.
	AllowUIDs []uint32
	// Wait is how calls wait.
	Wait WaitMode
	// MaxBuffered is how many bytes of replies the client holds that nobody has taken yet, all calls together; a reply beyond
	// fails its call (ErrTooLarge). 0 is four times the ring's capacity; below 0 is ErrInvalidArgument.
	MaxBuffered int64
	// NoMembarrier is [Options.NoMembarrier].
	NoMembarrier bool
}

// Client calls the methods of a [Server]. It is safe for any number of goroutines.
//
// At most [Client.MaxInFlight] calls are with the server at a time; further ones wait in the client, in their order. There is no goroutine
// of the client's own: replies are received by one of the goroutines that wait for something, for all of them. So calls that were started
// go on while some goroutine waits in a call of the client, and no longer than the context that they were started with lasts.
//
// The end of the connection ends all calls: with ErrClosed if the server closed, which has run none of those without a reply; with
// ErrPeerDead if it died. A client does not connect again, and repeats nothing.
//
//	client, err := ramway.ConnectClient(ctx, "store", ramway.ClientOptions{})
//	if err != nil { ... }
//	defer client.Close()
//	reply, err := client.Call(ctx, 7, []byte("key"))
type Client struct {
	name string
	mu   sync.Mutex
	line rpcLine
	// ledger, and all that follows, with mu.
	ledger clientLedger
	// pumping is the call whose goroutine receives for all; nil while none does.
	pumping *clientCall
	// followers are those that wait meanwhile, the oldest first.
	followers linkedList[callWaiter]
	// wantsRoom is for how many bytes what is to be sent waits; below 0: for none.
	wantsRoom int64
	// ended is why the connection is over; nil while it is not.
	ended error
	// unsent is why nothing can be sent any more.
	unsent error
}

// CallOption is something that a call may say besides its method and body: [WithMeta], [WithWindow].
type CallOption struct {
	meta   []byte
	window int
	kind   callOptionKind
}

type callOptionKind uint8

const (
	optionMeta callOptionKind = iota + 1
	optionWindow
)

// WithMeta gives a call metadata: bytes that the application defines, such as a trace or a token.
func WithMeta(meta []byte) CallOption { return CallOption{meta: meta, kind: optionMeta} }

// WithWindow says how many elements of a stream may be under way, 1 to 2^32 - 1; 16 without it. [Client.Call] and [Client.Start] refuse it
// (ErrInvalidArgument).
func WithWindow(elements int) CallOption { return CallOption{window: elements, kind: optionWindow} }

// ConnectClient connects to the server of that name (a name in RAMWAY_DIR, or a path with a '/'), waiting for one that is not there yet, as
// [Connect] does, with the same errors: ErrAbiMismatch where a plain [Listener] is, ErrBusy if the server has as many clients as it takes.
func ConnectClient(ctx context.Context, name string, o ClientOptions) (*Client, error) {
	if o.MaxBuffered < 0 {
		return nil, about(failf(InvalidArgument, "MaxBuffered is %d: expected 0 or more", o.MaxBuffered), "connecting to", name)
	}
	bus, err := connect(ctx, name, ConnectOptions{Timeout: o.Timeout, AllowUIDs: o.AllowUIDs, Wait: o.Wait, NoMembarrier: o.NoMembarrier},
		rpcFeatures)
	if err != nil {
		return nil, err
	}
	buffered := uint64(o.MaxBuffered)
	if buffered == 0 {
		buffered = rpcBytesFactor * uint64(bus.receiver.Capacity())
	}
	c := &Client{name: name, ledger: newClientLedger(bus.end.terms.maxInFlight, buffered), wantsRoom: -1}
	c.line.start(bus)
	return c, nil
}

// Call sends a request and waits for its reply. The context is the call's limit: its deadline goes to the server with the request, and when
// it ends, the call is cancelled. nil is a context that is never done.
//
// Errors are a [*CallError]: how the call ended. ErrTooLarge if the request can never fit into the ring.
func (c *Client) Call(ctx context.Context, method uint32, body []byte, options ...CallOption) (Reply, error) {
	ctx = orNever(ctx)
	k, err := c.newCall(ctx, method, body, options, false)
	if err != nil {
		return Reply{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin(k); err != nil {
		return Reply{}, err
	}
	if err := c.wait(ctx, k, goalDecided); err != nil {
		c.stop(k, ctx)
	}
	r, err := c.result(k)
	if k.state == callEnded && !k.owing {
		// Nobody else knows it any more.
		*k = clientCall{}
		callsPool.Put(k)
	}
	return r, err
}

// callsPool has calls for Call.
var callsPool = sync.Pool{New: func() any { return &clientCall{} }}

// Start sends a request and gives the call that is under way. It does not wait: a request for which there is no place or no room is
// copied, and sent in its turn while some goroutine waits in a call of the client. The context is the call's: when it ends, the call is
// cancelled.
//
// Errors: as for [Client.Call].
func (c *Client) Start(ctx context.Context, method uint32, body []byte, options ...CallOption) (*Pending, error) {
	k, err := c.start(orNever(ctx), method, body, options, false)
	if err != nil {
		return nil, err
	}
	return newPending(c, k), nil
}

// Stream sends a request whose reply is a stream, as [Client.Start] does.
//
// Errors: as for [Client.Call].
func (c *Client) Stream(ctx context.Context, method uint32, body []byte, options ...CallOption) (*ReplyStream, error) {
	k, err := c.start(orNever(ctx), method, body, options, true)
	if err != nil {
		return nil, err
	}
	return newReplyStream(c, k), nil
}

// start is Start and Stream.
func (c *Client) start(ctx context.Context, method uint32, body []byte, options []CallOption, stream bool) (*clientCall, error) {
	k, err := c.newCall(ctx, method, body, options, stream)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin(k); err != nil {
		return nil, err
	}
	if k.decided {
		return nil, k.outcome
	}
	if k.state == callQueued {
		k.meta, k.body = slices.Clone(k.meta), slices.Clone(k.body)
	}
	if ctx.Done() != nil {
		k.unwatch = context.AfterFunc(ctx, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.stop(k, ctx)
		})
	}
	return k, nil
}

// newCall is a call that has not begun; an error if it can never be.
func (c *Client) newCall(ctx context.Context, method uint32, body []byte, options []CallOption, stream bool) (*clientCall, error) {
	if ctx.Err() != nil {
		e := calledOff(ctx)
		e.name, e.method = c.name, method
		return nil, e
	}
	k := callsPool.Get().(*clientCall)
	k.method, k.body = method, body
	if stream {
		k.window = rpcWindowDefault
	}
	k.deadline, _ = ctx.Deadline()
	for _, o := range options {
		switch {
		case o.kind == optionMeta:
			k.meta = o.meta
		case o.kind == optionWindow && stream && o.window >= 1 && uint64(o.window) <= 1<<32-1:
			k.window = uint32(o.window)
		case o.kind == optionWindow && stream:
			return nil, c.refused(method, failf(InvalidArgument, "a window of %d elements: expected 1 to 2^32 - 1", o.window))
		case o.kind == optionWindow:
			return nil, c.refused(method, failf(InvalidArgument, "a window is a stream's: call Client.Stream"))
		}
	}
	if n := rpcPayloadLen(k.meta, body); !c.line.fits(n) {
		return nil, c.refused(method, failf(TooLarge, "a request of %d bytes, metadata and header included, can never fit: the server's ring takes "+
			"at most %d", n, c.line.tx.maxLen))
	}
	return k, nil
}

// refused is the error of a call that was not made.
func (c *Client) refused(method uint32, err error) *CallError {
	return &CallError{Err: err, name: c.name, method: method}
}

// begin queues a call and sends what can be sent. With mu.
func (c *Client) begin(k *clientCall) error {
	if c.ended != nil {
		return c.refused(k.method, c.ended)
	}
	if c.unsent != nil {
		return c.refused(k.method, c.unsent)
	}
	c.ledger.begin(k)
	c.flush()
	return nil
}

// stop ends a call because a context has. With mu.
func (c *Client) stop(k *clientCall, ctx context.Context) {
	c.decide(k, calledOff(ctx))
}

// decide ends a call by this side. With mu.
func (c *Client) decide(k *clientCall, outcome *CallError) {
	if k.decided {
		return
	}
	outcome.name = c.name
	c.ledger.decide(k, outcome)
	c.tell(k)
	c.flush()
}

// result takes what a call has ended with, which is decided. With mu.
func (c *Client) result(k *clientCall) (Reply, error) {
	if k.outcome != nil {
		return Reply{}, k.outcome
	}
	r, _ := c.ledger.take(k)
	return r, nil
}

// flush sends what is owed, then what is queued, as far as there is room and the sender is free. With mu.
func (c *Client) flush() {
	l := &c.ledger
	if c.line.state == lineSelects {
		// The sender is the pump's. What is owed may need less room than it waits for.
		if l.nextOwed() != nil && c.wantsRoom > creditLen {
			c.line.interrupt()
		}
		return
	}
	c.wantsRoom = -1
	if c.unsent != nil || l.over {
		return
	}
	for k := l.nextOwed(); k != nil; k = l.nextOwed() {
		if k.owesCancel {
			if !c.sent(c.line.putCancel(k.id), 0) {
				return
			}
			l.paid()
		} else {
			if !c.sent(c.line.putCredit(k.id, k.owesCredit), creditLen) {
				return
			}
			l.creditSent(k)
		}
	}
	for k := l.sendable(); k != nil; k = l.sendable() {
		err := c.line.putCall(l.last+1, callHeader{metaLen: uint32(len(k.meta)), method: k.method, window: k.window}, k.deadline, k.meta, k.body)
		if !c.sent(err, int64(rpcPayloadLen(k.meta, k.body))) {
			return
		}
		l.published(k)
	}
}

// sent says whether a frame was, and else what follows. With mu.
func (c *Client) sent(err error, n int64) bool {
	switch kindOf(err) {
	case 0:
		return err == nil
	case Full:
		c.wantsRoom = n
		if c.line.state == lineReceives {
			c.line.interrupt()
		}
	default:
		// How the connection ended, or that it did at all, the receiver will say: what was sent may have been answered.
		c.unsent = err
		c.ledger.cutOff(func() *CallError { return &CallError{Err: c.unsent, name: c.name} }, c.tell)
	}
	return false
}

// receive is a frame that came. An error ends the connection. With mu.
func (c *Client) receive(in *frameIn) error {
	if in.typeID != typeIDReply {
		return failf(Corrupt, "a frame of type %#x from the server, expected REPLY", in.typeID)
	}
	h, meta, body, err := decodeReply(in.payload)
	if err != nil {
		return err
	}
	k, err := c.ledger.reply(in.id, h, meta, body)
	if k != nil {
		c.tell(k)
	}
	return err
}

// finish is the end of the connection. With mu, and of the pump or while there is none.
func (c *Client) finish(err error) {
	if c.ended != nil {
		return
	}
	c.ended = about(err, "calling", c.name)
	c.ledger.finish(kindOf(err) == Closed, func() *CallError { return &CallError{Err: c.ended, name: c.name} }, c.tell)
	c.wantsRoom = -1
}

// Ping waits until the server has answered: it is there, and reads.
//
// Errors: as for [Client.Call].
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.Call(ctx, methodPing, nil)
	return err
}

// Describe gives the numbers and names of the server's methods, in the order of the numbers.
//
// Errors: as for [Client.Call]; ErrCorrupt for an answer that is none.
func (c *Client) Describe(ctx context.Context) ([]MethodInfo, error) {
	reply, err := c.Call(ctx, methodDescribe, nil)
	if err != nil {
		return nil, err
	}
	var all []MethodInfo
	for _, line := range strings.Split(strings.TrimSuffix(string(reply.Body), "\n"), "\n") {
		if line == "" {
			continue
		}
		digits, name, _ := strings.Cut(line, " ")
		number, err := strconv.ParseUint(digits, 10, 32)
		if err != nil {
			return nil, &CallError{Err: failf(Corrupt, "a line of the server's description is %q, expected a number and a name", line), name: c.name,
				method: methodDescribe, mayHaveRun: true}
		}
		all = append(all, MethodInfo{uint32(number), name})
	}
	return all, nil
}

// MaxInFlight is how many calls the server lets this client have in flight.
func (c *Client) MaxInFlight() int { return int(c.ledger.maxInFlight) }

// InFlight is how many calls are in flight now: published, and without a last reply.
func (c *Client) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ledger.calls)
}

// PeerUID is the server's user, as [Bus.PeerUID].
func (c *Client) PeerUID() uint32 { return c.line.bus.PeerUID() }

// PeerPID is the server's process, as [Bus.PeerPID].
func (c *Client) PeerPID() int { return c.line.bus.PeerPID() }

// PeerAlive says whether the server still holds its end of the connection.
func (c *Client) PeerAlive() bool { return c.line.bus.PeerAlive() }

// Close ends the connection. Calls under way end with ErrClosed; those that were sent may have been run. Closing twice is fine.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.ended == nil {
		c.ended = about(failf(Closed, "this client was closed"), "calling", c.name)
		c.ledger.finish(false, func() *CallError { return &CallError{Err: c.ended, name: c.name} }, c.tell)
	}
	c.line.interrupt()
	c.mu.Unlock()
	// Ends a wait of the pump.
	err := c.line.bus.Close()
	if kindOf(err) == PeerDead || errors.Is(err, ErrPeerDead) {
		return nil
	}
	return err
}
