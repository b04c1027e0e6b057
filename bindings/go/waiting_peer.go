package ramway

import (
	"context"
	"sync/atomic"
)

// Waiting for somebody at the other end.

// WaitForPeer waits until a receiver is attached that has not closed and whose process lives, and gives its epoch (see
// [Receiver.Epoch]); at once where one is. After ErrPeerDead this is how to wait for the successor. What was committed
// unflushed is flushed. Whatever the wait mode, it sleeps.
//
// Errors: ErrTimedOut or ErrInterrupted with the context; ErrClosed if the ring's name was removed; on a bus or pair
// ErrClosed or ErrPeerDead at once if the peer is gone, because no other one comes; ErrDetached, ErrCorrupt.
func (s *Sender) WaitForPeer(ctx context.Context) (uint32, error) {
	defer s.leave()
	if s.enter(); s.isShut() {
		return 0, s.refused()
	}
	s.flushAny()
	if s.topic == nil {
		return s.waitForPeer(ctx)
	}
	if err := s.topic.waitFor(ctx, s, 1); err != nil {
		return 0, err
	}
	return s.topic.changes(), nil
}

// WaitForPeer is [Sender.WaitForPeer] for the other end: it waits for a sender. What dead senders left can be received
// without one.
func (r *Receiver) WaitForPeer(ctx context.Context) (uint32, error) {
	defer r.leave()
	if r.enter(); r.isShut() {
		return 0, r.refused()
	}
	return r.waitForPeer(ctx)
}

func (h *endpoint) waitForPeer(ctx context.Context) (uint32, error) {
	w := &peerWait{endpoint: h}
	if err := h.asleepUntil(ctx, w); err != nil {
		return 0, err
	}
	return w.found, nil
}

// asleepUntil is until for a wait that never spins: for somebody to come.
func (h *endpoint) asleepUntil(ctx context.Context, s side) error {
	done := orNever(ctx).Done()
	over, err := h.calledOff(ctx, done, s)
	if !over && err == nil {
		err = h.sleep(ctx, done, s)
	}
	if err != nil {
		if e, own := err.(*Error); own && e.Name != "" {
			e.Op = "waiting for the " + h.peerName() + " of"
		}
	}
	return err
}

// peerName is what the other side is called.
func (h *endpoint) peerName() string {
	switch {
	case h.kind() != kindTopic:
		return h.role.other().String()
	case h.role == producer:
		return "subscribers"
	}
	return "publisher"
}

// peerWait is the side of a wait for a peer.
type peerWait struct {
	*endpoint
	// found is the peer's epoch.
	found uint32
}

// position is for spinning, which this wait never does.
func (w *peerWait) position() (*uint64, uint64) { return nil, 0 }

func (w *peerWait) await(uint32) bool { return true }

// ready says whether a peer is there. It costs a system call.
func (w *peerWait) ready() (bool, error) {
	epoch := atomic.LoadUint32(&w.peer.epoch)
	if epoch == 0 {
		return false, nil
	}
	if atomic.LoadUint32(&w.peer.flags)&roleClosed != 0 || !w.at.link.peerAlive(w.role) {
		w.gone = epoch
		return false, nil
	}
	// A successor takes the lock before it raises the epoch: until then the words are those of the one before it.
	w.found = atomic.LoadUint32(&w.peer.epoch)
	return w.found != w.gone, nil
}

// ended says that none can come any more. The end of one peer ends this wait only where it is final.
func (w *peerWait) ended(bool) error {
	if w.final {
		return w.endpoint.ended(true)
	}
	if w.at.link.vanished() {
		return w.nameVanished()
	}
	return nil
}
