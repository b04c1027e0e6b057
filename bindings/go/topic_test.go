package ramway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func publisherAt(t testing.TB, name string, o TopicOptions) *Publisher {
	t.Helper()
	pub, err := OpenOrCreatePublisher(name, o)
	expectKind(t, err, 0)
	t.Cleanup(func() { _ = pub.Close() })
	return pub
}

func subscriberAt(t testing.TB, name string, o TopicOptions) *Subscriber {
	t.Helper()
	sub, err := OpenOrCreateSubscriber(name, o)
	expectKind(t, err, 0)
	t.Cleanup(func() { _ = sub.Close() })
	return sub
}

// receiveAll is the payloads that are there now, with their numbers and what was lost before them.
func receiveAll(t testing.TB, sub *Subscriber) (all []string) {
	t.Helper()
	for {
		m, err := sub.TryRecv()
		if errors.Is(err, ErrEmpty) {
			return all
		}
		expectKind(t, err, 0)
		all = append(all, fmt.Sprintf("%d:%s:%d", m.Seq(), m.Clone(), m.Lost()))
		m.Release()
	}
}

func expectAll(t testing.TB, sub *Subscriber, wanted string) {
	t.Helper()
	if all := fmt.Sprint(receiveAll(t, sub)); all != wanted {
		t.Fatalf("received %s, expected %s", all, wanted)
	}
}

func TestEverySubscriberReadsByItsPolicy(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Timestamps: true})
	reliable := subscriberAt(t, name, TopicOptions{Label: "controller"})
	lossy := subscriberAt(t, name, TopicOptions{Policy: Lossy})
	latest := subscriberAt(t, name, TopicOptions{Policy: Latest})
	before := time.Now()
	for i := range 3 {
		expectKind(t, pub.SendTagged(background, 7, uint64(i), fmt.Appendf(nil, "m%d", i)), 0)
	}
	expectAll(t, lossy, "[1:m0:0 2:m1:0 3:m2:0]")
	m, err := reliable.Recv(background)
	expectKind(t, err, 0)
	if m.TypeID() != 7 || m.Tag() != 0 || m.Seq() != 1 || m.Time().Before(before) || m.Time().After(time.Now()) || m.Len() != 2 {
		t.Fatal(m.TypeID(), m.Tag(), m.Seq(), m.Time(), m.Len())
	}
	if _, err := reliable.Recv(background); KindOf(err) != Busy {
		t.Fatal(err)
	}
	m.View(func(b []byte) {
		b[0] = 'x' // a copy
		if string(b) != "x0" {
			t.Fatal(string(b))
		}
	})
	m.Release()
	expectAll(t, reliable, "[2:m1:0 3:m2:0]")
	m, err = latest.Latest()
	expectKind(t, err, 0)
	if m.Seq() != 3 || string(m.Clone()) != "m2" {
		t.Fatal(m.Seq())
	}
	m.Release()
	if _, err := latest.TryRecv(); KindOf(err) != Empty {
		t.Fatal(err)
	}
	if tag, ok := pub.LastTag(); tag != 2 || !ok || pub.Seq() != 3 {
		t.Fatal(tag, ok, pub.Seq())
	}
	infos := pub.Subscribers()
	if len(infos) != 3 || infos[0].Label != "controller" || infos[0].Policy != Reliable || !infos[0].Alive ||
		infos[1].Policy != Lossy || infos[2].Policy != Latest || *infos[0].Lag != (Lag{}) || infos[1].Lag != nil {
		t.Fatalf("%+v", infos)
	}
	expectKind(t, pub.Close(), 0)
	for _, sub := range []*Subscriber{reliable, lossy, latest} {
		if _, err := sub.Recv(background); KindOf(err) != Closed {
			t.Fatal(err)
		}
	}
}

