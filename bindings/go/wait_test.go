package ramway

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// How a wait can be done: the mode, and whether there is an io_uring.
type waitKind struct {
	name   string
	mode   WaitMode
	thread bool
}

func eachWait(t *testing.T, f func(t *testing.T, mode WaitMode)) {
	for _, kind := range []waitKind{{"hybrid", Hybrid, false}, {"block", Block, false}, {"spin", Spin, false}, {"thread", Block, true}} {
		t.Run(kind.name, func(t *testing.T) {
			withoutParking.Store(kind.thread)
			defer withoutParking.Store(false)
			f(t, kind.mode)
		})
	}
}

// prompt fails if nearly all of these took longer than 10 ms, which is what is promised; a few are allowed to, because
// other processes want the processors too.
func prompt(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	t.Logf("%s: median %v, longest %v", what, took[len(took)/2], took[len(took)-1])
	if took[len(took)*9/10] > 10*time.Millisecond {
		t.Fatalf("%s: one in ten took more than %v", what, took[len(took)*9/10])
	}
}

func TestCancel(t *testing.T) {
	eachWait(t, func(t *testing.T, mode WaitMode) {
		tx, rx, err := Pair(Options{Capacity: 4096, Wait: mode})
		expectKind(t, err, 0)
		expectKind(t, tx.Send(background, 1, make([]byte, 4000)), 0)
		m, err := rx.Recv(background)
		expectKind(t, err, 0)
		m.Release()
		expectKind(t, tx.Send(background, 1, make([]byte, 4000)), 0)
		m, err = rx.Recv(background) // kept: the ring is full, and the next Send waits
		expectKind(t, err, 0)
		cause := errors.New("enough")
		var took []time.Duration
		for i := range 100 {
			ctx, cancel := context.WithCancelCause(background)
			var called time.Time
			time.AfterFunc(time.Duration(i*30)*time.Microsecond, func() {
				called = time.Now()
				cancel(cause)
			})
			err := tx.Send(ctx, 1, make([]byte, 4000))
			took = append(took, time.Since(called))
			expectKind(t, err, Interrupted)
			if !errors.Is(err, cause) {
				t.Fatal(err)
			}
			// A context that is done already, where there is something to wait for.
			expectKind(t, tx.Send(ctx, 1, make([]byte, 4000)), Interrupted)
		}
		prompt(t, "cancelled sends", took)
		m.Release()

		took = took[:0]
		for i := range 100 {
			after := time.Duration(i*30) * time.Microsecond
			ctx, cancel := context.WithTimeout(background, after)
			began := time.Now()
			_, err := rx.Recv(ctx)
			took = append(took, time.Since(began)-after)
			expectKind(t, err, TimedOut)
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
			// What is there is received with a context that is done.
			expectKind(t, tx.Send(ctx, 1, nil), 0)
			m, err := rx.Recv(ctx)
			expectKind(t, err, 0)
			m.Release()
		}
		prompt(t, "receives that timed out", took)
		expectKind(t, tx.Close(), 0)
		expectKind(t, rx.Close(), 0)
	})
}

func TestCloseInterruptsWaits(t *testing.T) {
	eachWait(t, func(t *testing.T, mode WaitMode) {
		var took []time.Duration
		for i := range 60 {
			tx, rx, err := Pair(Options{Capacity: 4096, Wait: mode})
			expectKind(t, err, 0)
			expectKind(t, tx.Send(background, 1, make([]byte, 4080)), 0)
			sent, received := make(chan error, 1), make(chan error, 1)
			go func() { sent <- tx.Send(background, 1, nil) }()
			time.Sleep(time.Duration(i*50) * time.Microsecond)
			began := time.Now()
			expectKind(t, tx.Close(), 0)
			took = append(took, time.Since(began))
			// The call may have come after the close, or be the one that it interrupted.
			expectKind(t, <-sent, Detached)

			m, err := rx.Recv(background)
			expectKind(t, err, 0)
			m.Release()
			_, err = rx.Recv(background)
			expectKind(t, err, Closed)
			expectKind(t, rx.Close(), 0)

			tx, rx, err = Pair(Options{Wait: mode})
			expectKind(t, err, 0)
			go func() {
				_, err := rx.Recv(background)
				received <- err
			}()
			time.Sleep(time.Duration(i*50) * time.Microsecond)
			began = time.Now()
			expectKind(t, rx.Close(), 0)
			took = append(took, time.Since(began))
			expectKind(t, <-received, Detached)
			expectKind(t, tx.Send(background, 1, nil), Closed)
			expectKind(t, tx.Close(), 0)
		}
		prompt(t, "closes of a handle that waits", took)
	})
}

