package ramway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// rings are so many pairs.
func rings(t testing.TB, count int, o Options) (senders []*Sender, receivers []*Receiver) {
	t.Helper()
	for range count {
		tx, rx, err := Pair(Options{Capacity: 4096, Wait: o.Wait, NoMembarrier: o.NoMembarrier})
		expectKind(t, err, 0)
		t.Cleanup(func() { _, _ = tx.Close(), rx.Close() })
		senders, receivers = append(senders, tx), append(receivers, rx)
	}
	return senders, receivers
}

func asSources(receivers []*Receiver) (sources []Source) {
	for _, rx := range receivers {
		sources = append(sources, rx)
	}
	return sources
}

func selectorOf(t testing.TB, sources ...Source) *Selector {
	t.Helper()
	s := NewSelector(sources...)
	t.Cleanup(s.Close)
	return s
}

// eachSleep runs a test by all ways of sleeping: a few words and many, with io_uring and without, and without futex_waitv too.
func eachSleep(t *testing.T, run func(t *testing.T, count int)) {
	for _, kind := range []struct {
		name                 string
		noParking, noWaitAny bool
		counts               []int
	}{
		{"as it is", false, false, []int{1, 3, 8, 40}},
		{"without io_uring", true, false, []int{1, 3, 40, 130}},
		{"without both", true, true, []int{1, 3}},
	} {
		for _, count := range kind.counts {
			t.Run(fmt.Sprintf("%s/%d", kind.name, count), func(t *testing.T) {
				wasParking, wasAny := withoutParking.Load(), withoutWaitAny.Load()
				withoutParking.Store(kind.noParking || wasParking)
				withoutWaitAny.Store(kind.noWaitAny || wasAny)
				defer func() {
					withoutParking.Store(wasParking)
					withoutWaitAny.Store(wasAny)
				}()
				run(t, count)
			})
		}
	}
}

func TestSelectGivesThoseThatAreReadyAndNoOther(t *testing.T) {
	eachSleep(t, func(t *testing.T, count int) {
		senders, receivers := rings(t, count, Options{})
		s := selectorOf(t, asSources(receivers)...)
		_, err := s.TryWait()
		expectKind(t, err, Empty)
		ctx, cancel := context.WithTimeout(background, 2*time.Millisecond)
		defer cancel()
		_, err = s.Wait(ctx)
		expectKind(t, err, TimedOut)
		wanted := []int{0, count - 1}
		for _, i := range wanted {
			expectKind(t, senders[i].Send(background, 0, nil), 0)
		}
		ready, err := s.Wait(background)
		expectKind(t, err, 0)
		ready = slices.Clone(ready)
		slices.Sort(ready)
		if !slices.Equal(ready, slices.Compact(wanted)) {
			t.Fatal(ready)
		}
		for _, i := range ready {
			for receiveNow(receivers[i]) == nil {
			}
		}
		_, err = s.TryWait()
		expectKind(t, err, Empty)
	})
}

func receiveNow(rx *Receiver) error {
	m, err := rx.TryRecv()
	m.Release()
	return err
}

func TestSelectTellsAnEndThoughAnotherSourceIsAlwaysReady(t *testing.T) {
	senders, receivers := rings(t, 2, Options{})
	s := selectorOf(t, asSources(receivers)...)
	expectKind(t, senders[0].Send(background, 0, []byte("never taken")), 0)
	_, err := s.Wait(background)
	expectKind(t, err, 0)
	expectKind(t, senders[1].Close(), 0)
	for range 16 {
		ready, err := s.Wait(background)
		expectKind(t, err, 0)
		if slices.Contains(ready, 1) {
			return
		}
	}
	t.Fatal("the closed ring is in none of 16 answers")
}

func TestSelectSleepsThroughNoMessage(t *testing.T) {
	eachSleep(t, func(t *testing.T, count int) {
		for _, mode := range []WaitMode{Block, Hybrid, Spin} {
			for _, plain := range []bool{true, false} {
				rounds := 400
				if testing.Short() || mode == Spin {
					rounds = 100
				}
				senders, receivers := rings(t, count, Options{NoMembarrier: !plain})
				backTx, backRx, err := Pair(Options{Capacity: 4096})
				expectKind(t, err, 0)
				go func() {
					defer backRx.Close()
					for round := range rounds {
						if senders[round*7%count].Send(background, uint32(round), nil) != nil {
							return
						}
						m, err := backRx.Recv(background)
						if err != nil {
							return
						}
						m.Release()
					}
				}()
				s := selectorOf(t, asSources(receivers)...)
				s.SetWait(mode)
				slow := 0
				for round := range rounds {
					began := time.Now()
					ready, err := s.Wait(background)
					expectKind(t, err, 0)
					if time.Since(began) > 90*time.Millisecond {
						slow++
					}
					if !slices.Equal(ready, []int{round * 7 % count}) {
						t.Fatal(round, ready)
					}
					m, err := receivers[ready[0]].TryRecv()
					expectKind(t, err, 0)
					if m.TypeID() != uint32(round) {
						t.Fatal(m.TypeID())
					}
					m.Release()
					expectKind(t, backTx.Send(background, 0, nil), 0)
				}
				// One that was lost would be found after 100 ms.
				if slow > rounds/50 {
					t.Errorf("%v: %d of %d waits took 90 ms: wake-ups are lost", mode, slow, rounds)
				}
				expectKind(t, backTx.Close(), 0)
				s.Close()
			}
		}
	})
}