func TestAReliableSubscriberHoldsThePublisherBackAndOthersDoNot(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Capacity: 4096})
	lossy := subscriberAt(t, name, TopicOptions{Policy: Lossy})
	payload := make([]byte, 96) // a frame of 128 bytes
	for range 100 {
		expectKind(t, pub.TrySend(1, payload), 0)
	}
	sub := subscriberAt(t, name, TopicOptions{})
	m, err := sub.TryRecv()
	expectKind(t, err, 0)
	// The oldest that is noted; at most a sixteenth of the history before it is out of reach.
	if first := m.Seq(); first < 100-32+1 || first > 100-32+1+4 {
		t.Fatalf("it begins at %d", first)
	}
	sent := 0
	for pub.TrySend(1, payload) == nil {
		sent++
	}
	if err := pub.TrySend(1, payload); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if sent > 4 || pub.Len() < 4096-128 {
		t.Fatal(sent, pub.Len())
	}
	blocked := make(chan error, 1)
	go func() { blocked <- pub.Send(background, 1, payload) }()
	select {
	case err := <-blocked:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	m.Release()
	for range 12 {
		m, err := sub.TryRecv()
		expectKind(t, err, 0)
		m.Release()
	}
	expectKind(t, <-blocked, 0)
	all := receiveAll(t, sub)
	if len(all) == 0 || sub.Lost() != 0 {
		t.Fatal(len(all), sub.Lost())
	}
	// The lossy one was lapped: what is left of it is intact, and the rest is counted.
	received := uint64(len(receiveAll(t, lossy)))
	if received == 0 || lossy.Lost() == 0 || received+lossy.Lost() != pub.Seq() {
		t.Fatal(received, lossy.Lost(), pub.Seq())
	}
}

func TestWhereASubscriberBegins(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Capacity: 1 << 16})
	for i := range 5 {
		expectKind(t, pub.Send(background, 1, fmt.Appendf(nil, "%d", i)), 0)
	}
	for _, policy := range []Policy{Reliable, Lossy} {
		for _, c := range []struct {
			start Start
			all   string
		}{
			{FromOldest(), "[1:0:0 2:1:0 3:2:0 4:3:0 5:4:0]"},
			{FromNow(), "[]"},
			{History(0), "[]"},
			{History(2), "[4:3:0 5:4:0]"},
			{History(99), "[1:0:0 2:1:0 3:2:0 4:3:0 5:4:0]"},
			{AfterSeq(0), "[1:0:0 2:1:0 3:2:0 4:3:0 5:4:0]"},
			{AfterSeq(3), "[4:3:0 5:4:0]"},
			{AfterSeq(5), "[]"},
			{AfterSeq(1 << 40), "[]"},
		} {
			sub := subscriberAt(t, name, TopicOptions{Policy: policy, Start: c.start})
			expectAll(t, sub, c.all)
			expectKind(t, sub.Close(), 0)
		}
	}
	expectAll(t, subscriberAt(t, name, TopicOptions{Policy: Lossy}), "[]")
	late := subscriberAt(t, name, TopicOptions{Policy: Latest})
	expectAll(t, late, "[5:4:0]")
	expectKind(t, pub.Send(background, 1, []byte("new")), 0)
	expectAll(t, late, "[6:new:0]")
}

func TestAfterSeqSaysWhatIsGone(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Capacity: 4096})
	for range 100 {
		expectKind(t, pub.Send(background, 1, make([]byte, 96)), 0)
	}
	for _, policy := range []Policy{Reliable, Lossy} {
		sub := subscriberAt(t, name, TopicOptions{Policy: policy, Start: AfterSeq(10)})
		m, err := sub.TryRecv()
		expectKind(t, err, 0)
		if m.Lost() != m.Seq()-11 || m.Lost() == 0 || sub.Lost() != m.Lost() {
			t.Fatal(m.Seq(), m.Lost(), sub.Lost())
		}
		m.Release()
		expectKind(t, sub.Close(), 0)
	}
}

