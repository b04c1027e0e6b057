package ramway

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/cpu"
	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// endpoint is what every end of a ring or topic has in common. Only the one goroutine inside the call guard uses its fields.
type endpoint struct {
	callGuard
	// fenceFree: publish without a fence, because the peer makes up for it with a membarrier when it goes to sleep.
	fenceFree bool
	// membarrierCapable: this process is registered with membarrier, and it worked.
	membarrierCapable bool
	// final: an ending is forever (bus, pair). On a named ring a successor may attach.
	final bool
	// peerFlags are the peer's flags as last acted upon.
	peerFlags uint32
	// dead is what this handle is dead of, if shut says shutDead.
	dead Kind
	// role is this side's.
	role role
	// align is the alignment of payloads.
	align uint32
	epoch uint32

	// mine and peer are the roles' lines: of a subscriber, which has no role, only peer; of a publisher only mine.
	mine, peer *roleLine
	// ownFlags are the flags that this side writes; nil where it writes none.
	ownFlags *uint32
	ring     *ringBlock
	data     unsafe.Pointer
	capacity uint64
	words    words

	// gone is the last epoch of the peer that was found closed or dead, or 0.
	gone uint32
	// delivered is the peer's epoch whose close an earlier holder of this role has seen, or 0; always 0 in a Sender.
	delivered uint32
	// checkedAt is when this handle last asked the system whether the peer lives.
	checkedAt time.Time
	wait      waiter
	at        *attachment
	name      string
}

// side is what the two ends do differently when they wait.
type side interface {
	// position is the peer's word, and what was last seen in it.
	position() (*uint64, uint64)
	// await polls that word about this number of times, and says whether it has changed.
	await(polls uint32) bool
	// ready says whether the wait is over, by a load of the shared position.
	ready() (bool, error)
	// ended is asked while ready says false: how the ring has ended, if it has. askSystem says whether to spend system
	// calls on whether the peer lives. Both ends have it of their endpoint.
	ended(askSystem bool) error
}

// attach prepares the endpoint of a ring and gives the positions, checked; announce makes it known (ABI.md, section 6). The
// attachment is the endpoint's: an error releases it.
func (h *endpoint) attach(a *attachment, r role, o *Options) (tail, head uint64, err error) {
	h.ring = a.ring()
	h.mine, h.peer = &h.ring.producer, &h.ring.consumer
	if r == consumer {
		h.mine, h.peer = h.peer, h.mine
	}
	h.ownFlags, h.words = &h.mine.flags, roleWords{}
	h.begin(a, r, o, &h.mine.wait)
	// Acquire: pairs with the other role's publish, and with that of this role's last holder.
	tail, head = atomic.LoadUint64(&h.ring.tail), atomic.LoadUint64(&h.ring.head)
	if !positionsAgree(tail, head, h.capacity, h.align) {
		_ = a.release()
		return 0, 0, h.fail(Corrupt)
	}
	return tail, head, nil
}

// begin is what attaching has in common for rings and topics. This side sleeps on word.
func (h *endpoint) begin(a *attachment, r role, o *Options, word *uint32) {
	h.at, h.name, h.role = a, a.name, r
	h.data, h.capacity, h.align = a.data, a.capacity, a.align
	h.final = a.link.final()
	h.membarrierCapable = !o.NoMembarrier && sys.CanMembarrier()
	if !h.membarrierCapable {
		h.fenced = 1
	}
	h.checkedAt = time.Now()
	_, inside := a.link.(noLink)
	h.wait.start(o.Wait, word, inside)
}

// announce says "I am here" in this side's words, and wakes the peer so that it checks (ABI.md, section 6).
func (h *endpoint) announce() {
	var flags uint32
	if h.membarrierCapable {
		flags = roleMembarrierCapable
	}
	h.epoch = h.words.announce(h, flags)
	h.words.wakePeer(h)
	h.peerChanged()
}

// announceClose says "I closed", after everything was published, and wakes the peer.
func (h *endpoint) announceClose() {
	h.words.announceClose(h)
	h.words.wakePeer(h)
}

// wakePeer wakes the peer whether it waits or not.
func (h *endpoint) wakePeer() { h.words.wakePeer(h) }

// publish stores a position of this side's. Release: what was read or written before goes before it. Fenced unless both
// sides agreed that it need not be, so that the load of the peer's wait word that follows is not done before it.
func (h *endpoint) publish(word *uint64, position uint64) {
	if cpu.Plain && h.fenceFree {
		cpu.StorePlain(word, position)
	} else {
		atomic.StoreUint64(word, position)
	}
}

// peerSleepsOrChanged says, after a publish, whether the peer sleeps or has changed its flags.
func (h *endpoint) peerSleepsOrChanged() bool {
	return atomic.LoadUint32(&h.peer.wait) != 0 || atomic.LoadUint32(&h.peer.flags) != h.peerFlags
}

// wakeOrUpdate acts on that. What was agreed on just now holds for this publish too: peerChanged fences, and the wait word is
// loaded once more after it.
func (h *endpoint) wakeOrUpdate() {
	h.peerChanged()
	// Any value but 0 is a waiter: a hostile one costs its writer a wake-up.
	if atomic.LoadUint32(&h.peer.wait) != 0 {
		h.wakePeer()
	}
}

// peerChanged acts on the peer's flags: who fences, and, where it is final, whether a consumer has closed. A producer's
// close is acted on where the ring is found empty, because what it sent before is delivered first.
func (h *endpoint) peerChanged() {
	var closed bool
	h.peerFlags, closed = h.words.follow(h)
	if h.role == producer && h.final && closed {
		h.die(Closed)
	}
}

