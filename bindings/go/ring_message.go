package ramway

import (
	"io"
	"runtime"
	"time"
	"unsafe"
)

// Meta is what a copied message was sent with.
type Meta struct {
	// TypeID is the sender's type id.
	TypeID uint32
	// Tag is the sender's tag, 0 if it gave none.
	Tag uint64
	// Len is the number of bytes of payload.
	Len int
}

// Message is a received message: a view of the shared memory, good until Release. After that every method but Release
// panics; the methods of a copy of it as well.
//
//	message, err := rx.Recv(ctx)
//	if err != nil { ... }
//	defer message.Release()
//	message.View(func(b []byte) { sum += checksum(b) })
type Message struct {
	// Three words: the compiler keeps no more than four in registers, and a larger struct that is put together in memory
	// and copied from there costs more than all the rest of a receive.
	*frame
	r     *Receiver
	lease uint64
}

// partOfBatch in a lease: the message goes back with its batch.
const partOfBatch = 1 << 63

// bytes are the payload as it lies in the ring, capped.
func (f *frame) bytes() []byte { return unsafe.Slice((*byte)(f.data), f.len) }

func released() { panic("ramway: message used after Release") }

func (m Message) check() {
	if m.r == nil || m.r.lease != m.lease&^partOfBatch {
		released()
	}
}

// view is the payload as it is given to the user.
func (m Message) view() []byte {
	m.check()
	if g := m.r.guard; g != nil && m.len != 0 {
		return g.view(m.r, m.frame)
	}
	return m.bytes()
}

// TypeID is what the sender said the payload is; below 0xFFFF0000 for an application's own.
func (m Message) TypeID() uint32 {
	m.check()
	return m.typeID
}

// Tag is the sender's tag, 0 if it gave none.
func (m Message) Tag() uint64 {
	m.check()
	return m.tag
}

// Len is the number of bytes of payload.
func (m Message) Len() int {
	m.check()
	return int(m.len)
}

// View calls f with the payload in place. The slice is good only until f returns, is aligned to the ring's alignment,
// and has no capacity beyond its length. A peer that is not trusted may change the bytes meanwhile: then copy first, with
// [Receiver.RecvAppend].
func (m Message) View(f func(b []byte)) {
	f(m.view())
	runtime.KeepAlive(m.r)
}

// UnsafeBytes is the payload in place. The slice must not be used after Release, nor after the Receiver became garbage;
// nothing but [Options.Guard] finds out if it is.
func (m Message) UnsafeBytes() []byte { return m.view() }

// Append appends a copy of the payload to dst.
func (m Message) Append(dst []byte) []byte {
	m.check()
	dst = append(dst, m.bytes()...)
	runtime.KeepAlive(m.r)
	return dst
}

// Clone is a copy of the payload.
func (m Message) Clone() []byte { return m.Append(make([]byte, 0, m.len)) }

// Copy copies the payload into dst, as much as fits, and says how many bytes that were.
func (m Message) Copy(dst []byte) int {
	m.check()
	n := copy(dst, m.bytes())
	runtime.KeepAlive(m.r)
	return n
}

// ReadAt copies bytes of the payload from an offset on. It is io.ReaderAt: io.NewSectionReader(message, 0,
// int64(message.Len())) reads and seeks in it.
func (m Message) ReadAt(p []byte, off int64) (int, error) {
	m.check()
	if off < 0 {
		return 0, failf(InvalidArgument, "an offset of %d in a message: expected 0 or more", off)
	}
	if off >= int64(m.len) {
		return 0, io.EOF
	}
	n := copy(p, m.bytes()[off:])
	runtime.KeepAlive(m.r)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteTo writes the payload to w from where it lies. It is io.WriterTo. What io.Writer promises, not to keep the slice,
// is relied on.
func (m Message) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m.view())
	runtime.KeepAlive(m.r)
	return int64(n), err
}

// Seq is the message's number, of a topic: the first one has 1, and each later one more than the one before. 0 on a ring.
func (m Message) Seq() uint64 { return m.stamp().seq }

// Time is when a topic's message was sent, by the publisher's wall clock; the zero time if the publisher gives none
// ([TopicOptions.Timestamps]), and on a ring.
func (m Message) Time() time.Time { return m.stamp().when() }

// Lost is how many messages were lost right before this one, of a topic; 0 on a ring, which loses none.
func (m Message) Lost() uint64 { return m.stamp().lost }

func (m Message) stamp() stamp {
	m.check()
	if m.r.topic == nil {
		return stamp{}
	}
	i := 0
	if m.lease&partOfBatch != 0 {
		// The stamps lie in the frames' order.
		i = int((uintptr(unsafe.Pointer(m.frame)) - uintptr(unsafe.Pointer(&m.r.frames[0]))) / unsafe.Sizeof(frame{}))
	}
	return m.r.topic.stamps[i]
}

// Release gives the message back; once it is, another Release does nothing. For a message of a [Batch] it does nothing
// either: it is given back with the batch.
func (m Message) Release() {
	if m.r != nil && m.r.lease == m.lease {
		m.r.release(m.lease)
	}
}
