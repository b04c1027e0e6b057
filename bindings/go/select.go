package ramway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/cpu"
	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Waiting for many sources at once (docs/adr/0028). select_source.go has what can be waited for, select_sleep.go how one
// goroutine sleeps on many words.

// Source is what [Select] and a [Selector] can wait for:
//
//   - a [Receiver] or [Subscriber]: ready when its TryRecv has something else to say than ErrEmpty;
//   - room in a [Sender] or [Publisher], by [Sender.Room]: when its TryReserve has something else to say than ErrFull;
//   - a [Region]: when its TryWait would say true, or its name was removed, which Wait says;
//   - a [Listener]: when its TryAccept has something else to say than ErrEmpty;
//   - a file, socket or pipe, by [Readable], or any descriptor, by [Descriptor]: when a read would not block.
//
// A close and a death (within 200 ms) count as ready. The two halves of a [Bus] are sources of their own.
type Source interface {
	source() selectable
}

// Select waits until one of the sources is ready, and gives its index; of several that are ready one at random, as Go's select
// statement does. nil is a context that is never done. It moves nothing: receive with TryRecv, send with TrySend and so on. In a
// loop use a [Selector], which allocates nothing and serves in turn.
//
// It uses the sources as their own calls do: until it returns, nobody else may, except for Close. Regions, listeners and descriptors
// are for any number of goroutines.
//
// Errors, with the index -1: ErrTimedOut or ErrInterrupted with the context's cause; ErrDetached if a source is closed, also while this waits;
// ErrBusy if a message or a slot of one is out; ErrInvalidArgument for a source that is named twice, or for none and a context
// that is never done.
//
//	switch i, err := ramway.Select(ctx, pictures, commands, answers.Room(64)); i {
//	case 0:
//		picture, err := pictures.TryRecv()
//		...
//	}
func Select(ctx context.Context, sources ...Source) (int, error) {
	s := selectors.Get().(*Selector)
	s.Set(sources...)
	ready, err := s.Wait(ctx)
	chosen := -1
	if err == nil {
		chosen = ready[rand.IntN(len(ready))]
	}
	s.Set()
	s.wait.unwatch()
	selectors.Put(s)
	return chosen, err
}

// selectors keep what a wait has made: their places to sleep, above all.
var selectors = sync.Pool{New: func() any { return NewSelector() }}

// peeks is how many calls in a row may be answered by loads alone, before all sources are checked although some have something.
const peeks = 15

// Selector is a [Select] that is used again and again: it allocates nothing, keeps in the kernel what it waits for, and serves its
// sources in turn.
//
// It is for one goroutine at a time, and so are its sources while Wait or TryWait runs (not between two calls); a second one at the
// same time is a panic. Close is safe from any goroutine.
//
// A goroutine in Wait sleeps in Go's poller and holds no thread, whatever the number of sources. Where io_uring cannot wait on futexes
// (before Linux 6.7, or forbidden) it holds a thread, and more than 127 sources, or descriptors, are checked every millisecond; so are
// all on other systems.
//
//	s := ramway.NewSelector(pictures, commands)
//	defer s.Close()
//	for {
//		ready, err := s.Wait(ctx)
//		if err != nil { ... }
//		for _, i := range ready { ... }
//	}
type Selector struct {
	callGuard
	wait    waiter
	sleeper sleeper
	sources []selectable
	// rings are the sources that are a ring's receiver, by index; nil for another one. The short way through a call is written out for
	// them: calls by way of the interface cost as much as all the rest.
	rings []*Receiver
	// wrong is what is wrong with the sources.
	wrong error
	// ready are those that are, by index. served is, by index, in which call each was the first one that was given.
	ready  []int
	served []uint64
	calls  uint64
	// unchecked is how many more calls loads alone may answer.
	unchecked int
	// checkedAt is when the system was last asked whether the peers live.
	checkedAt time.Time
}

// NewSelector waits for these sources.
func NewSelector(sources ...Source) *Selector {
	s := &Selector{checkedAt: time.Now()}
	// Asking for membarrier would register it, also for sources that do without.
	s.fenced = 1
	s.wait.start(Hybrid, new(uint32), false)
	s.Set(sources...)
	runtime.SetFinalizer(s, func(s *Selector) { s.wait.close() })
	return s
}

