package ramway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Many processes at one end: with producers and workers that are processes, and are killed.

func init() {
	// Sends numbers until it is told to stop, or is killed.
	helpers["producer"] = func(args []string) {
		bus, err := Connect(background, args[0], ConnectOptions{Timeout: long})
		must(err)
		say("connected")
		count, err := strconv.ParseUint(args[1], 10, 64)
		must(err)
		for number := range count {
			if err := bus.SendTagged(background, 7, number, fmt.Appendf(nil, "%d", number)); err != nil {
				_ = bus.Close()
				say("%s", KindOf(err).String())
				return
			}
		}
		say("sent")
		told()
		must(bus.Close())
	}
	// Works until its outbox closes: writes each task's tag down after it has done it, then gives it back.
	helpers["worker"] = func(args []string) {
		bus, err := Connect(background, args[0], ConnectOptions{Timeout: long})
		must(err)
		file, err := os.OpenFile(args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		must(err)
		for m := range bus.All(background) {
			if string(m.Clone()) != fmt.Sprintf("task %d", m.Tag()) {
				must(fmt.Errorf("task %d is %q", m.Tag(), m.Clone()))
			}
			// One write: whole, or nothing.
			_, err := file.Write(fmt.Appendf(nil, "%d\n", m.Tag()))
			must(err)
		}
	}
	// Takes one task and never gives it back.
	helpers["lazy"] = func(args []string) {
		bus, err := Connect(background, args[0], ConnectOptions{Timeout: long})
		must(err)
		m, err := bus.Recv(background)
		must(err)
		if len(args) > 1 {
			copy(m.UnsafeBytes(), args[1])
		}
		say("%d", m.Tag())
		told()
	}
}

func inboxAt(t testing.TB, path string, o InboxOptions) *Inbox {
	t.Helper()
	inbox, err := BindInbox(path, o)
	expectKind(t, err, 0)
	t.Cleanup(func() { _ = inbox.Close() })
	return inbox
}

func outboxAt(t testing.TB, path string, o OutboxOptions) *Outbox {
	t.Helper()
	outbox, err := BindOutbox(path, o)
	expectKind(t, err, 0)
	t.Cleanup(func() { _ = outbox.Close() })
	return outbox
}

func TestMergeGivesAllInTurn(t *testing.T) {
	senders, receivers := rings(t, 3, Options{})
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{})
	sub := subscriberOpen(t, name, TopicOptions{})
	for i := range 9 {
		expectKind(t, senders[i%3].SendTagged(background, 1, uint64(i/3), nil), 0)
		expectKind(t, pub.SendTagged(background, 1, uint64(i), nil), 0)
	}
	streams := []Stream{receivers[0], receivers[1], receivers[2], sub}
	next, last := [4]uint64{}, -1
	for who, m := range Merge(within(t), streams...) {
		if m.Tag() != next[who] || who == last && m.Tag() < 3 {
			t.Fatal(who, m.Tag(), next, last)
		}
		next[who]++
		if last = who; next == [4]uint64{3, 3, 3, 9} {
			break
		}
		if next[0] == 2 {
			m.Release() // by the body
		}
	}
	// What the body left is released, and each can be used as always.
	expectKind(t, receiveNow(receivers[0]), Empty)
	for i, tx := range senders {
		expectKind(t, tx.Send(background, uint32(i), nil), 0)
		expectKind(t, tx.Close(), 0)
	}
	all := 0
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	for who, m := range Merge(ctx, streams...) {
		if int(m.TypeID()) != who {
			t.Fatal(who, m.TypeID())
		}
		all++
	}
	if all != 3 || receivers[0].Err() != nil || receivers[2].Err() != nil {
		t.Fatal(all, receivers[0].Err())
	}
	// The one that has not ended says why the loop did.
	expectKind(t, sub.Err(), TimedOut)
	expectKind(t, pub.Abandon(), 0)
	for range Merge(background, receivers[1], sub) {
		t.Fatal("there is nothing")
	}
	expectKind(t, sub.Err(), PeerDead)
	for range Merge(background) {
		t.Fatal("there is nothing")
	}
}

