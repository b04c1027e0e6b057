package ramway

import (
	"context"
	"errors"
	"io"
)

// Streams of bytes over messages, for code that speaks io.Reader and io.Writer. The peer sees ordinary messages.

// Writer sends what is written to it. Made by [Sender.Writer]; to be used by one goroutine at a time, as its Sender.
type Writer struct {
	sender *Sender
	ctx    context.Context
	typeID uint32
}

var (
	_ io.Writer     = (*Writer)(nil)
	_ io.ReaderFrom = (*Writer)(nil)
	_ io.Reader     = (*Reader)(nil)
	_ io.WriterTo   = (*Reader)(nil)
)

// Writer is a writer whose messages have this type id. The context ends calls that wait for room.
func (s *Sender) Writer(ctx context.Context, typeID uint32) *Writer {
	return &Writer{sender: s, ctx: ctx, typeID: typeID}
}

// piece is how much goes into one message where a stream has no boundaries of its own: a quarter of the ring, so that
// the peer reads one piece while the next is written, but no more than a cache holds.
func (w *Writer) piece() int {
	const most = 256 << 10
	return max(min(int(w.sender.Capacity()/4)-frameHeader, w.sender.MaxMessageLen(), most), 1)
}

// Write sends p as one message, or if it is longer than the longest message, as several. Of an empty p it sends
// nothing. What it says to be written was sent.
func (w *Writer) Write(p []byte) (int, error) {
	if len(p) > 0 && len(p) <= w.sender.MaxMessageLen() {
		if err := w.sender.Send(w.ctx, w.typeID, p); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	piece := w.piece()
	for done := 0; done < len(p); {
		n := min(piece, len(p)-done)
		if err := w.sender.Send(w.ctx, w.typeID, p[done:done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// ReadFrom sends all that r has until io.EOF, read straight into the ring, a message for each Read.
func (w *Writer) ReadFrom(r io.Reader) (int64, error) {
	var total int64
	piece := w.piece()
	for empty := 0; ; {
		slot, err := w.sender.Reserve(w.ctx, piece)
		if err != nil {
			return total, err
		}
		n, err := readInto(r, slot)
		if n == 0 {
			slot.Abort()
		} else if failed := slot.Commit(w.typeID, 0, n); failed != nil {
			return total, failed
		}
		total += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			return total, nil
		case err != nil:
			return total, err
		case n > 0:
			empty = 0
		default:
			if empty++; empty == 100 {
				return total, io.ErrNoProgress
			}
		}
	}
}

// readInto reads into a slot, which does not stay open if r panics.
func readInto(r io.Reader, slot Slot) (n int, err error) {
	done := false
	defer func() {
		if !done {
			slot.Abort()
		}
	}()
	b := slot.Bytes()
	n, err = r.Read(b)
	if n < 0 || n > len(b) {
		panic("ramway: the reader says that it has read more than it was given room for")
	}
	done = true
	return n, err
}

// Reader is the payloads that its Receiver gets, one after the other, as one stream. Made by [Receiver.Reader]; to be
// used by one goroutine at a time, as its Receiver.
type Reader struct {
	receiver *Receiver
	ctx      context.Context
	// message is what is being read, from done on, if there is one.
	message Message
	held    bool
	done    int
}

// Reader is a reader of the payloads; type ids and tags are lost. The context ends calls that wait for a message.
func (r *Receiver) Reader(ctx context.Context) *Reader {
	return &Reader{receiver: r, ctx: ctx}
}

// Read copies bytes of the current message, or waits for the next; empty ones are skipped. It gives io.EOF once the
// peer has closed and everything was read. A message that is not read to its end stays outstanding: see
// [Reader.Discard].
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if !r.held {
			if err := r.next(); err != nil {
				return 0, endOfStream(err)
			}
		}
		// Copied once, from memory that the peer might still write.
		n, err := r.message.ReadAt(p, int64(r.done))
		r.done += n
		if r.done >= r.message.Len() {
			r.Discard()
		}
		if n > 0 {
			return n, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
	}
}

// next receives a message.
func (r *Reader) next() error {
	message, err := r.receiver.Recv(r.ctx)
	if err != nil {
		return err
	}
	r.message, r.held, r.done = message, true, 0
	return nil
}

// Discard releases what is left of the message that Read is in the middle of. Before the Receiver is used by another
// way than this Reader, and before it is closed.
func (r *Reader) Discard() {
	if r.held {
		r.message.Release()
		r.message, r.held = Message{}, false
	}
}

// WriteTo writes all payloads to w, in place, until the peer has closed. A message of which w did not take all counts as
// received.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for {
		if !r.held {
			if err := r.next(); err != nil {
				if err = endOfStream(err); errors.Is(err, io.EOF) {
					err = nil
				}
				return total, err
			}
		}
		n, err := r.writeHeld(w)
		total += n
		if err != nil {
			return total, err
		}
	}
}

// writeHeld writes what is left of the message, which is then released, even if w panics.
func (r *Reader) writeHeld(w io.Writer) (int64, error) {
	defer r.Discard()
	if r.done == 0 {
		return r.message.WriteTo(w)
	}
	return io.Copy(w, io.NewSectionReader(r.message, int64(r.done), int64(r.message.Len()-r.done)))
}

// endOfStream makes the peer's orderly close what io.Reader calls it.
func endOfStream(err error) error {
	if KindOf(err) == Closed {
		return io.EOF
	}
	return err
}
