package ramway

import (
	"sync/atomic"
	"time"
)

// patrol is what a publisher that cannot go on does about the subscribers that are in its way: it removes the dead ones, and
// ejects those that have been in the way for too long.
type patrol struct {
	link       *lockLink
	ejectAfter time.Duration
	// asked is when the system was last asked for the locks; zero: not since this side could go on.
	asked time.Time
	// blocking is, by slot, since when it is in the way, in which state and at which cursor; empty where no subscriber can be.
	blocking []blocking
}

type blocking struct {
	cursor, state uint64
	since         time.Time
}

func newPatrol(a *attachment, ejectAfter time.Duration) patrol {
	p := patrol{link: a.link.(topicLink).lockLink, ejectAfter: ejectAfter}
	if a.g.flags&topicLossyOnly == 0 {
		p.blocking = make([]blocking, a.g.slots)
	}
	return p
}

// goOn: the publisher is not blocked.
func (p *patrol) goOn() {
	if !p.asked.IsZero() {
		p.asked = time.Time{}
		clear(p.blocking)
	}
}

// check reads every slot that is in the way of the sender's message. True: one of them no longer is.
func (p *patrol) check(t *publishing, s *Sender) (freed bool) {
	now := time.Now()
	if p.asked.IsZero() {
		// A subscriber that was killed is found after an interval, as a ring's peer is.
		p.asked = now
	}
	ask := now.Sub(p.asked) >= pollInterval
	if ask {
		p.asked = now
	}
	for i := range t.slots {
		slot := &t.slots[i]
		// The state first, then the lock: a slot that was taken anew since has another epoch, and the exchange fails.
		state, cursor := atomic.LoadUint64(&slot.state), atomic.LoadUint64(&slot.cursor)
		if state&slotGating == 0 || t.limit-cursor > t.capacity || s.tail+s.need-cursor <= t.capacity {
			if p.blocking != nil {
				p.blocking[i] = blocking{}
			}
			continue
		}
		if ask && state&slotDurable == 0 && !p.link.livesAt(byteSlot+int64(i)) {
			// A full fence as well, and so is the one below: a subscriber that joins this slot now sees the change before it
			// sees what this side writes next.
			freed = atomic.CompareAndSwapUint64(&slot.state, state, withoutFlags(state)) || freed
			continue
		}
		if p.overdue(i, state, cursor, now) {
			atomic.StoreUint64(&slot.ejectSeq, t.seqAt(s, cursor))
			freed = atomic.CompareAndSwapUint64(&slot.state, state, state&^slotGating|slotEjected) || freed
		}
	}
	return freed
}

// overdue says whether the slot has been in the way for too long at its cursor, and notes since when it is.
func (p *patrol) overdue(i int, state, cursor uint64, now time.Time) bool {
	if p.blocking == nil {
		return false
	}
	if b := &p.blocking[i]; b.since.IsZero() || b.cursor != cursor || b.state != state {
		*b = blocking{cursor, state, now}
		return false
	}
	return p.ejectAfter != 0 && now.Sub(p.blocking[i].since) >= p.ejectAfter
}

// blocksFor is for how long a slot has been in the way at its cursor; 0 if its subscriber has read something since, or is
// another one.
func (p *patrol) blocksFor(i int, s *slot) time.Duration {
	if p.blocking == nil {
		return 0
	}
	b := &p.blocking[i]
	if b.since.IsZero() || b.cursor != atomic.LoadUint64(&s.cursor) || b.state != atomic.LoadUint64(&s.state) {
		return 0
	}
	return time.Since(b.since)
}

// seqAt is the number of the frame at a cursor, which may be any number; 0 where there can be none.
func (t *publishing) seqAt(s *Sender, cursor uint64) uint64 {
	if unread := s.published - cursor; !isTopicPosition(cursor, t.align) || unread == 0 || unread > t.capacity {
		return 0
	}
	return t.headerAt(cursor).seq
}
