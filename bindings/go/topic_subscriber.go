package ramway

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"
)

// What a subscriber does by the topic's own rules (ABI.md, section 19): how it reads under each policy. All else is the
// Receiver's.

// subscribing is what a subscriber has besides a receiver. It does not point back to the Receiver, which could not be
// collected then.
//
// A reliable or lossy one reads at the receiver's head. One that reads the newest message has its position in seen, and head
// and released only say whether a message is out.
type subscribing struct {
	topicLog
	policy Policy
	// slot is nil for one that shows itself to nobody; durable: its cursor stays; writable: this side may write to the area.
	slot              *slot
	durable, writable bool
	// label is what it was opened with, whether or not a slot shows it.
	label string
	// copiesOut: messages are copied as they are received, because they can be overwritten while they are read.
	copiesOut bool
	copies    copies
	// expected is the number that the next message should have; 0: any.
	expected uint64
	// seen is where the message begins that was read last as the newest; noPosition before.
	seen uint64
	// aside: what is out was read without moving on.
	aside bool
	// lost is how many messages were lost so far. lagged: this subscriber was ejected, and lost laggedBy, which is still to be
	// told.
	lost     uint64
	lagged   bool
	laggedBy uint64
	// stamps are those of what is out, in the order of the frames.
	stamps []stamp
	// to says where the next message is copied to.
	to target
	// into is the caller's buffer, if to says so.
	into []byte
}

// stamp is what a topic's frame says besides what a ring's does.
type stamp struct{ seq, time, lost uint64 }

// when is the time as people have it.
func (s stamp) when() time.Time {
	if s.time == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(s.time))
}

// target is where a message is copied to.
type target uint8

const (
	toCopies target = iota
	// toBuffer: the caller's, if it fits. toEnd: the caller's, which grows.
	toBuffer
	toEnd
)

// outcome is what an attempt to copy a frame came to.
type outcome uint8

const (
	whole outcome = iota
	overtaken
	ejected
	// wrong: no correct publisher wrote this.
	wrong
	// tooLong for the caller's buffer: what the frame is was said, and nothing else was done.
	tooLong
)

// newSubscriber joins a topic by an attachment, which is released after an error.
func newSubscriber(a *attachment, o *TopicOptions) (*Subscriber, error) {
	sub := &Subscriber{}
	r := &sub.Receiver
	t := &subscribing{
		topicLog: newTopicLog(a), policy: o.Policy, durable: o.Durable, writable: !o.ReadOnly, label: o.Label, seen: noPosition,
		copiesOut: o.Policy != Reliable || a.g.flags&topicMayEject != 0,
	}
	r.shut, r.topic, r.words, r.guard = generalPath, t, subscriberWords{t: t}, &t.copies
	options := o.options()
	r.begin(a, consumer, &options, t.sleepWord())
	r.wait.notifier.shared, r.wait.notifier.readOnly = &t.area.word, o.ReadOnly
	r.peer = &t.block.publisher
	j := joining{topicLog: &t.topicLog, link: a.link.(topicLink).lockLink, o: o, label: labelOf(o.Label)}
	if r.membarrierCapable {
		j.flags = slotFlagMembarrierCapable
	}
	if o.Policy == Latest {
		j.flags |= slotFlagLatest
	}
	found, err := j.joinWithin()
	if err != nil {
		_ = a.release()
		if kindOf(err) == Corrupt {
			err = r.fail(Corrupt)
		}
		return nil, err
	}
	if t.slot = found.slot; t.slot != nil {
		r.ownFlags = &t.slot.flags
		if t.policy == Reliable {
			r.closeSeen = &t.slot.closeSeen
		}
	}
	t.expected, t.lagged, t.laggedBy = found.expected, found.lagged, found.lost
	r.epoch, r.delivered = found.epoch, found.closeSeen
	if t.policy == Latest {
		// It begins with the newest message, not after it; the first of all has the number 1.
		t.expected = max(t.expected, 2) - 1
	} else {
		r.head, r.released, r.tail = found.cursor, found.cursor, found.cursor
	}
	t.lost = t.laggedBy
	a.closeFile()
	r.announce()
	runtime.SetFinalizer(r, func(r *Receiver) { _ = r.shutDown(true) })
	return sub, nil
}

// gates says whether the publisher waits for this subscriber.
func (t *subscribing) gates() bool { return t.policy == Reliable }

// position is what is polled while waiting.
func (t *subscribing) position(r *Receiver) (*uint64, uint64) {
	if t.policy == Latest {
		last := atomic.LoadUint64(&t.block.last)
		if t.seen != noPosition {
			last = t.seen
		}
		return &t.block.last, last
	}
	return &t.block.tail, r.tail
}

