package ramway

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/cpu"
	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Waiting: spin for a bounded time, then sleep, without ever missing a wake-up and without a fence on the waker's hot
// path (ABI.md, section 7). docs/adr/0017 has the figures behind the choices here.

// So many polls as yieldPolls go by before the other goroutines of this P run. After a microsecond would be fairer, but
// runtime.Gosched wakes an idle P, whose thread then takes the processor from this one or from the peer. Between two ends of
// one process they run after each pollsPerCancelCheck: one of them may be the peer.

// alone: the machine has one processor, so that spinning would only keep the peer from running. A process that is bound to one has a peer
// that runs on another.
var alone = sys.ProcessorsOnline() == 1

// withoutParking is set once the kernel has refused to wait on a futex by io_uring. RAMWAY_READINESS=thread says so
// from the start, as for the other languages.
var withoutParking atomic.Bool

func init() { withoutParking.Store(os.Getenv("RAMWAY_READINESS") == "thread") }

// waiter is how a handle waits.
type waiter struct {
	mode WaitMode
	// firstPolls is how many polls a receiver spends before the general wait; 0 where it does not spin.
	firstPolls uint32
	// budget is how many polls to spend before sleeping; it follows how long waits have lasted.
	budget uint32
	// yieldPolls is how many polls go by before other goroutines run, and spun how many there were since they last did.
	yieldPolls, spun uint32
	sharing          sharing
	// peerWasDead: the last check saw an end, so check again at once.
	peerWasDead bool
	// done is the channel of the context that is being watched, and stop ends that.
	done     <-chan struct{}
	stop     func() bool
	notifier *notifier
}

func (w *waiter) start(mode WaitMode, word *uint32, inside bool) {
	w.setMode(mode)
	w.budget, w.yieldPolls = spinMax, yieldPolls
	if inside {
		w.yieldPolls = pollsPerCancelCheck
	}
	w.notifier = &notifier{word: word}
	w.notifier.notify = w.notifier.interrupt
}

func (w *waiter) setMode(mode WaitMode) {
	w.mode, w.firstPolls = mode, firstPolls
	if mode == Block || alone {
		w.firstPolls = 0
	}
}

// await polls a word until it is not seen any more, at most polls times after the first, and returns what it saw last. Acquire.
func await(word *uint64, seen uint64, polls uint32) uint64 {
	cpu.Pauses()
	for {
		now := atomic.LoadUint64(word)
		if now != seen || polls == 0 {
			return now
		}
		cpu.Pause()
		polls--
	}
}

// spent counts polls, and lets other goroutines run after each yieldPolls.
func (w *waiter) spent(polls uint32) {
	if w.spun += polls; w.spun >= w.yieldPolls {
		w.spun = 0
		runtime.Gosched()
	}
}

// notifier interrupts a sleeper. Apart from the handle, so that a context that is watched does not keep a handle that was
// forgotten from being collected.
type notifier struct {
	mu sync.Mutex
	// word is what the sleeper sleeps on; nil once it is unmapped.
	word *uint32
	// shared is the same place, where others sleep on it too; readOnly: this process cannot write it.
	shared   *uint64
	readOnly bool
	// parking is made by the first sleep; nil where the system has no such thing.
	parking *sys.Parking
	// selecting: the sleeper sleeps by a Selector, which sleeps on the word among others.
	selecting atomic.Bool
	// notify is interrupt as a value, so that passing it on does not allocate.
	notify func()
}

// interrupt ends a sleep that has begun or is about to. The sleeper is told by something else (shut, a context) before,
// and asks for it after it has armed, so it does not matter if it arms right after this.
func (b *notifier) interrupt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.parking != nil && !b.selecting.Load():
		b.parking.Interrupt()
	case b.word == nil || b.readOnly:
		// Unmapped; or its sleeps are as short as this would take.
	case b.shared != nil:
		// The count changes, so that a sleeper that has armed does not sleep; the others check once more.
		atomic.AddUint64(b.shared, wordWake)
		sys.FutexWakeAll(b.word)
	default:
		wake(b.word)
	}
}

// place is where to sleep on so many words without holding a thread; nil if there is no such place.
func (b *notifier) place(targets int) *sys.Parking {
	// Only the sleeper changes it.
	if b.parking != nil || withoutParking.Load() {
		return b.parking
	}
	parking, err := sys.NewParking(targets)
	if err != nil {
		// Out of descriptors or memory is for now, a kernel or a policy that refuses is for good.
		if kind := osError(err, "io_uring").Kind; kind != Os && kind != NoSpace {
			withoutParking.Store(true)
		}
		return nil
	}
	b.mu.Lock()
	b.parking = parking
	b.mu.Unlock()
	return parking
}