func TestKnownLossesAndSkipping(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{})
	sub := subscriberAt(t, name, TopicOptions{})
	lossy := subscriberAt(t, name, TopicOptions{Policy: Lossy})
	expectKind(t, pub.Send(background, 1, []byte("a")), 0)
	expectKind(t, pub.SkipSeq(5), 0)
	expectKind(t, pub.SkipSeq(1<<63-5), InvalidArgument)
	expectKind(t, pub.Send(background, 1, []byte("b")), 0)
	expectKind(t, pub.Send(background, 1, []byte("c")), 0)
	if lag := sub.Lag(); lag.Messages != 8 || lag.Bytes != 3*64 {
		t.Fatal(lag)
	}
	expectAll(t, sub, "[1:a:0 7:b:5 8:c:0]")
	if n, err := lossy.SkipToNewest(); n != 7 || err != nil {
		t.Fatal(n, err)
	}
	expectAll(t, lossy, "[8:c:0]")
	if n, err := lossy.SkipToNewest(); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if sub.Lost() != 5 || lossy.Lost() != 0 || sub.Lag() != (Lag{}) {
		t.Fatal(sub.Lost(), lossy.Lost(), sub.Lag())
	}
	_, err := subscriberAt(t, name, TopicOptions{Policy: Latest}).SkipToNewest()
	expectKind(t, err, Unsupported)
}

func TestTheNewestMessage(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{})
	for _, policy := range []Policy{Latest, Lossy, Reliable} {
		sub := subscriberAt(t, name, TopicOptions{Policy: policy})
		var buffer [4]byte
		if policy == Latest {
			_, err := sub.Latest()
			expectKind(t, err, Empty)
		}
		for i := range 3 {
			expectKind(t, pub.Send(background, uint32(i), fmt.Appendf(nil, "m%d", i)), 0)
		}
		for range 2 {
			m, err := sub.Latest()
			expectKind(t, err, 0)
			if m.TypeID() != 2 || string(m.UnsafeBytes()) != "m2" || m.Lost() != 0 {
				t.Fatal(m.TypeID())
			}
			_, err = sub.TryRecv()
			expectKind(t, err, Busy)
			m.Release()
			meta, err := sub.LatestInto(buffer[:])
			expectKind(t, err, 0)
			if meta.Len != 2 || string(buffer[:2]) != "m2" || meta.Seq != pub.Seq() {
				t.Fatal(meta)
			}
			meta, err = sub.LatestInto(buffer[:1])
			expectKind(t, err, TooLarge)
			if meta.Len != 2 {
				t.Fatal(meta)
			}
		}
		if policy == Latest {
			expectAll(t, sub, "[]")
			sent := make(chan error)
			go func() {
				time.Sleep(20 * time.Millisecond)
				sent <- pub.Send(background, 9, []byte("newer"))
			}()
			m, err := sub.WaitNewer(within(t))
			expectKind(t, err, 0)
			expectKind(t, <-sent, 0)
			if m.TypeID() != 9 {
				t.Fatal(m.TypeID())
			}
			m.Release()
		} else {
			_, err := sub.WaitNewer(background)
			expectKind(t, err, Unsupported)
			if m, err := sub.TryRecv(); err != nil || m.TypeID() == 2 {
				t.Fatal(err)
			}
		}
	}
}

