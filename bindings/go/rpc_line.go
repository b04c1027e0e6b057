package ramway

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"
)

// rpcLine is one side's end of an RPC's bus: frames in and out without waiting, and one wait for all that can happen.
//
// One goroutine at a time, the pump, receives and waits. Everybody sends, under the lock of whom the line belongs to; but not while
// the pump waits for room, because that wait uses the sender.
type rpcLine struct {
	bus *Bus
	rx  *Receiver
	tx  *Sender
	// interrupted ends the pump's wait.
	interrupted atomic.Bool
	// state is where the pump is, with the lock.
	state lineState
	// selector waits where room is to be waited for; made by the first such wait.
	selector *Selector
	room     *roomSource
	// roomOnly: the selector's sources are those without the receiver.
	roomOnly bool
	// frames is the wait for a frame alone.
	frames lineSide
}

// lineState is what the pump of a line does.
type lineState uint8

const (
	// lineAwake: nobody waits. What there is to be sent can be sent.
	lineAwake lineState = iota
	// lineReceives: the pump waits for a frame, and the sender is free.
	lineReceives
	// lineSelects: it waits for room too, and the sender is its own.
	lineSelects
)

// start has a line, which does not move any more, use a bus.
func (l *rpcLine) start(bus *Bus) {
	l.bus, l.rx, l.tx = bus, bus.receiver, bus.sender
	l.frames = lineSide{l.rx, l}
}

// frameIn is a frame that was received: as a copy, or as it lies in the ring, where the peer may still write.
type frameIn struct {
	typeID  uint32
	id      uint64
	payload []byte
}

// answerPolls are the polls for an answer before the general wait: what a call takes whose handler does not take long.
const answerPolls = 100

// poll waits for the first microsecond that an answer takes, without what a longer wait needs. It says nothing: whether a frame is there
// the next look finds. Of the pump, without the lock.
func (l *rpcLine) poll() {
	r := l.rx
	if r.wait.firstPolls == 0 || r.wait.sharing.yields {
		return
	}
	if r.enter() && r.head == r.tail {
		r.awaitFrame(min(answerPolls, r.wait.budget))
	}
	r.leave()
}

// take receives a copy of a frame without waiting; false: there is none now. The error is how the connection ended. Of the pump.
func (l *rpcLine) take(in *frameIn) (bool, error) {
	some, err := l.look(in)
	if some {
		if in.payload = nil; l.rx.one.len != 0 {
			// At most what is published, so at most the capacity, whatever the peer wrote.
			in.payload = append([]byte(nil), l.rx.one.bytes()...)
		}
		l.release()
	}
	return some, err
}

// look is take without a copy: the payload is the ring's until release, which is to follow before anything else is received.
func (l *rpcLine) look(in *frameIn) (bool, error) {
	r := l.rx
	r.enter()
	defer r.leave()
	f := &r.one
	if err := r.next(context.Background(), false, f); err != nil {
		if kindOf(err) == Empty {
			err = nil
		}
		return false, err
	}
	r.lease++
	in.typeID, in.id, in.payload = f.typeID, f.tag, f.bytes()
	return true, nil
}

// release gives the frame back that look has given. Of the pump.
func (l *rpcLine) release() { l.rx.release(l.rx.lease) }

// corrupt ends both halves for what the peer sent.
func (l *rpcLine) corrupt() {
	l.rx.die(Corrupt)
	l.tx.die(Corrupt)
}

// open is room for n bytes without waiting; ErrFull if there is none now. With the lock, and not while the pump selects.
func (l *rpcLine) open(n uint64) ([]byte, error) {
	s := l.tx
	if s.enter(); !s.isShut() && s.fits(n) {
		return s.payload(int(n)), nil
	}
	err := s.makeRoom(context.Background(), false, 0, int(min(n, messageMax+1)))
	if err != nil {
		s.leave()
		return nil, err
	}
	return s.payload(int(n)), nil
}

// commit sends what open made room for.
func (l *rpcLine) commit(n uint64, typeID uint32, id uint64) {
	l.tx.commit(n, typeID, id)
	l.tx.flush()
	l.tx.leave()
}

// putCall sends a CALL.
func (l *rpcLine) putCall(id uint64, h callHeader, deadline time.Time, meta, body []byte) error {
	n := rpcPayloadLen(meta, body)
	to, err := l.open(n)
	if err != nil {
		return err
	}
	putParts(to, meta, body)
	if !deadline.IsZero() {
		h.timeoutUs = timeoutUs(deadline, time.Now())
	}
	h.put(to)
	l.commit(n, typeIDCall, id)
	return nil
}

