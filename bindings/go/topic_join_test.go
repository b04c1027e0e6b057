package ramway

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ramway/ramway/bindings/go/internal/cpu"
	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// Slots and labels: nobody is kept out by those whom nobody waits for, or by those who have left; and where a subscriber begins.

func TestWhoHasTheSlotsIsSaid(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("topic")
	publisherAt(t, name, TopicOptions{Slots: 5})
	subscriberAt(t, name, TopicOptions{Policy: Lossy, Label: "viewer"})
	subscriberAt(t, name, TopicOptions{Policy: Latest})
	subscriberAt(t, name, TopicOptions{Label: "\x1b[2Jcontrol"})
	subscriberAt(t, name, TopicOptions{})
	expectKind(t, subscriberAt(t, name, TopicOptions{Label: "recorder", Durable: true}).Close(), 0)
	_, err := OpenSubscriber(name, TopicOptions{})
	expectKind(t, err, Busy)
	expectText(t, err, name, "all 5 slots", "2 by reliable subscribers", "1 for durable subscribers that are away",
		"2 by lossy or latest subscribers", "'viewer'", "'recorder'", `'\x1b[2Jcontrol'`, "unsubscribe")
	_, err = OpenSubscriber(name, TopicOptions{Label: "\x1b[2Jcontrol"})
	expectKind(t, err, Busy)
	expectText(t, err, `'\x1b[2Jcontrol' is attached already`)
	expectKind(t, subscriberAt(t, name, TopicOptions{Label: "recorder", Durable: true}).Unsubscribe(), 0)
	// However many there are.
	name = dir.at("many")
	publisherAt(t, name, TopicOptions{Slots: 100})
	for n := range 100 {
		subscriberAt(t, name, TopicOptions{Label: fmt.Sprintf("%064d", n)})
	}
	_, err = OpenSubscriber(name, TopicOptions{})
	expectKind(t, err, Busy)
	expectText(t, err, "100 by reliable subscribers", "92 more")
	if len(err.Error()) > 1200 {
		t.Fatal(err)
	}
}

// Only the upper half of the slots shows those whom nobody waits for, so that the other half is left to reliable ones.
func TestALabelOfOneThatNobodyWaitsForKeepsNobodyOut(t *testing.T) {
	for _, policy := range []Policy{Lossy, Latest} {
		name := newFolder(t).at("topic")
		pub := publisherAt(t, name, TopicOptions{Slots: 4})
		for range 4 {
			// Two of them are seen by others; each knows its own label.
			if sub := subscriberAt(t, name, TopicOptions{Policy: policy, Label: "x"}); sub.Label() != "x" {
				t.Fatal(sub.Label())
			}
		}
		if all := pub.Subscribers(); len(all) != 2 || all[0].Slot != 2 || all[1].Slot != 3 {
			t.Fatalf("%+v", all)
		}
		durable := TopicOptions{Label: "x", Durable: true}
		recorder := subscriberAt(t, name, durable)
		for _, o := range []TopicOptions{durable, {Label: "x"}} {
			_, err := OpenSubscriber(name, o)
			expectKind(t, err, Busy)
		}
		subscriberAt(t, name, TopicOptions{})
		expectKind(t, pub.Send(background, 1, []byte("one")), 0)
		expectAll(t, recorder, "[1:one:0]")
		expectKind(t, pub.Send(background, 1, []byte("two")), 0)
		expectKind(t, recorder.Close(), 0)
		subscriberAt(t, name, TopicOptions{Policy: policy, Label: "x"})
		recorder = subscriberAt(t, name, durable)
		expectAll(t, recorder, "[2:two:0]")
		expectKind(t, recorder.Unsubscribe(), 0)
	}
}

// The instant in which another subscriber has locked a slot to look at it, made long: the durable one waits for it instead of
// taking a second slot.
func TestASlotThatSomebodyLooksAtIsTriedAgain(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Slots: 3})
	durable := TopicOptions{Label: "x", Durable: true}
	expectKind(t, subscriberAt(t, name, durable).Close(), 0)
	expectKind(t, pub.Send(background, 1, []byte("kept")), 0)
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	must(err)
	defer file.Close()
	fd := int(file.Fd())
	lock := func() {
		got, err := sys.TryLock(fd, byteSlot, sys.Exclusive)
		if !got || err != nil {
			t.Fatal(got, err)
		}
	}
	unlock := func() { sys.Unlock(fd, byteSlot) }
	lock()
	// For good: then it is in use, and no other slot is taken for the label.
	began := time.Now()
	_, err = OpenSubscriber(name, durable)
	expectKind(t, err, Busy)
	if tried := time.Since(began); tried < busyInstant {
		t.Fatal(tried)
	}
	unlocked := make(chan struct{})
	go func() {
		time.Sleep(2 * time.Millisecond)
		unlock()
		close(unlocked)
	}()
	durable.Timeout = long
	resumed := subscriberAt(t, name, durable)
	<-unlocked
	expectAll(t, resumed, "[1:kept:0]")
	expectKind(t, resumed.Unsubscribe(), 0)
	// The slot of one that has closed still shows its label when somebody else takes it, who writes another one there. Until then the
	// label is free all the same.
	lock()
	durable.Timeout = 0
	expectKind(t, subscriberAt(t, name, durable).Unsubscribe(), 0)
	unlock()
}

