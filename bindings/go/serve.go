package ramway

import (
	"errors"
	"os"
	"time"
)

// The listener's half of a handshake, one goroutine for each. None of them can hold up another.

// serve is one handshake, and the wait for a call of Accept that takes the bus.
func (l *Listener) serve(fd int) {
	defer l.workers.Done()
	defer func() { <-l.slots }()
	end, err := newBusEnd(fd, l.Path())
	if err != nil {
		l.deliver(accepted{err: err})
		return
	}
	// Once the halves have the socket, this is only one user less.
	defer func() { _ = end.release() }()
	if !l.begin(end) {
		return
	}
	bus, own, fault := l.shake(end)
	l.mu.Lock()
	delete(l.ends, end)
	if fault != nil {
		l.refused++
		l.lastRefusal = fault
	}
	l.mu.Unlock()
	if (bus != nil || own != nil) && !l.deliver(accepted{bus, own}) && bus != nil {
		// Nobody takes it any more: the peer is told that we closed.
		_ = bus.Close()
	}
}

// begin lets Close know of the handshake; false: it was faster.
func (l *Listener) begin(end *busEnd) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.ends[end] = struct{}{}
	return true
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
func (l *Listener) shake(end *busEnd) (bus *Bus, own, fault error) {
	if err := checkPeer(end.peer, l.options.AllowUIDs, "AllowUIDs"); err != nil {
		l.refuse(end, err)
		return nil, nil, err
	}
	if err := l.await(end, hello); err != nil {
		if l.ending() {
			return nil, nil, nil
		}
		l.refuse(end, err)
		return nil, nil, err
	}
	if !l.takeWelcome() {
		return nil, nil, nil
	}
	bus, own, fault = l.welcome(end)
	if bus == nil {
		l.returnWelcome()
		if fault != nil && l.ending() {
			fault = nil
		}
	}
	return bus, own, fault
}

// welcome makes the memory, sends it, and waits until the connector has it.
func (l *Listener) welcome(end *busEnd) (bus *Bus, own, fault error) {
	h, err := createBus(l.plan, end)
	if err != nil {
		l.refuse(end, err)
		return nil, err, nil
	}
	err = end.send(welcome, 0, l.plan.spec.size, end.memory)
	if err == nil {
		err = l.await(end, ack)
	}
	if err != nil {
		h.close()
		return nil, nil, err
	}
	return newBus(end, h), nil, nil
}

// refuse tells a connector why it is not served. It may be gone, which changes nothing.
func (l *Listener) refuse(end *busEnd, why error) {
	_ = end.send(refuse, KindOf(why), 0, -1)
}

// await waits for a message without a descriptor, no longer than a connector may take for it.
func (l *Listener) await(end *busEnd, expected handshakeType) error {
	l.expire(end)
	in := newInbox()
	defer in.discard()
	progress, err := end.receive(in)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
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

// expire gives a connector its time, or none if the listener was closed.
func (l *Listener) expire(end *busEnd) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := time.Duration(handshakeTimeout)
	switch {
	case l.closed:
		limit = 0
	case l.options.HandshakeTimeout != 0:
		limit = l.options.HandshakeTimeout
	}
	end.expireIn(limit)
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