// Set changes the sources: from the next Wait on these are waited for, and no others.
func (s *Selector) Set(sources ...Source) {
	s.enter()
	defer s.leave()
	if s.isClosed() {
		return
	}
	clear(s.sources)
	clear(s.rings)
	s.sources, s.rings, s.ready, s.served, s.unchecked = s.sources[:0], s.rings[:0], s.ready[:0], s.served[:0], 0
	s.wrong = nil
	for i, source := range sources {
		next := source.source()
		if twin := slices.IndexFunc(s.sources, next.same); twin >= 0 {
			s.wrong = &Error{Kind: InvalidArgument, Op: "waiting for several sources",
				Text: fmt.Sprintf("sources %d and %d are the same: name each once", twin, i)}
		}
		ring, _ := source.(*Receiver)
		if ring != nil && ring.topic != nil {
			ring = nil
		}
		s.sources, s.rings, s.served = append(s.sources, next), append(s.rings, ring), append(s.served, 0)
	}
	s.ready = slices.Grow(s.ready, len(sources))
	s.sleeper.forget(&s.wait, len(sources))
}

// SetWait says how Wait waits from now on; [Hybrid] until then.
func (s *Selector) SetWait(mode WaitMode) {
	s.enter()
	s.wait.setMode(mode)
	s.leave()
}

// Wait waits until some of the sources are ready, and gives their indices: of all that are, the one that came first in the last
// answer comes last. While some have messages, room or news, the end of another, or a descriptor, may be left out of up to 15 answers in
// a row. The slice is the Selector's own, good until its next call.
//
// Errors: as for [Select]; ErrDetached if the Selector is closed.
func (s *Selector) Wait(ctx context.Context) ([]int, error) {
	s.enter()
	defer s.leave()
	return s.any(ctx, true)
}

// TryWait is [Selector.Wait] that does not wait: ErrEmpty if none is ready.
func (s *Selector) TryWait() ([]int, error) {
	s.enter()
	defer s.leave()
	return s.any(context.Background(), false)
}

// Close ends a Wait of another goroutine with ErrDetached, and lets go what the Selector has in the kernel; not its sources. Closing
// twice is fine.
func (s *Selector) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished {
		return
	}
	s.callGuard.close(s.wait.notifier.interrupt)
	s.finished = true
	s.wait.close()
	runtime.SetFinalizer(s, nil)
}

// any is Wait, inside the call guard.
func (s *Selector) any(ctx context.Context, blocking bool) ([]int, error) {
	switch {
	case s.isClosed():
		return nil, s.closed()
	case s.wrong != nil:
		return nil, s.wrong
	case len(s.sources) == 0 && blocking && orNever(ctx).Done() == nil:
		return nil, &Error{Kind: InvalidArgument, Op: "waiting for several sources",
			Text: "none is named, and the context never ends: name a source, or take a context that ends"}
	}
	begun, err := s.begin()
	if err == nil {
		err = s.find(ctx, blocking)
	}
	s.end(begun)
	if err != nil {
		return nil, err
	}
	s.inOrder()
	return s.ready, nil
}

// begin keeps other calls and a Close out of the sources, and finds those that have something to be taken, by loads. It gives how many it
// has begun.
func (s *Selector) begin() (int, error) {
	s.ready = s.ready[:0]
	for i, r := range s.rings {
		if r != nil {
			if r.enter() && r.head == r.released {
				if r.head != r.tail || atomic.LoadUint64(&r.ring.tail) != r.tail {
					s.ready = append(s.ready, i)
				}
				continue
			}
			r.leave()
		}
		source := s.sources[i]
		if err := source.begin(); err != nil {
			return i, ofSource(i, err)
		}
		if source.ready() {
			s.ready = append(s.ready, i)
		}
	}
	return len(s.sources), nil
}

// end lets the first n sources go.
func (s *Selector) end(n int) {
	for i, r := range s.rings[:n] {
		if r != nil {
			r.leave()
		} else {
			s.sources[i].end()
		}
	}
}

func (s *Selector) closed() error {
	return &Error{Kind: Detached, Op: "waiting for several sources", Text: "the Selector is closed"}
}

// ofSource adds to an error which source it is of.
func ofSource(i int, err error) error {
	told := *about(err, "", "").(*Error)
	text := told.Text
	if text == "" {
		text = kinds[told.Kind].summary
	}
	told.Op, told.Text = "waiting for several sources", fmt.Sprintf("source %d: %s", i, text)
	return &told
}

func (s *Selector) find(ctx context.Context, blocking bool) error {
	// What begin has found leaves ends and descriptors out: those of one source must not wait for ever for another to be idle.
	if s.unchecked > 0 && len(s.ready) != 0 {
		s.unchecked--
		return nil
	}
	s.unchecked = peeks
	if over, err := s.check(); over || err != nil {
		return err
	}
	if !blocking {
		return ErrEmpty
	}
	began, done := time.Now(), orNever(ctx).Done()
	over, err := s.calledOff(ctx, done)
	if !over && err == nil {
		over, err = s.spin(ctx, done)
	}
	if !over && err == nil {
		err = s.sleep(ctx, done)
		s.wait.learn(time.Since(began), false)
	}
	return err
}