// Topics of Rust's command, in one loop; one of the publishers is stopped, and killed.
func TestTheCommandsTopicsAreMerged(t *testing.T) {
	dir := newFolder(t)
	var streams []Stream
	var commands []*exec.Cmd
	var inputs []io.WriteCloser
	for i, o := range []TopicOptions{{}, {Policy: Lossy}, {}} {
		name := dir.at(fmt.Sprint("topic", i))
		sub := subscriberAt(t, name, o)
		cmd := ramwayCommand(t, dir, "pub", "-q", "--lines", name)
		input, err := cmd.StdinPipe()
		must(err)
		must(cmd.Start())
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		streams, commands, inputs = append(streams, sub), append(commands, cmd), append(inputs, input)
	}
	go func() {
		for i := range 100 {
			for _, input := range inputs {
				_, _ = fmt.Fprintf(input, "line %d\n", i)
			}
		}
		_ = inputs[0].Close()
		_ = inputs[1].Close()
	}()
	next := [3]int{}
	for who, m := range Merge(within(t), streams...) {
		if string(m.Clone()) != fmt.Sprintf("line %d\n", next[who]) {
			t.Fatalf("%d: %q, expected line %d", who, m.Clone(), next[who])
		}
		if next[who]++; next == [3]int{100, 100, 100} {
			// The one that has not closed.
			must(commands[2].Process.Signal(syscall.SIGSTOP))
			time.AfterFunc(20*time.Millisecond, func() { _ = commands[2].Process.Kill() })
		}
	}
	if next != [3]int{100, 100, 100} {
		t.Fatal(next)
	}
	for i, kind := range []Kind{0, 0, PeerDead} {
		expectKind(t, streams[i].receiver().Err(), kind)
	}
}

func TestAMergesBodyMayPanic(t *testing.T) {
	senders, receivers := rings(t, 2, Options{})
	expectKind(t, senders[1].Send(background, 1, []byte("x")), 0)
	func() {
		defer func() { _ = recover() }()
		for range Merge(background, receivers[0], receivers[1]) {
			panic("in the middle")
		}
	}()
	expectKind(t, receiveNow(receivers[1]), Empty)
}

func TestAMergeOfMany(t *testing.T) {
	const messages = 5000
	for _, count := range []int{2, 20} {
		senders, receivers := rings(t, count, Options{})
		streams := []Stream{}
		for _, rx := range receivers {
			streams = append(streams, rx)
		}
		var all sync.WaitGroup
		for _, tx := range senders {
			all.Add(1)
			go func() {
				defer all.Done()
				for i := range uint64(messages) {
					if tx.SendTagged(background, 1, i, make([]byte, i%100)) != nil {
						t.Error("send")
					}
				}
				_ = tx.Close()
			}()
		}
		next := make([]uint64, count)
		for who, m := range Merge(within(t), streams...) {
			if m.Tag() != next[who] {
				t.Fatal(who, m.Tag(), next[who])
			}
			next[who]++
		}
		all.Wait()
		for i := range count {
			if next[i] != messages || receivers[i].Err() != nil {
				t.Fatal(i, next[i], receivers[i].Err())
			}
		}
	}
}

// incoming is what comes next, as text, for tests; a message is released.
func incoming(t *testing.T, inbox *Inbox) Incoming {
	t.Helper()
	in, err := inbox.Recv(within(t))
	expectKind(t, err, 0)
	return in
}

func TestEachProducersMessagesComeInOrderAndItsDepartureAfterThem(t *testing.T) {
	const producers, count = 5, 3000
	dir := newFolder(t)
	inbox := inboxAt(t, dir.at("inbox.sock"), InboxOptions{Capacity: 4096})
	peers := []*peer{}
	for range producers {
		peers = append(peers, startPeer(t, "producer", inbox.Path(), fmt.Sprint(count)))
	}
	next, all := map[uint64]uint64{}, 0
	for all < producers*count {
		in := incoming(t, inbox)
		if in.Left != 0 || in.Message.Tag() != next[in.Peer.ID] || string(in.Message.Clone()) != fmt.Sprint(in.Message.Tag()) ||
			in.Peer.PID == 0 || in.Message.TypeID() != 7 {
			t.Fatalf("%+v", in)
		}
		next[in.Peer.ID]++
		all++
		in.Message.Release()
	}
	if len(inbox.Peers()) != producers {
		t.Fatal(inbox.Peers())
	}
	peers[0].kill()
	peers[1].finish()
	ends := map[Left]int{}
	for range 2 {
		in := incoming(t, inbox)
		ends[in.Left]++
	}
	if ends[LeftDied] != 1 || ends[LeftClosed] != 1 || len(inbox.Peers()) != producers-2 {
		t.Fatal(ends, inbox.Peers())
	}
	expectKind(t, inbox.Close(), 0)
	expectKind(t, inbox.Close(), 0)
	_, err := inbox.TryRecv()
	expectKind(t, err, Detached)
	for _, p := range peers[2:] {
		p.finish()
	}
	dir.expectNames()
}

