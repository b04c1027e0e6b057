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
	if !s.enter() {
		defer s.leave()
		return 0, s.refused()
	}
	defer s.leave()
	s.flush()
	return s.waitForPeer(ctx)
}

// WaitForPeer is [Sender.WaitForPeer] for the other end: it waits for a sender. What dead senders left can be received
// without one.
func (r *Receiver) WaitForPeer(ctx context.Context) (uint32, error) {
	if !r.enter() {
		defer r.leave()
		return 0, r.refused()
	}
	defer r.leave()
	return r.waitForPeer(ctx)
}

func (h *endpoint) waitForPeer(ctx context.Context) (uint32, error) {
	w := &peerWait{h: h}
	done := orNever(ctx).Done()
	over, err := h.calledOff(ctx, done, w)
	if !over && err == nil {
		err = h.sleep(ctx, done, w)
	}
	if err != nil {
		if e, own := err.(*Error); own && e.Name != "" {
			e.Op = "waiting for the " + h.role.other().String() + " of"
		}
		return 0, err
	}
	return w.epoch, nil
}

// peerWait is the side of a wait for a peer.
type peerWait struct {
	h     *endpoint
	epoch uint32
}

// position is for spinning, which this wait never does.
func (w *peerWait) position() (*uint64, uint64) { return &w.h.ring.tail, 0 }

// ready says whether a peer is there. It costs a system call.
func (w *peerWait) ready() (bool, error) {
	h, peer := w.h, w.h.peer
	epoch := atomic.LoadUint32(&peer.epoch)
	if epoch == 0 {
		return false, nil
	}
	if atomic.LoadUint32(&peer.flags)&roleClosed != 0 || !h.at.link.peerAlive(h.role) {
		h.gone = epoch
		return false, nil
	}
	// A successor takes the lock before it raises the epoch: until then the words are those of the one before it.
	w.epoch = atomic.LoadUint32(&peer.epoch)
	return w.epoch != h.gone, nil
}

// ended says that none can come any more.
func (w *peerWait) ended(bool) error {
	h := w.h
	switch {
	case h.at.link.vanished():
		return h.nameVanished()
	case !h.final:
		return nil
	case atomic.LoadUint32(&h.peer.flags)&roleClosed != 0:
		return h.fail(Closed)
	case h.at.link.peerAlive(h.role):
		return nil
	}
	return h.fail(PeerDead)
}
