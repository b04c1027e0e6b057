package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"
)

func TestAwaitAnswer(t *testing.T) {
	var line [64]byte
	word := uint64(7)
	next := unsafe.Pointer(&line)
	for _, polls := range []uint32{0, 1, 2, 100} {
		if now := AwaitAnswer(&word, 7, next, polls); now != 7 {
			t.Fatalf("%d polls: %d", polls, now)
		}
		if now := AwaitAnswer(&word, 6, next, polls); now != 7 {
			t.Fatalf("%d polls of a word that has changed: %d", polls, now)
		}
	}
	go atomic.StoreUint64(&word, 1<<63+8)
	for AwaitAnswer(&word, 7, next, 1000) == 7 {
		runtime.Gosched()
	}
	if now := AwaitAnswer(&word, 7, next, 1000); now != 1<<63+8 {
		t.Fatal(now)
	}
}