func TestOneProducerThatFloodsDoesNotStarveAnother(t *testing.T) {
	inbox := inboxAt(t, newFolder(t).at("inbox.sock"), InboxOptions{})
	flood := startPeer(t, "producer", inbox.Path(), "1000000000")
	for {
		in := incoming(t, inbox)
		tag := in.Message.Tag()
		in.Message.Release()
		if tag == 1000 {
			break
		}
	}
	other := startPeer(t, "producer", inbox.Path(), "10")
	between, got, left := 0, 0, false
	for got < 10 {
		in := incoming(t, inbox)
		if in.Left != 0 {
			t.Fatalf("%+v", in)
		}
		if in.Peer.ID == 2 {
			// In turn: at most one of the flood between two of the other, once those are there.
			if got > 0 && between > 1 {
				t.Fatalf("%d messages of the flood came first", between)
			}
			got, between = got+1, 0
		} else if got > 0 {
			between++
		}
		in.Message.Release()
	}
	// The departure of one that has gone is told, however much another one sends; and so is a death.
	other.kill()
	for began := time.Now(); !left; {
		in := incoming(t, inbox)
		left = in.Left == LeftDied && in.Peer.ID == 2
		in.Message.Release()
		if time.Since(began) > long {
			t.Fatal("its death is not told")
		}
	}
	flood.kill()
}

func TestOneProducerTooManyIsToldBusyUntilAPlaceIsFree(t *testing.T) {
	inbox := inboxAt(t, newFolder(t).at("inbox.sock"), InboxOptions{MaxPeers: 2})
	first, second := startPeer(t, "producer", inbox.Path(), "1"), startPeer(t, "producer", inbox.Path(), "1")
	for range 2 {
		in := incoming(t, inbox)
		in.Message.Release()
	}
	_, err := Connect(background, inbox.Path(), ConnectOptions{Timeout: long})
	expectKind(t, err, Busy)
	expectText(t, err, "Busy")
	first.kill()
	if in := incoming(t, inbox); in.Left != LeftDied {
		t.Fatalf("%+v", in)
	}
	fourth := startPeer(t, "producer", inbox.Path(), "1")
	in := incoming(t, inbox)
	if in.Left != 0 || in.Peer.ID != 3 {
		t.Fatalf("%+v", in)
	}
	in.Message.Release()
	second.finish()
	fourth.finish()
}

func TestAnInboxThatIsShutDownGoesOnUntilTheLastProducerHasGone(t *testing.T) {
	dir := newFolder(t)
	inbox := inboxAt(t, dir.at("inbox.sock"), InboxOptions{Capacity: 4096})
	p := startPeer(t, "producer", inbox.Path(), "1000000000")
	for tag := uint64(0); tag < 100; {
		in := incoming(t, inbox)
		tag = in.Message.Tag()
		in.Message.Release()
	}
	expectKind(t, inbox.Shutdown(), 0)
	expectKind(t, inbox.Shutdown(), 0)
	dir.expectNames()
	p.expect("connected")
	p.expect("Closed")
	ends := 0
	for in := range inbox.All(within(t)) {
		if in.Left != 0 {
			ends++
			if in.Left != LeftClosed {
				t.Fatal(in.Left)
			}
		}
	}
	if inbox.Err() != nil || ends != 1 {
		t.Fatal(inbox.Err(), ends)
	}
	_, err := inbox.Recv(background)
	expectKind(t, err, Closed)
	p.finish()
	expectKind(t, inbox.Close(), 0)
	expectKind(t, inbox.Shutdown(), Detached)
}

