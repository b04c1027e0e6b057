package ramway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"testing"
)

// served is a server that serves, and its path. It is shut down when the test ends.
func served(t testing.TB, o ServeOptions, methods func(s *Server)) *Server {
	t.Helper()
	s, err := BindServer(newFolder(t).at("server"), o)
	expectKind(t, err, 0)
	methods(s)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(context.Background()) }()
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(now)
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

func calling(t testing.TB, s *Server, o ClientOptions) *Client {
	t.Helper()
	c, err := ConnectClient(context.Background(), s.Path(), o)
	expectKind(t, err, 0)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func echo(_ context.Context, r *Request) ([]byte, error) { return r.Body, nil }

// counting yields as many elements as the request has bytes: its bytes.
func counting(_ context.Context, r *Request) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := range r.Body {
			if !yield(r.Body[i:i+1], nil) {
				return
			}
		}
	}
}

// Elements have the metadata that was set before them, also those that have waited for credit or room; an empty reply is an element too.
func TestElementsHaveMetadata(t *testing.T) {
	s := served(t, ServeOptions{Capacity: 4096}, func(s *Server) {
		expectKind(t, s.HandleStream(1, func(_ context.Context, r *Request) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				for n := range 40 {
					if n%2 == 0 {
						r.ReplyMeta = bytes.Repeat([]byte{byte(n)}, n+1)
					}
					if !yield(bytes.Repeat([]byte{byte(n)}, 10*n), nil) {
						return
					}
				}
			}
		}), 0)
		expectKind(t, s.Handle(2, func(_ context.Context, r *Request) ([]byte, error) {
			r.ReplyMeta = r.Meta
			return nil, nil
		}), 0)
	})
	c := calling(t, s, ClientOptions{})
	ctx := within(t)
	for _, window := range []int{1, 3, 1000} {
		stream, err := c.Stream(ctx, 1, nil, WithWindow(window))
		expectKind(t, err, 0)
		n := 0
		for element, err := range stream.All(ctx) {
			expectKind(t, err, 0)
			meta := bytes.Repeat([]byte{byte(n)}, (n+1)*(1-n%2))
			if !bytes.Equal(element.Body, bytes.Repeat([]byte{byte(n)}, 10*n)) || !bytes.Equal(element.Meta, meta) {
				t.Fatalf("window %d, element %d: %d bytes, %d of metadata", window, n, len(element.Body), len(element.Meta))
			}
			n++
		}
		if n != 40 {
			t.Fatalf("%d elements", n)
		}
	}
	stream, err := c.Stream(ctx, 2, nil, WithMeta([]byte("trace")))
	expectKind(t, err, 0)
	if element, err := stream.Next(ctx); err != nil || len(element.Body) != 0 || string(element.Meta) != "trace" {
		t.Fatal(element, err)
	}
	if _, err := stream.Next(ctx); err != io.EOF {
		t.Fatal(err)
	}
}

func TestCallsAndStreams(t *testing.T) {
	s := served(t, ServeOptions{}, func(s *Server) {
		expectKind(t, s.Handle(1, func(_ context.Context, r *Request) ([]byte, error) {
			r.ReplyMeta = r.Meta
			return r.Body, nil
		}), 0)
		expectKind(t, s.HandleStream(2, counting), 0)
		expectKind(t, s.Handle(3, func(context.Context, *Request) ([]byte, error) { return nil, Fail(404, "no such key") }), 0)
		expectKind(t, s.HandleNamed("Store.Get", echo), 0)
		expectKind(t, s.Handle(4, func(context.Context, *Request) ([]byte, error) { panic("method 4") }), 0)
		expectKind(t, s.Handle(5, func(context.Context, *Request) ([]byte, error) { return nil, errors.New("plain") }), 0)
	})
	c := calling(t, s, ClientOptions{})
	ctx := within(t)
	for n := range 100 {
		body, meta := bytes.Repeat([]byte{byte(n)}, n*n), bytes.Repeat([]byte{7}, n)
		r, err := c.Call(ctx, 1, body, WithMeta(meta))
		expectKind(t, err, 0)
		if !bytes.Equal(r.Body, body) || !bytes.Equal(r.Meta, meta) {
			t.Fatalf("%d: %d bytes, %d of metadata", n, len(r.Body), len(r.Meta))
		}
	}
	for _, window := range []int{1, 2, 3, 16, 1 << 20} {
		stream, err := c.Stream(ctx, 2, []byte("a stream of elements, longer than any window but one"), WithWindow(window))
		expectKind(t, err, 0)
		said := ""
		for element, err := range stream.All(ctx) {
			expectKind(t, err, 0)
			said += string(element.Body)
		}
		if said != "a stream of elements, longer than any window but one" {
			t.Fatal(said)
		}
	}
	stream, err := c.Stream(ctx, 1, []byte("one"))
	expectKind(t, err, 0)
	element, err := stream.Next(ctx)
	if err != nil || string(element.Body) != "one" {
		t.Fatal(element, err)
	}
	if _, err = stream.Next(ctx); err != io.EOF {
		t.Fatal(err)
	}
	expectStatus := func(err error, status Status, code uint32, text string, ran bool) {
		t.Helper()
		var failed *CallError
		if !errors.As(err, &failed) || !errors.Is(err, status) || failed.Code != code || failed.Text != text || failed.MayHaveRun() != ran {
			t.Fatalf("%v: %#v", err, failed)
		}
	}
	_, err = c.Call(ctx, 3, nil)
	expectStatus(err, StatusApplication, 404, "no such key", true)
	_, err = c.Call(ctx, 4, nil)
	expectStatus(err, StatusHandlerFailed, 0, "method 4", true)
	_, err = c.Call(ctx, 5, nil)
	expectStatus(err, StatusApplication, 0, "plain", true)
	_, err = c.Call(ctx, 99, nil)
	expectStatus(err, StatusNoSuchMethod, 0, "", false)
	_, err = c.Call(ctx, methodReserved+9, nil)
	expectStatus(err, StatusNoSuchMethod, 0, "", false)
	r, err := c.Call(ctx, MethodID("Store.Get"), []byte("by name"))
	if err != nil || string(r.Body) != "by name" {
		t.Fatal(r, err)
	}
	expectKind(t, c.Ping(ctx), 0)
	methods, err := c.Describe(ctx)
	if want := fmt.Sprintf("[{1 } {2 } {3 } {4 } {5 } {%d Store.Get}]", MethodID("Store.Get")); err != nil || fmt.Sprint(methods) != want {
		t.Fatal(methods, err)
	}
	p, err := c.Start(ctx, 1, []byte("started"))
	expectKind(t, err, 0)
	if r, err = p.Wait(ctx); err != nil || string(r.Body) != "started" {
		t.Fatal(r, err)
	}
	if c.InFlight() != 0 || c.MaxInFlight() != rpcInFlightDefault {
		t.Fatal(c.InFlight(), c.MaxInFlight())
	}
}