// TestCloseWhileBusy closes handles in the middle of a stream.
func TestCloseWhileBusy(t *testing.T) {
	for i := range 100 {
		tx, rx, err := Pair(Options{Capacity: 4096})
		expectKind(t, err, 0)
		var group sync.WaitGroup
		group.Add(2)
		go func() {
			defer group.Done()
			for seq := uint64(0); ; seq++ {
				if err := tx.SendTagged(background, 1, seq, make([]byte, 100)); err != nil {
					if kind := KindOf(err); kind != Detached && kind != Closed {
						t.Error(err)
					}
					return
				}
			}
		}()
		go func() {
			defer group.Done()
			next := uint64(0)
			for m := range rx.All(background) {
				if m.Tag() != next || m.Len() != 100 {
					t.Errorf("message %d in the place of %d", m.Tag(), next)
				}
				next++
			}
			if err := rx.Err(); err != nil && KindOf(err) != Detached {
				t.Error(err)
			}
		}()
		time.Sleep(time.Duration(i) * 20 * time.Microsecond)
		if i%2 == 0 {
			expectKind(t, tx.Close(), 0)
			group.Wait()
			expectKind(t, rx.Close(), 0)
		} else {
			expectKind(t, rx.Close(), 0)
			group.Wait()
			expectKind(t, tx.Close(), 0)
		}
	}
}

func TestTwoGoroutinesAtOnce(t *testing.T) {
	for _, noMembarrier := range []bool{false, true} {
		tx, rx, err := Pair(Options{Capacity: 4096, NoMembarrier: noMembarrier})
		expectKind(t, err, 0)
		expectKind(t, tx.Send(background, 1, make([]byte, 4080)), 0)
		waiting := make(chan error)
		go func() { waiting <- tx.Send(background, 1, nil) }()
		eventually(t, "the other goroutine waits", func() bool { return atomic.LoadUint32(&rx.peer.wait) == 1 })
		for name, call := range map[string]func(){
			"Send":    func() { _ = tx.Send(background, 1, nil) },
			"TrySend": func() { _ = tx.TrySend(1, nil) },
			"Reserve": func() { _, _ = tx.Reserve(background, 1) },
			"Flush":   func() { _ = tx.Flush() },
			"Len":     func() { tx.Len() },
		} {
			t.Run(name, func(t *testing.T) { expectPanic(t, "used by two goroutines at once", call) })
		}
		if !tx.PeerAlive() || tx.PeerEpoch() != 1 {
			t.Fatal("what may be asked from any goroutine")
		}
		m, err := rx.Recv(background)
		expectKind(t, err, 0)
		m.Release()
		expectKind(t, <-waiting, 0)
		m, err = rx.Recv(background)
		expectKind(t, err, 0)
		m.Release()
		go func() {
			_, err := rx.Recv(background)
			waiting <- err
		}()
		eventually(t, "the other goroutine waits", func() bool { return atomic.LoadUint32(&tx.peer.wait) == 1 })
		expectPanic(t, "used by two goroutines at once", func() { _, _ = rx.Recv(background) })
		expectPanic(t, "used by two goroutines at once", func() { _, _ = rx.TryRecvBatch(1) })
		expectKind(t, tx.Close(), 0)
		expectKind(t, <-waiting, Closed)
		expectKind(t, rx.Close(), 0)
	}
}

