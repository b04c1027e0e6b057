package ramway

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ramway/ramway/bindings/go/internal/sys"
)

// A topic's sides as they wait, die, and are scribbled over.

// patterned is a payload that shows if it is torn.
func patterned(payload []byte, seq uint64) []byte {
	for i := range payload {
		payload[i] = byte(seq + uint64(i/64))
	}
	return payload
}

// torn says whether the bytes are not what patterned wrote for this number.
func torn(payload []byte, seq uint64) bool {
	for i, b := range payload {
		if b != byte(seq+uint64(i/64)) {
			return true
		}
	}
	return false
}

// TestEverySubscriberUnderLoad: each reads all that there is by its policy, on a log that is lapped many times.
func TestEverySubscriberUnderLoad(t *testing.T) {
	eachWait(t, func(t *testing.T, mode WaitMode) {
		const messages = 20_000
		for _, eject := range []bool{false, true} {
			name := newFolder(t).at("topic")
			pub := publisherAt(t, name, TopicOptions{Capacity: 16384, MayEject: eject, Wait: mode})
			var all sync.WaitGroup
			for _, o := range []TopicOptions{{}, {Label: "batches"}, {Policy: Lossy}, {Policy: Latest}, {Policy: Lossy, ReadOnly: true}} {
				o.Wait = mode
				sub, err := OpenSubscriber(name, o)
				expectKind(t, err, 0)
				all.Add(1)
				go func() {
					defer all.Done()
					defer sub.Close()
					received, lost, next := uint64(0), uint64(0), uint64(1)
					take := func(m Message) {
						if m.Seq() != next+m.Lost() || torn(m.UnsafeBytes(), m.Seq()) || m.Tag() != m.Seq() {
							t.Errorf("%v: %d after %d, %d lost", o.Policy, m.Seq(), next, m.Lost())
						}
						received, lost, next = received+1, lost+m.Lost(), m.Seq()+1
					}
					if o.Label != "" {
						for b := range sub.Batches(background, 7) {
							for m := range b.All() {
								take(m)
							}
						}
					} else {
						for m := range sub.All(background) {
							take(m)
						}
					}
					if err := sub.Err(); err != nil || received+lost != messages || o.Policy == Reliable && lost != 0 || sub.Lost() != lost {
						t.Errorf("%v: %d received, %d lost, %v", o.Policy, received, lost, err)
					}
				}()
			}
			buffer := make([]byte, 1000)
			for seq := uint64(1); seq <= messages; seq++ {
				expectKind(t, pub.SendTagged(background, 1, seq, patterned(buffer[:seq%uint64(len(buffer))], seq)), 0)
			}
			expectKind(t, pub.Close(), 0)
			all.Wait()
		}
	})
}

func TestASleepingSubscriberIsWokenAndCanBeCalledOff(t *testing.T) {
	for _, o := range []TopicOptions{{}, {Policy: Lossy}, {Policy: Latest}, {Policy: Lossy, ReadOnly: true}, {NoMembarrier: true}} {
		o.Wait = Block
		name := newFolder(t).at("topic")
		pub := publisherAt(t, name, TopicOptions{})
		sub := subscriberOpen(t, name, o)
		received := make(chan error)
		var seq uint64
		receive := func(ctx context.Context) {
			m, err := sub.Recv(ctx)
			if err == nil {
				seq = m.Seq()
				m.Release()
			}
			received <- err
		}
		for i := range uint64(20) {
			go receive(background)
			if !o.ReadOnly {
				eventually(t, "it sleeps", func() bool { return atomic.LoadUint64(&sub.topic.area.word)&wordAsleep != 0 })
			}
			expectKind(t, pub.Send(background, 1, nil), 0)
			expectKind(t, <-received, 0)
			if seq != i+1 {
				t.Fatal(seq)
			}
		}
		ctx, cancel := context.WithCancel(background)
		go receive(ctx)
		time.Sleep(20 * time.Millisecond)
		cancel()
		expectKind(t, <-received, Interrupted)
		go receive(background)
		time.Sleep(20 * time.Millisecond)
		expectKind(t, sub.Close(), 0)
		expectKind(t, <-received, Detached)
		_, err := sub.TryRecv()
		expectKind(t, err, Detached)
		if sub.Lag() != (Lag{}) || sub.Label() != "" || sub.Len() != 0 {
			t.Fatal(sub.Lag())
		}
	}
}

