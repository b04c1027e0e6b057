package ramway

import (
	"context"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/cpu"
)

// Sender is the sending end of a ring; one per ring, in the whole system.
//
// A message is visible to the receiver when the call that sends it returns, and is delivered even if this process is
// killed right after. No call allocates or enters the kernel unless it waits or wakes somebody who does.
//
// One goroutine at a time may use it, and may hand it to another; a second one at the same time is a panic. Close,
// PeerAlive and PeerEpoch are safe from any goroutine. A Sender that becomes garbage without Close is closed, after
// what was committed has been flushed.
//
//	tx, err := ramway.CreateSender("ticks", ramway.Options{Capacity: 1 << 20})
//	if err != nil { ... }
//	defer tx.Close()
//	err = tx.Send(ctx, 7, []byte("hello"))
type Sender struct {
	endpoint
	// tail is the end of the last committed frame, published the shared word: what was flushed.
	// Invariant: published <= tail and tail - head <= capacity, wrapping.
	tail, published uint64
	// head is the shared one as last seen.
	head uint64
	// maxLen is the longest payload.
	maxLen uint64
	// tag is the last committed frame's.
	tag uint64
	// need is what a wait is for, in bytes.
	need uint64
	// lease counts slots, as Receiver.lease counts messages; room is the open one's length, -1 while none is open.
	lease uint64
	room  int
	// header is what precedes each payload, in bytes.
	header uint64
	// nextLastTag is which of the two last-tag records is written next.
	nextLastTag uint8
	// topic is what a publisher has besides; nil in a ring's sender.
	topic *publishing
}

// newSender takes the producer's role of an attachment, which is released after an error.
func newSender(a *attachment, o Options) (*Sender, error) {
	s := &Sender{room: -1, header: frameHeader}
	var err error
	if s.tail, s.head, err = s.attach(a, producer, &o); err != nil {
		return nil, err
	}
	s.published = s.tail
	s.maxLen = maxMessageLen(s.capacity)
	// Overwrite the record that is not the last frame's, and forget one that a kill left ahead of tail: the next frame may
	// end right there.
	for i := range s.ring.lastTags {
		switch m := &s.ring.lastTags[i]; {
		case atomic.LoadUint64(&m.end) != s.tail:
			atomic.StoreUint64(&m.end, noPosition)
		case i == 0:
			s.nextLastTag = 1
		}
	}
	a.closeFile()
	s.announce()
	// As the Rust core does when a sender is dropped.
	runtime.SetFinalizer(s, func(s *Sender) { _ = s.shutDown(true, false) })
	return s, nil
}

// Send sends a message, and waits for room until ctx is done. It checks ctx only if it has to wait; nil is a context
// that is never done. typeID is the application's, below 0xFFFF0000. What was committed unflushed goes first.
//
// Errors: ErrTooLarge for more than MaxMessageLen bytes, ErrInvalidArgument for a reserved typeID, ErrClosed or
// ErrPeerDead if there is no room and nobody left to make any (on a bus ErrClosed as soon as the peer closed),
// ErrInterrupted or ErrTimedOut with the context's cause, ErrBusy, ErrCorrupt, ErrDetached. After an error nothing of
// this message was sent.
func (s *Sender) Send(ctx context.Context, typeID uint32, data []byte) error {
	return s.put(ctx, true, typeID, 0, data)
}

// SendTagged is [Sender.Send] with a tag: a correlation id, a time stamp, a key. [Sender.LastTag] gives the last one
// back after a restart.
func (s *Sender) SendTagged(ctx context.Context, typeID uint32, tag uint64, data []byte) error {
	return s.put(ctx, true, typeID, tag, data)
}

// TrySend is [Sender.Send] that does not wait: ErrFull if there is no room now and somebody may make some.
func (s *Sender) TrySend(typeID uint32, data []byte) error {
	return s.put(context.Background(), false, typeID, 0, data)
}

// TrySendTagged is [Sender.TrySend] with a tag.
func (s *Sender) TrySendTagged(typeID uint32, tag uint64, data []byte) error {
	return s.put(context.Background(), false, typeID, tag, data)
}

func (s *Sender) put(ctx context.Context, blocking bool, typeID uint32, tag uint64, data []byte) error {
	if !s.enter() || !s.fits(uint64(len(data))) || typeID >= typeIDReserved {
		return s.putSlow(ctx, blocking, typeID, tag, data)
	}
	copy(s.payload(len(data)), data)
	s.commit(uint64(len(data)), typeID, tag)
	s.flush()
	s.leave()
	return nil
}

// putSlow is the rest of put, inside the call guard, for rings and topics.
func (s *Sender) putSlow(ctx context.Context, blocking bool, typeID uint32, tag uint64, data []byte) error {
	err := s.makeRoom(ctx, blocking, typeID, len(data))
	if err == nil {
		copy(s.payload(len(data)), data)
		s.commitAny(uint64(len(data)), typeID, tag)
		s.flushAny()
	}
	s.leave()
	return err
}

