package ramway

import (
	"context"
	"io/fs"
	"iter"
	"slices"
	"sync/atomic"
	"time"
)

// InboxOptions say what an [Inbox] gives its producers. The zero value means the defaults.
type InboxOptions struct {
	// Capacity is the size of the ring of every producer in bytes, rounded up to a power of two of at least a page; 0 is 1 MiB.
	Capacity int64
	// MaxPeers is how many producers there may be at a time; one beyond is refused (ErrBusy). 0 is 128; below 0 is ErrInvalidArgument.
	MaxPeers int
	// Align, Mode, AllowUIDs, HandshakeTimeout, Wait, Guard and NoMembarrier are as in [ListenOptions]; Wait is how [Inbox.Recv] waits.
	Align            int
	Mode             fs.FileMode
	AllowUIDs        []uint32
	HandshakeTimeout time.Duration
	Wait             WaitMode
	Guard            bool
	NoMembarrier     bool
}

// Inbox receives from any number of producers, each with a ring of its own: a slow consumer pushes back on each producer by itself,
// and one that dies takes nothing of the others with it.
//
// A producer is [Connect] and [Bus.Send], or the same in any language. Messages of one producer stay in order; producers are served
// in turn, message by message. What is not received when the inbox is closed is lost.
//
// It is for one goroutine at a time, and so is a message that is out; a second one at the same time is a panic. Close is safe from
// any.
//
//	inbox, err := ramway.BindInbox("readings", ramway.InboxOptions{})
//	if err != nil { ... }
//	defer inbox.Close()
//	for in := range inbox.All(ctx) {
//		if in.Left != 0 {
//			fmt.Println(in.Peer.ID, in.Left) // after its last message
//		} else {
//			in.Message.View(func(b []byte) { handle(in.Peer.ID, b) })
//		}
//	}
//	err = inbox.Err()
type Inbox struct {
	callGuard
	door      *door
	producers []*inboxProducer
	// next is whose turn it is.
	next int
	// goneIn is in how many calls those are looked for that have gone while others have messages all the time; every says how many such
	// calls lie between, by how long they took the last time.
	goneIn, every int
	lookedAt      time.Time
	selector      *Selector
	// current: the selector's sources are the producers and the listener.
	current bool
	// shutdown: no new producer is taken.
	shutdown bool
	last     *inboxProducer
	err      error
}

type inboxProducer struct {
	peer *Peer
	bus  *Bus
	rx   *Receiver
}

// inboxLookEvery is how many messages in a row may be received before those are looked for that have gone: the clock costs as much as
// a message.
const inboxLookEvery = 256

// Incoming is what an [Inbox] gives: a message, or that a producer has gone.
type Incoming struct {
	// Peer is who sent it, or who has gone.
	Peer *Peer
	// Message is a view of the shared memory, good until its Release.
	Message Message
	// Left is 0 for a message. Else the producer has gone, after its last message, its place is free, and there is no Message.
	Left Left
}

// Left is how a producer of an [Inbox] went; 0 while it has not.
type Left uint8

const (
	// LeftClosed: it closed.
	LeftClosed Left = iota + 1
	// LeftDied: its process died.
	LeftDied
	// LeftCorrupt: it wrote what no correct producer writes; its other messages are not read.
	LeftCorrupt
)

// String says it in a word.
func (l Left) String() string {
	switch l {
	case 0:
		return "there"
	case LeftClosed:
		return "closed"
	case LeftDied:
		return "died"
	case LeftCorrupt:
		return "corrupt"
	}
	return "unknown"
}

// BindInbox starts to listen for producers at a name in RAMWAY_DIR, or at a path (with a '/').
//
// Errors: as for [Bind].
//
//	inbox, err := ramway.BindInbox("readings", ramway.InboxOptions{MaxPeers: 1000})
func BindInbox(name string, o InboxOptions) (*Inbox, error) {
	capacity := o.Capacity
	if capacity == 0 {
		capacity = capacityDefault
	}
	options := peerOptions{fromPeer: capacity, align: o.Align, maxPeers: o.MaxPeers, mode: o.Mode, allowUIDs: o.AllowUIDs,
		handshakeTimeout: o.HandshakeTimeout, wait: o.Wait, guard: o.Guard, noMembarrier: o.NoMembarrier}
	door, err := options.open(name)
	if err != nil {
		return nil, err
	}
	b := &Inbox{door: door, selector: NewSelector(), every: 1, lookedAt: time.Now()}
	b.fenced = 1
	b.selector.SetWait(o.Wait)
	return b, nil
}