// subscriberOpen is subscriberAt for a topic that is there.
func subscriberOpen(t testing.TB, name string, o TopicOptions) *Subscriber {
	t.Helper()
	sub, err := OpenSubscriber(name, o)
	expectKind(t, err, 0)
	t.Cleanup(func() { _ = sub.Close() })
	return sub
}

func TestABlockedPublisherCanBeCalledOff(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Capacity: 4096})
	sub := subscriberAt(t, name, TopicOptions{})
	for pub.TrySend(1, make([]byte, 500)) == nil {
	}
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	expectKind(t, pub.Send(ctx, 1, make([]byte, 500)), TimedOut)
	blocked := make(chan error)
	go func() { blocked <- pub.Send(background, 1, make([]byte, 500)) }()
	eventually(t, "it sleeps", func() bool { return atomic.LoadUint32(&pub.topic.area.wait) == 1 })
	if all := len(receiveAll(t, sub)); all < 6 {
		t.Fatal(all)
	}
	expectKind(t, <-blocked, 0)
	for pub.TrySend(1, make([]byte, 500)) == nil {
	}
	go func() { blocked <- pub.Send(background, 1, make([]byte, 500)) }()
	eventually(t, "it sleeps", func() bool { return atomic.LoadUint32(&pub.topic.area.wait) == 1 })
	expectKind(t, pub.Close(), 0)
	expectKind(t, <-blocked, Detached)
	if pub.Seq() != 0 || pub.Subscribers() != nil || pub.Len() != 0 {
		t.Fatal(pub.Seq())
	}
	expectKind(t, pub.SkipSeq(1), Detached)
	expectKind(t, pub.WaitForSubscribers(background, 0), Detached)
}

func TestWaitingForSubscribers(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{})
	subscriberAt(t, name, TopicOptions{Policy: Lossy})
	ctx, cancel := context.WithTimeout(background, 10*time.Millisecond)
	defer cancel()
	err := pub.WaitForSubscribers(ctx, 1)
	expectKind(t, err, TimedOut)
	expectText(t, err, "waiting for the subscribers of")
	came := make(chan error)
	go func() { came <- pub.WaitForSubscribers(background, 2) }()
	eventually(t, "it sleeps", func() bool { return atomic.LoadUint32(&pub.topic.area.wait) == 1 })
	subscriberAt(t, name, TopicOptions{})
	subscriberAt(t, name, TopicOptions{})
	expectKind(t, <-came, 0)
	if epoch, err := pub.WaitForPeer(background); epoch == 0 || err != nil {
		t.Fatal(epoch, err)
	}
	expectKind(t, os.Remove(name), 0)
	expectKind(t, pub.WaitForSubscribers(background, 3), Closed)
}

// A message that is out when its subscriber closes can be read until it is released; the publisher waits for that.
func TestAViewOutlivesItsSubscribersClose(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Capacity: 4096})
	sub := subscriberAt(t, name, TopicOptions{})
	expectKind(t, pub.Send(background, 1, []byte("kept")), 0)
	m, err := sub.Recv(background)
	expectKind(t, err, 0)
	expectKind(t, sub.Close(), 0)
	for pub.TrySend(1, make([]byte, 500)) == nil {
	}
	if string(m.Clone()) != "kept" || m.Seq() != 1 {
		t.Fatal(string(m.Clone()))
	}
	m.View(func(b []byte) {
		if string(b) != "kept" {
			t.Fatal(string(b))
		}
	})
	m.Release()
	expectKind(t, pub.Send(within(t), 1, make([]byte, 500)), 0)
	if len(pub.Subscribers()) != 0 {
		t.Fatal(pub.Subscribers())
	}
}

