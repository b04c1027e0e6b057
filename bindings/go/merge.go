package ramway

import (
	"context"
	"iter"
)

// Stream is what [Merge] can receive from: a [Receiver], a [Subscriber].
type Stream interface {
	Source
	receiver() *Receiver
}

func (r *Receiver) receiver() *Receiver { return r }

// Merge gives the messages of several receivers and subscribers as they come, each with the index of the one that it is of; of several
// that have messages, one after the other. Each is released after the loop's body has returned from it (or earlier, by the body). One whose
// sender closes drops out. The loop ends when all have, at an error of one of them, or when ctx is done.
//
// Afterwards the Err of each tells how it ended, as after [Receiver.All]: nil if its sender closed, else why the loop ended for it.
//
//	for i, message := range ramway.Merge(ctx, pictures, commands) {
//		message.View(func(b []byte) { handle(i, b) })
//	}
//	if err := errors.Join(pictures.Err(), commands.Err()); err != nil { ... }
func Merge(ctx context.Context, streams ...Stream) iter.Seq2[int, Message] {
	return func(yield func(int, Message) bool) {
		m := merging{streams: streams, selector: NewSelector()}
		defer m.selector.Close()
		for i, stream := range streams {
			stream.receiver().err = nil
			m.who = append(m.who, i)
		}
		m.listen()
		// For a body that panics; and a body that has released its message already.
		defer func() { m.out.Release() }()
		for len(m.who) > 0 {
			ready, err := m.selector.Wait(ctx)
			if err != nil {
				for _, i := range m.who {
					streams[i].receiver().stop(err)
				}
				return
			}
			if !m.take(ready, yield) {
				return
			}
		}
	}
}

// merging is a Merge under way.
type merging struct {
	streams  []Stream
	selector *Selector
	// who are those that have not ended, in the order of the selector's sources.
	who []int
	out Message
}

// listen has the selector wait for those that have not ended.
func (m *merging) listen() {
	sources := make([]Source, len(m.who))
	for at, i := range m.who {
		sources[at] = m.streams[i]
	}
	m.selector.Set(sources...)
}

// take gives out a message of each that is ready; false ends the loop.
func (m *merging) take(ready []int, yield func(int, Message) bool) bool {
	ended := false
	for _, at := range ready {
		i := m.who[at]
		r := m.streams[i].receiver()
		var err error
		switch m.out, err = r.TryRecv(); kindOf(err) {
		case 0:
			if !yield(i, m.out) {
				return false
			}
			m.out.Release()
		case Empty: // overwritten meanwhile
		case Closed:
			m.who[at], ended = -1, true
		default:
			r.stop(err)
			return false
		}
	}
	if ended {
		left := m.who[:0]
		for _, i := range m.who {
			if i >= 0 {
				left = append(left, i)
			}
		}
		m.who = left
		m.listen()
	}
	return true
}