// Recv is the next message or departure, waiting for it until ctx is done; nil is a context that is never done. One message is out
// at a time: Release gives it back, and the next receive before that is ErrBusy.
//
// Errors: ErrClosed once [Inbox.Shutdown] was called and every producer has gone; ErrTimedOut or ErrInterrupted with the context's
// cause; ErrNoSpace or ErrOs if a producer could not be taken for want of memory or descriptors: it was told, and the next call goes on;
// ErrBusy, ErrDetached.
func (b *Inbox) Recv(ctx context.Context) (Incoming, error) {
	b.enter()
	in, err := b.receive(ctx, true)
	b.leave()
	return in, err
}

// TryRecv is [Inbox.Recv] that does not wait: ErrEmpty if there is nothing now.
func (b *Inbox) TryRecv() (Incoming, error) {
	b.enter()
	in, err := b.receive(context.Background(), false)
	b.leave()
	return in, err
}

// All gives messages and departures one after another, each message released after the loop's body has returned from it. It ends when
// the inbox was shut down and every producer has gone, at an error, or when ctx is done: [Inbox.Err] tells which.
func (b *Inbox) All(ctx context.Context) iter.Seq[Incoming] {
	return func(yield func(Incoming) bool) {
		b.err = nil
		var in Incoming
		// For a body that panics; and a body that has released its message already.
		defer func() { in.Message.Release() }()
		for {
			var err error
			if in, err = b.Recv(ctx); err != nil {
				if kindOf(err) != Closed {
					b.err = err
				}
				return
			}
			if !yield(in) {
				return
			}
			in.Message.Release()
		}
	}
}

// Err is what ended the last loop over [Inbox.All]: nil if every producer of an inbox that was shut down has gone, or the loop's body
// left.
func (b *Inbox) Err() error { return b.err }

// Peers are those that are connected and taken.
func (b *Inbox) Peers() []Peer {
	b.enter()
	defer b.leave()
	all := make([]Peer, len(b.producers))
	for i, p := range b.producers {
		all[i] = *p.peer
	}
	return all
}

// Path is the socket's path, which producers can be given in place of the name.
func (b *Inbox) Path() string { return b.door.listener.Path() }

// Shutdown takes no new producer, and tells those that are there that nothing more is wanted: their next send gives ErrClosed. What they
// have sent before is still received, and each one's departure, until the last one gives ErrClosed. A message that is sent while
// this runs may be lost. ErrDetached once the inbox is closed.
func (b *Inbox) Shutdown() error {
	b.enter()
	defer b.leave()
	if b.isClosed() {
		return b.detached()
	}
	if !b.shutdown {
		// Those that wait at the door are told by the hang-up.
		b.shutdown, b.current = true, false
		err := b.door.listener.Close()
		for _, p := range b.producers {
			p.rx.announceClose()
		}
		return err
	}
	return nil
}

// Close lets everything go: producers find out at once, and what they have sent and was not received is lost. A Recv of another
// goroutine ends with ErrDetached; a message that is out can be read until its Release. Closing twice is fine.
func (b *Inbox) Close() error {
	// Ends a wait, and keeps another one out.
	b.selector.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosed() {
		return nil
	}
	b.callGuard.close(func() {})
	err := b.door.listener.Close()
	for _, p := range b.producers {
		b.door.goodbye(p.bus)
	}
	b.producers = nil
	return err
}

// wrong is an error about this inbox.
func (b *Inbox) wrong(err error) error { return b.door.about("receiving from the inbox", err) }

func (b *Inbox) detached() error { return b.wrong(Detached) }