func TestAStoppedProducerHoldsUpNobody(t *testing.T) {
	inbox := inboxAt(t, newFolder(t).at("inbox.sock"), InboxOptions{Capacity: 4096})
	stopped := startPeer(t, "producer", inbox.Path(), "1000000000")
	in := incoming(t, inbox)
	in.Message.Release()
	must(stopped.cmd.Process.Signal(syscall.SIGSTOP))
	other := startPeer(t, "producer", inbox.Path(), "2000")
	for got := 0; got < 2000; {
		in := incoming(t, inbox)
		if in.Left != 0 {
			t.Fatalf("%+v", in)
		}
		if in.Peer.ID == 2 {
			got++
		}
		in.Message.Release()
	}
	other.finish()
	stopped.kill()
	ends := map[uint64]Left{}
	for len(ends) < 2 {
		in := incoming(t, inbox)
		if in.Left != 0 {
			ends[in.Peer.ID] = in.Left
		}
		in.Message.Release()
	}
	if ends[1] != LeftDied || ends[2] != LeftClosed {
		t.Fatal(ends)
	}
}

func TestAnInboxsWaitIsCalledOff(t *testing.T) {
	inbox := inboxAt(t, newFolder(t).at("inbox.sock"), InboxOptions{Wait: Block})
	_, err := inbox.TryRecv()
	expectKind(t, err, Empty)
	ctx, cancel := context.WithCancelCause(background)
	go func() { time.Sleep(5 * time.Millisecond); cancel(errors.New("enough")) }()
	_, err = inbox.Recv(ctx)
	expectKind(t, err, Interrupted)
	expectText(t, err, "receiving from the inbox", "enough")
	for range inbox.All(ctx) {
		t.Fatal("there is nothing")
	}
	expectKind(t, inbox.Err(), Interrupted)
	ended := make(chan error)
	go func() {
		_, err := inbox.Recv(background)
		ended <- err
	}()
	time.Sleep(5 * time.Millisecond)
	expectKind(t, inbox.Close(), 0)
	expectKind(t, <-ended, Detached)
}

func TestAMessageOfAnInboxOutlivesItsClose(t *testing.T) {
	inbox := inboxAt(t, newFolder(t).at("inbox.sock"), InboxOptions{})
	bus, err := Connect(background, inbox.Path(), ConnectOptions{})
	expectKind(t, err, 0)
	defer bus.Close()
	expectKind(t, bus.Send(background, 1, []byte("kept")), 0)
	in := incoming(t, inbox)
	_, err = inbox.TryRecv()
	expectKind(t, err, Busy)
	expectKind(t, inbox.Close(), 0)
	if string(in.Message.Clone()) != "kept" {
		t.Fatal(string(in.Message.Clone()))
	}
	in.Message.Release()
}

func TestAProducerThatWritesNonsenseLeaves(t *testing.T) {
	inbox := inboxAt(t, newFolder(t).at("inbox.sock"), InboxOptions{})
	bus, err := Connect(background, inbox.Path(), ConnectOptions{})
	expectKind(t, err, 0)
	defer bus.Close()
	other, err := Connect(background, inbox.Path(), ConnectOptions{})
	expectKind(t, err, 0)
	defer other.Close()
	expectKind(t, other.Send(background, 1, []byte("whole")), 0)
	bus.sender.ring.tail = 12345
	seen := map[string]bool{}
	for len(seen) < 2 {
		if in := incoming(t, inbox); in.Left != 0 {
			seen[in.Left.String()] = true
		} else {
			seen[string(in.Message.Clone())] = true
			in.Message.Release()
		}
	}
	if !seen["corrupt"] || !seen["whole"] || len(inbox.Peers()) != 1 {
		t.Fatal(seen, inbox.Peers())
	}
}

func TestAnInboxAllocatesNothing(t *testing.T) {
	inbox := inboxAt(t, newFolder(t).at("inbox.sock"), InboxOptions{})
	buses := []*Bus{}
	for range 5 {
		bus, err := Connect(background, inbox.Path(), ConnectOptions{})
		expectKind(t, err, 0)
		defer bus.Close()
		buses = append(buses, bus)
	}
	turn := 0
	one := func() {
		turn++
		if buses[turn%5].Send(background, 1, []byte("x")) != nil {
			t.Fatal("send")
		}
		in, err := inbox.Recv(background)
		if err != nil || in.Left != 0 {
			t.Fatal(err)
		}
		in.Message.Release()
		if _, err := inbox.TryRecv(); !errors.Is(err, ErrEmpty) {
			t.Fatal(err)
		}
	}
	for range 20 {
		one()
	}
	if n := testing.AllocsPerRun(300, one); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAnInboxByTwoGoroutinesPanics(t *testing.T) {
	inbox := inboxAt(t, newFolder(t).at("inbox.sock"), InboxOptions{Wait: Block})
	ended := make(chan error)
	go func() {
		_, err := inbox.Recv(background)
		ended <- err
	}()
	time.Sleep(20 * time.Millisecond)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("used by two goroutines, and no panic")
			}
		}()
		_, _ = inbox.TryRecv()
	}()
	expectKind(t, inbox.Close(), 0)
	expectKind(t, <-ended, Detached)
}