// removePlace is for a place that does not work any more.
func (b *notifier) removePlace() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.parking != nil {
		b.parking.Close()
		b.parking = nil
	}
}

// unwatch lets the context go.
func (w *waiter) unwatch() {
	if w.stop != nil {
		w.stop()
	}
	w.stop, w.done = nil, nil
}

// close ends the watch, and no interrupt touches the word after it.
func (w *waiter) close() {
	w.unwatch()
	w.notifier.removePlace()
	w.notifier.mu.Lock()
	w.notifier.word, w.notifier.shared = nil, nil
	w.notifier.mu.Unlock()
}

// watch has the end of a context call the notifier. The registration is kept, so that waiting with the same context again
// costs nothing: equal channels are closed at the same time, whatever context they belong to.
func (w *waiter) watch(ctx context.Context, done <-chan struct{}) {
	if done == w.done {
		return
	}
	w.unwatch()
	w.done = done
	if done != nil {
		w.stop = context.AfterFunc(ctx, w.notifier.notify)
	}
}

// sleepUntil is the loop of every wait that sleeps (ABI.md, section 7): arm, check again, sleep. A waker that stores before
// the check is seen by it; one that stores later sees that this side is armed, and wakes it. arm says how long the sleep
// may last.
func sleepUntil(arm func() time.Duration, check func() (over bool, err error), sleep func(time.Duration) (over bool, err error)) error {
	for {
		longest := arm()
		over, err := check()
		if !over && err == nil {
			over, err = sleep(longest)
		}
		if over || err != nil {
			return err
		}
	}
}

// until blocks until s is ready, with nil, or there is nothing to wait for any more.
func (h *endpoint) until(ctx context.Context, s side) error {
	began, done := time.Now(), orNever(ctx).Done()
	over, err := h.calledOff(ctx, done, s)
	if !over && err == nil {
		over, err = h.spin(ctx, done, s)
	}
	if !over && err == nil {
		polledAll := h.wait.budget == spinMax
		err = h.sleep(ctx, done, s)
		h.wait.learn(time.Since(began), polledAll)
	}
	return err
}

// calledOff is why a wait must not go on, if there is a reason. What is there goes before the end of the context (then
// over is true), and so does the end of the stream: a call whose time is up at once still learns of both.
func (h *endpoint) calledOff(ctx context.Context, done <-chan struct{}, s side) (over bool, err error) {
	if h.isClosed() {
		return false, h.fail(Detached)
	}
	select {
	case <-done:
	default:
		return false, nil
	}
	if over, err := h.decide(s, h.livenessCheckDue()); over || err != nil {
		return over, err
	}
	return false, h.timeUp(ctx)
}

// timeUp is the error of a wait whose context has ended.
func (h *endpoint) timeUp(ctx context.Context) error {
	stop := contextError(ctx)
	stop.Op, stop.Name = h.doing(), h.name
	return stop
}

// livenessCheckDue says whether it is time to ask the system again whether the peer lives. The clock is the handle's, so
// that calls that each wait for less than a poll interval learn of a death too.
func (h *endpoint) livenessCheckDue() bool {
	now := time.Now()
	if !h.wait.peerWasDead && now.Sub(h.checkedAt) < pollInterval {
		return false
	}
	h.checkedAt = now
	return true
}

// decide is one check: true for ready, or how it ended. What was committed before the end is delivered before the end is.
func (h *endpoint) decide(s side, askSystem bool) (bool, error) {
	if over, err := s.ready(); over || err != nil {
		return over, err
	}
	end := s.ended(askSystem)
	if end == nil {
		if askSystem {
			h.wait.peerWasDead = false
		}
		return false, nil
	}
	// A dead peer is still dead at the next call, and a name that was removed stays removed.
	h.wait.peerWasDead = true
	// The second check: the flag or the free lock was seen after the first.
	if over, err := s.ready(); over || err != nil {
		return over, err
	}
	return false, end
}