func TestCloseWaitsForWhatIsOut(t *testing.T) {
	dir := newFolder(t)
	tx, err := CreateSender(dir.at("ring"), Options{})
	expectKind(t, err, 0)
	rx, err := OpenReceiver(dir.at("ring"), Options{})
	expectKind(t, err, 0)
	expectKind(t, tx.Send(background, 1, []byte("kept")), 0)
	m, err := rx.Recv(background)
	expectKind(t, err, 0)
	expectKind(t, rx.Close(), 0)
	expectKind(t, rx.Close(), 0)
	// The sender is told at once, and does not wait for the view; the view and the role stay.
	if string(m.Clone()) != "kept" || tx.PeerAlive() {
		t.Fatal("a close is told at once, and leaves what is out")
	}
	for err = error(nil); err == nil; {
		err = tx.Send(background, 2, make([]byte, 1<<18))
	}
	expectKind(t, err, Closed)
	_, err = rx.Recv(background)
	expectKind(t, err, Detached)
	_, err = OpenReceiver(dir.at("ring"), Options{})
	expectKind(t, err, Busy)
	if string(m.Clone()) != "kept" {
		t.Fatal("the view is as it was")
	}
	m.Release()
	m.Release()
	rx, err = OpenReceiver(dir.at("ring"), Options{})
	expectKind(t, err, 0)
	for tx.Len() != 0 {
		m, err := rx.Recv(background)
		expectKind(t, err, 0)
		if m.TypeID() != 2 {
			t.Fatal("the release finishes the close, and gives the message back")
		}
		m.Release()
	}
	expectKind(t, rx.Close(), 0)

	slot, err := tx.Reserve(background, 10)
	expectKind(t, err, 0)
	expectKind(t, tx.Close(), 0)
	expectKind(t, tx.Send(background, 1, nil), Detached)
	expectKind(t, slot.Commit(2, 0, copy(slot.Bytes(), "last words")), 0)
	rx, err = OpenReceiver(dir.at("ring"), Options{})
	expectKind(t, err, 0)
	var all [][]byte
	for batch := range rx.Batches(background, 8) {
		all = append(all, batch.At(0).Clone())
		expectKind(t, rx.Close(), 0)
	}
	expectKind(t, rx.Err(), Detached)
	if len(all) != 1 || string(all[0]) != "last words" {
		t.Fatalf("%q", all)
	}
}

