package ramway

import (
	"sync/atomic"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// words is how a side says in shared memory that it is there, sleeps, or goes, and how it wakes the other side. A ring's two
// roles do it in one way, a topic's publisher and its subscribers in one each; all else about waiting and endings is the
// endpoint's. Asked where a call waits, begins or ends, never on the way of a message.
//
// Each method is given the endpoint: a pointer from here back to it would keep a forgotten handle from being collected.
type words interface {
	// announce makes this side known, with these flags, and gives how often its role was attached.
	announce(h *endpoint, flags uint32) (epoch uint32)
	// announceClose says that this side closed.
	announceClose(h *endpoint)
	// wakePeer wakes the other side whether it waits or not.
	wakePeer(h *endpoint)
	// follow acts on what the other side says of itself, calls agree, and gives its flags and whether it has closed.
	follow(h *endpoint) (flags uint32, closed bool)
	// arm says that this side is about to sleep, which is a full fence. It gives the value to sleep on, and how long at most.
	arm(h *endpoint) (expected uint32, longest time.Duration)
	// disarm says that it sleeps no more.
	disarm(h *endpoint)
	// flagsChanged makes the other side load the flags of this one, where it does not do so each time.
	flagsChanged()
	// unordered says whether a waker does not fence, so that a side that cannot make up for it may miss a wake-up.
	unordered(h *endpoint) bool
	// ended is how the other side has ended, as an error. System calls are made only if askSystem says so.
	ended(h *endpoint, askSystem bool) error
	// peerEpoch is how often the other side was attached.
	peerEpoch(h *endpoint) uint32
	// peerAlive says whether the other side is attached and its process lives.
	peerAlive(h *endpoint) bool
}

// roleWords are those of a ring's roles: a line each (ABI.md, sections 6 and 7).
type roleWords struct{}

// The order of the stores counts; each is sequentially consistent, so the last one before the wake-up is the full fence as well.
func (roleWords) announce(h *endpoint, flags uint32) uint32 {
	atomic.StoreUint32(&h.mine.wait, 0)
	return announceRole(h.mine, flags)
}

// announceRole says in a role's line that it has a new holder.
func announceRole(line *roleLine, flags uint32) (epoch uint32) {
	atomic.StoreUint32(&line.flags, flags)
	epoch = max(atomic.LoadUint32(&line.epoch)+1, 1)
	atomic.StoreUint32(&line.epoch, epoch)
	return epoch
}

func (roleWords) announceClose(h *endpoint) {
	atomic.StoreUint32(&h.mine.flags, atomic.LoadUint32(&h.mine.flags)|roleClosed)
}

func (roleWords) wakePeer(h *endpoint) { wake(&h.peer.wait) }

// wake wakes who sleeps on a role's own word, whether it sleeps or not.
func wake(word *uint32) {
	atomic.StoreUint32(word, 0)
	sys.FutexWakeAll(word)
}

func (roleWords) follow(h *endpoint) (uint32, bool) {
	flags := atomic.LoadUint32(&h.peer.flags)
	h.agree(flags&roleMembarrierCapable != 0)
	return flags, flags&roleClosed != 0
}

func (roleWords) arm(h *endpoint) (uint32, time.Duration) {
	// A full fence by itself, like every store of sync/atomic where loads of sync/atomic follow.
	atomic.StoreUint32(&h.mine.wait, 1)
	return 1, pollInterval
}

// disarm: a waker that still sees 1 makes one call too many.
func (roleWords) disarm(h *endpoint) { atomic.StoreUint32(&h.mine.wait, 0) }

func (roleWords) flagsChanged() {}

func (roleWords) unordered(h *endpoint) bool {
	return atomic.LoadUint32(&h.peer.flags)&roleFenceFree != 0
}

func (roleWords) ended(h *endpoint, askSystem bool) error { return h.peerEnded(askSystem) }

func (roleWords) peerEpoch(h *endpoint) uint32 { return atomic.LoadUint32(&h.peer.epoch) }

func (roleWords) peerAlive(h *endpoint) bool {
	return atomic.LoadUint32(&h.peer.epoch) != 0 && atomic.LoadUint32(&h.peer.flags)&roleClosed == 0 &&
		h.at.link.peerAlive(h.role)
}
