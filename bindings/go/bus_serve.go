package ramway

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

// The listener's side of a handshake, one goroutine for each. None of them can hold up another.

// stage is what a handshake waits for.
type stage uint8

const (
	// stageHello: the connector's HELLO.
	stageHello stage = iota
	// stageListener: this side.
	stageListener
	// stageAck: the connector's ACK.
	stageAck
)

// handshake is one that is under way, with the listener's mu.
type handshake struct {
	end   *busEnd
	stage stage
	// evicted: its time is over, because it was silent the longest and another connector came.
	evicted bool
}

// silentLongest is the handshake that has to make room for another one, nil if none has: the oldest whose HELLO is not
// there, else the oldest whose ACK is due. With mu held.
func (l *Listener) silentLongest() *handshake {
	for _, stage := range []stage{stageHello, stageAck} {
		for _, h := range l.shakes {
			if h.stage == stage {
				return h
			}
		}
	}
	return nil
}

// begin begins a handshake, once there is a place for it.
func (l *Listener) begin(fd int) {
	end, err := newBusEnd(fd, l.Path())
	if err != nil {
		l.deliver(accepted{err: err})
		return
	}
	h := &handshake{end: end}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.shakes) >= handshakesMax && !l.closed {
		if silent := l.silentLongest(); silent != nil && !silent.evicted {
			silent.evicted = true
			silent.end.expireIn(0)
		}
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

// leave gives the handshake's place back.
func (l *Listener) leave(h *handshake) {
	l.mu.Lock()
	l.shakes = slices.DeleteFunc(l.shakes, func(other *handshake) bool { return other == h })
	l.mu.Unlock()
	l.changed.Broadcast()
}

// enter says what the handshake waits for next. What it was evicted for has come, if it was.
func (l *Listener) enter(h *handshake, next stage) {
	l.mu.Lock()
	h.stage, h.evicted = next, false
	l.mu.Unlock()
	l.changed.Broadcast()
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

// shake goes through a handshake. own is a failure of this side, which whoever calls Accept should know; fault is the
// connector's, and that is all. All three are nil when the listener was closed meanwhile.
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
	l.enter(h, stageListener)
	if l.ending() || !l.takeWelcome() {
		return nil, nil, nil
	}
	bus, own, fault = l.welcome(h)
	if bus == nil {
		l.returnWelcome()
		if fault != nil && l.ending() {
			fault = nil
		}
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
	l.enter(h, stageAck)
	err = end.send(welcome, 0, l.plan.spec.size, end.memory)
	if err == nil {
		err = l.await(h, ack)
	}
	if err != nil {
		both.close()
		return nil, nil, err
	}
	// Whoever has said ACK believes to be connected.
	l.enter(h, stageListener)
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
		// The last look at what has come.
		h.end.control(func(fd int) { progress, err = in.fill(fd) })
	}
	switch {
	case late && (err != nil || progress == inboxPartial):
		if l.wasEvicted(h) {
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

func (l *Listener) wasEvicted(h *handshake) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return h.evicted
}

// expire gives a connector its time, or none if the listener was closed or another one takes its place.
func (l *Listener) expire(h *handshake) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := time.Duration(handshakeTimeout)
	switch {
	case l.closed || h.evicted:
		limit = 0
	case l.options.HandshakeTimeout != 0:
		limit = l.options.HandshakeTimeout
	}
	h.end.expireIn(limit)
}

// takeWelcome waits for the permission to tell a connector that it is welcome; false: the listener was closed.
func (l *Listener) takeWelcome() bool {
	if l.welcomes == nil {
		return true
	}
	select {
	case l.welcomes <- struct{}{}:
		return true
	case <-l.done:
		return false
	}
}

func (l *Listener) returnWelcome() {
	if l.welcomes != nil {
		<-l.welcomes
	}
}
