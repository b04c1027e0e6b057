package ramway

import (
	"bytes"
	"context"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"
)

// OutboxOptions say what an [Outbox] gives its workers. The zero value means the defaults.
type OutboxOptions struct {
	// Capacity is the size of the ring of every worker in bytes, rounded up to a power of two of at least a page; 0 is 1 MiB.
	Capacity int64
	// Prefetch is how many messages a worker may have at a time; 0 is 1. With more it need not wait for the next one, and another that is
	// free may wait meanwhile. Below 0 is ErrInvalidArgument.
	Prefetch int
	// MaxDeliveries is to how many workers a message is given before it is taken out (see [Outbox.TakeUndelivered]); 0 is 3. Below 0 is
	// ErrInvalidArgument.
	MaxDeliveries int
	// Copies keeps a copy of each message until it is given back, so that a worker that writes into what it was given cannot change what
	// another one gets: Prefetch × size bytes for each worker, and an allocation for each message.
	Copies bool
	// MaxPeers is how many workers there may be at a time; one beyond is refused (ErrBusy). 0 is 128; below 0 is ErrInvalidArgument.
	MaxPeers int
	// Align, Mode, AllowUIDs, HandshakeTimeout, Wait and NoMembarrier are as in [ListenOptions]; Wait is how [Outbox.Send] waits.
	Align            int
	Mode             fs.FileMode
	AllowUIDs        []uint32
	HandshakeTimeout time.Duration
	Wait             WaitMode
	NoMembarrier     bool
}

// Outbox gives each message to one of any number of workers that compete for them: to the one with the fewest messages that it has not
// given back, of several to one that waits for work.
//
// A worker is [Connect] and [Bus.Recv], or the same in any language: it has done a message's work when it gives it back ([Message.Release]).
// What a worker that closes or dies has not given back goes to another one: at least once. After MaxDeliveries a message is taken
// out instead. Deaths are seen, and messages given again, inside the calls of an outbox only.
//
// An outbox keeps where the messages lie that are not given back, and how long they are, in its own memory: a worker can change
// only the bytes of what it was given itself, and with OutboxOptions.Copies not even those.
//
// It is for one goroutine at a time; a second one at the same time is a panic. Close is safe from any.
//
//	outbox, err := ramway.BindOutbox("thumbnails", ramway.OutboxOptions{})
//	if err != nil { ... }
//	defer outbox.Close()
//	for _, path := range paths {
//		if err := outbox.Send(ctx, 1, []byte(path)); err != nil { ... }
//	}
//	err = outbox.Drain(ctx)
type Outbox struct {
	callGuard
	door    *door
	workers []*outboxWorker
	// again are those that have to be given to somebody again, the oldest first.
	again       []task
	undelivered []Undelivered
	selector    *Selector
	// current: the selector's sources are the workers and the listener.
	current                 bool
	prefetch, maxDeliveries int
	copies                  bool
}

// outboxWorker is the other side of a bus.
type outboxWorker struct {
	peer *Peer
	bus  *Bus
	tx   *Sender
	// given are the messages that it has not given back, the oldest first.
	given []given
	// waiting is what a wait is for.
	waiting *releasedSource
}

// given is a message that a worker has.
type given struct {
	// start and end are where its frame lies.
	start, end uint64
	len        int
	typeID     uint32
	tag        uint64
	// deliveries is how often it was given to somebody, this time included.
	deliveries int
	// bytes are a copy, where those are kept.
	bytes []byte
}

// task is a message that is given to nobody at this moment.
type task struct {
	typeID     uint32
	tag        uint64
	deliveries int
	bytes      []byte
}

// Undelivered is a message that no worker has given back.
type Undelivered struct {
	// TypeID and Tag are those that it was sent with.
	TypeID uint32
	Tag    uint64
	// Deliveries is to how many workers it was given.
	Deliveries int
	// Data is the payload.
	Data []byte
}

// Worker is one of an outbox's workers.
type Worker struct {
	Peer
	// Has is how many messages it has not given back.
	Has int
}