// agree says in this side's flags whether it fences before it wakes: not, where every peer can make up for that.
func (h *endpoint) agree(peersCan bool) {
	h.fenceFree = cpu.Plain && h.membarrierCapable && peersCan
	// This side is the only writer of its flags. The store is a full fence, in any case: "I am plain" is visible before
	// the first publish without a fence, and a sleeper that no longer sees it can rely on fences from here on.
	own := atomic.LoadUint32(h.ownFlags) &^ roleFenceFree
	if h.fenceFree {
		own |= roleFenceFree
	}
	atomic.StoreUint32(h.ownFlags, own)
}

// die marks the handle dead, unless it is dead already, and gives what it is dead of.
func (h *endpoint) die(kind Kind) Kind {
	if atomic.LoadUint32(&h.shut)&shutDead == 0 {
		h.dead = kind
		atomic.OrUint32(&h.shut, shutDead)
	}
	return h.dead
}

// refused is why enter said no. The call that is refused has not left yet.
func (h *endpoint) refused() error {
	if !h.isClosed() {
		return h.fail(h.dead)
	}
	return h.fail(Detached)
}

// corrupt ends this handle for what the peer wrote.
func (h *endpoint) corrupt() error { return h.fail(h.die(Corrupt)) }

// fail is the error of a state that the handle or the ring is in.
func (h *endpoint) fail(kind Kind) error {
	text := ""
	if kind == Corrupt {
		text = fmt.Sprintf("the %[1]v's positions or a frame's length are not what any correct peer writes; this handle stays dead. "+
			"Recreate the %[1]v, and see SECURITY.md if the peer is not trusted", h.kind())
	}
	return &Error{Kind: kind, Op: h.doing(), Name: h.name, Text: text}
}

// kind is what the handle is an end of.
func (h *endpoint) kind() segmentKind {
	if atomic.LoadUint32(&h.shut)&generalPath != 0 {
		return kindTopic
	}
	return kindRing
}

// doing is what errors say was tried; a pair has no name to go on with.
func (h *endpoint) doing() string {
	switch {
	case h.role == producer && h.name != "":
		return "sending to"
	case h.role == producer:
		return "sending"
	case h.name != "":
		return "receiving from"
	}
	return "receiving"
}

// failf is an error with a text about this ring.
func (h *endpoint) failf(kind Kind, format string, args ...any) error {
	e := failf(kind, format, args...)
	e.Op, e.Name = h.doing(), h.name
	return e
}

// Capacity is the number of bytes of the data area. A frame takes 16 bytes more than its payload (of a topic 32), rounded up
// to Align.
func (h *endpoint) Capacity() int64 { return int64(h.capacity) }

// Align is what every payload's address is a multiple of, in bytes.
func (h *endpoint) Align() int { return int(h.align) }

// MaxMessageLen is the longest payload that ever fits, in bytes: min(capacity - 16, 2^31 - 17), and it fits whenever the
// ring is empty; of a topic min(capacity / 2 - 32, 2^31 - 33).
func (h *endpoint) MaxMessageLen() int {
	if h.kind() == kindTopic {
		return int(maxTopicMessageLen(h.capacity))
	}
	return int(maxMessageLen(h.capacity))
}

// Epoch is how often this role has been attached, this handle included; 1 is the first.
func (h *endpoint) Epoch() uint32 { return h.epoch }

// PeerEpoch is how often the other role has been attached; 0: never yet. A change means that a successor attached.
// Safe from any goroutine. 0 once the handle is closed.
func (h *endpoint) PeerEpoch() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.finished {
		return 0
	}
	return h.words.peerEpoch(h)
}

// PeerAlive says whether the other role is attached and its process lives. A stopped process is alive. One system call;
// safe from any goroutine. False once the handle is closed.
func (h *endpoint) PeerAlive() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.finished && h.words.peerAlive(h)
}

// IsClosed says whether Close was called. Safe from any goroutine.
func (h *endpoint) IsClosed() bool { return h.isClosed() }

// Name is what the handle, or its bus, was opened by; empty for a [Pair] and for a ring behind a descriptor.
func (h *endpoint) Name() string { return h.name }

// SetWait says how blocking calls of this handle wait from now on.
func (h *endpoint) SetWait(mode WaitMode) {
	h.enter()
	h.wait.setMode(mode)
	h.leave()
}

// shutDown closes the handle. Where isOut says that a slot or message is out, its end calls release, unless now says that
// nobody can have anything out any more. It returns what the handle was dead of, if its owner is to know.
func (h *endpoint) shutDown(now bool, isOut func() bool, release func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isClosed() && !(now && h.deferred) {
		return nil
	}
	h.callGuard.close(h.wait.notifier.interrupt)
	var err error
	if h.dead == Corrupt || h.dead == PeerDead && h.role == producer {
		err = h.fail(h.dead)
	}
	if !now && isOut() {
		h.deferred = true
		return err
	}
	if end := release(); err == nil {
		err = end
	}
	return err
}

// finish unmaps the memory and releases the role, after the peer was told. With mu held, and nobody inside the call guard
// or on the way in.
func (h *endpoint) finish() error {
	h.finished, h.deferred = true, false
	h.wait.close()
	at := h.at
	h.ring, h.mine, h.peer, h.ownFlags, h.data, h.at = nil, nil, nil, nil, nil, nil
	return at.release()
}

// orNever is the context, or one that is never done in place of none.
func orNever(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// kindOf is KindOf for an error that was made here: without a search, which would allocate.
func kindOf(err error) Kind {
	switch err := err.(type) {
	case *Error:
		return err.Kind
	case Kind:
		return err
	}
	return 0
}
