package main

import (
	"slices"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

func echo(a *args) error {
	e, err := a.conversation(a.back, a.ring)
	if err != nil {
		return err
	}
	s := &seen{a: a, first: -1, next: -1}
	c := begin(0)
	for {
		// Without a limit it is being measured, and a look at the clock costs about as much as a message.
		if a.timeout > 0 {
			c = begin(0)
		}
		var m ramway.Message
		if m, err = a.receive(e.rx); err != nil {
			break
		}
		seq := int64(m.Tag() & 0xFFFF_FFFF)
		if s.received++; s.received == 1 {
			s.first = seq
		}
		s.next, s.bytes = seq+1, s.bytes+uint64(m.Len())
		slot, err := a.reserve(e.tx, m.Len())
		if err != nil {
			return err
		}
		m.Copy(slot.Bytes())
		if err := slot.Commit(m.TypeID(), m.Tag(), m.Len()); err != nil {
			return err
		}
		m.Release()
	}
	kind := ramway.KindOf(err)
	s.report(kind.String(), uint32(kind), c.elapsed())
	e.close()
	return nil
}

func ping(a *args) error {
	if a.count < 0 {
		return usageError("--count is missing")
	}
	e, err := a.conversation(a.ring, a.back)
	if err != nil {
		return err
	}
	all := newMessages(a.sizes, e.tx.MaxMessageLen())
	t := newTimer(a)
	for seq := range uint64(a.count) {
		if err := a.put(e.tx, all.make(seq), true); err != nil {
			return err
		}
		m, err := a.receive(e.rx)
		if err != nil {
			return err
		}
		err = all.check(seq, m.TypeID(), m.Tag(), m.UnsafeBytes())
		m.Release()
		if err != nil {
			return err
		}
		t.trip(seq)
	}
	t.report()
	e.close()
	return nil
}

// timer has the times of groups of round trips, all but the first tenth.
type timer struct {
	count, group uint64
	last         time.Time
	// samples are nanoseconds of one round trip, an average of each group.
	samples []float64
}

func newTimer(a *args) *timer {
	group := uint64(max(a.group, 1))
	return &timer{
		count: uint64(a.count), group: group, last: time.Now(),
		samples: make([]float64, 0, uint64(a.count)/group+1),
	}
}

// trip says that round trip number seq is over.
func (t *timer) trip(seq uint64) {
	if (seq+1)%t.group != 0 {
		return
	}
	now := time.Now()
	if seq >= t.count/10 {
		t.samples = append(t.samples, float64(now.Sub(t.last))/float64(t.group))
	}
	t.last = now
}

func (t *timer) report() {
	slices.Sort(t.samples)
	at := func(part float64) float64 {
		if len(t.samples) == 0 {
			return 0
		}
		return t.samples[int(float64(len(t.samples)-1)*part)]
	}
	event("rtt count=%d min_ns=%.1f p50_ns=%.1f p99_ns=%.1f max_ns=%.1f", t.count, at(0), at(0.5), at(0.99), at(1))
}
