package ramway

import (
	"encoding/binary"
	"errors"
	"syscall"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// How two strangers agree on a bus: section 12 of docs/ABI.md. The functions here wait for nothing.

// String is the type as people read it.
func (t handshakeType) String() string {
	if t >= hello && int(t) < len(handshakeTypeNames) {
		return handshakeTypeNames[t]
	}
	return "a message of unknown type"
}

// terms are what makes an RPC's bus of a bus: zero for a plain one.
type terms struct {
	// features are those that HELLO, WELCOME and the segment require, exactly.
	features uint32
	// maxInFlight is what WELCOME announces.
	maxInFlight uint32
}

// encode writes a message with them.
func (o terms) encode(t handshakeType, status Kind, size uint64) [handshakeSize]byte {
	b := encodeHandshake(t, status, size)
	switch t {
	case welcome:
		binary.LittleEndian.PutUint32(b[handshakeOffMaxInFlight:], o.maxInFlight)
		fallthrough
	case hello:
		binary.LittleEndian.PutUint32(b[handshakeOffFeaturesRequired:], o.features)
	}
	return b
}

// encodeHandshake writes a message of a plain bus. status counts in REFUSE and ACK, size in WELCOME; they are 0 in all others.
func encodeHandshake(t handshakeType, status Kind, size uint64) [handshakeSize]byte {
	var b [handshakeSize]byte
	le := binary.LittleEndian
	copy(b[handshakeOffMagic:], handshakeMagic)
	le.PutUint32(b[handshakeOffByteOrder:], byteOrder)
	le.PutUint16(b[handshakeOffMajor:], handshakeMajor)
	le.PutUint16(b[handshakeOffMinor:], handshakeMinor)
	le.PutUint32(b[handshakeOffType:], uint32(t))
	le.PutUint32(b[handshakeOffStatus:], uint32(status))
	le.PutUint64(b[handshakeOffSize:], size)
	return b
}

// decodeHandshake is terms.decode for a plain bus.
func decodeHandshake(b *[handshakeSize]byte, expected handshakeType) (status uint32, size uint64, err error) {
	return terms{features: handshakeFeatures}.decode(b, expected)
}

// decode reads a message that must be of this type and gives its status and size. A REFUSE in WELCOME's
// place is the error that it carries, whatever its version: the fields up to the status stay where they are forever.
func (o terms) decode(b *[handshakeSize]byte, expected handshakeType) (status uint32, size uint64, err error) {
	le := binary.LittleEndian
	if string(b[:len(handshakeMagic)]) != handshakeMagic {
		return 0, 0, failf(AbiMismatch, "the other side does not speak Ramway's bus handshake")
	}
	if le.Uint32(b[handshakeOffByteOrder:]) != byteOrder {
		return 0, 0, failf(AbiMismatch, "the other side has another byte order")
	}
	t := handshakeType(le.Uint32(b[handshakeOffType:]))
	status = le.Uint32(b[handshakeOffStatus:])
	if t == refuse && expected == welcome {
		return 0, 0, statusError(status, "the listener refused")
	}
	if major := le.Uint16(b[handshakeOffMajor:]); major != handshakeMajor {
		return 0, 0, failf(AbiMismatch, "the other side speaks version %d of the handshake, this one %d", major, handshakeMajor)
	}
	wanted, required := uint32(handshakeFeatures), le.Uint32(b[handshakeOffFeaturesRequired:])
	if expected == hello || expected == welcome {
		wanted = o.features
	}
	if unknown := required &^ wanted; unknown == featureRpc {
		return 0, 0, failf(AbiMismatch, "the other side speaks RPC, this one does not: BindServer serves RPC, ConnectClient calls")
	} else if unknown != 0 {
		return 0, 0, failf(AbiMismatch, "the other side requires features %#x, which this version lacks", unknown)
	}
	if t != expected {
		return 0, 0, failf(Corrupt, "the other side sent a message of type %d, expected %v", uint32(t), expected)
	}
	if required != wanted {
		return 0, 0, failf(AbiMismatch, "this side speaks RPC, the other one does not: expected a server or client of RPC there")
	}
	return status, le.Uint64(b[handshakeOffSize:]), nil
}

// statusError is the error that a status stands for; one that this version does not know is Os.
func statusError(status uint32, who string) *Error {
	kind := Kind(status)
	if !kind.known() {
		return failf(Os, "%s with the unknown error number %d", who, status)
	}
	summary := kinds[kind].summary
	if kind == NoSpace {
		summary = "it has no memory or descriptors left"
	}
	return failf(kind, "%s: %s (%s)", who, summary, kind.String())
}

// inboxProgress is how far a message has arrived.
type inboxProgress int

const (
	inboxPartial inboxProgress = iota
	inboxWhole
	inboxHungUp
)

// inbox is a message that arrives in pieces, and the descriptors that came with it.
type inbox struct {
	bytes  [handshakeSize]byte
	filled int
	// descriptor is the first one that came; -1 if none has.
	descriptor int
	// descriptors is how many came in all. Those beyond the first are closed on arrival.
	descriptors int
	// terms are what this side asks of the bus.
	terms terms
}

func newInbox() *inbox { return &inbox{descriptor: -1} }

// fill takes what is there without waiting, and not one byte beyond the message.
func (in *inbox) fill(socket int) (inboxProgress, error) {
	for in.filled < handshakeSize {
		got, err := sys.Receive(socket, in.bytes[in.filled:])
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return inboxPartial, nil
		case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
			return inboxHungUp, nil
		case err != nil:
			return 0, osError(err, "receiving the bus handshake")
		}
		in.descriptors += len(got.FDs)
		if got.Truncated {
			in.descriptors++
		}
		for _, fd := range got.FDs {
			if in.descriptor < 0 {
				in.descriptor = fd
			} else {
				sys.Close(fd)
			}
		}
		if got.N == 0 {
			return inboxHungUp, nil
		}
		in.filled += got.N
	}
	return inboxWhole, nil
}

