package main

import (
	"errors"
	"io"
	"net"
	"time"
)

// --over unix: the same messages through net.UnixConn, to compare with. A batch is one write, and what is read is read
// into a buffer of as many messages.

type stream struct {
	conn *net.UnixConn
	plan plan
	// outgoing is what is committed and not yet written.
	outgoing []byte
	incoming []byte
	// kept is how many bytes of incoming no whole message was made of yet.
	kept int
}

func overUnix(a *args) error {
	var conn *net.UnixConn
	var err error
	switch {
	case a.listen != "":
		conn, err = acceptUnix(a.listen)
	case a.connect != "":
		conn, err = connectUnix(a.connect)
	default:
		err = usageError("--over unix needs --listen or --connect")
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	attached(1, 1, 0, 0)
	if a.command == "echo" {
		err = echoUnix(conn, a)
	} else {
		err = speakUnix(conn, a)
	}
	if err == nil {
		event("closed")
	}
	return err
}

func acceptUnix(path string) (*net.UnixConn, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	if err := listener.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	return listener.AcceptUnix()
}

func connectUnix(path string) (*net.UnixConn, error) {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		if err == nil || time.Since(began) >= patience {
			return conn, err
		}
	}
}

func speakUnix(conn *net.UnixConn, a *args) error {
	p, err := newPlan(a)
	if err != nil {
		return err
	}
	s := &stream{conn: conn, plan: p, incoming: make([]byte, p.size*p.batch)}
	switch a.command {
	case "flood":
		return s.flood()
	case "drain":
		return s.drain()
	case "ping":
		return s.ping(a)
	}
	return usageError("--over unix is for flood, drain, ping and echo")
}

// put sends a message; with flush, it and all before it are on their way when this returns.
func (s *stream) put(seq uint64, flush bool) error {
	at := len(s.outgoing)
	if cap(s.outgoing) < at+s.plan.size {
		grown := make([]byte, at, max(s.plan.size*s.plan.batch, at+s.plan.size))
		copy(grown, s.outgoing)
		s.outgoing = grown
	}
	s.outgoing = s.outgoing[:at+s.plan.size]
	fill(s.outgoing[at:], seq)
	if !flush {
		return nil
	}
	_, err := s.conn.Write(s.outgoing)
	s.outgoing = s.outgoing[:0]
	return err
}

// take receives 1 to most messages.
func (s *stream) take(most uint64) (count, total uint64, err error) {
	room := s.plan.size * int(min(most, uint64(s.plan.batch)))
	for s.kept < s.plan.size {
		n, err := s.conn.Read(s.incoming[s.kept:room])
		if err != nil {
			return 0, 0, err
		}
		s.kept += n
	}
	whole := s.kept / s.plan.size * s.plan.size
	for at := 0; at < whole; at += s.plan.size {
		total += sum(s.incoming[at : at+s.plan.size])
	}
	copy(s.incoming, s.incoming[whole:s.kept])
	s.kept -= whole
	return uint64(whole / s.plan.size), total, nil
}

func (s *stream) flood() error {
	inBatch := 0
	for seq := range s.plan.count {
		inBatch++
		flush := inBatch == s.plan.batch || seq+1 == s.plan.count
		if flush {
			inBatch = 0
		}
		if err := s.put(seq, flush); err != nil {
			return err
		}
	}
	event("sent count=%d next=%d", s.plan.count, s.plan.count)
	return nil
}

func (s *stream) drain() error {
	var seen, total uint64
	var began time.Time
	warm := s.plan.count / 10
	for _, until := range []uint64{warm, s.plan.count} {
		began = time.Now()
		for seen < until {
			n, more, err := s.take(until - seen)
			if err != nil {
				return err
			}
			seen, total = seen+n, total+more
		}
	}
	event("rate messages=%d ns=%d sum=%d", s.plan.count-warm, time.Since(began).Nanoseconds(), total)
	return nil
}

func (s *stream) ping(a *args) error {
	var total uint64
	t := newTimer(a)
	for seq := range s.plan.count {
		if err := s.put(seq, true); err != nil {
			return err
		}
		_, more, err := s.take(1)
		if err != nil {
			return err
		}
		total += more
		t.trip(seq)
	}
	t.report()
	event("sum value=%d", total)
	return nil
}

func echoUnix(conn *net.UnixConn, a *args) error {
	size := 32
	if a.sizes.kind == "fixed" {
		size = int(a.sizes.fixed)
	}
	buffer := make([]byte, size)
	received := 0
	for ; ; received++ {
		if _, err := io.ReadFull(conn, buffer); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return err
		}
		if _, err := conn.Write(buffer); err != nil {
			return err
		}
	}
	event("end name=Closed number=9 received=%d first=-1 last=-1 bytes=%d elapsed_ms=0", received, received*size)
	return nil
}