// BindOutbox starts to listen for workers at a name in RAMWAY_DIR, or at a path (with a '/').
//
// Errors: as for [Bind].
//
//	outbox, err := ramway.BindOutbox("thumbnails", ramway.OutboxOptions{Prefetch: 4})
func BindOutbox(name string, o OutboxOptions) (*Outbox, error) {
	if o.Prefetch < 0 || o.MaxDeliveries < 0 {
		return nil, about(failf(InvalidArgument, "a Prefetch of %d, MaxDeliveries of %d: expected at least 1, or 0 for the default",
			o.Prefetch, o.MaxDeliveries), "listening at", name)
	}
	capacity, prefetch, maxDeliveries := o.Capacity, o.Prefetch, o.MaxDeliveries
	if capacity == 0 {
		capacity = capacityDefault
	}
	if prefetch == 0 {
		prefetch = 1
	}
	if maxDeliveries == 0 {
		maxDeliveries = 3
	}
	options := peerOptions{toPeer: capacity, align: o.Align, maxPeers: o.MaxPeers, mode: o.Mode, allowUIDs: o.AllowUIDs,
		handshakeTimeout: o.HandshakeTimeout, wait: o.Wait, noMembarrier: o.NoMembarrier}
	door, err := options.open(name)
	if err != nil {
		return nil, err
	}
	b := &Outbox{door: door, selector: NewSelector(), prefetch: prefetch, maxDeliveries: maxDeliveries, copies: o.Copies}
	b.fenced = 1
	b.selector.SetWait(o.Wait)
	return b, nil
}

// Send gives a message to a worker, and waits until one may have another until ctx is done; nil is a context that is never done. Messages
// that have to be given again go first.
//
// Errors: ErrTooLarge if it can never fit; ErrInvalidArgument for a reserved typeID; ErrTimedOut or ErrInterrupted with the context's cause;
// ErrNoSpace or ErrOs if a worker could not be taken for want of memory or descriptors; ErrDetached. Nothing of this message was given then.
func (b *Outbox) Send(ctx context.Context, typeID uint32, data []byte) error {
	return b.put(ctx, true, typeID, 0, data)
}

// SendTagged is [Outbox.Send] with a tag.
func (b *Outbox) SendTagged(ctx context.Context, typeID uint32, tag uint64, data []byte) error {
	return b.put(ctx, true, typeID, tag, data)
}

// TrySend is [Outbox.Send] that does not wait: ErrFull if no worker may have another message now.
func (b *Outbox) TrySend(typeID uint32, data []byte) error {
	return b.put(context.Background(), false, typeID, 0, data)
}

// TrySendTagged is [Outbox.TrySend] with a tag.
func (b *Outbox) TrySendTagged(typeID uint32, tag uint64, data []byte) error {
	return b.put(context.Background(), false, typeID, tag, data)
}

// Drain waits until every message was given back or taken out.
//
// Errors: ErrTimedOut or ErrInterrupted with the context's cause, and as for [Outbox.Send].
func (b *Outbox) Drain(ctx context.Context) error {
	b.enter()
	defer b.leave()
	for {
		if err := b.step(nil); err != nil {
			return err
		}
		if b.outstanding() == 0 {
			return nil
		}
		if err := b.sleep(ctx, true); err != nil {
			return err
		}
	}
}

// TakeUndelivered is the oldest message that no worker has given back and that is given to nobody any more; false if there is none.
func (b *Outbox) TakeUndelivered() (Undelivered, bool) {
	b.enter()
	defer b.leave()
	if len(b.undelivered) == 0 {
		return Undelivered{}, false
	}
	first := b.undelivered[0]
	b.undelivered = slices.Delete(b.undelivered, 0, 1)
	return first, true
}

// Outstanding is how many messages are given to somebody and not given back, or wait to be given again; as the last call has seen it.
func (b *Outbox) Outstanding() int {
	b.enter()
	defer b.leave()
	return b.outstanding()
}

func (b *Outbox) outstanding() int {
	n := len(b.again)
	for _, w := range b.workers {
		n += len(w.given)
	}
	return n
}

// Workers are those that are connected and taken, and how many messages each has, as the last call has seen it.
func (b *Outbox) Workers() []Worker {
	b.enter()
	defer b.leave()
	all := make([]Worker, len(b.workers))
	for i, w := range b.workers {
		all[i] = Worker{*w.peer, len(w.given)}
	}
	return all
}

// Path is the socket's path, which workers can be given in place of the name.
func (b *Outbox) Path() string { return b.door.listener.Path() }

