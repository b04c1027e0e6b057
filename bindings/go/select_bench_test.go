package ramway

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// BenchmarkSelect is what a wait for many costs where one of them always has something, beside a plain receive.
func BenchmarkSelect(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		senders, receivers := rings(b, 1, Options{})
		for i := 0; i < b.N; i++ {
			_ = senders[0].Send(background, 0, nil)
			if err := receiveNow(receivers[0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, count := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("of %d", count), func(b *testing.B) {
			senders, receivers := rings(b, count, Options{})
			s := selectorOf(b, asSources(receivers)...)
			busy := senders[count-1]
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				_ = busy.Send(background, 0, nil)
				ready, err := s.Wait(background)
				if err != nil {
					b.Fatal(err)
				}
				if err := receiveNow(receivers[ready[0]]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSelectAsleep is a round trip in which a Selector sleeps, by futex_waitv and by io_uring, with the processor time of all
// threads.
func BenchmarkSelectAsleep(b *testing.B) {
	for _, count := range []int{1, 2, 8, 16, 100} {
		for _, parking := range []bool{false, true} {
			b.Run(fmt.Sprintf("of %d, io_uring %v", count, parking), func(b *testing.B) {
				withoutParking.Store(!parking)
				defer withoutParking.Store(false)
				senders, receivers := rings(b, count, Options{})
				backTx, backRx := benchmarkPair(b, Options{Wait: Spin})
				s := selectorOf(b, asSources(receivers)...)
				s.SetWait(Block)
				go func() {
					for i := 0; ; i++ {
						m, err := backRx.Recv(background)
						if err != nil {
							return
						}
						m.Release()
						for began := time.Now(); time.Since(began) < 20*time.Microsecond; {
						}
						_ = senders[i%count].Send(background, 0, nil)
					}
				}()
				b.ResetTimer()
				before := used()
				for i := 0; i < b.N; i++ {
					_ = backTx.Send(background, 0, nil)
					ready, err := s.Wait(background)
					if err != nil {
						b.Fatal(err)
					}
					_ = receiveNow(receivers[ready[0]])
				}
				b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
				b.StopTimer()
				_ = backTx.Close()
			})
		}
	}
}

// used is the processor time of this process.
func used() time.Duration {
	var r syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkInbox receives from producers that are goroutines with buses of their own, all ready.
func BenchmarkInbox(b *testing.B) {
	for _, count := range []int{1, 16} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			inbox := inboxAt(b, newFolder(b).at("inbox.sock"), InboxOptions{})
			var buses []*Bus
			for range count {
				bus, err := Connect(background, inbox.Path(), ConnectOptions{})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = bus.Close() })
				buses = append(buses, bus)
			}
			b.ResetTimer()
			for i := 0; i < b.N; i += count {
				for _, bus := range buses {
					_ = bus.Send(background, 1, nil)
				}
				for range buses {
					in, err := inbox.Recv(background)
					if err != nil {
						b.Fatal(err)
					}
					in.Message.Release()
				}
			}
		})
	}
}
