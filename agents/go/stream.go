package main

import (
	"context"
	"math"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

// put sends one message as --how says, waiting for room for as long as a wait may last.
func (a *args) put(tx *ramway.Sender, m made, flush bool) error {
	if a.how != "reserve" && flush {
		if a.how == "try" {
			return tx.TrySendTagged(m.typeID, m.tag, m.payload)
		}
		return a.patiently(func(ctx context.Context) error { return tx.SendTagged(ctx, m.typeID, m.tag, m.payload) })
	}
	reserve := a.reserve
	if a.how == "try" {
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

func produce(a *args) error {
	switch {
	case a.count < 0:
		return usageError("--count is missing")
	case a.how != "" && a.how != "send" && a.how != "reserve" && a.how != "try":
		return usageError("--how is send, reserve or try")
	}
	e, err := a.sending(a.ring, "")
	if err != nil {
		return err
	}
	tx := e.tx
	all := newMessages(a.sizes, tx.MaxMessageLen())
	next := uint64(max(a.start, 0))
	end := next + uint64(a.count)
	if a.resume {
		if tag, any := tx.LastTag(); any {
			next = tag&0xFFFF_FFFF + 1
		}
		event("resuming next=%d", next)
	}
	if a.oversize {
		err := a.put(tx, all.ofLength(next, uint64(tx.MaxMessageLen())+1), true)
		if err == nil {
			return badError{next, "a message longer than the longest was sent"}
		}
		reportSent(ramway.KindOf(err), 0, next, 0)
	}
	sent, endings := uint64(0), 0
	for next < end {
		flush := (sent+1)%uint64(max(a.batch, 1)) == 0 || next+1 == end
		c := begin(tx.PeerEpoch())
		if err := a.put(tx, all.make(next), flush); err != nil {
			kind := ramway.KindOf(err)
			if isEnding(kind) {
				endings++
			}
			reportSent(kind, sent, next, c.elapsed())
			if !isEnding(kind) || endings >= a.endings {
				break
			}
			if !a.waitForSuccessor(c.epoch, tx.PeerEpoch) {
				reportSent(ramway.TimedOut, sent, next, c.elapsed())
				break
			}
			continue
		}
		if a.progress {
			event("at seq=%d", next)
		}
		sent, next = sent+1, next+1
		if a.pace > 0 {
			time.Sleep(a.pace)
		}
	}
	if next >= end {
		event("sent count=%d next=%d", sent, next)
	}
	a.lingerNow()
	e.close()
	return nil
}

func reportSent(kind ramway.Kind, sent, next uint64, elapsed int64) {
	event("end name=%s number=%d sent=%d next=%d elapsed_ms=%d", kind.String(), uint32(kind), sent, next, elapsed)
}

// seen is what a consumer has seen so far.
type seen struct {
	a               *args
	all             *messages
	first, next     int64
	received, bytes uint64
	buffer          []byte
}

func newSeen(a *args, rx *ramway.Receiver) *seen {
	return &seen{a: a, all: newMessages(a.sizes, rx.MaxMessageLen()), first: -1, next: a.start}
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
	if s.a.progress {
		event("at seq=%d", seq)
	}
	if s.a.work > 0 {
		time.Sleep(s.a.work)
	}
	return nil
}

// left is how many messages there are left to receive.
func (s *seen) left() int64 {
	left := int64(math.MaxInt64)
	if s.a.count >= 0 {
		left = s.a.count - int64(s.received)
	}
	if s.a.until >= 0 {
		left = min(left, max(s.a.until-max(s.next, 0), 0))
	}
	return left
}

func (s *seen) report(name string, number uint32, elapsed int64) {
	last := int64(-1)
	if s.first >= 0 {
		last = s.next - 1
	}
	event("end name=%s number=%d received=%d first=%d last=%d bytes=%d elapsed_ms=%d",
		name, number, s.received, s.first, last, s.bytes, elapsed)
}

// get receives one message, or a batch of them, as --how says. wrong is what the call gave, bad a message that is not
// what it should be.
func (s *seen) get(rx *ramway.Receiver) (wrong, bad error) {
	switch s.a.how {
	case "batch":
		most := 32
		if s.a.batch > 0 {
			most = s.a.batch
		}
		var batch ramway.Batch
		err := s.a.patiently(func(ctx context.Context) (err error) {
			batch, err = rx.RecvBatch(ctx, int(min(int64(most), s.left())))
			return err
		})
		if err != nil {
			return err, nil
		}
		defer batch.Release()
		for m := range batch.All() {
			if bad := s.take(m.TypeID(), m.Tag(), m.UnsafeBytes()); bad != nil {
				return nil, bad
			}
		}
		return nil, nil
	case "into":
		var copied []byte
		var meta ramway.Meta
		err := s.a.patiently(func(ctx context.Context) (err error) {
			copied, meta, err = rx.RecvAppend(ctx, s.buffer[:0])
			return err
		})
		if err != nil {
			return err, nil
		}
		s.buffer = copied
		return nil, s.take(meta.TypeID, meta.Tag, copied)
	}
	receive := s.a.receive
	if s.a.how == "try" {
		receive = (*ramway.Receiver).TryRecv
	}
	m, err := receive(rx)
	if err != nil {
		return err, nil
	}
	defer m.Release()
	return nil, s.take(m.TypeID(), m.Tag(), m.UnsafeBytes())
}

func consume(a *args) error {
	switch a.how {
	case "", "recv", "batch", "into", "try":
	default:
		return usageError("--how is recv, batch, into or try")
	}
	e, err := a.receiving(a.ring)
	if err != nil {
		return err
	}
	rx := e.rx
	s := newSeen(a, rx)
	name, number, last, endings := "Count", uint32(0), int64(0), 0
	for s.left() > 0 {
		c := begin(rx.PeerEpoch())
		wrong, bad := s.get(rx)
		if bad != nil {
			return bad
		}
		if wrong == nil {
			if s.left() == 0 {
				last = c.elapsed()
			}
			continue
		}
		last = c.elapsed()
		kind := ramway.KindOf(wrong)
		if isEnding(kind) {
			endings++
		}
		if isEnding(kind) && endings < a.endings {
			s.report(kind.String(), uint32(kind), last)
			if a.waitForSuccessor(c.epoch, rx.PeerEpoch) {
				continue
			}
			kind = ramway.TimedOut
		}
		name, number = kind.String(), uint32(kind)
		break
	}
	s.report(name, number, last)
	a.lingerNow()
	e.close()
	return nil
}

func die(a *args) error {
	if a.count < 0 {
		return usageError("--count is missing")
	}
	switch a.role {
	case "producer":
		return dieSending(a)
	case "consumer":
		return dieReceiving(a)
	}
	return usageError("--role is producer or consumer")
}

func dieSending(a *args) error {
	e, err := a.sending(a.ring, "")
	if err != nil {
		return err
	}
	all := newMessages(a.sizes, e.tx.MaxMessageLen())
	next := uint64(max(a.start, 0))
	for range a.count {
		if err := a.put(e.tx, all.make(next), true); err != nil {
			return err
		}
		next++
	}
	m := all.make(next)
	slot, err := a.reserve(e.tx, len(m.payload))
	if err != nil {
		return err
	}
	half := len(m.payload) / 2
	copy(slot.Bytes(), m.payload[:half])
	if err := slot.CommitUnflushed(m.typeID, m.tag, half); err != nil {
		return err
	}
	event("dying next=%d", next)
	return crash()
}

func dieReceiving(a *args) error {
	e, err := a.receiving(a.ring)
	if err != nil {
		return err
	}
	s := newSeen(a, e.rx)
	for i := int64(1); ; i++ {
		m, err := a.receive(e.rx)
		if err != nil {
			return err
		}
		if err := s.take(m.TypeID(), m.Tag(), m.UnsafeBytes()); err != nil {
			return err
		}
		if i >= a.count {
			event("dying next=%d", m.Tag()&0xFFFF_FFFF)
			return crash()
		}
		m.Release()
	}
}
