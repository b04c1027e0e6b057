package ramway

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
)

// What a call costs. Compare only what one run says: BenchmarkCall has an echo over a Unix socket beside it for that.

// The methods of the servers here.
const (
	methodEcho       = 1
	methodEchoInline = 2
)

func init() {
	helpers["rpc-echo"] = func(args []string) {
		path, mode := args[0], args[1]
		if mode == "socket" {
			echoSocket(path)
			return
		}
		wait := map[string]WaitMode{Hybrid.String(): Hybrid, Spin.String(): Spin, Block.String(): Block}[mode]
		s, err := BindServer(path, ServeOptions{Wait: wait})
		must(err)
		must(echoes(s))
		say("ready")
		go func() {
			told()
			_ = s.Shutdown(context.Background())
		}()
		must(s.Serve(context.Background()))
	}
}

func echoes(s *Server) error {
	if err := s.Handle(methodEcho, echo); err != nil {
		return err
	}
	return s.HandleInline(methodEchoInline, echoInline)
}

func echoInline(r *Request, reply []byte) ([]byte, error) { return append(reply, r.Body...), nil }

// echoSocket sends back what comes in, 32 bytes at a time, until the other side closes.
func echoSocket(path string) {
	listener, err := net.Listen("unix", path)
	must(err)
	say("ready")
	c, err := listener.Accept()
	must(err)
	for b := make([]byte, 32); ; {
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		_, err = c.Write(b)
		must(err)
	}
}

// The round trip of a call of 32 bytes between two processes. The allocations are the client's.
func BenchmarkCall(b *testing.B) {
	body := bytes.Repeat([]byte{7}, 32)
	b.Run("socket", func(b *testing.B) {
		path := newFolder(b).at("echo")
		startPeer(b, "rpc-echo", path, "socket").expect("ready")
		c, err := net.Dial("unix", path)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		in := make([]byte, len(body))
		b.ResetTimer()
		for range b.N {
			if _, err := c.Write(body); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, in); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, wait := range []WaitMode{Hybrid, Spin, Block} {
		path := newFolder(b).at("server")
		p := startPeer(b, "rpc-echo", path, wait.String())
		p.expect("ready")
		c, err := ConnectClient(context.Background(), path, ClientOptions{Wait: wait})
		if err != nil {
			b.Fatal(err)
		}
		for _, m := range []struct {
			name   string
			method uint32
		}{{"goroutine", methodEcho}, {"inline", methodEchoInline}, {"ping", methodPing}} {
			b.Run(wait.String()+"/"+m.name, func(b *testing.B) { benchmarkCalls(b, c, m.method, body) })
		}
		_ = c.Close()
		p.finish()
	}
}

func benchmarkCalls(b *testing.B, c *Client, method uint32, body []byte) {
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := c.Call(context.Background(), method, body); err != nil {
			b.Fatal(err)
		}
	}
}

// The same in one process, so that the allocations are those of both sides.
func BenchmarkCallInside(b *testing.B) {
	for _, m := range []struct {
		name   string
		method uint32
	}{{"goroutine", methodEcho}, {"inline", methodEchoInline}} {
		b.Run(m.name, func(b *testing.B) {
			s := served(b, ServeOptions{Wait: Block}, func(s *Server) { must(echoes(s)) })
			c := calling(b, s, ClientOptions{Wait: Block})
			b.ResetTimer()
			benchmarkCalls(b, c, m.method, make([]byte, 32))
		})
	}
}

// Calls of many goroutines at once.
func BenchmarkCallsInParallel(b *testing.B) {
	for _, m := range []struct {
		name   string
		method uint32
	}{{"goroutine", methodEcho}, {"inline", methodEchoInline}} {
		b.Run(m.name, func(b *testing.B) {
			s := served(b, ServeOptions{}, func(s *Server) { must(echoes(s)) })
			c := calling(b, s, ClientOptions{})
			body := make([]byte, 32)
			b.SetParallelism(32)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := c.Call(context.Background(), m.method, body); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