// ready says whether a message is there, by a load of the shared position.
func (t *subscribing) ready(r *Receiver) (bool, error) {
	if t.policy == Latest {
		// Acquire, in this order: tail is not older than last.
		last := atomic.LoadUint64(&t.block.last)
		return last != t.seen && last != atomic.LoadUint64(&t.block.tail), nil
	}
	if t.lagged {
		t.lagged = false
		return false, t.laggedError(r)
	}
	if r.head != r.tail {
		return true, nil
	}
	tail := atomic.LoadUint64(&t.block.tail)
	moved := tail - r.tail
	if moved == 0 {
		return false, nil
	}
	if t.gates() && t.copiesOut && t.isEjected(t.slot) {
		if err := t.rejoin(r); err != nil {
			return false, err
		}
		t.lagged = false
		return false, t.laggedError(r)
	}
	if t.gates() {
		if !r.acceptTail(tail) {
			return false, r.corrupt()
		}
		return true, nil
	}
	// A lossy one may be any number of laps behind.
	if moved>>63 != 0 || moved&(uint64(t.align)-1) != 0 {
		return false, r.corrupt()
	}
	r.tail = tail
	return true, nil
}

func (t *subscribing) laggedError(r *Receiver) error {
	return &Error{Kind: Lagged, Op: r.doing(), Name: r.name, Lost: t.laggedBy}
}

// rejoin begins anew after having been ejected, at the oldest message that it has not received; nothing is out.
func (t *subscribing) rejoin(r *Receiver) error {
	durable := atomic.LoadUint64(&t.slot.state)&slotDurable != 0
	_, cursor, found, err := t.gate(t.slot, Start{startAgain, t.expected}, durable)
	if err != nil {
		return r.corrupt()
	}
	r.head, r.released, r.tail = cursor, cursor, cursor
	t.laggedBy = 0
	if found > t.expected {
		t.laggedBy = found - t.expected
	}
	t.lagged, t.expected = true, found
	t.countLost(t.laggedBy)
	return nil
}

func (t *subscribing) countLost(lost uint64) {
	if lost == 0 {
		return
	}
	t.lost += lost
	if t.slot != nil {
		// For those who watch.
		atomic.StoreUint64(&t.slot.lost, t.lost)
	}
}

// receive takes the next message, which ready has found; nothing is out. Done is false without an error where it was
// overwritten meanwhile.
func (t *subscribing) receive(ctx context.Context, r *Receiver, blocking bool, f *frame) (done bool, err error) {
	t.stamps = t.stamps[:0]
	switch t.take(r, f) {
	case whole, tooLong:
		return true, nil
	case wrong:
		return false, r.corrupt()
	case ejected:
		return false, t.rejoin(r)
	}
	// Faster than this side can read, or writing what no publisher writes.
	if !blocking {
		return false, ErrEmpty
	}
	// There is something all the time, so no wait finds out that this one is called off.
	if r.isClosed() {
		return false, r.fail(Detached)
	}
	select {
	case <-orNever(ctx).Done():
		return false, r.timeUp(ctx)
	default:
		runtime.Gosched()
		return false, nil
	}
}

// receiveMore adds what else is there to a batch. What ends it is found again by the next receive.
func (t *subscribing) receiveMore(r *Receiver, frames []frame, most int) []frame {
	for len(frames) < most && t.policy != Latest {
		if r.head == r.tail {
			if tail := atomic.LoadUint64(&t.block.tail); tail == r.tail || t.gates() && t.copiesOut && t.isEjected(t.slot) {
				break
			}
			if over, err := t.ready(r); !over || err != nil {
				break
			}
		}
		frames = oneMore(frames)
		if result := t.take(r, &frames[len(frames)-1]); result != whole {
			if result == wrong {
				r.die(Corrupt)
			}
			return frames[:len(frames)-1]
		}
	}
	return frames
}

// take takes the next message, or where that is overwritten, the next one that is intact.
func (t *subscribing) take(r *Receiver, f *frame) outcome {
	for range overtakenMax {
		pos, tail := r.head, r.tail
		switch {
		case t.policy == Latest:
			if pos, tail = t.lastAndTail(); !isTopicPosition(pos, t.align) {
				return wrong
			}
		case !t.copiesOut:
			return t.takeInPlace(r, f)
		}
		size, result := t.copyFrame(f, pos, tail, t.expected, t.gates())
		switch {
		case result == whole && t.policy == Latest:
			t.setAside(r, pos)
			t.moveOn()
			return whole
		case result == whole:
			r.head = pos + size
			t.moveOn()
			return whole
		case result != overtaken:
			return result
		case t.policy != Latest:
			if result := t.skip(r); result != overtaken {
				return result
			}
			if r.head == r.tail {
				return overtaken
			}
		}
	}
	return overtaken
}

func (t *subscribing) lastAndTail() (last, tail uint64) {
	// Acquire, in this order: tail is not older than last.
	last = atomic.LoadUint64(&t.block.last)
	return last, atomic.LoadUint64(&t.block.tail)
}

