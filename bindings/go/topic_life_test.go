package ramway

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"
)

// How a topic's subscribers come, stay, are ejected and go.

func TestLabelsAndDurableCursors(t *testing.T) {
	dir := newFolder(t)
	name := dir.at("topic")
	durable := TopicOptions{Label: "recorder", Durable: true}
	pub := publisherAt(t, name, TopicOptions{})
	sub := subscriberAt(t, name, durable)
	_, err := OpenSubscriber(name, TopicOptions{Label: "recorder"})
	expectKind(t, err, Busy)
	expectText(t, err, "'recorder'", "attached already")
	for i := range 4 {
		expectKind(t, pub.Send(background, 1, fmt.Appendf(nil, "%d", i)), 0)
	}
	m, err := sub.Recv(background)
	expectKind(t, err, 0)
	m.Release()
	expectKind(t, sub.Close(), 0)
	expectKind(t, pub.Close(), 0)
	// Nobody uses it, and it stays for the recorder.
	dir.expectNames("topic")
	_, err = CreatePublisher(name, TopicOptions{})
	expectKind(t, err, AlreadyExists)
	expectText(t, err, "the durable subscriber 'recorder' has 3 undelivered messages (3 bytes)")
	sub = subscriberAt(t, name, durable)
	expectAllThen := func(all string, kind Kind) {
		t.Helper()
		found := []string{}
		for {
			m, err := sub.TryRecv()
			if err != nil {
				expectKind(t, err, kind)
				break
			}
			found = append(found, fmt.Sprintf("%d:%s", m.Seq(), m.Clone()))
			m.Release()
		}
		if fmt.Sprint(found) != all {
			t.Fatal(found)
		}
	}
	expectAllThen("[2:1 3:2 4:3]", Closed)
	// The close was delivered, and is not delivered to the next one.
	expectKind(t, sub.Close(), 0)
	dir.expectNames()
	pub = publisherAt(t, name, TopicOptions{})
	sub = subscriberAt(t, name, durable)
	expectKind(t, sub.Unsubscribe(), 0)
	if all := pub.Subscribers(); len(all) != 0 {
		t.Fatal(all)
	}
	expectKind(t, pub.Close(), 0)
	dir.expectNames()
}

func TestACloseIsDeliveredOnceToADurableSubscriber(t *testing.T) {
	name := newFolder(t).at("topic")
	durable := TopicOptions{Label: "r", Durable: true, Persistent: true}
	sub := subscriberAt(t, name, durable)
	expectKind(t, publisherAt(t, name, TopicOptions{}).Close(), 0)
	_, err := sub.TryRecv()
	expectKind(t, err, Closed)
	expectKind(t, sub.Close(), 0)
	sub = subscriberAt(t, name, TopicOptions{Label: "r", Durable: true})
	_, err = sub.TryRecv()
	expectKind(t, err, Empty)
	// Another one has not seen it.
	_, err = subscriberAt(t, name, TopicOptions{}).TryRecv()
	expectKind(t, err, Closed)
	pub := publisherAt(t, name, TopicOptions{})
	if sub.PeerEpoch() != 2 || !sub.PeerAlive() || !pub.PeerAlive() {
		t.Fatal(sub.PeerEpoch())
	}
	expectKind(t, pub.Send(background, 1, nil), 0)
	expectKind(t, pub.Abandon(), 0)
	m, err := sub.Recv(background)
	expectKind(t, err, 0)
	m.Release()
	_, err = sub.Recv(background)
	expectKind(t, err, PeerDead)
	expectKind(t, Unlink(name), Busy)
}