// Its slot may be taken just then by somebody without a label.
func TestALabelThatWasClosedIsFreeAtOnce(t *testing.T) {
	name := newFolder(t).at("topic")
	publisherAt(t, name, TopicOptions{Slots: 8})
	var stop atomic.Bool
	ended := make(chan error)
	go func() {
		for !stop.Load() {
			sub, err := OpenSubscriber(name, TopicOptions{})
			if err != nil {
				ended <- err
				return
			}
			_ = sub.Close()
		}
		ended <- nil
	}()
	for joins := range 300 {
		sub, err := OpenSubscriber(name, TopicOptions{Label: "x", Durable: joins%2 == 0})
		if err != nil {
			t.Fatalf("after %d joins: %v", joins, err)
		}
		if joins%4 == 0 {
			expectKind(t, sub.Unsubscribe(), 0)
		} else {
			expectKind(t, sub.Close(), 0)
		}
	}
	stop.Store(true)
	expectKind(t, <-ended, 0)
}

func TestASlotThatIsTakenIsWaitedFor(t *testing.T) {
	name := newFolder(t).at("topic")
	publisherAt(t, name, TopicOptions{Slots: 1})
	first := subscriberAt(t, name, TopicOptions{})
	began := time.Now()
	_, err := OpenSubscriber(name, TopicOptions{Timeout: 20 * time.Millisecond})
	expectKind(t, err, Busy)
	if passed := time.Since(began); passed < 20*time.Millisecond {
		t.Fatal(passed)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		_ = first.Close()
	}()
	second, err := OpenSubscriber(name, TopicOptions{Timeout: long})
	expectKind(t, err, 0)
	expectKind(t, second.Close(), 0)
}

// A message that is nearly as long as one may be can be the only one that is intact, and be noted nowhere.
func TestTheNewestMessageIsAlwaysHistory(t *testing.T) {
	for _, policy := range []Policy{Reliable, Lossy} {
		for _, start := range []Start{FromOldest(), History(1), History(9), AfterSeq(1), AfterSeq(0)} {
			name := newFolder(t).at("topic")
			pub := publisherAt(t, name, TopicOptions{Capacity: 4096})
			longest := make([]byte, pub.MaxMessageLen())
			expectKind(t, pub.Send(background, 1, nil), 0)
			expectKind(t, pub.Send(background, 1, longest), 0)
			slot, err := pub.TryReserve(len(longest))
			expectKind(t, err, 0)
			sub := subscriberAt(t, name, TopicOptions{Policy: policy, Start: start})
			for _, at := range sub.topic.block.starts {
				if tail := sub.topic.block.tail; tail-at-1 < 4096 && sub.topic.block.claim-at <= 4096 {
					t.Fatal("a noted frame is intact: this tests nothing", at)
				}
			}
			m, err := sub.TryRecv()
			expectKind(t, err, 0)
			if m.Seq() != 2 || m.Len() != len(longest) {
				t.Fatal(m.Seq(), m.Len())
			}
			m.Release()
			slot.Abort()
		}
	}
}

// A publisher looks at the subscribers' flags only when the count of changes has moved.
func TestASubscriberThatCanNoLongerMembarrierCountsAChange(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{})
	for _, o := range []TopicOptions{{}, {Policy: Lossy}} {
		sub := subscriberAt(t, name, o)
		if !sub.membarrierCapable {
			t.Skip("this process cannot membarrier")
		}
		expectKind(t, pub.Send(background, 1, nil), 0)
		// Where the port never leaves a fence out, it says so.
		if fenceFree := pub.mine.flags&roleFenceFree != 0; fenceFree != cpu.Plain {
			t.Fatal(fenceFree)
		}
		before := pub.topic.changes()
		longest := time.Duration(pollInterval)
		if cpu.Plain {
			longest = unorderedInterval
		}
		if got := sub.ordered(false, pollInterval); got != longest || pub.topic.changes() == before {
			t.Fatal(got, pub.topic.changes(), before)
		}
		expectKind(t, pub.Send(background, 1, nil), 0)
		if pub.mine.flags&roleFenceFree != 0 || pub.fenceFree {
			t.Fatal("the publisher leaves fences out for one that cannot make up for them")
		}
		expectKind(t, sub.Close(), 0)
	}
}

func TestNobodyWaitsForReliableSubscribersWhereThereAreNone(t *testing.T) {
	pub := publisherAt(t, newFolder(t).at("topic"), TopicOptions{LossyOnly: true})
	expectKind(t, pub.WaitForSubscribers(background, 1), Unsupported)
	expectKind(t, pub.WaitForSubscribers(background, 0), 0)
}
