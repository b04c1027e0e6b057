package ramway

import (
	"context"
	"iter"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/cpu"
)

// Receiver is the receiving end of a ring; one per ring, in the whole system.
//
// A received message is a view of the shared memory, and one message or batch is out at a time: Release gives it back,
// and the next receive before that is ErrBusy. If this process is killed before the release, the next receiver gets the
// message again.
//
// One goroutine at a time may use it, and may hand it to another; a second one at the same time is a panic. Close,
// PeerAlive and PeerEpoch are safe from any goroutine. A Receiver that becomes garbage without Close is closed.
//
//	tx, rx, err := ramway.Pair(ramway.Options{})
//	...
//	for message := range rx.All(ctx) {
//		message.View(func(b []byte) { fmt.Printf("%d: %s\n", message.TypeID(), b) })
//	}
//	if err := rx.Err(); err != nil { ... }
type Receiver struct {
	endpoint
	// head is where the next frame begins; from released, which the shared word holds, to head is out.
	// Invariant: released <= head <= tail and tail - released <= capacity, wrapping.
	head, released uint64
	// tail is the shared one as last seen.
	tail uint64
	// lease counts what was given out. A message is good while it has the current number; the number moves on when
	// something is given out and when it is given back.
	lease   uint64
	backOff backOff
	// one is the message that is out, frames are those of the batch.
	one    frame
	frames []frame
	// guard gives out views where they are not simply the frames' own bytes; else nil.
	guard views
	// closeSeen is where it says which close it has delivered; nil where nobody asks.
	closeSeen *uint32
	// topic is what a subscriber has besides; nil in a ring's receiver.
	topic *subscribing
	err   error
}

// frame is a message as it lies in the ring, its numbers read once and checked.
type frame struct {
	data   unsafe.Pointer
	len    uint32
	typeID uint32
	tag    uint64
}

// newReceiver takes the consumer's role of an attachment, which is released after an error.
func newReceiver(a *attachment, o Options) (*Receiver, error) {
	r := &Receiver{}
	var err error
	if r.tail, r.head, err = r.attach(a, consumer, &o); err != nil {
		return nil, err
	}
	r.released, r.backOff = r.head, newBackOff(r.capacity)
	if o.Guard || guardAlways {
		switch guard, err := newGuard(a); {
		case err == nil:
			r.guard = guard
		case o.Guard:
			_ = a.release()
			return nil, about(err, r.doing(), r.name)
		}
	}
	a.closeFile()
	r.closeSeen = &r.mine.closeSeen
	seen := atomic.LoadUint32(r.closeSeen)
	if epoch, closed := r.senderClosed(); closed && epoch == seen {
		r.delivered = epoch
	}
	r.announce()
	// As the Rust core does when a receiver is dropped: a process that forgets its handle has closed it.
	runtime.SetFinalizer(r, func(r *Receiver) { _ = r.shutDown(true) })
	return r, nil
}

// Recv gives the next message, and waits for it until ctx is done. It checks ctx only if it has to wait; nil is a
// context that is never done.
//
// Errors, after the last message: ErrClosed if the sender closed, ErrPeerDead if it died (within 200 ms after the kernel
// closed its files). On a named ring both end when a successor attaches, so calling again is meaningful; a sender
// that never attached is waited for. ErrInterrupted or ErrTimedOut with the context's cause; ErrBusy, ErrCorrupt,
// ErrDetached.
func (r *Receiver) Recv(ctx context.Context) (Message, error) {
	if r.enter() && r.head == r.released && (r.head != r.tail || r.poll()) {
		if r.parse(&r.one) {
			return r.loan(), nil
		}
	}
	return r.recvSlow(ctx, true)
}

// TryRecv is [Receiver.Recv] that does not wait: ErrEmpty if there is no message now.
func (r *Receiver) TryRecv() (Message, error) {
	r.enter()
	return r.recvSlow(context.Background(), false)
}

// recvSlow is the rest of a receive, inside the call guard.
func (r *Receiver) recvSlow(ctx context.Context, blocking bool) (Message, error) {
	if err := r.next(ctx, blocking, &r.one); err != nil {
		r.leave()
		return Message{}, err
	}
	return r.loan(), nil
}

// loan gives the frame out and leaves the call guard.
func (r *Receiver) loan() Message {
	r.lease++
	m := Message{frame: &r.one, r: r, lease: r.lease}
	r.leave()
	return m
}

