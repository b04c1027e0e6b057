package ramway

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Inline handlers: they run where their client's calls are received.

func TestInlineHandlersAnswerAsOthersDo(t *testing.T) {
	s := served(t, ServeOptions{}, func(s *Server) {
		expectKind(t, s.HandleInline(1, func(r *Request, reply []byte) ([]byte, error) {
			if len(reply) != 0 {
				t.Errorf("the reply begins with %d bytes", len(reply))
			}
			r.ReplyMeta = r.Meta
			return append(reply, r.Body...), nil
		}), 0)
		expectKind(t, s.HandleInlineNamed("Same.Bytes", func(r *Request, _ []byte) ([]byte, error) { return r.Body, nil }), 0)
		expectKind(t, s.HandleInline(3, func(*Request, []byte) ([]byte, error) { return nil, Fail(404, "no such key") }), 0)
		expectKind(t, s.HandleInline(4, func(*Request, []byte) ([]byte, error) { panic("method 4") }), 0)
		expectKind(t, s.HandleInline(5, func(*Request, []byte) ([]byte, error) { return nil, errors.New("plain") }), 0)
		expectKind(t, s.HandleInline(6, func(*Request, []byte) ([]byte, error) { runtime.Goexit(); return nil, nil }), 0)
		expectKind(t, s.Handle(7, func(context.Context, *Request) ([]byte, error) { runtime.Goexit(); return nil, nil }), 0)
		expectKind(t, s.HandleInline(1, echoInline), AlreadyExists)
	})
	c := calling(t, s, ClientOptions{})
	ctx := within(t)
	// Longer and shorter than what there is room for at once, one after another: each has its own bytes.
	for _, n := range []int{0, 1, 32, 5000, 31, 300_000, 7, replyRoomMax, replyRoomMax + 1, 3} {
		body, meta := bytes.Repeat([]byte{byte(n)}, n), bytes.Repeat([]byte{7}, n%50)
		for _, method := range []uint32{1, MethodID("Same.Bytes")} {
			r, err := c.Call(ctx, method, body, WithMeta(meta))
			expectKind(t, err, 0)
			if !bytes.Equal(r.Body, body) || method == 1 && !bytes.Equal(r.Meta, meta) {
				t.Fatalf("%d: %d bytes, %d of metadata", n, len(r.Body), len(r.Meta))
			}
		}
	}
	// A stream of one element.
	stream, err := c.Stream(ctx, 1, []byte("one"))
	expectKind(t, err, 0)
	said := []string{}
	for element, err := range stream.All(ctx) {
		expectKind(t, err, 0)
		said = append(said, string(element.Body))
	}
	if !slices.Equal(said, []string{"one"}) {
		t.Fatal(said)
	}
	for method, expected := range map[uint32]CallError{
		3: {Status: StatusApplication, Code: 404, Text: "no such key"},
		4: {Status: StatusHandlerFailed, Text: "method 4"},
		5: {Status: StatusApplication, Text: "plain"},
		6: {Status: StatusHandlerFailed, Text: string(endedText)},
		7: {Status: StatusHandlerFailed, Text: string(endedText)},
	} {
		var failed *CallError
		if _, err := c.Call(ctx, method, nil); !errors.As(err, &failed) || failed.Status != expected.Status || failed.Code != expected.Code ||
			failed.Text != expected.Text || !failed.MayHaveRun() {
			t.Fatalf("method %d: %v", method, err)
		}
	}
	expectKind(t, c.Ping(ctx), 0)
	methods, err := c.Describe(ctx)
	expectKind(t, err, 0)
	if !slices.Contains(methods, MethodInfo{MethodID("Same.Bytes"), "Same.Bytes"}) {
		t.Fatal(methods)
	}
}

// An inline handler sees that its time is over, and then has no reply; until it returns, nothing else of its client is seen.
func TestAnInlineHandlersTime(t *testing.T) {
	order := make(chan string, 3)
	s := served(t, ServeOptions{}, func(s *Server) {
		expectKind(t, s.HandleInline(1, func(r *Request, reply []byte) ([]byte, error) {
			if _, limited := r.Remaining(); !limited || r.PeerPID() == 0 {
				t.Error("no limit, or nobody")
			}
			for !r.Cancelled() {
				runtime.Gosched()
			}
			if left, _ := r.Remaining(); left != 0 {
				t.Errorf("%v are left", left)
			}
			order <- "first"
			return append(reply, "late"...), nil
		}), 0)
		expectKind(t, s.HandleInline(2, func(r *Request, reply []byte) ([]byte, error) {
			order <- "second"
			if _, limited := r.Remaining(); limited || r.Cancelled() {
				t.Error("there is no limit")
			}
			return append(reply, "second"...), nil
		}), 0)
	})
	c := calling(t, s, ClientOptions{})
	// A busy machine may need more than the first limit to begin it: then it is not run.
	for limit := 100 * time.Millisecond; ; limit *= 2 {
		soon, cancel := context.WithTimeout(background, limit)
		first, err := c.Start(soon, 1, nil)
		if err == nil {
			r, failed := c.Call(background, 2, nil)
			if failed != nil || string(r.Body) != "second" {
				t.Fatal(r, failed)
			}
			_, err = first.Wait(within(t))
		}
		cancel()
		if !errors.Is(err, TimedOut) {
			t.Fatal(err)
		}
		said := []string{}
		for len(order) != 0 {
			said = append(said, <-order)
		}
		if slices.Equal(said, []string{"first", "second"}) {
			return
		}
		if slices.Contains(said, "first") || limit > time.Minute {
			t.Fatal(said)
		}
	}
}

