package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"
)

func TestAwait(t *testing.T) {
	var line [64]byte
	word := uint64(7)
	next := unsafe.Pointer(&line)
	for _, polls := range []uint32{1, 2, 100} {
		if now, left := Await(&word, 7, next, polls); now != 7 || left != 0 {
			t.Fatalf("%d polls: %d, %d left", polls, now, left)
		}
		if now, left := Await(&word, 6, next, polls); now != 7 || left != polls {
			t.Fatalf("%d polls of a word that has changed: %d, %d left", polls, now, left)
		}
	}
	go atomic.StoreUint64(&word, 1<<63+8)
	for now := uint64(7); now == 7; now, _ = Await(&word, 7, next, 1000) {
		runtime.Gosched()
	}
	if now, _ := Await(&word, 7, next, 1000); now != 1<<63+8 {
		t.Fatal(now)
	}
}
