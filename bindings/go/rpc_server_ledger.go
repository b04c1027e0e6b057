package ramway

import "bytes"

// serverLedger is what a server knows of one client's calls: which have no final REPLY yet, the credit of streams, what waits for
// room, and how many bytes are copied. It does no input or output and has no lock: that of the connection guards it.
//
// What it holds is bounded: calls by maxInFlight, bytes by maxBytes, and one refusal, while which the client is not read.
type serverLedger struct {
	maxInFlight uint64
	// maxBytes is how many bytes of requests and parked replies may be copied, bytes how many there are.
	maxBytes, bytes uint64
	// last is the id of the last CALL.
	last uint64
	// calls are those whose final REPLY is not published, by id.
	calls map[uint64]*serverCall
	// parked are frames that wait for room, in their order.
	parked []parkedReply
	// refusal is an answer to a call that was not taken, while there is no room for it.
	refusal refusal
	// draining: no new call is taken.
	draining bool
	// spare is a call that has ended and that nobody holds any more, for the next one; nil if there is none.
	spare *serverCall
}

// refusal is a REPLY to a CALL that is not counted among the calls; id 0: there is none.
type refusal struct {
	id     uint64
	status Status
}

// parkedReply is a REPLY that waits for room: a final one, or an element of a stream.
type parkedReply struct {
	k          *serverCall
	h          replyHeader
	meta, body []byte
	// bytes are what counts against maxBytes.
	bytes uint64
}

func (p *parkedReply) element() bool { return p.h.flags&rpcElement != 0 }

func newServerLedger(maxInFlight uint32, maxBytes uint64) serverLedger {
	return serverLedger{maxInFlight: uint64(maxInFlight), maxBytes: maxBytes, calls: map[uint64]*serverCall{}}
}

// idle says whether every call that was taken has its final REPLY.
func (l *serverLedger) idle() bool { return len(l.calls) == 0 && l.refusal.id == 0 }

// call is a CALL that was received, of so many bytes. Without a call and without an error it is refused, as refusal says. The error
// is Corrupt.
func (l *serverLedger) call(id uint64, h callHeader, size uint64) (*serverCall, error) {
	if id != l.last+1 {
		return nil, failf(Corrupt, "a CALL has the id %d, expected %d", id, l.last+1)
	}
	l.last++
	switch {
	case uint64(len(l.calls)) >= l.maxInFlight, size > l.maxBytes-l.bytes:
		l.refusal = refusal{id, StatusOverloaded}
		return nil, nil
	case l.draining && h.method < methodReserved:
		l.refusal = refusal{id, StatusDraining}
		return nil, nil
	}
	k := l.spare
	if l.spare = nil; k == nil {
		k = &serverCall{}
	}
	k.id, k.method, k.window, k.credit, k.bytes = id, h.method, h.window, h.window, size
	l.bytes += size
	l.calls[id] = k
	return k, nil
}

// cancel is a CANCEL that was received: the call that it is for, nil if that has ended. The error is Corrupt.
func (l *serverLedger) cancel(id uint64) (*serverCall, error) {
	if id == 0 || id > l.last {
		return nil, failf(Corrupt, "a CANCEL for call %d, expected one of 1 to %d", id, l.last)
	}
	return l.calls[id], nil
}

// addCredit is a CREDIT that was received: the call that has more now, nil if that has ended. The error is Corrupt.
func (l *serverLedger) addCredit(id uint64, n uint32) (*serverCall, error) {
	if id == 0 || id > l.last {
		return nil, failf(Corrupt, "a CREDIT for call %d, expected one of 1 to %d", id, l.last)
	}
	k := l.calls[id]
	switch {
	case k == nil:
		return nil, nil
	case k.window == 0:
		return nil, failf(Corrupt, "a CREDIT for call %d, which is no stream", id)
	}
	k.credit = addCredit(k.credit, n)
	return k, nil
}

// handled is for a call whose handler has ended, or never begins: the copy of its request is gone.
func (l *serverLedger) handled(k *serverCall) {
	l.bytes -= k.bytes
	k.bytes = 0
}

// park keeps a reply until there is room. One that is too much becomes StatusReplyTooLarge; an element of a stream whose handler waits is
// not copied, and counts nothing. What an inline handler has replied is in buffers that the next one uses, and is copied now.
func (l *serverLedger) park(p parkedReply, copied bool) {
	if copied {
		p.bytes = uint64(len(p.meta) + len(p.body))
	}
	if p.bytes > l.maxBytes-l.bytes {
		p.k.tooLarge = true
		if p.element() {
			return
		}
		p = parkedReply{k: p.k, h: replyHeader{status: rpcReplyTooLarge}}
	}
	if p.k.inline {
		p.meta, p.body = bytes.Clone(p.meta), bytes.Clone(p.body)
	}
	l.bytes += p.bytes
	l.parked = append(l.parked, p)
}

// nextParked is the next frame to be sent; nil if there is none. Elements of calls that were cancelled are not sent.
func (l *serverLedger) nextParked() *parkedReply {
	for len(l.parked) > 0 {
		p := &l.parked[0]
		if !p.element() || !p.k.stopped {
			return p
		}
		l.unpark()
	}
	l.parked = nil
	return nil
}

// unpark takes the first parked frame out.
func (l *serverLedger) unpark() {
	l.bytes -= l.parked[0].bytes
	l.parked[0] = parkedReply{}
	l.parked = l.parked[1:]
}

// published is for a REPLY that was sent.
func (l *serverLedger) published(k *serverCall, h replyHeader) {
	if h.flags&rpcElement != 0 {
		k.credit--
		return
	}
	delete(l.calls, k.id)
	if k.inline {
		*k = serverCall{}
		l.spare = k
	}
}

// finish forgets everything.
func (l *serverLedger) finish() {
	clear(l.calls)
	l.parked, l.refusal, l.bytes, l.spare = nil, refusal{}, 0, nil
}
