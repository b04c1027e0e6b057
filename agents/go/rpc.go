package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ramway/ramway/bindings/go"
)

// RPC: what a call asks, what it must bring, and what came of many.

// sumName is the method that is registered by name.
const sumName = "Agent.Sum"

// openRPC opens a server or a client, and says so.
func openRPC(e *ends, l *line, name string) error {
	switch role := l.text("role", ""); role {
	case "client":
		return openCalling(e, l, name)
	case "server":
		return openServing(e, l, name)
	default:
		panic(refusedError("role=" + role))
	}
}

// run is n bytes that begin with this one.
func run(first uint64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(first + uint64(i))
	}
	return b
}

func littleEndian(numbers ...uint32) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// read is the words of a body that has just so many.
func read(body []byte, n int) ([]uint32, bool) {
	if len(body) != 4*n {
		return nil, false
	}
	all := make([]uint32, n)
	for i := range all {
		all[i] = binary.LittleEndian.Uint32(body[4*i:])
	}
	return all, true
}

// maybe is a number that need not be there; -1 where it is not.
func (l *line) maybe(key string) int64 { return l.number(key, -1) }

func (l *line) need(key string) int64 {
	if _, given := l.fields[key]; !given {
		panic(refusedError(l.word + " needs " + key))
	}
	return l.number(key, 0)
}

// calls is a row of calls.
type calls struct {
	method   uint32
	messages *messages
	meta     int
	// deadline is below 0 where there is none.
	deadline time.Duration
}

// request is one call.
type request struct {
	seq        uint64
	body, meta []byte
}

func (l *line) calls() *calls {
	c := &calls{deadline: -1}
	if text := l.text("method", ""); text == "sum" {
		c.method = ramway.MethodID(sumName)
	} else if _, err := fmt.Sscan(text, &c.method); err != nil {
		panic(refusedError("method=" + text))
	}
	c.messages = newMessages(l.sizes(), int(l.number("longest", 4096)))
	c.meta = int(l.number("meta", 0))
	if us := l.maybe("deadline"); us >= 0 {
		c.deadline = time.Duration(us) * time.Microsecond
	}
	return c
}

func (c *calls) request(seq uint64) request {
	r := request{seq: seq, meta: run(seq+1, c.meta)}
	switch c.method {
	case 2:
		r.body = littleEndian(uint32(seq), uint32(c.messages.length(seq)))
	case 3:
		r.body = append(littleEndian(uint32(seq)+1), fmt.Sprintf("call %d", seq)...)
	case 6, 7:
	default:
		r.body = c.messages.make(seq).payload
	}
	return r
}

// limit is the context of one call.
func (c *calls) limit() (context.Context, context.CancelFunc) {
	if c.deadline < 0 {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), c.deadline)
}

func (r *request) options() []ramway.CallOption {
	if len(r.meta) == 0 {
		return nil
	}
	return []ramway.CallOption{ramway.WithMeta(r.meta)}
}

// check says what is wrong with a reply.
func (c *calls) check(r *request, reply ramway.Reply) error {
	var expected, meta []byte
	switch c.method {
	case 1, 5:
		expected, meta = r.body, r.meta
	case 2:
		expected = run(r.seq, int(c.messages.length(r.seq)))
	case 7:
		return c.checkSeven(r, reply.Body)
	case ramway.MethodID(sumName):
		expected = littleEndian(crc32.ChecksumIEEE(r.body))
	default:
		return badError{r.seq, fmt.Sprintf("method %d replied", c.method)}
	}
	if err := same(r.seq, "body", reply.Body, expected); err != nil {
		return err
	}
	return same(r.seq, "metadata", reply.Meta, meta)
}

func (c *calls) checkSeven(r *request, body []byte) error {
	most := uint32(0)
	if c.deadline > 0 {
		most = uint32((c.deadline + time.Millisecond - 1) / time.Millisecond)
	}
	said, right := read(body, 2)
	if !right || said[0] != uint32(os.Getpid()) || said[1] > most || (said[1] == 0) != (most == 0) {
		return badError{r.seq, fmt.Sprintf("method 7 replied %v of %d ms", said, most)}
	}
	return nil
}

func same(seq uint64, what string, found, expected []byte) error {
	if len(found) != len(expected) {
		return badError{seq, fmt.Sprintf("%s of %d bytes instead of %d", what, len(found), len(expected))}
	}
	if bytes.Equal(found, expected) {
		return nil
	}
	at := 0
	for found[at] == expected[at] {
		at++
	}
	return badError{seq, fmt.Sprintf("byte %d of the %s is %d instead of %d", at, what, found[at], expected[at])}
}

// application says whether an error of the application has this number and this text.
func application(seq uint64, failed *ramway.CallError, code uint32, text string) error {
	if failed.Code == code && failed.Text == text {
		return nil
	}
	return badError{seq, fmt.Sprintf("error %d with %q instead of %d with %q", failed.Code, failed.Text, code, text)}
}

// tally is how many calls had which outcome.
type tally struct {
	began                        time.Time
	names                        map[string]uint64
	cancelled, mayHaveRun, bytes uint64
}

func newTally() *tally { return &tally{began: time.Now(), names: map[string]uint64{}} }

// outcome is the name of how a call failed.
func outcome(failed *ramway.CallError) (name string, number uint32) {
	if failed.Status != ramway.StatusOk {
		return failed.Status.String(), uint32(failed.Status)
	}
	kind := ramway.KindOf(failed)
	return kind.String(), uint32(kind)
}

func (t *tally) failed(failed *ramway.CallError) {
	name, _ := outcome(failed)
	t.names[name]++
	if failed.MayHaveRun() {
		t.mayHaveRun++
	}
}

// count counts what came of a call, if it is as it must be; an error is what is wrong.
func (t *tally) count(c *calls, r *request, reply ramway.Reply, err error) error {
	if err == nil {
		t.bytes += uint64(len(reply.Body))
		t.names["Ok"]++
		return c.check(r, reply)
	}
	var failed *ramway.CallError
	if !errors.As(err, &failed) {
		return err
	}
	t.failed(failed)
	if failed.Status == ramway.StatusApplication && c.method == 3 {
		return application(r.seq, failed, uint32(r.seq)+1, fmt.Sprintf("call %d", r.seq))
	}
	return nil
}

// say is called and streamed.
func (t *tally) say(begin string) {
	var b strings.Builder
	b.WriteString(begin)
	names := []string{}
	for name := range t.names {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, " %s=%d", name, t.names[name])
	}
	if t.cancelled > 0 {
		fmt.Fprintf(&b, " cancelled=%d", t.cancelled)
	}
	event("%s may_have_run=%d bytes=%d elapsed_ms=%d", b.String(), t.mayHaveRun, t.bytes, time.Since(t.began).Milliseconds())
}
