package ramway

import (
	"sync/atomic"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// sleeper is how a Selector's goroutine sleeps on many words and descriptors.
//
//	where it is allowed            an io_uring in Go's poller, whose waits stay armed from one call to the next
//	without io_uring, only words   futex_waitv up to 127 words, and beyond in rounds of 1 ms
//	otherwise                      rounds of 1 ms
//
// Unlike the Rust core, which sleeps on up to 8 words by futex_waitv: here an io_uring costs less from the second word on (docs/adr/0028),
// and holds no thread.
type sleeper struct {
	// words are what is armed; the first one is the Selector's own, by which a context ends the wait. targets are their sources, and
	// target is the source that is arming.
	words   []sys.FutexWord
	targets []int
	target  int
	// descriptors are armed as well.
	descriptors []armedDescriptor
	// capable: a membarrier orders some of the words.
	capable bool
}

type armedDescriptor struct {
	target int
	source *descriptorSource
}

// withoutWaitAny is set once the kernel has refused futex_waitv.
var withoutWaitAny atomic.Bool

// begin is before the sources arm.
func (n *sleeper) begin(w *waiter) {
	own := w.notifier.word
	atomic.StoreUint32(own, 1)
	n.words = append(n.words[:0], sys.FutexWord{Word: own, Expected: 1})
	n.targets, n.descriptors, n.capable = append(n.targets[:0], -1), n.descriptors[:0], false
}

// word is for a source that sleeps on a word while that holds a value.
func (n *sleeper) word(word *uint32, expected uint32) {
	n.words = append(n.words, sys.FutexWord{Word: word, Expected: uint64(expected)})
	n.targets = append(n.targets, n.target)
}

// descriptor is for a source that sleeps until a descriptor is readable.
func (n *sleeper) descriptor(d *descriptorSource) {
	n.descriptors = append(n.descriptors, armedDescriptor{n.target, d})
}

// park has the kernel wait for all that is armed, from now on; nil: the sleep is a system call.
func (n *sleeper) park(w *waiter, longest time.Duration) *sys.Parking {
	parking := w.notifier.place(len(n.words) - 1 + len(n.descriptors))
	if parking == nil {
		return nil
	}
	parking.Begin()
	err := error(nil)
	for i := 1; i < len(n.words) && err == nil; i++ {
		err = parking.Arm(n.targets[i], n.words[i].Word, uint32(n.words[i].Expected))
	}
	for _, d := range n.descriptors {
		if err == nil {
			err = d.source.armTarget(parking, d.target)
		}
	}
	if err == nil {
		err = parking.Submit(time.Now().Add(longest))
	}
	if err != nil {
		w.notifier.removePlace()
		return nil
	}
	return parking
}

// sleep sleeps until something has happened to what is armed, or the notifier is called. It may return early without a reason.
func (n *sleeper) sleep(w *waiter, parking *sys.Parking, longest time.Duration) {
	if parking != nil {
		parking.Sleep()
		return
	}
	words := n.words[:min(len(n.words), sys.FutexWaitMax)]
	if len(words) < len(n.words) || len(n.descriptors) != 0 {
		longest = min(longest, unorderedInterval)
	}
	if len(words) > 1 && !withoutWaitAny.Load() {
		if sys.FutexWaitAny(words, longest) {
			return
		}
		withoutWaitAny.Store(true)
	}
	if len(n.words) > 1 {
		longest = min(longest, unorderedInterval)
	}
	sys.FutexWait(w.notifier.word, 1, longest)
}

// forget: so many other sources follow. What is in the kernel for those before is taken out.
func (n *sleeper) forget(w *waiter, targets int) {
	clear(n.words)
	clear(n.descriptors)
	if parking := w.notifier.parking; parking != nil && !parking.Forget(targets) {
		w.notifier.removePlace()
	}
}
