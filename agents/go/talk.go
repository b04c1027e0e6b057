package main

import (
	"fmt"
	"hash/crc32"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

func echo(e *ends, l *line) error {
	limits := l.limits()
	l.end()
	s := &seen{p: &plan{}, first: -1, next: -1}
	for {
		began := time.Now()
		m, err := limits.receive(e.rx)
		if err != nil {
			s.report(named(ramway.KindOf(err)), time.Since(began))
			return nil
		}
		seq := int64(m.Tag() & 0xFFFF_FFFF)
		if s.received++; s.received == 1 {
			s.first = seq
		}
		s.next, s.bytes = seq+1, s.bytes+uint64(m.Len())
		slot, err := limits.reserve(e.tx, m.Len())
		if err != nil {
			return err
		}
		m.Copy(slot.Bytes())
		if err := slot.Commit(m.TypeID(), m.Tag(), m.Len()); err != nil {
			return err
		}
		m.Release()
	}
}

func ping(e *ends, l *line) error {
	count, p := uint64(l.number("count", 0)), &plan{limits: l.limits(), sizes: l.sizes()}
	l.end()
	all := newMessages(p.sizes, e.tx.MaxMessageLen())
	for seq := range count {
		if err := p.put(e.tx, all.make(seq), true); err != nil {
			return err
		}
		m, err := p.receive(e.rx)
		if err != nil {
			return err
		}
		err = all.check(seq, m.TypeID(), m.Tag(), m.UnsafeBytes())
		m.Release()
		if err != nil {
			return err
		}
	}
	event("answered count=%d", count)
	return nil
}

func last(e *ends, l *line) error {
	l.end()
	if tag, any := e.tx.LastTag(); any {
		event("last tag=%d", tag)
	} else {
		event("last none")
	}
	return nil
}

func take(e *ends, l *line) error {
	limits, tensor, how := l.limits(), l.yes("tensor"), l.text("how", "")
	l.end()
	receive := limits.receive
	if how == "try" {
		receive = (*ramway.Receiver).TryRecv
	} else if how != "" {
		panic(refusedError("how=" + how))
	}
	m, err := receive(e.rx)
	if err != nil {
		lost := ""
		if n, is := lostBy(err); is {
			lost = fmt.Sprintf(" lost=%d", n)
		}
		event("end %s%s", named(ramway.KindOf(err)), lost)
		return nil
	}
	defer m.Release()
	if tensor {
		if is, err := sayTensor(m); is || err != nil {
			return err
		}
	}
	stamp := ""
	if e.sub != nil {
		stamp = fmt.Sprintf(" seq=%d lost=%d", m.Seq(), m.Lost())
	}
	event("message type_id=%d tag=%d len=%d crc32=%d%s",
		m.TypeID(), m.Tag(), m.Len(), crc32.ChecksumIEEE(m.UnsafeBytes()), stamp)
	return nil
}

func region(_ *ends, l *line) error {
	name := l.text("name", "")
	l.end()
	region, err := ramway.OpenRegion(name, ramway.Options{Timeout: openTimeout})
	if err != nil {
		return err
	}
	bytes := make([]byte, region.Len())
	if _, err := region.ReadAt(bytes, 0); err != nil {
		return err
	}
	event("region len=%d crc32=%d", len(bytes), crc32.ChecksumIEEE(bytes))
	return region.Close()
}