// putReply sends a REPLY.
func (l *rpcLine) putReply(id uint64, h replyHeader, meta, body []byte) error {
	n := rpcPayloadLen(meta, body)
	to, err := l.open(n)
	if err != nil {
		return err
	}
	h.put(to)
	putParts(to, meta, body)
	l.commit(n, typeIDReply, id)
	return nil
}

// putCancel sends a CANCEL.
func (l *rpcLine) putCancel(id uint64) error {
	_, err := l.open(0)
	if err == nil {
		l.commit(0, typeIDCancel, id)
	}
	return err
}

// putCredit sends a CREDIT.
func (l *rpcLine) putCredit(id uint64, n uint32) error {
	to, err := l.open(creditLen)
	if err == nil {
		binary.LittleEndian.PutUint32(to, n)
		l.commit(creditLen, typeIDCredit, id)
	}
	return err
}

// fits says whether such a payload ever can be sent.
func (l *rpcLine) fits(n uint64) bool { return n <= l.tx.maxLen }

// interrupt ends the pump's wait if it waits. With the lock.
func (l *rpcLine) interrupt() {
	switch l.state {
	case lineReceives:
		l.interrupted.Store(true)
		l.rx.wait.notifier.interrupt()
	case lineSelects:
		l.interrupted.Store(true)
		l.selector.wait.notifier.interrupt()
	}
}

// lineWait is what the pump waits for.
type lineWait struct {
	// room is for how many bytes room is waited for as well; below 0: for none.
	room int64
	// roomOnly: no frame is waited for.
	roomOnly bool
}

// begin is called with the lock before await, end with the lock after it.
func (l *rpcLine) begin(w lineWait) {
	l.interrupted.Store(false)
	if l.state = lineReceives; w.room >= 0 {
		l.state = lineSelects
		l.prepare(w)
	}
}

func (l *rpcLine) end() { l.state = lineAwake }

// prepare has the selector wait for this.
func (l *rpcLine) prepare(w lineWait) {
	if l.selector == nil {
		l.selector = NewSelector()
		l.selector.SetWait(l.rx.wait.mode)
		l.room = &roomSource{endSource: endSource{endpoint: &l.tx.endpoint, side: l.tx}, sender: l.tx}
		l.roomOnly = !w.roomOnly
	}
	if l.room.n = int(w.room); l.roomOnly != w.roomOnly {
		// The interrupt, which has no word to sleep on, comes last: a place to sleep counts the words.
		if l.roomOnly = w.roomOnly; w.roomOnly {
			l.selector.Set(lineRoom{l}, lineInterrupt{l})
		} else {
			l.selector.Set(lineRoom{l}, l.rx, lineInterrupt{l})
		}
	}
}

// await waits until there is a frame, or room, or something to be found out about the connection, or somebody interrupts it. The error is the
// context's alone: how the connection ended, take says. Of the pump, between begin and end, without the lock.
func (l *rpcLine) await(ctx context.Context, w lineWait) error {
	var err error
	if w.room >= 0 {
		_, err = l.selector.Wait(ctx)
	} else {
		r := l.rx
		if r.enter(); !r.isShut() {
			err = r.until(ctx, &l.frames)
		}
		r.leave()
	}
	if kind := kindOf(err); kind == TimedOut || kind == Interrupted {
		return err
	}
	return nil
}

// close closes the bus; what was sent is delivered. abandoned: the peer is told that this side died.
func (l *rpcLine) close(abandoned bool) {
	if abandoned {
		_ = l.tx.Abandon()
	}
	_ = l.bus.Close()
}

// free lets the selector go, once the pump has ended.
func (l *rpcLine) free() {
	if l.selector != nil {
		l.selector.Close()
	}
}

// lineSide is the receiver's wait, which an interrupt ends.
type lineSide struct {
	*Receiver
	line *rpcLine
}

func (s *lineSide) ready() (bool, error) {
	if s.line.interrupted.Load() {
		return true, nil
	}
	return s.Receiver.ready()
}

// lineRoom is the line's wait for room, as a Source whose size changes.
type lineRoom struct{ l *rpcLine }

func (r lineRoom) source() selectable { return r.l.room }

// lineInterrupt is an interrupt as a Source: it has no word of its own, because it interrupts the selector.
type lineInterrupt struct{ l *rpcLine }

func (p lineInterrupt) source() selectable { return p }

func (lineInterrupt) same(selectable) bool { return false }

func (lineInterrupt) begin() error { return nil }

func (lineInterrupt) end() {}

func (p lineInterrupt) moved() bool { return p.l.interrupted.Load() }

func (p lineInterrupt) ready() bool { return p.l.interrupted.Load() }

func (p lineInterrupt) check(bool) (bool, error) { return p.l.interrupted.Load(), nil }

func (lineInterrupt) arm(*sleeper) {}

func (lineInterrupt) longest(bool) time.Duration { return pollInterval }

func (lineInterrupt) disarm() {}
