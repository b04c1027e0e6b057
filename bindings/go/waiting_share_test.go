package ramway

import (
	"testing"
	"time"
)

// What a waiter assumes about where its peer runs, without a peer.

// shortInVain is a wait that has polled to the end in vain, and was over right after it had gone to sleep.
func shortInVain(w *waiter) { w.learn(shortWait/2, w.budget == spinMax) }

func TestPollsInVainGiveTheProcessorAway(t *testing.T) {
	if alone {
		t.Skip("one processor: nothing polls")
	}
	w := &waiter{}
	w.start(Hybrid, nil, false)
	if w.sharing.polls() != pollsPerCancelCheck {
		t.Fatal("it gives the processor away without a reason")
	}
	shortInVain(w)
	if !w.sharing.yields || w.sharing.polls() != pollsBeforeYield {
		t.Fatalf("%+v", w.sharing)
	}
	w.sharing.yielded()
	if w.sharing.polls() != pollsPerYield {
		t.Fatalf("it has helped: %+v", w.sharing)
	}
	w.sharing.polled()
	if w.sharing != (sharing{}) {
		t.Fatalf("the peer runs elsewhere: %+v", w.sharing)
	}
}

func TestGivingTheProcessorAwayInVainIsTriedLessOften(t *testing.T) {
	if alone {
		t.Skip("one processor: nothing polls")
	}
	w := &waiter{}
	w.start(Hybrid, nil, false)
	// waits is how many short waits go by until the next trial.
	waits := func() (n int) {
		for ; !w.sharing.yields; n++ {
			if n > 2*yieldHoldMax {
				t.Fatal("it is never tried again")
			}
			shortInVain(w)
		}
		return n
	}
	last := waits()
	for range 12 {
		w.sharing.failed()
		n := waits()
		if n < last || n > yieldHoldMax+10 {
			t.Fatalf("%d waits after %d", n, last)
		}
		last = n
	}
	if last < yieldHoldMax {
		t.Fatalf("%d waits after twelve failures", last)
	}
	// Each time that it helps takes one of them away.
	for range yieldHoldMax + 1 {
		w.sharing.yields = true
		w.sharing.yielded()
	}
	w.sharing.failed()
	if w.sharing.hold != 1 {
		t.Fatalf("%+v", w.sharing)
	}
}

// A wait that fails while the processor is given away is a failure, and so is a processor that is gone for long.
func TestLongWaitsChangeNothingAboutSharing(t *testing.T) {
	w := &waiter{}
	w.start(Hybrid, nil, false)
	w.learn(time.Second, true)
	w.learn(shortWait, true)
	if w.sharing != (sharing{}) {
		t.Fatalf("%+v", w.sharing)
	}
	if alone {
		return
	}
	w.budget = spinMax
	shortInVain(w)
	w.budget = spinMax
	shortInVain(w)
	if w.sharing.yields || w.sharing.hold != 1 {
		t.Fatalf("%+v", w.sharing)
	}
}
