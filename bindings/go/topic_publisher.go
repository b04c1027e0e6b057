package ramway

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/cpu"
	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// What a publisher does by the topic's own rules: how far it may write, and how a message becomes visible (ABI.md, section 19).
// All else is the Sender's.

// publishing is what a publisher has besides a sender, whose tail is where it writes next. It does not point back to the
// Sender, which could not be collected then.
type publishing struct {
	topicLog
	// seq is the number of the next message.
	seq uint64
	// start is where the last committed frame begins, published where the last published one does: that one stays intact.
	start, published uint64
	// limit is how far this side may write; claimed is what the shared claim holds.
	// Invariant: tail <= limit <= claimed <= published + capacity, wrapping.
	limit, claimed uint64
	// gate is how far the slots let it write, if gated; scanned: by a scan that still stands, before which changes was seen.
	gate           uint64
	gated, scanned bool
	seen           uint32
	// blocker is the slot that the gate is of.
	blocker int
	// wordSeen is the subscribers' word as last acted upon, always even.
	wordSeen uint64
	// timestamps: every message says when it was sent.
	timestamps bool
	patrol     patrol
}

// newPublisher takes the publisher's role of an attachment, which is released after an error.
func newPublisher(a *attachment, o *TopicOptions) (*Publisher, error) {
	p := &Publisher{Sender: Sender{room: -1, header: topicFrameHeader}}
	s := &p.Sender
	t := &publishing{topicLog: newTopicLog(a), timestamps: o.Timestamps, patrol: newPatrol(a, o.EjectAfter)}
	s.shut, s.topic, s.words = generalPath, t, publisherWords{t: t}
	options := o.options()
	s.begin(a, producer, &options, &t.area.wait)
	s.mine = &t.block.publisher
	s.ownFlags = &s.mine.flags
	if !t.resume(a.g) {
		_ = a.release()
		return nil, s.fail(Corrupt)
	}
	s.tail = t.limit
	s.published = s.tail
	s.maxLen = maxTopicMessageLen(t.capacity)
	a.closeFile()
	s.announce()
	runtime.SetFinalizer(s, func(s *Sender) { _ = s.shutDown(true, false) })
	return p, nil
}

// resume goes on after what an earlier publisher has published. False: no correct publisher left this.
func (t *publishing) resume(g geometry) bool {
	// The role's lock orders these after the last publisher's stores, and nobody else writes them.
	if !t.block.agree(g) {
		return false
	}
	tail, last := t.block.tail, t.block.last
	// A predecessor that was killed between its stores of tail and last leaves more than one frame.
	newest := last
	for at := last; at != tail; {
		h := t.headerAt(at)
		if !t.plausible(&h, tail-at) || h.seq <= t.seq || h.seq >= 1<<63 {
			return false
		}
		newest, t.seq = at, h.seq
		at += t.sizeOf(&h)
	}
	t.seq++
	for i := range t.block.starts {
		// An entry beyond tail is of a frame that was never published.
		if tail-atomic.LoadUint64(&t.block.starts[i]) > t.capacity {
			atomic.StoreUint64(&t.block.starts[i], tail)
		}
	}
	if newest != last {
		atomic.StoreUint64(&t.block.last, newest)
	}
	t.start, t.published, t.limit, t.claimed = newest, newest, tail, t.block.claim
	t.wordSeen = atomic.LoadUint64(&t.area.word) &^ wordAsleep
	// Nobody gates on such a topic: there is nothing to scan.
	t.scanned = t.flags&topicLossyOnly != 0
	return true
}

// commit makes n bytes a message, not yet visible.
func (t *publishing) commit(s *Sender, n uint64, typeID uint32, tag uint64) {
	var when uint64
	if t.timestamps {
		when = uint64(time.Now().UnixNano())
	}
	// Plain stores: nobody reads them before tail is published.
	*(*[4]uint64)(unsafe.Add(s.data, s.tail&(s.capacity-1))) = [4]uint64{n | uint64(typeID)<<32, tag, t.seq, when}
	t.start = s.tail
	t.seq++
	s.tail += s.frameSize(n)
}