// Close lets everything go: each worker still receives what it was given, then ErrClosed, and nothing is given again. A call of
// another goroutine that waits ends with ErrDetached. Closing twice is fine.
func (b *Outbox) Close() error {
	// Ends a wait, and keeps another one out.
	b.selector.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosed() {
		return nil
	}
	b.callGuard.close(func() {})
	err := b.door.listener.Close()
	for _, w := range b.workers {
		b.door.goodbye(w.bus)
	}
	b.workers = nil
	return err
}

// wrong is an error about this outbox.
func (b *Outbox) wrong(err error) error { return b.door.about("sending to the outbox", err) }

func (b *Outbox) detached() error { return b.wrong(Detached) }

func (b *Outbox) put(ctx context.Context, blocking bool, typeID uint32, tag uint64, data []byte) error {
	b.enter()
	defer b.leave()
	if typeID >= typeIDReserved {
		return b.wrong(failf(InvalidArgument, "type id %#x is Ramway's own: applications use ids below %#x", typeID, uint32(typeIDReserved)))
	}
	if longest := maxMessageLen(b.door.listener.plan.spec.blocks[0].capacity); uint64(len(data)) > longest {
		return b.wrong(failf(TooLarge, "a message of %d bytes can never fit: a worker's ring takes at most %d; give the outbox a larger "+
			"Capacity or cut the message", len(data), longest))
	}
	for {
		if err := b.step(nil); err != nil {
			return err
		}
		if len(b.again) == 0 {
			if w := b.free(len(data)); w != nil {
				if given, err := b.giveTo(w, task{typeID, tag, 1, data}); given || err != nil {
					return err
				}
				// It has gone meanwhile: whom else, the next step finds.
			}
		}
		if err := b.sleep(ctx, blocking); err != nil {
			if kindOf(err) == Empty {
				err = ErrFull
			}
			return err
		}
	}
}

// step takes new workers, forgets what was given back and those that have gone, and gives again what has to be. Of those workers
// that are among ready the system is asked whether they live.
func (b *Outbox) step(ready []int) error {
	if b.isClosed() {
		return b.detached()
	}
	if b.door.waits() {
		if err := b.takeNew(); err != nil {
			return err
		}
	}
	for i, at := 0, 0; i < len(b.workers); at++ {
		w := b.workers[i]
		// A side that always finds a free worker never waits, and a dead one's task must be given again all the same.
		if w.settle(slices.Contains(ready, at) || w.tx.livenessCheckDue()) {
			i++
			continue
		}
		for _, t := range w.tasks() {
			b.giveUp(t)
		}
		b.door.goodbye(w.bus)
		b.workers = slices.Delete(b.workers, i, i+1)
		b.current = false
	}
	for len(b.again) > 0 {
		next := b.again[0]
		w := b.free(len(next.bytes))
		if w == nil {
			return nil
		}
		next.deliveries++
		given, err := b.giveTo(w, next)
		if !given {
			return err
		}
		b.again = slices.Delete(b.again, 0, 1)
	}
	return nil
}

func (b *Outbox) takeNew() error {
	for {
		peer, bus, err := b.door.take()
		if bus == nil || err != nil {
			return err
		}
		tx := bus.Sender()
		b.workers = append(b.workers, &outboxWorker{peer: peer, bus: bus, tx: tx, waiting: newReleasedSource(tx)})
		b.current = false
	}
}

// giveUp has a message that its worker did not give back given again, or taken out.
func (b *Outbox) giveUp(t task) {
	if t.deliveries >= b.maxDeliveries {
		b.undelivered = append(b.undelivered, Undelivered{t.typeID, t.tag, t.deliveries, t.bytes})
	} else {
		b.again = append(b.again, t)
	}
}

// free is the worker that gets the next message, of n bytes: of those that may have another and have room for it, the one with the
// fewest, of several one that waits.
func (b *Outbox) free(n int) (best *outboxWorker) {
	bestWaits := false
	for _, w := range b.workers {
		if len(w.given) >= b.prefetch || w.tx.frameSize(uint64(n)) > w.tx.capacity-(w.tx.tail-w.tx.head) {
			continue
		}
		waits := atomic.LoadUint32(&w.tx.peer.wait) != 0
		if best == nil || len(w.given) < len(best.given) || len(w.given) == len(best.given) && waits && !bestWaits {
			best, bestWaits = w, waits
		}
	}
	return best
}