// Replies of inline handlers that nobody reads are parked, within the limit of bytes, each with its own bytes.
func TestInlineRepliesAreParkedAsCopies(t *testing.T) {
	const capacity, size, calls = 4096, 1000, 12
	s := served(t, ServeOptions{Capacity: capacity, MaxBytes: 8 * size}, func(s *Server) {
		expectKind(t, s.HandleInline(1, func(r *Request, reply []byte) ([]byte, error) {
			return append(reply, bytes.Repeat(r.Body, size)...), nil
		}), 0)
	})
	p := rawClient(t, s.Path())
	for id := uint64(1); id <= calls; id++ {
		p.put(typeIDCall, id, rpcWords(string([]byte{byte(id)}), 0, 0, 1, 0))
	}
	tooLarge := 0
	for id := uint64(1); id <= calls; id++ {
		got, h, body := p.reply()
		switch {
		case got != id:
			t.Fatalf("a reply to %d, expected %d", got, id)
		case h.status == rpcReplyTooLarge:
			tooLarge++
		case h.status != rpcOk || !bytes.Equal(body, bytes.Repeat([]byte{byte(id)}, size)):
			t.Fatalf("call %d: status %d, %d bytes", id, h.status, len(body))
		}
	}
	if tooLarge == calls {
		t.Fatal("none was parked")
	}
}

// Shutdown waits for an inline handler that runs, and its client is told that the server closed.
func TestShutdownWaitsForAnInlineHandler(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := served(t, ServeOptions{}, func(s *Server) {
		expectKind(t, s.HandleInline(1, func(_ *Request, reply []byte) ([]byte, error) {
			close(began)
			<-goOn
			return append(reply, "done"...), nil
		}), 0)
	})
	c := calling(t, s, ClientOptions{})
	p, err := c.Start(within(t), 1, nil)
	expectKind(t, err, 0)
	<-began
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(within(t)) }()
	select {
	case err := <-down:
		t.Fatalf("it ended before the handler: %v", err)
	case goOn <- struct{}{}:
	}
	if r, err := p.Wait(within(t)); err != nil || string(r.Body) != "done" {
		t.Fatal(r, err)
	}
	expectKind(t, <-down, 0)
	_, err = c.Call(within(t), 1, nil)
	expectKind(t, err, Closed)
}

// One client's inline handler holds up no other client.
func TestAnInlineHandlerHoldsUpItsClientOnly(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	s := served(t, ServeOptions{}, func(s *Server) {
		expectKind(t, s.HandleInline(1, func(*Request, []byte) ([]byte, error) {
			close(began)
			<-goOn
			return nil, nil
		}), 0)
		expectKind(t, s.HandleInline(2, echoInline), 0)
	})
	held, free := calling(t, s, ClientOptions{}), calling(t, s, ClientOptions{})
	p, err := held.Start(within(t), 1, nil)
	expectKind(t, err, 0)
	<-began
	for range 100 {
		r, err := free.Call(within(t), 2, []byte("free"))
		if err != nil || string(r.Body) != "free" {
			t.Fatal(r, err)
		}
	}
	close(goOn)
	_, err = p.Wait(within(t))
	expectKind(t, err, 0)
}

// A call with an inline handler allocates nothing at the server, and only its reply at the client.
func TestAnInlineCallAllocatesItsReplyOnly(t *testing.T) {
	if guardAlways {
		t.Skip("the race detector allocates")
	}
	s := served(t, ServeOptions{}, func(s *Server) { expectKind(t, s.HandleInline(1, echoInline), 0) })
	c := calling(t, s, ClientOptions{})
	body := []byte(strings.Repeat("x", 32))
	call := func() {
		if _, err := c.Call(background, 1, body); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		call()
	}
	if n := testing.AllocsPerRun(1000, call); n > 1 {
		t.Fatalf("%v allocations per call, expected 1", n)
	}
}