func TestTheSourceThatCameFirstComesLastTheNextTime(t *testing.T) {
	senders, receivers := rings(t, 3, Options{})
	for _, tx := range senders {
		expectKind(t, tx.Send(background, 0, nil), 0)
	}
	s := selectorOf(t, asSources(receivers)...)
	firsts := []int{}
	for range 6 {
		ready, err := s.Wait(background)
		expectKind(t, err, 0)
		if len(ready) != 3 {
			t.Fatal(ready)
		}
		firsts = append(firsts, ready[0])
	}
	if !slices.Equal(firsts, []int{0, 1, 2, 0, 1, 2}) {
		t.Fatal(firsts)
	}
	chosen := map[int]int{}
	for range 200 {
		i, err := Select(background, asSources(receivers)...)
		expectKind(t, err, 0)
		chosen[i]++
	}
	if len(chosen) != 3 {
		t.Fatalf("of 200 calls: %v", chosen)
	}
}

// TestEveryKindOfSourceEndsAWait: one after the other, with few words, many, and without what the kernel may refuse.
func TestEveryKindOfSourceEndsAWait(t *testing.T) {
	eachSleep(t, func(t *testing.T, more int) {
		dir := newFolder(t)
		senders, receivers := rings(t, more, Options{})
		pub := publisherAt(t, dir.at("topic"), TopicOptions{})
		reliable := subscriberOpen(t, dir.at("topic"), TopicOptions{})
		lossy := subscriberOpen(t, dir.at("topic"), TopicOptions{Policy: Lossy})
		latest := subscriberOpen(t, dir.at("topic"), TopicOptions{Policy: Latest})
		reader := subscriberOpen(t, dir.at("topic"), TopicOptions{Policy: Lossy, ReadOnly: true})
		region, err := CreateRegion(dir.at("region"), 8, Options{})
		expectKind(t, err, 0)
		defer region.Close()
		seeing, err := OpenRegionReadOnly(dir.at("region"), Options{})
		expectKind(t, err, 0)
		defer seeing.Close()
		listener, err := Bind(dir.at("listener.sock"), ListenOptions{})
		expectKind(t, err, 0)
		defer listener.Close()
		full, drain, err := Pair(Options{Capacity: 4096})
		expectKind(t, err, 0)
		defer full.Close()
		for full.TrySend(0, make([]byte, 1000)) == nil {
		}
		blocked := publisherAt(t, dir.at("full"), TopicOptions{Capacity: 4096})
		holding := subscriberOpen(t, dir.at("full"), TopicOptions{})
		for blocked.TrySend(0, make([]byte, 1000)) == nil {
		}
		pipe, writer, err := os.Pipe()
		must(err)
		defer pipe.Close()
		defer writer.Close()
		var pair [2]int
		pair, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		must(err)
		defer syscall.Close(pair[0])
		defer syscall.Close(pair[1])
		sources := append([]Source{&reliable.Receiver, lossy, latest, reader, region, seeing, listener, full.Room(1000), blocked.Room(1000),
			Readable(pipe), Descriptor(pair[0])}, asSources(receivers)...)
		s := selectorOf(t, sources...)
		s.SetWait(Block)
		var bus *Bus
		for i, step := range []struct {
			wanted []int
			do     func() error
		}{
			{[]int{0, 1, 2, 3}, func() error { return pub.Send(background, 0, nil) }},
			{[]int{4, 5}, region.Notify},
			{[]int{6}, func() (err error) {
				bus, err = Connect(background, dir.at("listener.sock"), ConnectOptions{Timeout: long})
				return err
			}},
			{[]int{7}, func() error { m, err := drain.TryRecv(); m.Release(); return err }},
			{[]int{8}, func() error {
				for {
					m, err := holding.TryRecv()
					if err != nil {
						return nil
					}
					m.Release()
				}
			}},
			{[]int{9}, func() error { _, err := writer.Write([]byte("x")); return err }},
			{[]int{10}, func() error { _, err := syscall.Write(pair[1], []byte("x")); return err }},
			{[]int{10 + more}, func() error { return senders[more-1].Send(background, 0, nil) }},
		} {
			done := make(chan error)
			go func() {
				time.Sleep(5 * time.Millisecond)
				done <- step.do()
			}()
			var got []int
			// Not all of them are woken by the same call.
			for deadline := time.Now().Add(long); !slices.Equal(got, step.wanted) && time.Now().Before(deadline); {
				ready, err := s.Wait(within(t))
				expectKind(t, err, 0)
				got = slices.Clone(ready)
				slices.Sort(got)
			}
			if i == 2 {
				eventually(t, "what is offered is taken", func() bool {
					other, err := listener.TryAccept()
					if err == nil {
						err = other.Close()
					}
					return err == nil
				})
			}
			if !slices.Equal(got, step.wanted) {
				t.Fatalf("step %d: %v, expected %v", i, got, step.wanted)
			}
			expectKind(t, <-done, 0)
			for _, rx := range append([]*Receiver{&reliable.Receiver, &lossy.Receiver, &latest.Receiver, &reader.Receiver}, receivers...) {
				for receiveNow(rx) == nil {
				}
			}
			region.TryWait()
			seeing.TryWait()
			for full.TrySend(0, make([]byte, 1000)) == nil {
			}
			for blocked.TrySend(0, make([]byte, 1000)) == nil {
			}
			buffer := make([]byte, 1)
			if i == 5 {
				_, err = pipe.Read(buffer)
				must(err)
			}
			if i == 6 {
				_, err = syscall.Read(pair[0], buffer)
				must(err)
			}
		}
		expectKind(t, bus.Close(), 0)
		// A death of the publisher, and the end of a pipe.
		expectKind(t, pub.Abandon(), 0)
		ready, err := s.Wait(within(t))
		expectKind(t, err, 0)
		if slices.Max(ready) > 3 {
			t.Fatal(ready)
		}
		must(writer.Close())
		eventually(t, "the pipe's end is told", func() bool {
			ready, err := s.Wait(within(t))
			expectKind(t, err, 0)
			return slices.Contains(ready, 9)
		})
	})
}