func TestCopyingReceives(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{MayEject: true, Timestamps: true})
	for _, o := range []TopicOptions{{Start: FromNow()}, {Policy: Lossy}, {Policy: Latest}} {
		sub := subscriberAt(t, name, o)
		expectKind(t, pub.SendTagged(background, 3, 9, []byte("hello")), 0)
		var small [3]byte
		meta, err := sub.TryRecvInto(small[:])
		expectKind(t, err, TooLarge)
		if meta.Len != 5 || meta.Tag != 9 || meta.Seq != pub.Seq() {
			t.Fatal(meta)
		}
		var buffer [8]byte
		meta, err = sub.RecvInto(background, buffer[:])
		expectKind(t, err, 0)
		if string(buffer[:meta.Len]) != "hello" || meta.TypeID != 3 || meta.Lost != 0 && o.Policy != Latest || meta.Time.IsZero() {
			t.Fatal(meta)
		}
		expectKind(t, pub.Send(background, 4, []byte("there")), 0)
		all, meta, err := sub.RecvAppend(background, []byte("hello "))
		expectKind(t, err, 0)
		if string(all) != "hello there" || meta.TypeID != 4 || meta.Seq != pub.Seq() {
			t.Fatal(string(all), meta)
		}
		_, err = sub.TryRecvInto(buffer[:])
		expectKind(t, err, Empty)
		expectKind(t, sub.Close(), 0)
	}
}

func TestWhatARingCanDoATopicCan(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Capacity: 1 << 16, Align: 128})
	for _, o := range []TopicOptions{{Start: FromNow()}, {Policy: Lossy}} {
		sub := subscriberAt(t, name, o)
		n, err := pub.SendBatch(background, 5, 6, [][]byte{[]byte("a"), nil, []byte("ccc")})
		if n != 3 || err != nil {
			t.Fatal(n, err)
		}
		expectKind(t, pub.SendVectored(background, 7, 8, []byte("x"), []byte("yz")), 0)
		slot, err := pub.Reserve(background, 100)
		expectKind(t, err, 0)
		expectKind(t, pub.TrySend(1, nil), Busy)
		expectKind(t, slot.CommitUnflushed(9, 10, copy(slot.Bytes(), "late")), 0)
		b, err := sub.RecvBatch(background, 10)
		expectKind(t, err, 0)
		first := b.At(0).Seq()
		for i, m := range []string{"a", "", "ccc", "xyz"} {
			if got := b.At(i); string(got.UnsafeBytes()) != m || got.Seq() != first+uint64(i) {
				t.Fatal(i, string(got.Clone()), got.Seq())
			}
		}
		if b.Len() != 4 {
			t.Fatal(b.Len())
		}
		b.Release()
		expectKind(t, pub.Flush(), 0)
		expectKind(t, pub.SendTensor(background, DtypeFloat32, []uint64{2, 3}, 1, make([]byte, 24)), 0)
		m, err := sub.TryRecv()
		expectKind(t, err, 0)
		if string(m.Clone()) != "late" || m.Tag() != 10 {
			t.Fatal(string(m.Clone()))
		}
		m.Release()
		m, err = sub.TryRecv()
		expectKind(t, err, 0)
		tensor, err := m.Tensor()
		expectKind(t, err, 0)
		if elements, err := Elements[float32](tensor.Data, tensor.Dtype); err != nil || len(elements) != 6 {
			t.Fatal(err)
		}
		m.Release()
		if _, err := pub.Writer(background, 1).Write([]byte("stream")); err != nil {
			t.Fatal(err)
		}
		var text [6]byte
		if n, err := sub.Reader(background).Read(text[:]); n != 6 || err != nil || string(text[:]) != "stream" {
			t.Fatal(n, err)
		}
		if max := pub.MaxMessageLen(); max != 1<<15-32 || sub.MaxMessageLen() != max {
			t.Fatal(max, sub.MaxMessageLen())
		}
		expectKind(t, pub.TrySend(1, make([]byte, 1<<15-31)), TooLarge)
		expectKind(t, pub.TrySend(1, make([]byte, 1<<15-32)), 0)
		expectKind(t, sub.Close(), 0)
	}
}

