package ramway

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
)

// Two processes are measured by `make conformance` (its `speed`), side by side with the other languages. These are for
// a look at one part: run them with -cpu 2 -benchmem, and compare only what one run says.

var background = context.Background()

func benchmarkPair(b *testing.B, o Options) (*Sender, *Receiver) {
	b.Helper()
	tx, rx, err := Pair(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := tx.Close(); err != nil {
			b.Error(err)
		}
		if err := rx.Close(); err != nil {
			b.Error(err)
		}
	})
	return tx, rx
}

// BenchmarkCalls is what the calls themselves cost: one goroutine sends and receives, so nobody waits.
func BenchmarkCalls(b *testing.B) {
	payload := make([]byte, 32)
	b.Run("send+recv", func(b *testing.B) {
		tx, rx := benchmarkPair(b, Options{})
		for i := 0; i < b.N; i++ {
			if err := tx.Send(background, 1, payload); err != nil {
				b.Fatal(err)
			}
			m, err := rx.Recv(background)
			if err != nil {
				b.Fatal(err)
			}
			m.Release()
		}
	})
	b.Run("tagged", func(b *testing.B) {
		tx, rx := benchmarkPair(b, Options{})
		for i := 0; i < b.N; i++ {
			if err := tx.SendTagged(background, 1, uint64(i)+1, payload); err != nil {
				b.Fatal(err)
			}
			m, err := rx.Recv(background)
			if err != nil {
				b.Fatal(err)
			}
			m.Release()
		}
	})
	b.Run("reserve+recv", func(b *testing.B) {
		tx, rx := benchmarkPair(b, Options{})
		for i := 0; i < b.N; i++ {
			slot, err := tx.Reserve(background, 32)
			if err != nil {
				b.Fatal(err)
			}
			slot.Bytes()[0] = byte(i)
			if err := slot.Commit(1, 0, 32); err != nil {
				b.Fatal(err)
			}
			m, err := rx.Recv(background)
			if err != nil {
				b.Fatal(err)
			}
			m.Release()
		}
	})
	b.Run("batches of 32", func(b *testing.B) {
		tx, rx := benchmarkPair(b, Options{})
		messages := make([][]byte, 32)
		for i := range messages {
			messages[i] = payload
		}
		for i := 0; i < b.N; i += len(messages) {
			if _, err := tx.SendBatch(background, 1, 0, messages); err != nil {
				b.Fatal(err)
			}
			batch, err := rx.RecvBatch(background, 32)
			if err != nil {
				b.Fatal(err)
			}
			for m := range batch.All() {
				_ = m.UnsafeBytes()
			}
			batch.Release()
		}
	})
}

// BenchmarkOneWay sends from one goroutine to another.
func BenchmarkOneWay(b *testing.B) {
	for _, size := range []int{32, 1 << 20} {
		b.Run(fmt.Sprintf("ramway/%d", size), func(b *testing.B) {
			tx, rx := benchmarkPair(b, Options{Capacity: 8 << 20})
			b.SetBytes(int64(size))
			go func() {
				for i := 0; i < b.N; i++ {
					slot, err := tx.Reserve(background, size)
					if err != nil {
						b.Error(err)
						return
					}
					_ = slot.Commit(1, 0, size)
				}
			}()
			for i := 0; i < b.N; i++ {
				m, err := rx.Recv(background)
				if err != nil {
					b.Fatal(err)
				}
				m.Release()
			}
		})
		b.Run(fmt.Sprintf("unix/%d", size), func(b *testing.B) {
			near, far := unixPair(b)
			b.SetBytes(int64(size))
			go func() {
				out := make([]byte, size)
				for i := 0; i < b.N; i++ {
					if _, err := near.Write(out); err != nil {
						b.Error(err)
						return
					}
				}
			}()
			in := make([]byte, size)
			for i := 0; i < b.N; i++ {
				if _, err := io.ReadFull(far, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRoundTrip sends 32 bytes to another goroutine and back.
func BenchmarkRoundTrip(b *testing.B) {
	payload := make([]byte, 32)
	b.Run("ramway", func(b *testing.B) {
		out, echoIn := benchmarkPair(b, Options{Wait: Spin})
		echoOut, in := benchmarkPair(b, Options{Wait: Spin})
		go func() {
			for i := 0; i < b.N; i++ {
				m, err := echoIn.Recv(background)
				if err != nil {
					b.Error(err)
					return
				}
				m.View(func(bytes []byte) { err = echoOut.Send(background, 1, bytes) })
				m.Release()
				if err != nil {
					b.Error(err)
					return
				}
			}
		}()
		for i := 0; i < b.N; i++ {
			if err := out.Send(background, 1, payload); err != nil {
				b.Fatal(err)
			}
			m, err := in.Recv(background)
			if err != nil {
				b.Fatal(err)
			}
			m.Release()
		}
	})
	b.Run("unix", func(b *testing.B) {
		near, far := unixPair(b)
		go func() {
			in := make([]byte, len(payload))
			for i := 0; i < b.N; i++ {
				if _, err := io.ReadFull(far, in); err != nil {
					b.Error(err)
					return
				}
				if _, err := far.Write(in); err != nil {
					b.Error(err)
					return
				}
			}
		}()
		in := make([]byte, len(payload))
		for i := 0; i < b.N; i++ {
			if _, err := near.Write(payload); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(near, in); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func unixPair(b *testing.B) (near, far net.Conn) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "socket")
	listener, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	if near, err = net.Dial("unix", path); err != nil {
		b.Fatal(err)
	}
	if far, err = listener.Accept(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		near.Close()
		far.Close()
	})
	return near, far
}

// BenchmarkTopic is what the calls of a topic cost, as BenchmarkCalls; latest is a read of a value that does not change.
func BenchmarkTopic(b *testing.B) {
	payload, buffer := make([]byte, 32), make([]byte, 32)
	open := func(b *testing.B, o TopicOptions) (*Publisher, *Subscriber) {
		name := newFolder(b).at("topic")
		return publisherAt(b, name, TopicOptions{}), subscriberAt(b, name, o)
	}
	for _, o := range []TopicOptions{{}, {Policy: Lossy}} {
		b.Run("send+recv "+o.Policy.String(), func(b *testing.B) {
			pub, sub := open(b, o)
			for i := 0; i < b.N; i++ {
				if err := pub.Send(background, 1, payload); err != nil {
					b.Fatal(err)
				}
				m, err := sub.Recv(background)
				if err != nil {
					b.Fatal(err)
				}
				m.Release()
			}
		})
	}
	b.Run("send", func(b *testing.B) {
		pub, _ := open(b, TopicOptions{Policy: Lossy})
		for i := 0; i < b.N; i++ {
			if err := pub.Send(background, 1, payload); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("latest", func(b *testing.B) {
		pub, sub := open(b, TopicOptions{Policy: Latest})
		if err := pub.Send(background, 1, payload); err != nil {
			b.Fatal(err)
		}
		for i := 0; i < b.N; i++ {
			if _, err := sub.LatestInto(buffer); err != nil {
				b.Fatal(err)
			}
		}
	})
}