func TestAnEjectedSubscriberIsToldHowMuchItLost(t *testing.T) {
	for _, durable := range []bool{false, true} {
		name := newFolder(t).at("topic")
		pub := publisherAt(t, name, TopicOptions{Capacity: 4096, EjectAfter: 20 * time.Millisecond})
		sub := subscriberAt(t, name, TopicOptions{Label: "slow", Durable: durable})
		payload := make([]byte, 96)
		for range 40 {
			expectKind(t, pub.Send(background, 1, payload), 0)
		}
		if all := pub.Subscribers(); len(all) != 1 || !all[0].Ejected || all[0].Policy != Reliable {
			t.Fatalf("%+v", all)
		}
		_, err := sub.Recv(background)
		var e *Error
		if !errors.Is(err, ErrLagged) || !errors.As(err, &e) || e.Lost == 0 {
			t.Fatal(err)
		}
		expectText(t, err, fmt.Sprintf(": %d messages were lost", e.Lost), "topic'")
		m, err := sub.Recv(background)
		expectKind(t, err, 0)
		if m.Seq() != e.Lost+1 || m.Lost() != 0 || sub.Lost() != e.Lost {
			t.Fatal(m.Seq(), m.Lost(), e.Lost)
		}
		m.Release()
		if all := pub.Subscribers(); len(all) != 1 || all[0].Ejected || all[0].Durable != durable || all[0].Lag == nil {
			t.Fatalf("%+v", all)
		}
		// And once more, where the next holder of the label is told.
		for range 60 {
			expectKind(t, pub.Send(background, 1, payload), 0)
		}
		expectKind(t, sub.Close(), 0)
		if !durable {
			continue
		}
		next := subscriberAt(t, name, TopicOptions{Label: "slow", Durable: true})
		_, err = next.TryRecv()
		expectKind(t, err, Lagged)
		errors.As(err, &e)
		m, err = next.TryRecv()
		expectKind(t, err, 0)
		if e.Lost == 0 || m.Lost() != 0 {
			t.Fatal(e.Lost, m.Lost())
		}
		m.Release()
	}
}

func TestAPublisherOnAnOldTopicCannotEject(t *testing.T) {
	name := newFolder(t).at("topic")
	publisherAt(t, name, TopicOptions{Persistent: true}).Close()
	_, err := OpenPublisher(name, TopicOptions{EjectAfter: time.Second})
	expectKind(t, err, Unsupported)
	expectText(t, err, "MayEject")
	expectKind(t, Unlink(name), 0)
}

func TestSlotsAreFew(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Slots: 2})
	expectKind(t, pub.WaitForSubscribers(background, 3), InvalidArgument)
	subscriberAt(t, name, TopicOptions{Label: "one"})
	second := subscriberAt(t, name, TopicOptions{})
	_, err := OpenSubscriber(name, TopicOptions{})
	expectKind(t, err, Busy)
	expectText(t, err, "all 2 slots of the topic are taken: 2 by reliable subscribers (labels: 'one')")
	expectKind(t, pub.WaitForSubscribers(background, 2), 0)
	expectKind(t, second.Close(), 0)
	expectKind(t, pub.WaitForSubscribers(background, 1), 0)
	subscriberAt(t, name, TopicOptions{})
}

// The claim goes up to a sixteenth beyond what a slot lets the publisher write: it says nothing about what the slot keeps.
func TestWhatASlotKeepsIsThereWhateverTheClaimSays(t *testing.T) {
	beyond := 0
	for size := 0; size < 700; size += 37 {
		name := newFolder(t).at("topic")
		durable := TopicOptions{Capacity: 4096, Label: "r", Durable: true}
		sub := subscriberAt(t, name, durable)
		pub := publisherAt(t, name, TopicOptions{})
		for range 3 {
			expectKind(t, pub.Send(background, 1, make([]byte, size)), 0)
		}
		m, err := sub.TryRecv()
		expectKind(t, err, 0)
		m.Release()
		for pub.TrySend(1, make([]byte, size)) == nil {
		}
		if atomic.LoadUint64(&pub.topic.block.claim)-atomic.LoadUint64(&sub.topic.slot.cursor) > 4096 {
			beyond++
		}
		expectKind(t, sub.Close(), 0)
		sub = subscriberAt(t, name, durable)
		m, err = sub.TryRecv()
		expectKind(t, err, 0)
		if m.Seq() != 2 || m.Lost() != 0 || m.Len() != size {
			t.Fatal(size, m.Seq(), m.Lost())
		}
		m.Release()
		if all := uint64(len(receiveAll(t, sub))); all+2 != pub.Seq() {
			t.Fatal(size, all, pub.Seq())
		}
		expectKind(t, sub.Unsubscribe(), 0)
	}
	if beyond == 0 {
		t.Fatal("the claim was never beyond")
	}
}