// peek finds those that have something to be taken, by loads; true if there are any.
func (s *Selector) peek() bool {
	s.ready = s.ready[:0]
	for i, source := range s.sources {
		if source.ready() {
			s.ready = append(s.ready, i)
		}
	}
	return len(s.ready) != 0
}

// check finds all that are ready; true if there are any. It asks the system whether the peers live if that is due: the clock is that of all
// sources together.
func (s *Selector) check() (bool, error) {
	now := time.Now()
	ask := now.Sub(s.checkedAt) >= pollInterval
	if ask {
		s.checkedAt = now
	}
	s.ready = s.ready[:0]
	for i, source := range s.sources {
		over, err := source.check(ask)
		if err != nil {
			return false, ofSource(i, err)
		}
		if over {
			s.ready = append(s.ready, i)
		}
	}
	return len(s.ready) != 0, nil
}

// calledOff is why a wait must not go on; as endpoint.calledOff, what is there goes first.
func (s *Selector) calledOff(ctx context.Context, done <-chan struct{}) (over bool, err error) {
	if s.isClosed() {
		return false, s.closed()
	}
	select {
	case <-done:
	default:
		return false, nil
	}
	if over, err := s.check(); over || err != nil {
		return over, err
	}
	stop := contextError(ctx)
	stop.Op = "waiting for several sources"
	return false, stop
}

// spin polls for a bounded time, and for ever in mode Spin. True: some are ready.
func (s *Selector) spin(ctx context.Context, done <-chan struct{}) (bool, error) {
	w := &s.wait
	if w.mode == Block || w.mode == Hybrid && alone {
		return false, nil
	}
	// A poll is of one source.
	each := uint32(max(len(s.sources), 1))
	for spent := uint32(0); ; {
		for polls := uint32(0); polls < pollsPerCancelCheck; polls += each {
			for _, source := range s.sources {
				if source.moved() && s.peek() {
					w.budget = min(2*w.budget, spinMax)
					return true, nil
				}
			}
			cpu.Pause()
		}
		polls := max(each, pollsPerCancelCheck)
		spent += polls
		w.spent(polls)
		switch {
		case w.mode == Hybrid && spent >= w.budget:
			return false, nil
		case w.mode == Hybrid || spent < pollsPerCheck:
			if over, err := s.calledOff(ctx, done); over || err != nil {
				return over, err
			}
		default:
			spent = 0
			if over, err := s.check(); over || err != nil {
				return over, err
			}
			if over, err := s.calledOff(ctx, done); over || err != nil {
				return over, err
			}
			sys.Yield()
		}
	}
}

// inOrder puts the one that was given first longest ago at the front.
func (s *Selector) inOrder() {
	if len(s.ready) > 1 {
		slices.SortFunc(s.ready, func(a, b int) int {
			// Two that were never the first keep their order.
			if s.served[a] != s.served[b] {
				return int(s.served[a]) - int(s.served[b])
			}
			return a - b
		})
	}
	s.calls++
	s.served[s.ready[0]] = s.calls
}

// sleep is the rest of the wait: arm all words, order once for all of them, check all again, sleep once.
func (s *Selector) sleep(ctx context.Context, done <-chan struct{}) error {
	w, sleeper := &s.wait, &s.sleeper
	w.watch(ctx, done)
	err := sleepUntil(
		func() time.Duration {
			sleeper.begin(w)
			for i, source := range s.sources {
				sleeper.target = i
				source.arm(sleeper)
			}
			longest := time.Duration(pollInterval)
			// One order for all: every word is set before every check that follows.
			ordered := sleeper.capable && sys.Membarrier()
			for _, source := range s.sources {
				longest = min(longest, source.longest(ordered))
			}
			return longest
		},
		s.check,
		func(longest time.Duration) (bool, error) {
			park := sleeper.park(w, longest)
			if over, err := s.calledOff(ctx, done); over || err != nil {
				return over, err
			}
			sleeper.sleep(w, park, longest)
			return s.check()
		})
	for _, source := range s.sources {
		source.disarm()
	}
	return err
}

// localWord is a word of this process that goroutines sleep on by a Selector. Bit 0 = somebody sleeps, the rest counts; as a
// region's.
type localWord struct{ word uint32 }

// tell wakes who sleeps, after what it is told of.
func (l *localWord) tell() { notify(&l.word) }

// arm says that somebody sleeps, and gives the value to sleep on.
func (l *localWord) arm() uint32 { return atomic.OrUint32(&l.word, notifyWaiting) | notifyWaiting }