// next takes the next frame out of the ring, and is called inside the call guard. Without blocking it does not wait.
func (r *Receiver) next(ctx context.Context, blocking bool, f *frame) error {
	if r.isShut() {
		return r.refused()
	}
	if r.head != r.released {
		return r.failf(Busy, "a message or batch of this receiver is out: release it first")
	}
	if r.topic != nil && blocking && r.head == r.tail {
		r.leaveAlone()
	}
	for {
		over, err := r.ready()
		if err == nil && !over {
			if blocking {
				err = r.until(ctx, r)
			} else {
				// The closed flag every time, system calls for the sender's life every 100 ms.
				if over, err = r.decide(r, r.livenessCheckDue()); !over && err == nil {
					err = ErrEmpty
				}
			}
		}
		if err != nil {
			return r.deliverEnd(err)
		}
		if r.topic == nil {
			if !r.parse(f) {
				return r.corrupt()
			}
			return nil
		}
		// What was there may be overwritten by now: then the next one is waited for.
		if done, err := r.topic.receive(ctx, r, blocking, f); done || err != nil {
			return err
		}
	}
}

// poll is the first polls of a wait, which cost less than the general wait: an answer that comes within a microsecond is
// found here. False: nothing came, or what came is wrong, which next finds out.
func (r *Receiver) poll() bool {
	r.leaveAlone()
	tail := atomic.LoadUint64(&r.ring.tail)
	if tail == r.tail && r.wait.firstPolls > 0 {
		tail = r.awaitFrame(r.wait.firstPolls)
	}
	return tail != r.tail && r.acceptTail(tail)
}

// leaveAlone pauses before a poll of a call that waits, where [backOff] says so.
func (r *Receiver) leaveAlone() {
	if r.wait.firstPolls > 0 && r.backOff.isDue() {
		r.wait.spent(r.backOff.pause())
	}
}

// acceptTail validates a shared tail that moved, once, and takes it: it may only move forward, up to released + capacity,
// in whole alignment steps.
func (r *Receiver) acceptTail(tail uint64) bool {
	moved := tail - r.tail
	if moved > r.capacity-(r.tail-r.released) || moved&(uint64(r.align)-1) != 0 {
		return false
	}
	// The first frame's length, which is checked only when it is received, says how many came.
	n := atomic.LoadUint64((*uint64)(unsafe.Add(r.data, r.tail&(r.capacity-1)))) & 0xFFFFFFFF
	r.backOff.found, r.backOff.frame = moved, frameSize(n, r.align)
	r.tail = tail
	return true
}

// parse reads the frame at head, which lies before tail, and steps over it. False: no correct sender wrote it.
func (r *Receiver) parse(f *frame) bool {
	// A frame's first 16 bytes are within the published bytes, which are a positive multiple of align; and aligned.
	at := unsafe.Add(r.data, r.head&(r.capacity-1))
	// Each number is read exactly once, so that a peer that rewrites it cannot pass the check with one value and be used
	// with another.
	word, tag := atomic.LoadUint64((*uint64)(at)), atomic.LoadUint64((*uint64)(unsafe.Add(at, 8)))
	n := word & 0xFFFFFFFF
	size := frameSize(n, r.align)
	if size > r.tail-r.head || n > messageMax {
		return false
	}
	r.head += size
	f.data, f.len, f.typeID, f.tag = unsafe.Add(at, frameHeader), uint32(n), uint32(word>>32), tag
	return true
}

// giveBack releases every frame that is out, and wakes the sender if it sleeps and a quarter of the ring is free or the
// ring is drained. (Otherwise the wake-up is put off, not dropped: one of the two comes true before this side can find
// the ring empty, and close wakes in any case.)
func (r *Receiver) giveBack() {
	r.lease++
	if r.guard != nil {
		r.guard.revoke(r)
	}
	if atomic.LoadUint32(&r.shut)&shutDead != 0 {
		// Not published by a dead handle; but nothing is out any more, so that Close has nothing to wait for.
		r.head = r.released
		return
	}
	// Release: our reads of the frames go before the position that lets the sender overwrite them.
	r.publish(&r.ring.head, r.head)
	r.released = r.head
	// By the tail last seen, which may be behind: then this says "free" too often, never too rarely.
	if r.tail-r.head <= r.capacity-r.capacity/wakeFraction && r.peerSleepsOrChanged() {
		r.wakeOrUpdate()
	}
}

// release ends a lease, from any state of the handle. One that has ended already stays so.
func (r *Receiver) release(lease uint64) {
	if !r.enter() {
		r.releaseSlow(lease)
		return
	}
	if r.lease == lease {
		r.giveBack()
	}
	r.leave()
}

