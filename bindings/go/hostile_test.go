package ramway

import (
	"math"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// TestNoNumberLeadsOutside writes into the shared words what no correct peer writes: each is Corrupt, and stays so.
func TestNoNumberLeadsOutside(t *testing.T) {
	const capacity = 4096
	numbers := []uint64{0, 1, 15, 16, 64, capacity - 16, capacity, capacity + 16, 1 << 31, 1 << 32, 1 << 63, math.MaxUint64 - 15, math.MaxUint64}
	t.Run("tail", func(t *testing.T) {
		for _, tail := range numbers {
			tx, rx, err := Pair(Options{Capacity: capacity})
			expectKind(t, err, 0)
			expectKind(t, tx.Send(background, 1, make([]byte, 48)), 0)
			atomic.StoreUint64(&rx.ring.tail, tail)
			// Inside the ring lies an old frame, or none: zeros are a message of length 0.
			possible := tail <= capacity && tail%16 == 0
			for range 1 << 10 {
				var m Message
				if m, err = rx.TryRecv(); err != nil {
					break
				}
				m.View(func(b []byte) { sink += byte(len(b)) })
				m.Release()
			}
			if kind := KindOf(err); kind != Corrupt && (!possible || kind != Empty) {
				t.Errorf("tail %#x: %v", tail, err)
			}
			if !possible {
				_, err = rx.Recv(background)
				expectKind(t, err, Corrupt)
				_, err = rx.RecvBatch(background, 5)
				expectKind(t, err, Corrupt)
				expectKind(t, rx.Close(), Corrupt)
			}
		}
	})
	t.Run("head", func(t *testing.T) {
		for _, head := range numbers {
			tx, _, err := Pair(Options{Capacity: capacity})
			expectKind(t, err, 0)
			for range 64 {
				expectKind(t, tx.Send(background, 1, make([]byte, 48)), 0)
			}
			atomic.StoreUint64(&tx.ring.head, head)
			err = tx.TrySend(1, make([]byte, 48))
			if possible := head <= capacity && head%16 == 0; possible != (KindOf(err) != Corrupt) {
				t.Errorf("head %#x: %v", head, err)
			} else if !possible {
				_, err = tx.Reserve(background, 0)
				expectKind(t, err, Corrupt)
				expectKind(t, tx.Flush(), Corrupt)
				expectKind(t, tx.Close(), Corrupt)
			}
		}
	})
	t.Run("length", func(t *testing.T) {
		for _, n := range []uint32{49, 64, 80, capacity, 1<<31 - 17, 1<<31 - 16, 1 << 31, math.MaxUint32 - 15, math.MaxUint32} {
			tx, rx, err := Pair(Options{Capacity: capacity})
			expectKind(t, err, 0)
			expectKind(t, tx.Send(background, 1, make([]byte, 48)), 0)
			atomic.StoreUint32((*uint32)(unsafe.Pointer(tx.data)), n)
			_, err = rx.Recv(background)
			expectKind(t, err, Corrupt)
			_, err = rx.TryRecv()
			expectKind(t, err, Corrupt)
		}
	})
	t.Run("length in a batch", func(t *testing.T) {
		tx, rx, err := Pair(Options{Capacity: capacity})
		expectKind(t, err, 0)
		for range 2 {
			expectKind(t, tx.Send(background, 1, make([]byte, 48)), 0)
		}
		atomic.StoreUint32((*uint32)(unsafe.Add(tx.data, 64)), capacity)
		batch, err := rx.RecvBatch(background, 5)
		expectKind(t, err, 0)
		if batch.Len() != 1 {
			t.Fatal(batch.Len())
		}
		batch.Release()
		_, err = rx.Recv(background)
		expectKind(t, err, Corrupt)
		// Nothing is out, so that this lets all go.
		expectKind(t, rx.Close(), Corrupt)
		if !rx.finished {
			t.Fatal("the close waits for a release that was")
		}
	})
	t.Run("while waiting", func(t *testing.T) {
		eachWait(t, func(t *testing.T, mode WaitMode) {
			tx, rx, err := Pair(Options{Capacity: capacity, Wait: mode})
			expectKind(t, err, 0)
			time.AfterFunc(20*time.Millisecond, func() {
				atomic.StoreUint64(&tx.ring.tail, 8)
				tx.wakePeer()
			})
			_, err = rx.Recv(background)
			expectKind(t, err, Corrupt)
			expectKind(t, rx.Close(), Corrupt)
		})
	})
	t.Run("positions at attach", func(t *testing.T) {
		dir := newFolder(t)
		rx, err := CreateReceiver(dir.at("ring"), Options{Capacity: capacity, Persistent: true})
		expectKind(t, err, 0)
		atomic.StoreUint64(&rx.ring.tail, 24)
		_, err = OpenSender(dir.at("ring"), Options{})
		expectKind(t, err, Corrupt)
		atomic.StoreUint64(&rx.ring.tail, 0)
		tx, err := OpenSender(dir.at("ring"), Options{})
		expectKind(t, err, 0)
		expectKind(t, tx.Close(), 0)
		expectKind(t, rx.Close(), 0)
	})
}

// TestLastTagsOfAKilledSender: a last-tag record that a kill left ahead of tail does not become the tag of the next frame.
func TestLastTagsOfAKilledSender(t *testing.T) {
	dir := newFolder(t)
	tx, err := CreateSender(dir.at("ring"), Options{Persistent: true})
	expectKind(t, err, 0)
	expectKind(t, tx.SendTagged(background, 1, 5, nil), 0)
	expectKind(t, tx.SendTagged(background, 1, 6, nil), 0)
	// Between the stores of the last-tag record and of tail: the third message of 16 bytes would end at 48.
	stale := &tx.ring.lastTags[tx.nextLastTag]
	atomic.StoreUint64(&stale.end, 48)
	atomic.StoreUint64(&stale.tag, 7)
	expectKind(t, tx.Abandon(), 0)
	tx, err = OpenSender(dir.at("ring"), Options{})
	expectKind(t, err, 0)
	if tag, ok := tx.LastTag(); tag != 6 || !ok {
		t.Fatal(tag, ok)
	}
	expectKind(t, tx.Send(background, 1, nil), 0)
	if tag, ok := tx.LastTag(); tag != 0 || !ok {
		t.Fatal(tag, ok)
	}
	expectKind(t, tx.SendTagged(background, 1, 8, nil), 0)
	if tag, ok := tx.LastTag(); tag != 8 || !ok {
		t.Fatal(tag, ok)
	}
	expectKind(t, tx.Close(), 0)
}
