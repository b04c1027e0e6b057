package ramway

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/cpu"
	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// How a subscriber comes: which slot it takes, where it begins, and how it makes sure that nothing from there on is
// overwritten before the publisher knows of it (ABI.md, section 19).

// joinAttempts is how often a position is chosen before a subscriber gives up against what is no correct publisher.
const joinAttempts = 100_000

// joined is what a subscriber begins with.
type joined struct {
	// slot is nil for one that shows itself to nobody.
	slot *slot
	// epoch is how often the slot was taken; 1 without one.
	epoch uint32
	// closeSeen is the publisher's epoch whose close a durable predecessor has seen, or 0.
	closeSeen uint32
	// expected is the number of the message at cursor; 0 where any is right.
	cursor, expected uint64
	// lagged: a durable predecessor was ejected, and lost this many messages.
	lagged bool
	lost   uint64
}

// joining is a join under way.
type joining struct {
	*topicLog
	link  *lockLink
	o     *TopicOptions
	label slotLabel
	// flags are those of the slot: whether this process can membarrier, and whether it reads the newest message.
	flags uint32
}

// choice is where to begin.
type choice struct {
	cursor uint64
	// first: go on from there to the first frame with at least this number; 0: begin there.
	first uint64
	// expected is the number to expect, whatever is found; 0: that of the first frame.
	expected uint64
}

// newest is the newest frame; false before the first. An error if the publisher writes what none writes.
func (t *topicLog) newest() (h topicHeader, end uint64, ok bool, err error) {
	for range joinAttempts {
		// Acquire, in this order: tail is not older than last.
		last := atomic.LoadUint64(&t.block.last)
		tail := atomic.LoadUint64(&t.block.tail)
		if last == tail {
			return h, 0, false, nil
		}
		if h, end, ok = t.frameAt(last, tail, false); ok {
			return h, end, true, nil
		}
		runtime.Gosched()
	}
	return h, 0, false, ErrCorrupt
}

// oldest is the oldest frame that is noted and at most within bytes behind the claim, else tail, which is given too.
func (t *topicLog) oldest(within uint64) (oldest, tail uint64) {
	// Acquire, in this order: an entry that is not beyond tail was published, and the claim is not older than it.
	tail = atomic.LoadUint64(&t.block.tail)
	entries := t.entries()
	claim := atomic.LoadUint64(&t.block.claim)
	oldest = tail
	for _, entry := range entries {
		if behind := tail - entry; isTopicPosition(entry, t.align) && behind <= t.capacity && claim-entry <= within &&
			behind > tail-oldest {
			oldest = entry
		}
	}
	return oldest, tail
}

// entries are where frames begin by the publisher's notes. The newest one is among them: it is always intact, and nothing else
// may be where messages are long.
func (t *topicLog) entries() (entries [topicChunks + 1]uint64) {
	for i := range t.block.starts {
		entries[i] = atomic.LoadUint64(&t.block.starts[i])
	}
	entries[topicChunks] = atomic.LoadUint64(&t.block.last)
	return entries
}

// notedBefore is the newest noted frame whose number is at most seq, else the oldest.
func (t *topicLog) notedBefore(seq uint64) uint64 {
	found, tail := t.oldest(t.capacity)
	best := uint64(0)
	for _, entry := range t.entries() {
		if tail-entry > t.capacity {
			continue
		}
		if h, _, ok := t.frameAt(entry, tail, false); ok && h.seq <= seq && h.seq > best {
			found, best = entry, h.seq
		}
	}
	return found
}

// choose is the position to begin at.
func (t *topicLog) choose(from Start) (choice, error) {
	h, end, some, err := t.newest()
	if err != nil {
		return choice{}, err
	}
	if !some {
		end = atomic.LoadUint64(&t.block.tail)
	}
	afterNewest := choice{cursor: end, expected: h.seq + 1}
	oldest, _ := t.oldest(t.capacity)
	switch {
	case from.kind == startNow, from.kind == startHistory && from.n == 0:
		return afterNewest, nil
	case from.kind == startHistory && from.n < h.seq:
		first := h.seq - from.n + 1
		return choice{cursor: t.notedBefore(first), first: first}, nil
	// A number from another topic of this name, or from the future.
	case from.kind == startAfterSeq && from.n >= h.seq, from.kind == startAgain && from.n > h.seq:
		return afterNewest, nil
	case from.kind == startAgain:
		return choice{cursor: t.notedBefore(from.n), first: from.n}, nil
	case from.kind == startAfterSeq:
		return choice{cursor: t.notedBefore(from.n + 1), first: from.n + 1, expected: from.n + 1}, nil
	}
	return choice{cursor: oldest}, nil
}

