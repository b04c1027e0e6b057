package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

// plan is the keys that produce and consume have; -1 where one is not given.
type plan struct {
	*limits
	sizes          sizes
	how            string
	start, count   int64
	batch, endings int64
	progress       bool
}

func (l *line) plan(batch int64) *plan {
	p := &plan{
		limits: l.limits(), sizes: l.sizes(), how: l.text("how", ""),
		start: l.number("start", -1), count: l.number("count", -1),
		batch: l.number("batch", batch), endings: l.number("endings", 1), progress: l.yes("progress"),
	}
	l.end()
	return p
}

// goesOn says whether the stream goes on after this, with a successor of the other side.
func (p *plan) goesOn(kind ramway.Kind) bool {
	if kind != ramway.Closed && kind != ramway.PeerDead {
		return false
	}
	p.endings--
	return p.endings > 0
}

// successor is false if none comes in time.
func (p *plan) successor(noted uint32, epoch func() uint32) bool {
	for began := time.Now(); epoch() == noted; time.Sleep(time.Millisecond) {
		if p.timeout > 0 && time.Since(began) >= p.timeout {
			return false
		}
	}
	return true
}

// receive waits for a message, for as long as a wait may last.
func (l *limits) receive(rx *ramway.Receiver) (m ramway.Message, err error) {
	if l.poll < 0 {
		return rx.Recv(l.waiting())
	}
	err = l.within(func(ctx context.Context) error {
		m, err = rx.Recv(ctx)
		return err
	})
	return m, err
}

// reserve waits for room, for as long as a wait may last.
func (l *limits) reserve(tx *ramway.Sender, n int) (slot ramway.Slot, err error) {
	if l.poll < 0 {
		return tx.Reserve(l.waiting(), n)
	}
	err = l.within(func(ctx context.Context) error {
		slot, err = tx.Reserve(ctx, n)
		return err
	})
	return slot, err
}

// put sends one message as how says, waiting for room for as long as a wait may last.
func (p *plan) put(tx *ramway.Sender, m made, flush bool) error {
	if p.how != "reserve" && flush {
		if p.how == "try" {
			return tx.TrySendTagged(m.typeID, m.tag, m.payload)
		}
		return p.within(func(ctx context.Context) error { return tx.SendTagged(ctx, m.typeID, m.tag, m.payload) })
	}
	reserve := p.reserve
	if p.how == "try" {
		reserve = (*ramway.Sender).TryReserve
	}
	slot, err := reserve(tx, len(m.payload))
	if err != nil {
		return err
	}
	copy(slot.Bytes(), m.payload)
	if flush {
		return slot.Commit(m.typeID, m.tag, len(m.payload))
	}
	return slot.CommitUnflushed(m.typeID, m.tag, len(m.payload))
}

func produce(e *ends, l *line) error {
	tx, p := e.tx, l.plan(1)
	if p.count < 0 {
		panic(refusedError("count is missing"))
	}
	all := newMessages(p.sizes, tx.MaxMessageLen())
	next := uint64(max(p.start, 0))
	end, sent := next+uint64(p.count), uint64(0)
	for next < end {
		flush := (sent+1)%uint64(p.batch) == 0 || next+1 == end
		noted, began := tx.PeerEpoch(), time.Now()
		if err := p.put(tx, all.make(next), flush); err != nil {
			report := func(kind ramway.Kind) {
				event("end %s sent=%d next=%d elapsed_ms=%d", named(kind), sent, next, time.Since(began).Milliseconds())
			}
			kind := ramway.KindOf(err)
			report(kind)
			if !p.goesOn(kind) {
				return nil
			}
			if !p.successor(noted, tx.PeerEpoch) {
				report(ramway.TimedOut)
				return nil
			}
			continue
		}
		if p.progress {
			event("at seq=%d", next)
		}
		sent, next = sent+1, next+1
	}
	event("sent count=%d next=%d", sent, next)
	return nil
}

// seen is what a consumer has seen so far.
type seen struct {
	p               *plan
	all             *messages
	first, next     int64
	received, bytes uint64
	buffer          []byte
	// ofTopic: the messages have numbers, and lost is how many it was told that it lost.
	ofTopic bool
	lost    uint64
}

// number takes what a topic's message says of itself; the first one has 1.
func (s *seen) number(number, lost uint64) error {
	seq := int64(number) - 1
	if s.next >= 0 && s.next+int64(lost) != seq {
		return badError{uint64(seq), fmt.Sprintf("it comes after %d lost ones, and %d was expected", lost, s.next)}
	}
	s.next, s.lost = seq, s.lost+lost
	return nil
}