// What differs between a ring's frames and a topic's, for the paths that both take.

func (s *Sender) commitAny(n uint64, typeID uint32, tag uint64) {
	if s.topic != nil {
		s.topic.commit(s, n, typeID, tag)
	} else {
		s.commit(n, typeID, tag)
	}
}

func (s *Sender) flushAny() {
	if s.topic != nil {
		s.topic.flush(s)
	} else {
		s.flush()
	}
}

func (s *Sender) frameSize(n uint64) uint64 {
	mask := uint64(s.align) - 1
	return (s.header + n + mask) &^ mask
}

// fits says whether a payload of n bytes can be written right now: no slot is open, the peer's flags are as last acted
// upon, and there is room by the position last seen.
func (s *Sender) fits(n uint64) bool {
	return s.room < 0 && n <= s.maxLen && frameSize(n, s.align) <= s.capacity-(s.tail-s.head) &&
		atomic.LoadUint32(&s.peer.flags) == s.peerFlags
}

// makeRoom waits for room where fits said no, and finds the error where there is one.
func (s *Sender) makeRoom(ctx context.Context, blocking bool, typeID uint32, n int) error {
	if s.isShut() {
		return s.refused()
	}
	if s.room >= 0 {
		return s.failf(Busy, "a slot of this sender is open: commit or abort it first")
	}
	if typeID >= typeIDReserved {
		return s.failf(InvalidArgument, "type id %#x is Ramway's own: applications use ids below %#x", typeID, uint32(typeIDReserved))
	}
	// Subscribers that come or go are seen after the next publish.
	if s.topic == nil && atomic.LoadUint32(&s.peer.flags) != s.peerFlags {
		if s.peerChanged(); s.isShut() {
			return s.refused()
		}
	}
	if uint64(n) > s.maxLen {
		return s.failf(TooLarge, "a message of %d bytes can never fit: this %v of %d bytes takes at most %d; create it with "+
			"a larger capacity or cut the message", n, s.kind(), s.capacity, s.maxLen)
	}
	s.need = s.frameSize(uint64(n))
	if over, err := s.ready(); over || err != nil {
		return err
	}
	s.flushAny()
	var err error
	if blocking {
		err = s.until(ctx, s)
	} else if over, end := s.decide(s, s.livenessCheckDue()); end != nil {
		// The closed flag every time, system calls for the receiver's life every 100 ms.
		err = end
	} else if !over {
		return ErrFull
	}
	if kind := kindOf(err); s.final && (kind == Closed || kind == PeerDead) {
		s.die(kind)
	}
	return err
}

// payload is where the next frame's n bytes go, which fit.
func (s *Sender) payload(n int) []byte {
	// Inside the mirrored 2 * capacity bytes, and nobody else's before they are published.
	at := unsafe.Add(s.data, s.tail&(s.capacity-1)+s.header)
	return unsafe.Slice((*byte)(at), n)
}

// commit makes n bytes a message of a ring, not yet visible to the receiver.
func (s *Sender) commit(n uint64, typeID uint32, tag uint64) {
	at := unsafe.Add(s.data, s.tail&(s.capacity-1))
	// Plain stores: nobody reads them before tail is published.
	*(*uint64)(at) = n | uint64(typeID)<<32
	*(*uint64)(unsafe.Add(at, 8)) = tag
	s.tag = tag
	s.tail += frameSize(n, s.align)
}

// flush makes everything committed to a ring visible, and wakes the receiver if it sleeps.
func (s *Sender) flush() {
	if s.tail == s.published {
		return
	}
	if s.tag == 0 {
		// No last-tag record says "0".
		s.publish(&s.ring.tail, s.tail)
	} else {
		s.publishTagged()
	}
	s.published = s.tail
	if s.peerSleepsOrChanged() {
		s.wakeOrUpdate()
	}
}

// publishTagged: a kill between any two of the stores leaves this record not matching tail, and the other one matching if
// it did. Only a later sender reads last-tag records, after the role has passed to it.
func (s *Sender) publishTagged() {
	m := &s.ring.lastTags[s.nextLastTag&1]
	s.nextLastTag ^= 1
	if cpu.Plain && s.fenceFree {
		cpu.StoreTagged(&s.ring.tail, s.tail, (*[2]uint64)(unsafe.Pointer(m)), s.tag)
		return
	}
	atomic.StoreUint64(&m.end, s.tail)
	atomic.StoreUint64(&m.tag, s.tag)
	atomic.StoreUint64(&s.ring.tail, s.tail)
}

// position is what is polled while waiting.
func (s *Sender) position() (*uint64, uint64) {
	if s.topic != nil {
		return s.topic.position()
	}
	return &s.ring.head, s.head
}

func (s *Sender) await(polls uint32) bool {
	word, seen := s.position()
	return await(word, seen, polls) != seen
}