func TestTopicsAreListedAndCleaned(t *testing.T) {
	dir := newFolder(t)
	pub := publisherAt(t, dir.at("live"), TopicOptions{Capacity: 8192, Align: 64})
	sub := subscriberAt(t, dir.at("kept"), TopicOptions{Label: "r", Durable: true})
	other := publisherAt(t, dir.at("kept"), TopicOptions{})
	display := subscriberAt(t, dir.at("live"), TopicOptions{Policy: Latest, Label: "display"})
	expectKind(t, pub.Send(background, 1, []byte("for nobody")), 0)
	expectKind(t, other.Send(background, 1, []byte("for r")), 0)
	expectKind(t, other.Close(), 0)
	expectKind(t, sub.Close(), 0)
	all, err := Ls(dir.path)
	expectKind(t, err, 0)
	if len(all) != 2 || all[0].Name != "kept" || all[0].Kind != "topic" || !all[0].Stale || all[0].ProducerHeld ||
		!all[1].InUse || !all[1].ProducerHeld || all[1].ConsumerHeld || all[1].Capacity != 8192 || all[1].Align != 64 {
		t.Fatalf("%+v", all)
	}
	// Who reads them: as the publisher says.
	kept, live := all[0].Topic.Subscribers, all[1].Topic.Subscribers
	if len(kept) != 1 || kept[0].Label != "r" || !kept[0].Durable || kept[0].Alive || kept[0].Policy != Reliable ||
		*kept[0].Lag != (Lag{64, 1}) || !reflect.DeepEqual(live, pub.Subscribers()) || len(live) != 1 || live[0].Policy != Latest ||
		live[0].Label != "display" || !live[0].Alive || live[0].Lag != nil || all[0].Topic.Seq != 1 || all[0].Topic.Slots != 32 {
		t.Fatalf("%+v %+v", kept, live)
	}
	cleaned, err := Clean(dir.path, CleanOptions{})
	expectKind(t, err, 0)
	if len(cleaned) != 2 || cleaned[0].Removed || cleaned[1].Removed || cleaned[1].Kept != "in use" ||
		cleaned[0].Kept != "the durable subscriber 'r' has 1 undelivered messages (5 bytes)" {
		t.Fatalf("%+v", cleaned)
	}
	// A topic that is thrown away all the same.
	expectKind(t, publisherDiscarding(dir.at("kept")), 0)
	expectKind(t, pub.Close(), 0)
	expectKind(t, display.Close(), 0)
	dir.expectNames()
}

// The claim goes farther than a slot lets the publisher write; what the slot gates is all there.
func TestTheClaimBeyondADurableCursorLosesNothing(t *testing.T) {
	dir := newFolder(t)
	pub := publisherAt(t, dir.at("topic"), TopicOptions{Capacity: 4096})
	sub := subscriberAt(t, dir.at("topic"), TopicOptions{Label: "r", Durable: true})
	// Frames that end within a sixteenth of the data, and a cursor that is no multiple of one.
	expectKind(t, pub.Send(background, 1, make([]byte, 64)), 0)
	m, err := sub.Recv(background)
	expectKind(t, err, 0)
	m.Release()
	sent := -1
	for ; err == nil; sent++ {
		err = pub.TrySend(1, make([]byte, 64))
	}
	expectKind(t, err, Full)
	if claim, cursor := pub.topic.block.claim, sub.topic.slot.cursor; claim-cursor <= 4096 {
		t.Fatalf("claim %d, cursor %d: this test needs a claim beyond", claim, cursor)
	}
	expectKind(t, pub.Close(), 0)
	expectKind(t, sub.Close(), 0)
	cleaned, err := Clean(dir.path, CleanOptions{})
	expectKind(t, err, 0)
	want := fmt.Sprintf("the durable subscriber 'r' has %d undelivered messages (%d bytes)", sent, 64*sent)
	if len(cleaned) != 1 || cleaned[0].Kept != want {
		t.Fatalf("%+v, expected %s", cleaned, want)
	}
}

