package main

import (
	"net"
	"time"
)

// socket is open's over=unix: the same messages through net.UnixConn, to compare with. A batch is one write, and what is
// read is read into a buffer of as many messages.
type socket struct {
	conn *net.UnixConn
	// outgoing is what is committed and not yet written.
	outgoing, incoming []byte
	// kept is how many bytes of incoming no whole message was made of yet.
	kept int
}

func openSocket(listen, connect string) (*socket, error) {
	if listen != "" {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: listen, Net: "unix"})
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		if err := listener.SetDeadline(time.Now().Add(openTimeout)); err != nil {
			return nil, err
		}
		conn, err := listener.AcceptUnix()
		return &socket{conn: conn}, err
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: connect, Net: "unix"})
		if err == nil || time.Since(began) >= openTimeout {
			return &socket{conn: conn}, err
		}
	}
}

// put sends a message; with flush, it and all before it are on their way when this returns.
func (s *socket) put(l *loop, seq uint64, flush bool) error {
	at := len(s.outgoing)
	s.outgoing = s.outgoing[:at+l.size]
	fill(s.outgoing[at:], seq%cycle)
	if !flush {
		return nil
	}
	_, err := s.conn.Write(s.outgoing)
	s.outgoing = s.outgoing[:0]
	return err
}

// get receives 1 to most messages.
func (s *socket) get(l *loop, most uint64) (uint64, error) {
	room := l.size * int(min(most, l.batch))
	for s.kept < l.size {
		n, err := s.conn.Read(s.incoming[s.kept:room])
		if err != nil {
			return 0, err
		}
		s.kept += n
	}
	whole := s.kept / l.size * l.size
	for at := 0; at < whole; at += l.size {
		l.words += sum(s.incoming[at : at+l.size])
	}
	copy(s.incoming, s.incoming[whole:s.kept])
	s.kept -= whole
	return uint64(whole / l.size), nil
}

func (s *socket) measure(l *loop, what string) error {
	room := l.size * int(l.batch)
	s.outgoing, s.incoming = make([]byte, 0, room), make([]byte, room)
	sends, receives := what != "receive", what != "send"
	for seq, together, due := uint64(0), uint64(0), uint64(0); seq < l.count; {
		if what == "echo" {
			if _, err := s.get(l, 1); err != nil {
				return err
			}
		}
		if together++; sends {
			flush := together == l.batch || seq+1 == l.count
			if flush {
				together = 0
			}
			if err := s.put(l, seq, flush || receives); err != nil {
				return err
			}
		}
		n := uint64(1)
		if what == "ping" || what == "receive" {
			var err error
			if n, err = s.get(l, l.count-seq); err != nil {
				return err
			}
		}
		if seq += n; seq > due {
			due += l.group
			l.stamp()
		}
	}
	return nil
}