// releaseSlow is the rest of release, inside the call guard: for a handle that is shut, and for a topic's.
func (r *Receiver) releaseSlow(lease uint64) {
	if r.isClosed() {
		r.leave()
		r.releaseClosed(lease)
		return
	}
	if r.lease == lease {
		r.giveBackAny()
	}
	r.leave()
}

// giveBackAny is giveBack for the paths that rings and topics both take.
func (r *Receiver) giveBackAny() {
	if r.topic != nil {
		r.topic.giveBack(r)
	} else {
		r.giveBack()
	}
}

// releaseClosed finishes a Close that came while something was out.
func (r *Receiver) releaseClosed(lease uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lease != lease {
		return
	}
	r.giveBackAny()
	_ = r.releaseRole()
}

// position is what is polled while waiting.
func (r *Receiver) position() (*uint64, uint64) {
	if r.topic != nil {
		return r.topic.position(r)
	}
	return &r.ring.tail, r.tail
}

func (r *Receiver) await(polls uint32) bool {
	if r.topic == nil {
		now, _ := r.pollFrame(polls)
		return now != r.tail
	}
	word, seen := r.position()
	return await(word, seen, polls) != seen
}

// pollFrame polls a ring's tail; see [cpu.Await]. It asks for the line where the next frame will begin.
func (r *Receiver) pollFrame(polls uint32) (tail uint64, left uint32) {
	return cpu.Await(&r.ring.tail, r.tail, unsafe.Add(r.data, r.head&(r.capacity-1)), polls)
}

// awaitFrame is the first polls of a wait: other goroutines run after them, if it is their time.
func (r *Receiver) awaitFrame(polls uint32) uint64 {
	tail, left := r.pollFrame(polls)
	r.wait.spent(polls - left)
	return tail
}

// ready says whether a frame is there, by a load of the shared position.
func (r *Receiver) ready() (bool, error) {
	if r.topic != nil {
		return r.topic.ready(r)
	}
	if r.head != r.tail {
		return true, nil
	}
	tail := atomic.LoadUint64(&r.ring.tail)
	if tail == r.tail {
		return false, nil
	}
	if !r.acceptTail(tail) {
		return false, r.corrupt()
	}
	return true, nil
}

// deliverEnd records an end that is about to be returned.
func (r *Receiver) deliverEnd(err error) error {
	kind := kindOf(err)
	if kind != Closed && kind != PeerDead {
		return err
	}
	if kind == Closed {
		if epoch, closed := r.senderClosed(); closed && r.closeSeen != nil {
			// Release: a receiver that sees this close as delivered sees the head of that moment.
			atomic.StoreUint32(r.closeSeen, epoch)
		}
	}
	if r.final {
		r.die(kind)
	}
	return err
}

// senderClosed is the epoch of a sender that has closed. The epoch is the closer's only if it is the same before and
// after its flag was seen.
func (r *Receiver) senderClosed() (uint32, bool) {
	epoch := atomic.LoadUint32(&r.peer.epoch)
	closed := atomic.LoadUint32(&r.peer.flags)&roleClosed != 0
	return epoch, closed && atomic.LoadUint32(&r.peer.epoch) == epoch
}

// RecvAppend appends the next message's bytes to dst and releases it. It copies each byte once and reads none of them
// in the ring: the one way to receive that a peer cannot disturb by rewriting what it sent. It waits, and fails, like
// [Receiver.Recv]; then it returns dst as it was.
func (r *Receiver) RecvAppend(ctx context.Context, dst []byte) ([]byte, Meta, error) {
	r.enter()
	defer r.leave()
	f := &r.one
	if r.topic != nil {
		r.topic.appendTo(dst)
	}
	err := r.next(ctx, true, f)
	var copied bool
	if r.topic != nil {
		copied, dst = r.topic.copied(dst)
	}
	if err != nil {
		return dst, Meta{}, err
	}
	if !copied {
		// At most what is published, so at most the capacity, whatever the peer wrote.
		dst = append(dst, f.bytes()...)
	}
	r.giveBackAny()
	return dst, Meta{TypeID: f.typeID, Tag: f.tag, Len: int(f.len)}, nil
}

// RecvInto copies the next message's bytes into dst and releases it; Meta.Len says how many there are. Like
// [Receiver.RecvAppend] it copies each byte once, and a peer cannot disturb it. It waits, and fails, like [Receiver.Recv];
// a message that is longer than dst is ErrTooLarge and stays, and Meta says what it is.
func (r *Receiver) RecvInto(ctx context.Context, dst []byte) (Meta, error) {
	return r.into(ctx, true, dst)
}