// moveOn expects what follows the message taken last, and counts what was lost before it.
func (t *subscribing) moveOn() {
	s := &t.stamps[len(t.stamps)-1]
	t.expected = s.seq + 1
	t.countLost(s.lost)
}

// takeInPlace takes the next message where it lies: nobody overwrites it before it is released.
func (t *subscribing) takeInPlace(r *Receiver, f *frame) outcome {
	h := t.headerAt(r.head)
	if !t.plausible(&h, r.tail-r.head) || h.seq < t.expected {
		return wrong
	}
	f.data = t.payloadAt(r.head)
	t.describe(f, &h, t.expected)
	if t.to == toBuffer && int(h.len) > len(t.into) {
		return tooLong
	}
	r.head += t.sizeOf(&h)
	t.moveOn()
	return whole
}

// describe says what the frame is.
func (t *subscribing) describe(f *frame, h *topicHeader, expected uint64) {
	f.len, f.typeID, f.tag = h.len, h.typeID, h.tag
	s := stamp{seq: h.seq, time: h.time}
	if expected != 0 {
		s.lost = h.seq - expected
	}
	t.stamps = append(t.stamps, s)
}

// copyFrame copies the frame at pos, which is aligned as frames are, and says whether it was whole until after that; gates: the
// publisher does not overwrite it unless it has ejected this subscriber.
func (t *subscribing) copyFrame(f *frame, pos, tail, expected uint64, gates bool) (size uint64, result outcome) {
	h := t.headerAt(pos)
	// Only then is any number of it used.
	if result := t.since(pos, gates); result != whole {
		return 0, result
	}
	if !t.plausible(&h, tail-pos) || h.seq < expected {
		return 0, wrong
	}
	from := t.payloadAt(pos)
	var to []byte
	switch n := int(h.len); {
	case t.to == toBuffer && n > len(t.into):
		t.describe(f, &h, expected)
		return 0, tooLong
	case t.to == toBuffer:
		to = t.into[:n]
	case t.to == toEnd:
		// At most what is published, so at most the capacity, whatever the publisher wrote.
		t.into = slices.Grow(t.into, n)
		to = t.into[len(t.into) : len(t.into)+n]
	default:
		if len(t.stamps) == 0 {
			t.copies.clear() // of an attempt that was in vain
		}
		to = t.copies.room(n, from, t.align)
	}
	// A publisher that writes meanwhile makes this a mix of old and new bytes, which the check below throws away.
	copy(to, unsafe.Slice((*byte)(from), h.len))
	if result := t.since(pos, gates); result != whole {
		return 0, result
	}
	if t.to == toEnd {
		t.into = t.into[:len(t.into)+len(to)]
	}
	f.data = unsafe.Pointer(unsafe.SliceData(to))
	t.describe(f, &h, expected)
	return t.sizeOf(&h), whole
}

// since says whether what was read at pos is still intact.
func (t *subscribing) since(pos uint64, gates bool) outcome {
	switch {
	case gates && t.isEjected(t.slot):
		return ejected
	case !gates && t.overtaken(pos):
		return overtaken
	}
	return whole
}

// skip goes on at a frame that is intact, with half of the capacity to spare: at the very oldest it would be overtaken again
// at once.
func (t *subscribing) skip(r *Receiver) outcome {
	next, tail := t.oldest(t.capacity / resumeFraction)
	if next == tail {
		if last := atomic.LoadUint64(&t.block.last); isTopicPosition(last, t.align) && tail-last <= t.capacity {
			next = last
		}
	}
	if moved := tail - r.tail; moved>>63 != 0 || moved&(uint64(t.align)-1) != 0 {
		return wrong
	}
	if (next-r.head)>>63 != 0 {
		next = r.head // never back
	}
	t.goTo(r, next, tail)
	return overtaken
}

// goTo goes on at a position. What lies before it was overwritten; its number tells how many.
func (t *subscribing) goTo(r *Receiver, pos, tail uint64) {
	if r.released == r.head {
		r.released = pos
	}
	r.head, r.tail = pos, tail
}

// setAside is for a message that is given out without moving on: head only says that one is out.
func (t *subscribing) setAside(r *Receiver, pos uint64) {
	t.aside = true
	r.head = r.released + 1
	if t.policy == Latest {
		t.seen = pos
	}
}