func TestForgottenHandleLetsItsRoleGo(t *testing.T) {
	dir := newFolder(t)
	rx, err := CreateReceiver(dir.at("ring"), Options{Wait: Block})
	expectKind(t, err, 0)
	func() {
		tx, err := OpenSender(dir.at("ring"), Options{})
		expectKind(t, err, 0)
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		slot, err := tx.Reserve(ctx, 4)
		expectKind(t, err, 0)
		expectKind(t, slot.CommitUnflushed(1, 0, copy(slot.Bytes(), "last")), 0)
		_, err = tx.Reserve(ctx, 4)
		expectKind(t, err, 0)
	}()
	// Closed, not dead: like a dropped handle of the Rust core.
	ended := make(chan error)
	go func() {
		var got []string
		for m := range rx.All(background) {
			got = append(got, string(m.Clone()))
		}
		if len(got) != 1 || got[0] != "last" {
			t.Errorf("%q", got)
		}
		ended <- rx.Err()
	}()
	for {
		runtime.GC()
		select {
		case err := <-ended:
			expectKind(t, err, 0)
			expectKind(t, rx.Close(), 0)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestWaitersLeaveTheirProcessor: a goroutine that wants to run each millisecond is not kept from it by others that wait
// or receive, however few Ps there are.
func TestWaitersLeaveTheirProcessor(t *testing.T) {
	eachWait(t, func(t *testing.T, mode WaitMode) {
		for _, procs := range []int{1, 2} {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			dir := newFolder(t)
			rx, err := CreateReceiver(dir.at("ring"), Options{Wait: mode})
			expectKind(t, err, 0)
			child := startPeer(t, "drip", dir.at("ring"))
			late := make(chan []time.Duration)
			var stop atomic.Bool
			go func() {
				var all []time.Duration
				for !stop.Load() {
					began := time.Now()
					time.Sleep(time.Millisecond)
					all = append(all, time.Since(began)-time.Millisecond)
				}
				late <- all
			}()
			n := 0
			for range rx.All(background) {
				n++
			}
			expectKind(t, rx.Err(), 0)
			stop.Store(true)
			all := <-late
			slices.Sort(all)
			median, most := all[len(all)/2], all[len(all)*95/100]
			t.Logf("GOMAXPROCS=%d: %d ticks beside %d messages, late by %v (median), %v (95 %%), %v (most)", procs, len(all), n, median, most, all[len(all)-1])
			// Half of the ticks may come no later than a spin takes, with much room for other processes.
			if median > 5*time.Millisecond || most > 50*time.Millisecond {
				t.Errorf("GOMAXPROCS=%d: ticks are late by %v, 5 %% by more than %v", procs, median, most)
			}
			child.finish()
			expectKind(t, rx.Close(), 0)
		}
	})
}

func init() {
	// drip NAME: messages for half a second, with pauses of 0 to 300 µs between them; then half a second of nothing.
	helpers["drip"] = func(args []string) {
		tx, err := OpenSender(args[0], Options{Timeout: long})
		must(err)
		end := time.Now().Add(500 * time.Millisecond)
		for i := 0; time.Now().Before(end); i++ {
			must(tx.Send(background, 1, make([]byte, 32)))
			time.Sleep(time.Duration(i%4) * 100 * time.Microsecond)
		}
		time.Sleep(500 * time.Millisecond)
		must(tx.Close())
	}
}

func processorTime() time.Duration {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestManyWaiters: a thousand goroutines that wait need neither a thousand threads nor processor time worth mentioning.
func TestManyWaiters(t *testing.T) {
	const count = 1000
	var rings []*Sender
	var group sync.WaitGroup
	group.Add(count)
	for range count {
		tx, rx, err := Pair(Options{Capacity: 4096, Wait: Block})
		expectKind(t, err, 0)
		rings = append(rings, tx)
		go func() {
			defer group.Done()
			if _, err := rx.Recv(background); KindOf(err) != Closed {
				t.Error(err)
			}
			_ = rx.Close()
		}()
	}
	eventually(t, "all wait", func() bool {
		return !slices.ContainsFunc(rings, func(tx *Sender) bool { return atomic.LoadUint32(&tx.peer.wait) == 0 })
	})
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	time.Sleep(300 * time.Millisecond)
	before, began := processorTime(), time.Now()
	time.Sleep(time.Second)
	used, passed := processorTime()-before, time.Since(began)
	t.Logf("%d waiters use %v of processor time in %v, in %d threads", count, used, passed, threads(t))
	// Waiters that spin would use all of a processor. The race detector makes each round many times as dear, and a system
	// call for each costs nearly half of one (docs/adr/0017).
	if used > passed/2 && !guardAlways && !withoutParking.Load() {
		t.Errorf("%d waiters use %v of processor time in %v", count, used, passed)
	}
	// Sockets and pipes of other tests have threads too; nothing like one per waiter.
	if n := threads(t); n > 200 && !withoutParking.Load() && runtime.GOOS == "linux" {
		t.Errorf("%d threads for %d waiters", n, count)
	}
	for _, tx := range rings {
		expectKind(t, tx.Close(), 0)
	}
	group.Wait()
}

func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0 // not Linux
	}
	return len(tasks)
}

// TestThreadThatWentToSleepExits: its io_uring request is cancelled by the kernel, and armed anew by another thread.
func TestThreadThatWentToSleepExits(t *testing.T) {
	tx, rx, err := Pair(Options{Wait: Block})
	expectKind(t, err, 0)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(background, time.Millisecond)
		ended := make(chan error)
		go func() {
			// Never unlocked: the thread ends with the goroutine.
			runtime.LockOSThread()
			_, err := rx.Recv(ctx)
			ended <- err
		}()
		expectKind(t, <-ended, TimedOut)
		cancel()
		time.AfterFunc(5*time.Millisecond, func() { _ = tx.SendTagged(background, 1, uint64(i), nil) })
		began := time.Now()
		m, err := rx.Recv(background)
		expectKind(t, err, 0)
		if m.Tag() != uint64(i) {
			t.Fatalf("message %d", m.Tag())
		}
		m.Release()
		if took := time.Since(began); took > long/10 {
			t.Fatalf("woken after %v", took)
		}
	}
	expectKind(t, tx.Close(), 0)
	expectKind(t, rx.Close(), 0)
}
