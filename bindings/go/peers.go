package ramway

import (
	"io/fs"
	"time"
)

// Many processes at one end: an Inbox receives from many producers, an Outbox gives work to many workers. Both are a listener, a
// one-way bus for each peer, and a Selector over them (docs/adr/0028).

// maxPeersDefault is how many peers there may be at a time unless another number is asked for.
const maxPeersDefault = 128

// Peer is a process at the other side of an [Inbox] or [Outbox].
type Peer struct {
	// ID counts up from 1 with each that connects.
	ID uint64
	// UID is its effective user, PID its process when it connected; 0 if it has no number in our PID namespace.
	UID uint32
	PID int
}

// peerOptions are what both sides are opened with.
type peerOptions struct {
	toPeer, fromPeer int64
	align, maxPeers  int
	mode             fs.FileMode
	allowUIDs        []uint32
	handshakeTimeout time.Duration
	wait             WaitMode
	guard            bool
	noMembarrier     bool
}

// door takes those that have connected, without waiting.
type door struct {
	listener *Listener
	// last is the number of the last peer.
	last uint64
}

// open starts to listen.
func (o *peerOptions) open(name string) (*door, error) {
	if o.maxPeers < 0 {
		return nil, about(failf(InvalidArgument, "at most %d peers: expected at least 1, or 0 for %d", o.maxPeers, maxPeersDefault),
			"listening at", name)
	}
	if o.maxPeers == 0 {
		o.maxPeers = maxPeersDefault
	}
	l, err := listen(name, ListenOptions{
		ToPeer: o.toPeer, FromPeer: o.fromPeer, Align: o.align, Mode: o.mode, AllowUIDs: o.allowUIDs,
		HandshakeTimeout: o.handshakeTimeout, Wait: o.wait, Guard: o.guard, NoMembarrier: o.noMembarrier,
	})
	if err != nil {
		return nil, about(err, "listening at", name)
	}
	l.busesMax = o.maxPeers
	l.start()
	l.try(true)
	return &door{listener: l}, nil
}

// waits says whether somebody has connected and is not taken.
func (d *door) waits() bool { return d.listener.offered.Load() != 0 }

// take is the next one that has connected; nil if there is none.
func (d *door) take() (*Peer, *Bus, error) {
	bus, err := d.listener.TryAccept()
	if kindOf(err) == Empty {
		return nil, nil, nil
	}
	if err != nil {
		d.listener.try(true) // for those who come next
		return nil, nil, err
	}
	d.last++
	return &Peer{ID: d.last, UID: bus.PeerUID(), PID: bus.PeerPID()}, bus, nil
}

// about is an error while something was done with the whole of it.
func (d *door) about(doing string, err error) error {
	told := Error{Kind: kindOf(err)}
	if e, is := err.(*Error); is {
		told = *e
	}
	told.Op, told.Name = doing, d.listener.plan.name
	return &told
}

// goodbye closes the bus of one that has gone, whose place is free then.
func (d *door) goodbye(bus *Bus) {
	// What the bus was dead of was told.
	_ = bus.Close()
	d.listener.busEnded()
}
