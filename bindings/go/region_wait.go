package ramway

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// How a region's handle waits. However many goroutines do, one watcher sleeps on the word for all of them, so that they
// hold no thread, leave as soon as their context ends, and cost one wake-up.

// regionWatch is what the waiting goroutines of a handle and its watcher share.
type regionWatch struct {
	mu sync.Mutex
	// waiters is how many goroutines wait; running: the watcher is there.
	waiters int
	running bool
	// selecting is how many Selectors sleep on the word.
	selecting int
	// count is what the watcher knows of; when it changes, or the name is gone, changed is closed and made anew.
	count uint32
	// checkedAt is when this handle last asked whether the name is still there.
	checkedAt time.Time
	// gone is forever: a file that lost its name gets none again.
	gone    bool
	changed chan struct{}
}

// Wait blocks until somebody notifies. nil: there was a notification since the last Wait or TryWait of this handle that
// returned for one, or since the handle was opened, even if it came before this call; any number of them count as one. A
// read-only handle cannot be woken and polls every millisecond instead. A nil context is one that is never done.
//
// Errors: ErrTimedOut or ErrInterrupted when the context ends, ErrClosed if the region's name was removed while this
// waited (no one can join any more), ErrDetached when the handle is closed.
func (r *Region) Wait(ctx context.Context) error {
	count, err := r.WaitSince(ctx, r.seen.Load())
	if err == nil {
		r.seen.Store(count)
	}
	return err
}

// TryWait is [Region.Wait] without waiting: whether there was a notification. false if the handle is closed.
func (r *Region) TryWait() bool {
	if !r.enter() {
		return false
	}
	defer r.leave()
	count := r.count()
	return r.seen.Swap(count) != count
}

// Notifications is a number that changes with each notification, for [Region.WaitSince]; 0 if the handle is closed.
func (r *Region) Notifications() uint32 {
	if !r.enter() {
		return 0
	}
	defer r.leave()
	return r.count()
}

// WaitSince blocks until the number of [Region.Notifications] differs from count, and returns it. For several
// goroutines on one handle; 2^31 notifications meanwhile pass for no change.
//
// Errors: those of [Region.Wait].
func (r *Region) WaitSince(ctx context.Context, count uint32) (uint32, error) {
	ctx = orNever(ctx)
	if !r.enter() {
		return 0, r.errClosed("Wait")
	}
	defer r.leave()
	if now, changed := r.spinFor(ctx, count); changed {
		return now, nil
	}
	for {
		changed, gone := r.joinWatch()
		// After joining: what changes from now on, the watcher sees.
		if now := r.count(); now != count {
			r.leaveWatch()
			return now, nil
		}
		if gone {
			r.leaveWatch()
			return 0, r.failf(Closed, "the name was removed while this handle waited; nobody can open it any more")
		}
		select {
		case <-changed:
			r.leaveWatch()
			continue
		case <-ctx.Done():
		case <-r.closing:
		}
		r.leaveWatch()
		// A notification, then the end, then the end of the time.
		now := r.count()
		switch {
		case r.users.Load() < 0:
			return 0, r.errClosed("Wait")
		case now != count:
			return now, nil
		case r.nameGone():
			continue
		}
		end := contextError(ctx)
		end.Op, end.Name = "waiting for the region", r.name
		return 0, end
	}
}

// nameGone asks whether the name is still there, if that is a poll interval ago: the clock is the handle's, so that waits shorter
// than a poll interval learn of it too.
func (r *Region) nameGone() bool {
	w := &r.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); !w.gone && now.Sub(w.checkedAt) >= pollInterval {
		w.checkedAt = now
		w.gone = r.m.link.vanished()
	}
	return w.gone
}

// spinFor polls for as long as the handle's mode says. Other goroutines run meanwhile.
func (r *Region) spinFor(ctx context.Context, count uint32) (uint32, bool) {
	if now := r.count(); now != count {
		return now, true
	}
	if r.mode == Block || r.mode == Hybrid && runtime.NumCPU() == 1 {
		return 0, false
	}
	// Spin stops for these alone; what ends the wait is told by the loop that follows. The name is checked now and then.
	start := time.Now()
	for polls := 1; ; polls++ {
		runtime.Gosched()
		if now := r.count(); now != count {
			return now, true
		}
		if polls%16 != 0 {
			continue
		}
		passed := time.Since(start)
		if r.mode == Hybrid && passed >= regionSpin || ctx.Err() != nil || r.users.Load() < 0 {
			return 0, false
		}
		if passed >= pollInterval {
			if r.nameGone() {
				return 0, false
			}
			start = time.Now()
		}
	}
}

// joinWatch makes sure that the watcher is there. The channel is closed when it has seen a change from here on.
func (r *Region) joinWatch() (changed <-chan struct{}, gone bool) {
	w := &r.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters++
	if !w.running && !w.gone {
		w.running = true
		// Before the caller loads the count: the watcher sees a change in between.
		w.count = r.count()
		// The caller is inside, so the mapping is kept for the watcher too.
		r.users.Add(1)
		go r.runWatch()
	}
	return w.changed, w.gone
}

func (r *Region) leaveWatch() {
	r.watch.mu.Lock()
	r.watch.waiters--
	r.watch.mu.Unlock()
}

// runWatch sleeps on the word until nobody waits any more.
func (r *Region) runWatch() {
	defer r.leave()
	var armed uint32
	_ = sleepUntil(
		func() time.Duration {
			armed = r.arm()
			return pollInterval
		},
		func() (over bool, err error) { return !r.tellWaiters(r.nameGone()), nil },
		func(longest time.Duration) (over bool, err error) {
			if r.m.readOnly {
				time.Sleep(regionPollInterval)
			} else {
				sys.FutexWait(r.notifyWord(), armed, longest)
			}
			return false, nil
		})
}

// arm says in the word that somebody waits, and gives the value to sleep on: a notification changes it. A handle without
// write permission cannot say so.
func (r *Region) arm() uint32 {
	if r.m.readOnly {
		return atomic.LoadUint32(r.notifyWord())
	}
	return atomic.OrUint32(r.notifyWord(), notifyWaiting) | notifyWaiting
}

// tellWaiters wakes those who wait if there is anything new, and says whether to go on watching.
func (r *Region) tellWaiters(gone bool) (more bool) {
	w := &r.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if count := r.count(); count != w.count || gone {
		w.count = count
		close(w.changed)
		w.changed = make(chan struct{})
	}
	w.running = w.waiters != 0 && !gone && r.users.Load() >= 0
	return w.running
}

// selecting counts the Selectors that sleep on the word.
func (r *Region) selecting(more int) {
	r.watch.mu.Lock()
	r.watch.selecting += more
	r.watch.mu.Unlock()
}

// interruptWatch gets those who sleep on the word out of their sleep when the handle closes.
func (r *Region) interruptWatch() {
	for !r.m.readOnly {
		r.watch.mu.Lock()
		running := r.watch.running || r.watch.selecting != 0
		if running {
			// Who sleeps keeps the mapping. It may be just before its sleep: then it is to be woken again.
			sys.FutexWakeAll(r.notifyWord())
		}
		r.watch.mu.Unlock()
		if !running {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}
