package ramway

import "sync/atomic"

// The end of a stream: when a peer counts as closed or dead (ABI.md, section 8). This is the only place that decides it:
// the waits of both ends, their Try calls and WaitForPeer ask here.

// peerState is what is known of a peer without a system call.
type peerState struct {
	line *roleLine
	// isFinal: no successor can come. The peer was there when this end was made, also while its epoch is 0.
	isFinal bool
	// delivered, on a named ring, is the epoch whose close was delivered to an earlier holder of this role, or 0. It
	// ends nothing again.
	delivered uint32
}

// ending is how a peer ended.
type ending uint8

const (
	notEnded ending = iota
	endClosed
	endDead
	// endNameGone: the segment has lost its name, so no successor can attach.
	endNameGone
)

// end says whether the peer of role me has ended, and which epoch is over: if the peer that ended is a successor of that
// epoch, the epoch's own peer has ended as well. The system is asked only if askSystem says so.
//
// What was committed before the end is visible to a caller that checks after this has returned.
func (p peerState) end(l link, me role, askSystem bool) (ending, uint32) {
	epoch := p.epoch()
	switch {
	case p.closed(epoch):
		return endClosed, epoch
	case !askSystem:
		return notEnded, 0
	case l.vanished():
		return endNameGone, 0
	case !p.came(epoch) || l.peerAlive(me):
		return notEnded, 0
	}
	// A close comes before the lock or the socket goes: so check for it once more after that was seen gone. The epoch
	// too: the peer may have attached after the first load.
	epoch = p.epoch()
	switch {
	case p.closed(epoch):
		return endClosed, epoch
	// And a successor takes the lock before it clears the flag of that close.
	case l.peerAlive(me):
		return notEnded, 0
	}
	return endDead, epoch
}

// epoch is loaded before the flags, which are then those of the epoch's holder or of a later one. Acquire, as all of Go's
// atomics: pairs with the peer's attach.
func (p peerState) epoch() uint32 { return atomic.LoadUint32(&p.line.epoch) }

// closed pairs with the release of the peer's close: what it published before is visible.
func (p peerState) closed(epoch uint32) bool {
	return epoch != 0 && p.came(epoch) && atomic.LoadUint32(&p.line.flags)&roleClosed != 0
}

// came says whether there is a peer that can end. On a named ring nobody has to have come yet.
func (p peerState) came(epoch uint32) bool {
	return p.isFinal || epoch != 0 && epoch != p.delivered
}

// ended is how the other side has ended, as an error.
func (h *endpoint) ended(askSystem bool) error { return h.words.ended(h, askSystem) }

// peerEnded is peerState.end for the one peer of this handle, as an error. The epoch of a peer that is gone is kept.
func (h *endpoint) peerEnded(askSystem bool) error {
	end, epoch := peerState{h.peer, h.final, h.delivered}.end(h.at.link, h.role, askSystem)
	switch end {
	case notEnded:
		return nil
	case endNameGone:
		return h.nameVanished()
	}
	h.gone = epoch
	if end == endClosed {
		return h.fail(Closed)
	}
	return h.fail(PeerDead)
}

// nameVanished is why no successor can ever attach.
func (h *endpoint) nameVanished() error {
	return h.failf(Closed, "the segment's name was removed while it was in use (rm, or systemd's RemoveIPC): no peer can "+
		"find it any more. Create it again")
}