// lostBy is how many messages Lagged says that an ejection cost.
func lostBy(err error) (uint64, bool) {
	var lagged *ramway.Error
	if !errors.As(err, &lagged) || lagged.Kind != ramway.Lagged {
		return 0, false
	}
	return lagged.Lost, true
}

// lagged: it was ejected, which cost so many messages.
func (s *seen) lagged(lost uint64) {
	event("lagged lost=%d", lost)
	s.lost += lost
	if s.next >= 0 {
		s.next += int64(lost)
	}
}

// takeMessage checks one that is not copied.
func (s *seen) takeMessage(m ramway.Message) error {
	if s.ofTopic {
		if err := s.number(m.Seq(), m.Lost()); err != nil {
			return err
		}
	}
	return s.take(m.TypeID(), m.Tag(), m.UnsafeBytes())
}

// take checks a message before it is released.
func (s *seen) take(typeID uint32, tag uint64, payload []byte) error {
	if s.next < 0 {
		s.next = int64(tag & 0xFFFF_FFFF)
	}
	seq := s.next
	if err := s.all.check(uint64(seq), typeID, tag, payload); err != nil {
		return err
	}
	if s.first < 0 {
		s.first = seq
	}
	s.next++
	s.received++
	s.bytes += uint64(len(payload))
	if s.p.progress {
		event("at seq=%d", seq)
	}
	return nil
}

// left is how many messages there are left to receive.
func (s *seen) left() int64 {
	if s.p.count < 0 {
		return math.MaxInt64
	}
	return s.p.count - int64(s.received)
}

func (s *seen) report(named string, elapsed time.Duration) {
	last := int64(-1)
	if s.first >= 0 {
		last = s.next - 1
	}
	lost := ""
	if s.ofTopic {
		lost = fmt.Sprintf(" lost=%d", s.lost)
	}
	event("end %s received=%d first=%d last=%d bytes=%d elapsed_ms=%d%s",
		named, s.received, s.first, last, s.bytes, elapsed.Milliseconds(), lost)
}

// get receives one message, or a batch of them, as how says.
func (s *seen) get(e *ends) error {
	rx := e.rx
	switch s.p.how {
	case "batch":
		var batch ramway.Batch
		err := s.p.within(func(ctx context.Context) (err error) {
			batch, err = rx.RecvBatch(ctx, int(min(s.p.batch, s.left())))
			return err
		})
		if err != nil {
			return err
		}
		defer batch.Release()
		for m := range batch.All() {
			if bad := s.takeMessage(m); bad != nil {
				return bad
			}
		}
		return nil
	case "into":
		if s.ofTopic {
			return s.copied(e.sub)
		}
		var copied []byte
		var meta ramway.Meta
		err := s.p.within(func(ctx context.Context) (err error) {
			copied, meta, err = rx.RecvAppend(ctx, s.buffer[:0])
			return err
		})
		if err != nil {
			return err
		}
		s.buffer = copied
		return s.take(meta.TypeID, meta.Tag, copied)
	}
	receive := s.p.receive
	if s.p.how == "try" {
		receive = (*ramway.Receiver).TryRecv
	}
	m, err := receive(rx)
	if err != nil {
		return err
	}
	defer m.Release()
	return s.takeMessage(m)
}

// copied receives one message of a topic by a copy.
func (s *seen) copied(sub *ramway.Subscriber) error {
	var meta ramway.TopicMeta
	err := s.p.within(func(ctx context.Context) (err error) {
		s.buffer, meta, err = sub.RecvAppend(ctx, s.buffer[:0])
		return err
	})
	if err != nil {
		return err
	}
	if err := s.number(meta.Seq, meta.Lost); err != nil {
		return err
	}
	return s.take(meta.TypeID, meta.Tag, s.buffer)
}

func consume(e *ends, l *line) error {
	rx, p := e.rx, l.plan(32)
	s := &seen{p: p, all: newMessages(p.sizes, rx.MaxMessageLen()), first: -1, next: p.start, ofTopic: e.sub != nil}
	var last time.Duration
	for s.left() > 0 {
		noted, began := rx.PeerEpoch(), time.Now()
		err := s.get(e)
		if err != nil || s.left() == 0 {
			last = time.Since(began)
		}
		if err == nil {
			continue
		}
		if _, bad := err.(badError); bad {
			return err
		}
		kind := ramway.KindOf(err)
		if lost, is := lostBy(err); is {
			s.lagged(lost)
			continue
		}
		s.report(named(kind), last)
		if !p.goesOn(kind) {
			return nil
		}
		if !p.successor(noted, rx.PeerEpoch) {
			s.report(named(ramway.TimedOut), last)
			return nil
		}
	}
	s.report("name=Count number=0", last)
	return nil
}
