package ramway

import (
	"encoding/binary"
	"math"
	"strings"
	"time"
)

// The frames of RPC (ABI.md, section 20) as bytes. A header is copied before it is read, so that what was checked is what is used,
// also where the payload lies in the ring.

// callHeader begins a CALL.
type callHeader struct {
	timeoutUs, metaLen, method, window uint32
}

// replyHeader begins a REPLY.
type replyHeader struct {
	status, flags, code, metaLen uint32
}

// bodyOffset is where the body begins, from the payload's start. In 64 bits: a peer may have said anything.
func bodyOffset(metaLen uint64) uint64 {
	return (rpcHeader + metaLen + rpcHeader - 1) &^ (rpcHeader - 1)
}

// rpcPayloadLen is the length of a CALL's or REPLY's payload.
func rpcPayloadLen(meta, body []byte) uint64 {
	return bodyOffset(uint64(len(meta))) + uint64(len(body))
}

func (h callHeader) put(to []byte) {
	le := binary.LittleEndian
	le.PutUint32(to[callOffTimeoutUs:], h.timeoutUs)
	le.PutUint32(to[callOffMetaLen:], h.metaLen)
	le.PutUint32(to[callOffMethod:], h.method)
	le.PutUint32(to[callOffWindow:], h.window)
}

func (h replyHeader) put(to []byte) {
	le := binary.LittleEndian
	le.PutUint32(to[replyOffStatus:], h.status)
	le.PutUint32(to[replyOffFlags:], h.flags)
	le.PutUint32(to[replyOffCode:], h.code)
	le.PutUint32(to[replyOffMetaLen:], h.metaLen)
}

// putParts writes what follows a header. The room may hold anything.
func putParts(to, meta, body []byte) {
	at := bodyOffset(uint64(len(meta)))
	n := copy(to[rpcHeader:at], meta)
	clear(to[rpcHeader+n : at])
	copy(to[at:], body)
}

// splitParts cuts a payload whose header says this length of the metadata.
func splitParts(payload []byte, metaLen uint32) (meta, body []byte, err error) {
	at := bodyOffset(uint64(metaLen))
	if uint64(len(payload)) < at {
		return nil, nil, failf(Corrupt, "a frame of %d bytes says that %d of them are metadata", len(payload), metaLen)
	}
	if metaLen != 0 {
		meta = payload[rpcHeader : rpcHeader+metaLen : rpcHeader+metaLen]
	}
	return meta, payload[at:len(payload):len(payload)], nil
}

// decodeCall reads a CALL's payload.
func decodeCall(payload []byte) (h callHeader, meta, body []byte, err error) {
	if len(payload) < rpcHeader {
		return h, nil, nil, failf(Corrupt, "a CALL of %d bytes: expected at least %d", len(payload), rpcHeader)
	}
	le, header := binary.LittleEndian, [rpcHeader]byte(payload)
	h = callHeader{le.Uint32(header[callOffTimeoutUs:]), le.Uint32(header[callOffMetaLen:]),
		le.Uint32(header[callOffMethod:]), le.Uint32(header[callOffWindow:])}
	meta, body, err = splitParts(payload, h.metaLen)
	return h, meta, body, err
}

// decodeReply reads a REPLY's payload, and checks what can be checked without knowing the call.
func decodeReply(payload []byte) (h replyHeader, meta, body []byte, err error) {
	if len(payload) < rpcHeader {
		return h, nil, nil, failf(Corrupt, "a REPLY of %d bytes: expected at least %d", len(payload), rpcHeader)
	}
	le, header := binary.LittleEndian, [rpcHeader]byte(payload)
	h = replyHeader{le.Uint32(header[replyOffStatus:]), le.Uint32(header[replyOffFlags:]),
		le.Uint32(header[replyOffCode:]), le.Uint32(header[replyOffMetaLen:])}
	switch {
	case !Status(h.status).known():
		err = failf(Corrupt, "a REPLY has the unknown status %d", h.status)
	case h.flags&^rpcElement != 0:
		err = failf(Corrupt, "a REPLY has the unknown flags %#x", h.flags)
	case h.flags&rpcElement != 0 && h.status != rpcOk:
		err = failf(Corrupt, "an element of a stream has the status %v", Status(h.status))
	case h.code != 0 && h.status != rpcApplication:
		err = failf(Corrupt, "a REPLY with the status %v has the code %d", Status(h.status), h.code)
	default:
		meta, body, err = splitParts(payload, h.metaLen)
	}
	return h, meta, body, err
}

// decodeCancel checks a CANCEL, which is empty.
func decodeCancel(payload []byte) error {
	if len(payload) != 0 {
		return failf(Corrupt, "a CANCEL of %d bytes: expected none", len(payload))
	}
	return nil
}

// creditLen is the length of a CREDIT's payload.
const creditLen = 4

// decodeCredit reads a CREDIT.
func decodeCredit(payload []byte) (n uint32, err error) {
	if len(payload) != creditLen {
		return 0, failf(Corrupt, "a CREDIT of %d bytes: expected %d", len(payload), creditLen)
	}
	if n = binary.LittleEndian.Uint32(payload); n == 0 {
		return 0, failf(Corrupt, "a CREDIT of 0 elements: expected at least 1")
	}
	return n, nil
}

// addCredit is a sum of credit, which saturates.
func addCredit(a, b uint32) uint32 {
	if a > math.MaxUint32-b {
		return math.MaxUint32
	}
	return a + b
}

// timeoutUs is what a CALL says of what is left until a deadline: rounded up and at least 1; 0 for no deadline and for one that is farther
// away than the field can say, which the client watches itself.
func timeoutUs(deadline, now time.Time) uint32 {
	if deadline.IsZero() {
		return 0
	}
	left := deadline.Sub(now)
	if left <= 0 {
		return 1
	}
	us := (int64(left) + int64(time.Microsecond) - 1) / int64(time.Microsecond)
	if us > math.MaxUint32 {
		return 0
	}
	return uint32(us)
}

// validText is a peer's text; what is not UTF-8 in it is shown with replacement characters.
func validText(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
