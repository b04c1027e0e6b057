package ramway

import (
	"context"
	"unsafe"
)

// Slot is room for one message, to be written in place and then committed; good until Commit, CommitUnflushed or Abort,
// after which every method of it, and of a copy, panics. It holds whatever an earlier message left there. One slot is
// open at a time; a slot that is aborted leaves nothing behind.
//
//	slot, err := tx.Reserve(ctx, 100)
//	if err != nil { ... }
//	n := copy(slot.Bytes(), "written in place")
//	err = slot.Commit(7, 0, n)
type Slot struct {
	s     *Sender
	lease uint64
	data  unsafe.Pointer
	len   int
}

// Reserve opens a slot of n bytes, and waits for room like [Sender.Send], with the same errors.
func (s *Sender) Reserve(ctx context.Context, n int) (Slot, error) { return s.open(ctx, true, n) }

// TryReserve is [Sender.Reserve] that does not wait: ErrFull if there is no room now.
func (s *Sender) TryReserve(n int) (Slot, error) { return s.open(context.Background(), false, n) }

func (s *Sender) open(ctx context.Context, blocking bool, n int) (Slot, error) {
	if !s.enter() || n < 0 || !s.fits(uint64(n)) {
		if err := s.reserveSlow(ctx, blocking, n); err != nil {
			s.leave()
			return Slot{}, err
		}
	}
	s.lease++
	s.room = n
	slot := Slot{s: s, lease: s.lease, data: unsafe.Pointer(unsafe.SliceData(s.payload(n))), len: n}
	s.leave()
	return slot, nil
}

func (s *Sender) reserveSlow(ctx context.Context, blocking bool, n int) error {
	if n < 0 {
		return s.failf(InvalidArgument, "a message of %d bytes: expected 0 or more", n)
	}
	return s.makeRoom(ctx, blocking, 0, n)
}

func committed() { panic("ramway: slot used after Commit or Abort") }

// Bytes is the room, aligned to the ring's alignment, without capacity beyond its length. It must not be used after the
// slot was committed or aborted.
func (t Slot) Bytes() []byte {
	if t.s == nil || t.s.lease != t.lease {
		committed()
	}
	return unsafe.Slice((*byte)(t.data), t.len)
}

// Commit sends the first n bytes of the slot. An error (ErrInvalidArgument for an n beyond what was reserved or a
// reserved typeID, or what the handle is dead of) aborts the slot.
func (t Slot) Commit(typeID uint32, tag uint64, n int) error { return t.commit(n, typeID, tag, true) }

// CommitUnflushed is [Slot.Commit] that is visible only after [Sender.Flush], the next flushed message, or when the
// sender has to wait, finds the ring full, or closes.
func (t Slot) CommitUnflushed(typeID uint32, tag uint64, n int) error {
	return t.commit(n, typeID, tag, false)
}

// Abort gives the slot up; nothing of it remains.
func (t Slot) Abort() { _ = t.finish(endByAbort, 0, 0, 0) }

// slotEnd is how a slot ends.
type slotEnd uint8

const (
	endByAbort slotEnd = iota
	// endByCommit: with a type id of the user's, to be checked; visible at once. endUnflushed: visible later.
	endByCommit
	endUnflushed
	// endAsTensor: with a type id of Ramway's own.
	endAsTensor
	endAsTensorUnflushed
)

func (t Slot) commit(n int, typeID uint32, tag uint64, flush bool) error {
	s := t.s
	if s == nil {
		committed()
	}
	if s.enter() && s.lease == t.lease && uint(n) <= uint(t.len) && typeID < typeIDReserved {
		s.lease++
		s.room = -1
		s.commit(uint64(n), typeID, tag)
		if flush {
			s.flush()
		}
		s.leave()
		return nil
	}
	s.leave()
	end := endByCommit
	if !flush {
		end = endUnflushed
	}
	return t.finish(end, n, typeID, tag)
}

// finish ends the slot in any state of the handle, and then a close that has waited for it goes on.
func (t Slot) finish(end slotEnd, n int, typeID uint32, tag uint64) error {
	s := t.s
	if s == nil {
		committed()
	}
	if s.enter(); !s.isClosed() {
		defer s.leave()
		return t.last(end, n, typeID, tag)
	}
	s.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := t.last(end, n, typeID, tag)
	if s.deferred {
		_ = s.releaseRole(false)
	}
	return err
}

// last is what is done with a slot that cannot be committed straight away.
func (t Slot) last(end slotEnd, n int, typeID uint32, tag uint64) error {
	s := t.s
	if s.lease != t.lease {
		committed()
	}
	s.lease++
	s.room = -1
	switch {
	case end == endByAbort:
		return nil
	case uint(n) > uint(t.len):
		return s.failf(InvalidArgument, "%d bytes committed of a slot of %d", n, t.len)
	case end <= endUnflushed && typeID >= typeIDReserved:
		return s.failf(InvalidArgument, "type id %#x is Ramway's own: applications use ids below %#x", typeID, uint32(typeIDReserved))
	case s.shut&shutDead != 0:
		return s.fail(s.dead)
	}
	s.commitAny(uint64(n), typeID, tag)
	if !s.isShut() && (end == endByCommit || end == endAsTensor) {
		s.flushAny()
	}
	// Else the handle is being closed, which flushes; or the user flushes.
	return nil
}
