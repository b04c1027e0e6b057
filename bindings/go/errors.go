package ramway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Kind says what went wrong. The numbers are part of the format and never change; every language has the same ones.
//
// A Kind is itself an error, so that errors.Is(err, ramway.ErrPeerDead) asks for it.
type Kind uint32

// known says whether the format has this number.
func (k Kind) known() bool { return k >= NotFound && k <= Lagged }

// String is the kind's name in the format's description, such as "PeerDead".
func (k Kind) String() string {
	if k.known() {
		return kinds[k].name
	}
	return "Kind(" + strconv.FormatUint(uint64(k), 10) + ")"
}

// Error says in a few words what went wrong.
func (k Kind) Error() string {
	if k.known() {
		return "ramway: " + kinds[k].summary
	}
	return "ramway: error " + strconv.FormatUint(uint64(k), 10)
}

// Is makes the standard library's errors of the same meaning match: fs.ErrNotExist (NotFound), fs.ErrExist
// (AlreadyExists), fs.ErrInvalid (InvalidArgument), fs.ErrPermission (PermissionDenied), fs.ErrClosed (Detached),
// os.ErrDeadlineExceeded and context.DeadlineExceeded (TimedOut), io.ErrClosedPipe (Closed), syscall.EPIPE (Closed,
// PeerDead), syscall.ENOSPC (NoSpace) and errors.ErrUnsupported (Unsupported).
func (k Kind) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return k == NotFound
	case fs.ErrExist:
		return k == AlreadyExists
	case fs.ErrInvalid:
		return k == InvalidArgument
	case fs.ErrPermission:
		return k == PermissionDenied
	case fs.ErrClosed:
		return k == Detached
	case os.ErrDeadlineExceeded, context.DeadlineExceeded:
		return k == TimedOut
	case io.ErrClosedPipe:
		return k == Closed
	case syscall.EPIPE:
		return k == Closed || k == PeerDead
	case syscall.ENOSPC:
		return k == NoSpace
	case errors.ErrUnsupported:
		return k == Unsupported
	}
	return false
}

// Timeout says whether a deadline passed, as net.Error has it.
func (k Kind) Timeout() bool { return k == TimedOut }

// Error is what a call returns that fails: a [Kind] to decide on, and a text that says what was tried, on which name, and
// what to do. ErrFull and ErrEmpty, which a hot loop meets, are a bare Kind instead, and allocate nothing: so ask with
// errors.Is or [KindOf], which know both.
type Error struct {
	// Kind is what to decide on.
	Kind Kind
	// Op is what was tried, such as "creating the ring"; may be empty.
	Op string
	// Name is the name or path it was tried on; may be empty.
	Name string
	// Text says what was found and what to do; may be empty.
	Text string
	// Lost is how many messages were lost, if Kind is Lagged.
	Lost uint64
	// Err is the cause, if another error was: of the operating system (syscall.Errno), or of a context.
	Err error
}

// Error is "ramway: what was tried 'on what': what was found: cause".
func (e *Error) Error() string {
	text := "ramway"
	switch {
	case e.Op != "" && e.Name != "":
		text += ": " + e.Op + " '" + e.Name + "'"
	case e.Op != "":
		text += ": " + e.Op
	case e.Name != "":
		text += ": '" + e.Name + "'"
	}
	switch {
	case e.Text != "":
		text += ": " + e.Text
	case e.Kind == Lagged:
		text += fmt.Sprintf(": %d %s", e.Lost, kinds[e.Kind].summary)
	case e.Err == nil && e.Kind.known():
		text += ": " + kinds[e.Kind].summary
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches the error's [Kind] and the standard library's errors that [Kind.Is] lists.
func (e *Error) Is(target error) bool {
	if kind, ok := target.(Kind); ok {
		return e.Kind == kind
	}
	return e.Kind.Is(target)
}

// Timeout says whether a deadline passed, as net.Error has it.
func (e *Error) Timeout() bool { return e.Kind == TimedOut }

// KindOf gives an error's kind: 0 for nil and for errors that are not Ramway's.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	var kind Kind
	if errors.As(err, &kind) {
		return kind
	}
	return 0
}

// failf is an error with a text.
func failf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// osError is an error of the operating system while something was done; the kind follows from its number.
func osError(err error, doing string) *Error {
	var limit *sys.LimitError
	if errors.As(err, &limit) {
		return &Error{Kind: NoSpace, Text: doing + ": " + limit.Text}
	}
	var setting *sys.SettingError
	if errors.As(err, &setting) {
		return &Error{Kind: Unsupported, Text: doing + ": " + setting.Text}
	}
	var argument *sys.ArgumentError
	if errors.As(err, &argument) {
		return &Error{Kind: InvalidArgument, Text: doing + ": " + argument.Text}
	}
	kind := Os
	var errno syscall.Errno
	if errors.As(err, &errno) {
		kind = kindOfErrno(errno)
	}
	return &Error{Kind: kind, Text: doing, Err: err}
}

// contextError is what a call returns whose wait a context ended: TimedOut if its deadline passed (or it was cancelled
// because another one had), else Interrupted. The cause is the context's.
func contextError(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	kind := Interrupted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(cause, context.DeadlineExceeded) {
		kind = TimedOut
	}
	return &Error{Kind: kind, Err: cause}
}

func kindOfErrno(errno syscall.Errno) Kind {
	switch errno {
	case syscall.ENOENT:
		return NotFound
	case syscall.EEXIST:
		return AlreadyExists
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		return PermissionDenied
	case syscall.ENOSPC, syscall.ENOMEM, syscall.EDQUOT:
		return NoSpace
	case syscall.EINTR:
		return Interrupted
	case syscall.ENOSYS, syscall.EOPNOTSUPP:
		return Unsupported
	}
	// The same number as EOPNOTSUPP on Linux, another one on macOS.
	if errno == syscall.ENOTSUP {
		return Unsupported
	}
	return Os
}

// about adds what was tried, on which name, to an error that does not say so yet.
func about(err error, op, name string) error {
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Kind: Os, Op: op, Name: name, Err: err}
	}
	told := *e
	if told.Op == "" {
		told.Op = op
	}
	if told.Name == "" {
		told.Name = name
	}
	return &told
}