// flush makes everything committed visible, and wakes who sleeps.
func (t *publishing) flush(s *Sender) {
	if s.tail == s.published {
		return
	}
	// Release, in this order: who reads at last sees the frame there, and a tail behind it. The second store is the fence,
	// where one is needed, between the publish and the load of the word.
	if cpu.Plain {
		cpu.StorePlain(&t.block.tail, s.tail)
	} else {
		atomic.StoreUint64(&t.block.tail, s.tail)
	}
	s.publish(&t.block.last, t.start)
	s.published, t.published = s.tail, t.start
	if w := atomic.LoadUint64(&t.area.word); w != t.wordSeen {
		t.wordMoved(s, w)
	}
}

// wordMoved acts on a word that is not the one seen last: somebody sleeps, or subscribers came or went.
func (t *publishing) wordMoved(s *Sender, w uint64) {
	if t.wakeSleepers(w) {
		t.scanned = t.flags&topicLossyOnly != 0
		// Fences; what was agreed on just now holds for this publish too.
		s.peerChanged()
		t.wakeSleepers(atomic.LoadUint64(&t.area.word))
	}
}

// wakeSleepers says whether subscribers came or went.
func (t *publishing) wakeSleepers(w uint64) (changed bool) {
	if w&wordAsleep != 0 {
		// Clears the bit and counts in one step, so that no other sleeper can undo it.
		w = atomic.AddUint64(&t.area.word, wordAsleep)
		sys.FutexWakeAll(t.sleepWord())
	}
	changed = w>>32 != t.wordSeen>>32
	// Even, whatever a hostile subscriber stores.
	t.wordSeen = w &^ wordAsleep
	return changed
}

// position is what is polled while waiting: the cursor that is in the way.
func (t *publishing) position() (*uint64, uint64) {
	if !t.gated {
		return &t.area.word, t.wordSeen
	}
	return &t.slots[t.blocker].cursor, t.gate - t.capacity
}

// ready says whether need bytes may be written, after having done what can be done about those that are in the way.
func (t *publishing) ready(s *Sender) bool {
	if s.need <= t.limit-s.tail {
		return true
	}
	for {
		if t.advance(s.tail, s.need) {
			t.patrol.goOn()
			return true
		}
		if s.tail != s.published {
			// The last published message moves on, and with it how far this side may write.
			t.flush(s)
			continue
		}
		if !t.patrol.check(t, s) {
			return false
		}
		// A dead subscriber was removed, or one was ejected.
		t.scanned = false
	}
}

// advance moves the limit so that size bytes fit at pos, if it may: reads the slots, announces in claim what is about to be
// overwritten, and then makes sure that no subscriber joined meanwhile.
func (t *publishing) advance(pos, size uint64) bool {
	// All positions from here on as distances from pos: none of them lies before it.
	chunk := t.capacity / topicChunks
	want := (pos+size+chunk-1)&^(chunk-1) - pos
	if !t.scanned || t.gated && t.gate-pos < want {
		t.scan(t.changes())
	}
	keepLast := t.published + t.capacity - pos
	gate := t.gateFrom(pos, keepLast)
	if size > gate {
		return false
	}
	// The first frame that is noted in a part of the data stays noted for the lap: a later one would put intact history out
	// of reach.
	entry := &t.block.starts[pos&(t.capacity-1)/chunk%topicChunks]
	if atomic.LoadUint64(entry)&^(chunk-1) != pos&^(chunk-1) {
		atomic.StoreUint64(entry, pos)
	}
	claim := max(t.claimed-pos, min(want, keepLast))
	if pos+claim != t.claimed {
		t.claimed = pos + claim
		// A full fence as well: a subscriber that joins stores its slot, fences, and loads the claim. Either it sees this
		// claim, or the load below sees its change.
		atomic.StoreUint64(&t.block.claim, t.claimed)
		if now := t.changes(); now != t.seen && t.flags&topicLossyOnly == 0 {
			t.scan(now)
			gate = t.gateFrom(pos, keepLast)
		}
	}
	t.limit = pos + min(claim, gate)
	return size <= min(claim, gate)
}

// gateFrom is how far beyond pos this side may write.
func (t *publishing) gateFrom(pos, keepLast uint64) uint64 {
	if t.gated {
		return min(keepLast, t.gate-pos)
	}
	return keepLast
}

