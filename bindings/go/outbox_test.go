package ramway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// workers waits until the outbox has count workers.
func workers(t *testing.T, outbox *Outbox, count int) {
	t.Helper()
	eventually(t, "all workers are there", func() bool {
		expectKind(t, outbox.Drain(background), 0)
		return len(outbox.Workers()) == count
	})
}

// tagsIn is what workers wrote down.
func tagsIn(t *testing.T, file string) (tags []uint64) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(err)
	for _, line := range strings.Fields(string(text)) {
		tag, err := strconv.ParseUint(line, 10, 64)
		must(err)
		tags = append(tags, tag)
	}
	slices.Sort(tags)
	return tags
}

func upTo(count uint64) (all []uint64) {
	for i := range count {
		all = append(all, i)
	}
	return all
}

func TestEveryTaskIsDoneOnceWhereNobodyDies(t *testing.T) {
	const tasks = 500
	for _, prefetch := range []int{0, 4} {
		dir := newFolder(t)
		outbox := outboxAt(t, dir.at("outbox.sock"), OutboxOptions{Prefetch: prefetch})
		peers := []*peer{}
		for range 3 {
			peers = append(peers, startPeer(t, "worker", outbox.Path(), dir.at("done")))
		}
		workers(t, outbox, 3)
		for i := range uint64(tasks) {
			expectKind(t, outbox.SendTagged(within(t), 1, i, fmt.Appendf(nil, "task %d", i)), 0)
		}
		expectKind(t, outbox.Drain(within(t)), 0)
		if outbox.Outstanding() != 0 {
			t.Fatal(outbox.Outstanding())
		}
		expectKind(t, outbox.Close(), 0)
		for _, p := range peers {
			p.finish()
		}
		if done := tagsIn(t, dir.at("done")); !slices.Equal(done, upTo(tasks)) {
			t.Fatal(done)
		}
	}
}

// It gives its last task back and closes at once: the task is done.
func TestWhatAWorkerGaveBackBeforeItClosedIsNotGivenAgain(t *testing.T) {
	outbox := outboxAt(t, newFolder(t).at("outbox.sock"), OutboxOptions{})
	for round := range uint64(20) {
		tag := make(chan uint64)
		go func() {
			bus, err := Connect(background, outbox.Path(), ConnectOptions{})
			must(err)
			m, err := bus.Recv(background)
			must(err)
			got := m.Tag()
			m.Release()
			must(bus.Close())
			tag <- got
		}()
		expectKind(t, outbox.SendTagged(within(t), 1, round, []byte("a task")), 0)
		expectKind(t, outbox.Drain(within(t)), 0)
		if got := <-tag; got != round || outbox.Outstanding() != 0 {
			t.Fatal(got, round)
		}
		if _, some := outbox.TakeUndelivered(); some {
			t.Fatal("it was taken out")
		}
	}
}

func TestWhatAKilledWorkerHadIsGivenToAnotherAndTakenOutAfterThree(t *testing.T) {
	for _, copies := range []bool{false, true} {
		outbox := outboxAt(t, newFolder(t).at("outbox.sock"), OutboxOptions{Copies: copies})
		expectKind(t, outbox.TrySendTagged(1, 0, []byte("task 0")), Full)
		for round := range 3 {
			lazy := startPeer(t, "lazy", outbox.Path(), "tamp")
			if round == 0 {
				expectKind(t, outbox.SendTagged(within(t), 1, 42, []byte("task 42")), 0)
			} else {
				// The death is seen, and the next worker taken, inside a call.
				eventually(t, "it is given again", func() bool {
					ctx, cancel := context.WithTimeout(background, 5*time.Millisecond)
					defer cancel()
					expectKind(t, outbox.Drain(ctx), TimedOut)
					return slices.ContainsFunc(outbox.Workers(), func(w Worker) bool { return w.ID == uint64(round+1) && w.Has == 1 })
				})
			}
			lazy.expect("42")
			if _, some := outbox.TakeUndelivered(); some || outbox.Outstanding() != 1 {
				t.Fatal(round, outbox.Outstanding())
			}
			lazy.kill()
		}
		expectKind(t, outbox.Drain(within(t)), 0)
		taken, some := outbox.TakeUndelivered()
		wanted := "tamp 42"
		if copies {
			wanted = "task 42"
		}
		if !some || taken.Tag != 42 || taken.TypeID != 1 || taken.Deliveries != 3 || string(taken.Data) != wanted {
			t.Fatalf("%+v %q", taken, taken.Data)
		}
		if _, some := outbox.TakeUndelivered(); some {
			t.Fatal("twice")
		}
	}
}

func TestNothingIsLostWhileWorkersAreKilledAgainAndAgain(t *testing.T) {
	const tasks = 200
	dir := newFolder(t)
	outbox := outboxAt(t, dir.at("outbox.sock"), OutboxOptions{Prefetch: 2, MaxDeliveries: 1000})
	start := func() *peer { return startPeer(t, "worker", outbox.Path(), dir.at("done")) }
	peers := []*peer{start(), start(), start()}
	for i := range uint64(tasks) {
		expectKind(t, outbox.SendTagged(within(t), 1, i, fmt.Appendf(nil, "task %d", i)), 0)
		if i%20 == 19 {
			peers[0].kill()
			peers = append(peers[1:], start())
		}
	}
	expectKind(t, outbox.Drain(within(t)), 0)
	if _, some := outbox.TakeUndelivered(); some {
		t.Fatal("it was taken out")
	}
	// By process: one that was killed may be counted for an instant, before another has connected.
	eventually(t, "those that live are there", func() bool {
		expectKind(t, outbox.Drain(background), 0)
		has := outbox.Workers()
		return !slices.ContainsFunc(peers, func(p *peer) bool {
			return !slices.ContainsFunc(has, func(w Worker) bool { return w.PID == p.cmd.Process.Pid })
		})
	})
	expectKind(t, outbox.Close(), 0)
	for _, p := range peers {
		p.finish()
	}
	// At least once: a worker may be killed between writing its task down and giving it back.
	if done := slices.Compact(tagsIn(t, dir.at("done"))); !slices.Equal(done, upTo(tasks)) {
		t.Fatal(done)
	}
}