// ready says whether need bytes are free, by a load of the shared position. That is validated here, once, before it is
// used: it may only move forward, up to what was published, in whole alignment steps.
func (s *Sender) ready() (bool, error) {
	if s.topic != nil {
		return s.topic.ready(s), nil
	}
	// Acquire: the consumer's last reads of the space it gave back come before our writes to it.
	head := atomic.LoadUint64(&s.ring.head)
	moved := head - s.head
	if moved > s.published-s.head || moved&(uint64(s.align)-1) != 0 {
		return false, s.corrupt()
	}
	s.head = head
	return s.need <= s.capacity-(s.tail-head), nil
}

// SendBatch sends messages, all with this type id and tag, and publishes them together, or earlier where the ring fills
// up: then it waits for room. It says how many were sent; if that is fewer than all, also why, as [Sender.Send].
func (s *Sender) SendBatch(ctx context.Context, typeID uint32, tag uint64, messages [][]byte) (int, error) {
	s.enter()
	defer s.leave()
	if len(messages) == 0 && s.isShut() {
		return 0, s.refused()
	}
	for i, data := range messages {
		if atomic.LoadUint32(&s.shut) != 0 || typeID >= typeIDReserved || !s.fits(uint64(len(data))) {
			if err := s.makeRoom(ctx, true, typeID, len(data)); err != nil {
				// Closed meanwhile: Close flushes once this call has left, and may be unmapping already if it came first.
				if !s.isShut() {
					s.flushAny()
				}
				return i, err
			}
		}
		copy(s.payload(len(data)), data)
		s.commitAny(uint64(len(data)), typeID, tag)
	}
	s.flushAny()
	return len(messages), nil
}

// SendVectored sends one message gathered from several pieces, like [Sender.SendTagged].
func (s *Sender) SendVectored(ctx context.Context, typeID uint32, tag uint64, parts ...[]byte) error {
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	s.enter()
	defer s.leave()
	if err := s.makeRoom(ctx, true, typeID, n); err != nil {
		return err
	}
	to := s.payload(n)
	for _, part := range parts {
		to = to[copy(to, part):]
	}
	s.commitAny(uint64(n), typeID, tag)
	s.flushAny()
	return nil
}

// Flush makes every [Slot.CommitUnflushed] so far visible. Never waits.
func (s *Sender) Flush() error {
	if s.enter(); s.isShut() {
		err := s.refused()
		s.leave()
		return err
	}
	s.flushAny()
	s.leave()
	return nil
}

// LastTag is the tag of the last message that is visible to receivers (0 if it was sent without one), by whichever
// sender of this ring; false before the first, and once the handle is closed. A restarted producer asks this where to
// go on.
func (s *Sender) LastTag() (uint64, bool) {
	s.enter()
	defer s.leave()
	if s.topic != nil && !s.isClosed() {
		return s.topic.lastTag(s)
	}
	if s.isClosed() || s.published == firstPosition(s.align) {
		return 0, false
	}
	for i := range s.ring.lastTags {
		if m := &s.ring.lastTags[i]; atomic.LoadUint64(&m.end) == s.published {
			return atomic.LoadUint64(&m.tag), true
		}
	}
	return 0, true
}

// Len is how many bytes, frame headers and padding included, the receiver has not released; what is committed but not
// flushed counts. It may have changed when it returns. 0 once the handle is closed.
func (s *Sender) Len() int64 {
	s.enter()
	defer s.leave()
	if s.isClosed() {
		return 0
	}
	if s.topic != nil {
		return int64(s.topic.unreleased(s))
	}
	// Clamped, because the peer could write anything.
	return int64(min(s.tail-atomic.LoadUint64(&s.ring.head), s.capacity))
}

// Close flushes, tells the receiver that this was all, and gives the role up. A call of another goroutine that waits
// ends with ErrDetached. While a slot is open, its commit (which still sends it) or abort finishes the close. Closing
// twice is fine.
//
// It returns what the handle was dead of: ErrCorrupt, or ErrPeerDead on a bus where a call has said so.
func (s *Sender) Close() error { return s.shutDown(false, false) }

// Abandon gives the role up without telling the receiver that this was all: it is told ErrPeerDead, as if this process
// had been killed, so that half a stream does not pass for a whole one. What was committed is delivered; an open slot is
// not. On a [Pair] this is Close, because there only a close tells.
func (s *Sender) Abandon() error { return s.shutDown(false, true) }

func (s *Sender) shutDown(forgotten, abandoned bool) error {
	return s.endpoint.shutDown(forgotten || abandoned, func() (out bool) { return s.room >= 0 },
		func() error { return s.releaseRole(abandoned) })
}

// releaseRole is the end of a close.
func (s *Sender) releaseRole(abandoned bool) error {
	runtime.SetFinalizer(s, nil)
	s.room = -1
	s.lease++
	if atomic.LoadUint32(&s.shut)&shutDead == 0 {
		s.flushAny()
	}
	if _, pair := s.at.link.(noLink); !abandoned || pair {
		s.announceClose()
	}
	return s.finish()
}
