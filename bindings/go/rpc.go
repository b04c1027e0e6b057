package ramway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// RPC over a bus (ABI.md, section 20): a [Server] serves methods by number, a [Client] calls them. This file has what both sides
// speak of: statuses, errors, methods.

// Status is how a call ended, in its last reply; the numbers are part of the format.
//
// A Status is itself an error, so that errors.Is(err, ramway.StatusOverloaded) asks for it.
type Status uint32

const (
	// StatusOk: the call succeeded.
	StatusOk Status = rpcOk
	// StatusApplication: the handler replied with an error of its own, a number and a text.
	StatusApplication Status = rpcApplication
	// StatusNoSuchMethod: the server has no such method. The call was not run.
	StatusNoSuchMethod Status = rpcNoSuchMethod
	// StatusTimedOut: the call's time was over before it was begun. It was not run.
	StatusTimedOut Status = rpcTimedOut
	// StatusCancelled: the call was cancelled, or its time was over while it ran.
	StatusCancelled Status = rpcCancelled
	// StatusOverloaded: a limit of the server was reached: calls in flight, bytes. The call was not run.
	StatusOverloaded Status = rpcOverloaded
	// StatusReplyTooLarge: the call was run, but its reply is longer than the ring or the server's limit of bytes takes.
	StatusReplyTooLarge Status = rpcReplyTooLarge
	// StatusDraining: the server is shutting down. The call was not run.
	StatusDraining Status = rpcDraining
	// StatusHandlerFailed: the handler panicked.
	StatusHandlerFailed Status = rpcHandlerFailed
)

var statuses = [...]struct{ name, summary string }{
	rpcOk:            {"Ok", "the call succeeded"},
	rpcApplication:   {"Application", "the application's error"},
	rpcNoSuchMethod:  {"NoSuchMethod", "the server has no such method"},
	rpcTimedOut:      {"TimedOut", "the call's time was over before it was begun"},
	rpcCancelled:     {"Cancelled", "the call was cancelled, or its time was over while it ran"},
	rpcOverloaded:    {"Overloaded", "a limit of the server was reached (calls in flight, bytes); call again later"},
	rpcReplyTooLarge: {"ReplyTooLarge", "the reply is longer than the ring or the server's limit of bytes takes; raise ServeOptions.Capacity or MaxBytes"},
	rpcDraining:      {"Draining", "the server is shutting down"},
	rpcHandlerFailed: {"HandlerFailed", "the handler failed"},
}

// known says whether the format has this number.
func (s Status) known() bool { return int64(s) < int64(len(statuses)) }

// String is the status's name in the format's description, such as "Overloaded".
func (s Status) String() string {
	if s.known() {
		return statuses[s].name
	}
	return "Status(" + strconv.FormatUint(uint64(s), 10) + ")"
}

// Error says in a few words what it means.
func (s Status) Error() string {
	if s.known() {
		return "ramway: " + statuses[s].summary
	}
	return "ramway: " + s.String()
}

// notRun says that a call with this status was not begun.
func (s Status) notRun() bool {
	switch s {
	case StatusNoSuchMethod, StatusTimedOut, StatusOverloaded, StatusDraining:
		return true
	}
	return false
}

// CallError is how a call failed: by a [Status] of the server's, or, with StatusOk, by Err: the end of the connection (ErrClosed,
// ErrPeerDead, ErrCorrupt, ErrDetached), a limit of this side (ErrTooLarge), or its own clock (ErrTimedOut). A call that this side cancelled has
// StatusCancelled, and in Err the context's cause.
//
// errors.Is asks for a Status, for a [Kind], and for the errors that match a kind: ErrTimedOut and context.DeadlineExceeded are both
// StatusTimedOut and the own clock.
//
//	var failed *ramway.CallError
//	if errors.As(err, &failed) && failed.Status == ramway.StatusApplication {
//		log.Print(failed.Code, failed.Text)
//	}
type CallError struct {
	// Status is how the call ended; StatusOk where Err says it.
	Status Status
	// Code is the application's number, if Status is StatusApplication; else 0.
	Code uint32
	// Text says what went wrong: the application's or the handler's words; may be empty.
	Text string
	// Err is the cause where it is on this side or in the connection; else nil.
	Err error

	mayHaveRun bool
	name       string
	method     uint32
}

// MayHaveRun says whether the server may have begun the call. Nothing is repeated by itself: a caller may repeat what was not run.
func (e *CallError) MayHaveRun() bool { return e.mayHaveRun }

// Error is "ramway: calling method 7 of 'name': what was wrong".
func (e *CallError) Error() string {
	var b strings.Builder
	b.WriteString("ramway")
	if e.name != "" {
		fmt.Fprintf(&b, ": calling method %d of '%s'", e.method, e.name)
	}
	switch {
	case e.Status == StatusApplication:
		fmt.Fprintf(&b, ": error %d of the application", e.Code)
	case e.Status != StatusOk:
		b.WriteString(": " + statuses[e.Status].summary)
	}
	if e.Text != "" {
		b.WriteString(": " + e.Text)
	}
	if e.Err != nil {
		cause := e.Err
		if own, is := cause.(*Error); is && own.Name == e.name {
			// What was called is said already.
			told := *own
			told.Op, told.Name = "", ""
			cause = &told
		}
		b.WriteString(": " + strings.TrimPrefix(cause.Error(), "ramway: "))
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *CallError) Unwrap() error { return e.Err }

// Is matches the status, and for StatusTimedOut what the own clock matches.
func (e *CallError) Is(target error) bool {
	if status, is := target.(Status); is {
		return e.Status == status && (status != StatusOk || e.Err == nil)
	}
	return e.Status == StatusTimedOut && (target == error(TimedOut) || TimedOut.Is(target))
}

// Timeout says whether the call's time was over, as net.Error has it.
func (e *CallError) Timeout() bool { return errors.Is(e, os.ErrDeadlineExceeded) }

// Fail is what a handler returns to end its call with an error of the application: StatusApplication, a number and a text.
//
//	return nil, ramway.Fail(404, "no such key")
func Fail(code uint32, text string) error {
	return &CallError{Status: StatusApplication, Code: code, Text: text, mayHaveRun: true}
}

// Reply is a reply, or an element of a stream: copies, which are the caller's.
type Reply struct {
	Body []byte
	// Meta is the reply's metadata; nil if it has none.
	Meta []byte
}

// MethodInfo is a method of a server, see [Client.Describe].
type MethodInfo struct {
	Number uint32
	// Name is empty where the method was registered by number.
	Name string
}

// MethodID is the number of a method's name, such as "Store.Get": the same in every language.
func MethodID(name string) uint32 {
	const first, prime = 0x811C9DC5, 0x01000193 // FNV-1a of 32 bits
	hash := uint32(first)
	for i := range len(name) {
		hash = (hash ^ uint32(name[i])) * prime
	}
	if hash >= methodReserved {
		hash -= methodReserved
	}
	return hash
}

// calledOff is how a call ended whose context has: by its own clock, or cancelled.
func calledOff(ctx context.Context) *CallError {
	cause := contextError(ctx)
	if cause.Kind == TimedOut {
		return &CallError{Err: cause}
	}
	return &CallError{Status: StatusCancelled, Err: cause}
}