// A side that always finds a free worker never waits, and finds the death of another all the same.
func TestADeadWorkersTaskIsGivenAgainWhileOthersAreFree(t *testing.T) {
	outbox := outboxAt(t, newFolder(t).at("outbox.sock"), OutboxOptions{})
	lazy := startPeer(t, "lazy", outbox.Path())
	expectKind(t, outbox.SendTagged(within(t), 1, 42, []byte("task 42")), 0)
	lazy.expect("42")
	bus, err := Connect(background, outbox.Path(), ConnectOptions{})
	expectKind(t, err, 0)
	defer bus.Close()
	must(lazy.cmd.Process.Signal(syscall.SIGSTOP))
	began, killed, tag := time.Now(), false, uint64(0)
	for tag != 42 {
		if err := outbox.TrySendTagged(1, 1, nil); err != nil {
			// It is not taken yet; or the task that is given again went first.
			expectKind(t, err, Full)
		}
		if m, err := bus.TryRecv(); err == nil {
			tag = m.Tag()
			m.Release()
		} else {
			expectKind(t, err, Empty)
		}
		if !killed && time.Since(began) > 250*time.Millisecond {
			// A stopped one lives, and keeps its task.
			lazy.kill()
			killed = true
		}
		if time.Since(began) > long {
			t.Fatal("its task is not given again")
		}
	}
	if !killed {
		t.Fatal("the task of one that is stopped was given to another")
	}
}

func TestTheFreeWorkerGetsTheTask(t *testing.T) {
	outbox := outboxAt(t, newFolder(t).at("outbox.sock"), OutboxOptions{})
	buses := []*Bus{}
	for range 3 {
		bus, err := Connect(background, outbox.Path(), ConnectOptions{})
		expectKind(t, err, 0)
		defer bus.Close()
		buses = append(buses, bus)
	}
	workers(t, outbox, 3)
	// The one that waits goes before those that only have nothing.
	received := make(chan Message)
	go func() {
		m, err := buses[1].Recv(background)
		must(err)
		received <- m
	}()
	eventually(t, "it waits", func() bool {
		return outbox.workers[1].tx.peer.wait != 0 || outbox.workers[0].tx.peer.wait != 0 || outbox.workers[2].tx.peer.wait != 0
	})
	expectKind(t, outbox.TrySendTagged(1, 1, nil), 0)
	m := <-received
	expectKind(t, outbox.TrySend(1, nil), 0)
	expectKind(t, outbox.TrySend(1, nil), 0)
	expectKind(t, outbox.TrySend(1, nil), Full)
	m.Release()
	expectKind(t, outbox.TrySend(1, nil), 0)
	expectKind(t, outbox.TrySend(1, nil), Full)
	// A stopped worker, and one that is slow, hold up their own task and no other.
	m, err := buses[0].Recv(background)
	expectKind(t, err, 0)
	defer m.Release()
	for range 10 {
		other, err := buses[2].Recv(background)
		expectKind(t, err, 0)
		other.Release()
		expectKind(t, outbox.Send(within(t), 1, nil), 0)
	}
	expectKind(t, outbox.TrySend(0xFFFF0001, nil), InvalidArgument)
	expectKind(t, outbox.TrySend(1, make([]byte, 1<<20)), TooLarge)
}

func TestAnOutboxsWaitIsCalledOff(t *testing.T) {
	outbox := outboxAt(t, newFolder(t).at("outbox.sock"), OutboxOptions{Wait: Block})
	ctx, cancel := context.WithTimeout(background, 5*time.Millisecond)
	defer cancel()
	err := outbox.Send(ctx, 1, nil)
	expectKind(t, err, TimedOut)
	expectText(t, err, "sending to the outbox")
	ended := make(chan error)
	go func() { ended <- outbox.Send(background, 1, nil) }()
	time.Sleep(5 * time.Millisecond)
	expectKind(t, outbox.Close(), 0)
	expectKind(t, <-ended, Detached)
	expectKind(t, outbox.TrySend(1, nil), Detached)
	expectKind(t, outbox.Drain(background), Detached)
}

func TestAnOutboxAllocatesNothing(t *testing.T) {
	outbox := outboxAt(t, newFolder(t).at("outbox.sock"), OutboxOptions{Prefetch: 2})
	bus, err := Connect(background, outbox.Path(), ConnectOptions{})
	expectKind(t, err, 0)
	defer bus.Close()
	workers(t, outbox, 1)
	payload := []byte("a task")
	one := func() {
		for range 2 {
			if outbox.Send(background, 1, payload) != nil {
				t.Fatal("send")
			}
		}
		if !errors.Is(outbox.TrySend(1, payload), ErrFull) {
			t.Fatal("it is not full")
		}
		for range 2 {
			m, err := bus.Recv(background)
			if err != nil {
				t.Fatal(err)
			}
			m.Release()
		}
		if outbox.Drain(background) != nil {
			t.Fatal("drain")
		}
	}
	for range 20 {
		one()
	}
	if n := testing.AllocsPerRun(300, one); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