// scan reads how far the slots let this side write. changes was loaded before.
func (t *publishing) scan(changes uint32) {
	t.gated, t.scanned, t.seen = false, true, changes
	if t.flags&topicLossyOnly != 0 {
		return
	}
	most := uint64(0)
	for i := range t.slots {
		slot := &t.slots[i]
		if atomic.LoadUint64(&slot.state)&slotGating == 0 {
			continue
		}
		// Acquire: the subscriber's last reads of what it gave back come before our writes to it. More than the capacity: it
		// is choosing anew, and finds out by the claim; or its words are wrong.
		if behind := t.limit - atomic.LoadUint64(&slot.cursor); behind <= t.capacity && (!t.gated || behind > most) {
			t.gated, most, t.blocker = true, behind, i
		}
	}
	t.gate = t.limit - most + t.capacity
}

// lastTag is the tag of the last published message.
func (t *publishing) lastTag(s *Sender) (uint64, bool) {
	if t.published == s.published {
		return 0, false
	}
	return t.headerAt(t.published).tag, true
}

// publishedSeq is the number of the last published message, 0 before the first.
func (t *publishing) publishedSeq(s *Sender) uint64 {
	if t.published == s.published {
		return 0
	}
	return t.headerAt(t.published).seq
}

// unreleased is how many bytes the slowest reliable subscriber has not released.
func (t *publishing) unreleased(s *Sender) (most uint64) {
	for i := range t.slots {
		if slot := &t.slots[i]; atomic.LoadUint64(&slot.state)&slotGating != 0 {
			// More than the capacity is a slot that does not gate.
			if lag := s.tail - atomic.LoadUint64(&slot.cursor); lag <= t.capacity {
				most = max(most, lag)
			}
		}
	}
	return most
}

// publisherWords is how a publisher sleeps, comes and goes.
type publisherWords struct {
	roleWords
	t *publishing
}

func (w publisherWords) announce(h *endpoint, flags uint32) uint32 {
	atomic.StoreUint32(&w.t.area.wait, 0)
	atomic.StoreUint64(w.t.block.ejectAfter(), uint64(w.t.patrol.ejectAfter))
	return announceRole(h.mine, flags)
}

// wakePeer changes the count, so that a subscriber that is about to sleep does not.
func (w publisherWords) wakePeer(*endpoint) {
	atomic.AddUint64(&w.t.area.word, wordWake)
	sys.FutexWakeAll(w.t.sleepWord())
}

// follow: every subscriber that has a slot must be able to make up for a fence that is left out. One without a slot that cannot
// sleeps for short intervals.
func (w publisherWords) follow(h *endpoint) (uint32, bool) {
	can := true
	for i := range w.t.slots {
		slot := &w.t.slots[i]
		if atomic.LoadUint64(&slot.state)&slotActive != 0 && atomic.LoadUint32(&slot.flags)&slotFlagMembarrierCapable == 0 {
			can = false
		}
	}
	h.agree(can)
	return 0, false
}

// arm: nobody tells when a subscriber is to be ejected.
func (w publisherWords) arm(*endpoint) (uint32, time.Duration) {
	atomic.StoreUint32(&w.t.area.wait, 1)
	longest := pollInterval
	if after := w.t.patrol.ejectAfter; after != 0 {
		longest = min(longest, max(after, unorderedInterval))
	}
	return 1, longest
}

func (w publisherWords) disarm(*endpoint) { atomic.StoreUint32(&w.t.area.wait, 0) }

func (w publisherWords) unordered(*endpoint) bool {
	for i := range w.t.slots {
		slot := &w.t.slots[i]
		if atomic.LoadUint64(&slot.state)&slotGating != 0 && atomic.LoadUint32(&slot.flags)&slotFlagFenceFree != 0 {
			return true
		}
	}
	return false
}

// ended: subscribers come and go, and none of them ends a publisher.
func (publisherWords) ended(h *endpoint, askSystem bool) error {
	if askSystem && h.at.link.vanished() {
		return h.nameVanished()
	}
	return nil
}

func (w publisherWords) peerEpoch(*endpoint) uint32 { return w.t.changes() }

func (w publisherWords) peerAlive(*endpoint) bool { return w.t.living() != 0 }

// living is how many reliable subscribers live. A system call for each.
func (t *publishing) living() (n int) {
	for i := range t.slots {
		if atomic.LoadUint64(&t.slots[i].state)&slotGating != 0 && t.patrol.link.livesAt(byteSlot+int64(i)) {
			n++
		}
	}
	return n
}