// publisherDiscarding makes a topic over what is there, and closes it.
func publisherDiscarding(name string) error {
	pub, err := CreatePublisher(name, TopicOptions{Discard: true})
	if err == nil {
		err = pub.Close()
	}
	return err
}

// One that is ejected is not given again what it has received, and loses nothing that is still there.
func TestAnEjectedSubscriberGoesOnWhereItWas(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Capacity: 4096, EjectAfter: time.Millisecond})
	sub := subscriberAt(t, name, TopicOptions{})
	payload := make([]byte, 96)
	for range 20 {
		expectKind(t, pub.Send(background, 1, payload), 0)
	}
	received := receiveAll(t, sub)
	if len(received) != 20 {
		t.Fatal(received)
	}
	for range 34 { // the last ones do not fit
		expectKind(t, pub.Send(background, 1, payload), 0)
	}
	if all := pub.Subscribers(); len(all) != 1 || !all[0].Ejected {
		t.Fatalf("%+v", all)
	}
	_, err := sub.TryRecv()
	var e *Error
	if !errors.As(err, &e) || e.Kind != Lagged {
		t.Fatal(err)
	}
	m, err := sub.TryRecv()
	expectKind(t, err, 0)
	if m.Seq() != 21+e.Lost || m.Lost() != 0 || e.Lost > 8 {
		t.Fatal(m.Seq(), e.Lost, m.Lost())
	}
	m.Release()
}

func TestALabelThatIsTakenIsWaitedFor(t *testing.T) {
	name := newFolder(t).at("topic")
	first := subscriberAt(t, name, TopicOptions{Label: "x"})
	began := time.Now()
	_, err := OpenSubscriber(name, TopicOptions{Label: "x", Timeout: 20 * time.Millisecond})
	expectKind(t, err, Busy)
	if passed := time.Since(began); passed < 20*time.Millisecond {
		t.Fatal(passed)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		_ = first.Close()
	}()
	second, err := OpenSubscriber(name, TopicOptions{Label: "x", Timeout: long})
	expectKind(t, err, 0)
	expectKind(t, second.Close(), 0)
}

func TestAPublisherSaysForHowLongASubscriberBlocksIt(t *testing.T) {
	for _, eject := range []time.Duration{0, 10 * time.Minute} {
		name := newFolder(t).at("topic")
		pub := publisherAt(t, name, TopicOptions{Capacity: 4096, EjectAfter: eject})
		fast := subscriberAt(t, name, TopicOptions{Label: "fast"})
		slow := subscriberAt(t, name, TopicOptions{Label: "slow"})
		blocksFor := func(label string) time.Duration {
			for _, one := range pub.Subscribers() {
				if one.Label == label {
					return one.BlocksFor
				}
			}
			t.Fatal("no subscriber", label)
			return 0
		}
		payload := make([]byte, 480)
		began := time.Now()
		for pub.TrySend(1, payload) == nil {
			m, err := fast.TryRecv()
			expectKind(t, err, 0)
			m.Release()
		}
		limited, cancel := context.WithTimeout(background, 50*time.Millisecond)
		expectKind(t, pub.Send(limited, 1, payload), TimedOut)
		cancel()
		if told := blocksFor("slow"); told < 40*time.Millisecond || told > time.Since(began) {
			t.Fatal(told)
		}
		if told := blocksFor("fast"); told != 0 {
			t.Fatal(told)
		}
		// It reads something: also before the publisher looks.
		for range 2 {
			m, err := slow.TryRecv()
			expectKind(t, err, 0)
			m.Release()
		}
		if told := blocksFor("slow"); told != 0 {
			t.Fatal(told)
		}
	}
}