// giveTo gives a message to a worker; false if it has gone meanwhile.
func (b *Outbox) giveTo(w *outboxWorker, t task) (bool, error) {
	start := w.tx.tail
	switch err := w.tx.TrySendTagged(t.typeID, t.tag, t.bytes); kindOf(err) {
	case 0:
	case Closed, PeerDead, Corrupt, Full:
		return false, nil
	default:
		return false, err
	}
	g := given{start: start, end: w.tx.tail, len: len(t.bytes), typeID: t.typeID, tag: t.tag, deliveries: t.deliveries}
	if b.copies {
		g.bytes = bytes.Clone(t.bytes)
	}
	w.given = append(w.given, g)
	return true, nil
}

// sleep waits until a worker has given something back, one has come or one has gone; without blocking it only finds out whether so.
func (b *Outbox) sleep(ctx context.Context, blocking bool) error {
	if b.isClosed() {
		return b.detached()
	}
	if !b.current {
		sources := make([]Source, 0, len(b.workers)+1)
		for _, w := range b.workers {
			sources = append(sources, w.waiting)
		}
		b.selector.Set(append(sources, b.door.listener)...)
		b.current = true
	}
	for _, w := range b.workers {
		w.waiting.expect(w.given)
	}
	var ready []int
	var err error
	if blocking {
		ready, err = b.selector.Wait(ctx)
	} else {
		ready, err = b.selector.TryWait()
	}
	switch {
	case err == ErrEmpty:
		return err
	case b.selector.isClosed():
		return b.detached()
	case err != nil:
		return b.wrong(err)
	}
	return b.step(ready)
}

// settle forgets what the worker has given back; false if it has gone, and then what it gave back before was given back.
func (w *outboxWorker) settle(askSystem bool) bool {
	if !w.forgetGivenBack() {
		return false
	}
	if !w.tx.isShut() && w.tx.ended(askSystem) == nil {
		return true
	}
	w.forgetGivenBack()
	return false
}

// forgetGivenBack is false where the worker wrote what no correct one does.
func (w *outboxWorker) forgetGivenBack() bool {
	if w.tx.isShut() {
		return false
	}
	// Room for nothing: it loads how far the worker has given back, and checks that.
	w.tx.need = 0
	if _, err := w.tx.ready(); err != nil {
		return false
	}
	back := 0
	for back < len(w.given) && w.tx.head-w.given[back].end < 1<<63 {
		back++
	}
	if back > 0 {
		w.given = slices.Delete(w.given, 0, back)
	}
	return true
}

// tasks are what the worker had not given back: read from the memory that it shares, or from the copies.
func (w *outboxWorker) tasks() []task {
	all := make([]task, len(w.given))
	for i, g := range w.given {
		data := g.bytes
		if data == nil {
			// This side wrote them there, nobody has overwritten them since, and the mapping is this side's own. The worker may write
			// them meanwhile: then it is a mix of bytes, as what it was given.
			at := unsafe.Add(w.tx.data, g.start&(w.tx.capacity-1)+frameHeader)
			data = bytes.Clone(unsafe.Slice((*byte)(at), g.len))
		}
		all[i] = task{g.typeID, g.tag, g.deliveries, data}
	}
	w.given = nil
	return all
}

// releasing is the side of a wait for what a worker gives back.
type releasing struct {
	*Sender
	// until is where its oldest message ends; has: there is one.
	until uint64
	has   bool
}

func (r *releasing) ready() (bool, error) {
	r.need = 0
	if _, err := r.Sender.ready(); err != nil {
		return false, err
	}
	return r.has && r.head-r.until < 1<<63, nil
}

// releasedSource is what a worker gives back: ready when it has given back its oldest message, or has gone.
type releasedSource struct {
	endSource
	what releasing
	// several: it has more than that one.
	several bool
}

func newReleasedSource(tx *Sender) *releasedSource {
	s := &releasedSource{what: releasing{Sender: tx}}
	s.endSource = endSource{endpoint: &tx.endpoint, side: &s.what}
	return s
}

func (s *releasedSource) source() selectable { return s }

// expect says what the worker has.
func (s *releasedSource) expect(all []given) {
	s.what.has, s.several = len(all) > 0, len(all) > 1
	if s.what.has {
		s.what.until = all[0].end
	}
}

func (s *releasedSource) begin() error { return s.open() }

// longest: a worker wakes when a quarter of its ring is free or all is given back, not earlier.
func (s *releasedSource) longest(ordered bool) time.Duration {
	longest := s.endSource.longest(ordered)
	if s.several {
		return min(longest, unorderedInterval)
	}
	return longest
}