func TestForgottenSidesOfATopicAreClosed(t *testing.T) {
	name := newFolder(t).at("topic")
	keep := subscriberAt(t, name, TopicOptions{})
	func() {
		sub, err := OpenSubscriber(name, TopicOptions{Label: "forgotten"})
		expectKind(t, err, 0)
		pub, err := OpenPublisher(name, TopicOptions{})
		expectKind(t, err, 0)
		if len(pub.Subscribers()) != 2 || sub.PeerEpoch() != 1 {
			t.Fatal(pub.Subscribers())
		}
		slot, err := pub.Reserve(background, 4)
		expectKind(t, err, 0)
		expectKind(t, slot.CommitUnflushed(1, 0, copy(slot.Bytes(), "last")), 0)
	}()
	eventually(t, "the publisher is collected", func() bool {
		runtime.GC()
		return keep.peer.flags&roleClosed != 0
	})
	m, err := keep.TryRecv()
	expectKind(t, err, 0)
	if string(m.Clone()) != "last" {
		t.Fatal(string(m.Clone()))
	}
	m.Release()
	eventually(t, "the subscriber is collected", func() bool {
		runtime.GC()
		return len(receiveSlots(keep)) == 1
	})
}

// receiveSlots are the slots in use.
func receiveSlots(sub *Subscriber) (used []int) {
	for i := range sub.topic.slots {
		if uint32(atomic.LoadUint64(&sub.topic.slots[i].state)) != 0 {
			used = append(used, i)
		}
	}
	return used
}

func TestATopicsCallsAllocateNothing(t *testing.T) {
	for _, o := range []TopicOptions{{}, {MayEject: true}, {Policy: Lossy}, {Policy: Latest}} {
		name := newFolder(t).at("topic")
		pub := publisherAt(t, name, TopicOptions{Timestamps: true, MayEject: o.MayEject})
		sub := subscriberAt(t, name, o)
		payload, buffer := make([]byte, 300), make([]byte, 300)
		one := func() {
			if pub.Send(background, 1, payload) != nil {
				t.Fatal("send")
			}
			m, err := sub.Recv(background)
			if err != nil || m.Len() != 300 {
				t.Fatal(err)
			}
			m.View(func(b []byte) { buffer[0] = b[0] })
			m.Release()
			_ = pub.Send(background, 1, payload)
			if _, err := sub.LatestInto(buffer); err != nil {
				t.Fatal(err)
			}
			if o.Policy == Latest {
				_ = pub.Send(background, 1, payload)
			}
			if _, err := sub.RecvInto(background, buffer); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			one()
		}
		if n := testing.AllocsPerRun(500, one); n != 0 {
			t.Errorf("%+v: %v allocations", o, n)
		}
	}
}

func init() {
	helpers["subscriber"] = func(args []string) {
		o := TopicOptions{Label: args[1], Durable: args[1] != "", Timeout: long}
		sub, err := OpenSubscriber(args[0], o)
		must(err)
		n, err := strconv.Atoi(args[2])
		must(err)
		for range n {
			m, err := sub.Recv(background)
			must(err)
			m.Release()
		}
		say("received")
		told()
	}
	helpers["publisher"] = func(args []string) {
		pub, err := OpenOrCreatePublisher(args[0], TopicOptions{Capacity: 16384, Timeout: long})
		must(err)
		say("ready")
		buffer := make([]byte, 1000)
		for {
			seq := pub.Seq() + 1
			must(pub.SendTagged(background, 1, seq, patterned(buffer[:seq%1000], seq)))
		}
	}
}

