package main

import (
	"context"
	"os"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

// patience is how long to wait for a name, a role or the other side.
const patience = 10 * time.Second

// ends are both halves of a bus, or what the command needs of rings.
type ends struct {
	tx *ramway.Sender
	rx *ramway.Receiver
}

// open makes or opens the ring or bus of the flags. On rings, to is the one to send to and from the one to receive from.
func (a *args) open(to, from string) (*ends, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch {
	case a.listen != "":
		o := ramway.ListenOptions{Capacity: a.capacity, Align: a.align, Wait: a.wait}
		return both(ramway.Listen(ctx, a.listen, o))
	case a.connect != "":
		return both(ramway.Connect(ctx, a.connect, ramway.ConnectOptions{Wait: a.wait}))
	}
	o := ramway.Options{Timeout: patience, Wait: a.wait}
	makeSender, makeReceiver := ramway.OpenSender, ramway.OpenReceiver
	if a.create {
		o.Capacity, o.Align = a.capacity, a.align
		makeSender, makeReceiver = ramway.CreateSender, ramway.CreateReceiver
	}
	e := &ends{}
	var err error
	if to != "" {
		if e.tx, err = makeSender(to, o); err != nil {
			return nil, err
		}
	}
	if from != "" {
		if e.rx, err = makeReceiver(from, o); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func both(bus *ramway.Bus, err error) (*ends, error) {
	if err != nil {
		return nil, err
	}
	return &ends{bus.Sender(), bus.Receiver()}, nil
}

// sending is the sending half, and the line that says so.
func (a *args) sending(to, from string) (*ends, error) {
	e, err := a.open(to, from)
	if err != nil {
		return nil, err
	}
	if e.tx == nil {
		return nil, usageError("nothing to send to: --ring, --listen or --connect")
	}
	attached(e.tx.Epoch(), e.tx.PeerEpoch(), e.tx.Capacity(), e.tx.MaxMessageLen())
	return e, nil
}

// receiving is the receiving half, and the line that says so.
func (a *args) receiving(from string) (*ends, error) {
	e, err := a.open("", from)
	if err != nil {
		return nil, err
	}
	if e.rx == nil {
		return nil, usageError("nothing to receive from: --ring, --listen or --connect")
	}
	attached(e.rx.Epoch(), e.rx.PeerEpoch(), e.rx.Capacity(), e.rx.MaxMessageLen())
	return e, nil
}

// conversation is both halves: to --ring and from --back, or the other way round.
func (a *args) conversation(to, from string) (*ends, error) {
	e, err := a.sending(to, from)
	if err == nil && e.rx == nil {
		err = usageError("--ring with --back, --listen or --connect")
	}
	return e, err
}

// close closes in an orderly way. What it says on a bus whose peer is dead does not matter.
func (e *ends) close() {
	if e.tx != nil {
		_ = e.tx.Close()
	}
	if e.rx != nil {
		_ = e.rx.Close()
	}
	event("closed")
}

func attached(epoch, peerEpoch uint32, capacity int64, longest int) {
	event("attached pid=%d epoch=%d peer_epoch=%d capacity=%d max=%d", os.Getpid(), epoch, peerEpoch, capacity, longest)
}

// receive waits for a message, for as long as a wait may last.
func (a *args) receive(rx *ramway.Receiver) (m ramway.Message, err error) {
	if a.poll < 0 {
		return rx.Recv(a.waiting())
	}
	err = a.patiently(func(ctx context.Context) error {
		m, err = rx.Recv(ctx)
		return err
	})
	return m, err
}

// reserve waits for room, for as long as a wait may last.
func (a *args) reserve(tx *ramway.Sender, n int) (slot ramway.Slot, err error) {
	if a.poll < 0 {
		return tx.Reserve(a.waiting(), n)
	}
	err = a.patiently(func(ctx context.Context) error {
		slot, err = tx.Reserve(ctx, n)
		return err
	})
	return slot, err
}
