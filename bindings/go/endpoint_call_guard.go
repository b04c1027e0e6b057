package ramway

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/cpu"
	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// What callGuard.shut says.
const (
	// shutClosed: Close was called.
	shutClosed = 1
	// shutDead: endpoint.dead says what of.
	shutDead = 2
	// generalPath, in a handle of a topic: its calls take the path behind the one that is written out for a ring, which would
	// have to ask otherwise.
	generalPath = 4
)

// callGuard lets one goroutine at a time into a handle, and Close in from any.
//
// A call stores busy and then loads shut; Close stores shut and then loads busy. At least one of them has to see the
// other's store, so there must be a full fence between the two on both sides. The call's is left out where Close can
// make up for it by a membarrier: a locked instruction costs a call more than all the rest of it, because it waits until
// the stores into shared memory have left the processor. What keeps the compiler from exchanging the two is that
// sync/atomic's loads are not moved over stores before them.
type callGuard struct {
	// busy is 1 while a call is in progress. Without fences, a second call at the very same moment may go unnoticed;
	// one that finds another one waiting or working never does.
	busy uint32
	// fenced is 1 where there is no membarrier: then busy is taken by compare-and-swap.
	fenced uint32
	// shut is shutClosed, shutDead and generalPath; 0 lets calls of a ring in.
	shut uint32
	// mu is held by Close, by what can be asked from any goroutine, and by a release that comes after Close. Never
	// locked by a call that is inside the call guard.
	mu sync.Mutex
	// deferred: Close has been called while a message or slot was out; its release finishes the close.
	deferred bool
	// finished: nothing is mapped any more.
	finished bool
}

// enter begins a call; leave ends it, whatever enter said. False: the handle is shut, or a topic's.
func (g *callGuard) enter() bool {
	if !cpu.Plain || g.busy|g.fenced != 0 {
		g.enterFenced()
	} else {
		g.busy = 1
	}
	return atomic.LoadUint32(&g.shut) == 0
}

func (g *callGuard) leave() {
	if cpu.Plain {
		g.busy = 0
	} else {
		atomic.StoreUint32(&g.busy, 0)
	}
}

func (g *callGuard) enterFenced() {
	if !atomic.CompareAndSwapUint32(&g.busy, 0, 1) {
		panic("ramway: a sender or receiver is used by two goroutines at once; only Close may be called beside another call")
	}
}

// close keeps new calls out and waits until the one in progress has left, which interrupt hastens. With mu held.
func (g *callGuard) close(interrupt func()) {
	atomic.OrUint32(&g.shut, shutClosed)
	if cpu.Plain && g.fenced == 0 && !sys.Membarrier() {
		// Forbidden since the handle was made. What a store needs to become visible is some nanoseconds; there is no
		// better way to wait for it without the other side's help.
		time.Sleep(time.Millisecond)
	}
	for pause := 20 * time.Microsecond; atomic.LoadUint32(&g.busy) != 0; pause = min(2*pause, time.Millisecond) {
		interrupt()
		time.Sleep(pause)
	}
}

// isShut says whether no call is let in.
func (g *callGuard) isShut() bool { return atomic.LoadUint32(&g.shut)&(shutClosed|shutDead) != 0 }

// isClosed says whether Close was called.
func (g *callGuard) isClosed() bool { return atomic.LoadUint32(&g.shut)&shutClosed != 0 }
