package ramway

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Several handles that are read as one: the order of their messages, and their ends.

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
