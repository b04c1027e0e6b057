package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

// serving is a server at work, in goroutines of its own.
type serving struct {
	server *ramway.Server
	// gate is closed when calls of method 5 may go on.
	gate                              chan struct{}
	open                              sync.Once
	began, ended, cancelled, elements atomic.Int64
	// down is the end of Shutdown, once that was begun; run is the end of Serve.
	down, run chan error
	joined    bool
}

func openServing(e *ends, l *line, name string) error {
	o := ramway.ServeOptions{Capacity: l.number("capacity", 65536), Align: int(l.number("align", 16)), Wait: l.wait(),
		MaxClients: int(l.number("max_clients", 0)), MaxInFlight: int(l.number("max_in_flight", 0)), MaxBytes: l.number("max_bytes", 0)}
	bare := l.text("bare", "no")
	l.end()
	if bare == "no" {
		// A handler of method 5 that waits keeps no other call from being answered.
		o.Pool = 1 << 20
	}
	server, err := ramway.BindServer(name, o)
	if err != nil {
		return err
	}
	s := &serving{server: server, gate: make(chan struct{}), run: make(chan error, 1)}
	methods, known := map[string]func() error{"no": s.methods, "yes": s.bare, "inline": s.bareInline}[bare]
	if !known {
		panic(refusedError("bare=" + bare))
	}
	if err := methods(); err != nil {
		return err
	}
	go func() { s.run <- server.Serve(context.Background()) }()
	e.server = s
	event("attached pid=%d capacity=%d", os.Getpid(), o.Capacity)
	return nil
}

// counted is a handler whose calls are counted.
func (s *serving) counted(h ramway.Handler) ramway.Handler {
	return func(ctx context.Context, r *ramway.Request) ([]byte, error) {
		s.began.Add(1)
		defer s.ended.Add(1)
		return h(ctx, r)
	}
}

// asked is the words of a request.
func asked(r *ramway.Request, n int) ([]uint32, error) {
	if numbers, right := read(r.Body, n); right {
		return numbers, nil
	}
	return nil, ramway.Fail(0, "the request is no request of this method")
}

func (s *serving) methods() error {
	for number, h := range map[uint32]ramway.Handler{
		1: func(_ context.Context, r *ramway.Request) ([]byte, error) {
			r.ReplyMeta = r.Meta
			return r.Body, nil
		},
		2: func(_ context.Context, r *ramway.Request) ([]byte, error) {
			numbers, err := asked(r, 2)
			if err != nil {
				return nil, err
			}
			return run(uint64(numbers[0]), int(numbers[1])), nil
		},
		3: func(_ context.Context, r *ramway.Request) ([]byte, error) {
			if len(r.Body) < 4 {
				return nil, ramway.Fail(0, "the request is no request of this method")
			}
			return nil, ramway.Fail(binary.LittleEndian.Uint32(r.Body), string(r.Body[4:]))
		},
		5: s.five,
		6: func(context.Context, *ramway.Request) ([]byte, error) { panic("method 6") },
		7: func(_ context.Context, r *ramway.Request) ([]byte, error) {
			left, _ := r.Remaining()
			return littleEndian(uint32(r.PeerPID()), uint32((left+time.Millisecond-1)/time.Millisecond)), nil
		},
	} {
		if err := s.server.Handle(number, s.counted(h)); err != nil {
			return err
		}
	}
	if err := s.server.HandleStream(4, s.four); err != nil {
		return err
	}
	return s.server.HandleNamed(sumName, s.counted(func(_ context.Context, r *ramway.Request) ([]byte, error) {
		return littleEndian(crc32.ChecksumIEEE(r.Body)), nil
	}))
}

// bare is what is measured: method 1 alone, and nothing that counts.
func (s *serving) bare() error {
	return s.server.Handle(1, func(_ context.Context, r *ramway.Request) ([]byte, error) { return r.Body, nil })
}

// bareInline is the same with a handler that has no goroutine of its own.
func (s *serving) bareInline() error {
	return s.server.HandleInline(1, func(r *ramway.Request, reply []byte) ([]byte, error) { return append(reply, r.Body...), nil })
}

// four is the stream of method 4.
func (s *serving) four(_ context.Context, r *ramway.Request) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s.began.Add(1)
		defer s.ended.Add(1)
		numbers, err := asked(r, 4)
		if err != nil {
			yield(nil, err)
			return
		}
		count, size, code, seq := numbers[0], numbers[1], numbers[2], numbers[3]
		for k := range uint64(count) {
			s.elements.Add(1)
			if !yield(run(uint64(seq)+k, int(size)), nil) {
				s.cancelled.Add(1)
				return
			}
		}
		if code != 0 {
			yield(nil, ramway.Fail(code, fmt.Sprintf("after %d", count)))
		}
	}
}

// five replies once the gate is open; a call that is cancelled ends at once.
func (s *serving) five(ctx context.Context, r *ramway.Request) ([]byte, error) {
	select {
	case <-s.gate:
	default:
		select {
		case <-s.gate:
		case <-ctx.Done():
			s.cancelled.Add(1)
			return nil, ctx.Err()
		}
	}
	r.ReplyMeta = r.Meta
	return r.Body, nil
}

func served(e *ends, l *line) error {
	l.end()
	s := e.server
	// First those that have ended: so no more have ended than have begun.
	ended := s.ended.Load()
	began := s.began.Load()
	event("served began=%d running=%d cancelled=%d elements=%d clients=%d", began, began-ended, s.cancelled.Load(), s.elements.Load(),
		s.server.Clients())
	return nil
}

func openGate(e *ends, l *line) error {
	l.end()
	e.server.open.Do(func() { close(e.server.gate) })
	event("opened")
	return nil
}

// shutdown begins to shut down.
func (s *serving) shutdown(limit time.Duration) {
	down := make(chan error, 1)
	s.down = down
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	go func() {
		defer cancel()
		down <- s.server.Shutdown(ctx)
	}()
}

func shutdown(e *ends, l *line) error {
	limit := time.Duration(l.need("limit")) * time.Millisecond
	l.end()
	e.server.shutdown(limit)
	event("draining")
	return nil
}

// join waits until the server has ended. That calls had to be cancelled is no failure.
func (s *serving) join() error {
	if s.joined {
		return nil
	}
	if s.down != nil {
		if err := <-s.down; err != nil && ramway.KindOf(err) != ramway.TimedOut {
			return err
		}
	}
	s.joined = true
	return <-s.run
}

func join(e *ends, l *line) error {
	l.end()
	if err := e.server.join(); err != nil {
		return err
	}
	event("ended")
	return nil
}

// close ends the server, where that has not been done.
func (s *serving) close() {
	if !s.joined {
		s.shutdown(0)
		_ = s.join()
	}
}