func TestAKilledSubscriberNoLongerHoldsThePublisherBack(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Capacity: 4096})
	p := startPeer(t, "subscriber", name, "", "1")
	expectKind(t, pub.WaitForSubscribers(within(t), 1), 0)
	expectKind(t, pub.Send(background, 1, nil), 0)
	p.expect("received")
	for pub.TrySend(1, make([]byte, 500)) == nil {
	}
	p.kill()
	began := time.Now()
	expectKind(t, pub.Send(within(t), 1, make([]byte, 500)), 0)
	if took := time.Since(began); took > 10*time.Second {
		t.Fatal(took)
	}
	if all := pub.Subscribers(); len(all) != 0 {
		t.Fatalf("%+v", all)
	}
}

func TestAKilledDurableSubscriberIsWaitedForAndResumed(t *testing.T) {
	name := newFolder(t).at("topic")
	pub := publisherAt(t, name, TopicOptions{Capacity: 4096})
	p := startPeer(t, "subscriber", name, "recorder", "2")
	expectKind(t, pub.WaitForSubscribers(within(t), 1), 0)
	for range 3 {
		expectKind(t, pub.Send(background, 1, nil), 0)
	}
	p.expect("received")
	p.kill()
	for pub.TrySend(1, make([]byte, 500)) == nil {
	}
	ctx, cancel := context.WithTimeout(background, 300*time.Millisecond)
	defer cancel()
	expectKind(t, pub.Send(ctx, 1, make([]byte, 500)), TimedOut)
	if all := pub.Subscribers(); len(all) != 1 || all[0].Alive || !all[0].Durable {
		t.Fatalf("%+v", all)
	}
	sub := subscriberAt(t, name, TopicOptions{Label: "recorder", Durable: true})
	m, err := sub.TryRecv()
	expectKind(t, err, 0)
	if m.Seq() != 3 || m.Lost() != 0 || sub.Epoch() != 2 {
		t.Fatal(m.Seq(), m.Lost(), sub.Epoch())
	}
	m.Release()
	expectKind(t, sub.Unsubscribe(), 0)
	expectKind(t, pub.Send(within(t), 1, make([]byte, 500)), 0)
}

// Whenever a publisher is killed, the next one goes on in the same log, and every subscriber finds whole messages.
func TestPublishersThatAreKilled(t *testing.T) {
	name := newFolder(t).at("topic")
	reliable := subscriberAt(t, name, TopicOptions{Capacity: 16384})
	lossy := subscriberAt(t, name, TopicOptions{Policy: Lossy})
	var next uint64 = 1
	for round := range 8 {
		p := startPeer(t, "publisher", name)
		p.expect("ready")
		stop := time.After(time.Duration(1+rand.IntN(10)) * time.Millisecond)
		killed := false
		for {
			select {
			case <-stop:
				p.kill()
				killed = true
			default:
			}
			m, err := reliable.TryRecv()
			if errors.Is(err, ErrPeerDead) {
				if !killed {
					t.Fatal("it lives")
				}
				break
			}
			if err == nil {
				if m.Seq() != next || m.Lost() != 0 || torn(m.UnsafeBytes(), m.Seq()) {
					t.Fatal(round, m.Seq(), next, m.Lost())
				}
				next++
				m.Release()
			} else {
				expectKind(t, err, Empty)
			}
			m, err = lossy.TryRecv()
			if err == nil {
				if torn(m.UnsafeBytes(), m.Seq()) {
					t.Fatal("torn")
				}
				m.Release()
			} else if kind := KindOf(err); kind != Empty && kind != PeerDead {
				t.Fatal(err)
			}
		}
	}
	if next < 100 {
		t.Fatal(next)
	}
}