func TestWhatCannotBeSelectedIsSaid(t *testing.T) {
	senders, receivers := rings(t, 2, Options{})
	_, err := Select(background)
	expectKind(t, err, InvalidArgument)
	ctx, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	_, err = Select(ctx)
	expectKind(t, err, TimedOut)
	_, err = Select(ctx, receivers[0], receivers[1], receivers[0])
	expectKind(t, err, InvalidArgument)
	expectText(t, err, "sources 0 and 2 are the same")
	_, err = Select(ctx, senders[0].Room(1), senders[0].Room(2))
	expectKind(t, err, InvalidArgument)
	_, err = Select(ctx, senders[0].Room(-1))
	expectKind(t, err, InvalidArgument)
	// Both ends of a ring are two sources. What can never be sent is told by the call that sends it.
	i, err := Select(ctx, receivers[0], senders[0].Room(1<<20))
	expectKind(t, err, 0)
	if i != 1 {
		t.Fatal(i)
	}
	expectKind(t, senders[1].Send(background, 1, nil), 0)
	m, err := receivers[1].TryRecv()
	expectKind(t, err, 0)
	_, err = Select(ctx, receivers[0], receivers[1])
	expectKind(t, err, Busy)
	expectText(t, err, "source 1: ", "release it first")
	m.Release()
	slot, err := senders[1].Reserve(background, 4)
	expectKind(t, err, 0)
	_, err = Select(ctx, senders[1].Room(4))
	expectKind(t, err, Busy)
	slot.Abort()
	file, err := os.CreateTemp(t.TempDir(), "")
	must(err)
	must(file.Close())
	_, err = Select(ctx, Readable(file))
	expectKind(t, err, Detached)
	expectKind(t, receivers[0].Close(), 0)
	_, err = Select(ctx, receivers[0])
	expectKind(t, err, Detached)
	// After all of that each can be used as always.
	expectKind(t, senders[1].Send(background, 1, nil), 0)
	expectKind(t, receiveNow(receivers[1]), 0)
}

