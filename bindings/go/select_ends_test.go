package ramway

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// What ends while a selector waits for it: a close, a death, a context.

func TestACloseAndTheEndOfANameAreReady(t *testing.T) {
	senders, receivers := rings(t, 2, Options{})
	s := selectorOf(t, asSources(receivers)...)
	for _, tx := range senders {
		expectKind(t, tx.Close(), 0)
	}
	ready, err := s.Wait(background)
	expectKind(t, err, 0)
	if len(ready) != 2 {
		t.Fatal(ready)
	}
	expectKind(t, receiveNow(receivers[0]), Closed)
	name := newFolder(t).at("ring")
	alone, err := CreateReceiver(name, Options{})
	expectKind(t, err, 0)
	defer alone.Close()
	region, err := CreateRegion(name+"2", 8, Options{})
	expectKind(t, err, 0)
	defer region.Close()
	s.Set(alone, region)
	must(os.Remove(name))
	must(os.Remove(name + "2"))
	ready, err = s.Wait(within(t))
	expectKind(t, err, 0)
	if len(ready) == 0 {
		t.Fatal(ready)
	}
	expectKind(t, receiveNow(alone), Closed)
	expectKind(t, region.Wait(within(t)), Closed)
}

func TestAKilledPeerEndsASelect(t *testing.T) {
	name := newFolder(t).at("ring")
	_, receivers := rings(t, 12, Options{})
	rx, err := CreateReceiver(name, Options{Capacity: 4096})
	expectKind(t, err, 0)
	defer rx.Close()
	for _, more := range []int{0, 12} {
		p := startPeer(t, "select-sender", name)
		p.expect("ready")
		s := selectorOf(t, append([]Source{rx}, asSources(receivers[:more])...)...)
		// A stopped one is alive, and sends nothing.
		must(p.cmd.Process.Signal(syscall.SIGSTOP))
		eventually(t, "it has stopped, and what it sent is received", func() bool {
			for receiveNow(rx) == nil {
			}
			ctx, cancel := context.WithTimeout(background, 300*time.Millisecond)
			defer cancel()
			_, err := s.Wait(ctx)
			return KindOf(err) == TimedOut
		})
		must(p.cmd.Process.Signal(syscall.SIGCONT))
		ready, err := s.Wait(within(t))
		expectKind(t, err, 0)
		if !slices.Equal(ready, []int{0}) {
			t.Fatal(ready)
		}
		p.kill()
		began := time.Now()
		for {
			ready, err := s.Wait(within(t))
			expectKind(t, err, 0)
			if !slices.Equal(ready, []int{0}) {
				t.Fatal(ready)
			}
			if err := receiveNow(rx); err != nil {
				expectKind(t, err, PeerDead)
				break
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Fatal(took)
		}
	}
}

func init() {
	helpers["select-sender"] = func(args []string) {
		tx, err := OpenSender(args[0], Options{Timeout: long})
		must(err)
		say("ready")
		for {
			must(tx.Send(background, 1, []byte("tick")))
			time.Sleep(time.Millisecond)
		}
	}
}

// One that polls all the time finds a source that is closed, and does not take it for one with a message.
func TestASourceThatIsClosedIsNotReady(t *testing.T) {
	senders, receivers := rings(t, 2, Options{})
	for _, source := range []Source{receivers[0], senders[1].Room(8)} {
		if room, is := source.(*Room); is {
			fillUp(t, room.sender)
		}
		s := selectorOf(t, source)
		s.SetWait(Spin)
		ended := make(chan error)
		go func() {
			_, err := s.Wait(within(t))
			ended <- err
		}()
		time.Sleep(3 * time.Millisecond)
		switch source := source.(type) {
		case *Receiver:
			expectKind(t, source.Close(), 0)
		case *Room:
			expectKind(t, source.sender.Close(), 0)
		}
		err := <-ended
		expectKind(t, err, Detached)
		expectText(t, err, "source 0: ")
	}
}

func TestASelectIsCalledOff(t *testing.T) {
	eachSleep(t, func(t *testing.T, count int) {
		dir := newFolder(t)
		region, err := CreateRegion(dir.at("region"), 8, Options{})
		expectKind(t, err, 0)
		listener, err := Bind(dir.at("listener.sock"), ListenOptions{})
		expectKind(t, err, 0)
		publisherAt(t, dir.at("topic"), TopicOptions{})
		sub := subscriberOpen(t, dir.at("topic"), TopicOptions{})
		reader := subscriberOpen(t, dir.at("topic"), TopicOptions{Policy: Latest, ReadOnly: true})
		senders, receivers := rings(t, count+1, Options{})
		sources := append([]Source{region, listener, sub, reader}, asSources(receivers)...)
		s := selectorOf(t, sources...)
		wait := func(end func()) error {
			t.Helper()
			ended := make(chan error)
			go func() {
				_, err := s.Wait(within(t))
				ended <- err
			}()
			time.Sleep(3 * time.Millisecond)
			began := time.Now()
			end()
			err := <-ended
			if took := time.Since(began); took > time.Second {
				t.Fatal(took)
			}
			return err
		}
		ctx, cancel := context.WithCancelCause(background)
		go func() { time.Sleep(3 * time.Millisecond); cancel(errors.New("enough")) }()
		_, err = s.Wait(ctx)
		expectKind(t, err, Interrupted)
		expectText(t, err, "waiting for several sources", "enough")
		// It is the end of a context that is over, but what is there goes first.
		expectKind(t, senders[0].Send(background, 1, nil), 0)
		ready, err := s.Wait(ctx)
		expectKind(t, err, 0)
		if !slices.Equal(ready, []int{4}) {
			t.Fatal(ready)
		}
		expectKind(t, receiveNow(receivers[0]), 0)
		for i, end := range []func(){func() { _ = region.Close() }, func() { _ = listener.Close() }, func() { _ = sub.Close() },
			func() { _ = reader.Close() }, func() { _ = receivers[0].Close() }, s.Close} {
			err := wait(end)
			expectKind(t, err, Detached)
			if i < 5 {
				expectText(t, err, "source 0: ")
				_, err = s.TryWait()
				expectKind(t, err, Detached)
				sources = sources[1:]
				s.Set(sources...)
			}
		}
	})
}

// Handles are closed at any moment, also while a Selector sleeps on them; nothing is unmapped under it.
func TestSourcesAreClosedAtAnyMoment(t *testing.T) {
	for round := range 60 {
		senders, receivers := rings(t, 3+round%2*10, Options{})
		full, _ := rings(t, 1, Options{})
		for full[0].TrySend(0, make([]byte, 1000)) == nil {
		}
		dir := newFolder(t)
		publisherAt(t, dir.at("topic"), TopicOptions{})
		sub := subscriberOpen(t, dir.at("topic"), TopicOptions{})
		region, err := CreateRegion(dir.at("region"), 8, Options{})
		expectKind(t, err, 0)
		s := selectorOf(t, append(asSources(receivers), sub, region, full[0].Room(1000))...)
		s.SetWait(WaitMode(round % 3))
		ended := make(chan error)
		go func() {
			for {
				if _, err := s.Wait(background); err != nil {
					ended <- err
					return
				}
				_ = receiveNow(receivers[1])
			}
		}()
		go func() {
			for senders[1].Send(background, 0, nil) == nil {
				time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
			}
		}()
		time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		closes := []func(){s.Close, func() { _ = receivers[2].Close() }, func() { _ = sub.Close() }, func() { _ = region.Close() },
			func() { _ = full[0].Close() }}
		closes[round%len(closes)]()
		expectKind(t, <-ended, Detached)
		expectKind(t, receivers[1].Close(), 0)
		_ = region.Close()
	}
}

// descriptors is how many this process has open.
func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system does not say which descriptors are open")
	}
	return len(entries)
}

func TestASelectorThatIsForgottenIsClosed(t *testing.T) {
	senders, receivers := rings(t, 20, Options{})
	before := descriptors(t)
	func() {
		ctx, cancel := context.WithTimeout(background, time.Millisecond)
		defer cancel()
		_, err := NewSelector(asSources(receivers)...).Wait(ctx)
		expectKind(t, err, TimedOut)
	}()
	eventually(t, "its descriptor is closed", func() bool {
		runtime.GC()
		return descriptors(t) <= before
	})
	expectKind(t, senders[0].Send(background, 0, nil), 0)
}
