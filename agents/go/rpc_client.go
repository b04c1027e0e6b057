package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

// calling is a client and the calls that it keeps.
type calling struct {
	client  *ramway.Client
	kept    []kept
	streams []*reading
}

// kept is a call that was started.
type kept struct {
	calls   *calls
	request request
	pending *ramway.Pending
	release context.CancelFunc
}

// reading is a stream, and how far it was read.
type reading struct {
	stream   *ramway.ReplyStream
	release  context.CancelFunc
	seq      uint64
	size     int
	count    uint64
	code     uint32
	received uint64
}

func openCalling(e *ends, l *line, name string) error {
	o := ramway.ClientOptions{Timeout: time.Duration(l.number("timeout", openTimeout.Milliseconds())) * time.Millisecond, Wait: l.wait(),
		MaxBuffered: l.number("max_buffered", 0)}
	l.end()
	client, err := ramway.ConnectClient(context.Background(), name, o)
	if err != nil {
		return err
	}
	e.client = &calling{client: client}
	event("attached pid=%d peer_pid=%d max_in_flight=%d", os.Getpid(), client.PeerPID(), client.MaxInFlight())
	return nil
}

// close lets the client go. What closing says of a server that is dead does not matter.
func (c *calling) close() { _ = c.client.Close() }

// start begins one call.
func (c *calling) start(row *calls, seq uint64) (kept, error) {
	k := kept{calls: row, request: row.request(seq)}
	ctx, release := row.limit()
	k.release = release
	var err error
	if k.pending, err = c.client.Start(ctx, row.method, k.request.body, k.request.options()...); err != nil {
		release()
	}
	return k, err
}

// call makes calls, and waits for all of them.
func call(e *ends, l *line) error {
	row, count, start := l.calls(), uint64(l.number("count", 1)), uint64(l.number("start", 0))
	inFlight, cancel := int(l.number("in_flight", 1)), l.yes("cancel")
	l.end()
	c, t := e.client, newTally()
	var underWay []kept
	oldest := func() error {
		k := underWay[0]
		underWay = underWay[1:]
		defer k.release()
		if cancel && k.request.seq%2 == 1 {
			k.pending.Cancel()
			t.cancelled++
			return nil
		}
		reply, err := k.pending.Wait(context.Background())
		return t.count(row, &k.request, reply, err)
	}
	for seq := start; seq < start+count; seq++ {
		if inFlight == 1 && !cancel {
			r := row.request(seq)
			ctx, release := row.limit()
			reply, err := c.client.Call(ctx, row.method, r.body, r.options()...)
			release()
			if err := t.count(row, &r, reply, err); err != nil {
				return err
			}
			continue
		}
		if len(underWay) >= inFlight {
			if err := oldest(); err != nil {
				return err
			}
		}
		k, err := c.start(row, seq)
		if err != nil {
			if err := t.count(row, &k.request, ramway.Reply{}, err); err != nil {
				return err
			}
			continue
		}
		underWay = append(underWay, k)
	}
	for len(underWay) > 0 {
		if err := oldest(); err != nil {
			return err
		}
	}
	t.say(fmt.Sprintf("called count=%d", count))
	return nil
}

// startCalls makes calls, which are kept.
func startCalls(e *ends, l *line) error {
	row, count, first := l.calls(), uint64(l.number("count", 1)), uint64(l.number("start", 0))
	l.end()
	for seq := first; seq < first+count; seq++ {
		k, err := e.client.start(row, seq)
		if err != nil {
			return err
		}
		e.client.kept = append(e.client.kept, k)
	}
	event("started count=%d", count)
	return nil
}

// onWait is the error of a wait that was over before its call was.
func onWait(err error) bool {
	var failed *ramway.CallError
	return err != nil && err != io.EOF && !errors.As(err, &failed)
}

// collect waits for the calls that are kept.
func collect(e *ends, l *line) error {
	timeout := time.Duration(l.number("timeout", 20_000)) * time.Millisecond
	l.end()
	c, t, count := e.client, newTally(), 0
	for len(c.kept) > 0 {
		k := c.kept[0]
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		reply, err := k.pending.Wait(ctx)
		cancel()
		if onWait(err) {
			event("end %s", named(ramway.KindOf(err)))
			return nil
		}
		k.release()
		c.kept = c.kept[1:]
		count++
		if err := t.count(k.calls, &k.request, reply, err); err != nil {
			return err
		}
	}
	t.say(fmt.Sprintf("called count=%d", count))
	return nil
}