func TestASelectByTwoGoroutinesPanics(t *testing.T) {
	_, receivers := rings(t, 2, Options{})
	s := selectorOf(t, asSources(receivers)...)
	s.SetWait(Block)
	ended := make(chan error)
	go func() {
		_, err := s.Wait(background)
		ended <- err
	}()
	eventually(t, "it waits", func() bool { return atomic.LoadUint32(&receivers[1].ring.consumer.wait) == 1 })
	for what, call := range map[string]func(){
		"the Selector": func() { _, _ = s.TryWait() }, "a source": func() { _, _ = receivers[0].TryRecv() },
		"another one": func() { _, _ = Select(background, receivers[1]) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: used by two goroutines, and no panic", what)
				}
			}()
			call()
		}()
	}
	s.Close()
	expectKind(t, <-ended, Detached)
	expectKind(t, receiveNow(receivers[0]), Empty)
}

// A handle may go, and another come in its place, between two calls: also at the same address.
func TestSourcesMayChangeFromCallToCall(t *testing.T) {
	s := selectorOf(t)
	s.SetWait(Block)
	for round := range 20 {
		senders, receivers := rings(t, 12+round%3, Options{})
		s.Set(asSources(receivers)...)
		ctx, cancel := context.WithTimeout(background, time.Millisecond)
		_, err := s.Wait(ctx)
		expectKind(t, err, TimedOut)
		cancel()
		last := len(receivers) - 1
		go func() {
			time.Sleep(3 * time.Millisecond)
			_ = senders[last].Send(background, 0, nil)
		}()
		ready, err := s.Wait(background)
		expectKind(t, err, 0)
		if !slices.Equal(ready, []int{last}) {
			t.Fatal(ready)
		}
		for i := range receivers {
			expectKind(t, receivers[i].Close(), 0)
		}
	}
}

// What Lagged says is left to the receive.
func TestAnEjectedSubscriberIsReady(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Capacity: 4096, EjectAfter: time.Millisecond})
	sub := subscriberAt(t, name, TopicOptions{})
	for range 40 {
		expectKind(t, pub.Send(background, 1, make([]byte, 96)), 0)
	}
	for range 3 {
		_, err := Select(background, sub)
		expectKind(t, err, 0)
	}
	_, err := sub.TryRecv()
	expectKind(t, err, Lagged)
	expectKind(t, receiveNow(&sub.Receiver), 0)
}

func TestASelectorAllocatesNothing(t *testing.T) {
	for _, count := range []int{1, 3, 20} {
		senders, receivers := rings(t, count, Options{})
		reader, writer, err := os.Pipe()
		must(err)
		defer writer.Close()
		for _, sources := range [][]Source{asSources(receivers), append(asSources(receivers), Readable(reader))} {
			s := selectorOf(t, sources...)
			turn := 0
			one := func() {
				turn++
				if senders[turn%count].Send(background, 0, nil) != nil {
					t.Fatal("send")
				}
				ready, err := s.Wait(background)
				if err != nil || len(ready) != 1 || receiveNow(receivers[ready[0]]) != nil {
					t.Fatal(ready, err)
				}
				if _, err := s.TryWait(); !errors.Is(err, ErrEmpty) {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			asleep, sent := make(chan struct{}), make(chan struct{})
			defer close(asleep)
			s.SetWait(Block)
			go func() {
				for range asleep {
					time.Sleep(200 * time.Microsecond)
					_ = senders[0].Send(background, 0, nil)
					sent <- struct{}{}
				}
			}()
			sleeping := func() {
				asleep <- struct{}{}
				ready, err := s.Wait(ctx)
				<-sent
				if err != nil || len(ready) != 1 || receiveNow(receivers[ready[0]]) != nil {
					t.Fatal(ready, err)
				}
			}
			for range 5 {
				one()
				sleeping()
			}
			if n := testing.AllocsPerRun(200, one); n != 0 {
				t.Errorf("%d sources: %v allocations", len(sources), n)
			}
			if n := testing.AllocsPerRun(50, sleeping); n != 0 {
				t.Errorf("%d sources, asleep: %v allocations", len(sources), n)
			}
		}
	}
}

func TestAListenersBusesAreTakenThroughASelect(t *testing.T) {
	path := newFolder(t).at("listener.sock")
	listener, err := Bind(path, ListenOptions{Capacity: 4096})
	expectKind(t, err, 0)
	defer listener.Close()
	silent, err := net.Dial("unix", path)
	must(err)
	defer silent.Close()
	connected := make(chan error, 8)
	for range cap(connected) {
		go func() {
			bus, err := Connect(background, path, ConnectOptions{Timeout: long})
			if err == nil {
				err = bus.Close()
			}
			connected <- err
		}()
	}
	for taken := 0; taken < cap(connected); {
		_, err := Select(within(t), listener)
		expectKind(t, err, 0)
		bus, err := listener.TryAccept()
		if err == nil {
			taken++
			expectKind(t, bus.Close(), 0)
		} else {
			expectKind(t, err, Empty)
		}
	}
	for range cap(connected) {
		expectKind(t, <-connected, 0)
	}
}
