package ramway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestErrorsAreAskedForByKind(t *testing.T) {
	all := []error{ErrNotFound, ErrAlreadyExists, ErrInvalidArgument, ErrBusy, ErrFull, ErrEmpty, ErrTooLarge, ErrTimedOut,
		ErrClosed, ErrDetached, ErrPeerDead, ErrCorrupt, ErrAbiMismatch, ErrPermissionDenied, ErrNoSpace, ErrInterrupted,
		ErrUnsupported, ErrOs, ErrLagged}
	for i, want := range all {
		kind := Kind(i + 1)
		if want != error(kind) {
			t.Fatalf("%v is not number %d", want, i+1)
		}
		e := error(&Error{Kind: kind, Op: "sending"})
		wrapped := fmt.Errorf("wrapped: %w", e)
		for j, other := range all {
			if errors.Is(e, other) != (i == j) || errors.Is(wrapped, other) != (i == j) || errors.Is(want, other) != (i == j) {
				t.Fatalf("%v and %v", e, other)
			}
		}
		if KindOf(wrapped) != kind || KindOf(want) != kind {
			t.Fatal(KindOf(wrapped))
		}
		if kind.String() == "" || !strings.Contains(e.Error(), kinds[kind].summary) || !strings.HasPrefix(kind.Error(), "ramway: ") {
			t.Fatal(e, kind)
		}
	}
	if KindOf(nil) != 0 || KindOf(io.EOF) != 0 || Kind(99).String() != "Kind(99)" || Kind(99).Error() != "ramway: error 99" {
		t.Fatal(KindOf(nil), KindOf(io.EOF), Kind(99))
	}
}

func TestErrorsOfTheStandardLibrary(t *testing.T) {
	pairs := []struct {
		kind   Kind
		target error
	}{
		{NotFound, fs.ErrNotExist}, {AlreadyExists, os.ErrExist}, {InvalidArgument, fs.ErrInvalid}, {PermissionDenied, os.ErrPermission},
		{Detached, os.ErrClosed}, {TimedOut, os.ErrDeadlineExceeded}, {TimedOut, context.DeadlineExceeded},
		{Closed, io.ErrClosedPipe}, {Closed, syscall.EPIPE}, {PeerDead, syscall.EPIPE}, {NoSpace, syscall.ENOSPC},
		{Unsupported, errors.ErrUnsupported},
	}
	for kind := NotFound; kind <= Lagged; kind++ {
		for _, p := range pairs {
			want := false
			for _, q := range pairs {
				want = want || q.kind == kind && q.target == p.target
			}
			if errors.Is(&Error{Kind: kind}, p.target) != want || errors.Is(kind, p.target) != want {
				t.Errorf("%s and %v", kind.String(), p.target)
			}
		}
		if os.IsTimeout(&Error{Kind: kind}) != (kind == TimedOut) || os.IsTimeout(kind) != (kind == TimedOut) {
			t.Error(kind)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	for want, e := range map[string]*Error{
		"ramway: nothing is there now":                          {Kind: Empty},
		"ramway: sending 'a': the peer closed":                  {Kind: Closed, Op: "sending", Name: "a"},
		"ramway: 'a': why":                                      {Kind: Os, Name: "a", Text: "why"},
		"ramway: doing: no such file or directory":              {Kind: NotFound, Op: "doing", Err: syscall.ENOENT},
		"ramway: doing: text: no space left on device":          {Kind: NoSpace, Op: "doing", Text: "text", Err: syscall.ENOSPC},
		"ramway: opening 'x': looking: interrupted system call": {Kind: Interrupted, Op: "opening", Name: "x", Text: "looking", Err: syscall.EINTR},
	} {
		if e.Error() != want {
			t.Errorf("%q, expected %q", e.Error(), want)
		}
	}
}

func TestErrorsOfARingSayWhatWasTried(t *testing.T) {
	over, stop := context.WithCancel(context.Background())
	stop()
	tx, rx, err := Pair(Options{Capacity: 4096})
	expectKind(t, err, 0)
	_, err = rx.Recv(over)
	expectText(t, err, "ramway: receiving: context canceled")
	expectText(t, tx.Send(over, 1, make([]byte, 5000)), "ramway: sending: ", "5000")
	expectKind(t, errors.Join(rx.Close(), tx.Close()), 0)
	expectText(t, tx.Send(over, 1, nil), "ramway: sending: ")

	name := newFolder(t).at("ring")
	rx, err = CreateReceiver(name, Options{Capacity: 4096})
	expectKind(t, err, 0)
	_, err = OpenSender(name, Options{Align: 64})
	expectText(t, err, "ramway: opening the ring '"+name+"': it exists, and its alignment is 16 bytes, not the 64 asked for")
	_, err = rx.Recv(over)
	expectText(t, err, "ramway: receiving from '"+name+"': context canceled")
	_, err = rx.RecvBatch(over, 0)
	expectText(t, err, "ramway: receiving from '"+name+"': a batch of at most 0")
	expectKind(t, rx.Close(), 0)
}

func TestErrnoKeepsItsNumber(t *testing.T) {
	for errno, kind := range map[syscall.Errno]Kind{
		syscall.ENOENT: NotFound, syscall.EEXIST: AlreadyExists, syscall.EACCES: PermissionDenied, syscall.EPERM: PermissionDenied,
		syscall.EROFS: PermissionDenied, syscall.ENOSPC: NoSpace, syscall.ENOMEM: NoSpace, syscall.EDQUOT: NoSpace,
		syscall.EINTR: Interrupted, syscall.ENOSYS: Unsupported, syscall.ENOTSUP: Unsupported, syscall.EMFILE: Os, syscall.EIO: Os,
	} {
		e := osError(errno, "doing")
		expectKind(t, e, kind)
		var got syscall.Errno
		if !errors.As(e, &got) || got != errno {
			t.Fatal(e)
		}
		told := about(e, "opening", "x")
		expectKind(t, told, kind)
		expectText(t, told, "opening 'x'", "doing")
	}
}

func TestContextErrors(t *testing.T) {
	why := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	e := contextError(ctx)
	if e.Kind != Interrupted || !errors.Is(e, why) || errors.Is(e, ErrTimedOut) {
		t.Fatal(e)
	}
	late, done := context.WithTimeout(context.Background(), time.Nanosecond)
	defer done()
	<-late.Done()
	if e := contextError(late); e.Kind != TimedOut || !errors.Is(e, context.DeadlineExceeded) {
		t.Fatal(e)
	}
	plain, stop := context.WithCancel(context.Background())
	stop()
	if e := contextError(plain); !errors.Is(e, context.Canceled) || !errors.Is(e, ErrInterrupted) {
		t.Fatal(e)
	}
}