// receive is Recv, inside the call guard.
func (b *Inbox) receive(ctx context.Context, blocking bool) (Incoming, error) {
	if b.isClosed() {
		return Incoming{}, b.detached()
	}
	if last := b.last; last != nil && last.rx.head != last.rx.released {
		return Incoming{}, b.wrong(failf(Busy, "a message of this inbox is out: release it first"))
	}
	if !b.shutdown && b.door.waits() {
		if err := b.takeNew(); err != nil {
			return Incoming{}, err
		}
	}
	if b.goneIn--; b.goneIn < 0 {
		if in, gone := b.findGone(); gone {
			return in, nil
		}
	}
	if in, ok := b.find(false); ok {
		return in, nil
	}
	for {
		if in, ok := b.find(true); ok {
			return in, nil
		}
		if b.shutdown && len(b.producers) == 0 {
			return Incoming{}, b.wrong(failf(Closed, "the inbox was shut down, and every producer has gone"))
		}
		if !blocking {
			return Incoming{}, ErrEmpty
		}
		if err := b.sleep(ctx); err != nil {
			return Incoming{}, err
		}
	}
}

// find is the next producer's that has something to give, from the one whose turn it is. Those that have no message are asked how they
// are only if check says so, or they have just said something about themselves.
func (b *Inbox) find(check bool) (Incoming, bool) {
	n := len(b.producers)
	i := b.next
	for range n {
		if i >= n {
			i = 0
		}
		p := b.producers[i]
		r := p.rx
		var m Message
		var err error
		switch {
		case r.head != r.tail || atomic.LoadUint64(&r.ring.tail) != r.tail:
			// There is something, so it does not wait. It is the shorter way.
			m, err = r.Recv(context.Background())
		case check || atomic.LoadUint32(&r.peer.flags) != r.peerFlags:
			m, err = r.TryRecv()
		default:
			i++
			continue
		}
		if err == nil {
			b.next, b.last = i+1, p
			return Incoming{Peer: p.peer, Message: m}, true
		}
		if kind := kindOf(err); kind != Empty {
			return b.farewell(i, kind), true
		}
		i++
	}
	return Incoming{}, false
}

// findGone is a producer that has gone and has no message left. Each one is asked about itself every 100 ms, however many messages the
// others have.
func (b *Inbox) findGone() (Incoming, bool) {
	now := time.Now()
	if now.Sub(b.lookedAt) < pollInterval/4 {
		b.every = min(2*b.every, inboxLookEvery)
	} else {
		b.every = 1
	}
	b.goneIn, b.lookedAt = b.every, now
	for i, p := range b.producers {
		if over, err := p.rx.decide(p.rx, p.rx.livenessCheckDue()); !over && err != nil {
			b.goneIn = 0 // several that went together are told one after another
			return b.farewell(i, kindOf(err)), true
		}
	}
	return Incoming{}, false
}

// farewell lets a producer go.
func (b *Inbox) farewell(i int, kind Kind) Incoming {
	p := b.producers[i]
	b.producers = slices.Delete(b.producers, i, i+1)
	b.next, b.current = i, false
	b.door.goodbye(p.bus)
	left := LeftClosed
	switch kind {
	case PeerDead:
		left = LeftDied
	case Corrupt:
		left = LeftCorrupt
	}
	return Incoming{Peer: p.peer, Left: left}
}

// takeNew takes those that have connected.
func (b *Inbox) takeNew() error {
	for {
		peer, bus, err := b.door.take()
		if bus == nil || err != nil {
			return err
		}
		b.producers = append(b.producers, &inboxProducer{peer, bus, bus.Receiver()})
		b.current = false
	}
}

// sleep waits until a producer or the listener is ready.
func (b *Inbox) sleep(ctx context.Context) error {
	if !b.current {
		sources := make([]Source, 0, len(b.producers)+1)
		for _, p := range b.producers {
			sources = append(sources, p.rx)
		}
		if !b.shutdown {
			sources = append(sources, b.door.listener)
		}
		b.selector.Set(sources...)
		b.current = true
	}
	_, err := b.selector.Wait(ctx)
	switch {
	case b.selector.isClosed():
		return b.detached()
	case err != nil:
		return b.wrong(err)
	case b.shutdown:
		return nil
	}
	return b.takeNew()
}