// readNewest copies the newest message, whatever was received before, to where to says. Never waits.
func (t *subscribing) readNewest(r *Receiver, f *frame) error {
	if r.isShut() {
		return r.refused()
	}
	if r.head != r.released {
		return r.failf(Busy, "a message or batch of this subscriber is out: release it first")
	}
	for range overtakenMax {
		pos, tail := t.lastAndTail()
		if pos == tail {
			return ErrEmpty
		}
		t.stamps = t.stamps[:0]
		result := wrong
		if isTopicPosition(pos, t.align) {
			_, result = t.copyFrame(f, pos, tail, 0, false)
		}
		switch result {
		case wrong:
			return r.corrupt()
		case whole:
			if t.policy == Latest {
				// It was seen: a wait is for a newer one.
				t.seen, t.expected = pos, max(t.expected, t.stamps[0].seq+1)
			}
			return nil
		case tooLong:
			return nil
		}
	}
	return ErrEmpty
}

// giveBack ends the lease of what is out.
func (t *subscribing) giveBack(r *Receiver) {
	r.lease++
	t.copies.clear()
	if t.aside || atomic.LoadUint32(&r.shut)&shutDead != 0 {
		t.aside = false
		r.head = r.released
		return
	}
	if t.gates() {
		// Release: our reads of the frames go before the position that lets the publisher overwrite them.
		r.publish(&t.slot.cursor, r.head)
	}
	r.released = r.head
	// As a ring's receiver puts a wake-up off.
	if t.gates() && r.tail-r.head <= r.capacity-r.capacity/wakeFraction &&
		(atomic.LoadUint32(&t.area.wait) != 0 || atomic.LoadUint32(&r.peer.flags) != r.peerFlags) {
		r.peerChanged()
		// Any value but 0 is a waiter.
		if atomic.LoadUint32(&t.area.wait) != 0 {
			r.wakePeer()
		}
	}
}

// unread is how many bytes are published and not released.
func (t *subscribing) unread(r *Receiver) uint64 {
	last, tail := t.lastAndTail()
	from := r.released
	if t.policy == Latest {
		if from = last; last == t.seen {
			from = tail
		}
	}
	// Clamped, because the publisher could write anything.
	return min(tail-from, r.capacity)
}

// copyInto has the next message copied into a buffer, if it fits.
func (t *subscribing) copyInto(dst []byte) { t.to, t.into = toBuffer, dst }

// appendTo has the next message copied behind what is in a buffer.
func (t *subscribing) appendTo(dst []byte) { t.to, t.into = toEnd, dst }

// copied says whether it was, where it could be received, and gives the buffer. What lies in the log is left to the caller.
func (t *subscribing) copied(dst []byte) (bool, []byte) {
	if t.to == toEnd {
		dst = t.into
	}
	t.to, t.into = toCopies, nil
	return t.copiesOut, dst
}

// subscriberWords is how a subscriber of any policy sleeps, comes and goes. What it sees of the publisher is a role's.
type subscriberWords struct {
	roleWords
	t *subscribing
}

// announce: the join has said so.
func (subscriberWords) announce(h *endpoint, _ uint32) uint32 { return h.epoch }

// announceClose leaves: the slot no longer gates, unless its cursor is to stay.
func (w subscriberWords) announceClose(*endpoint) {
	t := w.t
	if t.slot == nil {
		return
	}
	keep := uint64(0)
	if t.durable {
		keep = slotGating | slotDurable | slotEjected
	}
	for {
		// It fails where the publisher ejects it meanwhile.
		state := atomic.LoadUint64(&t.slot.state)
		if atomic.CompareAndSwapUint64(&t.slot.state, state, withoutFlags(state)|state&keep) {
			break
		}
	}
	t.countChange()
}

func (w subscriberWords) wakePeer(*endpoint) {
	if w.t.writable {
		wake(&w.t.area.wait)
	}
}

// follow: one that does not gate wakes nobody, so there is nothing to agree on.
func (w subscriberWords) follow(h *endpoint) (uint32, bool) {
	flags := atomic.LoadUint32(&h.peer.flags)
	if w.t.gates() {
		h.agree(flags&roleMembarrierCapable != 0)
	}
	return flags, flags&roleClosed != 0
}

// arm: without write access the publisher cannot be told, and the sleep is short.
func (w subscriberWords) arm(*endpoint) (uint32, time.Duration) {
	word := &w.t.area.word
	if !w.t.writable {
		return uint32(atomic.LoadUint64(word)), unorderedInterval
	}
	return uint32(atomic.OrUint64(word, wordAsleep) | wordAsleep), pollInterval
}

// disarm: the bit stays, because another subscriber may sleep by it. It costs the publisher one wake-up call.
func (subscriberWords) disarm(*endpoint) {}

// flagsChanged: the publisher reads the slots when the count has changed.
func (w subscriberWords) flagsChanged() {
	if w.t.writable {
		w.t.countChange()
	}
}

// topicLink is a subscriber's or publisher's tie to the segment: only an exclusive lock is a life.
type topicLink struct{ *lockLink }

// peerAlive says whether a publisher lives. A publisher asks about its subscribers' slots instead.
func (l topicLink) peerAlive(role) bool { return l.livesAt(bytePublisher) }
