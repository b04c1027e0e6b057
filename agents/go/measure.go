package main

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/ramway/ramway/bindings/go"
)

// The loops that are timed, written as a user who wants speed would.

// cycle: message number n has the words n % cycle and those after it.
const cycle = 4096

// loop is one stretch of messages, and what came of it: the sum of all words, and when each group began and the last one
// ended.
type loop struct {
	size                int
	count, batch, group uint64
	words               uint64
	stamps              []time.Time
}

func (l *loop) stamp() { l.stamps = append(l.stamps, time.Now()) }

// words is a payload as words: it begins at a multiple of 16, and its length is one of 8.
func words(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// fill writes the words seq, seq + 1, ….
func fill(b []byte, seq uint64) {
	w := words(b)
	for len(w) >= 16 {
		p := (*[16]uint64)(w)
		p[0], p[1], p[2], p[3] = seq, seq+1, seq+2, seq+3
		p[4], p[5], p[6], p[7] = seq+4, seq+5, seq+6, seq+7
		p[8], p[9], p[10], p[11] = seq+8, seq+9, seq+10, seq+11
		p[12], p[13], p[14], p[15] = seq+12, seq+13, seq+14, seq+15
		seq += 16
		w = w[16:]
	}
	for i := range w {
		w[i] = seq + uint64(i)
	}
}

// sum adds up all words, in several sums at once where that is worth it.
func sum(b []byte) uint64 {
	w := words(b)
	var s0, s1, s2, s3 uint64
	for len(w) >= 16 {
		p := (*[16]uint64)(w)
		s0 += p[0] + p[4] + p[8] + p[12]
		s1 += p[1] + p[5] + p[9] + p[13]
		s2 += p[2] + p[6] + p[10] + p[14]
		s3 += p[3] + p[7] + p[11] + p[15]
		w = w[16:]
	}
	for _, word := range w {
		s0 += word
	}
	return s0 + s1 + s2 + s3
}

var errLength = errors.New("a message of another length than was said")

func (l *loop) put(tx *ramway.Sender, seq uint64, flush bool) error {
	slot, err := tx.Reserve(context.Background(), l.size)
	if err != nil {
		return err
	}
	fill(slot.Bytes(), seq%cycle)
	if flush {
		return slot.Commit(0, 0, l.size)
	}
	return slot.CommitUnflushed(0, 0, l.size)
}

func (l *loop) read(m ramway.Message) error {
	b := m.UnsafeBytes()
	if len(b) != l.size {
		return errLength
	}
	l.words += sum(b)
	return nil
}

func (l *loop) get(rx *ramway.Receiver) error {
	m, err := rx.Recv(context.Background())
	if err != nil {
		return err
	}
	err = l.read(m)
	m.Release()
	return err
}

// getBatch receives at least one message and at most most. How many?
func (l *loop) getBatch(rx *ramway.Receiver, most uint64) (uint64, error) {
	batch, err := rx.RecvBatch(context.Background(), int(most))
	if err != nil {
		return 0, err
	}
	for m := range batch.All() {
		if err := l.read(m); err != nil {
			return 0, err
		}
	}
	n := uint64(batch.Len())
	batch.Release()
	return n, nil
}

func (l *loop) ping(e *ends) error {
	l.stamp()
	due := l.group
	for seq := range l.count {
		if err := l.put(e.tx, seq, true); err != nil {
			return err
		}
		if err := l.get(e.rx); err != nil {
			return err
		}
		if seq+1 == due {
			due += l.group
			l.stamp()
		}
	}
	return nil
}

func (l *loop) echo(e *ends) error {
	for seq := range l.count {
		if err := l.get(e.rx); err != nil {
			return err
		}
		if err := l.put(e.tx, seq, true); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) send(e *ends) error {
	together := uint64(0)
	for seq := range l.count {
		together++
		flush := together == l.batch || seq+1 == l.count
		if flush {
			together = 0
		}
		if err := l.put(e.tx, seq, flush); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) receive(e *ends) error {
	// A stamp stands for a group: what came beyond it belongs to the next.
	for seen, due := uint64(0), uint64(1); seen < l.count; {
		if l.batch > 1 {
			n, err := l.getBatch(e.rx, min(l.batch, l.count-seen))
			if err != nil {
				return err
			}
			seen += n
		} else {
			if err := l.get(e.rx); err != nil {
				return err
			}
			seen++
		}
		if seen >= due {
			due += l.group
			l.stamp()
		}
	}
	return nil
}

// latest reads the newest message again and again.
func (l *loop) latest(e *ends) error {
	if e.sub == nil {
		panic(refusedError("do=latest: no subscriber is open"))
	}
	l.stamp()
	due := l.group
	for seen := uint64(0); seen < l.count; {
		m, err := e.sub.Latest()
		if errors.Is(err, ramway.ErrEmpty) {
			// The publisher has overtaken it again and again: a reader tries again.
			continue
		}
		if err != nil {
			return err
		}
		err = l.read(m)
		m.Release()
		if err != nil {
			return err
		}
		if seen++; seen == due {
			due += l.group
			l.stamp()
		}
	}
	return nil
}

// call makes calls of a server that is open with bare=yes.
func (l *loop) call(e *ends) error {
	request, client := make([]byte, l.size), e.client.client
	l.stamp()
	due := l.group
	for seq := range l.count {
		fill(request, seq%cycle)
		reply, err := client.Call(context.Background(), 1, request)
		if err != nil {
			return err
		}
		if len(reply.Body) != l.size {
			return errLength
		}
		// A reply's bytes begin wherever they were put.
		for at := 0; at < l.size; at += 8 {
			l.words += binary.LittleEndian.Uint64(reply.Body[at:])
		}
		if seq+1 == due {
			due += l.group
			l.stamp()
		}
	}
	return nil
}

// start is where the times that are said begin: an own clock without steps, and the kernel's at the same moment.
var start, startNs = time.Now(), monotonic()

func measure(e *ends, l *line) error {
	what := l.text("do", "")
	m := &loop{size: int(l.number("size", 0)), count: uint64(l.number("count", 0)),
		batch: uint64(l.number("batch", 1)), group: uint64(l.number("group", 1))}
	wait := l.wait()
	l.end()
	run, known := map[string]func(*ends) error{"ping": m.ping, "echo": m.echo, "send": m.send, "receive": m.receive,
		"latest": m.latest, "call": m.call}[what]
	if !known || (what == "call") != (e.client != nil) {
		panic(refusedError("do=" + what + ", or another kind of end is open"))
	}
	if e.tx != nil {
		e.tx.SetWait(wait)
	}
	if e.rx != nil {
		e.rx.SetWait(wait)
	}
	if e.socket != nil {
		run = func(*ends) error { return e.socket.measure(m, what) }
	}
	m.stamps = make([]time.Time, 0, m.count/m.group+2)
	event("ready")
	// The other side is told first: it polls by then.
	if what == "ping" || what == "send" || what == "call" {
		nextLine()
	}
	began := time.Now()
	if err := run(e); err != nil {
		return err
	}
	ended := time.Now()
	var samples []string
	for i := 1; i < len(m.stamps); i++ {
		samples = append(samples, strconv.FormatInt(m.stamps[i].Sub(m.stamps[i-1]).Nanoseconds(), 10))
	}
	at := func(t time.Time) int64 { return startNs + t.Sub(start).Nanoseconds() }
	event("measured began_ns=%d ended_ns=%d words=%d samples=%s", at(began), at(ended), m.words, strings.Join(samples, ","))
	return nil
}