// settle goes from a chosen position, which a slot keeps or whose frames are checked, to the first frame to read, and gives the
// number to expect there; false: overtaken.
func (t *topicLog) settle(c choice, kept bool) (at, expected uint64, ok bool, err error) {
	at = c.cursor
	// A frame for each step is the most there can be, unless the publisher writes on meanwhile.
	for range max(joinAttempts, t.capacity/uint64(t.align)) {
		if !isTopicPosition(at, t.align) {
			break
		}
		tail := atomic.LoadUint64(&t.block.tail)
		if at == tail {
			if expected, ok = c.expected, c.expected != 0; !ok {
				expected, ok, err = t.numberAt(tail)
			}
			if ok || err != nil {
				return at, expected, ok, err
			}
			continue // something has come since
		}
		h, end, whole := t.frameAt(at, tail, kept)
		switch {
		case !whole && !kept && t.overtaken(at):
			return 0, 0, false, nil
		case !whole:
			return 0, 0, false, ErrCorrupt
		case h.seq >= c.first && c.expected != 0:
			return at, c.expected, true, nil
		case h.seq >= c.first:
			return at, h.seq, true, nil
		}
		at = end
	}
	return 0, 0, false, ErrCorrupt
}

// numberAt is the number of the message that is to come at tail: the one after the newest. False: it has come meanwhile.
func (t *topicLog) numberAt(tail uint64) (uint64, bool, error) {
	h, end, ok, err := t.newest()
	if err != nil || !ok {
		return 1, err == nil, err
	}
	// A publisher that was killed between its stores of tail and last leaves frames between the two.
	for end != tail {
		if h, end, ok = t.frameAt(end, tail, false); !ok {
			return 0, false, nil
		}
	}
	return h.seq + 1, true, nil
}

// begin is where a subscriber begins that nobody waits for.
func (t *topicLog) begin(from Start) (cursor, expected uint64, err error) {
	for range joinAttempts {
		c, err := t.choose(from)
		if err != nil {
			return 0, 0, err
		}
		if at, expected, ok, err := t.settle(c, false); ok || err != nil {
			return at, expected, err
		}
	}
	return 0, 0, ErrCorrupt
}

// gate begins with a slot that gates, whose lock is held; durable: whose cursor is to stay.
func (t *topicLog) gate(s *slot, from Start, durable bool) (epoch uint32, cursor, expected uint64, err error) {
	state, cursor, expected, err := t.gateAs(s, from, durable)
	if err != nil {
		// Back to no subscriber.
		atomic.StoreUint64(&s.state, withoutFlags(state))
		t.countChange()
	}
	return uint32(state >> 32), cursor, expected, err
}

func (t *topicLog) gateAs(s *slot, from Start, durable bool) (state, cursor, expected uint64, err error) {
	state = atomic.LoadUint64(&s.state)
	anew := true
	for range joinAttempts {
		c, err := t.choose(from)
		if err != nil {
			return state, 0, 0, err
		}
		atomic.StoreUint64(&s.cursor, c.cursor)
		if anew {
			state = nextState(state, slotActive|slotGating)
			// The cursor and the flags go first. No exchange: nobody else changes the state of a slot that does not gate.
			atomic.StoreUint64(&s.state, state)
		}
		anew = false
		// Each time: the publisher may have taken the choice before for one that it need not wait for. A full fence as well: it
		// pairs with the publisher's between its claim and its load of the count.
		t.countChange()
		claim := atomic.LoadUint64(&t.block.claim)
		// The publisher may be blocked by what this slot has said before.
		wake(&t.area.wait)
		if claim-c.cursor > t.capacity {
			continue
		}
		cursor, expected, ok, err := t.settle(c, true)
		switch {
		case t.isEjected(s):
			anew = true // nothing has kept what was read there
			continue
		case err != nil || !ok:
			return state, 0, 0, ErrCorrupt
		}
		if cursor != c.cursor {
			// Forward only, so the publisher needs no count.
			atomic.StoreUint64(&s.cursor, cursor)
		}
		// Last, so that a join that is cut off by a kill leaves nothing that gates.
		if !durable || atomic.CompareAndSwapUint64(&s.state, state, state|slotDurable) {
			return state, cursor, expected, nil
		}
		anew = true // ejected just now
	}
	return state, 0, 0, ErrCorrupt
}

// isEjected says whether the publisher has ejected the subscriber of a slot. What was read before is from before.
func (t *topicLog) isEjected(s *slot) bool {
	cpu.LoadFence(&t.fence)
	return atomic.LoadUint64(&s.state)&slotEjected != 0
}