// Somebody who writes anything anywhere into the file, at any time: calls end, with a message or an error, and nothing else
// happens.
func TestATopicThatIsScribbledOverEndsNothingElse(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	var mu sync.Mutex
	corrupt := map[string]int{}
	found := func(what string) {
		mu.Lock()
		corrupt[what]++
		mu.Unlock()
	}
	for round := range rounds {
		name := filepath.Join(newFolder(t).path, "topic")
		o := TopicOptions{Capacity: 4096, Slots: 4, Wait: Block}
		if round%2 == 0 {
			o.EjectAfter = time.Millisecond
		}
		pub := publisherAt(t, name, o)
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		must(err)
		info, err := file.Stat()
		must(err)
		page, err := sys.Map(int(file.Fd()), 0, int(info.Size()), true)
		must(err)
		ctx, cancel := context.WithTimeout(background, 60*time.Millisecond)
		var all sync.WaitGroup
		run := func(what string, call func() error) {
			all.Add(1)
			go func() {
				defer all.Done()
				for ctx.Err() == nil {
					if err := call(); errors.Is(err, ErrCorrupt) {
						found(what)
						return
					}
				}
			}()
		}
		run("publisher", func() error {
			short, stop := context.WithTimeout(ctx, 5*time.Millisecond)
			defer stop()
			_ = pub.Subscribers()
			return pub.Send(short, 1, make([]byte, rand.IntN(1500)))
		})
		for _, so := range []TopicOptions{{}, {Policy: Lossy}, {Policy: Latest}, {Policy: Lossy, ReadOnly: true}, {Label: "x", Durable: true}} {
			so.Wait = Block
			sub := subscriberOpen(t, name, so)
			buffer := make([]byte, 0, 4096)
			run(fmt.Sprint(so.Policy), func() error {
				short, stop := context.WithTimeout(ctx, 5*time.Millisecond)
				defer stop()
				var errs []error
				var err error
				buffer, _, err = sub.RecvAppend(short, buffer[:0])
				if len(buffer) > 4096 {
					t.Errorf("a message of %d bytes out of a topic of 4096", len(buffer))
				}
				errs = append(errs, err)
				if m, err := sub.TryRecv(); err == nil {
					m.View(func([]byte) {})
					_, _, _ = m.Seq(), m.Time(), m.Lost()
					m.Release()
				}
				if b, err := sub.TryRecvBatch(10); err == nil {
					b.Release()
				}
				if m, err := sub.Latest(); err == nil {
					buffer = m.Append(buffer[:0])
					m.Release()
				} else {
					errs = append(errs, err)
				}
				_ = sub.Lag()
				_, err = sub.SkipToNewest()
				return errors.Join(append(errs, err)...)
			})
		}
		run("a newcomer", func() error {
			so := TopicOptions{Policy: Policy(rand.IntN(3)), Wait: Block}
			if so.Policy == Reliable {
				so.Label, so.Durable, so.Start = "y", rand.IntN(2) == 0, History(uint64(rand.IntN(9)))
			}
			sub, err := OpenSubscriber(name, so)
			if err != nil {
				if errors.Is(err, ErrCorrupt) {
					found("a newcomer")
				}
				return nil
			}
			_, _ = sub.TryRecv()
			_ = sub.Close()
			return nil
		})
		random := rand.New(rand.NewPCG(uint64(round), 19))
		for ctx.Err() == nil {
			// The words of the block, the area with its slots, and frames; now and then something that could be true.
			at := 0x480 + random.IntN(0x1A0)
			switch random.IntN(4) {
			case 0:
				at = 0x1080
			case 1:
				at = 0x2000 + random.IntN(4*128)
			case 2:
				at = int(info.Size()) - 4096 + random.IntN(4096)
			}
			value := random.Uint64()
			if random.IntN(3) > 0 {
				value = uint64(random.IntN(8192)) &^ 31
			}
			atomic.StoreUint64((*uint64)(unsafe.Add(page, at&^7)), value)
			if random.IntN(8) == 0 {
				time.Sleep(20 * time.Microsecond)
			}
		}
		cancel()
		all.Wait()
		must(sys.Unmap(page, int(info.Size())))
		_ = file.Close()
	}
	for _, who := range []string{"reliable", "lossy", "latest"} {
		if corrupt[who] == 0 {
			t.Errorf("%s: nothing was ever found to be corrupt: %v", who, corrupt)
		}
	}
}