func TestOptionsOfTheOtherSideAreRefused(t *testing.T) {
	name := newFolder(t).at("topic")
	for _, o := range []TopicOptions{
		{Policy: Lossy}, {Start: FromNow()}, {Label: "x"}, {Durable: true}, {ReadOnly: true}, {EjectAfter: -1}, {Align: 16},
		{Slots: 1025}, {Slots: -1}, {Capacity: -1}, {LossyOnly: true, MayEject: true}, {Wait: 9},
	} {
		_, err := CreatePublisher(name, o)
		expectKind(t, err, InvalidArgument)
		expectText(t, err, "creating the topic '"+name+"'")
	}
	for _, o := range []TopicOptions{
		{EjectAfter: time.Second}, {Timestamps: true}, {Policy: 3}, {Label: string(make([]byte, 2))}, {Label: "\xff"},
		{Durable: true}, {Durable: true, Policy: Lossy, Label: "x"}, {Policy: Latest, Start: FromNow()}, {ReadOnly: true},
		{ReadOnly: true, Policy: Lossy},
	} {
		_, err := CreateSubscriber(name, o)
		expectKind(t, err, InvalidArgument)
	}
	pub := publisherAt(t, name, TopicOptions{LossyOnly: true, Slots: 2, Align: 64, Capacity: 8192})
	for kind, o := range map[Kind]TopicOptions{Unsupported: {}, InvalidArgument: {Slots: 1, Policy: Lossy}} {
		_, err := OpenSubscriber(name, o)
		expectKind(t, err, kind)
	}
	for _, o := range []TopicOptions{{Capacity: 4096}, {Align: 32}, {MayEject: true}} {
		o.Policy = Lossy
		_, err := OpenSubscriber(name, o)
		expectKind(t, err, InvalidArgument)
	}
	_, err := OpenPublisher(name, TopicOptions{})
	expectKind(t, err, Busy)
	expectText(t, err, "the topic has a publisher already")
	_, err = OpenReceiver(name, Options{})
	expectKind(t, err, InvalidArgument)
	expectText(t, err, "this is a topic, not a ring")
	// Nobody gates, so nothing is ever full; the second finds no slot, and goes on unseen.
	a := subscriberAt(t, name, TopicOptions{Policy: Lossy, Label: "seen"})
	b := subscriberAt(t, name, TopicOptions{Policy: Lossy})
	for range 1000 {
		expectKind(t, pub.TrySend(1, make([]byte, 100)), 0)
	}
	if all := pub.Subscribers(); len(all) != 1 || all[0].Label != "seen" || a.Label() != "seen" || b.Label() != "" {
		t.Fatal(all)
	}
	if len(receiveAll(t, a)) == 0 || len(receiveAll(t, b)) == 0 {
		t.Fatal("nothing")
	}
}

// TestTopicsAreAsShown compares what the page shows of a topic with the file of one.
func TestTopicsAreAsShown(t *testing.T) {
	for _, block := range hexBlocks(t, "topic") {
		t.Run(block.title, func(t *testing.T) {
			name := newFolder(t).at("topic")
			pub := publisherAt(t, name, TopicOptions{Capacity: 4096})
			if strings.HasSuffix(block.title, "start=4064") {
				expectKind(t, pub.TrySend(1, make([]byte, 2016-32)), 0)
				expectKind(t, pub.TrySend(1, make([]byte, 2048-32)), 0)
			}
			if block.title != "topic header" {
				expectKind(t, pub.TrySendTagged(7, 0x1122334455667788, []byte("hello")), 0)
				expectKind(t, pub.TrySend(8, nil), 0)
			}
			file, err := os.ReadFile(name)
			must(err)
			for _, line := range block.lines {
				what, rest, _ := strings.Cut(line, " ")
				at, is := map[string]int{"tail": block0 + offTopicTail, "last": block0 + offTopicLast}[what]
				switch {
				case what == "data":
					compareHex(t, rest, file[0x3000:])
				case is:
					shown, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
					if found := binary.LittleEndian.Uint64(file[at:]); err != nil || found != shown {
						t.Fatalf("%s is %x, shown '%s'", what, found, rest)
					}
				default:
					compareHex(t, line, file)
				}
			}
		})
	}
}