// resume takes up the cursor of a durable predecessor, whose slot's lock is held now. False: it was ejected.
func (t *topicLog) resume(s *slot, state uint64) (j joined, ok bool, err error) {
	cursor, tail := atomic.LoadUint64(&s.cursor), atomic.LoadUint64(&t.block.tail)
	if !isTopicPosition(cursor, t.align) || tail-cursor > t.capacity {
		return j, false, ErrCorrupt
	}
	next := nextState(state, slotActive|slotGating|slotDurable)
	if !atomic.CompareAndSwapUint64(&s.state, state, next) {
		return j, false, nil
	}
	t.countChange()
	wake(&t.area.wait)
	at, expected, ok, err := t.settle(choice{cursor: cursor}, true)
	switch {
	case t.isEjected(s):
		return j, false, nil
	case err != nil || !ok:
		return j, false, ErrCorrupt
	}
	return joined{slot: s, epoch: uint32(next >> 32), cursor: at, expected: expected}, true, nil
}

// busyInstant is for how long a slot or a label is tried again that is taken, however short the time-out is: another subscriber that
// looks for its slot has a lock for an instant.
const busyInstant = 5 * time.Millisecond

// joinWithin is join, for as long as the time-out says while it is Busy: a predecessor that was killed has its label and its slot
// until the kernel has closed its files.
func (j *joining) joinWithin() (joined, error) {
	return retry(max(j.o.Timeout, busyInstant), func() (joined, error) {
		found, err := j.join()
		if e, own := err.(*Error); own && e.Kind == Busy {
			err = &later{err: e}
		}
		return found, err
	})
}

// join joins, as the options say.
func (j *joining) join() (joined, error) {
	from := j.o.Start
	if j.o.Policy != Reliable {
		cursor, expected, err := j.begin(from.or(startNow))
		if err != nil {
			return joined{}, err
		}
		found := joined{epoch: 1, cursor: cursor, expected: expected}
		if !j.o.ReadOnly {
			j.show(&found)
		}
		return found, nil
	}
	if j.label != (slotLabel{}) {
		if err := j.link.lockJoin(j.o.Timeout); err != nil {
			return joined{}, err
		}
		defer sys.Unlock(j.link.lock, byteJoin)
	}
	return j.joinGating(from.or(startOldest))
}

func (j *joining) joinGating(from Start) (joined, error) {
	s, resumed, err := j.find()
	if err != nil {
		return joined{}, err
	}
	atomic.StoreUint32(&s.flags, j.flags)
	if !resumed {
		s.setLabel(j.label)
		atomic.StoreUint32(&s.closeSeen, 0)
		atomic.StoreUint64(&s.lost, 0)
		atomic.StoreUint64(&s.ejectSeq, 0)
		epoch, cursor, expected, err := j.gate(s, from, j.o.Durable)
		return joined{slot: s, epoch: epoch, cursor: cursor, expected: expected}, err
	}
	closeSeen, state := atomic.LoadUint32(&s.closeSeen), atomic.LoadUint64(&s.state)
	if state&slotEjected != 0 && j.topicLog.flags&topicMayEject == 0 {
		return joined{}, ErrCorrupt
	}
	if state&slotGating != 0 {
		found, ok, err := j.resume(s, state)
		if ok || err != nil {
			found.closeSeen = closeSeen
			if !j.o.Durable {
				// It takes the cursor up, and lets it go at its end.
				atomic.AndUint64(&s.state, ^uint64(slotDurable))
			}
			return found, err
		}
	}
	// The publisher has ejected the predecessor.
	first := atomic.LoadUint64(&s.ejectSeq)
	epoch, cursor, expected, err := j.gate(s, Start{startAgain, first}, j.o.Durable)
	found := joined{slot: s, epoch: epoch, closeSeen: closeSeen, cursor: cursor, expected: expected, lagged: true}
	if first != 0 && expected > first {
		found.lost = expected - first
	}
	return found, err
}

// find locks the slot of the label, or a free one; resumed: a durable predecessor's.
func (j *joining) find() (s *slot, resumed bool, err error) {
	if j.label != (slotLabel{}) {
		for i := range j.slots {
			s := &j.slots[i]
			// Of the others a label does not count: of one that nobody waits for, and of one that has left, whose slot somebody may be
			// taking just now who has not written its own label yet.
			state := atomic.LoadUint64(&s.state)
			if s.loadLabel() != j.label || state&(slotGating|slotDurable|slotEjected) == 0 {
				continue
			}
			if state&slotDurable != 0 {
				got, err := j.link.takeSlot(i)
				switch {
				case err != nil:
					return nil, false, err
				// It may have been given up before the lock was taken.
				case got && atomic.LoadUint64(&s.state)&slotDurable != 0 && s.loadLabel() == j.label:
					return s, true, nil
				case got:
					j.link.letSlotGo()
					continue
				}
			} else if !j.link.livesAt(byteSlot + int64(i)) {
				continue
			}
			return nil, false, failf(Busy, "a reliable subscriber with the label %s is attached already: close it, or take another label",
				shownLabel(j.label))
		}
	}
	s, err = j.takeFree(0)
	if s == nil && err == nil {
		err = failf(Busy, "%s", j.noSlot())
	}
	return s, false, err
}

