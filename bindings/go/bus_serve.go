package ramway

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

// The listener's side of a handshake, one goroutine for each. None of them can hold up another.

// phase is how far a handshake is, in this order; advance and evict alone change it.
type phase uint8

const (
	// helloDue: the connector's HELLO. Overdue: its time is over, because it was silent the longest and another one came.
	helloDue phase = iota
	helloOverdue
	// queued: HELLO is there; the listener may have told as many as it takes that they are welcome.
	queued
	// welcomed: the connector counts as one of those.
	welcomed
	// ackDue: WELCOME is on its way, and the connector's ACK is due.
	ackDue
	ackOverdue
	// connected: the connector has said ACK and takes the bus for made.
	connected
)

// overdue says whether another connector took the handshake's time away.
func (p phase) overdue() bool { return p == helloOverdue || p == ackOverdue }

// handshake is one that is under way, with the listener's mu.
type handshake struct {
	end   *busEnd
	phase phase
}

// silentLongest is the handshake that has to make room for another one, nil if none has: the oldest whose HELLO is not
// there, else the oldest whose ACK is due. With mu held.
func (l *Listener) silentLongest() *handshake {
	for _, due := range []phase{helloDue, ackDue} {
		for _, h := range l.shakes {
			if h.phase == due {
				return h
			}
		}
	}
	return nil
}

// evict ends the time of the handshake that was silent the longest, unless another one is leaving for that reason. With
// mu held.
func (l *Listener) evict() {
	if slices.ContainsFunc(l.shakes, func(h *handshake) bool { return h.phase.overdue() }) {
		return
	}
	if silent := l.silentLongest(); silent != nil {
		silent.phase++ // from due to overdue
		silent.end.expireIn(0)
	}
}

// mayWelcome says whether one more connector may be told that it is welcome. With mu held.
func (l *Listener) mayWelcome() bool {
	taken := 0
	for _, h := range l.shakes {
		if h.phase >= welcomed {
			taken++
		}
	}
	return taken < l.peersLeft
}

// begin begins a handshake, once there is a place for it.
func (l *Listener) begin(fd int) {
	end, err := newBusEnd(fd, l.Path())
	if err != nil {
		l.deliver(accepted{err: err})
		return
	}
	end.terms = l.options.terms
	h := &handshake{end: end}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.shakes) >= handshakesMax && !l.closed {
		l.evict()
		l.changed.Wait()
	}
	if l.closed {
		_ = end.release()
		return
	}
	l.shakes = append(l.shakes, h)
	l.workers.Add(1)
	go l.serve(h)
}

// serve is one handshake, and the wait for a call of Accept that takes the bus.
func (l *Listener) serve(h *handshake) {
	defer l.workers.Done()
	// Once the endpoints have the socket, this is only one user less.
	defer func() { _ = h.end.release() }()
	defer l.leave(h)
	bus, own, fault := l.shake(h)
	if fault != nil {
		l.refusal(fault)
	}
	if (bus != nil || own != nil) && !l.deliver(accepted{bus, own}) && bus != nil {
		// Nobody takes it any more: the peer is told that we closed.
		_ = bus.Close()
	}
}

// busBegins counts a bus; an error if there are as many as may be.
func (l *Listener) busBegins() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busesMax != 0 && l.buses >= l.busesMax {
		return failf(Busy, "%d connectors are connected already, as many as are taken", l.busesMax)
	}
	l.buses++
	return nil
}

// busEnded is for who counts them: there is room for another one.
func (l *Listener) busEnded() {
	l.mu.Lock()
	l.buses--
	l.mu.Unlock()
}

// leave gives the handshake's place back. One that has connected is one of the peers that the listener takes.
func (l *Listener) leave(h *handshake) {
	l.mu.Lock()
	if h.phase == connected {
		l.peersLeft--
	}
	l.shakes = slices.DeleteFunc(l.shakes, func(other *handshake) bool { return other == h })
	l.mu.Unlock()
	l.changed.Broadcast()
}

