package ramway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

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