// labelsNamed is how many labels an error names at most: there can be 1024 of 64 bytes.
const labelsNamed = 8

// noSlot is what to say where every slot is taken: by whom.
func (j *joining) noSlot() string {
	var counts [3]int
	var labels []string
	for i := range j.slots {
		s := &j.slots[i]
		whom := 2
		if state := atomic.LoadUint64(&s.state); state&slotDurable != 0 && !j.link.livesAt(byteSlot+int64(i)) {
			whom = 1
		} else if state&(slotGating|slotDurable|slotEjected) != 0 {
			whom = 0
		}
		counts[whom]++
		if label := s.loadLabel(); label != (slotLabel{}) {
			labels = append(labels, shownLabel(label))
		}
	}
	var by []string
	for i, whom := range []string{"by reliable subscribers", "for durable subscribers that are away", "by lossy or latest subscribers"} {
		if counts[i] > 0 {
			by = append(by, fmt.Sprintf("%d %s", counts[i], whom))
		}
	}
	if more := len(labels) - labelsNamed; more > 0 {
		labels = append(labels[:labelsNamed], fmt.Sprintf("%d more", more))
	}
	named := ""
	if labels != nil {
		named = fmt.Sprintf(" (labels: %s)", strings.Join(labels, ", "))
	}
	return fmt.Sprintf("all %d slots of the topic are taken: %s%s. Close a subscriber, unsubscribe a durable one, or create the topic with "+
		"more slots; ramway inspect shows the processes", len(j.slots), strings.Join(by, ", "), named)
}

// shownLabel is a label for an error, quoted: whoever may write to the topic can put control characters there.
func shownLabel(label slotLabel) string {
	quoted := strconv.QuoteToGraphic(labelText(label))
	return "'" + quoted[1:len(quoted)-1] + "'"
}

// takeFree locks the first free slot from a number on; nil: there is none.
func (j *joining) takeFree(from int) (*slot, error) {
	for i := from; i < len(j.slots); i++ {
		s := &j.slots[i]
		if atomic.LoadUint64(&s.state)&slotDurable != 0 {
			continue
		}
		got, err := j.link.takeSlot(i)
		switch {
		case err != nil:
			return nil, err
		// It may have become durable before the lock was taken.
		case got && atomic.LoadUint64(&s.state)&slotDurable == 0:
			return s, nil
		case got:
			j.link.letSlotGo()
		}
	}
	return nil, nil
}

// show takes a free slot for a subscriber that nobody waits for, so that others see it. Without one it goes on unseen: only the
// upper half is for such subscribers, so that they keep no reliable one out.
func (j *joining) show(found *joined) {
	s, err := j.takeFree((len(j.slots) + 1) / 2)
	if s == nil || err != nil {
		return
	}
	atomic.StoreUint32(&s.flags, j.flags)
	s.setLabel(j.label)
	atomic.StoreUint32(&s.closeSeen, 0)
	atomic.StoreUint64(&s.lost, 0)
	atomic.StoreUint64(&s.cursor, found.cursor)
	state := nextState(atomic.LoadUint64(&s.state), slotActive)
	atomic.StoreUint64(&s.state, state)
	found.slot, found.epoch = s, uint32(state>>32)
	j.countChange()
}

// lockJoin begins a join with a label: only one at a time searches its slot. Waits for those under way until the time-out.
func (l *lockLink) lockJoin(timeout time.Duration) error {
	_, err := retry(timeout, func() (struct{}, error) {
		got, err := sys.TryLock(l.lock, byteJoin, sys.Exclusive)
		switch {
		case err != nil:
			err = osError(err, "locking byte 2 of the topic")
		case !got:
			err = &later{race: true, err: failf(Busy, "another subscriber with a label was joining, at each attempt until the deadline: try again")}
		}
		return struct{}{}, err
	})
	return err
}

// takeSlot locks a slot's byte, if nobody else has it. A handle holds one at most.
func (l *lockLink) takeSlot(i int) (bool, error) {
	at := byteSlot + int64(i)
	got, err := sys.TryLock(l.lock, at, sys.Exclusive)
	if err != nil {
		return false, osError(err, "locking a slot's byte of the topic")
	}
	if got {
		l.roleByte = at
	}
	return got, nil
}

// letSlotGo is the contrary.
func (l *lockLink) letSlotGo() {
	sys.Unlock(l.lock, l.roleByte)
	l.roleByte = noRole
}
