package ramway

import "context"

// TensorSlot is room for the elements of one tensor, to be written in place; the rules are those of a [Slot].
type TensorSlot struct {
	slot   Slot
	offset int
	n      int
}

// ReserveTensor opens a slot for a tensor, and waits for room like [Sender.Send]. The outermost dimension of shape is the
// first; without any it is one element.
//
// Errors: ErrInvalidArgument for more than TensorDims dimensions, or if the product of those other than 0 and of the
// element's size is 2^63 or more; ErrTooLarge if the elements and 71 + 8 len(shape) bytes are more than MaxMessageLen;
// the others of Send.
func (s *Sender) ReserveTensor(ctx context.Context, dtype Dtype, shape []uint64) (TensorSlot, error) {
	return s.openTensor(ctx, true, dtype, shape)
}

// TryReserveTensor is [Sender.ReserveTensor] that does not wait: ErrFull if there is no room now.
func (s *Sender) TryReserveTensor(dtype Dtype, shape []uint64) (TensorSlot, error) {
	return s.openTensor(context.Background(), false, dtype, shape)
}

// SendTensor sends a tensor by a copy of its elements' bytes, in C order, and waits for room like [Sender.Send].
//
// Errors: those of ReserveTensor, and ErrInvalidArgument if data is not as long as the shape says.
func (s *Sender) SendTensor(ctx context.Context, dtype Dtype, shape []uint64, tag uint64, data []byte) error {
	return s.putTensor(ctx, true, dtype, shape, tag, data)
}

// TrySendTensor is [Sender.SendTensor] that does not wait: ErrFull if there is no room now.
func (s *Sender) TrySendTensor(dtype Dtype, shape []uint64, tag uint64, data []byte) error {
	return s.putTensor(context.Background(), false, dtype, shape, tag, data)
}

func (s *Sender) putTensor(ctx context.Context, blocking bool, dtype Dtype, shape []uint64, tag uint64, data []byte) error {
	if n, ok := tensorBytes(dtype, shape); ok && n != len(data) {
		return s.failf(InvalidArgument, "%d bytes for %v of the shape %v: that is %d", len(data), dtype, shape, n)
	}
	slot, err := s.openTensor(ctx, blocking, dtype, shape)
	if err != nil {
		return err
	}
	copy(slot.Data(), data)
	return slot.Commit(tag)
}

func (s *Sender) openTensor(ctx context.Context, blocking bool, dtype Dtype, shape []uint64) (TensorSlot, error) {
	plan, err := planTensor(dtype, shape)
	if err != nil {
		return TensorSlot{}, about(err, s.doing(), s.name)
	}
	room := plan.room()
	if room < 0 {
		return TensorSlot{}, s.failf(TooLarge, "a tensor of %d bytes can never fit: a message has at most %d", plan.nbytes, s.maxLen)
	}
	slot, err := s.open(ctx, blocking, room)
	if err != nil {
		return TensorSlot{}, err
	}
	return TensorSlot{slot: slot, offset: plan.write(slot.Bytes()), n: plan.nbytes}, nil
}

// Data is the room for the elements, on a multiple of 64 bytes, without capacity beyond its length; [Elements] has it as a
// slice of their type. It must not be used after the slot was committed or aborted.
func (t TensorSlot) Data() []byte {
	payload := t.slot.Bytes()
	return payload[t.offset : t.offset+t.n : t.offset+t.n]
}

// Commit sends the tensor. An error, what the handle is dead of, aborts the slot.
func (t TensorSlot) Commit(tag uint64) error { return t.commit(tag, true) }

// CommitUnflushed is [TensorSlot.Commit] that is visible only later: see [Slot.CommitUnflushed].
func (t TensorSlot) CommitUnflushed(tag uint64) error { return t.commit(tag, false) }

// Abort gives the slot up; nothing of it remains.
func (t TensorSlot) Abort() { t.slot.Abort() }

func (t TensorSlot) commit(tag uint64, flush bool) error {
	s := t.slot.s
	if s == nil {
		committed()
	}
	if s.enter() && s.lease == t.slot.lease {
		s.lease++
		s.room = -1
		s.commit(uint64(t.offset+t.n), TensorTypeID, tag)
		if flush {
			s.flush()
		}
		s.leave()
		return nil
	}
	s.leave()
	end := endAsTensor
	if !flush {
		end = endAsTensorUnflushed
	}
	return t.slot.finish(end, t.offset+t.n, TensorTypeID, tag)
}

// Tensor is the payload as a tensor, in place: its Data must not be used after Release, as with [Message.UnsafeBytes].
// ErrInvalidArgument, with what is wrong, if the message is not a tensor.
func (m Message) Tensor() (Tensor, error) {
	m.check()
	if m.typeID != TensorTypeID {
		return Tensor{}, m.r.failf(InvalidArgument, "not a tensor frame: its type id is %#x, and a tensor's is %#x", m.typeID,
			uint32(TensorTypeID))
	}
	tensor, err := ParseTensor(m.view())
	if err != nil {
		return Tensor{}, about(err, m.r.doing(), m.r.name)
	}
	return tensor, nil
}
