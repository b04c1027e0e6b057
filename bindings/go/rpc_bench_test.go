package ramway

import (
	"context"
	"testing"
)

// The round trip of a call, both sides in this process.
func BenchmarkCall(b *testing.B) {
	for _, wait := range []WaitMode{Hybrid, Spin, Block} {
		b.Run(wait.String(), func(b *testing.B) {
			s := served(b, ServeOptions{Wait: wait}, func(s *Server) { must(s.Handle(1, echo)) })
			c := calling(b, s, ClientOptions{Wait: wait})
			body := make([]byte, 64)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if _, err := c.Call(context.Background(), 1, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Calls of many goroutines at once.
func BenchmarkCallsInParallel(b *testing.B) {
	s := served(b, ServeOptions{}, func(s *Server) { must(s.Handle(1, echo)) })
	c := calling(b, s, ClientOptions{})
	body := make([]byte, 64)
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Call(context.Background(), 1, body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