// startStreams starts calls of 4, which are kept.
func startStreams(e *ends, l *line) error {
	count, size := uint32(l.need("count")), uint32(l.need("size"))
	code, streams, start := uint32(l.number("code", 0)), uint64(l.number("streams", 1)), uint64(l.number("start", 0))
	var options []ramway.CallOption
	if window := l.maybe("window"); window >= 0 {
		options = append(options, ramway.WithWindow(int(window)))
	}
	row := &calls{deadline: -1}
	if us := l.maybe("deadline"); us >= 0 {
		row.deadline = time.Duration(us) * time.Microsecond
	}
	l.end()
	for seq := start; seq < start+streams; seq++ {
		ctx, release := row.limit()
		stream, err := e.client.client.Stream(ctx, 4, littleEndian(count, size, code, uint32(seq)), options...)
		if err != nil {
			release()
			return err
		}
		e.client.streams = append(e.client.streams,
			&reading{stream: stream, release: release, seq: seq, size: int(size), count: uint64(count), code: code})
	}
	event("started count=%d", streams)
	return nil
}

// next receives an element of each stream, in turn.
func next(e *ends, l *line) error {
	timeout := time.Duration(l.number("timeout", 20_000)) * time.Millisecond
	rounds := l.maybe("count")
	l.end()
	c, t, received := e.client, newTally(), 0
	for len(c.streams) > 0 && rounds != 0 {
		going := []*reading{}
		for at, r := range c.streams {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			element, err := r.stream.Next(ctx)
			cancel()
			if onWait(err) {
				c.streams = append(going, c.streams[at:]...)
				event("end %s", named(ramway.KindOf(err)))
				return nil
			}
			ended, err := r.take(element, err, t)
			if err != nil {
				return err
			}
			if ended {
				r.release()
			} else {
				received++
				going = append(going, r)
			}
		}
		c.streams = going
		rounds--
	}
	t.say(fmt.Sprintf("streamed received=%d", received))
	return nil
}

// take is an element, or the end; an error is what is wrong with it.
func (r *reading) take(element ramway.Reply, err error, t *tally) (ended bool, wrong error) {
	whole := func() error {
		if r.received != r.count {
			return badError{r.seq, fmt.Sprintf("%d elements instead of %d", r.received, r.count)}
		}
		return nil
	}
	var failed *ramway.CallError
	switch {
	case err == nil:
		wrong = same(r.seq, "element", element.Body, run(r.seq+r.received, r.size))
		r.received++
		t.bytes += uint64(len(element.Body))
		return false, wrong
	case err == io.EOF && r.code != 0:
		return true, badError{r.seq, "it is complete in place of an error"}
	case err == io.EOF:
		t.names["Ok"]++
		return true, whole()
	case !errors.As(err, &failed):
		return true, err
	}
	t.failed(failed)
	if failed.Status == ramway.StatusApplication {
		if wrong = whole(); wrong == nil {
			wrong = application(r.seq, failed, r.code, fmt.Sprintf("after %d", r.count))
		}
	}
	return true, wrong
}

// cancelAll cancels what is kept.
func cancelAll(e *ends, l *line) error {
	l.end()
	c := e.client
	for _, r := range c.streams {
		r.stream.Cancel()
		r.release()
	}
	for _, k := range c.kept {
		k.pending.Cancel()
		k.release()
	}
	event("cancelled count=%d", len(c.streams)+len(c.kept))
	c.streams, c.kept = nil, nil
	return nil
}

func health(e *ends, l *line) error {
	l.end()
	err := e.client.client.Ping(context.Background())
	var failed *ramway.CallError
	switch {
	case err == nil:
		event("healthy")
	case errors.As(err, &failed):
		name, number := outcome(failed)
		event("end name=%s number=%d", name, number)
	default:
		return err
	}
	return nil
}

func describe(e *ends, l *line) error {
	l.end()
	methods, err := e.client.client.Describe(context.Background())
	if err != nil {
		return err
	}
	all := []string{}
	for _, m := range methods {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s", m.Number, m.Name)))
	}
	event("described text=%s", strings.Join(all, ","))
	return nil
}

func state(e *ends, l *line) error {
	l.end()
	event("state in_flight=%d", e.client.client.InFlight())
	return nil
}