// message decodes what is whole, if it came with exactly this many descriptors.
func (in *inbox) message(expected handshakeType, descriptors int) (status uint32, size uint64, err error) {
	status, size, err = in.terms.decode(&in.bytes, expected)
	if err == nil && in.descriptors != descriptors {
		err = failf(Corrupt, "%v came with %d descriptors, expected %d; they are closed", expected, in.descriptors, descriptors)
	}
	if err == nil && descriptors == 1 && in.descriptor < 0 {
		// The kernel had one for us and could not install it.
		err = osError(syscall.EMFILE, "receiving the descriptor of WELCOME")
	}
	return status, size, err
}

// takeDescriptor hands the descriptor over: the caller closes it.
func (in *inbox) takeDescriptor() int {
	fd := in.descriptor
	in.descriptor = -1
	return fd
}

// discard closes a descriptor that nobody took.
func (in *inbox) discard() {
	if in.descriptor >= 0 {
		sys.Close(in.takeDescriptor())
	}
}

// hungUp is what to say if the other side goes before its message is whole.
func (in *inbox) hungUp(expected handshakeType) error {
	return failf(PeerDead, "the other side hung up after %d of the 64 bytes of %v", in.filled, expected)
}

// silent is what to say if its time is over before.
func (in *inbox) silent(expected handshakeType) error {
	return failf(TimedOut, "only %d of the 64 bytes of %v came before the deadline", in.filled, expected)
}

// sendHandshake sends a message, with a descriptor unless that is negative. An error only says that the other side is
// gone or does not read.
func sendHandshake(socket int, t handshakeType, status Kind, size uint64, descriptor int) error {
	return terms{}.send(socket, t, status, size, descriptor)
}

// send is sendHandshake with terms.
func (o terms) send(socket int, t handshakeType, status Kind, size uint64, descriptor int) error {
	b := o.encode(t, status, size)
	err := sys.Send(socket, b[:], descriptor)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return failf(PeerDead, "the other side hung up before %v", t)
	}
	if err != nil {
		return osError(err, "sending "+t.String())
	}
	return nil
}

// checkPeer says whether the other end is a user that we deal with: our own or one that was named; never the one that
// stands for all users without a number here.
func checkPeer(peer sys.Credentials, others []uint32, option string) error {
	own := sys.EffectiveUID()
	if peer.UID == sys.OverflowUID() || peer.UID == ^uint32(0) {
		who := "it"
		if peer.UID == own {
			who = "both sides"
		}
		return failf(PermissionDenied, "the other side is user %d, which stands for every user without a number in this user "+
			"namespace and so proves nothing; run %s as another user", peer.UID, who)
	}
	if peer.UID == own {
		return nil
	}
	for _, uid := range others {
		if peer.UID == uid {
			return nil
		}
	}
	return failf(PermissionDenied,
		"the other side is user %d, we are user %d; name it in %s if it may take part", peer.UID, own, option)
}