// advance enters the next phase. An eviction is void then: what the connector was evicted for has come. It waits before a
// welcome until the listener may give one; false: the listener was closed meanwhile.
func (l *Listener) advance(h *handshake, next phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for next == welcomed && !l.mayWelcome() && !l.closed {
		l.changed.Wait()
	}
	h.phase = next
	l.changed.Broadcast()
	return !l.closed
}

// ending says whether the listener was closed. A connector that was not served is then told by the hang-up alone, and
// waits for the next listener.
func (l *Listener) ending() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// shake goes through a handshake. own is a failure of this side, which Accept returns; fault is the connector's, which is
// only counted. All three are nil when the listener was closed meanwhile.
func (l *Listener) shake(h *handshake) (bus *Bus, own, fault error) {
	end := h.end
	if err := checkPeer(end.peer, l.options.AllowUIDs, "AllowUIDs"); err != nil {
		l.refuse(end, err)
		return nil, nil, err
	}
	if err := l.await(h, hello); err != nil {
		if l.ending() {
			return nil, nil, nil
		}
		l.refuse(end, err)
		return nil, nil, err
	}
	if !l.advance(h, queued) || !l.advance(h, welcomed) {
		return nil, nil, nil
	}
	if err := l.busBegins(); err != nil {
		l.refuse(end, err)
		return nil, nil, err
	}
	if bus, own, fault = l.welcome(h); bus == nil {
		l.busEnded()
	}
	if bus == nil && l.ending() {
		fault = nil
	}
	return bus, own, fault
}

// welcome makes the memory, sends it, and waits until the connector has it.
func (l *Listener) welcome(h *handshake) (bus *Bus, own, fault error) {
	end := h.end
	both, err := createBus(l.plan, end)
	if err != nil {
		l.refuse(end, err)
		return nil, err, nil
	}
	l.advance(h, ackDue)
	err = end.send(welcome, 0, l.plan.spec.size, end.memory)
	if err == nil {
		err = l.await(h, ack)
	}
	if err != nil {
		both.close()
		return nil, nil, err
	}
	l.advance(h, connected)
	return newBus(end, l.plan.name, both), nil, nil
}

// refuse tells a connector why it is not served. It may be gone, which changes nothing.
func (l *Listener) refuse(end *busEnd, why error) {
	kind := KindOf(why)
	if errors.Is(why, syscall.EMFILE) || errors.Is(why, syscall.ENFILE) {
		kind = NoSpace
	}
	_ = end.send(refuse, kind, 0, -1)
}

// await waits for a message without a descriptor, no longer than a connector may take for it.
func (l *Listener) await(h *handshake, expected handshakeType) error {
	l.expire(h)
	in := newInbox()
	defer in.discard()
	progress, err := h.end.receive(in)
	late := errors.Is(err, os.ErrDeadlineExceeded)
	if late {
		// What has come up to now still counts.
		h.end.control(func(fd int) { progress, err = in.fill(fd) })
	}
	switch {
	case late && (err != nil || progress == inboxPartial):
		if l.isOverdue(h) {
			return failf(TimedOut, "%d handshakes were under way, and this connector was silent the longest", handshakesMax)
		}
		return in.silent(expected)
	case err != nil:
		return err
	case progress == inboxHungUp:
		return in.hungUp(expected)
	}
	status, _, err := in.message(expected, 0)
	if err == nil && expected == ack && status != 0 {
		err = statusError(status, "the connector cannot use the memory")
	}
	return err
}

func (l *Listener) isOverdue(h *handshake) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return h.phase.overdue()
}

// expire gives a connector its time, or none if the listener was closed or another one takes its place.
func (l *Listener) expire(h *handshake) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := time.Duration(handshakeTimeout)
	switch {
	case l.closed || h.phase.overdue():
		limit = 0
	case l.options.HandshakeTimeout != 0:
		limit = l.options.HandshakeTimeout
	}
	h.end.expireIn(limit)
}