// TryRecvInto is [Receiver.RecvInto] that does not wait: ErrEmpty if there is no message now.
func (r *Receiver) TryRecvInto(dst []byte) (Meta, error) {
	return r.into(context.Background(), false, dst)
}

func (r *Receiver) into(ctx context.Context, blocking bool, dst []byte) (Meta, error) {
	r.enter()
	defer r.leave()
	f := &r.one
	if r.topic != nil {
		r.topic.copyInto(dst)
	}
	err := r.next(ctx, blocking, f)
	var copied bool
	if r.topic != nil {
		copied, _ = r.topic.copied(dst)
	}
	if err != nil {
		return Meta{}, err
	}
	meta := Meta{TypeID: f.typeID, Tag: f.tag, Len: int(f.len)}
	if meta.Len > len(dst) {
		// Nothing was given out: the next receive finds it again.
		r.head = r.released
		return meta, r.failf(TooLarge, "the message has %d bytes, the buffer %d; it stays", meta.Len, len(dst))
	}
	if !copied {
		copy(dst, f.bytes())
	}
	r.giveBackAny()
	return meta, nil
}

// All gives the messages one after another, each released after the loop's body has returned from it (or earlier, by the
// body). It ends when the sender closes, at an error, or when ctx is done: [Receiver.Err] tells which.
//
//	for message := range rx.All(ctx) {
//		total += message.Len()
//	}
//	if err := rx.Err(); err != nil { ... }
func (r *Receiver) All(ctx context.Context) iter.Seq[Message] {
	return func(yield func(Message) bool) {
		r.err = nil
		var m Message
		// For a body that panics; and a body that has released its message already.
		defer func() { m.Release() }()
		for {
			var err error
			if m, err = r.Recv(ctx); err != nil {
				r.stop(err)
				return
			}
			if !yield(m) {
				return
			}
			m.Release()
		}
	}
}

// Batches gives batches of up to max messages (at least 1) in the same way.
func (r *Receiver) Batches(ctx context.Context, max int) iter.Seq[Batch] {
	return func(yield func(Batch) bool) {
		r.err = nil
		var b Batch
		defer func() { b.Release() }()
		for {
			var err error
			if b, err = r.RecvBatch(ctx, max); err != nil {
				r.stop(err)
				return
			}
			if !yield(b) {
				return
			}
			b.Release()
		}
	}
}

func (r *Receiver) stop(err error) {
	if kindOf(err) != Closed {
		r.err = err
	}
}

// Err is what ended the last loop over [Receiver.All] or [Receiver.Batches]: nil if the sender closed, the ring's name was
// removed under it (both are ErrClosed to Recv), or the loop's body left.
func (r *Receiver) Err() error { return r.err }

// Len is how many bytes, frame headers and padding included, are published and not released. It may have changed when
// it returns. 0 once the handle is closed.
func (r *Receiver) Len() int64 {
	r.enter()
	defer r.leave()
	if r.isClosed() {
		return 0
	}
	if r.topic != nil {
		return int64(r.topic.unread(r))
	}
	// Clamped, because the peer could write anything.
	return int64(min(atomic.LoadUint64(&r.ring.tail)-r.released, r.capacity))
}

// Close tells the sender at once that nothing more will be read, and gives the role up. What is not released stays for the
// next receiver of a named ring. A call of another goroutine that waits ends with ErrDetached. A message or batch that is
// out can be read until its Release, which lets the memory and the role go. Closing twice is fine.
//
// It returns what the handle was dead of, if that was ErrCorrupt.
func (r *Receiver) Close() error { return r.shutDown(false) }

func (r *Receiver) shutDown(forgotten bool) error {
	return r.endpoint.shutDown(forgotten, func() (out bool) {
		if r.head == r.released {
			return false
		}
		// The sender, which would wait for room, is not to wait for the last view. A subscriber that is gone would let the
		// publisher overwrite it.
		if r.topic == nil {
			r.announceClose()
		}
		return true
	}, r.releaseRole)
}

// releaseRole is the end of a close.
func (r *Receiver) releaseRole() error {
	runtime.SetFinalizer(r, nil)
	r.lease++
	if !r.deferred || r.topic != nil {
		r.announceClose()
	}
	if r.guard != nil {
		r.guard.close()
	}
	return r.finish()
}
