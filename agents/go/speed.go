package main

import (
	"context"
	"errors"
	"time"
	"unsafe"

	"github.com/ramway/ramway/bindings/go"
)

// The loops that are measured, written as a user who wants speed would.

// plan is count, size and batch of the flags.
type plan struct {
	count       uint64
	size, batch int
}

func newPlan(a *args) (plan, error) {
	p := plan{count: uint64(max(a.count, 0)), size: 32, batch: max(a.batch, 1)}
	if a.sizes.kind == "fixed" {
		p.size = int(a.sizes.fixed)
	}
	switch {
	case a.count < 0:
		return p, usageError("--count is missing")
	case p.size%8 != 0:
		return p, usageError("--sizes has to be a multiple of 8")
	}
	return p, nil
}

// words is a payload as words: it begins at a multiple of 16, and its length is one of 8.
func words(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// fill writes the words seq, seq + 1, ….
func fill(b []byte, seq uint64) {
	w := words(b)
	for len(w) >= 16 {
		p := (*[16]uint64)(w)
		p[0], p[1], p[2], p[3] = seq, seq+1, seq+2, seq+3
		p[4], p[5], p[6], p[7] = seq+4, seq+5, seq+6, seq+7
		p[8], p[9], p[10], p[11] = seq+8, seq+9, seq+10, seq+11
		p[12], p[13], p[14], p[15] = seq+12, seq+13, seq+14, seq+15
		seq += 16
		w = w[16:]
	}
	for i := range w {
		w[i] = seq + uint64(i)
	}
}

// sum adds up all words, in several sums at once where that is worth it.
func sum(b []byte) uint64 {
	w := words(b)
	var s0, s1, s2, s3 uint64
	for len(w) >= 16 {
		p := (*[16]uint64)(w)
		s0 += p[0] + p[4] + p[8] + p[12]
		s1 += p[1] + p[5] + p[9] + p[13]
		s2 += p[2] + p[6] + p[10] + p[14]
		s3 += p[3] + p[7] + p[11] + p[15]
		w = w[16:]
	}
	for _, word := range w {
		s0 += word
	}
	return s0 + s1 + s2 + s3
}

var errLength = errors.New("a message of another length than was said")

func flood(a *args) error {
	p, err := newPlan(a)
	if err != nil {
		return err
	}
	e, err := a.sending(a.ring, "")
	if err != nil {
		return err
	}
	ctx, tx := context.Background(), e.tx
	inBatch := 0
	for seq := range p.count {
		slot, err := tx.Reserve(ctx, p.size)
		if err != nil {
			return err
		}
		fill(slot.Bytes(), seq)
		if inBatch++; inBatch < p.batch && seq+1 < p.count {
			err = slot.CommitUnflushed(0, 0, p.size)
		} else {
			inBatch = 0
			err = slot.Commit(0, 0, p.size)
		}
		if err != nil {
			return err
		}
	}
	event("sent count=%d next=%d", p.count, p.count)
	e.close()
	return nil
}

func drain(a *args) error {
	p, err := newPlan(a)
	if err != nil {
		return err
	}
	e, err := a.receiving(a.ring)
	if err != nil {
		return err
	}
	receive := receiveEach
	if p.batch > 1 {
		receive = receiveBatches
	}
	// The first tenth warms up.
	total, err := receive(e.rx, p, p.count/10)
	if err != nil {
		return err
	}
	began := time.Now()
	rest, err := receive(e.rx, p, p.count-p.count/10)
	if err != nil {
		return err
	}
	event("rate messages=%d ns=%d sum=%d", p.count-p.count/10, time.Since(began).Nanoseconds(), total+rest)
	e.close()
	return nil
}

func receiveEach(rx *ramway.Receiver, p plan, count uint64) (total uint64, err error) {
	ctx := context.Background()
	for range count {
		m, err := rx.Recv(ctx)
		if err != nil {
			return total, err
		}
		b := m.UnsafeBytes()
		if len(b) != p.size {
			return total, errLength
		}
		total += sum(b)
		m.Release()
	}
	return total, nil
}

func receiveBatches(rx *ramway.Receiver, p plan, count uint64) (total uint64, err error) {
	ctx := context.Background()
	for left := count; left > 0; {
		batch, err := rx.RecvBatch(ctx, int(min(uint64(p.batch), left)))
		if err != nil {
			return total, err
		}
		for m := range batch.All() {
			b := m.UnsafeBytes()
			if len(b) != p.size {
				return total, errLength
			}
			total += sum(b)
		}
		left -= uint64(batch.Len())
		batch.Release()
	}
	return total, nil
}

func pingUnchecked(a *args) error {
	p, err := newPlan(a)
	if err != nil {
		return err
	}
	e, err := a.conversation(a.ring, a.back)
	if err != nil {
		return err
	}
	ctx, total, t := context.Background(), uint64(0), newTimer(a)
	for seq := range p.count {
		slot, err := e.tx.Reserve(ctx, p.size)
		if err != nil {
			return err
		}
		fill(slot.Bytes(), seq)
		if err := slot.Commit(0, 0, p.size); err != nil {
			return err
		}
		m, err := e.rx.Recv(ctx)
		if err != nil {
			return err
		}
		total += sum(m.UnsafeBytes())
		m.Release()
		t.trip(seq)
	}
	t.report()
	event("sum value=%d", total)
	e.close()
	return nil
}
