package ramway

import (
	"sync/atomic"
	"testing"
	"time"
)

// askedLink is a link to a peer of this process that answers as the test says.
type askedLink struct {
	noLink
	isFinal, nameGone bool
	alive             func() bool
}

func (l askedLink) final() bool         { return l.isFinal }
func (l askedLink) vanished() bool      { return l.nameGone }
func (l askedLink) peerAlive(role) bool { return l.alive() }

// A bus's peer may attach and close while the system is asked whether it lives. It has closed then and has not died.
func TestPeerThatAttachesAndClosesWhileTheSystemIsAsked(t *testing.T) {
	tx, rx, err := Pair(Options{})
	expectKind(t, err, 0)
	for _, h := range []*endpoint{&tx.endpoint, &rx.endpoint} {
		atomic.StoreUint32(&h.peer.epoch, 0)
		atomic.StoreUint32(&h.peer.flags, 0)
		h.checkedAt = time.Time{}
		h.at.link = askedLink{isFinal: true, alive: func() bool {
			atomic.StoreUint32(&h.peer.epoch, 1)
			atomic.StoreUint32(&h.peer.flags, roleClosed)
			return false
		}}
	}
	_, err = rx.TryRecv()
	expectKind(t, err, Closed)
	for err = nil; err == nil; {
		err = tx.TrySend(1, make([]byte, 100_000))
	}
	expectKind(t, err, Closed)
}
