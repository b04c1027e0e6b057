package ramway

import (
	"context"
	"errors"
	"iter"
)

// Bus is a connection to one process of this machine: two rings in sealed memory, one for each direction, and a
// socket whose hang-up tells that the peer is gone. A [Listener] accepts them, [Connect] makes them.
//
// Whatever the peer writes into the shared memory, at any time, this process neither crashes nor reads outside of it
// (ErrCorrupt, at worst), as far as the copying calls are used where the peer is not trusted: see [Receiver.RecvAppend].
//
// One goroutine may send while another receives. After the last message a receiver gets ErrClosed if the peer closed
// and ErrPeerDead if its process died; a blocked call learns it within 200 ms. Both are final.
type Bus struct {
	name     string
	sender   *Sender
	receiver *Receiver
	end      *busEnd
}

func newBus(end *busEnd, name string, h halves) *Bus {
	return &Bus{name: name, sender: h.sender, receiver: h.receiver, end: end}
}

// Name is what the bus was listened or connected at by.
func (b *Bus) Name() string { return b.name }

// Sender is the sending endpoint, with all of its calls; nil if the listener gave this direction no capacity. The peer
// sees a hang-up when both halves are closed.
func (b *Bus) Sender() *Sender { return b.sender }

// Receiver is the receiving endpoint, with all of its calls; nil if the listener gave this direction no capacity.
func (b *Bus) Receiver() *Receiver { return b.receiver }

// Send is [Sender.Send]. ErrUnsupported if this direction has no capacity.
func (b *Bus) Send(ctx context.Context, typeID uint32, data []byte) error {
	if b.sender == nil {
		return b.missingDirection("receive-only")
	}
	return b.sender.Send(ctx, typeID, data)
}

// SendTagged is [Sender.SendTagged]. ErrUnsupported if this direction has no capacity.
func (b *Bus) SendTagged(ctx context.Context, typeID uint32, tag uint64, data []byte) error {
	if b.sender == nil {
		return b.missingDirection("receive-only")
	}
	return b.sender.SendTagged(ctx, typeID, tag, data)
}

// TrySendTagged is [Sender.TrySendTagged]. ErrUnsupported if this direction has no capacity.
func (b *Bus) TrySendTagged(typeID uint32, tag uint64, data []byte) error {
	if b.sender == nil {
		return b.missingDirection("receive-only")
	}
	return b.sender.TrySendTagged(typeID, tag, data)
}

// Reserve is [Sender.Reserve]. ErrUnsupported if this direction has no capacity.
func (b *Bus) Reserve(ctx context.Context, n int) (Slot, error) {
	if b.sender == nil {
		return Slot{}, b.missingDirection("receive-only")
	}
	return b.sender.Reserve(ctx, n)
}

// TrySend is [Sender.TrySend]. ErrUnsupported if this direction has no capacity.
func (b *Bus) TrySend(typeID uint32, data []byte) error {
	if b.sender == nil {
		return b.missingDirection("receive-only")
	}
	return b.sender.TrySend(typeID, data)
}

// Recv is [Receiver.Recv]. ErrUnsupported if this direction has no capacity.
func (b *Bus) Recv(ctx context.Context) (Message, error) {
	if b.receiver == nil {
		return Message{}, b.missingDirection("send-only")
	}
	return b.receiver.Recv(ctx)
}

// TryRecv is [Receiver.TryRecv]. ErrUnsupported if this direction has no capacity.
func (b *Bus) TryRecv() (Message, error) {
	if b.receiver == nil {
		return Message{}, b.missingDirection("send-only")
	}
	return b.receiver.TryRecv()
}

// RecvInto is [Receiver.RecvInto], the one for a peer that is not trusted. ErrUnsupported if this direction has no capacity.
func (b *Bus) RecvInto(ctx context.Context, dst []byte) (Meta, error) {
	if b.receiver == nil {
		return Meta{}, b.missingDirection("send-only")
	}
	return b.receiver.RecvInto(ctx, dst)
}

// All is [Receiver.All]. It yields nothing if this direction has no capacity; [Bus.Err] tells why it ended.
func (b *Bus) All(ctx context.Context) iter.Seq[Message] {
	if b.receiver == nil {
		return func(func(Message) bool) {}
	}
	return b.receiver.All(ctx)
}

// Err is [Receiver.Err]: what ended the last loop over [Bus.All], nil after the peer's orderly close.
func (b *Bus) Err() error {
	if b.receiver == nil {
		return b.missingDirection("send-only")
	}
	return b.receiver.Err()
}

// PeerUID is the user that the peer acted as when the connection was made, as the kernel recorded it.
func (b *Bus) PeerUID() uint32 { return b.end.peer.UID }

// PeerPID is the peer's process when the connection was made; 0 if it has no number in our PID namespace. It says who
// asked, and nothing should be decided by it: numbers are used again.
func (b *Bus) PeerPID() int { return b.end.peer.PID }

// PeerAlive says whether the peer still holds its end of the bus. One system call; safe from any goroutine. false once
// this end is closed.
func (b *Bus) PeerAlive() bool { return !b.end.hungUp() }

// Close closes both halves; what was sent before is delivered. Safe from any goroutine, and more than once: calls of
// other goroutines that wait end with ErrDetached (or with ErrClosed, if the peer answers by closing even faster).
func (b *Bus) Close() error {
	var sent, received error
	if b.sender != nil {
		sent = b.sender.Close()
	}
	if b.receiver != nil {
		received = b.receiver.Close()
	}
	return errors.Join(sent, received)
}

func (b *Bus) missingDirection(ways string) error {
	return &Error{Kind: Unsupported, Op: "the bus", Name: b.name,
		Text: "the bus is " + ways + ": the listener gave the other direction a capacity of 0"}
}