// meters is Rust's program that is a producer, or an inbox: an example of the repository, which cargo builds.
func meters(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	repositoryFile(t, "examples/src/bin/meters.rs")
	cmd := exec.Command(builtMeters(), args...)
	if cmd.Path == "" {
		t.Skip("cargo, which builds the other side, is not there")
	}
	cmd.Stderr = os.Stderr
	return cmd
}

var builtMeters = sync.OnceValue(func() string {
	build := exec.Command("cargo", "build", "--quiet", "--message-format=json", "-p", "ramway-examples", "--bin", "meters")
	build.Dir, build.Stderr = "../..", os.Stderr
	out, err := build.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return ""
	}
	must(err)
	for _, line := range strings.Split(string(out), "\n") {
		var message struct{ Executable string }
		if json.Unmarshal([]byte(line), &message) == nil && message.Executable != "" {
			return message.Executable
		}
	}
	panic("cargo built nothing")
})

func TestRustsProducersAndAnInboxOfGo(t *testing.T) {
	inbox := inboxAt(t, newFolder(t).at("inbox.sock"), InboxOptions{Capacity: 4096})
	commands := []*exec.Cmd{meters(t, "send", inbox.Path(), "5000"), meters(t, "send", inbox.Path(), "100000000")}
	for _, cmd := range commands {
		must(cmd.Start())
	}
	defer func() { _, _ = commands[1].Process.Kill(), commands[1].Wait() }()
	last, killed := map[uint64]uint64{}, false
	ends := map[int]Left{}
	for len(ends) < 2 {
		in := incoming(t, inbox)
		if in.Left != 0 {
			ends[in.Peer.PID] = in.Left
			continue
		}
		if in.Message.Tag() != last[in.Peer.ID]+1 || in.Message.Len() != 8 {
			t.Fatal(in.Peer, in.Message.Tag(), last[in.Peer.ID])
		}
		last[in.Peer.ID]++
		in.Message.Release()
		if !killed && in.Peer.PID == commands[1].Process.Pid && last[in.Peer.ID] == 3000 {
			must(commands[1].Process.Kill())
			killed = true
		}
	}
	if ends[commands[0].Process.Pid] != LeftClosed || ends[commands[1].Process.Pid] != LeftDied {
		t.Fatal(ends)
	}
	must(commands[0].Wait())
}

func TestGosProducersAndAnInboxOfRust(t *testing.T) {
	path := newFolder(t).at("inbox.sock")
	cmd := meters(t, "collect", path, "3")
	var said strings.Builder
	cmd.Stdout = &said
	must(cmd.Start())
	for i := range 3 {
		bus, err := Connect(background, path, ConnectOptions{Timeout: long})
		expectKind(t, err, 0)
		for tag := range uint64(1000 * (i + 1)) {
			expectKind(t, bus.SendTagged(background, 1, tag+1, []byte("a reading")), 0)
		}
		expectKind(t, bus.Close(), 0)
	}
	must(cmd.Wait())
	for i := range 3 {
		if !strings.Contains(said.String(), fmt.Sprintf(": %d readings, then it closed", 1000*(i+1))) {
			t.Fatal(said.String())
		}
	}
}

// workers waits until so many are there.
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

func TestOptionsOfManyThatNobodyCouldUseAreRefused(t *testing.T) {
	path := newFolder(t).at("x.sock")
	_, err := BindInbox(path, InboxOptions{MaxPeers: -1})
	expectKind(t, err, InvalidArgument)
	_, err = BindInbox(path, InboxOptions{Align: 3})
	expectKind(t, err, InvalidArgument)
	_, err = BindOutbox(path, OutboxOptions{Prefetch: -1})
	expectKind(t, err, InvalidArgument)
	_, err = BindOutbox(path, OutboxOptions{MaxDeliveries: -1})
	expectKind(t, err, InvalidArgument)
	inboxAt(t, path, InboxOptions{})
	_, err = BindInbox(path, InboxOptions{})
	expectKind(t, err, AlreadyExists)
	_, err = BindOutbox(path, OutboxOptions{})
	expectKind(t, err, AlreadyExists)
}