// spin polls for a bounded time, and forever in mode Spin. True: ready.
func (h *endpoint) spin(ctx context.Context, done <-chan struct{}, s side) (bool, error) {
	w := &h.wait
	if over, err := s.ready(); over || err != nil {
		return over, err
	}
	if w.mode == Block || w.mode == Hybrid && alone {
		return false, nil
	}
	for spent := uint32(0); ; {
		polls := w.sharing.polls()
		// To give the processor away takes as long as many polls do.
		spent += max(polls, pollsPerCancelCheck)
		if s.await(polls) {
			if over, err := s.ready(); over || err != nil {
				w.budget = min(2*w.budget, spinMax)
				w.sharing.polled()
				return over, err
			}
		}
		if w.sharing.yields {
			w.sharing.yield()
			if over, err := s.ready(); over || err != nil {
				w.budget = min(2*w.budget, spinMax)
				w.sharing.yielded()
				return over, err
			}
		}
		w.spent(polls)
		if over, err := h.calledOff(ctx, done, s); over || err != nil {
			return over, err
		}
		if w.mode == Hybrid {
			if spent >= w.budget {
				return false, nil
			}
		} else if spent >= pollsPerCheck {
			spent = 0
			if over, err := h.decide(s, h.livenessCheckDue()); over || err != nil {
				return over, err
			}
			// The peer may be bound to this processor, and would not run before the end of our time slice.
			sys.Yield()
			if over, err := s.ready(); over || err != nil {
				w.sharing.inVain()
				return over, err
			}
		}
	}
}

// sleep is the rest of the wait.
func (h *endpoint) sleep(ctx context.Context, done <-chan struct{}, s side) error {
	h.wait.watch(ctx, done)
	var expected uint32
	err := sleepUntil(
		func() (longest time.Duration) {
			expected, longest = h.arm()
			return longest
		},
		func() (bool, error) { return h.decide(s, h.livenessCheckDue()) },
		func(longest time.Duration) (bool, error) { return h.sleepOnce(ctx, done, expected, longest, s) })
	h.words.disarm(h)
	return err
}

// arm is steps 1 and 2 of the sleep: say in the word that this side sleeps, then order that before the check that follows. It
// gives the value to sleep on, and how long the sleep may last.
func (h *endpoint) arm() (expected uint32, longest time.Duration) {
	expected, longest = h.words.arm(h)
	return expected, h.ordered(h.membarrierCapable && sys.Membarrier(), longest)
}

// ordered is how long the sleep may last, after a membarrier that worked, or that did not or was left out.
func (h *endpoint) ordered(worked bool, longest time.Duration) time.Duration {
	if h.membarrierCapable {
		if worked {
			return longest
		}
		// It worked once and does not now (a seccomp filter was installed since): tell the waker to fence again.
		h.membarrierCapable = false
		if h.ownFlags != nil {
			atomic.StoreUint32(h.ownFlags, atomic.LoadUint32(h.ownFlags)&^roleMembarrierCapable)
			h.words.flagsChanged()
		}
	}
	if h.words.unordered(h) {
		longest = min(longest, unorderedInterval)
	}
	return longest
}

// sleepOnce sleeps, unless the wait was called off. over and an error are those of calledOff, and of ready after a
// wake-up: what this side was woken for is nearly always there, and only to sleep again must it arm first, which costs a
// membarrier.
func (h *endpoint) sleepOnce(ctx context.Context, done <-chan struct{}, expected uint32, longest time.Duration, s side) (bool, error) {
	parking := h.wait.notifier.place(1)
	if parking != nil && !armAlone(parking, h.wait.notifier.word, expected, time.Now().Add(longest)) {
		h.wait.notifier.removePlace()
		return s.ready()
	}
	if over, err := h.calledOff(ctx, done, s); over || err != nil {
		return over, err
	}
	woken := false
	if parking != nil {
		woken = parking.Sleep()
	} else {
		// Only the sleeper's own close unmaps the word.
		woken = sys.FutexWait(h.wait.notifier.word, expected, longest)
	}
	if woken {
		return s.ready()
	}
	return false, nil
}

// armAlone is for a place with one word. False: no sleep is possible there.
func armAlone(p *sys.Parking, word *uint32, expected uint32, until time.Time) bool {
	p.Begin()
	return p.Arm(0, word, expected) == nil && p.Submit(until) == nil
}

// learn sets how long the next wait spins, by how long this one took: one that was short would have been better spent
// spinning to its end. polledAll: it has polled as long as any may.
func (w *waiter) learn(took time.Duration, polledAll bool) {
	switch {
	case took >= shortWait:
		w.budget = max(w.budget/2, spinMin)
	case w.sharing.held():
		w.budget = spinMin
	default:
		w.budget = min(2*w.budget, spinMax)
		if polledAll && w.mode == Hybrid && !alone {
			w.sharing.inVain()
		}
	}
}
