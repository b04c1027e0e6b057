package ramway

import (
	"context"
	"iter"
	"sync/atomic"
)

// Batch is several messages that are released together. After Release every other method panics.
//
//	batch, err := rx.RecvBatch(ctx, 64)
//	if err != nil { ... }
//	for message := range batch.All() {
//		total += message.Len()
//	}
//	batch.Release()
type Batch struct {
	r     *Receiver
	lease uint64
}

// RecvBatch gives up to max messages, those that are there, and waits for the first one like [Receiver.Recv].
// ErrInvalidArgument for a max below 1. It keeps 24 bytes for each message, which the next batch uses again.
func (r *Receiver) RecvBatch(ctx context.Context, max int) (Batch, error) {
	return r.batch(ctx, max, true)
}

// TryRecvBatch is [Receiver.RecvBatch] that does not wait: ErrEmpty if there is no message now.
func (r *Receiver) TryRecvBatch(max int) (Batch, error) {
	return r.batch(context.Background(), max, false)
}

func (r *Receiver) batch(ctx context.Context, max int, blocking bool) (Batch, error) {
	r.enter()
	if max < 1 {
		r.leave()
		return Batch{}, r.failf(InvalidArgument, "a batch of at most %d messages: ask for at least 1", max)
	}
	if blocking && r.head == r.tail && r.head == r.released && atomic.LoadUint32(&r.shut) == 0 {
		_ = r.poll()
	}
	// Each frame is written where it stays: copying one that was just written stalls.
	frames := oneMore(r.frames[:0])
	if err := r.next(ctx, blocking, &frames[0]); err != nil {
		r.leave()
		return Batch{}, err
	}
	if r.topic != nil {
		frames = r.topic.receiveMore(r, frames, max)
		max = 0
	}
	for len(frames) < max {
		if r.head == r.tail {
			if over, err := r.ready(); !over || err != nil {
				break // an error stays in the handle's state: the next call returns it
			}
		}
		frames = oneMore(frames)
		if !r.parse(&frames[len(frames)-1]) {
			frames = frames[:len(frames)-1]
			r.die(Corrupt)
			break
		}
	}
	r.frames = frames
	r.lease++
	b := Batch{r: r, lease: r.lease}
	r.leave()
	return b, nil
}

func oneMore(frames []frame) []frame {
	if n := len(frames); n < cap(frames) {
		return frames[:n+1]
	}
	return append(frames, frame{})
}

func (b Batch) check() {
	if b.r == nil || b.r.lease != b.lease {
		panic("ramway: batch used after Release")
	}
}

// Len is the number of messages, at least 1.
func (b Batch) Len() int {
	b.check()
	return len(b.r.frames)
}

// At is message i, from 0 to Len() - 1.
func (b Batch) At(i int) Message {
	b.check()
	return Message{frame: &b.r.frames[i], r: b.r, lease: b.lease | partOfBatch}
}

// All gives the messages, which are released with the batch and not before.
func (b Batch) All() iter.Seq[Message] {
	return func(yield func(Message) bool) {
		b.check()
		frames := b.r.frames
		for i := range frames {
			if !yield(Message{frame: &frames[i], r: b.r, lease: b.lease | partOfBatch}) {
				return
			}
		}
	}
}

// Release gives all messages back at once; once they are, another Release does nothing.
func (b Batch) Release() {
	if b.r != nil && b.r.lease == b.lease {
		b.r.release(b.lease)
	}
}
