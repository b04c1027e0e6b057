package ramway

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lengthOf is the length of message number seq of a mixed stream: mostly short, now and then 0, any, or the longest.
func lengthOf(seq, longest int) int {
	x := uint32(seq) * 2654435761
	switch {
	case seq%1000 == 999:
		return longest
	case seq%100 == 0:
		return 0
	case seq%50 == 1:
		return int(x % uint32(longest+1))
	}
	return int(x % 257)
}

func makeMessage(dst []byte, seq, longest int) []byte {
	dst = dst[:0]
	for i := range lengthOf(seq, longest) {
		dst = append(dst, byte(seq+i))
	}
	return dst
}

func tagOf(seq int, b []byte) uint64 {
	return uint64(crc32.ChecksumIEEE(b))<<32 | uint64(uint32(seq))
}

// checkMessage says what is wrong with message number seq.
func checkMessage(m Message, seq, longest int) error {
	var wrong error
	m.View(func(b []byte) {
		switch {
		case len(b) != lengthOf(seq, longest) || len(b) != m.Len() || cap(b) != len(b):
			wrong = fmt.Errorf("message %d has %d bytes, expected %d", seq, len(b), lengthOf(seq, longest))
		case m.TypeID() != uint32(seq%60000) || m.Tag() != tagOf(seq, b):
			wrong = fmt.Errorf("message %d: type id %d, tag %#x", seq, m.TypeID(), m.Tag())
		case len(b) > 0 && (b[0] != byte(seq) || b[len(b)-1] != byte(seq+len(b)-1)):
			wrong = fmt.Errorf("message %d has other bytes", seq)
		}
	})
	return wrong
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func waitMode(text string) WaitMode {
	for _, mode := range []WaitMode{Hybrid, Spin, Block} {
		if mode.String() == text {
			return mode
		}
	}
	must(fmt.Errorf("no mode %q", text))
	return 0
}

func init() {
	// mixed NAME COUNT MODE BATCH: opens, sends the mixed stream, closes.
	helpers["mixed"] = func(args []string) {
		tx, err := OpenSender(args[0], Options{Timeout: long, Wait: waitMode(args[2])})
		must(err)
		longest, batch := tx.MaxMessageLen(), number(args[3])
		b := make([]byte, 0, longest)
		for seq := range number(args[1]) {
			b = makeMessage(b, seq, longest)
			slot, err := tx.Reserve(background, len(b))
			must(err)
			n := copy(slot.Bytes(), b)
			if seq%batch == batch-1 {
				must(slot.Commit(uint32(seq%60000), tagOf(seq, b), n))
			} else {
				must(slot.CommitUnflushed(uint32(seq%60000), tagOf(seq, b), n))
			}
		}
		must(tx.Close())
	}
	// echo IN OUT MODE: sends back what it receives, until the end.
	helpers["echo"] = func(args []string) {
		rx, err := OpenReceiver(args[0], Options{Timeout: long, Wait: waitMode(args[2])})
		must(err)
		tx, err := OpenSender(args[1], Options{Timeout: long, Wait: waitMode(args[2])})
		must(err)
		for m := range rx.All(background) {
			m.View(func(b []byte) { must(tx.SendTagged(background, m.TypeID(), m.Tag(), b)) })
		}
		must(rx.Err())
		must(tx.Close())
		must(rx.Close())
	}
	// hold ROLE NAME: attaches and says "attached"; sends or receives on command.
	helpers["hold"] = func(args []string) {
		switch args[0] {
		case "producer":
			tx, err := OpenOrCreateSender(args[1], Options{Timeout: long})
			must(err)
			say("attached")
			for line := told(); line != ""; line = told() {
				word, rest, _ := strings.Cut(line, " ")
				switch word {
				case "send":
					must(tx.SendTagged(background, 1, uint64(len(rest)), []byte(rest)))
				case "unflushed":
					slot, err := tx.Reserve(background, len(rest))
					must(err)
					must(slot.CommitUnflushed(1, 77, copy(slot.Bytes(), rest)))
				case "flush":
					must(tx.Flush())
				case "close":
					must(tx.Close())
				case "abandon":
					must(tx.Abandon())
				}
				say("done")
			}
		case "consumer":
			rx, err := OpenOrCreateReceiver(args[1], Options{Timeout: long})
			must(err)
			say("attached")
			for line := told(); line != ""; line = told() {
				switch line {
				case "recv", "keep":
					m, err := rx.Recv(background)
					must(err)
					say("%s", m.Clone())
					if line == "recv" {
						m.Release()
					}
				case "close":
					must(rx.Close())
					say("done")
				}
			}
		}
	}
}

func TestMixedStreamAroundTheEnd(t *testing.T) {
	const count = 100_000
	modes := []string{"hybrid", "block", "spin"}
	if testing.Short() {
		modes = modes[:1]
	}
	for _, mode := range modes {
		for _, batch := range []string{"1", "16"} {
			t.Run(mode+"/"+batch, func(t *testing.T) {
				dir := newFolder(t)
				rx, err := CreateReceiver(dir.at("ring"), Options{Capacity: 1 << 16, Wait: waitMode(mode)})
				expectKind(t, err, 0)
				child := startPeer(t, "mixed", dir.at("ring"), strconv.Itoa(count), mode, batch)
				seq, longest := 0, rx.MaxMessageLen()
				if batch == "1" {
					for m := range rx.All(background) {
						if err := checkMessage(m, seq, longest); err != nil {
							t.Fatal(err)
						}
						seq++
					}
				} else {
					for b := range rx.Batches(background, 10) {
						if b.Len() < 1 || b.Len() > 10 {
							t.Fatalf("a batch of %d", b.Len())
						}
						for m := range b.All() {
							if err := checkMessage(m, seq, longest); err != nil {
								t.Fatal(err)
							}
							seq++
						}
					}
				}
				expectKind(t, rx.Err(), 0)
				if seq != count {
					t.Fatalf("%d messages, expected %d", seq, count)
				}
				child.finish()
				expectKind(t, rx.Close(), 0)
				dir.expectNames()
			})
		}
	}
}

func TestEveryAlignmentFilledToTheLastByte(t *testing.T) {
	for align := 16; align <= 4096; align *= 2 {
		tx, rx, err := Pair(Options{Capacity: 1, Align: align})
		expectKind(t, err, 0)
		capacity := int(tx.Capacity())
		if tx.Align() != align || rx.Align() != align || capacity != os.Getpagesize() {
			t.Fatalf("align %d, capacity %d", tx.Align(), capacity)
		}
		for round := range 20 {
			// The longest message fits whenever the ring is empty; beside it there is room for nothing.
			full := bytes.Repeat([]byte{byte(round)}, tx.MaxMessageLen())
			expectKind(t, tx.TrySend(7, full), 0)
			expectKind(t, tx.TrySend(7, nil), Full)
			if tx.Len() != int64(capacity) || rx.Len() != int64(capacity) {
				t.Fatalf("%d bytes sent, %d seen", tx.Len(), rx.Len())
			}
			m, err := rx.TryRecv()
			expectKind(t, err, 0)
			m.View(func(b []byte) {
				if !bytes.Equal(b, full) {
					t.Fatal("other bytes")
				}
			})
			m.Release()
			// And as many of length 0 as there is room for.
			for range capacity / align {
				expectKind(t, tx.TrySendTagged(8, uint64(round), nil), 0)
			}
			expectKind(t, tx.TrySend(8, nil), Full)
			batch, err := rx.TryRecvBatch(1 << 20)
			expectKind(t, err, 0)
			if batch.Len() != capacity/align || batch.At(batch.Len()-1).Tag() != uint64(round) || batch.At(0).Len() != 0 {
				t.Fatalf("a batch of %d", batch.Len())
			}
			batch.Release()
			// What comes next begins elsewhere.
			expectKind(t, tx.Send(background, 1, make([]byte, 33*round)), 0)
			m, err = rx.Recv(background)
			expectKind(t, err, 0)
			if m.Len() != 33*round {
				t.Fatalf("%d bytes", m.Len())
			}
			if address := uintptr(m.data); address%uintptr(align) != 0 {
				t.Fatalf("a payload at %#x, aligned to %d", address, align)
			}
			m.Release()
			_, err = rx.TryRecv()
			expectKind(t, err, Empty)
		}
		expectKind(t, tx.TrySend(7, make([]byte, tx.MaxMessageLen()+1)), TooLarge)
		expectKind(t, tx.Close(), 0)
		expectKind(t, rx.Close(), 0)
	}
}

// TestSleepersOnEachSide has both sides sleep before each of 10,000 messages, and measures the time from a send to the
// answer. A wake-up that is lost would show as a round of 100 ms.
func TestSleepersOnEachSide(t *testing.T) {
	for _, place := range []string{"uring", "thread"} {
		t.Run(place, func(t *testing.T) {
			if place == "thread" {
				withoutParking.Store(true)
				defer withoutParking.Store(false)
			}
			dir := newFolder(t)
			tx, err := CreateSender(dir.at("out"), Options{Wait: Block})
			expectKind(t, err, 0)
			rx, err := CreateReceiver(dir.at("in"), Options{Wait: Block})
			expectKind(t, err, 0)
			child := startPeer(t, "echo", dir.at("out"), dir.at("in"), "block")
			count := 10_000
			if testing.Short() {
				count = 1_000
			}
			slow := 0
			payload := make([]byte, 8)
			for seq := range count {
				binary.LittleEndian.PutUint64(payload, uint64(seq))
				began := time.Now()
				expectKind(t, tx.Send(background, 1, payload), 0)
				m, err := rx.Recv(background)
				expectKind(t, err, 0)
				if got := binary.LittleEndian.Uint64(m.Clone()); got != uint64(seq) {
					t.Fatalf("answer %d to %d", got, seq)
				}
				m.Release()
				if time.Since(began) > 50*time.Millisecond {
					slow++
				}
			}
			// On a machine with other work a process may not run for longer than that, now and then.
			if slow > count/1000 {
				t.Fatalf("%d of %d round trips took more than 50 ms", slow, count)
			}
			expectKind(t, tx.Close(), 0)
			child.finish()
			expectKind(t, rx.Close(), 0)
		})
	}
}

func TestFullThenRoom(t *testing.T) {
	tx, rx, err := Pair(Options{Capacity: 4096})
	expectKind(t, err, 0)
	for i := range 4 {
		slot, err := tx.Reserve(background, 1000)
		expectKind(t, err, 0)
		expectKind(t, slot.CommitUnflushed(uint32(i), 0, 1000), 0)
	}
	_, err = rx.TryRecv()
	expectKind(t, err, Empty) // committed, not flushed
	ctx, cancel := context.WithTimeout(background, 5*time.Millisecond)
	defer cancel()
	err = tx.Send(ctx, 9, make([]byte, 100))
	expectKind(t, err, TimedOut) // and flushed before it waited
	go func() {
		time.Sleep(20 * time.Millisecond)
		for i := range uint32(4) {
			m, err := rx.Recv(background)
			if err != nil || m.TypeID() != i {
				t.Errorf("%v, %v", m, err)
			}
			m.Release()
		}
	}()
	for range 3 { // fills, waits, goes on
		expectKind(t, tx.Send(background, 9, make([]byte, 1000)), 0)
	}
	expectKind(t, tx.Close(), 0)
}

func TestSendCalls(t *testing.T) {
	tx, rx, err := Pair(Options{Capacity: 1 << 16})
	expectKind(t, err, 0)
	if _, ok := tx.LastTag(); ok {
		t.Fatal("a tag before the first message")
	}
	expectKind(t, tx.SendVectored(background, 3, 42, []byte("in "), nil, []byte("pieces")), 0)
	n, err := tx.SendBatch(background, 4, 0, [][]byte{[]byte("a"), nil, []byte("ccc")})
	if err != nil || n != 3 {
		t.Fatalf("%d, %v", n, err)
	}
	if tag, ok := tx.LastTag(); !ok || tag != 0 {
		t.Fatalf("last tag %d, %v", tag, ok)
	}
	expectKind(t, tx.SendTagged(background, 5, 43, []byte("tagged")), 0)
	if tag, ok := tx.LastTag(); !ok || tag != 43 {
		t.Fatalf("last tag %d, %v", tag, ok)
	}
	for _, reserved := range []uint32{0xFFFF0000, 0xFFFFFFFF} {
		expectKind(t, tx.Send(background, reserved, nil), InvalidArgument)
		slot, err := tx.Reserve(background, 8)
		expectKind(t, err, 0)
		expectKind(t, slot.Commit(reserved, 0, 8), InvalidArgument)
	}
	slot, err := tx.Reserve(background, 8)
	expectKind(t, err, 0)
	expectKind(t, tx.Send(background, 1, nil), Busy)
	_, err = tx.Reserve(background, 1)
	expectKind(t, err, Busy)
	expectKind(t, slot.Commit(1, 0, 9), InvalidArgument) // which aborts it
	expectPanic(t, "slot used after", func() { _ = slot.Commit(1, 0, 8) })
	expectPanic(t, "slot used after", func() { slot.Bytes() })
	slot, err = tx.TryReserve(8)
	expectKind(t, err, 0)
	slot.Abort()
	expectPanic(t, "slot used after", slot.Abort)
	for _, n := range []int{-1, math.MinInt, 9, math.MaxInt} {
		slot, err = tx.TryReserve(8)
		expectKind(t, err, 0)
		expectKind(t, slot.Commit(1, 0, n), InvalidArgument)
	}
	_, err = tx.Reserve(background, -1)
	expectKind(t, err, InvalidArgument)
	_, err = tx.SendBatch(background, 1, 0, [][]byte{nil, make([]byte, 1<<17)})
	expectKind(t, err, TooLarge)
	expectKind(t, tx.Close(), 0)
	expectKind(t, tx.Close(), 0)
	expectKind(t, tx.Send(background, 1, nil), Detached)
	_, err = tx.Reserve(background, 1)
	expectKind(t, err, Detached)
	expectKind(t, tx.Flush(), Detached)

	var got []string
	for m := range rx.All(background) {
		got = append(got, fmt.Sprintf("%d/%d/%s", m.TypeID(), m.Tag(), m.Clone()))
	}
	expectKind(t, rx.Err(), 0)
	if all := strings.Join(got, " "); all != "3/42/in pieces 4/0/a 4/0/ 4/0/ccc 5/43/tagged 1/0/" {
		t.Fatal(all)
	}
	_, err = rx.Recv(background)
	expectKind(t, err, Closed)
	expectKind(t, rx.Close(), 0)
	_, err = rx.Recv(background)
	expectKind(t, err, Detached)
	_, err = rx.TryRecv()
	expectKind(t, err, Detached)
}

// The race detector sees it if a call that comes after Close touches what Close takes away.
func TestCloseBesideCallsThatBegin(t *testing.T) {
	for round := range 400 {
		tx, rx, err := Pair(Options{Capacity: 4096})
		expectKind(t, err, 0)
		ended := make(chan error, 2)
		go func() {
			for {
				if n, err := tx.SendBatch(background, 1, 0, [][]byte{nil, {1}}); err != nil {
					if n > 1 {
						err = fmt.Errorf("%d sent, %w", n, err)
					}
					ended <- err
					return
				}
			}
		}()
		go func() {
			for {
				batch, err := rx.RecvBatch(background, 3)
				if err != nil {
					ended <- err
					return
				}
				batch.Release()
			}
		}()
		time.Sleep(time.Duration(round) * time.Microsecond)
		expectKind(t, tx.Close(), 0)
		expectKind(t, rx.Close(), 0)
		for range 2 {
			if kind := KindOf(<-ended); kind != Detached && kind != Closed {
				t.Fatal(kind)
			}
		}
	}
}

func TestEndings(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	rx, err := CreateReceiver(name, Options{})
	expectKind(t, err, 0)
	if rx.PeerAlive() || rx.PeerEpoch() != 0 || rx.Epoch() != 1 {
		t.Fatal("a peer that never came")
	}
	_, err = rx.TryRecv()
	expectKind(t, err, Empty)

	// Killed: what it committed comes, what it had not flushed does not, then PeerDead, again and again.
	child := startPeer(t, "hold", "producer", name)
	child.expect("attached")
	for _, line := range []string{"send one", "send two", "unflushed three"} {
		child.tell(line)
		child.expect("done")
	}
	// A stopped process is alive.
	expectKind(t, syscall.Kill(child.pid(), syscall.SIGSTOP), 0)
	expectText(t, receiveText(rx, background, "one"), "fine")
	expectText(t, receiveText(rx, background, "two"), "fine")
	ctx, cancel := context.WithTimeout(background, 450*time.Millisecond)
	_, err = rx.Recv(ctx)
	cancel()
	expectKind(t, err, TimedOut)
	if !rx.PeerAlive() {
		t.Fatal("a stopped process is alive")
	}
	child.kill()
	began := time.Now()
	for range 3 {
		_, err = rx.Recv(background)
		expectKind(t, err, PeerDead)
		_, err = rx.TryRecv()
		expectKind(t, err, PeerDead)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Fatalf("six times PeerDead took %v", took)
	}

	// A successor ends that; it knows the last tag; its orderly close is delivered once.
	child = startPeer(t, "hold", "producer", name)
	child.expect("attached")
	if rx.PeerEpoch() != 2 || !rx.PeerAlive() {
		t.Fatalf("epoch %d", rx.PeerEpoch())
	}
	_, err = rx.TryRecv()
	expectKind(t, err, Empty)
	for _, line := range []string{"unflushed four", "flush", "unflushed five", "close"} {
		child.tell(line)
		child.expect("done")
	}
	expectText(t, receiveText(rx, background, "four"), "fine")
	expectText(t, receiveText(rx, background, "five"), "fine")
	_, err = rx.Recv(background)
	expectKind(t, err, Closed)
	_, err = rx.Recv(background)
	expectKind(t, err, Closed)
	child.finish()
	expectKind(t, rx.Close(), 0)
	dir.expectNames()
}

// receiveText receives one message and returns an error that says "fine" if it is as expected.
func receiveText(rx *Receiver, ctx context.Context, expected string) error {
	m, err := rx.Recv(ctx)
	if err != nil {
		return err
	}
	defer m.Release()
	if got := string(m.Clone()); got != expected {
		return fmt.Errorf("received %q, expected %q", got, expected)
	}
	return fmt.Errorf("fine")
}

func TestPeerDeadWhileWaiting(t *testing.T) {
	for _, mode := range []WaitMode{Hybrid, Spin, Block} {
		t.Run(mode.String(), func(t *testing.T) {
			dir := newFolder(t)
			rx, err := CreateReceiver(dir.at("in"), Options{Wait: mode})
			expectKind(t, err, 0)
			tx, err := CreateSender(dir.at("out"), Options{Capacity: 4096, Wait: mode})
			expectKind(t, err, 0)
			sender := startPeer(t, "hold", "producer", dir.at("in"))
			receiver := startPeer(t, "hold", "consumer", dir.at("out"))
			sender.expect("attached")
			receiver.expect("attached")
			expectKind(t, tx.Send(background, 1, make([]byte, 4000)), 0)
			ended := make(chan time.Time, 2)
			go func() {
				_, err := rx.Recv(background)
				ended <- time.Now()
				if KindOf(err) != PeerDead {
					t.Error(err)
				}
			}()
			go func() {
				err := tx.Send(background, 1, make([]byte, 4000))
				ended <- time.Now()
				if KindOf(err) != PeerDead {
					t.Error(err)
				}
			}()
			time.Sleep(120 * time.Millisecond)
			sender.kill()
			receiver.kill()
			gone := time.Now() // the kernel has let go of its files
			for range 2 {
				// Within two poll intervals; the rest is for a machine with other work.
				if late := (<-ended).Sub(gone); late > 200*time.Millisecond+time.Second {
					t.Errorf("learnt of the death after %v", late)
				}
			}
			expectKind(t, rx.Close(), 0)
			expectKind(t, tx.Close(), 0)
		})
	}
}

func TestRestarts(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("ring")
	tx, err := CreateSender(name, Options{})
	expectKind(t, err, 0)
	for i := range 3 {
		expectKind(t, tx.SendTagged(background, 1, uint64(100+i), []byte{byte('a' + i)}), 0)
	}
	// Killed with one received and not released: the next one gets it again.
	child := startPeer(t, "hold", "consumer", name)
	child.expect("attached")
	child.tell("recv")
	child.expect("a")
	child.tell("keep")
	child.expect("b")
	child.kill()
	expectKind(t, tx.Abandon(), 0)
	rx, err := OpenReceiver(name, Options{Timeout: long})
	expectKind(t, err, 0)
	expectText(t, receiveText(rx, background, "b"), "fine")
	expectText(t, receiveText(rx, background, "c"), "fine")
	_, err = rx.Recv(background)
	expectKind(t, err, PeerDead)
	tx, err = OpenSender(name, Options{Timeout: long})
	expectKind(t, err, 0)
	if tag, ok := tx.LastTag(); !ok || tag != 102 || tx.Epoch() != 2 || tx.PeerEpoch() != 2 {
		t.Fatalf("last tag %d, %v; epochs %d, %d", tag, ok, tx.Epoch(), tx.PeerEpoch())
	}
	// A receiver that closes: a send that fits goes to the next one, one that does not is told.
	expectKind(t, rx.Close(), 0)
	expectKind(t, tx.Send(background, 1, []byte("d")), 0)
	for err == nil {
		err = tx.Send(background, 1, make([]byte, 1<<18))
	}
	expectKind(t, err, Closed)
	expectKind(t, tx.Close(), 0)
	rx, err = OpenReceiver(name, Options{})
	expectKind(t, err, 0)
	expectText(t, receiveText(rx, background, "d"), "fine")
	for range rx.All(background) {
	}
	expectKind(t, rx.Err(), 0)
	expectKind(t, rx.Close(), 0)
	dir.expectNames()
}

func TestNameThatVanishes(t *testing.T) {
	dir := newFolder(t)
	rx, err := CreateReceiver(dir.at("ring"), Options{Wait: Block})
	expectKind(t, err, 0)
	expectKind(t, os.Remove(dir.at("ring")), 0)
	_, err = rx.Recv(background)
	expectKind(t, err, Closed)
	expectText(t, err, "name was removed")
	expectKind(t, rx.Close(), 0)
}

func expectPanic(t *testing.T, text string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if said := fmt.Sprint(recover()); !strings.Contains(said, text) {
			t.Fatalf("panic %q, expected %q", said, text)
		}
	}()
	f()
}
